//! `streaming_behind`: a streaming query does not keep up with its trigger or
//! with its source.
//!
//! Rates say nothing: where intake is capped, rows come in as fast as they are
//! processed, however far behind the query is. What tells is time (batches
//! that outlast their trigger, one after the other) and the source's own
//! offsets.

use std::time::Duration;

use super::context::{Context, ratio};
use super::draft::{Draft, Weight};
use super::humane;
use super::trigger::{self, Lateness};
use super::{About, Confidence, FindingKind, Rule, Severity, Subject, Unit, Where};
use crate::config::thresholds::StreamingBehind;
use crate::model::{State, StreamingBatch, StreamingQuery};

pub(super) const ABOUT: About = About {
    rule: Rule::StreamingBehind,
    meaning: "A streaming query is behind: its batches outlast its trigger one after the other, \
              or what waits in its source grows from batch to batch.",
    details: "*Fires* for each run of a query on one of two tests, over batches after the first 5
(`first_batches`) and the first minute (`first`):

1. of the last 10 batches (`batches`), at least 5 (`late`) took longer than the
   trigger interval and were followed by the next within 100 ms (`pause`), and their
   times are not falling (the newer half takes at least 0.9 of the older half: a
   query that catches up is no news). It is over after 5 (`late`) good batches in a
   row.
2. the newest offset of the source less the batch's last one grew in each of the
   last 5 batches (`late`), by at least the rows of a typical batch in all.

The trigger interval is in no event. Triggers of an interval start on its grid
(multiples of it since 1970): it is the largest spacing of batches that waited for
their start on whose grid at least 80 % of such starts lie, three at least. Where
there is none (`AvailableNow`, continuous processing, no interval at all, or a query
that has been behind ever since), only the second test is made.

*Sources*: Spark's own warning of a batch that outlasts its trigger; the counts are
our judgement.

*Cost*: `warning`; Spark gives no time that could be saved. State that grows is
evidence, by rows and commit time: memory that cannot be true (terabytes of one
operator, or none beside rows) is unknown.

*Silent* while the query waits for data, after dropped events, from REST, and for a
query that ended more than an hour ago in a running application. Rates are evidence
only: capped intake balances them.
",
    evidence: &[
        (
            "late_batches",
            "of the last ones, those that outlasted the trigger without a pause after",
        ),
        ("trigger_interval", "worked out from the starts of batches that waited"),
        ("batch_time", "median of these batches"),
        ("backlog", "newest offset less the last batch's, in the source's unit"),
        ("backlog_growth", "over the last batches"),
        ("input_rows_per_second", "of the last batch"),
        ("processed_rows_per_second", "of the last batch"),
        (
            "outside_add_batch_ratio",
            "of batch time, what is not `addBatch`: planning, offsets, logs",
        ),
        ("state_rows", "after the last batch, over all stateful operators"),
        ("state_growth", "rows of state, last batch over first kept one"),
        ("state_memory", "after the last batch, where Spark's number can be true"),
        ("state_commit_ratio", "commit time of state over batch time"),
    ],
    fires: &["streaming_behind"],
    near_misses: &["streaming_behind-busy"],
    resists: &[(
        "streaming_behind-available",
        "batches that are back to back by design (`AvailableNow`) are not late",
    )],
};

/// Queries that ended earlier than this are no news of a running application.
const NEWS: Duration = Duration::from_hours(1);

/// State that grew by less over the batches kept is steady.
const GROWING_STATE: f64 = 1.5;

/// From this share of batch time on, a part of it is worth advice of its own.
const LARGE_PART: f64 = 0.3;

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    let thresholds = &context.thresholds.streaming_behind;
    if !thresholds.enabled || !context.tasks_are_complete() {
        return;
    }
    let queries = context.application.streaming_queries.as_deref().unwrap_or_default();
    for query in queries.iter().filter(|query| is_news(context, query)) {
        drafts.extend(judge(thresholds, query, queries.len()));
    }
}

fn is_news(context: &Context<'_>, query: &StreamingQuery) -> bool {
    let application = context.application;
    query.idle_since.is_none()
        && (application.state != State::Running
            || query.ended.is_none_or(|ended| {
                Duration::try_from(application.observed.duration_since(ended))
                    .is_ok_and(|ago| ago < NEWS)
            }))
}

/// From and to, over the last batches.
struct Growth {
    from: u64,
    to: u64,
}

