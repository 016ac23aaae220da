//! The same series with the same values as the text of `/metrics`, and
//! around each what OTLP says of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
use spark_exporter::config::{Limits, Names, Thresholds};
use spark_exporter::diagnose::diagnose;
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::expose::otlp::Moment;
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::metrics::catalogue::{CATALOGUE, Kind, Scope};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{RunView, app_name};

use crate::decode::{Point, all, read_text, series};
use crate::support::{at, name_view};
use crate::{LARGE, Temporality, busy, full, moment, points, requests};

fn told(moment: &Arc<Moment>) -> Vec<Point> {
    all(&requests(&mut points(Temporality::Cumulative, LARGE), moment))
}

fn assert_same(moment: &Arc<Moment>) {
    let text = read_text(&render(&moment.snapshot, Format::Prometheus));
    let sent = series(&told(moment));
    let missing: Vec<_> = text.iter().filter(|(series, _)| !sent.contains_key(series)).collect();
    let more: Vec<_> = sent.iter().filter(|(series, _)| !text.contains_key(series)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing: {missing:?}\nmore: {more:?}");
    for (series, value) in &text {
        assert_eq!(sent[series].to_bits(), value.to_bits(), "{series:?}");
    }
}

#[test]
fn every_family_comes_back_value_by_value() {
    let full = full();
    assert_eq!(full.snapshot.families().count(), CATALOGUE.len(), "a family has no series");
    assert_same(&full);
}

/// One run of each sort that was recorded, and all of them together.
#[test]
fn recorded_runs_come_back_value_by_value() {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs");
    let mut runs = Vec::new();
    for folder in std::fs::read_dir(&logs).unwrap() {
        let mut versions: Vec<_> =
            std::fs::read_dir(folder.unwrap().path()).unwrap().map(|e| e.unwrap().path()).collect();
        versions.sort();
        // The newest Spark has most to tell.
        runs.extend(versions.pop().map(|path| recorded(&path)));
    }
    assert!(runs.len() > 50, "{} recorded runs", runs.len());
    runs.sort_by(|a, b| a.application.id.cmp(&b.application.id));
    assert_same(&moment(&runs, &[name_view("c", "orders")], &busy().snapshot(), at(80)));
}

fn recorded(path: &Path) -> RunView {
    let files = LocalFiles::at(path).unwrap();
    let logs = scan(&files).unwrap().logs;
    let options = ReadOptions { cluster: "default", limits: &Limits::default() };
    let mut application = read(&logs[0], &files, &options).unwrap().application;
    // Ids of local runs are times, and two may be the same.
    application.id.app_id = format!("{} {}", path.display(), application.id.app_id);
    let diagnosis = diagnose(&application, &Thresholds::default());
    RunView {
        name: app_name(&application.name, &Names::default(), &Limits::default()),
        application: Arc::new(application),
        diagnosis: Arc::new(diagnosis),
        trace_id: None,
    }
}

#[test]
fn metrics_are_described_as_in_the_catalogue() {
    for point in told(&full()) {
        let metric = CATALOGUE.iter().find(|metric| metric.otel == point.metric.name).unwrap();
        assert_eq!(point.metric.unit, metric.unit.ucum());
        assert_eq!(point.metric.description, metric.help);
        let metadata = crate::decode::texts(&point.metric.metadata);
        let is_info = metadata.get("prometheus.type").map(String::as_str) == Some("info");
        assert_eq!(is_info, metric.kind == Kind::Info, "{}", metric.name);
        assert_eq!(point.is_monotonic_sum(), metric.kind == Kind::Counter, "{}", metric.name);
        let temporality =
            (metric.kind != Kind::Gauge).then_some(AggregationTemporality::Cumulative);
        assert_eq!(point.temporality(), temporality, "{}", metric.name);
        let labels: Vec<_> = metric.label_names().collect();
        assert!(point.attributes.keys().all(|key| labels.contains(&key.as_str())));
    }
}

#[test]
fn each_run_is_a_resource_and_the_exporter_another() {
    let mut instances: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for point in told(&full()) {
        let instance = point.resource["service.instance.id"].clone();
        instances.entry(instance).or_default().push(point);
    }
    assert_eq!(instances.keys().collect::<Vec<_>>(), ["app-1", "app-2/2", "here:10404"]);
    for (instance, points) in &instances {
        for point in points {
            let metric = CATALOGUE.iter().find(|metric| metric.otel == point.metric.name).unwrap();
            let own = matches!(metric.scope, Scope::Daemon | Scope::Name);
            assert_eq!(own, instance == "here:10404", "{} of {instance}", metric.name);
            if own {
                assert_eq!(point.resource["service.name"], "spark-exporter");
            } else {
                let app_id = &point.resource["spark.application.id"];
                assert_eq!(*app_id, point.attributes["app_id"]);
                assert!(instance.starts_with(app_id.as_str()));
                assert_eq!(point.resource["spark.cluster.name"], point.attributes["spark_cluster"]);
            }
        }
    }
}

#[test]
fn points_say_since_when_they_count() {
    let nanos = |seconds: i64| u64::try_from(at(seconds).as_nanosecond()).unwrap();
    for point in told(&full()) {
        let metric = CATALOGUE.iter().find(|metric| metric.otel == point.metric.name).unwrap();
        assert_eq!(point.time, nanos(80), "{}", metric.name);
        let start = match (metric.kind, metric.scope) {
            (Kind::Gauge, _) => 0,
            // Of a rule: its own, which here is not known.
            (Kind::Counter, Scope::Name) if metric.labels == ["rule"] => nanos(0),
            (Kind::Counter | Kind::Histogram, Scope::Name) => nanos(-100_000),
            // The runs and the daemon started at the same moment.
            _ => nanos(0),
        };
        assert_eq!(point.start, start, "{}", metric.name);
    }
}
