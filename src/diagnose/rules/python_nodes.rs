//! Plan nodes that call Python: how they call it, what Spark measured of it,
//! and what feeds them within their stage.

use std::time::Duration;

use super::executions::NodeRef;
use crate::model::{MetricKind, PlanNode};

/// How a node calls Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    RowAtATime,
    Vectorised,
}

/// `None`: the node does not call Python, or does not tell how.
pub(super) fn way(node: &PlanNode) -> Option<Way> {
    match &*node.name {
        "BatchEvalPython" | "BatchEvalPythonUDTF" => Some(Way::RowAtATime),
        "ArrowEvalPython" => match evaluation_type(node)? {
            100..200 => Some(Way::RowAtATime),
            _ => Some(Way::Vectorised),
        },
        name if ["InPandas", "InArrow", "InPySpark"].iter().any(|part| name.contains(part))
            || ["ArrowEvalPython", "ArrowAggregatePython", "ArrowWindowPython"]
                .iter()
                .any(|start| name.starts_with(start)) =>
        {
            Some(Way::Vectorised)
        }
        _ => None,
    }
}

/// Spark's number for the way Python is called (`PythonEvalType`).
pub(super) fn evaluation_type(node: &PlanNode) -> Option<u32> {
    node.last_argument()?.parse().ok()
}

/// What Spark 4 measured of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measured {
    /// Running Python code, the wait for rows of the JVM included (4.2 and
    /// newer).
    pub(super) executing: Option<Duration>,
}

impl Measured {
    /// `None` before 4.0, which measures no time.
    pub(super) fn of(node: &PlanNode) -> Option<Self> {
        node.metric("time to start Python workers")?;
        Some(Self { executing: time(node, "time to execute Python code") })
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let executing =
            self.executing.zip(other.executing).map(|(one, other)| one.saturating_add(other));
        Self { executing }
    }
}

/// A time that the node's tasks measured, in all; zero where none told.
fn time(node: &PlanNode, name: &str) -> Option<Duration> {
    let metric = node.metric(name).filter(|metric| metric.kind == MetricKind::Nanoseconds)?;
    Some(Duration::from_nanos(metric.value.as_deref().map_or(0, |value| value.total)))
}

/// Nodes that cost next to nothing and pass on what is below them.
const LIGHT: [&str; 9] = [
    "WholeStageCodegen",
    "InputAdapter",
    "ColumnarToRow",
    "AdaptiveSparkPlan",
    "ResultQueryStage",
    "AQEShuffleRead",
    "CustomShuffleReader",
    "Coalesce",
    "LocalLimit",
];

/// Where a stage, and what it computes, begins.
const BEGINNINGS: [&str; 9] = [
    "Range",
    "Exchange",
    "ShuffleQueryStage",
    "ReusedExchange",
    "BroadcastQueryStage",
    "InMemoryTableScan",
    "TableCacheQueryStage",
    "LocalTableScan",
    "RDDScan",
];

/// Functions that cost next to nothing for a row.
const CHEAP: [&str; 6] = ["isnotnull", "isnull", "cast", "coalesce", "abs", "knownnotnull"];

/// The time that Spark measured of what feeds the node within its stage
/// (sorts, columnar scans, aggregates). `None`: something there may cost much
/// and measures nothing, as an expression, a text scan or a join does.
pub(super) fn feeding(node: NodeRef<'_>) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for child in node.children() {
        sum = sum.saturating_add(cost_of(child)?);
    }
    Some(sum)
}

fn cost_of(node: NodeRef<'_>) -> Option<Duration> {
    let name = &*node.node.name;
    let is = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    if is(&BEGINNINGS) {
        return Some(Duration::ZERO);
    }
    if name.starts_with("Scan") {
        return time(node.node, "scan time");
    }
    if name.starts_with("HashAggregate") {
        // It takes what it reads into account.
        return time(node.node, "time in aggregation build");
    }
    let own = match name {
        "Sort" => time(node.node, "sort time")?,
        "Project" | "Filter" if computes_little(node.node.text.as_str()) => Duration::ZERO,
        _ if is(&LIGHT) || way(node.node).is_some() => Duration::ZERO,
        _ => return None,
    };
    Some(own.saturating_add(feeding(node)?))
}

/// Whether an expression calls no function that may cost much.
fn computes_little(text: &str) -> bool {
    text.match_indices('(').all(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let called = before
            .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default()
            .to_lowercase();
        called.is_empty() || CHEAP.contains(&called.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_calls_something_may_cost_much() {
        for (text, little) in [
            ("Project [id#0L, (id#0L % 40) AS account#1L]", true),
            ("Filter ((isnotnull(id#7L) AND (id#7L > 1000)) AND isnotnull(account#8L))", true),
            ("Project [cast(id#0L as string) AS text#1]", true),
            ("Project [length(sha2(cast(id#0L as binary), 512)) AS cost#4]", false),
            ("Filter my_udf(id#0L)", false),
            ("Project [a#1, b#2]", true),
        ] {
            assert_eq!(computes_little(text), little, "{text}");
        }
    }
}
