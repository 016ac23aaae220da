//! `python_udf`: rows go to Python and back, where the JVM could have done
//! the work or Python could have done it a column at a time.
//!
//! The plan tells which nodes call Python, and how: row by row, or a batch of
//! a column at once. What Python took is never in a task's own measures: it is
//! what remains of its run time when the JVM's part is taken off, and newer
//! releases measure it beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::context::{Context, StageView, ratio, seconds};
use super::draft::{Draft, Weight};
use super::executions::NodeRef;
use super::humane;
use super::less_work;
use super::python_nodes::{Measured, Way, evaluation_type, feeding, way};
use super::{About, Cause, Confidence, FindingKind, Rule, Severity, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::PythonUdf,
    meaning: "Rows are handed to Python one by one, or a vectorised Python function takes most of \
              the time of its stages: work outside the JVM, where Spark can neither optimise nor \
              measure it.",
    details: "*Fires* on plan nodes that call Python, once a run for each of

- **row at a time**: `BatchEvalPython`, and `ArrowEvalPython` with evaluation type
  100 or 101 (the last argument of the node's text). In 4.3 a plain UDF is carried
  by Arrow by default where pyarrow is installed, and is still called row by row;
- **vectorised** (200 and above, and the nodes of `mapInPandas`, `applyInPandas`
  and their like), with cause `slow_vectorised`;

where

    run time of the stages with such nodes >= 10 % of all run time   (ratio)
    and the time outside the JVM in them   >= 10 % of all run time   (ratio)

Time outside the JVM is run time - CPU time - garbage collection - fetch wait -
shuffle write, less what sorts, scans and aggregates that feed the node measured,
and at most \"time to execute Python code\" where Spark measures it (4.3).
Tasks that start a worker (as many on an executor as it has slots) count with no
more than the median of the others. It is *proven* to be Python's where nothing
that feeds the node in its stage computes more than it measures (expressions with
functions, text scans and joins may), or where Spark is 4.0 or newer and CPU time of
the JVM is below 10 % of run time (`cpu_ratio`): before, a thread of its own feeds
Python, and its CPU time is in no task's; and newer ones count the wait for rows as
Python's. Vectorised nodes fire only where it is proven, and

    that time            >= 50 % of the stages' run time   (python_ratio)
    CPU time of the JVM   < 10 % of it                     (cpu_ratio)

*Sources*: our judgement, all three; a stage with less than a tenth of the work is
not where to look first.

*Cost*: row at a time, the stages replayed without that time, an upper estimate:
it takes Spark's own functions to cost nothing. Where it is not proven, 10
microseconds a row are claimed, and it is said as `info` at least. A vectorised
function is `info` and promises nothing: its work may be what the job is for.

*Silent* for Python in RDD code and from REST, where no plan tells of it; for a
cheap function in a long stage of other work; below the scan of a cached table
that was filled before.
",
    evidence: &[
        ("task_time_ratio", "run time of the stages with such nodes, of all run time"),
        ("python_time", "time outside the JVM in these stages, without the excess of first tasks"),
        ("python_time_ratio", "of these stages' run time"),
        ("jvm_cpu_ratio", "CPU time of the JVM, of these stages' run time"),
        ("rows", "rows that Python gave back"),
        ("time_per_row", "time outside the JVM a row"),
        ("evaluation_type", "Spark's number for the way Python is called"),
    ],
    fires: &["python_udf", "python_udf-arrow", "python_udf-vectorised"],
    near_misses: &["python_udf-cheap"],
    resists: &[
        ("python_udf-first_tasks", "tasks that start Python workers are not taken for slow Python"),
        (
            "python_udf-fed",
            "the JVM's own work, done while Python waits for it, is not taken for \
          slow Python, though Spark's CPU times (3.5) and Python times (4.3) both say so",
        ),
    ],
};

/// What pickling a row both ways and calling a small function for it takes at
/// least (7 microseconds in the recorded run): all that is claimed for a row
/// where the time outside the JVM is not proven to be Python's.
const AT_LEAST_PER_ROW: Duration = Duration::from_micros(10);

/// What nodes of one way did in the whole run.
#[derive(Default)]
struct Python<'a> {
    /// Places of their stages in `Context::stages`.
    stages: BTreeSet<usize>,
    nodes: Vec<(NodeRef<'a>, Duration)>,
    rows: u64,
    /// What Spark measured of it; `None` where of one of them it measured
    /// nothing.
    measured: Option<Measured>,
    /// What feeds them; `None` where that may cost much, unmeasured.
    feeding: Option<Duration>,
}

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.python_udf.enabled {
        return;
    }
    for (way, python) in collect(context) {
        drafts.extend(judge(context, way, &python));
    }
}

