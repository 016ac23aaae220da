//! Streaming queries: started, their newest batches, ended.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::checks::{Checks, first_lines};
use super::outcome::error_class;
use crate::eventlog::event_sql::{
    Progress, QueryIdle, QueryProgress, QueryStarted, QueryTerminated, Source, StateProgress,
};
use crate::eventlog::field::{Number, Object, Text};
use crate::model::{
    DataQuality, SourceProgress, StateOperator, StreamingBatch, StreamingQuery, StreamingState,
};

/// Batches kept of one query: more than any rule looks back, and hours of a
/// trigger a minute.
const MOST_BATCHES: usize = 100;

/// Runs of queries kept; beyond it those that ended first go.
const MOST_QUERIES: usize = 500;

/// Sources and stateful operators kept of one batch.
const MOST_PARTS: usize = 32;

/// State that takes more memory than this is none: Spark adds the memory that
/// all stores share once for each of them (SPARK-48208; 15.9 TB have been
/// seen). Eight TiB, more than any cluster gives to one operator.
const MOST_STATE_MEMORY: u64 = 8 << 40;

#[derive(Default, Clone)]
pub(super) struct Queries {
    /// In the order of their start.
    list: Vec<StreamingQuery>,
    index: HashMap<String, usize>,
}

fn text(field: &Text<'_>, most: usize) -> String {
    field.get().unwrap_or_default().chars().take(most).collect()
}

fn time(field: &Text<'_>, checks: &mut Checks) -> Option<Timestamp> {
    let time: Timestamp = field.get()?.parse().ok()?;
    checks.moment(time);
    Some(time)
}

impl Queries {
    /// The run, made if it is new: its start may be missing.
    fn entry(&mut self, run_id: &str) -> Option<&mut StreamingQuery> {
        if run_id.is_empty() {
            return None;
        }
        if !self.index.contains_key(run_id) {
            self.keep_within_limit();
            self.index.insert(run_id.to_owned(), self.list.len());
            self.list.push(StreamingQuery {
                id: String::new(),
                run_id: run_id.to_owned(),
                name: None,
                started: None,
                state: StreamingState::Active,
                ended: None,
                exception: None,
                error_class: None,
                batches: Vec::new(),
                batches_seen: 0,
                idle_since: None,
            });
        }
        self.list.get_mut(*self.index.get(run_id)?)
    }

    fn keep_within_limit(&mut self) {
        if self.list.len() < MOST_QUERIES {
            return;
        }
        let ended = self.list.iter().position(|query| query.state != StreamingState::Active);
        self.list.remove(ended.unwrap_or(0));
        self.index = self
            .list
            .iter()
            .enumerate()
            .map(|(place, query)| (query.run_id.clone(), place))
            .collect();
    }

    pub(super) fn started(&mut self, event: &QueryStarted<'_>, checks: &mut Checks) {
        let started = time(&event.time, checks);
        let Some(query) = self.entry(&text(&event.run_id, 100)) else { return };
        query.id = text(&event.id, 100);
        query.name = event.name.get().map(|_| text(&event.name, 200));
        query.started = started;
    }

    pub(super) fn progress(
        &mut self,
        event: &QueryProgress<'_>,
        checks: &mut Checks,
    ) -> Result<(), serde_json::Error> {
        let Some(json) = event.progress else { return Ok(()) };
        // An object since 2.x; third parties write its text.
        let inner: String;
        let json = if json.get().starts_with('"') {
            inner = serde_json::from_str(json.get())?;
            inner.as_str()
        } else {
            json.get()
        };
        let progress: Progress<'_> = serde_json::from_str(json)?;
        let Some(query) = self.entry(&text(&progress.run_id, 100)) else { return Ok(()) };
        if query.id.is_empty() {
            query.id = text(&progress.id, 100);
            query.name = progress.name.get().map(|_| text(&progress.name, 200));
        }
        let Some(batch) = batch(&progress, checks) else { return Ok(()) };
        query.idle_since = None;
        // A query that waits for data tells of the same batch again.
        if query.batches.last().is_some_and(|last| last.id == batch.id) {
            query.batches.pop();
        } else {
            query.batches_seen += 1;
        }
        if query.batches.len() >= MOST_BATCHES {
            query.batches.remove(0);
        }
        query.batches.push(batch);
        Ok(())
    }

    pub(super) fn idle(&mut self, event: &QueryIdle<'_>, checks: &mut Checks) {
        let time = time(&event.time, checks);
        if let Some(query) = self.entry(&text(&event.run_id, 100)) {
            query.idle_since = time;
        }
    }

    pub(super) fn terminated(&mut self, event: &QueryTerminated<'_>, checks: &Checks) {
        let latest = checks.latest;
        let Some(query) = self.entry(&text(&event.run_id, 100)) else { return };
        query.ended = latest;
        let exception = event.exception.get();
        query.state =
            if exception.is_some() { StreamingState::Failed } else { StreamingState::Stopped };
        query.exception = exception.and_then(first_lines).map(Into::into);
        query.error_class = event
            .error_class
            .get()
            .map(|_| text(&event.error_class, 200))
            .or_else(|| exception.and_then(error_class));
    }

    /// The runs in the order of their start.
    pub(super) fn finish(self) -> Vec<StreamingQuery> {
        self.list
    }
}

