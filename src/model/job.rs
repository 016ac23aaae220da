//! A Spark job: one action, its stages, and how it ended.

use jiff::Timestamp;
use serde::Serialize;

use super::TraceContext;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    Running,
    Succeeded,
    Failed,
    /// Ended by somebody's wish: a cancelled group, a stopped query. Never a
    /// failure.
    Cancelled,
    Unknown,
}

impl JobStatus {
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// The status of a job that ended with this failure message. Spark says
    /// `[SPARK_JOB_CANCELLED] Job 1 cancelled ...` since 4.0 and
    /// `Job 1 cancelled ...` before; a stopped streaming query cancels its
    /// job group, and `sc.stop()` says that the context was shut down.
    pub fn of_failure(reason: &str) -> Self {
        let first = reason.lines().next().unwrap_or_default();
        let cancelled = first.contains("SPARK_JOB_CANCELLED")
            || (first.contains("Job ") && first.contains(" cancelled"))
            || first.contains("part of cancelled job group")
            || first.contains("cancelled as part of cancellation of all jobs");
        if cancelled { Self::Cancelled } else { Self::Failed }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: u32,
    pub status: JobStatus,
    pub submitted: Option<Timestamp>,
    pub completed: Option<Timestamp>,
    /// All stages of the job, also those it will skip.
    pub stage_ids: Vec<u32>,
    /// The message of its end, first lines only. The REST API does not carry
    /// it: there it is the failure reason of the job's failed stage.
    pub failure_reason: Option<String>,
    pub sql_execution_id: Option<u64>,
    /// What its thread carried as `traceparent` (a local property): from logs
    /// only.
    pub trace_context: Option<Box<TraceContext>>,
}
