//! SQL executions as rules see them: each with its plan, the stages that ran
//! for it, and which of these did the work of which node.
//!
//! A plan as Spark sends it has nodes that do nothing themselves (wrappers of
//! adaptive execution and of generated code), subqueries among the children of
//! whoever uses them, and exchanges that stand for others. Rules ask for
//! *inputs* and *rows*, and need not know.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Subject;
use super::context::StageView;
use super::plan_text;
use crate::model::{Application, Configuration, Plan, PlanNode, SqlExecution, StageId};

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

/// Nodes that put out as many rows as they take in, and do not count them.
const KEEPS_ROWS: [&str; 22] = [
    "Project",
    "Exchange",
    "BroadcastExchange",
    "Sort",
    "Window",
    "WindowInPandas",
    "ArrowWindowPython",
    "AQEShuffleRead",
    "CustomShuffleReader",
    "ShuffleQueryStage",
    "BroadcastQueryStage",
    "TableCacheQueryStage",
    "ResultQueryStage",
    "AdaptiveSparkPlan",
    "WholeStageCodegen",
    "InputAdapter",
    "ColumnarToRow",
    "RowToColumnar",
    "CollectMetrics",
    "DeserializeToObject",
    "SerializeFromObject",
    "ReusedExchange",
];

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

    /// The stages that did the node's work, by their place in
    /// `Context::stages`: those whose tasks told of its metrics, else those of
    /// its neighbours up to the next exchanges. Of an exchange, the stages
    /// that wrote it.
    pub(super) fn stages_of(&self, node: NodeRef<'_>) -> Vec<usize> {
        if node.is_exchange() {
            return node.children().next().map_or_else(Vec::new, |child| self.stages_of(child));
        }
        let own = self.told(node.node);
        if !own.is_empty() || node.ends_stage() {
            return own;
        }
        let mut above = node.parent();
        while let Some(parent) = above.filter(|parent| !parent.ends_stage()) {
            let found = self.told(parent.node);
            if !found.is_empty() {
                return found;
            }
            above = parent.parent();
        }
        self.told_below(node)
    }

    /// The first stages told of below, not beyond exchanges.
    fn told_below(&self, node: NodeRef<'_>) -> Vec<usize> {
        let mut pending: Vec<NodeRef<'_>> = node.inputs().collect();
        pending.reverse();
        while let Some(next) = pending.pop() {
            if next.ends_stage() {
                continue;
            }
            let found = self.told(next.node);
            if !found.is_empty() {
                return found;
            }
            let mut below: Vec<NodeRef<'_>> = next.inputs().collect();
            below.reverse();
            pending.extend(below);
        }
        Vec::new()
    }

    fn told(&self, node: &PlanNode) -> Vec<usize> {
        node.stages.iter().filter_map(|id| self.places.get(id).copied()).collect()
    }

    /// Whether a stage belongs to this execution.
    pub(super) fn has_stage(&self, index: usize) -> bool {
        self.stages.binary_search(&index).is_ok()
    }

    pub(super) fn subject(&self) -> Subject {
        Subject::SqlExecution { sql_id: self.execution.id }
    }

    /// A setting as it was for this execution: of its session, else of the
    /// application.
    pub(super) fn setting<'s>(
        &'s self,
        application: &'s Configuration,
        key: &str,
    ) -> Option<&'s str> {
        self.execution.configuration.get(key).or_else(|| application.get(key))
    }

    /// The same of a switch.
    pub(super) fn switch(&self, application: &Configuration, key: &str, default: bool) -> bool {
        match self.execution.configuration.get(key) {
            Some(_) => self.execution.configuration.flag(key, default),
            None => application.flag(key, default),
        }
    }
}

impl<'a> NodeRef<'a> {
    pub(super) fn subject(&self) -> Subject {
        Subject::PlanNode {
            sql_id: self.sql_id,
            node: u32::try_from(self.place).unwrap_or(u32::MAX),
        }
    }

    /// `SortMergeJoin (node 3 of SQL execution 7)`, for headlines: Spark's own
    /// words only.
    pub(super) fn name(&self) -> String {
        format!("{} (node {} of SQL execution {})", self.operator(), self.place, self.sql_id)
    }

    /// `SortMergeJoin`, `Scan parquet`: without names of tables.
    pub(super) fn operator(&self) -> String {
        plan_text::safe_name(self.node)
    }

    /// `node 3 of SQL execution 7`, for `Evidence::from`.
    pub(super) fn from(&self) -> String {
        format!("node {} of SQL execution {}", self.place, self.sql_id)
    }

