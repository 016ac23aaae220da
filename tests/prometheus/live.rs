//! Real Spark applications that are watched while they run: one that fails,
//! one whose tasks hang, one that has nothing to do any more, one that gets no
//! executor. Beside them a healthy one, of which nothing is said.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::SOON;
use crate::alerts::{Alert, arrive, told, unsound};
use crate::common::real::{Program, daemon, spark_script, submit, until};
use crate::files::quick_rules;
use crate::servers::VERSIONS;
use crate::world::Watcher;

const SPARK: &str = "4.3.0";
const EXECUTORS: &str = "local-cluster[2,1,1024]";
const MINUTES: Duration = Duration::from_mins(4);

/// What takes a quarter of an hour to be told, told after ten seconds of those
/// of which it is true. (On a busy machine any driver idles for ten seconds.)
const THRESHOLDS: &str = "threshold_overrides:
- {app_name: mail-digest, thresholds: {application_idle: {at: 10s}}}
- {app_name: geocode-calls, thresholds: {stuck_stage: {at: 10s, p95_ratio: 2}}}
- {app_name: ledger-nobody, thresholds: {cold_start: {at: 10s}}}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_running_applications_the_right_alerts_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let watcher = Watcher::start(VERSIONS[1], &quick_rules(folder.path())).await;
    let unlogged = Path::new("none");

    // They take no core while they wait, so they can be there together.
    let idle = submit(SPARK, EXECUTORS, unlogged, &[], &["left_running", "--seconds", "300"]);
    let stuck = submit(SPARK, EXECUTORS, unlogged, &[], &["stuck_stage", "--seconds", "300"]);
    // A master without workers has nothing to give.
    let mut command = spark_script("cluster", SPARK);
    command.args(["standalone", "--spark", SPARK, "--workers", ""]);
    let cluster = Program::start(command, "a master without workers", false);
    let master = cluster.value("master", MINUTES);
    cluster.value("ready", MINUTES);
    let waits = submit(SPARK, &master, unlogged, &[], &["no_executor", "--seconds", "300"]);

    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n- name: live\n  drivers: ['{}', '{}', '{}']\n  event_log_dirs: ['{}']\n\
         intervals: {{event_log_dir: 1s, driver: 10s}}\n{THRESHOLDS}",
        idle.ui,
        stuck.ui,
        waits.ui,
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let (_daemon, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    watcher.prometheus.scrape(&[address.trim_start_matches("http://").to_owned()]);

    // These are watched by their logs from their first lines on.
    let mut failing = submit(SPARK, EXECUTORS, &logs, &[], &["application_failed"]);
    let seen = format!("app_id=\"{}\",attempt_id=\"\",state=\"running\"}} 1", failing.app_id);
    until(&format!("{address}/metrics"), SOON, |text| text.contains(&seen).then_some(())).await;
    assert_eq!(failing.program.end(MINUTES), 3);
    let mut healthy = submit(SPARK, EXECUTORS, &logs, &[], &["healthy_short"]);
    assert_eq!(healthy.program.end(MINUTES), 0);
    let ended = format!("app_id=\"{}\",attempt_id=\"\",state=\"succeeded\"}} 1", healthy.app_id);
    until(&format!("{address}/metrics"), SOON, |text| text.contains(&ended).then_some(())).await;

    let of = |alert: &str, app_id: &str| (alert.to_owned(), format!("live/{app_id}"));
    let expected = [
        of("SparkApplicationIdle", &idle.app_id),
        of("SparkStageStuck", &stuck.app_id),
        of("SparkApplicationWaitsForExecutors", &waits.app_id),
        of("SparkApplicationFailed", &failing.app_id),
    ];
    let (watchers, none) = ([watcher], BTreeMap::new());
    arrive(&watchers, &none, &expected.clone().into(), MINUTES).await;
    let told = told(&watchers[0], &none);
    let of_applications = |(_, about): &&Alert| about.starts_with("live/app-");
    let others: Vec<_> =
        told.keys().filter(of_applications).filter(|alert| !expected.contains(alert)).collect();
    assert!(others.is_empty(), "{others:#?}");
    // A log of which only the first lines were there is not taken for another run.
    assert!(!told.keys().any(|(alert, _)| alert == "SparkExporterIdentityCollisions"));
    let wrong: Vec<String> = told.iter().flat_map(|(alert, what)| unsound(alert, what)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
