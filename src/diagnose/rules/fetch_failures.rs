//! `fetch_failures`: tasks could not fetch shuffle output, by the executor
//! that had it.

use std::collections::BTreeMap;

use super::context::Context;
use super::draft::{Draft, Weight};
use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    loss,
};
use crate::model::StageId;

pub(super) const ABOUT: About = About {
    rule: Rule::FetchFailures,
    meaning: "Tasks could not fetch shuffle output that other tasks had written.",
    details: r#"*Fires* on any task attempt that ended with `FetchFailed`, one finding a cause: that of the
loss of the executor that had the output, or none where that executor is still there or
was given back. Where Spark does not know who had it (the output is no longer
registered), it is counted with the losses, if there were any.

`info` where a lost executor explains it. Else `warning`: the network, an overloaded or
restarted shuffle service, or executors that were given back with their shuffle files.

*Source*: Spark runs the stage again after any fetch failure, four times at most
(`spark.stage.maxConsecutiveAttempts`), so one is enough to be told.

*Cost*: none of its own. What ran again is told by `stage_retries`, what was computed
again for a lost executor by `executor_lost`.
"#,
    evidence: &[
        ("fetch_failures", "task attempts that ended so"),
        ("stages", "stage attempts in which"),
        ("sources", "executors that had had the output, as far as Spark knows"),
    ],
    fires: &["stage_retries"],
    near_misses: &["executor_killed"],
    resists: &[("stage_retries", "the data and the program are not to blame")],
};

#[derive(Default)]
struct Failures<'a> {
    attempts: u64,
    stages: Vec<StageId>,
    sources: Vec<&'a str>,
}

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.fetch_failures.enabled {
        return;
    }
    let application = context.application;
    let lost: BTreeMap<&str, Cause> = application
        .executors
        .iter()
        .filter_map(|executor| Some((executor.id.as_str(), loss::cause(application, executor)?)))
        .collect();
    // Output that is not registered any more was on an executor that went.
    let any_loss = lost.values().next().copied();
    let mut by_cause: BTreeMap<Option<Cause>, Failures<'_>> = BTreeMap::new();
    for stage in &application.stages {
        for (source, attempts) in &stage.fetch_failures {
            let cause = match source.as_str() {
                "" => any_loss,
                id => lost.get(id).copied(),
            };
            let failures = by_cause.entry(cause).or_default();
            failures.attempts = failures.attempts.saturating_add(*attempts);
            if failures.stages.last() != Some(&stage.id) {
                failures.stages.push(stage.id);
            }
            if !source.is_empty() && !failures.sources.contains(&source.as_str()) {
                failures.sources.push(source);
            }
        }
    }
    drafts.extend(by_cause.iter().map(|(cause, failures)| judge(*cause, failures)));
}

fn judge(cause: Option<Cause>, failures: &Failures<'_>) -> Draft {
    let subject = match failures.sources.as_slice() {
        [only] => Subject::Executor { executor_id: (*only).to_owned() },
        _ => Subject::Application,
    };
    let headline = format!(
        "{} of shuffle output failed in {}{}{}",
        humane::count(failures.attempts, "fetch", "fetches"),
        humane::count(failures.stages.len() as u64, "stage", "stages"),
        match failures.sources.as_slice() {
            [] => String::new(),
            [only] => format!(": it was on executor {only}"),
            many => format!(": it was on {} executors", many.len()),
        },
        match (cause, failures.sources.len()) {
            (Some(_), 0) => ": its executor was lost",
            (Some(_), 1) => ", which was lost",
            (Some(_), _) => ", which were lost",
            (None, _) => "",
        },
    );
    let weight = match cause {
        Some(_) => Weight::Exactly(Severity::Info),
        None => Weight::Exactly(Severity::Warning),
    };
    let from = failures.stages.first().map_or(String::new(), |first| format!("stage {first}"));
    let draft = Draft::new(Rule::FetchFailures, FindingKind::Resources, subject, headline)
        .cause(cause)
        .weight(weight)
        .confidence(if cause.is_some() { Confidence::High } else { Confidence::Medium })
        .evidence("fetch_failures", failures.attempts as f64, Unit::Count, 1.0, &from)
        .evidence("stages", failures.stages.len() as f64, Unit::Count, None, &from)
        .evidence("sources", failures.sources.len() as f64, Unit::Count, None, "failed fetches")
        .impact(Impact::default(), Vec::new());
    if cause.is_some() {
        return draft
            .advice(
                "Find out why the executor went: see the finding about lost executors",
                Where::Resources,
            )
            .advice_unless(
                "Keep shuffle output apart from executors: external shuffle service, a remote \
                 shuffle service, or decommissioning with block migration",
                Where::Conf,
                "losses are rare",
            );
    }
    draft
        .advice_unless(
            "Look at the node and the shuffle service that served the output: long garbage \
             collections, a full disk, a service that was restarted or is overloaded",
            Where::Resources,
            "executors were given back with their shuffle files: then switch \
             spark.dynamicAllocation.shuffleTracking.enabled or a shuffle service on",
        )
        .advice_unless(
            "Ask more patiently: spark.shuffle.io.maxRetries, spark.shuffle.io.retryWait, \
             spark.network.timeout",
            Where::Conf,
            "the output is gone",
        )
}
