//! Where the time went: each instant of a span given to what held it up.
//!
//! Each instant of the run goes to: no executor: `resources`; executors but no
//! job: `driver`; a job but no task: `scheduling`; else it is shared equally
//! among the running tasks ([`super::time_sweep`]), by each one's own split of
//! its duration. What of a task's duration it neither ran, deserialized nor
//! returned its result is `scheduling` too: half of the time of a stage of
//! tiny tasks. The parts sum to the whole, to the microsecond.
//!
//! The same of a SQL execution, start to end, where jobs and tasks are its
//! own (and those of executions that it started): tasks of others that hold
//! the cores are `scheduling` there. And of a stage attempt, first launch to
//! end, where the job is taken as running.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::blocked;
use super::context::{Context, StageView};
use super::steps::Spans;
use super::time_sweep::{Piece, TASK_PARTS, Window, split};
use crate::model::{Application, DataQuality, Job, Source, StageStatus};

/// What an instant went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// No executor was there.
    Resources,
    /// Executors were there and no job ran.
    Driver,
    /// A job ran and no task of it, or a task was launched and not yet
    /// running, or had ended and was not yet known to.
    Scheduling,
    Deserialize,
    Cpu,
    Gc,
    FetchWait,
    ShuffleWrite,
    /// Serializing and fetching results.
    Result,
    /// Run time that none of the others explains: disk, network, Python,
    /// locks. Spark has no time for them.
    Blocked,
}

impl TimePart {
    pub const ALL: [Self; 10] = [
        Self::Resources,
        Self::Driver,
        Self::Scheduling,
        Self::Deserialize,
        Self::Cpu,
        Self::Gc,
        Self::FetchWait,
        Self::ShuffleWrite,
        Self::Result,
        Self::Blocked,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Driver => "driver",
            Self::Scheduling => "scheduling",
            Self::Deserialize => "deserialize",
            Self::Cpu => "cpu",
            Self::Gc => "gc",
            Self::FetchWait => "fetch_wait",
            Self::ShuffleWrite => "shuffle_write",
            Self::Result => "result",
            Self::Blocked => "blocked",
        }
    }
}

/// What tasks most likely waited for in `Blocked` time: an inference from
/// bytes and plan, never a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    Input,
    Output,
    Spill,
    Python,
    /// Neither bytes nor plan explain it: locks, remote calls, sleeping, or
    /// threads that got no CPU.
    Unknown,
}

impl BlockedBy {
    pub const ALL: [Self; 5] =
        [Self::Input, Self::Output, Self::Spill, Self::Python, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Spill => "spill",
            Self::Python => "python",
            Self::Unknown => "unknown",
        }
    }
}

/// A span of wall time by what held it up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeSplit {
    /// What the parts sum to.
    pub total: Duration,
    /// In the order of [`TimePart::ALL`].
    pub parts: [Duration; 10],
    /// What most of the blocked time waited for. `None` where nothing was
    /// blocked.
    pub blocked_by: Option<BlockedBy>,
    /// Not from every task (REST, running stages): from sums over stages.
    pub estimated: bool,
}

impl TimeSplit {
    pub fn part(&self, part: TimePart) -> Duration {
        self.parts[part as usize]
    }

    /// Share of the whole; 0 of an empty one.
    pub fn share(&self, part: TimePart) -> f64 {
        super::context::ratio(self.part(part), self.total).unwrap_or_default()
    }

    /// The largest part names the layer.
    pub fn largest(&self) -> Option<TimePart> {
        TimePart::ALL
            .into_iter()
            .filter(|part| !self.part(*part).is_zero())
            .max_by_key(|part| self.part(*part))
    }
}

/// All splits of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    pub(super) run: Option<TimeSplit>,
    pub(super) stages: BTreeMap<crate::model::StageId, TimeSplit>,
    pub(super) sql: BTreeMap<u64, TimeSplit>,
}

