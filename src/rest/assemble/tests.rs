//! Answers recorded from real servers: a driver of Spark 3.5.9
//! (`local-cluster[2,1,1024]`: 1,022 stages, one failed job, one stage with a
//! task that runs and runs), a driver of 4.3.0 (`local[2]`) and a History
//! Server of 4.3.0.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::*;
use crate::model::{FailureClass, JobStatus, StageStatus, TaskStatus};
use crate::rest::environment::ApplicationEnvironmentInfo;
use crate::rest::jobs::JobData;
use crate::rest::stages::StageData;
use crate::rest::task_list::TaskData;
use crate::rest::task_summary::TaskMetricDistributions;

fn recorded<T: DeserializeOwned>(name: &str) -> T {
    from("3.5.9/live", name)
}

fn from<T: DeserializeOwned>(folder: &str, name: &str) -> T {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/tests/fixtures/rest/{folder}/{name}.json");
    let text = std::fs::read_to_string(&path).expect(&path);
    serde_json::from_str(&text).expect(&path)
}

fn stages(name: &str) -> Vec<(Stage, StageData)> {
    recorded::<Vec<StageData>>(name)
        .into_iter()
        .map(|data| (stage(&data).expect("an id"), data))
        .collect()
}

fn live() -> Application {
    let applications: Vec<ApplicationInfo> = recorded("applications");
    let environment: ApplicationEnvironmentInfo = recorded("environment");
    let executors: Vec<ExecutorSummary> = recorded("allexecutors");
    let mut jobs: Vec<JobData> = recorded("jobs_running");
    jobs.extend(recorded::<Vec<JobData>>("jobs_failed"));
    let (mut active, _) = stages("stages_active").remove(0);
    add_summary(&mut active, &recorded::<TaskMetricDistributions>("task_summary"));
    add_slowest(&mut active, &recorded::<Vec<TaskData>>("task_list_success"));
    add_running(&mut active, &recorded::<Vec<TaskData>>("task_list_running"));
    let (mut failed, data) = stages("stages_failed").remove(0);
    let rows: Vec<TaskData> = recorded("task_list_failed");
    add_failed(&mut failed, &rows, data.killed_tasks_summary);
    application(Parts {
        cluster: "default",
        source: Source::Driver,
        application: &applications[0],
        attempt: applications[0].latest().expect("an attempt"),
        configuration: Some(&environment.configuration()),
        executors: &executors,
        cached: Some(&[CachedRdd {
            id: 3061,
            partitions: 4,
            cached_partitions: 4,
            memory_bytes: 3329,
            disk_bytes: 0,
        }]),
        jobs: jobs.iter().filter_map(job).collect(),
        stages: vec![active, failed],
        stages_omitted: 0,
        sql: None,
        sql_omitted: 0,
        jobs_before_stages: true,
        data_quality: BTreeSet::new(),
        now: "2026-11-30T03:28:30Z".parse().expect("a time"),
    })
}

#[test]
fn a_live_driver() {
    let application = live();
    assert_eq!(application.id.to_string(), "default/app-20261130031912-0000");
    assert_eq!(application.name, "many stages");
    assert_eq!(application.state, State::Running);
    assert_eq!(application.end, None);
    assert_eq!(application.spark_version.as_deref(), Some("3.5.9"));
    assert_eq!(application.kind, Kind::Batch);
    assert_eq!(application.configuration.get("spark.master"), Some("local-cluster[2,1,1024]"));
    assert_eq!(application.configuration.resource_profiles.len(), 1);
    assert_eq!(application.configuration.java_version.as_deref(), Some("17.0.15 (Debian)"));
    // Two executors; the driver has no cores for tasks.
    let executors: Vec<(&str, u32)> =
        application.executors.iter().map(|one| (one.id.as_str(), one.cores)).collect();
    assert_eq!(executors, [("0", 1), ("1", 1)]);
    assert_eq!(application.executors[0].host, "127.0.0.1");
    assert_eq!(application.executors[0].peaks.heap, Some(52_536_344));
    assert!(application.data_quality.is_empty(), "{:?}", application.data_quality);
}

#[test]
fn a_failed_job_has_the_reason_of_its_stage() {
    let application = live();
    let job = application.jobs.iter().find(|job| job.id == 511).expect("job 511");
    assert_eq!(job.status, JobStatus::Failed);
    let reason = job.failure_reason.as_deref().expect("a reason");
    assert!(reason.starts_with("Job aborted due to stage failure: Task 2 in stage 1021.0"));
    let stage = application.stages.iter().find(|stage| stage.id.stage == 1021).expect("stage");
    assert_eq!(stage.job_ids, [511]);
    assert_eq!(stage.status, StageStatus::Failed);
    let failures = stage.failures.as_ref().expect("read");
    assert_eq!(failures.get(&FailureClass::Exception), Some(&4), "{failures:?}");
    assert_eq!(
        stage.failure_example.as_deref(),
        Some("org.apache.spark.api.python.PythonException")
    );
}

