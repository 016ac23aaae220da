//! An independent decoder: each request caught on its way to the Collector,
//! read by Google's protobuf in Python, says what the Collector says it got.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

use crate::collector::{Collector, Options};
use crate::common::real::{part, root};
use crate::received::{PointKind, Received};
use crate::tap::{Caught, Tap};
use crate::world::{RUNS, SOON, Setup, logs};

/// What was handed on, by the decoder: rows as texts, and how often each.
fn decoded(caught: &[Caught], protocol: &str) -> BTreeMap<String, usize> {
    let folder = tempfile::tempdir().unwrap();
    for (number, request) in caught.iter().filter(|request| request.handed_on).enumerate() {
        let signal = match request.path.as_str() {
            "/v1/metrics" | "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => {
                "metrics"
            }
            "/v1/traces" | "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => {
                "traces"
            }
            "/v1/logs" | "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => "logs",
            other => panic!("nobody asked for {other}"),
        };
        let header = if protocol == "grpc" { "grpc-encoding" } else { "content-encoding" };
        let encoding = match request.header(header) {
            "" => "identity",
            given => given,
        };
        let name = format!("{number:06}.{protocol}.{encoding}.{signal}");
        std::fs::write(folder.path().join(name), &request.body).unwrap();
    }
    let python = part(&["python-tools"]).join("bin/python");
    let output = Command::new(python)
        .arg("-B")
        .arg(root().join("tests/otlp/decode.py"))
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    counted(text.lines().map(|line| serde_json::from_str(line).unwrap()))
}

/// As `serde_json` writes them: objects by key, numbers in one way.
fn counted(rows: impl Iterator<Item = Value>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.to_string()).or_default() += 1;
    }
    counts
}

/// The same rows out of what the Collector wrote.
fn written(received: &Received) -> BTreeMap<String, usize> {
    let instance = |resource: &BTreeMap<String, String>| {
        resource.get("service.instance.id").cloned().unwrap_or_default()
    };
    let points = received.points.iter().map(|point| {
        let (kind, values) = match &point.kind {
            PointKind::Gauge(value) => ("gauge", vec![*value]),
            PointKind::Sum { value, .. } => ("sum", vec![*value]),
            PointKind::Histogram { bounds, counts, count, sum, .. } => {
                let mut values = bounds.clone();
                values.extend(counts.iter().map(|count| *count as f64));
                values.extend([*count as f64, *sum]);
                ("histogram", values)
            }
        };
        json!([
            "point",
            instance(&point.resource),
            point.name,
            point.unit,
            kind,
            point.attributes,
            point.start,
            point.time,
            point.ended,
            values
        ])
    });
    let spans = received.spans.iter().map(|span| {
        let events: Vec<_> = span
            .events
            .iter()
            .map(|event| json!([event.name, event.time, event.attributes]))
            .collect();
        json!([
            "span",
            instance(&span.resource),
            span.trace,
            span.id,
            span.parent,
            span.name,
            span.kind,
            span.start,
            span.end,
            span.attributes,
            events,
            span.links,
            span.status,
            span.message
        ])
    });
    let records = received.records.iter().map(|record| {
        json!([
            "record",
            instance(&record.resource),
            record.time,
            record.severity,
            record.severity_text,
            record.event_name,
            record.body,
            record.attributes,
            record.trace,
            record.span
        ])
    });
    counted(points.chain(spans).chain(records))
}

async fn both_read_the_same(protocol: &str, compression: &str) {
    let grpc = protocol == "grpc";
    let collector = Collector::start(Options::default());
    let target = if grpc { collector.grpc() } else { collector.http() };
    let tap = Tap::before(&target, grpc).await;
    let logs = logs(&RUNS[..4]);
    let exporter = Setup::to(protocol, &tap.url())
        .with("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
        .start(logs.path());
    exporter.settled(4).await;
    collector.until("all three signals", SOON, |received| {
        let all = [received.points.len(), received.spans.len(), received.records.len()];
        all.iter().all(|items| *items > 0).then_some(())
    });
    // The end sends what is still to be sent; from then on nothing changes.
    exporter.stop();
    let caught = tap.caught();
    let compressed = if compression == "gzip" { "gzip" } else { "" };
    for request in &caught {
        let header = if grpc { "grpc-encoding" } else { "content-encoding" };
        assert!(["", compressed].contains(&request.header(header)), "{:?}", request.headers);
        let kind = if grpc { "application/grpc" } else { "application/x-protobuf" };
        assert_eq!(request.header("content-type"), kind);
        let agent = request.header("user-agent");
        assert!(agent.contains("spark-exporter/"), "{agent}");
    }
    if compression == "gzip" {
        let header = if grpc { "grpc-encoding" } else { "content-encoding" };
        assert!(caught.iter().any(|request| request.header(header) == "gzip"));
    }
    let decoded = decoded(&caught, if grpc { "grpc" } else { "http" });
    let items: usize = decoded.values().sum();
    collector.until("what was sent", SOON, |received| {
        let there = received.points.len() + received.spans.len() + received.records.len();
        (there >= items).then_some(())
    });
    let written = written(&collector.received());
    for (row, times) in &decoded {
        let theirs = written.get(row).copied().unwrap_or_default();
        assert_eq!(
            *times, theirs,
            "decoded {times} times, the Collector has it {theirs} times: {row}"
        );
    }
    assert_eq!(decoded.len(), written.len(), "the Collector has what nobody sent");
    assert!(items > 2_000, "{items} items are few");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() {
    both_read_the_same("http/protobuf", "none").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_compressed() {
    both_read_the_same("http/protobuf", "gzip").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_grpc() {
    both_read_the_same("grpc", "none").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_grpc_compressed() {
    both_read_the_same("grpc", "gzip").await;
}