/// Splits of the run (where its start is known and no jobs are missing), of
/// its stage attempts and SQL executions. None where tasks ran on executors
/// that the data does not tell of.
pub(super) fn of(context: &Context<'_>) -> Times {
    let application = context.application;
    let pieces: Vec<Vec<Piece>> = context.stages.iter().map(pieces_of).collect();
    let ran = pieces.iter().any(|pieces| !pieces.is_empty());
    // A driver's log tells of jobs and stages, not of who ran their tasks.
    let by_text = matches!(application.source, Source::DriverLog | Source::Explain);
    if application.executors.is_empty() && (ran || by_text) {
        return Times::default();
    }
    let executors = executors(application, pieces.iter().flatten());
    let estimated = |view: &StageView<'_>| !has_timeline(view);

    let stages = context
        .stages
        .iter()
        .filter_map(|view| {
            let (from, to) = view.span?;
            let jobs = Spans::union(vec![(from, to)]);
            let window = Window { from, to, executors: &executors, jobs: &jobs };
            let mut of_stage = split(&window, pieces.get(view.index)?.iter());
            of_stage.estimated = estimated(view);
            Some((view.stage.id, of_stage))
        })
        .collect();

    // What is missing would look like gaps of the driver.
    let jobs_missing =
        [DataQuality::DroppedEvents, DataQuality::LogCompacted, DataQuality::StagesEvicted]
            .iter()
            .any(|hole| application.has(*hole));
    if jobs_missing {
        return Times { stages, ..Times::default() };
    }
    let run = bounds(application).map(|(from, to)| {
        let jobs = jobs(context, to);
        let window = Window { from, to, executors: &executors, jobs: &jobs };
        let mut whole = split(&window, pieces.iter().flatten());
        whole.estimated = application.has(DataQuality::StagesOmitted)
            || context.stages.iter().any(|view| view.span.is_some() && estimated(view));
        whole
    });
    let sql = of_executions(context, &executors, &pieces);
    Times { run, stages, sql }
}

fn of_executions(
    context: &Context<'_>,
    executors: &Spans,
    pieces: &[Vec<Piece>],
) -> BTreeMap<u64, TimeSplit> {
    let jobs: BTreeMap<u32, &Job> =
        context.application.jobs.iter().map(|job| (job.id, job)).collect();
    let mut started_by: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, view) in context.executions.iter().enumerate() {
        if view.execution.is_nested()
            && let Some(root) = view.execution.root_id
        {
            started_by.entry(root).or_default().push(place);
        }
    }
    let observed = context.application.observed;
    let of_one = |place: usize| {
        let view = context.executions.get(place)?;
        let from = view.execution.start?.as_millisecond();
        let wall = i64::try_from(view.execution.wall(observed)?.as_millis()).ok()?;
        let to = from.saturating_add(wall);
        let nested = started_by.get(&view.execution.id).into_iter().flatten();
        let family = || {
            std::iter::once(&place)
                .chain(nested.clone())
                .filter_map(|place| context.executions.get(*place))
        };
        let spans = family()
            .flat_map(|view| &view.execution.job_ids)
            .filter_map(|id| span_of(jobs.get(id)?, to))
            .collect();
        let own = Spans::union(spans);
        let stages: BTreeSet<usize> =
            family().flat_map(|view| view.stages.iter().copied()).collect();
        // A stage whose output is used again is listed by later executions:
        // there it did not run.
        let here: Vec<&StageView<'_>> = stages
            .into_iter()
            .filter_map(|place| context.stages.get(place))
            .filter(|view| view.span.is_some_and(|(first, last)| first < to && last > from))
            .collect();
        let window = Window { from, to, executors, jobs: &own };
        let own_pieces = here.iter().filter_map(|view| pieces.get(view.index)).flatten();
        let mut split = split(&window, own_pieces);
        split.estimated = here.iter().any(|view| !has_timeline(view));
        Some((view.execution.id, split))
    };
    (0..context.executions.len()).filter_map(of_one).collect()
}

/// Start to end, or to now; `None` where the start is not known.
fn bounds(application: &Application) -> Option<(i64, i64)> {
    let from = application.start?.as_millisecond();
    let to = application.end.unwrap_or(application.observed).as_millisecond();
    Some((from, to.max(from)))
}

/// When executors were there: from when they were added, and whenever a task
/// ran.
fn executors<'a>(application: &Application, pieces: impl Iterator<Item = &'a Piece>) -> Spans {
    let spans = application.executors.iter().filter_map(|executor| {
        let from = executor.added.or(application.start)?;
        let to = executor.removed.map_or(i64::MAX, Timestamp::as_millisecond);
        Some((from.as_millisecond(), to))
    });
    Spans::union(spans.chain(pieces.map(|piece| (piece.from, piece.to))).collect())
}

