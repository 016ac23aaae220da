//! Edges: lines cut by hand, one situation each.

use std::time::Duration;

use super::{read_lines, stage, try_read, try_read_with};
use crate::config::{Limits, Size};
use crate::model::{DataQuality, FailureClass, JobStatus, Kind, StageStatus, State};

const START: &str = r#"{"Event":"SparkListenerApplicationStart","App Name":"edges","App ID":"app-1","Timestamp":1000,"User":"u"}"#;
const ADDED: &str = r#"{"Event":"SparkListenerExecutorAdded","Timestamp":1100,"Executor ID":"1","Executor Info":{"Host":"h","Total Cores":2,"Resource Profile Id":0}}"#;
const JOB: &str = r#"{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1200,"Stage Infos":[{"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"one","Number of Tasks":2},{"Stage ID":1,"Stage Attempt ID":0,"Stage Name":"two","Number of Tasks":3}],"Stage IDs":[1,0],"Properties":{"spark.sql.execution.id":"7"}}"#;
const SUBMITTED: &str = r#"{"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"one","Number of Tasks":2,"Submission Time":1300}}"#;
const COMPLETED: &str = r#"{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"one","Number of Tasks":2,"Submission Time":1300,"Completion Time":9000}}"#;
const JOB_END: &str = r#"{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":9100,"Job Result":{"Result":"JobSucceeded"}}"#;
const END: &str = r#"{"Event":"SparkListenerApplicationEnd","Timestamp":9999,"ExitCode":0}"#;

fn started(task: u64, launched: u64) -> String {
    format!(
        r#"{{"Event":"SparkListenerTaskStart","Stage ID":0,"Stage Attempt ID":0,"Task Info":{{"Task ID":{task},"Index":{task},"Attempt":0,"Launch Time":{launched},"Executor ID":"1","Host":"h"}}}}"#
    )
}

