//! The daemon's own events: what it tells its operator about itself.
//!
//! Each thing that can happen is one struct in [`events`]; its `emit` writes
//! the log line *and* bumps the counter in [`Telemetry`], so that log and
//! metric cannot disagree and a call site stays one line. [`Telemetry`] is
//! made once in `main`, handed around in an `Arc`, and copied by
//! [`Telemetry::snapshot`] into each exposition. [`logging`] sets up where log
//! lines go and what they look like.
//!
//! This folder stands above all data folders and knows nothing of them: texts
//! come in as strings, label values as words of a closed list.

mod counters;
pub mod events;
mod labels;
mod logfmt;
pub mod logging;

pub use counters::{
    FetchCounts, KubernetesCounts, KubernetesTotals, LogCounts, OtlpCounts, PodFactCounts,
    ReloadStatus, Revision, StorageStatus, SubmissionId, SubmissionStatus, TargetId, TargetStatus,
    Telemetry, TelemetrySnapshot, ThresholdSetting,
};
pub use labels::{
    DRIVER_STATES, ENDPOINTS, FETCH_ERROR_KINDS, HISTORY_ROUTES, KUBERNETES_FAILURES,
    KUBERNETES_KINDS, LOG_FAILURES, OTLP_DROPPED, OTLP_FAILURES, OTLP_OUTCOMES, SERIES_DROPPED,
    SKIPPED, STORAGE_FAILURES, SUBMISSION_STATES, WEB_FAILURES,
};
