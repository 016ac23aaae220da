//! One task attempt, kept only where somebody will look at it: the slowest
//! of a stage, and some that failed.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::FailureClass;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Running,
    Succeeded,
    Failed,
    Killed,
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: u64,
    pub index: u32,
    pub attempt: u32,
    pub executor_id: String,
    pub host: String,
    /// `PROCESS_LOCAL`, `NODE_LOCAL`, `NO_PREF`, `RACK_LOCAL`, `ANY`.
    pub locality: String,
    pub speculative: bool,
    pub status: TaskStatus,
    pub launched: Timestamp,
    /// Launch to finish, scheduling and result included.
    pub duration: Duration,
    /// How many tasks its executor had been given before it, over the whole
    /// run; `None` from REST, where it cannot be known.
    pub ordinal_on_executor: Option<u32>,
    pub metrics: TaskMetrics,
}

/// An attempt that failed. Its `metrics` are all 0 where Spark sent none, as
/// of a lost executor.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedTask {
    pub task: Task,
    pub class: FailureClass,
}

impl FailedTask {
    /// The most that are kept of one stage attempt.
    pub const MOST: usize = 10;

    /// Puts one among those kept: the newest by Spark's task id, ascending.
    pub fn keep(self, kept: &mut Vec<Self>) {
        let at = kept.partition_point(|other| other.task.id < self.task.id);
        kept.insert(at, self);
        if kept.len() > Self::MOST {
            kept.remove(0);
        }
    }
}

/// The measures of one task attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskMetrics {
    /// Spark multiplies this by `spark.task.cpus` in builds with SPARK-51666;
    /// here it is as Spark sent it.
    pub run_time: Duration,
    pub cpu_time: Duration,
    pub deserialize_time: Duration,
    pub gc_time: Duration,
    pub result_serialization_time: Duration,
    pub getting_result_time: Duration,
    /// Computed as Spark's UI does, see [`TaskMetrics::scheduler_delay`].
    pub scheduler_delay: Duration,
    pub fetch_wait_time: Duration,
    pub shuffle_write_time: Duration,
    pub input_bytes: u64,
    pub input_records: u64,
    pub output_bytes: u64,
    pub output_records: u64,
    pub shuffle_read_bytes: u64,
    pub shuffle_read_records: u64,
    pub shuffle_write_bytes: u64,
    pub shuffle_write_records: u64,
    pub memory_spilled_bytes: u64,
    pub disk_spilled_bytes: u64,
    pub peak_execution_memory_bytes: u64,
}

impl TaskMetrics {
    /// Input plus shuffle records.
    pub fn records_read(&self) -> u64 {
        self.input_records.saturating_add(self.shuffle_read_records)
    }

    /// Output plus shuffle records.
    pub fn records_written(&self) -> u64 {
        self.output_records.saturating_add(self.shuffle_write_records)
    }

    /// Duration minus run, deserialization, result serialization and result
    /// fetching, never below 0: `AppStatusUtils.schedulerDelay`.
    pub fn scheduler_delay_of(&self, duration: Duration) -> Duration {
        [
            self.run_time,
            self.deserialize_time,
            self.result_serialization_time,
            self.getting_result_time,
        ]
        .into_iter()
        .fold(duration, Duration::saturating_sub)
    }
}
