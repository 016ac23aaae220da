//! Findings as log records: as many as `/metrics` has, each once, in a trace
//! that is there.

use std::collections::BTreeSet;

use crate::collector::{Collector, Options};
use crate::received::Record;
use crate::world::{RUNS, SOON, Setup, logs};

type Found = (String, String, String, String);

fn found(record: &Record) -> Found {
    let attribute = |key: &str| record.attributes.get(key).cloned().unwrap_or_default();
    (
        record.resource["spark.application.id"].clone(),
        attribute("spark.finding.rule"),
        attribute("spark.finding.cause"),
        attribute("spark.finding.severity"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_finding_is_one_record() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS);
    let exporter = Setup::to("http/protobuf", &collector.http()).start(logs.path());
    let scrape = exporter.settled(RUNS.len()).await;
    let expected: BTreeSet<Found> = scrape
        .series
        .keys()
        .filter(|(name, _)| name == "spark_finding")
        .map(|(_, labels)| {
            let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
            (label("app_id"), label("rule"), label("cause"), label("severity"))
        })
        .collect();
    assert!(expected.len() > 5, "{expected:?}");
    collector.until("a record of each finding", SOON, |received| {
        let records: BTreeSet<Found> = received.records.iter().map(found).collect();
        expected.is_subset(&records).then_some(())
    });
    exporter.stop();
    let received = collector.received();
    let mut once = BTreeSet::new();
    for record in &received.records {
        let severity = record.attributes["spark.finding.severity"].as_str();
        let number = match severity {
            "info" => 9,
            "warning" => 13,
            "critical" => 17,
            other => panic!("severity {other}"),
        };
        assert_eq!(record.severity, number, "{record:?}");
        assert!(!record.body.is_empty() && record.time > 0, "{record:?}");
        let key = (record.resource.clone(), record.attributes.clone());
        assert!(once.insert(key), "twice: {record:?}");
        // The trace is there, and the span if it names one.
        let mut spans = received.spans.iter().filter(|span| span.trace == record.trace);
        assert!(
            spans.any(|span| record.span.is_empty() || span.id == record.span),
            "no span {} in trace {}: {record:?}",
            record.span,
            record.trace
        );
    }
    let records: BTreeSet<Found> = received.records.iter().map(found).collect();
    assert_eq!(records, expected, "and no others");
}
