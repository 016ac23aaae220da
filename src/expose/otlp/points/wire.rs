//! The parts that messages are put together from.
//!
//! Protobuf lets a message be written as one part after the other: the fields
//! of all parts are its fields. So what many points share (resource, scope,
//! name of the metric, attributes of a stage) is encoded once, by the types of
//! `opentelemetry-proto`, and only copied from then on. What is ours is the
//! one byte and the length that stand before a message inside another one.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar as ExemplarProto, Gauge, Histogram as HistogramProto,
    HistogramDataPoint, Metric as MetricProto, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::super::resource::{scope, text};
use crate::config::otlp::Temporality;
use crate::metrics::catalogue::{Id, Kind, Metric};
use crate::metrics::label::Text;
use crate::metrics::{Exemplar, Extra, Histogram};

/// The point says that its series ended.
const NO_RECORDED_VALUE: u32 = 1;

/// The byte before a message that is field `number` of another one.
const fn key(number: u8) -> u8 {
    // Wire type 2: a length and so many bytes. One byte up to field 15.
    number << 3 | 2
}

/// `ExportMetricsServiceRequest.resource_metrics`.
pub(super) const RESOURCE_METRICS: u8 = key(1);
/// `ResourceMetrics.scope_metrics`.
pub(super) const SCOPE_METRICS: u8 = key(2);
/// `ScopeMetrics.metrics`.
pub(super) const METRICS: u8 = key(2);
/// `data_points` of every sort of data.
pub(super) const DATA_POINTS: u8 = key(1);

/// A message of so many bytes as a field: with its key and its length.
pub(super) fn field_len(len: usize) -> usize {
    1 + prost::length_delimiter_len(len) + len
}

/// What stands before a message of so many bytes.
pub(super) fn begin_field(out: &mut Vec<u8>, key: u8, len: usize) {
    out.push(key);
    // A Vec takes everything.
    let _ = prost::encode_length_delimiter(len, out);
}

fn append(out: &mut Vec<u8>, part: &impl Message) {
    // Likewise.
    let _ = part.encode(out);
}

/// The beginning of a `ResourceMetrics`.
pub(super) fn resource_part(resource: Resource) -> Vec<u8> {
    ResourceMetrics { resource: Some(resource), ..ResourceMetrics::default() }.encode_to_vec()
}

/// The beginning of a `ScopeMetrics`.
pub(super) fn scope_part() -> Vec<u8> {
    ScopeMetrics { scope: Some(scope()), ..ScopeMetrics::default() }.encode_to_vec()
}

/// What stands around the points of a metric.
#[derive(Debug)]
pub(super) struct Frame {
    /// The beginning of a `Metric`: name, description, unit.
    pub(super) before: Vec<u8>,
    /// Which sort of data it has.
    pub(super) data: u8,
    /// What is said of the data after its points.
    pub(super) after: Vec<u8>,
}

impl Frame {
    pub(super) fn of(metric: &Metric, temporality: Temporality) -> Self {
        let mut before = MetricProto {
            name: metric.otel.to_owned(),
            description: metric.help.to_owned(),
            unit: metric.unit.ucum().to_owned(),
            ..MetricProto::default()
        };
        if metric.kind == Kind::Info {
            before.metadata = vec![text("prometheus.type", "info")];
        }
        let chosen = match temporality {
            Temporality::Cumulative => AggregationTemporality::Cumulative,
            Temporality::Delta => AggregationTemporality::Delta,
        };
        let (data, after) = match metric.kind {
            Kind::Gauge => (key(5), Gauge::default().encode_to_vec()),
            Kind::Counter => {
                let sum = Sum {
                    is_monotonic: true,
                    aggregation_temporality: chosen.into(),
                    ..Sum::default()
                };
                (key(7), sum.encode_to_vec())
            }
            // A sum that can go down is cumulative whatever is preferred.
            Kind::Info => {
                let cumulative = AggregationTemporality::Cumulative.into();
                let sum = Sum { aggregation_temporality: cumulative, ..Sum::default() };
                (key(7), sum.encode_to_vec())
            }
            Kind::Histogram => {
                let data = HistogramProto {
                    aggregation_temporality: chosen.into(),
                    ..HistogramProto::default()
                };
                (key(9), data.encode_to_vec())
            }
        };
        Self { before: before.encode_to_vec(), data, after }
    }

