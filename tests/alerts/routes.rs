//! The example for Alertmanager: who is told, what need not be, and how a
//! message reads.

use std::process::Command;

use regex::Regex;
use serde_json::json;

use crate::common::real::part;
use crate::files::{folder, names};

fn amtool(arguments: &[&str]) -> String {
    let output =
        Command::new(part(&["alertmanager"]).join("amtool")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "amtool {arguments:?}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said.trim().to_owned()
}

fn example() -> String {
    folder().join("alertmanager.yml").display().to_string()
}

#[test]
fn amtool_accepts_it_and_routes_as_it_says() {
    amtool(&["check-config", &example()]);
    for (labels, receivers) in [
        ("alertname=SparkDataSkew severity=warning app_name=prices", "chat"),
        (
            "alertname=SparkApplicationNoSuccess severity=critical app_name=prices",
            "pager,chat-until-resolved",
        ),
        (
            "alertname=SparkApplicationKeepsFailing severity=warning app_name=prices",
            "chat-until-resolved",
        ),
        (
            "alertname=SparkStreamingDown severity=critical app_name=clicks",
            "pager,chat-until-resolved",
        ),
        ("alertname=SparkManyApplicationsFail severity=critical", "pager,chat-until-resolved"),
        ("alertname=SparkApplicationFailed severity=warning app_name=orders-daily", "team-orders"),
        (
            "alertname=SparkApplicationNoSuccess severity=critical app_name=orders-daily",
            "pager,team-orders-until-resolved",
        ),
        ("alertname=SparkIdleCores severity=info app_name=orders-daily", "planning"),
        ("alertname=SparkExporterDown severity=critical", "pager"),
        ("alertname=SparkExporterBlind severity=critical spark_cluster=prod", "pager"),
        ("alertname=SparkExporterTargetDown severity=warning", "platform"),
    ] {
        let file = example();
        let mut arguments = vec!["config", "routes", "test", "--config.file", &file];
        arguments.extend(labels.split(' '));
        assert_eq!(amtool(&arguments), receivers, "{labels}");
    }
}

/// An alert that was renamed must not leave a matcher behind that matches
/// nothing.
#[test]
fn every_matcher_is_about_alerts_that_exist() {
    let text = std::fs::read_to_string(example()).unwrap();
    let matcher = Regex::new(r#"alertname=~?"([^"]+)""#).unwrap();
    let names = names();
    let mut seen = 0;
    for found in matcher.captures_iter(&text) {
        // Alternatives one by one, those within a group as well.
        let pattern = &found[1];
        let alternatives: Vec<String> = match pattern.split_once('(') {
            Some((before, rest)) if !before.contains('|') => {
                let (inside, after) = rest.split_once(')').unwrap();
                let of_group = inside.split('|').map(|part| format!("{before}{part}"));
                let others = after.split('|').filter(|part| !part.is_empty()).map(str::to_owned);
                of_group.chain(others).collect()
            }
            _ => pattern.split('|').map(str::to_owned).collect(),
        };
        for alternative in alternatives {
            let whole = Regex::new(&format!("^(?:{alternative})$")).unwrap();
            let there = names.iter().any(|name| whole.is_match(name));
            assert!(there, "{alternative} of {pattern} is no alert");
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} matchers were seen");
}

#[test]
fn a_message_has_the_numbers_and_links_that_work() {
    let folder_of_data = tempfile::tempdir().unwrap();
    let data = folder_of_data.path().join("data.json");
    let alert = |name: &str, severity: &str| {
        json!({
            "status": "firing",
            "labels": {"alertname": name, "severity": severity, "app_name": "orders"},
            "annotations": {
                "summary": format!("{name} in one line."),
                "description": "orders (app-1) in prod: 15m 0s.",
                "runbook_url": "https://example.org/runbook.md",
                "dashboard_url": "/d/spark-exporter-application/x?var-app_id=app-1",
                "report_url": "/applications/prod/app-1#data_skew",
            },
        })
    };
    let render = |status: &str, alerts: &[serde_json::Value], template: &str| {
        let content = json!({
            "status": status,
            "receiver": "chat",
            "groupLabels": {"app_name": "orders", "spark_cluster": "prod"},
            "commonLabels": {"severity": "warning"},
            "alerts": alerts,
        });
        std::fs::write(&data, content.to_string()).unwrap();
        amtool(&[
            "template",
            "render",
            "--template.glob",
            &folder().join("templates/*.tmpl").display().to_string(),
            "--template.data",
            &data.display().to_string(),
            "--template.text",
            &format!("{{{{ template \"{template}\" . }}}}"),
        ])
    };
    let one = [alert("SparkDataSkew", "warning")];
    let two = [alert("SparkDataSkew", "warning"), alert("SparkSpill", "warning")];
    assert_eq!(render("firing", &one, "spark.title"), "orders in prod: SparkDataSkew in one line.");
    assert_eq!(render("resolved", &two, "spark.title"), "Over: orders in prod: 2 alerts");
    let dashboard = "https://grafana.example.org/d/spark-exporter-application/x?var-app_id=app-1";
    assert_eq!(render("firing", &two, "spark.link"), dashboard);
    let text = render("firing", &two, "spark.text");
    for part in [
        "*SparkDataSkew* (warning)\norders (app-1) in prod: 15m 0s.\n",
        "<https://spark-exporter.example.org/applications/prod/app-1#data_skew|report>",
        &format!("<{dashboard}|dashboard>"),
        "<https://example.org/runbook.md|what to do>",
        "*SparkSpill* (warning)",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert_eq!(render("firing", &two, "spark.color"), "warning");
    assert_eq!(render("resolved", &two, "spark.color"), "good");
}
