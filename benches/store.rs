//! What remembering a run costs, and what a store of many runs takes: beside
//! the same bytes appended to a plain file and synced, in the same minute on
//! the same disk.
//!
//! `cargo bench --features postgres --bench store`; without the feature, the
//! file alone.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[cfg(feature = "postgres")]
#[path = "../tests/store/server.rs"]
mod server;
#[path = "../tests/store_suite/mod.rs"]
mod store_suite;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use spark_exporter::store::embedded::Embedded;
use spark_exporter::store::{Backend, Counted, LogSeen, Store, StoredRun};
use store_suite::{at, keep, key, run};

const OPEN: &str = "SPARK_EXPORTER_BENCH_OPEN";
/// Runs that are recorded one by one.
const SINGLE: usize = 300;

/// A run with a summary of some 2.5 KB of JSON: lists of stages with names
/// and numbers, as summaries are.
fn realistic(number: usize) -> StoredRun {
    let mut run = run(&format!("job-{:03}", number % 200), at(number as i64 * 60));
    run.record.log = Some(LogSeen {
        place: "s3://logs/spark-events".to_owned(),
        key: format!("eventlog_v2_application_1764460800123_{number:06}"),
        bytes: 1_000_000 + number as u64,
        modified_ms: at(number as i64 * 60).as_millisecond(),
    });
    let mut noise = number as u64 + 1;
    let mut text = String::new();
    for stage in 0..26 {
        noise =
            noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (wall, task, input) = (noise >> 48, noise >> 40, noise >> 32);
        let _ = write!(
            text,
            "stage {stage}: shape {noise:016x}, wall_ms {wall}, task_ms {task}, input_bytes \
             {input}, spill 0; "
        );
    }
    run.summary.spark_version = Some(text);
    run
}

/// Many runs, a thousand a change.
fn fill(store: &dyn Backend, from: usize, to: usize) {
    let mut number = from;
    while number < to {
        let mut change = store.begin().unwrap();
        for _ in 0..1_000.min(to - number) {
            let mut run = realistic(number);
            run.record.counted = Counted::History;
            let key = key(&format!("application_1764460800123_{number:06}"), number as i64);
            change.put_run(&key, &run).unwrap();
            number += 1;
        }
        change.commit().unwrap();
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Milliseconds a run, one change each.
fn record(store: &Store, from: usize) -> f64 {
    let times = (from..from + SINGLE).map(|number| {
        let run = realistic(number);
        let key = key(&format!("application_1764460800123_{number:06}"), number as i64);
        let started = Instant::now();
        store.record(&key, &run, at(0), at(number as i64 * 60)).unwrap();
        started.elapsed()
    });
    median(times.collect())
}

/// Milliseconds to append the same bytes to a plain file and sync it.
fn append(folder: &Path) -> f64 {
    let mut file = std::fs::File::create(folder.join("plain")).unwrap();
    let times = (0..SINGLE).map(|number| {
        let run = realistic(number);
        let bytes = serde_json::to_vec(&(&run.record, &run.summary)).unwrap();
        let started = Instant::now();
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
        started.elapsed()
    });
    median(times.collect())
}

/// In a process of its own: what the daemon reads when it starts.
fn open(path: &str) {
    let started = Instant::now();
    let store = Embedded::open(Path::new(path), at(0)).unwrap();
    let opened = started.elapsed();
    let logs = store.logs("production", "s3://logs/spark-events").unwrap().len();
    store.totals().unwrap();
    store.uncounted().unwrap();
    let ready = started.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!(
        "  opened and verified in {:.0} ms, {logs} logs known after {:.0} ms, peak memory {}",
        opened.as_secs_f64() * 1e3,
        ready.as_secs_f64() * 1e3,
        peak.trim()
    );
}

fn main() {
    if let Ok(path) = std::env::var(OPEN) {
        return open(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let json = serde_json::to_vec(&realistic(7)).unwrap().len();
    println!("a run is {json} bytes of JSON");
    let store = Store::new(Box::new(Embedded::open(&path, at(-1)).unwrap()), keep());
    let (file, plain) = (record(&store, 0), append(folder.path()));
    println!(
        "record a run, file:        {file:.2} ms, {:.1} x append and sync ({plain:.2} ms)",
        file / plain
    );
    let mut from = SINGLE;
    for runs in [10_000, 100_000] {
        fill(store.backend(), from, runs);
        from = runs;
        let size = store.backend().size().unwrap();
        let total = size.total_bytes.unwrap_or_default();
        println!(
            "{runs} runs: {:.1} MB of file, {} bytes a run stored, {} in the file",
            total as f64 / 1e6,
            size.run_bytes / size.runs,
            total / size.runs
        );
        // The process has it for itself.
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        let program = std::env::current_exe().unwrap();
        for _ in 0..2 {
            assert!(Command::new(&program).env(OPEN, &copy).status().unwrap().success());
        }
        let file = record(&store, from);
        from += SINGLE;
        println!("  record one more: {file:.2} ms, {:.1} x", file / append(folder.path()));
    }
    postgres(folder.path());
}

#[cfg(feature = "postgres")]
fn postgres(folder: &Path) {
    use store_suite::Place;
    let server = server::Server::start(None, &["fsync=on"]);
    let database = server.database();
    let store = Store::new(database.open(at(-1)).unwrap(), keep());
    let (ours, plain) = (record(&store, 0), append(folder));
    println!(
        "record a run, PostgreSQL:  {ours:.2} ms, {:.1} x append and sync ({plain:.2} ms)",
        ours / plain
    );
    fill(store.backend(), SINGLE, 10_000);
    let size = store.backend().size().unwrap();
    println!(
        "10000 runs: {:.1} MB of tables, {} bytes a run",
        size.total_bytes.unwrap_or_default() as f64 / 1e6,
        size.total_bytes.unwrap_or_default() / size.runs
    );
    let started = Instant::now();
    let store = database.open(at(0)).unwrap();
    let logs = store.logs("production", "s3://logs/spark-events").unwrap().len();
    store.totals().unwrap();
    store.uncounted().unwrap();
    println!("  opened, {logs} logs known after {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &Path) {
    println!("PostgreSQL: not in this build (--features postgres)");
}
