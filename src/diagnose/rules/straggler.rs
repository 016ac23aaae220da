//! `straggler`: a task took several times what is typical with no more to do
//! than the others.
//!
//! The first tasks on a new executor do that in every healthy run (classes
//! are loaded, code is interpreted until it is compiled), so a cold executor
//! is never more than an `info`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::context::{Context, StageView};
use super::data_skew;
use super::draft::{Draft, Weight};
use super::humane;
use super::slow::{self, Compared, Slow};
use super::slow_hosts::SlowHosts;
use super::task_list::TaskList;
use super::{About, Cause, Confidence, FindingKind, Rule, Severity, Unit, Where};
use crate::model::{DataQuality, Task};

/// Warming up costs seconds, not minutes: a longer excess has another cause.
const LONGEST_WARM_UP: Duration = Duration::from_mins(1);

pub(super) const ABOUT: About = About {
    rule: Rule::Straggler,
    meaning: "A task took much longer than the others without having more to do. The cause is the first of this list that explains half of the excess:",
    details: "| cause | test |
|---|---|
| `cold_executor` | among the first tasks on its executor's slots, or the first of a stage that calls Python (they start its workers), or the slow tasks are those with which each of two executors or more began the stage (up to a minute of excess: warming up costs seconds); or deserialization >= 30 % of the duration (`cold_deserialize_ratio`). Always `info` |
| `slow_host` | of at least two hosts, one holds half of the run's slow tasks in 3 stages or more (`slow_host_stages`), or 75 % (`slow_host_share`) of at least three |
| `gc` | garbage collection beyond the median task's |
| `fetch_wait` | waiting for shuffle blocks beyond the median task's |
| `locality` | it ran at `ANY` or `RACK_LOCAL` while others ran near their data |
| `driver` | durations at least twice the run time on three executors or more |
| `unknown` | nothing that Spark measures; confidence low |
",
    evidence: &[
        ("run_time", "of the slowest task"),
        ("typical_run_time", "of the others: their median, or their mean below 10 tasks"),
        ("run_time_ratio", "the one to the other"),
        ("slow_tasks", "tasks of the stage that are slow in this sense"),
        ("records_ratio", "records of the slowest task to typical ones: below the threshold, or it were skew"),
        ("bytes_ratio", "the same of bytes, where records do not tell"),
        ("deserialize_ratio", "its deserialization to its duration"),
        ("tasks_before_on_executor", "tasks its executor had been given before it"),
        ("gc_time", "its garbage collection"),
        ("fetch_wait_time", "its wait for shuffle blocks"),
        ("stages_in_which_the_host_was_slow", "stages of the run in which this host held slow tasks"),
        ("share_of_slow_tasks", "of the run's slow tasks, on this host"),
    ],
    fires: &["straggler_slow_host", "straggler_gc"],
    near_misses: &["straggler_slow_host-healthy", "straggler_gc-healthy"],
    resists: &[
        ("straggler_cold_executor", "a first task that warms its executor up is an `info`, whatever its ratio"),
        ("hot_key", "a slow task that has more records is skew, not a straggler"),
        ("jit_warmup", "tasks that get faster as the JVM compiles have no slow one among them"),
    ],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.straggler.enabled || !context.tasks_are_complete() {
        return;
    }
    let hosts = SlowHosts::of(context);
    drafts.extend(context.stages.iter().filter_map(|view| judge(context, view, &hosts)));
}

/// The slow tasks of a stage that is not skewed.
pub(super) fn stragglers<'a>(context: &Context<'_>, view: &StageView<'a>) -> Vec<Slow<'a>> {
    if data_skew::skewed(context, view).is_some() {
        return Vec::new();
    }
    let thresholds = &context.thresholds.straggler;
    let records_ratio = context.thresholds.data_skew.records_ratio;
    // Tasks of its own engine do not count what they read.
    let uncounted = context.application.has(DataQuality::Databricks);
    slow::slow_tasks(view, thresholds.run_time_ratio, thresholds.run_time_ratio_few_tasks)
        .into_iter()
        .filter(|slow| {
            slow::load(context, view, slow)
                .deciding()
                .map_or(!uncounted, |compared| compared.ratio < records_ratio)
        })
        .collect()
}

