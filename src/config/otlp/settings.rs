//! What the rest of the program reads: settings once everything that can be
//! said has been laid over each other. A signal that is not sent is `None`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Secret, TlsConfig};

/// The three sorts of telemetry, each with its own destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    Metrics,
    Traces,
    Logs,
}

impl Signal {
    pub const ALL: [Self; 3] = [Self::Metrics, Self::Traces, Self::Logs];

    /// As in `OTEL_EXPORTER_OTLP_*` (upper case), paths (`/v1/metrics`) and
    /// the label `signal`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Traces => "traces",
            Self::Logs => "logs",
        }
    }
}

/// Everything that is sent by OTLP.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OtlpSettings {
    pub metrics: Option<MetricsSettings>,
    pub traces: Option<TracesSettings>,
    pub logs: Option<LogsSettings>,
    pub resource: OtlpResource,
    /// Whether the daemon's own log lines go to the destination of `logs`.
    pub own_logs: bool,
    /// Whether spans of the daemon's own work go to that of `traces`.
    pub own_traces: bool,
    /// How long the end of the daemon waits for what is still to be sent.
    pub shutdown_timeout: Duration,
}

/// What the operator says of where things come from
/// (`OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtlpResource {
    /// Of the exporter itself; an application's is its own name.
    pub service_name: Option<String>,
    /// Put on every resource, the exporter's and each application's, unless
    /// we know better (`service.name`, `spark.*`).
    pub attributes: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    #[serde(rename = "grpc")]
    Grpc,
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
}

impl Protocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::HttpProtobuf => "http/protobuf",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    None,
    Gzip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Temporality {
    Cumulative,
    /// Counters and histograms as what came since the last accepted point.
    Delta,
}

/// Where one signal goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    pub protocol: Protocol,
    /// `http://…` or `https://…`, checked, without user information; for HTTP
    /// with the signal's path.
    pub endpoint: String,
    /// Names in lower case; values are credentials more often than not.
    pub headers: Vec<(String, Secret)>,
    /// Read anew for each request.
    pub header_files: Vec<(String, PathBuf)>,
    /// Of one request; tries again come on top.
    pub timeout: Duration,
    pub compression: Compression,
    pub tls: TlsConfig,
    /// The most that one request may have, in bytes, before compression.
    pub request_size: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricsSettings {
    pub destination: Destination,
    pub interval: Duration,
    /// After so long the points of one interval are given up for those of the
    /// next, if the next interval does not begin before.
    pub export_timeout: Duration,
    pub temporality: Temporality,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TracesSettings {
    pub destination: Destination,
    /// Runs that ended longer ago are not sent.
    pub max_age: Duration,
    pub sampling: Sampling,
    /// The slowest tasks of a stage attempt that get spans.
    pub tasks_per_stage: usize,
    /// The most spans of one trace.
    pub spans_per_trace: usize,
}

/// Which runs (of streaming and interactive applications: which executions
/// and jobs) are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Of all, chosen by trace id: 0 to 1.
    pub ratio: f64,
    /// Those that did not end well in any case.
    pub keep_failed: bool,
    /// Those that took longer in any case.
    pub keep_longer_than: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogsSettings {
    pub destination: Destination,
    /// Findings of runs that ended longer ago are not sent.
    pub max_age: Duration,
}
