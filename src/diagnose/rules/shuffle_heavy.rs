//! `shuffle_heavy`: a query sent several times what it read through its
//! shuffles.

use super::context::{Context, ratio};
use super::draft::Draft;
use super::humane;
use super::less_work;
use super::missed_broadcast;
use super::plan_cost::share_of_run_time;
use super::plan_text;
use super::{About, Confidence, ExecutionView, FindingKind, NodeRef, Rule, Unit, Where};

pub(super) const ABOUT: About = About {
    rule: Rule::ShuffleHeavy,
    meaning: "A query sent several times what it read through its shuffles.",
    details: "*Fires* for a SQL execution whose stages

    wrote >= 2 x the bytes to shuffles that they read as input   (`ratio`)
    and   >= 10 GiB                                              (`bytes`)

and names the exchange that carried most, and joins of which one side is small
enough to be broadcast.

*Sources*: published checklists for Spark tuning (shuffle above twice or three
times the input; 50 GB in another). Ten GiB is where it begins to matter on a
cluster.

*Costs*: the measured time of writing shuffles and waiting for them, for the part
above the input. Serializing and reading rows is not timed by Spark.

*Silent* where no input is counted (tables made from nothing, JDBC): there is
nothing to hold it against.
",
    evidence: &[
        ("shuffle_bytes", "bytes written to shuffles by the execution's stages"),
        ("input_bytes", "bytes that they read as input"),
        ("shuffle_ratio", "one over the other"),
        ("exchange_bytes", "bytes that the largest exchange wrote"),
        ("exchange_rows", "rows that it wrote"),
    ],
    fires: &["shuffle_heavy"],
    near_misses: &["shuffle_heavy-healthy"],
    resists: &[(
        "missed_broadcast",
        "much is shuffled for a join; the broadcast is what is missing",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.shuffle_heavy.enabled && context.tasks_are_complete() {
        drafts.extend(context.executions.iter().filter_map(|view| judge(context, view)));
    }
}

fn judge(context: &Context<'_>, view: &ExecutionView<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.shuffle_heavy;
    let stages = || view.stages.iter().filter_map(|index| context.stages.get(*index));
    let (mut shuffled, mut input) = (0_u64, 0_u64);
    for stage in stages() {
        let measures = &stage.stage.measures;
        shuffled = shuffled.saturating_add(measures.shuffle_write_bytes.sum_or_zero());
        input = input.saturating_add(measures.input_bytes.sum_or_zero());
    }
    let times = ratio(shuffled, input)?;
    if shuffled < thresholds.bytes.bytes() || times < thresholds.ratio {
        return None;
    }
    let needless = (shuffled - input) as f64 / shuffled as f64;
    let shares = stages().map(|stage| {
        let measures = &stage.stage.measures;
        let time = measures
            .shuffle_write_time
            .sum_or_zero()
            .saturating_add(measures.fetch_wait_time.sum_or_zero());
        (stage.index, share_of_run_time(context, stage.index, time) * needless)
    });
    let (impact, of_stages) = less_work::saving(context, shares);
    let bytes_of = |node: NodeRef<'_>| node.node.value("shuffle bytes written").map(|v| v.total);
    let largest = view
        .nodes()
        .filter(|node| plan_text::exchange(node.node).is_some())
        .filter_map(|node| Some((bytes_of(node)?, node)))
        .max_by_key(|(bytes, node)| (*bytes, std::cmp::Reverse(node.place)));
    let of = format!("SQL execution {}", view.execution.id);
    let named = largest.map_or_else(String::new, |(bytes, node)| {
        let how =
            plan_text::exchange(node.node).map_or("", |exchange| exchange.distribution.as_str());
        format!(", most of it in {}, which distributes {} {how}", node.name(), humane::bytes(bytes))
    });
    let headline = format!(
        "{of} shuffled {}, {} what it read ({}){named}",
        humane::bytes(shuffled),
        humane::ratio(times),
        humane::bytes(input),
    );
    let subject = largest.map_or_else(|| view.subject(), |(_, node)| node.subject());
    let mut draft = Draft::new(Rule::ShuffleHeavy, FindingKind::Data, subject, headline)
        .confidence(Confidence::High)
        .evidence(
            "shuffle_bytes",
            shuffled as f64,
            Unit::Bytes,
            thresholds.bytes.bytes() as f64,
            &of,
        )
        .evidence("input_bytes", input as f64, Unit::Bytes, None, &of)
        .evidence("shuffle_ratio", times, Unit::Ratio, thresholds.ratio, &of)
        .impact(impact, of_stages);
    if let Some((bytes, node)) = largest {
        draft = draft.evidence("exchange_bytes", bytes as f64, Unit::Bytes, None, node.from());
        if let Some(rows) = node.rows() {
            draft = draft.evidence("exchange_rows", rows as f64, Unit::Count, None, node.from());
        }
    }
    Some(advise(draft, context, view, largest.map(|(_, node)| node)))
}

/// Whether rows are multiplied between the exchange and what it reads.
fn multiplied(exchange: NodeRef<'_>) -> bool {
    exchange
        .below()
        .take_while(|node| !node.is_exchange())
        .any(|node| matches!(plan_text::first_word(&node.node.name), "Expand" | "Generate"))
}

fn advise(
    mut draft: Draft,
    context: &Context<'_>,
    view: &ExecutionView<'_>,
    largest: Option<NodeRef<'_>>,
) -> Draft {
    if largest.is_some_and(multiplied) {
        draft = draft.advice_unless(
            "Multiply rows after the shuffle instead of before it: explode, CUBE, ROLLUP and \
             several DISTINCTs repeat each row, and the exchange carries every copy",
            Where::Sql,
            "the shuffle is by what only the copies have",
        );
    }
    for node in view.nodes() {
        let Some(candidate) = missed_broadcast::candidate(context, view, node) else { continue };
        draft = draft.advice_unless(
            format!(
                "Broadcast the {} side of {} ({}): its other side then needs no exchange",
                candidate.side(),
                node.name(),
                humane::bytes(candidate.smaller_bytes()),
            ),
            Where::Sql,
            "that side grows from run to run",
        );
    }
    draft
        .advice_unless(
            "Select the needed columns and filter rows before the exchange",
            Where::Sql,
            "all of them are needed behind it",
        )
        .advice_unless(
            "Aggregate before the join or the repartition where only totals are used afterwards",
            Where::Sql,
            "single rows are needed afterwards",
        )
}
