//! `job_failed`: jobs that failed. A cancelled job is not failed, and one
//! whose failure the program survived is a failed job of a succeeded run.

use std::collections::BTreeMap;

use super::context::Context;
use super::draft::{Draft, Weight};
use super::humane;
use super::task_failures;
use super::{About, Confidence, Impact, Rule, Severity, Subject, Unit};
use crate::model::{Application, FailureClass, Job, JobStatus, Stage, State};

pub(super) const ABOUT: About = About {
    rule: Rule::JobFailed,
    meaning: "A job ended by a failure, and with it the action of the program that started it.",
    details: "*Fires* on failed jobs, one finding a class of reason. Cancelled is not failed.

`critical` when the run failed by it: the application's state is failed and
nothing came after; or nothing came after and the application ended within 5 s,
then with medium confidence, because Spark before 4.0 writes no exit code and
later ones write 0 also for a program that died of the exception (only on
Kubernetes the code is the program's own). Otherwise, in a run that went on,
`warning`.
",
    evidence: &[
        ("failed_jobs", "jobs that failed for this class of reason"),
        ("jobs", "jobs of the run"),
        ("exit_code", "of the application, as Spark tells it"),
    ],
    fires: &["job_failed", "job_failed_local_cluster", "job_failed_caught"],
    near_misses: &["task_failures"],
    resists: &[
        ("job_cancelled", "a job that somebody cancelled did not fail"),
        ("job_failed_caught", "a failure that the program survived is no failure of the run"),
    ],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.job_failed.enabled {
        return;
    }
    // One finding a class of reason: a stream that fails for a day is one
    // story, not a thousand.
    let mut by_class: BTreeMap<FailureClass, Vec<&Job>> = BTreeMap::new();
    for job in &context.application.jobs {
        if job.status == JobStatus::Failed {
            by_class.entry(class_of(context.application, job)).or_default().push(job);
        }
    }
    for (class, jobs) in by_class {
        drafts.extend(judge(context, class, &jobs));
    }
}

/// Whether the run failed by a job, as this rule tells.
pub(super) fn ended_the_run(context: &Context<'_>) -> bool {
    let application = context.application;
    context.thresholds.job_failed.enabled
        && application
            .jobs
            .iter()
            .any(|job| job.status == JobStatus::Failed && fatality(application, job) != Fatal::No)
}

fn judge(context: &Context<'_>, class: FailureClass, jobs: &[&Job]) -> Option<Draft> {
    let application = context.application;
    let last = *jobs.last()?;
    let fatal = fatality(application, last);
    let severity = if fatal == Fatal::No { Severity::Warning } else { Severity::Critical };
    let exception = failed_stage(application, last)
        .and_then(|stage| stage.failure_example.as_deref())
        .map(task_failures::class_name)
        .filter(|name| !name.is_empty());
    let stage = failed_stage(application, last);
    let headline = format!(
        "Job {} failed{}{}{}{}",
        last.id,
        match jobs.len() {
            1 => String::new(),
            more => format!(
                " (and {} before it the same way)",
                humane::number(more.saturating_sub(1) as u64)
            ),
        },
        stage.map_or_else(String::new, |stage| format!(" in stage {}", stage.id)),
        match exception {
            Some(name) => format!(": {name}"),
            None if class == FailureClass::Unknown => String::new(),
            None => format!(": {}", class.as_str().replace('_', " ")),
        },
        match (fatal, application.state) {
            (Fatal::Yes, _) => "; the application failed by it",
            (Fatal::Likely, _) => "; the application ended right after it",
            (Fatal::No, State::Succeeded) => "; the application succeeded all the same",
            (Fatal::No, _) => "",
        },
    );
    let all = application.jobs.len() as f64;
    let mut draft = Draft::new(
        Rule::JobFailed,
        task_failures::kind(Some(class)),
        Subject::Job { job_id: last.id },
        headline,
    )
    .cause(task_failures::cause_of(class))
    .weight(Weight::AtLeast(severity))
    .confidence(if fatal == Fatal::Likely { Confidence::Medium } else { Confidence::High })
    .evidence("failed_jobs", jobs.len() as f64, Unit::Count, 1.0, format!("job {}", last.id))
    .evidence("jobs", all, Unit::Count, None, "the run");
    if let Some(code) = application.exit_code {
        draft = draft.evidence("exit_code", f64::from(code), Unit::Count, None, "application end");
    }
    // Time that a failed job took is not saved by its success.
    Some(task_failures::advise(draft.impact(Impact::default(), Vec::new()), Some(class)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fatal {
    Yes,
    /// Nothing came after the job but the end. Spark before 4.0 writes no
    /// exit code, and later ones write 0 for a program that died of an
    /// exception too, where their shutdown hook ends the application.
    Likely,
    No,
}

fn fatality(application: &Application, job: &Job) -> Fatal {
    match application.state {
        // A job that had failed by then, or that fell with the driver.
        _ if application.was_ended_from_outside() => Fatal::No,
        State::Failed if !application.went_on_after(job) => Fatal::Yes,
        State::Unknown | State::Succeeded if application.died_with(job) => Fatal::Likely,
        _ => Fatal::No,
    }
}

fn failed_stage<'a>(application: &'a Application, job: &Job) -> Option<&'a Stage> {
    application.stages.iter().rfind(|stage| {
        stage.failure_reason.is_some()
            && (stage.job_ids.contains(&job.id) || job.stage_ids.contains(&stage.id.stage))
    })
}

fn class_of(application: &Application, job: &Job) -> FailureClass {
    let text = job.failure_reason.as_deref().or_else(|| {
        failed_stage(application, job).and_then(|stage| stage.failure_reason.as_deref())
    });
    text.map_or(FailureClass::Unknown, FailureClass::of_text)
}
