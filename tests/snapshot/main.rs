//! What a snapshot holds and what it leaves out, on made-up runs.

#[path = "../support/mod.rs"]
mod support;

mod limits;
mod names;
mod runs;

use std::sync::Arc;

use spark_exporter::config::Limits;
use spark_exporter::metrics::catalogue::{CATALOGUE, Id, Kind, Scope};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{NameView, RunView, Sample, Snapshot, build};
use spark_exporter::store::{NameKey, Totals};
use spark_exporter::telemetry::TelemetrySnapshot;
use support::everything::{busy, full_run};
use support::{at, name_view, run_id, skewed_run};

fn snapshot(runs: &[RunView], limits: &Limits) -> Snapshot {
    build(runs, &[], &TelemetrySnapshot::default(), limits, at(80))
}

fn one(view: RunView) -> Snapshot {
    snapshot(&[view], &Limits::default())
}

fn labels(sample: &Sample) -> Vec<String> {
    sample.label_values().map(|value| value.to_string()).collect()
}

/// The value of the only series, or of the one whose last label is `last`.
fn value(snapshot: &Snapshot, id: Id, last: Option<&str>) -> Option<f64> {
    let mut found = snapshot
        .family(id)
        .iter()
        .filter(|sample| last.is_none() || labels(sample).last().map(String::as_str) == last);
    let first = found.next()?;
    assert!(found.next().is_none(), "{id:?}: more than one series");
    first.value.number()
}
fn run() -> RunView {
    skewed_run(run_id("default", "app-1"))
}

fn one_without_runs() -> usize {
    snapshot(&[], &Limits::default()).series()
}

/// Nothing was counted for it yet.
fn new_name() -> NameView {
    let name = NameKey { cluster: "default".to_owned(), app_name: "new".to_owned() };
    NameView::new(name, Totals::default())
}

#[test]
fn the_exposition_of_a_small_run() {
    let telemetry = TelemetrySnapshot {
        started: Some(at(-60)),
        build: spark_exporter::telemetry::Revision { version: "1.2.3", revision: "abcdef" },
        ..TelemetrySnapshot::default()
    };
    let names = [name_view("default", "orders"), new_name()];
    let snapshot = build(&[run()], &names, &telemetry, &Limits::default(), at(80));
    let snapshot = Arc::new(snapshot);
    insta::assert_snapshot!("prometheus", render(&snapshot, Format::Prometheus));
    insta::assert_snapshot!("openmetrics", render(&snapshot, Format::OpenMetrics));
}

#[test]
fn every_series_has_the_labels_of_its_metric() {
    for family in one(run()).families() {
        let names = family.metric.label_names().count();
        for sample in &family.samples {
            assert_eq!(sample.label_values().count(), names, "{}", family.metric.name);
        }
    }
}

#[test]
fn no_subject_has_more_series_than_the_documentation_promises() {
    for family in one(run()).families() {
        let mut counts = std::collections::HashMap::new();
        for sample in &family.samples {
            *counts.entry(sample.labels.clone()).or_insert(0) += 1;
        }
        let most = counts.into_values().max().unwrap_or(0);
        assert!(most <= family.metric.times, "{}: {most}", family.metric.name);
    }
}

#[test]
fn every_metric_of_the_catalogue_can_be_made() {
    // Whatever no part of the code ever writes is a promise that nobody keeps.
    let snapshot = build(
        &[full_run("app-1")],
        &[name_view("c", "orders")],
        &busy().snapshot(),
        &Limits::default(),
        at(80),
    );
    let missing: Vec<_> = CATALOGUE
        .iter()
        .filter(|metric| !snapshot.families().any(|family| family.metric.name == metric.name))
        .map(|metric| metric.name)
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
/// `rate()` and ratios see the first failure only where a counter was there
/// before it.
#[test]
fn counters_stand_at_0_before_anything_happens() {
    let text = render(&Arc::new(snapshot(&[], &Limits::default())), Format::Prometheus);
    let daemons = CATALOGUE.iter().filter(|metric| {
        metric.kind == Kind::Counter
            && metric.scope == Scope::Daemon
            // Of what is not known before: sources, clusters of Kubernetes,
            // who asks for what, what is sent by OTLP.
            && !metric
                .labels
                .iter()
                .any(|label| ["target", "spark_cluster", "path", "signal"].contains(label))
    });
    let mut seen = 0;
    for metric in daemons {
        let samples: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter(|line| line.split(['{', ' ']).next() == Some(metric.name))
            .collect();
        assert_eq!(samples.len(), metric.times as usize, "{}: {samples:?}", metric.name);
        assert!(samples.iter().all(|line| line.ends_with(" 0")), "{samples:?}");
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}
