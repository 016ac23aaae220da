//! The committed files, as tests look at them.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// From the whole to the single stage, then the daemon.
pub(crate) const NAMES: [&str; 6] =
    ["fleet", "job", "application", "stage", "streaming", "exporter"];

pub(crate) struct Dashboard {
    pub(crate) name: String,
    pub(crate) json: Value,
}

/// One PromQL of a dashboard, and where it stands.
pub(crate) struct Query {
    pub(crate) place: String,
    pub(crate) text: String,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

/// All of them; a file that is no dashboard of ours is a fault.
pub(crate) fn all() -> Vec<Dashboard> {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .unwrap()
                .strip_suffix(".json")
                .map(str::to_owned)
        })
        .collect();
    found.sort();
    let mut expected = NAMES.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    NAMES.iter().map(|name| one(name)).collect()
}

fn one(name: &str) -> Dashboard {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    Dashboard { name: name.to_owned(), json: serde_json::from_str(&text).unwrap() }
}

impl Dashboard {
    pub(crate) fn panels(&self) -> Vec<&Value> {
        self.json["panels"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|panel| panel["type"] != "row")
            .collect()
    }

    pub(crate) fn variables(&self) -> Vec<&Value> {
        self.json["templating"]["list"].as_array().unwrap().iter().collect()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.variables().into_iter().find(|variable| variable["name"] == name)
    }

    pub(crate) fn annotations(&self) -> &[Value] {
        self.json["annotations"]["list"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What panels ask for.
    pub(crate) fn targets(&self) -> Vec<(String, &Value)> {
        let of_panel = |panel| {
            let place = self.place(panel);
            let targets = Value::as_array(&panel["targets"]).unwrap();
            targets
                .iter()
                .map(move |target| (format!("{place}, {}", text(&target["refId"])), target))
        };
        self.panels().into_iter().flat_map(of_panel).collect()
    }

    /// All PromQL: of panels, annotations and variables, with values in the
    /// place of variables.
    pub(crate) fn queries(&self) -> Vec<Query> {
        let mut queries: Vec<Query> = Vec::new();
        let mut add = |place: String, query: &str| {
            queries.push(Query { place, text: self.with_values(query) });
        };
        for (place, target) in self.targets() {
            add(place, text(&target["expr"]));
        }
        for annotation in self.annotations() {
            add(
                format!("{}: annotation {}", self.name, text(&annotation["name"])),
                text(&annotation["expr"]),
            );
        }
        for variable in self.variables().into_iter().filter(|variable| variable["type"] == "query")
        {
            let query = text(&variable["query"]);
            let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (selector, label) = inner
                .and_then(|inner| inner.rsplit_once(", "))
                .unwrap_or_else(|| panic!("{query} is no label_values(SELECTOR, LABEL)"));
            // The label has to be there as much as those that are matched.
            add(
                format!("{}: variable {}", self.name, text(&variable["name"])),
                &format!("count by ({label}) ({selector})"),
            );
        }
        queries
    }

    fn with_values(&self, query: &str) -> String {
        let of = |name: &str| {
            let variable = self.variable(name)?;
            Some(variable["allValue"].as_str().unwrap_or("value").to_owned())
        };
        let query = crate::common::promql::with_values(query, &of);
        assert!(!query.contains('$') || query.contains("\"$"), "{}: {query}", self.name);
        query
    }

    pub(crate) fn place(&self, panel: &Value) -> String {
        format!("{}: {}", self.name, text(&panel["title"]))
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// Every object below this one that has the key, with its value there.
pub(crate) fn having<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key));
            fields.values().for_each(|inner| having(inner, key, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| having(inner, key, found)),
        _ => {}
    }
}

/// The overrides of a panel: the field's name and its properties.
pub(crate) fn overrides(panel: &Value) -> Vec<(&str, Vec<(&str, &Value)>)> {
    let overrides = panel["fieldConfig"]["overrides"].as_array();
    overrides
        .into_iter()
        .flatten()
        .map(|one| {
            let properties = one["properties"].as_array().unwrap();
            let properties =
                properties.iter().map(|property| (text(&property["id"]), &property["value"]));
            (text(&one["matcher"]["options"]), properties.collect())
        })
        .collect()
}
