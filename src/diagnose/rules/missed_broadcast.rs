//! `missed_broadcast`: a large table was shuffled and sorted to meet a small
//! one, which could have been sent to it.
//!
//! Sizes are those of the rows that were really shuffled (`data size` of the
//! exchanges), which is what adaptive execution compares as well; estimates
//! before the run are often wrong.

use std::time::Duration;

use super::context::Context;
use super::draft::Draft;
use super::humane;
use super::less_work;
use super::plan_cost::{self, time};
use super::plan_text::{self, Side};
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::MissedBroadcast,
    meaning: "A large table was shuffled and sorted to meet a small one, which could have been \
              sent to it instead.",
    details: "*Fires* at a sort-merge or shuffled hash join with an exchange on both sides, where
the smaller side can be broadcast in a join of this type, and its rows take

    less than spark.sql.autoBroadcastJoinThreshold
    or less than 100 MiB (`bytes`) and at most a 20th of the other side (`ratio`)

Sizes are of the shuffled rows in memory, as adaptive execution sees them
(`spark.sql.adaptive.autoBroadcastJoinThreshold` counts where it is set).

*Source*: DataFlint's and SparkForensics' tiers begin at 10 MiB, and at 100 MiB
beside 10 GiB; the cost decides here.

*Costs*: 100 MB of the larger side's rows a second and core, half of it in the
stages that write the shuffle and half in those that read and sort it, and the wait
for it. Spark times a tenth of that work only (writing, and sorting in memory), so
the rate is one that was measured, on the recorded runs of the same join with and
without its shuffle.

*Silent* where the smaller side is the one that an outer join keeps, in a full
outer join, where adaptive execution has turned the join into a broadcast by
itself, and where a side was not shuffled (a bucketed table). Hints are not in the
plan: a join that a hint forbids to broadcast looks like any other.
",
    evidence: &[
        ("smaller_bytes", "size in memory of the smaller side's rows"),
        ("larger_bytes", "size in memory of the larger side's rows"),
        ("sides_ratio", "the larger over the smaller"),
        ("shuffle_write_time", "time of tasks writing the larger side's shuffle"),
        ("sort_time", "time of tasks sorting both sides"),
        ("fetch_wait_time", "time of tasks waiting for the larger side's shuffle"),
    ],
    fires: &["missed_broadcast", "missed_broadcast-below_threshold"],
    near_misses: &["missed_broadcast-small"],
    resists: &[
        ("missed_broadcast-outer", "the smaller side is the one that the outer join keeps"),
        (
            "missed_broadcast-healthy",
            "planned as a shuffle, and turned into a broadcast on the way",
        ),
    ],
};

/// Spark's default of `spark.sql.autoBroadcastJoinThreshold`.
const BROADCAST_THRESHOLD: u64 = 10 << 20;

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.missed_broadcast.enabled {
        return;
    }
    for view in &context.executions {
        drafts.extend(view.nodes().filter_map(|node| judge(context, view, node)));
    }
}

/// One side of a shuffled join: the exchange it comes from.
#[derive(Clone, Copy)]
pub(super) struct Shuffled<'a> {
    side: Side,
    input: NodeRef<'a>,
    exchange: NodeRef<'a>,
    bytes: u64,
}

fn shuffled(input: NodeRef<'_>, side: Side) -> Option<Shuffled<'_>> {
    let exchange = input.feeding_exchange()?;
    let value = exchange.node.value("data size")?;
    // Written by this execution's own tasks.
    (value.total > 0).then_some(Shuffled { side, input, exchange, bytes: value.total })
}

/// Up to which size Spark broadcasts by itself; 0: switched off.
fn threshold(context: &Context<'_>, view: &ExecutionView<'_>) -> u64 {
    let configuration = &context.application.configuration;
    let adaptive = view.switch(configuration, "spark.sql.adaptive.enabled", true);
    let of = |key| view.setting(configuration, key);
    let text = of("spark.sql.adaptive.autoBroadcastJoinThreshold")
        .filter(|_| adaptive)
        .or_else(|| of("spark.sql.autoBroadcastJoinThreshold"));
    match text {
        Some(text) => crate::model::size(text, 1).unwrap_or(0),
        None => BROADCAST_THRESHOLD,
    }
}

/// Time in the `Sort` nodes between the exchange and the join.
fn sort_time(side: Shuffled<'_>) -> Duration {
    let mut node = side.input;
    let mut sum = Duration::ZERO;
    while node.place != side.exchange.place {
        sum = sum.saturating_add(time(node, "sort time").unwrap_or_default());
        match node.inputs().next() {
            Some(next) => node = next,
            None => break,
        }
    }
    sum
}

/// A join that shuffles a large side to meet a small one.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    smaller: Shuffled<'a>,
    larger: Shuffled<'a>,
    /// What the smaller side is held against.
    limit: u64,
    times: f64,
    /// Spark's own threshold is enough to say so.
    below_threshold: bool,
}

