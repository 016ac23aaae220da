//! `repeated_subplan`: a query computes the same rows twice.
//!
//! Two subtrees of a plan are the same work where operator by operator they
//! have the same texts, without the numbers that Spark gives to expressions,
//! and counted the same rows. Of projections and scans, columns may differ:
//! Spark prunes them for each branch. Exchanges that Spark reuses, and what
//! stands below a cache, are computed once.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::context::Context;
use super::draft::Draft;
use super::humane;
use super::less_work;
use super::plan_cost::share_of_run_time;
use super::plan_text;
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::RepeatedSubplan,
    meaning: "A query computes the same costly rows more than once, because two of its branches \
              need them and nothing is shared.",
    details: "*Fires* for subtrees of one execution's plan that are the same work

    at least 2 times
    with at least 3 operators (`nodes`), one of which computes something: a join,
    an aggregate, a window, a generator, Python, or a projection with functions

The same work: the same operators with the same texts but for the numbers of
expressions, and the same rows wherever both count them. Projections may differ in
columns if they share a computed one; scans in columns, not in files or filters.

*Source*: SparkForensics' duplicate subtree (3 nodes, twice).

*Costs*: the run time of the stages of all copies but the costliest, without the
time of writing their shuffles; where copies share a stage, their part of it.

*Silent* for exchanges that Spark reuses by itself, below a cache, for scans
without anything computed, and for copies that cost little.
",
    evidence: &[
        ("copies", "times that the subtree is computed"),
        ("operators", "operators in it"),
        ("rows", "rows that each copy puts out"),
        ("copies_run_time", "run time of the stages of all copies"),
    ],
    fires: &["repeated_subplan"],
    near_misses: &["repeated_subplan-cheap"],
    resists: &[
        (
            "repeated_subplan-cached",
            "both branches show the plan of the cached table, computed once",
        ),
        ("repeated_subplan-reused", "the second branch reads the exchange of the first"),
    ],
};

/// Plans beyond this are not searched.
const MOST_NODES: usize = 5_000;

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.repeated_subplan.enabled {
        return;
    }
    for view in &context.executions {
        drafts.extend(judge(context, view));
    }
}

/// What is known of the subtree at a node.
#[derive(Debug, Clone, Copy, Default)]
struct Subtree {
    /// Equal for subtrees that may be the same work.
    hash: u64,
    /// Operators in it, without wrappers.
    operators: usize,
    computes: bool,
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>) -> Vec<Draft> {
    let nodes: Vec<NodeRef<'_>> = view.nodes().collect();
    if nodes.len() > MOST_NODES {
        return Vec::new();
    }
    let subtrees = subtrees(&nodes);
    let least = context.thresholds.repeated_subplan.nodes;
    let mut alike: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, (node, subtree)) in nodes.iter().zip(&subtrees).enumerate() {
        let worth = subtree.operators >= least && subtree.computes;
        if worth && !node.is_wrapper() && !node.plan.is_below_cache(place) {
            alike.entry(subtree.hash).or_default().push(place);
        }
    }
    // From the top, so that of a repeated subtree its parts are not said again.
    let mut groups: Vec<Vec<usize>> = alike.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    let mut said: BTreeSet<usize> = BTreeSet::new();
    let mut drafts = Vec::new();
    for group in groups {
        let mut copies: Vec<NodeRef<'_>> = Vec::new();
        for node in group.iter().filter_map(|place| nodes.get(*place)) {
            if said.contains(&node.place) {
                continue;
            }
            if copies.first().is_none_or(|first| same_work(*first, *node)) {
                copies.push(*node);
            }
        }
        if copies.len() < 2 {
            continue;
        }
        for copy in &copies {
            said.extend(copy.place..copy.node.end as usize);
        }
        let operators = subtrees.get(copies[0].place).map_or(0, |subtree| subtree.operators);
        drafts.extend(draft(context, view, &copies, operators));
    }
    drafts
}

