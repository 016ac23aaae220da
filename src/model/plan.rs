//! The physical plan of a SQL execution, and what its nodes counted.

use std::sync::Arc;

use serde::Serialize;

use super::{SqlText, StageId};

/// A plan as a list of its nodes, each before those below it (what feeds it).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub nodes: Vec<PlanNode>,
    /// Nodes beyond the limits: the last of the plan's order.
    pub nodes_omitted: u64,
}

/// One operator.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanNode {
    /// Spark's name (`SortMergeJoin`; of a scan also format and table), cut
    /// to 200 characters.
    pub name: Arc<str>,
    /// Spark's `simpleString`: name and arguments. The middle of a long one
    /// is left out: grouping and join keys stand at its beginning, join types
    /// and the evaluation type of Python at its end. Spark itself cuts lists
    /// of fields (`spark.sql.debug.maxToStringFields`).
    pub text: SqlText,
    /// Its place in [`Plan::nodes`]; `None` for the top.
    pub parent: Option<u32>,
    /// The nodes below it are those from its own place + 1 up to here.
    pub end: u32,
    /// Of a scan: `Location`, `PartitionFilters`, `PushedFilters` and the
    /// like; each value cut.
    pub metadata: Vec<(Arc<str>, SqlText)>,
    pub metrics: Vec<PlanMetric>,
    /// Stage attempts whose tasks told of one of its metrics, ascending. A
    /// node without metrics (`Project`) has none: look at its neighbours. From
    /// REST those of its metrics' largest tasks.
    pub stages: Vec<StageId>,
}

/// What sort of number a metric is, and the unit of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// Rows, files, blocks (`sum`).
    Count,
    /// `size`.
    Bytes,
    /// `timing` and `nsTiming`: values in nanoseconds.
    Nanoseconds,
    /// `average`: each task's own average, in tenths. Their total means
    /// nothing but total / tasks.
    Tenths,
    /// Of a data source of its own: only that source knows the unit.
    Custom,
}

/// A metric of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanMetric {
    /// Spark's name (`number of output rows`).
    pub name: Arc<str>,
    pub kind: MetricKind,
    /// Shared by all executions that read the same cached table, in the nodes
    /// below its scan. From REST, which does not tell it, a number of its own.
    pub accumulator: u64,
    /// `None`: no task and no driver told it. Spark does not send zeros of
    /// counts, so in an execution that completed it means 0 for those.
    pub value: Option<Box<MetricValue>>,
}

/// What became of a metric, in the unit of its kind. From REST it is made of
/// a text for people: sizes and times within half of their third digit
/// ([`super::DataQuality::SqlMetricsRounded`]), `tasks`, `wasted` and
/// `elsewhere` unknown, and of [`MetricKind::Tenths`] the largest task only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetricValue {
    /// Told by tasks of this execution, each partition of a stage once
    /// whichever attempt computed it first, and by the driver.
    pub total: u64,
    /// Those tasks; 0 where the source does not tell (REST).
    pub tasks: u64,
    /// The one of them with the largest value.
    pub largest: Option<LargestTask>,
    /// Told by attempts that failed or were killed, or that computed a
    /// partition again.
    pub wasted: u64,
    /// Told by other executions' tasks (or those of none) and in their name by
    /// the driver, as happens below the scan of a cached table.
    pub elsewhere: u64,
}

/// A task and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargestTask {
    pub value: u64,
    pub stage: StageId,
    pub task_id: u64,
}

impl MetricKind {
    /// From Spark's `metricType`, with what one of Spark's units is in ours.
    pub fn of(metric_type: &str) -> (Self, u64) {
        match metric_type {
            "sum" => (Self::Count, 1),
            "size" => (Self::Bytes, 1),
            "timing" => (Self::Nanoseconds, 1_000_000),
            "nsTiming" => (Self::Nanoseconds, 1),
            "average" => (Self::Tenths, 1),
            _ => (Self::Custom, 1),
        }
    }
}

impl Plan {
    /// Metadata of scans that tell what was read and what was left out.
    pub(crate) const METADATA_KEYS: [&'static str; 10] = [
        "Location",
        "Format",
        "ReadSchema",
        "PartitionFilters",
        "PushedFilters",
        "DataFilters",
        "SelectedBucketsCount",
        "DisabledBucketedScan",
        "PushedAggregation",
        "Bucketed",
    ];

