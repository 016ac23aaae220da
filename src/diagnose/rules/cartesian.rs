//! `cartesian`: a join without an equality compares each row of one side with
//! each of the other.
//!
//! Spark counts neither side's rows in a `CartesianProduct` once: each task
//! computes its part of both sides again, so that both counts together are too
//! large by the number of tasks.

use super::context::Context;
use super::draft::Draft;
use super::humane;
use super::join_explosion::rows_of_sides;
use super::less_work;
use super::plan_cost::COMPARISONS_A_ROW;
use super::plan_text::{self, Algorithm};
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::Cartesian,
    meaning: "A join without an equality compares each row of one side with each of the other.",
    details: "*Fires* at a `BroadcastNestedLoopJoin` or `CartesianProduct` where

    rows of one side x rows of the other >= 10,000,000   (`rows`)
    rows of the smaller side             >= 10           (`side_rows`)

*Source*: DataFlint alarms at 10^10 pairs; a core makes some 10^8 of them a
second, so 10^7 is where it begins to show. With fewer than ten rows on a side the
comparison costs no more than finding a partner would.

*Costs*: the share of the stage's run time that comparisons have beside rows read
and put out, a row being as much work as 100 comparisons. Joins of the kind
*exists* stop at the first partner: for these the pairs are the most there can be.

*Silent* where a side does not count its rows.
",
    evidence: &[
        ("pairs", "rows of one side times rows of the other"),
        ("left_rows", "rows that the left side gave"),
        ("right_rows", "rows that the right side gave"),
        ("output_rows", "pairs that matched"),
    ],
    fires: &["cartesian", "cartesian-product"],
    near_misses: &["cartesian-small"],
    resists: &[(
        "cartesian-one_row",
        "twenty million rows meet a single row of totals by the same operator; there is no other \
         way, and it costs nothing",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.cartesian.enabled {
        return;
    }
    for view in &context.executions {
        drafts.extend(view.nodes().filter_map(|node| judge(context, view, node)));
    }
}

/// Rows of both sides, each counted once, and whether each is known: of a
/// product whose sides were both computed again, only their product is.
fn sides(
    context: &Context<'_>,
    view: &ExecutionView<'_>,
    node: NodeRef<'_>,
    algorithm: Algorithm,
) -> Option<(f64, f64, bool)> {
    let (left, right) = rows_of_sides(node)?;
    let (left, right) = (left as f64, right as f64);
    if algorithm != Algorithm::Cartesian {
        return Some((left, right, true));
    }
    // A side that comes from an exchange was counted when it was written.
    let mut inputs = node.inputs();
    let partitions = |side: NodeRef<'_>| {
        plan_text::exchange(side.feeding_exchange()?.node)?.partitions.map(|n| n.max(1) as f64)
    };
    let (of_left, of_right) = (partitions(inputs.next()?), partitions(inputs.next()?));
    let tasks = view
        .stages_of(node)
        .iter()
        .filter_map(|stage| context.stages.get(*stage))
        .map(|stage| stage.stage.tasks.total.max(1) as f64)
        .reduce(f64::max)?;
    Some(match (of_left, of_right) {
        (Some(_), Some(_)) => (left, right, true),
        (Some(of_left), None) => (left, right / of_left, true),
        (None, Some(of_right)) => (left / of_right, right, true),
        // Only their product is known: it is too large by the tasks.
        (None, None) => (left / tasks.sqrt(), right / tasks.sqrt(), false),
    })
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>, node: NodeRef<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.cartesian;
    let join = plan_text::join(node.node).filter(|join| join.algorithm.compares_all())?;
    let (left, right, known) = sides(context, view, node, join.algorithm)?;
    let pairs = left * right;
    if pairs < thresholds.rows || left.min(right) < thresholds.side_rows as f64 {
        return None;
    }
    let out = node.rows();
    let rows = left + right + out.unwrap_or(0) as f64;
    let comparing = pairs / (pairs + COMPARISONS_A_ROW * rows);
    let stages = view.stages_of(node);
    let (impact, of_stages) =
        less_work::saving(context, stages.iter().map(|stage| (*stage, comparing)));
    let from = node.from();
    let counted = |rows: f64| humane::number(rows.round() as u64);
    let name = node.name();
    let headline = if known {
        format!(
            "{name} has no key: it compares {} rows with {}, {} pairs",
            counted(left),
            counted(right),
            counted(pairs),
        )
    } else {
        format!("{name} has no key: it compares {} pairs of rows", counted(pairs))
    };
    let mut draft = Draft::new(Rule::Cartesian, FindingKind::Data, node.subject(), headline)
        .confidence(Confidence::High)
        .evidence("pairs", pairs, Unit::Count, thresholds.rows, &from);
    if known {
        draft = draft.evidence("left_rows", left, Unit::Count, None, &from).evidence(
            "right_rows",
            right,
            Unit::Count,
            None,
            &from,
        );
    }
    if let Some(out) = out {
        draft = draft.evidence("output_rows", out as f64, Unit::Count, None, &from);
    }
    draft = draft
        .impact(impact, of_stages)
        .advice_unless(
            "Give the join an equality. Of a range, join on a part that both sides share (the day, \
             the hour, floor(value / width)) and compare within it; of an OR, join once for each \
             alternative and put the results together",
            Where::Sql,
            "nothing but the comparison relates the two sides",
        )
        .advice_unless(
            "Add the condition if it was forgotten: tables listed with a comma, or crossJoin",
            Where::Sql,
            "all pairs are wanted",
        );
    if join.algorithm == Algorithm::Cartesian {
        draft = draft.advice_unless(
            "Broadcast the smaller side (a hint), so that it is not computed again for each part of \
             the other",
            Where::Sql,
            "it is larger than a few hundred MiB",
        );
    }
    Some(draft)
}
