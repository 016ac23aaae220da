//! `/jobs` into the model.

use crate::model::{Job, JobStatus, Kind};
use crate::rest::jobs::JobData;
use crate::rest::value::Count;

/// A job, and whether its description is one of a stream's micro-batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadJob {
    pub job: Job,
    pub streamed: bool,
}

/// `None` without an id. The failure reason comes later, from its stages.
pub fn job(data: &JobData) -> Option<ReadJob> {
    let status = match data.status.get() {
        "RUNNING" => JobStatus::Running,
        "SUCCEEDED" => JobStatus::Succeeded,
        "FAILED" => JobStatus::Failed,
        _ => JobStatus::Unknown,
    };
    let mut stage_ids: Vec<u32> = data.stage_ids.iter().filter_map(|id| Count::id(*id)).collect();
    stage_ids.sort_unstable();
    Some(ReadJob {
        job: Job {
            id: data.job_id.id()?,
            status,
            submitted: data.submission_time.0,
            completed: data.completion_time.0,
            stage_ids,
            failure_reason: None,
            sql_execution_id: None,
            trace_context: None,
        },
        streamed: Kind::is_stream_description(data.description.get()),
    })
}
