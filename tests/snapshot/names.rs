//! What is said of a job by its name.

use std::sync::Arc;

use spark_exporter::config::Limits;
use spark_exporter::diagnose::Rule;
use spark_exporter::metrics::catalogue::{CATALOGUE, Id, Scope};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{Family, NameView, Value, build};
use spark_exporter::store::{OVERFLOW_NAME, RuleTotal};
use spark_exporter::telemetry::events::NameOverflowed;
use spark_exporter::telemetry::{Telemetry, TelemetrySnapshot};

use crate::support::{at, name_view};
use crate::{labels, new_name, one, one_without_runs, run, value};

/// The order in which names are let in, and what is left out as a whole.
#[test]
fn names_come_after_the_runs_numbers_and_before_their_findings() {
    let names: Vec<NameView> = (0..9)
        .map(|n| {
            let mut view = name_view("default", &format!("name-{n}"));
            view.totals.last_end_ms = Some(n);
            view
        })
        .chain([name_view("default", OVERFLOW_NAME)])
        .collect();
    let all = build(&[run()], &names, &TelemetrySnapshot::default(), &Limits::default(), at(80));
    let none = one(run()).series();
    let each = (all.series() - none) / names.len();
    assert_eq!(each, 50, "of a name with two rules");
    assert!(all.dropped().is_empty());

    let of_run: usize =
        all.families().filter(|one| one.metric.scope == Scope::Run).map(Family::series).sum();
    let limits = Limits { series: one_without_runs() + of_run + 3 * each + 1, ..Limits::default() };
    let snapshot = build(&[run()], &names, &TelemetrySnapshot::default(), &limits, at(80));
    let shown: Vec<_> =
        snapshot.family(Id::NameLastRun).iter().map(|sample| labels(sample)[1].clone()).collect();
    // What stands for many first, then those that ran last.
    assert_eq!(shown, [OVERFLOW_NAME, "name-8", "name-7"]);
    assert_eq!(snapshot.family(Id::NameDuration).len(), 3);
    assert!(snapshot.family(Id::Finding).is_empty());
    let dropped = snapshot.dropped()["series_limit"] as usize;
    assert_eq!(snapshot.series() + dropped, all.series());
}

#[test]
fn names_that_are_equal_once_cut_are_shown_once() {
    let limits = Limits { label_length: 4, ..Limits::default() };
    let names = [name_view("default", "orders-eu"), name_view("default", "orders-us")];
    let snapshot = build(&[], &names, &TelemetrySnapshot::default(), &limits, at(80));
    assert_eq!(snapshot.duplicate(), None);
    assert_eq!(snapshot.family(Id::NameLastRun).len(), 1);
    assert_eq!(snapshot.dropped()["duplicate_name"], 50);
}

#[test]
fn a_name_has_no_more_series_than_the_documentation_promises() {
    let mut view = name_view("default", "orders");
    view.totals.findings = Rule::ALL
        .into_iter()
        .map(|rule| (rule.as_str().to_owned(), RuleTotal { runs: 1, since_ms: 0 }))
        .collect();
    let of = |names: &[NameView]| {
        build(&[], names, &TelemetrySnapshot::default(), &Limits::default(), at(80)).series()
    };
    let promised: u32 = CATALOGUE
        .iter()
        .filter(|metric| metric.scope == Scope::Name)
        .map(|metric| metric.times)
        .sum();
    assert_eq!(of(&[view]) - of(&[]), promised as usize);
}

