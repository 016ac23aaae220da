//! Lays flags over the file over the environment over defaults.

use std::ffi::OsString;
use std::time::Duration;

use super::file::Otlp;
use super::settings::{
    Compression, Destination, LogsSettings, MetricsSettings, OtlpResource, OtlpSettings, Protocol,
    Sampling, Signal, Temporality, TracesSettings,
};
use crate::config::{Size, TlsConfig};

/// What flags, file and environment come to together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resolved {
    pub settings: OtlpSettings,
    /// What the environment says and cannot be used, by the name of its
    /// variable.
    pub warnings: Vec<String>,
}

/// `file` with the flags already laid over it. `environment` gives a variable
/// by its name. An error is something the file or a flag says that cannot be.
pub fn resolve(
    file: &Otlp,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Resolved, String> {
    let general = environment("OTEL_EXPORTER_OTLP_ENDPOINT")
        .and_then(|value| value.into_string().ok())
        .filter(|value| !value.is_empty());
    let Some(endpoint) = file.endpoint.clone().or(general) else { return Ok(Resolved::default()) };
    let to = |signal: Signal| Destination {
        protocol: Protocol::HttpProtobuf,
        endpoint: format!("{}/v1/{}", endpoint.trim_end_matches('/'), signal.as_str()),
        headers: Vec::new(),
        header_files: Vec::new(),
        timeout: Duration::from_secs(10),
        compression: Compression::None,
        tls: TlsConfig::default(),
        request_size: Size::mib(3).bytes() as usize,
    };
    let day = Duration::from_secs(86_400);
    let settings = OtlpSettings {
        metrics: Some(MetricsSettings {
            destination: to(Signal::Metrics),
            interval: Duration::from_secs(60),
            temporality: Temporality::Cumulative,
        }),
        traces: Some(TracesSettings {
            destination: to(Signal::Traces),
            max_age: day,
            sampling: Sampling { ratio: 1.0, keep_failed: true, keep_longer_than: None },
            tasks_per_stage: 5,
            spans_per_trace: 10_000,
        }),
        logs: Some(LogsSettings { destination: to(Signal::Logs), max_age: day }),
        resource: OtlpResource::default(),
        own_logs: false,
        own_traces: false,
        shutdown_timeout: Duration::from_secs(10),
    };
    Ok(Resolved { settings, warnings: Vec::new() })
}
