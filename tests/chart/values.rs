//! Every value is documented, and does something: another one changes what is
//! rendered.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::helm::{cases, chart, text};

/// A value of the schema: where, and what is said of it.
fn leaves(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    for (key, schema) in schema["properties"].as_object().unwrap() {
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if schema.get("default").is_some() {
            found.push((here, schema.clone()));
        } else if schema.get("properties").is_some() {
            leaves(schema, &here, found);
        } else {
            // Of whoever holds this chart in another one.
            assert_eq!(here, "enabled");
        }
    }
}

fn schema() -> Value {
    let text = std::fs::read_to_string(chart().join("values.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Values that it could have instead.
fn others(path: &str, schema: &Value) -> Vec<Value> {
    let mut others: Vec<Value> = schema["examples"].as_array().cloned().unwrap_or_default();
    others.extend(schema["enum"].as_array().into_iter().flatten().cloned());
    match &schema["default"] {
        Value::Bool(default) => others.push(json!(!default)),
        Value::Number(default) => others.push(json!(default.as_u64().unwrap() + 1)),
        Value::String(_) if others.is_empty() && schema.get("pattern").is_none() => {
            others.push(json!("another"));
        }
        _ => {}
    }
    let only_its_own = others.iter().all(|other| *other == schema["default"]);
    assert!(!only_its_own, "{path}: its `# @schema` needs examples");
    // Where a case has the others.
    others.push(schema["default"].clone());
    others
}

/// Large, and of no interest to other values.
fn quick(path: &str) -> Vec<&'static str> {
    let mut arguments = Vec::new();
    if !path.starts_with("dashboards") {
        arguments.extend(["--set", "dashboards.enabled=false"]);
    }
    if !path.starts_with("prometheusRule") {
        arguments.extend(["--set", "prometheusRule.enabled=false"]);
    }
    arguments
}

/// Whether one of these changes what one of the cases makes.
fn matters(path: &str, others: &[Value], cases: &[Case], plain: &Plain) -> Result<(), String> {
    let mut said = String::new();
    let top = format!("\n{}:", path.split('.').next().unwrap());
    let (speak, rest): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.text.contains(&top));
    for Case { name, file, .. } in speak.into_iter().chain(rest) {
        let mut arguments = vec!["-f", file];
        arguments.extend(quick(path));
        let before = plain.of(name, &arguments);
        for other in others {
            let set = format!("{path}={other}");
            let mut arguments = arguments.clone();
            arguments.extend(["--set-json", &set]);
            match text("4", &arguments) {
                Ok(after) if after != before => return Ok(()),
                Ok(_) => {}
                Err(error) => said = error,
            }
        }
    }
    Err(format!("{path}: {others:?} changes nothing. {said}"))
}

/// One of `ci/`.
struct Case {
    name: String,
    file: String,
    text: String,
}

/// What the cases make as they are.
#[derive(Default)]
struct Plain(Mutex<BTreeMap<String, String>>);

impl Plain {
    fn of(&self, name: &str, arguments: &[&str]) -> String {
        let key = format!("{name} {}", arguments.join(" "));
        if let Some(known) = self.0.lock().unwrap().get(&key) {
            return known.clone();
        }
        let made = text("4", arguments).unwrap();
        self.0.lock().unwrap().insert(key, made.clone());
        made
    }
}

#[test]
fn every_value_matters() {
    let mut found = Vec::new();
    leaves(&schema(), "", &mut found);
    assert!(found.len() > 150, "{}", found.len());
    // Those that speak of it come first, and before them the one that has most: it
    // answers nearly always.
    let mut cases: Vec<Case> = cases()
        .into_iter()
        .map(|(name, path)| Case {
            text: format!("\n{}", std::fs::read_to_string(&path).unwrap()),
            file: path.to_str().unwrap().to_owned(),
            name,
        })
        .collect();
    cases.sort_by_key(|case| {
        let first = ["everything", "default", "shards", "persistence", "tls-and-users"];
        first.iter().position(|name| *name == case.name).unwrap_or(first.len())
    });
    let (plain, next, wrong) = (Plain::default(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((path, schema)) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = matters(path, &others(path, schema), &cases, &plain) {
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_value_says_what_it_does() {
    let mut found = Vec::new();
    leaves(&schema(), "", &mut found);
    let readme = std::fs::read_to_string(chart().join("README.md")).unwrap();
    for (path, schema) in found {
        let said = schema["description"].as_str().unwrap();
        assert!(said.len() >= 8, "{path}: {said:?}");
        assert!(readme.contains(&format!("| `{path}` |")), "{path} is not in the README");
        // What is said to be possible is.
        let own = jsonschema::validator_for(&schema).unwrap();
        assert!(own.is_valid(&schema["default"]), "{path}: its default is refused");
        for example in schema["examples"].as_array().into_iter().flatten() {
            assert!(own.is_valid(example), "{path}: the example {example} is refused");
        }
    }
}
