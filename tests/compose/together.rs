//! The parts of `examples/compose` as plain programs, each with its files where
//! its container has them: a run that fails reaches Alertmanager.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::real::{Program, daemon, free_port, part, root, until};
use crate::common::value;
use crate::{compose, folder, inside, list, string, succeeds, tree};

/// A program of a part, with its files where its container has them.
fn started(program: PathBuf, what: &str, ready: &str, arguments: &[String]) -> Program {
    let mut command = Command::new(program);
    command.args(arguments);
    let program = Program::start(command, what, true);
    program.wait_for(Duration::from_mins(2), |line| line.contains(ready).then_some(()));
    program
}

/// A copy of a configuration with other addresses or folders in it.
fn with(file: &Path, changes: &[(&str, &str)]) {
    let mut text = std::fs::read_to_string(file).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{} has no {old}", file.display());
        text = text.replace(old, new);
    }
    std::fs::write(file, text).unwrap();
}

#[tokio::test]
async fn together_they_show_a_run_that_fails() {
    let python = part(&["compose-tools"]).join("bin/python");
    let logs = tempfile::tempdir().unwrap();
    let mut replay = Command::new(python);
    replay.arg(folder().join("replay.py")).arg(root().join("examples")).arg(logs.path());
    let _replay = Program::start(replay, "replay.py", false);

    let exporter = tree("spark-exporter");
    let file = inside(&exporter, "spark-exporter", "--config.file=");
    with(
        &file,
        &[("/var/log/spark-events", &logs.path().display().to_string()), (": 10s", ": 1s")],
    );
    let (_exporter, url) = daemon(&[&format!("--config.file={}", file.display())]);

    let alertmanager = tree("alertmanager");
    let manager = format!("127.0.0.1:{}", free_port());
    let _alertmanager = started(
        part(&["alertmanager"]).join("alertmanager"),
        "Alertmanager",
        "Listening on",
        &[
            format!(
                "--config.file={}",
                inside(&alertmanager, "alertmanager", "--config.file=").display()
            ),
            format!("--storage.path={}", alertmanager.path().join("alertmanager").display()),
            format!("--web.listen-address={manager}"),
            "--cluster.listen-address=".to_owned(),
        ],
    );
    let prometheus = tree("prometheus");
    let file = inside(&prometheus, "prometheus", "--config.file=");
    // How long alerts wait is not what this is about.
    let alerts = file.parent().unwrap().join("alerts/spark-alerts.yml");
    with(&alerts, &[("for: 2m", "for: 5s")]);
    let target = url.trim_start_matches("http://");
    with(
        &file,
        &[
            ("spark-exporter:10404", target),
            ("alertmanager:9093", &manager),
            ("interval: 10s", "interval: 1s"),
        ],
    );
    let page = format!("127.0.0.1:{}", free_port());
    let _prometheus = started(
        part(&["prometheus-3"]).join("prometheus"),
        "Prometheus",
        "Server is ready",
        &[
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", prometheus.path().join("prometheus").display()),
            format!("--web.listen-address={page}"),
        ],
    );

    // The health checks, as the containers would run them.
    let own = PathBuf::from(env!("CARGO_BIN_EXE_spark-exporter"));
    healthy_as("spark-exporter", own, &[format!("http://{target}")]);
    healthy_as(
        "prometheus",
        part(&["prometheus-3"]).join("promtool"),
        &[format!("--url=http://{page}")],
    );
    let amtool = part(&["alertmanager"]).join("amtool");
    healthy_as("alertmanager", amtool, &[format!("--alertmanager.url=http://{manager}")]);

    // The job of the history is known by name before any of its runs ends here.
    until(&format!("{url}/metrics"), Duration::from_mins(2), |text| {
        let usual = "spark_application_runs_success_interval_seconds{spark_cluster=\"recorded\",app_name=\"nightly-etl\"}";
        value(text, usual).filter(|seconds| (86_000.0..87_000.0).contains(seconds))
    })
    .await;
    // A run fails while we watch, and Alertmanager hears of it.
    until(&format!("http://{manager}/api/v2/alerts"), Duration::from_mins(4), |text| {
        let alerts: Value = serde_json::from_str(text).unwrap();
        let labels = alerts.as_array()?.iter().map(|alert| alert["labels"].clone());
        labels.into_iter().find(|labels| {
            labels["alertname"] == "SparkApplicationFailed"
                && labels["app_name"] == "checks-nightly"
        })
    })
    .await;
}

/// A container's engine asks again until a service is ready.
fn succeeds_soon(command: &mut Command) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while Instant::now() < deadline && !command.output().is_ok_and(|output| output.status.success())
    {
        std::thread::sleep(Duration::from_millis(200));
    }
    succeeds(command);
}

/// The same of a program that is a part, with another address as a flag.
fn healthy_as(service: &str, program: PathBuf, flags: &[String]) {
    let test: Vec<&str> =
        list(&compose()["services"][service]["healthcheck"]["test"]).map(string).collect();
    assert_eq!(program.file_name().unwrap(), test[1]);
    let given = test[2..].iter().filter(|argument| !argument.contains("url="));
    succeeds_soon(Command::new(program).args(given).args(flags));
}
