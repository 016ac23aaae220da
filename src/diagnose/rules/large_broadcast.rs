//! `large_broadcast`: a table that was sent to every executor fills a good
//! part of its heap, or of the driver's, which builds it.

use std::time::Duration;

use super::context::Context;
use super::draft::{Draft, Weight};
use super::humane;
use super::plan_cost::{self, time};
use super::plan_text;
use super::{
    About, Confidence, ExecutionView, FindingKind, Impact, NodeRef, Rule, Severity, Unit, Where,
};

pub(super) const ABOUT: About = About {
    rule: Rule::LargeBroadcast,
    meaning: "A table that was sent to every executor fills a good part of its heap, or of the \
              driver's, which collects and builds it first.",
    details: "*Fires* at a `BroadcastExchange` whose `data size` is

    >= 256 MiB (`bytes`), and >= 10 % (`heap_ratio`) of the heap of an executor
    or of the driver, whichever is smaller

`warning` from 1 GiB (`warning_bytes`) or 50 % of that heap (`warning_ratio`),
else `info`; more where it costs more. The driver holds the collected rows and the
built table at once: some two to three times the size.

*Sources*: DataFlint's large broadcast (1 GiB); 256 MiB from Spark performance
guides that warn earlier. Spark's own limit is 8 GiB.

*Costs*: the time between the stage that produced the rows and the join, in which
nothing of the run had a task, up to the node's own times of collecting, building
and sending.

*Silent* for the same size on heaps of which it is little.
",
    evidence: &[
        ("broadcast_bytes", "size of the built table"),
        ("broadcast_rows", "its rows"),
        ("heap_share", "its size over the smaller of both heaps"),
        ("executor_heap", "heap of an executor"),
        ("driver_heap", "heap of the driver"),
        ("collect_time", "time until the driver had all rows; the stage that made them included"),
        ("build_time", "time of building the table"),
        ("broadcast_time", "time of handing it out"),
    ],
    fires: &["large_broadcast"],
    near_misses: &["large_broadcast-small"],
    resists: &[("large_broadcast-roomy", "more than 256 MiB, on heaps of which that is little")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.large_broadcast.enabled {
        return;
    }
    for view in &context.executions {
        drafts.extend(view.nodes().filter_map(|node| judge(context, view, node)));
    }
}

/// The join that a broadcast feeds, through wrappers and nodes that keep rows.
fn join_above(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let mut above = node.parent();
    while let Some(parent) = above {
        if plan_text::join(parent.node).is_some() {
            return Some(parent);
        }
        if parent.is_exchange() {
            return None;
        }
        above = parent.parent();
    }
    None
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>, node: NodeRef<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.large_broadcast;
    if plan_text::first_word(&node.node.name) != "BroadcastExchange" {
        return None;
    }
    let bytes = node.node.value("data size")?.total;
    let executor = plan_cost::executor_heap(context, view);
    let driver = plan_cost::driver_heap(context);
    // In local mode the driver's heap is the only one.
    let heap = if context.application.local_mode() { driver } else { executor.min(driver) };
    let share = bytes as f64 / heap.max(1) as f64;
    if bytes < thresholds.bytes.bytes() || share < thresholds.heap_ratio {
        return None;
    }
    let [collect, build, send] = ["time to collect", "time to build", "time to broadcast"]
        .map(|name| time(node, name).unwrap_or_default());
    let join = join_above(node);
    let produced = view.stages_of(node);
    let joining = join.map_or_else(Vec::new, |join| view.stages_of(join));
    let gap = plan_cost::gap(context, &produced, &joining);
    let most = collect.saturating_add(build).saturating_add(send);
    let wall = gap.min(most);
    let impact = Impact { wall: Some(wall), core: Some(Duration::ZERO), estimated: true };
    let loud = bytes >= thresholds.warning_bytes.bytes() || share >= thresholds.warning_ratio;
    let from = node.from();
    let whose = if heap == driver { "the driver's" } else { "an executor's" };
    let headline = format!(
        "{}: {} were broadcast, {} of {whose} heap; collecting, building and sending took {}",
        node.name(),
        humane::bytes(bytes),
        humane::percent(share),
        humane::duration(most),
    );
    let mut draft =
        Draft::new(Rule::LargeBroadcast, FindingKind::Configuration, node.subject(), headline)
            .weight(Weight::AtLeast(if loud { Severity::Warning } else { Severity::Info }))
            .confidence(Confidence::High)
            .evidence(
                "broadcast_bytes",
                bytes as f64,
                Unit::Bytes,
                thresholds.bytes.bytes() as f64,
                &from,
            );
    if let Some(rows) = node.rows() {
        draft = draft.evidence("broadcast_rows", rows as f64, Unit::Count, None, &from);
    }
    draft = draft
        .evidence("heap_share", share, Unit::Ratio, thresholds.heap_ratio, &from)
        .evidence("executor_heap", executor as f64, Unit::Bytes, None, "spark.executor.memory")
        .evidence("driver_heap", driver as f64, Unit::Bytes, None, "spark.driver.memory")
        .evidence("collect_time", collect.as_secs_f64(), Unit::Seconds, None, &from)
        .evidence("build_time", build.as_secs_f64(), Unit::Seconds, None, &from)
        .evidence("broadcast_time", send.as_secs_f64(), Unit::Seconds, None, &from)
        .impact(impact, Vec::new())
        .advice_unless(
            "Take fewer columns and rows into the broadcast side: select and filter it before the \
             join",
            Where::Sql,
            "all of it is needed",
        )
        .advice_unless(
            "Let the join shuffle instead: remove the broadcast hint, or lower \
             spark.sql.autoBroadcastJoinThreshold below its size",
            Where::Sql,
            "the other side is many times larger: shuffling that costs more than this broadcast",
        );
    Some(draft.advice_unless(
        "Give driver and executors heap of at least five times the broadcast",
        Where::Resources,
        "it grows with the data: then only a shuffle helps in the end",
    ))
}
