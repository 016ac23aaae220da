//! Back ends that are down, start late, are slow, small, or refuse: nothing
//! that can still be delivered is lost or comes twice, what cannot is counted,
//! and a scrape is as fast as ever.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;

use super::traces::{is_the_log, whole_trace};
use crate::collector::{Collector, Options};
use crate::log::Log;
use crate::received::Received;
use crate::tap::{Answer, Caught, Tap};
use crate::world::{Exporter, RUNS, SOON, Setup, logs, write_log};

/// What other tests may add to a scrape; who waits for a back end waits longer.
const HICCUP: Duration = Duration::from_secs(2);

/// How long a scrape takes: the middle one of many.
async fn scrape_time(exporter: &Exporter) -> Duration {
    let mut times = Vec::new();
    for _ in 0..15 {
        let started = Instant::now();
        exporter.text().await;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    times[7]
}

fn last_metric_time(received: &Received) -> u64 {
    received.points.iter().map(|point| point.time).max().unwrap_or_default()
}

/// Each trace whole, each span and record once.
fn all_is_there(collector: &Collector, logs: &std::path::Path, runs: &[(&str, &str)]) {
    for (_, app_id) in runs {
        let log = Log::read(logs, app_id);
        is_the_log(&whole_trace(collector, app_id, &log), &log);
    }
    // Of the first run, the skewed one, there is a finding in any case.
    let received = collector.until("records of findings", SOON, |received| {
        let of_first = |id: &str| id == runs[0].1;
        let mut ids =
            received.records.iter().map(|record| &record.resource["spark.application.id"]);
        ids.any(|id| of_first(id)).then(|| received.clone())
    });
    let mut once = BTreeSet::new();
    for record in &received.records {
        let key = (record.resource.clone(), record.attributes.clone());
        assert!(once.insert(key), "twice: {record:?}");
    }
}

/// Started after the daemon, killed, and back.
async fn down_and_back(protocol: &str) {
    let mut collector = Collector::absent(Options::default());
    let logs = logs(&RUNS[..2]);
    let endpoint = if protocol == "grpc" { collector.grpc() } else { collector.http() };
    let exporter = Setup::to(protocol, &endpoint).start(logs.path());
    exporter.settled(2).await;
    let without = scrape_time(&exporter).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    collector.restart();
    all_is_there(&collector, logs.path(), &RUNS[..2]);
    collector.until("metrics", SOON, |received| (last_metric_time(received) > 0).then_some(()));

    collector.kill();
    let before = last_metric_time(&collector.received());
    // A run that ends while nobody listens.
    let (recorded, app_id) = RUNS[2];
    write_log(logs.path(), recorded, app_id);
    exporter.settled(3).await;
    let dead = scrape_time(&exporter).await;
    assert!(dead < without * 5 + HICCUP, "{dead:?}, {without:?} before");
    tokio::time::sleep(Duration::from_secs(4)).await;
    collector.restart();
    all_is_there(&collector, logs.path(), &RUNS[..3]);
    collector.until("metrics again", SOON, |received| {
        (last_metric_time(received) > before).then_some(())
    });
    exporter.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_and_back_over_http() {
    down_and_back("http/protobuf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_and_back_over_grpc() {
    down_and_back("grpc").await;
}

fn of_traces(caught: &[Caught]) -> Vec<Caught> {
    let traces = ["/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"];
    caught.iter().filter(|request| traces.contains(&&*request.path)).cloned().collect()
}

/// Traces alone, so that the answers meant for them are given to them.
fn traces_only(protocol: &str, tap: &Tap) -> Setup {
    Setup::to(protocol, &tap.url())
        .with("OTEL_METRICS_EXPORTER", "none")
        .with("OTEL_LOGS_EXPORTER", "none")
}

/// Too many requests, with a time to wait; unavailable, without: both are
/// tried again with the same bytes, the first no sooner than it said.
#[tokio::test(flavor = "multi_thread")]
async fn who_says_later_is_asked_later_over_http() {
    let collector = Collector::start(Options::default());
    let tap = Tap::before(&collector.http(), false).await;
    let http = |status, headers| Answer::Http { status, headers, body: Bytes::new() };
    tap.answer([http(429, vec![("retry-after", "2".to_owned())]), http(503, Vec::new())]);
    let logs = logs(&RUNS[..1]);
    let exporter = traces_only("http/protobuf", &tap).start(logs.path());
    let log = Log::read(logs.path(), RUNS[0].1);
    is_the_log(&whole_trace(&collector, RUNS[0].1, &log), &log);
    let asked = of_traces(&tap.caught());
    assert!(asked.len() >= 3, "{} requests", asked.len());
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(1_900), "asked too early");
    assert_eq!(asked[0].body, asked[1].body, "what was not taken is sent as it was");
    exporter.stop();
}

/// The same by gRPC: unavailable, and exhausted with `RetryInfo`.
#[tokio::test(flavor = "multi_thread")]
async fn who_says_later_is_asked_later_over_grpc() {
    let collector = Collector::start(Options::default());
    let tap = Tap::before(&collector.grpc(), true).await;
    tap.answer([
        Answer::Grpc { code: 8, message: "later", details: Some(retry_in(2)) },
        Answer::Grpc { code: 14, message: "away", details: None },
    ]);
    let logs = logs(&RUNS[..1]);
    let exporter = traces_only("grpc", &tap).start(logs.path());
    let log = Log::read(logs.path(), RUNS[0].1);
    is_the_log(&whole_trace(&collector, RUNS[0].1, &log), &log);
    let asked = of_traces(&tap.caught());
    assert!(asked.len() >= 3, "{} requests", asked.len());
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(1_900), "asked too early");
    exporter.stop();
}

/// `google.rpc.Status` with a `RetryInfo` of so many seconds, by hand.
fn retry_in(seconds: u8) -> Bytes {
    let field = |number: u8, content: &[u8]| {
        let mut all = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        all.extend_from_slice(content);
        all
    };
    let delay = field(1, &[1 << 3, seconds]);
    let kind = field(1, b"type.googleapis.com/google.rpc.RetryInfo");
    let any = [kind, field(2, &delay)].concat();
    [vec![1 << 3, 8], field(2, b"later"), field(3, &any)].concat().into()
}

/// What a back end takes in part is not sent again, and what it left out is
/// counted.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_rejected_is_counted_and_not_sent_again() {
    for grpc in [false, true] {
        let collector = Collector::start(Options::default());
        let target = if grpc { collector.grpc() } else { collector.http() };
        let tap = Tap::before(&target, grpc).await;
        let partial = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "three are too old".to_owned(),
            }),
        };
        let body: Bytes = partial.encode_to_vec().into();
        let headers = vec![("content-type", "application/x-protobuf".to_owned())];
        tap.always(Some(if grpc {
            Answer::GrpcMessage(body)
        } else {
            Answer::Http { status: 200, headers, body }
        }));
        let logs = logs(&RUNS[..1]);
        let protocol = if grpc { "grpc" } else { "http/protobuf" };
        let exporter = traces_only(protocol, &tap).start(logs.path());
        exporter.settled(1).await;
        let rejected = counter(&exporter, "spark_exporter_otlp_items_rejected", 3.0).await;
        assert!(rejected >= 3.0, "{rejected}");
        let asked = of_traces(&tap.caught()).len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(of_traces(&tap.caught()).len(), asked, "sent again");
        exporter.stop();
    }
}

