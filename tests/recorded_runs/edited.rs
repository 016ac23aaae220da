//! What cannot happen on a machine of tests: recorded runs with the words that
//! Spark or a cluster manager would have written in the place of their own.
//! Everything else in these logs is as a real Spark wrote it.

use std::fs;
use std::io::Read;

use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::{Cause, Finding, Rule, Severity, diagnose};
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::{Files, LocalFiles};
use spark_exporter::model::Application;

use super::{folders, logs};

/// The newest recording of `run` with every `(from, to)` replaced; each `from`
/// must be there.
pub(crate) fn edited(run: &str, changes: &[(&str, &str)]) -> Application {
    let mut text = text_of(run);
    for (from, to) in changes {
        assert!(text.contains(from), "{run}: nothing to replace: {from}");
        text = text.replace(from, to);
    }
    read_text(&text)
}

/// The newest recording of `run` with each of its events changed.
pub(crate) fn with_events(
    run: &str,
    mut change: impl FnMut(&mut serde_json::Value),
) -> Application {
    let text = text_of(run);
    let changed = text.lines().map(|line| {
        let mut event = serde_json::from_str(line).expect("an event");
        change(&mut event);
        format!("{event}\n")
    });
    read_text(&changed.collect::<String>())
}

/// The newest recording of `run` as text.
pub(crate) fn text_of(run: &str) -> String {
    let folder = folders(&logs().join(run)).pop().expect("a recording");
    let files = LocalFiles::at(&folder).expect("a place");
    let log = scan(&files).expect("a log").logs.remove(0);
    let mut text = String::new();
    for part in &log.files {
        let file = files.open(&part.path, 0).expect("a file");
        zstd::Decoder::new(file).expect("zstd").read_to_string(&mut text).expect("a log");
    }
    text
}

fn read_text(text: &str) -> Application {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app-1");
    fs::write(&path, text).expect("written");
    let limits = Limits::default();
    let files = LocalFiles::at(&path).expect("a place");
    let log = scan(&files).expect("a log").logs.remove(0);
    read(&log, &files, &ReadOptions { cluster: "test", limits: &limits }).expect("read").application
}

fn of(rule: Rule, application: &Application) -> Vec<Finding> {
    let findings = diagnose(application, &Thresholds::default()).findings;
    findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// The states of a pod with two sidecars (SPARK-49804): the first line speaks
/// of one of them.
fn pod(spark_container: &str) -> String {
    format!(
        "The executor with id 1 exited with exit code 0(success).\\n\\n\
         The API gave the following brief reason: N/A\\n\
         The API gave the following container statuses:\\n\\n\
         \\t container name: proxy\\n\\t exit code: 0\\n\\n\
         \\t container name: spark-kubernetes-executor\\n\\t {spark_container}\\n\\n\
         \\t container name: shipper\\n\\t exit code: 0"
    )
}

#[test]
fn of_a_pod_with_sidecars_the_spark_container_tells() {
    for (status, cause) in [
        ("exit code: 52", Cause::HeapOom),
        ("exit code: 137\\n\\t termination reason: OOMKilled", Cause::ContainerMemory),
        ("exit code: 137", Cause::Killed),
    ] {
        let run = edited("executor_heap_oom", &[("Command exited with code 52", &pod(status))]);
        let lost = of(Rule::ExecutorLost, &run);
        assert_eq!(lost.len(), 1, "{status}");
        assert_eq!(lost[0].cause, Some(cause), "{status}");
    }
}

#[test]
fn an_executor_s_loss_is_told_by_the_cluster_manager_s_words() {
    // The words of YARN's allocator and of Spark's schedulers; what the loss
    // cost is the recorded run's.
    for (words, cause, severity) in [
        (
            "Container killed by YARN for exceeding physical memory limits. 5.5 GB of 5.5 GB \
             physical memory used. Consider boosting spark.executor.memoryOverhead.",
            Cause::ContainerMemory,
            Severity::Warning,
        ),
        (
            "Container container_e01_1700000000000_0001_01_000002 on host: node-7 was preempted.",
            Cause::Preempted,
            Severity::Info,
        ),
        ("Executor decommission: worker decommissioned", Cause::Decommissioned, Severity::Info),
        ("Executor heartbeat timed out after 125342 ms", Cause::Heartbeat, Severity::Warning),
    ] {
        let run = edited("executor_killed", &[("Command exited with code 137", words)]);
        let lost = of(Rule::ExecutorLost, &run);
        assert_eq!(lost.len(), 1, "{words}");
        assert_eq!(lost[0].cause, Some(cause), "{words}");
        assert!(lost[0].severity >= severity, "{words}: {:?}", lost[0].severity);
    }
}

#[test]
fn a_throttled_store_is_asked_for_less_not_more() {
    let run = edited(
        "task_failures",
        &[
            (
                "java.lang.IllegalStateException",
                "software.amazon.awssdk.services.s3.model.S3Exception",
            ),
            (
                "record rejected: amount is not a number",
                "Please reduce your request rate. (Service: S3, Status Code: 503, Request ID: X)",
            ),
            (
                "org.apache.spark.memory.SparkOutOfMemoryError",
                "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
            ),
        ],
    );
    let failures = of(Rule::TaskFailures, &run);
    assert_eq!(failures.len(), 1);
    let advice: Vec<&str> =
        failures[0].advice.iter().map(|advice| advice.change.as_str()).collect();
    assert!(advice[0].contains("fewer") || advice[0].contains("less"), "{advice:?}");
    assert!(!advice.iter().any(|change| change.contains("maxFailures")), "{advice:?}");
    let text = format!("{:?}", failures[0]);
    assert!(!text.contains("request rate"), "the message is text of a server: {text}");
}
