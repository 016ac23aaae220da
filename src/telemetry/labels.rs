//! Words that become label values of the daemon's own metrics.
//!
//! A word used in an event but missing here still counts; being listed means
//! that its series stands at 0 from the start, so that `rate()` sees the first
//! increase and a dashboard shows "none" instead of "no data".

/// What is asked of a Spark REST API.
pub const ENDPOINTS: [&str; 11] = [
    "version",
    "applications",
    "jobs",
    "stages",
    "task_summary",
    "task_list",
    "executors",
    "environment",
    "storage_rdd",
    "metrics",
    "logs",
];

/// How a request can fail.
pub const FETCH_ERROR_KINDS: [&str; 7] =
    ["unreachable", "timeout", "status", "not_json", "too_large", "unknown_application", "disk"];

/// Why an event log could not be read at all.
pub const LOG_FAILURES: [&str; 7] = [
    "unreadable",
    "unsupported_codec",
    "damaged",
    "no_events",
    "too_large",
    "compression_ratio",
    "not_an_event_log",
];

/// How a finished run that a History Server listed was read: from its event
/// log, by its REST API instead, or (this time) not at all.
pub const HISTORY_ROUTES: [&str; 3] = ["zip", "rest", "none"];

/// What is watched of a Kubernetes cluster.
pub const KUBERNETES_KINDS: [&str; 5] = [
    "driver_pods",
    "client_mode_pods",
    "executor_pods",
    "kubeflow_applications",
    "apache_applications",
];

/// Why a list or watch of a Kubernetes cluster failed.
pub const KUBERNETES_FAILURES: [&str; 10] = [
    "unreachable",
    "timeout",
    "unauthorized",
    "forbidden",
    "not_found",
    "expired",
    "unavailable",
    "refused",
    "malformed",
    "too_many",
];

/// The pods of drivers: not asked yet, since they do not run; asked and not
/// answering yet; answering; silent, though they run; idle, as a notebook
/// without a session is; ended; or one too many.
pub const DRIVER_STATES: [&str; 7] =
    ["waiting", "starting", "answering", "silent", "idle", "ended", "limit"];

/// Why the store could not be used: it is damaged, foreign or newer, so that
/// somebody has to look; or it cannot be reached or written now.
pub const STORAGE_FAILURES: [&str; 2] = ["unusable", "unavailable"];

/// Why a connection to the web end was refused or broke.
pub const WEB_FAILURES: [&str; 5] = ["accept", "connection", "handshake", "limit", "shutdown"];

/// What became of a request by OTLP: taken (all or in part); never to be
/// taken; or not taken in time, so that what is sent next makes up for it.
pub const OTLP_OUTCOMES: [&str; 3] = ["accepted", "refused", "given_up"];

/// Why an attempt to send by OTLP failed: no connection, or one that broke;
/// no answer in time; an answer that asks to come again (overload,
/// restart); credentials; a request or an answer over a limit; any other
/// refusal; or files of ours (headers, certificates) that cannot be read.
pub const OTLP_FAILURES: [&str; 7] =
    ["unreachable", "timeout", "unavailable", "unauthorized", "too_large", "refused", "settings"];

/// Why something was never sent by OTLP: more runs, or ends of series, wait
/// than there is room for; a trace has more spans than it may; or it is larger
/// than a request may be.
pub const OTLP_DROPPED: [&str; 3] = ["backlog", "spans_limit", "too_large"];

/// What an operator says of a `SparkApplication`.
pub const SUBMISSION_STATES: [&str; 7] =
    ["submitted", "running", "succeeded", "failed", "submission_failed", "restarting", "unknown"];

/// Why an application that a source showed has no series.
pub const SKIPPED: [&str; 6] =
    ["limit", "lookback", "unreadable", "in_progress", "running_on_history_server", "waiting"];

/// Why a series was left out of an exposition.
pub const SERIES_DROPPED: [&str; 9] = [
    "series_limit",
    "stages_limit",
    "executors_limit",
    "sql_executions_limit",
    "streaming_queries_limit",
    "findings_limit",
    "duplicate_run",
    "duplicate_name",
    "targets_limit",
];