fn collect<'a>(context: &Context<'a>) -> BTreeMap<Way, Python<'a>> {
    let mut found: BTreeMap<Way, Python<'a>> = BTreeMap::new();
    for execution in &context.executions {
        // What a reused exchange stands on is in the plan twice.
        let mut seen = BTreeSet::new();
        for node in execution.nodes() {
            let Some(way) = way(node.node) else { continue };
            let known = node.node.metrics.first().map(|metric| metric.accumulator);
            if known.is_some_and(|known| !seen.insert(known)) {
                continue;
            }
            // What the node's own metrics say, and no neighbours': below the
            // scan of a cache that was filled before, nothing ran.
            if node.node.stages.is_empty() {
                continue;
            }
            let own = execution.stages_of(node);
            let time = own
                .iter()
                .filter_map(|place| context.stages.get(*place)?.run_time_sum())
                .fold(Duration::ZERO, Duration::saturating_add);
            let measured = Measured::of(node.node);
            let feeding = feeding(node);
            let rows = node.node.value("number of output rows").map_or(0, |value| value.total);
            let python = found.entry(way).or_insert_with(|| Python {
                measured: Some(Measured { executing: Some(Duration::ZERO) }),
                feeding: Some(Duration::ZERO),
                ..Python::default()
            });
            python.stages.extend(own);
            python.nodes.push((node, time));
            python.rows = python.rows.saturating_add(rows);
            python.measured = python.measured.zip(measured).map(|(sum, more)| sum.plus(more));
            python.feeding =
                python.feeding.zip(feeding).map(|(sum, more)| sum.saturating_add(more));
        }
    }
    found
}

/// Where the run time of these stages went, as far as it can be told.
struct Split {
    /// Without what first tasks took beyond the others.
    run: Duration,
    cpu: Duration,
    outside: Duration,
    by_stage: Vec<(usize, Duration)>,
}

fn split(context: &Context<'_>, python: &Python<'_>) -> Option<Split> {
    let mut split = Split {
        run: Duration::ZERO,
        cpu: Duration::ZERO,
        outside: Duration::ZERO,
        by_stage: Vec::new(),
    };
    for place in &python.stages {
        let view = context.stages.get(*place)?;
        let measures = &view.stage.measures;
        let run = view.run_time_sum()?.saturating_sub(first_tasks_excess(context, view));
        let cpu = measures.cpu_time.sum?;
        let elsewhere =
            [measures.gc_time.sum, measures.fetch_wait_time.sum, measures.shuffle_write_time.sum];
        let outside =
            elsewhere.into_iter().flatten().fold(run.saturating_sub(cpu), Duration::saturating_sub);
        split.run = split.run.saturating_add(run);
        split.cpu = split.cpu.saturating_add(cpu);
        split.outside = split.outside.saturating_add(outside);
        split.by_stage.push((*place, outside));
    }
    (!split.run.is_zero()).then_some(split)
}

/// What the tasks that start Python workers, as many on each executor as it
/// has slots, ran beyond the median of the other tasks. Zero where there are
/// no others to compare with.
fn first_tasks_excess(context: &Context<'_>, view: &StageView<'_>) -> Duration {
    let Some(timeline) = &view.stage.timeline else { return Duration::ZERO };
    let mut launched: BTreeMap<u32, u32> = BTreeMap::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for task in timeline.iter().filter(|task| task.succeeded) {
        let cores = context
            .application
            .executors
            .get(task.executor as usize)
            .map_or(1, |executor| executor.cores.max(1));
        let slots = (f64::from(cores) / view.cpus).max(1.0) as u32;
        let seen = launched.entry(task.executor).or_default();
        if *seen < slots {
            first.push(task.run_ms);
        } else {
            others.push(task.run_ms);
        }
        *seen += 1;
    }
    others.sort_unstable();
    let Some(typical) = others.get(others.len() / 2) else { return Duration::ZERO };
    let excess: u64 = first.iter().map(|run| u64::from(run.saturating_sub(*typical))).sum();
    view.run_time(Duration::from_millis(excess))
}

