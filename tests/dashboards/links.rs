//! Where a click leads: to dashboards and variables that exist, with the time
//! kept, by labels that the clicked row has; and to pages that exist.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use promql_parser::parser::Expr;
use serde_json::Value;
use spark_exporter::diagnose::Rule;

use crate::common::promql::calls;
use crate::common::recorded;
use crate::read::{Dashboard, all, having, overrides, text};

const ON_GITHUB: &str = "https://github.com/spark-exporter/spark-exporter/blob/main/";

/// Data links of a dashboard, each with its panel.
fn data_links(dashboard: &Dashboard) -> Vec<(&Value, &str)> {
    let mut found = Vec::new();
    for panel in dashboard.panels() {
        let mut links = Vec::new();
        having(&panel["fieldConfig"], "url", &mut links);
        found.extend(links.into_iter().map(|url| (panel, text(url))));
    }
    found
}

#[test]
fn links_lead_to_dashboards_and_variables_that_exist() {
    let dashboards = all();
    let mut led_to = BTreeSet::new();
    for dashboard in &dashboards {
        for (panel, url) in data_links(dashboard) {
            let Some(path) = url.strip_prefix("/d/") else { continue };
            let place = dashboard.place(panel);
            let (path, query) = path.split_once('?').unwrap();
            let uid = path.split('/').next().unwrap();
            let target = dashboards.iter().find(|other| other.json["uid"] == uid);
            let target = target.unwrap_or_else(|| panic!("{place}: {uid}"));
            led_to.insert(target.name.clone());
            for kept in
                ["${__url_time_range}", "${datasource:queryparam}", "${exporter:queryparam}"]
            {
                assert!(query.contains(kept), "{place}: {url}");
            }
            for pair in query.split('&').filter(|pair| pair.starts_with("var-")) {
                let (name, _) = pair.strip_prefix("var-").unwrap().split_once('=').unwrap();
                assert!(target.variable(name).is_some(), "{place}: {uid} has no variable {name}");
            }
            // Whom the target is about has to be named.
            for needed in target.variables() {
                let name = text(&needed["name"]);
                let one =
                    needed["type"] == "query" && needed.get("allValue").is_none_or(Value::is_null);
                assert!(
                    !one || query.contains(&format!("var-{name}=")),
                    "{place}: {uid} needs {name}"
                );
            }
        }
        let among = &dashboard.json["links"][0];
        assert_eq!(among["tags"], serde_json::json!(["spark-exporter"]));
        assert_eq!((&among["keepTime"], &among["includeVars"]), (&true.into(), &true.into()));
    }
    let expected = ["application", "job", "stage"].map(str::to_owned);
    assert_eq!(led_to, expected.into());
}

/// A label that a row has not is empty in the link.
#[test]
fn links_take_what_they_name_from_columns_that_are_there() {
    let field = regex::Regex::new(r"\$\{__data\.fields\.(\w+):percentencode\}").unwrap();
    for dashboard in all() {
        for (panel, url) in data_links(&dashboard) {
            let place = dashboard.place(panel);
            let columns: BTreeSet<&str> =
                overrides(panel).into_iter().map(|(name, _)| name).collect();
            // A single number knows the labels of its series.
            let expression = text(&panel["targets"][0]["expr"]);
            for found in field.captures_iter(url) {
                let there = if panel["type"] == "table" {
                    columns.contains(&found[1])
                } else {
                    expression.contains(&found[1])
                };
                assert!(there, "{place}: {url} needs the column {}", &found[1]);
            }
            let rest = field.replace_all(url, "");
            assert!(!rest.contains("__data"), "{place}: {url}");
        }
    }
}

