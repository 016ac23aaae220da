//! Real History Servers, over recorded logs: what their zips give is what the
//! logs give, and what their API says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::places::files_below;
use common::real::{self, daemon, get, history_server, history_server_at, until};
use common::{agree, log_text, moved, recorded};
use spark_exporter::config::{HttpConfig, Limits};
use spark_exporter::eventlog::{self, Listed, ReadOptions};
use spark_exporter::fetch::files::{Files, LocalFiles};
use spark_exporter::fetch::{FetchLimits, HttpClient, Spool, Timeouts};
use spark_exporter::model::{Application, DataQuality};
use spark_exporter::rest::applications::{self, Filter, Status};
use spark_exporter::rest::{Api, completed, logs};
use tokio::sync::Mutex;

/// One Spark at a time is what a small machine bears.
static ALONE: Mutex<()> = Mutex::const_new(());
const VERSIONS: [&str; 2] = ["3.5.9", "4.3.0"];
const SOON: Duration = Duration::from_mins(2);

fn copy(name: &str, target: &Path) {
    for entry in std::fs::read_dir(recorded(name)).unwrap() {
        let path = entry.unwrap().path();
        let status = std::process::Command::new("cp").arg("-r").arg(&path).arg(target).status();
        assert!(status.unwrap().success());
    }
}

fn read(files: &dyn Files, listed: Option<&Listed>) -> Vec<Application> {
    let limits = Limits::default();
    let options = ReadOptions { cluster: "default", limits: &limits };
    if let Some(listed) = listed {
        return vec![eventlog::read_listed(files, listed, &options).unwrap().application];
    }
    let logs = eventlog::scan(files).unwrap().logs;
    logs.iter().map(|log| eventlog::read(log, files, &options).unwrap().application).collect()
}

/// The servers of both releases read logs of both; a log that is one file, and
/// a rolling one.
#[tokio::test(flavor = "multi_thread")]
async fn zip_log_and_rest_agree() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    for name in ["hot_key/3.5.9", "spill/4.3.0", "task_failures/4.3.0"] {
        copy(name, folder.path());
    }
    let from_logs = read(&LocalFiles::at(folder.path()).unwrap(), None);
    assert_eq!(from_logs.len(), 3);
    for version in VERSIONS {
        let (_server, url) = history_server(version, folder.path());
        let client = HttpClient::new(
            &HttpConfig::default(),
            Timeouts::HISTORY_SERVER,
            FetchLimits::from(&Limits::default()),
        )
        .unwrap();
        let api = Api::new(&client, &url.parse().unwrap());
        let filter = Filter { status: Some(Status::Completed), ..Filter::default() };
        let mut listed = Vec::new();
        for _ in 0..60 {
            listed = applications::get(&api, filter).await.unwrap();
            if listed.len() == 3 {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(listed.len(), 3, "Spark {version}");
        let spool = Spool::new(&std::env::temp_dir(), 1 << 30);
        for application in &listed {
            let attempt = &application.attempts[0];
            let log = from_logs
                .iter()
                .find(|log| log.id.app_id == application.id.get())
                .expect("the log of the run");
            let files = logs::get(&api, application, attempt, &spool).await.unwrap();
            let listed = Listed::from((application, attempt));
            let zip = tokio::task::spawn_blocking(move || read(&files, Some(&listed)));
            assert_eq!(
                zip.await.unwrap(),
                std::slice::from_ref(log),
                "Spark {version}, {}",
                log.name
            );

            let options = completed::Options::default();
            let rest = completed::read(&api, "default", application, attempt, options).await;
            let mut rest = rest.unwrap();
            // A server knows no version newer than itself wrote.
            rest.spark_version.clone_from(&log.spark_version);
            assert!(!rest.has(DataQuality::EndpointsMissing), "Spark {version}");
            let all = agree::compare(log, &rest);
            assert!(
                all.differences.is_empty(),
                "Spark {version}, {}:\n{}",
                log.name,
                all.differences.join("\n")
            );
        }
        let statistics = client.statistics();
        assert_eq!(statistics["logs"].requests, 3);
        assert!(statistics["logs"].errors.is_empty(), "{:?}", statistics["logs"].errors);
    }
}

/// `diagnose` of a server, of an application's page there, and of its log say
/// the same.
#[tokio::test(flavor = "multi_thread")]
async fn diagnose_takes_a_page_of_a_server() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    for name in ["hot_key/4.3.0", "spill/3.5.9"] {
        copy(name, folder.path());
    }
    let log = recorded("hot_key/4.3.0");
    let log = real::diagnose(&[log.to_str().unwrap(), "--format", "json"]);
    for version in VERSIONS {
        let (_server, url) = history_server(version, folder.path());
        let id = "app-20261130040127-0000";
        until(&format!("{url}/api/v1/applications?status=completed"), SOON, |list| {
            (list.matches("\"id\"").count() == 2).then_some(())
        })
        .await;
        let page = format!("{url}/history/{id}/jobs/");
        assert_eq!(real::diagnose(&[&page, "--format", "json"]), log, "Spark {version}");
        // The page of a stage asks about the SQL execution that it ran for.
        let page = format!("{url}/history/{id}/stages/stage/?id=10&attempt=0");
        let focused = real::diagnose(&[&page, "--format", "json"]);
        let executions = focused["applications"][0]["sql_executions"].as_array().unwrap();
        assert_eq!((executions.len(), executions[0]["sql_id"].as_u64()), (1, Some(1)));
        assert_eq!(focused["applications"][0]["findings"], log["applications"][0]["findings"]);
        assert_eq!(real::diagnose(&[&url, "--app-id", id, "--format", "json"]), log);
        let all = real::diagnose(&[&url, "--format", "json"]);
        let all = all["applications"].as_array().unwrap();
        assert_eq!((all.len(), &all[1]), (2, &log["applications"][0]), "latest first");
        let error = real::diagnose_error(&[&format!("{url}/history/app-gone/jobs/")]);
        assert!(error.contains("unknown") || error.contains("no such app"), "{error}");
    }
}

