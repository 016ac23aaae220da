//! Daemons that share one memory in a real PostgreSQL: each run is counted
//! once, whoever sees it first, while the server and the daemons come and go.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::float_cmp, reason = "what is compared are counts")]
#![allow(dead_code, unused_macros, unused_imports, reason = "the store's own tests use the rest")]

mod common;
#[path = "store/server.rs"]
mod server;
mod store_suite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::real::{daemon, get, until};
use common::{ended_now, value};
use server::Server;
use spark_exporter::config::Storage;

const SOON: Duration = Duration::from_mins(2);

fn export(config: &Path) -> Vec<serde_json::Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    command.args(["store", "export", "--config.file"]).arg(config);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A folder for logs, and a configuration that watches it with this store.
fn watching(folder: &Path, storage: Storage, retention: &str) -> (PathBuf, PathBuf) {
    let (logs, config) = (folder.join("logs"), folder.join("config.yml"));
    std::fs::create_dir(&logs).unwrap();
    let text = format!(
        "clusters: [{{name: c, event_log_dirs: ['{}']}}]\nintervals: {{event_log_dir: 1s}}\n\
         storage: {{url: '{}', password_file: '{}'}}\nretention: {retention}\n",
        logs.display(),
        storage.url.unwrap(),
        storage.password_file.unwrap().display()
    );
    std::fs::write(&config, text).unwrap();
    (logs, config)
}

