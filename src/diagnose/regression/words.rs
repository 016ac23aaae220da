//! A regression in words: the headline, and what to do by what changed. Only
//! Spark's own words, numbers, keys of settings and plain values of them.

use std::time::Duration;

use super::baseline::Held;
use super::changes::{Changes, SettingChange, StageGrowth, Why};
use crate::diagnose::draft::Draft;
use crate::diagnose::summary::{PlanSummary, StageSummary};
use crate::diagnose::{TimePart, Where, humane};

/// Operators that stand for a stage, and things beside the main one, in a
/// headline.
const OPERATORS: usize = 2;
const BESIDE: usize = 3;

/// `Took 4 min 10 s, 2.1x the median of the last 20 runs (1 min 58 s): stage 7
/// (SortMergeJoin) took 1 min 50 s more, ...`.
pub(super) fn headline(held: &Held<'_>, changes: &Changes<'_>) -> String {
    let mut line = format!(
        "Took {}, {} the median of the last {} comparable runs ({})",
        humane::duration(held.duration),
        humane::ratio(held.ratio().unwrap_or_default()),
        held.baseline.runs,
        humane::duration(held.baseline.median),
    );
    let mut parts: Vec<String> = main(changes).into_iter().collect();
    parts.extend(beside(changes).into_iter().take(BESIDE));
    if parts.is_empty() {
        parts.push("nothing that is recorded of them says why".to_owned());
    }
    line.push_str(": ");
    line.push_str(&parts.join("; "));
    line
}

/// What explains most of the excess.
fn main(changes: &Changes<'_>) -> Option<String> {
    if let Some(stage) = &changes.stage {
        let name = name(stage.now);
        let mut said = if stage.is_new {
            format!("{name} is new and took {}", millis(stage.now.span_ms as f64))
        } else {
            format!("{name} took {} more", millis(stage.growth_ms))
        };
        for why in &stage.why {
            said.push_str(", ");
            said.push_str(&reason(*why));
        }
        return Some(said);
    }
    let part = changes.part?;
    Some(format!("{} more {}", millis(part.growth_ms), words(part.part)))
}

fn beside(changes: &Changes<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let shown = changes.settings.iter().filter(|setting| setting.values.is_some());
    said.extend(shown.filter_map(|setting| Some(format!("changed: {}", with_values(setting)?))));
    if let Some(plan) = changes.plan {
        said.push(format!(
            "the plan of SQL execution {}{} is not one that they had",
            plan.sql_id,
            in_brackets(&plan.operators)
        ));
    }
    if let Some((before, now)) = changes.cores {
        said.push(format!("{now} cores at most instead of {before}"));
    }
    if let Some((before, now)) = changes.version {
        said.push(format!("Spark {} instead of {}", plain(now), plain(before)));
    }
    if let Some(finding) = changes.findings.first() {
        said.push(format!("{} was not found in them", finding.rule));
    }
    let hidden: Vec<&str> = changes
        .settings
        .iter()
        .filter(|setting| setting.values.is_none())
        .map(|setting| setting.key)
        .collect();
    match hidden[..] {
        [] => {}
        [key] => said.push(format!("{key} has another value")),
        [key, ..] => {
            let more = humane::count(hidden.len() as u64 - 1, "other", "others");
            said.push(format!("{key} and {more} have other values"));
        }
    }
    said
}

fn with_values(setting: &SettingChange<'_>) -> Option<String> {
    let (before, now) = setting.values?;
    let value = |value: Option<&str>| value.unwrap_or("not set").to_owned();
    Some(format!("{} is {}, was {}", setting.key, value(now), value(before)))
}

/// `stage 7 (SortMergeJoin)`; where several attempts are the same, how many.
fn name(stage: &StageSummary) -> String {
    let (id, _) = stage.longest;
    let operators = in_brackets(&stage.operators);
    let what = match (&*operators, &stage.site) {
        ("", Some(site)) => format!(" ({site})"),
        _ => operators,
    };
    if stage.count > 1 {
        format!("stage {id}{what} with {} like it", stage.count - 1)
    } else {
        format!("stage {id}{what}")
    }
}

fn in_brackets(operators: &[String]) -> String {
    let few: Vec<&str> = operators.iter().take(OPERATORS).map(String::as_str).collect();
    if few.is_empty() { String::new() } else { format!(" ({})", few.join(", ")) }
}

