//! `full_scan`: a partitioned table was read in full, though it is
//! partitioned so that queries need not.

use super::context::Context;
use super::draft::{Draft, Weight};
use super::file_scans::{self, FileScan};
use super::humane;
use super::{About, Confidence, FindingKind, Rule, Severity, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::FullScan,
    meaning: "All partitions of a partitioned table were read: no filter on its partition columns \
              reached the scan.",
    details: "*Fires* for each table with partitions of which a scan with empty
`PartitionFilters` read at least 10 GiB (`bytes`): what its tasks read, and no more than
the files that the scan was planned to read (a limit reads less).

*Sources*: DataFlint warns of any; 10 GiB is our judgement of what is worth a word.

*Cost*: not known, since nobody can tell which partitions the query needed: always
`info`, with low confidence, medium where it filters on other columns.

No recorded table has 10 GiB: tests lower the threshold for the run below, or write
larger sizes into its log.

*Silent* for tables without partitions, for filters on partition columns, for joins
that prune partitions while they run (dynamic partition pruning), and from REST.
",
    evidence: &[
        ("bytes", "that the largest of these scans read"),
        ("partitions", "read"),
        ("files", "read"),
        ("scans", "of this table without a filter on partitions"),
        ("filters_other_columns", "1 where the scan filters on columns that are no partitions"),
    ],
    fires: &[],
    near_misses: &["full_scan"],
    resists: &[(
        "full_scan",
        "the other three queries (a filter on the partition, a join that prunes, a table without \
         partitions) are no full scans, even at a threshold of one byte",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.full_scan.enabled {
        let tables = file_scans::by_table(context);
        drafts.extend(tables.iter().filter_map(|scans| judge(context, scans)));
    }
}

fn is_full(scan: &FileScan<'_>) -> bool {
    scan.partitions.is_some_and(|partitions| partitions > 0)
        && scan.node.node.metadata("PartitionFilters").map(str::trim) == Some("[]")
}

fn judge(context: &Context<'_>, scans: &[FileScan<'_>]) -> Option<Draft> {
    let threshold = context.thresholds.full_scan.bytes.bytes();
    let full: Vec<(&FileScan<'_>, u64)> = scans
        .iter()
        .filter(|scan| is_full(scan))
        .map(|scan| (scan, scan.bytes_read(context)))
        .filter(|(_, bytes)| *bytes >= threshold)
        .collect();
    let (worst, bytes) = full.iter().max_by_key(|(_, bytes)| *bytes)?;
    let partitions = worst.partitions?;
    let data_filters = worst.node.node.metadata("DataFilters").map(str::trim);
    let filters = data_filters.is_some_and(|filters| !filters.is_empty() && filters != "[]");
    let headline = format!(
        "{}: all {} of a table read ({}), without a filter on them{}",
        worst.node.name(),
        humane::count(partitions, "partition", "partitions"),
        humane::bytes(*bytes),
        match full.len() {
            1 => String::new(),
            n => format!(", {n} times"),
        },
    );
    let from = worst.node.name();
    Some(
        Draft::new(Rule::FullScan, FindingKind::Data, worst.node.subject(), headline)
            .weight(Weight::Exactly(Severity::Info))
            .confidence(if filters { Confidence::Medium } else { Confidence::Low })
            .evidence("bytes", *bytes as f64, Unit::Bytes, threshold as f64, &from)
            .evidence("partitions", partitions as f64, Unit::Count, None, &from)
            .evidence("files", worst.files as f64, Unit::Count, None, &from)
            .evidence("scans", full.len() as f64, Unit::Count, None, "SQL executions")
            .evidence(
                "filters_other_columns",
                f64::from(u8::from(filters)),
                Unit::Count,
                None,
                &from,
            )
            .advice_unless(
                "Filter on the partition columns as they are (a function around the column hides \
                 it), or join with a small filtered table, so that Spark prunes partitions",
                Where::Sql,
                "the query needs all partitions",
            )
            .advice_unless(
                "Partition or cluster the table by what queries filter on",
                Where::Data,
                "others filter on the columns it is partitioned by",
            ),
    )
}
