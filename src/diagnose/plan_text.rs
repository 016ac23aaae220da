//! What stands in the text of a plan's node: of a join its type and sides, of
//! an exchange how it distributes rows, of an aggregate its phase.
//!
//! Spark writes these as `simpleString`s, in words that have been the same
//! since 3.0; it cuts lists of fields to 25, and the reader leaves out the
//! middle of what is longer than 1,000 characters. So each part that cannot be
//! told is `None`. Only words of Spark's own leave this file: keys, conditions
//! and names of columns are text of users.

use std::fmt::Write;

use crate::model::PlanNode;

/// How a join is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    SortMerge,
    ShuffledHash,
    BroadcastHash,
    /// Each row of one side is compared with each of the other, which is
    /// broadcast.
    NestedLoop,
    /// The same between partitions.
    Cartesian,
}

impl Algorithm {
    /// Both sides are distributed by the keys.
    pub(super) fn is_shuffled(self) -> bool {
        matches!(self, Self::SortMerge | Self::ShuffledHash)
    }

    /// There is no equality to find partners by.
    pub(super) fn compares_all(self) -> bool {
        matches!(self, Self::NestedLoop | Self::Cartesian)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinType {
    Inner,
    Cross,
    LeftOuter,
    RightOuter,
    FullOuter,
    LeftSemi,
    LeftAnti,
    Existence,
}

impl JoinType {
    /// Sides that a broadcast join of this type can build its table from. The
    /// other one's rows must be kept, so that each task must see them all.
    pub(super) fn can_build(self, side: Side) -> bool {
        match self {
            Self::Inner | Self::Cross => true,
            Self::RightOuter => side == Side::Left,
            Self::LeftOuter | Self::LeftSemi | Self::LeftAnti | Self::Existence => {
                side == Side::Right
            }
            Self::FullOuter => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Join {
    pub(super) algorithm: Algorithm,
    pub(super) join_type: Option<JoinType>,
    /// The side that is broadcast or hashed.
    pub(super) build: Option<Side>,
    /// Equalities that rows are matched by.
    pub(super) keys: Option<usize>,
    /// Adaptive execution split a skewed partition of it.
    pub(super) split: bool,
}

/// `None`: no join.
pub(super) fn join(node: &PlanNode) -> Option<Join> {
    let algorithm = match first_word(&node.name) {
        "SortMergeJoin" => Algorithm::SortMerge,
        "ShuffledHashJoin" => Algorithm::ShuffledHash,
        "BroadcastHashJoin" => Algorithm::BroadcastHash,
        "BroadcastNestedLoopJoin" => Algorithm::NestedLoop,
        "CartesianProduct" => Algorithm::Cartesian,
        _ => return None,
    };
    let text = node.text.as_str();
    let after_name = text.split_once(' ').map_or("", |(_, rest)| rest);
    let (keys, rest) = match lists(after_name) {
        Some((keys, rest)) => (keys, rest),
        // The keys are longer than what is kept of the text.
        None => (None, after_name),
    };
    let words = || rest.split(", ").map(|word| word.trim_matches([' ', ',', ']']));
    let join_type = match algorithm {
        Algorithm::Cartesian => Some(JoinType::Cross),
        _ => words().find_map(join_type),
    };
    let build = words().find_map(|word| match word {
        "BuildLeft" => Some(Side::Left),
        "BuildRight" => Some(Side::Right),
        _ => None,
    });
    Some(Join {
        algorithm,
        join_type,
        build,
        keys: if algorithm.compares_all() { Some(0) } else { keys },
        split: node.name.contains("skew=true"),
    })
}

fn join_type(word: &str) -> Option<JoinType> {
    Some(match word {
        "Inner" => JoinType::Inner,
        "Cross" => JoinType::Cross,
        "LeftOuter" | "LeftSingle" => JoinType::LeftOuter,
        "RightOuter" => JoinType::RightOuter,
        "FullOuter" => JoinType::FullOuter,
        "LeftSemi" => JoinType::LeftSemi,
        "LeftAnti" => JoinType::LeftAnti,
        word if word.starts_with("ExistenceJoin") => JoinType::Existence,
        _ => return None,
    })
}

/// `[a, b], [c, d], Inner` -> (2, `Inner`): how many keys each side has, and
/// what stands behind them. Without lists: (none, all of it).
fn lists(text: &str) -> Option<(Option<usize>, &str)> {
    if !text.starts_with('[') {
        return Some((None, text));
    }
    let (left, rest) = list(text)?;
    let rest = rest.trim_start_matches([',', ' ']);
    let (right, rest) = list(rest)?;
    let keys = (left == right && !text.contains(" more fields")).then_some(left);
    Some((keys, rest.trim_start_matches([',', ' '])))
}

/// The items of a list in brackets, and what follows it.
fn list(text: &str) -> Option<(usize, &str)> {
    let mut depth = 0_i32;
    let mut items = 1;
    for (place, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => {
                depth -= 1;
                if depth == 0 {
                    let inside = text.get(1..place)?;
                    let items = if inside.trim().is_empty() { 0 } else { items };
                    return Some((items, text.get(place + 1..)?));
                }
            }
            ',' if depth == 1 => items += 1,
            '…' => return None,
            _ => {}
        }
        if depth == 0 {
            return None;
        }
    }
    None
}

/// How an exchange distributes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distribution {
    /// By keys: all rows of one key meet in one task.
    Hash,
    /// By sorted ranges.
    Range,
    /// All into one.
    Single,
    RoundRobin,
    Other,
}

impl Distribution {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Hash => "by hash of its keys",
            Self::Range => "by ranges",
            Self::Single => "into one partition",
            Self::RoundRobin => "round robin",
            Self::Other => "by a rule of its own",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) distribution: Distribution,
    pub(super) partitions: Option<u64>,
    /// Spark put it in, so that a join, an aggregate or a window finds its
    /// rows together; `false`: the program asked for it (`repartition`).
    pub(super) required: bool,
}

/// `None`: no shuffle (a broadcast is none).
pub(super) fn exchange(node: &PlanNode) -> Option<Exchange> {
    if first_word(&node.name) != "Exchange" {
        return None;
    }
    let text = node.text.as_str();
    let rest = text.strip_prefix("Exchange").unwrap_or(text).trim_start();
    let lower = rest.get(..rest.len().min(40)).unwrap_or(rest).to_ascii_lowercase();
    let distribution = if lower.starts_with("hashpartitioning") {
        Distribution::Hash
    } else if lower.starts_with("rangepartitioning") {
        Distribution::Range
    } else if lower.starts_with("singlepartition") {
        Distribution::Single
    } else if lower.starts_with("roundrobinpartitioning") {
        Distribution::RoundRobin
    } else {
        Distribution::Other
    };
    let counted = node.value("number of partitions").map(|value| value.total);
    let partitions = match distribution {
        Distribution::Single => Some(1),
        _ => counted.filter(|partitions| *partitions > 0).or_else(|| last_number(rest)),
    };
    Some(Exchange { distribution, partitions, required: !rest.contains("REPARTITION") })
}

/// `hashpartitioning(a, 16), ENSURE_...` -> 16.
fn last_number(text: &str) -> Option<u64> {
    let end = text.find("), ").or_else(|| text.rfind(')'))?;
    let inside = text.get(..end)?;
    let number = inside.rsplit([',', '(']).next()?;
    number.trim().parse().ok()
}

/// The number by which a reused exchange names the one it stands for
/// (`[plan_id=131]`, before 3.3 `[id=#131]`).
pub(super) fn plan_id(node: &PlanNode) -> Option<u64> {
    let text = node.text.as_str();
    let (_, rest) = text.rsplit_once("[plan_id=").or_else(|| text.rsplit_once("[id=#"))?;
    rest.split(']').next()?.parse().ok()
}

/// Which part of its work an aggregate does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before the shuffle, each task its own rows.
    Partial,
    /// Joins partial results without finishing (two-phase distinct).
    Merge,
    /// After the shuffle, or all of it where there is none.
    Final,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aggregate {
    /// It groups by something.
    pub(super) grouped: bool,
    /// `None`: it has no functions (`SELECT DISTINCT`), or they are cut away.
    pub(super) phase: Option<Phase>,
    /// One of its functions is over distinct values.
    pub(super) distinct: bool,
    /// It is an `ObjectHashAggregate` or `SortAggregate` with a function whose
    /// result grows with the rows (`collect_list`): adding up before the
    /// shuffle leaves all the data in fewer rows.
    pub(super) keeps_rows: bool,
}

/// Functions whose buffer holds the rows themselves.
const GATHERING: [&str; 9] = [
    "collect_list(",
    "collect_set(",
    "array_agg(",
    "listagg(",
    "string_agg(",
    "percentile(",
    "median(",
    "mode(",
    "histogram_numeric(",
];

/// `None`: no aggregate.
pub(super) fn aggregate(node: &PlanNode) -> Option<Aggregate> {
    if !matches!(first_word(&node.name), "HashAggregate" | "SortAggregate" | "ObjectHashAggregate")
    {
        return None;
    }
    let text = node.text.as_str();
    let grouped = !(text.contains("(keys=[],") || text.contains("(key=[],"));
    let functions = text.split_once("functions=[").map_or("", |(_, rest)| rest);
    let phase = if functions.is_empty() || functions.starts_with(']') {
        None
    } else if functions.contains("partial_") {
        Some(Phase::Partial)
    } else if functions.starts_with("merge_") || functions.contains(", merge_") {
        Some(Phase::Merge)
    } else {
        Some(Phase::Final)
    };
    Some(Aggregate {
        grouped,
        phase,
        distinct: functions.contains("(distinct "),
        keeps_rows: GATHERING.iter().any(|name| functions.contains(name)),
    })
}

/// The text without the numbers that Spark gives to expressions and plans, so
/// that two nodes that do the same have the same text: `a#12L` -> `a#`,
/// `[plan_id=131]` -> `[plan_id=]`, `WholeStageCodegen (3)` -> as the others.
pub(super) fn without_ids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(['#', '=']) {
        let (head, tail) = rest.split_at(place + 1);
        out.push_str(head);
        let is_id =
            head.ends_with('#') || ["plan_id=", "[id="].iter().any(|key| head.ends_with(key));
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        rest = if is_id { tail.get(digits..).unwrap_or("") } else { tail };
        if is_id && digits > 0 {
            rest = rest.strip_prefix('L').unwrap_or(rest);
        }
    }
    out.push_str(rest);
    out
}

/// Spark's word for the operator: letters up to the first blank or bracket.
pub(super) fn first_word(name: &str) -> &str {
    name.split([' ', '(', '[']).next().unwrap_or(name)
}

/// What of a node's name may be shown: Spark's words, without tables, paths
/// and names that users gave. `Scan parquet`, `SortMergeJoin`,
/// `Execute InsertIntoHadoopFsRelationCommand`.
pub(super) fn safe_name(node: &PlanNode) -> String {
    const FORMATS: [&str; 12] = [
        "parquet",
        "orc",
        "csv",
        "json",
        "text",
        "avro",
        "xml",
        "hive",
        "binaryFile",
        "delta",
        "ExistingRDD",
        "OneRowRelation",
    ];
    let word = first_word(&node.name);
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return "Node".to_owned();
    }
    let second = node.name.split_whitespace().nth(1).unwrap_or_default();
    let mut name = word.to_owned();
    let shown = match word {
        "Execute" => second.chars().all(|c| c.is_ascii_alphanumeric()) && !second.is_empty(),
        "Scan" | "BatchScan" => FORMATS.contains(&second),
        _ => false,
    };
    if shown {
        let _ = write!(name, " {second}");
    }
    name
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
    fn joins_of_every_sort() {
        for (text, algorithm, join_type, build, keys) in [
            (
                "SortMergeJoin [customer#19L], [customer#26L], Inner",
                Algorithm::SortMerge,
                Some(JoinType::Inner),
                None,
                Some(1),
            ),
            (
                "SortMergeJoin(skew=true) [coalesce(a#1, ), isnull(a#1)], [b#2, c#3], LeftOuter, (x#1 > y#2)",
                Algorithm::SortMerge,
                Some(JoinType::LeftOuter),
                None,
                Some(2),
            ),
            (
                "BroadcastHashJoin [account#20L], [account#15L], Inner, BuildRight, false",
                Algorithm::BroadcastHash,
                Some(JoinType::Inner),
                Some(Side::Right),
                Some(1),
            ),
            (
                "ShuffledHashJoin [a#1], [b#2], LeftAnti, BuildRight",
                Algorithm::ShuffledHash,
                Some(JoinType::LeftAnti),
                Some(Side::Right),
                Some(1),
            ),
            (
                "BroadcastNestedLoopJoin BuildLeft, RightOuter, ((at#1L >= begins#2L) AND true)",
                Algorithm::NestedLoop,
                Some(JoinType::RightOuter),
                Some(Side::Left),
                Some(0),
            ),
            (
                "BroadcastNestedLoopJoin BuildRight, ExistenceJoin(exists#7), (a#1 < b#2)",
                Algorithm::NestedLoop,
                Some(JoinType::Existence),
                Some(Side::Right),
                Some(0),
            ),
            (
                "CartesianProduct (a#1 < b#2)",
                Algorithm::Cartesian,
                Some(JoinType::Cross),
                None,
                Some(0),
            ),
            // Its keys are longer than what is kept.
            (
                "SortMergeJoin [concat(a#1, b… more), c#3], FullOuter",
                Algorithm::SortMerge,
                Some(JoinType::FullOuter),
                None,
                None,
            ),
        ] {
            let name = first_word(text);
            let skew = if text.contains("skew=true") { "(skew=true)" } else { "" };
            let found = join(&node(&format!("{name}{skew}"), text)).expect(text);
            assert_eq!(found.algorithm, algorithm, "{text}");
            assert_eq!(found.join_type, join_type, "{text}");
            assert_eq!(found.build, build, "{text}");
            assert_eq!(found.keys, keys, "{text}");
            assert_eq!(found.split, !skew.is_empty(), "{text}");
        }
        assert_eq!(join(&node("Project", "Project [a#1]")), None);
    }

