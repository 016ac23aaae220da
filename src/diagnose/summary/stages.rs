//! Stages and plans by what is the same from run to run: ids, numbers, paths
//! and tables are not; call sites (without their line, which moves with every
//! edit) and Spark's operators are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Diagnosis, mark, millis};
use crate::diagnose::executions::NodeRef;
use crate::model::{Application, Plan, SqlStatus, Stage, StageId};
use crate::texts::CallSite;

/// Stages and plans kept of a run.
const MOST_STAGES: usize = 20;
const MOST_PLANS: usize = 20;
/// Operators that name a stage or a plan.
const MOST_OPERATORS: usize = 4;

/// Stage attempts of one signature: same call site, same operators. Bytes,
/// records and milliseconds are sums over them; 0 also where the source does
/// not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageSummary {
    /// `collect at orders.py`; `None` where its name is no call site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Hash of the operators that ran in it; 0 where none is known.
    pub shape: u32,
    /// The most telling of them, in Spark's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
    /// Attempts.
    pub count: u32,
    /// The one with the longest span: stage and attempt.
    pub longest: (u32, u32),
    /// First launch to end.
    pub span_ms: u64,
    /// Run time of all tasks.
    pub task_ms: u64,
    pub gc_ms: u64,
    /// Of the longest: slowest task / typical one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_time_ratio: Option<f64>,
    /// Asked for.
    pub tasks: u64,
    /// From storage, caches and shuffles.
    pub read_records: u64,
    pub read_bytes: u64,
    /// To storage and shuffles.
    pub written_bytes: u64,
    /// To disk.
    pub spilled_bytes: u64,
}

/// SQL executions whose plans have the same shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanSummary {
    /// Hash of its operators and of which stands below which, without what
    /// adaptive execution and code generation wrap around them.
    pub shape: u32,
    pub operators: Vec<String>,
    pub count: u32,
    /// The first of them.
    pub sql_id: u64,
    /// Start to end, sum; executions that others started count with those.
    pub duration_ms: u64,
}

impl StageSummary {
    /// What it is known by in other runs.
    pub(in crate::diagnose) fn key(&self) -> (Option<&str>, u32) {
        (self.site.as_deref(), self.shape)
    }
}

/// The stages with the longest span, and how many signatures were left out.
pub(super) fn of(application: &Application, diagnosis: &Diagnosis) -> (Vec<StageSummary>, u64) {
    let operators = operators_by_stage(application);
    let mut by_key: BTreeMap<(Option<String>, u32), (StageSummary, u64)> = BTreeMap::new();
    for stage in application.stages.iter().filter(|stage| stage.first_task_launched.is_some()) {
        let words = operators.get(&stage.id).map(Vec::as_slice).unwrap_or_default();
        let one = summary(stage, words, diagnosis);
        let key = (one.site.clone(), one.shape);
        if let Some((sum, longest)) = by_key.get_mut(&key) {
            add(sum, longest, &one);
        } else {
            let span = one.span_ms;
            by_key.insert(key, (one, span));
        }
    }
    let mut stages: Vec<StageSummary> = by_key.into_values().map(|(stage, _)| stage).collect();
    // Stable: of equals the order of their keys.
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.span_ms));
    let omitted = stages.len().saturating_sub(MOST_STAGES) as u64;
    stages.truncate(MOST_STAGES);
    (stages, omitted)
}

fn summary(stage: &Stage, operators: &[String], diagnosis: &Diagnosis) -> StageSummary {
    let measures = &stage.measures;
    let numbers = diagnosis.stages.get(&stage.id).copied().unwrap_or_default();
    let time = |sum: Option<Duration>| sum.map_or(0, millis);
    let sum = |a: u64, b: u64| a.saturating_add(b);
    StageSummary {
        site: CallSite::of(&stage.name).map(|site| format!("{} at {}", site.operation, site.file)),
        shape: shape_of(operators),
        operators: telling(operators.iter().map(String::as_str)),
        count: 1,
        longest: (stage.id.stage, stage.id.attempt),
        span_ms: numbers.running.map_or(0, millis),
        task_ms: time(measures.run_time.sum),
        gc_ms: time(measures.gc_time.sum),
        run_time_ratio: numbers.run_time_ratio,
        tasks: stage.tasks.total,
        read_records: sum(
            measures.input_records.sum_or_zero(),
            measures.shuffle_read_records.sum_or_zero(),
        ),
        read_bytes: sum(
            measures.input_bytes.sum_or_zero(),
            measures.shuffle_read_bytes.sum_or_zero(),
        ),
        written_bytes: sum(
            measures.output_bytes.sum_or_zero(),
            measures.shuffle_write_bytes.sum_or_zero(),
        ),
        spilled_bytes: measures.disk_spilled_bytes.sum_or_zero(),
    }
}

fn shape_of(operators: &[String]) -> u32 {
    if operators.is_empty() {
        return 0;
    }
    let words: Vec<&str> = operators.iter().map(String::as_str).collect();
    mark::shape(&words)
}

