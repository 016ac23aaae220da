//! Which operator of a plan feeds on the shuffle of a stage: what a person
//! looks for when a task of that stage has too much to do, and what decides
//! which advice helps. Adaptive execution splits skewed partitions of joins
//! and of nothing else; a window or an aggregate needs another remedy.

use super::NodeRef;
use super::context::{Context, StageView};
use super::plan_text::{self, Algorithm, JoinType};

/// The operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// A join by keys; `splittable`: adaptive execution may split its skewed
    /// partitions.
    Join {
        splittable: bool,
    },
    Window,
    /// `keeps_rows`: its result grows with the rows (`collect_list`).
    Aggregate {
        keeps_rows: bool,
    },
    /// Rows were distributed because the program asked for it.
    Repartition,
    /// It reads files.
    Scan,
    /// It makes many rows of one (`explode`).
    Generate,
}

impl Operator {
    pub(super) fn is_join(self) -> bool {
        matches!(self, Self::Join { .. })
    }
}

/// An operator where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fed<'a> {
    pub(super) operator: Operator,
    pub(super) node: NodeRef<'a>,
    /// Rows that come out of it (or of the first filter above it) over those
    /// that go in, where both are counted.
    pub(super) kept: Option<f64>,
}

/// The operator above the exchange that brought the stage most rows; of a
/// stage without an exchange, what makes rows in it (`Generate`), else its
/// scan. `None` where the source has no plan.
pub(super) fn of_stage<'a>(context: &Context<'a>, view: &StageView<'_>) -> Option<Fed<'a>> {
    let executions = || context.executions.iter().filter(|view_| view_.has_stage(view.index));
    let by_shuffle = executions()
        .flat_map(|execution| {
            execution.nodes().filter_map(|node| {
                let exchange = read_exchange(node)?;
                let fed = above(node, exchange)?;
                let in_stage = execution.stages_of(fed.node).contains(&view.index);
                let rows = exchange.node.value("shuffle records written").map(|value| value.total);
                in_stage.then_some((rows.or_else(|| exchange.rows()).unwrap_or(0), fed))
            })
        })
        .max_by_key(|(rows, fed)| (*rows, std::cmp::Reverse(fed.node.place)));
    if let Some((_, fed)) = by_shuffle {
        return Some(fed);
    }
    let named = |word: fn(&str) -> bool, operator: Operator| {
        executions()
            .flat_map(|execution| {
                execution
                    .nodes()
                    .filter(move |node| word(plan_text::first_word(&node.node.name)))
                    .filter(|node| execution.stages_of(*node).contains(&view.index))
            })
            .next()
            .map(|node| Fed { operator, node, kept: None })
    };
    named(|word| word == "Generate", Operator::Generate)
        .or_else(|| named(|word| matches!(word, "Scan" | "BatchScan"), Operator::Scan))
}

/// The exchange that a node stands for, if it is one: itself, or the one that
/// is used again.
fn read_exchange(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let exchange = match plan_text::first_word(&node.node.name) {
        "Exchange" => node,
        "ReusedExchange" => node.reused()?,
        _ => return None,
    };
    plan_text::exchange(exchange.node).map(|_| exchange)
}

/// The first operator above an exchange that needs its rows as they are.
fn above<'a>(read: NodeRef<'a>, exchange: NodeRef<'a>) -> Option<Fed<'a>> {
    let asked_for = !plan_text::exchange(exchange.node)?.required;
    let mut node = read;
    let mut last = None;
    while let Some(parent) = node.parent().filter(|parent| !parent.ends_stage()) {
        if let Some(operator) = operator(parent) {
            return Some(Fed { operator, node: parent, kept: kept(parent) });
        }
        if !parent.is_wrapper() {
            last.get_or_insert(parent);
        }
        node = parent;
    }
    let node = last?;
    asked_for.then_some(Fed { operator: Operator::Repartition, node, kept: None })
}

fn operator(node: NodeRef<'_>) -> Option<Operator> {
    if let Some(join) = plan_text::join(node.node) {
        let by_keys = matches!(join.algorithm, Algorithm::SortMerge | Algorithm::ShuffledHash);
        // A full outer join must see all rows of a key at once.
        let splittable =
            by_keys && !matches!(join.join_type, Some(JoinType::FullOuter | JoinType::Existence));
        return Some(Operator::Join { splittable });
    }
    if let Some(aggregate) = plan_text::aggregate(node.node) {
        // One that adds up before the next shuffle comes after what is sought.
        return (aggregate.grouped && aggregate.phase != Some(plan_text::Phase::Partial))
            .then_some(Operator::Aggregate { keeps_rows: aggregate.keeps_rows });
    }
    match plan_text::first_word(&node.node.name) {
        "Window" | "WindowInPandas" | "ArrowWindowPython" => Some(Operator::Window),
        "FlatMapGroupsInPandas" | "FlatMapGroupsInArrow" | "MapGroups" | "AggregateInPandas" => {
            Some(Operator::Aggregate { keeps_rows: true })
        }
        "FlatMapCoGroupsInPandas" | "FlatMapCoGroupsInArrow" | "CoGroup" => {
            Some(Operator::Join { splittable: false })
        }
        _ => None,
    }
}

/// Rows that remain of those that went in, behind the join and a filter
/// directly above it.
fn kept(node: NodeRef<'_>) -> Option<f64> {
    plan_text::join(node.node)?;
    let most = node.inputs().filter_map(|input| input.rows()).max()?;
    let mut out = node.rows()?;
    let mut above = node.parent();
    while let Some(parent) = above.filter(|parent| !parent.ends_stage()) {
        match plan_text::first_word(&parent.node.name) {
            "Filter" => {
                out = parent.rows().unwrap_or(out);
                break;
            }
            "Project" | "WholeStageCodegen" | "InputAdapter" => above = parent.parent(),
            _ => break,
        }
    }
    super::context::ratio(out, most)
}

/// Whether the shuffle that a stage reads carries one row for all that one
/// task gathered of a key (`collect_list`): its records are even however
/// uneven the keys, and bytes tell.
pub(super) fn reads_gathered_rows(fed: &Fed<'_>) -> bool {
    if !matches!(fed.operator, Operator::Aggregate { keeps_rows: true }) {
        return false;
    }
    let mut below = fed.node.inputs().next().and_then(|input| input.feeding_exchange());
    while let Some(node) = below {
        if plan_text::aggregate(node.node).is_some() {
            return true;
        }
        if !(node.is_exchange() || node.is_wrapper()) {
            return false;
        }
        below = node.inputs().next();
    }
    false
}
