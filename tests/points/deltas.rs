//! Deltas add up to what the counters stand at, whichever requests get
//! through; cumulative points say when a counter began anew.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spark_exporter::metrics::NameView;
use spark_exporter::metrics::catalogue::{CATALOGUE, Kind};
use spark_exporter::telemetry::TelemetrySnapshot;

use crate::decode::{Point, Told, all, le};
use crate::support::{at, name_view};
use crate::{LARGE, Temporality, moment, points, requests};

/// What a request comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Accepted,
    Refused,
    GivenUp,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![3 => Just(Fate::Accepted), 1 => Just(Fate::Refused), 1 => Just(Fate::GivenUp)]
}

/// The totals of a name that exists since the daemon does.
fn name(runs: u64, rule: u64) -> NameView {
    let mut view = name_view("default", "orders");
    let totals = &mut view.totals;
    totals.since_ms = at(0).as_millisecond();
    totals.runs = [runs, 0, runs / 2, 0, 0, 0];
    totals.durations = [0; 20];
    (totals.durations[3], totals.durations[19]) = (runs, runs / 3);
    totals.duration_sum_ms = runs * 1_000;
    for total in totals.findings.values_mut() {
        (total.runs, total.since_ms) = (rule, at(0).as_millisecond());
    }
    view
}

fn started(reads: u64) -> TelemetrySnapshot {
    let mut telemetry = TelemetrySnapshot { started: Some(at(0)), ..TelemetrySnapshot::default() };
    telemetry.logs.reads = reads;
    telemetry
}

type Sums = BTreeMap<String, f64>;

