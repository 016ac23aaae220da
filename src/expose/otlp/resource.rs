//! Where telemetry comes from: one resource for the exporter, one for each
//! Spark application.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::config::otlp::OtlpResource;
use crate::metrics::{RunView, label};
use crate::report::privacy::redacted;

/// Its name where the operator gives none.
pub(super) const SERVICE_NAME: &str = "spark-exporter";
/// Characters of an attribute, at most.
const TEXT_LENGTH: usize = 1_024;
/// Beginnings of attributes that describe one process and where it runs.
const OF_A_PROCESS: [&str; 8] = [
    "service.instance.",
    "service.version",
    "telemetry.",
    "process.",
    "host.",
    "os.",
    "container.",
    "k8s.",
];
/// Of these only it is common to what runs in one cluster.
const OF_ALL: &str = "k8s.cluster.";

/// Whose code made the telemetry: ours, whatever it is about.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: SERVICE_NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

pub(super) fn text(key: &str, value: impl Into<String>) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.into())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

/// The text of an attribute that the resource has.
pub(super) fn text_of<'a>(resource: &'a Resource, key: &str) -> Option<&'a str> {
    let found = resource.attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value.as_ref()?.value {
        Some(any_value::Value::StringValue(text)) => Some(text),
        _ => None,
    }
}