fn ended(task: u64, launched: u64, finished: u64, reason: &str, metrics: Option<&str>) -> String {
    let metrics = metrics.map_or(String::new(), |text| format!(r#","Task Metrics":{{{text}}}"#));
    format!(
        r#"{{"Event":"SparkListenerTaskEnd","Stage ID":0,"Stage Attempt ID":0,"Task End Reason":{{"Reason":{reason}}},"Task Info":{{"Task ID":{task},"Index":{task},"Attempt":0,"Launch Time":{launched},"Executor ID":"1","Host":"h","Locality":"ANY","Finish Time":{finished},"Getting Result Time":0}}{metrics}}}"#
    )
}

/// A whole log around the lines of stage 0's tasks.
fn with_tasks(tasks: &[String]) -> crate::eventlog::ReadOutcome {
    let mut lines = vec![START, ADDED, JOB, SUBMITTED];
    lines.extend(tasks.iter().map(String::as_str));
    lines.extend([COMPLETED, JOB_END, END]);
    read_lines(&lines)
}

const RUN: Option<&str> = Some(r#""Executor Run Time":900,"JVM GC Time":5"#);

#[test]
fn counts_are_those_of_spark_s_listener() {
    let ends = [
        ended(0, 1400, 2400, r#""Success""#, RUN),
        ended(1, 1400, 2400, r#""TaskKilled","Kill Reason":"another attempt succeeded""#, RUN),
        ended(2, 1400, 2400, r#""TaskCommitDenied","Job ID":1"#, RUN),
        ended(
            3,
            1400,
            2400,
            r#""ExceptionFailure","Class Name":"a.B","Description":"d","Full Stack Trace":"a.B: d\n\tCaused by: java.lang.OutOfMemoryError: Java heap space""#,
            RUN,
        ),
        ended(
            4,
            1400,
            2400,
            r#""ExecutorLostFailure","Executor ID":"1","Exit Caused By App":true,"Loss Reason":"Container killed by YARN for exceeding memory limits.""#,
            None,
        ),
        ended(
            5,
            1400,
            2400,
            r#""ExecutorLostFailure","Loss Reason":"Remote RPC client disassociated""#,
            None,
        ),
        ended(6, 1400, 2400, r#""FetchFailed","Message":"m""#, None),
        ended(7, 1400, 2400, r#""TaskResultLost""#, None),
        ended(8, 1400, 2400, r#""SomethingNew""#, None),
        // The same task, lost with its executor after it had succeeded.
        ended(0, 1400, 2400, r#""Resubmitted""#, RUN),
    ];
    let starts: Vec<String> = (0..9).map(|task| started(task, 1400)).collect();
    let tasks: Vec<String> = starts.into_iter().chain(ends).collect();
    let outcome = with_tasks(&tasks);
    let application = &outcome.application;
    let stage = stage(application, 0, 0);
    assert_eq!((stage.tasks.succeeded, stage.tasks.failed, stage.tasks.killed), (1, 7, 2));
    assert_eq!(stage.tasks.active, 0);
    assert_eq!(
        stage.failures,
        Some(
            [
                (FailureClass::HeapOom, 1),
                (FailureClass::ContainerMemory, 1),
                (FailureClass::FetchFailed, 1),
                (FailureClass::ExecutorLost, 1),
                (FailureClass::CommitDenied, 1),
                (FailureClass::ResultLost, 1),
                (FailureClass::Resubmitted, 1),
                (FailureClass::Killed, 1),
                (FailureClass::Unknown, 1),
            ]
            .into()
        )
    );
    assert_eq!(stage.failure_example.as_deref(), Some("a.B"));
    // Four attempts carried numbers; those of the resubmitted one are not
    // counted again.
    assert_eq!(stage.measures.run_time.count, Some(4));
    assert_eq!(stage.measures.run_time.sum, Some(Duration::from_millis(3600)));
    assert_eq!(stage.slowest.len(), 1);
    assert_eq!(stage.slowest[0].metrics.scheduler_delay, Duration::from_millis(100));
    let totals = application.executors[0].totals;
    assert_eq!((totals.succeeded_tasks, totals.failed_tasks, totals.active_tasks), (1, 7, 0));
    assert_eq!(totals.gc_time, Duration::from_millis(20));
    assert!(application.has(DataQuality::MissingTaskMetrics));
    assert!(!application.has(DataQuality::DroppedEvents));
}

#[test]
fn stages_that_never_ran_are_skipped_when_their_job_ends() {
    let outcome = with_tasks(&[]);
    let skipped = stage(&outcome.application, 1, 0);
    assert_eq!((skipped.status, skipped.name.as_str()), (StageStatus::Skipped, "two"));
    assert_eq!((skipped.tasks.total, skipped.job_ids.as_slice()), (3, &[0][..]));
    assert_eq!(skipped.measures.run_time.quantiles, None);
    assert_eq!(outcome.application.jobs[0].stage_ids, [0, 1]);
    assert_eq!(outcome.application.jobs[0].sql_execution_id, Some(7));
    // Before the job ends it waits.
    let open = read_lines(&[START, JOB]);
    assert_eq!(stage(&open.application, 1, 0).status, StageStatus::Pending);
    assert_eq!(open.application.jobs[0].status, JobStatus::Running);
}

#[test]
fn a_stage_without_tasks_and_one_without_success_have_no_quantiles() {
    let outcome = with_tasks(&[]);
    assert_eq!(stage(&outcome.application, 0, 0).measures.run_time.quantiles, None);
    assert_eq!(stage(&outcome.application, 0, 0).measures.run_time.count, Some(0));
    let outcome = with_tasks(&[started(0, 1400), ended(0, 1400, 2400, r#""TaskResultLost""#, RUN)]);
    let stage = stage(&outcome.application, 0, 0);
    assert_eq!(stage.measures.run_time.quantiles, None);
    assert_eq!(stage.measures.run_time.sum, Some(Duration::from_millis(900)));
    assert!(stage.slowest.is_empty());
}

/// However the ends were lost: a hole in a rolling log, a line that was bad.
#[test]
fn a_stage_that_completed_without_all_its_ends_is_marked() {
    let one = [started(0, 1400), ended(0, 1400, 2400, "\"Success\"", RUN)];
    assert!(with_tasks(&one).application.has(DataQuality::DroppedEvents));
    let two = [started(1, 1400), ended(1, 1400, 2400, "\"Success\"", RUN)];
    let all = [one, two].concat();
    assert!(!with_tasks(&all).application.has(DataQuality::DroppedEvents));
}

#[test]
fn task_ends_after_the_end_of_their_stage_count() {
    let late = ended(1, 1400, 3400, r#""Success""#, RUN);
    let first = ended(0, 1400, 2400, r#""Success""#, RUN);
    let (one, two) = (started(0, 1400), started(1, 1400));
    let outcome =
        read_lines(&[START, ADDED, JOB, SUBMITTED, &one, &two, &first, COMPLETED, &late, JOB_END]);
    let stage = stage(&outcome.application, 0, 0);
    assert_eq!((stage.tasks.succeeded, stage.tasks.active), (2, 0));
    assert_eq!(stage.measures.run_time.count, Some(2));
    assert_eq!(stage.timeline.as_ref().map(Vec::len), Some(2));
    assert_eq!(stage.slowest.len(), 2);
}

#[test]
fn absurd_values_cost_only_themselves() {
    for (metrics, run_time, gc) in [
        (r#""Executor Run Time":1796009135010,"JVM GC Time":5"#, 0, 1),
        (r#""Executor Run Time":900,"JVM GC Time":-5"#, 1, 0),
        (r#""Executor Run Time":900,"JVM GC Time":99999999999999999999"#, 1, 0),
        (r#""Executor Run Time":-1,"JVM GC Time":5"#, 0, 1),
    ] {
        let outcome =
            with_tasks(&[started(0, 1400), ended(0, 1400, 2400, r#""Success""#, Some(metrics))]);
        let stage = stage(&outcome.application, 0, 0);
        assert_eq!(stage.measures.run_time.count, Some(run_time), "{metrics}");
        assert_eq!(stage.measures.gc_time.count, Some(gc), "{metrics}");
        assert_eq!(stage.tasks.succeeded, 1);
        assert!(outcome.application.has(DataQuality::ImplausibleValues), "{metrics}");
    }
    // A finish before the launch.
    let outcome = with_tasks(&[started(0, 1400), ended(0, 1400, 1300, r#""Success""#, RUN)]);
    assert!(outcome.application.has(DataQuality::ImplausibleValues));
    assert_eq!(stage(&outcome.application, 0, 0).measures.run_time.count, Some(1));
}

#[test]
fn run_time_times_task_cpus_is_plausible() {
    let profile = r#"{"Event":"SparkListenerResourceProfileAdded","Resource Profile Id":0,"Executor Resource Requests":{"cores":{"Amount":4},"memory":{"Amount":1024}},"Task Resource Requests":{"cpus":{"Amount":4.0}}}"#;
    let end = ended(0, 1400, 11_400, r#""Success""#, Some(r#""Executor Run Time":39000"#));
    let start = started(0, 1400);
    let outcome = read_lines(&[START, profile, ADDED, JOB, SUBMITTED, &start, &end, COMPLETED]);
    assert!(!outcome.application.has(DataQuality::ImplausibleValues));
    let configuration = &outcome.application.configuration;
    assert!((configuration.task_cpus(0) - 4.0).abs() < f64::EPSILON);
    assert_eq!(configuration.resource_profiles[0].executor_memory_bytes, Some(1 << 30));
    assert_eq!(configuration.resource_profiles[0].executor_cores, Some(4));
}

#[test]
fn how_a_run_stands() {
    let end =
        |code: &str| format!(r#"{{"Event":"SparkListenerApplicationEnd","Timestamp":9999{code}}}"#);
    for (line, state, code) in [
        (end(""), State::Unknown, None),
        (end(r#","ExitCode":0"#), State::Succeeded, Some(0)),
        (end(r#","ExitCode":143"#), State::Failed, Some(143)),
    ] {
        let application = read_lines(&[START, &line]).application;
        assert_eq!((application.state, application.exit_code), (state, code), "{line}");
        assert_eq!(application.end.map(jiff::Timestamp::as_millisecond), Some(9999));
    }
    let application = read_lines(&[START, ADDED]).application;
    assert_eq!((application.state, application.end), (State::Unknown, None));
    assert!(application.has(DataQuality::LogIncomplete));
    assert_eq!(application.observed.as_millisecond(), 1100);
}

#[test]
fn without_application_start_the_name_of_the_file_stands_in() {
    let application = read_lines(&[ADDED, END]).application;
    assert_eq!(application.id.app_id, "app-from-name");
    assert!(application.has(DataQuality::NoApplicationStart));
}

#[test]
fn cancelled_jobs_did_not_fail() {
    for (message, status) in [
        (
            "[SPARK_JOB_CANCELLED] Job 0 cancelled part of cancelled job group x",
            JobStatus::Cancelled,
        ),
        ("Job aborted due to stage failure: Task 0 in stage 0.0 failed", JobStatus::Failed),
    ] {
        let end = format!(
            r#"{{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":9100,"Job Result":{{"Result":"JobFailed","Exception":{{"Message":"{message}"}}}}}}"#
        );
        let application = read_lines(&[START, JOB, &end]).application;
        assert_eq!(application.jobs[0].status, status);
        assert_eq!(application.jobs[0].failure_reason.as_deref(), Some(message));
    }
}

#[test]
fn streams_make_a_streaming_application() {
    let query = r#"{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent","id":"x"}"#;
    assert_eq!(read_lines(&[START, query]).application.kind, Kind::Streaming);
    let job = r#"{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1,"Stage IDs":[],"Properties":{"spark.job.description":"\nid = a\nrunId = b\nbatch = 3"}}"#;
    assert_eq!(read_lines(&[START, job]).application.kind, Kind::Streaming);
    assert_eq!(read_lines(&[START, JOB]).application.kind, Kind::Batch);
}

#[test]
fn what_ends_after_its_executor_is_gone_is_not_added_to_it() {
    let removed = r#"{"Event":"SparkListenerExecutorRemoved","Timestamp":5000,"Executor ID":"1","Removed Reason":"Command exited with code 137\nmore\nand more\nand more"}"#;
    let start = started(0, 1400);
    let end = ended(0, 1400, 5000, r#""ExecutorLostFailure","Loss Reason":"x""#, None);
    let application =
        read_lines(&[START, ADDED, JOB, SUBMITTED, &start, removed, &end]).application;
    let executor = &application.executors[0];
    assert_eq!(executor.totals.failed_tasks, 0, "as Spark's own list says");
    assert_eq!(executor.totals.active_tasks, 0);
    assert_eq!(executor.removed.map(jiff::Timestamp::as_millisecond), Some(5000));
    assert_eq!(
        executor.removed_reason.as_deref(),
        Some("Command exited with code 137\nmore\nand more\nand more")
    );
    assert_eq!(stage(&application, 0, 0).tasks.failed, 1);
}

#[test]
fn the_driver_is_an_executor_only_where_it_runs_tasks() {
    let manager = r#"{"Event":"SparkListenerBlockManagerAdded","Block Manager ID":{"Executor ID":"driver","Host":"h","Port":1},"Maximum Memory":77,"Timestamp":1050}"#;
    assert!(read_lines(&[START, manager]).application.executors.is_empty());
    let driver = ADDED.replace("\"1\"", "\"driver\"");
    let application = read_lines(&[START, manager, &driver]).application;
    assert!(application.local_mode());
    assert_eq!(application.executors[0].storage_memory_bytes, Some(77));
    assert_eq!(application.executors[0].added.map(jiff::Timestamp::as_millisecond), Some(1050));
}

#[test]
fn executors_are_ordered_by_number_and_spans_follow_them() {
    let ten = ADDED.replace("\"1\"", "\"10\"");
    let two = ADDED.replace("\"1\"", "\"2\"");
    let start = started(0, 1400).replace("\"Executor ID\":\"1\"", "\"Executor ID\":\"10\"");
    let end = ended(0, 1400, 2400, r#""Success""#, RUN)
        .replace("\"Executor ID\":\"1\"", "\"Executor ID\":\"10\"");
    let application =
        read_lines(&[START, &ten, &two, JOB, SUBMITTED, &start, &end, COMPLETED]).application;
    let ids: Vec<&str> = application.executors.iter().map(|e| e.id.as_str()).collect();
    assert_eq!(ids, ["2", "10"]);
    let span = stage(&application, 0, 0).timeline.as_ref().expect("spans")[0];
    assert_eq!(application.executors[span.executor as usize].id, "10");
    assert_eq!((span.duration_ms, span.run_ms, span.gc_ms, span.succeeded), (1000, 900, 5, true));
}

#[test]
fn concurrent_collectors_are_marked() {
    let environment = r#"{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{"spark.executor.extraJavaOptions":"-XX:+UseZGC"}}"#;
    assert!(read_lines(&[START, environment]).application.has(DataQuality::ConcurrentGc));
}

#[test]
fn beyond_the_limit_the_cheapest_stages_are_left_out() {
    let limits = Limits { stages: 3, ..Limits::default() };
    let mut lines = vec![START.to_owned(), ADDED.to_owned()];
    for id in 0..200_u64 {
        let of = |line: &str| line.replace("\"Stage ID\":0", &format!("\"Stage ID\":{id}"));
        let run_time = if id % 50 == 7 { 900 } else { id % 50 };
        lines.push(of(SUBMITTED));
        lines.push(of(&started(id, 1400)));
        let metrics = format!(r#""Executor Run Time":{run_time}"#);
        lines.push(of(&ended(id, 1400, 2400, r#""Success""#, Some(&metrics))));
        lines.push(of(COMPLETED));
    }
    let outcome = try_read_with((lines.join("\n") + "\n").as_bytes(), &limits).expect("a log");
    let application = outcome.application;
    assert_eq!(application.stages.len(), 3);
    assert!(application.stages.iter().all(|stage| stage.id.stage % 50 == 7));
    assert_eq!(application.stages_omitted, 197);
    assert!(application.has(DataQuality::StagesOmitted));
}

#[test]
fn beyond_their_limits_spans_go_and_quantiles_are_estimated() {
    let tasks: Vec<String> = (0..5)
        .flat_map(|task| [started(task, 1400), ended(task, 1400, 2400, r#""Success""#, RUN)])
        .collect();
    let mut lines = vec![START, ADDED, JOB, SUBMITTED];
    lines.extend(tasks.iter().map(String::as_str));
    lines.push(COMPLETED);
    let limits = Limits { task_spans: 4, tasks_per_stage: 3, ..Limits::default() };
    let outcome = try_read_with((lines.join("\n") + "\n").as_bytes(), &limits).expect("a log");
    let stage = stage(&outcome.application, 0, 0);
    assert_eq!(stage.timeline, None);
    let (run_time, each) = (stage.measures.run_time, Duration::from_millis(900));
    assert_eq!(run_time.sum, Some(Duration::from_millis(4500)));
    assert_eq!(run_time.quantiles.map(|q| (q.min, q.max)), Some((each, each)));
    assert!(outcome.application.has(DataQuality::QuantilesEstimated));
    assert!(!outcome.application.has(DataQuality::TasksEvicted));
}

#[test]
fn bad_and_long_lines_cost_themselves() {
    let long = format!(r#"{{"Event":"SparkListenerJobStart","x":"{}"}}"#, "y".repeat(2000));
    let text =
        [START, "{\"Event\":\"SparkListenerJobEnd\",", "[1,2]", "\"text\"", &long, ADDED, "", END]
            .join("\n");
    let mut bytes = text.into_bytes();
    bytes.extend(b"\n\0\0\0\0\0\0");
    let limits = Limits { line_size: "1000".parse::<Size>().expect("a size"), ..Limits::default() };
    let outcome = try_read_with(&bytes, &limits).expect("a log");
    assert_eq!((outcome.statistics.bad_lines, outcome.statistics.long_lines), (3, 1));
    assert_eq!(outcome.application.executors.len(), 1);
    assert_eq!(
        outcome.application.data_quality,
        [DataQuality::BadLines, DataQuality::LongLines].into()
    );
}

#[test]
fn unknown_events_and_odd_fields_are_passed_over() {
    let outcome = read_lines(&[
        r#"{"Event":"com.example.TheirOwnEvent","a":1}"#,
        r#"{"Event":"SparkListenerExecutorAdded","Timestamp":"1100","Executor ID":3,"Executor Info":{"Host":null,"Total Cores":{"a":[1]},"New Field":[{}]}}"#,
        START,
        r#"{"Event":"SparkListenerTaskEnd"}"#,
        r#"{"Event":"SparkListenerJobStart","Job ID":-1,"Properties":null,"Stage Infos":null}"#,
    ]);
    assert_eq!(outcome.statistics.unknown_events, 1);
    assert_eq!(outcome.statistics.bad_lines, 0);
    assert_eq!(outcome.application.executors[0].id, "3");
    assert!(outcome.application.jobs.is_empty());
}

#[test]
fn latin_1_is_decoded_lossily() {
    let mut bytes = START.replace("edges", "caf?").into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'?').expect("the mark");
    bytes[at] = 0xe9;
    bytes.push(b'\n');
    let outcome = try_read(&bytes).expect("a log");
    assert_eq!(outcome.application.name, "caf\u{fffd}");
    assert_eq!(outcome.statistics.bad_lines, 0);
}

#[test]
fn a_name_of_10_kb_with_all_sorts_of_characters() {
    let name = "\\\"q\\\"\\n\\\\ 🎉 é".repeat(1_000);
    let line = START.replace("edges", &name);
    let application = read_lines(&[&line, END]).application;
    assert!(application.name.len() > 10_000);
    assert!(application.name.starts_with("\"q\"\n\\ 🎉"));
}