    #[test]
    fn an_outer_join_keeps_one_side() {
        assert!(!JoinType::LeftOuter.can_build(Side::Left));
        assert!(JoinType::LeftOuter.can_build(Side::Right));
        assert!(!JoinType::FullOuter.can_build(Side::Right));
        assert!(JoinType::Inner.can_build(Side::Left));
    }

    #[test]
    fn exchanges_of_every_sort() {
        for (text, distribution, partitions, required) in [
            (
                "Exchange hashpartitioning(customer#19L, 16), ENSURE_REQUIREMENTS, [plan_id=143]",
                Distribution::Hash,
                Some(16),
                true,
            ),
            (
                "Exchange rangepartitioning(a#1 ASC NULLS FIRST, 200), ENSURE_REQUIREMENTS, [id=#4]",
                Distribution::Range,
                Some(200),
                true,
            ),
            (
                "Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=9]",
                Distribution::Single,
                Some(1),
                true,
            ),
            (
                "Exchange RoundRobinPartitioning(4), REPARTITION_BY_NUM, [plan_id=9]",
                Distribution::RoundRobin,
                Some(4),
                false,
            ),
        ] {
            let node = node("Exchange", text);
            assert_eq!(exchange(&node), Some(Exchange { distribution, partitions, required }));
            assert!(plan_id(&node).is_some(), "{text}");
        }
        assert_eq!(exchange(&node("BroadcastExchange", "BroadcastExchange HashedRelation")), None);
    }

