//! `store check` and `store export`, as a person uses them on a file.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::File;
use super::store_suite::{self, Place, at, keep, key, run};

fn command(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    command.arg("store").args(arguments).output().unwrap()
}

fn says(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn filled() -> File {
    let place = File::new();
    let store = place.store(keep());
    for number in 0..70 {
        let key = key(&format!("app-{number:02}"), 1_000);
        store.record(&key, &run("etl", at(9)), at(0), at(9)).unwrap();
    }
    let sent = store_suite::sent(&[3], &["spill"]);
    store.add_delivered(&key("app-07", 1_000), &sent, at(9)).unwrap();
    place
}

#[test]
fn check_says_what_it_holds_and_exits_by_what_is_wrong() {
    let place = filled();
    let path = place.path.to_str().unwrap();
    let before = std::fs::read(&place.path).unwrap();
    let output = command(&["check", "--storage.path", path]);
    let text = says(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in [
        "is whole",
        "version 2",
        "runs:      70 (",
        "sent:      parts of 1 runs (",
        "names:     1",
        "oldest:",
        "newest:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(std::fs::read(&place.path).unwrap() == before, "nothing changed");
    let config = place.path.with_extension("yml");
    std::fs::write(&config, format!("storage: {{path: {path}}}\n")).unwrap();
    let output = command(&["check", "--config.file", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", says(&output));
    // While somebody has it.
    let held = place.store(keep());
    let output = command(&["check", "--storage.path", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(says(&output).contains("another process uses it"), "{}", says(&output));
    drop(held);
    std::fs::write(&place.path, &before[..before.len() / 2]).unwrap();
    let output = command(&["check", "--storage.path", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(says(&output).contains("damaged"), "{}", says(&output));
    let output = command(&["check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(says(&output).contains("--storage.path FILE"), "{}", says(&output));
    let output = command(&["check", "--storage.url", "postgres://me:hunter2@db/spark"]);
    assert_eq!(output.status.code(), Some(2));
    let text = says(&output);
    assert!(text.contains("password_file") && !text.contains("hunter2"), "{text}");
}

#[test]
fn check_config_says_where_the_store_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yml");
    for (yaml, part) in [
        ("{}", "remembered in memory, until the daemon ends, for 30days"),
        (
            "storage: {path: /var/lib/store.db, retention: {time: 10d, size: 1GiB}}",
            "remembered in the file /var/lib/store.db, for 10days and up to 1GiB",
        ),
        (
            "storage: {url: 'postgres://me@db/spark', password_file: /run/password}",
            "in postgres://me@db:5432/spark (TLS, up to 4 connections",
        ),
    ] {
        std::fs::write(&path, yaml).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        let output = command.arg("check-config").arg(&path).output().unwrap();
        assert!(says(&output).contains(part), "{yaml}: {}", says(&output));
    }
}

#[test]
#[cfg(not(feature = "postgres"))]
fn without_the_feature_a_url_says_how_to_build() {
    let output = command(&["check", "--storage.url", "postgres://me@db/spark"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(says(&output).contains("--features postgres"), "{}", says(&output));
}

#[test]
fn export_writes_a_line_for_each_thing() {
    let place = filled();
    let path = place.path.to_str().unwrap();
    let output = command(&["export", "--storage.path", path]);
    assert_eq!(output.status.code(), Some(0), "{}", says(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 73);
    assert_eq!(lines[0]["meta"]["runs"], 70);
    assert!(lines[0]["meta"]["forgotten_ms"].is_null());
    assert_eq!(lines[1]["totals"]["app_name"], "etl");
    assert_eq!(lines[1]["totals"]["totals"]["runs"][0], 70);
    let run = &lines[9]["run"];
    assert_eq!((&run["app_id"], &run["start_ms"]), (&"app-07".into(), &1_000.into()));
    assert_eq!(run["record"]["state"], "succeeded");
    assert_eq!(run["summary"]["spark_version"], "4.0.1");
    let sent = &lines[72]["delivered"];
    assert_eq!((&sent["app_id"], &sent["attempt_id"]), (&"app-07".into(), &Value::Null));
    assert_eq!(sent["delivered"]["spans"]["jobs"], serde_json::json!([[3, 3]]));
    assert_eq!(sent["delivered"]["findings"][0]["rule"], "spill");
    let file = place.path.with_extension("jsonl");
    let name = file.to_str().unwrap();
    let output = command(&["export", "--storage.path", path, "--output", name]);
    assert_eq!(output.status.code(), Some(0), "{}", says(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let output = command(&["export", "--storage.path", path, "--output", "/no/such/folder/x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(says(&output).contains("/no/such/folder/x"), "{}", says(&output));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = filled();
    let mut child = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["store", "export", "--storage.path", place.path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", says(&output));
    assert_eq!(says(&output), "");
}
