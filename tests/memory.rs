//! The daemon's memory across runs and restarts: each run counted once,
//! whatever happens to the daemon meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::float_cmp, reason = "what is compared are counts")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::real::{Program, client, daemon, get, spark_script, until};
use common::{ended_now, log_text, recorded, value};

const SOON: Duration = Duration::from_mins(2);

/// Values of a family by the values of these labels.
fn family(text: &str, name: &str, labels: &[&str]) -> BTreeMap<Vec<String>, f64> {
    let start = format!("{name}{{");
    let lines = text.lines().filter_map(|line| line.strip_prefix(start.as_str()));
    lines
        .map(|line| {
            let (inside, value) = line.rsplit_once("} ").unwrap();
            let of = |label: &&str| {
                let (_, rest) = inside.split_once(&format!("{label}=\"")).unwrap();
                rest.split_once('"').unwrap().0.to_owned()
            };
            (labels.iter().map(of).collect(), value.parse().unwrap())
        })
        .collect()
}

/// Runs by (name, outcome), those at 0 left out.
fn runs(text: &str) -> BTreeMap<Vec<String>, f64> {
    let mut runs = family(text, "spark_application_runs_total", &["app_name", "outcome"]);
    runs.retain(|_, count| *count > 0.0);
    runs
}

fn exported(store: &Path) -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["store", "export", "--storage.path"])
        .arg(store)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the store holds: (app_id, `counted`) of each run.
fn stored(store: &Path) -> Vec<(String, String)> {
    exported(store)
        .iter()
        .filter_map(|line| {
            let run = line.get("run")?;
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            Some((text(&run["app_id"]), text(&run["record"]["counted"])))
        })
        .collect()
}

/// Runs by name and outcome, as the store adds them up: what is exported once
/// the two minutes at 0 are over.
fn totals(store: &Path) -> BTreeMap<Vec<String>, f64> {
    let outcomes = ["succeeded", "failed", "killed", "cancelled", "lost", "unknown"];
    let lines = exported(store);
    let all = lines.iter().filter_map(|line| line.get("totals")).flat_map(|total| {
        let name = total["app_name"].as_str().unwrap();
        let runs = total["totals"]["runs"].as_array().unwrap().iter();
        outcomes.iter().zip(runs).map(move |(outcome, count)| {
            (vec![name.to_owned(), (*outcome).to_owned()], count.as_f64().unwrap())
        })
    });
    all.filter(|(_, count)| *count > 0.0).collect()
}

/// A restart reads no finished run again and shows the same totals at once;
/// a run that is still to be shown is shown, and counted no second time.
#[tokio::test]
async fn a_restart_goes_on_where_the_last_one_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (folder.path().join("logs"), folder.path().join("store.redb"));
    std::fs::create_dir(&logs).unwrap();
    let start = |retention: &str| {
        daemon(&[
            "--event-log.dir",
            logs.to_str().unwrap(),
            "--storage.path",
            store.to_str().unwrap(),
            "--retention",
            retention,
        ])
    };
    let reads = "spark_exporter_event_log_reads_total ";
    let counted = |text: &str| value(text, "spark_exporter_storage_runs ").unwrap_or(0.0);

    let (mut exporter, address) = start("1h");
    let metrics = format!("{address}/metrics");
    until(&metrics, SOON, |text| (value(text, "spark_exporter_storage_up ")? == 1.0).then_some(()))
        .await;
    for (name, id) in [("hot_key/4.3.0", "app-1"), ("application_failed/4.3.0", "app-2")] {
        std::fs::write(logs.join(id), ended_now(name, id)).unwrap();
    }
    // Ended before the store was made: no burst of failures.
    std::fs::write(logs.join("app-old"), log_text("healthy/4.3.0")).unwrap();
    until(&metrics, SOON, |text| {
        let shown = text.matches("spark_application_info{").count() == 3;
        (shown && value(text, "spark_exporter_storage_pending_runs ") == Some(0.0)).then_some(())
    })
    .await;
    let text = get(&metrics).await;
    assert!(runs(&text).is_empty(), "at 0 for two minutes before the first increment");
    let names = family(&text, "spark_application_runs_total", &["app_name", "outcome"]);
    assert_eq!(names.len(), 3 * 6, "{names:#?}");
    assert_eq!(exporter.terminate(SOON), 0);
    let mut held = stored(&store);
    held.sort();
    let kept = |id: &str, counted: &str| (id.to_owned(), counted.to_owned());
    let old_id = held.iter().find(|(_, counted)| counted == "history").unwrap().0.clone();
    assert_eq!(held.len(), 3);
    assert!(held.contains(&kept("app-1", "yes")) && held.contains(&kept("app-2", "yes")));

    // Within their retention they are shown again, as old as they are.
    let (mut exporter, address) = start("1h");
    let metrics = format!("{address}/metrics");
    until(&metrics, SOON, |text| {
        (text.matches("spark_application_info{").count() == 3).then_some(())
    })
    .await;
    assert_eq!(exporter.terminate(SOON), 0);
    assert_eq!(stored(&store).len(), 3, "{old_id} and the others are there once");

    // After it nothing is read again.
    let (mut exporter, address) = start("1s");
    let metrics = format!("{address}/metrics");
    let text = until(&metrics, SOON, |text| {
        let listed = text.contains("spark_exporter_target_up{") && text.contains("} 1\n");
        let totals = text.contains("spark_application_runs_total{");
        (listed && totals).then(|| text.to_owned())
    })
    .await;
    assert_eq!(value(&text, reads), Some(0.0), "a finished run is not read again");
    assert_eq!(counted(&text), 3.0);
    assert!(!text.contains("spark_application_info{"));
    // A log that changes is read, and is the same run.
    let text = std::fs::read_to_string(logs.join("app-1")).unwrap();
    std::fs::write(logs.join("app-1"), text + "\n").unwrap();
    until(&metrics, SOON, |text| (value(text, reads) == Some(1.0)).then_some(())).await;
    assert_eq!(exporter.terminate(SOON), 0);
    assert_eq!(stored(&store).len(), 3);
}

