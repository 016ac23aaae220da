//! Cores over time: what executors offered, what tasks took, what stood idle.
//!
//! Executors of a resource profile run the tasks of that profile. Where a
//! profile has no executors of its own (task-only profiles, Spark 3.4), its
//! tasks run on all executors.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::steps::Steps;
use crate::model::{Application, Executor, Stage, StageStatus};

/// More cores than any application has: a stage of which we do not know when
/// its tasks ran counts as holding all of them, so that no core is called
/// idle without proof.
const ALL_CORES: f64 = 1e9;

/// Cores for the tasks of one resource profile.
#[derive(Debug, Clone, Default)]
pub(super) struct Supply {
    /// Cores on which tasks can run: whole slots x task cpus.
    pub(super) capacity: Steps,
    /// `capacity` without the cores that running tasks hold.
    pub(super) idle: Steps,
}

/// All supplies of a run, by resource profile.
#[derive(Debug, Clone, Default)]
pub(super) struct Supplies {
    by_profile: BTreeMap<u32, Supply>,
    /// Cores of all executors, whatever their profile.
    pub(super) cores: Steps,
}

impl Supplies {
    pub(super) fn of(application: &Application, now: i64) -> Self {
        let executors = &application.executors;
        let start = application.start.map(Timestamp::as_millisecond);
        let has_executors =
            |profile: u32| executors.iter().any(|executor| executor.resource_profile_id == profile);
        let profiles: BTreeSet<u32> =
            application.stages.iter().map(|stage| stage.resource_profile_id).collect();
        let by_profile = profiles
            .into_iter()
            .map(|profile| {
                let own = has_executors(profile);
                let cpus = application.configuration.task_cpus(profile);
                let capacity = capacity(
                    executors
                        .iter()
                        .filter(|executor| !own || executor.resource_profile_id == profile),
                    start,
                    |cores| (f64::from(cores) / cpus + 1e-9).floor() * cpus,
                );
                let busy = busy(
                    application
                        .stages
                        .iter()
                        .filter(|stage| !own || stage.resource_profile_id == profile),
                    application,
                    now,
                );
                let idle = capacity.combine(&busy, |all, used| (all - used).max(0.0));
                (profile, Supply { capacity, idle })
            })
            .collect();
        Self { by_profile, cores: capacity(executors.iter(), start, f64::from) }
    }

    pub(super) fn of_stage(&self, stage: &Stage) -> Option<&Supply> {
        self.by_profile.get(&stage.resource_profile_id)
    }
}

fn capacity<'a>(
    executors: impl Iterator<Item = &'a Executor>,
    start: Option<i64>,
    usable: impl Fn(u32) -> f64,
) -> Steps {
    let mut changes = Vec::new();
    for executor in executors {
        let added = executor.added.map(Timestamp::as_millisecond).or(start);
        let Some(added) = added else { continue };
        let cores = usable(executor.cores);
        changes.push((added, cores));
        if let Some(removed) = executor.removed {
            changes.push((removed.as_millisecond().max(added), -cores));
        }
    }
    Steps::from_changes(changes)
}

fn busy<'a>(stages: impl Iterator<Item = &'a Stage>, application: &Application, now: i64) -> Steps {
    let mut changes = Vec::new();
    for stage in stages {
        let cpus = application.configuration.task_cpus(stage.resource_profile_id);
        // Running attempts are in no timeline.
        let running = stage.status == StageStatus::Active && stage.tasks.active > 0;
        match &stage.timeline {
            Some(timeline) if !running => {
                for task in timeline {
                    changes.push((task.launched_ms, cpus));
                    let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
                    changes.push((end, -cpus));
                }
            }
            _ => {
                if let Some((from, to)) = stage.running_span(application.observed) {
                    changes.push((from.as_millisecond(), ALL_CORES));
                    changes.push((to.as_millisecond().min(now), -ALL_CORES));
                }
            }
        }
    }
    Steps::from_changes(changes)
}
