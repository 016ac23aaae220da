//! What the rules ask for exists, and they ask for what they should: findings
//! and not numbers of their own, nothing of runs that ended long ago.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;
use spark_exporter::diagnose::{Cause, Rule, Severity};
use spark_exporter::metrics::catalogue::{CATALOGUE, Metric};
use spark_exporter::model::{DataQuality, JobStatus, Kind, Source, State};
use spark_exporter::telemetry::{
    DRIVER_STATES, LOG_FAILURES, OTLP_OUTCOMES, SERIES_DROPPED, SKIPPED, SUBMISSION_STATES,
};

use crate::common::promql::{problems, selectors};
use crate::files::{RECORDING, alerts, annotation, folder, rules};

/// Labels that names of recorded series begin with.
const LEVELS: [&str; 8] =
    ["spark_cluster", "app_name", "outcome", "currency", "rule", "severity", "state", "target"];

/// The queries in the templates of an alert, with values for the labels.
pub(crate) fn queries(alert: &Value) -> Vec<String> {
    let printf = Regex::new("printf `([^`]*)`").unwrap();
    let verb = Regex::new(r"%(\[\d+\])?q").unwrap();
    let texts = alert["annotations"].as_object().unwrap().values();
    texts
        .flat_map(|text| {
            let found = printf.captures_iter(text.as_str().unwrap());
            found.map(|found| verb.replace_all(&found[1], "\"x\"").into_owned()).collect::<Vec<_>>()
        })
        .collect()
}

/// The labels in the level of a recorded series' name.
fn level(name: &str) -> Vec<&'static str> {
    let mut rest = name.split(':').next().unwrap();
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let label = LEVELS
            .into_iter()
            .find(|label| {
                rest.strip_prefix(label).is_some_and(|r| r.is_empty() || r.starts_with('_'))
            })
            .unwrap_or_else(|| panic!("{name}: {rest} begins with no label"));
        labels.push(label);
        rest = rest[label.len()..].trim_start_matches('_');
    }
    labels
}

