//! What is sent by OTLP, beside the same as text of `/metrics`: time, CPU and
//! memory, in the same minute on the same snapshot.
//!
//! `cargo bench --bench otlp`

#![allow(clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use spark_exporter::config::otlp::{
    Compression, Destination, OtlpResource, Protocol, Signal, Temporality,
};
use spark_exporter::config::{Limits, TlsConfig};
use spark_exporter::expose::otlp::Moment;
use spark_exporter::expose::otlp::deliver::{Sender, Sent};
use spark_exporter::expose::otlp::points::Points;
use spark_exporter::expose::{self, ExposeState};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{RunView, build};
use spark_exporter::model::StageStatus;
use spark_exporter::telemetry::Telemetry;
use support::{at, changed, executor, run_id, skewed_run, skewed_stage};
use tokio::net::TcpListener;

const SERIES: usize = 100_000;
const ROUNDS: usize = 15;
const REQUEST_SIZE: usize = 3 << 20;

fn main() {
    let limits = Limits::default();
    let telemetry = Arc::new(Telemetry::new(at(0)));
    let runs = runs(&limits);
    metrics(&runs, &telemetry, &limits);
}

/// Runs of 20 stages and 10 executors, until there are enough series.
fn runs(limits: &Limits) -> Vec<RunView> {
    let base = changed(&skewed_run(run_id("default", "app-0")), |application, diagnosis| {
        application.stages = (0..20).map(|id| skewed_stage(id, StageStatus::Complete)).collect();
        application.executors = (0..10).map(executor).collect();
        let numbers = diagnosis.stages.values().next().copied().unwrap_or_default();
        diagnosis.stages = application.stages.iter().map(|stage| (stage.id, numbers)).collect();
    });
    let counters = Telemetry::new(at(0)).snapshot();
    let none = build(&[], &[], &counters, limits, at(0)).series();
    let one = build(std::slice::from_ref(&base), &[], &counters, limits, at(0)).series();
    (0..SERIES.div_ceil(one - none))
        .map(|number| {
            changed(&base, |application, _| {
                application.id =
                    run_id("default", &format!("application_1764460800123_{number:04}"));
            })
        })
        .collect()
}

/// How long something takes, on the wall and of CPU, and how much memory at
/// its peak beyond what there was.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    memory: usize,
}

/// Medians of several rounds, after one to warm up; CPU over all of them.
fn cost(mut work: impl FnMut()) -> Cost {
    work();
    let (before, cpu) = (peak_begins(), cpu_time());
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    let cpu = cpu_time().saturating_sub(cpu) / u32::try_from(ROUNDS).expect("few");
    let memory = status("VmHWM").saturating_sub(before);
    times.sort_unstable();
    Cost { wall: times[ROUNDS / 2], cpu, memory }
}

/// A number of kilobytes of `/proc/self/status`, in bytes.
fn status(key: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|line| line.starts_with(key)).expect("a line");
    let number = line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok());
    number.expect("a number") * 1_024
}

/// The peak is what there is now.
fn peak_begins() -> usize {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    status("VmRSS")
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = text.rsplit(')').next().expect("its name");
    let fields = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // A hundred ticks are a second wherever Linux runs.
    Duration::from_millis(ticks * 10)
}

fn line(what: &str, cost: Cost, other: Cost) {
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64().max(1e-9);
    println!(
        "{what:<44} {:>7.1} ms {:>5.2} x   CPU {:>7.1} ms {:>5.2} x   +{:>5.1} MB",
        cost.wall.as_secs_f64() * 1e3,
        ratio(cost.wall, other.wall),
        cost.cpu.as_secs_f64() * 1e3,
        ratio(cost.cpu, other.cpu),
        cost.memory as f64 / 1e6
    );
}

/// Takes everything that is posted to it.
async fn sink() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1/metrics", listener.local_addr().expect("bound"));
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let count = Arc::clone(&count);
                    async move {
                        let body = request.into_body().collect().await?.to_bytes();
                        count.fetch_add(body.len(), Ordering::Relaxed);
                        Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::default()))
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (url, taken)
}

