//! When a stage waited though nothing of its application held the cores.
//!
//! At each moment from its submission a stage has pending tasks (those asked
//! for, less those launched, plus those that failed and have to run again).
//! Pending tasks with no executor, or with a free slot, are delay; with all
//! slots busy with the application's own tasks they are not, which is why
//! "first launch - submission" is no measure of it.

use std::time::Duration;

use super::context::StageView;
use super::steps::{Spans, Steps};
use super::supply::{Supplies, Supply};
use crate::model::{Application, DataQuality, StageStatus};

/// The spans in which one stage waited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Nobody was there to run its tasks.
    pub(super) no_executors: Spans,
    /// A slot was free.
    pub(super) free_slot: Spans,
    /// All slots were busy with the application's own tasks: no delay.
    pub(super) cores_busy: Spans,
}

impl Waiting {
    /// Without the time in which the application's own tasks held the slots.
    pub(super) fn total(&self) -> Duration {
        Duration::from_millis(self.no_executors.millis().saturating_add(self.free_slot.millis()))
    }
}

/// `None` where submission, executors or task times are not known.
pub(super) fn of_stage(
    view: &StageView<'_>,
    application: &Application,
    supplies: &Supplies,
) -> Option<Waiting> {
    let stage = view.stage;
    // Slots of stages that are not known would look free.
    let holes = [
        DataQuality::DroppedEvents,
        DataQuality::LogCompacted,
        DataQuality::StagesEvicted,
        DataQuality::StagesOmitted,
    ];
    if holes.iter().any(|hole| application.has(*hole)) {
        return None;
    }
    let submitted = stage.submitted?.as_millisecond();
    let end = match stage.status {
        StageStatus::Complete | StageStatus::Failed => stage.completed?,
        StageStatus::Active => application.observed,
        StageStatus::Pending | StageStatus::Skipped => return None,
    }
    .as_millisecond();
    let supply = supplies.of_stage(stage)?;
    if application.executors.is_empty() && view.span.is_some() {
        // It ran, so somebody was there: the executors are not known.
        return None;
    }
    let pending = pending(view, submitted, end);
    let (no_executors, with_executors) = split(supply, submitted, end);
    let free = supply.idle.when(submitted, end, |idle| idle + 1e-6 >= view.cpus);
    let busy = supply.idle.when(submitted, end, |idle| idle + 1e-6 < view.cpus);
    Some(Waiting {
        no_executors: pending.intersect(&no_executors),
        free_slot: pending.intersect(&with_executors).intersect(&free),
        cores_busy: pending.intersect(&with_executors).intersect(&busy),
    })
}

fn split(supply: &Supply, from: i64, to: i64) -> (Spans, Spans) {
    (
        supply.capacity.when(from, to, |cores| cores < 1e-6),
        supply.capacity.when(from, to, |cores| cores >= 1e-6),
    )
}

/// When the stage had tasks to launch. Without a timeline only the time to
/// its first launch is certain.
fn pending(view: &StageView<'_>, submitted: i64, end: i64) -> Spans {
    let stage = view.stage;
    let Some(timeline) = stage.timeline.as_ref().filter(|_| stage.status != StageStatus::Active)
    else {
        let until = view.span.map_or(end, |(first, _)| first);
        return Spans::union(vec![(submitted, until)]);
    };
    let mut changes = vec![(submitted, stage.tasks.total as f64)];
    for task in timeline {
        changes.push((task.launched_ms.max(submitted), -1.0));
        if !task.succeeded {
            let ended = task.launched_ms.saturating_add(i64::from(task.duration_ms));
            changes.push((ended.max(submitted), 1.0));
        }
    }
    Steps::from_changes(changes).when(submitted, end, |tasks| tasks >= 1.0)
}
