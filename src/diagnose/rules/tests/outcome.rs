//! `fetch_failures`, `speculation_waste`, `memory`, `application_failed` and
//! `configuration`.

use std::time::Duration;

use crate::diagnose::builders::{at, findings, job, only, run, stage, task, tasks, warm_up};
use crate::diagnose::{Cause, Rule, Severity, Subject};
use crate::model::{
    Application, DataQuality, Driver, FailureClass, JobStatus, Plan, PlanNode, Source, Speculation,
    SqlExecution, SqlStatus, StageId, StageStatus, State,
};

const GIB: u64 = 1 << 30;

fn removed(application: &mut Application, executor: usize, reason: &str) {
    let executor = &mut application.executors[executor];
    executor.removed = Some(at(20_000));
    executor.removed_reason = Some(reason.into());
}

fn fetches_failed(from: &str) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    let failed = task(100).failed(FailureClass::FetchFailed);
    let stage =
        stage(&mut application, 1, 21_000, [tasks(8, &task(500)), vec![failed; 3]].concat());
    stage.fetch_failures.insert(from.into(), 3);
    application
}

#[test]
fn fetches_failed_because_an_executor_was_lost() {
    for from in ["1", ""] {
        let mut application = fetches_failed(from);
        removed(&mut application, 0, "Command exited with code 137");
        let finding = only(&application, Rule::FetchFailures);
        assert_eq!((finding.cause, finding.severity), (Some(Cause::Killed), Severity::Info));
        assert_eq!(finding.impact.wall.or(finding.impact.core), None, "told by others");
    }
    let finding = only(&fetches_failed("1"), Rule::FetchFailures);
    assert_eq!((finding.cause, finding.severity), (None, Severity::Warning), "it is still there");
    assert_eq!(finding.subject, Subject::Executor { executor_id: "1".into() });
}

#[test]
fn executors_given_back_with_their_shuffle_files() {
    let mut application = fetches_failed("1");
    removed(&mut application, 0, "Executor killed by driver.");
    application.configuration.set("spark.dynamicAllocation.enabled", "true");
    assert!(findings(&application, Rule::Configuration).is_empty(), "tracking is the default");
    application.configuration.set("spark.dynamicAllocation.shuffleTracking.enabled", "false");
    let finding = only(&application, Rule::Configuration);
    let key = "spark.dynamicAllocation.shuffleTracking.enabled".to_owned();
    assert_eq!(finding.subject, Subject::ConfigurationKey { key });
    application.configuration.set("spark.shuffle.service.enabled", "true");
    assert!(findings(&application, Rule::Configuration).is_empty());
}

fn copies(won: u64, lost: u64, seconds: u64) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(16, &task(5_000))).speculation = Some(Speculation {
        copies: won + lost,
        won,
        lost,
        lost_time: Some(Duration::from_secs(seconds)),
    });
    application
}

#[test]
fn copies_that_lost() {
    let finding = only(&copies(1, 8, 90), Rule::SpeculationWaste);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.impact.core, Some(Duration::from_secs(90)));
    assert_eq!(finding.impact.wall, None);
    for (why, application) in [
        ("too few", copies(0, 4, 90)),
        ("too short", copies(0, 8, 50)),
        ("most won", copies(12, 8, 90)),
    ] {
        assert!(findings(&application, Rule::SpeculationWaste).is_empty(), "{why}");
    }
}

fn heaps(peak_percent: u64, gc_seconds: u64) -> Application {
    let mut application = run(60);
    application.configuration.set("spark.executor.memory", "4g");
    for executor in &mut application.executors {
        executor.peaks.heap = Some(4 * GIB / 100 * peak_percent);
        executor.totals.task_time = Duration::from_secs(50);
        executor.totals.gc_time = Duration::from_secs(gc_seconds);
    }
    application
}

#[test]
fn a_full_heap_needs_a_second_fact() {
    assert!(findings(&heaps(99, 1), Rule::Memory).is_empty(), "garbage that is easily collected");
    assert!(findings(&heaps(90, 10), Rule::Memory).is_empty(), "room enough");
    let finding = only(&heaps(99, 10), Rule::Memory);
    assert_eq!((finding.severity, finding.cause), (Severity::Info, None));
    let mut concurrent = heaps(99, 10);
    concurrent.data_quality.insert(DataQuality::ConcurrentGc);
    assert!(findings(&concurrent, Rule::Memory).is_empty());
    let mut lost = heaps(99, 1);
    removed(&mut lost, 0, "Command exited with code 52");
    let finding = only(&lost, Rule::Memory);
    assert_eq!(finding.subject, Subject::Executor { executor_id: "1".into() });
}

#[test]
fn far_more_heap_than_it_needs() {
    let mut application = heaps(30, 0);
    assert!(findings(&application, Rule::Memory).is_empty(), "a minute is no time");
    application.end = Some(at(3_600_000));
    let finding = only(&application, Rule::Memory);
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.advice[0].change.contains("1.4 GiB"), "{}", finding.advice[0].change);
    let mut unknown = application.clone();
    unknown.executors[1].peaks.heap = None;
    assert!(findings(&unknown, Rule::Memory).is_empty(), "no sample of one");
    application.configuration.set("spark.executor.memory", "2g");
    assert!(findings(&application, Rule::Memory).is_empty(), "a small heap");
}

