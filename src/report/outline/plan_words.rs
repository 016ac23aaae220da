//! What a plan node's text says in Spark's own closed words: type and sides of
//! a join, the kind of an exchange, what adaptive execution did. Nothing that a
//! user wrote.

use crate::model::PlanNode;

const JOIN_TYPES: [&str; 8] = [
    "Inner",
    "LeftOuter",
    "RightOuter",
    "FullOuter",
    "LeftSemi",
    "LeftAnti",
    "Cross",
    "ExistenceJoin",
];

/// `Inner`, `Inner, builds right`; `hash on 200 partitions`; `coalesced`.
pub(super) fn detail(node: &PlanNode) -> Option<String> {
    let (name, text) = (&*node.name, node.text.as_str());
    if name.contains("Join") || name.starts_with("CartesianProduct") {
        join(text)
    } else if name.starts_with("BroadcastExchange") {
        Some("broadcast".to_owned())
    } else if name.starts_with("Exchange") {
        exchange(text)
    } else if name.starts_with("AQEShuffleRead") || name.starts_with("CustomShuffleReader") {
        adaptive_read(node)
    } else if name.contains("Aggregate") {
        Some(aggregate(text).to_owned())
    } else if name.contains("EvalPython") || name.contains("InPandas") {
        Some("Python".to_owned())
    } else if node.reads_cache() {
        Some("reads a cached table".to_owned())
    } else {
        None
    }
}

/// Type and build side stand at the end, after keys that users named; of a
/// key that is called `Inner` the type is still the last such word.
fn join(text: &str) -> Option<String> {
    let words = || {
        text.rsplit([',', ' ', '(', ')', '[', ']'])
            .map(|word| word.split('#').next().unwrap_or(word))
    };
    let kind = words().find_map(|word| JOIN_TYPES.iter().find(|kind| **kind == word));
    let side = words().find_map(|word| match word {
        "BuildLeft" => Some("builds the left side"),
        "BuildRight" => Some("builds the right side"),
        _ => None,
    });
    match (kind, side) {
        (Some(kind), Some(side)) => Some(format!("{kind}, {side}")),
        (Some(kind), None) => Some((*kind).to_owned()),
        (None, side) => side.map(str::to_owned),
    }
}

fn exchange(text: &str) -> Option<String> {
    let kinds = [
        ("hashpartitioning", "by hash"),
        ("rangepartitioning", "by range"),
        ("RoundRobinPartitioning", "round robin"),
        ("SinglePartition", "to one partition"),
        ("UnknownPartitioning", "unknown partitioning"),
    ];
    let rest = text.split_once(' ')?.1;
    let (_, kind) = kinds.iter().find(|(word, _)| rest.starts_with(word))?;
    let why = if rest.contains(", REPARTITION_BY") { ", asked for by the program" } else { "" };
    Some(match partitions(rest) {
        Some(partitions) => format!("{kind}, {partitions} partitions{why}"),
        None => format!("{kind}{why}"),
    })
}

/// The number before the parenthesis that ends the partitioning.
fn partitions(rest: &str) -> Option<u64> {
    let end = rest.find("), ").unwrap_or(rest.trim_end().len().saturating_sub(1));
    let start = rest.get(..end)?;
    let digits = start.rsplit([' ', '(', ',']).next()?;
    digits.parse().ok()
}

/// `coalesced from 200 to 4 partitions`, `2 skewed partitions split into 9`.
fn adaptive_read(node: &PlanNode) -> Option<String> {
    let count = |name: &str| node.value(name).map(|value| value.total);
    let text = node.text.as_str();
    let mut parts = Vec::new();
    if text.contains("coalesced") {
        parts.push(match count("number of coalesced partitions") {
            Some(to) => format!("coalesced into {to} partitions"),
            None => "coalesced".to_owned(),
        });
    }
    if text.contains("skewed") {
        parts.push(
            match (count("number of skewed partitions"), count("number of skewed partition splits"))
            {
                (Some(skewed), Some(splits)) => {
                    format!("{skewed} skewed partitions split into {splits}")
                }
                _ => "skewed partitions split".to_owned(),
            },
        );
    }
    if text.contains("local") {
        parts.push("read locally".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn aggregate(text: &str) -> &'static str {
    let functions = text.split_once("functions=").map_or("", |(_, functions)| functions);
    if functions.contains("partial_") {
        "partial, before the shuffle"
    } else if functions.contains("merge_") {
        "merge"
    } else {
        "final"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, text: &str) -> PlanNode {
        PlanNode {
            name: name.into(),
            text: text.into(),
            parent: None,
            end: 1,
            metadata: Vec::new(),
            metrics: Vec::new(),
            stages: Vec::new(),
        }
    }

    #[test]
    fn details_are_in_spark_s_words_only() {
        for (name, text, expected) in [
            ("SortMergeJoin", "SortMergeJoin [a#8L], [b#5L], Inner", Some("Inner")),
            (
                "BroadcastHashJoin",
                "BroadcastHashJoin [Inner#1], [b#5L], LeftOuter, BuildRight, false, false",
                Some("LeftOuter, builds the right side"),
            ),
            (
                "Exchange",
                "Exchange hashpartitioning(secret#6L, 200), ENSURE_REQUIREMENTS, [plan_id=134]",
                Some("by hash, 200 partitions"),
            ),
            ("Exchange", "Exchange SinglePartition, ENSURE_REQUIREMENTS", Some("to one partition")),
            (
                "Exchange",
                "Exchange hashpartitioning(k#1, 8), REPARTITION_BY_NUM, [plan_id=1]",
                Some("by hash, 8 partitions, asked for by the program"),
            ),
            ("AQEShuffleRead", "AQEShuffleRead coalesced", Some("coalesced")),
            (
                "HashAggregate",
                "HashAggregate(keys=[k#1], functions=[partial_count(1)])",
                Some("partial, before the shuffle"),
            ),
            ("Filter", "Filter (name = hunter2)", None),
        ] {
            assert_eq!(detail(&node(name, text)).as_deref(), expected, "{text}");
        }
    }
}
