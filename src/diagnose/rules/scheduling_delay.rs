//! `scheduling_delay`: submitted stages had tasks to run and none could
//! start, though the application itself did not hold the cores.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cold_start;
use super::context::{Context, StageView, seconds};
use super::draft::Draft;
use super::humane;
use super::steps::{Spans, Steps};
use super::waiting::{self, Waiting};
use super::{About, Cause, Confidence, FindingKind, Impact, Rule, Subject, Unit, Where};

/// `spark.locality.wait` where nothing sets it.
const LOCALITY_WAIT: Duration = Duration::from_secs(3);
/// Launches into free slots from which the driver's pace is the limit.
const MANY_LAUNCHES: usize = 200;

pub(super) const ABOUT: About = About {
    rule: Rule::SchedulingDelay,
    meaning: "Submitted stages had tasks to run and none could start, though the application itself did not hold the cores.",
    details: r#"At each moment a stage has pending tasks: those asked for, less those launched,
plus those that failed and run again. Of the time with pending tasks

* without any executor: `no_executors`,
* with a free slot: `locality` (another executor was full of this stage's tasks,
  tasks know where their data is, and `spark.locality.wait` is not 0), `driver`
  (hundreds of launches, each into a slot that had been free), or `unknown`,
* with all slots busy with the application's own tasks: no delay. "First launch -
  submission" is a false alarm when sibling stages hold the cores; that time is
  evidence (`cores_busy`) and nothing else.

What was waited for the first executor is `cold_start`'s to say, where that speaks.

*Fires* from 10 s (`at`) and 5 % of the run (`ratio`), each of the first two on
its own. The wall saving of free slots is what the stage would have ended
earlier by. From REST only the time up to a stage's first launch is judged, and
only while no other stage ran.
"#,
    evidence: &[],
    fires: &[],
    near_misses: &[],
    resists: &[],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.scheduling_delay.enabled || !context.stages_are_complete() {
        return;
    }
    let waited: Vec<(&StageView<'_>, Waiting)> = context
        .stages
        .iter()
        .filter_map(|view| {
            let waiting = waiting::of_stage(view, context.application, &context.supplies)?;
            (!waiting.total().is_zero()).then_some((view, waiting))
        })
        .collect();
    drafts.extend(no_executors(context, &waited));
    drafts.extend(free_slot(context, &waited));
}

fn union<'a>(spans: impl Iterator<Item = &'a Spans>) -> Spans {
    Spans::union(spans.flat_map(Spans::iter).collect())
}

/// Whether so much waiting is worth saying.
fn matters(context: &Context<'_>, waited: Duration) -> bool {
    let thresholds = &context.thresholds.scheduling_delay;
    waited >= thresholds.at.get() && context.share(waited) >= thresholds.ratio
}

fn draft(
    context: &Context<'_>,
    kind: FindingKind,
    subject: Subject,
    headline: String,
    waited: Duration,
    from: &str,
) -> Draft {
    let thresholds = &context.thresholds.scheduling_delay;
    Draft::new(Rule::SchedulingDelay, kind, subject, headline)
        .evidence(
            "waited",
            waited.as_secs_f64(),
            Unit::Seconds,
            thresholds.at.get().as_secs_f64(),
            from,
        )
        .evidence("share_of_run", context.share(waited), Unit::Ratio, thresholds.ratio, from)
}

