//! What every rule needs and no rule should work out again: how long the run
//! was, which cores it had when, and for each stage its span, its slots, the
//! time it ran alone and its derived numbers.

use std::collections::BTreeSet;
use std::time::Duration;

use super::executions::{self, ExecutionView};
use super::numbers::{RunNumbers, StageNumbers};
use super::replay::Saving;
use super::supply::{Supplies, Supply};
use super::{Impact, Subject, run_numbers, stage_numbers};
use crate::config::Thresholds;
use crate::model::{Application, DataQuality, Quantity, Stage};

pub(super) struct Context<'a> {
    pub(super) application: &'a Application,
    pub(super) thresholds: &'a Thresholds,
    /// Start to end, or to now. At least a millisecond, to divide by.
    pub(super) run: Duration,
    pub(super) supplies: Supplies,
    /// In the order of [`Application::stages`].
    pub(super) stages: Vec<StageView<'a>>,
    /// In the order of [`Application::sql`].
    pub(super) executions: Vec<ExecutionView<'a>>,
    /// Run time of all tasks.
    pub(super) task_time: Duration,
    pub(super) totals: RunNumbers,
}

/// One stage attempt with what was worked out about it.
pub(super) struct StageView<'a> {
    /// Its place in [`Context::stages`].
    pub(super) index: usize,
    pub(super) stage: &'a Stage,
    /// First launch to end, in milliseconds since the epoch; `None` for a
    /// stage that never ran.
    pub(super) span: Option<(i64, i64)>,
    /// The part of `span` in which no other stage ran.
    pub(super) alone: Duration,
    /// Tasks that could run at once, averaged over `span`.
    pub(super) slots: Option<usize>,
    /// Cores a task takes.
    pub(super) cpus: f64,
    /// What run times must be divided by: task cpus where this build of
    /// Spark multiplied by them (SPARK-51666), else 1.
    pub(super) run_divisor: f64,
    pub(super) numbers: StageNumbers,
}

impl<'a> Context<'a> {
    pub(super) fn new(application: &'a Application, thresholds: &'a Thresholds) -> Self {
        let now = application.observed.as_millisecond();
        let supplies = Supplies::of(application, now);
        let multiplied = multiplies_run_time(application);
        let alone = alone(application);
        let mut stages: Vec<StageView<'a>> = application
            .stages
            .iter()
            .zip(alone)
            .enumerate()
            .map(|(index, (stage, alone))| {
                let cpus = application.configuration.task_cpus(stage.resource_profile_id);
                let span = span_of(stage, application);
                StageView {
                    index,
                    stage,
                    span,
                    alone,
                    slots: slots(stage, span, supplies.of_stage(stage), cpus),
                    cpus,
                    run_divisor: if multiplied && cpus > 1.0 { cpus } else { 1.0 },
                    numbers: StageNumbers::default(),
                }
            })
            .collect();
        let numbers: Vec<StageNumbers> =
            stages.iter().map(|view| stage_numbers::of(view, application, &supplies)).collect();
        for (view, numbers) in stages.iter_mut().zip(numbers) {
            view.numbers = numbers;
        }
        let totals = run_numbers::of(application, &supplies);
        let run = application
            .duration()
            .or_else(|| duration_of_stages(application))
            .unwrap_or_default()
            .max(Duration::from_millis(1));
        let executions = executions::of(application, &stages);
        let task_time = stages
            .iter()
            .filter_map(StageView::run_time_sum)
            .fold(Duration::ZERO, Duration::saturating_add);
        Self { application, thresholds, run, supplies, stages, executions, task_time, totals }
    }

    /// Share of the run.
    pub(super) fn share(&self, span: Duration) -> f64 {
        span.as_secs_f64() / self.run.as_secs_f64()
    }