    /// One of them out of the text of a scan: `... Location: ...,
    /// PartitionFilters: [...], ...`.
    pub(crate) fn metadata_in<'t>(text: &'t str, key: &str) -> Option<&'t str> {
        let start = text.find(&format!(" {key}: "))? + key.len() + 3;
        let rest = text.get(start..)?;
        // Up to the comma that stands in no brackets.
        let mut depth = 0_usize;
        let end = rest.char_indices().find(|(_, c)| {
            match c {
                '[' | '(' | '<' | '{' => depth += 1,
                ']' | ')' | '>' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *c == ',' && depth == 0
        });
        Some(&rest[..end.map_or(rest.len(), |(at, _)| at)])
    }

    /// The same with each node's [`PlanNode::end`], worked out from parents.
    /// Each node must stand before those below it.
    pub(crate) fn with_ends(mut self) -> Self {
        for (place, node) in self.nodes.iter_mut().enumerate() {
            node.end = place as u32 + 1;
        }
        for place in (0..self.nodes.len()).rev() {
            let end = self.nodes[place].end;
            let parent = self.nodes[place].parent;
            if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
                parent.end = parent.end.max(end);
            }
        }
        self
    }

    /// The nodes that feed this one directly.
    pub fn children(&self, node: usize) -> impl Iterator<Item = (usize, &PlanNode)> {
        let end = self.nodes.get(node).map_or(node, |node| node.end as usize);
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let child = self.nodes.get(next).filter(|_| next < end)?;
            let place = next;
            next = (child.end as usize).max(next + 1);
            Some((place, child))
        })
    }

    /// All nodes below this one.
    pub fn below(&self, node: usize) -> &[PlanNode] {
        let end = self.nodes.get(node).map_or(node, |node| node.end as usize);
        self.nodes.get(node + 1..end).unwrap_or_default()
    }

    /// Whether the node stands below the scan of a cached table: its metrics
    /// are then those of whoever filled the cache.
    pub fn is_below_cache(&self, node: usize) -> bool {
        let mut above = self.nodes.get(node).and_then(|node| node.parent);
        while let Some(node) = above.and_then(|place| self.nodes.get(place as usize)) {
            if node.reads_cache() {
                return true;
            }
            above = node.parent;
        }
        false
    }
}

impl PlanNode {
    pub fn metric(&self, name: &str) -> Option<&PlanMetric> {
        self.metrics.iter().find(|metric| &*metric.name == name)
    }

    /// The value of a metric, where anybody told it.
    pub fn value(&self, name: &str) -> Option<&MetricValue> {
        self.metric(name)?.value.as_deref()
    }

    pub fn metadata(&self, key: &str) -> Option<&str> {
        let (_, value) = self.metadata.iter().find(|(known, _)| &**known == key)?;
        Some(value.as_str())
    }

    /// Whether it is the scan of a cached table. Of a table that was cached by
    /// name (`CACHE TABLE t`) Spark calls the scan `Scan In-memory table t`.
    pub fn reads_cache(&self) -> bool {
        self.name.starts_with("InMemoryTableScan") || self.name.starts_with("Scan In-memory table ")
    }

    /// What stands after the last comma of its text: the evaluation type of
    /// `ArrowEvalPython`.
    pub fn last_argument(&self) -> Option<&str> {
        let (_, last) = self.text.as_str().trim_end().rsplit_once(',')?;
        Some(last.trim_matches(|c: char| c.is_whitespace() || c == ']' || c == ')'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, parent: Option<u32>, end: u32) -> PlanNode {
        PlanNode {
            name: name.into(),
            text: name.into(),
            parent,
            end,
            metadata: Vec::new(),
            metrics: Vec::new(),
            stages: Vec::new(),
        }
    }

    #[test]
    fn what_stands_below_what() {
        // Join(Scan, InMemoryTableScan(Range))
        let plan = Plan {
            nodes: vec![
                node("Join", None, 4),
                node("Scan", Some(0), 2),
                node("InMemoryTableScan", Some(0), 4),
                node("Range", Some(2), 4),
            ],
            nodes_omitted: 0,
        };
        let children: Vec<usize> = plan.children(0).map(|(place, _)| place).collect();
        assert_eq!(children, [1, 2]);
        assert_eq!(plan.children(1).count(), 0);
        assert_eq!(plan.below(0).len(), 3);
        assert_eq!(plan.below(2).len(), 1);
        let cached: Vec<bool> = (0..4).map(|place| plan.is_below_cache(place)).collect();
        assert_eq!(cached, [false, false, false, true]);
    }

    #[test]
    fn the_last_argument_of_a_node() {
        let mut python = node("ArrowEvalPython", None, 1);
        python.text = "ArrowEvalPython [f(id#0L)#2L], [pythonUDF0#5L], 200".into();
        assert_eq!(python.last_argument(), Some("200"));
        assert_eq!(node("Range", None, 1).last_argument(), None);
    }
}