fn batch(progress: &Progress<'_>, checks: &mut Checks) -> Option<StreamingBatch> {
    let start = time(&progress.time, checks);
    let parts: Vec<_> = progress
        .durations
        .0
        .iter()
        .filter_map(|(name, millis)| {
            Some((name.clone(), millis.count().map(Duration::from_millis)?))
        })
        .collect();
    let whole = parts.iter().find(|(name, _)| &**name == "triggerExecution");
    let duration = whole
        .map(|(_, duration)| *duration)
        .or_else(|| progress.batch_duration.count().map(Duration::from_millis));
    let sources: Vec<&Source<'_>> =
        progress.sources.iter().flatten().take(MOST_PARTS).map(|Object(source)| source).collect();
    let rows = |rows: &mut dyn Iterator<Item = Number>| {
        rows.filter_map(Number::count).reduce(u64::saturating_add)
    };
    let rate = |of: fn(&Source<'_>) -> Option<f64>| {
        let rates = sources.iter().filter_map(|source| of(source));
        rates.filter(|rate| *rate >= 0.0).reduce(|sum, rate| sum + rate)
    };
    let input_rows = rows(&mut sources.iter().map(|source| source.input_rows));
    Some(StreamingBatch {
        id: progress.batch_id.count()?,
        start,
        duration,
        input_rows: input_rows.or(progress.input_rows.count()),
        input_rows_per_second: rate(|source| source.input_rate.0),
        processed_rows_per_second: rate(|source| source.processed_rate.0),
        output_rows: progress.sink.0.output_rows.count(),
        sources: sources.iter().map(|source| source_progress(source)).collect(),
        state: progress
            .state
            .iter()
            .flatten()
            .take(MOST_PARTS)
            .map(|Object(operator)| state_operator(operator, checks))
            .collect(),
        parts,
    })
}

fn source_progress(source: &Source<'_>) -> SourceProgress {
    // `KafkaV2[Subscribe[orders]]`: arguments may name anything.
    let description = source.description.get().unwrap_or_default();
    let name = description.split(['[', '(', '{', ' ']).next().unwrap_or_default();
    SourceProgress {
        name: name.chars().take(100).collect(),
        input_rows: source.input_rows.count(),
        backlog: source.latest_offset.and_then(|latest| backlog(latest, source.end_offset?)),
    }
}

/// Offsets by topic and partition.
type Offsets = BTreeMap<String, BTreeMap<String, u64>>;

/// How far `end` is behind `latest`, where both are a number, or numbers by
/// topic and partition as Kafka's are. A partition that only one of them
/// knows is left out.
fn backlog(latest: &RawValue, end: &RawValue) -> Option<u64> {
    let (latest, end) = (unquoted(latest)?, unquoted(end)?);
    if let (Ok(latest), Ok(end)) = (latest.parse::<u64>(), end.parse::<u64>()) {
        return Some(latest.saturating_sub(end));
    }
    let latest: Offsets = serde_json::from_str(&latest).ok()?;
    let end: Offsets = serde_json::from_str(&end).ok()?;
    let mut behind = None;
    for (topic, partitions) in &latest {
        for (partition, offset) in partitions {
            if let Some(end) = end.get(topic).and_then(|partitions| partitions.get(partition)) {
                let sum: &mut u64 = behind.get_or_insert(0);
                *sum = sum.saturating_add(offset.saturating_sub(*end));
            }
        }
    }
    behind
}

/// Offsets are JSON, or JSON inside a text. `None` for null and for what is
/// longer than offsets of a hundred thousand partitions.
fn unquoted(json: &RawValue) -> Option<String> {
    let json = json.get();
    if json == "null" || json.len() > 4 << 20 {
        return None;
    }
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { Some(json.to_owned()) }
}

fn state_operator(operator: &StateProgress<'_>, checks: &mut Checks) -> StateOperator {
    let rows = operator.rows.count();
    let told = operator.memory.get();
    let memory_bytes = operator.memory.count().filter(|bytes| *bytes <= MOST_STATE_MEMORY);
    if told.is_some() && memory_bytes.is_none() {
        checks.mark(DataQuality::ImplausibleValues);
    }
    StateOperator {
        name: text(&operator.name, 100),
        rows,
        rows_updated: operator.rows_updated.count(),
        memory_bytes: memory_bytes.filter(|bytes| *bytes > 0 || rows == Some(0)),
        commit_time: operator.commit.count().map(Duration::from_millis),
        rows_dropped_late: operator.dropped.count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(latest: &str, end: &str) -> Option<u64> {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).expect("JSON");
        backlog(&raw(latest), &raw(end))
    }

    #[test]
    fn how_far_a_source_is_behind() {
        assert_eq!(behind("\"17\"", "\"6\""), Some(11));
        assert_eq!(behind("17", "20"), Some(0));
        let latest = r#"{"orders":{"0":100,"1":50},"new":{"0":9}}"#;
        assert_eq!(behind(latest, r#"{"orders":{"0":90,"1":50}}"#), Some(10));
        let quoted = serde_json::to_string(latest).expect("a text");
        assert_eq!(behind(&quoted, r#"{"orders":{"0":90,"1":20}}"#), Some(40));
        for (latest, end) in [
            ("null", "3"),
            (r#"{"logOffset":4}"#, r#"{"logOffset":4}"#),
            (r#"{"sourceVersion":1,"reservoirId":"a"}"#, r#"{"sourceVersion":1}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(behind(latest, end), None, "{latest}");
        }
    }
}
