//! Runs about scans and streams beyond their labels: at other thresholds, and
//! with numbers that cannot be made here.

use serde_json::Value;
use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::{Cause, Finding, Rule, Subject, diagnose};
use spark_exporter::model::Application;

use super::edited::with_events;
use super::recorded;

fn of(rule: Rule, application: &Application, thresholds: &Thresholds) -> Vec<Finding> {
    let findings = diagnose(application, thresholds).findings;
    findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

fn runs(name: &str) -> Vec<(String, Application)> {
    let runs = recorded().into_iter().filter(|(run, ..)| run == name);
    let runs: Vec<_> = runs.map(|(_, version, application)| (version, application)).collect();
    assert!(!runs.is_empty(), "{name} is not recorded");
    runs
}

fn evidence(finding: &Finding, name: &str) -> Option<f64> {
    finding.evidence.iter().find(|evidence| evidence.name == name).map(|evidence| evidence.value)
}

/// The execution whose plan the finding names, as its place among those that
/// scanned: each query of the run is one.
fn query_of(finding: &Finding, application: &Application) -> usize {
    let Subject::PlanNode { sql_id, .. } = finding.subject else { panic!("{finding:?}") };
    let scans = |id: u64| {
        let executions = application.sql.as_deref().expect("executions");
        let execution = executions.iter().find(|execution| execution.id == id).expect("it");
        execution.plan.iter().flat_map(|plan| &plan.nodes).any(|node| node.name.starts_with("Scan"))
    };
    (0..sql_id).filter(|id| scans(*id)).count()
}

#[test]
fn of_four_scans_the_one_without_a_filter_is_full() {
    for (version, application) in runs("full_scan") {
        assert!(of(Rule::FullScan, &application, &Thresholds::default()).is_empty());
        let mut thresholds = Thresholds::default();
        thresholds.full_scan.bytes = "1 B".parse().expect("a size");
        let found = of(Rule::FullScan, &application, &thresholds);
        assert_eq!(found.len(), 1, "{version}: {found:?}");
        assert_eq!(query_of(&found[0], &application), 0, "{version}");
        assert_eq!(evidence(&found[0], "partitions"), Some(10.0), "{version}");
    }
}

#[test]
fn a_full_scan_of_terabytes_is_said_at_the_default() {
    // Sizes that a machine of tests has no room for, written into a real log.
    let times = |number: &mut Value, factor: u64| {
        *number = (number.as_u64().expect("a number") * factor).into();
    };
    let application = with_events("full_scan", |event| {
        if let Some(updates) = event["accumUpdates"].as_array_mut() {
            let sizes = updates.iter_mut().filter(|update| update[1].as_u64() > Some(1_000_000));
            sizes.for_each(|update| times(&mut update[1], 100_000));
        }
        if event["Event"] == "SparkListenerTaskEnd" {
            times(&mut event["Task Metrics"]["Input Metrics"]["Bytes Read"], 100_000);
        }
    });
    let found = of(Rule::FullScan, &application, &Thresholds::default());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(query_of(&found[0], &application), 0);
}

#[test]
fn state_memory_that_cannot_be_true_is_unknown() {
    // 15.9 TB of one operator (SPARK-48208), and none beside rows (SPARK-53002).
    for (memory, known) in [(1_000_000_u64, true), (16_000_000_000_000, false), (0, false)] {
        let application = with_events("streaming_behind", |event| {
            for operator in event["progress"]["stateOperators"].as_array_mut().into_iter().flatten()
            {
                operator["memoryUsedBytes"] = memory.into();
            }
        });
        let found = of(Rule::StreamingBehind, &application, &Thresholds::default());
        assert_eq!(found.len(), 1, "{memory}");
        assert_eq!(evidence(&found[0], "state_memory").is_some(), known, "{memory}");
        assert!(evidence(&found[0], "state_growth") > Some(2.0), "{memory}: {found:?}");
    }
}

#[test]
fn python_is_told_by_how_it_is_called() {
    for (run, cause, kind) in [
        ("python_udf", None, None),
        ("python_udf-arrow", None, Some(101.0)),
        ("python_udf-vectorised", Some(Cause::SlowVectorised), Some(200.0)),
    ] {
        for (version, application) in runs(run) {
            let found = of(Rule::PythonUdf, &application, &Thresholds::default());
            assert_eq!(found[0].cause, cause, "{run} {version}");
            assert_eq!(evidence(&found[0], "evaluation_type"), kind, "{run} {version}");
            let text = format!("{} {:?}", found[0].headline, found[0].advice);
            assert!(!text.contains("digits"), "a function's name is text of users: {text}");
        }
    }
}