/// A request that can never be taken is given up, counted, and stops nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_given_up_and_the_rest_goes_on() {
    for (grpc, refusal) in [
        (false, Answer::Http { status: 400, headers: Vec::new(), body: Bytes::new() }),
        (true, Answer::Grpc { code: 3, message: "no", details: None }),
    ] {
        let collector = Collector::start(Options::default());
        let target = if grpc { collector.grpc() } else { collector.http() };
        let tap = Tap::before(&target, grpc).await;
        tap.always(Some(refusal));
        let logs = logs(&RUNS[..1]);
        let protocol = if grpc { "grpc" } else { "http/protobuf" };
        let exporter = traces_only(protocol, &tap).start(logs.path());
        exporter.settled(1).await;
        counter(&exporter, "spark_exporter_otlp_items_failed", 1.0).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let asked = of_traces(&tap.caught()).len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(of_traces(&tap.caught()).len(), asked, "sent again");
        tap.always(None);
        let (recorded, app_id) = RUNS[1];
        write_log(logs.path(), recorded, app_id);
        let log = Log::read(logs.path(), app_id);
        is_the_log(&whole_trace(&collector, app_id, &log), &log);
        exporter.stop();
    }
}

/// The sum of the daemon's counters that begin so, once it is as large.
async fn counter(exporter: &Exporter, begins: &str, least: f64) -> f64 {
    let deadline = Instant::now() + SOON;
    loop {
        let scrape = exporter.scrape().await;
        let of_it = scrape.series.iter().filter(|((name, labels), _)| {
            name.starts_with(begins) && labels.get("signal").is_none_or(|signal| signal == "traces")
        });
        let sum = of_it.map(|(_, value)| value).sum();
        if sum >= least {
            return sum;
        }
        assert!(Instant::now() < deadline, "{begins}* is {sum}, not {least}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// A back end that answers nothing for a minute: a scrape does not notice, and
/// the end of the daemon does not wait for it longer than it says.
#[tokio::test(flavor = "multi_thread")]
async fn a_back_end_that_hangs_delays_nobody() {
    let collector = Collector::start(Options::default());
    let tap = Tap::before(&collector.http(), false).await;
    let logs = logs(&RUNS);
    let quiet = Setup::default().start(logs.path());
    quiet.settled(RUNS.len()).await;
    let without = scrape_time(&quiet).await;
    quiet.stop();
    tap.always(Some(Answer::Slowly(Duration::from_mins(1))));
    let exporter = Setup::to("http/protobuf", &tap.url())
        .line("otlp: {shutdown_timeout: 2s}")
        .start(logs.path());
    exporter.settled(RUNS.len()).await;
    let hangs = scrape_time(&exporter).await;
    assert!(!tap.caught().is_empty(), "nothing hangs");
    assert!(hangs < without * 5 + HICCUP, "{hangs:?}, {without:?} without");
    let started = Instant::now();
    exporter.stop();
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

/// More than a gRPC server takes at once: requests are smaller than that. Of
/// one that takes a quarter as much, a setting knows.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_below_what_a_server_takes() {
    for (limit_mib, line) in [(4, ""), (1, "otlp: {request_size: 900KiB}")] {
        let collector =
            Collector::start(Options { grpc_limit_mib: Some(limit_mib), ..Options::default() });
        let tap = Tap::before(&collector.grpc(), true).await;
        let folder = tempfile::tempdir().unwrap();
        let runs: Vec<String> = (0..24).map(|number| format!("app-otlp-{number:02}")).collect();
        for (number, app_id) in runs.iter().enumerate() {
            write_log(folder.path(), RUNS[number % 3].0, app_id);
        }
        let exporter = Setup::to("grpc", &tap.url()).line(line).start(folder.path());
        exporter.settled(runs.len()).await;
        let scrape = exporter.scrape().await;
        let of_runs =
            scrape.series.keys().filter(|(_, labels)| labels.contains_key("app_id")).count();
        let whole = |received: &Received| {
            let last = last_metric_time(received);
            // One before the last: those of the last may still be under way.
            let times: BTreeSet<u64> = received.points.iter().map(|point| point.time).collect();
            let time = times.range(..last).next_back()?;
            let points = received.points.iter().filter(|point| point.time == *time);
            let there = points.filter(|point| point.attributes.contains_key("app_id")).count();
            (there >= of_runs).then_some(())
        };
        collector.until(&format!("{of_runs} points at once"), SOON, whole);
        let sizes: Vec<usize> = tap.caught().iter().map(|caught| caught.body.len()).collect();
        let most = sizes.iter().max().unwrap();
        assert!(*most < limit_mib as usize * 1_048_576, "{most} bytes in one request");
        exporter.stop();
    }
}