fn subtrees(nodes: &[NodeRef<'_>]) -> Vec<Subtree> {
    let mut subtrees = vec![Subtree::default(); nodes.len()];
    // Children stand behind their parents.
    for place in (0..nodes.len()).rev() {
        let node = nodes[place];
        let below: Vec<Subtree> =
            node.children().filter_map(|child| subtrees.get(child.place).copied()).collect();
        subtrees[place] = if node.is_wrapper() {
            below.first().copied().unwrap_or_default()
        } else {
            let mut hasher = DefaultHasher::new();
            key(node).hash(&mut hasher);
            for child in &below {
                child.hash.hash(&mut hasher);
            }
            let apart = node.node.reads_cache() || word(node) == "ReusedExchange";
            Subtree {
                hash: hasher.finish(),
                operators: if apart {
                    0
                } else {
                    1 + below.iter().map(|child| child.operators).sum::<usize>()
                },
                computes: !apart && (computes(node) || below.iter().any(|child| child.computes)),
            }
        };
    }
    subtrees
}

fn word(node: NodeRef<'_>) -> &str {
    plan_text::first_word(&node.node.name)
}

/// What must be equal of two nodes; what may differ is looked at in
/// [`alike`].
fn key(node: NodeRef<'_>) -> String {
    match word(node) {
        "Project" => "Project".to_owned(),
        "Scan" | "BatchScan" | "FileScan" => {
            let mut key = node.node.name.to_string();
            for name in ["Location", "PartitionFilters", "DataFilters", "PushedFilters"] {
                key.push('|');
                key.push_str(&plan_text::without_ids(node.node.metadata(name).unwrap_or_default()));
            }
            if node.node.metadata("Location").is_none() {
                key.push_str(&plan_text::without_ids(node.node.text.as_str()));
            }
            key
        }
        _ => plan_text::without_ids(node.node.text.as_str()),
    }
}

/// Whether the operator makes something of its rows that costs.
fn computes(node: NodeRef<'_>) -> bool {
    match word(node) {
        "Project" => !computed_columns(node).is_empty(),
        "Window" | "Generate" | "Expand" | "MapElements" | "MapPartitions" | "FlatMapGroups" => {
            true
        }
        word => {
            plan_text::join(node.node).is_some()
                || plan_text::aggregate(node.node).is_some()
                || word.contains("Python")
                || word.contains("Pandas")
                || word.contains("Arrow")
        }
    }
}

/// Columns of a projection that are the result of a function, without the
/// numbers of expressions.
fn computed_columns(node: NodeRef<'_>) -> BTreeSet<String> {
    let text = node.node.text.as_str();
    let inside = text.strip_prefix("Project [").unwrap_or(text);
    let inside = inside.strip_suffix(']').unwrap_or(inside);
    let mut columns = BTreeSet::new();
    let (mut depth, mut begin) = (0_i32, 0);
    for (place, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                let column = inside.get(begin..place).unwrap_or_default().trim();
                if column.contains('(') {
                    columns.insert(plan_text::without_ids(column));
                }
                begin = place + 1;
            }
            _ => {}
        }
    }
    columns
}

/// Whether two subtrees of equal shape are the same work, node by node.
fn same_work(one: NodeRef<'_>, other: NodeRef<'_>) -> bool {
    let (one, other) = (operators(one), operators(other));
    one.len() == other.len() && one.into_iter().zip(other).all(|(one, other)| alike(one, other))
}

/// A subtree without wrappers.
fn operators(top: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    std::iter::once(top).chain(top.below()).filter(|node| !node.is_wrapper()).collect()
}

fn alike(one: NodeRef<'_>, other: NodeRef<'_>) -> bool {
    let same_rows = match (one.rows(), other.rows()) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    if !same_rows || key(one) != key(other) {
        return false;
    }
    if word(one) != "Project" {
        return true;
    }
    let (of_one, of_other) = (computed_columns(one), computed_columns(other));
    of_one.is_empty() && of_other.is_empty() || !of_one.is_disjoint(&of_other)
}

