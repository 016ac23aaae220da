//! SQL executions as rules see them: each with its plan, the stages that ran
//! for it, and which of these did the work of which node.

#![allow(dead_code, reason = "the rules about plans are being written")]

use std::collections::BTreeMap;
use std::time::Duration;

use super::Subject;
use super::context::StageView;
use crate::model::{Application, Plan, PlanNode, SqlExecution, StageId};

/// One SQL execution with what was worked out about it.
pub(super) struct ExecutionView<'a> {
    pub(super) execution: &'a SqlExecution,
    /// Its own stages (not those of executions that it started), by their
    /// place in `Context::stages`; without skipped ones. Ascending.
    pub(super) stages: Vec<usize>,
    /// Run time of all their tasks.
    pub(super) task_time: Duration,
    /// By stage attempt, its place in `Context::stages`.
    places: BTreeMap<StageId, usize>,
}

/// A node of a plan with its place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeRef<'a> {
    pub(super) sql_id: u64,
    pub(super) plan: &'a Plan,
    pub(super) place: usize,
    pub(super) node: &'a PlanNode,
}

/// In the order of `Application::sql`; empty where the source tells of none.
pub(super) fn of<'a>(
    application: &'a Application,
    stages: &[StageView<'_>],
) -> Vec<ExecutionView<'a>> {
    let mut by_job: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for view in stages.iter().filter(|view| view.span.is_some()) {
        for job in &view.stage.job_ids {
            by_job.entry(*job).or_default().push(view.index);
        }
    }
    let view = |execution: &'a SqlExecution| {
        let mut own: Vec<usize> =
            execution.job_ids.iter().filter_map(|job| by_job.get(job)).flatten().copied().collect();
        own.sort_unstable();
        own.dedup();
        let of_own = || own.iter().filter_map(|place| stages.get(*place));
        let task_time = of_own()
            .filter_map(StageView::run_time_sum)
            .fold(Duration::ZERO, Duration::saturating_add);
        let places = of_own().map(|view| (view.stage.id, view.index)).collect();
        ExecutionView { execution, stages: own, task_time, places }
    };
    application.sql.iter().flatten().map(view).collect()
}

impl<'a> ExecutionView<'a> {
    /// The nodes of its plan, each before those below it; none where the plan
    /// is not available.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let sql_id = self.execution.id;
        self.execution.plan.iter().flat_map(move |plan| {
            plan.nodes.iter().enumerate().map(move |(place, node)| NodeRef {
                sql_id,
                plan,
                place,
                node,
            })
        })
    }

    /// The stages whose tasks told of the node's metrics, by their place in
    /// `Context::stages`. Of a node without metrics, those of the nearest
    /// node above or below it that has some.
    pub(super) fn stages_of(&self, node: NodeRef<'_>) -> Vec<usize> {
        let own = |node: &PlanNode| -> Vec<usize> {
            node.stages.iter().filter_map(|id| self.places.get(id).copied()).collect()
        };
        let mut found = own(node.node);
        let mut above = node.node.parent;
        while let (true, Some(place)) = (found.is_empty(), above) {
            let Some(parent) = node.plan.nodes.get(place as usize) else { break };
            if parent.name.contains("Exchange") {
                break;
            }
            found = own(parent);
            above = parent.parent;
        }
        if found.is_empty() {
            found = node
                .children()
                .map(|child| own(child.node))
                .find(|found| !found.is_empty())
                .unwrap_or_default();
        }
        found
    }

    pub(super) fn subject(&self) -> Subject {
        Subject::SqlExecution { sql_id: self.execution.id }
    }
}

impl<'a> NodeRef<'a> {
    pub(super) fn subject(&self) -> Subject {
        Subject::PlanNode {
            sql_id: self.sql_id,
            node: u32::try_from(self.place).unwrap_or(u32::MAX),
        }
    }

    /// `SortMergeJoin (node 3 of SQL execution 7)`, for headlines. A scan's
    /// name carries the table: it is cut to its first two words, since names
    /// of tables are text of users.
    pub(super) fn name(&self) -> String {
        let words: Vec<&str> = self.node.name.split_whitespace().take(2).collect();
        format!("{} (node {} of SQL execution {})", words.join(" "), self.place, self.sql_id)
    }

    /// The nodes that feed this one directly.
    pub(super) fn children(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let (sql_id, plan) = (self.sql_id, self.plan);
        plan.children(self.place).map(move |(place, node)| NodeRef { sql_id, plan, place, node })
    }

    pub(super) fn parent(&self) -> Option<NodeRef<'a>> {
        let place = self.node.parent? as usize;
        let node = self.plan.nodes.get(place)?;
        Some(NodeRef { sql_id: self.sql_id, plan: self.plan, place, node })
    }

    /// Rows that it put out, where the node or the first one below it that
    /// passes rows on unchanged counts them (`Project`, exchanges, sorts and
    /// wrappers of adaptive execution do not change their number). `None`:
    /// nobody counts, or the count is that of whoever filled a cache.
    pub(super) fn rows(&self) -> Option<u64> {
        const KEEPS_ROWS: [&str; 12] = [
            "Project",
            "Exchange",
            "BroadcastExchange",
            "Sort",
            "AQEShuffleRead",
            "CustomShuffleReader",
            "ShuffleQueryStage",
            "BroadcastQueryStage",
            "ReusedExchange",
            "WholeStageCodegen",
            "InputAdapter",
            "ColumnarToRow",
        ];
        if self.plan.is_below_cache(self.place) {
            return None;
        }
        if let Some(metric) = self.node.metric("number of output rows") {
            return metric.value.as_deref().map(|value| value.total);
        }
        let keeps = KEEPS_ROWS.iter().any(|name| self.node.name.starts_with(name));
        let mut children = self.children();
        match (keeps, children.next(), children.next()) {
            (true, Some(only), None) => only.rows(),
            _ => None,
        }
    }
}
