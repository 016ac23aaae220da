//! Helm, and what it renders, as data.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::common::real::root;

pub(crate) fn chart() -> PathBuf {
    root().join("helm/spark-exporter")
}

/// The release that everything is rendered as.
pub(crate) const RELEASE: &str = "watch";
pub(crate) const NAMESPACE: &str = "monitoring";
/// Its objects' name.
pub(crate) const NAME: &str = "watch-spark-exporter";

/// The folder of a part of `tests/parts/`.
pub(crate) fn part(script: &str, arguments: &[&str]) -> PathBuf {
    let path = root().join("tests/parts").join(script);
    let output = Command::new(&path).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/parts/{script} {arguments:?}: {said}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().lines().last().unwrap())
}

/// Helm 3 or 4.
pub(crate) fn helm(version: &str) -> &'static Path {
    static THREE: OnceLock<PathBuf> = OnceLock::new();
    static FOUR: OnceLock<PathBuf> = OnceLock::new();
    let cell = if version == "3" { &THREE } else { &FOUR };
    cell.get_or_init(|| part("helm", &[version]).join("helm"))
}

pub(crate) fn run(version: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(helm(version));
    // Nobody's own settings, and no cluster.
    command.env("HELM_CONFIG_HOME", "/nonexistent").env("KUBECONFIG", "/nonexistent");
    command.current_dir(root()).args(arguments).output().unwrap()
}

/// What `helm template` writes, or what it says instead.
pub(crate) fn text(version: &str, arguments: &[&str]) -> Result<String, String> {
    let chart = chart();
    let mut all = vec!["template", RELEASE, chart.to_str().unwrap(), "--namespace", NAMESPACE];
    all.extend(arguments);
    let output = run(version, &all);
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// The objects of a text.
pub(crate) fn objects_of(text: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for document in format!("\n{text}").split("\n---\n") {
        let value: Value = serde_saphyr::from_str(document)
            .unwrap_or_else(|error| panic!("{error}\n{}", &document[..document.len().min(2_000)]));
        if !value.is_null() {
            objects.push(value);
        }
    }
    objects
}

/// Rendered by Helm 4, with these arguments.
pub(crate) fn objects(arguments: &[&str]) -> Vec<Value> {
    objects_of(&text("4", arguments).unwrap_or_else(|said| panic!("{arguments:?}: {said}")))
}

/// Without the dashboards, which are large, with these `--set`s.
pub(crate) fn with(sets: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["--set", "dashboards.enabled=false"];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    objects(&arguments)
}

/// What Helm says where it refuses these `--set`s.
pub(crate) fn refusal(version: &str, sets: &[&str]) -> String {
    let mut arguments = Vec::new();
    for set in sets {
        arguments.extend(["--set-json", set]);
    }
    text(version, &arguments).err().unwrap_or_else(|| panic!("{sets:?} is not refused"))
}

pub(crate) fn kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The only one of its kind.
pub(crate) fn one<'a>(objects: &'a [Value], of: &str) -> &'a Value {
    let found = kind(objects, of);
    assert_eq!(found.len(), 1, "{of}: {found:#?}");
    found[0]
}

/// The object that makes pods, and one of them.
pub(crate) fn workload(objects: &[Value]) -> &Value {
    let found: Vec<&Value> = objects
        .iter()
        .filter(|object| matches!(object["kind"].as_str(), Some("Deployment" | "StatefulSet")))
        .collect();
    assert_eq!(found.len(), 1);
    found[0]
}

pub(crate) fn container(objects: &[Value]) -> &Value {
    let containers = &workload(objects)["spec"]["template"]["spec"]["containers"];
    containers.as_array().unwrap().iter().find(|one| one["name"] == "spark-exporter").unwrap()
}

/// The daemon's configuration in the ConfigMap.
pub(crate) fn config(objects: &[Value]) -> Option<String> {
    let map = kind(objects, "ConfigMap");
    let map = map.iter().find(|map| map["metadata"]["name"] == NAME).unwrap();
    map["data"]["config.yml"].as_str().map(str::to_owned)
}

/// `ci/*-values.yaml`, by name.
pub(crate) fn cases() -> Vec<(String, PathBuf)> {
    let mut cases: Vec<(String, PathBuf)> = std::fs::read_dir(chart().join("ci"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix("-values.yaml")?.to_owned();
            Some((name, path))
        })
        .collect();
    cases.sort();
    assert!(cases.len() >= 15, "{cases:?}");
    cases
}

/// The objects of each case, rendered once; dashboards, which are large, with
/// that of everything only.
pub(crate) fn rendered_cases() -> &'static [(String, Vec<Value>)] {
    static RENDERED: OnceLock<Vec<(String, Vec<Value>)>> = OnceLock::new();
    RENDERED.get_or_init(|| {
        let render = |(name, path): (String, PathBuf)| {
            let dashboards = format!("dashboards.enabled={}", name == "everything");
            let arguments = ["--values", path.to_str().unwrap(), "--set", &dashboards];
            let objects = objects(&arguments);
            (name, objects)
        };
        cases().into_iter().map(render).collect()
    })
}
