//! 100,000 series: how long a snapshot takes to make, to write in both text
//! formats, and to scrape over a socket; each beside something that has
//! nothing to do with us and ran in the same minute on the same bytes.
//!
//! `cargo bench --bench exposition`

#![allow(clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spark_exporter::config::Limits;
use spark_exporter::expose::{self, ExposeState};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{RunView, build};
use spark_exporter::model::StageStatus;
use spark_exporter::telemetry::{Telemetry, TelemetrySnapshot};
use support::{at, changed, executor, run_id, skewed_run, skewed_stage};

const SERIES: usize = 100_000;
const ROUNDS: usize = 15;

/// Runs of 20 stages and 10 executors, until there are enough series.
fn runs(limits: &Limits) -> Vec<RunView> {
    let base = changed(&skewed_run(run_id("default", "app-0")), |application, diagnosis| {
        application.stages = (0..20).map(|id| skewed_stage(id, StageStatus::Complete)).collect();
        application.executors = (0..10).map(executor).collect();
        let numbers = diagnosis.stages.values().next().copied().unwrap_or_default();
        diagnosis.stages = application.stages.iter().map(|stage| (stage.id, numbers)).collect();
    });
    let none = build(&[], &[], &TelemetrySnapshot::default(), limits, at(0)).series();
    let one = build(std::slice::from_ref(&base), &[], &TelemetrySnapshot::default(), limits, at(0));
    let each = one.series() - none;
    (0..SERIES.div_ceil(each))
        .map(|number| {
            changed(&base, |application, _| {
                application.id =
                    run_id("default", &format!("application_1764460800123_{number:04}"));
            })
        })
        .collect()
}

/// The median of several rounds, after one to warm up.
fn time<T>(mut work: impl FnMut() -> T) -> Duration {
    black_box(work());
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn line(what: &str, took: Duration, beside: &str, other: Duration) {
    println!(
        "{what:<46} {:>8.1} ms   {:>6.2} x {beside} ({:.1} ms)",
        took.as_secs_f64() * 1e3,
        took.as_secs_f64() / other.as_secs_f64(),
        other.as_secs_f64() * 1e3
    );
}

/// `gzip -1` reading `text` and writing to a pipe that is read.
fn gzip(text: &str) -> usize {
    let mut child = Command::new("gzip")
        .args(["-1", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip is installed");
    let mut input = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(text.as_bytes()).expect("gzip reads"));
        child.wait_with_output().expect("gzip ends").stdout.len()
    })
}

/// One scrape over loopback of a snapshot that nobody asked for yet (or did,
/// where `again`); `packed` asks for gzip and does not unpack.
fn scrape(
    runtime: &tokio::runtime::Runtime,
    limits: &Limits,
    packed: bool,
    again: bool,
) -> (Duration, usize) {
    let runs = runs(limits);
    runtime.block_on(async {
        let telemetry = Arc::new(Telemetry::default());
        let state = Arc::new(ExposeState::new(Arc::clone(&telemetry), limits, at(0)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/metrics", listener.local_addr().expect("bound"));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(expose::run(listener, Arc::clone(&state), async {
            let _ = stopped.await;
        }));
        let client = reqwest::Client::builder().no_proxy().no_gzip().build().expect("a client");
        let get = async || {
            let mut request =
                client.get(&url).header("accept", "application/openmetrics-text;version=1.0.0");
            if packed {
                request = request.header("accept-encoding", "gzip");
            }
            request.send().await.expect("an answer").bytes().await.expect("a body").len()
        };
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..=ROUNDS {
            state.publish(
                build(&runs, &[], &telemetry.snapshot(), limits, at(80)),
                runs.clone(),
                at(80),
            );
            if again {
                get().await;
            }
            let started = Instant::now();
            bytes = get().await;
            times.push(started.elapsed());
        }
        drop(stop);
        server.await.expect("no panic");
        times.remove(0);
        times.sort_unstable();
        (times[ROUNDS / 2], bytes)
    })
}

fn main() {
    let limits = Limits::default();
    let runs = runs(&limits);
    let telemetry = TelemetrySnapshot::default();
    let snapshot = Arc::new(build(&runs, &[], &telemetry, &limits, at(80)));
    let text = render(&snapshot, Format::OpenMetrics);
    println!(
        "{} series of {} runs, {:.1} MB of text\n",
        snapshot.series(),
        runs.len(),
        text.len() as f64 / 1e6
    );

    let copy = time(|| text.as_bytes().to_vec());
    let packing = time(|| gzip(&text));
    line(
        "make the snapshot",
        time(|| build(&runs, &[], &telemetry, &limits, at(80))),
        "copying the text",
        copy,
    );
    let open = time(|| render(&snapshot, Format::OpenMetrics));
    line("write OpenMetrics", open, "copying the text", copy);
    let plain = time(|| render(&snapshot, Format::Prometheus));
    line("write Prometheus text", plain, "copying the text", copy);

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (took, _) = scrape(&runtime, &limits, false, false);
    line("scrape, first after a cycle", took, "`gzip -1` of the text", packing);
    let (took, bytes) = scrape(&runtime, &limits, true, false);
    line("scrape with gzip, first after a cycle", took, "`gzip -1` of the text", packing);
    let (took, _) = scrape(&runtime, &limits, true, true);
    line("scrape with gzip, same snapshot again", took, "`gzip -1` of the text", packing);
    println!(
        "\ngzip: {:.2} MB ({:.1} %)",
        bytes as f64 / 1e6,
        bytes as f64 / text.len() as f64 * 100.0
    );
}
