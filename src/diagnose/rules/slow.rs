//! The slow tasks of a stage, and whether they had more to do than others:
//! what `data_skew` and `straggler` judge, and what tells one from the other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Unit;
use super::context::{Context, StageView, seconds};
use super::fed_by;
use super::stage_numbers::{ENOUGH_FOR_A_MEDIAN, typical};
use super::task_list;
use crate::model::{Application, Distribution, Quantity, Task, TaskMetrics};

/// Fewer records than this say nothing about time: bytes speak instead.
const FEW_RECORDS: u64 = 100;

/// A task that took several times what is typical of its stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slow<'a> {
    pub(super) task: &'a Task,
    /// Its place in [`crate::model::Stage::slowest`]; `None` while it runs.
    pub(super) place: Option<usize>,
    pub(super) run: Duration,
    pub(super) typical: Duration,
    pub(super) ratio: f64,
    pub(super) threshold: f64,
}

impl Slow<'_> {
    pub(super) fn excess(&self) -> Duration {
        self.run.saturating_sub(self.typical)
    }

    pub(super) fn is_running(&self) -> bool {
        self.place.is_none()
    }

    /// `task 17 on executor 2`, for `Evidence::from`.
    pub(super) fn name(&self) -> String {
        format!("task {} on executor {}", self.task.id, self.task.executor_id)
    }
}

/// Tasks of at least `many` times the median (`few` times the mean of the
/// others below 10 tasks), the slowest first; running ones by their time so
/// far.
pub(super) fn slow_tasks<'a>(view: &StageView<'a>, many: f64, few: f64) -> Vec<Slow<'a>> {
    let stage = view.stage;
    let measure = &stage.measures.run_time;
    let threshold = if stage.tasks.succeeded >= ENOUGH_FOR_A_MEDIAN { many } else { few };
    let judged = |task: &'a Task, place: Option<usize>, run: Duration| {
        let typical = typical(stage, measure, place, |task| task.run_time)?;
        let typical = view.run_time(seconds(typical));
        let ratio = run.as_secs_f64() / typical.as_secs_f64();
        (!typical.is_zero() && ratio.is_finite() && ratio >= threshold).then_some(Slow {
            task,
            place,
            run,
            typical,
            ratio,
            threshold,
        })
    };
    let finished = stage.slowest.iter().enumerate().filter_map(|(place, task)| {
        judged(task, Some(place), view.run_time(task.metrics.run_time))
    });
    let running =
        stage.running.iter().filter_map(|task| judged(task, None, task_list::elapsed(task, view)));
    let mut slow: Vec<Slow<'a>> = finished.chain(running).collect();
    slow.sort_by_key(|slow| std::cmp::Reverse(slow.run));
    slow
}

/// Launched this soon after the stage's first task, a task is of its first
/// wave.
const FIRST_WAVE_MS: i64 = 500;

/// Whether the slow tasks are those with which each executor began the stage:
/// they started what the others found ready (Python workers, connections,
/// code). Of more than ten executors, ten are enough: no more slow tasks may
/// be known.
pub(super) fn begin_the_stage_everywhere(view: &StageView<'_>, slow: &[Slow<'_>]) -> bool {
    let began = |task: &Task| {
        view.span.is_some_and(|(first, _)| {
            task.launched.as_millisecond().saturating_sub(first) <= FIRST_WAVE_MS
        })
    };
    let all: BTreeSet<&str> = if view.stage.executors.is_empty() {
        view.stage.slowest.iter().map(|task| task.executor_id.as_str()).collect()
    } else {
        view.stage.executors.iter().map(|share| share.executor_id.as_str()).collect()
    };
    let slowed: BTreeSet<&str> = slow.iter().map(|slow| slow.task.executor_id.as_str()).collect();
    all.len() >= 2
        && slowed.len() >= all.len().min(10)
        && slow.iter().all(|slow| !slow.is_running() && began(slow.task))
}

/// Whether the task started a Python worker, as far as a log tells: its stage
/// calls Python, and it was among the first of the stage on its executor's
/// slots. Idle workers end after a minute, so an earlier stage is no proof
/// against it.
pub(super) fn starts_python(
    view: &StageView<'_>,
    application: &Application,
    slow: &Slow<'_>,
) -> bool {
    const PYTHON: [&str; 3] = ["Python", "Pandas", "InArrow"];
    let calls = |name: &String| PYTHON.iter().any(|part| name.contains(part));
    let executors = &application.executors;
    let place = executors.iter().position(|executor| executor.id == slow.task.executor_id);
    let (Some(timeline), Some(place)) = (&view.stage.timeline, place) else { return false };
    if slow.is_running() || !view.stage.operations.iter().any(calls) {
        return false;
    }
    let launched = slow.task.launched.as_millisecond();
    let before = timeline
        .iter()
        .filter(|task| task.executor as usize == place && task.launched_ms < launched)
        .count();
    let cores = executors.get(place).map_or(1, |executor| executor.cores);
    (before as f64) < (f64::from(cores) / view.cpus).max(1.0)
}

/// One measure of a task beside what is typical of its stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Compared {
    /// `records read`, `bytes written`.
    pub(super) what: &'static str,
    pub(super) value: f64,
    pub(super) typical: f64,
    pub(super) ratio: f64,
    pub(super) unit: Unit,
}

