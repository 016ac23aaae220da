//! `/stages`: every stage attempt that the driver still remembers (up to
//! `spark.ui.retainedStages`), newest first. No paging.
//!
//! `details` and `withSummaries` are always refused: the one sends every
//! task, the other scans the tasks of every stage.

use serde::Deserialize;

use super::value::{Count, Moment, Text};
use super::{Api, ApplicationPath};
use crate::fetch::{Elements, FetchError};

/// Sums are over all attempts that carried metrics, failed and killed ones
/// included. Times are milliseconds, but for CPU and shuffle write time,
/// which are nanoseconds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StageData {
    /// `ACTIVE`, `COMPLETE`, `FAILED`, `PENDING`, `SKIPPED`.
    pub status: Text,
    pub stage_id: Count,
    pub attempt_id: Count,
    pub num_tasks: Count,
    pub num_active_tasks: Count,
    pub num_complete_tasks: Count,
    pub num_failed_tasks: Count,
    pub num_killed_tasks: Count,
    pub submission_time: Moment,
    pub first_task_launched_time: Moment,
    pub completion_time: Moment,
    pub failure_reason: Text,
    pub executor_deserialize_time: Count,
    pub executor_run_time: Count,
    pub executor_cpu_time: Count,
    pub jvm_gc_time: Count,
    pub memory_bytes_spilled: Count,
    pub disk_bytes_spilled: Count,
    /// A sum over tasks, whatever its name says.
    pub peak_execution_memory: Count,
    pub input_bytes: Count,
    pub input_records: Count,
    pub output_bytes: Count,
    pub output_records: Count,
    pub shuffle_fetch_wait_time: Count,
    pub shuffle_read_bytes: Count,
    pub shuffle_read_records: Count,
    pub shuffle_write_bytes: Count,
    pub shuffle_write_time: Count,
    pub shuffle_write_records: Count,
    pub name: Text,
    pub rdd_ids: Vec<Count>,
    pub killed_tasks_summary: KillReasons,
    pub resource_profile_id: Count,
    /// Bytes sent to the driver by successful tasks and those that failed
    /// with metrics.
    pub result_size: Count,
    /// Since 3.3; absent where no copy was started.
    pub speculation_summary: Option<SpeculationSummary>,
}

/// Speculative copies of a stage's tasks.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SpeculationSummary {
    pub num_tasks: Count,
    pub num_completed_tasks: Count,
    pub num_killed_tasks: Count,
}

/// Killed attempts by reason. Reasons hold whole stack traces, so only the
/// numbers of kills and of refused commits are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KillReasons {
    pub killed: u64,
    pub commit_denied: u64,
}

impl<'de> Deserialize<'de> for KillReasons {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reasons = std::collections::BTreeMap::<String, Count>::deserialize(deserializer)?;
        let mut sums = Self::default();
        for (reason, count) in reasons {
            if reason.contains("TaskCommitDenied") || reason.contains("commit denied") {
                sums.commit_denied += count.or_zero();
            } else {
                sums.killed += count.or_zero();
            }
        }
        Ok(sums)
    }
}

/// All stage attempts, or those of one status (`active`).
pub async fn get<S, F>(
    api: &Api,
    application: &ApplicationPath,
    status: Option<&str>,
    state: S,
    visit: F,
) -> Result<Elements<S>, FetchError>
where
    S: Send + 'static,
    F: FnMut(&mut S, StageData) + Send + 'static,
{
    let mut query = vec![("details", "false"), ("withSummaries", "false")];
    query.extend(status.map(|status| ("status", status)));
    let url = api.application_url(application, &["stages"], &query);
    api.array("stages", url, state, visit).await
}