fn judge(context: &Context<'_>, view: &StageView<'_>, hosts: &SlowHosts) -> Option<Draft> {
    let slow = stragglers(context, view);
    let first = slow.first()?;
    let tasks = TaskList::of(view)?;
    let typical = u64::try_from(first.typical.as_millis()).unwrap_or(u64::MAX);
    let limit = (typical as f64 * first.threshold) as u64;
    let saving = tasks.saving(view, |attempt| {
        if attempt.succeeded && attempt.run >= limit {
            attempt.held.saturating_sub(attempt.run.saturating_sub(typical))
        } else {
            attempt.held
        }
    })?;
    let estimated = tasks.estimated;
    let impact = context.impact(view, saving, estimated);
    let cause = cause(context, view, &slow, hosts);
    let load = slow::load(context, view, first).deciding();
    let headline = format!(
        "Stage {}: {} {}, {}, {} ({})",
        view.stage.id,
        match (slow.len(), first.is_running()) {
            (1, true) => "one task has run for".to_owned(),
            (1, false) => "one task ran".to_owned(),
            (several, _) => format!("{several} tasks ran up to"),
        },
        humane::duration(first.run),
        slow::against(view, first),
        had(load),
        because(cause, first),
    );
    let task = first.name();
    let mut draft = Draft::new(Rule::Straggler, kind(cause), view.subject(), headline)
        .cause(cause)
        .weight(Weight::Saving {
            at_most: if cause == Cause::ColdExecutor { Severity::Info } else { Severity::Critical },
        })
        .confidence(match cause {
            _ if first.is_running() && load.is_none() => Confidence::Low,
            Cause::Unknown => Confidence::Low,
            Cause::ColdExecutor | Cause::SlowHost => Confidence::High,
            _ => Confidence::Medium,
        })
        .evidence("run_time", first.run.as_secs_f64(), Unit::Seconds, None, &task)
        .evidence("typical_run_time", first.typical.as_secs_f64(), Unit::Seconds, None, view.name())
        .evidence("run_time_ratio", first.ratio, Unit::Ratio, first.threshold, view.name())
        .evidence("slow_tasks", slow.len() as f64, Unit::Count, None, view.name());
    if let Some(compared) = load {
        let threshold = context.thresholds.data_skew.records_ratio;
        draft = draft.evidence(
            if compared.unit == Unit::Bytes { "bytes_ratio" } else { "records_ratio" },
            compared.ratio,
            Unit::Ratio,
            threshold,
            format!("{task}: {}", compared.what),
        );
    }
    let metrics = &first.task.metrics;
    draft = match cause {
        Cause::ColdExecutor => draft
            .evidence(
                "deserialize_ratio",
                deserialize_ratio(first.task),
                Unit::Ratio,
                context.thresholds.straggler.cold_deserialize_ratio,
                &task,
            )
            .evidence(
                "tasks_before_on_executor",
                first.task.ordinal_on_executor.map_or(f64::NAN, f64::from),
                Unit::Count,
                None,
                &task,
            ),
        Cause::Gc => draft.evidence(
            "gc_time",
            metrics.gc_time.as_secs_f64(),
            Unit::Seconds,
            first.excess().as_secs_f64() / 2.0,
            &task,
        ),
        Cause::FetchWait => draft.evidence(
            "fetch_wait_time",
            metrics.fetch_wait_time.as_secs_f64(),
            Unit::Seconds,
            first.excess().as_secs_f64() / 2.0,
            &task,
        ),
        Cause::SlowHost => {
            let from = format!("host {}", first.task.host);
            let host = hosts.get(&first.task.host);
            draft
                .evidence(
                    "stages_in_which_the_host_was_slow",
                    host.map_or(f64::NAN, |host| host.stages.len() as f64),
                    Unit::Count,
                    f64::from(context.thresholds.straggler.slow_host_stages),
                    from.clone(),
                )
                .evidence(
                    "share_of_slow_tasks",
                    hosts.share(&first.task.host),
                    Unit::Ratio,
                    context.thresholds.straggler.slow_host_share,
                    from,
                )
        }
        _ => draft,
    };
    Some(advise(
        draft.impact(impact, vec![(view.index, impact.wall.unwrap_or_default())]),
        cause,
        first,
    ))
}