    #[test]
    fn phases_of_aggregates() {
        for (text, phase, distinct, grouped, keeps) in [
            (
                "HashAggregate(keys=[a#1], functions=[partial_sum(b#2)])",
                Some(Phase::Partial),
                false,
                true,
                false,
            ),
            (
                "HashAggregate(keys=[a#1], functions=[sum(b#2)])",
                Some(Phase::Final),
                false,
                true,
                false,
            ),
            (
                "SortAggregate(key=[], functions=[max(note#20)])",
                Some(Phase::Final),
                false,
                false,
                false,
            ),
            (
                "HashAggregate(keys=[a#1], functions=[merge_sum(b#2), partial_count(distinct c#3)])",
                Some(Phase::Partial),
                true,
                true,
                false,
            ),
            ("HashAggregate(keys=[a#1, c#3], functions=[])", None, false, true, false),
            (
                "ObjectHashAggregate(keys=[a#1], functions=[collect_list(b#2, 0, 0)])",
                Some(Phase::Final),
                false,
                true,
                true,
            ),
        ] {
            let found = aggregate(&node(first_word(text), text)).expect(text);
            let expected = Aggregate { grouped, phase, distinct, keeps_rows: keeps };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn texts_without_the_numbers_of_expressions() {
        assert_eq!(
            without_ids("Project [id#0L, (id#12 % 40) AS account#2L], [plan_id=131], x = 7"),
            "Project [id#, (id# % 40) AS account#], [plan_id=], x = 7"
        );
        assert_eq!(without_ids("#"), "#");
    }

    #[test]
    fn names_of_tables_are_not_shown() {
        for (name, shown) in [
            ("Scan parquet spark_catalog.default.salaries", "Scan parquet"),
            ("BatchScan lake.finance.salaries", "BatchScan"),
            ("Scan In-memory table salaries", "Scan"),
            ("Scan JDBCRelation(salaries) [numPartitions=1]", "Scan"),
            ("WholeStageCodegen (3)", "WholeStageCodegen"),
            ("SortMergeJoin(skew=true)", "SortMergeJoin"),
            (
                "Execute InsertIntoHadoopFsRelationCommand",
                "Execute InsertIntoHadoopFsRelationCommand",
            ),
            ("Subquery scalar-subquery#12", "Subquery"),
            ("FAKE-name of mine", "Node"),
            ("", "Node"),
        ] {
            assert_eq!(safe_name(&node(name, "")), shown);
        }
    }
}
