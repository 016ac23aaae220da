//! What each case of `ci/` makes.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::helm::{cases, objects_of, rendered_cases, run, text};

/// What changes with every version, or is the project's own files, held to
/// them elsewhere.
fn shortened(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            if fields.get("kind").is_some_and(|kind| kind == "PrometheusRule") {
                fields["spec"]["groups"] = "the rules".into();
            }
            for (key, value) in fields.iter_mut() {
                shortened(value, key);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| shortened(value, key)),
        Value::String(text) => {
            if key.starts_with("spark-") && text.len() > 10_000 {
                "the dashboard".clone_into(text);
            }
            if key.starts_with("checksum/") {
                "a checksum".clone_into(text);
            }
            if matches!(key, "helm.sh/chart" | "app.kubernetes.io/version") {
                "the version".clone_into(text);
            }
            if key == "image" {
                *text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
            }
        }
        _ => {}
    }
}

/// The labels that are on everything, once.
fn without_common_labels(object: &mut Value) {
    let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) else {
        return;
    };
    for (key, value) in [
        ("app.kubernetes.io/component", "exporter"),
        ("app.kubernetes.io/instance", "watch"),
        ("app.kubernetes.io/managed-by", "Helm"),
        ("app.kubernetes.io/name", "spark-exporter"),
        ("app.kubernetes.io/part-of", "spark-exporter"),
        ("app.kubernetes.io/version", "the version"),
        ("helm.sh/chart", "the version"),
    ] {
        if labels.get(key).is_some_and(|found| found == value) {
            labels.remove(key);
        }
    }
}

/// The files in it, which read as they are and not as texts of JSON.
fn texts_of(object: &mut Value) -> Map<String, Value> {
    let fields = object.as_object_mut().unwrap();
    match fields.remove("data").or_else(|| fields.remove("stringData")) {
        Some(Value::Object(texts)) => texts,
        _ => Map::new(),
    }
}

#[test]
fn each_case_makes_these_objects() {
    for (name, objects) in rendered_cases() {
        let mut written = String::new();
        for object in objects {
            let mut object = object.clone();
            shortened(&mut object, "");
            without_common_labels(&mut object);
            let called = object["metadata"]["name"].as_str().unwrap().to_owned();
            writeln!(written, "{} {called}", object["kind"].as_str().unwrap()).unwrap();
            let texts = texts_of(&mut object);
            // One dashboard shows how all are.
            if texts.values().any(|text| text == "the dashboard") && !called.ends_with("-fleet") {
                continue;
            }
            written.push_str(&serde_json::to_string_pretty(&object).unwrap());
            for (key, text) in texts {
                write!(written, "\n{key}:\n{}", text.as_str().unwrap()).unwrap();
            }
            written.push_str("\n\n");
        }
        insta::assert_snapshot!(name.as_str(), written);
    }
}

#[test]
fn both_helms_lint_and_render_the_same() {
    for (name, path) in cases() {
        let path = path.to_str().unwrap();
        let mut texts = Vec::new();
        for version in ["3", "4"] {
            let lint = run(version, &["lint", "--strict", "helm/spark-exporter", "-f", path]);
            let said = String::from_utf8_lossy(&lint.stdout);
            assert!(lint.status.success() && !said.contains("[WARNING]"), "{name}: {said}");
            let without = "dashboards.enabled=false";
            texts.push(objects_of(&text(version, &["-f", path, "--set", without]).unwrap()));
        }
        let four = texts.pop().unwrap();
        let mut three = texts.pop().unwrap();
        // They sort objects of the same kind otherwise.
        for object in &four {
            let place = three.iter().position(|other| other == object);
            three.remove(place.unwrap_or_else(|| panic!("{name}: only Helm 4: {object:#}")));
        }
        assert!(three.is_empty(), "{name}: only Helm 3: {three:#?}");
    }
}