fn no_executors(context: &Context<'_>, waited: &[(&StageView<'_>, Waiting)]) -> Option<Draft> {
    let mut spans = union(waited.iter().map(|(_, waiting)| &waiting.no_executors));
    // What was waited for the first executor is promised once.
    if let Some(late) = cold_start::late(context) {
        spans = spans.intersect(&Spans::union(vec![(late.until(), i64::MAX)]));
    }
    let without = Duration::from_millis(spans.millis());
    if !matters(context, without) {
        return None;
    }
    let stages = waited.iter().filter(|(_, waiting)| waiting.no_executors.millis() > 0).count();
    let headline = format!(
        "{} in which {} had tasks to run and the application had no executor",
        humane::duration(without),
        humane::count(stages as u64, "stage", "stages"),
    );
    let impact = Impact { wall: Some(without), core: Some(Duration::ZERO), estimated: false };
    Some(
        draft(
            context,
            FindingKind::Resources,
            Subject::Application,
            headline,
            without,
            "executors added and removed, stages submitted",
        )
        .cause(Cause::NoExecutors)
        .evidence("stages", stages as f64, Unit::Count, None, "stages that waited")
        .impact(impact, Vec::new())
        .advice_unless(
            "Look at why executors came late: a full queue or cluster, quota, image pulls, node \
             start-up",
            Where::Resources,
            "the cluster was started for this run and waiting for it is accepted",
        )
        .advice_unless(
            "Keep some executors: spark.dynamicAllocation.minExecutors, or a longer \
             spark.dynamicAllocation.executorIdleTimeout",
            Where::Conf,
            "dynamic allocation is off, or the wait was at the start of the run",
        ),
    )
}

