//! A Prometheus that is fed by OTLP has what one that scrapes has: the same
//! series with the same values, alerts and panels.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use spark_exporter::config::Limits;
use spark_exporter::config::otlp::{OtlpResource, Temporality};
use spark_exporter::expose::otlp::Moment;
use spark_exporter::expose::otlp::points::Points;
use spark_exporter::metrics::{RunView, build};
use spark_exporter::telemetry::Telemetry;

use crate::SOON;
use crate::common::real::Program;
use crate::files::quick_rules;
use crate::panels::{dashboards, look};
use crate::runs::Run;
use crate::servers::Prometheus;
use crate::support::{name_view, run_id, skewed_run};

/// What moves between a scrape and an export.
const MOVING: [&str; 6] = [
    "spark_exporter_snapshot_timestamp_seconds",
    "spark_exporter_http_requests_total",
    "spark_exporter_otlp_",
    "spark_exporter_target_last_success_timestamp_seconds",
    "spark_exporter_target_scrape_duration_seconds",
    "spark_exporter_storage_size_bytes",
];

/// Runs of every sort, by the ids they get here.
const RUNS: [(&str, &str); 5] = [
    ("skew", "hot_key/4.3.0"),
    ("spill", "spill/4.3.0"),
    ("failed", "application_failed/4.3.0"),
    ("behind", "streaming_behind/4.3.0"),
    ("healthy-1", "healthy/4.3.0"),
];

