//! Series of streaming queries: what their last batch told.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::catalogue::Id;
use super::group::Group;
use super::label::Text;
use super::snapshot::{Part, RunView};
use crate::config::Limits;
use crate::model::{State, StateOperator, StreamingQuery, StreamingState};

/// Of a query that was started again only its last run: they share an id.
pub(super) fn groups(view: &RunView, run: &Arc<[Text]>, limits: &Limits) -> Part {
    let application = &view.application;
    let mut queries: Vec<&StreamingQuery> =
        application.streaming_queries.iter().flatten().collect();
    queries.sort_by_key(|query| {
        let active = query.state == StreamingState::Active;
        (Reverse(active), Reverse(last_progress(query)), Reverse(query.started), &query.run_id)
    });
    let mut seen = HashSet::new();
    let mut all = queries.into_iter().filter_map(|query| {
        let id = Text::clean(&query.id, limits.label_length);
        seen.insert(id.clone()).then(|| group(id, query, application.state, run))
    });
    let groups = all.by_ref().take(limits.streaming_queries_exported).collect();
    Part { groups, reason: "streaming_queries_limit", beyond: all.map(|group| group.len()).sum() }
}

/// When its last batch ended, or when it last said that it was idle.
fn last_progress(query: &StreamingQuery) -> Option<Timestamp> {
    let batch = query.batches.last();
    batch.and_then(|batch| batch.end().or(batch.start)).max(query.idle_since)
}

fn group(id: Text, query: &StreamingQuery, state: State, run: &[Text]) -> Group {
    let mut group = Group::new(run.iter().cloned().chain([id]).collect());
    let active = query.state == StreamingState::Active && state == State::Running;
    group.add(Id::StreamingQueryActive, active);
    group.add(Id::StreamingQueryBatches, query.batches_seen);
    group.add(Id::StreamingQueryLastProgress, last_progress(query));
    let Some(batch) = query.batches.last() else { return group };
    group.add(Id::StreamingQueryBatchDuration, batch.duration);
    group.add(Id::StreamingQueryInputRate, batch.input_rows_per_second);
    group.add(Id::StreamingQueryProcessedRate, batch.processed_rows_per_second);
    group.add(Id::StreamingQueryBacklog, batch.backlog());
    group.add(Id::StreamingQueryStateRows, batch.state_rows());
    group.add(Id::StreamingQueryStateMemory, state_memory(&batch.state));
    group
}

/// `None` where one of the operators does not tell: a sum of the others would
/// look like the whole.
fn state_memory(operators: &[StateOperator]) -> Option<u64> {
    let sum: Option<u64> = operators
        .iter()
        .try_fold(0_u64, |sum, operator| Some(sum.saturating_add(operator.memory_bytes?)));
    sum.filter(|_| !operators.is_empty())
}