#[test]
fn links_outwards_lead_to_our_own_pages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = std::fs::read_to_string(root.join("docs/diagnostics.md")).unwrap();
    for rule in Rule::ALL {
        assert!(rules.contains(&format!("\n## {}\n", rule.as_str())), "an anchor for each rule");
    }
    for dashboard in all() {
        for (panel, url) in data_links(&dashboard) {
            let place = dashboard.place(panel);
            if let Some(page) = url.strip_prefix(ON_GITHUB) {
                let fixed = page.split(['#', '$']).next().unwrap();
                // Which alert has which runbook, the tests of alerts hold.
                assert!(fixed == "docs/runbooks/" || root.join(fixed).exists(), "{place}: {fixed}");
            } else if url.starts_with("/explore?") {
                leads_to_the_trace(&dashboard, url, &place);
            } else if !url.starts_with("/d/") && url != "${exporter:raw}/" {
                let path = url.strip_prefix("${exporter:raw}/applications/");
                let segments =
                    path.unwrap_or_else(|| panic!("{place}: {url}")).split('#').next().unwrap();
                let expected = ["spark_cluster", "app_id", "attempt_id"]
                    .map(|name| format!("${{__data.fields.{name}:percentencode}}"));
                assert_eq!(segments, expected.join("/"), "{place}");
            }
        }
    }
}

/// The place of a finding in the report is made from its labels, by the query:
/// it has to be where the report puts it.
#[test]
fn a_click_on_a_finding_leads_to_its_place_in_the_report() {
    let dashboards = all();
    let application = dashboards.iter().find(|dashboard| dashboard.name == "application").unwrap();
    let panels = application.panels();
    let panel = panels.iter().find(|panel| panel["title"] == "What is wrong").unwrap();
    let query = text(&panel["targets"][0]["expr"]).replace("[$__range", "[1h");
    // The innermost is the first to be applied.
    let mut steps: Vec<(regex::Regex, String)> = calls(&query)
        .iter()
        .filter(|call| call.func.name == "label_replace")
        .map(|call| [1, 2, 3, 4].map(|place| string(&call.args.args[place])))
        .filter(|[to, _, from, _]| to == "anchor" && from == "anchor")
        .map(|[_, place, _, pattern]| {
            (regex::Regex::new(&format!("^(?:{pattern})$")).unwrap(), place)
        })
        .collect();
    steps.reverse();
    assert!(steps.len() >= 3);
    let mut kinds = BTreeSet::new();
    for run in ["hot_key", "executor_killed", "driver_gap", "count_distinct"] {
        let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
            .args(["diagnose", "--format", "json", "--fail-on", "never"])
            .arg(recorded(&format!("{run}/4.3.0")))
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        for finding in report["applications"][0]["findings"].as_array().unwrap() {
            let subject = &finding["subject"];
            let label = |key: &str| match &subject[key] {
                Value::Null => String::new(),
                Value::String(word) => word.clone(),
                number => number.to_string(),
            };
            let mut place = [
                label("kind"),
                text(&finding["rule"]).to_owned(),
                label("stage_id"),
                label("stage_attempt_id"),
                label("executor_id"),
                label("sql_id"),
            ]
            .join("|");
            for (pattern, replacement) in &steps {
                if let Some(found) = pattern.captures(&place) {
                    let mut replaced = String::new();
                    found.expand(replacement, &mut replaced);
                    place = replaced;
                }
            }
            // What has no label of its own is found by its rule.
            let own = ["application", "stage", "executor", "sql_execution"];
            let expected = if own.contains(&label("kind").as_str()) { "anchor" } else { "rule" };
            assert_eq!(place, text(&finding[expected]), "{run}: {finding}");
            kinds.insert(label("kind"));
        }
    }
    for kind in ["application", "stage", "executor", "sql_execution"] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}

fn string(argument: &Expr) -> String {
    match argument {
        Expr::StringLiteral(text) => text.val.clone(),
        other => panic!("{other} is no text"),
    }
}

/// Explore takes its panes as JSON: one query of a trace, by its id, from the
/// data source that the dashboard's variable names.
fn leads_to_the_trace(dashboard: &Dashboard, url: &str, place: &str) {
    assert_eq!(dashboard.variable("tempo").unwrap()["query"], "tempo", "{place}");
    let panes = url.strip_prefix("/explore?schemaVersion=1&panes=").unwrap();
    let panes: Value = serde_json::from_str(panes).unwrap();
    let query = &panes["run"]["queries"][0];
    assert_eq!(query["query"], "${__data.fields.trace_id:percentencode}", "{place}");
    assert_eq!(query["queryType"], "traceql", "{place}");
    assert_eq!(panes["run"]["datasource"], query["datasource"]["uid"], "{place}");
    assert_eq!(query["datasource"]["uid"], "${tempo:raw}", "{place}");
}
