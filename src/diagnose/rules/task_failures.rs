//! `task_failures`: attempts that failed, by the class of their reason. Kills
//! on purpose (speculation, cancelled jobs) and refused commits are none.

use std::collections::BTreeMap;

use super::context::{Context, StageView};
use super::draft::{Draft, Weight};
use super::humane;
use super::loss;
use super::stage_numbers;
use super::task_list::TaskList;
use super::{About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Unit, Where};
use crate::model::{FailureClass, JobStatus, StageStatus, State};

pub(super) const ABOUT: About = About {
    rule: Rule::TaskFailures,
    meaning: "Task attempts failed: their work was lost and done again, and a task that fails `spark.task.maxFailures` times ends its job.",
    details: "*Fires* on a stage with failed attempts >= 5 % (`ratio`) of those that ended and
>= 3 (`attempts`), or whose failures ended a job. Kills on purpose (speculation,
cancelled jobs), refused commits and resubmissions do not count. By class of
reason; the text of an exception is never shown, its class name is. `warning`;
`critical` where the run failed by it; `info` where a lost executor explains it.

*Source*: SparkForensics (5 %).

Throttled storage (503, slow down) advises *less* at a time.
",
    evidence: &[
        (
            "failed_attempts",
            "attempts that failed, without kills, refused commits and resubmissions",
        ),
        ("ended_attempts", "all that ended, in whatever way"),
        ("failure_ratio", "the one to the other"),
        ("failed_by_heap_oom", "of them, out of memory in the JVM"),
        ("failed_by_container_memory", "of them, killed over the container's memory"),
        ("failed_by_fetch_failed", "of them, a shuffle block could not be had"),
        ("failed_by_executor_lost", "of them, went with their executor"),
        ("failed_by_storage_throttled", "of them, refused by a store that was asked too much"),
        ("failed_by_exception", "of them, by an exception of the program"),
    ],
    fires: &["task_failures", "job_failed", "job_failed_caught"],
    near_misses: &["task_failures-few", "task_failures-healthy"],
    resists: &[
        ("speculation", "copies that were killed because another won did not fail"),
        ("job_cancelled", "tasks of a cancelled job did not fail"),
    ],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.task_failures.enabled {
        drafts.extend(context.stages.iter().filter_map(|view| judge(context, view)));
    }
}

fn judge(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.task_failures;
    let stage = view.stage;
    let failed = stage_numbers::failed(stage);
    let ended = stage_numbers::ended(stage);
    let ratio = view.numbers.task_failure_ratio.unwrap_or(0.0);
    let ended_a_job = failed > 0 && ended_a_job(context, view);
    let many = ratio >= thresholds.ratio && failed >= thresholds.attempts;
    if !ended_a_job && !many {
        return None;
    }
    let by_class: BTreeMap<FailureClass, u64> = stage
        .failures
        .iter()
        .flatten()
        .filter(|(class, attempts)| stage_numbers::counts_as_failure(**class) && **attempts > 0)
        .map(|(class, attempts)| (*class, *attempts))
        .collect();
    let class = by_class
        .iter()
        .max_by_key(|(_, attempts)| **attempts)
        .map(|(class, _)| *class)
        .or_else(|| stage.failure_reason.as_deref().map(FailureClass::of_text));
    let classes: Vec<String> = if by_class.is_empty() {
        class.map(|class| class.as_str().to_owned()).into_iter().collect()
    } else {
        by_class.iter().map(|(class, n)| format!("{n} {}", class.as_str())).collect()
    };
    let headline = format!(
        "Stage {}: {} of {} failed{}{}{}",
        stage.id,
        humane::number(failed),
        humane::count(ended, "task attempt", "task attempts"),
        if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) },
        stage
            .failure_example
            .as_deref()
            .map_or_else(String::new, |example| format!(", mostly {}", class_name(example))),
        if ended_a_job { ", and ended the job" } else { "" },
    );
    // The run failed by it: its job's failure says so as well. What a lost
    // executor explains is said there.
    let severity = if ended_a_job && context.application.state == State::Failed {
        Severity::Critical
    } else if !ended_a_job && is_explained_by_a_loss(context, class) {
        Severity::Info
    } else {
        Severity::Warning
    };
    let core = stage_numbers::failed_time(view);
    let wall = TaskList::of(view).filter(|tasks| !tasks.estimated).and_then(|tasks| {
        let saving =
            tasks.saving(view, |attempt| if attempt.succeeded { attempt.held } else { 0 })?;
        Some(saving.wall.min(view.alone))
    });
    let from = view.name();
    let mut draft = Draft::new(Rule::TaskFailures, kind(class), view.subject(), headline)
        .cause(class.and_then(cause_of))
        .weight(Weight::AtLeast(severity))
        .confidence(Confidence::High)
        .evidence("failed_attempts", failed as f64, Unit::Count, thresholds.attempts as f64, &from)
        .evidence("ended_attempts", ended as f64, Unit::Count, None, &from)
        .evidence("failure_ratio", ratio, Unit::Ratio, thresholds.ratio, &from);
    for (class, attempts) in &by_class {
        draft = draft.evidence(class_evidence(*class), *attempts as f64, Unit::Count, None, &from);
    }
    let impact = Impact { wall, core, estimated: false };
    let shares = wall.map(|wall| (view.index, wall)).into_iter().collect();
    Some(advise(draft.impact(impact, shares), class))
}

