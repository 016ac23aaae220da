//! Real logs, number by number against what Spark's History Server answers
//! for the same files (recorded in `*.history_server.json`).

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{PlacedLog, fixture, logs_at, stage, try_read_log};
use crate::eventlog::{ReadOutcome, task_end};
use crate::fetch::files::Files;
use crate::model::{
    Application, DataQuality, Distribution, FailureClass, JobStatus, Kind, Quantity, Source,
    StageStatus, State,
};

const ROLLING_3_5: &str = "3.5.9/eventlog_v2_app-20261130032031-0000";
const ROLLING_4_3: &str = "4.3.0/eventlog_v2_app-20261130032227-0000";
const SINGLE_4_3: &str = "4.3.0/local-1796009084799.zstd";

fn log(name: &str) -> PlacedLog {
    logs_at(&fixture(name)).remove(0)
}

fn read_log(log: &PlacedLog) -> ReadOutcome {
    try_read_log(log).expect("readable")
}

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(fixture(name)).expect("recorded answers");
    serde_json::from_str(&text).expect("JSON")
}

/// The number in Spark's own unit: milliseconds or nanoseconds of a span.
trait InSparksUnit: Quantity {
    fn in_unit(self, nanos: bool) -> u64;
}
impl InSparksUnit for Duration {
    fn in_unit(self, nanos: bool) -> u64 {
        (if nanos { self.as_nanos() } else { self.as_millis() }) as u64
    }
}
impl InSparksUnit for u64 {
    fn in_unit(self, _: bool) -> u64 {
        self
    }
}

fn same<T: InSparksUnit>(what: &str, ours: &Distribution<T>, theirs: &Value) {
    let name = what.rsplit(' ').next().expect("a name");
    let nanos = matches!(name, "cpu_time" | "shuffle_write_time");
    if let Some(sum) = theirs["sums"][name].as_u64() {
        assert_eq!(ours.sum.map(|sum| sum.in_unit(nanos)), Some(sum), "sum of {what}");
    }
    let quantiles = ours
        .quantiles
        .map(|q| [q.min, q.p25, q.median, q.p75, q.p95, q.max].map(|value| value.in_unit(nanos)));
    // Where attempts failed, Spark's own quantiles of this one measure are of
    // the wrong tasks, as those of `duration` are: the values of failed
    // attempts are not kept apart in its index.
    let wrong_in_spark = name == "scheduler_delay" && theirs["tasks"][3].as_u64() != Some(0);
    match theirs["quantiles"][name].as_array() {
        Some(_) if wrong_in_spark => {}
        Some(values) => {
            let values: Vec<u64> = values.iter().filter_map(Value::as_u64).collect();
            assert_eq!(quantiles.map(Vec::from), Some(values), "quantiles of {what}");
        }
        None => assert!(
            theirs["quantiles"].is_object() || quantiles.is_none(),
            "quantiles of {what} without a successful task"
        ),
    }
}

fn time(value: &Value) -> Option<jiff::Timestamp> {
    value.as_str().map(|text| text.parse().expect("a timestamp"))
}