    pub(super) fn all(temporality: Temporality) -> Vec<Self> {
        Id::ALL.iter().map(|id| Self::of(id.metric(), temporality)).collect()
    }
}

/// From when to when a point is; nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// 0 where it has none.
    pub(super) start: u64,
    pub(super) time: u64,
}

/// The rest of a number's point, behind its attributes.
///
/// Always a double: a snapshot holds nothing else, a double holds every whole
/// number that it can hold, and a series whose points change between integers
/// and doubles is two series to some back ends.
pub(super) fn number(out: &mut Vec<u8>, told: Option<f64>, times: Times) {
    let point = NumberDataPoint {
        start_time_unix_nano: times.start,
        time_unix_nano: times.time,
        flags: if told.is_none() { NO_RECORDED_VALUE } else { 0 },
        value: told.map(number_data_point::Value::AsDouble),
        ..NumberDataPoint::default()
    };
    append(out, &point);
}

/// The rest of a histogram's point. An end has bounds too: Prometheus ends
/// the series of the buckets that it finds in it.
pub(super) fn histogram(out: &mut Vec<u8>, told: &Histogram, ended: bool, times: Times) {
    let point = HistogramDataPoint {
        start_time_unix_nano: times.start,
        time_unix_nano: times.time,
        flags: if ended { NO_RECORDED_VALUE } else { 0 },
        count: told.count(),
        sum: Some(told.sum),
        bucket_counts: told.counts.clone(),
        explicit_bounds: told.bounds.to_vec(),
        exemplars: told.exemplars.iter().map(exemplar).collect(),
        ..HistogramDataPoint::default()
    };
    append(out, &point);
}

fn exemplar(exemplar: &Exemplar) -> ExemplarProto {
    ExemplarProto {
        time_unix_nano: u64::try_from(exemplar.at.as_nanosecond()).unwrap_or(0),
        trace_id: exemplar.trace_id.0.to_vec(),
        span_id: exemplar.span_id.0.to_vec(),
        value: Some(exemplar::Value::AsDouble(exemplar.value)),
        ..ExemplarProto::default()
    }
}

/// The attributes of a point that its subject has: labels of the scope.
pub(super) fn scope_attributes(out: &mut Vec<u8>, metric: &Metric, labels: &[Text]) {
    attributes(out, metric, metric.scope.labels().iter().copied().zip(labels));
}

/// Those that the metric adds.
pub(super) fn extra_attributes(out: &mut Vec<u8>, metric: &Metric, extra: &Extra) {
    match extra {
        Extra::None => {}
        Extra::One(word) => {
            attributes(out, metric, metric.labels.iter().copied().zip([&Text::Static(word)]));
        }
        Extra::Many(texts) => {
            attributes(out, metric, metric.labels.iter().copied().zip(texts.iter()));
        }
        Extra::Named(texts, named) => {
            attributes(out, metric, metric.labels.iter().copied().zip(texts.iter()));
            attributes(out, metric, named.iter().map(|(name, value)| (&**name, value)));
        }
    }
}

/// The labels as attributes, texts all of them as they are in Prometheus;
/// empty is the same as absent there, and left out here.
fn attributes<'a>(
    out: &mut Vec<u8>,
    metric: &Metric,
    labels: impl Iterator<Item = (&'a str, &'a Text)>,
) {
    let attributes: Vec<KeyValue> = labels
        .map(|(name, value)| (name, value.to_string()))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| text(name, value))
        .collect();
    if metric.kind == Kind::Histogram {
        append(out, &HistogramDataPoint { attributes, ..HistogramDataPoint::default() });
    } else {
        append(out, &NumberDataPoint { attributes, ..NumberDataPoint::default() });
    }
}