fn judge(thresholds: &StreamingBehind, query: &StreamingQuery, queries: usize) -> Option<Draft> {
    let batches = trigger::settled(query, thresholds);
    let lateness = trigger::lateness(query, &batches, thresholds);
    let growth = backlog_growth(&batches, thresholds);
    let which = match queries {
        1 => "The streaming query".to_owned(),
        n => format!("Streaming query run {} of {n}", short(&query.run_id)),
    };
    let headline = match (&lateness, &growth) {
        (Some(late), _) => format!(
            "{which} is behind: {} of its last {} took longer ({}) than its trigger of {}, each \
             followed by the next without a pause",
            late.late,
            humane::count(late.of as u64, "batch", "batches"),
            humane::duration(late.batch_time),
            humane::duration(late.interval),
        ),
        (None, Some(growth)) => format!(
            "{which} is behind: what waits in its source grew over {} from {} to {}",
            humane::count(thresholds.late as u64, "batch", "batches"),
            humane::number(growth.from),
            humane::number(growth.to),
        ),
        (None, None) => return None,
    };
    let from = format!("streaming query run {}", short(&query.run_id));
    let mut draft =
        Draft::new(Rule::StreamingBehind, FindingKind::Resources, Subject::Application, headline)
            .weight(Weight::Exactly(Severity::Warning))
            .confidence(match lateness {
                Some(_) => Confidence::High,
                None => Confidence::Medium,
            });
    if let Some(Lateness { late, interval, batch_time, .. }) = lateness {
        let least = thresholds.late as f64;
        draft = draft
            .evidence("late_batches", late as f64, Unit::Count, least, &from)
            .evidence("trigger_interval", interval.as_secs_f64(), Unit::Seconds, None, &from)
            .evidence("batch_time", batch_time.as_secs_f64(), Unit::Seconds, None, &from);
    }
    let last = batches.last()?;
    if let Some(backlog) = last.backlog() {
        draft = draft.evidence("backlog", backlog as f64, Unit::Count, None, &from);
    }
    if let Some(Growth { from: first, to }) = growth {
        draft = draft.evidence("backlog_growth", (to - first) as f64, Unit::Count, 1.0, &from);
    }
    for (name, rate) in [
        ("input_rows_per_second", last.input_rows_per_second),
        ("processed_rows_per_second", last.processed_rows_per_second),
    ] {
        if let Some(rate) = rate {
            draft = draft.evidence(name, rate, Unit::Count, None, &from);
        }
    }
    Some(parts_and_state(draft, query, last, &from))
}

fn short(run_id: &str) -> &str {
    run_id.split('-').next().unwrap_or(run_id)
}

/// Growth in each of the last batches, and by no less than a typical batch in
/// all: a backlog goes up and down with every batch.
fn backlog_growth(batches: &[&StreamingBatch], thresholds: &StreamingBehind) -> Option<Growth> {
    let newest = batches.get(batches.len().checked_sub(thresholds.late + 1)?..)?;
    let backlogs: Vec<u64> = newest.iter().map(|batch| batch.backlog()).collect::<Option<_>>()?;
    let (from, to) = (*backlogs.first()?, *backlogs.last()?);
    let mut rows: Vec<u64> = newest.iter().filter_map(|batch| batch.input_rows).collect();
    rows.sort_unstable();
    let typical = rows.get(rows.len() / 2).copied().unwrap_or(0);
    let grows = backlogs.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    (grows && to - from >= typical).then_some(Growth { from, to })
}

fn parts_and_state(
    draft: Draft,
    query: &StreamingQuery,
    last: &StreamingBatch,
    from: &str,
) -> Draft {
    let mut draft = draft;
    let part = |name: &str| {
        let (_, time) = last.parts.iter().find(|(known, _)| &**known == name)?;
        ratio(*time, last.duration?)
    };
    let outside = part("addBatch").map(|share| (1.0 - share).max(0.0));
    if let Some(outside) = outside {
        draft = draft.evidence("outside_add_batch_ratio", outside, Unit::Ratio, None, from);
    }
    let growth = query
        .batches
        .iter()
        .find_map(StreamingBatch::state_rows)
        .zip(last.state_rows())
        .and_then(|(first, last)| ratio(last, first));
    if let Some(rows) = last.state_rows() {
        draft = draft.evidence("state_rows", rows as f64, Unit::Count, None, from);
    }
    if let Some(growth) = growth {
        draft = draft.evidence("state_growth", growth, Unit::Ratio, None, from);
    }
    // Of several operators one that does not tell leaves the sum unknown.
    let memory: Option<u64> = last.state.iter().map(|operator| operator.memory_bytes).sum();
    if let Some(memory) = memory.filter(|_| !last.state.is_empty()) {
        draft = draft.evidence("state_memory", memory as f64, Unit::Bytes, None, from);
    }
    let commit: Option<Duration> =
        last.state.iter().filter_map(|operator| operator.commit_time).max();
    let commit = commit.zip(last.duration).and_then(|(commit, batch)| ratio(commit, batch));
    if let Some(commit) = commit {
        draft = draft.evidence("state_commit_ratio", commit, Unit::Ratio, None, from);
    }
    if growth.is_some_and(|growth| growth >= GROWING_STATE) {
        draft = draft.advice_unless(
            "Bound the state: a watermark (withWatermark, dropDuplicatesWithinWatermark), a \
             timeout or a time to live of what a key keeps; without one each batch looks \
             through more",
            Where::Sql,
            "it stops growing once all keys have been seen",
        );
    }
    if commit.is_some_and(|commit| commit >= LARGE_PART) {
        draft = draft.advice_unless(
            "Use the RocksDB state store with changelog checkpoints \
             (spark.sql.streaming.stateStore.providerClass, \
             spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled): commits \
             then write what changed",
            Where::Conf,
            "it is in use already",
        );
    }
    if outside.is_some_and(|outside| outside >= LARGE_PART) {
        draft = draft.advice_unless(
            "Take longer triggers: planning, offsets and checkpoints cost the same for a batch \
             of any size. Put the checkpoint on a faster store",
            Where::Conf,
            "the delay of a result must stay below the trigger",
        );
    }
    draft
        .advice_unless(
            "Give it more cores, and as many partitions of the source (or minPartitions) as \
             cores",
            Where::Resources,
            "one task of each batch takes most of its time: then see data_skew",
        )
        .advice_unless(
            "Make the work of a row cheaper: see the findings about its stages",
            Where::Sql,
            "a larger intake a batch (maxOffsetsPerTrigger, maxFilesPerTrigger) is all that is \
             missing: it helps where batches are short",
        )
}
