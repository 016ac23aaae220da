//! What Kubernetes tells of runs, and of what should become one.

use tracing::{debug, info, warn};

use crate::telemetry::counters::MAX_SUBMISSIONS;
use crate::telemetry::{SubmissionId, SubmissionStatus, Telemetry};

/// Kubernetes told more of a run that had been read.
#[derive(Debug)]
pub struct ApplicationAmended {
    pub run: String,
    /// Its state until now.
    pub before: &'static str,
    pub state: &'static str,
}

impl ApplicationAmended {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { run, before, state } = self;
        debug!(run, before, state, "Kubernetes told more of an application");
        telemetry.counters().pod_facts.amended += 1;
    }
}

/// What Kubernetes told of runs had to go before its time, for want of room.
#[derive(Debug)]
pub struct PodFactsForgotten {
    /// Runs, or pods of runs.
    pub count: u64,
}

impl PodFactsForgotten {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { count } = self;
        if count == 0 {
            return;
        }
        warn!(count, "what Kubernetes told of runs was forgotten: there is no room for more");
        telemetry.counters().pod_facts.forgotten += count;
    }
}

/// An operator says how a `SparkApplication` stands.
#[derive(Debug)]
pub struct SubmissionTold {
    pub id: SubmissionId,
    /// `None`: it is not there any more.
    pub status: Option<SubmissionStatus>,
}

impl SubmissionTold {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { id, status } = self;
        let mut counters = telemetry.counters();
        let facts = &mut counters.pod_facts;
        let before = facts.submissions.get(&id).copied();
        let Some(status) = status else {
            facts.submissions.remove(&id);
            return;
        };
        if before.is_none() && facts.submissions.len() >= MAX_SUBMISSIONS {
            facts.forgotten += 1;
            return;
        }
        facts.submissions.insert(id.clone(), status);
        drop(counters);
        if before.map(|before| before.state) == Some(status.state) {
            return;
        }
        let SubmissionId { cluster, operator, namespace, name } = id;
        let SubmissionStatus { state, attempts, .. } = status;
        if state == "submission_failed" {
            warn!(cluster, operator, namespace, name, "a SparkApplication could not be submitted");
        } else {
            info!(cluster, operator, namespace, name, state, attempts, "SparkApplication");
        }
    }
}
