//! `stuck_stage`: a stage runs, and nothing of it gets on.

use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, StageView, millis, seconds};
use super::draft::{Draft, Weight};
use super::{About, Confidence, FindingKind, Impact, Rule, Severity, Unit, Where, humane};
use crate::model::{JobStatus, Source, StageStatus, State};

pub(super) const ABOUT: About = About {
    rule: Rule::StuckStage,
    meaning: "A stage is running, and for long none of its tasks has ended or got on.",
    details: r#"*Fires* on an active stage of a running job, with executors there, of which no task has
ended for 15 min (`at`) and for 10 times the 95th percentile of its tasks' run times
(`p95_ratio`), whichever is longer. While a driver is watched, rows and bytes that its
running tasks tell with their heartbeats count as getting on: a long task that reads is
not stuck.

`warning`

* with tasks to launch and a slot free: nobody launches them, or
* where tasks of the stage ended before, and the running ones tell no progress.

`info`, with low confidence, where no task ever ended (the work may just be long), and
from an event log, which does not tell what running tasks do: a hot key looks the same.

*Source*: ours; Spark has no such notion. SPARK-41187 and SPARK-30388 leave stages
active for ever after lost executors or dropped events: a stage whose jobs all ended, or
one with more events missing, is not judged.

*Cost*: the time since it got on last, as an estimate, while no other stage ran.
"#,
    evidence: &[
        ("no_progress", "since a task of it ended, or told of rows or bytes"),
        ("running_tasks", "task attempts running now"),
        ("pending_tasks", "tasks still to launch"),
        ("free_slots", "cores without a task, over the cores a task takes"),
    ],
    fires: &["stuck_stage"],
    near_misses: &["stuck_stage"],
    resists: &[("left_running", "an idle application has no stage that is stuck")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.stuck_stage.enabled
        && context.application.state == State::Running
        && context.tasks_are_complete()
    {
        drafts.extend(context.stages.iter().filter_map(|view| judge(context, view)));
    }
}

fn judge(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.stuck_stage;
    let application = context.application;
    let stage = view.stage;
    let job_runs = || {
        application
            .jobs
            .iter()
            .any(|job| job.status == JobStatus::Running && stage.job_ids.contains(&job.id))
    };
    if stage.status != StageStatus::Active || !job_runs() {
        return None;
    }
    let launched = stage.first_task_launched?;
    let since = stage.last_progress.map_or(launched, |progress| progress.max(launched));
    let stuck = millis(application.observed.as_millisecond() - since.as_millisecond());
    let p95 = stage.measures.run_time.quantiles.map(|quantiles| view.run_time(quantiles.p95));
    let long = p95.map_or(Duration::ZERO, |p95| seconds(p95.as_secs_f64() * thresholds.p95_ratio));
    let limit = thresholds.at.get().max(long);
    if stuck < limit {
        return None;
    }
    let slots = slots(context, view);
    let tasks = stage.tasks;
    let free = slots.checked_sub(active_tasks(context))?;
    let pending = tasks.total.saturating_sub(tasks.succeeded).saturating_sub(tasks.active);
    if slots == 0 || (tasks.active == 0 && pending == 0) {
        // Nobody there: that is another story. Nothing to do: a remnant.
        return None;
    }
    let unlaunched = pending > 0 && free > 0;
    let ended_before = tasks.succeeded > 0;
    let watched = application.source == Source::Driver;
    let sure = unlaunched || (ended_before && watched);
    let headline = format!(
        "Stage {}: no task has ended{} for {}, {}",
        stage.id,
        if watched { " or told of progress" } else { "" },
        humane::duration(stuck),
        if unlaunched {
            format!(
                "{} waiting beside {}",
                humane::count(pending, "task", "tasks"),
                humane::count(free, "free slot", "free slots")
            )
        } else {
            format!("{} running", humane::count(tasks.active, "task", "tasks"))
        },
    );
    let wall = stuck.min(view.alone);
    let held = seconds(stuck.as_secs_f64() * tasks.active as f64 * view.cpus);
    let impact = Impact { wall: Some(wall), core: Some(held), estimated: true };
    let from = view.name();
    let draft = Draft::new(Rule::StuckStage, FindingKind::Resources, view.subject(), headline)
        .weight(Weight::Exactly(if sure { Severity::Warning } else { Severity::Info }))
        .confidence(match (unlaunched, sure) {
            (true, _) => Confidence::High,
            // It may compute for long over rows that it has read.
            (false, true) => Confidence::Medium,
            (false, false) => Confidence::Low,
        })
        .evidence("no_progress", stuck.as_secs_f64(), Unit::Seconds, limit.as_secs_f64(), &from)
        .evidence("running_tasks", tasks.active as f64, Unit::Count, None, &from)
        .evidence("pending_tasks", pending as f64, Unit::Count, None, &from)
        .evidence("free_slots", free as f64, Unit::Count, None, "executors there now")
        .impact(impact, vec![(view.index, wall)]);
    Some(advise(draft, unlaunched))
}

/// Tasks of this stage's sort that the executors there now could run.
fn slots(context: &Context<'_>, view: &StageView<'_>) -> u64 {
    let now = context.application.observed;
    let own = |executor: &&crate::model::Executor| {
        executor.removed.is_none() && executor.added.is_none_or(|added: Timestamp| added <= now)
    };
    context
        .application
        .executors
        .iter()
        .filter(own)
        .map(|executor| (f64::from(executor.cores) / view.cpus).floor() as u64)
        .sum()
}

fn active_tasks(context: &Context<'_>) -> u64 {
    context
        .application
        .stages
        .iter()
        .filter(|stage| stage.status == StageStatus::Active)
        .fold(0, |sum, stage| sum.saturating_add(stage.tasks.active))
}

fn advise(draft: Draft, unlaunched: bool) -> Draft {
    if unlaunched {
        return draft
            .advice_unless(
                "Look at the driver's log for why nothing is launched: all executors excluded, a \
                 barrier stage that needs more slots at once, resources (GPUs) that no executor \
                 has, a deadlock in the driver",
                Where::Resources,
                "executors are being added just now",
            )
            .advice(
                "Take a thread dump of the driver (Executors page of Spark's UI)",
                Where::Resources,
            );
    }
    draft
        .advice_unless(
            "Take a thread dump of the executors that hold its tasks (Executors page of Spark's \
             UI): they show the lock, the service or the regular expression that they wait in",
            Where::Resources,
            "the tasks use their CPU: then they are long, not stuck",
        )
        .advice_unless(
            "Give calls that leave the process a timeout; let Spark kill such tasks and start \
             others: spark.speculation with spark.task.reaper.enabled",
            Where::Conf,
            "every attempt would hang in the same place",
        )
}