/// A server that went away and came back is read on where it was left: what
/// it showed before is not asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_restarted_is_read_on() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    copy("hot_key/4.3.0", folder.path());
    let (server, url) = history_server(VERSIONS[1], folder.path());
    let settings = tempfile::tempdir().unwrap();
    let config = settings.path().join("config.yml");
    let text = format!(
        "clusters: [{{name: a, history_servers: ['{url}']}}]\n\
         intervals: {{history_server: 5s}}\nread: {{lookback: 36500d, rest_fallback: false}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let reads = "spark_exporter_history_server_reads_total{route=\"zip\"} ";
    let read =
        |count: u32| move |text: &str| text.contains(&format!("{reads}{count}\n")).then_some(());
    until(&metrics, SOON, read(1)).await;
    assert!(get(&metrics).await.contains("rule=\"data_skew\",cause="));

    drop(server);
    let up = format!("spark_exporter_target_up{{spark_cluster=\"a\",target=\"{url}\"}} ");
    until(&metrics, SOON, |text| text.contains(&format!("{up}0\n")).then_some(())).await;
    copy("spill/3.5.9", folder.path());
    let port = url.rsplit_once(':').unwrap().1;
    let (_server, again) = history_server_at(VERSIONS[1], folder.path(), Some(port));
    assert_eq!(again, url);
    until(&metrics, Duration::from_mins(3), read(2)).await;
    let text = get(&metrics).await;
    assert!(text.contains("rule=\"spill\",cause=") && text.contains("rule=\"data_skew\",cause="));
    assert!(text.contains(&format!("{up}1\n")));
    tokio::time::sleep(Duration::from_secs(12)).await;
    until(&metrics, SOON, read(2)).await;
}

/// A server lists a run whose driver crashed as incomplete for ever. It is
/// `lost` once neither its log's file nor what stands in it is young; a log
/// whose file only looks old (HDFS tells the time of the last block) is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_run_is_lost_and_a_quiet_one_is_not() {
    // Not alone: it waits most of the time.
    let folder = tempfile::tempdir().unwrap();
    copy("left_running/3.5.9", folder.path());
    copy("left_running/4.3.0", folder.path());
    // One that goes on: its latest event is of now.
    let text = log_text("left_running/3.5.9");
    let id = "app-20261130100707-0000";
    let latest: i64 = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|event| event["Task Info"]["Finish Time"].as_i64())
        .max()
        .unwrap();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // A server tells of such a run when it last read its log: when that had
    // grown, or when the server was started.
    let by = i64::try_from(since.as_millis()).unwrap() - latest + 3_600_000;
    let quiet = folder.path().join("app-quiet.inprogress");
    std::fs::write(&quiet, moved(&text, by).replace(id, "app-quiet")).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_hours(2);
    for file in files_below(folder.path()) {
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    }
    let servers = VERSIONS.map(|version| history_server(version, folder.path()));
    let settings = tempfile::tempdir().unwrap();
    let config = settings.path().join("config.yml");
    let clusters = VERSIONS.iter().zip(&servers);
    let clusters = clusters.map(|(version, (_, url))| {
        format!("- {{name: 'spark-{version}', history_servers: ['{url}']}}\n")
    });
    let text = format!(
        "clusters:\n{}intervals: {{history_server: 5s}}\nread: {{stale_after: 60s}}\n",
        clusters.collect::<String>()
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let going = |count| {
        format!(
            "spark_exporter_applications_skipped{{reason=\"running_on_history_server\"}} {count}\n"
        )
    };
    let lost = "state=\"lost\"} 1\n";
    let text = until(&metrics, Duration::from_mins(3), |text| {
        (text.matches(lost).count() == 4 && text.contains(&going(2))).then(|| text.to_owned())
    })
    .await;
    assert!(!text.contains("app_id=\"app-quiet\""), "it goes on");
    assert_eq!(text.matches("spark_application_info{").count(), 4);
    // None of them is read again and again.
    let reads = |text: &str| {
        let start = "spark_exporter_history_server_reads_total{route=\"zip\"} ";
        text.lines().find_map(|line| line.strip_prefix(start)?.parse::<f64>().ok())
    };
    assert_eq!(reads(&text), Some(6.0));
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(reads(&get(&metrics).await), Some(6.0));
}
