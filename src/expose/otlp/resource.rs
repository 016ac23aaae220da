//! Where telemetry comes from: one resource for the exporter, one for each
//! Spark application.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::config::otlp::OtlpResource;
use crate::metrics::RunView;
use crate::report::privacy::redacted;

/// Its name where the operator gives none.
const SERVICE_NAME: &str = "spark-exporter";

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

/// Of the exporter. `instance`: what tells it from other exporters.
pub(super) fn of_exporter(said: &OtlpResource, instance: &str) -> Resource {
    let name = said.service_name.as_deref().unwrap_or(SERVICE_NAME);
    let own = vec![
        text("service.name", name),
        text("service.instance.id", instance),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    with(own, said)
}

/// Of a run of a Spark application.
pub(super) fn of_run(said: &OtlpResource, view: &RunView) -> Resource {
    let application = &view.application;
    let id = &application.id;
    let instance = match &id.attempt_id {
        Some(attempt) => format!("{}/{attempt}", id.app_id),
        None => id.app_id.clone(),
    };
    let mut own = vec![
        text("service.name", &*view.name),
        text("service.instance.id", instance),
        text("spark.cluster.name", &*id.cluster),
        text("spark.application.id", &*id.app_id),
        text("spark.application.name", redacted(&application.name)),
        text("spark.application.kind", application.kind.as_str()),
    ];
    let mut add = |key: &str, value: Option<&str>| {
        own.extend(value.filter(|value| !value.is_empty()).map(|value| text(key, value)));
    };
    add("spark.application.attempt.id", id.attempt_id.as_deref());
    add("spark.version", application.spark_version.as_deref());
    add("process.owner", application.user.as_deref());
    let configuration = &application.configuration;
    add("k8s.namespace.name", configuration.get("spark.kubernetes.namespace"));
    add("k8s.pod.name", configuration.get("spark.kubernetes.driver.pod.name"));
    with(own, said)
}

fn with(mut own: Vec<KeyValue>, said: &OtlpResource) -> Resource {
    for (key, value) in &said.attributes {
        if !own.iter().any(|known| known.key == *key) {
            own.push(text(key, value));
        }
    }
    Resource { attributes: own, ..Resource::default() }
}
