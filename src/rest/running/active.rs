//! The stages that run now, and which of them deserve a look at their tasks.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::{Stage, StageStatus};
use crate::rest::assemble;
use crate::rest::stages::KillReasons;
use crate::rest::task_list::TaskData;
use crate::rest::task_summary::TaskMetricDistributions;

/// A stage is looked at from this age on: before, no rule would speak.
const OLD_ENOUGH: Duration = Duration::from_secs(10);

/// Its running tasks are asked for as often as this ...
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// ... and its quantiles (and everything of a stage with very many tasks) as
/// often as this: for each answer Spark goes through all its tasks.
const SUMMARY_EVERY: Duration = Duration::from_mins(1);
const MANY_TASKS: u64 = 10_000;

/// An active attempt and what is known of its tasks.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) stage: Stage,
    pub(super) kills: KillReasons,
    pub(super) running: Vec<TaskData>,
    pub(super) summary: Option<TaskMetricDistributions>,
    pub(super) failed: Vec<TaskData>,
    /// Failed attempts when `failed` was read.
    failed_then: u64,
    looked: Option<Timestamp>,
    summarised: Option<Timestamp>,
}

impl Active {
    pub(super) fn new(mut stage: Stage, kills: KillReasons, now: Timestamp) -> Self {
        stage.last_progress = Some(now);
        Self {
            stage,
            kills,
            running: Vec::new(),
            summary: None,
            failed: Vec::new(),
            failed_then: 0,
            looked: None,
            summarised: None,
        }
    }

    /// The numbers of a later listing; what was read of its tasks stays.
    pub(super) fn update(&mut self, mut stage: Stage, kills: KillReasons, now: Timestamp) {
        let got_on = progress(&stage) != progress(&self.stage);
        stage.last_progress = if got_on { Some(now) } else { self.stage.last_progress };
        if stage.tasks.active == 0 {
            self.running.clear();
        }
        self.stage = stage;
        self.kills = kills;
    }

    /// Whether it looks as if something were wrong: it waits for its last few
    /// tasks, it spills to disk, or tasks failed.
    pub(super) fn looks_ill(&self, now: Timestamp) -> bool {
        let tasks = self.stage.tasks;
        let old_enough = self.stage.first_task_launched.is_some_and(|launched| {
            Duration::try_from(now.duration_since(launched)).unwrap_or_default() >= OLD_ENOUGH
        });
        let last_few = tasks.active > 0
            && tasks.succeeded > 0
            && tasks.succeeded * 2 >= tasks.total
            && tasks.active.saturating_add(tasks.succeeded) >= tasks.total;
        let spills = self.stage.measures.disk_spilled_bytes.sum_or_zero() > 0;
        self.stage.status == StageStatus::Active
            && old_enough
            && (last_few || spills || tasks.failed > 0)
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let every = if self.stage.tasks.total > MANY_TASKS { SUMMARY_EVERY } else { LOOK_EVERY };
        since(self.looked, now, every)
    }

    pub(super) fn summary_is_due(&self, now: Timestamp) -> bool {
        self.stage.tasks.succeeded > 0 && since(self.summarised, now, SUMMARY_EVERY)
    }

    pub(super) fn failures_are_due(&self) -> bool {
        self.stage.tasks.failed > self.failed_then
    }

    /// When it was looked at: who waited longest comes first.
    pub(super) fn looked(&self) -> Option<Timestamp> {
        self.looked
    }

    pub(super) fn mark_looked(&mut self, now: Timestamp) {
        self.looked = Some(now);
    }

    pub(super) fn mark_summarised(&mut self, now: Timestamp) {
        self.summarised = Some(now);
    }

    pub(super) fn mark_failures(&mut self) {
        self.failed_then = self.stage.tasks.failed;
    }

    /// The stage with all that is known of its tasks.
    pub(super) fn assembled(&self) -> Stage {
        let mut stage = self.stage.clone();
        if let Some(summary) = &self.summary {
            assemble::add_summary(&mut stage, summary);
        }
        if self.failed_then > 0 {
            assemble::add_failed(&mut stage, &self.failed, self.kills);
        }
        assemble::add_running(&mut stage, &self.running);
        stage
    }
}

/// What changes while a stage gets on: attempts that ended, and the rows and
/// bytes that running ones tell with their heartbeats. Not its times: those of
/// garbage collection grow whatever a task does.
fn progress(stage: &Stage) -> ([u64; 3], [Option<u64>; 10]) {
    let (tasks, measures) = (&stage.tasks, &stage.measures);
    let moved = [
        measures.input_bytes.sum,
        measures.input_records.sum,
        measures.output_bytes.sum,
        measures.output_records.sum,
        measures.shuffle_read_bytes.sum,
        measures.shuffle_read_records.sum,
        measures.shuffle_write_bytes.sum,
        measures.shuffle_write_records.sum,
        measures.memory_spilled_bytes.sum,
        measures.disk_spilled_bytes.sum,
    ];
    ([tasks.succeeded, tasks.failed, tasks.killed], moved)
}

/// Whether `every` has passed since then. A moment ahead of `now` (the clock
/// was set back) counts as long ago.
pub(super) fn since(then: Option<Timestamp>, now: Timestamp, every: Duration) -> bool {
    let Some(then) = then else { return true };
    // A poll may come a little early.
    let every = every.saturating_sub(Duration::from_secs(1));
    Duration::try_from(now.duration_since(then)).map_or(true, |elapsed| elapsed >= every)
}
