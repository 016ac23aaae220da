//! Series of executors: those with the most task time, living ones first.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::catalogue::Id;
use super::group::Group;
use super::label::Text;
use super::sample::Extra;
use super::snapshot::{Part, RunView};
use crate::config::Limits;
use crate::model::{Executor, State};

pub(super) fn groups(view: &RunView, run: &Arc<[Text]>, limits: &Limits) -> Part {
    let application = &view.application;
    let alive =
        |executor: &Executor| application.state == State::Running && executor.removed.is_none();
    let mut seen = HashSet::new();
    let mut executors: Vec<(Text, &Executor)> = application
        .executors
        .iter()
        .map(|executor| (Text::clean(&executor.id, limits.label_length), executor))
        .filter(|(id, _)| seen.insert(id.clone()))
        .collect();
    executors.sort_by_key(|(_, executor)| {
        (!alive(executor), Reverse(executor.totals.task_time), &executor.id)
    });
    let mut all = executors
        .into_iter()
        .map(|(id, executor)| group(id, executor, alive(executor), run, limits));
    let groups = all.by_ref().take(limits.executors_exported).collect();
    Part { groups, reason: "executors_limit", beyond: all.map(|group| group.len()).sum() }
}

fn group(id: Text, executor: &Executor, alive: bool, run: &[Text], limits: &Limits) -> Group {
    let mut group = Group::new(run.iter().cloned().chain([id]).collect());
    let host = Arc::new([Text::clean(&executor.host, limits.label_length)]);
    group.with(Id::ExecutorInfo, Extra::Many(host), true);
    group.add(Id::ExecutorAlive, alive);
    group.add(Id::ExecutorCores, executor.cores);
    let totals = &executor.totals;
    group.add_for(Id::ExecutorTasks, "active", totals.active_tasks);
    group.add_for(Id::ExecutorTasks, "succeeded", totals.succeeded_tasks);
    group.add_for(Id::ExecutorTasks, "failed", totals.failed_tasks);
    group.add(Id::ExecutorTaskTime, totals.task_time);
    group.add(Id::ExecutorGcTime, totals.gc_time);
    group.add(Id::ExecutorInput, totals.input_bytes);
    group.add(Id::ExecutorShuffleRead, totals.shuffle_read_bytes);
    group.add(Id::ExecutorShuffleWrite, totals.shuffle_write_bytes);
    group.add(Id::ExecutorStorageMemoryUsed, executor.storage_memory_used_bytes);
    group.add(Id::ExecutorStorageMemory, executor.storage_memory_bytes);
    group.add(Id::ExecutorPeakHeap, executor.peaks.heap);
    group
}
