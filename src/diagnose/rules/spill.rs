//! `spill`: tasks had more to sort, join or aggregate than their memory held
//! and wrote it to disk.
//!
//! Spark measures no time for it, so severity comes from bytes and
//! confidence is low.

use super::context::{Context, StageView};
use super::draft::{Draft, Weight};
use super::humane;
use super::{About, Confidence, FindingKind, Rule, Severity, Unit, Where};
use crate::model::Quantiles;

pub(super) const ABOUT: About = About {
    rule: Rule::Spill,
    meaning: "Tasks had more to sort, join or aggregate than their memory held.",
    details: "*Fires* where disk spill >= 1 % (`ratio`) of the largest of input, output, shuffle
read and shuffle write, and disk >= 16 MiB (`disk_bytes`) or memory >= 256 MiB
(`memory_bytes`). `warning` from 10 % and 1 GiB, `critical` from 25 % and 10 GiB
(of disk). Where nothing was moved, the bytes alone decide.

*Source*: Dr. Elephant's execution memory spill (1, 10, 25 %).

Spark measures no time for it: no saving is named, and confidence is low. It
says whether a few partitions spilled (fewer than a quarter: even them out) or
most (three quarters: more partitions, more memory).
",
    evidence: &[
        (
            "disk_spilled",
            "bytes written to disk because memory did not hold them, after serialization",
        ),
        ("memory_spilled", "the same data as it was in memory"),
        (
            "largest_data_moved",
            "the largest of input, output, shuffle read and shuffle write of the stage",
        ),
        ("spill_ratio", "disk spilled to that"),
        ("disk_spilled_median_task", "of a task: 0 where only some spilled"),
        ("disk_spilled_max_task", "of the task that spilled most"),
    ],
    fires: &["spill"],
    near_misses: &["spill-small", "spill-healthy"],
    resists: &[],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.spill.enabled {
        drafts.extend(context.stages.iter().filter_map(|view| judge(context, view)));
    }
}

/// How the spilled bytes are spread over the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// Fewer than a quarter of the tasks spilled.
    Few,
    Some,
    /// At least three quarters did.
    Most,
    Unknown,
}

fn spread(quantiles: Option<Quantiles<u64>>) -> Spread {
    match quantiles {
        None => Spread::Unknown,
        Some(quantiles) if quantiles.p25 > 0 => Spread::Most,
        Some(quantiles) if quantiles.p75 == 0 => Spread::Few,
        Some(_) => Spread::Some,
    }
}

fn judge(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.spill;
    let measures = &view.stage.measures;
    let disk = measures.disk_spilled_bytes.sum?;
    let memory = measures.memory_spilled_bytes.sum_or_zero();
    let (moved, direction) = view.moved();
    // Nothing moved (a sort of generated rows): the bytes alone decide.
    let ratio = view.numbers.spill_ratio;
    let enough = disk >= thresholds.disk_bytes.bytes() || memory >= thresholds.memory_bytes.bytes();
    if disk == 0 || !enough || ratio.is_some_and(|ratio| ratio < thresholds.ratio) {
        return None;
    }
    let at_least =
        |share: f64, bytes: u64| ratio.is_none_or(|ratio| ratio >= share) && disk >= bytes;
    let severity = if at_least(thresholds.critical_ratio, thresholds.critical_bytes.bytes()) {
        Severity::Critical
    } else if at_least(thresholds.warning_ratio, thresholds.warning_bytes.bytes()) {
        Severity::Warning
    } else {
        Severity::Info
    };
    let spread = spread(measures.disk_spilled_bytes.quantiles);
    let headline = format!(
        "Stage {}: {} spilled to disk{}{}",
        view.stage.id,
        humane::bytes(disk),
        ratio.map_or_else(String::new, |ratio| format!(
            ", {} of its {}",
            humane::percent(ratio),
            direction.as_str()
        )),
        match spread {
            Spread::Few => ", by a few of its partitions",
            Spread::Some => ", by some of its partitions",
            Spread::Most => ", by most of its partitions",
            Spread::Unknown => "",
        },
    );
    let kind = if spread == Spread::Few { FindingKind::Data } else { FindingKind::Configuration };
    let from = view.name();
    let mut draft = Draft::new(Rule::Spill, kind, view.subject(), headline)
        .weight(Weight::Exactly(severity))
        .confidence(Confidence::Low)
        .evidence(
            "disk_spilled",
            disk as f64,
            Unit::Bytes,
            thresholds.disk_bytes.bytes() as f64,
            &from,
        )
        .evidence(
            "memory_spilled",
            memory as f64,
            Unit::Bytes,
            thresholds.memory_bytes.bytes() as f64,
            &from,
        )
        .evidence("largest_data_moved", moved as f64, Unit::Bytes, None, &from);
    if let Some(ratio) = ratio {
        draft = draft.evidence("spill_ratio", ratio, Unit::Ratio, thresholds.ratio, &from);
    }
    if let Some(quantiles) = measures.disk_spilled_bytes.quantiles {
        draft = draft
            .evidence("disk_spilled_median_task", quantiles.median as f64, Unit::Bytes, None, &from)
            .evidence("disk_spilled_max_task", quantiles.max as f64, Unit::Bytes, None, &from);
    }
    let reads_shuffle = measures.shuffle_read_bytes.sum_or_zero() > 0;
    let tasks = view.stage.tasks.total.max(1);
    let target = context.thresholds.partitioning.target_bytes.bytes().max(1);
    // What spilled is what did not fit: memory-side bytes over the tasks say
    // how much smaller partitions must be.
    let parts = tasks.saturating_add(memory.max(disk).div_ceil(target));
    draft = match spread {
        Spread::Few => draft.advice_unless(
            "Even out the partitions first: a few of them hold more than memory does (see data \
             skew); more memory for all executors would serve those few",
            Where::Sql,
            "the large partitions are one key: then handle that key apart",
        ),
        _ if reads_shuffle => draft.advice_unless(
            format!(
                "Raise spark.sql.shuffle.partitions (or the repartition before this stage) from \
                 {} to {}: {} spilled / {} a partition on top of what is there",
                humane::number(tasks),
                humane::number(parts),
                humane::bytes(memory.max(disk)),
                humane::bytes(target),
            ),
            Where::Conf,
            "adaptive execution coalesces them again: then lower \
             spark.sql.adaptive.advisoryPartitionSizeInBytes",
        ),
        _ => draft.advice_unless(
            format!(
                "Read smaller pieces: lower spark.sql.files.maxPartitionBytes, aiming at {} tasks \
                 instead of {}",
                humane::number(parts),
                humane::number(tasks)
            ),
            Where::Conf,
            "the files cannot be split",
        ),
    };
    Some(draft.advice_unless(
        "Raise spark.executor.memory, or lower spark.executor.cores so that fewer tasks share it",
        Where::Resources,
        "one partition holds most of the data",
    ))
}