/// The two minutes at 0 go on over a restart, and then the truth is shown.
#[tokio::test]
async fn a_new_name_stands_at_zero_for_two_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (folder.path().join("logs"), folder.path().join("store.redb"));
    std::fs::create_dir(&logs).unwrap();
    let arguments =
        ["--event-log.dir", logs.to_str().unwrap(), "--storage.path", store.to_str().unwrap()];
    let (mut exporter, address) = daemon(&arguments);
    let metrics = format!("{address}/metrics");
    until(&metrics, SOON, |text| (value(text, "spark_exporter_storage_up ")? == 1.0).then_some(()))
        .await;
    for (name, id) in [("application_failed/4.3.0", "app-2"), ("healthy/4.3.0", "app-3")] {
        std::fs::write(logs.join(id), ended_now(name, id)).unwrap();
    }
    let failed = |text: &str| {
        family(text, "spark_application_runs_total", &["outcome"])
            .get(&vec!["failed".to_owned()])
            .copied()
    };
    until(&metrics, SOON, |text| failed(text)).await;
    let begun = Instant::now();
    assert_eq!(failed(&get(&metrics).await), Some(0.0));
    assert_eq!(exporter.terminate(SOON), 0);
    // Where traces are sent, to whoever is not there.
    let traced = [&arguments[..], &["--otlp.endpoint", "http://127.0.0.1:9"]].concat();
    let (_exporter, address) = daemon(&traced);
    let metrics = format!("{address}/metrics");
    let seen = until(&metrics, SOON, |text| failed(text)).await;
    assert_eq!(seen, 0.0);
    let text = until(&metrics, Duration::from_mins(5), |text| {
        (failed(text) == Some(1.0)).then(|| text.to_owned())
    })
    .await;
    assert!(begun.elapsed() > Duration::from_secs(100), "{:?}", begun.elapsed());
    the_bucket_leads_to_the_trace(&metrics, &text, "app-3").await;
}

/// The duration of a run that ended well is in one bucket of its name, whose
/// exemplar has the trace of that run.
async fn the_bucket_leads_to_the_trace(metrics: &str, text: &str, app_id: &str) {
    let of_run = format!("app_id=\"{app_id}\"");
    let info = text
        .lines()
        .find(|line| line.starts_with("spark_application_info{") && line.contains(&of_run))
        .unwrap();
    let trace = info.split_once("trace_id=\"").unwrap().1.split_once('"').unwrap().0;
    assert_eq!(trace.len(), 32, "{info}");
    let openmetrics = client()
        .get(metrics)
        .header("accept", "application/openmetrics-text;version=1.0.0")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let exemplar = format!("# {{trace_id=\"{trace}\"");
    let buckets: Vec<&str> = openmetrics
        .lines()
        .filter(|line| line.starts_with("spark_application_runs_duration_seconds_bucket{"))
        .filter(|line| line.contains(&exemplar))
        .collect();
    assert_eq!(buckets.len(), 1, "{exemplar} of {buckets:?}");
}

