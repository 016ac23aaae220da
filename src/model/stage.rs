//! A stage attempt: counts, measures, its slowest tasks, and when its tasks
//! ran.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::application::span;
use super::{Distribution, FailedTask, FailureClass, Task};

/// A stage id and its attempt: what Spark calls stage 3.0, stage 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageId {
    pub stage: u32,
    pub attempt: u32,
}

impl fmt::Display for StageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.stage, self.attempt)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    Pending,
    Active,
    Complete,
    Failed,
    /// Its output was there already: it never ran.
    Skipped,
}

impl StageStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// How many tasks, and how they ended. A retried or speculative task counts
/// once per attempt, so `succeeded` can exceed `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Partitions this attempt was asked to compute.
    pub total: u64,
    pub active: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub killed: u64,
}

/// The measures of a stage attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measures {
    pub run_time: Distribution<Duration>,
    pub cpu_time: Distribution<Duration>,
    pub deserialize_time: Distribution<Duration>,
    pub gc_time: Distribution<Duration>,
    pub scheduler_delay: Distribution<Duration>,
    pub fetch_wait_time: Distribution<Duration>,
    pub shuffle_write_time: Distribution<Duration>,
    /// Input plus shuffle records of a task.
    pub records_read: Distribution<u64>,
    /// Output plus shuffle records of a task.
    pub records_written: Distribution<u64>,
    pub input_bytes: Distribution<u64>,
    pub input_records: Distribution<u64>,
    pub output_bytes: Distribution<u64>,
    pub output_records: Distribution<u64>,
    pub shuffle_read_bytes: Distribution<u64>,
    pub shuffle_read_records: Distribution<u64>,
    pub shuffle_write_bytes: Distribution<u64>,
    pub shuffle_write_records: Distribution<u64>,
    pub memory_spilled_bytes: Distribution<u64>,
    pub disk_spilled_bytes: Distribution<u64>,
    pub peak_execution_memory_bytes: Distribution<u64>,
}

/// What one executor did in one stage attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorShare {
    pub executor_id: String,
    pub host: String,
    /// Successful tasks.
    pub tasks: u64,
    /// Their run time in all.
    pub run_time: Duration,
}

/// What speculation did in one stage attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speculation {
    /// Speculative copies that ended.
    pub copies: u64,
    /// Of them those that succeeded ...
    pub won: u64,
    /// ... and those that were killed: the original was there first.
    pub lost: u64,
    /// How long the lost ones ran in all; `None` where the source does not
    /// tell.
    pub lost_time: Option<Duration>,
}

/// When one task attempt ran, and on what: enough to replay the stage on its
/// slots and to say where its time went. Spans are whole milliseconds; 0 also
/// where Spark sent none (attempts of lost executors). Kept small: there is
/// one for every task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskSpan {
    /// Milliseconds since the epoch.
    pub launched_ms: i64,
    /// Launch to finish.
    pub duration_ms: u32,
    /// As Spark sent it, see [`super::TaskMetrics::run_time`].
    pub run_ms: u32,
    pub deserialize_ms: u32,
    pub cpu_ms: u32,
    pub gc_ms: u32,
    pub fetch_wait_ms: u32,
    pub shuffle_write_ms: u32,
    /// Serializing the result, and fetching it to the driver.
    pub result_ms: u32,
    /// Index into [`super::Application::executors`]; `u32::MAX` where the
    /// executor is not known.
    pub executor: u32,
    pub succeeded: bool,
}

