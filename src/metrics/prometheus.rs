//! Writes a snapshot in the two text formats Prometheus reads, through
//! `prometheus-client`.
//!
//! One [`Collector`] walks the snapshot metric by metric: a metric that two
//! collectors wrote would have its `HELP` and `TYPE` twice, which strict
//! parsers refuse.

mod exemplars;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    CounterValueEncoder, DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabel,
    EncodeLabelSet, EncodeLabelValue, GaugeValueEncoder, LabelSetEncoder, LabelValueEncoder,
    NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{self, Registry};

use self::exemplars::{Writer, has_exemplars};
use super::catalogue::{Kind, Metric, Unit};
use super::label::Text;
use super::sample::{Extra, Sample, Value};
use super::snapshot::Snapshot;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// The `Content-Type` of a body in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Writes all series of the snapshot.
///
/// # Errors
/// Only when `out` fails; a `String` does not.
pub fn write(
    out: &mut impl fmt::Write,
    snapshot: &Arc<Snapshot>,
    format: Format,
) -> Result<(), fmt::Error> {
    if format == Format::Prometheus {
        // Which has no exemplars.
        return prometheus_text::encode(out, &registry(snapshot, 0..usize::MAX));
    }
    let mut written = 0;
    let with_exemplars = snapshot.families().enumerate().filter(|(_, one)| has_exemplars(one));
    for (place, family) in with_exemplars {
        text::encode_registry(out, &registry(snapshot, written..place))?;
        let mut out = Writer::new(out, family);
        text::encode_registry(&mut out, &registry(snapshot, place..place + 1))?;
        written = place + 1;
    }
    text::encode(out, &registry(snapshot, written..usize::MAX))
}

/// Of these metrics among those that have series.
fn registry(snapshot: &Arc<Snapshot>, places: Range<usize>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposition { snapshot: Arc::clone(snapshot), places }));
    registry
}

/// The snapshot as text.
pub fn render(snapshot: &Arc<Snapshot>, format: Format) -> String {
    // A series is about 110 bytes of text; growing by doubling would copy
    // what can be tens of megabytes.
    let mut out = String::with_capacity(snapshot.series() * 128);
    // A String takes everything.
    let _ = write(&mut out, snapshot, format);
    out
}

#[derive(Debug)]
struct Exposition {
    snapshot: Arc<Snapshot>,
    places: Range<usize>,
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for family in self.snapshot.families().skip(self.places.start).take(self.places.len()) {
            let metric = family.metric;
            let unit = unit(metric.unit);
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Info => MetricType::Info,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut encoder =
                encoder.encode_descriptor(metric.base_name(), metric.help, unit.as_ref(), kind)?;
            for sample in &family.samples {
                let labels = Labels { metric, sample };
                match (metric.kind, &sample.value) {
                    (Kind::Info, _) => encoder.encode_info(&labels)?,
                    (Kind::Counter, Value::Number(value)) => encoder
                        .encode_family(&labels)?
                        .encode_counter(&Number(*value), None::<&Exemplar<NoLabelSet, f64>>)?,
                    (_, Value::Number(value)) => {
                        encoder.encode_family(&labels)?.encode_gauge(&Number(*value))?;
                    }
                    (_, Value::Histogram(histogram)) => {
                        let buckets: Vec<(f64, u64)> = histogram.buckets().collect();
                        encoder.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                            histogram.sum,
                            histogram.count(),
                            &buckets,
                            None,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn unit(unit: Unit) -> Option<registry::Unit> {
    match unit {
        Unit::Things(_) => None,
        Unit::Seconds => Some(registry::Unit::Seconds),
        Unit::Bytes => Some(registry::Unit::Bytes),
        // The crate's own `Ratios` is a plural, which is not the base unit.
        Unit::Ratio | Unit::BytesPerSecond | Unit::ThingsPerSecond(_) => {
            unit.word().map(|word| registry::Unit::Other(word.to_owned()))
        }
    }
}

struct Labels<'a> {
    metric: &'static Metric,
    sample: &'a Sample,
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        let Self { metric, sample } = self;
        let mut label = |name: &str, value: &Text| (name, value).encode(encoder.encode_label());
        for (name, value) in metric.scope.labels().iter().zip(sample.labels.iter()) {
            label(name, value)?;
        }
        match &sample.extra {
            Extra::None => Ok(()),
            Extra::One(value) => {
                let name = metric.labels.first().copied().unwrap_or_default();
                label(name, &Text::Static(value))
            }
            Extra::Many(values) | Extra::Named(values, _) => metric
                .labels
                .iter()
                .zip(values.iter())
                .try_for_each(|(name, value)| label(name, value)),
        }?;
        sample.extra.named().iter().try_for_each(|(name, value)| label(name, value))
    }
}

impl EncodeLabelValue for &Text {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        match self {
            Text::Static(text) => text.encode(encoder),
            Text::Shared(text) => EncodeLabelValue::encode(&&**text, encoder),
            Text::Number(number) => EncodeLabelValue::encode(number, encoder),
        }
    }
}

/// Whole numbers are written without a fraction: `3`, not `3.0`.
#[derive(Debug)]
struct Number(f64);

impl Number {
    /// Up to here a float holds every whole number exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;

    fn whole(&self) -> Option<i64> {
        (self.0.fract() == 0.0 && self.0.abs() < Self::EXACT).then_some(self.0 as i64)
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, encoder: &mut GaugeValueEncoder) -> fmt::Result {
        match self.whole() {
            Some(whole) => EncodeGaugeValue::encode(&whole, encoder),
            None => EncodeGaugeValue::encode(&self.0, encoder),
        }
    }
}

impl EncodeCounterValue for Number {
    fn encode(&self, encoder: &mut CounterValueEncoder) -> fmt::Result {
        match self.whole().and_then(|whole| u64::try_from(whole).ok()) {
            Some(whole) => EncodeCounterValue::encode(&whole, encoder),
            None => EncodeCounterValue::encode(&self.0, encoder),
        }
    }
}
