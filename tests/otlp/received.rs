//! What arrived, out of OTLP's JSON: one entry a data point, span and log
//! record, with the resource it came under.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

pub(crate) type Attributes = BTreeMap<String, String>;

#[derive(Debug, Default, Clone)]
pub(crate) struct Received {
    pub(crate) points: Vec<Point>,
    pub(crate) spans: Vec<Span>,
    pub(crate) records: Vec<Record>,
    /// Requests (batches) with metrics, in the order in which they came: where
    /// each one's points begin.
    pub(crate) metric_batches: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) resource: Attributes,
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) description: String,
    pub(crate) kind: PointKind,
    pub(crate) attributes: Attributes,
    pub(crate) start: u64,
    pub(crate) time: u64,
    /// Whether it says that the series has ended.
    pub(crate) ended: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PointKind {
    Gauge(f64),
    Sum { value: f64, monotonic: bool, delta: bool },
    Histogram { bounds: Vec<f64>, counts: Vec<u64>, count: u64, sum: f64, delta: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) resource: Attributes,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for a root.
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: Attributes,
    /// 0 unset, 1 ok, 2 error.
    pub(crate) status: u64,
    pub(crate) message: String,
    pub(crate) events: Vec<Event>,
    /// Trace and span.
    pub(crate) links: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) time: u64,
    pub(crate) attributes: Attributes,
}

#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) resource: Attributes,
    pub(crate) time: u64,
    pub(crate) severity: u64,
    pub(crate) severity_text: String,
    pub(crate) event_name: String,
    pub(crate) body: String,
    pub(crate) attributes: Attributes,
    pub(crate) trace: String,
    pub(crate) span: String,
}

impl Received {
    /// Adds what has come to the end of a file of the Collector's since so many
    /// bytes; how many have been read now. A line that is still being written
    /// waits.
    pub(crate) fn read_on(&mut self, file: &Path, from: u64) -> u64 {
        let Ok(mut file) = File::open(file) else { return from };
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut text)).unwrap();
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in text[..whole].split(|byte| *byte == b'\n') {
            // One is cut off where the Collector was killed.
            if let Ok(batch) = serde_json::from_slice(line) {
                self.add(&batch);
            }
        }
        from + whole as u64
    }

    fn add(&mut self, batch: &Value) {
        if !list(batch, "resourceMetrics").is_empty() {
            self.metric_batches.push(self.points.len());
        }
        for part in list(batch, "resourceMetrics") {
            let resource = attributes(&part["resource"]);
            for scope in list(part, "scopeMetrics") {
                assert_eq!(scope["scope"]["name"], "spark-exporter");
                for metric in list(scope, "metrics") {
                    self.add_metric(&resource, metric);
                }
            }
        }
        for part in list(batch, "resourceSpans") {
            let resource = attributes(&part["resource"]);
            for scope in list(part, "scopeSpans") {
                self.spans.extend(list(scope, "spans").iter().map(|span| a_span(&resource, span)));
            }
        }
        for part in list(batch, "resourceLogs") {
            let resource = attributes(&part["resource"]);
            for scope in list(part, "scopeLogs") {
                let records = list(scope, "logRecords");
                self.records.extend(records.iter().map(|record| a_record(&resource, record)));
            }
        }
    }

    fn add_metric(&mut self, resource: &Attributes, metric: &Value) {
        let data = ["gauge", "sum", "histogram"]
            .into_iter()
            .find(|kind| metric[*kind].is_object())
            .unwrap_or_else(|| panic!("{} has no kind of its own: {metric}", metric["name"]));
        let delta = match metric[data]["aggregationTemporality"].as_u64() {
            Some(1) => true,
            Some(2) => false,
            None if data == "gauge" => false,
            other => panic!("{}: temporality {other:?}", metric["name"]),
        };
        for point in list(&metric[data], "dataPoints") {
            let kind = match data {
                "gauge" => PointKind::Gauge(value(point)),
                "sum" => PointKind::Sum {
                    value: value(point),
                    monotonic: metric[data]["isMonotonic"] == true,
                    delta,
                },
                _ => PointKind::Histogram {
                    bounds: list(point, "explicitBounds").iter().map(float).collect(),
                    counts: list(point, "bucketCounts").iter().map(whole).collect(),
                    count: whole(&point["count"]),
                    sum: float(&point["sum"]),
                    delta,
                },
            };
            self.points.push(Point {
                resource: resource.clone(),
                name: text(&metric["name"]),
                unit: text(&metric["unit"]),
                description: text(&metric["description"]),
                kind,
                attributes: attributes(point),
                start: whole(&point["startTimeUnixNano"]),
                time: whole(&point["timeUnixNano"]),
                ended: whole(&point["flags"]) & 1 == 1,
            });
        }
    }

    /// The spans of a run, each once: what was sent twice is an error.
    pub(crate) fn trace_of(&self, app_id: &str) -> Vec<&Span> {
        let spans: Vec<&Span> = self
            .spans
            .iter()
            .filter(|span| span.resource.get("spark.application.id").is_some_and(|id| id == app_id))
            .collect();
        let mut ids: Vec<(&str, &str)> =
            spans.iter().map(|span| (&*span.trace, &*span.id)).collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "spans of {app_id} came twice");
        spans
    }

    pub(crate) fn summary(&self) -> String {
        let mut names: Vec<&str> = self.points.iter().map(|point| &*point.name).collect();
        names.sort_unstable();
        names.dedup();
        format!(
            "{} points of {} metrics in {} batches, {} spans, {} log records",
            self.points.len(),
            names.len(),
            self.metric_batches.len(),
            self.spans.len(),
            self.records.len()
        )
    }
}