/// Adds what points of counters tell, by series.
fn add(sums: &mut Sums, points: &[Point]) {
    for point in points {
        let metric = CATALOGUE.iter().find(|metric| metric.otel == point.metric.name).unwrap();
        if !matches!(metric.kind, Kind::Counter | Kind::Histogram) {
            continue;
        }
        let key = format!("{} {:?}", metric.name, point.attributes);
        match &point.told {
            Told::Nothing => panic!("{key} ended"),
            Told::Number(value) => {
                assert!(*value >= 0.0, "{key}: {value}");
                *sums.entry(key).or_default() += value;
            }
            Told::Histogram(histogram) => {
                *sums.entry(format!("{key} sum")).or_default() += histogram.sum.unwrap();
                let bounds = histogram.explicit_bounds.iter().copied().chain([f64::INFINITY]);
                for (bound, count) in bounds.zip(&histogram.bucket_counts) {
                    *sums.entry(format!("{key} {}", le(bound))).or_default() += *count as f64;
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn deltas_add_up_whatever_gets_through(
        rounds in proptest::collection::vec((0_u64..5, 0_u64..3, 0_u64..9), 1..12),
        fates in proptest::collection::vec(fate(), 40),
        size in 6_000_usize..40_000,
    ) {
        let mut sender = points(Temporality::Delta, size);
        let mut fates = fates.into_iter();
        let mut sums = Sums::new();
        let (mut runs, mut rule, mut reads) = (0, 0, 0);
        let mut clock = 10;
        let mut ends: BTreeMap<String, u64> = BTreeMap::new();
        for (more_runs, more_rule, more_reads) in rounds {
            (runs, rule, reads) = (runs + more_runs, rule + more_rule, reads + more_reads);
            clock += 10;
            sender.begin(moment(&[], &[name(runs, rule)], &started(reads), at(clock)));
            while let Some(request) = sender.request() {
                match fates.next().unwrap_or(Fate::Accepted) {
                    Fate::Accepted => {
                        sender.accepted();
                        let accepted = all(std::slice::from_ref(&request));
                        // Each begins where the one before ended.
                        for point in accepted.iter().filter(|point| point.temporality().is_some()) {
                            let series = format!("{:?}", point.identity());
                            let counted = point.is_monotonic_sum() || matches!(point.told, Told::Histogram(_));
                            if counted && let Some(before) = ends.insert(series, point.time) {
                                prop_assert_eq!(point.start, before);
                            }
                        }
                        add(&mut sums, &accepted);
                    }
                    Fate::Refused => sender.refused(),
                    Fate::GivenUp => sender.given_up(),
                }
            }
        }
        // One more that gets through.
        let last = moment(&[], &[name(runs, rule)], &started(reads), at(clock + 10));
        add(&mut sums, &all(&requests(&mut sender, &last)));
        let mut whole = Sums::new();
        add(&mut whole, &all(&requests(&mut points(Temporality::Cumulative, LARGE), &last)));
        prop_assert!(!whole.is_empty());
        prop_assert_eq!(sums, whole);
    }
}

fn value(points: &[Point], name: &str, label: &str) -> Option<(f64, u64)> {
    let metric = CATALOGUE.iter().find(|metric| metric.name == name).unwrap();
    let mut found = points.iter().filter(|point| {
        point.metric.name == metric.otel && point.attributes.values().any(|value| value == label)
    });
    let point = found.next()?;
    assert!(found.next().is_none());
    let Told::Number(value) = point.told else { panic!("{point:?}") };
    Some((value, point.start))
}

fn nanos(seconds: i64) -> u64 {
    u64::try_from(at(seconds).as_nanosecond()).unwrap()
}

const RUNS: &str = "spark_application_runs_total";

/// Totals of a store that an earlier process has filled are nothing that came
/// since: they would be added once more at each restart.
#[test]
fn what_was_counted_before_the_start_is_no_delta() {
    let mut sender = points(Temporality::Delta, LARGE);
    let old = |runs| {
        let mut view = name(runs, 7);
        view.totals.since_ms = at(-5_000).as_millisecond();
        view
    };
    let first = all(&requests(&mut sender, &moment(&[], &[old(100)], &started(3), at(10))));
    assert_eq!(value(&first, RUNS, "succeeded"), None);
    // A rule that came up since the start has all of it.
    let rule = value(&first, "spark_application_runs_with_finding_total", "data_skew");
    assert_eq!(rule, Some((7.0, nanos(0))));
    let second = all(&requests(&mut sender, &moment(&[], &[old(103)], &started(3), at(20))));
    assert_eq!(value(&second, RUNS, "succeeded"), Some((3.0, nanos(10))));
    // By cumulative points it goes on as if nothing had been.
    let mut sender = points(Temporality::Cumulative, LARGE);
    let first = all(&requests(&mut sender, &moment(&[], &[old(100)], &started(3), at(10))));
    assert_eq!(value(&first, RUNS, "succeeded"), Some((100.0, nanos(-5_000))));
}

/// The first look at them counts, also where nothing was sent of it.
#[test]
fn totals_are_looked_at_before_anything_is_sent() {
    let old = |runs| {
        let mut view = name(runs, 7);
        view.totals.since_ms = at(-5_000).as_millisecond();
        view
    };
    let mut sender = points(Temporality::Delta, LARGE);
    sender.begin(moment(&[], &[old(100)], &started(0), at(1)));
    let first = all(&requests(&mut sender, &moment(&[], &[old(102)], &started(0), at(60))));
    assert_eq!(value(&first, RUNS, "succeeded"), Some((2.0, nanos(1))));
}

#[test]
fn a_counter_that_shrank_began_anew() {
    for temporality in [Temporality::Delta, Temporality::Cumulative] {
        let mut sender = points(temporality, LARGE);
        let mut told = |runs: u64, second: i64| {
            let moment = moment(&[], &[name(runs, 0)], &started(0), at(second));
            value(&all(&requests(&mut sender, &moment)), RUNS, "succeeded").unwrap()
        };
        assert_eq!(told(5, 10), (5.0, nanos(0)));
        assert_eq!(told(2, 20), (2.0, nanos(10)), "{temporality:?}");
        let goes_on = match temporality {
            Temporality::Delta => (2.0, nanos(20)),
            Temporality::Cumulative => (4.0, nanos(10)),
        };
        assert_eq!(told(4, 30), goes_on);
    }
}

/// A name that was forgotten and comes back, larger than it ever was.
#[test]
fn another_counter_of_the_same_name_is_not_the_first() {
    for temporality in [Temporality::Delta, Temporality::Cumulative] {
        let mut sender = points(temporality, LARGE);
        let mut told = |runs: u64, since: i64, second: i64| {
            let mut view = name(runs, 0);
            view.totals.since_ms = at(since).as_millisecond();
            let moment = moment(&[], &[view], &started(0), at(second));
            value(&all(&requests(&mut sender, &moment)), RUNS, "succeeded").unwrap()
        };
        assert_eq!(told(5, 0, 10), (5.0, nanos(0)));
        assert_eq!(told(6, 15, 20), (6.0, nanos(15)), "{temporality:?}");
    }
}

/// Series by name are absent while the store is in trouble.
#[test]
fn a_counter_that_was_away_goes_on() {
    let mut sender = points(Temporality::Delta, LARGE);
    let with = |runs, second| moment(&[], &[name(runs, 0)], &started(0), at(second));
    requests(&mut sender, &with(5, 10));
    for second in [20, 30] {
        let away = all(&requests(&mut sender, &moment(&[], &[], &started(0), at(second))));
        assert_eq!(value(&away, RUNS, "succeeded"), None);
    }
    let back = all(&requests(&mut sender, &with(9, 40)));
    assert_eq!(value(&back, RUNS, "succeeded"), Some((4.0, nanos(10))));
}

#[test]
fn nothing_counts_before_it_began_should_clocks_differ() {
    let mut sender = points(Temporality::Cumulative, LARGE);
    let early = moment(&[], &[name(5, 0)], &started(1), at(-3_600));
    for point in all(&requests(&mut sender, &early)) {
        assert!(point.start <= point.time, "{point:?}");
    }
}
