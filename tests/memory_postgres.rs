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
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::real::{daemon, get, until};
use common::{ended_now, value};
use server::Server;

const SOON: Duration = Duration::from_secs(90);

fn export(config: &Path) -> Vec<serde_json::Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    command.args(["store", "export", "--config.file"]).arg(config);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn two_daemons_share_one_memory() {
    // The servers of a test are told what to do from threads that may block.
    let mut database_server = Server::start(None, &[]);
    let database = database_server.database();
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let config = folder.path().join("config.yml");
    let storage = database.storage();
    let text = format!(
        "clusters: [{{name: c, event_log_dirs: ['{}']}}]\nintervals: {{event_log_dir: 1s}}\n\
         storage: {{url: '{}', password_file: '{}'}}\nretention: 5s\n",
        logs.display(),
        storage.url.unwrap(),
        storage.password_file.unwrap().display()
    );
    std::fs::write(&config, text).unwrap();
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
