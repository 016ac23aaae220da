//! `data_skew`: one task had much more to do than the others, and the stage
//! waited for it.
//!
//! Fires where a task's run time is several times the typical one *and* its
//! records are: time alone is a cold JVM more often than a hot key. A
//! running task counts with what it has done so far, so that a hot key shows
//! before its job ends.

use super::context::{Context, StageView};
use super::draft::Draft;
use super::humane;
use super::slow::{self, Compared, Load, Slow};
use super::task_list::TaskList;
use super::unsplittable;
use super::{About, Cause, Confidence, FindingKind, Rule, Unit, Where};
use crate::model::{Application, Stage};

pub(super) const ABOUT: About = About {
    rule: Rule::DataSkew,
    meaning: "One task had much more to do than the others, and the stage waited for it.",
    details: "*Fires* where, over the successful tasks of a stage attempt and those still
running,

    run time of the task >= 4 x typical   (run_time_ratio; 3 x for fewer than
                                           10 tasks: run_time_ratio_few_tasks)
    and its records      >= 2 x typical   (records_ratio)

Typical is the median for 10 tasks and more, the mean of the other tasks for 2
to 9. Records are the largest ratio among records read (input and shuffle),
written to the shuffle, and written out. Bytes decide instead where there are no
records or fewer than 100, and in a scan of a cached table, where Spark counts
batches. Where the typical task has no records at all, the mean of the others
stands in. A median run time of 0 has no ratio.

*Sources*: Dr. Elephant's stage skew (2 to 16 x), AQE's skew join (5 x).

| cause | meaning |
|---|---|
| `hot_key` | one key of the shuffle holds most rows |
| `compressible_hot_key` | the same, and the records ratio is at least twice (`compressible_ratio`) the bytes ratio: the rows compress, the partition stays below the size at which AQE splits it, and more shuffle partitions leave one key where it is |
| `input_files` | the stage reads no shuffle: its files or splits are uneven. Salting and AQE are no advice |
| `unknown` | no shuffle, and even input: rows multiply in the stage |

*Silent* for equal records (that is `straggler`), for ratios without time to
save, and for running tasks whose records are not known yet.
",
    evidence: &[],
    fires: &[],
    near_misses: &[],
    resists: &[],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.data_skew.enabled && context.tasks_are_complete() {
        drafts.extend(context.stages.iter().filter_map(|view| judge(context, view)));
    }
}

/// The skewed task of a stage and its load; `straggler` asks as well, so that
/// no stage is called both.
pub(super) fn skewed<'a>(
    context: &Context<'_>,
    view: &StageView<'a>,
) -> Option<(Slow<'a>, Load, Compared)> {
    let thresholds = &context.thresholds.data_skew;
    let slow =
        slow::slow_tasks(view, thresholds.run_time_ratio, thresholds.run_time_ratio_few_tasks);
    let longest = slow.first()?.excess();
    slow.into_iter()
        // A cold task may outrun the hot key; a far longer one is the story.
        .filter(|slow| slow.excess() >= longest / 2)
        .find_map(|slow| {
            let load = slow::load(view, context.application, &slow);
            let deciding = load.deciding()?;
            (deciding.ratio >= thresholds.records_ratio).then_some((slow, load, deciding))
        })
}

fn judge(context: &Context<'_>, view: &StageView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.data_skew;
    let (slow, load, deciding) = skewed(context, view)?;
    let tasks = TaskList::of(view)?;
    let saving = tasks.saving_if_even(view)?;
    let impact = context.impact(view, saving, tasks.estimated);
    let cause = cause(view.stage, &load, thresholds.compressible_ratio);
    let stage = view.stage;
    let of_what = match deciding.unit {
        Unit::Bytes => "bytes",
        _ => "records",
    };
    let headline = format!(
        "Stage {}: one task {} {}, {}, and {} {} the {of_what}{}",
        stage.id,
        if slow.is_running() { "has run for" } else { "ran" },
        humane::duration(slow.run),
        slow::against(view, &slow),
        if slow.is_running() { "has read or written" } else { "had" },
        humane::ratio(deciding.ratio),
        operator(stage).map_or_else(String::new, |name| format!(" ({name})")),
    );
    let task = slow.name();
    let mut draft = Draft::new(Rule::DataSkew, FindingKind::Data, view.subject(), headline)
        .cause(cause)
        .confidence(if stage.tasks.succeeded >= 10 && deciding.unit == Unit::Count {
            Confidence::High
        } else {
            Confidence::Medium
        })
        .evidence("run_time", slow.run.as_secs_f64(), Unit::Seconds, None, &task)
        .evidence("typical_run_time", slow.typical.as_secs_f64(), Unit::Seconds, None, view.name())
        .evidence("run_time_ratio", slow.ratio, Unit::Ratio, slow.threshold, view.name());
    for (compared, names) in [
        (load.records, ["records", "typical_records", "records_ratio"]),
        (load.bytes, ["bytes", "typical_bytes", "bytes_ratio"]),
    ] {
        if let Some(compared) = compared {
            let threshold = (compared.unit == deciding.unit).then_some(thresholds.records_ratio);
            let where_from = format!("{task}: {}", compared.what);
            draft = draft
                .evidence(names[0], compared.value, compared.unit, None, where_from)
                .evidence(names[1], compared.typical, compared.unit, None, view.name())
                .evidence(names[2], compared.ratio, Unit::Ratio, threshold, view.name());
        }
    }
    draft = draft.impact(impact, vec![(view.index, impact.wall.unwrap_or_default())]);
    if cause == Cause::InputFiles {
        draft = unsplittable::said(draft, context, view, &slow);
    }
    Some(advise(draft, cause, context.application, stage, &slow))
}