fn destination(endpoint: String) -> Destination {
    Destination {
        protocol: Protocol::HttpProtobuf,
        endpoint,
        headers: Vec::new(),
        header_files: Vec::new(),
        timeout: Duration::from_secs(10),
        compression: Compression::Gzip,
        tls: TlsConfig::default(),
        request_size: REQUEST_SIZE,
    }
}

fn metrics(runs: &[RunView], telemetry: &Arc<Telemetry>, limits: &Limits) {
    let snapshot = Arc::new(build(runs, &[], &telemetry.snapshot(), limits, at(80)));
    let moment = |second| {
        let snapshot = Arc::clone(&snapshot);
        Arc::new(Moment { snapshot, runs: runs.into(), ready: true, at: at(second) })
    };
    let points = || {
        let (resource, instance) = (OtlpResource::default(), "here".to_owned());
        Points::new(Temporality::Cumulative, resource, instance, REQUEST_SIZE, SERIES)
    };

    let text = cost(|| {
        black_box(render(&snapshot, Format::OpenMetrics));
    });
    println!("{} series of {} runs\n", snapshot.series(), runs.len());
    line("write OpenMetrics", text, text);
    let mut bytes = 0;
    let mut second = 100;
    let mut known = points();
    let again = cost(|| {
        bytes = 0;
        second += 1;
        known.begin(moment(second));
        while let Some(request) = known.request() {
            bytes += black_box(request.body).len();
            known.accepted();
        }
    });
    line("encode, series known", again, text);
    drop(known);
    let first = cost(|| {
        let mut points = points();
        points.begin(moment(100));
        while let Some(request) = points.request() {
            black_box(request.body);
            points.accepted();
        }
    });
    line("encode, the first time", first, text);
    println!("{:.1} MB of requests\n", bytes as f64 / 1e6);

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let scraped = scrape(&runtime, &snapshot, runs, telemetry);
    line("scrape with gzip", scraped, scraped);
    let (url, taken) = runtime.block_on(sink());
    let sender = {
        let _inside = runtime.enter();
        Sender::new(Signal::Metrics, &destination(url), Arc::clone(telemetry)).expect("a sender")
    };
    let mut points = points();
    let pushed = cost(|| {
        taken.store(0, Ordering::Relaxed);
        second += 1;
        points.begin(moment(second));
        while let Some(request) = points.request() {
            let until = tokio::time::Instant::now() + Duration::from_secs(10);
            let sent = runtime.block_on(sender.send(&request, until));
            assert!(matches!(sent, Sent::Accepted { .. }), "{sent:?}");
            points.accepted();
        }
    });
    line("encode, gzip and send", pushed, scraped);
    println!("gzip: {:.2} MB", taken.load(Ordering::Relaxed) as f64 / 1e6);
}

/// One scrape over loopback of a snapshot that nobody asked for yet.
fn scrape(
    runtime: &tokio::runtime::Runtime,
    snapshot: &Arc<spark_exporter::metrics::Snapshot>,
    runs: &[RunView],
    telemetry: &Arc<Telemetry>,
) -> Cost {
    let state = Arc::new(ExposeState::new(Arc::clone(telemetry), &Limits::default(), at(0)));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let url = format!("http://{}/metrics", listener.local_addr().expect("bound"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = runtime.spawn(expose::run(listener, Arc::clone(&state), async {
        let _ = stopped.await;
    }));
    let client = reqwest::Client::builder().no_proxy().no_gzip().build().expect("a client");
    let scraped = cost(|| {
        state.publish(Arc::clone(snapshot), runs.to_vec(), at(80));
        runtime.block_on(async {
            let request = client
                .get(&url)
                .header("accept", "application/openmetrics-text;version=1.0.0")
                .header("accept-encoding", "gzip");
            request.send().await.expect("an answer").bytes().await.expect("a body")
        });
    });
    drop(stop);
    runtime.block_on(server).expect("no panic");
    scraped
}
