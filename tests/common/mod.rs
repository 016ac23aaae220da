//! What integration tests share.

// Each test binary uses its own part of this.
#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod agree;
pub(crate) mod fake_spark;
pub(crate) mod kubernetes;
pub(crate) mod places;
pub(crate) mod poll_budget;
pub(crate) mod promql;
pub(crate) mod real;
pub(crate) mod recorded_server;

use std::io::Read;
use std::path::{Path, PathBuf};

use spark_exporter::fetch::files::{Files, LocalFiles};

/// A recorded run: the folder of its log.
pub(crate) fn recorded(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs").join(name);
    assert!(path.is_dir(), "{} is not recorded: make collection", path.display());
    path
}

/// The text of a recorded run whose log is one plain file.
pub(crate) fn plain_log(name: &str) -> String {
    let file = std::fs::read_dir(recorded(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is not one plain file"));
    std::fs::read_to_string(file).unwrap()
}

/// The text of a recorded run, whatever its files look like.
pub(crate) fn log_text(name: &str) -> String {
    log_text_of(&recorded(name))
}

/// The same of a log that lies there.
pub(crate) fn log_text_of(path: &Path) -> String {
    let files = LocalFiles::at(path).unwrap();
    let log = spark_exporter::eventlog::scan(&files).unwrap().logs.remove(0);
    let mut text = Vec::new();
    for part in &log.files {
        let mut file = files.open(&part.path, 0).unwrap();
        if part.path.contains(".zstd") {
            // One that was being written ends in the middle of a frame.
            let _ = zstd::Decoder::new(file).unwrap().read_to_end(&mut text);
        } else {
            file.read_to_end(&mut text).unwrap();
        }
    }
    let whole = text.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    text.truncate(whole);
    String::from_utf8(text).unwrap()
}

/// The text of a log with all its moments moved by so many milliseconds. In
/// the order in which Spark wrote it: a History Server tells events by the
/// beginning of their lines.
pub(crate) fn moved(text: &str, by: i64) -> String {
    let moment = regex::Regex::new(r"\b1[6-9]\d{11}\b").unwrap();
    let later = |found: &regex::Captures<'_>| (found[0].parse::<i64>().unwrap() + by).to_string();
    moment.replace_all(text, later).into_owned()
}

/// A recorded log as one of a run that ended just now, with this id.
pub(crate) fn ended_now(name: &str, id: &str) -> String {
    let text = log_text(name);
    let end = timestamp_of(&text, "SparkListenerApplicationEnd");
    let shift = now_ms() - end;
    let old_id = text.split_once("\"App ID\":\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    moved(&text, shift).replace(&old_id, id)
}

fn timestamp_of(text: &str, event: &str) -> i64 {
    let line = text.lines().find(|line| line.contains(event)).unwrap();
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    event["Timestamp"].as_i64().unwrap()
}

/// Now, as Spark writes moments: milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A YAML file as data.
pub(crate) fn yaml(path: &Path) -> serde_json::Value {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The state of the only run.
pub(crate) fn run_state(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .find(|line| line.starts_with("spark_application_state{") && line.ends_with(" 1"))?;
    line.split_once("state=\"")?.1.split('"').next()
}

/// The value of the series whose line begins so.
pub(crate) fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}
