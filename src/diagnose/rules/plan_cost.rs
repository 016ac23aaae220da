//! What rules about plans share: how the cost of a node becomes a saving, and
//! what heaps there are.
//!
//! Spark times tasks and a few nodes, not rows: where a node's share of its
//! stage is inferred from rows, the saving says that it is estimated.

use std::time::Duration;

use super::context::{Context, StageView, seconds};
use super::steps::Spans;
use super::task_list::TaskList;
use super::{ExecutionView, Impact, NodeRef};
use crate::model::MetricKind;

/// Work that comes with one row of a join (read, joined, handed on), in
/// comparisons of two rows: about a microsecond against some nanoseconds in
/// generated code, as measured on the recorded runs `join_explosion` and
/// `cartesian`.
pub(super) const COMPARISONS_A_ROW: f64 = 100.0;

/// A saving and the stages in which it lies.
#[derive(Debug, Clone, Default)]
pub(super) struct Price {
    pub(super) impact: Impact,
    pub(super) shares: Vec<(usize, Duration)>,
}

/// What is saved where the tasks of each stage ran for `share` less of their
/// run time. An inference, so `estimated`.
pub(super) fn of_shares(
    context: &Context<'_>,
    stages: impl IntoIterator<Item = (usize, f64)>,
) -> Price {
    let mut price = Price::default();
    let (mut wall, mut core) = (Duration::ZERO, Duration::ZERO);
    for (index, share) in stages {
        let Some(view) = context.stages.get(index) else { continue };
        let Some(saved) = of_stage(view, share) else { continue };
        wall = wall.saturating_add(saved.0);
        core = core.saturating_add(saved.1);
        price.shares.push((index, saved.0));
    }
    price.impact = Impact { wall: Some(wall), core: Some(core), estimated: true };
    price
}

/// Wall time and core-time.
fn of_stage(view: &StageView<'_>, share: f64) -> Option<(Duration, Duration)> {
    let share = share.clamp(0.0, 1.0);
    let tasks = TaskList::of(view)?;
    let saving = tasks
        .saving(view, |attempt| attempt.held.saturating_sub((attempt.run as f64 * share) as u64))?;
    let core = seconds(saving.removed.as_secs_f64() * view.cpus);
    Some((saving.wall.min(view.alone), core))
}

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
