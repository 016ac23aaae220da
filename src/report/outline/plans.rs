//! The plans of the costliest SQL executions as trees: what each operator put
//! out, moved, spilled and took, in which stages, and where it is hot.
//!
//! Wrappers that Spark puts around operators (stages of generated code, query
//! stages of adaptive execution) are no rows of their own: what they tell is
//! told by the operator below.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use super::plan_words;
use super::{Block, Section};
use crate::diagnose::{Subject, humane};
use crate::model::{MetricKind, Plan, PlanNode, SqlExecution, StageId};
use crate::report::{Diagnosed, Texts, privacy};

/// Plans shown, and operators of one.
const PLANS: usize = 3;
const ROWS: usize = 60;

/// The plan of one SQL execution.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanView {
    pub sql_id: u64,
    pub title: String,
    /// Each before those that feed it.
    pub rows: Vec<PlanRow>,
    pub omitted: u64,
    /// What adaptive execution changed.
    pub adaptive: String,
}

/// One operator.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRow {
    /// Its place in the list of nodes, as in the JSON.
    pub node: usize,
    pub depth: usize,
    pub name: String,
    /// Join type, kind of exchange.
    pub detail: Option<String>,
    pub stages: Vec<StageId>,
    pub rows: Option<u64>,
    /// What it moved, read or wrote.
    pub bytes: Option<u64>,
    pub time: Option<Duration>,
    pub largest_task: Option<Duration>,
    /// Its share of the longest time of a row, 0 to 1.
    pub heat: f64,
    /// Files, partitions, spill, peak memory and the like.
    pub more: Vec<String>,
    /// Anchor of a finding about this operator.
    pub finding: Option<String>,
    /// Its arguments and filters: only where texts are shown.
    pub text: Vec<String>,
}

pub(super) fn section(run: &Diagnosed, texts: Texts) -> Section {
    let mut section = Section::new("plans", "SQL plans");
    let application = &run.application;
    let Some(executions) = &application.sql else {
        section.blocks.push(Block::Note(
            "Plans and their numbers are in the event log; the REST API was not asked for them."
                .to_owned(),
        ));
        return section;
    };
    let named: BTreeSet<u64> = run
        .diagnosis
        .findings
        .iter()
        .filter_map(|finding| match finding.subject {
            Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => Some(sql_id),
            _ => None,
        })
        .collect();
    let mut with_plan: Vec<(&SqlExecution, &Plan)> =
        executions.iter().filter_map(|one| Some((one, one.plan.as_ref()?))).collect();
    let all = with_plan.len();
    with_plan.sort_by_key(|(one, plan)| {
        let work = plan.nodes.iter().any(|node| !node.stages.is_empty());
        (!named.contains(&one.id), !work, Reverse(one.wall(application.observed)), one.id)
    });
    for (execution, plan) in with_plan.into_iter().take(PLANS) {
        section.blocks.push(Block::Plan(view(run, execution, plan, texts)));
    }
    if all > PLANS {
        let more = humane::count((all - PLANS) as u64, "plan is", "plans are");
        section.blocks.push(Block::Note(format!("{more} not shown: the JSON has them.")));
    }
    section
}

fn view(run: &Diagnosed, execution: &SqlExecution, plan: &Plan, texts: Texts) -> PlanView {
    let depths = depths(plan, texts);
    let mut rows: Vec<PlanRow> = plan
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| !is_wrapper(node, texts))
        .map(|(place, node)| {
            let depth = depths.get(place).copied().unwrap_or_default();
            row(run, execution, plan, place, node, depth, texts)
        })
        .collect();
    let longest = rows.iter().filter_map(|row| row.time).max().unwrap_or_default();
    for row in &mut rows {
        let time = row.time.unwrap_or_default();
        row.heat = if longest.is_zero() { 0.0 } else { time.as_secs_f64() / longest.as_secs_f64() };
    }
    let omitted = rows.len().saturating_sub(ROWS) as u64 + plan.nodes_omitted;
    rows.truncate(ROWS);
    let wall = execution.wall(run.application.observed);
    let mut title = format!("SQL execution {}, {}", execution.id, execution.status.as_str());
    if let Some(wall) = wall {
        let _ = write!(title, ", {}", humane::duration(wall));
    }
    if let Some(text) = privacy::of_user(execution.description.as_str(), texts, 400) {
        let _ = write!(title, ": {text}");
    }
    PlanView { sql_id: execution.id, title, rows, omitted, adaptive: adaptive(execution, plan) }
}

fn row(
    run: &Diagnosed,
    execution: &SqlExecution,
    plan: &Plan,
    place: usize,
    node: &PlanNode,
    depth: usize,
    texts: Texts,
) -> PlanRow {
    let is_this = |subject: &Subject| {
        matches!(subject, Subject::PlanNode { sql_id, node }
            if *sql_id == execution.id && *node as usize == place)
    };
    let finding = run.diagnosis.findings.iter().find(|finding| is_this(&finding.subject));
    let (time, largest_task) = time(plan, place, node);
    let total = |name: &str| node.value(name).map(|value| value.total);
    let first = |names: &[&str]| names.iter().find_map(|name| total(name));
    PlanRow {
        node: place,
        depth,
        name: privacy::node_name(&node.name, texts),
        detail: plan_words::detail(node),
        stages: node.stages.clone(),
        rows: first(&["number of output rows", "shuffle records written"]),
        bytes: first(&[
            "shuffle bytes written",
            "size of files read",
            "written output",
            "data size",
            "bytes of written output",
        ]),
        time,
        largest_task,
        heat: 0.0,
        more: more(node),
        finding: finding.map(super::anchor),
        text: if texts.are_shown() { shown(node) } else { Vec::new() },
    }
}