/// One attempt of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    pub id: StageId,
    /// Call site of its last operation. Text of the program: never a label.
    pub name: String,
    pub status: StageStatus,
    pub submitted: Option<Timestamp>,
    pub first_task_launched: Option<Timestamp>,
    /// The latest moment at which it was seen to get on. In logs the end of a
    /// task; of a driver that is watched also the poll that saw more rows or
    /// bytes of it. `None` where the source does not tell.
    pub last_progress: Option<Timestamp>,
    /// `None` while it runs and for stages that never ran.
    pub completed: Option<Timestamp>,
    /// First lines of Spark's text.
    pub failure_reason: Option<String>,
    /// Jobs that listed the stage.
    pub job_ids: Vec<u32>,
    pub rdd_ids: Vec<u64>,
    /// Stages whose output it reads: from logs only.
    pub parent_ids: Vec<u32>,
    /// Names of the operations its RDDs come from (`Exchange`,
    /// `InMemoryTableScan`, `Scan parquet`; `PythonRDD` where a function of
    /// Python runs over an RDD): from logs only.
    pub operations: Vec<String>,
    /// Whether it reads a cached table, where Spark counts batches as
    /// records; `None` where the source does not tell.
    pub reads_cache: Option<bool>,
    pub resource_profile_id: u32,
    pub tasks: TaskCounts,
    /// Failed attempts by class; kills and refused commits included. `None`
    /// where the source does not tell.
    pub failures: Option<BTreeMap<FailureClass, u64>>,
    /// Exception class seen in most failures (`java.lang.ArithmeticException`).
    pub failure_example: Option<String>,
    /// Failed fetches of shuffle output, by the executor that had it; under
    /// an empty id those of which nobody knows where it was.
    pub fetch_failures: BTreeMap<String, u64>,
    /// `None` where no copy was started, or the source does not tell.
    pub speculation: Option<Speculation>,
    /// What its successful tasks sent to the driver, serialized; `None` where
    /// the source does not tell.
    pub result_bytes: Option<u64>,
    pub measures: Measures,
    /// Successful attempts with the longest run time, longest first, all
    /// numbers of each. Holds every successful attempt where there are fewer
    /// than 10.
    pub slowest: Vec<Task>,
    /// The newest that failed, ascending by id: at most [`FailedTask::MOST`].
    /// Kills and refused commits are none.
    pub failed: Vec<FailedTask>,
    /// Attempts that run now, longest running first; empty where the source
    /// does not tell (event logs; stages that look healthy). Their
    /// `duration` is the time so far. Their `metrics` are those of the last
    /// heartbeat, and `run_time` is 0 in them: Spark fills it in at the end.
    pub running: Vec<Task>,
    /// Empty where the source does not tell.
    pub executors: Vec<ExecutorShare>,
    /// Every attempt in launch order; `None` from REST and beyond the limits.
    pub timeline: Option<Vec<TaskSpan>>,
}

impl Stage {
    /// A stage attempt of which only the id is known.
    pub fn new(id: StageId) -> Self {
        Self {
            id,
            name: String::new(),
            status: StageStatus::Pending,
            submitted: None,
            first_task_launched: None,
            last_progress: None,
            completed: None,
            failure_reason: None,
            job_ids: Vec::new(),
            rdd_ids: Vec::new(),
            parent_ids: Vec::new(),
            operations: Vec::new(),
            reads_cache: None,
            resource_profile_id: 0,
            tasks: TaskCounts::default(),
            failures: None,
            failure_example: None,
            fetch_failures: BTreeMap::new(),
            speculation: None,
            result_bytes: None,
            measures: Measures::default(),
            slowest: Vec::new(),
            failed: Vec::new(),
            running: Vec::new(),
            executors: Vec::new(),
            timeline: None,
        }
    }

    /// Submission to completion, or to `now` while it is active; `None` for
    /// a stage that never ran.
    pub fn wall(&self, now: Timestamp) -> Option<Duration> {
        Some(span(self.submitted?, self.ended(now)?))
    }

    /// First launch to completion, or to `now` while active: the time in
    /// which its tasks ran.
    pub fn running_span(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let from = self.first_task_launched?;
        Some((from, self.ended(now)?.max(from)))
    }

    fn ended(&self, now: Timestamp) -> Option<Timestamp> {
        match self.status {
            StageStatus::Active => Some(now),
            StageStatus::Complete | StageStatus::Failed => self.completed,
            StageStatus::Pending | StageStatus::Skipped => None,
        }
    }
}
