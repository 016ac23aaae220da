//! `partitioning`: too few tasks to keep the cores busy, so many that
//! launching them is the work, or tasks that hold too much.

use std::time::Duration;

use super::context::{Context, StageView, seconds};
use super::draft::{Draft, Weight};
use super::humane;
use super::replay::Saving;
use super::task_list::TaskList;
use super::{About, Confidence, FindingKind, Impact, Rule, Severity, Unit, Where};
use crate::model::StageStatus;

/// Waves of tasks over the slots that even out what one wave does not.
const WAVES: u64 = 3;

pub(super) const ABOUT: About = About {
    rule: Rule::Partitioning,
    meaning: "The work was cut into too few pieces to keep the cores busy, into so many that starting them costs more than they do, or into pieces too large to handle.",
    details: "| case | fires |
|---|---|
| one task | in the longest stage or one of >= 5 % of the run, with more than one slot |
| too few | fewer tasks than slots in a stage of >= 5 % of the run (`few_tasks_ratio`) |
| too many | > 5,000 tasks (`many_tasks`) with a median < 500 ms (`small_task`), and slots spent more time on getting tasks than on running them |
| too large | a task moved > 5 GiB (`task_bytes`) |

*Sources*: DataFlint (smallTasks, maxPartitionToBig), Databricks (one task).

The suggested count is the larger of bytes / 128 MiB (`target_bytes`) and slots x
3 waves; the advice shows the arithmetic. Saving of the first two: the longest
task against the same run time on all slots, no piece below 500 ms; of the third:
the launching that fewer tasks would not need; of the fourth: no time is known.
Whether the work can be divided is not in the numbers: confidence is medium.
Retried attempts are not judged, they compute only what was lost.
",
    evidence: &[
        ("tasks", "partitions of the stage"),
        ("slots", "tasks that could run at once"),
        ("share_of_run", "the stage's time to the run's"),
        ("run_time", "of all its tasks"),
        ("data_moved", "the largest of input, output, shuffle read and shuffle write"),
        ("suggested_tasks", "see the arithmetic above"),
        ("median_task", "run time of the median task, or bytes where the largest task is judged"),
        ("launching", "slot time that went by without running a task"),
        ("largest_task", "bytes that the largest task moved"),
    ],
    fires: &["partitioning_one_task", "partitioning_too_few"],
    near_misses: &["partitioning_one_task-healthy", "partitioning_too_few-healthy", "partitioning_too_many-healthy"],
    resists: &[
        ("tiny_tasks", "thousands of tiny tasks that are started quickly are no fault"),
        ("many_stages", "stages with few tasks are no fault where each is a small part of the run"),
    ],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.partitioning.enabled || !context.tasks_are_complete() {
        return;
    }
    let longest = context.longest_stage().filter(|_| context.stages_are_complete());
    let longest = longest.map(|view| view.index);
    for view in &context.stages {
        if view.stage.status != StageStatus::Complete && view.stage.status != StageStatus::Active {
            continue;
        }
        drafts.extend(too_few(context, view, longest == Some(view.index)));
        drafts.extend(too_many(context, view));
        drafts.extend(too_large(context, view));
    }
}

