//! How the run went: its size, when what ran, its SQL executions and streams,
//! and what it would take with fewer or more executors.

use std::fmt::Write;
use std::time::Duration;

use super::conclusion::split;
use super::timeline::Timeline;
use super::words::{self, UNKNOWN};
use super::{Block, Row, Section, Table};
use crate::diagnose::{WhatIf, humane};
use crate::model::{Application, JobStatus, SqlExecution, Stage, StageStatus};
use crate::report::{Texts, View, privacy};

/// SQL executions and streaming queries shown.
const SHOWN: usize = 5;
/// Jobs of an execution named.
const JOBS: usize = 6;

pub(super) fn section(run: View<'_>, texts: Texts) -> Section {
    let mut section = Section::new("execution", "Execution and timeline");
    let blocks = &mut section.blocks;
    blocks.push(Block::Facts(facts(run)));
    blocks.extend(Timeline::of(run).map(Block::Timeline));
    executions(run, texts, blocks);
    queries(run.application, texts, blocks);
    blocks.extend(run.diagnosis.what_if.iter().flat_map(what_if));
    section
}

fn facts(run: View<'_>) -> Vec<(&'static str, String)> {
    let (application, totals) = (run.application, &run.diagnosis.totals);
    let mut facts = Vec::new();
    let clock = |time: jiff::Timestamp| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    if let Some(start) = application.start {
        let end = application.end.map_or_else(
            || format!("not ended when last seen, {}", clock(application.observed)),
            clock,
        );
        facts.push(("Ran", format!("{} to {end}", clock(start))));
    }
    let ran: Vec<&Stage> =
        application.stages.iter().filter(|stage| stage.first_task_launched.is_some()).collect();
    let skipped =
        application.stages.iter().filter(|stage| stage.status == StageStatus::Skipped).count();
    let jobs = &application.jobs;
    let failed = jobs.iter().filter(|job| job.status == JobStatus::Failed).count();
    let tasks = ran.iter().fold(0, |sum: u64, stage| {
        let tasks = &stage.tasks;
        sum.saturating_add(tasks.succeeded)
            .saturating_add(tasks.failed)
            .saturating_add(tasks.killed)
    });
    let mut work = humane::count(jobs.len() as u64, "job", "jobs");
    if failed > 0 {
        let _ = write!(work, " ({} failed)", humane::number(failed as u64));
    }
    let _ = write!(work, ", {}", humane::count(ran.len() as u64, "stage", "stages"));
    if skipped > 0 {
        let _ = write!(work, " ({} more skipped)", humane::number(skipped as u64));
    }
    let _ = write!(work, ", {}", humane::count(tasks, "task attempt", "task attempts"));
    facts.push(("Work", work));
    if !application.executors.is_empty() {
        facts.push(("Executors", executors(run)));
    }
    if let (Some(bought), Some(used)) = (totals.bought, totals.used) {
        let share = if bought.is_zero() { 0.0 } else { used.as_secs_f64() / bought.as_secs_f64() };
        let (used, bought) = (humane::core_time(used), humane::core_time(bought));
        facts.push(("Cores", format!("tasks held {} of {bought}: {used}", humane::percent(share))));
    }
    if let Some(price) = &run.diagnosis.price {
        let currency = privacy::plain(&price.currency);
        let mut cost = humane::money(price.amount, &currency);
        if let Some(unused) = price.unused {
            let unused = humane::money(unused, &currency);
            let _ = write!(cost, ", of it {unused} for cores that no task used");
        }
        facts.push(("Cost", cost));
    }
    facts.push(("Data", data(&ran)));
    if let Some(cache) = read_from_cache(application) {
        facts.push(("Cache", cache));
    }
    facts
}

fn executors(run: View<'_>) -> String {
    let executors = &run.application.executors;
    let removed = executors.iter().filter(|executor| executor.removed.is_some()).count();
    let mut text = if run.application.local_mode() {
        "local mode: the driver runs the tasks".to_owned()
    } else {
        humane::count(executors.len() as u64, "executor", "executors")
    };
    if removed > 0 {
        let _ = write!(text, ", {} removed", humane::number(removed as u64));
    }
    if let Some(cores) = run.diagnosis.totals.peak_cores {
        let cores = humane::count(u64::from(cores), "core", "cores");
        let _ = write!(text, ", {cores} at most at one time");
    }
    text
}

fn data(stages: &[&Stage]) -> String {
    let sum = |of: fn(&Stage) -> Option<u64>| {
        stages.iter().filter_map(|stage| of(stage)).reduce(u64::saturating_add)
    };
    [
        ("input", sum(|stage| stage.measures.input_bytes.sum)),
        ("output", sum(|stage| stage.measures.output_bytes.sum)),
        ("shuffled", sum(|stage| stage.measures.shuffle_write_bytes.sum)),
        ("spilled to disk", sum(|stage| stage.measures.disk_spilled_bytes.sum)),
    ]
    .map(|(what, bytes)| format!("{} {what}", words::bytes(bytes)))
    .join(", ")
}