/// Counters are there from the first moment, what is not known is not.
#[test]
fn a_new_name_stands_at_zero() {
    let snapshot =
        build(&[], &[new_name()], &TelemetrySnapshot::default(), &Limits::default(), at(80));
    assert_eq!(snapshot.family(Id::NameRuns).len(), 6);
    assert!(snapshot.family(Id::NameRuns).iter().all(|one| one.value == Value::Number(0.0)));
    let Value::Histogram(histogram) = &snapshot.family(Id::NameDuration)[0].value else {
        panic!("no histogram");
    };
    assert_eq!((histogram.count(), histogram.sum), (0, 0.0));
    assert_eq!(value(&snapshot, Id::NameBoughtCore, None), Some(0.0));
    for absent in [
        Id::NameCost,
        Id::NameFindings,
        Id::NameLastRun,
        Id::NameLastSuccess,
        Id::NameLastDuration,
        Id::NameBaseline,
        Id::NameRegression,
        Id::NameSuccessInterval,
    ] {
        assert!(snapshot.family(absent).is_empty(), "{absent:?}");
    }
}

/// A rule that this version does not know is counted on.
#[test]
fn numbers_of_a_name_go_through_unchanged() {
    let mut view = name_view("default", "orders");
    view.totals.findings.insert("of_tomorrow".to_owned(), RuleTotal { runs: 7, since_ms: 0 });
    let build = |view: NameView| {
        build(&[], &[view], &TelemetrySnapshot::default(), &Limits::default(), at(80))
    };
    let snapshot = build(view.clone());
    assert_eq!(value(&snapshot, Id::NameRuns, Some("succeeded")), Some(21.0));
    assert_eq!(value(&snapshot, Id::NameRuns, Some("lost")), Some(2.0));
    assert_eq!(value(&snapshot, Id::NameFindings, Some("data_skew")), Some(4.0));
    assert_eq!(value(&snapshot, Id::NameFindings, Some("of_tomorrow")), Some(7.0));
    assert_eq!(value(&snapshot, Id::NameUsedCore, None), Some(2_352.5));
    assert_eq!(value(&snapshot, Id::NameCost, Some("EUR")), Some(12.75));
    assert_eq!(value(&snapshot, Id::NameLastRun, None), Some(1_764_460_875.0));
    assert_eq!(value(&snapshot, Id::NameLastDuration, None), Some(75.25));
    assert_eq!(value(&snapshot, Id::NameBaseline, None), Some(50.125));
    assert_eq!(value(&snapshot, Id::NameRegression, None), Some(1.5));
    let text = render(&Arc::new(snapshot), Format::Prometheus);
    let labels = "spark_cluster=\"default\",app_name=\"orders\"";
    for line in [
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"32\"}} 0"),
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"64\"}} 18"),
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"262144\"}} 20"),
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 21"),
        format!("spark_application_runs_duration_seconds_count{{{labels}}} 21"),
        format!("spark_application_runs_duration_seconds_sum{{{labels}}} 1300.5"),
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in {text}");
    }
    // No price, no cost: not even a 0.
    view.currency = None;
    assert!(build(view).family(Id::NameCost).is_empty());
}

/// Series of runs and of names can be joined: the label is the same.
#[test]
fn a_run_carries_the_name_its_totals_have() {
    let mut view = run();
    view.name = "orders".into();
    let snapshot = build(
        &[view],
        &[name_view("default", "orders")],
        &TelemetrySnapshot::default(),
        &Limits::default(),
        at(80),
    );
    let name = |id: Id, place: usize| labels(&snapshot.family(id)[0])[place].clone();
    assert_eq!(name(Id::ApplicationInfo, 3), "orders");
    assert_eq!(name(Id::Finding, 3), "orders");
    assert_eq!(name(Id::NameLastRun, 1), "orders");
}

#[test]
fn runs_without_room_for_their_name_are_counted() {
    let telemetry = Telemetry::default();
    for app_name in ["a", "b"] {
        let run = "c/app-1".to_owned();
        NameOverflowed { run, app_name: app_name.to_owned(), limit: 1 }.emit(&telemetry);
    }
    let snapshot = build(&[], &[], &telemetry.snapshot(), &Limits::default(), at(80));
    assert_eq!(value(&snapshot, Id::NamesOverflowed, None), Some(2.0));
}
