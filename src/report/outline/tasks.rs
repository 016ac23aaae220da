//! Skew and long tails: how the tasks of the costliest stages are spread, what
//! that is, and step by step how the longest stage was judged.

use std::time::Duration;

use super::words::{self, UNKNOWN};
use super::{Block, Item, Row, Section, Table};
use crate::diagnose::{Cause, Finding, Rule, StageNumbers, TaskProfile, humane};
use crate::model::{Distribution, Quantity, Stage, StageId, StageStatus};
use crate::report::{Diagnosed, Texts, privacy};

/// Stages in the table.
const STAGES: usize = 8;
/// Of them with their tasks drawn.
const SPREADS: usize = 3;
/// A stage whose slowest task takes less than so many times the typical one
/// is even.
const EVEN: f64 = 2.0;

/// How long the tasks of a stage took, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    pub stage: StageId,
    pub tasks: u64,
    /// Equally many tasks each, the longest of them.
    pub run_times: Vec<Duration>,
    pub median: Option<Duration>,
    pub p95: Option<Duration>,
    pub max: Option<Duration>,
    /// What findings or the ratio say of it.
    pub verdict: String,
}

pub(super) fn section(run: &Diagnosed, texts: Texts) -> Section {
    let mut section = Section::new("tasks", "Skew and long tails");
    let mut stages: Vec<&Stage> = run
        .application
        .stages
        .iter()
        .filter(|stage| !matches!(stage.status, StageStatus::Skipped | StageStatus::Pending))
        .collect();
    if stages.is_empty() {
        return section;
    }
    let total = stages.len();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.measures.run_time.sum_or_zero()));
    stages.truncate(STAGES);
    section.blocks.push(Block::Table(table(run, &stages, total, texts)));
    section.blocks.extend(judged(run));
    section.blocks.extend(spreads(run, &stages).map(Block::Spread));
    section
}

fn table(run: &Diagnosed, stages: &[&Stage], total: usize, texts: Texts) -> Table {
    let mut table = Table::new(
        format!("Costliest stages ({} of {total}); median / p95 / max of a task", stages.len()),
        &["stage", "verdict"],
        &["wall", "tasks", "run time", "records", "shuffle read", "spilled"],
    );
    let sites = stages.iter().any(|stage| privacy::call_site(&stage.name, texts).is_some());
    if sites {
        table.columns.push(super::Column { title: "call site", is_number: false });
    }
    for stage in stages {
        let measures = &stage.measures;
        let mut cells = vec![
            stage.id.to_string(),
            verdict(run, stage.id),
            words::time(stage.wall(run.application.observed)),
            humane::number(stage.tasks.total),
            three(&measures.run_time, humane::duration),
            three(&measures.records_read, humane::number),
            three(&measures.shuffle_read_bytes, humane::bytes),
            words::bytes(measures.disk_spilled_bytes.sum),
        ];
        if sites {
            cells.push(privacy::call_site(&stage.name, texts).unwrap_or_default());
        }
        let severity = of_stage(run, stage.id).map(|finding| finding.severity).max();
        let anchor = Some(format!("stage-{}", stage.id));
        table.rows.push(Row { cells, severity, anchor });
    }
    table
}

fn three<T: Quantity>(distribution: &Distribution<T>, say: impl Fn(T) -> String) -> String {
    match distribution.quantiles {
        Some(q) if q.max == T::default() => "-".to_owned(),
        Some(q) => format!("{} / {} / {}", say(q.median), say(q.p95), say(q.max)),
        None => UNKNOWN.to_owned(),
    }
}

fn of_stage(run: &Diagnosed, id: StageId) -> impl Iterator<Item = &Finding> {
    run.diagnosis.findings.iter().filter(move |finding| finding.stage() == Some(id))
}

/// What the spread of its tasks is, in the words of the rules.
fn verdict(run: &Diagnosed, id: StageId) -> String {
    let uneven = |finding: &&Finding| matches!(finding.rule, Rule::DataSkew | Rule::Straggler);
    if let Some(finding) = of_stage(run, id).find(uneven) {
        let what = match (finding.rule, finding.cause) {
            (Rule::DataSkew, _) => "skew: more data",
            (_, Some(Cause::ColdExecutor)) => "long tail: cold executor",
            _ => "long tail, not by data",
        };
        let cause = finding.cause.filter(|cause| *cause != Cause::ColdExecutor);
        let cause = cause.map_or(String::new(), |cause| format!(" ({})", cause.as_str()));
        return format!("{what}{cause}");
    }
    let numbers = run.diagnosis.stages.get(&id).copied().unwrap_or_default();
    match numbers.run_time_ratio {
        None => "-".to_owned(),
        Some(ratio) if ratio < EVEN => "even".to_owned(),
        Some(ratio) => format!("uneven ({}), costs little", humane::ratio(ratio)),
    }
}

/// From the slow job to its slowest stage, to its tasks, and on through what
/// else could be slow there: each with its number, said or ruled out.
fn judged(run: &Diagnosed) -> Vec<Block> {
    let application = &run.application;
    let spans = application.stages.iter().filter_map(|stage| {
        let (from, to) = stage.running_span(application.observed)?;
        Some((Duration::try_from(to.duration_since(from)).unwrap_or_default(), stage))
    });
    let Some((running, stage)) = spans.max_by_key(|(running, _)| *running) else {
        return Vec::new();
    };
    let numbers = run.diagnosis.stages.get(&stage.id).copied().unwrap_or_default();
    let share = application
        .duration()
        .filter(|whole| !whole.is_zero())
        .map(|whole| running.as_secs_f64() / whole.as_secs_f64());
    let share =
        share.map_or(String::new(), |share| format!(", {} of the run", humane::percent(share)));
    let items = vec![
        Item::from(format!(
            "Longest stage: {}, {} from its first task to its end{share}",
            stage.id,
            humane::duration(running)
        )),
        skew(run, stage, &numbers),
        step(run, stage, Rule::GcPressure, gc(&numbers)),
        step(run, stage, Rule::Spill, spill(stage)),
        step(run, stage, Rule::ShuffleHeavy, shuffle(stage)),
        step(run, stage, Rule::IoBound, io(&numbers)),
        elsewhere(run, stage),
    ];
    vec![
        Block::Text("How the longest stage was judged, step by step:".to_owned()),
        Block::List { ordered: true, items },
    ]
}

