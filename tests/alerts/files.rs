//! The files of `alerts/` as data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::real::root;
use crate::common::yaml;

pub(crate) const ALERTS: [&str; 2] = ["spark-alerts.yml", "spark-exporter-alerts.yml"];
pub(crate) const RECORDING: &str = "spark-rules.yml";

pub(crate) fn folder() -> PathBuf {
    root().join("alerts")
}

/// The rules of a file in this folder, in all its groups.
pub(crate) fn rules(folder: &Path, file: &str) -> Vec<Value> {
    let file = yaml(&folder.join(file));
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// All alerts of a folder by name; no name is there twice.
pub(crate) fn alerts_in(folder: &Path) -> BTreeMap<String, Value> {
    let mut alerts = BTreeMap::new();
    for rule in ALERTS.iter().flat_map(|file| rules(folder, file)) {
        let name = rule["alert"].as_str().unwrap().to_owned();
        assert!(alerts.insert(name.clone(), rule).is_none(), "{name} is there twice");
    }
    alerts
}

pub(crate) fn alerts() -> BTreeMap<String, Value> {
    alerts_in(&folder())
}

pub(crate) fn names() -> BTreeSet<String> {
    alerts().into_keys().collect()
}

/// Files of a folder with this ending, by name.
pub(crate) fn listed(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no .{ending} in {}", folder.display());
    paths
}

/// An annotation of an alert, empty where it has none.
pub(crate) fn annotation<'a>(alert: &'a Value, name: &str) -> &'a str {
    alert["annotations"][name].as_str().unwrap_or_default()
}
