//! A configuration that is read again: what was sent is not sent again, and
//! what comes later is sent as before.

use std::collections::BTreeSet;

use crate::collector::{Collector, Options};
use crate::received::{PointKind, Received};
use crate::world::{SOON, Setup, logs, write_log};

const BEFORE: (&str, &str) = ("hot_key/4.3.0", "app-otlp-before");
const AFTER: (&str, &str) = ("spill/4.3.0", "app-otlp-after");

/// When the daemon's count of logs that were read began, as each of its points
/// says but the one that ends it, and the time of the last one.
fn counted_since(received: &Received) -> (BTreeSet<u64>, u64) {
    let points = received.points.iter().filter(|point| {
        matches!(point.kind, PointKind::Sum { monotonic: true, .. })
            && point.name == "spark_exporter.event_log.reads"
            && !point.ended
    });
    let mut last = 0;
    let starts = points.map(|point| {
        last = last.max(point.time);
        point.start
    });
    (starts.collect(), last)
}

fn records_of(received: &Received, app_id: &str) -> usize {
    let of = |id: &String| id == app_id;
    received
        .records
        .iter()
        .filter(|one| one.resource.get("spark.application.id").is_some_and(of))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_twice_and_what_comes_later_is_sent() {
    let collector = Collector::start(Options::default());
    let logs = logs(&[BEFORE]);
    let exporter = Setup::to("grpc", &collector.grpc()).start(logs.path());
    let scrape = exporter.settled(1).await;
    let findings = scrape.series.keys().filter(|(name, _)| name == "spark_finding").count();
    assert!(findings > 0, "a run with something to send");
    let last = collector.until("the run and points of the daemon", SOON, |received| {
        let (starts, last) = counted_since(received);
        let there = !received.trace_of(BEFORE.1).is_empty() && !starts.is_empty();
        (there && records_of(received, BEFORE.1) == findings).then_some(last)
    });

    exporter.reload("thresholds: {spill: {enabled: false}}");
    write_log(logs.path(), AFTER.0, AFTER.1);
    let scrape = exporter.settled(2).await;
    let spilled = |(name, labels): &&(String, _)| {
        let labels: &crate::received::Attributes = labels;
        name == "spark_finding" && labels["app_id"] == AFTER.1 && labels["rule"] == "spill"
    };
    assert_eq!(scrape.series.keys().find(spilled), None, "the new configuration is in force");
    collector.until("the later run, and points after it", SOON, |received| {
        let (_, now) = counted_since(received);
        (!received.trace_of(AFTER.1).is_empty() && now > last).then_some(())
    });
    exporter.stop();

    let received = collector.received();
    let roots = received.trace_of(BEFORE.1).iter().filter(|span| span.parent.is_empty()).count();
    assert_eq!(roots, 1, "and no span twice, which trace_of looks for");
    assert_eq!(records_of(&received, BEFORE.1), findings);
    assert_eq!(counted_since(&received).0.len(), 1, "its counters began once");
}