#[test]
fn a_stage_that_waits_for_one_task_shows_it() {
    let application = live();
    let stage = application.stages.iter().find(|stage| stage.id.stage == 1022).expect("stage");
    assert_eq!(stage.status, StageStatus::Active);
    assert_eq!((stage.tasks.total, stage.tasks.succeeded, stage.tasks.active), (20, 19, 1));
    // Quantiles know nothing of the task that is still running ...
    let run_time = stage.measures.run_time;
    assert_eq!(run_time.count, None);
    assert_eq!(run_time.sum, Some(Duration::from_millis(13_762)));
    assert_eq!(run_time.max(), Some(Duration::from_millis(974)));
    assert_eq!(run_time.median(), Some(Duration::from_millis(697)));
    // ... the list of running tasks does. Its run time is 0 until it ends.
    let [running] = stage.running.as_slice() else { panic!("one task: {:?}", stage.running) };
    assert_eq!((running.index, running.status), (3, TaskStatus::Running));
    assert!(running.duration > Duration::from_secs(100));
    assert_eq!(running.metrics.run_time, Duration::ZERO);
    assert_eq!(running.metrics.scheduler_delay, Duration::ZERO);
    let slowest: Vec<u64> =
        stage.slowest.iter().map(|task| task.metrics.run_time.as_millis() as u64).collect();
    assert_eq!(slowest.first(), Some(&974));
    assert!(slowest.is_sorted_by(|a, b| a >= b));
}

#[test]
fn an_active_stage_of_finished_jobs_is_a_remnant() {
    let (active, _) = stages("stages_active").remove(0);
    let mut jobs: Vec<JobData> = recorded("jobs_running");
    jobs[0].status = serde_json::from_str("\"SUCCEEDED\"").expect("text");
    jobs[0].completion_time = crate::rest::value::Moment::of_millis(1_796_009_300_000);
    let applications: Vec<ApplicationInfo> = recorded("applications");
    for (jobs_before_stages, expected) in
        [(true, StageStatus::Complete), (false, StageStatus::Active)]
    {
        let application = application(Parts {
            cluster: "default",
            source: Source::Driver,
            application: &applications[0],
            attempt: &applications[0].attempts[0],
            configuration: None,
            executors: &[],
            cached: None,
            jobs: jobs.iter().filter_map(job).collect(),
            stages: vec![active.clone()],
            stages_omitted: 0,
            sql: None,
            sql_omitted: 0,
            jobs_before_stages,
            data_quality: BTreeSet::new(),
            now: Timestamp::UNIX_EPOCH,
        });
        assert_eq!(application.stages[0].status, expected);
        // Nothing is known about the cache, and nothing is said.
        assert_eq!(application.stages[0].reads_cache, None);
        assert!(application.has(DataQuality::EndpointsMissing));
        // Spark's clock is ahead of ours.
        assert!(application.observed >= active.first_task_launched.expect("launched"));
    }
}

#[test]
fn cancelled_is_not_failed() {
    // Spark says FAILED of a job that somebody cancelled.
    let applications: Vec<ApplicationInfo> = from("4.3.0/live", "applications");
    let jobs: Vec<JobData> = from("4.3.0/cancelled", "jobs");
    let stages: Vec<StageData> = from("4.3.0/cancelled", "stages");
    let application = application(Parts {
        cluster: "default",
        source: Source::Driver,
        application: &applications[0],
        attempt: &applications[0].attempts[0],
        configuration: None,
        executors: &[],
        cached: None,
        jobs: jobs.iter().filter_map(job).collect(),
        stages: stages.iter().filter_map(stage).collect(),
        stages_omitted: 0,
        sql: None,
        sql_omitted: 0,
        jobs_before_stages: true,
        data_quality: BTreeSet::new(),
        now: Timestamp::UNIX_EPOCH,
    });
    let statuses: Vec<JobStatus> = application.jobs.iter().map(|job| job.status).collect();
    assert_eq!(statuses, [JobStatus::Succeeded, JobStatus::Cancelled]);
    // Its tasks were killed, which is no failure either.
    let stage = &application.stages[1];
    assert_eq!((stage.tasks.killed, stage.tasks.failed), (2, 0));
    assert_eq!(stage.failures, Some([(FailureClass::Killed, 2)].into()));
}

