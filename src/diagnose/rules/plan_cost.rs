//! What rules about plans share: which times a node tells of, what a row
//! costs beside a comparison, and what heaps there are. The saving itself is
//! that of stages that have less to do (`less_work`), always an estimate:
//! Spark times tasks and a few nodes, not rows.

use std::time::Duration;

use super::context::{Context, StageView};
use super::steps::Spans;
use super::{ExecutionView, NodeRef};
use crate::model::MetricKind;

/// Work that comes with one row of a join (read, joined, handed on), in
/// comparisons of two rows: about a microsecond against some nanoseconds in
/// generated code, as measured on the recorded runs `join_explosion` and
/// `cartesian`.
pub(super) const COMPARISONS_A_ROW: f64 = 100.0;

/// The share of a stage's run time that a measured time is.
pub(super) fn share_of_run_time(context: &Context<'_>, index: usize, part: Duration) -> f64 {
    context
        .stages
        .get(index)
        .and_then(StageView::run_time_sum)
        .and_then(|run_time| super::context::ratio(part, run_time))
        .unwrap_or(0.0)
}

/// A time that the node's tasks (or the driver) told of.
pub(super) fn time(node: NodeRef<'_>, name: &str) -> Option<Duration> {
    let metric = node.node.metric(name)?;
    let value = metric.value.as_deref()?;
    (metric.kind == MetricKind::Nanoseconds).then(|| Duration::from_nanos(value.total))
}

/// Time from the end of stages `before` to the first launch of `after` in
/// which no stage of the run had a task.
pub(super) fn gap(context: &Context<'_>, before: &[usize], after: &[usize]) -> Duration {
    let span = |index: &usize| context.stages.get(*index)?.span;
    let from = before.iter().filter_map(span).map(|(_, to)| to).max();
    let to = after.iter().filter_map(span).map(|(from, _)| from).min();
    let (Some(from), Some(to)) = (from, to) else { return Duration::ZERO };
    if to <= from {
        return Duration::ZERO;
    }
    let busy = Spans::union(context.stages.iter().filter_map(|view| view.span).collect());
    let gap = Spans::union(vec![(from, to)]);
    let working = gap.intersect(&busy).millis();
    Duration::from_millis(gap.millis().saturating_sub(working))
}

/// Heap of an executor that ran these stages, in bytes.
pub(super) fn executor_heap(context: &Context<'_>, view: &ExecutionView<'_>) -> u64 {
    let configuration = &context.application.configuration;
    let profile = view
        .stages
        .first()
        .and_then(|index| context.stages.get(*index))
        .map_or(0, |stage| stage.stage.resource_profile_id);
    configuration
        .resource_profiles
        .iter()
        .find(|known| known.id == profile)
        .and_then(|known| known.executor_memory_bytes)
        .or_else(|| configuration.bytes("spark.executor.memory", 1 << 20))
        .unwrap_or(1 << 30)
}

/// Heap of the driver, in bytes: Spark's default is 1 GiB.
pub(super) fn driver_heap(context: &Context<'_>) -> u64 {
    context.application.configuration.bytes("spark.driver.memory", 1 << 20).unwrap_or(1 << 30)
}
