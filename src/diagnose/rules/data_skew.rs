//! `data_skew`: one task had much more to do than the others, and the stage
//! waited for it.
//!
//! Fires where a task's run time is several times the typical one *and* its
//! records are: time alone is a cold JVM more often than a hot key. A
//! running task counts with what it has done so far, so that a hot key shows
//! before its job ends.

use super::context::{Context, StageView};
use super::draft::Draft;
use super::fed_by::{self, Fed};
use super::humane;
use super::skew_advice::{self, Asked};
use super::slow::{self, Compared, Load, Slow};
use super::task_list::TaskList;
use super::unsplittable;
use super::{About, Cause, Confidence, FindingKind, Rule, Unit};
use crate::model::Stage;

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
batches, and behind an aggregate that gathers rows (`collect_list`), which sends
one record for all that a task had of a key. Without a plan (REST) that cannot be
seen: there bytes decide where they are as uneven as the time. Where the typical
task has no records at all, the mean of the others stands in. A median run time of
0 has no ratio.

Where the log has the plan, the operator that feeds on the skewed shuffle is named
(join, window, aggregate), and advice fits it: adaptive execution splits skewed
partitions of joins and of nothing else, and no number of partitions splits a key.

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
    evidence: &[
        ("run_time", "run time of the task"),
        ("typical_run_time", "typical run time of the stage's tasks"),
        ("run_time_ratio", "one over the other"),
        ("records", "records of the task, of the sort that is most uneven"),
        ("typical_records", "typical records of the stage's tasks"),
        ("records_ratio", "one over the other"),
        ("bytes", "bytes of the task, likewise"),
        ("typical_bytes", "typical bytes of the stage's tasks"),
        ("bytes_ratio", "one over the other"),
        ("split_bytes", "of files: what a split holds at most, where the task read more than that"),
        ("operator_rows", "rows that came out of the operator that is named"),
        ("rows_kept", "of a join: rows that came out, over those of the larger side"),
    ],
    fires: &[
        "hot_key",
        "hot_key-64_partitions",
        "hot_key_window",
        "hot_key_aggregate",
        "compressible_hot_key",
        "compressible_hot_key-split",
        "input_files",
    ],
    near_misses: &["hot_key-cheap", "hot_key-split"],
    resists: &[
        ("wide_rows", "one task has thirty times the bytes and no more rows"),
        ("straggler_cold_executor", "one task is slow because its executor is cold"),
        ("partial_aggregation", "GROUP BY over a hot key, whose rows are added up before the shuffle"),
        ("count_distinct", "count(DISTINCT) over a hot key, which shuffles by key and value first"),
    ],
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
            let load = slow::load(context, view, &slow);
            let deciding = load.deciding()?;
            if deciding.ratio >= thresholds.records_ratio {
                return Some((slow, load, deciding));
            }
            // Without a plan nobody tells that records are no rows: where
            // bytes are as uneven as the time, they are believed.
            let bytes = load.bytes.filter(|_| context.application.sql.is_none())?;
            let reads_shuffle = view.stage.measures.shuffle_read_bytes.sum_or_zero() > 0;
            (reads_shuffle && bytes.ratio >= slow.threshold).then_some((slow, load, bytes))
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
    let fed = fed_by::of_stage(context, view);
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
        place(stage, fed.as_ref()).map_or_else(String::new, |name| format!(", in {name}")),
    );
    let task = slow.name();
    let mut draft = Draft::new(Rule::DataSkew, FindingKind::Data, view.subject(), headline)
        .cause(cause)
        .confidence(match deciding.unit {
            Unit::Count if stage.tasks.succeeded >= 10 => Confidence::High,
            Unit::Bytes if !load.counts_other_things && load.records.is_some() => Confidence::Low,
            _ => Confidence::Medium,
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
    if let Some(fed) = &fed {
        if let Some(rows) = fed.node.rows() {
            draft =
                draft.evidence("operator_rows", rows as f64, Unit::Count, None, fed.node.from());
        }
        if let Some(kept) = fed.kept {
            draft = draft.evidence("rows_kept", kept, Unit::Ratio, None, fed.node.from());
        }
    }
    draft = draft.impact(impact, vec![(view.index, impact.wall.unwrap_or_default())]);
    if cause == Cause::InputFiles {
        draft = unsplittable::said(draft, context, view, &slow);
    }
    let asked = Asked { cause, context, stage, slow: &slow, fed: fed.as_ref() };
    Some(skew_advice::advise(draft, &asked))
}

/// Where to look: the operator of the plan, or, where the source has none,
/// the operation among the names of the stage's RDDs.
fn place(stage: &Stage, fed: Option<&Fed<'_>>) -> Option<String> {
    if let Some(fed) = fed {
        return Some(fed.node.name());
    }
    // Generated code hides most operators; an aggregate beside it may follow
    // the join that is to blame, so it is named only where it stands alone.
    let hidden = stage.operations.iter().any(|name| name.contains("WholeStageCodegen"));
    let telling: &[&str] = if hidden {
        &["Join", "Window", "Generate", "Scan"]
    } else {
        &["Join", "Window", "Generate", "Aggregate", "Sort", "Scan"]
    };
    let named = telling.iter().find_map(|word| {
        stage.operations.iter().map(|name| name.trim()).find(|name| name.contains(word))
    });
    named.map(|name| name.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
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
