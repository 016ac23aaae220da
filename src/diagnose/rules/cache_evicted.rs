//! `cache_evicted`: a cached table lost part of itself, and each reading
//! computed that part again.
//!
//! The nodes below the scan of a cached table count whenever its rows are
//! computed, and every execution that reads the table shows the same
//! accumulators. Of an execution only what its own tasks told counts here, so
//! that what the first reading computed is not added up once for each that
//! shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, StageView, ratio};
use super::draft::{Draft, Weight};
use super::executions::NodeRef;
use super::humane;
use super::less_work;
use super::{About, Confidence, FindingKind, Rule, Severity, Subject, Unit, Where};
use crate::model::{CachedRdd, StageStatus};

pub(super) const ABOUT: About = About {
    rule: Rule::CacheEvicted,
    meaning: "A cached table did not stay in the cache: readings computed rows again that had \
              been computed before.",
    details: "*Fires* where, over all readings of a cached table,

    (rows of the table + rows computed again) / rows of the table >= 1.5   (ratio)

Rows computed are those of the first node below the table's scan that counts
rows, of each execution those that its own tasks told of. The table is filled when
an execution has ended by which all rows have been computed; only what executions
compute that began afterwards was computed again, so that two scans that fill the
table at the same time are no loss. Rows of the table are the most that a scan of
it gave, or, where that is less than half of what one execution computed for a scan
(filters skip batches), the latter.

From REST: of a table that was filled (a stage over it with as many tasks as it has
partitions has completed, and another one after it), cached partitions are at most
1 / 1.5 of all; `info` there.

*Source*: our judgement; SparkForensics warns of fewer than half of the partitions.

*Cost*: for each stage that computed rows again, those rows x the time a row took
when the table was filled, and at most their share of the table's rows of the
stage's run time: an estimate.

*Silent* for partitions that went to disk and are read from there (`cache()` of a
DataFrame does that), for tables that no execution reads as a whole, and where the
node that counts rows stands below a shuffle (its output is kept, and only the part
above is computed again).
",
    evidence: &[
        ("computed_ratio", "rows of the table and those computed again, over rows of the table"),
        ("rows", "rows of the table"),
        ("rows_computed_again", "by executions that began after the table was filled"),
        ("readings", "executions that computed rows again"),
        ("executors_removed", "between the filling and the last reading: they took what they held"),
        ("cached_partitions", "from REST: partitions that are cached"),
        ("partitions", "from REST: partitions of the table"),
    ],
    fires: &["cache_evicted"],
    near_misses: &["cache_evicted-few"],
    resists: &[
        ("cache_evicted-disk", "partitions that went to disk are not taken for lost ones"),
        ("cached", "batches that Spark counts as records are not taken for rows"),
    ],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.cache_evicted.enabled || !context.tasks_are_complete() {
        return;
    }
    for readings in tables(context).into_values() {
        drafts.extend(judge(context, readings));
    }
    drafts.extend(of_storage(context));
}

/// One execution's reading of a cached table.
struct Reading<'a> {
    scan: NodeRef<'a>,
    /// Scans of the table in this execution.
    scans: u64,
    /// The most that one of them gave.
    given: u64,
    /// Rows that its own tasks computed below.
    computed: u64,
    /// Stages of these tasks, by their place in `Context::stages`.
    stages: Vec<usize>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

/// Readings by the accumulator of the rows below the scan, which all readings
/// of a table share.
fn tables<'a>(context: &Context<'a>) -> BTreeMap<u64, Vec<Reading<'a>>> {
    let mut tables: BTreeMap<u64, Vec<Reading<'a>>> = BTreeMap::new();
    for execution in &context.executions {
        for scan in execution.nodes() {
            if !scan.node.reads_cache() {
                continue;
            }
            let Some(below) = scan.children().find_map(counts_rows) else { continue };
            let Some(rows) = below.node.metric(ROWS) else { continue };
            let given = scan.node.value(ROWS).map_or(0, |value| value.total);
            let readings = tables.entry(rows.accumulator).or_default();
            if let Some(known) =
                readings.last_mut().filter(|known| known.scan.sql_id == scan.sql_id)
            {
                known.scans += 1;
                known.given = known.given.max(given);
                continue;
            }
            let stages =
                if below.node.stages.is_empty() { Vec::new() } else { execution.stages_of(below) };
            readings.push(Reading {
                scan,
                scans: 1,
                given,
                computed: rows.value.as_deref().map_or(0, |value| value.total),
                stages,
                start: execution.execution.start,
                end: execution.execution.end,
            });
        }
    }
    tables
}