fn compare(application: &Application, theirs: &Value) {
    let stages = theirs["stages"].as_array().expect("stages");
    assert_eq!(application.stages.len(), stages.len());
    for (ours, theirs) in application.stages.iter().zip(stages) {
        let at = ours.id.to_string();
        assert_eq!(u64::from(ours.id.stage), theirs["stage"].as_u64().expect("id"));
        assert_eq!(u64::from(ours.id.attempt), theirs["attempt"].as_u64().expect("id"));
        assert_eq!(Some(ours.status.as_str()), theirs["status"].as_str(), "{at}");
        assert_eq!(Some(ours.name.as_str()), theirs["name"].as_str(), "{at}");
        let tasks = &ours.tasks;
        let counts = [tasks.total, tasks.active, tasks.succeeded, tasks.failed, tasks.killed];
        let wanted: Vec<u64> =
            theirs["tasks"].as_array().expect("counts").iter().filter_map(Value::as_u64).collect();
        assert_eq!(counts.to_vec(), wanted, "{at}");
        assert_eq!(ours.submitted, time(&theirs["submitted"]), "{at}");
        assert_eq!(ours.first_task_launched, time(&theirs["first_task_launched"]), "{at}");
        assert_eq!(ours.completed, time(&theirs["completed"]), "{at}");
        let rdds: Vec<u64> =
            theirs["rdd_ids"].as_array().expect("rdds").iter().filter_map(Value::as_u64).collect();
        assert_eq!(ours.rdd_ids, rdds, "{at}");
        let m = &ours.measures;
        let what = |name: &str| format!("{at} {name}");
        same(&what("run_time"), &m.run_time, theirs);
        same(&what("cpu_time"), &m.cpu_time, theirs);
        same(&what("deserialize_time"), &m.deserialize_time, theirs);
        same(&what("gc_time"), &m.gc_time, theirs);
        same(&what("scheduler_delay"), &m.scheduler_delay, theirs);
        same(&what("fetch_wait_time"), &m.fetch_wait_time, theirs);
        same(&what("shuffle_write_time"), &m.shuffle_write_time, theirs);
        same(&what("input_bytes"), &m.input_bytes, theirs);
        same(&what("input_records"), &m.input_records, theirs);
        same(&what("output_bytes"), &m.output_bytes, theirs);
        same(&what("output_records"), &m.output_records, theirs);
        same(&what("shuffle_read_bytes"), &m.shuffle_read_bytes, theirs);
        same(&what("shuffle_read_records"), &m.shuffle_read_records, theirs);
        same(&what("shuffle_write_bytes"), &m.shuffle_write_bytes, theirs);
        same(&what("shuffle_write_records"), &m.shuffle_write_records, theirs);
        same(&what("memory_spilled_bytes"), &m.memory_spilled_bytes, theirs);
        same(&what("disk_spilled_bytes"), &m.disk_spilled_bytes, theirs);
        same(&what("peak_execution_memory_bytes"), &m.peak_execution_memory_bytes, theirs);
    }
    let jobs = theirs["jobs"].as_array().expect("jobs");
    assert_eq!(application.jobs.len(), jobs.len());
    for (ours, theirs) in application.jobs.iter().zip(jobs) {
        assert_eq!(u64::from(ours.id), theirs["id"].as_u64().expect("id"));
        assert_eq!(Some(ours.status.as_str()), theirs["status"].as_str());
        assert_eq!(ours.submitted, time(&theirs["submitted"]));
        assert_eq!(ours.completed, time(&theirs["completed"]));
        assert_eq!(serde_json::json!(ours.stage_ids), theirs["stage_ids"]);
    }
    let executors = theirs["executors"].as_array().expect("executors");
    assert_eq!(application.executors.len(), executors.len());
    for (ours, theirs) in application.executors.iter().zip(executors) {
        assert_eq!(Some(ours.id.as_str()), theirs["id"].as_str());
        assert_eq!(Some(ours.host.as_str()), theirs["host"].as_str());
        assert_eq!(ours.added, time(&theirs["added"]));
        assert_eq!(ours.removed, time(&theirs["removed"]));
        let totals = &ours.totals;
        for (name, value) in [
            ("cores", u64::from(ours.cores)),
            ("active", totals.active_tasks),
            ("succeeded", totals.succeeded_tasks),
            ("failed", totals.failed_tasks),
            ("task_time", totals.task_time.as_millis() as u64),
            ("gc_time", totals.gc_time.as_millis() as u64),
            ("input_bytes", totals.input_bytes),
            ("shuffle_read_bytes", totals.shuffle_read_bytes),
            ("shuffle_write_bytes", totals.shuffle_write_bytes),
            ("storage_memory_bytes", ours.storage_memory_bytes.unwrap_or_default()),
        ] {
            // For the driver of local mode Spark 4.3 shows its uptime and a
            // sample of its own collector instead of sums over tasks.
            let of_another_kind = ours.id == "driver" && matches!(name, "task_time" | "gc_time");
            if !of_another_kind {
                assert_eq!(Some(value), theirs[name].as_u64(), "{name} of executor {}", ours.id);
            }
        }
    }
}

#[test]
fn spark_3_5_rolling_as_the_history_server_tells_it() {
    let outcome = read_log(&log(ROLLING_3_5));
    compare(&outcome.application, &expected("3.5.9/app-20261130032031-0000.history_server.json"));
    assert_eq!(outcome.application.spark_version.as_deref(), Some("3.5.9"));
    assert_eq!(outcome.application.state, State::Unknown, "no exit code before 4.0");
    assert_eq!(outcome.application.exit_code, None);
}

#[test]
fn spark_4_3_rolling_as_the_history_server_tells_it() {
    let outcome = read_log(&log(ROLLING_4_3));
    compare(&outcome.application, &expected("4.3.0/app-20261130032227-0000.history_server.json"));
    // Spark wrote exit code 0 for a program that died of its failed job.
    assert_eq!(outcome.application.exit_code, Some(0));
    assert_eq!(outcome.application.state, State::Unknown);
    assert!(!outcome.application.local_mode());
}

#[test]
fn spark_4_3_single_file_in_local_mode_as_the_history_server_tells_it() {
    let outcome = read_log(&log(SINGLE_4_3));
    compare(&outcome.application, &expected("4.3.0/local-1796009084799.history_server.json"));
    assert!(outcome.application.local_mode());
}