/// When jobs ran. A stage that no known job listed (its start is missing)
/// stands for its job.
fn jobs(context: &Context<'_>, end: i64) -> Spans {
    let application = context.application;
    let known: BTreeSet<u32> = application.jobs.iter().map(|job| job.id).collect();
    let of_jobs = application.jobs.iter().filter_map(|job| span_of(job, end));
    let orphans = context
        .stages
        .iter()
        .filter(|view| !view.stage.job_ids.iter().any(|job| known.contains(job)))
        .filter_map(|view| view.span);
    Spans::union(of_jobs.chain(orphans).collect())
}

/// A job that never ended ran until the end.
fn span_of(job: &Job, end: i64) -> Option<(i64, i64)> {
    let to = job.completed.map_or(end, Timestamp::as_millisecond);
    Some((job.submitted?.as_millisecond(), to))
}

/// Whether every attempt of the stage is known. Those that still run are in no
/// timeline.
fn has_timeline(view: &StageView<'_>) -> bool {
    let running = view.stage.status == StageStatus::Active && view.stage.tasks.active > 0;
    view.stage.timeline.is_some() && !running
}

/// The attempts of a stage as the sweep takes them; where they are not known,
/// one piece over its span for all of them, from the sums.
fn pieces_of(view: &StageView<'_>) -> Vec<Piece> {
    let Some((from, to)) = view.span else { return Vec::new() };
    let blocked_by = blocked::by(view);
    if let (true, Some(timeline)) = (has_timeline(view), &view.stage.timeline) {
        let piece = |task: &crate::model::TaskSpan| Piece {
            from: task.launched_ms,
            to: task.launched_ms.saturating_add(i64::from(task.duration_ms)),
            weight: Piece::ONE,
            parts: task_parts(
                [
                    f64::from(task.duration_ms)
                        - f64::from(task.run_ms) / view.run_divisor
                        - f64::from(task.deserialize_ms)
                        - f64::from(task.result_ms),
                    f64::from(task.deserialize_ms),
                    f64::from(task.cpu_ms),
                    f64::from(task.gc_ms),
                    f64::from(task.fetch_wait_ms),
                    f64::from(task.shuffle_write_ms),
                    f64::from(task.result_ms),
                ],
                f64::from(task.run_ms) / view.run_divisor,
            ),
            blocked_by,
        };
        return timeline.iter().map(piece).collect();
    }
    if from >= to {
        return Vec::new();
    }
    let measures = &view.stage.measures;
    let millis = |sum: Option<Duration>| sum.unwrap_or_default().as_secs_f64() * 1_000.0;
    let run = millis(view.run_time_sum());
    let deserialize = millis(measures.deserialize_time.sum);
    // As many at once as their time fills the span with.
    let delay = millis(measures.scheduler_delay.sum);
    let at_once = (run + deserialize + delay) / to.saturating_sub(from) as f64;
    vec![Piece {
        from,
        to,
        weight: Piece::weight(at_once),
        parts: task_parts(
            [
                delay,
                deserialize,
                millis(measures.cpu_time.sum),
                millis(measures.gc_time.sum),
                millis(measures.fetch_wait_time.sum),
                millis(measures.shuffle_write_time.sum),
                0.0,
            ],
            run,
        ),
        blocked_by,
    }]
}

/// The parts of a task as shares of its duration, in the order of
/// [`TimePart::ALL`] from `Scheduling` on. What of its run time the others do
/// not explain is blocked; a task without numbers (its executor was lost) is
/// blocked altogether.
fn task_parts(known: [f64; TASK_PARTS - 1], run: f64) -> [f32; TASK_PARTS] {
    let [delay, deserialize, cpu, gc, fetch_wait, shuffle_write, result] = known;
    let blocked = (run - (cpu + gc + fetch_wait + shuffle_write)).max(0.0);
    let measured = [deserialize, cpu, gc, fetch_wait, shuffle_write, result, blocked];
    if measured.iter().all(|part| *part <= 0.0) {
        return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
    }
    let sum = delay.max(0.0) + measured.iter().sum::<f64>();
    let share = |part: f64| (part.max(0.0) / sum) as f32;
    let [deserialize, cpu, gc, fetch_wait, shuffle_write, result, blocked] = measured.map(share);
    [share(delay), deserialize, cpu, gc, fetch_wait, shuffle_write, result, blocked]
}
