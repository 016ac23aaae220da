//! Against real Spark: a Standalone cluster with executors of their own, live
//! drivers, History Servers. Two cores are all there may be: what is judged by
//! how long computing takes runs alone; two whose tasks sleep run side by side.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::agree;
use common::poll_budget::{assert_within_budget, measure};
use common::real::{self, Submitted, daemon, get, history_server, standalone, submit, until};
use jiff::Timestamp;
use spark_exporter::config::{HttpConfig, Limits, ServerUrl, Span, Thresholds};
use spark_exporter::diagnose::{Rule, Severity, diagnose};
use spark_exporter::discover::{self, Role};
use spark_exporter::eventlog::{self, ReadOptions};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::fetch::{FetchLimits, HttpClient, Timeouts};
use spark_exporter::model::{Application, State};
use spark_exporter::rest::applications::{self, Filter, Status};
use spark_exporter::rest::running::RunningApplication;
use spark_exporter::rest::{Api, completed};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The versions that tests run live: an old one in wide use and the newest.
const VERSIONS: [&str; 2] = ["3.5.9", "4.3.0"];
const NEWEST: &str = VERSIONS[1];

/// Taken by whichever test runs Spark.
static ROOM: Semaphore = Semaphore::const_new(2);

/// For what goes by the clock.
async fn alone() -> SemaphorePermit<'static> {
    ROOM.acquire_many(2).await.expect("never closed")
}

async fn beside_another() -> SemaphorePermit<'static> {
    ROOM.acquire().await.expect("never closed")
}

const MINUTES: Duration = Duration::from_mins(4);

fn client(timeouts: Timeouts) -> HttpClient {
    let limits = FetchLimits::from(&Limits::default());
    HttpClient::new(&HttpConfig::default(), timeouts, limits).unwrap()
}

fn logs_of(directory: &Path) -> Vec<Application> {
    let limits = Limits::default();
    let options = ReadOptions { cluster: "default", limits: &limits };
    let files = LocalFiles::at(directory).unwrap();
    let scan = eventlog::scan(&files).unwrap();
    assert!(scan.skipped.is_empty(), "{:?}", scan.skipped);
    scan.logs.iter().map(|log| eventlog::read(log, &files, &options).unwrap().application).collect()
}

/// All finished runs that a History Server lists, once it lists `count`.
async fn runs_of(url: &str, count: usize) -> Vec<Application> {
    let base: ServerUrl = url.parse().unwrap();
    let client = client(Timeouts::HISTORY_SERVER);
    let endpoint = discover::probe(&client, &base).await.unwrap();
    assert_eq!(endpoint.role, Role::HistoryServer);
    let api = Api::new(&client, &base);
    let filter = Filter { status: Some(Status::Completed), ..Filter::default() };
    let mut listed = Vec::new();
    for _ in 0..60 {
        listed = applications::get(&api, filter).await.unwrap();
        if listed.len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(listed.len(), count, "the History Server lists what was run");
    let mut runs = Vec::new();
    for application in &listed {
        let attempt = application.latest().unwrap();
        let options = completed::Options::default();
        runs.push(completed::read(&api, "default", application, attempt, options).await.unwrap());
    }
    runs
}

/// REST and log give the same model for the same run: an even one, one with
/// failed and retried tasks of every sort, one with spill.
#[tokio::test(flavor = "multi_thread")]
async fn rest_and_log_agree() {
    let _beside = beside_another().await;
    for version in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        let (cluster, master) = standalone(version);
        for workload in [&["task_failures"][..], &["spill", "--small"]] {
            let mut run = submit(version, &master, folder.path(), &[], workload);
            assert_eq!(run.program.end(MINUTES), 0, "{workload:?}");
        }
        drop(cluster);
        let logs = logs_of(folder.path());
        let (_server, url) = history_server(version, folder.path());
        let runs = runs_of(&url, logs.len()).await;
        assert_eq!(runs.len(), 2);
        for rest in &runs {
            let log = logs.iter().find(|log| log.id == rest.id).expect("the log of the run");
            let all = agree::compare(log, rest);
            assert!(
                all.differences.is_empty(),
                "Spark {version}, {}:\n{}",
                log.name,
                all.differences.join("\n")
            );
            assert!(all.compared > 200, "only {} numbers were there to compare", all.compared);
            // Whoever asks the same of both gets the same answer. (An `info`
            // may lie at the floor of what is said, where an estimate from
            // quantiles falls on the other side.)
            let rules = |application: &Application| {
                let diagnosis = diagnose(application, &Thresholds::default());
                let mut found: Vec<_> = diagnosis
                    .findings
                    .iter()
                    .filter(|finding| finding.severity >= Severity::Warning)
                    .map(|finding| (finding.rule, finding.stage()))
                    .collect();
                found.sort();
                found
            };
            assert_eq!(rules(log), rules(rest), "Spark {version}, {}", log.name);
        }
    }
}