#[test]
fn what_the_history_server_does_not_tell() {
    for name in [ROLLING_3_5, ROLLING_4_3, SINGLE_4_3] {
        let ReadOutcome { application, statistics } = read_log(&log(name));
        assert_eq!(application.data_quality, [].into(), "{name}");
        assert_eq!(statistics.bad_lines + statistics.unknown_events, 0, "{name}");
        assert_eq!(application.source, Source::EventLog);
        assert_eq!(application.kind, Kind::Batch);
        assert_eq!(application.name, "small");
        assert_eq!(application.user.as_deref(), Some("spark"));
        assert_eq!(Some(application.observed), application.end, "{name}");
        let configuration = &application.configuration;
        assert_eq!(configuration.get("spark.sql.shuffle.partitions"), Some("4"));
        assert_eq!(configuration.java_version.as_deref(), Some("17.0.15 (Debian)"));
        assert!(configuration.java_command.as_deref().is_some_and(|c| c.contains("SparkSubmit")));
        assert!((configuration.task_cpus(0) - 1.0).abs() < f64::EPSILON);

        // Stage 14 divides by zero in one of its two tasks; its job fails.
        let failed = stage(&application, 14, 0);
        assert_eq!(failed.status, StageStatus::Failed);
        let python = "org.apache.spark.api.python.PythonException";
        assert_eq!(failed.failure_example.as_deref(), Some(python));
        assert_eq!(failed.failures, Some([(FailureClass::Exception, failed.tasks.failed)].into()));
        let reason = failed.failure_reason.as_deref().expect("a reason");
        let begins = ["Job aborted due to stage failure", "[PYTHON_EXCEPTION]"];
        assert!(begins.iter().any(|begin| reason.starts_with(begin)), "{reason}");
        assert!(reason.lines().count() <= 3);
        let job = application.jobs.last().expect("jobs");
        assert_eq!((job.status, job.stage_ids.as_slice()), (JobStatus::Failed, &[14][..]));
        assert_eq!(failed.job_ids, [job.id]);
        assert_eq!(job.sql_execution_id, None);
        assert_eq!(application.jobs[0].sql_execution_id, Some(0));

        let first = stage(&application, 0, 0);
        assert!(first.operations.iter().any(|operation| operation == "Exchange"), "{name}");
        assert_eq!(first.reads_cache, Some(false));
        assert!(
            application.stages.iter().any(|stage| stage.reads_cache == Some(true)),
            "{name}: the program reads a cached table"
        );
        for stage in &application.stages {
            let timeline = stage.timeline.as_ref().expect("within the limits");
            let ended = stage.tasks.succeeded + stage.tasks.failed + stage.tasks.killed;
            assert_eq!(timeline.len() as u64, ended, "{name} {}", stage.id);
            assert!(timeline.is_sorted_by_key(|span| span.launched_ms));
            assert!(
                timeline.iter().all(|span| (span.executor as usize) < application.executors.len())
            );
            assert_eq!(stage.slowest.len() as u64, stage.tasks.succeeded);
            assert!(stage.slowest.is_sorted_by(|a, b| a.metrics.run_time >= b.metrics.run_time));
            let shares: u64 = stage.executors.iter().map(|share| share.tasks).sum();
            assert_eq!(shares, stage.tasks.succeeded);
            let of_shares: Duration = stage.executors.iter().map(|share| share.run_time).sum();
            let of_slowest: Duration = stage.slowest.iter().map(|task| task.metrics.run_time).sum();
            assert_eq!(of_shares, of_slowest, "all successful tasks are among the slowest");
        }
        // The first task of each executor has the number 0.
        let firsts = application.stages.iter().flat_map(|stage| &stage.slowest);
        let firsts = firsts.filter(|task| task.ordinal_on_executor == Some(0)).count();
        assert_eq!(firsts, application.executors.len(), "{name}");
    }
}

#[test]
fn plain_zstd_single_and_rolling_tell_the_same() {
    let compressed = std::fs::read(fixture(SINGLE_4_3)).expect("the log");
    let mut plain = Vec::new();
    let mut decoder = zstd::Decoder::new(compressed.as_slice()).expect("zstd");
    std::io::copy(&mut decoder, &mut plain).expect("decompresses");
    let reference = read_log(&log(SINGLE_4_3)).application;

    let directory = tempfile::tempdir().expect("directory");
    // Suffixes lie both ways.
    let named_zstd = directory.path().join("local-1.zstd");
    std::fs::write(&named_zstd, &plain).expect("written");
    let unnamed = directory.path().join("local-1");
    std::fs::write(&unnamed, &compressed).expect("written");
    // Eleven files: by number, 2 comes before 10.
    let rolling = directory.path().join("eventlog_v2_local-1");
    std::fs::create_dir(&rolling).expect("directory");
    let lines: Vec<&[u8]> = plain.split_inclusive(|byte| *byte == b'\n').collect();
    for (index, part) in lines.chunks(lines.len().div_ceil(11)).enumerate() {
        let text = part.concat();
        let text = if index % 2 == 0 { zstd::encode_all(&*text, 1).expect("zstd") } else { text };
        std::fs::write(rolling.join(format!("events_{}_local-1.zstd", index + 1)), text)
            .expect("written");
    }
    std::fs::write(rolling.join("appstatus_local-1"), "").expect("written");
    for path in [named_zstd, unnamed, rolling] {
        assert_eq!(read_log(&logs_at(&path)[0]).application, reference, "{}", path.display());
    }
}

