//! Series that leave are ended, once it was heard and not before.

use std::collections::BTreeSet;

use spark_exporter::expose::otlp::points::Points;
use spark_exporter::metrics::RunView;
use spark_exporter::model::State;
use spark_exporter::telemetry::TelemetrySnapshot;

use crate::decode::{Point, Told, all};
use crate::support::{at, changed, name_view};
use crate::{LARGE, Temporality, full_run, moment, points, requests};

fn started() -> TelemetrySnapshot {
    TelemetrySnapshot { started: Some(at(0)), ..TelemetrySnapshot::default() }
}

fn told(sender: &mut Points, runs: &[RunView], second: i64) -> Vec<Point> {
    all(&requests(sender, &moment(runs, &[], &started(), at(second))))
}

fn identities<'a>(points: impl IntoIterator<Item = &'a Point>) -> BTreeSet<String> {
    points.into_iter().map(|point| format!("{:?}", point.identity())).collect()
}

fn ended(points: &[Point]) -> Vec<&Point> {
    points.iter().filter(|point| point.ended).collect()
}

fn of<'a>(points: &'a [Point], app_id: &str) -> Vec<&'a Point> {
    let own = |point: &&Point| point.attributes.get("app_id").is_some_and(|id| id == app_id);
    points.iter().filter(own).collect()
}

#[test]
fn a_run_that_leaves_is_ended_once_with_all_its_series() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let runs = [full_run("app-1"), full_run("app-2")];
    let first = told(&mut sender, &runs, 10);
    assert!(ended(&first).is_empty());
    let second = told(&mut sender, &runs[1..], 20);
    let ended_now = ended(&second);
    assert_eq!(identities(ended_now.iter().copied()), identities(of(&first, "app-1")));
    let before = of(&first, "app-1")[0];
    for point in &ended_now {
        assert_eq!(point.told, Told::Nothing);
        assert_eq!(point.time, u64::try_from(at(20).as_nanosecond()).unwrap());
        // From where its other points came.
        assert_eq!(point.resource, before.resource);
    }
    assert!(ended(&told(&mut sender, &runs[1..], 30)).is_empty());
    // Should it come back, its series do, and can leave again.
    assert!(ended(&told(&mut sender, &runs, 40)).is_empty());
    assert_eq!(ended(&told(&mut sender, &runs[1..], 50)).len(), ended_now.len());
}

#[test]
fn a_finding_and_a_state_that_are_gone_are_ended() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let run = full_run("app-1");
    told(&mut sender, std::slice::from_ref(&run), 10);
    let cured = changed(&run, |application, diagnosis| {
        diagnosis.findings.clear();
        application.state = State::Succeeded;
    });
    let second = told(&mut sender, &[cured], 20);
    let names: BTreeSet<&str> =
        ended(&second).iter().map(|point| point.metric.name.as_str()).collect();
    assert_eq!(
        Vec::from_iter(names),
        ["spark.finding", "spark.finding_core", "spark.finding_wall"]
    );
    // No point beside its end.
    let identities: Vec<_> = second.iter().map(|point| format!("{:?}", point.identity())).collect();
    assert_eq!(identities.iter().collect::<BTreeSet<_>>().len(), identities.len());
}

#[test]
fn an_end_is_told_until_it_is_accepted() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let runs = [full_run("app-1"), full_run("app-2")];
    let whole = of(&told(&mut sender, &runs, 10), "app-1").len();
    for second in [20, 30] {
        sender.begin(moment(&runs[1..], &[], &started(), at(second)));
        let request = sender.request().unwrap();
        assert_eq!(ended(&all(&[request])).len(), whole);
        sender.given_up();
        assert!(sender.request().is_none());
    }
    assert_eq!(ended(&told(&mut sender, &runs[1..], 40)).len(), whole);
    assert!(ended(&told(&mut sender, &runs[1..], 50)).is_empty());
}

#[test]
fn nobody_is_told_the_end_of_what_nobody_heard_of() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let runs = [full_run("app-1"), full_run("app-2")];
    sender.begin(moment(&runs, &[], &started(), at(10)));
    assert!(sender.request().is_some());
    sender.given_up();
    assert!(ended(&told(&mut sender, &runs[1..], 20)).is_empty());
}

#[test]
fn an_end_that_is_refused_is_not_told_again() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let runs = [full_run("app-1"), full_run("app-2")];
    told(&mut sender, &runs, 10);
    sender.begin(moment(&runs[1..], &[], &started(), at(20)));
    while sender.request().is_some() {
        sender.refused();
    }
    assert!(ended(&told(&mut sender, &runs[1..], 30)).is_empty());
}

