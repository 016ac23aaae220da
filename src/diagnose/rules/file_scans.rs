//! Scans of files, by table: what `small_files_read` and `full_scan` judge.
//!
//! A table is told from others by its scan's location, which is text of users:
//! it is compared and never said. Of a scan's name only the format is.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::Context;
use super::executions::{ExecutionView, NodeRef};
use crate::model::MetricKind;

/// One scan of files.
#[derive(Debug, Clone)]
pub(super) struct FileScan<'a> {
    pub(super) node: NodeRef<'a>,
    /// Its place in `Context::executions`.
    pub(super) execution: usize,
    /// Files that it was planned to read, and their size.
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Directories of a partitioned table that it was planned to read; `None`
    /// where the table has no partitions.
    pub(super) partitions: Option<u64>,
    /// What tasks measured of columnar scans; `None` where nothing is
    /// measured (text, JSON, CSV).
    pub(super) scan_time: Option<Duration>,
    /// On the driver: listing files.
    pub(super) listing_time: Option<Duration>,
    /// The stages that read, by their place in `Context::stages`; none where
    /// a cache had the rows already.
    pub(super) stages: Vec<usize>,
}

impl FileScan<'_> {
    /// Bytes that its tasks read, as far as it can be told: a query with a
    /// limit reads less than it planned to, and one of few columns too.
    pub(super) fn bytes_read(&self, context: &Context<'_>) -> u64 {
        let of_stages = self
            .stages
            .iter()
            .filter_map(|place| context.stages.get(*place)?.stage.measures.input_bytes.sum)
            .fold(0, u64::saturating_add);
        self.bytes.min(of_stages)
    }
}

/// The scans of each table, those of one execution beside each other.
pub(super) fn by_table<'a>(context: &Context<'a>) -> Vec<Vec<FileScan<'a>>> {
    let mut tables: BTreeMap<&str, Vec<FileScan<'a>>> = BTreeMap::new();
    for (place, execution) in context.executions.iter().enumerate() {
        for node in execution.nodes() {
            if let Some(scan) = scan(execution, place, node) {
                let location = node.node.metadata("Location").unwrap_or_default();
                tables.entry(location).or_default().push(scan);
            }
        }
    }
    tables.into_values().collect()
}

fn scan<'a>(
    execution: &ExecutionView<'a>,
    place: usize,
    node: NodeRef<'a>,
) -> Option<FileScan<'a>> {
    let told = |name: &str| Some(node.node.value(name)?.total);
    let time = |name: &str| {
        let metric = node.node.metric(name)?;
        let told = metric.value.as_deref()?;
        (metric.kind == MetricKind::Nanoseconds).then(|| Duration::from_nanos(told.total))
    };
    let files = told("number of files read").filter(|files| *files > 0)?;
    // Told by tasks; what the driver tells is told before any of them runs.
    if node.node.stages.is_empty() {
        return None;
    }
    Some(FileScan {
        node,
        execution: place,
        files,
        bytes: told("size of files read")?,
        partitions: node
            .node
            .metric("number of partitions read")
            .map(|metric| metric.value.as_deref().map_or(0, |value| value.total)),
        scan_time: time("scan time"),
        listing_time: time("metadata time"),
        stages: execution.stages_of(node),
    })
}

/// A size in Spark's notation (`4m`, `128MB`, `4194304`): of the execution's
/// own settings, else of the application's.
pub(super) fn size_setting(context: &Context<'_>, execution: usize, key: &str) -> Option<u64> {
    let of_session =
        context.executions.get(execution).and_then(|view| view.execution.configuration.get(key));
    let text = of_session.or_else(|| context.application.configuration.get(key))?;
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}
