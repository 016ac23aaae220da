//! Whether a task read more of a file than a split may hold: then the file
//! could not be split, and no setting of Spark's makes more tasks of it.

use super::context::{Context, StageView};
use super::draft::Draft;
use super::file_scans;
use super::slow::Slow;
use super::{Unit, Where, humane};

/// Spark's default of `spark.sql.files.maxPartitionBytes`.
const SPLIT: u64 = 128 << 20;

/// A task of a scan, what it read of files and what a split holds at most.
/// `None`: it read no more than that, or the stage scans no files.
fn of(context: &Context<'_>, view: &StageView<'_>, slow: &Slow<'_>) -> Option<(u64, u64)> {
    let scans = |name: &String| name.starts_with("Scan ") || name.starts_with("FileScan ");
    if !view.stage.operations.iter().any(scans) {
        return None;
    }
    let key = "spark.sql.files.maxPartitionBytes";
    let execution =
        context.executions.iter().position(|execution| execution.stages.contains(&view.index));
    let split = file_scans::size_setting(context, execution.unwrap_or(usize::MAX), key);
    let split = split.unwrap_or(SPLIT);
    let read = slow.task.metrics.input_bytes;
    // Readers go a little beyond the end of a split.
    (read > split.saturating_add(split / 4)).then_some((read, split))
}

/// The evidence, and the advice that follows, where it is so.
pub(super) fn said(
    draft: Draft,
    context: &Context<'_>,
    view: &StageView<'_>,
    slow: &Slow<'_>,
) -> Draft {
    let Some((read, split)) = of(context, view, slow) else { return draft };
    draft
        .evidence(
            "split_bytes",
            split as f64,
            Unit::Bytes,
            None,
            "spark.sql.files.maxPartitionBytes",
        )
        .advice_unless(
            format!(
                "Write that file in a form that can be split, or as several files: one task read \
                 {} of it where a split holds {}, so it was not split (gzip, multi-line text, or \
                 one large row group)",
                humane::bytes(read),
                humane::bytes(split),
            ),
            Where::Data,
            "another team writes the files: then repartition right after the read",
        )
}
