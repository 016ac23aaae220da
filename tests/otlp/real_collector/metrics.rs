//! What the Collector has is what `/metrics` says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::collector::{Collector, Options};
use crate::received::{Point, PointKind, Received};
use crate::scraped::{Scrape, Series, prometheus_name, series_of};
use crate::world::{Exporter, RUNS, SOON, Setup, logs};

/// Two scrapes and a batch that was sent between them.
struct Between {
    before: Scrape,
    points: Vec<Point>,
    after: Scrape,
}

/// Waits for a whole batch that was made after a scrape, and scrapes again.
async fn between(exporter: &Exporter, collector: &Collector) -> Between {
    let before = exporter.scrape().await;
    let from = now_nanoseconds();
    // Two later ones: what one interval sends may be several requests.
    let points = collector.until("points made after a scrape", SOON, |received| {
        let mut times: Vec<u64> =
            received.points.iter().map(|point| point.time).filter(|time| *time > from).collect();
        times.sort_unstable();
        times.dedup();
        let (first, _) = (times.first()?, times.get(1)?);
        let of_first = received.points.iter().filter(|point| point.time == *first);
        Some(of_first.cloned().collect::<Vec<_>>())
    });
    Between { before, points, after: exporter.scrape().await }
}

fn now_nanoseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// To the last bit, which only a number that is written as it is has.
fn same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
}

/// Every point against every series.
fn compare(between: &Between) {
    let Between { before, points, after } = between;
    let mut sent: BTreeMap<Series, f64> = BTreeMap::new();
    let mut families = BTreeSet::new();
    for point in points.iter().filter(|point| !point.ended) {
        let family = prometheus_name(point);
        let kind = before.kinds.get(&family).or_else(|| after.kinds.get(&family));
        let kind = kind.unwrap_or_else(|| panic!("/metrics knows no {family}: {point:?}"));
        let fits = match &point.kind {
            PointKind::Gauge(_) => kind == "gauge",
            PointKind::Sum { monotonic: true, delta, .. } => kind == "counter" && !delta,
            // Info and state sets: by the specification sums that can fall.
            PointKind::Sum { delta, .. } => kind == "gauge" && !delta,
            PointKind::Histogram { delta, .. } => kind == "histogram" && !delta,
        };
        assert!(fits, "{family} is a {kind} on /metrics: {point:?}");
        assert_eq!(Some(&point.description), after.help.get(&family), "{family}");
        if !matches!(point.kind, PointKind::Gauge(_)) {
            assert!(0 < point.start && point.start <= point.time, "{family}: {point:?}");
        }
        of_the_right_resource(point);
        for (series, value) in series_of(point) {
            let twice = sent.insert(series.clone(), value);
            assert!(twice.is_none(), "{series:?} has two points at one moment");
        }
        families.insert(family);
    }
    let mut moved = 0;
    for (series, value) in &before.series {
        let family = before.family(&series.0);
        let Some(later) = after.series.get(series) else {
            assert!(family.starts_with("spark_exporter_"), "{series:?} went away meanwhile");
            continue;
        };
        let got = sent.get(series).unwrap_or_else(|| panic!("{series:?} was not sent"));
        if same(*value, *later) {
            assert!(same(*got, *value), "{series:?}: {got}, not {value}");
        } else {
            // The daemon's own series tell of requests that go on meanwhile.
            assert!(family.starts_with("spark_exporter_"), "{series:?} did not settle");
            moved += 1;
            if before.kinds[family] != "gauge" {
                assert!(value <= got && got <= later, "{series:?}: {value} <= {got} <= {later}");
            }
        }
    }
    for series in sent.keys() {
        let known = before.series.contains_key(series) || after.series.contains_key(series);
        assert!(known, "{series:?} is not on /metrics");
    }
    let of_runs = before.series.keys().filter(|(_, labels)| labels.contains_key("app_id")).count();
    assert!(of_runs > 1_000, "only {of_runs} series of runs were compared");
    assert!(moved < 100, "{moved} series changed: too many to compare");
    assert!(families.len() > 100, "{} families", families.len());
    assert!(before.kinds.values().any(|kind| kind == "histogram"), "a histogram was compared");
}

/// Of a run's point, its application; of the others, the exporter.
fn of_the_right_resource(point: &Point) {
    let resource = |key: &str| point.resource.get(key).map(String::as_str);
    if let Some(app_id) = point.attributes.get("app_id") {
        let cluster = point.attributes.get("spark_cluster").map(String::as_str);
        assert_eq!(resource("spark.application.id"), Some(app_id.as_str()), "{point:?}");
        assert_eq!(resource("spark.cluster.name"), cluster, "{point:?}");
        assert!(resource("service.instance.id").is_some_and(|id| id.starts_with(app_id)));
        if let Some(name) = point.attributes.get("app_name") {
            assert_eq!(resource("service.name"), Some(name.as_str()), "{point:?}");
        }
    } else {
        assert_eq!(resource("service.name"), Some("spark-exporter"), "{point:?}");
        assert_eq!(resource("service.version"), Some(env!("CARGO_PKG_VERSION")));
        assert!(resource("spark.application.id").is_none(), "{point:?}");
    }
}

