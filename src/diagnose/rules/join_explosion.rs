//! `join_explosion`: a join put out many times the rows that went in.
//!
//! Keys that repeat on both sides meet in every combination. A join whose rows
//! in and out are alike may be slow too, but then one key has most of them, or
//! the stage is slow for another reason: that is a matter of distribution, and
//! `data_skew` says so.

use super::context::{Context, ratio};
use super::draft::Draft;
use super::humane;
use super::less_work;
use super::plan_text;
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::JoinExplosion,
    meaning: "A join put out many times the rows that went in: keys repeat on both sides, and each \
              row meets all its partners.",
    details: "*Fires* at a join by keys (sort-merge, shuffled or broadcast hash) where

    output rows >= 10 x the rows of the larger input   (`ratio`)
    output rows >= 1,000,000                           (`rows`)

*Source*: none of the known tools has a figure; ten times is far above what a
join of a table with its details gives, and a million rows is where it begins to
cost.

*Costs*: the share of the stage's run time that rows beyond those of the larger
input have of all rows read and put out. Stages behind the join handle those rows
too; that is not counted.

*Silent* where rows in and out are alike, however slow the join: equal rows mean
that their distribution is to blame, not duplicate keys. Also where a side does
not count its rows, and for joins without a key (`cartesian`).
",
    evidence: &[
        ("output_rows", "rows that the join put out"),
        ("left_rows", "rows that its left side gave"),
        ("right_rows", "rows that its right side gave"),
        ("rows_ratio", "output rows over those of the larger side"),
    ],
    fires: &["join_explosion"],
    near_misses: &["join_explosion-few"],
    resists: &[(
        "hot_key",
        "the slow join is blamed on duplicate keys; as many rows come out as go in",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.join_explosion.enabled {
        return;
    }
    for view in &context.executions {
        drafts.extend(view.nodes().filter_map(|node| judge(context, view, node)));
    }
}

/// Rows of both inputs of a join, left and right.
pub(super) fn rows_of_sides(node: NodeRef<'_>) -> Option<(u64, u64)> {
    let mut inputs = node.inputs();
    let sides = (inputs.next()?.rows()?, inputs.next()?.rows()?);
    inputs.next().is_none().then_some(sides)
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>, node: NodeRef<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.join_explosion;
    let join = plan_text::join(node.node).filter(|join| !join.algorithm.compares_all())?;
    let out = node.rows()?;
    let (left, right) = rows_of_sides(node)?;
    let larger = left.max(right);
    let times = ratio(out, larger)?;
    if out < thresholds.rows || times < thresholds.ratio {
        return None;
    }
    let (left_rows, right_rows, out_rows) = (left as f64, right as f64, out as f64);
    let needless = (out_rows - larger as f64) / (left_rows + right_rows + out_rows);
    let stages = view.stages_of(node);
    let (impact, of_stages) =
        less_work::saving(context, stages.iter().map(|stage| (*stage, needless)));
    let from = node.from();
    let headline = format!(
        "{}: {} rows come out of {} and {}, {} the larger side, because keys repeat on both",
        node.name(),
        humane::number(out),
        humane::number(left),
        humane::number(right),
        humane::ratio(times),
    );
    let draft = Draft::new(Rule::JoinExplosion, FindingKind::Data, node.subject(), headline)
        .confidence(Confidence::High)
        .evidence("output_rows", out_rows, Unit::Count, thresholds.rows as f64, &from)
        .evidence("left_rows", left_rows, Unit::Count, None, &from)
        .evidence("right_rows", right_rows, Unit::Count, None, &from)
        .evidence("rows_ratio", times, Unit::Ratio, thresholds.ratio, &from)
        .impact(impact, of_stages)
        .advice_unless(
            "Make the keys of one side unique before the join: drop its duplicates, or aggregate \
             it by the keys of the join",
            Where::Sql,
            "every pair is wanted: then aggregate before the join what is aggregated after it",
        );
    let draft = if join.keys == Some(1) {
        draft.advice_unless(
            "Complete the condition of the join: it has one key, and tables with versions, days \
             or regions need that as well",
            Where::Sql,
            "the one key is all that relates the two",
        )
    } else {
        draft
    };
    Some(draft.advice_unless(
        "Look for a default that both sides carry for a missing key (0, an empty text): its rows \
         all meet each other; drop them before the join",
        Where::Data,
        "no key has far more rows than the others",
    ))
}