fn add(sum: &mut StageSummary, longest: &mut u64, one: &StageSummary) {
    if one.span_ms > *longest {
        *longest = one.span_ms;
        sum.longest = one.longest;
        sum.run_time_ratio = one.run_time_ratio;
    }
    sum.count = sum.count.saturating_add(one.count);
    let pairs = [
        (&mut sum.span_ms, one.span_ms),
        (&mut sum.task_ms, one.task_ms),
        (&mut sum.gc_ms, one.gc_ms),
        (&mut sum.tasks, one.tasks),
        (&mut sum.read_records, one.read_records),
        (&mut sum.read_bytes, one.read_bytes),
        (&mut sum.written_bytes, one.written_bytes),
        (&mut sum.spilled_bytes, one.spilled_bytes),
    ];
    for (sum, more) in pairs {
        *sum = sum.saturating_add(more);
    }
}

/// The operators whose metrics tasks of each stage told, in the order of the
/// plans. Exchanges are left out: they belong to the stages on both sides.
fn operators_by_stage(application: &Application) -> BTreeMap<StageId, Vec<String>> {
    let mut by_stage: BTreeMap<StageId, Vec<String>> = BTreeMap::new();
    for execution in application.sql.iter().flatten() {
        let Some(plan) = &execution.plan else { continue };
        for node in nodes(execution.id, plan).filter(|node| !node.ends_stage()) {
            for stage in &node.node.stages {
                by_stage.entry(*stage).or_default().push(node.operator());
            }
        }
    }
    by_stage
}

/// Nodes that stand for themselves, each before those below it.
fn nodes(sql_id: u64, plan: &Plan) -> impl Iterator<Item = NodeRef<'_>> {
    plan.nodes
        .iter()
        .enumerate()
        .map(move |(place, node)| NodeRef { sql_id, plan, place, node })
        .filter(|node| !node.is_wrapper())
}

/// Shapes of the plans of executions that completed, the longest first, and
/// how many were left out. `None` where plans are missing.
pub(super) fn plans(application: &Application) -> (Option<Vec<PlanSummary>>, u64) {
    let Some(executions) = &application.sql else { return (None, 0) };
    if application.sql_omitted > 0 {
        return (None, 0);
    }
    let mut by_shape: BTreeMap<u32, PlanSummary> = BTreeMap::new();
    for execution in executions {
        let Some(plan) = execution.plan.as_ref().filter(|plan| plan.nodes_omitted == 0) else {
            return (None, 0);
        };
        if execution.status != SqlStatus::Completed {
            continue;
        }
        let own: Vec<NodeRef<'_>> = nodes(execution.id, plan).collect();
        let shape = shape_of_plan(plan, &own);
        let wall = execution.wall(application.observed).filter(|_| !execution.is_nested());
        let names: Vec<String> = own.iter().map(NodeRef::operator).collect();
        let one = by_shape.entry(shape).or_insert_with(|| PlanSummary {
            shape,
            operators: telling(names.iter().map(String::as_str)),
            sql_id: execution.id,
            ..PlanSummary::default()
        });
        one.count = one.count.saturating_add(1);
        one.duration_ms = one.duration_ms.saturating_add(wall.map_or(0, millis));
    }
    let mut plans: Vec<PlanSummary> = by_shape.into_values().collect();
    plans.sort_by_key(|plan| std::cmp::Reverse(plan.duration_ms));
    let omitted = plans.len().saturating_sub(MOST_PLANS) as u64;
    plans.truncate(MOST_PLANS);
    (Some(plans), omitted)
}

/// Depth and operator of each node.
fn shape_of_plan(plan: &Plan, own: &[NodeRef<'_>]) -> u32 {
    let mut depths: Vec<usize> = vec![0; plan.nodes.len()];
    let kept: BTreeSet<usize> = own.iter().map(|node| node.place).collect();
    for (place, node) in plan.nodes.iter().enumerate() {
        let above = node.parent.and_then(|parent| {
            let parent = parent as usize;
            Some(depths.get(parent)? + usize::from(kept.contains(&parent)))
        });
        if let Some(depth) = depths.get_mut(place) {
            *depth = above.unwrap_or(0);
        }
    }
    let words: Vec<String> = own
        .iter()
        .map(|node| {
            let depth = depths.get(node.place).copied().unwrap_or(0);
            format!("{depth} {}", node.operator())
        })
        .collect();
    shape_of(&words)
}

/// The few operators by which a person knows a stage or a plan again: joins
/// first, then windows, aggregations, and so on.
fn telling<'a>(operators: impl Iterator<Item = &'a str>) -> Vec<String> {
    let rank = |name: &str| match name {
        _ if name.contains("Join") || name == "CartesianProduct" => 0,
        _ if name.starts_with("Window") => 1,
        _ if name.contains("Python") || name.contains("InPandas") => 2,
        _ if name.contains("Aggregate") => 3,
        _ if name.contains("Scan") => 4,
        "Generate" | "Expand" => 4,
        _ if name.starts_with("Execute") => 5,
        "Sort" | "TakeOrderedAndProject" => 6,
        _ => 7,
    };
    let mut kept: Vec<&str> = Vec::new();
    for name in operators {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept.sort_by_key(|name| rank(name));
    kept.truncate(MOST_OPERATORS);
    kept.into_iter().map(str::to_owned).collect()
}
