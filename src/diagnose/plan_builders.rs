//! Plans for tests, written as people see them: one node a line, indented by
//! two blanks below what it feeds, with its metrics and stages behind bars.
//!
//! ```text
//! SortMergeJoin [a#1], [b#2], Inner | number of output rows=100 | 3
//!   Exchange hashpartitioning(a#1, 4) | data size=1000
//!     Range (0, 9)
//! ```

use crate::model::{
    Application, MetricKind, MetricValue, Plan, PlanMetric, PlanNode, SqlExecution, SqlStatus,
    StageId,
};

/// Times are in milliseconds (metrics whose names speak of time or duration),
/// sizes in bytes; stages are of attempt 0.
pub(super) fn plan(text: &str) -> Plan {
    let mut nodes: Vec<PlanNode> = Vec::new();
    let mut depths: Vec<usize> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let mut parts = line.trim().split(" | ");
        let text = parts.next().expect("a text");
        let metrics = parts.next().unwrap_or("");
        let stages = parts.next().unwrap_or("");
        let parent = depths.iter().rposition(|above| *above < depth);
        nodes.push(PlanNode {
            name: name(text).into(),
            text: text.into(),
            parent: parent.map(|parent| parent as u32),
            end: 0,
            metadata: Vec::new(),
            metrics: metrics
                .split("; ")
                .filter(|metric| !metric.is_empty())
                .enumerate()
                .map(|(place, text)| metric(text, (nodes.len() * 100 + place) as u64))
                .collect(),
            stages: stages
                .split(',')
                .filter_map(|stage| stage.trim().parse().ok())
                .map(|stage| StageId { stage, attempt: 0 })
                .collect(),
        });
        depths.push(depth);
    }
    for place in 0..nodes.len() {
        let below = depths.iter().skip(place + 1).take_while(|depth| **depth > depths[place]);
        nodes[place].end = (place + 1 + below.count()) as u32;
    }
    Plan { nodes, nodes_omitted: 0 }
}

/// `Scan parquet t` and `WholeStageCodegen (1)` have names of several words.
fn name(text: &str) -> String {
    let first = text.split([' ', '(']).next().expect("a word");
    match first {
        "Scan" | "WholeStageCodegen" | "Subquery" => text.to_owned(),
        _ if text.contains("(skew=true)") => format!("{first}(skew=true)"),
        _ => first.to_owned(),
    }
}

fn metric(text: &str, accumulator: u64) -> PlanMetric {
    let (name, value) = text.split_once('=').expect("name=value");
    let value: u64 = value.trim().parse().expect("a number");
    let is_time = ["time", "duration"].iter().any(|word| name.contains(word));
    let kind = match name {
        _ if is_time => MetricKind::Nanoseconds,
        _ if name.contains("size") || name.contains("bytes") => MetricKind::Bytes,
        _ => MetricKind::Count,
    };
    let total = if is_time { value * 1_000_000 } else { value };
    let value = Some(Box::new(MetricValue { total, tasks: 1, ..MetricValue::default() }));
    PlanMetric { name: name.into(), kind, accumulator, value }
}

/// Adds a completed execution whose jobs have its own id: give the stages
/// that ran for it that job.
pub(super) fn execution(application: &mut Application, id: u64, text: &str) {
    let mut execution = SqlExecution::new(id);
    execution.status = SqlStatus::Completed;
    execution.job_ids = vec![id as u32];
    execution.plan = Some(plan(text));
    application.sql.get_or_insert_default().push(execution);
}
