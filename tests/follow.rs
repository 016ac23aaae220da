//! The daemon beside running applications of which it sees nothing but the
//! event log: followed as it grows, handed over when it ends, given up when
//! nobody writes it any more. The logs are recorded ones, written again line
//! by line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::real::{Program, daemon, until};
use common::recorded;

const SOON: Duration = Duration::from_mins(2);

/// A daemon that lists `logs` every second.
fn watching(folder: &Path, logs: &str, more: &str) -> (Program, String) {
    let config = folder.join("config.yml");
    let text = format!(
        "clusters:\n- name: a\n  event_log_dirs: ['{logs}']\n{more}\n\
         intervals: {{event_log_dir: 1s}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let (program, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    (program, format!("{address}/metrics"))
}

/// The value of the series whose line begins so and holds all of `parts`.
fn value(text: &str, name: &str, parts: &[&str]) -> Option<f64> {
    let line = text.lines().find(|line| {
        line.starts_with(name)
            && line[name.len()..].starts_with(['{', ' '])
            && parts.iter().all(|part| line.contains(part))
    })?;
    line.rsplit_once(' ')?.1.parse().ok()
}

fn is(text: &str, state: &str) -> bool {
    value(text, "spark_application_state", &[&format!("state=\"{state}\"")]) == Some(1.0)
}

fn reads(text: &str) -> Option<f64> {
    value(text, "spark_exporter_event_log_reads_total", &[])
}

/// The recorded log of a run with a hot key, decompressed.
fn skewed() -> String {
    let log = std::fs::read_dir(recorded("hot_key/4.3.0")).unwrap().next().unwrap().unwrap();
    let events = std::fs::read_dir(log.path()).unwrap().map(|entry| entry.unwrap().path());
    let is_events = |path: &std::path::PathBuf| path.to_string_lossy().contains("/events_1_");
    let bytes = std::fs::read(events.into_iter().find(is_events).unwrap()).unwrap();
    let mut text = String::new();
    zstd::Decoder::new(&bytes[..]).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// The log up to the first end of a job, up to the application's end, and the
/// rest.
fn parts(log: &str) -> [String; 3] {
    let lines: Vec<&str> = log.lines().collect();
    let job = lines.iter().position(|line| line.contains("SparkListenerJobEnd")).unwrap();
    let end = lines.iter().position(|line| line.contains("SparkListenerApplicationEnd")).unwrap();
    [&lines[..=job], &lines[job + 1..end], &lines[end..]].map(|lines| lines.join("\n") + "\n")
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn age(path: &Path, seconds: u64) {
    let then = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[tokio::test]
async fn a_run_is_watched_from_its_log_and_handed_over_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let going = logs.join("app-1.inprogress");
    let [first, second, end] = parts(&skewed());
    std::fs::write(&going, &first).unwrap();
    let (_exporter, metrics) = watching(folder.path(), logs.to_str().unwrap(), "");
    let text = until(&metrics, SOON, |text| is(text, "running").then(|| text.to_owned())).await;
    assert_eq!(value(&text, "spark_exporter_target_event_logs_followed", &[]), Some(1.0));
    assert!(text.contains("source=\"event_log\""), "{text}");
    let jobs = |text: &str| {
        value(text, "spark_application_jobs", &["status=\"succeeded\""]).unwrap_or_default()
    };
    let before = jobs(&text);
    assert!(before >= 1.0);
    let observed = value(&text, "spark_application_observed_timestamp_seconds", &[]).unwrap();
    assert!(value(&text, "spark_application_end_timestamp_seconds", &[]).is_none());

    // Half a line, then the rest of it: nothing is lost and nothing is bad.
    append(&going, &second[..second.len() / 2]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    append(&going, &second[second.len() / 2..]);
    let text = until(&metrics, SOON, |text| {
        (jobs(text) > before && text.contains("rule=\"data_skew\",cause=")).then(|| text.to_owned())
    })
    .await;
    assert!(is(&text, "running"), "found while it runs");
    let later = value(&text, "spark_application_observed_timestamp_seconds", &[]).unwrap();
    assert!(later > observed);

    append(&going, &end);
    std::fs::rename(&going, logs.join("app-1")).unwrap();
    let text = until(&metrics, SOON, |text| is(text, "succeeded").then(|| text.to_owned())).await;
    assert_eq!(text.matches("spark_application_info{").count(), 1);
    assert!(text.contains("rule=\"data_skew\",cause="));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let text = until(&metrics, SOON, |text| Some(text.to_owned())).await;
    assert_eq!(reads(&text), Some(1.0), "it was read once, from its first to its last line");
    assert_eq!(value(&text, "spark_exporter_event_log_bad_lines_total", &[]), Some(0.0));
    assert_eq!(value(&text, "spark_exporter_target_event_logs_followed", &[]), Some(0.0));
    let bytes = value(&text, "spark_exporter_target_event_log_read_bytes_total", &[]);
    assert_eq!(bytes, Some((first.len() + second.len() + end.len()) as f64));
}

/// Its first lines come before its start: shown by them alone it would have
/// no name and no start, and then be a second run of the same id.
#[tokio::test]
async fn a_log_that_has_not_told_its_start_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let log = skewed();
    let start = log.find("{\"Event\":\"SparkListenerApplicationStart\"").unwrap();
    assert!(start > 0, "other lines come first");
    let going = logs.join("app-1.inprogress");
    std::fs::write(&going, &log[..start]).unwrap();
    let (_exporter, metrics) = watching(folder.path(), logs.to_str().unwrap(), "");
    let skipped = |text: &str| {
        value(text, "spark_exporter_applications_skipped", &["reason=\"in_progress\""])
    };
    let text =
        until(&metrics, SOON, |text| (skipped(text) == Some(1.0)).then(|| text.to_owned())).await;
    assert!(!text.contains("spark_application_info{"), "{text}");
    assert_eq!(value(&text, "spark_exporter_target_event_logs_followed", &[]), Some(1.0));

    append(&going, &parts(&log)[0][start..]);
    let text = until(&metrics, SOON, |text| is(text, "running").then(|| text.to_owned())).await;
    assert_eq!(skipped(&text), Some(0.0));
    assert_eq!(text.matches("spark_application_info{").count(), 1);
    assert!(!text.contains("_unnamed"), "{text}");
    assert_eq!(value(&text, "spark_exporter_identity_collisions_total", &[]), Some(0.0));
    assert_eq!(value(&text, "spark_exporter_applications_appeared_total", &[]), Some(1.0));
}

#[tokio::test]
async fn a_rolling_log_is_followed_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let log = logs.join("eventlog_v2_app-1");
    std::fs::create_dir_all(&log).unwrap();
    let [first, second, end] = parts(&skewed());
    std::fs::write(log.join("appstatus_app-1.inprogress"), "").unwrap();
    std::fs::write(log.join("events_1_app-1"), &first).unwrap();
    let (_exporter, metrics) = watching(folder.path(), logs.to_str().unwrap(), "");
    until(&metrics, SOON, |text| is(text, "running").then_some(())).await;
    std::fs::write(log.join("events_2_app-1"), &second).unwrap();
    until(&metrics, SOON, |text| text.contains("rule=\"data_skew\",cause=").then_some(())).await;
    std::fs::write(log.join("events_3_app-1"), &end).unwrap();
    std::fs::rename(log.join("appstatus_app-1.inprogress"), log.join("appstatus_app-1")).unwrap();
    let text = until(&metrics, SOON, |text| is(text, "succeeded").then(|| text.to_owned())).await;
    assert_eq!(text.matches("spark_application_info{").count(), 1);
    assert_eq!(reads(&text), Some(1.0));
}

/// A driver that was killed leaves a log that says it runs.
#[tokio::test]
async fn a_log_that_nobody_writes_any_more_is_no_running_application() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let dead = logs.join("app-1.inprogress");
    let [first, second, _] = parts(&skewed());
    std::fs::write(&dead, &first).unwrap();
    age(&dead, 2 * 3_600);
    let (_exporter, metrics) = watching(folder.path(), logs.to_str().unwrap(), "");
    let text = until(&metrics, SOON, |text| is(text, "lost").then(|| text.to_owned())).await;
    assert_eq!(
        value(&text, "spark_application_data_quality", &["reason=\"log_incomplete\""]),
        Some(1.0)
    );
    assert_eq!(value(&text, "spark_exporter_target_event_logs_followed", &[]), Some(0.0));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let text = until(&metrics, SOON, |text| Some(text.to_owned())).await;
    assert_eq!(reads(&text), Some(1.0), "read once");
    // It lives after all.
    append(&dead, &second);
    until(&metrics, SOON, |text| is(text, "running").then_some(())).await;
    // And now it does not change for too long while it is followed.
    age(&dead, 2 * 3_600);
    tokio::time::sleep(Duration::from_secs(2)).await;
    std::fs::remove_file(&dead).unwrap();
    let text = until(&metrics, SOON, |text| is(text, "lost").then(|| text.to_owned())).await;
    assert_eq!(text.matches("spark_application_info{").count(), 1);
}

#[tokio::test]
async fn no_more_logs_are_followed_than_there_is_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let [first, ..] = parts(&skewed());
    for number in 0..3 {
        let text = first.replace("\"App ID\":\"app-", &format!("\"App ID\":\"app-{number}-"));
        std::fs::write(logs.join(format!("app-{number}.inprogress")), text).unwrap();
    }
    let (_exporter, metrics) =
        watching(folder.path(), logs.to_str().unwrap(), "limits: {followed_logs: 2}");
    let text = until(&metrics, SOON, |text| {
        (text.matches("spark_application_info{").count() == 2).then(|| text.to_owned())
    })
    .await;
    let skipped = "spark_exporter_applications_skipped";
    assert_eq!(value(&text, skipped, &["reason=\"in_progress\""]), Some(1.0));
    assert_eq!(value(&text, "spark_exporter_target_event_logs", &[]), Some(3.0));
}

