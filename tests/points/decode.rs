//! Requests read back, and the text of `/metrics`, both as the same thing:
//! series of Prometheus with their values.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, HistogramDataPoint, Metric, NumberDataPoint, number_data_point,
};
use prost::Message;
use spark_exporter::expose::otlp::deliver::Request;

use crate::naming::prometheus_name;

/// A series of Prometheus: its name and its labels.
pub(crate) type Series = (String, BTreeMap<String, String>);

pub(crate) fn decode(request: &Request) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest::decode(request.body.clone()).expect("a request")
}

pub(crate) fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match &attribute.value.as_ref().unwrap().value {
        Some(any_value::Value::StringValue(text)) => (attribute.key.clone(), text.clone()),
        other => panic!("{}: {other:?} is no text", attribute.key),
    };
    let map: BTreeMap<_, _> = attributes.iter().map(text).collect();
    assert_eq!(map.len(), attributes.len(), "a key twice: {attributes:?}");
    assert!(map.values().all(|value| !value.is_empty()), "an empty attribute: {attributes:?}");
    map
}

/// One point, whichever sort it is.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Attributes of its resource.
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) metric: Metric,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) start: u64,
    pub(crate) time: u64,
    pub(crate) ended: bool,
    pub(crate) told: Told,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    Nothing,
    Number(f64),
    Histogram(Box<HistogramDataPoint>),
}

impl Point {
    fn number(
        resource: &BTreeMap<String, String>,
        metric: &Metric,
        point: &NumberDataPoint,
    ) -> Self {
        let told = match point.value {
            None => Told::Nothing,
            Some(number_data_point::Value::AsDouble(value)) => Told::Number(value),
            Some(number_data_point::Value::AsInt(value)) => panic!("{}: {value}", metric.name),
        };
        assert!(point.exemplars.is_empty() && point.flags <= 1);
        Self {
            resource: resource.clone(),
            metric: metric.clone(),
            attributes: texts(&point.attributes),
            start: point.start_time_unix_nano,
            time: point.time_unix_nano,
            ended: point.flags == 1,
            told,
        }
    }

    fn histogram(
        resource: &BTreeMap<String, String>,
        metric: &Metric,
        point: &HistogramDataPoint,
    ) -> Self {
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert!(point.explicit_bounds.iter().all(|bound| bound.is_finite()));
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
        assert!(point.min.is_none() && point.max.is_none());
        Self {
            resource: resource.clone(),
            metric: metric.clone(),
            attributes: texts(&point.attributes),
            start: point.start_time_unix_nano,
            time: point.time_unix_nano,
            ended: point.flags == 1,
            told: Told::Histogram(Box::new(point.clone())),
        }
    }

    pub(crate) fn is_monotonic_sum(&self) -> bool {
        matches!(&self.metric.data, Some(Data::Sum(sum)) if sum.is_monotonic)
    }

    /// `None` of a gauge.
    pub(crate) fn temporality(&self) -> Option<AggregationTemporality> {
        let number = match self.metric.data.as_ref().unwrap() {
            Data::Sum(sum) => sum.aggregation_temporality,
            Data::Histogram(histogram) => histogram.aggregation_temporality,
            Data::Gauge(_) => return None,
            other => panic!("{other:?}"),
        };
        Some(AggregationTemporality::try_from(number).unwrap())
    }

    /// What a back end tells it from others by.
    pub(crate) fn identity(&self) -> (String, String, String, BTreeMap<String, String>) {
        let of = |key: &str| self.resource[key].clone();
        let (name, instance) = (of("service.name"), of("service.instance.id"));
        (name, instance, self.metric.name.clone(), self.attributes.clone())
    }
}

/// All points in order. Metrics come without their points.
pub(crate) fn all(requests: &[Request]) -> Vec<Point> {
    let mut points = Vec::new();
    for request in requests {
        let before = points.len();
        for group in decode(request).resource_metrics {
            let resource = texts(&group.resource.unwrap().attributes);
            let [scope] = &group.scope_metrics[..] else { panic!("scopes") };
            let own = scope.scope.as_ref().unwrap();
            assert_eq!(own.name, "spark-exporter");
            assert_eq!(own.version, env!("CARGO_PKG_VERSION"));
            for whole in &scope.metrics {
                let mut metric = whole.clone();
                match metric.data.as_mut().unwrap() {
                    Data::Gauge(gauge) => gauge.data_points.clear(),
                    Data::Sum(sum) => sum.data_points.clear(),
                    Data::Histogram(histogram) => histogram.data_points.clear(),
                    other => panic!("{other:?}"),
                }
                let number = |point| Point::number(&resource, &metric, point);
                match whole.data.as_ref().unwrap() {
                    Data::Gauge(gauge) => points.extend(gauge.data_points.iter().map(number)),
                    Data::Sum(sum) => points.extend(sum.data_points.iter().map(number)),
                    Data::Histogram(histogram) => {
                        let point = |point| Point::histogram(&resource, &metric, point);
                        points.extend(histogram.data_points.iter().map(point));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!((points.len() - before) as u64, request.items);
    }
    points
}

/// The series that Prometheus makes of points, with their values.
pub(crate) fn series(points: &[Point]) -> BTreeMap<Series, f64> {
    let mut series = BTreeMap::new();
    let mut put = |name: String, labels: BTreeMap<String, String>, value: f64| {
        let twice = series.insert((name.clone(), labels), value);
        assert_eq!(twice, None, "{name} twice");
    };
    for point in points {
        let name = prometheus_name(&point.metric);
        match &point.told {
            Told::Nothing => {}
            Told::Number(value) => put(name, point.attributes.clone(), *value),
            Told::Histogram(histogram) => {
                put(format!("{name}_sum"), point.attributes.clone(), histogram.sum.unwrap());
                put(format!("{name}_count"), point.attributes.clone(), histogram.count as f64);
                let bounds = histogram.explicit_bounds.iter().copied().chain([f64::INFINITY]);
                let mut so_far = 0;
                for (bound, count) in bounds.zip(&histogram.bucket_counts) {
                    so_far += count;
                    let mut labels = point.attributes.clone();
                    labels.insert("le".to_owned(), le(bound));
                    put(format!("{name}_bucket"), labels, so_far as f64);
                }
            }
        }
    }
    series
}

/// A bound as a number writes it: text formats differ in `1` and `1.0`.
pub(crate) fn le(bound: f64) -> String {
    if bound.is_infinite() { "+Inf".to_owned() } else { bound.to_string() }
}

/// The series of a text in Prometheus' format; empty labels are none.
pub(crate) fn read_text(text: &str) -> BTreeMap<Series, f64> {
    let line = |line: &str| {
        let (head, value) = line.rsplit_once(' ').unwrap();
        let (name, mut rest) = head.split_once('{').unwrap_or((head, "}"));
        let mut labels = BTreeMap::new();
        while rest != "}" {
            let (label, after) = rest.split_once("=\"").unwrap();
            let mut value = String::new();
            let mut characters = after.char_indices();
            let end = loop {
                match characters.next().unwrap() {
                    (place, '"') => break place,
                    (_, '\\') => value.push(match characters.next().unwrap().1 {
                        'n' => '\n',
                        other => other,
                    }),
                    (_, other) => value.push(other),
                }
            };
            rest = after[end + 1..].trim_start_matches(',');
            if label == "le" && value != "+Inf" {
                value = le(value.parse().unwrap());
            }
            if !value.is_empty() {
                labels.insert(label.to_owned(), value);
            }
        }
        ((name.to_owned(), labels), value.parse().unwrap())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}