    fn at(&self, place: usize) -> Option<NodeRef<'a>> {
        let node = self.plan.nodes.get(place)?;
        Some(NodeRef { sql_id: self.sql_id, plan: self.plan, place, node })
    }

    /// The nodes that stand below this one: its inputs, and the subqueries
    /// whose results it uses.
    pub(super) fn children(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let (sql_id, plan) = (self.sql_id, self.plan);
        plan.children(self.place).map(move |(place, node)| NodeRef { sql_id, plan, place, node })
    }

    /// The nodes whose rows it takes in.
    pub(super) fn inputs(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        self.children().filter(|child| !child.is_subquery())
    }

    pub(super) fn parent(&self) -> Option<NodeRef<'a>> {
        self.at(self.node.parent? as usize)
    }

    /// All nodes below this one, each before those below it.
    pub(super) fn below(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let (sql_id, plan) = (self.sql_id, self.plan);
        let first = self.place + 1;
        plan.below(self.place).iter().enumerate().map(move |(place, node)| NodeRef {
            sql_id,
            plan,
            place: first + place,
            node,
        })
    }

    fn word(&self) -> &'a str {
        plan_text::first_word(&self.node.name)
    }

    fn is_subquery(&self) -> bool {
        matches!(
            self.word(),
            "Subquery" | "ReusedSubquery" | "SubqueryBroadcast" | "SubqueryAdaptiveBroadcast"
        )
    }

    /// A shuffle or a broadcast.
    pub(super) fn is_exchange(&self) -> bool {
        matches!(self.word(), "Exchange" | "BroadcastExchange")
    }

    /// What is below it ran in other stages.
    pub(super) fn ends_stage(&self) -> bool {
        self.is_exchange()
            || self.is_subquery()
            || self.node.reads_cache()
            || self.word() == "ReusedExchange"
    }

    /// A node that only marks where something else stands: wrappers of
    /// adaptive execution and of generated code.
    pub(super) fn is_wrapper(&self) -> bool {
        matches!(
            self.word(),
            "WholeStageCodegen"
                | "InputAdapter"
                | "AdaptiveSparkPlan"
                | "ShuffleQueryStage"
                | "BroadcastQueryStage"
                | "TableCacheQueryStage"
                | "ResultQueryStage"
                | "AQEShuffleRead"
                | "CustomShuffleReader"
        )
    }

    /// The node itself, or what the wrappers on top of it stand for; of a
    /// reused exchange, the exchange whose rows it reads.
    pub(super) fn unwrapped(self) -> NodeRef<'a> {
        let mut node = self;
        loop {
            let next = if node.word() == "ReusedExchange" {
                node.reused()
            } else if node.is_wrapper() {
                node.inputs().next()
            } else {
                None
            };
            match next {
                Some(next) => node = next,
                None => return node,
            }
        }
    }

    /// The exchange that a `ReusedExchange` stands for, where it is in the
    /// same plan.
    pub(super) fn reused(&self) -> Option<NodeRef<'a>> {
        let id = plan_text::plan_id(self.node)?;
        (0..self.plan.nodes.len())
            .filter_map(|place| self.at(place))
            .find(|node| node.is_exchange() && plan_text::plan_id(node.node) == Some(id))
    }

    /// The exchange that feeds it through nodes that keep rows, if any.
    pub(super) fn feeding_exchange(&self) -> Option<NodeRef<'a>> {
        let mut node = self.unwrapped();
        for _ in 0..self.plan.nodes.len() {
            if node.is_exchange() {
                return Some(node);
            }
            if !matches!(node.word(), "Sort" | "Project" | "ColumnarToRow" | "Filter") {
                return None;
            }
            node = node.inputs().next()?.unwrapped();
        }
        None
    }

    /// Rows that it put out, where the node or the first one below it that
    /// passes rows on unchanged counts them. `None`: nobody counts, or the
    /// count is that of another execution (whoever filled a cache, or ran the
    /// same plan before).
    pub(super) fn rows(&self) -> Option<u64> {
        // As deep as the plan at most, times two for reused exchanges.
        self.rows_within(self.plan.nodes.len().saturating_mul(2).min(4_000))
    }

    fn rows_within(&self, steps: usize) -> Option<u64> {
        let steps = steps.checked_sub(1)?;
        if self.plan.is_below_cache(self.place) {
            return None;
        }
        if let Some(metric) = self.node.metric("number of output rows") {
            let value = metric.value.as_deref()?;
            return (value.total > 0 || value.elsewhere == 0).then_some(value.total);
        }
        match self.word() {
            "Union" => self
                .inputs()
                .map(|input| input.rows_within(steps))
                .try_fold(0_u64, |sum, rows| Some(sum.saturating_add(rows?))),
            "ReusedExchange" => self.reused()?.rows_within(steps),
            word if KEEPS_ROWS.contains(&word) => {
                let mut inputs = self.inputs();
                match (inputs.next(), inputs.next()) {
                    (Some(only), None) => only.rows_within(steps),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
