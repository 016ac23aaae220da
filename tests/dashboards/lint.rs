//! The rules of Grafana's dashboard-linter, where they are about dashboards on
//! Prometheus, and what else makes a dashboard a tidy one. Read from its
//! documentation and source; the linter itself is no part of the tests.

use std::collections::HashSet;

use promql_parser::label::MatchOp;
use promql_parser::parser::Expr;
use serde_json::Value;

use crate::common::promql::{calls, selectors};
use crate::read::{all, having, overrides, text};

/// Units of Grafana that are used here, by their ids.
const UNITS: [&str; 10] = [
    "none",
    "string",
    "short",
    "percentunit",
    "s",
    "bytes",
    "Bps",
    "reqps",
    "dateTimeAsLocal",
    "dateTimeFromNow",
];

/// Selectors that no target label narrows, and why.
const NOT_NARROWED: [(&str, &str); 2] = [
    ("ALERTS", "made by Prometheus; alerts about runs are of no exporter"),
    ("spark_exporter_build_info", "it is what job and instance are chosen from"),
];

#[test]
fn dashboards_are_named_and_cannot_be_edited() {
    let mut titles = HashSet::new();
    for dashboard in all() {
        let json = &dashboard.json;
        assert_eq!(json["uid"], format!("spark-exporter-{}", dashboard.name));
        assert!(text(&json["uid"]).len() <= 40);
        assert!(titles.insert(text(&json["title"]).to_owned()));
        assert!(text(&json["description"]).len() > 40, "{}", dashboard.name);
        // uneditable-dashboard
        assert_eq!(json["editable"], false, "{}", dashboard.name);
        assert_eq!(json["tags"], serde_json::json!(["spark", "spark-exporter"]));
        assert!(json.get("id").is_none_or(Value::is_null), "the id of some Grafana");
        // What the oldest supported Grafana writes: newer ones bring it up to date.
        assert_eq!(json["schemaVersion"], 38);
    }
}

