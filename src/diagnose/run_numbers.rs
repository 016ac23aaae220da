//! The derived numbers of a whole run.

use std::time::Duration;

use super::context::{ratio, seconds};
use super::numbers::RunNumbers;
use super::stage_numbers;
use super::supply::Supplies;
use crate::model::Application;

pub(super) fn of(application: &Application, supplies: &Supplies) -> RunNumbers {
    RunNumbers {
        bought: bought(application, supplies),
        used: used(application),
        peak_cores: Some(supplies.cores.max())
            .filter(|cores| *cores > 0.0)
            .map(|cores| cores.min(f64::from(u32::MAX)) as u32),
        gc_ratio: gc_ratio(application),
        task_failure_ratio: failure_ratio(application),
    }
}

fn bought(application: &Application, supplies: &Supplies) -> Option<Duration> {
    if supplies.cores.is_empty() {
        return None;
    }
    let end = application.end.unwrap_or(application.observed).as_millisecond();
    let start = application
        .executors
        .iter()
        .filter_map(|executor| executor.added)
        .chain(application.start)
        .min()?
        .as_millisecond();
    Some(seconds(supplies.cores.integral(start, end)))
}

/// From the timelines; where a stage has none, from what executors say their
/// tasks took.
fn used(application: &Application) -> Option<Duration> {
    let ran = || application.stages.iter().filter(|stage| stage.first_task_launched.is_some());
    if ran().all(|stage| stage.timeline.is_some()) && ran().next().is_some() {
        let core_seconds: f64 = ran()
            .map(|stage| {
                let cpus = application.configuration.task_cpus(stage.resource_profile_id);
                let tasks = stage.timeline.iter().flatten();
                tasks.map(|task| f64::from(task.duration_ms) / 1_000.0).sum::<f64>() * cpus
            })
            .sum();
        return Some(seconds(core_seconds));
    }
    if application.executors.is_empty() {
        return None;
    }
    let core_seconds: f64 = application
        .executors
        .iter()
        .map(|executor| {
            let cpus = application.configuration.task_cpus(executor.resource_profile_id);
            executor.totals.task_time.as_secs_f64() * cpus
        })
        .sum();
    Some(seconds(core_seconds))
}

fn gc_ratio(application: &Application) -> Option<f64> {
    if stage_numbers::concurrent_gc(application) {
        return None;
    }
    let mut gc = Duration::ZERO;
    let mut run = Duration::ZERO;
    for stage in &application.stages {
        let measures = &stage.measures;
        if let (Some(stage_gc), Some(stage_run)) = (measures.gc_time.sum, measures.run_time.sum) {
            gc = gc.saturating_add(stage_gc);
            run = run.saturating_add(stage_run);
        }
    }
    ratio(gc, run).map(|share| share.min(1.0))
}

fn failure_ratio(application: &Application) -> Option<f64> {
    let mut failed = 0_u64;
    let mut ended = 0_u64;
    for stage in &application.stages {
        failed = failed.saturating_add(stage_numbers::failed(stage));
        ended = ended.saturating_add(stage_numbers::ended(stage));
    }
    ratio(failed, ended)
}