/// What a task had to do beside the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    pub(super) records_read: Option<Compared>,
    pub(super) bytes_read: Option<Compared>,
    pub(super) records: Option<Compared>,
    pub(super) bytes: Option<Compared>,
    /// Records of this stage are no rows: batches of a cached table, or one
    /// for all that a task had gathered of a key. Only bytes mean something.
    pub(super) counts_other_things: bool,
}

impl Load {
    /// The comparison that decides: the largest of records, or of bytes
    /// where records are none, few, or no rows. `None`: not known.
    pub(super) fn deciding(&self) -> Option<Compared> {
        if self.counts_other_things { self.bytes } else { self.records.or(self.bytes) }
    }
}

pub(super) fn load(context: &Context<'_>, view: &StageView<'_>, slow: &Slow<'_>) -> Load {
    let measures = &view.stage.measures;
    let counts_other_things = counts_batches(view, context.application)
        || fed_by::of_stage(context, view).is_some_and(|fed| fed_by::reads_gathered_rows(&fed));
    let input = measures.input_bytes.sum_or_zero();
    let shuffle = measures.shuffle_read_bytes.sum_or_zero();
    let records_read = if measures.records_read.quantiles.is_some() {
        compare(view, slow, "records read", &measures.records_read, TaskMetrics::records_read)
    } else if measures.input_records.sum_or_zero() >= measures.shuffle_read_records.sum_or_zero() {
        compare(view, slow, "records read", &measures.input_records, |task| task.input_records)
    } else {
        compare(view, slow, "records read", &measures.shuffle_read_records, |task| {
            task.shuffle_read_records
        })
    };
    let bytes_read = if input >= shuffle {
        compare(view, slow, "bytes read", &measures.input_bytes, |task| task.input_bytes)
    } else {
        compare(view, slow, "bytes read", &measures.shuffle_read_bytes, |task| {
            task.shuffle_read_bytes
        })
    };
    let records = [
        records_read,
        compare(view, slow, "records written to the shuffle", &measures.shuffle_write_records, {
            |task| task.shuffle_write_records
        }),
        compare(view, slow, "records written", &measures.output_records, |task| {
            task.output_records
        }),
    ];
    let bytes = [
        bytes_read,
        compare(
            view,
            slow,
            "bytes written to the shuffle",
            &measures.shuffle_write_bytes,
            |task| task.shuffle_write_bytes,
        ),
        compare(view, slow, "bytes written", &measures.output_bytes, |task| task.output_bytes),
    ];
    Load {
        records_read,
        bytes_read,
        records: largest(
            records
                .map(|compared| compared.filter(|compared| compared.value >= FEW_RECORDS as f64)),
        ),
        bytes: largest(bytes),
        counts_other_things,
    }
}

/// From REST nothing says that a stage scans a cached table; where one is
/// cached and the stage's input records are few and large, it does.
fn counts_batches(view: &StageView<'_>, application: &Application) -> bool {
    view.stage.reads_cache.unwrap_or_else(|| {
        let measures = &view.stage.measures;
        let records = measures.input_records.sum_or_zero();
        let bytes = measures.input_bytes.sum_or_zero();
        !application.cached.is_empty() && records > 0 && bytes / records >= 10_000
    })
}

fn largest<const N: usize>(compared: [Option<Compared>; N]) -> Option<Compared> {
    compared.into_iter().flatten().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

fn compare(
    view: &StageView<'_>,
    slow: &Slow<'_>,
    what: &'static str,
    distribution: &Distribution<u64>,
    of: impl Fn(&TaskMetrics) -> u64,
) -> Option<Compared> {
    let value = of(&slow.task.metrics).as_f64();
    if value <= 0.0 {
        return None;
    }
    let stage = view.stage;
    let tasks = stage.tasks.succeeded as f64;
    let mut usual = typical(stage, distribution, slow.place, &of)?;
    if usual <= 0.0 {
        // Most tasks had nothing at all: the mean of the others then.
        let others = if slow.is_running() { tasks } else { tasks - 1.0 };
        let rest = distribution.sum.map(|sum| (sum.as_f64() - value).max(0.0) / others.max(1.0));
        usual = rest.unwrap_or(0.0);
    }
    // Where one task has everything there is no ratio: it did the work of all.
    let ratio = if usual > 0.0 { value / usual } else { tasks.max(1.0) };
    let unit = if what.starts_with("bytes") { Unit::Bytes } else { Unit::Count };
    Some(Compared { what, value, typical: usual, ratio, unit })
}

/// `12x the median of 200 tasks` or `5.0x the mean of the other 7`.
pub(super) fn against(view: &StageView<'_>, slow: &Slow<'_>) -> String {
    let n = view.stage.tasks.succeeded;
    let ratio = super::humane::ratio(slow.ratio);
    if n >= ENOUGH_FOR_A_MEDIAN {
        format!("{ratio} the median of {} tasks", super::humane::number(n))
    } else {
        let others = if slow.is_running() { n } else { n.saturating_sub(1) };
        match others {
            1 => format!("{ratio} the other one"),
            others => format!("{ratio} the mean of the other {others}"),
        }
    }
}
