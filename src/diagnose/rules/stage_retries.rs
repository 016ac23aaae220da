//! `stage_retries`: a stage ran again, mostly because shuffle output was gone
//! when somebody came to fetch it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::{Context, StageView, seconds};
use super::draft::{Draft, Weight};
use super::humane;
use super::loss;
use super::{About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Unit, Where};
use crate::model::FailureClass;

pub(super) const ABOUT: About = About {
    rule: Rule::StageRetries,
    meaning: "A stage ran more than once: shuffle output that it needed, or had made, was gone.",
    details: "*Fires* on any stage attempt above 0 that ran. `warning` from 30 s of repeated
run time (`warning_at`), else `info`. The cause is that of the executor lost
before.

*Source*: SparkForensics' floor for retry waste.
",
    evidence: &[
        ("attempts", "attempts of the stage"),
        ("tasks_run_again", "tasks that the later attempts ran"),
        ("repeated_run_time", "run time of those attempts"),
    ],
    fires: &["stage_retries"],
    near_misses: &["executor_killed"],
    resists: &[(
        "task_failures",
        "tasks that are tried again within an attempt are no retry of the stage",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.stage_retries.enabled {
        return;
    }
    let mut attempts: BTreeMap<u32, Vec<&StageView<'_>>> = BTreeMap::new();
    for view in context.stages.iter().filter(|view| view.span.is_some()) {
        attempts.entry(view.stage.id.stage).or_default().push(view);
    }
    drafts.extend(attempts.values().filter_map(|attempts| judge(context, attempts)));
}

fn judge(context: &Context<'_>, attempts: &[&StageView<'_>]) -> Option<Draft> {
    let last = attempts.last()?;
    let retries: Vec<&&StageView<'_>> =
        attempts.iter().filter(|view| view.stage.id.attempt > 0).collect();
    if retries.is_empty() {
        return None;
    }
    let known: Option<f64> =
        retries.iter().map(|view| Some(view.run_time_sum()?.as_secs_f64() * view.cpus)).sum();
    let repeated = known.map(seconds);
    let shares: Vec<(usize, Duration)> =
        retries.iter().map(|view| (view.index, view.alone)).collect();
    let wall = shares.iter().fold(Duration::ZERO, |sum, (_, share)| sum.saturating_add(*share));
    let warning_at = context.thresholds.stage_retries.warning_at.get();
    let severity = if repeated.is_some_and(|repeated| repeated >= warning_at) {
        Severity::Warning
    } else {
        Severity::Info
    };
    let tasks = retries.iter().fold(0, |sum: u64, view| sum.saturating_add(view.stage.tasks.total));
    let reason = attempts.iter().find_map(|view| view.stage.failure_reason.as_deref());
    let fetch_failed =
        reason.is_some_and(|reason| FailureClass::of_text(reason) == FailureClass::FetchFailed);
    let lost = lost_before(context, retries.first()?);
    let cause = lost.map(|(_, cause)| cause);
    let headline = format!(
        "Stage {}: ran again {}, {}{}{}",
        last.stage.id.stage,
        match retries.len() {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        },
        humane::count(tasks, "task", "tasks"),
        repeated.map_or_else(String::new, |repeated| {
            format!(" and {} of run time", humane::duration(repeated))
        }),
        match &lost {
            Some((executor, _)) => format!(", after executor {executor} was lost"),
            None if fetch_failed => ", because shuffle output could not be fetched".to_owned(),
            None => String::new(),
        },
    );
    let from = last.name();
    let mut draft =
        Draft::new(Rule::StageRetries, FindingKind::Resources, last.subject(), headline)
            .cause(cause)
            .weight(Weight::AtLeast(severity))
            .confidence(Confidence::High)
            .evidence("attempts", attempts.len() as f64, Unit::Count, 1.0, &from)
            .evidence("tasks_run_again", tasks as f64, Unit::Count, None, &from);
    if let Some(repeated) = repeated {
        draft = draft.evidence(
            "repeated_run_time",
            repeated.as_secs_f64(),
            Unit::Seconds,
            warning_at.as_secs_f64(),
            &from,
        );
    }
    let impact = Impact { wall: Some(wall), core: repeated, estimated: false };
    Some(
        draft
            .impact(impact, shares)
            .advice_unless(
                "Find out why executors or their shuffle files went: see the findings about lost \
                 executors",
                Where::Resources,
                "none was lost: then look at the network and the shuffle service",
            )
            .advice_unless(
                "Keep shuffle output apart from executors: external shuffle service, a remote \
                 shuffle service, or decommissioning with block migration",
                Where::Conf,
                "losses are rare",
            ),
    )
}

/// The executor lost last before the stage ran again.
fn lost_before<'a>(context: &Context<'a>, retry: &StageView<'_>) -> Option<(&'a str, Cause)> {
    let (launched, _) = retry.span?;
    context
        .application
        .executors
        .iter()
        .filter_map(|executor| {
            let cause = loss::cause(context.application, executor)?;
            let removed = executor.removed?.as_millisecond();
            // The scheduler may run the stage again a moment before the
            // removal is written.
            (removed <= launched.saturating_add(5_000)).then_some((removed, executor, cause))
        })
        .max_by_key(|(removed, ..)| *removed)
        .map(|(_, executor, cause)| (executor.id.as_str(), cause))
}
