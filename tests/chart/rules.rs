//! Alerts and dashboards of the chart are those of `alerts/` and
//! `dashboards/`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::real::root;
use crate::common::yaml;
use crate::helm::{kind, objects, one, with};

const FILES: [&str; 3] = ["spark-alerts.yml", "spark-exporter-alerts.yml", "spark-rules.yml"];

fn own_groups(file: &str) -> Vec<Value> {
    yaml(&root().join("alerts").join(file))["groups"].as_array().unwrap().clone()
}

fn groups(sets: &[&str]) -> Vec<Value> {
    let mut all = vec!["prometheusRule.enabled=true"];
    all.extend(sets);
    one(&with(&all), "PrometheusRule")["spec"]["groups"].as_array().unwrap().clone()
}

fn alerts(groups: &[Value]) -> BTreeMap<String, Value> {
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .filter_map(|rule| Some((rule["alert"].as_str()?.to_owned(), rule.clone())))
        .collect()
}

#[test]
fn the_rules_are_those_of_the_files() {
    let all: Vec<Value> = FILES.iter().flat_map(|file| own_groups(file)).collect();
    assert_eq!(groups(&[]), all);
    for (value, file) in [("applications", 0), ("exporter", 1), ("recordingRules", 2)] {
        let rest: Vec<Value> = FILES
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != file)
            .flat_map(|(_, file)| own_groups(file))
            .collect();
        assert_eq!(groups(&[&format!("prometheusRule.{value}=false")]), rest, "{value}");
    }
}

#[test]
fn each_alert_can_be_changed_or_left_out() {
    let before = alerts(&groups(&[]));
    let after = alerts(&groups(&[
        "prometheusRule.alerts.SparkSpill.disabled=true",
        "prometheusRule.alerts.SparkDataSkew.for=1h",
        "prometheusRule.alerts.SparkDataSkew.severity=critical",
        "prometheusRule.alerts.SparkDataSkew.keepFiringFor=10m",
        "prometheusRule.alerts.SparkDataSkew.labels.team=own",
        "prometheusRule.alerts.SparkDataSkew.annotations.note=seen",
        "prometheusRule.additionalLabels.team=data",
        "prometheusRule.additionalAnnotations.contact=us",
    ]));
    assert!(!after.contains_key("SparkSpill"));
    assert_eq!(after.len(), before.len() - 1);
    for (name, rule) in after {
        let mut expected = before[&name].clone();
        expected["labels"]["team"] = json!("data");
        expected["annotations"]["contact"] = json!("us");
        if name == "SparkDataSkew" {
            expected["for"] = json!("1h");
            expected["keep_firing_for"] = json!("10m");
            expected["labels"]["severity"] = json!("critical");
            expected["labels"]["team"] = json!("own");
            expected["annotations"]["note"] = json!("seen");
        }
        assert_eq!(rule, expected, "{name}");
    }
}

#[test]
fn links_begin_where_they_are_told_to() {
    let before = alerts(&groups(&[]));
    let after = alerts(&groups(&[
        "prometheusRule.grafanaUrl=https://grafana.example.org/",
        "prometheusRule.exporterUrl=https://spark.example.org",
        "prometheusRule.runbookUrl=https://wiki.example.org/spark/",
    ]));
    let mut links = 0;
    for (name, rule) in &after {
        let mut expected = before[name].clone();
        let notes = expected["annotations"].as_object_mut().unwrap();
        for (key, start) in [
            ("dashboard_url", "https://grafana.example.org"),
            ("report_url", "https://spark.example.org"),
        ] {
            if let Some(link) = notes.get_mut(key) {
                assert!(link.as_str().unwrap().starts_with('/'));
                *link = json!(format!("{start}{}", link.as_str().unwrap()));
                links += 1;
            }
        }
        notes["runbook_url"] = json!(format!("https://wiki.example.org/spark/{name}.md"));
        assert_eq!(*rule, expected);
    }
    assert!(links > after.len(), "{links}");
}

