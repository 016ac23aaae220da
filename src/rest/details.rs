//! The questions about the tasks of one finished stage attempt.

use super::stages::KillReasons;
use super::task_list::{self, Top};
use super::{Api, ApplicationPath, assemble, task_summary};
use crate::model::{Configuration, Stage};

/// Rows of the slowest and of the running tasks.
pub(super) const ROWS: usize = 20;
/// Rows of failed tasks.
pub(super) const FAILED_ROWS: usize = 100;

/// What became of the questions about one attempt.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// Spark has dropped tasks of it, so that its quantiles would be wrong.
    pub(super) evicted: bool,
    pub(super) missing: bool,
}

/// Quantiles, slowest and failed tasks of one finished attempt.
pub(super) async fn details(
    api: &Api,
    path: &ApplicationPath,
    stage: &mut Stage,
    kills: KillReasons,
    retained_tasks: u64,
) -> Details {
    let mut outcome = Details::default();
    let tasks = stage.tasks;
    let ended = tasks.succeeded.saturating_add(tasks.failed).saturating_add(tasks.killed);
    if ended > retained_tasks {
        outcome.evicted = true;
    } else if tasks.succeeded > 0 {
        match task_summary::get(api, path, stage.id).await {
            Ok(Some(summary)) => assemble::add_summary(stage, &summary),
            Ok(None) => {}
            Err(_) => outcome.missing = true,
        }
    }
    if tasks.succeeded > 0 {
        match task_list::get(api, path, stage.id, Top::Slowest, ROWS).await {
            Ok(tasks) => assemble::add_slowest(stage, &tasks),
            Err(_) => outcome.missing = true,
        }
    }
    if tasks.failed > 0 {
        match task_list::get(api, path, stage.id, Top::Failed, FAILED_ROWS).await {
            Ok(tasks) => assemble::add_failed(stage, &tasks, kills),
            Err(_) => outcome.missing = true,
        }
    }
    outcome
}

/// Tasks that Spark keeps of one stage.
pub(super) fn retained_tasks(configuration: Option<&Configuration>) -> u64 {
    configuration
        .and_then(|configuration| configuration.get("spark.ui.retainedTasks")?.trim().parse().ok())
        .unwrap_or(100_000)
}