/// A person starts the daemon beside a job that is skewed, and sees why it is
/// slow while it still runs; when it has ended the same run is shown once,
/// from its log.
async fn a_skewed_stage_is_found_before_its_job_ends(version: &str) {
    let _beside = beside_another().await;
    let folder = tempfile::tempdir().unwrap();
    let (_cluster, master) = standalone(version);
    let Submitted { mut program, app_id, ui } =
        submit(version, &master, folder.path(), &[], &["sleepy_live", "--seconds", "60"]);
    let directory = folder.path().to_str().unwrap();
    let (mut exporter, address) = daemon(&["--spark.url", &ui, "--event-log.dir", directory]);
    let metrics = format!("{address}/metrics");

    let finding = until(&metrics, Duration::from_secs(100), |text| {
        text.lines()
            .find(|line| {
                line.starts_with("spark_finding{") && line.contains("rule=\"data_skew\",cause=")
            })
            .map(str::to_owned)
    })
    .await;
    assert!(!program.has_ended(), "Spark {version}: found after the end only");
    assert!(finding.contains(&format!("app_id=\"{app_id}\"")), "{finding}");
    assert!(finding.contains("cause=\"hot_key\""), "{finding}");
    let state = |text: &str, state: &str| {
        let series = format!(
            "spark_application_state{{spark_cluster=\"default\",app_id=\"{app_id}\",\
             attempt_id=\"\",state=\"{state}\"}} 1"
        );
        text.contains(&series)
    };
    assert!(state(&get(&metrics).await, "running"));
    let page = get(&address).await;
    assert!(page.contains(&app_id) && page.contains("data_skew"), "{page}");

    assert_eq!(program.end(MINUTES), 0);
    let text = until(&metrics, Duration::from_mins(2), |text| {
        text.contains("source=\"event_log\"").then(|| text.to_owned())
    })
    .await;
    assert!(!state(&text, "running"), "the finished reading took its place");
    let runs = text.lines().filter(|line| line.starts_with("spark_application_info{")).count();
    assert_eq!(runs, 1, "one run, however many sources show it");
    assert!(text.contains("rule=\"data_skew\",cause="), "and the log says the same");
    assert_eq!(exporter.terminate(Duration::from_secs(30)), 0, "SIGTERM ends it well");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skewed_stage_is_found_before_its_job_ends_in_3_5_9() {
    a_skewed_stage_is_found_before_its_job_ends("3.5.9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skewed_stage_is_found_before_its_job_ends_in_4_3_0() {
    a_skewed_stage_is_found_before_its_job_ends("4.3.0").await;
}

/// What takes a quarter of an hour to be told, told after ten seconds: a
/// driver that lives on after its work, and tasks that hang.
async fn a_driver_says(workload: &str, rule: Rule, other: Rule) {
    let mut thresholds = Thresholds::default();
    thresholds.application_idle.at = Span::seconds(10);
    thresholds.stuck_stage.at = Span::seconds(10);
    // Four tasks of half a second, three times that while the JVM is cold.
    thresholds.stuck_stage.p95_ratio = 2.0;
    let folder = tempfile::tempdir().unwrap();
    let (_cluster, master) = standalone(NEWEST);
    let Submitted { mut program, ui, .. } =
        submit(NEWEST, &master, folder.path(), &[], &[workload, "--seconds", "240"]);
    let base: ServerUrl = ui.parse().unwrap();
    let client = client(Timeouts::DRIVER);
    let mut driver = RunningApplication::new("default", base);
    let deadline = Instant::now() + Duration::from_mins(3);
    let finding = loop {
        assert!(Instant::now() < deadline && !program.has_ended(), "{workload}: not found");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let Ok(application) = driver.poll(&client, Timestamp::now()).await else { continue };
        if application.jobs.is_empty() {
            continue;
        }
        let mut findings = diagnose(&application, &thresholds).findings;
        // Ten seconds are soon over where nothing has ended yet: `info`.
        findings.retain(|finding| finding.severity >= Severity::Warning);
        if let Some(found) = findings.iter().find(|finding| finding.rule == rule) {
            // Not before: a cold JVM that shares its cores with other tests
            // may well stand still for ten seconds.
            assert!(!findings.iter().any(|finding| finding.rule == other), "{findings:?}");
            break found.clone();
        }
    };
    assert_eq!(finding.severity, Severity::Warning, "{}", finding.headline);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_says_that_it_idles() {
    let _beside = beside_another().await;
    a_driver_says("left_running", Rule::ApplicationIdle, Rule::StuckStage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_says_that_a_stage_is_stuck() {
    let _alone = alone().await;
    a_driver_says("stuck_stage", Rule::StuckStage, Rule::ApplicationIdle).await;
}

/// Of a running application nothing can be reached but its event log: what it
/// suffers from is seen there while it runs, and its end when it ends. One
/// growing file (3.5) and a rolling directory of zstd frames (4.3).
async fn a_running_application_is_watched_from_its_log_alone(version: &str) {
    let _beside = beside_another().await;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n- {{name: a, event_log_dirs: ['{}']}}\n\
         intervals: {{event_log_dir: 1s}}\n",
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let workload = ["job_failed_caught", "--linger", "30"];
    let master = "local-cluster[2,1,1024]";
    let Submitted { mut program, app_id, .. } = submit(version, master, &logs, &[], &workload);
    let text = until(&metrics, MINUTES, |text| {
        text.contains("rule=\"job_failed\",cause=").then(|| text.to_owned())
    })
    .await;
    assert!(!program.has_ended(), "Spark {version}: found after the end only");
    let state = |text: &str, state: &str| {
        let series = format!("app_id=\"{app_id}\",attempt_id=\"\",state=\"{state}\"}} 1");
        text.contains(&series)
    };
    assert!(state(&text, "running"), "Spark {version}");
    assert!(text.contains("source=\"event_log\""));
    assert_eq!(program.end(MINUTES), 0);
    let text = until(&metrics, Duration::from_mins(3), |text| {
        (!state(text, "running")).then(|| text.to_owned())
    })
    .await;
    // Spark says since 4.0 how a run ended.
    let ended = if version.starts_with('3') { "unknown" } else { "succeeded" };
    assert!(state(&text, ended), "Spark {version}");
    assert_eq!(text.matches("spark_application_info{").count(), 1, "one run");
    assert!(text.contains("spark_exporter_event_log_reads_total 1\n"), "read once");
    assert!(text.contains("spark_exporter_event_log_bad_lines_total 0\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_application_is_watched_from_its_log_alone_in_3_5_9() {
    a_running_application_is_watched_from_its_log_alone("3.5.9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_application_is_watched_from_its_log_alone_in_4_3_0() {
    a_running_application_is_watched_from_its_log_alone("4.3.0").await;
}

/// A driver with a thousand stages is asked little.
#[tokio::test(flavor = "multi_thread")]
async fn polling_a_driver_with_a_thousand_stages_stays_within_its_budget() {
    let _beside = beside_another().await;
    let folder = tempfile::tempdir().unwrap();
    let workload = ["many_stages", "--stages", "1000", "--linger", "180"];
    let run = submit(NEWEST, "local[2]", folder.path(), &[], &workload);
    run.program.value("stages_done", MINUTES);
    let measured = measure(&run.ui, 24, Duration::from_millis(300)).await;
    println!(
        "first poll {:?}; dearest minute {} bytes; normal cycles {:?}",
        measured.first,
        measured.bytes_of_dearest_minute(),
        measured.normal().map(|cost| (cost.requests, cost.bytes)).max()
    );
    assert_within_budget(&measured);
    assert!(measured.last.stages.len() >= 900, "{} stages", measured.last.stages.len());
    assert_eq!(measured.last.state, State::Running);
}

/// `diagnose` of a History Server and of a live driver, and what it says of a
/// server that is neither.
#[tokio::test(flavor = "multi_thread")]
async fn diagnose_asks_servers_too() {
    let _beside = beside_another().await;
    let folder = tempfile::tempdir().unwrap();
    let (cluster, master) = standalone(NEWEST);
    let mut run = submit(NEWEST, &master, folder.path(), &[], &["job_failed_caught"]);
    let app_id = run.app_id.clone();
    let live = real::diagnose(&[&run.ui, "--format", "json"]);
    assert_eq!(live["applications"][0]["app_id"], app_id.as_str());
    assert_eq!(live["applications"][0]["state"], "running");
    assert_eq!(live["applications"][0]["source"], "driver");
    assert_eq!(run.program.end(MINUTES), 0);
    let master_page = cluster.web();
    let error = real::diagnose_error(&[&master_page]);
    assert!(error.contains("Standalone master"), "names what answered: {error}");
    drop(cluster);

    let (_server, url) = history_server(NEWEST, folder.path());
    runs_of(&url, 1).await;
    let finished = real::diagnose(&[&url, "--format", "json", "--app-id", &app_id]);
    assert_eq!(finished["applications"][0]["source"], "event_log", "the server gives its log");
    let rules: Vec<_> = finished["applications"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap().to_owned())
        .collect();
    assert!(rules.contains(&Rule::JobFailed.as_str().to_owned()), "{rules:?}");

    // And the daemon reads it from there, once.
    let (_exporter, address) = daemon(&["--spark.url", &url]);
    until(&format!("{address}/metrics"), Duration::from_mins(3), |text| {
        text.contains("rule=\"job_failed\",cause=").then_some(())
    })
    .await;
}

/// More than 5,000 tasks of a millisecond: launching them costs more than
/// they do. Live, since even compressed such a log is too large to commit.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tiny_tasks_are_too_many_partitions() {
    let _alone = alone().await;
    let folder = tempfile::tempdir().unwrap();
    let workload = ["partitioning_too_many", "--tasks", "5200"];
    let mut run = submit(NEWEST, "local-cluster[2,1,1024]", folder.path(), &[], &workload);
    assert_eq!(run.program.end(MINUTES), 0);
    let applications = logs_of(folder.path());
    let diagnosis = diagnose(&applications[0], &Thresholds::default());
    // A busy machine may add an `info` about warming up.
    let found: Vec<_> = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning)
        .map(|finding| (finding.rule, finding.headline.as_str()))
        .collect();
    let [(rule, headline)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(*rule, Rule::Partitioning, "not skew, not stragglers: {found:#?}");
    assert!(headline.contains("5,200"), "{found:#?}");
}