/// Whether a task that failed too often ended a job that was not cancelled.
fn ended_a_job(context: &Context<'_>, view: &StageView<'_>) -> bool {
    let stage = view.stage;
    stage.status == StageStatus::Failed
        && stage.failure_reason.as_deref().is_none_or(|reason| !reason.contains("cancelled"))
        && context.application.jobs.iter().any(|job| {
            job.status == JobStatus::Failed
                && (stage.job_ids.contains(&job.id) || job.stage_ids.contains(&stage.id.stage))
        })
}

fn is_explained_by_a_loss(context: &Context<'_>, class: Option<FailureClass>) -> bool {
    matches!(class, Some(FailureClass::FetchFailed | FailureClass::ExecutorLost))
        && context.thresholds.executor_lost.enabled
        && context
            .application
            .executors
            .iter()
            .any(|executor| loss::cause(context.application, executor).is_some())
}

/// An exception's class name and nothing that could be a message: what stands
/// before the first colon or space, if it looks like a name.
pub(super) fn class_name(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$')))
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

pub(super) fn cause_of(class: FailureClass) -> Option<Cause> {
    match class {
        FailureClass::HeapOom => Some(Cause::HeapOom),
        FailureClass::ContainerMemory => Some(Cause::ContainerMemory),
        FailureClass::Killed => Some(Cause::Killed),
        FailureClass::ExecutorLost
        | FailureClass::FetchFailed
        | FailureClass::ResultLost
        | FailureClass::Resubmitted
        | FailureClass::StorageThrottled
        | FailureClass::CommitDenied
        | FailureClass::Exception
        | FailureClass::Unknown => None,
    }
}

pub(super) fn kind(class: Option<FailureClass>) -> FindingKind {
    match class {
        Some(FailureClass::HeapOom | FailureClass::ContainerMemory) => FindingKind::Configuration,
        Some(
            FailureClass::FetchFailed
            | FailureClass::ExecutorLost
            | FailureClass::ResultLost
            | FailureClass::Resubmitted
            | FailureClass::StorageThrottled,
        ) => FindingKind::Resources,
        _ => FindingKind::Data,
    }
}

fn class_evidence(class: FailureClass) -> &'static str {
    match class {
        FailureClass::HeapOom => "failed_by_heap_oom",
        FailureClass::ContainerMemory => "failed_by_container_memory",
        FailureClass::FetchFailed => "failed_by_fetch_failed",
        FailureClass::ExecutorLost => "failed_by_executor_lost",
        FailureClass::StorageThrottled => "failed_by_storage_throttled",
        FailureClass::ResultLost => "failed_by_result_lost",
        FailureClass::Exception => "failed_by_exception",
        _ => "failed_by_other",
    }
}

pub(super) fn advise(draft: Draft, class: Option<FailureClass>) -> Draft {
    match class {
        Some(FailureClass::HeapOom) => draft
            .advice_unless(
                "Raise spark.executor.memory, or lower spark.executor.cores so that fewer tasks \
                 share the heap",
                Where::Resources,
                "one row or one key needs more than any heap",
            )
            .advice("Make partitions smaller (spark.sql.shuffle.partitions)", Where::Conf),
        Some(FailureClass::ContainerMemory) => draft.advice(
            "Raise spark.executor.memoryOverhead, or lower spark.executor.cores",
            Where::Resources,
        ),
        Some(FailureClass::FetchFailed | FailureClass::ExecutorLost) => draft.advice(
            "Find out why executors went: see the findings about lost executors",
            Where::Resources,
        ),
        Some(FailureClass::StorageThrottled) => draft
            .advice_unless(
                "Ask less at a time: fewer concurrent tasks (executors, cores), larger files. The \
                 store said to slow down, and more tasks or retries make it worse",
                Where::Resources,
                "another application uses up the same limit",
            )
            .advice("Spread the keys over more prefixes, or have the limit raised", Where::Data),
        Some(FailureClass::ResultLost) => draft.advice(
            "Return less to the driver (collect, toPandas): results were gone before it fetched \
             them",
            Where::Sql,
        ),
        _ => draft
            .advice(
                "Read the exception in the stage's page or the executor's log: the program or one \
                 of its rows throws it",
                Where::Data,
            )
            .advice_unless(
                "Handle bad rows where they are read (try_cast, mode=PERMISSIVE)",
                Where::Sql,
                "the exception does not come from a row",
            ),
    }
}
