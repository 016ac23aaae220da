//! One node of an `EXPLAIN` as the event log would write it: Spark's name for
//! it, its arguments in one line, the metadata of a scan.

use crate::model::{Names, Plan, PlanNode, SqlText, shorten};

/// Characters kept of a node's text and of a metadata value, as of an event
/// log's.
const TEXT_LENGTH: usize = 1_000;
const VALUE_LENGTH: usize = 300;

/// Lines kept of one node's details.
const LINES: usize = 100;

/// What stands below the tree of one node: `Key [2]: value` in each line.
#[derive(Debug, Default)]
pub(super) struct Details {
    lines: Vec<(String, String)>,
}

impl Details {
    pub(super) fn add(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':').filter(|_| self.lines.len() < LINES) else {
            return;
        };
        // `Left keys [1]`: how many follow.
        let key = key.split_once(" [").map_or(key, |(key, _)| key).trim();
        let value = shorten(value.trim(), TEXT_LENGTH);
        self.lines.push((key.to_owned(), value));
    }

    fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.lines.iter().find(|(known, _)| known == key)?;
        Some(value)
    }
}

/// The node of a line of a tree.
pub(super) fn node(
    line: &str,
    number: Option<u32>,
    details: Option<&Details>,
    parent: Option<u32>,
    names: &mut Names,
) -> PlanNode {
    let line = strip_codegen(line);
    let (name, text, metadata) = match number {
        Some(number) => {
            let name = formatted_name(line, number);
            let text = details.map_or_else(|| name.clone(), |details| text(&name, line, details));
            let metadata = details.map_or_else(Vec::new, |details| metadata(&name, details));
            (name, text, metadata)
        }
        None => (simple_name(line), line.to_owned(), metadata_of_line(line)),
    };
    PlanNode {
        name: names.get(&name),
        text: SqlText::from(shorten(&text, TEXT_LENGTH)),
        parent,
        end: 0,
        metadata: metadata
            .into_iter()
            .map(|(key, value)| (names.get(key), shorten(&value, VALUE_LENGTH).into()))
            .collect(),
        metrics: Vec::new(),
        stages: Vec::new(),
    }
}

/// Without the star of generated code: `* Filter (2)`, `*(1) Filter ...`.
fn strip_codegen(line: &str) -> &str {
    let Some(rest) = line.strip_prefix('*') else { return line };
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((id, after)) if id.bytes().all(|byte| byte.is_ascii_digit()) => after,
        _ => rest,
    };
    rest.trim_start()
}

/// `BroadcastHashJoin` of `BroadcastHashJoin Inner BuildRight (7)`: what tells
/// how is among its details.
fn formatted_name(line: &str, number: u32) -> String {
    let end = format!(" ({number})");
    let name = line.split_once(&end).map_or(line, |(name, _)| name).trim();
    match name.split_whitespace().next() {
        Some(first) if first.ends_with("Join") || first == "CartesianProduct" => first.to_owned(),
        _ => name.to_owned(),
    }
}

/// The name in a line with all of a node: `FileScan parquet [id#0L] Batched:
/// ...` is a `Scan parquet`.
fn simple_name(line: &str) -> String {
    let mut words = line.split([' ', '(']);
    let first = words.next().unwrap_or_default();
    if first == "FileScan" {
        return format!("Scan {}", words.next().unwrap_or_default());
    }
    first.to_owned()
}

/// In the shape of the one line that event logs have.
fn text(name: &str, line: &str, details: &Details) -> String {
    let get = |key| details.get(key).unwrap_or_default();
    let first = name.split_whitespace().next().unwrap_or_default();
    if let Some(kind) = details.get("Join type") {
        // The build side stands in the tree's line only.
        let side = ["BuildLeft", "BuildRight"].into_iter().find(|side| line.contains(side));
        let condition = details.get("Join condition").filter(|text| *text != "None");
        let parts = match first {
            "BroadcastNestedLoopJoin" => [side, Some(kind), condition, None, None],
            _ => [details.get("Left keys"), details.get("Right keys"), Some(kind), side, condition],
        };
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        return format!("{first} {}", parts.join(", "));
    }
    if first.ends_with("Aggregate") {
        return format!("{first}(keys={}, functions={})", get("Keys"), get("Functions"));
    }
    if let Some(condition) = details.get("Condition") {
        return format!("{name} {condition}");
    }
    if let Some(arguments) = details.get("Arguments") {
        return format!("{name} {arguments}");
    }
    if name.starts_with("Scan ") {
        let mut text = format!("File{name} {}", get("Output"));
        for (key, value) in metadata(name, details) {
            text.push_str(", ");
            text.push_str(key);
            text.push_str(": ");
            text.push_str(&value);
        }
        return text;
    }
    match details.get("Output") {
        Some(output) => format!("{name} {output}"),
        None => name.to_owned(),
    }
}

fn metadata(name: &str, details: &Details) -> Vec<(&'static str, String)> {
    if !name.starts_with("Scan ") {
        return Vec::new();
    }
    let mut found: Vec<(&'static str, String)> = Plan::METADATA_KEYS
        .iter()
        .filter_map(|key| Some((*key, details.get(key)?.to_owned())))
        .collect();
    // Of a scan of files, empty lists are left out here.
    if found.iter().any(|(key, _)| *key == "Location") {
        for key in ["PartitionFilters", "PushedFilters"] {
            if !found.iter().any(|(known, _)| *known == key) {
                found.push((key, "[]".to_owned()));
            }
        }
    }
    found
}

/// `FileScan parquet [...] Batched: true, Location: ..., PartitionFilters: []`.
fn metadata_of_line(line: &str) -> Vec<(&'static str, String)> {
    if !line.starts_with("FileScan ") {
        return Vec::new();
    }
    let value = |key: &str| Plan::metadata_in(line, key).map(str::to_owned);
    Plan::METADATA_KEYS.iter().filter_map(|key| Some((*key, value(key)?))).collect()
}
