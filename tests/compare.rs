//! `compare` on recorded runs of real Spark: what a fault cost, and what is no
//! comparison at all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Command, Output};

use common::recorded;
use serde_json::Value;

fn compare(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_spark-exporter");
    Command::new(program).arg("compare").args(arguments).output().unwrap()
}

fn paths(a: &str, b: &str) -> [String; 2] {
    [a, b].map(|path| recorded(path).display().to_string())
}

fn text(a: &str, b: &str, more: &[&str]) -> (i32, String) {
    let paths = paths(a, b);
    let mut arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
    arguments.extend(more);
    let output = compare(&arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() != Some(2), "{error}");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn json(a: &str, b: &str, more: &[&str]) -> (i32, Value) {
    let (status, out) = text(a, b, &[&["--format", "json"], more].concat());
    (status, serde_json::from_str(&out).unwrap())
}

fn rules(told: &Value) -> Vec<&str> {
    told.as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap()).collect()
}

#[test]
fn without_the_hot_key_it_is_faster_and_the_skew_is_gone() {
    let (status, found) = json("hot_key/4.3.0", "hot_key-healthy/4.3.0", &[]);
    assert_eq!(status, 0, "{found:#}");
    assert_eq!(found["verdict"], "faster", "{found:#}");
    assert!(rules(&found["lost"]).contains(&"data_skew"), "{found:#}");
    assert_eq!(found["schema_version"], 1);
    for side in ["a", "b"] {
        let sum: f64 = found["layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|layer| layer[format!("{side}_seconds")].as_f64().unwrap())
            .sum();
        let whole = found[side]["duration_seconds"].as_f64().unwrap();
        assert!((sum - whole).abs() < 0.001, "{sum} of {whole}");
    }

    let (status, found) = json("hot_key-healthy/4.3.0", "hot_key/4.3.0", &[]);
    assert_eq!(status, 1, "{found:#}");
    assert_eq!(found["verdict"], "slower");
    assert!(rules(&found["gained"]).contains(&"data_skew"), "{found:#}");
    let (status, _) = json("hot_key-healthy/4.3.0", "hot_key/4.3.0", &["--fail-on", "never"]);
    assert_eq!(status, 0);
}

#[test]
fn less_data_in_less_time_is_not_faster() {
    let (_, found) = json("spill/4.3.0", "spill-small/4.3.0", &[]);
    assert_eq!(found["verdict"], "less_data", "{found:#}");
    let (_, out) = text("spill/4.3.0", "spill-small/4.3.0", &[]);
    assert!(out.contains("on less data: that does not make it faster"), "{out}");
    assert!(!out.contains("B is faster"), "{out}");
    let (_, out) = text("spill-small/4.3.0", "spill/4.3.0", &["--fail-on", "never"]);
    assert!(out.contains("on more data: that does not make it slower"), "{out}");
}

#[test]
fn a_run_is_the_same_as_itself() {
    let (status, found) = json("hot_key/4.3.0", "hot_key/4.3.0", &[]);
    assert_eq!(status, 0);
    assert_eq!(found["verdict"], "same", "{found:#}");
    assert_eq!(found["settings"].as_array().unwrap().len(), 0);
    assert!(rules(&found["gained"]).is_empty() && rules(&found["lost"]).is_empty());
    assert_eq!(found["kept"][0]["a"], found["kept"][0]["b"]);
}

#[test]
fn what_failed_is_no_comparison_of_speed() {
    let (_, out) = text("healthy/4.3.0", "job_failed/4.3.0", &["--fail-on", "never"]);
    assert!(out.contains("B did not end well") || out.contains("B only"), "{out}");
    assert!(!out.contains("B is faster"), "{out}");
}

#[test]
fn settings_by_key_and_plain_values_only() {
    let (_, out) = text("gc_pressure/4.3.0", "healthy/4.3.0", &["--fail-on", "never"]);
    assert!(out.contains("Settings that differ"), "{out}");
    let markdown = text("gc_pressure/4.3.0", "healthy/4.3.0", &["--format", "markdown"]).1;
    assert!(markdown.starts_with("# Comparison\n\n- **A**: "), "{markdown}");
    assert!(markdown.contains("## Where the time went\n\n| | A | B | |"), "{markdown}");
}

#[test]
fn two_executions_of_one_run() {
    let path = recorded("cached/4.3.0").display().to_string();
    let output = compare(&[
        &path,
        "--sql-id",
        "0",
        "--sql-id-b",
        "1",
        "--format",
        "json",
        "--fail-on=never",
    ]);
    let error = String::from_utf8(output.stderr).unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    assert_eq!(found["a"]["sql_id"], 0);
    assert_eq!(found["b"]["sql_id"], 1);
    assert!(found["a"]["duration_seconds"].as_f64().unwrap() > 0.0, "{found:#}");

    // One filled the cache, the other read it.
    let output = compare(&[&path, "--sql-id", "1", "--sql-id-b", "2"]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(!out.contains("is faster") && !out.contains("is slower"), "{out}");
    assert!(out.contains("Stages that read a cached table: 1 in A, 1 in B"), "{out}");

    let output = compare(&[&path, "--sql-id", "0", "--sql-id-b", "777"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no SQL execution 777"), "{error}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let [log, folder] = paths("hot_key/4.3.0", "hot_key");
    for (arguments, part) in [
        (vec![log.as_str()], "B is missing"),
        (vec![log.as_str(), "no/such/log"], "no/such/log"),
        (vec![log.as_str(), log.as_str(), "--app-id-b", "app-9"], "has no application \"app-9\""),
    ] {
        let output = compare(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(part), "{error}");
    }
    // A folder of several versions.
    let output = compare(&[&folder, &log]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
}

/// Thresholds by application name hold in every command that diagnoses.
#[test]
fn a_rule_is_off_for_applications_of_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yml");
    let log = recorded("hot_key/4.3.0").display().to_string();
    let program = env!("CARGO_BIN_EXE_spark-exporter");
    for (pattern, off) in [("orders-by-.*", true), ("orders", false)] {
        let yaml = format!(
            "threshold_overrides:\n- app_name: '{pattern}'\n  thresholds:\n    data_skew: \
             {{enabled: false}}\n"
        );
        std::fs::write(&config, yaml).unwrap();
        let output = Command::new(program)
            .args(["diagnose", &log, "--config.file", &config.display().to_string()])
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(out.contains("data_skew"), !off, "{pattern}: {out}");
    }
    std::fs::write(&config, "threshold_overrides:\n- app_name: '('\n  thresholds: {}\n").unwrap();
    let output = Command::new(program).args(["check-config"]).arg(&config).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("is not a regular expression"), "{error}");
}