/// What a rule found there, or the number that ruled it out.
fn step(run: &Diagnosed, stage: &Stage, rule: Rule, number: String) -> Item {
    let found = of_stage(run, stage.id).find(|finding| finding.rule == rule);
    let anchor = found.map(super::anchor);
    let verdict = if found.is_some() { "found" } else { "no finding" };
    Item { text: number, aside: Some(verdict.to_owned()), anchor }
}

fn skew(run: &Diagnosed, stage: &Stage, numbers: &StageNumbers) -> Item {
    let tasks = stage.measures.run_time.quantiles.map_or_else(
        || "how long its tasks took is not known".to_owned(),
        |q| {
            let [min, median, max] = [q.min, q.median, q.max].map(humane::duration);
            format!("shortest {min}, median {median}, longest {max}")
        },
    );
    let ratios = [("run time", numbers.run_time_ratio), ("records", numbers.records_ratio)];
    let ratios: Vec<String> = ratios
        .into_iter()
        .filter_map(|(what, ratio)| Some(format!("{what} {}", humane::ratio(ratio?))))
        .collect();
    let ratios = if ratios.is_empty() {
        String::new()
    } else {
        format!("; slowest to typical: {}", ratios.join(", "))
    };
    let found = of_stage(run, stage.id)
        .find(|finding| matches!(finding.rule, Rule::DataSkew | Rule::Straggler));
    Item {
        text: format!("Tasks: {tasks}{ratios}"),
        aside: Some(verdict(run, stage.id)),
        anchor: found.map(super::anchor),
    }
}

fn gc(numbers: &StageNumbers) -> String {
    let share = numbers.gc_ratio.map_or(UNKNOWN.to_owned(), humane::percent);
    format!("Garbage collection: {share} of the run time")
}

fn spill(stage: &Stage) -> String {
    format!("Spilled to disk: {}", words::bytes(stage.measures.disk_spilled_bytes.sum))
}

fn shuffle(stage: &Stage) -> String {
    format!(
        "Shuffle: {} read, {} written",
        words::bytes(stage.measures.shuffle_read_bytes.sum),
        words::bytes(stage.measures.shuffle_write_bytes.sum)
    )
}

fn io(numbers: &StageNumbers) -> String {
    let io = numbers.io_per_core;
    let directions = [
        ("input", io.input),
        ("output", io.output),
        ("shuffle read", io.shuffle_read),
        ("shuffle write", io.shuffle_write),
    ];
    let largest = directions
        .into_iter()
        .filter_map(|(direction, rate)| Some((direction, rate?)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    largest.map_or("I/O per core: not known".to_owned(), |(direction, rate)| {
        format!("I/O per core: {} of {direction}, the largest", humane::rate(rate))
    })
}

/// Where none of these is it, the next causes to look at.
fn elsewhere(run: &Diagnosed, stage: &Stage) -> Item {
    let next = [
        Rule::SmallFilesRead,
        Rule::PythonUdf,
        Rule::JoinExplosion,
        Rule::Cartesian,
        Rule::Partitioning,
    ];
    let found: Vec<&Finding> = run
        .diagnosis
        .findings
        .iter()
        .filter(|finding| next.contains(&finding.rule))
        .filter(|finding| finding.stage().is_none_or(|id| id == stage.id))
        .collect();
    let text = "Small files, Python, exploding joins, partitioning".to_owned();
    let aside = match found.first() {
        Some(finding) => format!("found: {}", finding.rule.as_str()),
        None if run.application.sql.is_none() => {
            "not known: the plans are in the event log only".to_owned()
        }
        None => "no finding".to_owned(),
    };
    Item { text, aside: Some(aside), anchor: found.first().map(|finding| super::anchor(finding)) }
}

fn spreads<'a>(run: &'a Diagnosed, stages: &'a [&Stage]) -> impl Iterator<Item = Spread> + 'a {
    // Those that findings name come first.
    let mut chosen: Vec<&&Stage> =
        stages.iter().filter(|stage| stage.tasks.succeeded > 1).collect();
    let named = |stage: &Stage| {
        run.diagnosis.findings.iter().position(|finding| finding.stage() == Some(stage.id))
    };
    chosen.sort_by_key(|stage| named(stage).unwrap_or(usize::MAX));
    chosen.truncate(SPREADS);
    chosen.into_iter().filter_map(|stage| spread(run, stage))
}

fn spread(run: &Diagnosed, stage: &Stage) -> Option<Spread> {
    let quantiles = stage.measures.run_time.quantiles;
    let profile = run.diagnosis.plots.tasks.get(&stage.id);
    let run_times = match (profile, quantiles) {
        (Some(TaskProfile { run_times, .. }), _) => run_times.clone(),
        // REST: all there is.
        (None, Some(q)) => vec![q.min, q.p25, q.median, q.p75, q.p95, q.max],
        (None, None) => return None,
    };
    Some(Spread {
        stage: stage.id,
        tasks: stage.tasks.succeeded,
        run_times,
        median: quantiles.map(|q| q.median),
        p95: quantiles.map(|q| q.p95),
        max: quantiles.map(|q| q.max),
        verdict: verdict(run, stage.id),
    })
}
