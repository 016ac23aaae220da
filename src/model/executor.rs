//! An executor: what was bought, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{MemoryPeaks, Pod};

/// One executor. `driver` appears only in local mode, where it runs tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    pub id: String,
    pub host: String,
    pub cores: u32,
    pub resource_profile_id: u32,
    pub added: Option<Timestamp>,
    pub removed: Option<Timestamp>,
    /// Spark's free text, up to 8 KiB: on Kubernetes the states of all
    /// containers of the pod stand below its first lines.
    pub removed_reason: Option<String>,
    /// How its pod ended, where Kubernetes told it.
    pub pod: Option<Arc<Pod>>,
    pub totals: ExecutorTotals,
    /// Storage memory in use now; REST only.
    pub storage_memory_used_bytes: Option<u64>,
    /// Storage memory that could be used (`maxMemory`).
    pub storage_memory_bytes: Option<u64>,
    pub peaks: MemoryPeaks,
}

/// What the tasks of one executor did in all.
///
/// `task_time` is the sum of task durations (not uptime), `gc_time` the sum
/// over tasks, so that concurrent tasks count the same pause several times:
/// only their ratio means something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecutorTotals {
    pub active_tasks: u64,
    pub succeeded_tasks: u64,
    pub failed_tasks: u64,
    pub task_time: Duration,
    pub gc_time: Duration,
    pub input_bytes: u64,
    pub shuffle_read_bytes: u64,
    pub shuffle_write_bytes: u64,
}