#[test]
fn close_to_the_limit_of_the_container() {
    let mut application = heaps(60, 0);
    for executor in &mut application.executors {
        executor.peaks.jvm_resident = Some(3 * GIB);
        executor.peaks.python_resident = Some(3 * GIB / 2);
    }
    application.configuration.set("spark.master", "spark://host:7077");
    assert!(findings(&application, Rule::Memory).is_empty(), "nobody holds it to a limit");
    application.configuration.set("spark.master", "yarn");
    let finding = only(&application, Rule::Memory);
    assert_eq!(
        (finding.severity, finding.cause),
        (Severity::Warning, Some(Cause::ContainerMemory))
    );
    assert!(finding.advice[0].change.contains("Python"), "{}", finding.advice[0].change);
    application.configuration.set("spark.executor.memoryOverhead", "2g");
    assert!(findings(&application, Rule::Memory).is_empty());
}

#[test]
fn results_the_driver_does_not_take() {
    let mut application = run(60);
    application.configuration.set("spark.driver.maxResultSize", "8m");
    stage(&mut application, 0, 0, tasks(8, &task(500))).result_bytes = Some(7 << 20);
    assert!(findings(&application, Rule::Memory).is_empty());
    application.stages[0].result_bytes = Some(8 << 20);
    assert_eq!(only(&application, Rule::Memory).severity, Severity::Info, "nearly");
    application.stages[0].status = StageStatus::Failed;
    application.stages[0].failure_reason = Some(
        "Job aborted due to stage failure: Total size of serialized results of 5 tasks (9.0 MiB) \
         is bigger than spark.driver.maxResultSize (8.0 MiB)"
            .into(),
    );
    let finding = only(&application, Rule::Memory);
    let key = "spark.driver.maxResultSize".to_owned();
    assert_eq!(finding.subject, Subject::ConfigurationKey { key });
    assert_eq!(finding.severity, Severity::Warning);
    application.configuration.set("spark.driver.maxResultSize", "0");
    application.stages[0].failure_reason = None;
    assert!(findings(&application, Rule::Memory).is_empty(), "no limit");
}

#[test]
fn the_driver_s_heap_was_full_when_the_log_ended() {
    let mut application = run(60);
    let mut driver = Driver::default();
    driver.peaks.heap = Some(GIB / 100 * 97);
    application.driver = Some(driver);
    assert!(findings(&application, Rule::Memory).is_empty(), "it ended as it should");
    application.end = None;
    application.state = State::Unknown;
    let finding = only(&application, Rule::Memory);
    assert_eq!((finding.severity, finding.cause), (Severity::Critical, Some(Cause::HeapOom)));
    application.state = State::Running;
    assert_eq!(only(&application, Rule::Memory).severity, Severity::Warning);
    application.configuration.set("spark.driver.memory", "4g");
    assert!(findings(&application, Rule::Memory).is_empty());
}

#[test]
fn a_failed_application_without_a_failed_job() {
    let mut application = run(60);
    job(&mut application, 0, 0, Some(58_000));
    assert!(findings(&application, Rule::ApplicationFailed).is_empty());
    application.state = State::Failed;
    application.exit_code = Some(3);
    let finding = only(&application, Rule::ApplicationFailed);
    assert_eq!((finding.severity, finding.cause), (Severity::Critical, None));
    application.exit_code = Some(52);
    assert_eq!(only(&application, Rule::ApplicationFailed).cause, Some(Cause::HeapOom));
    application.exit_code = Some(143);
    assert_eq!(only(&application, Rule::ApplicationFailed).cause, Some(Cause::Killed));
    // One story, one alert: unless nobody would tell it.
    application.jobs[0].status = JobStatus::Failed;
    assert!(findings(&application, Rule::ApplicationFailed).is_empty());
    assert_eq!(only(&application, Rule::JobFailed).severity, Severity::Critical);
    // A failed job that the program survived is another story.
    job(&mut application, 1, 58_500, Some(59_000));
    assert_eq!(findings(&application, Rule::ApplicationFailed).len(), 1);
    for (state, severity) in [(State::Lost, Severity::Critical), (State::Killed, Severity::Info)] {
        let mut application = run(60);
        application.state = state;
        assert_eq!(only(&application, Rule::ApplicationFailed).severity, severity);
    }
    for state in [State::Running, State::Succeeded, State::Unknown, State::Cancelled] {
        let mut application = run(60);
        application.state = state;
        assert!(findings(&application, Rule::ApplicationFailed).is_empty(), "{state:?}");
    }
}

