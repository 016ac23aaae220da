//! Streaming queries that are behind, and others that look like it.

use std::time::Duration;

use crate::diagnose::builders::{at, findings, run};
use crate::diagnose::{Finding, Rule, Severity};
use crate::model::{
    Application, DataQuality, SourceProgress, State, StateOperator, StreamingBatch, StreamingQuery,
    StreamingState,
};

/// `START` of the builders lies on every grid of whole seconds that divides
/// 100.
const TRIGGER: i64 = 10_000;

/// Batches of these durations (milliseconds), each started on the next
/// multiple of ten seconds, or at once where the one before outlasted it.
fn on_grid(durations: &[i64]) -> StreamingQuery {
    let mut next = 0;
    let starts = durations.iter().map(|duration| {
        let start = next;
        let grid = (start / TRIGGER + 1) * TRIGGER;
        // Timers wake a little late; a trigger ends a little before the next.
        next = if start + duration >= grid { start + duration + 20 } else { grid + 4 };
        (start, *duration)
    });
    query(&starts.collect::<Vec<_>>())
}

fn query(batches: &[(i64, i64)]) -> StreamingQuery {
    StreamingQuery {
        id: "checkpoint".into(),
        run_id: "0123abcd-0000-0000-0000-000000000000".into(),
        name: Some("secret".into()),
        started: Some(at(0)),
        state: StreamingState::Active,
        ended: None,
        exception: None,
        error_class: None,
        batches: batches
            .iter()
            .enumerate()
            .map(|(id, (start, duration))| StreamingBatch {
                id: id as u64,
                start: Some(at(*start)),
                duration: Some(Duration::from_millis(*duration as u64)),
                parts: vec![("addBatch".into(), Duration::from_millis(*duration as u64 * 9 / 10))],
                input_rows: Some(1_000),
                input_rows_per_second: Some(100.0),
                processed_rows_per_second: Some(100.0),
                output_rows: None,
                sources: Vec::new(),
                state: Vec::new(),
            })
            .collect(),
        batches_seen: batches.len() as u64,
        idle_since: None,
    }
}

fn found(query: StreamingQuery) -> Vec<Finding> {
    findings(&with(query), Rule::StreamingBehind)
}

fn with(query: StreamingQuery) -> Application {
    let mut application = run(2_000);
    application.state = State::Running;
    application.streaming_queries = Some(vec![query]);
    application
}

fn then(first: &[i64], rest: &[i64]) -> Vec<i64> {
    [first, rest].concat()
}

#[test]
fn batches_that_outlast_their_trigger() {
    let query = on_grid(&then(&[4_000; 10], &[13_000; 8]));
    let found = found(query);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Warning);
    let evidence: Vec<(&str, f64)> =
        found[0].evidence.iter().map(|evidence| (evidence.name, evidence.value)).collect();
    assert_eq!(
        evidence[..3],
        [("late_batches", 7.0), ("trigger_interval", 10.0), ("batch_time", 13.0)]
    );
    assert!(!format!("{:?}", found[0]).contains("secret"));
}

#[test]
fn a_high_load_is_no_lateness() {
    assert!(found(on_grid(&[9_800; 40])).is_empty());
    // Four of ten outlast it.
    assert!(found(on_grid(&then(&[4_000; 16], &[13_000; 5]))).is_empty());
}

#[test]
fn a_query_that_catches_up_is_not_behind() {
    let falling: Vec<i64> = (0..10).map(|i| 60_000 - i * 5_000).collect();
    assert!(found(on_grid(&then(&[4_000; 10], &falling))).is_empty());
}

#[test]
fn it_is_over_after_five_good_batches() {
    let behind = then(&[4_000; 10], &[13_000; 8]);
    assert!(found(on_grid(&then(&behind, &[4_000; 6]))).is_empty());
    assert_eq!(found(on_grid(&then(&behind, &[4_000; 3]))).len(), 1);
}

#[test]
fn the_beginning_does_not_count() {
    let mut query = on_grid(&then(&[13_000; 8], &[4_000; 4]));
    query.batches.truncate(9);
    assert!(found(query).is_empty());
}

#[test]
fn without_an_interval_only_the_backlog_speaks() {
    // AvailableNow, and no trigger at all: back to back by design.
    let spans: Vec<(i64, i64)> = (0..30).map(|i| (i * 13_020, 13_000)).collect();
    assert!(found(query(&spans)).is_empty());
    // Data that comes now and then, on no grid.
    let spans: Vec<(i64, i64)> = (0..30).map(|i| (i * 9_137 + i % 7 * 531, 4_000)).collect();
    assert!(found(query(&spans)).is_empty());

    let waiting = |backlogs: &[u64]| {
        let spans: Vec<(i64, i64)> =
            (0..backlogs.len() as i64).map(|i| (i * 13_020, 13_000)).collect();
        let mut query = query(&spans);
        for (batch, backlog) in query.batches.iter_mut().zip(backlogs) {
            let backlog = Some(*backlog);
            batch.sources =
                vec![SourceProgress { name: "Kafka".into(), input_rows: None, backlog }];
        }
        found(query)
    };
    let growing: Vec<u64> = (0..20).map(|i| i * 700).collect();
    let found = waiting(&growing);
    assert!(found[0].headline.contains("grew over 5 batches"), "{}", found[0].headline);
    let by_little: Vec<u64> = (0..20).map(|i| 5_000 + i * 50).collect();
    assert!(waiting(&by_little).is_empty(), "less than a batch in all");
    let up_and_down: Vec<u64> = (0..20).map(|i| 5_000 + i * 700 - i % 3 * 2_000).collect();
    assert!(waiting(&up_and_down).is_empty());
}

#[test]
fn a_query_without_data_waits() {
    let mut query = on_grid(&then(&[4_000; 10], &[13_000; 8]));
    query.idle_since = Some(at(400_000));
    assert!(found(query).is_empty());
    let mut query = on_grid(&then(&[4_000; 10], &[13_000; 8]));
    query.state = StreamingState::Stopped;
    query.ended = Some(at(-3_600_000 + 1_990_000));
    assert!(found(query).is_empty(), "over for more than an hour");
}

#[test]
fn dropped_events_leave_gaps_between_batches() {
    let mut application = with(on_grid(&then(&[4_000; 10], &[13_000; 8])));
    application.data_quality.insert(DataQuality::DroppedEvents);
    assert!(findings(&application, Rule::StreamingBehind).is_empty());
}

#[test]
fn growing_state_is_evidence_and_its_memory_only_where_it_can_be_true() {
    let mut query = on_grid(&then(&[4_000; 10], &[13_000; 8]));
    for (i, batch) in query.batches.iter_mut().enumerate() {
        let operator = |memory_bytes| StateOperator {
            name: "dedupe".into(),
            rows: Some(1_000 * (i as u64 + 1)),
            rows_updated: None,
            memory_bytes,
            commit_time: Some(Duration::from_secs(6)),
            rows_dropped_late: None,
        };
        batch.state = vec![operator(Some(1 << 20)), operator(None)];
    }
    let found = found(query);
    let names: Vec<&str> = found[0].evidence.iter().map(|evidence| evidence.name).collect();
    assert!(names.contains(&"state_growth") && names.contains(&"state_commit_ratio"));
    assert!(!names.contains(&"state_memory"), "one operator does not tell");
    assert!(found[0].advice[0].change.contains("watermark"), "{:?}", found[0].advice);
}
