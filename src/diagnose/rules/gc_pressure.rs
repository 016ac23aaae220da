//! `gc_pressure`: a good part of the tasks' run time went to garbage
//! collection; or, the other way round, the heap was bought for nothing.
//!
//! Silent on ZGC and Shenandoah, whose cycles run beside the program and are
//! added up by Spark as if they stopped it.

use std::time::Duration;

use super::context::{Context, StageView, seconds};
use super::draft::{Draft, Weight};
use super::humane;
use super::stage_numbers;
use super::task_list::TaskList;
use super::{About, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where};

/// Over-provisioning is judged in runs of at least this (shorter ones never
/// filled their heap), ...
const LONG_RUN: Duration = Duration::from_mins(5);
/// ... below this share of collection (Dr. Elephant's critical for "GC low"),
const LITTLE_GC: f64 = 0.01;
/// ... and this share of the heap in use at its peak (spark-advisor 40 %,
/// DataFlint 70 %).
const HEAP_UNUSED: f64 = 0.5;

pub(super) const ABOUT: About = About {
    rule: Rule::GcPressure,
    meaning: "Tasks spent much of their time waiting for the garbage collector: objects fill the heap faster than it can be cleaned.",
    details: "*Fires* where GC time / run time >= 10 % (`warning_ratio`), the stage's run time
in all >= 10 s (`stage_run_time`) and the median task >= 100 ms (`median_task`).
Below 20 % (`critical_ratio`) it is never `critical`.

*Sources*: Spark's own UI marks executors from 10 % (SPARK-12149), Dr. Elephant
calls 20 % critical.

The other way round, in runs of 5 min and more: below 1 % with a peak heap below
half of what was bought, an `info` about `spark.executor.memory`.

*Silent* on ZGC and Shenandoah: their cycles run beside the program, and Spark
adds them up as if they stopped it.
",
    evidence: &[
        ("gc_ratio", "collection to run time, over all attempts of the stage"),
        ("gc_time", "collection in all"),
        ("run_time", "of all attempts of the stage, or of the run"),
        ("median_task", "run time of the median task"),
        ("peak_heap_share", "largest heap that an executor was seen to use, to what was bought"),
    ],
    fires: &["gc_pressure"],
    near_misses: &["gc_pressure-light", "gc_pressure-healthy"],
    resists: &[("straggler_gc-healthy", "a short stage that collects a little is not judged")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.gc_pressure.enabled
        || !context.tasks_are_complete()
        || stage_numbers::concurrent_gc(context.application)
    {
        return;
    }
    drafts.extend(context.stages.iter().filter_map(|view| judge(context, view)));
    drafts.extend(unused_heap(context));
}

fn judge(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.gc_pressure;
    let ratio = view.numbers.gc_ratio?;
    let run_time = view.run_time_sum()?;
    let median = view.run_time_median()?;
    if ratio < thresholds.warning_ratio
        || run_time < thresholds.stage_run_time.get()
        || median < thresholds.median_task.get()
    {
        return None;
    }
    // What a healthy heap would collect anyway: half the warning, 5 %, below
    // which Dr. Elephant says that memory is to spare.
    let healthy = thresholds.warning_ratio / 2.0;
    let excess = |run: f64, gc: f64| (gc.min(run) - healthy * run).max(0.0);
    let tasks = TaskList::of(view)?;
    let saving = tasks.saving(view, |attempt| {
        let too_much = excess(attempt.run as f64, attempt.gc as f64) as u64;
        attempt.held.saturating_sub(too_much)
    })?;
    let gc = view.stage.measures.gc_time.sum?;
    // The excess itself: those cores did not stand idle, they collected.
    let core = excess(run_time.as_secs_f64(), gc.as_secs_f64()) * view.cpus;
    let wall = saving.wall.min(view.alone);
    let impact = Impact { wall: Some(wall), core: Some(seconds(core)), estimated: tasks.estimated };
    let from = view.name();
    let headline = format!(
        "Stage {}: garbage collection took {} of the run time ({} of {})",
        view.stage.id,
        humane::percent(ratio),
        humane::duration(gc),
        humane::duration(run_time),
    );
    let at_most =
        if ratio >= thresholds.critical_ratio { Severity::Critical } else { Severity::Warning };
    Some(
        Draft::new(Rule::GcPressure, FindingKind::Resources, view.subject(), headline)
            .weight(Weight::Saving { at_most })
            .confidence(Confidence::High)
            .evidence("gc_ratio", ratio, Unit::Ratio, thresholds.warning_ratio, &from)
            .evidence("gc_time", gc.as_secs_f64(), Unit::Seconds, None, &from)
            .evidence(
                "run_time",
                run_time.as_secs_f64(),
                Unit::Seconds,
                thresholds.stage_run_time.get().as_secs_f64(),
                &from,
            )
            .evidence(
                "median_task",
                median.as_secs_f64(),
                Unit::Seconds,
                thresholds.median_task.get().as_secs_f64(),
                &from,
            )
            .impact(impact, vec![(view.index, wall)])
            .advice_unless(
                "Give each task more heap: raise spark.executor.memory, or lower \
                 spark.executor.cores",
                Where::Resources,
                "the program keeps what it does not need (caches, collected lists): it fills any \
                 heap",
            )
            .advice_unless(
                "Make partitions smaller, so that fewer rows are alive at a time",
                Where::Conf,
                "the rows are kept across tasks, in a cache or a broadcast",
            )
            .advice_unless(
                "Cache serialized (MEMORY_ONLY_SER, or DISK_ONLY for what is read rarely), or \
                 unpersist what is no longer used",
                Where::Sql,
                "nothing is cached",
            )
            .advice_unless(
                "Use G1 with spark.executor.extraJavaOptions=-XX:+UseG1GC on large heaps",
                Where::Conf,
                "the heap is below some 4 GiB, or G1 is in use (Java 11 and later)",
            ),
    )
}

/// Next to no collection on a heap that stayed mostly empty, where the source
/// has heap peaks.
fn unused_heap(context: &Context<'_>) -> Option<Draft> {
    let application = context.application;
    let gc_ratio = context.totals.gc_ratio?;
    if application.local_mode() || context.run < LONG_RUN || gc_ratio >= LITTLE_GC {
        return None;
    }
    let bought = application
        .configuration
        .resource_profiles
        .iter()
        .filter_map(|profile| profile.executor_memory_bytes)
        .max()?;
    let peaks: Option<Vec<u64>> =
        application.executors.iter().map(|executor| executor.peaks.heap).collect();
    let peak = peaks?.into_iter().max()?;
    let share = super::context::ratio(peak, bought)?;
    if share >= HEAP_UNUSED {
        return None;
    }
    let key = "spark.executor.memory".to_owned();
    let headline = format!(
        "Executors used {} of their {} heap at most, and hardly collected ({} of run time)",
        humane::percent(share),
        humane::bytes(bought),
        humane::percent(gc_ratio),
    );
    Some(
        Draft::new(
            Rule::GcPressure,
            FindingKind::Configuration,
            Subject::ConfigurationKey { key },
            headline,
        )
        .weight(Weight::Exactly(Severity::Info))
        .confidence(Confidence::Low)
        .evidence("gc_ratio", gc_ratio, Unit::Ratio, LITTLE_GC, "all stages")
        .evidence("peak_heap_share", share, Unit::Ratio, HEAP_UNUSED, "the fullest executor")
        .advice_unless(
            format!(
                "Lower spark.executor.memory towards {} (the peak and a fifth)",
                humane::bytes(peak.saturating_add(peak / 5))
            ),
            Where::Resources,
            "larger inputs are to come, or the page cache of the hosts matters",
        ),
    )
}
