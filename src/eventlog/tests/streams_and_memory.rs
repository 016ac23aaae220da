//! Streaming queries, memory peaks, and logs of forks: lines cut by hand.

use std::time::Duration;

use super::{read_lines, try_read};
use crate::model::{DataQuality, Kind, StreamingQuery, StreamingState};

const START: &str =
    r#"{"Event":"SparkListenerApplicationStart","App Name":"s","App ID":"app-1","Timestamp":1000}"#;

fn event(name: &str, fields: &str) -> String {
    format!(
        r#"{{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$Query{name}Event",{fields}}}"#
    )
}

fn progress(batch: u64, state: &str) -> String {
    format!(
        r#"{{"id":"i","runId":"r","name":"visits","timestamp":"2026-11-30T03:55:31.257Z","batchId":{batch},"durationMs":{{"triggerExecution":6505,"addBatch":5485}},"stateOperators":[{{"operatorName":"stateStoreSave","commitTimeMs":858,{state}}}],"sources":[{{"description":"KafkaV2[Subscribe[secret-topic]]","endOffset":{{"t":{{"0":5}}}},"latestOffset":{{"t":{{"0":9}}}},"numInputRows":10,"inputRowsPerSecond":"NaN","processedRowsPerSecond":4.5}},{{"description":"Rate","numInputRows":2,"processedRowsPerSecond":0.5}}],"sink":{{"description":"s","numOutputRows":-1}}}}"#
    )
}

fn query(lines: &[String]) -> StreamingQuery {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let application = read_lines(&[&[START], lines.as_slice()].concat()).application;
    assert_eq!(application.kind, Kind::Streaming);
    let mut queries = application.streaming_queries.expect("asked");
    assert_eq!(queries.len(), 1);
    queries.remove(0)
}

