//! Planted texts and secrets: a real log in which every place that a user can
//! write to holds something that nobody may see. Texts are shown where they
//! are asked for; secrets never are.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::real::{daemon, get, until};
use crate::common::recorded;
use crate::{SOON, diagnose};

/// Stands in every text of a user, with a place after it.
const TEXT: &str = "planted";
/// Stands in every password, token and key.
const SECRET: &str = "hunter";

/// A log with its texts replaced, in a folder of its own.
fn planted() -> (tempfile::TempDir, PathBuf) {
    let recorded = recorded("sql_plans/4.3.0");
    let file = files(&recorded).into_iter().find(|file| file.extension().is_some()).unwrap();
    let mut log = String::new();
    zstd::Decoder::new(std::fs::File::open(file).unwrap())
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app-20261130071123-0000");
    let lines: Vec<String> = log
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            plant(&mut event);
            event.to_string()
        })
        .collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    (folder, path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What a careless user might have written, by where.
fn text(place: &str) -> String {
    format!(
        "{TEXT}-{place} password='{SECRET}1 x' token={SECRET}2 jdbc:x://me:{SECRET}3@db/{TEXT} \
         s3a://b/{TEXT}?X-Amz-Signature={SECRET}4&x=1 Authorization: Bearer {SECRET}5.a-b \
         AKIA0HUNTER0HUNTER00"
    )
}

fn plant(event: &mut Value) {
    let kind = event["Event"].as_str().unwrap_or_default().to_owned();
    let properties = json!({
        "spark.hadoop.fs.s3a.secret.key": format!("{SECRET}6"),
        "spark.hadoop.fs.s3a.access.key": "AKIA0HUNTER0HUNTER00",
        "spark.my.own": text("property"),
        // One that reports look at, with what is no number.
        "spark.sql.autoBroadcastJoinThreshold": text("setting"),
        "spark.executor.memory": "1000m",
    });
    match kind.as_str() {
        "SparkListenerApplicationStart" => {
            event["App Name"] = json!(format!("orders password={SECRET}7 x"));
        }
        "SparkListenerEnvironmentUpdate" => {
            for (key, value) in properties.as_object().unwrap() {
                event["Spark Properties"][key] = value.clone();
            }
            event["System Properties"]["user.secret"] = json!(text("system"));
        }
        "SparkListenerJobStart" => {
            event["Properties"]["spark.job.description"] = json!(text("description"));
            event["Properties"]["spark.jobGroup.id"] = json!(text("group"));
        }
        "SparkListenerJobEnd" if event["Job Result"]["Exception"].is_object() => {
            event["Job Result"]["Exception"]["Message"] =
                json!(format!("[USER_RAISED_EXCEPTION] {}", text("job-failure")));
        }
        "SparkListenerTaskEnd" => {
            let reason = &mut event["Task End Reason"];
            for key in ["Description", "Full Stack Trace", "Kill Reason"] {
                if reason[key].is_string() {
                    reason[key] = json!(text("task-failure"));
                }
            }
        }
        _ => {}
    }
    if event["description"].is_string() {
        event["description"] = json!(text("statement"));
        event["details"] = json!(text("details"));
        event["physicalPlanDescription"] = json!(text("plan"));
    }
    if event["errorMessage"].is_string() {
        event["errorMessage"] = json!(text("sql-failure"));
    }
    if event["sparkPlanInfo"].is_object() {
        plant_in_plan(&mut event["sparkPlanInfo"]);
    }
    let stage = &mut event["Stage Info"];
    if stage.is_object() {
        stage["Stage Name"] = json!(format!("collect at /home/{TEXT}-{SECRET}8/job.py:12"));
        stage["Details"] = json!(text("stage-details"));
        if stage["Failure Reason"].is_string() {
            stage["Failure Reason"] = json!(text("stage-failure"));
        }
    }
}

fn plant_in_plan(node: &mut Value) {
    let name = node["nodeName"].as_str().unwrap_or_default().to_owned();
    if name.starts_with("Scan") {
        node["nodeName"] = json!(format!("Scan parquet {TEXT}_db.{TEXT}_table"));
        node["metadata"]["Location"] = json!(text("location"));
        node["metadata"]["PushedFilters"] = json!(text("filters"));
    }
    if name == "Filter" || name.starts_with("Execute") || name.starts_with("Scan") {
        let old = node["simpleString"].as_str().unwrap_or_default().to_owned();
        node["simpleString"] = json!(format!("{old} {}", text("arguments")));
    }
    for child in node["children"].as_array_mut().into_iter().flatten() {
        plant_in_plan(child);
    }
}

#[track_caller]
fn has_no(word: &str, text: &str, what: &str) {
    if let Some(at) = text.to_lowercase().find(word) {
        let from = (0..=at.saturating_sub(120)).rev().find(|at| text.is_char_boundary(*at));
        panic!(
            "{what} shows: …{}",
            text.get(from.unwrap_or(0)..).unwrap_or(text).chars().take(260).collect::<String>()
        );
    }
}

#[test]
fn diagnose_shows_texts_where_asked_for_and_secrets_nowhere() {
    let (_folder, log) = planted();
    for form in ["text", "markdown", "html", "json"] {
        let hidden = diagnose(&log, &["--format", form]);
        // Where the log lies is what the caller typed.
        has_no(TEXT, &hidden, form);
        has_no(SECRET, &hidden, form);
        let shown = diagnose(&log, &["--format", form, "--show-sql"]);
        has_no(SECRET, &shown, &format!("{form} --show-sql"));
        for place in ["planted-statement", "planted_table", "planted-arguments"] {
            let place =
                if form == "markdown" { place.replace('_', "\\_") } else { place.to_owned() };
            assert!(shown.contains(&place), "{form} --show-sql lacks {place}");
        }
    }
}

#[tokio::test]
async fn the_daemon_shows_texts_where_asked_for_and_secrets_nowhere() {
    for show in [false, true] {
        let (folder, log) = planted();
        let config = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "clusters:\n- name: c\n  event_log_dirs: ['{}']\nweb: {{show_sql: {show}}}\n",
            folder.path().display()
        );
        std::fs::write(config.path(), text).unwrap();
        let (exporter, address) = daemon(&["--config.file", config.path().to_str().unwrap()]);
        until(&format!("{address}/metrics"), SOON, |text| {
            text.contains("spark_application_info{").then_some(())
        })
        .await;
        let report = format!("{address}/applications/c/app-20261130071123-0000");
        for (what, url) in [
            ("the page", report.clone()),
            ("the Markdown", format!("{report}.md")),
            ("the JSON", format!("{report}.json")),
            ("the list", address.clone()),
            ("the metrics", format!("{address}/metrics")),
        ] {
            let text = get(&url).await;
            has_no(SECRET, &text, what);
            let is_report = url.starts_with(&report);
            if show && is_report {
                assert!(text.contains("planted-statement"), "{what} shows what it was told to");
            } else {
                has_no(TEXT, &text, what);
            }
        }
        let said = exporter.said().join("\n");
        has_no(TEXT, &said, "the log of the daemon");
        has_no(SECRET, &said, "the log of the daemon");
        drop(log);
    }
}