const ROWS: &str = "number of output rows";

/// Nodes that pass each row on and count none.
const PASS_ROWS_ON: [&str; 8] = [
    "WholeStageCodegen",
    "InputAdapter",
    "Project",
    "AdaptiveSparkPlan",
    "ResultQueryStage",
    "ColumnarToRow",
    "Sort",
    "SerializeFromObject",
];

/// The node, or the first one below it, that counts the rows that come out.
fn counts_rows(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let mut node = node;
    loop {
        if node.node.metric(ROWS).is_some() {
            return Some(node);
        }
        let mut children = node.children();
        let passes = PASS_ROWS_ON.iter().any(|name| node.node.name.starts_with(name));
        node = match (passes, children.next(), children.next()) {
            (true, Some(only), None) => only,
            _ => return None,
        };
    }
}

fn judge(context: &Context<'_>, mut readings: Vec<Reading<'_>>) -> Option<Draft> {
    readings.sort_by_key(|reading| reading.start);
    let given = readings.iter().map(|reading| reading.given).max().unwrap_or(0);
    let computed = |reading: &Reading<'_>| reading.computed / reading.scans.max(1);
    let most_computed = readings.iter().map(computed).max().unwrap_or(0);
    // A filter skips batches: then what is computed tells how many there are.
    // It may be more than all, where the execution that fills the table loses
    // part of it before it reads it.
    let rows = if given >= most_computed / 2 { given } else { most_computed };
    if rows == 0 {
        return None;
    }
    let mut computed = 0_u64;
    let filled = readings.iter().position(|reading| {
        computed = computed.saturating_add(reading.computed);
        // A hundredth may have been wasted by attempts that were lost.
        computed >= rows - rows / 100
    })?;
    let (filling, later) = readings.split_at(filled + 1);
    let filled_at = filling.iter().map(|reading| reading.end).max()??;
    let again: Vec<&Reading<'_>> = later
        .iter()
        .filter(|reading| reading.computed > 0 && reading.start.is_some_and(|at| at >= filled_at))
        .collect();
    let rows_again = again.iter().fold(0_u64, |sum, reading| sum.saturating_add(reading.computed));
    let computed_ratio = 1.0 + rows_again as f64 / rows as f64;
    let threshold = context.thresholds.cache_evicted.ratio;
    if again.is_empty() || computed_ratio < threshold {
        return None;
    }
    let worst = again.iter().max_by_key(|reading| reading.computed)?;
    let removed = context
        .application
        .executors
        .iter()
        .filter_map(|executor| executor.removed)
        .filter(|at| *at >= filled_at && again.iter().any(|reading| reading.start > Some(*at)))
        .count();
    let of_filling_rows = filling.iter().map(|reading| reading.computed).sum::<u64>();
    let per_row = run_time(context, filling).as_secs_f64() / of_filling_rows.max(1) as f64;
    let shares = again.iter().flat_map(|reading| {
        let run = run_time(context, [*reading]).as_secs_f64();
        // What was read from the cache took its part of the run time as well.
        let share = (reading.computed as f64 * per_row / run)
            .min(reading.computed as f64 / rows as f64)
            .min(1.0);
        reading.stages.iter().map(move |place| (*place, share))
    });
    // A stage that computed for two scans counts once.
    let shares: BTreeMap<usize, f64> = shares.collect();
    let (impact, shares) = less_work::saving(context, shares);
    let headline = format!(
        "{}: of a cached table of {}, {} computed again by {} after it had been filled",
        worst.scan.name(),
        humane::count(rows, "row", "rows"),
        humane::count(rows_again, "was", "were"),
        humane::count(again.len() as u64, "reading", "readings"),
    );
    let from = worst.scan.name();
    let mut draft =
        Draft::new(Rule::CacheEvicted, FindingKind::Resources, worst.scan.subject(), headline)
            .weight(Weight::Saving { at_most: Severity::Warning })
            .evidence("computed_ratio", computed_ratio, Unit::Ratio, threshold, &from)
            .evidence("rows", rows as f64, Unit::Count, None, &from)
            .evidence(
                "rows_computed_again",
                rows_again as f64,
                Unit::Count,
                None,
                "nodes below the scan",
            )
            .evidence("readings", again.len() as f64, Unit::Count, None, "SQL executions")
            .impact(impact, shares);
    if removed > 0 {
        draft = draft
            .evidence("executors_removed", removed as f64, Unit::Count, None, "executors")
            .advice_unless(
                "Keep the executors that hold cached partitions: \
                 spark.dynamicAllocation.cachedExecutorIdleTimeout is how long they may be idle",
                Where::Conf,
                "they were lost, not given back: see executor_lost",
            );
    }
    Some(advise(draft))
}