/// Of the exporter. `instance`: what tells it from other exporters, unless the
/// operator does.
pub(super) fn of_exporter(said: &OtlpResource, instance: &str) -> Resource {
    let said_of = |key: &str| said.attributes.get(key).map(String::as_str);
    let name = said.service_name.as_deref().or_else(|| said_of("service.name"));
    let own = vec![
        text("service.name", name.unwrap_or(SERVICE_NAME)),
        text("service.instance.id", said_of("service.instance.id").unwrap_or(instance)),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    with(own, said, |_| true)
}

/// Of a run of a Spark application: what stays as it is while it runs, since
/// another resource is another origin to a back end. Its kind is none of that.
pub(super) fn of_run(said: &OtlpResource, view: &RunView) -> Resource {
    let application = &view.application;
    let id = &application.id;
    let instance = match &id.attempt_id {
        Some(attempt) => format!("{}/{attempt}", id.app_id),
        None => id.app_id.clone(),
    };
    let mut own = Vec::with_capacity(12);
    let mut add = |key: &str, value: Option<&str>| {
        let value = label::clean(value.unwrap_or_default(), TEXT_LENGTH);
        own.extend((!value.is_empty()).then(|| text(key, value)));
    };
    add("service.name", Some(&view.name));
    add("service.instance.id", Some(&instance));
    add("spark.cluster.name", Some(&id.cluster));
    add("spark.application.id", Some(&id.app_id));
    add("spark.application.attempt.id", id.attempt_id.as_deref());
    add("spark.application.name", Some(&redacted(&application.name)));
    add("spark.version", application.spark_version.as_deref());
    add("process.owner", application.user.as_deref());
    // The driver's own pod, where it was known when the run was first shown:
    // told later, it would make another resource of it.
    let known = application.kubernetes.as_ref().filter(|known| known.known_from_start);
    if let Some(driver) = known.and_then(|known| known.driver.as_ref()) {
        let pod = &driver.pod;
        add("k8s.namespace.name", Some(&pod.name.namespace));
        add("k8s.pod.name", Some(&pod.name.name));
        add("k8s.pod.uid", Some(&pod.name.uid));
        add("k8s.node.name", pod.node.as_deref());
    } else {
        let configuration = &application.configuration;
        add("k8s.namespace.name", configuration.get("spark.kubernetes.namespace"));
        add("k8s.pod.name", configuration.get("spark.kubernetes.driver.pod.name"));
    }
    with(own, said, |key| !is_of_a_process(key))
}

/// Whether an attribute says where the exporter itself runs, which is not
/// where the application does.
fn is_of_a_process(key: &str) -> bool {
    OF_A_PROCESS.iter().any(|prefix| key.starts_with(prefix)) && !key.starts_with(OF_ALL)
}

fn with(mut own: Vec<KeyValue>, said: &OtlpResource, is_meant: impl Fn(&str) -> bool) -> Resource {
    for (key, value) in said.attributes.iter().filter(|(key, _)| is_meant(key)) {
        if !own.iter().any(|known| known.key == *key) {
            own.push(text(key, value));
        }
    }
    Resource { attributes: own, ..Resource::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnose::Diagnosis;
    use crate::model::{
        Application, DriverPod, KubernetesFacts, Pod, PodName, PodPhase, RunId, Source,
    };

    fn attributes(resource: &Resource) -> Vec<(&str, &str)> {
        let keys = resource.attributes.iter().map(|attribute| attribute.key.as_str());
        keys.map(|key| (key, text_of(resource, key).unwrap())).collect()
    }

    fn said(attributes: &[(&str, &str)]) -> OtlpResource {
        let owned = attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        OtlpResource { service_name: None, attributes: owned.collect() }
    }

    fn run(name: &str) -> RunView {
        let (cluster, app_id) = ("prod".to_owned(), "app-1".to_owned());
        let id = RunId { cluster, app_id, attempt_id: Some("2".to_owned()) };
        let now = jiff::Timestamp::UNIX_EPOCH;
        let mut application = Application::new(id, Source::EventLog, now);
        name.clone_into(&mut application.name);
        RunView {
            name: "orders".into(),
            application: Arc::new(application),
            diagnosis: Arc::new(Diagnosis::default()),
            trace_id: None,
        }
    }

    #[test]
    fn a_run_has_its_own_name_and_what_the_operator_says_of_all() {
        let said = said(&[
            ("deployment.environment.name", "prod"),
            ("service.name", "exporter"),
            ("service.instance.id", "exporter-0"),
            ("k8s.pod.name", "exporter-0"),
            ("k8s.namespace.name", "monitoring"),
            ("k8s.cluster.name", "eu"),
            ("host.name", "node-7"),
        ]);
        assert_eq!(
            attributes(&of_run(&said, &run("orders 2026-11-29"))),
            [
                ("service.name", "orders"),
                ("service.instance.id", "app-1/2"),
                ("spark.cluster.name", "prod"),
                ("spark.application.id", "app-1"),
                ("spark.application.attempt.id", "2"),
                ("spark.application.name", "orders 2026-11-29"),
                ("deployment.environment.name", "prod"),
                ("k8s.cluster.name", "eu"),
            ]
        );
        assert_eq!(
            attributes(&of_exporter(&said, "host:10404"))[..2],
            [("service.name", "exporter"), ("service.instance.id", "exporter-0")]
        );
        let nothing = OtlpResource::default();
        assert_eq!(
            attributes(&of_exporter(&nothing, "host:10404"))[..2],
            [("service.name", "spark-exporter"), ("service.instance.id", "host:10404")]
        );
    }

    #[test]
    fn a_pod_that_is_told_later_makes_no_other_resource() {
        let mut view = run("orders");
        let mut application = (*view.application).clone();
        application.configuration.set("spark.kubernetes.namespace", "etl");
        application.configuration.set("spark.kubernetes.driver.pod.name", "orders-driver");
        let name =
            PodName { namespace: "etl".into(), name: "orders-driver".into(), uid: "7f3a".into() };
        let pod = Pod {
            name,
            node: Some("node-7".into()),
            phase: PodPhase::Running,
            reason: None,
            end: None,
            deletion: None,
            deleted: false,
        };
        let app_id = Some("app-1".to_owned());
        let driver = DriverPod { pod, app_id, labels: [("team".into(), "etl".into())].into() };
        let before = of_run(&OtlpResource::default(), &view);
        application.learn(&KubernetesFacts {
            driver: Some(Arc::new(driver)),
            ..KubernetesFacts::default()
        });
        let of_pod = |view: &RunView| {
            let resource = of_run(&OtlpResource::default(), view);
            let all = attributes(&resource);
            let of_pod = all.into_iter().filter(|(key, _)| key.starts_with("k8s."));
            of_pod.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        view.application = Arc::new(application.clone());
        assert_eq!(of_pod(&view), ["k8s.namespace.name=etl", "k8s.pod.name=orders-driver"]);
        assert_eq!(
            attributes(&before).len() + 2,
            attributes(&of_run(&OtlpResource::default(), &view)).len()
        );
        application.kubernetes.as_mut().unwrap().known_from_start = true;
        view.application = Arc::new(application);
        assert_eq!(
            of_pod(&view),
            [
                "k8s.namespace.name=etl",
                "k8s.pod.name=orders-driver",
                "k8s.pod.uid=7f3a",
                "k8s.node.name=node-7"
            ]
        );
    }

    #[test]
    fn texts_of_users_are_short_and_without_secrets() {
        let name = format!("load password=hunter2 {}\n", "x".repeat(10_000));
        let resource = of_run(&OtlpResource::default(), &run(&name));
        let name = text_of(&resource, "spark.application.name").unwrap();
        assert!(!name.contains("hunter2") && !name.contains('\n'), "{name}");
        assert!(name.chars().count() <= TEXT_LENGTH);
    }
}
