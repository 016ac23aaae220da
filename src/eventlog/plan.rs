//! `sparkPlanInfo` -> [`Plan`]: a tree of nodes as JSON in, a list of them
//! out.
//!
//! A plan may be deeper than the JSON reader's own limit (128 levels, and a
//! node takes two), so below a certain depth a node is set aside as it stands
//! and read afterwards: each byte is looked at depth / 40 times at most, and
//! the stack stays small.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::event::events;
use super::field::{Number, Object, Properties, Text};
use crate::model::{MetricKind, Names, Plan, PlanMetric, PlanNode, SqlText, shorten};

/// Levels of nodes that are read in one go.
const DEPTH: usize = 40;

/// Characters kept of a node's text. Its first three quarters and its last
/// quarter: keys are at the beginning, join types and the evaluation type of
/// Python at the end. Spark cuts lists of fields to 25 of them, so that most
/// nodes are shorter than this.
const TEXT_LENGTH: usize = 1_000;

/// Characters kept of a metadata value, likewise; Spark cuts most of them to
/// `spark.sql.maxMetadataStringLength` (100).
const VALUE_LENGTH: usize = 300;

/// Metrics kept of one node: no operator of Spark's has so many.
const MOST_METRICS: usize = 200;

/// A plan, and the accumulators of its metrics with what one of Spark's units
/// is in the model's.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) plan: Plan,
    pub(super) accumulators: Vec<(u64, u64)>,
}

/// Reads a plan of at most `most` nodes.
pub(super) fn parse(
    json: &RawValue,
    most: usize,
    names: &mut Names,
) -> Result<Parsed, serde_json::Error> {
    let mut reading = Reading {
        plan: Plan::default(),
        accumulators: Vec::new(),
        names,
        most,
        aside: vec![(None, json)],
        depth: 0,
    };
    let mut next = 0;
    while let Some((parent, json)) = reading.aside.get(next).copied() {
        next += 1;
        let mut deserializer = serde_json::Deserializer::from_str(json.get());
        Node { reading: &mut reading, parent }.deserialize(&mut deserializer)?;
    }
    let Reading { plan, accumulators, .. } = reading;
    Ok(Parsed { plan: in_order(plan), accumulators })
}

/// Puts nodes that were read afterwards where they belong, and fills in where
/// each one's subtree ends.
fn in_order(plan: Plan) -> Plan {
    let Plan { nodes, nodes_omitted } = plan;
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut pending = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent as usize].push(place as u32),
            None => pending.push((place as u32, None)),
        }
    }
    pending.reverse();
    let mut old: Vec<Option<PlanNode>> = nodes.into_iter().map(Some).collect();
    let mut nodes: Vec<PlanNode> = Vec::with_capacity(old.len());
    while let Some((place, parent)) = pending.pop() {
        let Some(mut node) = old.get_mut(place as usize).and_then(Option::take) else { continue };
        let new = nodes.len() as u32;
        node.parent = parent;
        nodes.push(node);
        pending.extend(children[place as usize].iter().rev().map(|child| (*child, Some(new))));
    }
    Plan { nodes, nodes_omitted }.with_ends()
}

/// A plan while it is read.
struct Reading<'n, 'a> {
    plan: Plan,
    accumulators: Vec<(u64, u64)>,
    names: &'n mut Names,
    most: usize,
    /// Nodes to be read afterwards, with their parents' places.
    aside: Vec<(Option<u32>, &'a RawValue)>,
    depth: usize,
}

/// Reads one node and those below it.
struct Node<'r, 'n, 'a> {
    reading: &'r mut Reading<'n, 'a>,
    parent: Option<u32>,
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

events! {
    struct MetricInfo<'a> {
        "name" => name: Text<'a>,
        "accumulatorId" => accumulator: Number,
        "metricType" => kind: Text<'a>,
    }
}

impl MetricInfo<'_> {
    pub(super) fn kind(&self) -> (MetricKind, u64) {
        MetricKind::of(self.kind.get().unwrap_or_default())
    }
}

/// Whatever stands where a node should is none.
macro_rules! no_node {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E>(self, _: $type) -> Result<(), E> {
            Ok(())
        })+
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
    };
}

impl<'de> Visitor<'de> for Node<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node of a plan")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { reading, parent } = self;
        if reading.plan.nodes.len() >= reading.most {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            reading.plan.nodes_omitted += 1;
            return Ok(());
        }
        let place = reading.plan.nodes.len();
        reading.plan.nodes.push(PlanNode {
            name: reading.names.get(""),
            text: SqlText::default(),
            parent,
            end: 0,
            metadata: Vec::new(),
            metrics: Vec::new(),
            stages: Vec::new(),
        });
        while let Some(key) = entries.next_key::<Text<'de>>()? {
            match key.get().unwrap_or_default() {
                "nodeName" => {
                    let name: Text<'de> = entries.next_value()?;
                    let name = reading.names.get(name.get().unwrap_or_default());
                    reading.plan.nodes[place].name = name;
                }
                "simpleString" => {
                    let text: Text<'de> = entries.next_value()?;
                    let text = shorten(text.get().unwrap_or_default(), TEXT_LENGTH);
                    reading.plan.nodes[place].text = text.into();
                }
                "children" => {
                    entries.next_value_seed(Children { reading, parent: place as u32 })?;
                }
                "metadata" => {
                    let Properties(metadata) = entries.next_value()?;
                    reading.plan.nodes[place].metadata = metadata
                        .into_iter()
                        .filter(|(key, _)| Plan::METADATA_KEYS.contains(&key.as_str()))
                        .map(|(key, value)| {
                            (reading.names.get(&key), shorten(&value, VALUE_LENGTH).into())
                        })
                        .collect();
                }
                "metrics" => {
                    let metrics: Vec<Object<MetricInfo<'de>>> = entries.next_value()?;
                    reading.plan.nodes[place].metrics = metrics
                        .iter()
                        .take(MOST_METRICS)
                        .filter_map(|Object(metric)| {
                            let accumulator = metric.accumulator.count()?;
                            let name = reading.names.get(metric.name.get()?);
                            let (kind, unit) = metric.kind();
                            reading.accumulators.push((accumulator, unit));
                            Some(PlanMetric { name, kind, accumulator, value: None })
                        })
                        .collect();
                }
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    no_node!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
}

