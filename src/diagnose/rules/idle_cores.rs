//! `idle_cores`: a good part of the cores that were bought did nothing.

use super::context::{Context, millis, ratio, seconds};
use super::draft::{Draft, Weight};
use super::{
    About, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane, jobs,
};
use crate::model::{Application, DataQuality, Kind, Source, StageStatus};

/// Executors that went away and that a driver's UI still remembers
/// (`spark.ui.retainedDeadExecutors`).
const REMEMBERED: usize = 100;

pub(super) const ABOUT: About = About {
    rule: Rule::IdleCores,
    meaning: "Executors were there whose cores had nothing to do for most of the time.",
    details: r#"Used = the sum over task attempts of (finish - launch) x task cpus. Bought = the sum over
executors of cores x (removed or end - added). *Fires* where less than 60 % was used
(`used_ratio`), at least 300 core-seconds were not (`core_seconds`) beyond those that
other findings explain (skew, gaps of the driver, an application left running), and the
run took 5 min or more (`run`). A task that waits holds its slot: waiting for Python, a service or
the disk is not idleness.

At most `warning`; `info` for streaming and interactive applications, judged over the
last hour.

*Sources*: DataFlint and SparkForensics warn from half of the cores idle, SparkScope
below 60 % used.

*Cost*: core-seconds not used, less those that other findings explain. No wall time.

*Silent* in local mode; where tasks or executors are not all known (events dropped,
stages omitted, executors forgotten by the driver's UI); from REST in streaming and
interactive applications older than an hour, because sums since the start say nothing
of the last hour.
"#,
    evidence: &[
        ("used_ratio", "core-seconds used / bought"),
        ("bought", "core-seconds of the executors"),
        ("used", "core-seconds that tasks held"),
        ("idle_between_jobs", "of those not used: while no job ran"),
    ],
    fires: &[],
    near_misses: &["healthy"],
    resists: &[],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.idle_cores.enabled && tells(context.application) {
        let told = drafts
            .iter()
            .filter_map(|draft| draft.finding.impact.core)
            .fold(0.0, |sum, core| sum + core.as_secs_f64());
        drafts.extend(judge(context, told));
    }
}

/// Whether all tasks and executors are known.
fn tells(application: &Application) -> bool {
    let holes = [
        DataQuality::DroppedEvents,
        DataQuality::LogCompacted,
        DataQuality::StagesOmitted,
        DataQuality::EndpointsMissing,
    ];
    let gone = application.executors.iter().filter(|executor| executor.removed.is_some()).count();
    !application.local_mode()
        && !holes.iter().any(|hole| application.has(*hole))
        && (application.source == Source::EventLog || gone < REMEMBERED)
}

/// Core-seconds that tasks held in `[from, to]`. Those that still run hold
/// theirs since their stage began, at most.
fn used(context: &Context<'_>, from: i64, to: i64) -> Option<f64> {
    let whole = jobs::judged(context.application)? == (from, to)
        && context.application.start.is_some_and(|start| start.as_millisecond() >= from);
    let active: f64 = context
        .stages
        .iter()
        .filter(|view| view.stage.status == StageStatus::Active)
        .filter_map(|view| {
            let running = to.saturating_sub(view.span?.0.max(from)).max(0) as f64 / 1_000.0;
            Some(running * view.stage.tasks.active as f64 * view.cpus)
        })
        .sum();
    let ran = || context.stages.iter().filter(|view| view.span.is_some());
    let ended: f64 = if ran().all(|view| view.stage.timeline.is_some()) {
        ran()
            .flat_map(|view| view.stage.timeline.iter().flatten().map(|task| (task, view.cpus)))
            .map(|(task, cpus)| {
                let end = task.launched_ms.saturating_add(i64::from(task.duration_ms)).min(to);
                end.saturating_sub(task.launched_ms.max(from)).max(0) as f64 / 1_000.0 * cpus
            })
            .sum()
    } else if whole {
        context.totals.used?.as_secs_f64()
    } else {
        return None;
    };
    Some(ended + active)
}

/// `told`: core-seconds that other findings claim.
fn judge(context: &Context<'_>, told: f64) -> Option<Draft> {
    let thresholds = &context.thresholds.idle_cores;
    let application = context.application;
    let (from, to) = jobs::judged(application)?;
    if context.run < thresholds.run.get() {
        return None;
    }
    let bought = context.supplies.cores.integral(from, to);
    let used = used(context, from, to)?.min(bought);
    let share = ratio(seconds(used), seconds(bought))?;
    let idle = bought - used;
    // What others explain is their story.
    let left = (idle - told).max(0.0);
    if share >= thresholds.used_ratio || left < thresholds.core_seconds {
        return None;
    }
    let first = jobs::first(application).unwrap_or(from).max(from);
    let between: f64 = if jobs::are_complete(application) {
        jobs::gaps(application, first, to)
            .iter()
            .map(|(from, to)| context.supplies.cores.integral(from, to))
            .sum()
    } else {
        0.0
    };
    let headline = format!(
        "{} of {} were used, over {}",
        humane::percent(share),
        humane::core_time(seconds(bought)),
        humane::duration(millis(to.saturating_sub(from))),
    );
    let weight = match application.kind {
        Kind::Batch => Weight::Saving { at_most: Severity::Warning },
        Kind::Streaming | Kind::Interactive => Weight::Exactly(Severity::Info),
    };
    let impact = Impact { wall: None, core: Some(seconds(left)), estimated: false };
    let mut draft =
        Draft::new(Rule::IdleCores, FindingKind::Resources, Subject::Application, headline)
            .weight(weight)
            .confidence(Confidence::High)
            .evidence("used_ratio", share, Unit::Ratio, thresholds.used_ratio, "the run")
            .evidence("bought", bought, Unit::Seconds, None, "executors added and removed")
            .evidence("used", used, Unit::Seconds, None, "task attempts");
    if between > 0.0 {
        draft = draft.evidence("idle_between_jobs", between, Unit::Seconds, None, "gaps of jobs");
    }
    let dynamic = application.configuration.flag("spark.dynamicAllocation.enabled", false);
    let draft = draft.impact(impact, Vec::new());
    let draft = if dynamic {
        draft.advice_unless(
            "Give executors back sooner: a shorter spark.dynamicAllocation.executorIdleTimeout, \
             and shuffleTracking.timeout or an external shuffle service, so that shuffle files \
             do not hold them",
            Where::Conf,
            "they come back a moment later",
        )
    } else {
        draft.advice_unless(
            "Let Spark take and give executors: spark.dynamicAllocation.enabled",
            Where::Conf,
            "getting executors takes longer than the times in which they are idle",
        )
    };
    Some(draft.advice_unless(
        "Ask for fewer executors (spark.executor.instances, or \
         spark.dynamicAllocation.maxExecutors)",
        Where::Resources,
        "some stages need all of them: then look at the stages with few or uneven tasks",
    ))
}
