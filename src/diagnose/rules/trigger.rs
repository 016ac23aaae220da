//! When a streaming query's batches began and ended: its trigger interval,
//! which no event tells, and which batches outlasted it.

use std::time::Duration;

use super::context::millis;
use crate::config::thresholds::StreamingBehind;
use crate::model::{StreamingBatch, StreamingQuery};

/// Starts that a trigger interval must explain ...
const ON_GRID: f64 = 0.8;
/// ... of at least so many.
const ENOUGH_STARTS: usize = 3;
/// Intervals are sought in steps of so many milliseconds.
const STEP: i64 = 100;
/// Times that are this share of older ones are falling.
const FALLING: f64 = 0.9;

/// Batches that outlast the trigger, one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lateness {
    /// Of the last `of` batches.
    pub(super) late: usize,
    pub(super) of: usize,
    pub(super) interval: Duration,
    /// Median of the late ones.
    pub(super) batch_time: Duration,
}

/// The query's batches without those of its beginning.
pub(super) fn settled<'a>(
    query: &'a StreamingQuery,
    thresholds: &StreamingBehind,
) -> Vec<&'a StreamingBatch> {
    let dropped = query.batches_seen.saturating_sub(query.batches.len() as u64);
    let first = thresholds.first_batches.saturating_sub(usize::try_from(dropped).unwrap_or(0));
    // Without its start in the log, from the first batch that is known.
    let began = query.started.or_else(|| query.batches.first()?.start);
    query
        .batches
        .iter()
        .skip(first)
        .filter(|batch| {
            began.zip(batch.start).is_some_and(|(began, start)| {
                millis(start.as_millisecond() - began.as_millisecond()) >= thresholds.first.get()
            })
        })
        .collect()
}

/// Start and end in milliseconds; `None` where one is not known.
fn span(batch: &StreamingBatch) -> Option<(i64, i64)> {
    Some((batch.start?.as_millisecond(), batch.end()?.as_millisecond()))
}

/// Two batches of which one followed the other, as spans.
fn pairs<'a, 'b: 'a>(
    batches: impl IntoIterator<Item = &'b StreamingBatch> + Clone,
) -> Vec<((i64, i64), (i64, i64))> {
    let next = batches.clone().into_iter().skip(1);
    batches
        .into_iter()
        .zip(next)
        .filter(|(a, b)| a.id + 1 == b.id)
        .filter_map(|(a, b)| Some((span(a)?, span(b)?)))
        .collect()
}

/// The trigger interval: triggers wait for the next multiple of it since the
/// epoch, so starts that were waited for lie on its grid. `None`: there is
/// none, or no batch has waited for it lately.
pub(super) fn interval(query: &StreamingQuery, pause: Duration) -> Option<Duration> {
    let pause = i64::try_from(pause.as_millis()).ok()?;
    let waited: Vec<i64> = pairs(&query.batches)
        .into_iter()
        .filter(|((_, end), (next, _))| next - end > pause)
        .map(|(_, (next, _))| next)
        .collect();
    if waited.len() < ENOUGH_STARTS {
        return None;
    }
    let mut candidates: Vec<i64> = waited
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some((b - a + STEP / 2) / STEP * STEP),
            _ => None,
        })
        .filter(|candidate| *candidate >= STEP)
        .collect();
    candidates.sort_unstable_by_key(|candidate| std::cmp::Reverse(*candidate));
    candidates.dedup();
    let explains = |candidate: &i64| {
        // Starts are late by some milliseconds, never early.
        let late = (candidate / 10).min(pause);
        let on_grid = waited.iter().filter(|start| start.rem_euclid(*candidate) <= late).count();
        on_grid as f64 >= ON_GRID * waited.len() as f64
    };
    candidates.into_iter().find(explains).map(millis)
}

/// `settled`: the batches to judge.
pub(super) fn lateness(
    query: &StreamingQuery,
    settled: &[&StreamingBatch],
    thresholds: &StreamingBehind,
) -> Option<Lateness> {
    let pause = thresholds.pause.get();
    let interval = interval(query, pause)?;
    let pairs = pairs(settled.iter().copied());
    let newest = pairs.get(pairs.len().saturating_sub(thresholds.batches)..)?;
    let judged: Vec<(bool, Duration)> = newest
        .iter()
        .map(|((start, end), (next, _))| {
            let time = millis(end - start);
            (time > interval && millis(next - end) <= pause, time)
        })
        .collect();
    let times: Vec<Duration> =
        judged.iter().filter(|(late, _)| *late).map(|(_, time)| *time).collect();
    let is_over = judged.len() >= thresholds.late
        && judged.iter().rev().take(thresholds.late).all(|(late, _)| !late);
    if times.len() < thresholds.late.max(1) || is_over || are_falling(&times) {
        return None;
    }
    let mut sorted = times.clone();
    sorted.sort_unstable();
    Some(Lateness {
        late: times.len(),
        of: judged.len(),
        interval,
        batch_time: sorted.get(sorted.len() / 2).copied()?,
    })
}

/// The newer half takes clearly less time than the older one.
fn are_falling(times: &[Duration]) -> bool {
    let (older, newer) = times.split_at(times.len() / 2);
    let mean = |times: &[Duration]| {
        times.iter().map(Duration::as_secs_f64).sum::<f64>() / times.len().max(1) as f64
    };
    !older.is_empty() && mean(newer) < FALLING * mean(older)
}
