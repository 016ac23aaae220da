//! Drivers and History Servers that all shards know: each run is asked for by
//! its owner alone, whoever shows it.

use std::io::{Cursor, Write};
use std::time::Duration;

use serde_json::json;

use crate::common::fake_spark::{Answer, FakeSpark};
use crate::common::recorded_server::recorded_driver;
use crate::common::{ended_now, log_text, moved, now_ms};
use crate::divided::{Divided, elsewhere, labels, own, sharding};

/// A driver is asked what it runs; its owner asks for more, and shows it also
/// where its log lies in a place that all know.
#[tokio::test]
async fn a_run_seen_by_driver_and_log_has_one_owner() {
    const SHARDS: u32 = 2;
    let driver = recorded_driver().await;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    // The same application, as its log tells it.
    let text = log_text("healthy_short/4.3.0");
    let old = |key: &str| text.split_once(key).unwrap().1.split_once('"').unwrap().0.to_owned();
    let start = text.lines().find(|line| line.contains("SparkListenerApplicationStart")).unwrap();
    let start: serde_json::Value = serde_json::from_str(start).unwrap();
    let log = moved(&text, 1_796_011_429_955 - start["Timestamp"].as_i64().unwrap())
        .replace(&old("\"App ID\":\""), "local-1796011454970")
        .replace(
            &format!("\"App Name\":\"{}\"", old("\"App Name\":\"")),
            "\"App Name\":\"many stages\"",
        );
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n- name: c\n  drivers: ['{}']\n  event_log_dirs: ['{}']\n\
         intervals: {{event_log_dir: 1s, driver: 10s}}\nretention: 1d\n",
        driver.url(""),
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let divided =
        Divided::start(SHARDS, |_| vec!["--config.file".to_owned(), config.display().to_string()]);
    let owner = sharding(0, SHARDS).owner_of("c", "many stages").0 as usize;
    let other = 1 - owner;
    let texts = divided
        .shown(|texts| {
            own(&texts[owner], "applications") == 1.0 && elsewhere(&texts[other], "c") == 1.0
        })
        .await;
    assert_eq!(labels(&texts[owner], "spark_application_info", "app_name").len(), 1);
    assert!(!texts[other].contains("spark_application_info{"));
    // Its log comes to its end.
    std::fs::write(logs.join("local-1796011454970"), log).unwrap();
    let texts = divided
        .shown(|texts| {
            let ended = texts[owner].contains("spark_application_end_timestamp_seconds{");
            ended && elsewhere(&texts[other], "c") == 2.0
        })
        .await;
    assert_eq!(texts[owner].matches("spark_application_info{").count(), 1, "one run");
    assert!(!texts[other].contains("spark_application_info{"));
    // Two cycles of the driver later, the other has asked once.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let asked = driver.asked();
    let lists = asked.iter().filter(|asked| asked.target.starts_with("/api/v1/applications?"));
    let rest = asked.iter().filter(|asked| asked.target.contains("/allexecutors")).count();
    assert_eq!(
        lists.count(),
        rest + 1,
        "{:?}",
        asked.iter().map(|one| &one.target).collect::<Vec<_>>()
    );
}

/// A History Server's list names applications: the owner alone reads a log.
#[tokio::test]
async fn a_listed_run_is_read_by_its_owner() {
    const SHARDS: u32 = 3;
    const RUNS: usize = 12;
    let logs: Vec<(String, String, Vec<u8>)> = (0..RUNS)
        .map(|number| {
            let (id, name) =
                (format!("app-{number}"), format!("job {}", char::from(b'a' + number as u8)));
            let text = ended_now("healthy_short/4.3.0", &id);
            let old =
                text.split_once("\"App Name\":\"").unwrap().1.split_once('"').unwrap().0.to_owned();
            let text = text
                .replace(&format!("\"App Name\":\"{old}\""), &format!("\"App Name\":\"{name}\""));
            let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
            zip.start_file(&id, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
            (id, name, zip.finish().unwrap().into_inner())
        })
        .collect();
    let end = now_ms();
    let listed = |(id, name): (&str, &str), completed: bool| {
        json!({"id": id, "name": name, "attempts": [{
            "startTimeEpoch": end - 60_000, "endTimeEpoch": if completed { end } else { -1 },
            "lastUpdatedEpoch": end, "completed": completed, "sparkUser": "spark",
            "appSparkVersion": "4.3.0"}]})
    };
    let completed: Vec<_> =
        logs.iter().map(|(id, name, _)| listed((id.as_str(), name.as_str()), true)).collect();
    let running = vec![listed(("app-running", "job running"), false)];
    let server = FakeSpark::start(move |asked| {
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        match path.trim_start_matches("/api/v1/").split('/').collect::<Vec<_>>().as_slice() {
            ["applications"] if query.contains("status=running") => {
                Answer::json(json!(running).to_string())
            }
            ["applications"] => Answer::json(json!(completed).to_string()),
            ["applications", id, "logs"] => {
                let log = logs.iter().find(|(known, ..)| known == id).unwrap();
                Answer::zip(log.2.clone())
            }
            _ => Answer::not_found("unknown"),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n- name: c\n  history_servers: ['{}']\n\
         intervals: {{history_server: 5s}}\nretention: 1d\n",
        server.url("")
    );
    std::fs::write(&config, text).unwrap();
    let divided =
        Divided::start(SHARDS, |_| vec!["--config.file".to_owned(), config.display().to_string()]);
    let going = "applications_skipped{reason=\"running_on_history_server\"}";
    let all = (RUNS + 1) as f64;
    let covers =
        |text: &String| own(text, "applications") + own(text, going) + elsewhere(text, "c") == all;
    let texts = divided.shown(|texts| texts.iter().all(covers)).await;
    let sum = |series: &str| texts.iter().map(|text| own(text, series)).sum::<f64>();
    assert_eq!((sum("applications"), sum(going)), (RUNS as f64, 1.0));
    for (shard, text) in (0..).zip(&texts) {
        for name in labels(text, "spark_application_info", "app_name") {
            assert_eq!(sharding(0, SHARDS).owner_of("c", &name).0, shard, "{name}");
        }
    }
    let asked = server.asked();
    let downloads = asked.iter().filter(|asked| asked.target.ends_with("/logs")).count();
    assert_eq!(downloads, RUNS, "each once, by all together");
}
