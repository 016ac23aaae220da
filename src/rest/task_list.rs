//! `/stages/{id}/{attempt}/taskList`: the only endpoint about tasks that has
//! pages, read only at its top.

use serde::Deserialize;

use super::value::{Count, Moment, Text};
use super::{Api, ApplicationPath};
use crate::fetch::FetchError;
use crate::model::StageId;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaskData {
    pub task_id: Count,
    pub index: Count,
    pub attempt: Count,
    pub launch_time: Moment,
    /// Milliseconds; of a running task the time so far.
    pub duration: Count,
    pub executor_id: Text,
    pub host: Text,
    /// `RUNNING`, `SUCCESS`, `FAILED`, `KILLED`, `UNKNOWN`.
    pub status: Text,
    pub task_locality: Text,
    pub speculative: bool,
    pub error_message: Text,
    /// Absent for tasks that never reported.
    pub task_metrics: Option<TaskMetrics>,
    pub scheduler_delay: Count,
    pub getting_result_time: Count,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaskMetrics {
    pub executor_deserialize_time: Count,
    /// 0 while the task runs: Spark fills it in at the end.
    pub executor_run_time: Count,
    pub executor_cpu_time: Count,
    pub jvm_gc_time: Count,
    pub result_serialization_time: Count,
    pub memory_bytes_spilled: Count,
    pub disk_bytes_spilled: Count,
    pub peak_execution_memory: Count,
    pub input_metrics: InputMetrics,
    pub output_metrics: OutputMetrics,
    pub shuffle_read_metrics: ShuffleReadMetrics,
    pub shuffle_write_metrics: ShuffleWriteMetrics,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InputMetrics {
    pub bytes_read: Count,
    pub records_read: Count,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OutputMetrics {
    pub bytes_written: Count,
    pub records_written: Count,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShuffleReadMetrics {
    pub fetch_wait_time: Count,
    pub remote_bytes_read: Count,
    pub local_bytes_read: Count,
    pub records_read: Count,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShuffleWriteMetrics {
    pub bytes_written: Count,
    pub write_time: Count,
    pub records_written: Count,
}

/// Which tasks, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    /// Successful attempts, longest run time first.
    Slowest,
    /// Failed attempts, newest last. Their order means nothing: the index of
    /// unsuccessful tasks is negated in Spark's store.
    Failed,
    /// Running attempts, longest running first: by id, which grows with the
    /// launch. Spark's order by run time is useless here, because the run
    /// time of a running task is 0.
    Running,
}

/// The first `length` tasks.
pub async fn get(
    api: &Api,
    application: &ApplicationPath,
    stage: StageId,
    top: Top,
    length: usize,
) -> Result<Vec<TaskData>, FetchError> {
    let (id, attempt) = (stage.stage.to_string(), stage.attempt.to_string());
    let (status, order) = match top {
        Top::Slowest => ("success", "-runtime"),
        Top::Failed => ("failed", "ID"),
        Top::Running => ("running", "ID"),
    };
    let length = length.to_string();
    let url = api.application_url(
        application,
        &["stages", &id, &attempt, "taskList"],
        &[("offset", "0"), ("length", &length), ("sortBy", order), ("status", status)],
    );
    api.list("task_list", url).await
}
