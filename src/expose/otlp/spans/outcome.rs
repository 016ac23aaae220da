//! How a part ended, as the status of its span: failures are errors, by
//! their class and never by their text; a cancellation is none, and what is
//! not known is none.

use opentelemetry::trace::Status;

use super::Mark;
use super::attributes::Attributes;
use super::forest::Forest;
use crate::model::{
    FailureClass, JobStatus, SqlExecution, SqlStatus, StageStatus, State, error_class,
};
use crate::report::privacy;

/// Why something failed.
struct Failure {
    /// Of a closed list.
    class: &'static str,
    /// Spark's error condition or the class of the exception.
    error: Option<String>,
}

pub(super) fn is_error(forest: &Forest<'_>, node: usize) -> bool {
    failure(forest, node).is_some()
}

/// The status, with the attributes that go with it.
pub(super) fn status(forest: &Forest<'_>, node: usize, attributes: &mut Attributes) -> Status {
    let Some(failure) = failure(forest, node) else { return Status::Unset };
    let error = failure.error.map(|error| privacy::cut(&error, 200));
    let error = error.as_deref().unwrap_or(failure.class);
    attributes.text("error.type", error.to_owned());
    let description = if error == failure.class {
        error.to_owned()
    } else {
        format!("{}: {error}", failure.class)
    };
    Status::error(description)
}

/// Of a task, of which only the class is known.
pub(super) fn of_class(class: Option<FailureClass>, attributes: &mut Attributes) -> Status {
    let Some(class) = class else { return Status::Unset };
    attributes.text("error.type", class.as_str());
    Status::error(class.as_str())
}

fn failure(forest: &Forest<'_>, node: usize) -> Option<Failure> {
    match forest.nodes[node].mark {
        Mark::Application => match forest.application.state {
            state @ (State::Failed | State::Killed | State::Lost) => {
                Some(Failure { class: state.as_str(), error: None })
            }
            State::Running | State::Succeeded | State::Cancelled | State::Unknown => None,
        },
        Mark::Execution(_) => {
            let execution = forest.execution(node)?;
            let failed = execution.status == SqlStatus::Failed && !is_by_wish(forest, execution);
            failed.then(|| Failure {
                class: SqlStatus::Failed.as_str(),
                error: execution.error_class.clone(),
            })
        }
        Mark::Job(_) => {
            let job = forest.job(node)?;
            (job.status == JobStatus::Failed).then(|| of_text(job.failure_reason.as_deref()))
        }
        Mark::Stage(_) => {
            let stage = forest.stage(node)?;
            let reason = stage.failure_reason.as_deref();
            let by_wish =
                reason.is_some_and(|reason| JobStatus::of_failure(reason) == JobStatus::Cancelled);
            (stage.status == StageStatus::Failed && !by_wish).then(|| of_text(reason))
        }
    }
}

/// Whether somebody ended it. Spark writes the same for a query that was
/// stopped as for one that broke: what tells is that its jobs were cancelled
/// and none failed, or that its thread was interrupted.
fn is_by_wish(forest: &Forest<'_>, execution: &SqlExecution) -> bool {
    let jobs = &forest.application.jobs;
    let mut cancelled = false;
    for id in &execution.job_ids {
        let Ok(place) = jobs.binary_search_by_key(id, |job| job.id) else { continue };
        match jobs[place].status {
            JobStatus::Failed => return false,
            JobStatus::Cancelled => cancelled = true,
            JobStatus::Running | JobStatus::Succeeded | JobStatus::Unknown => {}
        }
    }
    cancelled || execution.error_class.as_deref() == Some("java.lang.InterruptedException")
}

fn of_text(reason: Option<&str>) -> Failure {
    let reason = reason.unwrap_or_default();
    Failure { class: FailureClass::of_text(reason).as_str(), error: error_class(reason) }
}
