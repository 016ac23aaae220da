//! The files are what the mixin gives, and its settings do what they say.

use std::path::Path;
use std::process::Command;

use crate::common::real::part;
use crate::files::{ALERTS, RECORDING, alerts, alerts_in, annotation, folder, names, rules};

fn python() -> std::path::PathBuf {
    part(&["python-tools"]).join("bin/python")
}

/// Compiles with settings of one's own into a folder.
fn compile(settings: Option<&str>, to: &Path) {
    let mut command = Command::new(python());
    command.arg("-B").arg(folder().join("compile")).arg("--to").arg(to);
    if let Some(settings) = settings {
        let file = to.join("own.libsonnet");
        std::fs::write(&file, settings).unwrap();
        command.arg("--config").arg(file);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_files_of_rules_are_what_the_mixin_gives() {
    let made = tempfile::tempdir().unwrap();
    compile(None, made.path());
    for file in ALERTS.iter().chain(&[RECORDING]) {
        let committed = std::fs::read_to_string(folder().join(file)).unwrap();
        let made = std::fs::read_to_string(made.path().join(file)).unwrap();
        assert!(committed == made, "alerts/{file} is not what the mixin gives: run make alerts");
    }
}

#[test]
fn its_settings_do_what_they_say() {
    let made = tempfile::tempdir().unwrap();
    let settings = r#"{
      _config+:: {
        exporterJob: 'spark',
        selector: 'env="prod"',
        keepLabels: ['env'],
        grafanaUrl: 'https://grafana.example.org',
        exporterUrl: 'https://spark.example.org',
        runbookUrl: 'https://wiki.example.org/',
        labels: { team: 'data' },
        annotations: { contact: 'data@example.org' },
        targetsThatComeAndGo: 'http://driver-.*',
        failuresInARow: 5,
        alerts+: {
          SparkIdleCores+: { enabled: false },
          SparkApplicationFailed+: { 'for': '4m', severity: 'critical', labels: { page: 'yes' } },
          SparkDataSkew+: { findings: 'warning|critical', keep_firing_for: '3m' },
        },
      },
    }"#;
    compile(Some(settings), made.path());
    let alerts = alerts_in(made.path());

    let mut expected = names();
    assert!(expected.remove("SparkIdleCores"));
    assert_eq!(alerts.keys().cloned().collect::<std::collections::BTreeSet<_>>(), expected);

    let failed = &alerts["SparkApplicationFailed"];
    assert_eq!(failed["for"], "4m");
    assert_eq!(failed["labels"]["severity"], "critical");
    assert_eq!(failed["labels"]["page"], "yes");
    let skew = &alerts["SparkDataSkew"];
    assert!(skew["expr"].as_str().unwrap().contains("severity=~\"warning|critical\""));
    assert_eq!(skew["keep_firing_for"], "3m");
    assert!(
        alerts["SparkApplicationKeepsFailing"]["expr"].as_str().unwrap().contains(">= 5"),
        "failuresInARow"
    );

    for (name, alert) in &alerts {
        assert_eq!(alert["labels"]["team"], "data", "{name}");
        assert_eq!(annotation(alert, "contact"), "data@example.org", "{name}");
        let address = format!("https://wiki.example.org/{name}.md");
        assert_eq!(annotation(alert, "runbook_url"), address);
        let dashboard = annotation(alert, "dashboard_url");
        assert!(dashboard.starts_with("https://grafana.example.org/d/"), "{name}: {dashboard}");
        let report = annotation(alert, "report_url");
        let absolute = report.starts_with("https://spark.example.org/applications/");
        assert!(report.is_empty() || absolute, "{name}: {report}");
        // Every series, in expressions and in templates.
        let queries = crate::names::queries(alert);
        let expression = alert["expr"].as_str().unwrap().to_owned();
        for query in std::iter::once(&expression).chain(&queries) {
            for selector in crate::common::promql::selectors(query) {
                let matcher = |name: &str| {
                    selector.matchers.matchers.iter().any(|matcher| matcher.name == name)
                };
                assert!(matcher("env"), "{name} asks for {selector} without env");
            }
        }
        for grouped in expression.match_indices(" by (").map(|(place, _)| &expression[place..]) {
            let list = grouped.split(')').next().unwrap();
            assert!(list.contains("env"), "{name} groups without env: {list}");
        }
    }
    let down = alerts["SparkExporterDown"]["expr"].as_str().unwrap();
    assert!(down.contains("job=\"spark\"") && !down.contains("spark-exporter"), "{down}");
    for name in ["SparkExporterTargetDown", "SparkExporterBlind", "SparkApplicationNoSuccess"] {
        let expression = alerts[name]["expr"].as_str().unwrap();
        assert!(expression.contains("target!~\"http://driver-.*\""), "{name}: {expression}");
    }
    for rule in rules(made.path(), RECORDING) {
        let name = rule["record"].as_str().unwrap();
        assert!(name.split(':').next().unwrap().ends_with("_env"), "{name}: keepLabels");
    }

    let valid = Command::new(part(&["prometheus"]).join("promtool"))
        .args(["check", "rules"])
        .args(ALERTS.iter().chain(&[RECORDING]).map(|file| made.path().join(file)))
        .output()
        .unwrap();
    assert!(valid.status.success(), "{}", String::from_utf8_lossy(&valid.stdout));
}

/// Charts change `for` and severities by the name of the alert.
#[test]
fn what_others_change_stands_there_as_it_is() {
    for (name, alert) in alerts() {
        for text in [&alert["for"], &alert["labels"]["severity"]] {
            assert!(!text.as_str().unwrap().contains("{{"), "{name}: {text}");
        }
    }
}

#[test]
fn it_serves_the_dashboards() {
    let program = "local mixin = import 'MIXIN'; \
        { [name]: mixin.grafanaDashboards[name].uid for name in std.objectFieldsAll(mixin.grafanaDashboards) }"
        .replace("MIXIN", &folder().join("mixin.libsonnet").display().to_string());
    let output = Command::new(python())
        .args([
            "-c",
            "import _gojsonnet, sys; print(_gojsonnet.evaluate_snippet('x', sys.argv[1]))",
        ])
        .arg(program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let served: std::collections::BTreeMap<String, String> =
        serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(served.len(), 6);
    for (file, uid) in served {
        assert_eq!(file, format!("{uid}.json"));
    }
}

/// A link fills in variables that the dashboard has, and leads to the place of
/// a finding on the exporter's page.
#[test]
fn links_fit_dashboards_and_pages() {
    let variable = regex::Regex::new(r"[?&]var-(\w+)=").unwrap();
    let dashboards: Vec<serde_json::Value> =
        crate::files::listed(&crate::common::real::root().join("dashboards"), "json")
            .iter()
            .map(|path| serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
            .collect();
    for (name, alert) in alerts() {
        let link = annotation(&alert, "dashboard_url");
        let uid = link.strip_prefix("/d/").unwrap().split('/').next().unwrap();
        let dashboard = dashboards.iter().find(|dashboard| dashboard["uid"] == uid);
        let dashboard = dashboard.unwrap_or_else(|| panic!("{name}: no dashboard {uid}"));
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        for found in variable.captures_iter(link) {
            let there = variables.iter().any(|variable| variable["name"] == found[1]);
            assert!(there, "{name}: {uid} has no variable {}", &found[1]);
        }
        let Some((_, place)) = annotation(&alert, "report_url").split_once('#') else { continue };
        let rule = spark_exporter::diagnose::Rule::ALL.iter().any(|rule| rule.as_str() == place);
        assert!(rule || place == "{{ $labels.rule }}", "{name}: no rule {place}");
    }
}
