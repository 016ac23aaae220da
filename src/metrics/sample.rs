//! One series and its value; a histogram is one sample and many series.

use std::num::NonZeroI64;
use std::sync::Arc;

use jiff::Timestamp;

use super::label::Text;
use crate::model::{SpanId, TraceId};

/// Values of a metric's own labels, beside those of its scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Extra {
    None,
    One(&'static str),
    Many(Arc<[Text]>),
    /// Values of the metric's own labels, and labels that only some of its
    /// series have, with their names.
    Named(Arc<[Text]>, Arc<[(Arc<str>, Text)]>),
}

impl Extra {
    /// Labels that only some series of the metric have.
    pub fn named(&self) -> &[(Arc<str>, Text)] {
        match self {
            Self::Named(_, named) => named,
            Self::None | Self::One(_) | Self::Many(_) => &[],
        }
    }
}

/// What a sample tells, by the kind of its metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Finite.
    Number(f64),
    Histogram(Arc<Histogram>),
}

impl Value {
    /// The number; `None` of a histogram.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Histogram(_) => None,
        }
    }

    /// Lines of a text format.
    pub(super) fn series(&self) -> usize {
        match self {
            Self::Number(_) => 1,
            // Its buckets, the one without bound, sum and count.
            Self::Histogram(histogram) => histogram.bounds.len() + 3,
        }
    }
}

/// How often values were how large, in the metric's unit: as OTLP carries it
/// too, with explicit bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Upper bounds, inclusive, ascending.
    pub bounds: &'static [f64],
    /// Of each bucket by itself, not cumulated: one for each bound, and one
    /// for what is over the last.
    pub counts: Vec<u64>,
    /// Of all values.
    pub sum: f64,
    /// The latest of some buckets, ascending by value; none where no traces
    /// are sent.
    pub exemplars: Vec<Exemplar>,
}

/// One of the values that were counted, and the trace that shows where it
/// comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar {
    pub value: f64,
    pub at: Timestamp,
    pub trace_id: TraceId,
    pub span_id: SpanId,
}

impl Histogram {
    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Each bucket with its upper bound.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied())
    }

    /// The bucket that a value is counted in.
    pub fn bucket_of(bounds: &[f64], value: f64) -> usize {
        bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len())
    }
}

/// One series and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Values of the labels of its metric's scope: shared by all series of
    /// the subject.
    pub labels: Arc<[Text]>,
    pub extra: Extra,
    pub value: Value,
    /// Of counters and histograms by name: since when they count, in
    /// milliseconds since the epoch. The daemon's own count since its start.
    pub since_ms: Option<NonZeroI64>,
}

impl Sample {
    /// Label values in the order of
    /// [`Metric::label_names`](super::catalogue::Metric::label_names).
    pub fn label_values(&self) -> impl Iterator<Item = Text> {
        let (one, many) = match &self.extra {
            Extra::None => (None, &[][..]),
            Extra::One(text) => (Some(Text::Static(text)), &[][..]),
            Extra::Many(texts) | Extra::Named(texts, _) => (None, &texts[..]),
        };
        self.labels.iter().cloned().chain(one).chain(many.iter().cloned())
    }
}
