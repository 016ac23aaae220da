//! Executors come and go; totals as Spark's `ExecutorSummary` defines them.

use std::collections::HashMap;
use std::time::Duration;

use super::checks::{Checks, name};
use super::measures::Measured;
use crate::eventlog::event::{BlockManagerAdded, ExecutorAdded, ExecutorRemoved, PeakMetrics};
use crate::eventlog::field::Number;
use crate::model::{Driver, Executor, MemoryPeaks};

/// More executors than any run has had; the rest of a log that has more is
/// not told apart.
const MOST_EXECUTORS: usize = 100_000;

/// An executor that is not known, in [`crate::model::TaskSpan::executor`].
pub(super) const UNKNOWN: u32 = u32::MAX;

const DRIVER: &str = "driver";

/// The most kept of a removal's reason. On Kubernetes the states of all
/// containers of the pod stand below its first lines, and only that of the
/// Spark container tells why the executor went.
const REASON_LENGTH: usize = 8_192;

fn reason(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(REASON_LENGTH).collect())
}

/// How one task attempt counts for its executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
    Killed,
    /// Counts as a failure; its numbers were counted when it succeeded.
    Resubmitted,
}

#[derive(Clone)]
struct Entry {
    executor: Executor,
    /// Tasks given to it so far.
    launched: u32,
}

#[derive(Clone, Default)]
pub(super) struct Executors {
    list: Vec<Entry>,
    index: HashMap<String, u32>,
    /// The driver's block manager is announced whether or not it runs tasks;
    /// it becomes an executor only in local mode.
    driver: Option<BlockManager>,
    /// The driver's memory, in local mode as well.
    driver_memory: Option<Driver>,
}

impl PeakMetrics {
    /// 0 and -1 say that Spark took no sample.
    fn peaks(&self) -> MemoryPeaks {
        let peak = |number: Number| number.count().filter(|bytes| *bytes > 0);
        MemoryPeaks {
            heap: peak(self.heap),
            jvm_off_heap: peak(self.jvm_off_heap),
            on_heap_execution: peak(self.on_heap_execution),
            off_heap_execution: peak(self.off_heap_execution),
            on_heap_storage: peak(self.on_heap_storage),
            off_heap_storage: peak(self.off_heap_storage),
            on_heap_unified: peak(self.on_heap_unified),
            off_heap_unified: peak(self.off_heap_unified),
            direct: peak(self.direct),
            mapped: peak(self.mapped),
            jvm_resident: peak(self.jvm_resident),
            python_resident: peak(self.python_resident),
            other_resident: peak(self.other_resident),
        }
    }
}

#[derive(Clone)]
struct BlockManager {
    added: Option<jiff::Timestamp>,
    memory: Option<u64>,
}

impl Executors {
    /// The place of an executor, made if it is new: its ExecutorAdded may be
    /// missing.
    pub(super) fn place(&mut self, id: Option<&str>, host: Option<&str>) -> u32 {
        let Some(id) = id else { return UNKNOWN };
        if let Some(place) = self.index.get(id) {
            return *place;
        }
        if self.list.len() >= MOST_EXECUTORS {
            return UNKNOWN;
        }
        let place = self.list.len() as u32;
        let driver = if id == DRIVER { self.driver.take() } else { None };
        self.index.insert(name(id), place);
        self.list.push(Entry {
            executor: Executor {
                id: name(id),
                host: name(host.unwrap_or_default()),
                cores: 0,
                resource_profile_id: 0,
                added: driver.as_ref().and_then(|driver| driver.added),
                removed: None,
                removed_reason: None,
                pod: None,
                totals: crate::model::ExecutorTotals::default(),
                storage_memory_used_bytes: None,
                storage_memory_bytes: driver.and_then(|driver| driver.memory),
                peaks: MemoryPeaks::default(),
            },
            launched: 0,
        });
        place
    }

    fn at(&mut self, place: u32) -> Option<&mut Entry> {
        self.list.get_mut(place as usize)
    }

    pub(super) fn get(&self, place: u32) -> Option<&Executor> {
        self.list.get(place as usize).map(|entry| &entry.executor)
    }

    pub(super) fn added(&mut self, event: &ExecutorAdded<'_>, checks: &mut Checks) {
        let time = checks.time(event.time);
        let place = self.place(event.id.get(), None);
        let Some(entry) = self.at(place) else { return };
        let executor = &mut entry.executor;
        if executor.removed.take().is_some() {
            // The id came back: another life of it.
            executor.removed_reason = None;
            executor.added = None;
        }
        // Whichever comes first of this and its block manager.
        executor.added = executor.added.or(time);
        if let Some(info) = &event.info {
            if let Some(host) = info.host.get() {
                executor.host = name(host);
            }
            executor.cores = info.cores.id().unwrap_or_default();
            executor.resource_profile_id = info.resource_profile_id.id().unwrap_or_default();
        }
    }