    /// Cores by which core-seconds become the wall time they are worth: the
    /// most the run had at once, or, where executors are not known, the most
    /// that a stage used. `None`: core-seconds say nothing about wall time.
    pub(super) fn cores(&self) -> Option<f64> {
        let used = || {
            let of_stage = |view: &StageView<'_>| Some(view.slots? as f64 * view.cpus);
            self.stages.iter().filter_map(of_stage).max_by(f64::total_cmp)
        };
        self.totals.peak_cores.map(f64::from).or_else(used).map(|cores| cores.max(1.0))
    }

    /// Whether the tasks we have are all that ended. Where events were
    /// dropped or compacted away, what rests on comparing tasks is not said.
    pub(super) fn tasks_are_complete(&self) -> bool {
        !self.application.has(DataQuality::DroppedEvents)
            && !self.application.has(DataQuality::LogCompacted)
    }

    /// Whether the stages we have are all that ran, apart from the cheapest.
    pub(super) fn stages_are_complete(&self) -> bool {
        self.tasks_are_complete() && !self.application.has(DataQuality::StagesEvicted)
    }

    /// The stage attempt that took longest, first launch to end.
    pub(super) fn longest_stage(&self) -> Option<&StageView<'a>> {
        self.stages.iter().filter(|view| view.span.is_some()).max_by_key(|view| view.running())
    }

    /// What a stage's `saving` is worth to the run. Core-seconds never exceed
    /// those that are known to have stood idle.
    pub(super) fn impact(&self, view: &StageView<'_>, saving: Saving, estimated: bool) -> Impact {
        let slots = view.slots.unwrap_or(1) as f64;
        let freed = (slots * saving.wall.as_secs_f64() - saving.removed.as_secs_f64()).max(0.0);
        let wall = saving.wall.min(view.alone);
        let supply = self
            .supplies
            .of_stage(view.stage)
            .filter(|supply| view.stage.timeline.is_some() && !supply.capacity.is_empty());
        let idle = if let (Some(supply), Some((from, to))) = (supply, view.span) {
            supply.idle.integral(from, to).min(freed * view.cpus)
        } else {
            (freed * view.cpus).min(slots * view.cpus * wall.as_secs_f64())
        };
        Impact { wall: Some(wall), core: Some(seconds(idle)), estimated }
    }
}

impl StageView<'_> {
    /// First launch to end.
    pub(super) fn running(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(from, to)| millis(to.saturating_sub(from)))
    }

    pub(super) fn subject(&self) -> Subject {
        self.stage.id.into()
    }

    /// `stage 3.0`, for `Evidence::from`.
    pub(super) fn name(&self) -> String {
        format!("stage {}", self.stage.id)
    }

    /// A run time as wall time of a task: see `run_divisor`.
    pub(super) fn run_time(&self, spark: Duration) -> Duration {
        if self.run_divisor > 1.0 { seconds(spark.as_secs_f64() / self.run_divisor) } else { spark }
    }

    /// Run time of all attempts.
    pub(super) fn run_time_sum(&self) -> Option<Duration> {
        self.stage.measures.run_time.sum.map(|sum| self.run_time(sum))
    }

    pub(super) fn run_time_median(&self) -> Option<Duration> {
        self.stage.measures.run_time.median().map(|median| self.run_time(median))
    }

    /// Largest of input, output, shuffle read and shuffle write, and which.
    pub(super) fn moved(&self) -> (u64, Direction) {
        let measures = &self.stage.measures;
        [
            (measures.output_bytes.sum_or_zero(), Direction::Output),
            (measures.shuffle_write_bytes.sum_or_zero(), Direction::ShuffleWrite),
            (measures.shuffle_read_bytes.sum_or_zero(), Direction::ShuffleRead),
            (measures.input_bytes.sum_or_zero(), Direction::Input),
        ]
        .into_iter()
        .max_by_key(|(bytes, _)| *bytes)
        .unwrap_or((0, Direction::Input))
    }
}

/// Where a stage's bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Input,
    Output,
    ShuffleRead,
    ShuffleWrite,
}