/// A query on stage 1 with such nodes.
fn query(application: &mut Application, nodes: &[(&str, &str)]) {
    let stage = StageId { stage: 1, attempt: 0 };
    let end = nodes.len() as u32;
    let node = |(place, (name, text)): (usize, &(&str, &str))| PlanNode {
        name: (*name).into(),
        text: (*text).into(),
        parent: place.checked_sub(1).map(|above| above as u32),
        end,
        metadata: Vec::new(),
        metrics: Vec::new(),
        stages: vec![stage],
    };
    let mut execution = SqlExecution::new(0);
    execution.status = SqlStatus::Completed;
    execution.job_ids = vec![0];
    execution.plan =
        Some(Plan { nodes: nodes.iter().enumerate().map(node).collect(), nodes_omitted: 0 });
    application.sql = Some(vec![execution]);
    application.stages.iter_mut().for_each(|stage| stage.job_ids = vec![0]);
    job(application, 0, 0, Some(60_000));
}

const REQUIRED: &str = "Exchange hashpartitioning(a#1, 200), ENSURE_REQUIREMENTS, [plan_id=7]";

/// 200 tasks that read 300 bytes each, and take 105 ms beside 5 ms of work.
fn small_partitions(exchange: &str) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    let mut launched = task(5).shuffled(2, 300);
    launched.overhead = 105;
    stage(&mut application, 1, 2_000, tasks(200, &launched));
    query(&mut application, &[("Exchange", exchange)]);
    application
}

#[test]
fn partitions_of_next_to_nothing() {
    let mut application = small_partitions(REQUIRED);
    assert!(findings(&application, Rule::Configuration).is_empty(), "adaptive execution is on");
    application.configuration.set("spark.sql.adaptive.coalescePartitions.enabled", "false");
    let finding = only(&application, Rule::Configuration);
    let key = "spark.sql.adaptive.coalescePartitions.enabled".to_owned();
    assert_eq!(finding.subject, Subject::ConfigurationKey { key });
    // 50 waves of 110 ms become one task of 105 + 200 x 5 ms.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((4.2..4.6).contains(&wall), "{wall}");
    application.configuration.set("spark.sql.adaptive.enabled", "false");
    let key = "spark.sql.adaptive.enabled".to_owned();
    assert_eq!(only(&application, Rule::Configuration).subject, Subject::ConfigurationKey { key });
    let mut asked = small_partitions("Exchange hashpartitioning(a#1, 200), REPARTITION_BY_NUM");
    asked.configuration.set("spark.sql.adaptive.enabled", "false");
    assert!(findings(&asked, Rule::Configuration).is_empty(), "the program asked for 200");
    let mut cheap = run(60);
    cheap.configuration.set("spark.sql.adaptive.enabled", "false");
    warm_up(&mut cheap);
    stage(&mut cheap, 1, 2_000, tasks(200, &task(100).shuffled(2, 300)));
    query(&mut cheap, &[("Exchange", REQUIRED)]);
    assert!(findings(&cheap, Rule::Configuration).is_empty(), "it was work");
}

fn skewed_join(bytes: u64, join: &str) -> Application {
    let mut application = run(120);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(500).shuffled(1_000, 1 << 20));
    specs.push(task(60_000).shuffled(100_000, bytes));
    stage(&mut application, 1, 2_000, specs);
    query(&mut application, &[(join, join)]);
    application
}

#[test]
fn a_join_that_spark_would_have_split() {
    let on = |mut application: Application, key: &str| {
        application.configuration.set(key, "false");
        application
    };
    let key = "spark.sql.adaptive.skewJoin.enabled";
    let large = || skewed_join(300 << 20, "SortMergeJoin");
    assert!(findings(&large(), Rule::Configuration).is_empty(), "it is on");
    let finding = only(&on(large(), key), Rule::Configuration);
    assert_eq!(finding.subject, Subject::ConfigurationKey { key: key.to_owned() });
    assert_eq!(finding.impact.wall, None, "data_skew promises it");
    let small = skewed_join(200 << 20, "SortMergeJoin");
    assert!(findings(&on(small, key), Rule::Configuration).is_empty(), "below Spark's bound");
    let aggregate = skewed_join(300 << 20, "HashAggregate");
    assert!(findings(&on(aggregate, key), Rule::Configuration).is_empty(), "no join");
}

#[test]
fn containers_over_their_limit_without_overhead_set() {
    let mut application = run(60);
    warm_up(&mut application);
    application.configuration.set("spark.executor.memory", "4g");
    removed(&mut application, 0, "Container killed by YARN for exceeding physical memory limits.");
    let key = "spark.executor.memoryOverhead";
    assert_eq!(
        only(&application, Rule::Configuration).subject,
        Subject::ConfigurationKey { key: key.to_owned() }
    );
    application.configuration.set(key, "2g");
    assert!(findings(&application, Rule::Configuration).is_empty());
}

#[test]
fn what_only_an_event_log_would_tell() {
    let mut application = run(60);
    application.source = Source::Driver;
    application.configuration.set("spark.app.name", "x");
    assert!(findings(&application, Rule::Configuration).is_empty(), "nothing is missing");
    application.data_quality.insert(DataQuality::StagesEvicted);
    assert_eq!(findings(&application, Rule::Configuration).len(), 1);
    application.configuration.set("spark.eventLog.enabled", "true");
    assert!(findings(&application, Rule::Configuration).is_empty());
}
