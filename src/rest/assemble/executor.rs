//! `/allexecutors` into the model.

use super::ExecutorSummary;
use crate::model::{Executor, ExecutorTotals, MemoryPeaks};

/// The executors, ascending by id. The driver is one only where it has cores
/// for tasks, which is local mode.
pub fn executors(summaries: &[ExecutorSummary]) -> Vec<Executor> {
    let mut executors: Vec<Executor> = summaries
        .iter()
        .filter(|summary| summary.id.get() != "driver" || summary.total_cores.or_zero() > 0)
        .filter_map(executor)
        .collect();
    executors.sort_by_key(|executor| (executor.id.parse::<u64>().ok(), executor.id.clone()));
    executors
}

fn executor(summary: &ExecutorSummary) -> Option<Executor> {
    let id = summary.id.0.clone().filter(|id| !id.is_empty())?;
    let address = summary.host_port.get();
    Some(Executor {
        id,
        host: address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned(),
        cores: summary.total_cores.id().unwrap_or_default(),
        resource_profile_id: summary.resource_profile_id.id().unwrap_or_default(),
        added: summary.add_time.0,
        removed: summary.remove_time.0,
        removed_reason: summary.remove_reason.first_lines(),
        pod: None,
        totals: ExecutorTotals {
            active_tasks: summary.active_tasks.or_zero(),
            succeeded_tasks: summary.completed_tasks.or_zero(),
            failed_tasks: summary.failed_tasks.or_zero(),
            task_time: summary.total_duration.millis().unwrap_or_default(),
            gc_time: summary.total_gc_time.millis().unwrap_or_default(),
            input_bytes: summary.total_input_bytes.or_zero(),
            shuffle_read_bytes: summary.total_shuffle_read.or_zero(),
            shuffle_write_bytes: summary.total_shuffle_write.or_zero(),
        },
        storage_memory_used_bytes: summary.memory_used.get(),
        storage_memory_bytes: summary.max_memory.get().filter(|bytes| *bytes > 0),
        peaks: peaks(summary),
    })
}

fn peaks(summary: &ExecutorSummary) -> MemoryPeaks {
    let Some(peaks) = &summary.peak_memory_metrics else { return MemoryPeaks::default() };
    // 0 and -1: no sample was taken.
    let peak = |name| peaks.get(name)?.get().filter(|bytes| *bytes > 0);
    MemoryPeaks {
        heap: peak("JVMHeapMemory"),
        jvm_off_heap: peak("JVMOffHeapMemory"),
        on_heap_execution: peak("OnHeapExecutionMemory"),
        off_heap_execution: peak("OffHeapExecutionMemory"),
        on_heap_storage: peak("OnHeapStorageMemory"),
        off_heap_storage: peak("OffHeapStorageMemory"),
        on_heap_unified: peak("OnHeapUnifiedMemory"),
        off_heap_unified: peak("OffHeapUnifiedMemory"),
        direct: peak("DirectPoolMemory"),
        mapped: peak("MappedPoolMemory"),
        jvm_resident: peak("ProcessTreeJVMRSSMemory"),
        python_resident: peak("ProcessTreePythonRSSMemory"),
        other_resident: peak("ProcessTreeOtherRSSMemory"),
    }
}