#[test]
fn two_daemons_share_one_memory() {
    // The servers of a test are told what to do from threads that may block.
    let mut database_server = Server::start(None, &[]);
    let database = database_server.database();
    let folder = tempfile::tempdir().unwrap();
    let (logs, config) = watching(folder.path(), database.storage(), "5s");
    let start = || daemon(&["--config.file", config.to_str().unwrap()]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let is = |address: &str, series: &str, wanted: f64| {
        let metrics = format!("{address}/metrics");
        let right = |text: &str| (value(text, series) == Some(wanted)).then_some(());
        runtime.block_on(until(&metrics, SOON, right));
    };
    let (up, pending) = ("spark_exporter_storage_up ", "spark_exporter_storage_pending_runs ");
    let mut written = 0;
    let mut write = |count: usize| {
        for _ in 0..count {
            let id = format!("app-{written}");
            let run = if written % 3 == 2 { "application_failed" } else { "healthy_short" };
            let text = ended_now(&format!("{run}/4.3.0"), &id);
            let hidden = logs.join(format!(".{id}"));
            std::fs::write(&hidden, text).unwrap();
            std::fs::rename(hidden, logs.join(id)).unwrap();
            written += 1;
        }
    };

    let (mut one, address_one) = start();
    let (other, address_other) = start();
    is(&address_one, up, 1.0);
    is(&address_other, up, 1.0);
    write(6);
    is(&address_one, "spark_exporter_storage_runs ", 6.0);

    // The server goes: runs wait, what is known of each run is still shown.
    database_server.say("kill");
    write(6);
    is(&address_one, up, 0.0);
    is(&address_one, pending, 6.0);
    let text = runtime.block_on(get(&format!("{address_one}/metrics")));
    assert!(!text.contains("spark_application_runs_total{"), "no total is better than an old one");
    assert!(text.contains("spark_application_info{"));
    // One daemon is killed with what it knows, and comes back too early.
    drop_killed(other);
    let (_other, address_other) = start();
    database_server.say("start");
    is(&address_one, pending, 0.0);
    is(&address_one, up, 1.0);
    is(&address_other, up, 1.0);
    write(6);
    is(&address_one, "spark_exporter_storage_runs ", 18.0);
    is(&address_other, "spark_exporter_storage_runs ", 18.0);
    is(&address_other, pending, 0.0);
    assert_eq!(one.terminate(SOON), 0);

    let lines = export(&config);
    let runs: Vec<_> = lines.iter().filter_map(|line| line.get("run")).collect();
    let mut ids: Vec<&str> = runs.iter().map(|run| run["app_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), runs.len()), (18, 18), "each once");
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for total in lines.iter().filter_map(|line| line.get("totals")) {
        let runs = total["totals"]["runs"].as_array().unwrap();
        for (outcome, count) in ["succeeded", "failed"].into_iter().zip(runs) {
            *totals.entry(outcome).or_default() += count.as_u64().unwrap();
        }
    }
    assert_eq!(totals, BTreeMap::from([("succeeded", 12), ("failed", 6)]));
    // Both daemons show the same.
    let (_again, address) = start();
    is(&address, "spark_exporter_storage_runs ", 18.0);
    is(&address, "spark_exporter_event_log_reads_total ", 0.0);
}

fn drop_killed(program: common::real::Program) {
    program.kill();
    drop(program);
}

/// Values of `spark_application_runs_total` by name and outcome, those at 0
/// left out; panics where two of these expositions have one name.
fn runs_by_name(texts: &[String]) -> BTreeMap<(String, String), f64> {
    let mut all = BTreeMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let Some(rest) = line.strip_prefix("spark_application_runs_total{") else { continue };
        let label = |name: &str| {
            let (_, rest) = rest.split_once(&format!("{name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.to_owned()
        };
        let value = rest.rsplit_once(' ').unwrap().1.parse().unwrap();
        let before = all.insert((label("app_name"), label("outcome")), value);
        assert!(before.is_none(), "two shards have {line}");
    }
    all.retain(|_, runs| *runs > 0.0);
    all
}

/// One daemon, then three, then two: what was counted stays counted, and is
/// exported by one of them.
#[test]
fn another_number_of_shards_loses_nothing() {
    const NAMES: usize = 12;
    let database_server = Server::start(None, &[]);
    let database = database_server.database();
    let folder = tempfile::tempdir().unwrap();
    let (logs, config) = watching(folder.path(), database.storage(), "1h");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let start = |total: usize| -> (Vec<common::real::Program>, Vec<String>) {
        let started = (0..total).map(|shard| {
            let (shard, total) = (shard.to_string(), total.to_string());
            let config = config.to_str().unwrap();
            daemon(&["--config.file", config, "--shard", &shard, "--total-shards", &total])
        });
        started.unzip()
    };
    // What all of them show once each has every run, or knows whose it is, and
    // all is written.
    let shown = |addresses: &[String], runs: f64| -> Vec<String> {
        let each = addresses.iter().map(|address| {
            let metrics = format!("{address}/metrics");
            runtime.block_on(until(&metrics, SOON, |text| {
                let of = |series: &str| value(text, series);
                let elsewhere = "spark_exporter_applications_elsewhere{spark_cluster=\"c\"} ";
                let seen = of("spark_exporter_applications ")? + of(elsewhere)?;
                let stored = of("spark_exporter_storage_runs ")?;
                let written = of("spark_exporter_storage_pending_runs ")? == 0.0;
                (seen == runs && stored == runs && written).then(|| text.to_owned())
            }))
        });
        each.collect()
    };
    let mut written = 0;
    let mut write = |rounds: usize| {
        for _ in 0..rounds * NAMES {
            let id = format!("app-{written}");
            let name = format!("job {}", char::from(b'a' + (written % NAMES) as u8));
            let text = ended_now("healthy_short/4.3.0", &id);
            let text = text.replace("\"App Name\":\"ping\"", &format!("\"App Name\":\"{name}\""));
            assert!(text.contains(&name));
            let hidden = logs.join(format!(".{id}"));
            std::fs::write(&hidden, text).unwrap();
            std::fs::rename(hidden, logs.join(id)).unwrap();
            written += 1;
        }
        written as f64
    };
    // As the store adds them up: what is exported once the two minutes at 0
    // are over.
    let totals = || -> BTreeMap<String, u64> {
        let lines = export(&config);
        let totals = lines.iter().filter_map(|line| line.get("totals"));
        totals
            .map(|total| {
                let runs = total["totals"]["runs"].as_array().unwrap();
                let sum = runs.iter().map(|runs| runs.as_u64().unwrap()).sum();
                (total["app_name"].as_str().unwrap().to_owned(), sum)
            })
            .collect()
    };
    let mut rounds = 0;
    for total in [1, 3, 2] {
        let (programs, addresses) = start(total);
        for address in &addresses {
            let up = |text: &str| value(text, "spark_exporter_storage_up ").filter(|up| *up == 1.0);
            runtime.block_on(until(&format!("{address}/metrics"), SOON, up));
        }
        rounds += 2;
        let texts = shown(&addresses, write(2));
        let counted = totals();
        assert_eq!(counted.len(), NAMES, "{counted:?}");
        assert!(counted.values().all(|runs| *runs == rounds), "{total} shards: {counted:?}");
        // Each name once, over all of them.
        runs_by_name(&texts);
        let names = texts.iter().flat_map(|text| text.lines()).filter(|line| {
            line.starts_with("spark_application_runs_last_success_timestamp_seconds{")
        });
        assert_eq!(names.count(), NAMES, "{total} shards");
        // Whoever has a name now judges it by all its runs, others' too.
        if rounds >= 6 {
            let baselines = addresses.iter().map(|address| {
                runtime.block_on(until(&format!("{address}/metrics"), SOON, |text| {
                    let of = |family: &str| -> Vec<f64> {
                        let lines = text.lines().filter(|line| line.starts_with(family));
                        lines
                            .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
                            .collect()
                    };
                    let sizes = of("spark_application_runs_baseline_size{");
                    let names = of("spark_application_runs_last_success_timestamp_seconds{").len();
                    (sizes.len() == names && sizes.iter().all(|size| *size == 5.0)).then_some(names)
                }))
            });
            assert_eq!(baselines.sum::<usize>(), NAMES);
        }
        drop(programs);
    }
}
