//! SQL executions, streaming queries and the driver in the JSON document.

use serde::Serialize;

use super::Texts;
use super::json::Number;
use crate::model::{
    Driver, MetricKind, MetricValue, Plan, PlanMetric, PlanNode, SourceProgress, SqlExecution,
    SqlStatus, SqlText, StateOperator, StreamingBatch, StreamingQuery,
};

fn rfc3339(time: Option<jiff::Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

#[derive(Serialize)]
pub(super) struct DriverJson<'a> {
    host: Option<&'a str>,
    storage_memory_bytes: Option<u64>,
    peak_heap_bytes: Option<u64>,
    peak_jvm_off_heap_bytes: Option<u64>,
    peak_resident_bytes: Option<u64>,
}

impl<'a> From<&'a Driver> for DriverJson<'a> {
    fn from(driver: &'a Driver) -> Self {
        Self {
            host: driver.host.as_deref(),
            storage_memory_bytes: driver.storage_memory_bytes,
            peak_heap_bytes: driver.peaks.heap,
            peak_jvm_off_heap_bytes: driver.peaks.jvm_off_heap,
            peak_resident_bytes: driver.peaks.jvm_resident,
        }
    }
}

#[derive(Serialize)]
pub(super) struct ExecutionJson<'a> {
    sql_id: u64,
    root_sql_id: Option<u64>,
    status: SqlStatus,
    start: Option<String>,
    end: Option<String>,
    duration_seconds: Option<f64>,
    error_class: Option<&'a str>,
    job_ids: &'a [u32],
    plan_updates: u32,
    plan: Option<Vec<NodeJson<'a>>>,
    plan_nodes_omitted: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> ExecutionJson<'a> {
    pub(super) fn new(execution: &'a SqlExecution, now: jiff::Timestamp, texts: Texts) -> Self {
        let shown = texts == Texts::Shown;
        Self {
            sql_id: execution.id,
            root_sql_id: execution.root_id,
            status: execution.status,
            start: rfc3339(execution.start),
            end: rfc3339(execution.end),
            duration_seconds: execution.wall(now).map(|wall| wall.as_secs_f64()),
            error_class: execution.error_class.as_deref(),
            job_ids: &execution.job_ids,
            plan_updates: execution.plan_updates,
            plan: execution.plan.as_ref().map(|plan| nodes(plan, shown)),
            plan_nodes_omitted: execution.plan.as_ref().map_or(0, |plan| plan.nodes_omitted),
            description: shown.then(|| execution.description.as_str()),
            error: execution.error.as_ref().filter(|_| shown).map(SqlText::as_str),
        }
    }
}

fn nodes(plan: &Plan, shown: bool) -> Vec<NodeJson<'_>> {
    plan.nodes.iter().map(|node| NodeJson::new(node, shown)).collect()
}

#[derive(Serialize)]
struct NodeJson<'a> {
    name: &'a str,
    /// Place in the list.
    parent: Option<u32>,
    stages: Vec<String>,
    metrics: Vec<MetricJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

impl<'a> NodeJson<'a> {
    fn new(node: &'a PlanNode, shown: bool) -> Self {
        Self {
            name: &node.name,
            parent: node.parent,
            stages: node.stages.iter().map(ToString::to_string).collect(),
            metrics: node
                .metrics
                .iter()
                .filter_map(|metric| Some(MetricJson::new(metric, metric.value.as_deref()?)))
                .collect(),
            text: shown.then(|| node.text.as_str()),
        }
    }
}

#[derive(Serialize)]
struct MetricJson<'a> {
    name: &'a str,
    unit: &'static str,
    total: Option<Number>,
    mean: Option<f64>,
    tasks: u64,
    largest: Option<LargestJson>,
    wasted: Number,
    elsewhere: Number,
}

#[derive(Serialize)]
struct LargestJson {
    value: Number,
    stage_id: u32,
    stage_attempt_id: u32,
    task_id: u64,
}

