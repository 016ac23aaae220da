//! `io_bound`: the run's longest stage waits for bytes.
//!
//! A rate alone is no fault: a healthy scan passes 3 MB/s a core with its CPU
//! busy. The rule speaks where the rate is high and the cores wait, and
//! nothing else explains the waiting.

use super::context::{Context, Direction, StageView, ratio};
use super::draft::{Draft, Weight};
use super::humane;
use super::{About, Confidence, FindingKind, Rule, Severity, Unit, Where};
use crate::model::Stage;

/// Names of operations that work outside the JVM's measures: their waiting is
/// not for bytes.
const OUTSIDE_THE_JVM: [&str; 10] = [
    "Python",
    "Pandas",
    "Arrow",
    "Comet",
    "Gpu",
    "Velox",
    "Native",
    "Photon",
    "WholeStageTransformer",
    "PipedRDD",
];

pub(super) const ABOUT: About = About {
    rule: Rule::IoBound,
    meaning: "The longest stage moves so many bytes per core that its tasks wait for disk or network, and neither skew, spill, collection nor Python explains it.",
    details: "*Fires* on the run's longest stage only, where the largest of input, output,
shuffle read and shuffle write is >= 3 MB (10^6) a second and core
(`bytes_per_second_per_core`), and executor CPU time < half of run time
(`cpu_ratio`), disk spill < 1 % (`spill_ratio`), slowest / typical task < 3
(`run_time_ratio`), collection does not explain the waiting, and no Python or
native operator is in the stage. Cores are those of all executors, seconds those
from first launch to end.

*Source*: Databricks' guide to the Spark UI. A healthy scan passes 3 MB/s with
its CPU busy, hence the other conditions. Always `info`: Spark measures no time
for it. The metric is there for every stage; the advice differs by direction.

From REST nothing tells of Python: confidence is low.
",
    evidence: &[
        (
            "bytes_per_second_per_core",
            "bytes in the largest direction / (cores of all executors x seconds from first launch to end)",
        ),
        ("cpu_ratio", "CPU time of executors to run time: the lower, the more the cores wait"),
        ("spill_ratio", "bytes spilled to disk to the largest data moved"),
        ("run_time_ratio", "slowest to typical task"),
        ("bytes", "in that direction"),
        ("cores", "of all executors, on average over the stage"),
    ],
    fires: &["io_bound"],
    near_misses: &["io_bound-healthy"],
    resists: &[(
        "healthy",
        "a scan whose CPU is busy is none, however many bytes a second it reads",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.io_bound.enabled && context.stages_are_complete() {
        drafts.extend(context.longest_stage().and_then(|view| judge(context, view)));
    }
}

fn judge(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.io_bound;
    let (bytes, direction) = view.moved();
    let per_core = match direction {
        Direction::Input => view.numbers.io_per_core.input,
        Direction::Output => view.numbers.io_per_core.output,
        Direction::ShuffleRead => view.numbers.io_per_core.shuffle_read,
        Direction::ShuffleWrite => view.numbers.io_per_core.shuffle_write,
    }?;
    let spill = view.numbers.spill_ratio.unwrap_or(0.0);
    let uneven = view.numbers.run_time_ratio.unwrap_or(1.0);
    let measures = &view.stage.measures;
    // CPU time is not multiplied by task cpus; run time may be.
    let cpu = ratio(measures.cpu_time.sum?, view.run_time_sum()?)?;
    let gc = view.numbers.gc_ratio.unwrap_or(0.0);
    if per_core < thresholds.bytes_per_second_per_core
        || spill >= thresholds.spill_ratio
        || uneven >= thresholds.run_time_ratio
        || cpu >= thresholds.cpu_ratio
        // Collecting is no waiting either.
        || cpu + gc >= 1.0 - (1.0 - thresholds.cpu_ratio) / 2.0
        || is_outside_the_jvm(view.stage)
    {
        return None;
    }
    let from = view.name();
    let headline = format!(
        "Stage {}: the cores wait for {}: {} a core ({} in {}), the CPU busy for {} of the run time",
        view.stage.id,
        direction.as_str(),
        humane::rate(per_core),
        humane::bytes(bytes),
        humane::duration(view.running()),
        humane::percent(cpu),
    );
    let draft = Draft::new(Rule::IoBound, FindingKind::Resources, view.subject(), headline)
        // No measure of the time lost: an indicator.
        .weight(Weight::Exactly(Severity::Info))
        .confidence(if view.stage.operations.is_empty() {
            Confidence::Low
        } else {
            Confidence::Medium
        })
        .evidence(
            "bytes_per_second_per_core",
            per_core,
            Unit::BytesPerSecond,
            thresholds.bytes_per_second_per_core,
            &from,
        )
        .evidence("cpu_ratio", cpu, Unit::Ratio, thresholds.cpu_ratio, &from)
        .evidence("spill_ratio", spill, Unit::Ratio, thresholds.spill_ratio, &from)
        .evidence("run_time_ratio", uneven, Unit::Ratio, thresholds.run_time_ratio, &from)
        .evidence("bytes", bytes as f64, Unit::Bytes, None, &from)
        .evidence("cores", view.numbers.cores?, Unit::Count, None, &from);
    Some(match direction {
        Direction::Input => draft
            .advice_unless(
                "Read less: filter on partition columns, select fewer columns, use Parquet or ORC",
                Where::Sql,
                "the scan reads only what it needs",
            )
            .advice_unless(
                "Bring the data nearer or cache it: the store, not Spark, sets the pace",
                Where::Data,
                "it is read once",
            )
            .advice_unless(
                "More cores that wait at the same time (more executors, or \
                 spark.executor.cores above the physical ones)",
                Where::Resources,
                "the store is at its limit: then fewer",
            ),
        Direction::Output => draft
            .advice_unless(
                "Write less or smaller: compress (zstd), write fewer columns, coalesce small files",
                Where::Sql,
                "the store throttles: then write with fewer tasks at a time",
            )
            .advice(
                "Use the committer made for the store (S3A committers): renaming copies the data",
                Where::Conf,
            ),
        Direction::ShuffleRead | Direction::ShuffleWrite => draft
            .advice_unless(
                "Shuffle less: filter and aggregate before the exchange, broadcast the small side",
                Where::Sql,
                "all of it is needed",
            )
            .advice_unless(
                "Put spark.local.dir on fast local disks, several of them",
                Where::Resources,
                "executors' disks are idle and the network is full",
            ),
    })
}

fn is_outside_the_jvm(stage: &Stage) -> bool {
    stage.operations.iter().any(|name| OUTSIDE_THE_JVM.iter().any(|part| name.contains(part)))
}
