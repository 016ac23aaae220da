//! Jobs: started, ended, and what their properties tell of the program.

use std::collections::BTreeMap;

use super::checks::{Checks, first_lines};
use crate::eventlog::event::{JobEnd, JobStart};
use crate::model::{DataQuality, Job, JobStatus, Kind, TraceContext};

#[derive(Clone, Default)]
pub(super) struct Jobs {
    pub(super) map: BTreeMap<u32, Job>,
}

/// Whether the job is one of a stream's batches.
pub(super) fn is_streaming(event: &JobStart<'_>) -> bool {
    event.properties.as_ref().is_some_and(|properties| {
        properties.query_id.get().is_some()
            || properties.batch_time.get().is_some()
            || properties.description.get().is_some_and(Kind::is_stream_description)
    })
}

impl Jobs {
    /// Jobs are at most as many as stages may be; beyond it the oldest go.
    pub(super) fn started(&mut self, event: &JobStart<'_>, most: usize, checks: &mut Checks) {
        let Some(id) = event.id.id() else { return };
        let mut stage_ids: Vec<u32> = match (&event.stage_ids, &event.stages) {
            (Some(ids), _) => ids.iter().filter_map(|id| id.id()).collect(),
            (None, Some(stages)) => stages.iter().filter_map(|stage| stage.id.id()).collect(),
            (None, None) => Vec::new(),
        };
        stage_ids.sort_unstable();
        stage_ids.dedup();
        let job = Job {
            id,
            status: JobStatus::Running,
            submitted: checks.time(event.submitted),
            completed: None,
            stage_ids,
            failure_reason: None,
            sql_execution_id: event
                .properties
                .as_ref()
                .and_then(|properties| properties.sql_execution_id.count()),
            trace_context: event.properties.as_ref().and_then(|properties| {
                let parent = properties.traceparent.get()?;
                TraceContext::new(parent, properties.tracestate.get()).map(Box::new)
            }),
        };
        self.map.insert(id, job);
        if self.map.len() > most.max(1) {
            self.map.pop_first();
            checks.mark(DataQuality::StagesOmitted);
        }
    }

    /// The stages of the job that ended.
    pub(super) fn ended(&mut self, event: &JobEnd<'_>, checks: &mut Checks) -> Option<&[u32]> {
        let completed = checks.time(event.completed);
        let job = self.map.get_mut(&event.id.id()?)?;
        job.completed = completed;
        let result = event.result.as_ref();
        job.status = match result.and_then(|result| result.result.get()) {
            Some("JobSucceeded") => JobStatus::Succeeded,
            Some("JobFailed") => {
                let message = result
                    .and_then(|result| result.exception.as_ref())
                    .and_then(|exception| exception.message.get())
                    .unwrap_or_default();
                job.failure_reason = first_lines(message);
                JobStatus::of_failure(message.trim_start())
            }
            _ => JobStatus::Unknown,
        };
        Some(&job.stage_ids)
    }
}