impl<'a> MetricJson<'a> {
    fn new(metric: &'a PlanMetric, value: &MetricValue) -> Self {
        let (unit, divisor) = match metric.kind {
            MetricKind::Count => ("count", None),
            MetricKind::Bytes => ("bytes", None),
            MetricKind::Nanoseconds => ("seconds", Some(1e9)),
            MetricKind::Tenths => ("average", Some(10.0)),
            MetricKind::Custom => ("unknown", None),
        };
        let number = |value: u64| match divisor {
            Some(divisor) => Number::Seconds(value as f64 / divisor),
            None => Number::Count(value),
        };
        let is_average = metric.kind == MetricKind::Tenths;
        let mean = |tasks| value.total as f64 / divisor.unwrap_or(1.0) / tasks as f64;
        Self {
            name: &metric.name,
            unit,
            total: (!is_average).then(|| number(value.total)),
            mean: (is_average && value.tasks > 0).then(|| mean(value.tasks)),
            tasks: value.tasks,
            largest: value.largest.map(|task| LargestJson {
                value: number(task.value),
                stage_id: task.stage.stage,
                stage_attempt_id: task.stage.attempt,
                task_id: task.task_id,
            }),
            wasted: number(value.wasted),
            elsewhere: number(value.elsewhere),
        }
    }
}

#[derive(Serialize)]
pub(super) struct QueryJson<'a> {
    id: &'a str,
    run_id: &'a str,
    name: Option<&'a str>,
    state: &'static str,
    started: Option<String>,
    ended: Option<String>,
    idle_since: Option<String>,
    error_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exception: Option<&'a str>,
    batches_seen: u64,
    batches: Vec<BatchJson<'a>>,
}

impl<'a> QueryJson<'a> {
    pub(super) fn new(query: &'a StreamingQuery, texts: Texts) -> Self {
        let shown = texts == Texts::Shown;
        Self {
            id: &query.id,
            run_id: &query.run_id,
            name: query.name.as_deref(),
            state: query.state.as_str(),
            started: rfc3339(query.started),
            ended: rfc3339(query.ended),
            idle_since: rfc3339(query.idle_since),
            error_class: query.error_class.as_deref(),
            exception: query.exception.as_ref().filter(|_| shown).map(SqlText::as_str),
            batches_seen: query.batches_seen,
            batches: query.batches.iter().map(BatchJson::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct BatchJson<'a> {
    batch_id: u64,
    start: Option<String>,
    duration_seconds: Option<f64>,
    parts_seconds: std::collections::BTreeMap<&'a str, f64>,
    input_rows: Option<u64>,
    input_rows_per_second: Option<f64>,
    processed_rows_per_second: Option<f64>,
    output_rows: Option<u64>,
    sources: Vec<SourceJson<'a>>,
    state_operators: Vec<StateJson<'a>>,
}

impl<'a> From<&'a StreamingBatch> for BatchJson<'a> {
    fn from(batch: &'a StreamingBatch) -> Self {
        Self {
            batch_id: batch.id,
            start: rfc3339(batch.start),
            duration_seconds: batch.duration.map(|duration| duration.as_secs_f64()),
            parts_seconds: batch
                .parts
                .iter()
                .map(|(name, duration)| (&**name, duration.as_secs_f64()))
                .collect(),
            input_rows: batch.input_rows,
            input_rows_per_second: batch.input_rows_per_second,
            processed_rows_per_second: batch.processed_rows_per_second,
            output_rows: batch.output_rows,
            sources: batch.sources.iter().map(SourceJson::from).collect(),
            state_operators: batch.state.iter().map(StateJson::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct SourceJson<'a> {
    name: &'a str,
    input_rows: Option<u64>,
    backlog: Option<u64>,
}

impl<'a> From<&'a SourceProgress> for SourceJson<'a> {
    fn from(source: &'a SourceProgress) -> Self {
        Self { name: &source.name, input_rows: source.input_rows, backlog: source.backlog }
    }
}

#[derive(Serialize)]
struct StateJson<'a> {
    name: &'a str,
    rows: Option<u64>,
    rows_updated: Option<u64>,
    rows_dropped_late: Option<u64>,
    memory_bytes: Option<u64>,
    commit_seconds: Option<f64>,
}

impl<'a> From<&'a StateOperator> for StateJson<'a> {
    fn from(operator: &'a StateOperator) -> Self {
        Self {
            name: &operator.name,
            rows: operator.rows,
            rows_updated: operator.rows_updated,
            rows_dropped_late: operator.rows_dropped_late,
            memory_bytes: operator.memory_bytes,
            commit_seconds: operator.commit_time.map(|time| time.as_secs_f64()),
        }
    }
}
