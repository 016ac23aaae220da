//! `small_files_read`: a scan spends its time on opening files.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::{Context, StageView, ratio, seconds};
use super::draft::{Draft, Weight};
use super::file_scans::{self, FileScan};
use super::humane;
use super::less_work;
use super::{About, Confidence, FindingKind, Rule, Severity, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::SmallFilesRead,
    meaning: "A table lies in so many small files that reading it is opening files.",
    details: "*Fires* for each table, over its scans that read

    more than 100 files          (files)
    of less than 3 MiB on average (file_bytes)

and that would save something in larger ones. Files and their size are those that
the scan was planned to read.

*Sources*: DataFlint and SparkForensics, both numbers.

*Cost*: Spark itself plans with opening a file costing as much as reading 4 MiB of it
(`spark.sql.files.openCostInBytes`). By that, of the time of a scan

    (files - files of 128 MiB) x open cost / (files x open cost + bytes)

would be saved. The time of a scan is what its tasks measured where it is columnar
(Parquet, ORC); of other formats only the time in which the stage's tasks neither
computed nor collected garbage nor waited for a shuffle. An estimate.

*Silent* where a cache had the rows, for files that cost too little to matter, and
from REST. The scan is named by its format; table and path are text of users.
",
    evidence: &[
        ("files", "read by the largest of these scans"),
        ("file_bytes", "on average"),
        ("scans", "of this table, with so many files"),
        ("scan_time", "of all tasks: measured, or what was left of their run time"),
        ("time_per_file", "of one core"),
        ("listing_time", "on the driver, over these scans"),
    ],
    fires: &["small_files"],
    near_misses: &["small_files-few"],
    resists: &[],
};

/// Files of this size cost little to open.
const GOOD_FILE: u64 = 128 << 20;

/// Spark's default of `spark.sql.files.openCostInBytes`.
const OPEN_COST: u64 = 4 << 20;

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    let thresholds = &context.thresholds.small_files_read;
    if !thresholds.enabled {
        return;
    }
    for scans in file_scans::by_table(context) {
        let small: Vec<FileScan<'_>> = scans
            .into_iter()
            .filter(|scan| {
                scan.files > thresholds.files
                    && scan.bytes / scan.files < thresholds.file_bytes.bytes()
            })
            .collect();
        drafts.extend(judge(context, &small));
    }
}

fn judge(context: &Context<'_>, scans: &[FileScan<'_>]) -> Option<Draft> {
    let thresholds = &context.thresholds.small_files_read;
    let worst = scans.iter().max_by_key(|scan| scan.files)?;
    let mut less: BTreeMap<usize, f64> = BTreeMap::new();
    let mut whole = Duration::ZERO;
    for scan in scans {
        for place in &scan.stages {
            let Some(view) = context.stages.get(*place) else { continue };
            let (Some(run), Some(time)) = (view.run_time_sum(), scan_time(scan, view)) else {
                continue;
            };
            whole = whole.saturating_add(time);
            let share = ratio(time, run).unwrap_or(0.0) * opening(context, scan);
            *less.entry(*place).or_default() += share;
        }
    }
    let (impact, shares) = less_work::saving(context, less);
    let average = worst.bytes / worst.files;
    let headline = format!(
        "{}: {} of {} on average{}",
        worst.node.name(),
        humane::count(worst.files, "file", "files"),
        humane::bytes(average),
        match scans.len() {
            1 => String::new(),
            n => format!(", scanned {n} times"),
        },
    );
    let from = worst.node.name();
    let all_files = scans.iter().fold(0_u64, |sum, scan| sum.saturating_add(scan.files));
    let listing = scans
        .iter()
        .filter_map(|scan| scan.listing_time)
        .fold(Duration::ZERO, Duration::saturating_add);
    let draft = Draft::new(Rule::SmallFilesRead, FindingKind::Data, worst.node.subject(), headline)
        .weight(Weight::Saving { at_most: Severity::Warning })
        .confidence(if worst.scan_time.is_some() { Confidence::High } else { Confidence::Medium })
        .evidence("files", worst.files as f64, Unit::Count, thresholds.files as f64, &from)
        .evidence(
            "file_bytes",
            average as f64,
            Unit::Bytes,
            thresholds.file_bytes.bytes() as f64,
            &from,
        )
        .evidence("scans", scans.len() as f64, Unit::Count, None, "SQL executions")
        .evidence("scan_time", whole.as_secs_f64(), Unit::Seconds, None, &from)
        .evidence(
            "time_per_file",
            whole.as_secs_f64() / all_files.max(1) as f64,
            Unit::Seconds,
            None,
            &from,
        )
        .evidence("listing_time", listing.as_secs_f64(), Unit::Seconds, None, &from)
        .impact(impact, shares);
    Some(
        draft
            .advice_unless(
                format!(
                    "Compact the table into {} of about 128 MiB (OPTIMIZE, rewrite_data_files, or \
                     read it, repartition and write it once)",
                    humane::count(worst.bytes.div_ceil(GOOD_FILE), "file", "files"),
                ),
                Where::Data,
                "it is read only this once: compacting opens each file as well",
            )
            .advice_unless(
                "Let whoever writes the table write fewer files: repartition before the write, \
                 fewer and larger batches of a stream",
                Where::Data,
                "somebody else's program writes it",
            ),
    )
}

/// Share of a scan's time that goes into opening more files than are needed.
fn opening(context: &Context<'_>, scan: &FileScan<'_>) -> f64 {
    let key = "spark.sql.files.openCostInBytes";
    let cost = file_scans::size_setting(context, scan.execution, key).unwrap_or(OPEN_COST) as f64;
    let needed = scan.bytes.div_ceil(GOOD_FILE);
    let spared = scan.files.saturating_sub(needed) as f64 * cost;
    let whole = scan.files as f64 * cost + scan.bytes as f64;
    if whole > 0.0 { spared / whole } else { 0.0 }
}

/// What the scan took of the stage's task time.
fn scan_time(scan: &FileScan<'_>, view: &StageView<'_>) -> Option<Duration> {
    let measures = &view.stage.measures;
    let run = view.run_time_sum()?;
    if let Some(measured) = scan.scan_time {
        // Over several stages, by what each of them ran.
        return Some(seconds(measured.as_secs_f64() / scan.stages.len().max(1) as f64).min(run));
    }
    let busy = [
        measures.cpu_time.sum,
        measures.gc_time.sum,
        measures.fetch_wait_time.sum,
        measures.shuffle_write_time.sum,
    ];
    Some(busy.into_iter().flatten().fold(run, Duration::saturating_sub))
}
