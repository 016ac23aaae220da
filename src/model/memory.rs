//! The most memory that an executor or the driver was seen to use.
//!
//! Spark samples it with heartbeats (every 10 s by default), so short peaks
//! are missed, and takes no sample at all of what is shorter. It then says 0
//! or -1, which is no value here.

/// Peaks in bytes, each over the whole life and each at its own moment: they
/// do not add up to the memory used at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryPeaks {
    /// `JVMHeapMemory`: heap in use.
    pub heap: Option<u64>,
    /// `JVMOffHeapMemory`: metaspace, code cache and the like; not the off
    /// heap of `spark.memory.offHeap`.
    pub jvm_off_heap: Option<u64>,
    pub on_heap_execution: Option<u64>,
    pub off_heap_execution: Option<u64>,
    pub on_heap_storage: Option<u64>,
    pub off_heap_storage: Option<u64>,
    /// Execution and storage at one moment.
    pub on_heap_unified: Option<u64>,
    pub off_heap_unified: Option<u64>,
    /// Direct buffers of the JVM.
    pub direct: Option<u64>,
    pub mapped: Option<u64>,
    /// Resident memory of the JVM, of the Python workers and of other child
    /// processes: only with `spark.executor.processTreeMetrics.enabled`.
    pub jvm_resident: Option<u64>,
    pub python_resident: Option<u64>,
    pub other_resident: Option<u64>,
}

impl MemoryPeaks {
    /// The larger of two, part by part.
    pub fn raise(&mut self, other: &Self) {
        let parts: [(&mut Option<u64>, Option<u64>); 13] = [
            (&mut self.heap, other.heap),
            (&mut self.jvm_off_heap, other.jvm_off_heap),
            (&mut self.on_heap_execution, other.on_heap_execution),
            (&mut self.off_heap_execution, other.off_heap_execution),
            (&mut self.on_heap_storage, other.on_heap_storage),
            (&mut self.off_heap_storage, other.off_heap_storage),
            (&mut self.on_heap_unified, other.on_heap_unified),
            (&mut self.off_heap_unified, other.off_heap_unified),
            (&mut self.direct, other.direct),
            (&mut self.mapped, other.mapped),
            (&mut self.jvm_resident, other.jvm_resident),
            (&mut self.python_resident, other.python_resident),
            (&mut self.other_resident, other.other_resident),
        ];
        for (part, value) in parts {
            *part = (*part).max(value);
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The driver's process, whether or not it runs tasks (in local mode it is an
/// executor besides).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    pub host: Option<String>,
    /// Storage memory that could be used (`maxMemory` of its block manager).
    pub storage_memory_bytes: Option<u64>,
    /// In logs only with `spark.eventLog.logStageExecutorMetrics`.
    pub peaks: MemoryPeaks,
    /// Heap in use when it last told: logs with that setting only.
    pub last_heap: Option<u64>,
}