#[test]
fn records_read_from_files_and_shuffle_have_no_quantiles() {
    let summary: TaskMetricDistributions = serde_json::from_str(
        r#"{"inputMetrics": {"recordsRead": [1, 1, 1, 1, 1, 9]},
            "shuffleReadMetrics": {"readRecords": [0, 0, 0, 0, 0, 0]}}"#,
    )
    .expect("readable");
    for (shuffle, expected) in [(0, Some(9)), (5, None)] {
        let data: StageData = serde_json::from_str(&format!(
            r#"{{"stageId": 0, "attemptId": 0, "inputRecords": 14, "shuffleReadRecords": {shuffle},
                 "numActiveTasks": -2, "executorRunTime": -5}}"#
        ))
        .expect("readable");
        let mut read = stage(&data).expect("an id");
        add_summary(&mut read, &summary);
        assert_eq!(read.measures.records_read.max(), expected);
        assert_eq!(read.measures.records_read.sum, Some(14 + shuffle));
        // Negative numbers are dropped, not carried on.
        assert_eq!(read.tasks.active, 0);
        assert_eq!(read.measures.run_time.sum, None);
    }
}

#[test]
fn local_mode_s_only_executor_is_the_driver() {
    let summaries: Vec<ExecutorSummary> = serde_json::from_str(
        r#"[{"id": "driver", "hostPort": "[::1]:7078", "totalCores": 2},
            {"id": "10", "totalCores": 1}, {"id": "9", "totalCores": 1}]"#,
    )
    .expect("readable");
    let found = executors(&summaries);
    let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["driver", "9", "10"]);
    assert_eq!(found[0].host, "[::1]");
}

#[test]
fn a_completed_run_of_a_history_server() {
    let applications: Vec<ApplicationInfo> = from("4.3.0/history", "applications");
    let listed = &applications[1];
    let environment: ApplicationEnvironmentInfo = from("4.3.0/history", "environment");
    let executors: Vec<ExecutorSummary> = from("4.3.0/history", "allexecutors");
    let jobs: Vec<JobData> = from("4.3.0/history", "jobs");
    let mut stages: Vec<Stage> =
        from::<Vec<StageData>>("4.3.0/history", "stages").iter().filter_map(stage).collect();
    stages.sort_by_key(|stage| stage.id);
    add_summary(&mut stages[1], &from("4.3.0/history", "task_summary"));
    add_slowest(&mut stages[1], &from::<Vec<TaskData>>("4.3.0/history", "task_list_success"));
    let application = application(Parts {
        cluster: "default",
        source: Source::HistoryServer,
        application: listed,
        attempt: listed.latest().expect("an attempt"),
        configuration: Some(&environment.configuration()),
        executors: &executors,
        cached: None,
        jobs: jobs.iter().filter_map(job).collect(),
        stages,
        stages_omitted: 0,
        sql: None,
        sql_omitted: 0,
        jobs_before_stages: true,
        data_quality: BTreeSet::new(),
        now: listed.attempts[0].end().expect("ended"),
    });
    // The program caught the failure of its last job and ended well.
    assert_eq!((application.state, application.exit_code), (State::Succeeded, Some(0)));
    assert_eq!(application.duration(), Some(Duration::from_millis(37_056)));
    let failed = &application.jobs[2];
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.failure_reason.as_deref().is_some_and(|reason| !reason.is_empty()));
    assert!(application.local_mode());
    assert_eq!(application.executors[0].cores, 2);
    let skewed = &application.stages[1];
    let quantiles = skewed.measures.run_time.quantiles.expect("read");
    assert_eq!(quantiles.median, Duration::from_millis(218));
    assert_eq!(quantiles.max, Duration::from_millis(4_497));
    assert_eq!(skewed.slowest[0].metrics.run_time, quantiles.max);
    assert_eq!(skewed.reads_cache, None);
    assert!(application.data_quality.is_empty(), "{:?}", application.data_quality);
}

#[test]
fn a_live_driver_of_the_newest_release() {
    let data: Vec<StageData> = from("4.3.0/live", "stages_active");
    let mut active = stage(&data[0]).expect("an id");
    add_summary(&mut active, &from("4.3.0/live", "task_summary"));
    add_running(&mut active, &from::<Vec<TaskData>>("4.3.0/live", "task_list_running"));
    assert_eq!((active.tasks.total, active.tasks.succeeded, active.tasks.active), (12, 11, 1));
    assert_eq!((active.running.len(), active.running[0].index), (1, 3));
    assert!(active.running[0].duration > Duration::from_secs(150));
    assert!(active.measures.run_time.max().is_some_and(|max| max < Duration::from_secs(10)));
    let jobs: Vec<JobData> = from("4.3.0/live", "jobs_running");
    let read = job(&jobs[0]).expect("an id");
    assert_eq!((read.job.status, read.job.stage_ids), (JobStatus::Running, vec![active.id.stage]));
}

#[test]
fn dropped_events_of_real_drivers() {
    for folder in ["3.5.9/live", "4.3.0/live"] {
        let report: crate::rest::dropped_events::MetricsReport = from(folder, "metrics");
        assert_eq!(report.dropped_events(), Some(0), "{folder}");
    }
}