/// One task in the run's longest stage, or fewer tasks than cores in a stage
/// that matters.
fn too_few(context: &Context<'_>, view: &StageView<'_>, longest: bool) -> Option<Draft> {
    let thresholds = &context.thresholds.partitioning;
    let stage = view.stage;
    let slots = view.slots? as u64;
    let tasks = stage.tasks.total;
    let share = context.share(view.running());
    let matters = share >= thresholds.few_tasks_ratio || (tasks == 1 && longest);
    // A retry computes only what was lost.
    if tasks == 0 || tasks >= slots || !matters || stage.id.attempt > 0 {
        return None;
    }
    let list = TaskList::of(view)?;
    // What running attempts have done so far is in the list alone.
    let run = view.run_time_sum().unwrap_or_default().max(list.run_time());
    let piece = thresholds.small_task.get().as_secs_f64().max(0.001);
    let pieces = ((run.as_secs_f64() / piece) as u64).clamp(1, slots);
    if pieces <= tasks {
        return None;
    }
    // The same run time on `pieces` tasks, all at once.
    let mended = seconds(run.as_secs_f64() / pieces as f64);
    let longest_run =
        list.attempts.iter().map(|attempt| attempt.run).max().map(Duration::from_millis)?;
    let wall = longest_run.saturating_sub(mended).min(view.running());
    let estimated = list.estimated;
    let impact = context.impact(view, Saving { wall, removed: Duration::ZERO }, estimated);
    let (bytes, _) = view.moved();
    let target = thresholds.target_bytes.bytes().max(1);
    let by_bytes = bytes.div_ceil(target);
    let by_cores = slots.saturating_mul(WAVES);
    let suggested = by_bytes.max(by_cores).min(((run.as_secs_f64() / piece) as u64).max(slots));
    let headline = format!(
        "Stage {}: {} on {} for {}",
        stage.id,
        humane::count(tasks, "task", "tasks"),
        humane::count(slots, "slot", "slots"),
        humane::duration(view.running()),
    );
    let from = view.name();
    let draft =
        Draft::new(Rule::Partitioning, FindingKind::Configuration, view.subject(), headline)
            // Whether the work can be divided is not in the numbers.
            .confidence(Confidence::Medium)
            .evidence("tasks", tasks as f64, Unit::Count, slots as f64, &from)
            .evidence("slots", slots as f64, Unit::Count, None, &from)
            .evidence("share_of_run", share, Unit::Ratio, thresholds.few_tasks_ratio, &from)
            .evidence("run_time", run.as_secs_f64(), Unit::Seconds, None, &from)
            .evidence("data_moved", bytes as f64, Unit::Bytes, None, &from)
            .evidence(
                "suggested_tasks",
                suggested as f64,
                Unit::Count,
                None,
                "arithmetic in advice",
            )
            .impact(impact, vec![(view.index, impact.wall.unwrap_or_default())]);
    let arithmetic = format!(
        "the larger of {} / {} = {by_bytes} and {slots} slots x {WAVES} waves = {by_cores}, no \
         task below {}",
        humane::bytes(bytes),
        humane::bytes(target),
        humane::duration(thresholds.small_task.get()),
    );
    let reads_shuffle = stage.measures.shuffle_read_bytes.sum_or_zero() > 0;
    let change = if reads_shuffle {
        format!(
            "Use some {suggested} partitions ({arithmetic}): raise spark.sql.shuffle.partitions, \
             or take away a coalesce() or repartition() that narrows this stage"
        )
    } else {
        format!(
            "Use some {suggested} partitions ({arithmetic}): repartition after the read, take away \
             a coalesce(), lower spark.sql.files.maxPartitionBytes, or give a JDBC read partition \
             columns"
        )
    };
    Some(
        draft
            .advice_unless(
                change,
                Where::Conf,
                "the work cannot be divided (a global limit, a window without PARTITION BY, one \
                 gzip file)",
            )
            .advice_unless(
                "Write with repartition(n) instead of coalesce(n) where only the number of files \
                 matters: the stage before keeps its tasks",
                Where::Sql,
                "no coalesce() is there",
            ),
    )
}