impl Direction {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::ShuffleRead => "shuffle read",
            Self::ShuffleWrite => "shuffle write",
        }
    }
}

/// Seconds as a `Duration`, whatever came out of the arithmetic.
pub(super) fn seconds(seconds: f64) -> Duration {
    if seconds.is_nan() {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Milliseconds as a `Duration`, never negative.
pub(super) fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// `a / b` where that is a number.
pub(super) fn ratio<T: Quantity>(a: T, b: T) -> Option<f64> {
    let value = a.as_f64() / b.as_f64();
    (b.as_f64() > 0.0 && value.is_finite()).then_some(value)
}

fn span_of(stage: &Stage, application: &Application) -> Option<(i64, i64)> {
    let (from, to) = stage.running_span(application.observed)?;
    Some((from.as_millisecond(), to.as_millisecond()))
}

/// Whether this build of Spark multiplies run time by task cpus: then a task
/// that takes several is said to run for longer than it was there.
fn multiplies_run_time(application: &Application) -> bool {
    let longer = |run_ms: u128, duration_ms: u128| run_ms > duration_ms + duration_ms / 20 + 20;
    application.stages.iter().any(|stage| {
        application.configuration.task_cpus(stage.resource_profile_id) > 1.0
            && (stage
                .slowest
                .iter()
                .any(|task| longer(task.metrics.run_time.as_millis(), task.duration.as_millis()))
                || stage
                    .timeline
                    .iter()
                    .flatten()
                    .any(|task| longer(u128::from(task.run_ms), u128::from(task.duration_ms))))
    })
}

/// Slots of a stage: what executors offered over its span, or, where that is
/// not known, the most tasks it ran at once.
fn slots(
    stage: &Stage,
    span: Option<(i64, i64)>,
    supply: Option<&Supply>,
    cpus: f64,
) -> Option<usize> {
    let (from, to) = span?;
    let offered = supply.map_or(0.0, |supply| supply.capacity.average(from, to) / cpus);
    if offered >= 0.5 {
        return Some((offered.round() as usize).max(1));
    }
    let timeline = stage.timeline.as_ref()?;
    let mut changes: Vec<(i64, i64)> = timeline
        .iter()
        .flat_map(|task| {
            let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
            [(task.launched_ms, 1), (end, -1)]
        })
        .collect();
    changes.sort_unstable();
    let mut at_once = 0_i64;
    let mut most = 0;
    for (_, by) in changes {
        at_once += by;
        most = most.max(at_once);
    }
    usize::try_from(most).ok().filter(|most| *most > 0)
}

/// For each stage the part of its span in which no other stage ran.
fn alone(application: &Application) -> Vec<Duration> {
    let mut changes: Vec<(i64, bool, usize)> = Vec::new();
    for (index, stage) in application.stages.iter().enumerate() {
        if let Some((from, to)) = span_of(stage, application).filter(|(from, to)| from < to) {
            changes.push((from, true, index));
            changes.push((to, false, index));
        }
    }
    changes.sort_unstable();
    let mut alone = vec![Duration::ZERO; application.stages.len()];
    let mut running = BTreeSet::new();
    let mut since = 0_i64;
    for (when, starts, index) in changes {
        if running.len() == 1
            && let Some(only) = running.first().and_then(|only: &usize| alone.get_mut(*only))
        {
            *only = only.saturating_add(millis(when.saturating_sub(since)));
        }
        since = when;
        if starts {
            running.insert(index);
        } else {
            running.remove(&index);
        }
    }
    alone
}

/// First submission to last end, where the application's start is not known.
fn duration_of_stages(application: &Application) -> Option<Duration> {
    let first = application.stages.iter().filter_map(|stage| stage.submitted).min()?;
    let end = application.end.unwrap_or(application.observed);
    Some(millis(end.as_millisecond().saturating_sub(first.as_millisecond())))
}
