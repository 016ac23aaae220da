//! What a back end has been told: which series it knows, so that those that
//! leave are ended, and what counters stood at, so that they go on from there.
//! Only what was accepted counts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::wire::Times;
use crate::metrics::catalogue::{Id, Kind};
use crate::metrics::label::Text;
use crate::metrics::{Extra, Histogram, Value};

/// Names a series: a hash of its source's identity, its metric and its label
/// values. 128 bits: no two of them meet.
pub(super) type Key = u128;

/// Where series come from.
#[derive(Debug)]
pub(super) struct Source {
    /// Of `service.name` and `service.instance.id`. Other attributes of the
    /// resource describe: should one of them become known later, the series
    /// are the same.
    pub(super) identity: u128,
    /// The resource, as the beginning of a `ResourceMetrics`.
    pub(super) resource: Vec<u8>,
    /// Since when it is there; nanoseconds since the epoch, 0 where nothing
    /// tells.
    pub(super) start: u64,
}

/// A series that is shown, or was.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) source: Arc<Source>,
    pub(super) id: Id,
    pub(super) labels: Arc<[Text]>,
    pub(super) extra: Extra,
    /// Whether a point was accepted.
    pub(super) sent: bool,
    /// The last round that showed it.
    pub(super) seen: u64,
    /// Of counters and histograms.
    pub(super) last: Option<Box<Last>>,
}

/// The point that was accepted last.
#[derive(Debug, Clone)]
pub(super) struct Last {
    pub(super) value: Value,
    pub(super) times: Times,
}

/// What acceptance of a point means.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) key: Key,
    /// What the counter stood at.
    pub(super) last: Option<Box<Last>>,
    /// The point ended its series.
    pub(super) ended: bool,
}

/// All series that a back end was told of.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) series: HashMap<Key, Known>,
    pub(super) round: u64,
    /// Sources that the last round did not get to: they come first in the
    /// next, so that a back end that takes too little misses points of all
    /// series and not all points of some.
    pub(super) behind: HashSet<u128>,
}

impl Memory {
    pub(super) fn accepted(&mut self, marks: Vec<Mark>) {
        for Mark { key, last, ended } in marks {
            if ended {
                self.series.remove(&key);
            } else if let Some(known) = self.series.get_mut(&key) {
                known.sent = true;
                known.last = last.or_else(|| known.last.take());
            }
        }
    }

    /// Counters stay where they were. Ends are not tried again: either the
    /// back end wants none of what we send, and knows no series then, or it
    /// is this one that it cannot take.
    pub(super) fn refused(&mut self, marks: &[Mark]) {
        for mark in marks.iter().filter(|mark| mark.ended) {
            self.series.remove(&mark.key);
        }
    }

    /// Series that the current round does not show and that the back end is to
    /// be told the end of. Those it never heard of are forgotten; of those that
    /// are still not ended, and of counters that may come back, `most` are
    /// kept. Returns also how many were not.
    ///
    /// Deltas need no end: a counter that is not there did not grow. What it
    /// stood at is kept, so that one that comes back (by name, after trouble
    /// with the store) goes on from there.
    pub(super) fn leaving(&mut self, deltas: bool, most: usize) -> (Vec<Key>, u64) {
        let round = self.round;
        let goes_on = |known: &Known| deltas && is_counted(known.id) && known.last.is_some();
        self.series.retain(|_, known| known.seen == round || known.sent || goes_on(known));
        let mut gone: Vec<(u64, Key)> = self
            .series
            .iter()
            .filter(|(_, known)| known.seen != round)
            .map(|(key, known)| (known.seen, *key))
            .collect();
        gone.sort_unstable();
        let beyond = gone.len().saturating_sub(most);
        for (_, key) in gone.drain(..beyond) {
            self.series.remove(&key);
        }
        let mut ended: Vec<Key> = gone
            .into_iter()
            .map(|(_, key)| key)
            .filter(|key| self.series.get(key).is_some_and(|known| !goes_on(known)))
            .collect();
        ended.sort_unstable();
        (ended, beyond as u64)
    }
}

/// Whether a temporality applies.
pub(super) fn is_counted(id: Id) -> bool {
    matches!(id.metric().kind, Kind::Counter | Kind::Histogram)
}

/// Whether a counter began anew.
pub(super) fn has_shrunk(now: &Value, before: &Value) -> bool {
    match (now, before) {
        (Value::Number(now), Value::Number(before)) => now < before,
        (Value::Histogram(now), Value::Histogram(before)) => {
            now.counts.len() != before.counts.len()
                || now.sum < before.sum
                || now.counts.iter().zip(&before.counts).any(|(now, before)| now < before)
        }
        _ => true,
    }
}

/// What came since; only of one that did not shrink.
pub(super) fn difference(now: &Value, before: &Value) -> Value {
    match (now, before) {
        (Value::Number(now), Value::Number(before)) => Value::Number(now - before),
        (Value::Histogram(now), Value::Histogram(before)) => {
            let pairs = now.counts.iter().zip(&before.counts);
            Value::Histogram(Arc::new(Histogram {
                bounds: now.bounds,
                counts: pairs.map(|(now, before)| now.saturating_sub(*before)).collect(),
                sum: now.sum - before.sum,
                exemplars: now.exemplars.clone(),
            }))
        }
        _ => now.clone(),
    }
}
