//! Everything that `diagnose` takes besides event logs and servers' roots:
//! pages of a UI, saved answers, one SQL execution of many, plans and drivers'
//! logs as texts. Each alone and together, and what is said of what is not
//! there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::fake_spark::{Answer, Asked, FakeSpark};
use common::recorded;
use common::recorded_server::{answer, folder};
use serde_json::Value;

const VERSIONS: [&str; 2] = ["3.5.9", "4.3.0"];

/// Exit status, standard output, standard error.
fn diagnose(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    let output = command.arg("diagnose").args(arguments).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn application(arguments: &[&str]) -> (Value, String) {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--format", "json"]);
    let (status, out, errors) = diagnose(&arguments);
    assert_ne!(status, 2, "{errors}");
    let document: Value = serde_json::from_str(&out).unwrap();
    (document["applications"][0].clone(), errors)
}

fn rules(application: &Value) -> Vec<&str> {
    let findings = application["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["rule"].as_str().unwrap()).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The plan's text of each execution that a real History Server sent.
fn explained(version: &str, run: &str) -> Vec<String> {
    let json = std::fs::read_to_string(folder(version, run).join("sql.json")).unwrap();
    let executions: Vec<Value> = serde_json::from_str(&json).unwrap();
    executions.iter().map(|one| one["planDescription"].as_str().unwrap().to_owned()).collect()
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_folder_of_saved_answers_is_a_run() {
    for version in VERSIONS {
        let saved = folder(version, "hot_key");
        let (application, errors) = application(&[text(&saved)]);
        assert!(rules(&application).contains(&"data_skew"), "{version}: {application}");
        assert!(!errors.contains("would add"), "all is there: {errors}");
        assert!(!application["sql_executions"].as_array().unwrap().is_empty(), "{version}");
        let log = recorded(&format!("hot_key/{version}"));
        let (log, _) = self::application(&[text(&log)]);
        for key in ["app_id", "app_name", "start", "end"] {
            assert_eq!(application[key], log[key], "{version} {key}");
        }
    }
}

#[test]
fn what_was_not_saved_is_named_with_what_it_would_add() {
    let saved = folder("4.3.0", "hot_key");
    let scratch = tempfile::tempdir().unwrap();
    // As curl writes them where one chose other names.
    let jobs = scratch.path().join("a.json");
    let stages = scratch.path().join("b.txt");
    std::fs::copy(saved.join("jobs.json"), &jobs).unwrap();
    std::fs::copy(saved.join("stages.json"), &stages).unwrap();
    let (application, errors) = application(&[text(&jobs), text(&stages)]);
    assert_eq!(application["app_id"], "saved");
    assert!(!application["stages"].as_array().unwrap().is_empty());
    assert!(application["sql_executions"].is_null(), "not asked");
    for part in ["/allexecutors would add", "/environment would add", "taskList", "/sql?"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    let marks = application["data_quality"].to_string();
    assert!(marks.contains("endpoints_missing"), "{marks}");
    let (status, _, errors) = diagnose(&[text(&written(scratch.path(), "c.json", "[{\"a\": 1}]"))]);
    assert_eq!(status, 2);
    assert!(errors.contains("no answer of Spark's REST API"), "{errors}");
}

#[test]
fn one_sql_execution_by_its_number() {
    let log = recorded("sql_plans/4.3.0");
    let (whole, _) = application(&[text(&log)]);
    let (one, errors) = application(&[text(&log), "--sql-id", "2"]);
    assert!(errors.contains("SQL execution 2"), "{errors}");
    let executions = one["sql_executions"].as_array().unwrap();
    assert_eq!(executions.len(), 1);
    assert_eq!(executions[0]["sql_id"], 2);
    let stages = |application: &Value| application["stages"].as_array().unwrap().len();
    assert!(stages(&one) > 0 && stages(&one) < stages(&whole));
    // CREATE TABLE AS runs its query as another execution.
    let (nested, _) = application(&[text(&log), "--sql-id", "7"]);
    assert_eq!(nested["sql_executions"].as_array().unwrap().len(), 2);

    let (status, out, errors) = diagnose(&[text(&log), "--sql-id", "99999"]);
    assert_eq!(status, 2, "{out}");
    assert!(errors.contains("execution 99999 not found or evicted (0 to "), "{errors}");
    assert!(!out.contains("Longest SQL"), "{out}");
}

#[test]
fn one_sql_execution_by_its_text_and_time() {
    let log = recorded("sql_plans/4.3.0");
    let scratch = tempfile::tempdir().unwrap();
    let query = "COLLECT at\n   /tmp/spark-exporter/jobs/sql_plans.py:46;\n";
    let query = written(scratch.path(), "query.sql", query);
    let (one, _) = application(&[text(&log), "--sql-file", text(&query)]);
    assert_eq!(one["sql_executions"][0]["sql_id"], 2);
    let (whole, _) = application(&[text(&log)]);
    let start = whole["sql_executions"][3]["start"].as_str().unwrap();
    let (one, _) = application(&[text(&log), "--at", start]);
    assert_eq!(one["sql_executions"][0]["sql_id"], 3);

    let other = written(scratch.path(), "other.sql", "select hunter2 from nowhere");
    let (status, _, errors) = diagnose(&[text(&log), "--sql-file", text(&other)]);
    assert_eq!(status, 2);
    assert!(errors.contains("no execution has that text"), "{errors}");
    assert!(!errors.contains("hunter2"), "{errors}");
    // Several applications: which one is asked, not guessed.
    let both = [text(&log), text(&recorded("sql_plans/3.5.9")), "--sql-id", "2"].map(str::to_owned);
    let (status, _, errors) = diagnose(&both.each_ref().map(String::as_str));
    assert_eq!(status, 2);
    assert!(errors.contains("--app-id"), "{errors}");
}

/// A History Server of one finished run, below any prefix, whose log cannot be
/// had.
fn history_server(
    version: &str,
    run: &str,
    prefix: &'static str,
) -> impl Fn(&Asked) -> Answer + use<> {
    let folder = folder(version, run);
    move |asked| {
        let Some(target) = asked.target.strip_prefix(prefix) else {
            return Answer::not_found("not here");
        };
        let target = target.to_owned();
        let parts: Vec<&str> = target.trim_start_matches("/api/v1/").split('/').collect();
        if let ["applications", id] = parts.as_slice()
            && !id.contains('?')
        {
            let text = std::fs::read_to_string(folder.join("applications.json")).unwrap();
            let all: Vec<Value> = serde_json::from_str(&text).unwrap();
            return Answer::json(all[0].to_string());
        }
        let target = target.split('?').next().map_or(target.clone(), |path| {
            if path.ends_with("/applications") { path.to_owned() } else { target.clone() }
        });
        answer(&folder, &Asked { target, ..asked.clone() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_one_execution_leads_to_it() {
    for version in VERSIONS {
        let prefix = "/gateway/spark";
        let server = FakeSpark::start(history_server(version, "sql_plans", prefix)).await;
        let page = |page: &str| server.url(&format!("{prefix}/history/any/{page}"));
        let urls = [page("SQL/execution/?id=2"), page("jobs/")];
        let both =
            tokio::task::spawn_blocking(move || urls.map(|url| application(&[&url, "--show-sql"])));
        let [(one, errors), (whole, _)] = both.await.unwrap();
        assert!(errors.contains("the report is about SQL execution 2"), "{errors}");
        assert_eq!(one["source"], "history_server");
        assert_eq!(one["sql_executions"].as_array().unwrap().len(), 1);
        assert!(whole["sql_executions"].as_array().unwrap().len() > 5);
        assert!(one["data_quality"].to_string().contains("sql_metrics_rounded"));
        // The nodes' texts come by another question where the list has none.
        let nodes = one["sql_executions"][0]["plan"].as_array().unwrap();
        let join = nodes.iter().find(|node| node["name"] == "SortMergeJoin").unwrap();
        assert!(join["text"].as_str().unwrap().contains("Inner"), "{version}: {join}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_yarn_that_leads_elsewhere_says_what_to_give() {
    let server = FakeSpark::start(|_| {
        Answer::new(302, "text/html", "<html>moved</html>")
            .with("location", "http://history.example.org:18080/history/application_1_0001/1")
    })
    .await;
    let url = server.url("/proxy/application_1_0001/SQL/execution/?id=3");
    let (status, _, errors) = tokio::task::spawn_blocking(move || diagnose(&[&url])).await.unwrap();
    assert_eq!(status, 2);
    assert!(
        errors.contains("History Server's URL") || errors.contains("History Server. Give"),
        "{errors}"
    );
    assert!(errors.contains("history.example.org:18080"), "{errors}");
}

#[test]
fn a_plan_alone_is_judged_without_numbers() {
    let scratch = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let plans = explained(version, "sql_plans");
        let python = plans.iter().find(|plan| plan.contains("EvalPython")).unwrap();
        let path = written(scratch.path(), "plan.txt", python);
        let (application, errors) = application(&["--explain", text(&path)]);
        assert_eq!(application["source"], "explain");
        assert_eq!(rules(&application), ["python_udf"], "{version}: {application}");
        let finding = &application["findings"][0];
        assert_eq!((&finding["severity"], &finding["confidence"]), (&"info".into(), &"low".into()));
        assert!(finding["headline"].as_str().unwrap().contains("no run seen"), "{finding}");
        assert!(errors.contains("a plan alone has no numbers"), "{errors}");
        // Most plans have nothing that is bad whatever its numbers.
        let healthy = written(scratch.path(), "plan.txt", &explained(version, "healthy")[1]);
        let (application, _) = self::application(&["--explain", text(&healthy)]);
        assert_eq!(rules(&application), Vec::<&str>::new(), "{version}");
        let plan = application["sql_executions"][0]["plan"].as_array().unwrap();
        assert!(plan.iter().any(|node| node["name"] == "Range"), "{application}");
        let names: Vec<&str> = plan.iter().map(|node| node["name"].as_str().unwrap()).collect();
        assert_eq!(names.iter().filter(|name| **name == "Range").count(), 1, "the final plan only");
    }
    let (status, _, errors) =
        diagnose(&["--explain", text(&written(scratch.path(), "plan.txt", "select 1"))]);
    assert_ne!(status, 0);
    assert!(errors.contains("no physical plan is in it"), "{errors}");
}

#[test]
fn an_engine_s_log_alone_has_its_timeline() {
    let log = Path::new("tests/fixtures/driver_logs/kyuubi-engine.log");
    let (application, errors) = application(&["--log", text(log)]);
    assert_eq!(application["app_id"], "application_1796000000000_0042");
    assert_eq!(application["source"], "driver_log");
    assert_eq!(application["spark_version"], "3.5.9");
    let stages = application["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2);
    assert_eq!(stages[0]["wall_seconds"], 9.0);
    assert_eq!(rules(&application), Vec::<&str>::new(), "a task's heap is not the driver's");
    assert!(errors.contains("proxy/application_1796000000000_0042"), "{errors}");
    assert!(errors.contains("the event log (spark.eventLog.enabled)"), "{errors}");
    let (status, ..) = diagnose(&["--log", "Cargo.toml"]);
    assert_ne!(status, 0, "it is no log");
}

#[test]
fn a_real_driver_s_log_has_its_jobs_and_how_they_ended() {
    for version in VERSIONS {
        let log = format!("tests/fixtures/driver_logs/explained-{version}.log");
        let (application, errors) = application(&["--log", &log]);
        assert_eq!(application["spark_version"], *version);
        assert_eq!(application["source"], "driver_log");
        assert!(application["app_id"].as_str().unwrap().starts_with("app-2026"), "{application}");
        // One job fails, and the program died of it.
        let failed: Vec<&Value> = application["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["rule"] == "job_failed")
            .collect();
        assert_eq!(failed.len(), 1, "{application}");
        assert_eq!(application["time"], Value::Null, "a log does not tell of executors");
        assert!(application["stages"].as_array().unwrap().len() > 20);
        assert!(errors.contains("names the UI at http://127.0.0.1:"), "{errors}");
    }
}

#[test]
fn a_structured_log_tells_the_same_as_one_in_words() {
    let of = |name: &str| application(&["--log", &format!("tests/fixtures/driver_logs/{name}")]).0;
    let (words, structured) = (of("explained-4.3.0.log"), of("structured-4.3.0.log"));
    for part in ["spark_version", "app_name"] {
        assert_eq!(words[part], structured[part]);
    }
    let count = |application: &Value| application["stages"].as_array().unwrap().len();
    assert_eq!(count(&words), count(&structured));
}

#[test]
fn a_driver_s_heap_that_was_used_up_is_told_by_its_log() {
    let (application, _) = application(&["--log", "tests/fixtures/driver_logs/heap-4.3.0.log"]);
    let findings = application["findings"].as_array().unwrap();
    let memory: Vec<&Value> =
        findings.iter().filter(|finding| finding["rule"] == "memory").collect();
    assert_eq!(memory.len(), 1, "{application}");
    assert_eq!(memory[0]["cause"], "heap_oom");
}

#[test]
fn what_real_spark_explains_is_judged_by_what_is_bad_without_numbers() {
    for version in VERSIONS {
        let of = |name: &str| {
            let file = format!("tests/fixtures/explain/{version}/{name}.txt");
            let (application, _) = application(&["--explain", &file]);
            let mut found = rules(&application).iter().map(ToString::to_string).collect::<Vec<_>>();
            found.dedup();
            found
        };
        // Both products read all of a partitioned table besides.
        for suffix in ["", ".final"] {
            for (plan, found) in [
                ("cartesian", &["cartesian", "full_scan"][..]),
                ("nested_loop", &["cartesian", "full_scan"]),
                ("python", &["python_udf"]),
                ("whole_table", &["full_scan"]),
            ] {
                let rules = of(&format!("{plan}{suffix}"));
                assert!(rules.contains(&found[0].to_owned()), "{version} {plan}: {rules:?}");
                let other = rules.iter().find(|rule| !found.contains(&rule.as_str()));
                assert_eq!(other, None, "{version} {plan}{suffix}");
            }
        }
        let joined = of("join.final");
        assert!(!joined.contains(&"cartesian".to_owned()), "{version}: {joined:?}");
        // The same plan by whichever way it was printed.
        assert_eq!(of("join.simple"), of("join"), "{version}");
        assert_eq!(of("join.extended"), of("join"), "{version}");
    }
}