fn reason(why: Why) -> String {
    match why {
        Why::Uneven { before, now } => format!(
            "its slowest task took {} what is typical of it (before: {})",
            humane::ratio(now),
            humane::ratio(before)
        ),
        Why::Tasks { before, now } => format!(
            "in {} instead of {}",
            humane::count(now, "task", "tasks"),
            humane::number(before)
        ),
        Why::Data { ratio } => format!("reading {} as much", humane::ratio(ratio)),
        Why::Spill { before, now } => {
            format!("spilling {} (before: {})", humane::bytes(now), humane::bytes(before))
        }
        Why::Gc { growth_ms } => {
            format!("with {} more of garbage collection", millis(growth_ms))
        }
    }
}

fn words(part: TimePart) -> &'static str {
    match part {
        TimePart::Resources => "without an executor",
        TimePart::Driver => "in the driver, between jobs",
        TimePart::Scheduling => "in which tasks waited to be started",
        TimePart::Deserialize => "loading code of tasks",
        TimePart::Cpu => "of computing",
        TimePart::Gc => "of garbage collection",
        TimePart::FetchWait => "waiting for shuffle data",
        TimePart::ShuffleWrite => "writing shuffle data",
        TimePart::Result => "fetching results",
        TimePart::Blocked => "in which tasks were blocked (disk, network, Python, other services)",
    }
}

fn millis(millis: f64) -> String {
    humane::duration(Duration::from_millis(millis.max(0.0) as u64))
}

/// A version as it was stored: read back, it may hold anything.
fn plain(version: &str) -> String {
    version.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')).collect()
}

/// Advice by what changed, the likeliest first.
pub(super) fn advise(mut draft: Draft, changes: &Changes<'_>) -> Draft {
    if changes.waited {
        draft = draft.advice_unless(
            "Look at what held the cluster or the queue when it started: it waited for \
             executors, and was no slower once it had them",
            Where::Resources,
            "the cluster was started for this run",
        );
    }
    for setting in changes.settings.iter().filter(|setting| setting.values.is_some()).take(3) {
        let before = setting.values.and_then(|(before, _)| before);
        let back = before.map_or_else(|| "unset".to_owned(), |value| format!("back to {value}"));
        draft = draft.advice_unless(
            format!("Try {} {back}, as earlier runs had it", setting.key),
            Where::Conf,
            "it was changed for a reason that still holds",
        );
    }
    if let Some(plan) = changes.plan {
        draft = draft.advice_unless(
            plan_advice(plan),
            Where::Sql,
            "nothing was deployed: then data or statistics made Spark plan otherwise",
        );
    }
    if let Some((before, now)) = changes.cores {
        draft = draft.advice(
            format!("Give it its {before} cores again: it had {now} at most"),
            Where::Resources,
        );
    }
    if let Some(stage) = &changes.stage {
        draft = stage_advice(draft, stage, changes);
    }
    if let (None, Some(part)) = (&changes.stage, changes.part)
        && part.part == TimePart::Driver
    {
        draft = draft.advice(
            "Look at what the driver does between jobs: listing files, commits, calls of other \
             services, work on collected rows",
            Where::Sql,
        );
    }
    draft.advice(
        "Hold it against one of the earlier runs: spark-exporter compare EARLIER THIS",
        Where::Sql,
    )
}

fn plan_advice(plan: &PlanSummary) -> String {
    format!(
        "Look at what was deployed since the run before: SQL execution {} has another plan",
        plan.sql_id
    )
}

fn stage_advice(mut draft: Draft, stage: &StageGrowth<'_>, changes: &Changes<'_>) -> Draft {
    for why in &stage.why {
        draft = match why {
            Why::Uneven { .. } => {
                let see = match changes.findings.first() {
                    Some(finding) => format!(" (see {})", finding.rule),
                    None => String::new(),
                };
                draft.advice(
                    format!(
                        "Look for what made its work uneven: a key or a file that has grown, or \
                         a slow host{see}"
                    ),
                    Where::Data,
                )
            }
            Why::Tasks { .. } => draft.advice(
                "Look at what sets its number of tasks: spark.sql.shuffle.partitions, a \
                 repartition or coalesce in the program, the number of input files",
                Where::Conf,
            ),
            Why::Data { .. } => draft.advice(
                "Look at which input of this stage has grown: a filter or a partition that is \
                 gone, duplicates in a table that is joined",
                Where::Data,
            ),
            Why::Spill { .. } => draft.advice(
                "Give its tasks less data each (more partitions) or executors more memory",
                Where::Conf,
            ),
            Why::Gc { .. } => draft.advice(
                "Look at what fills the heaps of its executors: larger rows, a larger broadcast, \
                 a cache, or less memory than before",
                Where::Conf,
            ),
        };
    }
    draft
}