/// template-datasource, -job, -instance and -on-time-change-reload.
#[test]
fn variables_are_as_every_dashboard_of_prometheus_has_them() {
    for dashboard in all() {
        let of_type = |kind: &str| -> Vec<&Value> {
            dashboard.variables().into_iter().filter(|variable| variable["type"] == kind).collect()
        };
        let sources = of_type("datasource");
        assert_eq!(sources.len(), 1, "{}", dashboard.name);
        assert_eq!(sources[0]["name"], "datasource");
        assert_eq!(sources[0]["label"], "Data source");
        assert_eq!(sources[0]["query"], "prometheus");
        for (name, label) in [("job", "Job"), ("instance", "Instance")] {
            let variable = dashboard.variable(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(variable["label"], label);
            assert_eq!(variable["multi"], true);
            assert_eq!(variable["allValue"], ".+");
        }
        for variable in of_type("query") {
            assert_eq!(variable["datasource"]["uid"], "${datasource}");
            assert_eq!(variable["refresh"], 2, "when the time range changes: {variable}");
        }
        let mut names = HashSet::new();
        for variable in dashboard.variables() {
            assert!(names.insert(text(&variable["name"])), "{}: twice: {variable}", dashboard.name);
            assert!(!text(&variable["label"]).is_empty());
            assert!(text(&variable["description"]).len() > 10, "{variable}");
        }
        assert_eq!(dashboard.variable("exporter").unwrap()["query"], "http://localhost:10404");
    }
}

/// A variable is asked for with those before it, and each is used.
#[test]
fn variables_build_on_those_before_them_and_are_used() {
    let used = regex::Regex::new(r"\$\{?(\w+)").unwrap();
    for dashboard in all() {
        let text_of_all = dashboard.json.to_string();
        let mut before: Vec<&str> = Vec::new();
        for variable in dashboard.variables() {
            let query = variable["query"].as_str().unwrap_or_default();
            for found in used.captures_iter(query) {
                assert!(before.contains(&&query[found.get(1).unwrap().range()]), "{query}");
            }
            let name = text(&variable["name"]);
            let uses = [format!("${name}"), format!("${{{name}")];
            assert!(uses.iter().any(|use_of| text_of_all.contains(use_of)), "{name} is not used");
            before.push(name);
        }
        for (place, target) in dashboard.targets() {
            for found in used.captures_iter(text(&target["expr"])) {
                let name = &found[1];
                // $1 and $2 are groups of label_replace.
                let known =
                    name.starts_with("__") || name.parse::<u8>().is_ok() || before.contains(&name);
                assert!(known, "{place}: ${name} is no variable");
            }
        }
    }
}

/// panel-datasource, panel-title-description, panel-units, panel-no-targets.
#[test]
fn panels_say_what_they_show_and_how_to_read_it() {
    for dashboard in all() {
        let mut titles = HashSet::new();
        for panel in dashboard.panels() {
            let place = dashboard.place(panel);
            assert!(titles.insert((text(&panel["title"]), text(&panel["type"]))), "{place}: twice");
            assert!(!text(&panel["title"]).is_empty() && !text(&panel["title"]).ends_with('.'));
            let description = text(&panel["description"]);
            assert!(
                description.len() >= 20 && description.ends_with('.'),
                "{place}: {description}"
            );
            assert_ne!(panel["targets"].as_array().map_or(0, Vec::len), 0, "{place}");
            let mut units = Vec::from([&panel["fieldConfig"]["defaults"]["unit"]]);
            for (_, properties) in overrides(panel) {
                units.extend(
                    properties.iter().filter(|(id, _)| *id == "unit").map(|(_, unit)| *unit),
                );
            }
            for unit in units {
                assert!(UNITS.contains(&text(unit)), "{place}: {unit}");
            }
            let mut refs = HashSet::new();
            for target in panel["targets"].as_array().unwrap() {
                assert!(refs.insert(text(&target["refId"])), "{place}");
            }
        }
    }
}

#[test]
fn every_data_source_is_the_chosen_one() {
    for dashboard in all() {
        let mut sources = Vec::new();
        having(&dashboard.json, "datasource", &mut sources);
        assert!(sources.len() > dashboard.panels().len());
        for source in sources {
            let chosen = serde_json::json!({"type": "prometheus", "uid": "${datasource}"});
            assert_eq!(*source, chosen, "{}", dashboard.name);
        }
    }
}

/// target-job and target-instance.
#[test]
fn every_selector_is_narrowed_to_the_chosen_exporters() {
    for dashboard in all() {
        for query in dashboard.queries() {
            for selector in selectors(&query.text) {
                let name = selector.name.as_deref().unwrap_or_default();
                if NOT_NARROWED.iter().any(|(other, _)| *other == name) {
                    continue;
                }
                for label in ["job", "instance"] {
                    let narrowed = selector.matchers.matchers.iter().any(|matcher| {
                        matcher.name == label
                            && matches!(matcher.op, MatchOp::Re(_))
                            && matcher.value == ".+"
                    });
                    assert!(narrowed, "{}: {name} has no {label}=~\"${label}\"", query.place);
                }
            }
        }
    }
}

/// target-rate-interval and target-counter-agg. `increase` over the whole time
/// range is what a single number is of.
#[test]
fn counters_are_looked_at_by_their_growth_over_fitting_spans() {
    let variable = regex::Regex::new(r"\$(\w+)").unwrap();
    for dashboard in all() {
        for (place, target) in dashboard.targets() {
            let expression = text(&target["expr"]);
            // A name for each span, so that they can be told apart once parsed.
            let spans = expression
                .replace("$__rate_interval", "11m")
                .replace("$__range", "13m")
                .replace("$__from", "0");
            let spans = variable.replace_all(&spans, "x");
            let mut counters = 0;
            for call in calls(&spans) {
                let Some(Expr::MatrixSelector(matrix)) = call.args.args.first().map(AsRef::as_ref)
                else {
                    continue;
                };
                let name = matrix.vs.name.as_deref().unwrap();
                let minutes = matrix.range.as_secs() / 60;
                match call.func.name {
                    "rate" | "irate" | "deriv" => assert_eq!(minutes, 11, "{place}: {expression}"),
                    "increase" => assert!([11, 13].contains(&minutes), "{place}: {expression}"),
                    _ => assert_eq!(minutes, 13, "{place}: {expression}"),
                }
                let counter = name.ends_with("_total") || name.ends_with("_bucket");
                let grows = ["rate", "irate", "increase"].contains(&call.func.name);
                assert_eq!(counter, grows, "{place}: {} of {name}", call.func.name);
                counters += usize::from(counter);
            }
            let all = selectors(&spans);
            let named = all
                .iter()
                .filter(|s| s.name.as_deref().is_some_and(|name| name.ends_with("_total")));
            assert_eq!(named.count(), counters, "{place}: a counter without its growth");
        }
    }
}

#[test]
fn the_grid_has_no_gaps_in_width_and_nothing_overlaps() {
    for dashboard in all() {
        let panels = dashboard.json["panels"].as_array().unwrap();
        let mut ids = HashSet::new();
        let mut taken: HashSet<(u64, u64)> = HashSet::new();
        for panel in panels {
            let place = dashboard.place(panel);
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{place}");
            let grid = |key: &str| panel["gridPos"][key].as_u64().unwrap_or(0);
            let (x, y, width, height) = (grid("x"), grid("y"), grid("w"), grid("h"));
            assert!(width > 0 && height > 0 && x + width <= 24, "{place}");
            for column in x..x + width {
                for row in y..y + height {
                    assert!(taken.insert((column, row)), "{place} lies over another panel");
                }
            }
        }
        // Where a row of the grid has something, it is filled from the left.
        let last = taken.iter().map(|(_, row)| *row).max().unwrap();
        for row in 0..=last {
            let filled = (0..24).filter(|column| taken.contains(&(*column, row))).count();
            assert_eq!(filled, 24, "{}: row {row} of the grid", dashboard.name);
        }
    }
}