fn had(load: Option<Compared>) -> String {
    match load {
        Some(compared) if compared.unit == Unit::Bytes => {
            format!("with {} the bytes", humane::ratio(compared.ratio))
        }
        Some(compared) => format!("with {} the records", humane::ratio(compared.ratio)),
        None => "its records unknown".to_owned(),
    }
}

fn because(cause: Cause, slow: &Slow<'_>) -> String {
    let executor = &slow.task.executor_id;
    match cause {
        Cause::ColdExecutor => format!("it started what later tasks on executor {executor} found"),
        Cause::SlowHost => format!("host {} is slow", slow.task.host),
        Cause::Gc => format!(
            "{} of it went to garbage collection",
            humane::duration(slow.task.metrics.gc_time)
        ),
        Cause::FetchWait => format!(
            "{} of it went to waiting for shuffle blocks",
            humane::duration(slow.task.metrics.fetch_wait_time)
        ),
        Cause::Locality => {
            format!("it ran far from its data ({})", slow.task.locality)
        }
        Cause::Driver => "the driver was slow to answer several executors".to_owned(),
        _ => format!("on executor {executor}; nothing measured tells why"),
    }
}

fn kind(cause: Cause) -> FindingKind {
    match cause {
        Cause::Gc | Cause::Locality => FindingKind::Configuration,
        _ => FindingKind::Resources,
    }
}

/// The first of the list that explains most of the excess.
fn cause(
    context: &Context<'_>,
    view: &StageView<'_>,
    slow: &[Slow<'_>],
    hosts: &SlowHosts,
) -> Cause {
    let total: Duration =
        slow.iter().map(Slow::excess).fold(Duration::ZERO, Duration::saturating_add);
    let mostly = |explained: &dyn Fn(&Slow<'_>) -> Duration| {
        let sum = slow.iter().map(explained).fold(Duration::ZERO, Duration::saturating_add);
        sum >= total / 2 && !sum.is_zero()
    };
    let whole = |yes: bool, slow: &Slow<'_>| if yes { slow.excess() } else { Duration::ZERO };
    let measures = &view.stage.measures;
    let median_gc = measures.gc_time.median().unwrap_or_default();
    let median_wait = measures.fetch_wait_time.median().unwrap_or_default();
    let everywhere = slow::begin_the_stage_everywhere(view, slow);
    let is_start = |slow: &Slow<'_>| {
        is_cold(context, view, slow)
            || slow.excess() <= LONGEST_WARM_UP
                && (everywhere || slow::starts_python(view, context.application, slow))
    };
    if mostly(&|slow| whole(is_start(slow), slow)) {
        Cause::ColdExecutor
    } else if mostly(&|slow| whole(hosts.is_slow(&slow.task.host), slow)) {
        Cause::SlowHost
    } else if !super::stage_numbers::concurrent_gc(context.application)
        && mostly(&|slow| slow.task.metrics.gc_time.saturating_sub(median_gc))
    {
        Cause::Gc
    } else if mostly(&|slow| slow.task.metrics.fetch_wait_time.saturating_sub(median_wait)) {
        Cause::FetchWait
    } else if mostly(&|slow| whole(is_far(&slow.task.locality), slow))
        && view.stage.slowest.iter().any(|task| is_near(&task.locality))
    {
        Cause::Locality
    } else if waits_for_driver(slow) {
        Cause::Driver
    } else {
        Cause::Unknown
    }
}

fn is_far(locality: &str) -> bool {
    matches!(locality, "ANY" | "RACK_LOCAL")
}

fn is_near(locality: &str) -> bool {
    matches!(locality, "PROCESS_LOCAL" | "NODE_LOCAL")
}

fn deserialize_ratio(task: &Task) -> f64 {
    task.metrics.deserialize_time.as_secs_f64() / task.duration.as_secs_f64()
}

