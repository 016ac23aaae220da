//! How much memory an executor is given, as Spark works it out: what rules
//! hold peaks against, and what is paid for.

use crate::model::{Application, Executor, ResourceProfile};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// The least overhead of a container where nothing else is said.
const LEAST_OVERHEAD: u64 = 384 * MIB;

fn profile<'a>(application: &'a Application, executor: &Executor) -> Option<&'a ResourceProfile> {
    let profiles = &application.configuration.resource_profiles;
    profiles.iter().find(|profile| profile.id == executor.resource_profile_id)
}

/// Heap of an executor in bytes, as its resource profile or the configuration
/// has it; 1 GiB is Spark's default.
pub(super) fn heap(application: &Application, executor: &Executor) -> u64 {
    profile(application, executor)
        .and_then(|profile| profile.executor_memory_bytes)
        .or_else(|| application.configuration.bytes("spark.executor.memory", MIB))
        .unwrap_or(GIB)
}

/// Off-heap memory that Spark manages, in bytes.
fn off_heap(application: &Application, executor: &Executor) -> u64 {
    let configuration = &application.configuration;
    profile(application, executor)
        .and_then(|profile| profile.executor_off_heap_bytes)
        .or_else(|| {
            let on = configuration.flag("spark.memory.offHeap.enabled", false);
            configuration.bytes("spark.memory.offHeap.size", 1).filter(|_| on)
        })
        .unwrap_or_default()
}

/// What an executor's container may take on YARN or Kubernetes, in bytes:
/// heap, overhead, off-heap and Python memory (Spark's
/// `ResourceProfile.getResourcesForClusterManager`). A resource manager may
/// round it up.
pub(super) fn container(application: &Application, executor: &Executor) -> u64 {
    let configuration = &application.configuration;
    let profile = profile(application, executor);
    let heap = heap(application, executor);
    let factor = configuration
        .get("spark.executor.memoryOverheadFactor")
        .or_else(|| configuration.get("spark.kubernetes.memoryOverheadFactor"))
        .and_then(|text| text.trim().parse::<f64>().ok())
        .unwrap_or(match configuration.get("spark.kubernetes.resource.type") {
            // What Spark on Kubernetes gives to programs in other languages.
            Some("python" | "r") => 0.4,
            _ => 0.1,
        });
    let overhead = profile
        .and_then(|profile| profile.executor_overhead_bytes)
        .or_else(|| configuration.bytes("spark.executor.memoryOverhead", MIB))
        .unwrap_or_else(|| {
            let least = configuration.bytes("spark.executor.minMemoryOverhead", MIB);
            ((heap as f64 * factor) as u64).max(least.unwrap_or(LEAST_OVERHEAD))
        });
    let python = profile
        .and_then(|profile| profile.executor_python_memory_bytes)
        .or_else(|| configuration.bytes("spark.executor.pyspark.memory", MIB))
        .unwrap_or_default();
    heap.saturating_add(overhead)
        .saturating_add(off_heap(application, executor))
        .saturating_add(python)
}

/// What is reserved for an executor, in bytes: its container where there is
/// one; elsewhere nothing reserves more than heap and off-heap memory, and in
/// local mode the driver's are the executor's. `None` where the configuration
/// is not known.
pub(super) fn reserved(application: &Application, executor: &Executor) -> Option<u64> {
    let configuration = &application.configuration;
    let told =
        profile(application, executor).is_some_and(|one| one.executor_memory_bytes.is_some());
    if configuration.is_empty() && !told {
        return None;
    }
    let master = configuration.get("spark.master").unwrap_or_default();
    Some(if application.local_mode() {
        let heap = configuration.bytes("spark.driver.memory", MIB).unwrap_or(GIB);
        heap.saturating_add(off_heap(application, executor))
    } else if master.starts_with("yarn") || master.starts_with("k8s") {
        container(application, executor)
    } else {
        heap(application, executor).saturating_add(off_heap(application, executor))
    })
}