/// The alerts know the exporter by the job that its targets get, and say so.
#[test]
fn the_job_is_that_of_the_monitor() {
    let rules = |sets: &[&str]| json!(groups(sets)).to_string();
    let expected = |job: &str| rules(&[]).replace(r#"job=\"spark-exporter\""#, job);
    assert_ne!(rules(&[]), expected(""));
    let down = &alerts(&groups(&[]))["SparkExporterDown"];
    for part in ["expr", "annotations"] {
        assert!(down[part].to_string().contains(r#"job=\"spark-exporter\""#), "{part}");
    }
    let renamed = ["nameOverride=watcher", "serviceMonitor.enabled=true"];
    assert_eq!(rules(&renamed), expected(r#"job=\"watcher\""#));
    let service = with(&renamed);
    let labels = &one(&service, "Service")["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/name"], "watcher");
    let own = ["prometheusRule.job=monitoring/spark"];
    assert_eq!(rules(&own), expected(r#"job=\"monitoring/spark\""#));
}

#[test]
fn groups_of_ones_own_come_after_them() {
    let groups = groups(&[
        "prometheusRule.extraGroups[0].name=own",
        "prometheusRule.extraGroups[0].rules[0].record=a:b",
    ]);
    assert_eq!(groups.last().unwrap(), &json!({"name": "own", "rules": [{"record": "a:b"}]}));
}

/// Where the cluster knows the kinds, nothing has to be said.
#[test]
fn monitors_and_rules_are_made_where_the_cluster_knows_them() {
    let kinds = ["ServiceMonitor", "PrometheusRule"];
    let unknown = with(&[]);
    assert!(kinds.iter().all(|one| kind(&unknown, one).is_empty()));
    assert_eq!(one(&unknown, "Service")["metadata"]["annotations"]["prometheus.io/scrape"], "true");
    let mut arguments = vec!["--set", "dashboards.enabled=false"];
    let versions: Vec<String> =
        kinds.iter().map(|kind| format!("monitoring.coreos.com/v1/{kind}")).collect();
    for version in &versions {
        arguments.extend(["--api-versions", version]);
    }
    let known = objects(&arguments);
    assert!(kinds.iter().all(|one| kind(&known, one).len() == 1));
    // Nobody scrapes it twice.
    assert!(one(&known, "Service")["metadata"].get("annotations").is_none());
    arguments.extend(["--set", "serviceMonitor.enabled=false,prometheusRule.enabled=false"]);
    let off = objects(&arguments);
    assert!(kinds.iter().all(|one| kind(&off, one).is_empty()));
}

#[test]
fn the_dashboards_are_the_files_byte_for_byte() {
    let objects = objects(&[]);
    let mut found = BTreeMap::new();
    for map in kind(&objects, "ConfigMap") {
        if map["metadata"]["labels"].get("grafana_dashboard").is_none() {
            continue;
        }
        assert_eq!(map["metadata"]["annotations"]["grafana_folder"], "Spark");
        assert!(serde_json::to_string(map).unwrap().len() < 1 << 20, "a ConfigMap holds 1 MiB");
        for (file, text) in map["data"].as_object().unwrap() {
            found.insert(file.clone(), text.as_str().unwrap().to_owned());
        }
    }
    let files =
        std::fs::read_dir(root().join("dashboards")).unwrap().map(|one| one.unwrap().path());
    let own: BTreeMap<String, String> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .map(|path| {
            let name = format!("spark-{}", path.file_name().unwrap().to_str().unwrap());
            // A sidecar writes what it finds: the last line end is no part of it.
            (name, std::fs::read_to_string(path).unwrap().trim_end().to_owned())
        })
        .collect();
    assert_eq!(own.len(), 6);
    assert!(found == own, "{:?} is not {:?}", found.keys(), own.keys());
}