fn judge(context: &Context<'_>, way: Way, python: &Python<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.python_udf;
    let sum = |views: &mut dyn Iterator<Item = &StageView<'_>>| {
        views.filter_map(StageView::run_time_sum).fold(Duration::ZERO, Duration::saturating_add)
    };
    let all = sum(&mut context.stages.iter());
    let own = sum(&mut python.stages.iter().filter_map(|place| context.stages.get(*place)));
    let share = ratio(own, all)?;
    let split = split(context, python)?;
    let outside = match python.measured.and_then(|measured| measured.executing) {
        Some(executing) => split.outside.min(executing),
        None => split.outside,
    }
    .saturating_sub(python.feeding.unwrap_or_default());
    let outside_ratio = ratio(outside, split.run)?;
    let cpu_ratio = ratio(split.cpu, split.run)?;
    if share < thresholds.ratio
        || ratio(outside, all)? < thresholds.ratio
        || outside < context.thresholds.cost.emit_floor(context.run)
    {
        return None;
    }
    // Whether it is Python's, and not that of what feeds it: Spark 4 feeds it
    // in the task's own thread, whose CPU time is measured.
    let proven =
        python.feeding.is_some() || (python.measured.is_some() && cpu_ratio < thresholds.cpu_ratio);
    let is_slow =
        proven && cpu_ratio < thresholds.cpu_ratio && outside_ratio >= thresholds.python_ratio;
    if way == Way::Vectorised && !is_slow {
        return None;
    }
    let (node, _) = python.nodes.iter().max_by_key(|(_, time)| *time)?;
    let headline = headline(way, python, *node, outside, own, proven);
    let from = match python.stages.len() {
        1 => context.stages.get(*python.stages.first()?)?.name(),
        n => format!("{n} stages"),
    };
    let vectorised = way == Way::Vectorised;
    let held_against = |threshold: f64| vectorised.then_some(threshold);
    let mut draft =
        Draft::new(Rule::PythonUdf, FindingKind::Configuration, node.subject(), headline)
            .cause(vectorised.then_some(Cause::SlowVectorised))
            .confidence(if proven { Confidence::High } else { Confidence::Medium })
            .evidence("task_time_ratio", share, Unit::Ratio, thresholds.ratio, &from)
            .evidence("python_time", outside.as_secs_f64(), Unit::Seconds, None, &from)
            .evidence(
                "python_time_ratio",
                outside_ratio,
                Unit::Ratio,
                held_against(thresholds.python_ratio),
                &from,
            )
            .evidence(
                "jvm_cpu_ratio",
                cpu_ratio,
                Unit::Ratio,
                held_against(thresholds.cpu_ratio),
                &from,
            );
    if python.rows > 0 {
        let rows = python.rows as f64;
        let per_row = outside.as_secs_f64() / rows;
        draft = draft.evidence("rows", rows, Unit::Count, None, node.name()).evidence(
            "time_per_row",
            per_row,
            Unit::Seconds,
            None,
            node.name(),
        );
    }
    if let Some(kind) = evaluation_type(node.node) {
        draft = draft.evidence("evaluation_type", f64::from(kind), Unit::Count, None, node.name());
    }
    Some(match way {
        Way::Vectorised => advise_vectorised(draft.weight(Weight::Exactly(Severity::Info))),
        Way::RowAtATime => {
            let least =
                AT_LEAST_PER_ROW.saturating_mul(u32::try_from(python.rows).unwrap_or(u32::MAX));
            let claimed = if proven { outside } else { outside.min(least) };
            let part = ratio(claimed, split.outside).unwrap_or(0.0);
            let savings = split.by_stage.iter().filter_map(|(place, outside)| {
                let run = context.stages.get(*place)?.run_time_sum()?;
                Some((*place, ratio(seconds(outside.as_secs_f64() * part), run)?))
            });
            let (impact, shares) = less_work::saving(context, savings);
            let weight = if proven {
                Weight::Saving { at_most: Severity::Warning }
            } else {
                Weight::AtLeast(Severity::Info)
            };
            advise_rows(draft.weight(weight).impact(impact, shares), &node.node.name)
        }
    })
}

fn headline(
    way: Way,
    python: &Python<'_>,
    node: NodeRef<'_>,
    outside: Duration,
    own: Duration,
    proven: bool,
) -> String {
    let others = python.nodes.len().saturating_sub(1) as u64;
    format!(
        "{}{}: {}{} of the {} that {} ran went to {}{}",
        node.name(),
        if others == 0 {
            String::new()
        } else {
            format!(" and {}", humane::count(others, "node more", "nodes more"))
        },
        if proven { "" } else { "up to " },
        humane::duration(outside),
        humane::duration(own),
        if others == 0 { "its stages" } else { "their stages" },
        match way {
            Way::RowAtATime => "a Python function called row by row",
            Way::Vectorised => "a slow Python function, vectorised as it is",
        },
        if proven { "" } else { " and to what feeds it" },
    )
}

fn advise_rows(draft: Draft, name: &str) -> Draft {
    let draft = draft
        .advice_unless(
            "Write the function with Spark's own (pyspark.sql.functions, higher-order functions \
             for arrays): it then runs compiled in the JVM, and no row leaves it",
            Where::Sql,
            "it needs a Python library",
        )
        .advice_unless(
            "Make it a pandas or Arrow UDF that works on whole columns",
            Where::Sql,
            "its body would loop over the values again",
        );
    let draft = if name.starts_with("BatchEval") {
        draft.advice_unless(
            "Set spark.sql.execution.pythonUDF.arrow.enabled=true (3.5 and newer, with pyarrow): \
             rows then travel by Arrow instead of pickled",
            Where::Conf,
            "the function itself takes the time: it is still called row by row",
        )
    } else {
        draft
    };
    draft.advice_unless(
        "Filter and deduplicate before the function is called",
        Where::Sql,
        "every row needs its own result",
    )
}

fn advise_vectorised(draft: Draft) -> Draft {
    draft
        .advice_unless(
            "Replace loops over values in the function by operations on whole columns (pandas, \
             NumPy, Arrow compute), or the function by Spark's own",
            Where::Sql,
            "a library does the work already: then it is what the job is for",
        )
        .advice_unless(
            "Give Python more cores, not the JVM more memory: each task has one Python worker",
            Where::Resources,
            "the time of the run does not matter",
        )
}
