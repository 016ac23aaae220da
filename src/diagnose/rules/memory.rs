//! `memory`: what executors and the driver used of the memory they were
//! given, where it ran out or was far too much.
//!
//! Peaks are sampled with heartbeats and heaps fill with garbage before it is
//! collected, so a ratio of peak to heap says little alone: each part asks for
//! a second fact.

use std::time::Duration;

use super::context::{Context, ratio};
use super::draft::{Draft, Weight};
use super::executor_memory;
use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    loss, result_size,
};
use crate::model::{Application, Configuration, DataQuality, Executor, Kind, Source, State};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Task time from which the garbage collection of an executor is judged.
const JUDGED_TASK_TIME: Duration = Duration::from_secs(10);

pub(super) const ABOUT: About = About {
    rule: Rule::Memory,
    meaning: "Executors or the driver ran out of the memory they were given, or have far more \
              than they use.",
    details: "| about | *fires* on | severity |
|---|---|---|
| executors' heap, too small | peak `JVMHeapMemory` >= 95 % (`high_ratio`) of the heap **and** garbage collection >= `gc_pressure.warning_ratio` of the task time there, or the executor lost as `heap_oom` | `info`: `gc_pressure`, `executor_lost` say what it costs |
| executors' container | on YARN and Kubernetes: resident memory of JVM, Python and other processes >= 95 % of heap, overhead, off-heap and Python memory together | `warning` |
| executors' heap, too large | peak of every executor < 70 % (`low_ratio`), heaps of 4 GiB (`low_bytes`) and more, batch run of 30 min (`low_run`) and more, no spill | `info` |
| the driver's result limit | a job aborted because its results were larger than `spark.driver.maxResultSize` | `warning` (`job_failed` says that it failed) |
| the same, nearly | results of a stage >= 95 % of it | `info` |
| the driver's heap | an `OutOfMemoryError` of the driver's own in its log, where that is given (`--log`): `heap_oom` | `warning` |
| the driver's heap | >= 95 % of `spark.driver.memory` when it last told, and the log has no end: `heap_oom`, the driver probably died of it | `critical`; `info` where it may still run |

A full heap alone is not told: the JVM lets garbage lie until it needs the room.

*Sources*: DataFlint and SparkForensics (95 %, 70 %); the second facts are ours.

*Cost*: Spark gives no time for it.

*Silent* where peaks were not sampled (0 or -1, short executors). The driver's heap is in
logs only with `spark.eventLog.logStageExecutorMetrics`, resident memory only with
`spark.executor.processTreeMetrics.enabled`. A Python program that dies of the driver's
OutOfMemoryError ends its log as any other, with exit code 0 since 4.0: of it nothing
tells. Peaks of a process's parts are each at their
own moment, so the container's sum is an upper bound: medium confidence.

What is told is seldom the end: executors that collected garbage for two thirds of their
time told 84 % of their heap at most, and a driver that ran out of memory 78 % when it
last told, because Spark writes what the driver tells only with its next event.
",
    evidence: &[
        ("peak_ratio", "peak over what was given"),
        ("peak", "peak in bytes, of the executor with the largest ratio"),
        ("last_ratio", "the driver's heap in use when it last told, over what was given"),
        ("last", "the same in bytes"),
        ("given", "what was given"),
        ("executors", "executors that it holds for"),
        ("gc_ratio", "garbage collection over task time on that executor"),
        ("results", "serialized results of the stage's tasks"),
        ("driver_out_of_memory", "the log of the driver (`--log`) has an OutOfMemoryError of its own"),
    ],
    fires: &["result_size"],
    near_misses: &["result_size-few", "gc_pressure", "driver_oom"],
    resists: &[(
        "gc_pressure-healthy",
        "a heap full of garbage that is easily collected is not small",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.memory.enabled {
        return;
    }
    drafts.extend(result_size::judge(context));
    drafts.extend(driver(context));
    drafts.extend(small_heap(context));
    drafts.extend(container(context));
    drafts.extend(large_heap(context));
}

/// Heap in use, at most, over the heap.
fn heap_ratio(application: &Application, executor: &Executor) -> Option<f64> {
    // In local mode the heap is the driver's.
    (!application.local_mode()).then_some(())?;
    ratio(executor.peaks.heap?, executor_memory::heap(application, executor))
}

fn garbage(executor: &Executor) -> Option<f64> {
    let totals = &executor.totals;
    (totals.task_time >= JUDGED_TASK_TIME).then_some(())?;
    ratio(totals.gc_time, totals.task_time)
}

fn about_executors(executors: &[&Executor]) -> Subject {
    match executors {
        [only] => Subject::Executor { executor_id: only.id.clone() },
        _ => Subject::Application,
    }
}

fn small_heap(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let high = context.thresholds.memory.high_ratio;
    let judged = context.thresholds.gc_pressure.warning_ratio;
    let collects = |executor: &Executor| {
        !application.has(DataQuality::ConcurrentGc)
            && garbage(executor).is_some_and(|share| share >= judged)
    };
    let full: Vec<&Executor> = application
        .executors
        .iter()
        .filter(|executor| heap_ratio(application, executor).is_some_and(|peak| peak >= high))
        .filter(|executor| {
            collects(executor) || loss::cause(application, executor) == Some(Cause::HeapOom)
        })
        .collect();
    let worst = full.iter().max_by(|a, b| {
        heap_ratio(application, a)
            .partial_cmp(&heap_ratio(application, b))
            .unwrap_or(std::cmp::Ordering::Equal)
    })?;
    let peak = worst.peaks.heap?;
    let given = executor_memory::heap(application, worst);
    let share = ratio(peak, given)?;
    let headline = format!(
        "{} used {} of a heap of {}, and had trouble with it",
        match full.as_slice() {
            [only] => format!("Executor {}", only.id),
            many => format!("{} executors", many.len()),
        },
        humane::percent(share.min(1.0)),
        humane::bytes(given),
    );
    let from = format!("executor {}", worst.id);
    let mut draft = draft(FindingKind::Configuration, about_executors(&full), headline)
        .weight(Weight::Exactly(Severity::Info))
        .evidence("peak_ratio", share, Unit::Ratio, high, &from)
        .evidence("peak", peak as f64, Unit::Bytes, None, &from)
        .evidence("given", given as f64, Unit::Bytes, None, "executor memory")
        .evidence("executors", full.len() as f64, Unit::Count, None, "peaks of executors");
    if let Some(garbage) = garbage(worst) {
        draft = draft.evidence("gc_ratio", garbage, Unit::Ratio, judged, &from);
    }
    Some(
        draft
            .advice_unless(
                "Raise spark.executor.memory, or lower spark.executor.cores so that fewer tasks \
                 share the heap",
                Where::Resources,
                "one row, one key or one cached object takes it all",
            )
            .advice_unless(
                "Hold less: smaller partitions, columns pruned early, fewer cached tables (or \
                 cached to disk)",
                Where::Sql,
                "it is a broadcast: see its finding",
            ),
    )
}

fn container(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let high = context.thresholds.memory.high_ratio;
    // Elsewhere nobody holds an executor to a limit.
    let master = application.configuration.get("spark.master").unwrap_or_default();
    if !master.starts_with("yarn") && !master.starts_with("k8s") {
        return None;
    }
    let used = |executor: &Executor| {
        let peaks = &executor.peaks;
        let others = peaks.python_resident.unwrap_or_default();
        Some(
            peaks
                .jvm_resident?
                .saturating_add(others)
                .saturating_add(peaks.other_resident.unwrap_or_default()),
        )
    };
    let share = |executor: &Executor| {
        ratio(used(executor)?, executor_memory::container(application, executor))
    };
    let full: Vec<&Executor> = application
        .executors
        .iter()
        .filter(|executor| share(executor).is_some_and(|share| share >= high))
        .collect();
    let worst = full
        .iter()
        .max_by(|a, b| share(a).partial_cmp(&share(b)).unwrap_or(std::cmp::Ordering::Equal))?;
    let python = worst.peaks.python_resident.filter(|bytes| *bytes > 0);
    let (peak, given) = (used(worst)?, executor_memory::container(application, worst));
    let headline = format!(
        "{} within {} of the limit of their containers ({}): close to being killed",
        humane::count(full.len() as u64, "executor came", "executors came"),
        humane::percent((1.0 - share(worst)?).max(0.0)),
        humane::bytes(given),
    );
    let from = format!("executor {}", worst.id);
    Some(
        draft(FindingKind::Configuration, about_executors(&full), headline)
            .cause(Cause::ContainerMemory)
            .weight(Weight::Exactly(Severity::Warning))
            .confidence(Confidence::Medium)
            .evidence("peak_ratio", share(worst)?, Unit::Ratio, high, &from)
            .evidence("peak", peak as f64, Unit::Bytes, None, &from)
            .evidence("given", given as f64, Unit::Bytes, None, "heap, overhead, off heap, Python")
            .evidence("executors", full.len() as f64, Unit::Count, None, "peaks of executors")
            .advice_unless(
                if python.is_some() {
                    "Raise spark.executor.memoryOverhead: Python workers live outside the heap; \
                     or set spark.executor.pyspark.memory, which limits them"
                } else {
                    "Raise spark.executor.memoryOverhead: Netty, native libraries and mapped files \
                     live outside the heap"
                },
                Where::Resources,
                "the heap itself is larger than it needs: then lower spark.executor.memory by as \
                 much",
            )
            .advice(
                "Lower spark.executor.cores: fewer tasks and Python workers at a time",
                Where::Conf,
            ),
    )
}

fn large_heap(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let thresholds = &context.thresholds.memory;
    let spilled =
        application.stages.iter().any(|stage| stage.measures.disk_spilled_bytes.sum_or_zero() > 0);
    if application.kind != Kind::Batch || context.run < thresholds.low_run.get() || spilled {
        return None;
    }
    let mut worst: Option<(&Executor, f64)> = None;
    for executor in &application.executors {
        let share = heap_ratio(application, executor)?;
        if share >= thresholds.low_ratio
            || executor_memory::heap(application, executor) < thresholds.low_bytes.bytes()
            || loss::cause(application, executor).is_some()
        {
            return None;
        }
        if worst.is_none_or(|(_, most)| most < share) {
            worst = Some((executor, share));
        }
    }
    let (worst, share) = worst?;
    let (peak, given) = (worst.peaks.heap?, executor_memory::heap(application, worst));
    let headline = format!(
        "No executor used more than {} of its heap of {}",
        humane::percent(share),
        humane::bytes(given),
    );
    let from = format!("executor {}", worst.id);
    Some(
        draft(FindingKind::Configuration, Subject::Application, headline)
            .weight(Weight::Exactly(Severity::Info))
            .confidence(Confidence::Medium)
            .evidence("peak_ratio", share, Unit::Ratio, thresholds.low_ratio, &from)
            .evidence("peak", peak as f64, Unit::Bytes, None, &from)
            .evidence(
                "given",
                given as f64,
                Unit::Bytes,
                thresholds.low_bytes.bytes() as f64,
                &from,
            )
            .evidence("executors", application.executors.len() as f64, Unit::Count, None, "the run")
            .advice_unless(
                format!(
                    "Lower spark.executor.memory to some {}: a fifth more than the peak",
                    humane::bytes(peak.saturating_add(peak / 5))
                ),
                Where::Resources,
                "other days bring more data, or cores and memory are sold together",
            ),
    )
}

fn driver(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let high = context.thresholds.memory.high_ratio;
    // Not the peak: a heap fills up with garbage before it is collected.
    let last = application.driver.as_ref()?.last_heap?;
    let given = driver_memory(&application.configuration);
    let share = ratio(last, given)?;
    let ended = application.end.is_some() || application.source != Source::EventLog;
    if share < high || ended {
        return None;
    }
    let may_run = application.state == State::Running;
    let headline = format!(
        "The driver's heap was {} full when it last told{}",
        humane::percent(share.min(1.0)),
        if may_run { "" } else { ", and the log has no end: it probably died of it" },
    );
    let severity = if may_run { Severity::Info } else { Severity::Critical };
    Some(
        draft(FindingKind::Configuration, Subject::Application, headline)
            .cause(Cause::HeapOom)
            .weight(Weight::Exactly(severity))
            .confidence(if may_run { Confidence::Low } else { Confidence::Medium })
            .evidence("last_ratio", share, Unit::Ratio, high, "the driver's last heartbeat")
            .evidence("last", last as f64, Unit::Bytes, None, "the driver's last heartbeat")
            .evidence("given", given as f64, Unit::Bytes, None, "driver memory")
            .advice_unless(
                "Bring less to the driver: collect() and toPandas() of large results, broadcasts, \
                 very many tasks or partitions, state that streaming sinks in complete mode hold",
                Where::Sql,
                "it is the program's own objects that fill it",
            )
            .advice("Raise spark.driver.memory", Where::Resources),
    )
}

/// `spark.driver.memory`, or what Spark takes without it.
pub(super) fn driver_memory(configuration: &Configuration) -> u64 {
    configuration.bytes("spark.driver.memory", MIB).unwrap_or(GIB)
}

/// A finding of this rule; Spark gives no time for it.
pub(super) fn draft(kind: FindingKind, subject: Subject, headline: String) -> Draft {
    Draft::new(Rule::Memory, kind, subject, headline)
        .confidence(Confidence::High)
        .impact(Impact::default(), Vec::new())
}
