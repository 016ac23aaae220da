//! What the tasks of a stage most likely waited for, where their run time is
//! more than Spark's times explain. An inference: Spark has no time for disk,
//! network or Python.

use std::time::Duration;

use super::context::StageView;
use super::time_split::BlockedBy;

/// Slower than this no disk and no network is: with fewer bytes per second
/// that a task was blocked, bytes are not what it waited for.
const SLOWEST_BYTES_PER_SECOND: f64 = 256.0 * 1024.0;

/// Python first: its workers run beside the JVM, whatever the stage moves.
/// Else the most of bytes read, written, and spilled (written and read
/// again).
pub(super) fn by(view: &StageView<'_>) -> BlockedBy {
    let stage = view.stage;
    if stage.operations.iter().any(|name| is_python(name)) {
        return BlockedBy::Python;
    }
    let measures = &stage.measures;
    let spilled = measures.disk_spilled_bytes.sum_or_zero();
    let (bytes, likely) = [
        (measures.input_bytes.sum_or_zero(), BlockedBy::Input),
        (measures.output_bytes.sum_or_zero(), BlockedBy::Output),
        (spilled.saturating_mul(2), BlockedBy::Spill),
    ]
    .into_iter()
    .max_by_key(|(bytes, _)| *bytes)
    .unwrap_or((0, BlockedBy::Unknown));
    let explained = [
        measures.cpu_time.sum,
        measures.gc_time.sum,
        measures.fetch_wait_time.sum,
        measures.shuffle_write_time.sum,
    ];
    let run = view.run_time_sum().unwrap_or_default();
    let blocked = explained.into_iter().flatten().fold(run, Duration::saturating_sub);
    // A scan of cached blocks counts their bytes as input: memory, mostly.
    let from_memory = likely == BlockedBy::Input && stage.reads_cache == Some(true);
    let enough = bytes as f64 >= blocked.as_secs_f64() * SLOWEST_BYTES_PER_SECOND;
    if bytes > 0 && enough && !from_memory { likely } else { BlockedBy::Unknown }
}

/// Whether an operation (of a plan or of an RDD) runs Python: `BatchEvalPython`,
/// `ArrowEvalPython`, `MapInPandas`, `FlatMapGroupsInArrow`, `PythonRDD`.
pub(super) fn is_python(name: &str) -> bool {
    name.contains("Python") || name.contains("InPandas") || name.contains("InArrow")
}