fn free_slot(context: &Context<'_>, waited: &[(&StageView<'_>, Waiting)]) -> Option<Draft> {
    let spans = union(waited.iter().map(|(_, waiting)| &waiting.free_slot));
    let free = Duration::from_millis(spans.millis());
    if !matters(context, free) {
        return None;
    }
    // The wall time is saved only where the stage would have ended earlier.
    let mut wall = Duration::ZERO;
    let mut core = 0.0;
    let mut shares = Vec::new();
    let mut worst: Option<(&StageView<'_>, &Waiting)> = None;
    for (view, waiting) in waited {
        let of_stage = waiting.free_slot.millis();
        if of_stage == 0 {
            continue;
        }
        let (before, during) = around_first_launch(view, waiting);
        let gained = earlier_end(view).unwrap_or(during).min(during).min(view.alone);
        wall = wall.saturating_add(before).saturating_add(gained);
        shares.push((view.index, gained));
        if let Some(supply) = context.supplies.of_stage(view.stage) {
            core += waiting.free_slot.iter().map(|(a, b)| supply.idle.integral(a, b)).sum::<f64>();
        }
        if worst.is_none_or(|(_, worst)| worst.free_slot.millis() < of_stage) {
            worst = Some((view, waiting));
        }
    }
    let (worst, waiting) = worst?;
    let cause = cause(context, worst, waiting);
    let wall = wall.min(free);
    let most = Duration::from_millis(waiting.free_slot.millis());
    let subject = if most >= free.mul_f64(0.8) { worst.subject() } else { Subject::Application };
    let from = "tasks running beside cores there, at each moment";
    let why = match cause {
        Cause::Locality => "tasks waited for executors near their data",
        Cause::Driver => "the driver launched tasks slower than slots came free",
        _ => "nothing measured tells why",
    };
    let headline = format!(
        "{} in which tasks were waiting and a slot was free, most of it in stage {}: {why}",
        humane::duration(free),
        worst.stage.id,
    );
    let busy = Duration::from_millis(waiting.cores_busy.millis());
    let kind =
        if cause == Cause::Locality { FindingKind::Configuration } else { FindingKind::Resources };
    let impact = Impact { wall: Some(wall), core: Some(seconds(core)), estimated: false };
    let mut draft = draft(context, kind, subject, headline, free, from)
        .cause(cause)
        .confidence(match cause {
            Cause::Locality => Confidence::High,
            Cause::Driver => Confidence::Medium,
            _ => Confidence::Low,
        })
        .evidence("waited_in_stage", most.as_secs_f64(), Unit::Seconds, None, worst.name())
        .evidence("cores_busy", busy.as_secs_f64(), Unit::Seconds, None, worst.name())
        .impact(impact, shares);
    let wait = locality_wait(context);
    if cause == Cause::Locality {
        draft = draft.evidence(
            "locality_wait",
            wait.as_secs_f64(),
            Unit::Seconds,
            None,
            "spark.locality.wait",
        );
    }
    Some(match cause {
        Cause::Locality => draft
            .advice_unless(
                format!(
                    "Set spark.locality.wait to 0s or 1s (it is {}): a task far from its data is \
                     slower, but a task that waits does nothing",
                    humane::duration(wait)
                ),
                Where::Conf,
                "reading over the network costs more than the wait",
            )
            .advice_unless(
                "Cache with two replicas (MEMORY_AND_DISK_2), or after all executors are there",
                Where::Sql,
                "nothing is cached",
            ),
        Cause::Driver => draft
            .advice("Fewer, larger tasks: each costs the driver some milliseconds", Where::Conf)
            .advice_unless(
                "Give the driver more CPU and heap",
                Where::Resources,
                "tasks carry large closures or broadcast variables: make those smaller",
            ),
        _ => draft.advice_unless(
            "Look at the driver's log for the time: excluded executors, a barrier stage, a fair \
             scheduler pool without share, a driver collecting garbage",
            Where::Resources,
            "executors were being added at the time",
        ),
    })
}

/// Free-slot time before a stage's first launch and after it.
fn around_first_launch(view: &StageView<'_>, waiting: &Waiting) -> (Duration, Duration) {
    let Some((first, _)) = view.span else {
        return (Duration::from_millis(waiting.free_slot.millis()), Duration::ZERO);
    };
    let before: u64 = waiting
        .free_slot
        .iter()
        .map(|(from, to)| to.min(first).saturating_sub(from).max(0).unsigned_abs())
        .fold(0, u64::saturating_add);
    let all = waiting.free_slot.millis();
    (Duration::from_millis(before), Duration::from_millis(all.saturating_sub(before)))
}

/// How much earlier the stage ends where no slot waits.
fn earlier_end(view: &StageView<'_>) -> Option<Duration> {
    let tasks = super::task_list::TaskList::of(view)?;
    let held: Vec<u64> = tasks.attempts.iter().map(|attempt| attempt.held).collect();
    let packed = Duration::from_millis(super::replay::makespan(&held, view.slots?));
    Some(view.running().saturating_sub(packed))
}

fn locality_wait(context: &Context<'_>) -> Duration {
    let configuration = &context.application.configuration;
    let one = Duration::from_millis(1);
    ["spark.locality.wait", "spark.locality.wait.process", "spark.locality.wait.node"]
        .iter()
        .filter_map(|key| configuration.time(key, one))
        .max()
        .unwrap_or(LOCALITY_WAIT)
}

/// Locality: some executor had all its slots busy with this stage while
/// another had one free, and tasks knew where their data was. Driver: many
/// launches, each into a slot that had been free.
fn cause(context: &Context<'_>, view: &StageView<'_>, waiting: &Waiting) -> Cause {
    let Some(timeline) = &view.stage.timeline else { return Cause::Unknown };
    let tasks_have_places = view
        .stage
        .slowest
        .iter()
        .any(|task| matches!(task.locality.as_str(), "PROCESS_LOCAL" | "NODE_LOCAL"));
    let mut by_executor: BTreeMap<u32, Vec<(i64, f64)>> = BTreeMap::new();
    for task in timeline {
        let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
        by_executor
            .entry(task.executor)
            .or_default()
            .extend([(task.launched_ms, 1.0), (end, -1.0)]);
    }
    let mut full = Vec::new();
    for (executor, changes) in by_executor {
        let Some(executor) = context.application.executors.get(executor as usize) else {
            continue;
        };
        let slots = (f64::from(executor.cores) / view.cpus).floor().max(1.0);
        let running = Steps::from_changes(changes);
        if let Some((from, to)) = view.span {
            full.extend(running.when(from, to, |tasks| tasks + 1e-6 >= slots).iter());
        }
    }
    let beside_a_full_one = waiting.free_slot.intersect(&Spans::union(full)).millis();
    if tasks_have_places
        && !locality_wait(context).is_zero()
        && beside_a_full_one >= waiting.free_slot.millis() / 2
    {
        Cause::Locality
    } else if timeline.len() >= MANY_LAUNCHES
        && waiting.free_slot.iter().count() >= MANY_LAUNCHES / 2
    {
        Cause::Driver
    } else {
        Cause::Unknown
    }
}