fn run_time<'a, 'b: 'a>(
    context: &Context<'_>,
    readings: impl IntoIterator<Item = &'a Reading<'b>>,
) -> Duration {
    let stages: BTreeSet<usize> =
        readings.into_iter().flat_map(|reading| reading.stages.iter().copied()).collect();
    stages
        .iter()
        .filter_map(|place| context.stages.get(*place)?.run_time_sum())
        .fold(Duration::ZERO, Duration::saturating_add)
}

fn advise(draft: Draft) -> Draft {
    draft
        .advice_unless(
            "Persist with MEMORY_AND_DISK (the default of DataFrame.cache()): what finds no room \
             is then read from local disk instead of being computed again",
            Where::Sql,
            "computing a row is cheaper than reading it",
        )
        .advice_unless(
            "Cache less: select the columns and filter the rows that are read again before \
             cache(), and unpersist what is done with",
            Where::Sql,
            "all of it is needed",
        )
        .advice_unless(
            "Give storage more room: more or larger executors (spark.executor.memory), a higher \
             spark.memory.storageFraction",
            Where::Resources,
            "execution needs the memory: then it spills instead",
        )
}

/// What REST shows of storage: no rows, no costs.
fn of_storage(context: &Context<'_>) -> Option<Draft> {
    let threshold = context.thresholds.cache_evicted.ratio;
    let kept = |table: &CachedRdd| ratio(table.partitions, table.cached_partitions.max(1));
    let (table, lost) = context
        .application
        .cached
        .iter()
        .filter(|table| {
            table.partitions > table.cached_partitions && readings_of(context, table) >= 2
        })
        .filter_map(|table| Some((table, kept(table)?)))
        .filter(|(_, lost)| *lost >= threshold)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let headline = format!(
        "A cached table (RDD {}) holds {} of its {} after it was filled: each reading computes \
         the others again",
        table.id,
        humane::number(table.cached_partitions),
        humane::count(table.partitions, "partition", "partitions"),
    );
    let from = format!("RDD {}", table.id);
    let draft =
        Draft::new(Rule::CacheEvicted, FindingKind::Resources, Subject::Application, headline)
            .weight(Weight::Exactly(Severity::Info))
            .confidence(Confidence::Low)
            .evidence("computed_ratio", lost, Unit::Ratio, threshold, &from)
            .evidence("cached_partitions", table.cached_partitions as f64, Unit::Count, None, &from)
            .evidence("partitions", table.partitions as f64, Unit::Count, None, &from);
    Some(advise(draft))
}

/// Stages that went over the whole table.
fn readings_of(context: &Context<'_>, table: &CachedRdd) -> usize {
    let whole = |view: &&StageView<'_>| {
        view.stage.status == StageStatus::Complete
            && view.stage.rdd_ids.contains(&table.id)
            && view.stage.tasks.succeeded >= table.partitions
    };
    context.stages.iter().filter(whole).count()
}