impl Candidate<'_> {
    /// `left` or `right`: the side to broadcast.
    pub(super) fn side(&self) -> &'static str {
        match self.smaller.side {
            Side::Left => "left",
            Side::Right => "right",
        }
    }

    pub(super) fn smaller_bytes(&self) -> u64 {
        self.smaller.bytes
    }
}

pub(super) fn candidate<'a>(
    context: &Context<'_>,
    view: &ExecutionView<'_>,
    node: NodeRef<'a>,
) -> Option<Candidate<'a>> {
    let thresholds = &context.thresholds.missed_broadcast;
    let join = plan_text::join(node.node).filter(|join| join.algorithm.is_shuffled())?;
    let mut inputs = node.inputs();
    let left = shuffled(inputs.next()?, Side::Left)?;
    let right = shuffled(inputs.next()?, Side::Right)?;
    let (smaller, larger) = if left.bytes <= right.bytes { (left, right) } else { (right, left) };
    let limit = threshold(context, view);
    let times = larger.bytes as f64 / smaller.bytes as f64;
    let below_threshold = smaller.bytes < limit;
    let far_smaller = smaller.bytes < thresholds.bytes.bytes() && times >= thresholds.ratio;
    let possible = join.join_type?.can_build(smaller.side) && (below_threshold || far_smaller);
    possible.then_some(Candidate { smaller, larger, limit, times, below_threshold })
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>, node: NodeRef<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.missed_broadcast;
    let candidate = candidate(context, view, node)?;
    let Candidate { smaller, larger, limit, times, below_threshold } = candidate;
    let write = time(larger.exchange, "shuffle write time").unwrap_or_default();
    let wait = time(larger.exchange, "fetch wait time").unwrap_or_default();
    let sort = sort_time(larger).saturating_add(sort_time(smaller));
    let (impact, of_stages) =
        less_work::saving(context, plan_cost::shuffle_shares(context, view, larger.exchange, node));
    let from = node.from();
    let headline = format!(
        "{} shuffles {} to meet {}, which could be broadcast",
        node.name(),
        humane::bytes(larger.bytes),
        humane::bytes(smaller.bytes),
    );
    let limits = if below_threshold { limit as f64 } else { thresholds.bytes.bytes() as f64 };
    let draft =
        Draft::new(Rule::MissedBroadcast, FindingKind::Configuration, node.subject(), headline)
            .confidence(Confidence::High)
            .evidence(
                "smaller_bytes",
                smaller.bytes as f64,
                Unit::Bytes,
                limits,
                smaller.exchange.from(),
            )
            .evidence(
                "larger_bytes",
                larger.bytes as f64,
                Unit::Bytes,
                None,
                larger.exchange.from(),
            )
            .evidence(
                "sides_ratio",
                times,
                Unit::Ratio,
                (!below_threshold).then_some(thresholds.ratio),
                &from,
            )
            .evidence(
                "shuffle_write_time",
                write.as_secs_f64(),
                Unit::Seconds,
                None,
                larger.exchange.from(),
            )
            .evidence("sort_time", sort.as_secs_f64(), Unit::Seconds, None, &from)
            .evidence(
                "fetch_wait_time",
                wait.as_secs_f64(),
                Unit::Seconds,
                None,
                larger.exchange.from(),
            )
            .impact(impact, of_stages);
    let which = candidate.side();
    let draft = draft.advice_unless(
        format!(
            "Broadcast the {which} side of the join with a hint (BROADCAST in SQL, broadcast() in \
             DataFrames): the other side then needs no exchange and no sort"
        ),
        Where::Sql,
        "that side grows from run to run, or a hint asks for the shuffle on purpose",
    );
    let adaptive =
        view.switch(&context.application.configuration, "spark.sql.adaptive.enabled", true);
    Some(if below_threshold && !adaptive {
        draft.advice_unless(
            "Set spark.sql.adaptive.enabled=true: Spark then sees the size once the rows are there, \
             and broadcasts by itself",
            Where::Conf,
            "it was switched off for a reason that still holds",
        )
    } else if limit == 0 {
        draft.advice_unless(
            "Take spark.sql.autoBroadcastJoinThreshold=-1 back: it forbids every broadcast that no \
             hint asks for",
            Where::Conf,
            "it was set because broadcasts timed out or filled the driver: then use hints, one at a \
             time",
        )
    } else {
        draft.advice_unless(
            format!(
                "Raise spark.sql.autoBroadcastJoinThreshold (now {}) above {}, for this query",
                humane::bytes(limit),
                humane::bytes(smaller.bytes),
            ),
            Where::Conf,
            "driver or executors have little heap to spare: a broadcast takes several times its \
             size while it is built",
        )
    })
}
