//! `promtool` judges: rules are valid and every case of `alerts/tests/` comes
//! out as it says, on the oldest Prometheus that we promise and on the newest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::common::real::part;
use crate::common::yaml;
use crate::files::{ALERTS, RECORDING, alerts, annotation, folder, listed, names};

fn promtool(version: &str, arguments: &[&str], files: &[PathBuf]) -> Result<(), String> {
    let output = Command::new(part(&[version]).join("promtool"))
        .args(arguments)
        .args(files)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{version}: promtool {}:\n{}{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

const VERSIONS: [&str; 2] = ["prometheus", "prometheus-3"];

#[test]
fn promtool_accepts_the_rules_and_every_case_comes_out_as_it_says() {
    let rules: Vec<_> = ALERTS.iter().chain(&[RECORDING]).map(|file| folder().join(file)).collect();
    let cases = listed(&folder().join("tests"), "yml");
    let failed: Vec<String> = VERSIONS
        .iter()
        .flat_map(|version| {
            [
                promtool(version, &["check", "rules"], &rules),
                promtool(version, &["test", "rules"], &cases),
            ]
        })
        .filter_map(Result::err)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// One firing alert of a case: its labels and annotations.
type Firing = BTreeMap<String, Vec<Value>>;

/// Of each alert: what it is in cases where it fires, and whether there is one
/// where it is quiet.
fn cases() -> (Firing, BTreeSet<String>) {
    let mut firing = Firing::new();
    let mut quiet = BTreeSet::new();
    for path in listed(&folder().join("tests"), "yml") {
        let file = yaml(&path);
        for test in file["tests"].as_array().unwrap() {
            let name = test["name"].as_str().unwrap_or_default();
            assert!(name.len() > 5, "{}: a case says what it shows", path.display());
            for check in test["alert_rule_test"].as_array().unwrap_or(&Vec::new()) {
                let alert = check["alertname"].as_str().unwrap().to_owned();
                let expected = check["exp_alerts"].as_array().unwrap();
                if expected.is_empty() {
                    quiet.insert(alert);
                } else {
                    firing.entry(alert).or_default().extend(expected.iter().cloned());
                }
            }
        }
    }
    (firing, quiet)
}

#[test]
fn each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_quiet() {
    let (firing, quiet) = cases();
    assert_eq!(names(), firing.into_keys().collect(), "alerts, and those with a firing case");
    assert_eq!(names(), quiet, "alerts, and those with a quiet case");
}

#[test]
fn what_fires_says_all_that_it_should() {
    let alerts = alerts();
    for (name, cases) in cases().0 {
        let alert = &alerts[&name];
        let wanted: BTreeSet<&String> = alert["annotations"].as_object().unwrap().keys().collect();
        for case in cases {
            let said = case["exp_annotations"].as_object().unwrap();
            assert_eq!(wanted, said.keys().collect(), "{name}");
            for (annotation, text) in said {
                let text = text.as_str().unwrap();
                for fault in ["<error", "<no value>", "%!", "NaN", "  ", " ,", " .", "{{"] {
                    assert!(!text.contains(fault), "{name}: {annotation} has {fault:?}: {text}");
                }
            }
            let labels = case["exp_labels"].as_object().unwrap();
            for label in ["instance", "pod"] {
                let own = name.starts_with("SparkExporter");
                assert!(own || !labels.contains_key(label), "{name} keeps the label {label}");
            }
            for (label, value) in labels {
                let shown = ["app_name", "app_id", "spark_cluster", "target", "reason", "rule"]
                    .contains(&label.as_str());
                let value = value.as_str().unwrap();
                let description = said["description"].as_str().unwrap();
                let by_rule = label == "rule" && name != "SparkCostlyFinding";
                assert!(
                    !shown || by_rule || description.contains(value),
                    "{name}: the description does not say the {label} {value}: {description}"
                );
            }
        }
    }
}

/// An alert whose condition has to hold for as long as a finished run is
/// shown, or nearly, would never be sent about one.
#[test]
fn alerts_about_finished_runs_do_not_wait_long() {
    for (name, alert) in alerts() {
        let expression = alert["expr"].as_str().unwrap();
        let running_only = expression.contains("state=\"running\"} == 1");
        let of_a_run = expression.contains("spark_application_info")
            || expression.contains("spark_finding")
            || expression.contains("spark_application_state");
        let wait = alert["for"].as_str().unwrap();
        let minutes: u32 = wait.strip_suffix('m').unwrap().parse().unwrap();
        if of_a_run && !running_only && !name.starts_with("SparkExporter") {
            assert!(minutes <= 5, "{name} waits for {wait}");
        }
    }
}

#[test]
fn each_alert_has_a_known_severity_and_fixed_summary() {
    for (name, alert) in alerts() {
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        let summary = annotation(&alert, "summary");
        assert!(summary.ends_with('.') && !summary.contains("{{"), "{name}: {summary}");
        assert!(annotation(&alert, "description").contains("{{"), "{name}: no numbers");
        let runbook = annotation(&alert, "runbook_url");
        assert!(runbook.ends_with(&format!("docs/runbooks/{name}.md")), "{name}: {runbook}");
        assert!(!annotation(&alert, "dashboard_url").is_empty(), "{name}: no dashboard");
    }
}
