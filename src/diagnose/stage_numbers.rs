//! The derived numbers of a stage attempt: one definition each, used by the
//! rules and shown as metrics beside their inputs.

use std::time::Duration;

use super::context::{StageView, ratio, seconds};
use super::numbers::{IoPerCore, StageNumbers};
use super::supply::Supplies;
use super::waiting;
use crate::model::{
    Application, DataQuality, Distribution, FailureClass, Quantity, Stage, TaskMetrics,
};

/// From this many tasks on the median is what is typical; below, the mean of
/// the other tasks.
pub(super) const ENOUGH_FOR_A_MEDIAN: u64 = 10;

pub(super) fn of(
    view: &StageView<'_>,
    application: &Application,
    supplies: &Supplies,
) -> StageNumbers {
    let stage = view.stage;
    let measures = &stage.measures;
    let cores =
        view.span.map(|(from, to)| supplies.cores.average(from, to)).filter(|cores| *cores > 0.0);
    let running = view.span.map(|_| view.running());
    StageNumbers {
        cores,
        running,
        run_time_ratio: max_to_typical(stage, &measures.run_time, |task| task.run_time),
        records_ratio: largest([
            records_read(stage),
            max_to_typical(stage, &measures.shuffle_write_records, |task| {
                task.shuffle_write_records
            }),
            max_to_typical(stage, &measures.output_records, |task| task.output_records),
        ]),
        bytes_ratio: largest([
            max_to_typical(stage, &measures.input_bytes, |task| task.input_bytes),
            max_to_typical(stage, &measures.shuffle_read_bytes, |task| task.shuffle_read_bytes),
            max_to_typical(stage, &measures.shuffle_write_bytes, |task| task.shuffle_write_bytes),
            max_to_typical(stage, &measures.output_bytes, |task| task.output_bytes),
        ]),
        spill_ratio: measures
            .disk_spilled_bytes
            .sum
            .and_then(|spilled| ratio(spilled, view.moved().0)),
        gc_ratio: gc_ratio(view, application),
        io_per_core: io_per_core(stage, cores, running),
        scheduling_delay: waiting::of_stage(view, application, supplies)
            .map(|waiting| waiting.total()),
        task_failure_ratio: ratio(failed(stage), ended(stage)),
    }
}

/// Attempts that failed: kills, refused commits and resubmissions (a success
/// whose output was lost later) left out.
pub(super) fn failed(stage: &Stage) -> u64 {
    match &stage.failures {
        Some(failures) => failures
            .iter()
            .filter(|(class, _)| counts_as_failure(**class))
            .fold(0, |sum: u64, (_, attempts)| sum.saturating_add(*attempts)),
        None => stage.tasks.failed,
    }
}

pub(super) fn counts_as_failure(class: FailureClass) -> bool {
    class.is_failure() && class != FailureClass::Resubmitted
}

/// Attempts that ended, in whatever way.
pub(super) fn ended(stage: &Stage) -> u64 {
    stage.tasks.succeeded.saturating_add(stage.tasks.failed).saturating_add(stage.tasks.killed)
}

/// The slowest, largest ... task to the typical one: the median for 10 tasks
/// and more, the mean of the others for 2 to 9. `None` where that is 0.
fn max_to_typical<T: Quantity>(
    stage: &Stage,
    distribution: &Distribution<T>,
    of: impl Fn(&TaskMetrics) -> T,
) -> Option<f64> {
    let max = distribution.max()?;
    let (at, _) = stage
        .slowest
        .iter()
        .enumerate()
        .max_by_key(|(_, task)| of(&task.metrics))
        .unwrap_or((usize::MAX, stage.slowest.first()?));
    let typical = typical(stage, distribution, Some(at), of)?;
    let value = max.as_f64() / typical;
    (typical > 0.0 && value.is_finite()).then_some(value)
}

/// What is typical of a measure: the median of 10 successful tasks and more;
/// of fewer the mean of those but the one at place `without` of
/// [`Stage::slowest`]. `None` for a single task or where it is not known.
pub(super) fn typical<T: Quantity>(
    stage: &Stage,
    distribution: &Distribution<T>,
    without: Option<usize>,
    of: impl Fn(&TaskMetrics) -> T,
) -> Option<f64> {
    let n = stage.tasks.succeeded;
    if n >= ENOUGH_FOR_A_MEDIAN {
        return distribution.median().map(Quantity::as_f64);
    }
    if (stage.slowest.len() as u64) < n {
        return None;
    }
    let others: Vec<f64> = stage
        .slowest
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != without)
        .map(|(_, task)| of(&task.metrics).as_f64())
        .collect();
    mean(&others)
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn largest<const N: usize>(ratios: [Option<f64>; N]) -> Option<f64> {
    ratios.into_iter().flatten().max_by(f64::total_cmp)
}

/// REST has quantiles of input records and of shuffle records, none of both
/// together: there the part with more of them speaks.
fn records_read(stage: &Stage) -> Option<f64> {
    let measures = &stage.measures;
    if measures.records_read.quantiles.is_some() {
        return max_to_typical(stage, &measures.records_read, TaskMetrics::records_read);
    }
    let input = measures.input_records.sum_or_zero();
    if input >= measures.shuffle_read_records.sum_or_zero() {
        max_to_typical(stage, &measures.input_records, |task| task.input_records)
    } else {
        max_to_typical(stage, &measures.shuffle_read_records, |task| task.shuffle_read_records)
    }
}

fn gc_ratio(view: &StageView<'_>, application: &Application) -> Option<f64> {
    if concurrent_gc(application) {
        return None;
    }
    // A pause is counted by each task it stops, and so is its run time.
    ratio(view.stage.measures.gc_time.sum?, view.run_time_sum()?).map(|share| share.min(1.0))
}

/// Whether executors collect without stopping the program: Spark adds those
/// cycles up as if they did.
pub(super) fn concurrent_gc(application: &Application) -> bool {
    application.has(DataQuality::ConcurrentGc) || application.configuration.concurrent_gc()
}

fn io_per_core(stage: &Stage, cores: Option<f64>, running: Option<Duration>) -> IoPerCore {
    let core_seconds = cores.unwrap_or(0.0) * running.unwrap_or_default().as_secs_f64();
    let per_core = |distribution: &Distribution<u64>| {
        let rate = distribution.sum?.as_f64() / core_seconds;
        (core_seconds > 0.0 && rate.is_finite()).then_some(rate)
    };
    let measures = &stage.measures;
    IoPerCore {
        input: per_core(&measures.input_bytes),
        output: per_core(&measures.output_bytes),
        shuffle_read: per_core(&measures.shuffle_read_bytes),
        shuffle_write: per_core(&measures.shuffle_write_bytes),
    }
}

/// Core-time of the attempts that did not succeed; kills included in
/// proportion where only both together are known.
pub(super) fn failed_time(view: &StageView<'_>) -> Option<Duration> {
    let timeline = view.stage.timeline.as_ref()?;
    let lost: f64 = timeline
        .iter()
        .filter(|task| !task.succeeded)
        .map(|task| f64::from(task.duration_ms) / 1_000.0)
        .sum();
    let failed = failed(view.stage) as f64;
    let unsuccessful = timeline.iter().filter(|task| !task.succeeded).count() as f64;
    let share = if unsuccessful > 0.0 { (failed / unsuccessful).min(1.0) } else { 0.0 };
    Some(seconds(lost * share * view.cpus))
}