async fn all_arrives_as_on_metrics(setup: Setup, collector: &Collector) {
    let logs = logs(&RUNS);
    let exporter = setup.start(logs.path());
    exporter.settled(RUNS.len()).await;
    compare(&between(&exporter, collector).await);
    exporter.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_with_tls_gzip_and_a_key() {
    let collector = Collector::start(Options {
        tls: true,
        api_key: Some(("x-api-key", "of-the-test")),
        ..Options::default()
    });
    let setup = Setup::to("http/protobuf", &collector.http())
        .with("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .with("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=of-the-test");
    all_arrives_as_on_metrics(with_certificates(setup, &collector), &collector).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_grpc_with_tls_gzip_and_a_key() {
    let collector = Collector::start(Options {
        tls: true,
        api_key: Some(("x-api-key", "of-the-test")),
        ..Options::default()
    });
    let setup = Setup::to("grpc", &collector.grpc())
        .with("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .with("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=of-the-test");
    all_arrives_as_on_metrics(with_certificates(setup, &collector), &collector).await;
}

fn with_certificates(setup: Setup, collector: &Collector) -> Setup {
    let file = |name: &str| collector.file(name).display().to_string();
    setup
        .with("OTEL_EXPORTER_OTLP_CERTIFICATE", &file("ca.pem"))
        .with("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &file("client.pem"))
        .with("OTEL_EXPORTER_OTLP_CLIENT_KEY", &file("client.key"))
}

/// The sum of all deltas is the counter.
#[tokio::test(flavor = "multi_thread")]
async fn deltas_add_up() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS[..3]);
    let exporter = Setup::to("http/protobuf", &collector.http())
        .with("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
        .start(logs.path());
    exporter.settled(3).await;
    let before = exporter.scrape().await;
    let from = now_nanoseconds();
    let received = collector.until("points after a scrape", SOON, |received| {
        let later: BTreeSet<u64> =
            received.points.iter().map(|point| point.time).filter(|time| *time > from).collect();
        (later.len() > 2)
            .then(|| Received { points: received.points.clone(), ..Received::default() })
    });
    let after = exporter.scrape().await;
    let mut sums: BTreeMap<Series, f64> = BTreeMap::new();
    let mut ends: BTreeMap<Series, u64> = BTreeMap::new();
    for point in &received.points {
        let (PointKind::Sum { monotonic: true, delta, .. } | PointKind::Histogram { delta, .. }) =
            point.kind
        else {
            continue;
        };
        assert!(delta, "{point:?}");
        for (series, value) in series_of(point) {
            // Without gaps and without overlaps.
            let end = ends.insert(series.clone(), point.time);
            assert!(end.is_none_or(|end| end == point.start), "{series:?} has a gap: {point:?}");
            *sums.entry(series).or_default() += value;
        }
    }
    let mut compared = 0;
    for (series, value) in &before.series {
        if before.kinds[before.family(&series.0)] == "gauge" {
            continue;
        }
        let later = after.series[series];
        let sum = sums.get(series).copied().unwrap_or_default();
        assert!(
            *value - 1e-6 <= sum && sum <= later + 1e-6,
            "{series:?}: {value} <= {sum} <= {later}"
        );
        compared += usize::from(*value > 0.0);
    }
    assert!(compared > 10, "{compared} counters and buckets that count something");
}

/// A run whose retention is over: each of its series is ended, once.
#[tokio::test(flavor = "multi_thread")]
async fn series_that_leave_are_ended() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS[..1]);
    let app_id = RUNS[0].1;
    let exporter =
        Setup::to("grpc", &collector.grpc()).arguments(&["--retention", "12s"]).start(logs.path());
    exporter.settled(1).await;
    collector.until("points of the run", SOON, |received| {
        received.points.iter().any(|point| of_run(point, app_id)).then_some(())
    });
    let key = |point: &Point| (point.name.clone(), point.attributes.clone());
    let all = |received: &Received, ended: bool| -> BTreeSet<_> {
        let points = received.points.iter().filter(|point| of_run(point, app_id));
        points.filter(|point| point.ended == ended).map(key).collect()
    };
    collector.until("ends of all its series", SOON, |received| {
        let (shown, ended) = (all(received, false), all(received, true));
        (!ended.is_empty() && shown == ended).then_some(())
    });
    assert!(!exporter.text().await.contains(app_id));
    // Three intervals on, no series was ended twice.
    std::thread::sleep(Duration::from_secs(3));
    let received = collector.received();
    let ends: Vec<_> =
        received.points.iter().filter(|point| of_run(point, app_id) && point.ended).collect();
    assert_eq!(ends.len(), all(&received, true).len());
    let first_end = ends.iter().map(|point| point.time).min().unwrap();
    for point in received.points.iter().filter(|point| of_run(point, app_id) && !point.ended) {
        assert!(point.time < first_end, "{point:?} came after the end");
    }
}

fn of_run(point: &Point, app_id: &str) -> bool {
    point.attributes.get("app_id").is_some_and(|id| id == app_id)
}
