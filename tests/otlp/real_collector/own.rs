//! The daemon's own log lines and spans, where they are asked for.

use std::collections::BTreeMap;

use crate::collector::{Collector, Options};
use crate::world::{RUNS, SOON, Setup, logs};

fn own(protocol: &str, endpoint: &str) -> Setup {
    Setup::to(protocol, endpoint).line("otlp: {own: {logs: true, traces: true}}")
}

async fn lines_and_spans_arrive(protocol: &str) {
    let collector = Collector::start(Options::default());
    let endpoint = if protocol == "grpc" { collector.grpc() } else { collector.http() };
    let logs = logs(&RUNS[..2]);
    let exporter = own(protocol, &endpoint).start(logs.path());
    let (said, port) =
        (exporter.said.clone(), exporter.address.rsplit(':').next().unwrap().to_owned());
    exporter.settled(2).await;
    exporter.stop();
    // The last ones are sent at the end.
    collector.until("the line that says it stops", SOON, |received| {
        received.records.iter().any(|record| record.body == "stopping").then_some(())
    });
    let received = collector.received();
    let is_ours =
        |resource: &BTreeMap<String, String>| resource["service.name"] == "spark-exporter";

    let lines: Vec<_> =
        received.records.iter().filter(|record| is_ours(&record.resource)).collect();
    let listening = lines.iter().find(|line| line.attributes.contains_key("address")).unwrap();
    assert!(said.iter().any(|line| line.contains(&listening.attributes["address"])));
    assert_eq!((listening.severity, listening.severity_text.as_str()), (9, "INFO"));
    let instance = &listening.resource["service.instance.id"];
    assert!(instance.ends_with(&format!(":{port}")), "{instance}");
    for line in &lines {
        assert!(line.time > 0 && !line.body.is_empty(), "{line:?}");
        assert_eq!(line.event_name, "", "its place in the source is no name: {line:?}");
    }

    let spans: Vec<_> = received.spans.iter().filter(|span| is_ours(&span.resource)).collect();
    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (span.id.as_str(), *span)).collect();
    let parent = |name: &str| {
        let span = spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}"));
        by_id.get(span.parent.as_str()).map(|parent| parent.name.as_str())
    };
    assert_eq!(parent("cycle"), None);
    assert_eq!(parent("read event log"), Some("cycle"));
    assert_eq!(parent("diagnose"), Some("read event log"));
    assert_eq!(parent("GET /metrics"), None);
    let answer = spans.iter().find(|span| span.name == "GET /metrics").unwrap();
    assert_eq!(answer.attributes["http.response.status_code"], "200");
    // Nothing tells of the sending of what tells.
    for span in &spans {
        assert!(!span.name.to_lowercase().contains("otlp"), "{span:?}");
    }
    // And what is about applications is no less.
    assert!(received.spans.iter().any(|span| !is_ours(&span.resource)));
}

#[tokio::test(flavor = "multi_thread")]
async fn own_lines_and_spans_arrive_over_http() {
    lines_and_spans_arrive("http/protobuf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_lines_and_spans_arrive_over_grpc() {
    lines_and_spans_arrive("grpc").await;
}

/// A back end that is gone is said once, and its log line makes no more of
/// them.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_back_end_does_not_make_lines_of_lines() {
    let collector = Collector::absent(Options::default());
    let logs = logs(&RUNS[..1]);
    let mut exporter = own("http/protobuf", &collector.http()).start(logs.path());
    exporter.settled(1).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let text = exporter.text().await;
    assert!(text.contains("spark_application_info{"), "it works on");
    assert_eq!(exporter.program.terminate(std::time::Duration::from_mins(1)), 0);
    let lines = exporter.program.said();
    let troubles = lines
        .iter()
        .filter(|line| line.contains("level=warn") || line.contains("level=error"))
        .count();
    assert!(troubles > 0 && troubles <= 10, "{troubles} lines of trouble:\n{}", lines.join("\n"));
}