#[test]
fn compacted_and_unfinished_logs_are_marked() {
    let mut files = log(ROLLING_4_3);
    files.0.compacted = true;
    assert!(read_log(&files).application.has(DataQuality::LogCompacted));
    let mut files = log(ROLLING_4_3);
    files.0.missing_files = true;
    assert!(read_log(&files).application.has(DataQuality::LogTruncated));
}

/// Task ends are read without their accumulables where Spark lays them out as
/// usual. Laid out otherwise (a space suffices) they are read whole, and give
/// the same.
#[test]
fn the_short_way_through_task_ends_gives_the_same() {
    let mut compared = 0;
    for run in ["hot_key", "task_failures", "stage_retries", "executor_heap_oom"] {
        for version in ["3.5.9", "4.3.0"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs");
            let (log, files) = logs_at(&folder.join(run).join(version)).remove(0);
            let mut text = Vec::new();
            for file in &log.files {
                let file = files.open(&file.path, 0).expect("a file of the log");
                let mut stream = zstd::Decoder::new(file).expect("zstd");
                std::io::copy(&mut stream, &mut text).expect("whole");
            }
            let other = String::from_utf8(text.clone()).expect("UTF-8");
            compared += other.matches("\"Accumulables\":[").count();
            let other = other.replace("\"Accumulables\":[", "\"Accumulables\": [");
            let [short, whole] = [text.as_slice(), other.as_bytes()]
                .map(|text| super::try_read(text).expect("a log").application);
            assert_eq!(short, whole, "{run} {version}");
            assert!(short.stages.iter().any(|stage| stage.tasks.failed > 0 || run == "hot_key"));
        }
    }
    assert!(compared > 400, "{compared} task ends");
}

#[test]
fn two_task_ends_on_one_line_are_none() {
    let cut = r#"{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{"Task ID":1,"Accumulables":[{"ID":1"#;
    let whole = r#"{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{"Task ID":2,"Accumulables":[{"ID":1}]},"Task Executor Metrics":{}}"#;
    let line = format!("{cut}{whole}");
    let short = |line: &str| {
        let mut texts = "before".to_owned();
        let read = task_end::without_unread(line.as_bytes(), &mut texts)?;
        Some(texts[read].to_owned())
    };
    assert_eq!(short(&line), None);
    assert_eq!(
        short(whole).as_deref(),
        Some(
            r#"{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{"Task ID":2},"Task Executor Metrics":{}}"#
        )
    );
    assert_eq!(short(&whole.replace("TaskEnd", "TaskStart")), None);
    // Peaks without a sample go as well, and with one they stay.
    let peaks = |heap| {
        format!(
            r#"{{"Event":"SparkListenerTaskEnd","Task Info":{{"Task ID":1,"Accumulables":[]}},"Task Executor Metrics":{{"JVMHeapMemory":{heap},"x":1}},"Task Metrics":{{}}}}"#
        )
    };
    assert_eq!(
        short(&peaks(0)).as_deref(),
        Some(r#"{"Event":"SparkListenerTaskEnd","Task Info":{"Task ID":1},"Task Metrics":{}}"#)
    );
    assert!(short(&peaks(7)).expect("short").contains("JVMHeapMemory"));
    // Numbers of push-based shuffle go where they are nothing but numbers.
    let push = |inside| {
        format!(
            r#"{{"Event":"SparkListenerTaskEnd","Task Info":{{"Task ID":1,"Accumulables":[]}},"Task Executor Metrics":{{}},"Task Metrics":{{"Shuffle Read Metrics":{{"x":1,"Push Based Shuffle":{{{inside}}}}},"y":2}}}}"#
        )
    };
    let cut = short(&push(r#""a":1,"b":2"#)).expect("short");
    assert!(cut.ends_with(r#""Task Metrics":{"Shuffle Read Metrics":{"x":1},"y":2}}"#), "{cut}");
    let kept = short(&push(r#""a":{"Event":1}"#)).expect("short");
    assert!(kept.contains(r#""Push Based Shuffle":{"a":{"Event":1}}"#), "{kept}");
}