/// The longest of its timings, and the largest task of it. Timings of one
/// node overlap, so they are not added up. The operator at the top of a stage
/// of generated code has that stage's time.
fn time(plan: &Plan, place: usize, node: &PlanNode) -> (Option<Duration>, Option<Duration>) {
    let mut nodes = vec![node];
    let mut above = node.parent;
    let mut at = place;
    while let Some(parent) = above.and_then(|above| plan.nodes.get(above as usize)) {
        let passes = parent.name.starts_with("WholeStageCodegen") || &*parent.name == "Project";
        // Only to its first child: a stage of generated code has one top.
        if !passes || above.map(|above| above as usize + 1) != Some(at) {
            break;
        }
        nodes.push(parent);
        at -= 1;
        above = parent.parent;
    }
    let timing = |metric: &&crate::model::PlanMetric| metric.kind == MetricKind::Nanoseconds;
    let values =
        nodes.iter().flat_map(|node| node.metrics.iter().filter(timing)).filter_map(|metric| {
            let value = metric.value.as_deref()?;
            Some((value.total, value.largest.map(|task| task.value)))
        });
    let longest = values.max_by_key(|(total, _)| *total).filter(|(total, _)| *total > 0);
    let nanos = |nanos: u64| Duration::from_nanos(nanos);
    (longest.map(|(total, _)| nanos(total)), longest.and_then(|(_, largest)| largest).map(nanos))
}

/// What it spilled, held and touched; zeros are no news.
fn more(node: &PlanNode) -> Vec<String> {
    const SAID: [(&str, &str); 13] = [
        ("spill size", "spilled"),
        ("peak memory", "peak memory"),
        ("number of files read", "files"),
        ("number of written files", "files written"),
        ("number of partitions read", "table partitions"),
        ("number of dynamic part", "partitions written"),
        ("fetch wait time", "waiting for shuffle data"),
        ("time to build", "building"),
        ("time to collect", "collecting"),
        ("time to broadcast", "broadcasting"),
        ("time to execute Python code", "in Python"),
        ("data sent to Python workers", "sent to Python"),
        ("number of total state rows", "rows of state"),
    ];
    SAID.iter()
        .filter_map(|(name, word)| {
            let metric = node.metric(name)?;
            let value = metric.value.as_deref().filter(|value| value.total > 0)?;
            let said = match metric.kind {
                MetricKind::Bytes => humane::bytes(value.total),
                MetricKind::Nanoseconds => humane::duration(Duration::from_nanos(value.total)),
                _ => humane::number(value.total),
            };
            Some(format!("{said} {word}"))
        })
        .collect()
}

/// Its arguments, and of a scan where it reads and what it pushed down.
fn shown(node: &PlanNode) -> Vec<String> {
    let mut shown = vec![privacy::cut(node.text.as_str(), 400)];
    for key in ["Location", "PartitionFilters", "PushedFilters", "DataFilters", "ReadSchema"] {
        if let Some(value) = node.metadata(key) {
            shown.push(format!("{key}: {}", privacy::cut(value, 300)));
        }
    }
    shown
}

/// Depth in the tree of those that are shown.
fn depths(plan: &Plan, texts: Texts) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let depth = node.parent.and_then(|parent| {
            let above = plan.nodes.get(parent as usize)?;
            let depth = depths.get(parent as usize)?;
            Some(depth + usize::from(!is_wrapper(above, texts)))
        });
        depths.push(depth.unwrap_or_default());
    }
    depths
}

/// A projection has no numbers, only what it computes.
fn is_wrapper(node: &PlanNode, texts: Texts) -> bool {
    const WRAPPERS: [&str; 9] = [
        "WholeStageCodegen",
        "InputAdapter",
        "AdaptiveSparkPlan",
        "ShuffleQueryStage",
        "BroadcastQueryStage",
        "ResultQueryStage",
        "TableCacheQueryStage",
        "ColumnarToRow",
        "WriteFiles",
    ];
    WRAPPERS.iter().any(|wrapper| node.name.starts_with(wrapper))
        || (!texts.are_shown() && &*node.name == "Project")
}

/// The first plan is not kept, so a join that changed its kind is not seen.
fn adaptive(execution: &SqlExecution, plan: &Plan) -> String {
    let is_adaptive = plan.nodes.iter().any(|node| node.name.starts_with("AdaptiveSparkPlan"));
    if !is_adaptive {
        return "Planned once: no adaptive execution.".to_owned();
    }
    let reads: Vec<String> = plan
        .nodes
        .iter()
        .filter(|node| {
            node.name.starts_with("AQEShuffleRead") || node.name.starts_with("CustomShuffleReader")
        })
        .filter_map(plan_words::detail)
        .take(4)
        .collect();
    let times = humane::count(u64::from(execution.plan_updates), "time", "times");
    match reads.as_slice() {
        [] => format!("Adaptive execution replaced the plan {times}; no shuffle read was changed."),
        reads => format!("Adaptive execution replaced the plan {times}: {}.", reads.join("; ")),
    }
}