fn a_span(resource: &Attributes, span: &Value) -> Span {
    Span {
        resource: resource.clone(),
        trace: text(&span["traceId"]),
        id: text(&span["spanId"]),
        parent: text(&span["parentSpanId"]),
        name: text(&span["name"]),
        kind: whole(&span["kind"]),
        start: whole(&span["startTimeUnixNano"]),
        end: whole(&span["endTimeUnixNano"]),
        attributes: attributes(span),
        status: whole(&span["status"]["code"]),
        message: text(&span["status"]["message"]),
        events: list(span, "events")
            .iter()
            .map(|event| Event {
                name: text(&event["name"]),
                time: whole(&event["timeUnixNano"]),
                attributes: attributes(event),
            })
            .collect(),
        links: list(span, "links")
            .iter()
            .map(|link| (text(&link["traceId"]), text(&link["spanId"])))
            .collect(),
    }
}

fn a_record(resource: &Attributes, record: &Value) -> Record {
    Record {
        resource: resource.clone(),
        time: whole(&record["timeUnixNano"]),
        severity: whole(&record["severityNumber"]),
        severity_text: text(&record["severityText"]),
        event_name: text(&record["eventName"]),
        body: any(&record["body"]),
        attributes: attributes(record),
        trace: text(&record["traceId"]),
        span: text(&record["spanId"]),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// 64-bit numbers are texts in JSON; 0 where it is left out.
fn whole(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.parse().unwrap_or_else(|_| panic!("{value} is no number")),
        Value::Number(number) => number.as_u64().unwrap_or_else(|| panic!("{value} is negative")),
        _ => 0,
    }
}

fn float(value: &Value) -> f64 {
    match value {
        // As NaN and the infinities are written, and 64-bit numbers.
        Value::String(text) => text.parse().unwrap_or_else(|_| panic!("{value} is no number")),
        _ => value.as_f64().unwrap_or_default(),
    }
}

fn value(point: &Value) -> f64 {
    float(if point["asInt"].is_null() { &point["asDouble"] } else { &point["asInt"] })
}

fn attributes(holder: &Value) -> Attributes {
    let mut all = Attributes::new();
    for pair in list(holder, "attributes") {
        let key = text(&pair["key"]);
        let twice = all.insert(key.clone(), any(&pair["value"]));
        assert!(twice.is_none(), "{key} stands twice in {holder}");
    }
    all
}

/// Any value as text; a list as its members between commas.
fn any(value: &Value) -> String {
    let Some((kind, value)) = value.as_object().and_then(|pairs| pairs.iter().next()) else {
        return String::new();
    };
    match (kind.as_str(), value) {
        ("arrayValue", list_of) => {
            list(list_of, "values").iter().map(any).collect::<Vec<_>>().join(",")
        }
        // In one way, whole or not.
        ("doubleValue", _) => float(value).to_string(),
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    }
}
