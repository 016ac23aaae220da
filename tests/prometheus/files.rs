//! The very files of `alerts/`, made quick for a test and changed in nothing
//! else: how long a condition must hold, how long messages are gathered, and
//! to whom they go.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::real::root;
use crate::common::yaml;
use crate::servers::Webhook;

/// The rule files, each compiled from the mixin.
pub(crate) const RULES: [&str; 3] =
    ["spark-rules.yml", "spark-alerts.yml", "spark-exporter-alerts.yml"];

/// The rules of a file, in all its groups.
pub(crate) fn rules(file: &Value) -> Vec<Value> {
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// The names of all alerts.
pub(crate) fn alert_names() -> Vec<String> {
    let files = RULES.map(|file| yaml(&root().join("alerts").join(file)));
    let rules = files.iter().flat_map(rules);
    rules.filter_map(|rule| rule["alert"].as_str().map(str::to_owned)).collect()
}

/// Waits that are written into an expression, and what they become: nobody
/// waits for ten minutes until an exporter counts as settled.
const WAITS: [(&str, &str, &str); 1] = [("spark_exporter_start_timestamp_seconds", "< 600", "< 5")];

/// Copies of the rule files whose conditions need not last.
pub(crate) fn quick_rules(folder: &Path) -> Vec<PathBuf> {
    let copy = |name: &&str| {
        let path = root().join("alerts").join(name);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let quick: String = text.lines().map(|line| quick_line(line) + "\n").collect();
        let target = folder.join(name);
        std::fs::write(&target, quick).unwrap();
        let (whole, quick) = (without_waits(yaml(&path)), without_waits(yaml(&target)));
        assert_eq!(whole, quick, "{name}: more was changed than how long a condition must hold");
        target
    };
    RULES.iter().map(copy).collect()
}

fn quick_line(line: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    if line.trim_start().starts_with("for: ") {
        return format!("{indent}for: 0s");
    }
    if line.trim_start().starts_with("interval: ") {
        return format!("{indent}interval: 1s");
    }
    quick_wait(line)
}

fn quick_wait(line: &str) -> String {
    WAITS.iter().fold(line.to_owned(), |line, (series, slow, quick)| {
        if line.contains(series) { line.replace(slow, quick) } else { line }
    })
}

/// The file with every wait at the value it has in a test.
fn without_waits(mut file: Value) -> Value {
    for group in file["groups"].as_array_mut().unwrap() {
        group.as_object_mut().unwrap().remove("interval");
        for rule in group["rules"].as_array_mut().unwrap() {
            let rule = rule.as_object_mut().unwrap();
            rule.remove("for");
            let text = rule["expr"].as_str().unwrap();
            let lines: Vec<_> = text.lines().map(quick_wait).collect();
            rule["expr"] = lines.join("\n").into();
        }
    }
    file
}

/// The example of Alertmanager's configuration, with every receiver replaced
/// by one of the same name that is a webhook here, and with short waits.
pub(crate) fn quick_routes(webhook: &Webhook) -> Value {
    let mut configuration = yaml(&root().join("alerts/alertmanager.yml"));
    quick_route(&mut configuration["route"]);
    for receiver in configuration["receivers"].as_array_mut().unwrap() {
        let name = receiver["name"].as_str().unwrap().to_owned();
        *receiver = if receiver.as_object().unwrap().len() == 1 {
            // It drops what it gets.
            json!({"name": name})
        } else {
            let hook = json!({"url": webhook.url(&name), "send_resolved": true});
            json!({"name": name, "webhook_configs": [hook]})
        };
    }
    // Where receivers had to send to.
    let keys = configuration.as_object_mut().unwrap();
    keys.remove("global");
    keys.remove("templates");
    configuration
}

fn quick_route(route: &mut Value) {
    let keys = route.as_object_mut().unwrap();
    // Long enough that what explains an alert arrives with it.
    for (wait, quick) in [("group_wait", "5s"), ("group_interval", "2s")] {
        if keys.contains_key(wait) {
            keys.insert(wait.to_owned(), quick.into());
        }
    }
    if let Some(routes) = keys.get_mut("routes").and_then(Value::as_array_mut) {
        routes.iter_mut().for_each(quick_route);
    }
}