/// The stages that computed a copy, each with the share of its run time that
/// is not the writing of its shuffle.
fn stages(
    context: &Context<'_>,
    view: &ExecutionView<'_>,
    copy: NodeRef<'_>,
) -> BTreeMap<usize, f64> {
    let mut stages = BTreeMap::new();
    for node in std::iter::once(copy).chain(copy.below()) {
        if node.plan.is_below_cache(node.place) {
            continue;
        }
        for stage in view.stages_of(node) {
            stages.entry(stage).or_insert_with(|| {
                let writing = context
                    .stages
                    .get(stage)
                    .and_then(|view| view.stage.measures.shuffle_write_time.sum)
                    .unwrap_or_default();
                1.0 - share_of_run_time(context, stage, writing).min(1.0)
            });
        }
    }
    stages
}

fn draft(
    context: &Context<'_>,
    view: &ExecutionView<'_>,
    copies: &[NodeRef<'_>],
    operators: usize,
) -> Option<Draft> {
    let run_time = |stages: &BTreeMap<usize, f64>| {
        stages
            .keys()
            .filter_map(|stage| context.stages.get(*stage)?.run_time_sum())
            .fold(Duration::ZERO, Duration::saturating_add)
    };
    let mut of_copies: Vec<BTreeMap<usize, f64>> =
        copies.iter().map(|copy| stages(context, view, *copy)).collect();
    // The costliest is the one that would remain.
    of_copies.sort_by_key(|stages| std::cmp::Reverse(run_time(stages)));
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    for stage in of_copies.iter().flat_map(BTreeMap::keys) {
        *used.entry(*stage).or_default() += 1;
    }
    let mut needless: BTreeMap<usize, f64> = BTreeMap::new();
    for (stage, share) in of_copies.iter().skip(1).flatten() {
        let together = used.get(stage).copied().unwrap_or(1) as f64;
        *needless.entry(*stage).or_default() += share / together;
    }
    let (impact, of_stages) = less_work::saving(context, needless);
    let all: BTreeMap<usize, f64> = of_copies.into_iter().flatten().collect();
    let (first, rest) = copies.split_first()?;
    let others: Vec<String> = rest.iter().take(3).map(|copy| copy.place.to_string()).collect();
    let from = first.from();
    let headline = format!(
        "{} and the {} below it are computed {} times (again at node {})",
        first.name(),
        humane::count(operators.saturating_sub(1) as u64, "operator", "operators"),
        copies.len(),
        others.join(", "),
    );
    let mut draft = Draft::new(Rule::RepeatedSubplan, FindingKind::Data, view.subject(), headline)
        .confidence(Confidence::High)
        .evidence("copies", copies.len() as f64, Unit::Count, 2.0, &from)
        .evidence(
            "operators",
            operators as f64,
            Unit::Count,
            context.thresholds.repeated_subplan.nodes as f64,
            &from,
        );
    if let Some(rows) = first.rows() {
        draft = draft.evidence("rows", rows as f64, Unit::Count, None, &from);
    }
    Some(
        draft
            .evidence(
                "copies_run_time",
                run_time(&all).as_secs_f64(),
                Unit::Seconds,
                None,
                "stages of all copies",
            )
            .impact(impact, of_stages)
            .advice_unless(
                "Cache or write the common rows before the branches part (cache(), a temporary \
                 table), with the columns that all of them need",
                Where::Sql,
                "the rows are so many that reading them back costs as much as computing them",
            )
            .advice_unless(
                "Compute both results in one pass: several aggregates at once, GROUPING SETS, or a \
                 window instead of a join of the rows with their own totals",
                Where::Sql,
                "the branches need different rows",
            ),
    )
}
