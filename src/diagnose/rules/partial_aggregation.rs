//! `partial_aggregation`: each task added up its own rows before the shuffle,
//! so that a hot key of the GROUP BY does not show behind it.
//!
//! It is a note, not a fault: whoever knows that one key has most of the rows,
//! and sees a slow query with a GROUP BY, is about to salt what needs no salt.

use super::context::{Context, ratio};
use super::draft::{Draft, Weight};
use super::humane;
use super::plan_text::{self, Phase};
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Severity, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::PartialAggregation,
    meaning: "Each task added up its own rows of each key before the shuffle, so that a hot key of \
              the GROUP BY does not skew what follows.",
    details: "*Fires*, always as `info` and once for an execution, at the aggregate with most
input among those that group by something and add up before the shuffle, where

    rows it puts out <= 10 % of those it takes in           (`ratio`)
    rows it takes in >= 1,000,000                           (`rows`)
    run time of the execution >= 10 % of the run's          (`task_time_ratio`)

*Source*: Spark aggregates in two phases wherever the function allows it; a tenth
means that a key's rows in the shuffle are at most as many as there are tasks
before it.

*Costs* nothing: it says what the shuffle's records hide, and what not to do.

*Silent* for aggregates that gather rows (`collect_list`): these are fewer rows
and all the data. Where the shuffle behind an aggregate is skewed all the same,
`data_skew` says so.
",
    evidence: &[
        ("input_rows", "rows that the first phase took in"),
        ("output_rows", "rows that it sent on"),
        ("rows_ratio", "one over the other"),
    ],
    fires: &["partial_aggregation"],
    near_misses: &["hot_key_aggregate"],
    resists: &[("partial_aggregation", "skew, of whoever knows that one key has 85 % of the rows")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    let thresholds = &context.thresholds.partial_aggregation;
    if thresholds.enabled {
        let matter = context
            .executions
            .iter()
            .filter(|view| matters(context, view, thresholds.task_time_ratio));
        drafts.extend(matter.filter_map(|view| judge(context, view)));
    }
}

/// Whether the execution's tasks ran for such a share of the run's.
pub(super) fn matters(context: &Context<'_>, view: &ExecutionView<'_>, share: f64) -> bool {
    ratio(view.task_time, context.task_time).is_some_and(|of_all| of_all >= share)
}

/// Rows that the only input of a node gives.
pub(super) fn rows_in(node: NodeRef<'_>) -> Option<u64> {
    node.inputs().next()?.rows()
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.partial_aggregation;
    let (node, taken, put) = view
        .nodes()
        .filter(|node| {
            plan_text::aggregate(node.node).is_some_and(|aggregate| {
                aggregate.grouped
                    && aggregate.phase == Some(Phase::Partial)
                    && !aggregate.keeps_rows
                    && !aggregate.distinct
            })
        })
        .filter_map(|node| Some((node, rows_in(node)?, node.rows()?)))
        .max_by_key(|(node, taken, _)| (*taken, std::cmp::Reverse(node.place)))?;
    let share = ratio(put, taken)?;
    if taken < thresholds.rows || share > thresholds.ratio {
        return None;
    }
    let from = node.from();
    let headline = format!(
        "{} adds up {} rows to {} before the shuffle: a hot key of this GROUP BY is no skew",
        node.name(),
        humane::number(taken),
        humane::number(put),
    );
    Some(
        Draft::new(Rule::PartialAggregation, FindingKind::Data, view.subject(), headline)
            .weight(Weight::Exactly(Severity::Info))
            .confidence(Confidence::High)
            .evidence("input_rows", taken as f64, Unit::Count, thresholds.rows as f64, &from)
            .evidence("output_rows", put as f64, Unit::Count, None, &from)
            .evidence("rows_ratio", share, Unit::Ratio, thresholds.ratio, &from)
            .advice(
                "Leave this GROUP BY as it is: salting or splitting its keys adds a shuffle and \
                 saves nothing. Judge keys by the rows below the aggregate, not by the shuffle \
                 behind it",
                Where::Sql,
            ),
    )
}