#[test]
fn ends_that_wait_are_bounded() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let runs: Vec<RunView> = (0..20).map(|n| full_run(&format!("app-{n}"))).collect();
    let whole =
        told(&mut sender, &runs, 10).iter().filter(|p| p.attributes.contains_key("app_id")).count();
    assert!(whole > 1_000, "{whole} series");
    let end = told(&mut sender, &[], 20);
    // So many as the sender was made for.
    assert_eq!(ended(&end).len(), 1_000);
    assert_eq!(sender.take_dropped().backlog as usize, whole - 1_000);
    assert!(ended(&told(&mut sender, &[], 30)).is_empty());
}

/// Another name of the run is another origin: what was is ended.
#[test]
fn a_run_that_is_called_otherwise_is_another_origin() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let run = full_run("app-1");
    let first = told(&mut sender, std::slice::from_ref(&run), 10);
    let renamed = changed(&run, |application, _| "invoices".clone_into(&mut application.name));
    let second = told(&mut sender, &[renamed], 20);
    assert_eq!(ended(&second).len(), of(&first, "app-1").len());
    assert!(
        ended(&second).iter().all(|point| point.resource["service.name"] == "orders \"daily\"")
    );
    // What only describes it makes no other one.
    let described = changed(&run, |application, _| application.user = Some("other".to_owned()));
    let mut sender = points(Temporality::Cumulative, LARGE);
    told(&mut sender, std::slice::from_ref(&run), 10);
    let second = told(&mut sender, &[described], 20);
    // Only the series that has the user as a label.
    assert_eq!(ended(&second).len(), 1);
}

#[test]
fn the_exporter_ends_what_is_its_own_and_leaves_runs_to_the_next() {
    let names = [name_view("default", "orders")];
    for temporality in [Temporality::Cumulative, Temporality::Delta] {
        let mut sender = points(temporality, LARGE);
        let last = moment(&[full_run("app-1")], &names, &started(), at(10));
        let first = all(&requests(&mut sender, &last));
        sender.end(last);
        let request = sender.request().unwrap();
        sender.accepted();
        assert!(sender.request().is_none());
        let ends = all(&[request]);
        assert!(ends.iter().all(|point| point.ended && point.time > first[0].time));
        // Deltas need none: what does not come did not grow.
        let counted =
            |point: &Point| point.is_monotonic_sum() || matches!(point.told, Told::Histogram(_));
        let own = first.iter().filter(|point| {
            let delta = temporality == Temporality::Delta && counted(point);
            !point.attributes.contains_key("app_id") && !delta
        });
        assert_eq!(identities(&ends), identities(own), "{temporality:?}");
    }
}

/// A histogram's end has its bounds: of each bucket Prometheus has a series.
#[test]
fn the_end_of_a_histogram_ends_all_its_series() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let names = [name_view("default", "orders")];
    requests(&mut sender, &moment(&[], &names, &started(), at(10)));
    let second = told(&mut sender, &[], 20);
    let histograms: Vec<_> = ended(&second)
        .into_iter()
        .filter_map(|point| match &point.told {
            Told::Histogram(histogram) => Some(histogram),
            _ => None,
        })
        .collect();
    let [histogram] = histograms[..] else { panic!("{histograms:?}") };
    assert_eq!(histogram.explicit_bounds.len(), 19);
    assert_eq!(histogram.sum, Some(0.0));
}

/// Where a back end takes only the beginning of each moment, those that were
/// left out come first the next time.
#[test]
fn who_had_to_wait_comes_first() {
    let mut sender = points(Temporality::Cumulative, 60_000);
    let runs: Vec<RunView> = (0..6).map(|n| full_run(&format!("app-{n}"))).collect();
    let mut heard = BTreeSet::new();
    for second in 1..=6 {
        sender.begin(moment(&runs, &[], &started(), at(second * 10)));
        // Two requests get through; the exporter's own series are in the first.
        for number in 0..2 {
            let request = sender.request().unwrap();
            sender.accepted();
            let points = all(&[request]);
            assert!(number > 0 || !points[0].attributes.contains_key("app_id"));
            let ids = points.iter().filter_map(|point| point.attributes.get("app_id").cloned());
            heard.extend(ids);
        }
        sender.request().unwrap();
        sender.given_up();
    }
    assert_eq!(heard.len(), runs.len(), "{heard:?}");
}