/// Whether a task was among the first on its executor's slots, or spent its
/// time loading classes.
pub(super) fn is_cold(context: &Context<'_>, view: &StageView<'_>, slow: &Slow<'_>) -> bool {
    let task = slow.task;
    if deserialize_ratio(task) >= context.thresholds.straggler.cold_deserialize_ratio {
        return true;
    }
    if slow.excess() > LONGEST_WARM_UP {
        return false;
    }
    let executor =
        context.application.executors.iter().find(|executor| executor.id == task.executor_id);
    match (task.ordinal_on_executor, executor) {
        (Some(ordinal), Some(executor)) => {
            let slots = (f64::from(executor.cores) / view.cpus).floor().max(1.0);
            f64::from(ordinal) < slots
        }
        (Some(ordinal), None) => ordinal == 0,
        (None, Some(executor)) => {
            // REST numbers no tasks: cold is who was launched as soon as its
            // executor and its stage were there, with no stage before them.
            let Some(added) = executor.added else { return false };
            let first = view.stage.first_task_launched.unwrap_or(task.launched);
            let earliest = added.max(first).as_millisecond();
            let at_once = task.launched.as_millisecond().saturating_sub(earliest) <= 500;
            let earlier_stage = context.stages.iter().any(|other| {
                other.stage.first_task_launched.is_some_and(|launched| launched < first)
                    && other.span.is_some_and(|(_, end)| end > added.as_millisecond())
            });
            at_once && !earlier_stage
        }
        (None, None) => false,
    }
}

/// Task time far above run time on several executors at once.
fn waits_for_driver(slow: &[Slow<'_>]) -> bool {
    let executors: BTreeSet<&str> = slow
        .iter()
        .filter(|slow| {
            let task = slow.task;
            task.duration.saturating_sub(task.metrics.deserialize_time)
                >= slow.run.saturating_mul(2)
        })
        .map(|slow| slow.task.executor_id.as_str())
        .collect();
    executors.len() >= 3
}

fn advise(draft: Draft, cause: Cause, slow: &Slow<'_>) -> Draft {
    match cause {
        Cause::ColdExecutor => draft.advice_unless(
            "Nothing to mend in one run. Keep executors longer \
             (spark.dynamicAllocation.executorIdleTimeout) or run short jobs in one application",
            Where::Conf,
            "the run starts its executors once and lasts minutes",
        ),
        Cause::SlowHost => draft
            .advice(
                format!(
                    "Look at host {}: disk, neighbours, throttled CPU; take it out of the cluster",
                    slow.task.host
                ),
                Where::Resources,
            )
            .advice_unless(
                "Set spark.speculation=true, so that copies of its tasks run elsewhere",
                Where::Conf,
                "tasks write to places where a second copy does harm",
            ),
        Cause::Gc => draft
            .advice(
                "Raise spark.executor.memory, or lower spark.executor.cores so that fewer tasks \
                 share the heap",
                Where::Conf,
            )
            .advice_unless(
                "Look for what this task's program keeps alive (caches, large rows, \
                 collect_list)",
                Where::Sql,
                "several tasks of the executor collected at the same time",
            ),
        Cause::FetchWait => draft
            .advice(
                "Look at the network and the disks of the executors it read from",
                Where::Resources,
            )
            .advice_unless(
                "Raise spark.reducer.maxSizeInFlight, and spark.shuffle.io.serverThreads where \
                 the shuffle service is slow",
                Where::Conf,
                "the executors it reads from are busy collecting garbage",
            ),
        Cause::Locality => draft.advice_unless(
            "Cache or place the data on more executors, or raise spark.locality.wait a little",
            Where::Conf,
            "the data comes from an object store: there is no locality then",
        ),
        Cause::Driver => draft.advice(
            "Look at the driver: its CPU, its garbage collection, results that are too large",
            Where::Resources,
        ),
        _ => draft
            .advice_unless(
                "Set spark.speculation=true, so that a copy of a slow task runs elsewhere",
                Where::Conf,
                "the same partition is slow every time",
            )
            .advice(
                "Take a thread dump of the executor while the task runs: work outside Spark's \
                 measures (locks, remote calls, Python) shows there",
                Where::Resources,
            ),
    }
}
