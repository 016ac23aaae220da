//! `small_files_written`: a command left many small files behind, which
//! everybody who reads the table pays for.

use std::collections::BTreeSet;

use super::context::Context;
use super::draft::{Draft, Weight};
use super::executions::NodeRef;
use super::humane;
use super::{About, Confidence, FindingKind, Rule, Severity, Unit, Where};
use crate::model::MetricKind;

pub(super) const ABOUT: About = About {
    rule: Rule::SmallFilesWritten,
    meaning: "A command wrote many small files. It costs those who read the table: each file is \
              listed, opened and planned for.",
    details: "*Fires* on a write whose node tells of

    more than 100 files           (files)
    of less than 3 MiB on average (file_bytes)

*Sources*: DataFlint, both numbers. `info`; `warning` from 1,000 files
(`warning_files`), our judgement.

*Cost*: none in this run that Spark measures, apart from commits, which are evidence.

*Silent* for writers that count no files (data sources of version 2, as most table
formats are) and from REST.
",
    evidence: &[
        ("files", "written by the command"),
        ("file_bytes", "on average"),
        ("partitions", "of the table that were written; absent where it has none"),
        ("task_commit_time", "of all tasks"),
        ("job_commit_time", "on the driver"),
    ],
    fires: &["small_files"],
    near_misses: &["small_files-few"],
    resists: &[],
};

const FILES: &str = "number of written files";

/// What a file should hold.
const GOOD_FILE: u64 = 128 << 20;

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.small_files_written.enabled {
        return;
    }
    // A command and the query that it runs as another execution may both show
    // what was written.
    let mut seen = BTreeSet::new();
    let nodes = context.executions.iter().flat_map(super::ExecutionView::nodes);
    let writers = nodes
        .filter(|node| node.node.metric(FILES).is_some_and(|files| seen.insert(files.accumulator)));
    drafts.extend(writers.filter_map(|node| judge(context, node)));
}

fn judge(context: &Context<'_>, node: NodeRef<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.small_files_written;
    let told = |name: &str| Some(node.node.value(name)?.total);
    let files = told(FILES)?;
    // The second is what releases before 3.3 call it.
    let bytes = told("written output").or_else(|| told("bytes of written output"))?;
    let average = bytes.checked_div(files)?;
    if files <= thresholds.files || average >= thresholds.file_bytes.bytes() {
        return None;
    }
    let partitions = told("number of dynamic part").filter(|partitions| *partitions > 0);
    let severity =
        if files >= thresholds.warning_files { Severity::Warning } else { Severity::Info };
    let headline = format!(
        "{}: {} written, of {} on average{}",
        node.name(),
        humane::count(files, "file", "files"),
        humane::bytes(average),
        partitions.map_or_else(String::new, |partitions| format!(
            ", into {}",
            humane::count(partitions, "partition", "partitions")
        )),
    );
    let from = node.name();
    let mut draft =
        Draft::new(Rule::SmallFilesWritten, FindingKind::Data, node.subject(), headline)
            .weight(Weight::Exactly(severity))
            .confidence(Confidence::Medium)
            .evidence("files", files as f64, Unit::Count, thresholds.files as f64, &from)
            .evidence(
                "file_bytes",
                average as f64,
                Unit::Bytes,
                thresholds.file_bytes.bytes() as f64,
                &from,
            );
    if let Some(partitions) = partitions {
        draft = draft.evidence("partitions", partitions as f64, Unit::Count, None, &from);
    }
    for (evidence, metric) in
        [("task_commit_time", "task commit time"), ("job_commit_time", "job commit time")]
    {
        let metric = node.node.metric(metric).filter(|it| it.kind == MetricKind::Nanoseconds);
        if let Some(value) = metric.and_then(|metric| metric.value.as_deref()) {
            let time = value.total as f64 / 1e9;
            draft = draft.evidence(evidence, time, Unit::Seconds, None, &from);
        }
    }
    Some(advise(draft, files, bytes, partitions))
}

fn advise(draft: Draft, files: u64, bytes: u64, partitions: Option<u64>) -> Draft {
    let needed = bytes.div_ceil(GOOD_FILE).max(1);
    match partitions {
        // Several tasks write into each partition.
        Some(partitions) if files >= 2 * partitions => draft
            .advice_unless(
                format!(
                    "Repartition by the partition columns before the write: then one task writes \
                     a partition, and {} become about {}",
                    humane::count(files, "file", "files"),
                    humane::number(partitions),
                ),
                Where::Sql,
                "one partition holds most of the rows: its task would be the last",
            )
            .advice(
                "Check spark.sql.files.maxRecordsPerFile: a low limit makes many files of one task",
                Where::Conf,
            ),
        Some(partitions) => draft.advice_unless(
            format!(
                "Partition the table by fewer or coarser columns: {} hold {} in all",
                humane::count(partitions, "partition", "partitions"),
                humane::bytes(bytes),
            ),
            Where::Data,
            "each run adds to the same partitions: then compact them from time to time",
        ),
        None => draft
            .advice_unless(
                format!(
                    "Write with fewer tasks: coalesce or repartition to {} before the write (or \
                     let adaptive execution coalesce), {} at 128 MiB each",
                    humane::number(needed),
                    humane::bytes(bytes),
                ),
                Where::Sql,
                "what is computed before needs the tasks: then repartition, not coalesce",
            )
            .advice(
                "Check maxRecordsPerFile (option of the writer, or \
                 spark.sql.files.maxRecordsPerFile): a low limit makes many files of one task",
                Where::Conf,
            ),
    }
}
