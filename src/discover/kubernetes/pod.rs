//! Pods: what of them is decoded, and what it means.
//!
//! Spark gives the pods of drivers in cluster mode the labels
//! `spark-role=driver` and `spark-app-selector`, those of executors
//! `spark-role=executor`, `spark-app-selector` and `spark-exec-id`. Pods with
//! a driver in client mode have only what the operator gave them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use kube::api::{ApiResource, GroupVersionKind, ObjectMeta};
use kube::core::Object;
use serde::Deserialize;

use super::container::{Container, Role, of_spark};
use super::lookup::{Ui, annotated};
use super::watch::{Deaf, Feed, Scope, selecting};
use super::{Change, FoundDriver, Kind, instant};
use crate::config::Kubernetes;
use crate::model::{ContainerEnd, DriverPod, ExecutorPod, Pod, PodName, PodPhase};

const ROLE: &str = "spark-role";
const APPLICATION: &str = "spark-app-selector";
const EXECUTOR: &str = "spark-exec-id";
/// The name of the `SparkApplication` that a pod was made for.
const SUBMITTED_BY: [&str; 2] = ["sparkoperator.k8s.io/app-name", "spark.operator/spark-app-name"];

/// A pod, cut to what is read of it.
pub(super) type WatchedPod = Object<Spec, Status>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    node_name: Option<String>,
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    phase: Option<String>,
    reason: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    restart_count: u32,
    state: Option<State>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct State {
    running: Option<serde::de::IgnoredAny>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
    reason: Option<String>,
    finished_at: Option<String>,
}

/// How the pods of one watch are read.
pub(super) struct Reader {
    kind: Kind,
    selector: Option<String>,
    annotation: Option<String>,
    labels: Vec<String>,
}

impl Reader {
    pub(super) fn new(kind: Kind, settings: &Kubernetes) -> Self {
        let own = match kind {
            Kind::ExecutorPods => format!("{ROLE}=executor"),
            Kind::ClientModePods => format!("{ROLE} notin (driver,executor)"),
            Kind::DriverPods | Kind::Applications(_) => format!("{ROLE}=driver"),
        };
        let mut parts = vec![own];
        if kind == Kind::ClientModePods {
            parts.extend(settings.client_mode.label_selector.clone());
        }
        // Spark gives executors labels of their own: the operator's choice is
        // of drivers, and a run's executors belong to it.
        if kind != Kind::ExecutorPods {
            parts.extend(settings.label_selector.clone());
        }
        let annotation = settings.client_mode.annotation.clone();
        Self {
            kind,
            selector: Some(parts.join(",")),
            annotation: annotation.filter(|_| kind == Kind::ClientModePods),
            labels: settings.pod_labels.clone(),
        }
    }

    /// What a pod is to us; `None`: nothing.
    pub(super) fn read(&self, object: WatchedPod) -> Option<Change> {
        let WatchedPod { metadata, spec, status, .. } = object;
        let status = status.unwrap_or_default();
        if self.kind == Kind::ExecutorPods {
            let label = |key| metadata.labels.as_ref()?.get(key).cloned();
            let (app_id, executor_id) = (label(APPLICATION)?, label(EXECUTOR)?);
            let container = of_spark(&spec.containers, Role::Executor);
            let pod = pod(&metadata, &spec, &status, status.of(container))?;
            return Some(Change::Executor(ExecutorPod { pod, app_id, executor_id }));
        }
        self.driver(metadata, &spec, &status).map(Change::Driver)
    }

    fn driver(&self, metadata: ObjectMeta, spec: &Spec, status: &Status) -> Option<FoundDriver> {
        let ports = match &self.annotation {
            Some(annotation) => annotated(metadata.annotations.as_ref()?.get(annotation)?)?,
            None => Vec::new(),
        };
        let container = of_spark(&spec.containers, Role::Driver);
        let state = status.of(container);
        let pod = pod(&metadata, spec, status, state)?;
        let address = status.pod_ip.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
        let runs = matches!(pod.phase, PodPhase::Running | PodPhase::Unknown)
            && pod.end.is_none()
            // Whoever does not tell of its containers is believed.
            && state.is_none_or(ContainerStatus::is_running);
        let ports = match (ports.is_empty(), container.and_then(Container::ui_port)) {
            (true, Some(declared)) => vec![declared],
            _ => ports,
        };
        let restarts = state.map_or(0, |state| state.restart_count);
        let ui = address.filter(|_| runs).map(|address| Ui { address, ports, restarts });
        let mut all = metadata.labels.unwrap_or_default();
        let submitted_by = SUBMITTED_BY.iter().find_map(|key| all.get(*key)).cloned();
        let app_id = all.get(APPLICATION).cloned();
        let labels: BTreeMap<String, String> =
            self.labels.iter().filter_map(|key| all.remove_entry(key)).collect();
        Some(FoundDriver {
            pod: DriverPod { pod, app_id, labels },
            ui,
            client_mode: self.kind == Kind::ClientModePods,
            submitted_by,
        })
    }
}

impl Status {
    fn of(&self, container: Option<&Container>) -> Option<&ContainerStatus> {
        let name = &container?.name;
        self.container_statuses.as_deref()?.iter().find(|status| status.name == *name)
    }
}

impl ContainerStatus {
    fn is_running(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.running.is_some())
    }

    fn end(&self) -> Option<ContainerEnd> {
        let terminated = self.state.as_ref()?.terminated.as_ref()?;
        Some(ContainerEnd {
            exit_code: terminated.exit_code,
            reason: terminated.reason.clone(),
            finished: terminated.finished_at.as_deref().and_then(|time| time.parse().ok()),
        })
    }
}

fn pod(
    metadata: &ObjectMeta,
    spec: &Spec,
    status: &Status,
    state: Option<&ContainerStatus>,
) -> Option<Pod> {
    let phase = match status.phase.as_deref() {
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some("Unknown") => PodPhase::Unknown,
        // A pod begins without a status.
        _ => PodPhase::Pending,
    };
    let disrupted = || {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let found = conditions
            .iter()
            .find(|one| one.r#type == "DisruptionTarget" && one.status == "True")?;
        found.reason.clone()
    };
    Some(Pod {
        name: PodName {
            namespace: metadata.namespace.clone()?,
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
        },
        node: spec.node_name.clone(),
        phase,
        reason: status.reason.clone().or_else(disrupted),
        end: state.and_then(ContainerStatus::end),
        deletion: asked_to_go(metadata),
        deleted: false,
    })
}

/// When somebody asked for the deletion. The API server notes when the pod has
/// to be gone: as much later as it is given to end by itself.
fn asked_to_go(metadata: &ObjectMeta) -> Option<Timestamp> {
    let gone = metadata.deletion_timestamp.as_ref().and_then(instant)?;
    let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
    gone.checked_sub(SignedDuration::from_secs(grace)).ok()
}

/// Lists and watches pods, again and again.
pub(super) async fn watch(scope: Scope, reader: Reader, mut feed: Feed) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let watched: Result<(), Deaf> = async {
        loop {
            let config = selecting(reader.selector.clone());
            let read = |pod| reader.read(pod);
            let failure = feed.follow(scope.api::<WatchedPod>(&resource), config, &read).await?;
            feed.failed(failure).await?;
        }
    }
    .await;
    // Nobody listens any more: the daemon ends.
    drop(watched);
}

#[cfg(test)]
mod tests;