/// A store shows an object whole or not at all: a log that grows is one that
/// is replaced by a longer one.
#[cfg(feature = "s3")]
#[tokio::test]
async fn a_log_in_a_bucket_is_followed_and_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let s3 = common::places::S3::start().await;
    s3.bucket("logs").await;
    let [first, second, end] = parts(&skewed());
    s3.put("logs/spark/app-1.inprogress", first.clone().into_bytes()).await;
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hunter2").unwrap();
    let store = format!(
        "  object_store:\n    options: {{aws_endpoint: '{}', aws_region: us-east-1, \
         aws_access_key_id: anybody}}\n    secret_files: {{aws_secret_access_key: '{}'}}",
        s3.endpoint,
        secret.display()
    );
    let (exporter, metrics) = watching(folder.path(), "s3://logs/spark", &store);
    until(&metrics, SOON, |text| is(text, "running").then_some(())).await;
    let longer = first + &second;
    s3.put("logs/spark/app-1.inprogress", longer.clone().into_bytes()).await;
    until(&metrics, SOON, |text| text.contains("rule=\"data_skew\",cause=").then_some(())).await;
    // The rename of a store: a copy, then the old name goes.
    s3.put("logs/spark/app-1", (longer + &end).into_bytes()).await;
    s3.delete("logs/spark/app-1.inprogress").await;
    let text = until(&metrics, SOON, |text| is(text, "succeeded").then(|| text.to_owned())).await;
    assert_eq!(text.matches("spark_application_info{").count(), 1);
    assert_eq!(reads(&text), Some(1.0));
    let target = "target=\"s3://logs/spark\"";
    assert_eq!(value(&text, "spark_exporter_target_up", &[target]), Some(1.0));
    // A store that goes away costs its gauge, not what was read.
    drop(s3);
    let text = until(&metrics, SOON, |text| {
        let up = value(text, "spark_exporter_target_up", &[target]);
        (up == Some(0.0)).then(|| text.to_owned())
    })
    .await;
    assert!(is(&text, "succeeded"));
    let said = exporter.said().join("\n");
    assert!(!said.contains("hunter2") && said.contains("source down"), "{said}");
}