    pub(super) fn block_manager_added(
        &mut self,
        event: &BlockManagerAdded<'_>,
        checks: &mut Checks,
    ) {
        let time = checks.time(event.time);
        let memory = checks.count(event.memory).filter(|bytes| *bytes > 0);
        let Some(manager) = &event.manager else { return };
        let id = manager.executor_id.get();
        if id == Some(DRIVER) {
            let driver = self.driver_memory.get_or_insert_default();
            driver.host = manager.host.get().map(name);
            driver.storage_memory_bytes = memory;
        }
        if id == Some(DRIVER) && !self.index.contains_key(DRIVER) {
            self.driver = Some(BlockManager { added: time, memory });
            return;
        }
        let place = self.place(id, manager.host.get());
        let Some(entry) = self.at(place) else { return };
        entry.executor.added = entry.executor.added.or(time);
        entry.executor.storage_memory_bytes = memory.or(entry.executor.storage_memory_bytes);
    }

    pub(super) fn removed(&mut self, event: &ExecutorRemoved<'_>, checks: &mut Checks) {
        let time = checks.time(event.time);
        let Some(place) = event.id.get().and_then(|id| self.index.get(id).copied()) else {
            return;
        };
        let Some(entry) = self.at(place) else { return };
        entry.executor.removed = time;
        entry.executor.removed_reason = event.reason.get().and_then(reason);
        entry.executor.totals.active_tasks = 0;
    }

    pub(super) fn peaks(&mut self, place: u32, peaks: Option<&PeakMetrics>) {
        let Some(peaks) = peaks else { return };
        if let Some(entry) = self.at(place) {
            entry.executor.peaks.raise(&peaks.peaks());
        }
    }

    /// Peaks of an executor by its id, or of the driver.
    pub(super) fn peaks_of(&mut self, id: Option<&str>, peaks: Option<&PeakMetrics>) {
        let (Some(id), Some(metrics)) = (id, peaks) else { return };
        if id == DRIVER {
            self.driver_memory.get_or_insert_default().peaks.raise(&metrics.peaks());
        }
        let place = self.index.get(id).copied().unwrap_or(UNKNOWN);
        self.peaks(place, peaks);
    }

    /// The driver told its heap with a heartbeat.
    pub(super) fn driver_told(&mut self, id: Option<&str>, metrics: Option<&PeakMetrics>) {
        let heap = metrics.and_then(|metrics| metrics.heap.count()).filter(|bytes| *bytes > 0);
        if id == Some(DRIVER) && heap.is_some() {
            self.driver_memory.get_or_insert_default().last_heap = heap;
        }
    }

    /// What is known of the driver's memory.
    pub(super) fn driver(&self) -> Option<Driver> {
        self.driver_memory.clone()
    }

    /// A task was launched: its number among the executor's tasks.
    pub(super) fn launch(&mut self, place: u32) -> Option<u32> {
        let entry = self.at(place)?;
        let ordinal = entry.launched;
        entry.launched = entry.launched.saturating_add(1);
        if entry.executor.removed.is_none() {
            entry.executor.totals.active_tasks += 1;
        }
        Some(ordinal)
    }

    /// A task ended. What ends after its executor was removed is not added:
    /// Spark has put the executor away by then.
    pub(super) fn end(
        &mut self,
        place: u32,
        end: End,
        was_active: bool,
        duration: Duration,
        task: Option<&Measured>,
    ) {
        let Some(entry) = self.at(place) else { return };
        if entry.executor.removed.is_some() {
            return;
        }
        let totals = &mut entry.executor.totals;
        if was_active {
            totals.active_tasks = totals.active_tasks.saturating_sub(1);
        }
        match end {
            End::Succeeded => totals.succeeded_tasks += 1,
            End::Failed | End::Resubmitted => totals.failed_tasks += 1,
            End::Killed => {}
        }
        totals.task_time = totals.task_time.saturating_add(duration);
        if end == End::Resubmitted {
            return;
        }
        if let Some(task) = task {
            let add = |total: &mut u64, value: Option<u64>| {
                *total = total.saturating_add(value.unwrap_or_default());
            };
            totals.gc_time = totals.gc_time.saturating_add(task.gc_time.unwrap_or_default());
            add(&mut totals.input_bytes, task.input_bytes);
            add(&mut totals.shuffle_read_bytes, task.shuffle_read_bytes);
            add(&mut totals.shuffle_write_bytes, task.shuffle_write_bytes);
        }
    }

    /// The executors, ascending by id, and for each place where it went.
    pub(super) fn finish(self) -> (Vec<Executor>, Vec<u32>) {
        let mut numbered: Vec<(usize, Executor)> =
            self.list.into_iter().map(|entry| entry.executor).enumerate().collect();
        numbered.sort_by_cached_key(|(_, executor)| {
            (executor.id.parse::<u64>().ok(), executor.id.clone())
        });
        let mut places = vec![UNKNOWN; numbered.len()];
        for (new, (old, _)) in numbered.iter().enumerate() {
            places[*old] = new as u32;
        }
        (numbered.into_iter().map(|(_, executor)| executor).collect(), places)
    }
}