/// A store that cannot be used takes nothing else away: the daemon runs, says
/// so, leaves the file as it is, and shows no totals.
#[tokio::test]
async fn a_store_in_trouble_is_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.redb");
    let foreign = b"SQLite format 3\0 and more that is not ours".repeat(300);
    std::fs::write(&store, &foreign).unwrap();
    let logs = recorded("hot_key/4.3.0");
    let (mut exporter, address) = daemon(&[
        "--event-log.dir",
        logs.to_str().unwrap(),
        "--storage.path",
        store.to_str().unwrap(),
    ]);
    let text = until(&format!("{address}/metrics"), SOON, |text| {
        text.contains("spark_finding{").then(|| text.to_owned())
    })
    .await;
    assert_eq!(value(&text, "spark_exporter_storage_up "), Some(0.0));
    let failures = "spark_exporter_storage_failures_total{reason=\"unusable\"} ";
    assert!(value(&text, failures) > Some(0.0));
    assert_eq!(value(&text, "spark_exporter_storage_pending_runs "), Some(1.0));
    assert!(!text.contains("spark_application_runs_total{"), "no total is better than a wrong one");
    assert_eq!(exporter.terminate(SOON), 0);
    let said = exporter.said().join("\n");
    assert!(said.contains("store in trouble") && said.contains("store.redb"), "{said}");
    assert_eq!(std::fs::read(&store).unwrap(), foreign);
}

/// Killed a hundred times at any moment while real applications end, it has
/// counted each of them once, under its name and with its outcome.
#[tokio::test(flavor = "multi_thread")]
async fn killed_a_hundred_times_it_counts_each_run_once() {
    const APPLICATIONS: usize = 24;
    const KILLS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (folder.path().join("logs"), folder.path().join("store.redb"));
    std::fs::create_dir(&logs).unwrap();
    let arguments = [
        "--event-log.dir",
        logs.to_str().unwrap(),
        "--storage.path",
        store.to_str().unwrap(),
        // So that most restarts find runs whose time is over.
        "--retention",
        "3s",
    ];
    // The store is there before the first of them ends.
    let (mut exporter, address) = daemon(&arguments);
    let up = |text: &str| (value(text, "spark_exporter_storage_up ")? == 1.0).then_some(());
    until(&format!("{address}/metrics"), SOON, up).await;
    assert_eq!(exporter.terminate(SOON), 0);

    let mut command = spark_script("submit", "4.3.0");
    command.args(["--spark", "4.3.0", "--master", "local[1]", "--event-log-dir"]).arg(&logs);
    command.args(["many_applications", &APPLICATIONS.to_string()]);
    let mut spark = Program::start(command, "many applications", false);
    spark.value("app_id", Duration::from_mins(3));

    // A small generator: which moments does not matter, that they differ does.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut kills = 0;
    while kills < KILLS || !spark.has_ended() {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
            .args(arguments)
            .args(["--web.listen-address", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(30 + random(1_200))).await;
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert!(kills < 20 * KILLS, "Spark does not end");
    }
    assert_eq!(spark.end(Duration::from_secs(30)), 0);
    let ran: BTreeMap<String, String> = spark
        .said()
        .iter()
        .filter_map(|line| line.strip_prefix("run=")?.split_once(' '))
        .map(|(id, name)| (id.to_owned(), name.to_owned()))
        .collect();
    assert_eq!(ran.len(), APPLICATIONS, "{ran:#?}");

    let (mut exporter, address) = daemon(&arguments);
    let metrics = format!("{address}/metrics");
    let all = |text: &str| {
        let stored = value(text, "spark_exporter_storage_runs ")?;
        (stored >= APPLICATIONS as f64).then_some(())
    };
    // Its look at the store is a minute apart.
    until(&metrics, Duration::from_mins(3), all).await;
    assert_eq!(exporter.terminate(SOON), 0);
    let count = |failed: bool, job: &str| {
        let of_job = |(number, ended): (usize, &str)| {
            ["orders", "ledger", "stock"][number % 3] == ended && (number % 4 == 3) == failed
        };
        (0..APPLICATIONS).filter(|number| of_job((*number, job))).count() as f64
    };
    let mut expected = BTreeMap::new();
    for job in ["orders", "ledger", "stock"] {
        let name = format!("nightly-{job}");
        expected.insert(vec![name.clone(), "succeeded".to_owned()], count(false, job));
        expected.insert(vec![name, "failed".to_owned()], count(true, job));
    }
    assert_eq!(totals(&store), expected, "after {kills} kills");
    let held = stored(&store);
    let ids: BTreeSet<String> = held.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids, ran.keys().cloned().collect(), "each is kept");
    assert_eq!(held.len(), APPLICATIONS, "and once");
    assert!(held.iter().all(|(_, counted)| counted == "yes"), "{held:#?}");
    println!("{kills} kills, {APPLICATIONS} applications, each counted once");
}
