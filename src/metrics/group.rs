//! The series of one subject (a run, a stage attempt, an executor, a
//! finding), collected before it is decided whether they fit: a subject is in
//! an exposition as a whole or not at all.

use std::collections::BTreeMap;
use std::num::NonZeroI64;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::catalogue::{CATALOGUE, Id};
use super::label::Text;
use super::sample::{Extra, Histogram, Sample, Value};
use super::snapshot::Family;

/// Series of one subject.
#[derive(Debug)]
pub(super) struct Group {
    /// Values of the labels of its scope.
    labels: Arc<[Text]>,
    series: Vec<(Id, Sample)>,
    /// Since when those count that come next.
    since_ms: Option<NonZeroI64>,
}

impl Group {
    pub(super) fn new(labels: Arc<[Text]>) -> Self {
        Self { labels, series: Vec::new(), since_ms: None }
    }

    pub(super) fn len(&self) -> usize {
        self.series.iter().map(|(_, sample)| sample.value.series()).sum()
    }

    /// The series that are added from now on count since then; milliseconds
    /// since the epoch.
    pub(super) fn since(&mut self, ms: i64) {
        self.since_ms = NonZeroI64::new(ms);
    }

    /// Adds a series, unless the value is missing or no finite number.
    pub(super) fn add(&mut self, id: Id, value: impl Into<Told>) {
        self.with(id, Extra::None, value);
    }

    /// The same with the value of the metric's own label.
    pub(super) fn add_for(&mut self, id: Id, label: &'static str, value: impl Into<Told>) {
        self.with(id, Extra::One(label), value);
    }

    pub(super) fn with(&mut self, id: Id, extra: Extra, value: impl Into<Told>) {
        let value = match value.into() {
            Told::Number(value) if value.is_finite() => Value::Number(value),
            Told::Histogram(histogram) => Value::Histogram(Arc::new(histogram)),
            Told::Number(_) | Told::Nothing => return,
        };
        let labels = Arc::clone(&self.labels);
        self.series.push((id, Sample { labels, extra, value, since_ms: self.since_ms }));
    }
}

/// A sample's value, or nothing where the source cannot tell.
#[derive(Debug, Clone)]
pub(super) enum Told {
    Number(f64),
    Histogram(Histogram),
    Nothing,
}

impl From<f64> for Told {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}
impl From<Histogram> for Told {
    fn from(histogram: Histogram) -> Self {
        Self::Histogram(histogram)
    }
}
impl From<bool> for Told {
    fn from(value: bool) -> Self {
        Self::Number(f64::from(u8::from(value)))
    }
}
impl From<u64> for Told {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}
impl From<u32> for Told {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}
impl From<i32> for Told {
    fn from(value: i32) -> Self {
        Self::Number(value.into())
    }
}
impl From<usize> for Told {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}
/// In seconds.
impl From<Duration> for Told {
    fn from(value: Duration) -> Self {
        Self::Number(value.as_secs_f64())
    }
}
/// In seconds since the epoch, to the millisecond: Spark has no finer clock.
impl From<Timestamp> for Told {
    fn from(value: Timestamp) -> Self {
        Self::Number(value.as_millisecond() as f64 / 1_000.0)
    }
}
impl<T: Into<Self>> From<Option<T>> for Told {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

/// Takes groups as long as they fit, and counts what does not.
#[derive(Debug)]
pub(super) struct Builder {
    families: Vec<Family>,
    /// Series that may still come.
    left: usize,
    dropped: BTreeMap<&'static str, u64>,
}

impl Builder {
    pub(super) fn new(limit: usize) -> Self {
        let families =
            CATALOGUE.iter().map(|metric| Family { metric, samples: Vec::new() }).collect();
        Self { families, left: limit, dropped: BTreeMap::new() }
    }

    /// Keeps room for series that are added at the end whatever happens.
    pub(super) fn reserve(&mut self, series: usize) {
        self.left = self.left.saturating_sub(series);
    }

    /// Adds the group if all of it fits.
    pub(super) fn admit(&mut self, group: Group) -> bool {
        let Some(left) = self.left.checked_sub(group.len()) else {
            self.drop("series_limit", group.len());
            return false;
        };
        self.left = left;
        self.add(group);
        true
    }

    /// Adds a group for which room was reserved.
    pub(super) fn add(&mut self, group: Group) {
        for (id, sample) in group.series {
            self.families[id as usize].samples.push(sample);
        }
    }

    pub(super) fn drop(&mut self, reason: &'static str, series: usize) {
        if series > 0 {
            *self.dropped.entry(reason).or_default() += series as u64;
        }
    }

    pub(super) fn dropped(&self) -> &BTreeMap<&'static str, u64> {
        &self.dropped
    }

    pub(super) fn series(&self) -> usize {
        self.families.iter().map(Family::series).sum()
    }

    pub(super) fn finish(self) -> (Vec<Family>, BTreeMap<&'static str, u64>) {
        (self.families, self.dropped)
    }
}
