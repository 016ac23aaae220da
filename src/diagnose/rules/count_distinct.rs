//! `count_distinct`: `count(DISTINCT ...)` is computed in two phases, first by
//! key and value, then by key.
//!
//! A note, as `partial_aggregation`: the first shuffle carries nearly all rows,
//! which looks like a GROUP BY that does not shrink them; but it is by key *and*
//! value, so that a hot key is spread over all tasks.

use super::context::Context;
use super::draft::{Draft, Weight};
use super::humane;
use super::partial_aggregation::{matters, rows_in};
use super::plan_text;
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Severity, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::CountDistinct,
    meaning: "count(DISTINCT ...) is computed in two phases: rows are shuffled by key and value \
              first, which spreads a hot key, and counted by key afterwards.",
    details: "*Fires*, always as `info` and once for an execution, where its plan has an
aggregate over distinct values,

    rows that the first phase takes in >= 1,000,000         (`rows`)
    run time of the execution >= 10 % of the run's          (`task_time_ratio`)

*Source*: Spark plans a single DISTINCT with two more aggregates, several of them
with an Expand that repeats each row once for each.

*Costs* nothing by itself; the shuffle of all distinct pairs is what it takes.

*Silent* for `approx_count_distinct`, and for a distinct that is written as
`SELECT DISTINCT` and counted afterwards, where the plan shows both steps.
",
    evidence: &[
        ("input_rows", "rows that the first phase took in"),
        ("distinct_rows", "pairs of key and value that it put out"),
        (
            "expanded_rows",
            "rows after each was repeated for each DISTINCT, where there are several",
        ),
    ],
    fires: &["count_distinct"],
    near_misses: &["count_distinct-unique"],
    resists: &[(
        "count_distinct",
        "skew: the partial aggregate shrinks nothing and one key has 85 % of the rows, and yet \
         tasks are even",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    let thresholds = &context.thresholds.count_distinct;
    if thresholds.enabled {
        let matter = context
            .executions
            .iter()
            .filter(|view| matters(context, view, thresholds.task_time_ratio));
        drafts.extend(matter.filter_map(|view| judge(context, view)));
    }
}

/// The lowest aggregate below this one: the first phase.
fn first_phase(node: NodeRef<'_>) -> NodeRef<'_> {
    let mut first = node;
    let mut below = node.inputs().next();
    while let Some(next) = below {
        let goes_on = plan_text::aggregate(next.node).is_some();
        if goes_on {
            first = next;
        } else if !(next.is_wrapper() || next.is_exchange()) {
            break;
        }
        below = next.inputs().next();
    }
    first
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.count_distinct;
    let (node, first, taken) = view
        .nodes()
        .filter(|node| plan_text::aggregate(node.node).is_some_and(|aggregate| aggregate.distinct))
        .filter_map(|node| {
            let first = first_phase(node);
            Some((node, first, rows_in(first)?))
        })
        .max_by_key(|(node, _, taken)| (*taken, std::cmp::Reverse(node.place)))?;
    if taken < thresholds.rows {
        return None;
    }
    let expand = first
        .inputs()
        .next()
        .map(NodeRef::unwrapped)
        .filter(|below| plan_text::first_word(&below.node.name) == "Expand");
    let read = expand.and_then(rows_in).unwrap_or(taken);
    let pairs = first.rows();
    let from = first.from();
    let shown = pairs.map_or_else(|| "distinct rows".to_owned(), humane::number);
    let headline = format!(
        "{} counts distinct values: {} rows become {shown} by key and value, then it counts",
        node.name(),
        humane::number(read),
    );
    let mut draft = Draft::new(Rule::CountDistinct, FindingKind::Data, view.subject(), headline)
        .weight(Weight::Exactly(Severity::Info))
        .confidence(Confidence::High)
        .evidence("input_rows", read as f64, Unit::Count, thresholds.rows as f64, &from);
    if let Some(pairs) = pairs {
        draft = draft.evidence("distinct_rows", pairs as f64, Unit::Count, None, &from);
    }
    if expand.is_some() {
        draft = draft.evidence("expanded_rows", taken as f64, Unit::Count, None, &from);
    }
    draft = draft.advice_unless(
        "Use approx_count_distinct where a few percent do not matter: it sends a sketch of each \
         key instead of all its values",
        Where::Sql,
        "the exact number is needed",
    );
    if expand.is_some() {
        draft = draft.advice_unless(
            "Count one DISTINCT at a time, or collapse rows to the needed columns first: several in \
             one query repeat each row for each of them",
            Where::Sql,
            "the rows are few",
        );
    }
    Some(draft.advice(
        "Do not salt the key of this GROUP BY: the large shuffle is by key and value already",
        Where::Sql,
    ))
}
