//! A History Server that answers what a real one was recorded to answer
//! (`tests/fixtures/rest`).

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fake_spark::{Answer, Asked, FakeSpark};

/// The recorded answer to a question, as the server would give it: filtered
/// by the task status that is asked for, and cut to the length.
pub(crate) fn answer(folder: &Path, asked: &Asked) -> Answer {
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let parameter =
        |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let parts: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
    if let ["applications", _, "sql", rest @ ..] = parts.as_slice() {
        return sql(folder, rest.first().copied(), parameter);
    }
    let name = match parts.as_slice() {
        ["applications", _, "stages", stage, attempt, kind] => format!("{kind}_{stage}_{attempt}"),
        ["applications", _, rest @ ..] if !rest.is_empty() => rest.join("_"),
        other => other.join("_"),
    };
    if let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.404.txt"))) {
        return Answer::not_found(&text);
    }
    let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.json"))) else {
        return Answer::new(404, "text/html", "<h1>Not Found</h1>");
    };
    if !name.starts_with("taskList") {
        return Answer::json(text);
    }
    let mut tasks: Vec<Value> = serde_json::from_str(&text).expect("a list of tasks");
    let status = parameter("status").expect("always said");
    tasks.retain(|task| task["status"].as_str().is_some_and(|s| s.eq_ignore_ascii_case(status)));
    tasks.truncate(parameter("length").and_then(|text| text.parse().ok()).expect("always said"));
    Answer::json(Value::from(tasks).to_string())
}

/// `/sql` was recorded whole, texts of plans included.
fn sql<'q>(folder: &Path, id: Option<&str>, parameter: impl Fn(&str) -> Option<&'q str>) -> Answer {
    let Ok(text) = std::fs::read_to_string(folder.join("sql.json")) else {
        return Answer::new(404, "text/html", "<h1>Not Found</h1>");
    };
    let mut executions: Vec<Value> = serde_json::from_str(&text).expect("a list of executions");
    for execution in &mut executions {
        if parameter("planDescription") == Some("false") {
            execution["planDescription"] = Value::from("");
        }
        if parameter("details") == Some("false") {
            execution["nodes"] = Value::Array(Vec::new());
            execution["edges"] = Value::Array(Vec::new());
        }
    }
    if let Some(id) = id {
        return match executions.into_iter().find(|one| one["id"].as_u64() == id.parse().ok()) {
            Some(execution) => Answer::json(execution.to_string()),
            None => Answer::not_found(&format!("unknown query execution id: {id}")),
        };
    }
    let number = |name| parameter(name).and_then(|text| text.parse().ok()).expect("always said");
    let page: Vec<Value> =
        executions.into_iter().skip(number("offset")).take(number("length")).collect();
    Answer::json(Value::from(page).to_string())
}

/// Where the answers about a run are.
pub(crate) fn folder(version: &str, run: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/rest", version, run].iter().collect()
}

/// A driver that was recorded while it ran.
pub(crate) async fn recorded_driver() -> FakeSpark {
    let folder = folder("4.3.0", "live");
    FakeSpark::start(move |asked| answer(&folder, asked)).await
}
