//! Where a click leads: to dashboards and variables that exist, with the time
//! kept, by labels that the clicked row has; and to pages that exist.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use spark_exporter::diagnose::Rule;

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