/// Reads the nodes below one.
struct Children<'r, 'n, 'a> {
    reading: &'r mut Reading<'n, 'a>,
    parent: u32,
}

impl<'de> DeserializeSeed<'de> for Children<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Children<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the children of a node")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { reading, parent } = self;
        let parent = Some(parent);
        if reading.depth < DEPTH {
            reading.depth += 1;
            while items.next_element_seed(Node { reading: &mut *reading, parent })?.is_some() {}
            reading.depth -= 1;
            return Ok(());
        }
        while let Some(child) = items.next_element::<&'de RawValue>()? {
            reading.aside.push((parent, child));
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    no_node!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, most: usize) -> Plan {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        parse(raw, most, &mut Names::default()).expect("a plan").plan
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.nodes.iter().map(|node| &*node.name).collect()
    }

    #[test]
    fn a_tree_becomes_a_list() {
        let plan = read(
            r#"{"nodeName":"Join","simpleString":"Join [a], Inner","children":[
                {"nodeName":"Scan parquet t","simpleString":"s","children":[],"metadata":
                    {"Location":"l","Other":"x","PartitionFilters":"[]"},"metrics":
                    [{"name":"number of files read","accumulatorId":7,"metricType":"sum"},{"name":"x"},3]},
                {"nodeName":"Range","simpleString":"r","children":null}],
                "metadata":{},"metrics":[{"name":"time","accumulatorId":8,"metricType":"nsTiming"}]}"#,
            100,
        );
        assert_eq!(names(&plan), ["Join", "Scan parquet t", "Range"]);
        assert_eq!(plan.children(0).map(|(place, _)| place).collect::<Vec<_>>(), [1, 2]);
        let scan = &plan.nodes[1];
        assert_eq!(scan.metadata("PartitionFilters"), Some("[]"));
        assert_eq!(scan.metadata("Other"), None);
        assert_eq!(scan.metrics.len(), 1);
        assert_eq!(scan.metric("number of files read").map(|metric| metric.accumulator), Some(7));
        assert_eq!(plan.nodes[0].metrics[0].kind, MetricKind::Nanoseconds);
    }

    /// `depth` nodes, one below the other, each with a leaf beside it.
    fn deep(depth: usize) -> String {
        let level =
            |level| format!(r#"{{"nodeName":"n{level}","children":[{{"nodeName":"leaf{level}"}},"#);
        let levels: Vec<String> = (0..depth).map(level).collect();
        format!(r#"{}{{"nodeName":"last"}}{}"#, levels.concat(), "]}".repeat(depth))
    }

    #[test]
    fn a_plan_of_any_depth() {
        let plan = read(&deep(700), 10_000);
        assert_eq!(plan.nodes.len(), 1_401);
        assert_eq!(&*plan.nodes[1_400].name, "last");
        for (place, node) in plan.nodes.iter().enumerate() {
            if let Some(level) = node.name.strip_prefix('n') {
                let level: usize = level.parse().expect("a number");
                assert_eq!(place, level * 2);
                assert_eq!(node.end, 1_401);
                let below: Vec<&str> =
                    plan.children(place).map(|(_, child)| &*child.name).collect();
                assert_eq!(below[0], format!("leaf{level}"));
                assert_eq!(below.len(), 2);
            }
        }
    }

    #[test]
    fn nodes_and_texts_have_their_limits() {
        let plan = read(&deep(30), 11);
        assert_eq!(plan.nodes.len(), 11);
        assert!(plan.nodes_omitted > 0);
        let text = format!("{}, 200]", "é".repeat(3_000));
        let plan = read(&format!(r#"{{"nodeName":"ArrowEvalPython","simpleString":"{text}"}}"#), 9);
        assert_eq!(plan.nodes[0].text.as_str().chars().count(), TEXT_LENGTH);
        assert_eq!(plan.nodes[0].last_argument(), Some("200"));
    }

    #[test]
    fn what_is_no_plan_is_an_empty_one() {
        for odd in ["null", "3", "\"x\"", "[]", "[{\"nodeName\":\"a\"}]"] {
            assert!(read(odd, 10).nodes.is_empty(), "{odd}");
        }
        assert_eq!(read("{}", 10).nodes.len(), 1);
    }
}