#[test]
fn every_metric_and_label_of_the_rules_exists() {
    let recording = rules(&folder(), RECORDING);
    let levels: Vec<(String, Vec<&str>)> = recording
        .iter()
        .map(|rule| rule["record"].as_str().unwrap().to_owned())
        .map(|name| (name.clone(), level(&name)))
        .collect();
    let recorded: Vec<(&str, &[&str])> =
        levels.iter().map(|(name, labels)| (name.as_str(), labels.as_slice())).collect();
    let mut found = BTreeMap::new();
    let mut check = |name: &str, query: &str, more| {
        let problems = problems(query, more);
        if !problems.is_empty() {
            found.insert(format!("{name}: {query}"), problems);
        }
    };
    for rule in &recording {
        check(rule["record"].as_str().unwrap(), rule["expr"].as_str().unwrap(), &recorded);
    }
    // Alerts work without the recording rules.
    for (name, alert) in alerts() {
        check(&name, alert["expr"].as_str().unwrap(), &[]);
        let queries = queries(&alert);
        let templates = alert["annotations"].to_string();
        assert_eq!(queries.len(), templates.matches("| query").count(), "{name}");
        for query in queries {
            check(&name, &query, &[]);
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn names_of_recorded_series_are_level_metric_operations() {
    let operations = Regex::new("^(sum|count|(ratio_|mean_|p50_|p90_)?increase1d)$").unwrap();
    let mut seen = BTreeSet::new();
    for rule in rules(&folder(), RECORDING) {
        let name = rule["record"].as_str().unwrap().to_owned();
        let parts: Vec<&str> = name.split(':').collect();
        assert_eq!(parts.len(), 3, "{name}");
        assert!(!level(&name).is_empty(), "{name}");
        assert!(!parts[1].ends_with("_total"), "{name}: _total goes with the increase");
        assert!(operations.is_match(parts[2]), "{name}: {}", parts[2]);
        assert!(seen.insert(name.clone()), "{name} is there twice");
    }
}

/// Whether an alert is raised by a finding of this rule and severity, of
/// whatever cause.
fn raised_by(alert: &Value, rule: &str, severity: &str) -> bool {
    selectors(alert["expr"].as_str().unwrap()).iter().any(|selector| {
        selector.name.as_deref() == Some("spark_finding")
            && selector.matchers.matchers.iter().all(|matcher| match matcher.name.as_str() {
                "rule" => matcher.is_match(rule),
                "severity" => matcher.is_match(severity),
                _ => true,
            })
    })
}

#[test]
fn every_rule_of_the_diagnosis_has_an_alert_and_no_info_has() {
    let alerts = alerts();
    for rule in Rule::ALL {
        let rule = rule.as_str();
        let by = |severity| -> BTreeSet<&str> {
            let raised = alerts.iter().filter(|(_, alert)| raised_by(alert, rule, severity));
            raised.map(|(name, _)| name.as_str()).collect()
        };
        let critical = by("critical");
        assert!(!critical.is_empty(), "no alert tells of a critical {rule}");
        // The one for all others is for others only.
        assert!(
            !critical.contains("SparkCostlyFinding") || critical.len() == 1,
            "{rule}: {critical:?}"
        );
        assert_eq!(by("info"), BTreeSet::new(), "{rule}: info is no news for anybody");
    }
}

#[test]
fn alerts_made_of_findings_hold_no_threshold_and_leave_old_runs_alone() {
    let compared = Regex::new(r"(==|!=|>=?|<=?)\s*(-?[0-9.e]+)").unwrap();
    for (name, alert) in alerts() {
        let expression = alert["expr"].as_str().unwrap();
        if !expression.contains("spark_finding") || name == "SparkManyApplicationsFail" {
            continue;
        }
        for found in compared.captures_iter(expression) {
            // A state, whether there is anything, and how old a run may be.
            let known = ["== 0", "== 1", "> 0", "> 3600", "> 10800"];
            let text = format!("{} {}", &found[1], &found[2]);
            assert!(known.contains(&text.as_str()), "{name} compares with a number: {text}");
        }
        let running = expression.contains("spark_application_state{state=\"running\"} == 1");
        let recent = expression.contains("time() - spark_application_end_timestamp_seconds > 3600")
            && expression.contains("time() - spark_application_observed_timestamp_seconds > 10800");
        assert!(running || recent, "{name} tells of runs that ended long ago");
    }
}

/// Labels that the texts of an alert name must be labels that it has.
#[test]
fn texts_name_labels_that_the_alert_has() {
    let named = Regex::new(r"\$labels\.(\w+)").unwrap();
    let first = Regex::new(r"by \(([\w, ]+)\)").unwrap();
    for (name, alert) in alerts() {
        let expression = alert["expr"].as_str().unwrap();
        let kept = first.captures(expression).map(|found| found[1].to_owned()).unwrap_or_default();
        for text in ["description", "dashboard_url", "report_url"] {
            for found in named.captures_iter(annotation(&alert, text)) {
                let label = &found[1];
                let kept = kept.split(", ").any(|kept| kept == label);
                // Series of the exporter as they were scraped.
                let has = |metric: &Metric| {
                    expression.contains(metric.name) && metric.label_names().any(|has| has == label)
                };
                let scraped = !expression.contains(" by ")
                    && !expression.contains(&format!("without ({label})"))
                    && (label == "instance" || CATALOGUE.iter().any(has));
                assert!(kept || scraped, "{name}: {text} names {label}");
            }
        }
    }
}

/// A value that no series ever has makes an alert that cannot fire.
#[test]
fn values_that_are_matched_exist() {
    let known_rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    let states: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    let reasons: Vec<&str> = [&SKIPPED[..], &SERIES_DROPPED, &LOG_FAILURES]
        .concat()
        .into_iter()
        .chain(DataQuality::ALL.iter().map(|quality| quality.as_str()))
        .collect();
    let causes = [Cause::HeapOom, Cause::ContainerMemory, Cause::NoExecutor, Cause::NoExecutors];
    let statuses = JobStatus::ALL.iter().map(|status| status.as_str());
    let known: BTreeMap<&str, Vec<&str>> = BTreeMap::from([
        ("rule", known_rules),
        ("state", states.iter().chain(&DRIVER_STATES).chain(&SUBMISSION_STATES).copied().collect()),
        ("outcome", states.into_iter().chain(OTLP_OUTCOMES).collect()),
        ("reason", reasons),
        ("cause", causes.iter().map(|cause| cause.as_str()).chain([""]).collect()),
        ("severity", Severity::ALL.iter().map(|severity| severity.as_str()).collect()),
        ("status", statuses.chain(["x"]).collect()),
        ("kind", [Kind::Batch, Kind::Streaming, Kind::Interactive].map(Kind::as_str).to_vec()),
        ("source", vec![Source::Driver.as_str()]),
    ]);
    let expression = |rule: &Value| rule["expr"].as_str().unwrap().to_owned();
    let recording = rules(&folder(), RECORDING)
        .into_iter()
        .map(|rule| (rule["record"].to_string(), vec![expression(&rule)]));
    let alerting = alerts().into_iter().map(|(name, alert)| {
        let all = std::iter::once(expression(&alert)).chain(queries(&alert)).collect();
        (name, all)
    });
    let mut seen = BTreeSet::new();
    for (name, queries) in recording.chain(alerting) {
        for selector in queries.iter().flat_map(|query| selectors(query)) {
            for matcher in &selector.matchers.matchers {
                let Some(known) = known.get(matcher.name.as_str()) else { continue };
                if matcher.value == "x" {
                    continue; // a label of the alert
                }
                for alternative in matcher.value.split('|') {
                    // `no_executors?` is both.
                    let alternative = alternative.trim_end_matches('?');
                    let there = known.contains(&alternative);
                    assert!(there, "{name}: no {} is {alternative}", matcher.name);
                }
                seen.insert(matcher.name.clone());
            }
        }
    }
    assert_eq!(seen.len(), known.len(), "{seen:?}");
}

/// Whoever adds a reason for which something is left out decides here whether
/// somebody is told.
#[test]
fn each_reason_for_leaving_out_is_decided_about() {
    let alerts = alerts();
    let told = |alert: &str, reason: &str| {
        selectors(alerts[alert]["expr"].as_str().unwrap()).iter().any(|selector| {
            let matchers = &selector.matchers.matchers;
            matchers.iter().any(|m| m.name == "reason" && m.is_match(reason))
        })
    };
    // Each run has its own limits: of a large one the cheap parts are left out.
    let meant = [
        "stages_limit",
        "executors_limit",
        "streaming_queries_limit",
        "sql_executions_limit",
        "findings_limit",
    ];
    let lost = ["series_limit", "targets_limit", "duplicate_run", "duplicate_name"];
    let all: BTreeSet<&str> = meant.into_iter().chain(lost).collect();
    assert_eq!(all, SERIES_DROPPED.into_iter().collect());
    for reason in all {
        assert_eq!(told("SparkExporterSeriesDropped", reason), lost.contains(&reason), "{reason}");
    }
    let meant = ["lookback", "running_on_history_server", "unreadable"];
    let lost = ["limit", "in_progress", "waiting"];
    let all: BTreeSet<&str> = meant.into_iter().chain(lost).collect();
    assert_eq!(all, SKIPPED.into_iter().collect());
    for reason in all {
        let told = told("SparkExporterApplicationsSkipped", reason);
        assert_eq!(told, lost.contains(&reason), "{reason}");
    }
}