#[test]
fn a_query_from_start_to_end() {
    let batch = progress(0, r#""numRowsTotal":7,"numRowsUpdated":3,"memoryUsedBytes":1344"#);
    let text =
        serde_json::to_string(&batch.replace("\"batchId\":0", "\"batchId\":1")).expect("text");
    let mut lines = vec![
        event(
            "Started",
            r#""id":"i","runId":"r","name":"visits","timestamp":"2026-11-30T03:55:30.000Z""#,
        ),
        event("Progress", &format!(r#""progress":{batch}"#)),
        // Third parties write the progress as text.
        event("Progress", &format!(r#""progress":{text}"#)),
        // Without data a query tells of its last batch again.
        event("Progress", &format!(r#""progress":{text}"#)),
        event("Idle", r#""id":"i","runId":"r","timestamp":"2026-11-30T03:56:00.000Z""#),
    ];
    let running = query(&lines);
    assert_eq!(running.state, StreamingState::Active);
    assert_eq!(running.name.as_deref(), Some("visits"));
    assert_eq!(
        running.idle_since.map(|time| time.to_string()).as_deref(),
        Some("2026-11-30T03:56:00Z")
    );
    let ids: Vec<u64> = running.batches.iter().map(|batch| batch.id).collect();
    assert_eq!((ids.as_slice(), running.batches_seen), (&[0, 1][..], 2));
    let first = &running.batches[0];
    assert_eq!(first.duration, Some(Duration::from_millis(6505)));
    assert_eq!(first.end().map(|end| end.to_string()).as_deref(), Some("2026-11-30T03:55:37.762Z"));
    assert_eq!((first.input_rows, first.output_rows), (Some(12), None));
    assert_eq!(first.input_rows_per_second, None);
    assert_eq!(first.processed_rows_per_second, Some(5.0));
    assert_eq!((first.backlog(), first.state_rows()), (Some(4), Some(7)));
    let names: Vec<&str> = first.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["KafkaV2", "Rate"], "without what was subscribed to");
    assert_eq!(first.state[0].memory_bytes, Some(1344));
    assert_eq!(first.state[0].commit_time, Some(Duration::from_millis(858)));

    lines.push(event(
        "Terminated",
        r#""id":"i","runId":"r","exception":"org.apache.spark.SparkException: boom\n at x","errorClassOnException":"STREAM_FAILED""#,
    ));
    let ended = query(&lines);
    assert_eq!(ended.state, StreamingState::Failed);
    assert_eq!(ended.error_class.as_deref(), Some("STREAM_FAILED"));
    assert_eq!(ended.ended.map(|time| time.to_string()).as_deref(), Some("2026-11-30T03:56:00Z"));
    lines.pop();
    lines.push(event("Terminated", r#""id":"i","runId":"r","exception":null"#));
    assert_eq!(query(&lines).state, StreamingState::Stopped);
}

/// SPARK-48208, SPARK-53002.
#[test]
fn state_memory_that_cannot_be_true_is_unknown() {
    for (state, memory, marked) in [
        (r#""numRowsTotal":7,"memoryUsedBytes":15900000000000"#, None, true),
        (r#""numRowsTotal":7,"memoryUsedBytes":-4"#, None, true),
        (r#""numRowsTotal":7,"memoryUsedBytes":0"#, None, false),
        (r#""numRowsTotal":0,"memoryUsedBytes":0"#, Some(0), false),
        (r#""numRowsTotal":7,"memoryUsedBytes":2000000000000"#, Some(2_000_000_000_000), false),
    ] {
        let line = event("Progress", &format!(r#""progress":{}"#, progress(0, state)));
        let application = read_lines(&[START, &line]).application;
        let queries = application.streaming_queries.as_ref().expect("asked");
        let operator = &queries[0].batches[0].state[0];
        assert_eq!(operator.memory_bytes, memory, "{state}");
        assert_eq!(application.has(DataQuality::ImplausibleValues), marked, "{state}");
    }
}

#[test]
fn the_newest_hundred_batches_are_kept() {
    let lines: Vec<String> = (0..250)
        .map(|batch| event("Progress", &format!(r#""progress":{}"#, progress(batch, "\"x\":1"))))
        .collect();
    let query = query(&lines);
    assert_eq!((query.batches.len(), query.batches_seen), (100, 250));
    assert_eq!(query.batches.first().map(|batch| batch.id), Some(150));
    assert_eq!(query.batches.last().map(|batch| batch.id), Some(249));
}

#[test]
fn peaks_of_executors_and_driver() {
    let manager = r#"{"Event":"SparkListenerBlockManagerAdded","Block Manager ID":{"Executor ID":"driver","Host":"d","Port":1},"Maximum Memory":77,"Timestamp":1050}"#;
    let added = r#"{"Event":"SparkListenerExecutorAdded","Timestamp":1100,"Executor ID":"1","Executor Info":{"Host":"h","Total Cores":2}}"#;
    let stage = |executor: &str, heap: i64, python: i64| {
        format!(
            r#"{{"Event":"SparkListenerStageExecutorMetrics","Executor ID":"{executor}","Stage ID":0,"Stage Attempt ID":0,"Executor Metrics":{{"JVMHeapMemory":{heap},"JVMOffHeapMemory":0,"OnHeapExecutionMemory":-1,"ProcessTreePythonRSSMemory":{python}}}}}"#
        )
    };
    let update = r#"{"Event":"SparkListenerExecutorMetricsUpdate","Executor ID":"driver","Metrics Updated":[],"Executor Metrics Updated":[{"Stage ID":-1,"Stage Attempt ID":-1,"Executor Metrics":{"JVMHeapMemory":900,"OffHeapStorageMemory":8}},{}]}"#;
    let application = read_lines(&[
        START,
        manager,
        added,
        &stage("1", 500, 0),
        &stage("1", 300, 40),
        &stage("driver", 700, 0),
        &stage("unheard of", 9_999, 0),
        update,
    ])
    .application;
    let peaks = application.executors[0].peaks;
    assert_eq!((peaks.heap, peaks.python_resident), (Some(500), Some(40)));
    assert_eq!((peaks.jvm_off_heap, peaks.on_heap_execution), (None, None));
    assert_eq!(application.executors.len(), 1);
    let driver = application.driver.expect("a driver");
    assert_eq!((driver.host.as_deref(), driver.storage_memory_bytes), (Some("d"), Some(77)));
    assert_eq!((driver.peaks.heap, driver.peaks.off_heap_storage), (Some(900), Some(8)));
}

#[test]
fn memory_beside_the_heap_in_resource_profiles() {
    let profile = r#"{"Event":"SparkListenerResourceProfileAdded","Resource Profile Id":3,"Executor Resource Requests":{"cores":{"Amount":4},"memory":{"Amount":1024},"memoryOverhead":{"Amount":512},"pyspark.memory":{"Amount":256},"offHeap":{"Amount":0}},"Task Resource Requests":{"cpus":{"Amount":1.0}}}"#;
    let application = read_lines(&[START, profile]).application;
    let profile = &application.configuration.resource_profiles[0];
    assert_eq!(profile.executor_memory_bytes, Some(1 << 30));
    assert_eq!(profile.executor_overhead_bytes, Some(512 << 20));
    assert_eq!(profile.executor_python_memory_bytes, Some(256 << 20));
    assert_eq!(profile.executor_off_heap_bytes, None, "not on");
}

#[test]
fn databricks_logs_are_read_as_far_as_they_go_and_marked() {
    let environment = r#"{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{"spark.databricks.clusterUsageTags.sparkVersion":"15.4.x-scala2.12"}}"#;
    let own = r#"{"Event":"com.databricks.backend.daemon.driver.DBCEventLoggingListener$CommandStart","x":1}"#;
    let no_version = r#"{"Event":"SparkListenerLogStart","Spark Version":""}"#;
    let outcome =
        try_read([no_version, START, environment, own, ""].join("\n").as_bytes()).expect("a log");
    assert_eq!(outcome.statistics.unknown_events, 0);
    let application = outcome.application;
    assert_eq!(application.spark_version.as_deref(), Some("15.4.x-scala2.12"));
    assert!(application.has(DataQuality::Databricks));
    assert!(application.has(DataQuality::LogIncomplete));
    let version = r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.0"}"#;
    let application = read_lines(&[version, START, environment]).application;
    assert_eq!(application.spark_version.as_deref(), Some("3.5.0"), "Spark's own word first");
    assert!(!read_lines(&[version, START]).application.has(DataQuality::Databricks));
}

/// Since 3.1 each exclusion is told twice, under its old name and its new
/// one: nothing counts them yet, and none is unknown.
#[test]
fn exclusions_are_known_by_both_names() {
    let event =
        |name: &str| format!(r#"{{"Event":"{name}","time":1,"executorId":"1","taskFailures":2}}"#);
    let lines = [
        START.to_owned(),
        event("org.apache.spark.scheduler.SparkListenerExecutorBlacklisted"),
        event("org.apache.spark.scheduler.SparkListenerExecutorExcluded"),
        event("SparkListenerNodeBlacklisted"),
        event("SparkListenerNodeExcluded"),
    ];
    let outcome = try_read((lines.join("\n") + "\n").as_bytes()).expect("a log");
    assert_eq!((outcome.statistics.unknown_events, outcome.statistics.bad_lines), (0, 0));
    assert!(outcome.application.executors.is_empty());
}
