//! How a SQL execution or a streaming query ended, as far as anything tells.

pub(super) use crate::model::error_class;
use crate::model::{Job, JobStatus, SqlExecution, SqlStatus};

/// How an execution stands whose end did not tell it.
pub(super) fn settle(execution: &mut SqlExecution, jobs: &[&Job], told: bool, running: bool) {
    let ended = |status| jobs.iter().any(|job| job.status == status);
    match execution.status {
        // Before 3.4 an end says only that it ended: its jobs know more.
        SqlStatus::Completed if !told && ended(JobStatus::Failed) => {
            execution.status = SqlStatus::Failed;
        }
        SqlStatus::Completed if !told && ended(JobStatus::Cancelled) => {
            execution.status = SqlStatus::Cancelled;
        }
        SqlStatus::Unknown if running => execution.status = SqlStatus::Running,
        _ => {}
    }
}
