//! What `EXPLAIN` says of a plan's nodes, added to a plan that was measured.

use super::explain;
use crate::model::{Plan, PlanNode};

/// Adds text and metadata to nodes that have none, where both are the same
/// plan: the same operators in the same order, apart from wrappers that one of
/// them leaves out. Nodes that got something; 0 where it is another plan.
pub fn add_details(plan: &mut Plan, explained: &Plan) -> usize {
    let places = operators(plan);
    let theirs = operators(explained);
    let same = places.len() == theirs.len()
        && places
            .iter()
            .zip(&theirs)
            .all(|(ours, theirs)| name(&plan.nodes[*ours]) == name(&explained.nodes[*theirs]));
    if !same {
        return 0;
    }
    let mut added = 0;
    for (ours, theirs) in places.into_iter().zip(theirs) {
        let (ours, theirs) = (&mut plan.nodes[ours], &explained.nodes[theirs]);
        if ours.text.is_empty() && !theirs.text.is_empty() {
            ours.text = theirs.text.clone();
            added += 1;
        }
        if ours.metadata.is_empty() {
            ours.metadata.clone_from(&theirs.metadata);
        }
    }
    added
}

/// The same from the text of an `EXPLAIN`.
pub fn add_text(plan: &mut Plan, text: &str) -> usize {
    explain::parse(text).map_or(0, |explained| add_details(plan, &explained))
}

/// Operators that do work, by their places; what a reused exchange shows again
/// is left out.
fn operators(plan: &Plan) -> Vec<usize> {
    let mut places = Vec::new();
    let mut place = 0;
    while let Some(node) = plan.nodes.get(place) {
        if node.name.starts_with("ReusedExchange") || node.name.starts_with("ReusedSubquery") {
            places.push(place);
            place = (node.end as usize).max(place + 1);
            continue;
        }
        if !is_wrapper(node) {
            places.push(place);
        }
        place += 1;
    }
    places
}

fn is_wrapper(node: &PlanNode) -> bool {
    const WRAPPERS: [&str; 6] = [
        "WholeStageCodegen",
        "InputAdapter",
        "AdaptiveSparkPlan",
        "InMemoryRelation",
        "Subquery",
        "ResultQueryStage",
    ];
    WRAPPERS.iter().any(|name| node.name.starts_with(name)) || node.name.ends_with("QueryStage")
}

/// Without the table of a scan, which only some releases write.
fn name(node: &PlanNode) -> String {
    node.name.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}