/// Thousands of tasks so short that slots spend more time on getting them
/// than on running them.
fn too_many(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.partitioning;
    let stage = view.stage;
    let tasks = stage.tasks.total;
    let median = view.run_time_median()?;
    if tasks <= thresholds.many_tasks || median >= thresholds.small_task.get() {
        return None;
    }
    let slots = view.slots? as u64;
    let run = view.run_time_sum()?;
    let slot_time = view.running().as_secs_f64() * slots as f64;
    let launching = (slot_time - run.as_secs_f64()).max(0.0);
    if launching <= run.as_secs_f64() {
        return None;
    }
    let (bytes, _) = view.moved();
    let target = thresholds.target_bytes.bytes().max(1);
    let by_bytes = bytes.div_ceil(target);
    let by_cores = slots.saturating_mul(WAVES);
    let suggested = by_bytes.max(by_cores).min(tasks);
    // Launching costs what it does now, a task.
    let mended = (run.as_secs_f64() + launching * suggested as f64 / tasks as f64) / slots as f64;
    let wall = view.running().saturating_sub(seconds(mended));
    let removed = seconds(launching * (1.0 - suggested as f64 / tasks as f64));
    let wall_alone = wall.min(view.alone);
    let impact = Impact {
        wall: Some(wall_alone),
        core: Some(seconds(removed.as_secs_f64() * view.cpus)),
        estimated: false,
    };
    let headline = format!(
        "Stage {}: {} with a median of {}: launching them took more than their work ({} of {} of \
         slot time)",
        stage.id,
        humane::count(tasks, "task", "tasks"),
        humane::duration(median),
        humane::duration(seconds(launching)),
        humane::duration(seconds(slot_time)),
    );
    let from = view.name();
    Some(
        Draft::new(Rule::Partitioning, FindingKind::Configuration, view.subject(), headline)
            .confidence(Confidence::Medium)
            .evidence("tasks", tasks as f64, Unit::Count, thresholds.many_tasks as f64, &from)
            .evidence(
                "median_task",
                median.as_secs_f64(),
                Unit::Seconds,
                thresholds.small_task.get().as_secs_f64(),
                &from,
            )
            .evidence("launching", launching, Unit::Seconds, run.as_secs_f64(), &from)
            .evidence("run_time", run.as_secs_f64(), Unit::Seconds, None, &from)
            .evidence(
                "suggested_tasks",
                suggested as f64,
                Unit::Count,
                None,
                "arithmetic in advice",
            )
            .impact(impact, vec![(view.index, wall_alone)])
            .advice_unless(
                format!(
                    "Use some {} partitions: the larger of {} / {} = {by_bytes} and {slots} slots \
                     x {WAVES} waves = {by_cores}. Lower spark.sql.shuffle.partitions or the \
                     repartition, leave it to adaptive execution, or coalesce after the read",
                    humane::number(suggested),
                    humane::bytes(bytes),
                    humane::bytes(target),
                ),
                Where::Conf,
                "the driver is busy with something else",
            )
            .advice_unless(
                "Compact small files, or raise spark.sql.files.maxPartitionBytes",
                Where::Data,
                "the stage reads a shuffle",
            ),
    )
}

/// A task that moves gigabytes.
fn too_large(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.partitioning;
    let measures = &view.stage.measures;
    let largest = |get: &dyn Fn(&crate::model::Quantiles<u64>) -> u64| {
        [
            measures.input_bytes,
            measures.output_bytes,
            measures.shuffle_read_bytes,
            measures.shuffle_write_bytes,
        ]
        .iter()
        .filter_map(|distribution| distribution.quantiles.as_ref().map(get))
        .max()
    };
    let max = largest(&|quantiles| quantiles.max)?;
    let median = largest(&|quantiles| quantiles.median)?;
    if max <= thresholds.task_bytes.bytes() {
        return None;
    }
    let share = context.share(view.running());
    let matters = share >= thresholds.few_tasks_ratio;
    let (bytes, _) = view.moved();
    let target = thresholds.target_bytes.bytes().max(1);
    let suggested = bytes.div_ceil(target);
    let headline = format!(
        "Stage {}: a task moved {} (median {})",
        view.stage.id,
        humane::bytes(max),
        humane::bytes(median)
    );
    let from = view.name();
    Some(
        Draft::new(Rule::Partitioning, FindingKind::Configuration, view.subject(), headline)
            // Spark has no time for it: by the stage's share of the run.
            .weight(Weight::Exactly(if matters { Severity::Warning } else { Severity::Info }))
            .confidence(Confidence::Low)
            .evidence(
                "largest_task",
                max as f64,
                Unit::Bytes,
                thresholds.task_bytes.bytes() as f64,
                &from,
            )
            .evidence("median_task", median as f64, Unit::Bytes, None, &from)
            .evidence("share_of_run", share, Unit::Ratio, thresholds.few_tasks_ratio, &from)
            .evidence(
                "suggested_tasks",
                suggested as f64,
                Unit::Count,
                None,
                "arithmetic in advice",
            )
            .advice_unless(
                format!(
                    "Use some {} partitions: {} / {}",
                    humane::number(suggested),
                    humane::bytes(bytes),
                    humane::bytes(target)
                ),
                Where::Conf,
                if median.saturating_mul(4) < max {
                    "one key or file holds most of it, as the median says here: see data skew"
                } else {
                    "one key or one file that cannot be split holds most of it"
                },
            ),
    )
}
