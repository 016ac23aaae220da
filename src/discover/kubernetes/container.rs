//! Which container of a pod is Spark's. Its exit code and its port count,
//! whatever the sidecars beside it do.
//!
//! Spark names it `spark-kubernetes-driver` or `spark-kubernetes-executor`,
//! unless a pod template gives it another name; then it is told by what Spark
//! gives it whatever its name is: the port `spark-ui` (drivers), or an
//! environment variable of Spark's own. A pod without any of that, a notebook
//! for instance, is judged by the only container it has, or by the first that
//! is no sidecar known by name.

use serde::Deserialize;

/// A container of `spec.containers`, as far as it is looked at: of the
/// environment the names only, since values may be secrets.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) ports: Option<Vec<Port>>,
    env: Option<Vec<Variable>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Port {
    name: Option<String>,
    container_port: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
}

/// What the container is looked for as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Driver,
    Executor,
}

/// The port that Spark declares for a driver's UI.
const UI_PORT: &str = "spark-ui";

/// Sidecars that stand before or beside the application's container.
const SIDECARS: [&str; 12] = [
    "istio-proxy",
    "linkerd-proxy",
    "linkerd-init",
    "envoy",
    "vault-agent",
    "cloud-sql-proxy",
    "fluent-bit",
    "fluentd",
    "filebeat",
    "promtail",
    "otc-container",
    "datadog-agent",
];

impl Container {
    /// The port of the UI, where it is declared.
    pub(super) fn ui_port(&self) -> Option<u16> {
        let ports = self.ports.as_deref().unwrap_or_default();
        let port = ports.iter().find(|port| port.name.as_deref() == Some(UI_PORT))?;
        u16::try_from(port.container_port).ok().filter(|port| *port > 0)
    }

    /// Whether Spark set a variable in it that it sets in no other.
    fn is_marked(&self, role: Role) -> bool {
        let mark = match role {
            Role::Driver => "SPARK_DRIVER_BIND_ADDRESS",
            Role::Executor => "SPARK_EXECUTOR_ID",
        };
        self.env.as_deref().unwrap_or_default().iter().any(|variable| variable.name == mark)
    }
}

/// Spark's own of a pod's containers; `None` only where there is none at all.
pub(super) fn of_spark(containers: &[Container], role: Role) -> Option<&Container> {
    let name = match role {
        Role::Driver => "spark-kubernetes-driver",
        Role::Executor => "spark-kubernetes-executor",
    };
    let find = |fits: &dyn Fn(&Container) -> bool| containers.iter().find(|one| fits(one));
    find(&|one| one.name == name)
        .or_else(|| find(&|one| role == Role::Driver && one.ui_port().is_some()))
        .or_else(|| find(&|one| one.is_marked(role)))
        .or_else(|| find(&|one| !SIDECARS.contains(&one.name.as_str())))
        .or_else(|| containers.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(containers: &str, role: Role) -> String {
        let containers: Vec<Container> = serde_json::from_str(containers).unwrap();
        of_spark(&containers, role).map(|one| one.name.clone()).unwrap_or_default()
    }

    #[test]
    fn by_name_port_mark_or_what_is_left() {
        for (containers, role, name) in [
            (
                r#"[{"name":"a"},{"name":"spark-kubernetes-driver"}]"#,
                Role::Driver,
                "spark-kubernetes-driver",
            ),
            (
                r#"[{"name":"a"},{"name":"b","ports":[{"name":"spark-ui","containerPort":4040}]}]"#,
                Role::Driver,
                "b",
            ),
            (
                r#"[{"name":"a","env":[{"name":"X","value":"1"}]},{"name":"b","env":[{"name":"SPARK_EXECUTOR_ID","value":"1"}]}]"#,
                Role::Executor,
                "b",
            ),
            (r#"[{"name":"istio-proxy"},{"name":"notebook"}]"#, Role::Driver, "notebook"),
            (r#"[{"name":"istio-proxy"}]"#, Role::Driver, "istio-proxy"),
            ("[]", Role::Driver, ""),
        ] {
            assert_eq!(chosen(containers, role), name, "{containers}");
        }
    }

    #[test]
    fn a_port_must_be_one() {
        for (port, expected) in [("4041", Some(4041)), ("0", None), ("70000", None)] {
            let text =
                format!(r#"{{"name":"a","ports":[{{"name":"spark-ui","containerPort":{port}}}]}}"#);
            let container: Container = serde_json::from_str(&text).unwrap();
            assert_eq!(container.ui_port(), expected);
        }
    }
}
