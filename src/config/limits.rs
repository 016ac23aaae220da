//! Nothing grows without bound: what we keep, read and expose at most. Each
//! limit has a counter or a data-quality mark for what it cut off.

use serde::{Deserialize, Serialize};

use super::units::Size;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Body of one HTTP response, decompressed.
    pub response_size: Size,
    /// One download of a History Server's `/logs`, as it is sent. So many of
    /// them as `concurrent_logs` says may lie in `storage.temp_path` at a
    /// time.
    pub spool_size: Size,
    /// One line of an event log; up to three are held at a time.
    pub line_size: Size,
    /// One event log, decompressed.
    pub log_size: Size,
    /// Decompressed bytes of one event log to one compressed byte, beyond the
    /// first 64 MiB: what compresses better is a decompression bomb. Real logs
    /// reach 100.
    pub compression_ratio: u64,
    /// Values kept of one measure of one stage attempt; beyond it the
    /// quantiles of that measure are estimated.
    pub tasks_per_stage: usize,
    /// Task spans kept in one application for replaying stages; beyond it
    /// savings are estimated from quantiles.
    pub task_spans: usize,
    /// Stage attempts of one application; beyond it the cheapest are left
    /// out.
    pub stages: usize,
    /// SQL executions of one application; beyond it, of those that have
    /// ended, short ones older than the newest quarter are left out.
    pub sql_executions: usize,
    /// Nodes of all plans of one application, with up to 1,000 characters of
    /// each; beyond it whole plans go, those of old and short executions
    /// first. A plan may have a tenth of it.
    pub plan_nodes: usize,
    /// Slowest tasks kept of a stage attempt.
    pub slowest_tasks: usize,
    /// Applications held at once; beyond it new ones are skipped and counted.
    pub applications: usize,
    /// Stage attempts of one application that get series, costliest first.
    pub stages_exported: usize,
    /// SQL executions of one application that get series, longest first.
    pub sql_executions_exported: usize,
    /// Executors of one application that get series.
    pub executors_exported: usize,
    /// Streaming queries of one application that get series.
    pub streaming_queries_exported: usize,
    /// Findings of one application that get series, costliest first.
    pub findings_exported: usize,
    /// Names of applications with totals of their own; runs of further ones
    /// are added up as `_other`, and counted.
    pub app_names: usize,
    /// Series of one exposition.
    pub series: usize,
    /// Characters of a label value.
    pub label_length: usize,
    /// Event logs parsed at the same time.
    pub concurrent_logs: usize,
    /// Logs of running applications followed at the same time, each with the
    /// memory of its run; beyond it they are skipped and counted. 0: none.
    pub followed_logs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            response_size: Size::mib(64),
            spool_size: Size::gib(2),
            line_size: Size::mib(64),
            log_size: Size::gib(64),
            compression_ratio: 1_000,
            tasks_per_stage: 100_000,
            task_spans: 2_000_000,
            stages: 100_000,
            sql_executions: 1_000,
            plan_nodes: 50_000,
            slowest_tasks: 20,
            applications: 1_000,
            stages_exported: 20,
            sql_executions_exported: 20,
            executors_exported: 100,
            streaming_queries_exported: 20,
            findings_exported: 20,
            app_names: 1_000,
            series: 500_000,
            label_length: 128,
            concurrent_logs: 2,
            followed_logs: 100,
        }
    }
}