/// A run that read from a cache is not to be compared with one that did not.
fn read_from_cache(application: &Application) -> Option<String> {
    let stages = application.stages.iter().filter(|stage| stage.first_task_launched.is_some());
    let reading = stages.filter(|stage| stage.reads_cache == Some(true)).count();
    let executions = application.sql.iter().flatten();
    let nodes = executions
        .filter(|one| {
            one.plan.iter().any(|plan| plan.nodes.iter().any(crate::model::PlanNode::reads_cache))
        })
        .count();
    (reading + nodes > 0).then(|| {
        format!(
            "{} read cached tables: compare with runs that did so too",
            if reading > 0 {
                humane::count(reading as u64, "stage", "stages")
            } else {
                humane::count(nodes as u64, "SQL execution", "SQL executions")
            }
        )
    })
}

/// The longest SQL executions; nested ones are part of another.
fn executions(run: View<'_>, texts: Texts, blocks: &mut Vec<Block>) {
    let application = run.application;
    let now = application.observed;
    let mut executions: Vec<(Duration, &SqlExecution)> = application
        .sql
        .iter()
        .flatten()
        .filter(|execution| !execution.is_nested())
        .filter_map(|execution| Some((execution.wall(now)?, execution)))
        .collect();
    if executions.is_empty() {
        return;
    }
    let total = executions.len();
    executions.sort_by_key(|(wall, execution)| (std::cmp::Reverse(*wall), execution.id));
    executions.truncate(SHOWN);
    let mut table = Table::new(
        format!("Longest SQL executions ({} of {total})", executions.len()),
        &["SQL", "state", "jobs", "most of its time"],
        &["wall"],
    );
    if texts.are_shown() {
        table.columns.push(super::Column { title: "description", is_number: false });
    }
    for (wall, execution) in &executions {
        let split = run.diagnosis.sql_times.get(&execution.id);
        let most = split.and_then(|split| Some((split.largest()?, split)));
        let most = most.map_or("-".to_owned(), |(part, split)| {
            format!("{}: {}", words::part(part), humane::duration(split.part(part)))
        });
        let mut cells = vec![
            execution.id.to_string(),
            execution.status.as_str().to_owned(),
            jobs(&jobs_below(application, execution)),
            most,
            humane::duration(*wall),
        ];
        let first = execution.description.as_str().lines().next().unwrap_or_default();
        if texts.are_shown() {
            cells.push(privacy::cut(first, 120));
        }
        table.rows.push(cells.into());
    }
    blocks.push(Block::Table(table));
    if let Some((_, longest)) = executions.first()
        && let Some(time) = run.diagnosis.sql_times.get(&longest.id)
    {
        let caption = format!("Where the time of SQL execution {} went", longest.id);
        blocks.push(Block::Split(split(&caption, time)));
    }
}

/// Jobs of the execution and of those that it started.
fn jobs_below(application: &Application, execution: &SqlExecution) -> Vec<u32> {
    let mut jobs: Vec<u32> = application
        .sql
        .iter()
        .flatten()
        .filter(|other| other.id == execution.id || other.root_id == Some(execution.id))
        .flat_map(|other| other.job_ids.iter().copied())
        .collect();
    jobs.sort_unstable();
    jobs
}

/// The first jobs of a list.
fn jobs(ids: &[u32]) -> String {
    if ids.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = ids.iter().take(JOBS).map(ToString::to_string).collect();
    let more = ids.len().saturating_sub(JOBS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

/// Streaming queries with their last batch.
fn queries(application: &Application, texts: Texts, blocks: &mut Vec<Block>) {
    let Some(queries) = application.streaming_queries.as_ref().filter(|all| !all.is_empty()) else {
        return;
    };
    let mut table = Table::new(
        format!("Streaming queries ({} of {})", queries.len().min(SHOWN), queries.len()),
        &["query", "state"],
        &["batches", "last batch", "took", "rows", "rows of state", "backlog"],
    );
    for query in queries.iter().rev().take(SHOWN) {
        let last = query.batches.last();
        let name = query.name.as_deref().filter(|_| texts.are_shown()).unwrap_or(&query.id);
        let told = |number: Option<u64>| number.map_or(UNKNOWN.to_owned(), humane::number);
        table.rows.push(Row::from(vec![
            privacy::cut(name, 60),
            query.state.as_str().to_owned(),
            humane::number(query.batches_seen),
            last.map_or("-".to_owned(), |last| last.id.to_string()),
            words::time(last.and_then(|last| last.duration)),
            told(last.and_then(|last| last.input_rows)),
            told(last.and_then(crate::model::StreamingBatch::state_rows)),
            told(last.and_then(crate::model::StreamingBatch::backlog)),
        ]));
    }
    blocks.push(Block::Table(table));
}

fn what_if(what_if: &WhatIf) -> Vec<Block> {
    let mut table = Table::new(
        "With fewer or more executors (predicted)",
        &["executors"],
        &["cores", "wall", "core time"],
    );
    for scenario in &what_if.scenarios {
        table.rows.push(Row::from(vec![
            humane::percent(scenario.factor),
            format!("{:.0}", scenario.cores),
            humane::duration(scenario.wall),
            humane::core_time(scenario.bought),
        ]));
    }
    let critical = format!(
        "No number of executors makes it faster than {}: gaps of the driver and the longest chain \
         of tasks.",
        humane::duration(what_if.critical_path)
    );
    let assumptions = format!("Taken for granted: {}", what_if.assumptions.join("; "));
    let mut blocks = vec![Block::Table(table), Block::Text(critical)];
    if !what_if.assumptions.is_empty() {
        blocks.push(Block::Note(assumptions));
    }
    blocks
}