/// Which fault of the data it is.
fn cause(stage: &Stage, load: &Load, compressible_ratio: f64) -> Cause {
    let measures = &stage.measures;
    let reads_shuffle = measures.shuffle_read_bytes.sum_or_zero() > 0
        || measures.shuffle_read_records.sum_or_zero() > 0;
    if !reads_shuffle {
        let reads_more = [load.records_read, load.bytes_read]
            .into_iter()
            .flatten()
            .any(|compared| compared.ratio >= 2.0);
        return if reads_more { Cause::InputFiles } else { Cause::Unknown };
    }
    match (load.records_read, load.bytes_read) {
        (Some(records), Some(bytes))
            if records.ratio >= 2.0 && records.ratio >= compressible_ratio * bytes.ratio =>
        {
            Cause::CompressibleHotKey
        }
        _ => Cause::HotKey,
    }
}

/// The operation a person would look for, where the stage's names tell.
fn operator(stage: &Stage) -> Option<&str> {
    // Generated code hides most operators; an aggregate beside it may follow
    // the join that is to blame, so it is named only where it stands alone.
    let hidden = stage.operations.iter().any(|name| name.contains("WholeStageCodegen"));
    let telling: &[&str] = if hidden {
        &["Join", "Window", "Generate", "Scan"]
    } else {
        &["Join", "Window", "Generate", "Aggregate", "Sort", "Scan"]
    };
    telling.iter().find_map(|word| {
        stage.operations.iter().map(|name| name.trim()).find(|name| name.contains(word))
    })
}

fn advise(
    draft: Draft,
    cause: Cause,
    application: &Application,
    stage: &Stage,
    slow: &Slow<'_>,
) -> Draft {
    let configuration = &application.configuration;
    let adaptive = configuration.flag("spark.sql.adaptive.enabled", true)
        && configuration.flag("spark.sql.adaptive.skewJoin.enabled", true);
    match cause {
        Cause::InputFiles => {
            let unsplittable = stage.operations.iter().any(|name| {
                ["csv", "json", "text"].iter().any(|format| name.to_lowercase().contains(format))
            });
            draft
                .advice_unless(
                    if unsplittable {
                        "Write the input in files of 128 MiB to 1 GiB in a splittable format \
                         (Parquet, ORC, or zstd/bzip2 instead of gzip for text): this scan reads \
                         text, and a gzip file or a multi-line one goes to a single task"
                    } else {
                        "Write the input in files or row groups of 128 MiB to 1 GiB of similar \
                         size, in a splittable format"
                    },
                    Where::Data,
                    "another team writes the files: then repartition right after the read",
                )
                .advice_unless(
                    "Repartition right after the read, so that what follows the scan is even",
                    Where::Sql,
                    "the scan itself, and not what follows it, takes the time",
                )
        }
        Cause::Unknown => draft.advice(
            "Look at what the stage makes of its input: one partition is turned into many more \
             rows than the others (explode, a generator, a cross product)",
            Where::Sql,
        ),
        _ => {
            let read = slow.task.metrics.shuffle_read_bytes;
            let draft = match (adaptive, cause) {
                (false, _) => draft.advice_unless(
                    "Set spark.sql.adaptive.enabled=true and \
                     spark.sql.adaptive.skewJoin.enabled=true: Spark then splits large join \
                     partitions itself",
                    Where::Conf,
                    "the stage aggregates or computes a window: only joins are split",
                ),
                (true, Cause::CompressibleHotKey) => draft.advice_unless(
                    format!(
                        "Salt the hot key on both sides, or join its rows apart from the rest. \
                         The partition has only {} (its rows compress well), so adaptive \
                         execution does not split it, and more shuffle partitions leave one key \
                         where it is",
                        humane::bytes(read)
                    ),
                    Where::Sql,
                    "the other side is small: then broadcast it",
                ),
                (true, _) => draft,
            };
            let draft = draft.advice_unless(
                "Broadcast the smaller side of the join, so that no key decides where rows go",
                Where::Sql,
                "it is larger than a few hundred MiB, or the stage is no join",
            );
            let draft = if cause == Cause::CompressibleHotKey {
                draft
            } else {
                draft.advice_unless(
                    "Salt the hot key, or handle its rows apart from the rest; drop it if it is a \
                     null or a default that joins with nothing",
                    Where::Sql,
                    "many keys share the partition: then more shuffle partitions are enough",
                )
            };
            draft.advice_unless(
                format!(
                    "Lower spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes below {} \
                     and spark.sql.adaptive.advisoryPartitionSizeInBytes with it",
                    humane::bytes(read)
                ),
                Where::Conf,
                "the stage is no sort-merge or shuffled hash join, or one map output holds the key",
            )
        }
    }
}
