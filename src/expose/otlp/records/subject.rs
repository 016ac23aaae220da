//! What a finding is about, in the reading of its run.

use jiff::Timestamp;

use crate::diagnose::Subject;
use crate::model::{Application, SqlExecution, Stage, StageId};

/// When what it is about had ended, so that the finding was true at the
/// latest; `None` while that goes on, or where the source does not tell.
pub(super) fn ended(application: &Application, subject: &Subject) -> Option<Timestamp> {
    match subject {
        Subject::Application | Subject::Host { .. } | Subject::ConfigurationKey { .. } => {
            application.end
        }
        Subject::Job { job_id } => {
            let place = application.jobs.binary_search_by_key(job_id, |job| job.id).ok()?;
            application.jobs[place].completed
        }
        Subject::Stage { stage_id, stage_attempt_id } => {
            stage(application, StageId { stage: *stage_id, attempt: *stage_attempt_id })?.completed
        }
        Subject::Executor { executor_id } => {
            let found = application.executors.iter().find(|one| one.id == *executor_id);
            found.and_then(|executor| executor.removed).or(application.end)
        }
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => {
            execution(application, *sql_id)?.end
        }
    }
}

/// Whether the reading still has it: of a long run, old parts are left out.
pub(super) fn is_there(application: &Application, subject: &Subject) -> bool {
    match subject {
        Subject::Application | Subject::Host { .. } | Subject::ConfigurationKey { .. } => true,
        Subject::Job { job_id } => {
            application.jobs.binary_search_by_key(job_id, |job| job.id).is_ok()
        }
        Subject::Stage { stage_id, stage_attempt_id } => {
            stage(application, StageId { stage: *stage_id, attempt: *stage_attempt_id }).is_some()
        }
        Subject::Executor { executor_id } => {
            application.executors.iter().any(|executor| executor.id == *executor_id)
        }
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => {
            execution(application, *sql_id).is_some()
        }
    }
}

/// For people.
pub(super) fn words(subject: &Subject) -> String {
    match subject {
        Subject::Application => "the application".to_owned(),
        Subject::Job { job_id } => format!("job {job_id}"),
        Subject::Stage { stage_id, stage_attempt_id } => {
            format!("stage {stage_id}.{stage_attempt_id}")
        }
        Subject::Executor { executor_id } => format!("executor {executor_id}"),
        Subject::Host { host } => format!("host {host}"),
        Subject::ConfigurationKey { key } => key.clone(),
        Subject::SqlExecution { sql_id } => format!("SQL execution {sql_id}"),
        Subject::PlanNode { sql_id, node } => format!("node {node} of SQL execution {sql_id}"),
    }
}

fn stage(application: &Application, id: StageId) -> Option<&Stage> {
    let place = application.stages.binary_search_by_key(&id, |stage| stage.id).ok()?;
    application.stages.get(place)
}

fn execution(application: &Application, id: u64) -> Option<&SqlExecution> {
    let all = application.sql.as_deref()?;
    all.get(all.binary_search_by_key(&id, |execution| execution.id).ok()?)
}