/// Recorded runs take a minute: what would cost a job of an hour many minutes
/// costs them seconds.
const FLOORS: &str = "thresholds: {cost: {critical_at: 2s, critical_ratio: 0.05}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fed_by_otlp_it_is_as_if_it_scraped() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    for (id, name) in RUNS {
        Run::recorded(name).named(id, id).write(&logs, id, Duration::from_secs(5));
    }
    let rules = quick_rules(folder.path());
    let scraping = Prometheus::start("prometheus-3", &rules, None);
    let fed = Prometheus::fed(&rules);
    let file = folder.path().join("spark-exporter.yml");
    let text = format!(
        "clusters:\n- {{name: prod, event_log_dirs: ['{}']}}\nintervals: {{event_log_dir: 1s}}\n{FLOORS}",
        logs.display()
    );
    std::fs::write(&file, text).unwrap();
    let (mut program, address) = daemon(&file, &fed);
    scraping.scrape(&[address]);

    let (scraped, pushed) = (Side::of(&scraping), Side::of(&fed));
    let started = Instant::now();
    loop {
        let (scraped, pushed) = tokio::join!(scraped.series(), pushed.series());
        let differences = differences(&scraped, &pushed);
        if scraped.len() > 500 && differences.is_empty() {
            break;
        }
        let few: Vec<_> = differences.iter().take(20).collect();
        let count = differences.len();
        assert!(started.elapsed() < SOON, "{} series, {count} differ: {few:#?}", scraped.len());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    // The rules that come with it find the same.
    let started = Instant::now();
    loop {
        let (scraped, pushed) = tokio::join!(scraped.alerts(), pushed.alerts());
        let skew = ("SparkDataSkew".to_owned(), "skew".to_owned());
        let failed = ("SparkApplicationFailed".to_owned(), "failed".to_owned());
        if scraped == pushed && pushed.contains(&skew) && pushed.contains(&failed) {
            break;
        }
        assert!(started.elapsed() < SOON, "scraped: {scraped:?}\npushed: {pushed:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    // And so do the dashboards.
    let dashboards = dashboards();
    let looks = [
        ("fleet", &[][..]),
        ("exporter", &[]),
        ("application", &[("app_id", "skew")]),
        ("job", &[("app_name", "skew")]),
        ("stage", &[("app_id", "skew"), ("stage_id", "10")]),
        ("streaming", &[]),
    ];
    let started = Instant::now();
    loop {
        let (by_scrape, by_push) =
            tokio::join!(look(&scraping, &dashboards, &looks), look(&fed, &dashboards, &looks));
        assert!(by_push.complaints.is_empty(), "{:?}", by_push.complaints);
        let missing: Vec<_> = by_scrape.shown.difference(&by_push.shown).collect();
        let more: Vec<_> = by_push.shown.difference(&by_scrape.shown).collect();
        // Whether a scrape succeeded is not told by who is not scraped.
        if missing.iter().all(|(on, _, _)| on == "exporter")
            && missing.len() <= 1
            && more.is_empty()
        {
            assert!(by_push.shown.len() > 80, "only {} queries", by_push.shown.len());
            break;
        }
        assert!(started.elapsed() < SOON, "only by scrape: {missing:?}\nonly by OTLP: {more:?}");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    // What is the exporter's own ends with it; the runs are there for the next.
    assert_eq!(program.terminate(SOON), 0);
    fed.wait("spark_exporter_build_info", SOON, <[Value]>::is_empty).await;
    assert!(!fed.query("spark_application_info").await.is_empty());
}

/// Sends metrics to one, and nothing else anywhere.
fn daemon(file: &std::path::Path, fed: &Prometheus) -> (Program, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    command
        .arg("--config.file")
        .arg(file)
        .args(["--web.listen-address", "127.0.0.1:0"])
        .env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", fed.otlp_endpoint())
        .env("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "2000");
    let program = Program::start(command, "spark-exporter", true);
    let address = program.wait_for(SOON, |line| {
        let (_, rest) = line.split_once("address=")?;
        Some(rest.split_whitespace().next()?.trim_matches('"').to_owned())
    });
    (program, address)
}

type Labels = BTreeMap<String, String>;

/// One of the two.
struct Side<'a>(&'a Prometheus);

impl<'a> Side<'a> {
    fn of(prometheus: &'a Prometheus) -> Self {
        Self(prometheus)
    }

    /// All series of ours, without what says by which way they came.
    async fn series(&self) -> BTreeMap<Labels, f64> {
        let found = self.0.query("{__name__=~\"spark_.+\", __name__!~\".*:.*\"}").await;
        let count = found.len();
        let series: BTreeMap<Labels, f64> = found.iter().map(sample).collect();
        assert_eq!(series.len(), count, "series that differ in job and instance only");
        series
    }

    /// Alerts about applications that fire: name and application.
    async fn alerts(&self) -> BTreeSet<(String, String)> {
        let found = self.0.query("ALERTS{alertstate=\"firing\", app_name!=\"\"}").await;
        let text = |one: &Value, label: &str| one["metric"][label].as_str().unwrap().to_owned();
        found.iter().map(|one| (text(one, "alertname"), text(one, "app_name"))).collect()
    }
}

fn sample(one: &Value) -> (Labels, f64) {
    let mut labels: Labels = serde_json::from_value(one["metric"].clone()).unwrap();
    for way in ["job", "instance"] {
        assert!(labels.remove(way).is_some(), "{labels:?} has no {way}");
    }
    // Prometheus writes a bound that it scraped as `1.0`, one by OTLP as `1`.
    if let Some(bound) = labels.get_mut("le")
        && let Ok(number) = bound.parse::<f64>()
    {
        *bound = number.to_string();
    }
    (labels, one["value"][1].as_str().unwrap().parse().unwrap())
}

fn differences(scraped: &BTreeMap<Labels, f64>, pushed: &BTreeMap<Labels, f64>) -> Vec<String> {
    let mut found = Vec::new();
    for (labels, value) in scraped {
        let moves = MOVING.iter().any(|name| labels["__name__"].starts_with(name));
        match pushed.get(labels) {
            None => found.push(format!("only by scrape: {labels:?}")),
            Some(other) if other.to_bits() != value.to_bits() && !moves => {
                found.push(format!("{labels:?}: {value} by scrape, {other} by OTLP"));
            }
            Some(_) => {}
        }
    }
    let more = pushed.keys().filter(|labels| !scraped.contains_key(*labels));
    found.extend(more.map(|labels| format!("only by OTLP: {labels:?}")));
    found
}

/// A run that leaves is gone at once, and not five minutes later, with every
/// bucket of a histogram.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn series_that_leave_are_gone_at_once() {
    let fed = Prometheus::fed(&[]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (resource, instance) = (OtlpResource::default(), "here".to_owned());
    let mut points = Points::new(Temporality::Cumulative, resource, instance, 100_000, 100_000);
    let telemetry = Telemetry::new(jiff::Timestamp::now());
    let mut send = async |runs: &[RunView], names: &[_]| {
        let at = jiff::Timestamp::now();
        let snapshot = build(runs, names, &telemetry.snapshot(), &Limits::default(), at);
        let snapshot = Arc::new(snapshot);
        points.begin(Arc::new(Moment { snapshot, runs: runs.into(), ready: true, at }));
        while let Some(request) = points.request() {
            let request = client
                .post(fed.otlp_endpoint())
                .header("content-type", "application/x-protobuf")
                .body(request.body);
            let response = request.send().await.unwrap();
            let status = response.status();
            assert!(status.is_success(), "{status}: {}", response.text().await.unwrap());
            points.accepted();
        }
    };
    let runs = [skewed_run(run_id("a", "app-1")), skewed_run(run_id("b", "app-2"))];
    send(&runs, &[name_view("a", "orders")]).await;
    let of = |app_id: &str| format!("count({{app_id=\"{app_id}\"}})");
    let by_name = "count({__name__=~\"spark_application_runs_.+\"})";
    for query in [&of("app-1"), &of("app-2"), by_name] {
        fed.wait(query, SOON, |result| result.len() == 1).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    send(&runs[1..], &[]).await;
    for query in [&of("app-1"), by_name] {
        fed.wait(query, SOON, <[Value]>::is_empty).await;
    }
    assert_eq!(fed.query(&of("app-2")).await.len(), 1);
}
