//! `cold_start`, `driver_gap`, `application_idle`, `stuck_stage` and
//! `idle_cores`.

use std::time::Duration;

use crate::diagnose::builders::{
    as_rest, at, findings, fired, job, only, run, running_task, stage, task, tasks, warm_up,
};
use crate::diagnose::{Cause, Rule, Severity};
use crate::model::{
    Application, DataQuality, Kind, Source, SqlExecution, SqlStatus, StageStatus, State,
};

/// A job at `submitted` whose stage waits for executors that come at `added`
/// (seconds).
fn started_late(submitted: i64, added: i64) -> Application {
    let mut application = run(120);
    for executor in &mut application.executors {
        executor.added = Some(at(added * 1_000));
    }
    job(&mut application, 0, submitted * 1_000, Some(110_000));
    stage(
        &mut application,
        0,
        submitted * 1_000,
        tasks(80, &task(1_000).shuffled(10_000, 1_000_000)),
    );
    application
}

#[test]
fn the_first_executor_comes_late() {
    let finding = only(&started_late(2, 45), Rule::ColdStart);
    assert_eq!((finding.cause, finding.severity), (None, Severity::Warning));
    assert_eq!(finding.impact.wall, Some(Duration::from_secs(43)));
    assert_eq!(fired(&started_late(2, 45)).len(), 1, "said once");
    assert!(findings(&started_late(2, 29), Rule::ColdStart).is_empty(), "near miss");
    assert_eq!(findings(&started_late(2, 29), Rule::SchedulingDelay).len(), 1);
    assert_eq!(only(&as_rest(&started_late(2, 45)), Rule::ColdStart).severity, Severity::Warning);
}

#[test]
fn nobody_waited_for_it() {
    let application = started_late(50, 45);
    assert!(findings(&application, Rule::ColdStart).is_empty(), "the driver was busy");
    // Kubernetes holds the program back until executors are there.
    let mut held = application.clone();
    held.configuration.set("spark.master", "k8s://https://example");
    let finding = only(&held, Rule::ColdStart);
    assert_eq!(finding.impact.wall, Some(Duration::from_secs(30)));
    // Dynamic allocation from nothing asks for executors with the first job.
    let mut dynamic = started_late(50, 55);
    dynamic.configuration.set("spark.dynamicAllocation.enabled", "true");
    assert!(findings(&dynamic, Rule::ColdStart).is_empty());
}

#[test]
fn no_executor_ever() {
    let mut application = run(60);
    application.executors.clear();
    job(&mut application, 0, 5_000, None);
    application.state = State::Running;
    application.end = None;
    let finding = only(&application, Rule::ColdStart);
    assert_eq!(finding.cause, Some(Cause::NoExecutor));
    assert!(finding.severity >= Severity::Warning);
    application.data_quality.insert(DataQuality::EndpointsMissing);
    assert!(findings(&application, Rule::ColdStart).is_empty(), "they may be there");
}

#[test]
fn of_a_stream_that_runs_for_days_the_start_is_old() {
    let mut application = started_late(2, 45);
    application.kind = Kind::Interactive;
    assert_eq!(only(&application, Rule::ColdStart).severity, Severity::Info);
    application.kind = Kind::Streaming;
    application.end = Some(at(7_200_000));
    assert!(findings(&application, Rule::ColdStart).is_empty());
}

/// Jobs at 0 to 20 s, 34 to 50 s and 52 s to the end at 60 s.
fn with_gaps() -> Application {
    let mut application = run(60);
    job(&mut application, 0, 0, Some(20_000));
    job(&mut application, 1, 34_000, Some(50_000));
    job(&mut application, 2, 52_000, Some(60_000));
    application
}

fn open(application: &mut Application, id: u64, from: i64, to: i64, jobs: &[u32]) {
    let mut execution = SqlExecution::new(id);
    execution.status = SqlStatus::Completed;
    execution.start = Some(at(from));
    execution.end = Some(at(to));
    execution.job_ids = jobs.to_vec();
    application.sql.get_or_insert_default().push(execution);
}

fn part(application: &Application, name: &str) -> f64 {
    let finding = only(application, Rule::DriverGap);
    let found = finding.evidence.iter().find(|evidence| evidence.name == name);
    found.map_or(0.0, |evidence| evidence.value)
}

#[test]
fn gaps_between_jobs() {
    let application = with_gaps();
    let finding = only(&application, Rule::DriverGap);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.impact.wall, Some(Duration::from_secs(16)));
    assert_eq!(finding.impact.core, Some(Duration::from_secs(64)));
    assert!(finding.headline.contains("between job 0 and job 1"), "{}", finding.headline);
    assert!((part(&application, "program") - 16.0).abs() < 1e-9);
    let mut shorter = with_gaps();
    shorter.jobs[1].submitted = Some(at(27_000));
    assert!(findings(&shorter, Rule::DriverGap).is_empty(), "9 s");
    let mut overlapping = with_gaps();
    job(&mut overlapping, 3, 10_000, Some(40_000));
    assert!(findings(&overlapping, Rule::DriverGap).is_empty(), "another job ran");
}

#[test]
fn what_the_driver_did_in_the_gap() {
    let mut application = with_gaps();
    open(&mut application, 0, 22_000, 51_000, &[1]);
    open(&mut application, 1, 51_500, 60_000, &[2]);
    // 20 to 22 s and half a second of the program, 12 s and half a second
    // before first jobs, one second after the last.
    assert!((part(&application, "program") - 2.5).abs() < 1e-9);
    assert!((part(&application, "query_planning") - 12.5).abs() < 1e-9);
    assert!((part(&application, "commit") - 1.0).abs() < 1e-9);
    let mut commands = with_gaps();
    open(&mut commands, 0, 21_000, 33_000, &[]);
    assert!((part(&commands, "command") - 12.0).abs() < 1e-9);
}

#[test]
fn waiting_for_data_or_people_is_no_gap() {
    let mut application = with_gaps();
    application.kind = Kind::Streaming;
    assert!(findings(&application, Rule::DriverGap).is_empty());
    application.kind = Kind::Interactive;
    assert!(findings(&application, Rule::DriverGap).is_empty(), "no query was open");
    open(&mut application, 0, 20_500, 51_000, &[1]);
    assert_eq!(findings(&application, Rule::DriverGap).len(), 1, "a query was");
    let mut holes = with_gaps();
    holes.data_quality.insert(DataQuality::StagesEvicted);
    assert!(findings(&holes, Rule::DriverGap).is_empty(), "jobs may be missing");
}

/// Done after 20 s and still there.
fn left_running(minutes: i64) -> Application {
    let mut application = run(20 + minutes * 60);
    job(&mut application, 0, 0, Some(20_000));
    application.state = State::Running;
    application.end = None;
    application.source = Source::Driver;
    application
}

#[test]
fn done_and_still_there() {
    let application = left_running(16);
    let finding = only(&application, Rule::ApplicationIdle);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.impact.core, Some(Duration::from_secs(4 * 16 * 60)));
    assert_eq!(fired(&application).len(), 1, "neither a gap nor idle cores besides");
    assert!(findings(&left_running(14), Rule::ApplicationIdle).is_empty());
    for kind in [Kind::Streaming, Kind::Interactive] {
        let mut application = left_running(60);
        application.kind = kind;
        assert!(findings(&application, Rule::ApplicationIdle).is_empty());
    }
    let mut busy = left_running(16);
    job(&mut busy, 1, 30_000, None);
    assert!(findings(&busy, Rule::ApplicationIdle).is_empty());
    let mut ended = left_running(16);
    ended.state = State::Succeeded;
    assert!(findings(&ended, Rule::ApplicationIdle).is_empty());
    let mut bare = left_running(16);
    for executor in &mut bare.executors {
        executor.removed = Some(at(60_000));
    }
    assert_eq!(only(&bare, Rule::ApplicationIdle).severity, Severity::Info, "nothing held");
}

/// Of eight tasks four ended within 2 s; `active` run since, `minutes` long.
fn stuck(minutes: i64, active: u64) -> Application {
    let mut application = run(10 + minutes * 60);
    warm_up(&mut application);
    let now = 10_000 + minutes * 60_000;
    let spec = task(1_000).shuffled(10_000, 1_000_000);
    let stage = stage(&mut application, 1, 5_000, tasks(4, &spec));
    stage.status = StageStatus::Active;
    stage.completed = None;
    stage.last_progress = Some(at(10_000));
    stage.tasks.total = 8;
    stage.tasks.active = active;
    stage.job_ids = vec![0];
    stage.running = (0..active).map(|id| running_task(&task(0), 6_000, now, id)).collect();
    job(&mut application, 0, 0, None);
    application.state = State::Running;
    application.end = None;
    application.source = Source::Driver;
    application
}

#[test]
fn nothing_of_a_stage_gets_on() {
    let finding = only(&stuck(16, 4), Rule::StuckStage);
    assert!(finding.severity >= Severity::Warning);
    assert!(finding.headline.contains("4 tasks running"), "{}", finding.headline);
    assert!(findings(&stuck(14, 4), Rule::StuckStage).is_empty());
    // Nobody launches what there is.
    let finding = only(&stuck(16, 2), Rule::StuckStage);
    assert!(
        finding.headline.contains("2 tasks waiting beside 2 free slots"),
        "{}",
        finding.headline
    );
}

#[test]
fn long_is_not_stuck() {
    let mut reading = stuck(16, 4);
    let now = reading.observed;
    reading.stages[1].last_progress = Some(now);
    assert!(findings(&reading, Rule::StuckStage).is_empty(), "it told of rows");
    // Tasks that take ten minutes each: a quarter of an hour is nothing.
    let mut long = stuck(16, 4);
    let quantiles = long.stages[1].measures.run_time.quantiles.as_mut().expect("quantiles");
    quantiles.p95 = Duration::from_mins(10);
    assert!(findings(&long, Rule::StuckStage).is_empty());
    let mut first = stuck(16, 4);
    first.stages[1].tasks.succeeded = 0;
    first.stages[1].tasks.total = 4;
    assert_eq!(only(&first, Rule::StuckStage).severity, Severity::Info, "none ever ended");
    let mut remnant = stuck(16, 4);
    remnant.jobs[0].completed = Some(at(20_000));
    remnant.jobs[0].status = crate::model::JobStatus::Succeeded;
    assert!(findings(&remnant, Rule::StuckStage).is_empty(), "its job is over");
    let mut alone = stuck(16, 0);
    for executor in &mut alone.executors {
        executor.removed = Some(at(20_000));
    }
    assert!(findings(&alone, Rule::StuckStage).is_empty(), "no executor is another story");
}

/// Four cores for ten minutes, of which tasks held `busy` seconds each.
fn used_for(busy: u64) -> Application {
    let mut application = run(600);
    job(&mut application, 0, 0, Some(600_000));
    stage(&mut application, 0, 0, tasks(4, &task(busy * 1_000).shuffled(10_000, 1_000_000)));
    application
}

#[test]
fn cores_without_work() {
    let finding = only(&used_for(200), Rule::IdleCores);
    assert_eq!(finding.severity, Severity::Warning);
    let core = finding.impact.core.expect("core-seconds").as_secs();
    assert!((1_590..=1_600).contains(&core), "{core}");
    assert!(findings(&used_for(400), Rule::IdleCores).is_empty(), "two thirds used");
    let mut streaming = used_for(200);
    streaming.kind = Kind::Streaming;
    assert_eq!(only(&streaming, Rule::IdleCores).severity, Severity::Info);
    let mut short = used_for(50);
    short.end = Some(at(280_000));
    assert!(findings(&short, Rule::IdleCores).is_empty(), "below 5 min");
    let mut omitted = used_for(200);
    omitted.data_quality.insert(DataQuality::StagesOmitted);
    assert!(findings(&omitted, Rule::IdleCores).is_empty());
}

#[test]
fn of_a_stream_the_last_hour_counts() {
    // Idle for two hours, and busy in the last.
    let mut application = run(3 * 3_600);
    application.kind = Kind::Streaming;
    job(&mut application, 0, 0, None);
    stage(&mut application, 0, 7_200_000, tasks(4, &task(3_500_000).shuffled(10_000, 1_000_000)));
    assert!(findings(&application, Rule::IdleCores).is_empty());
    application.kind = Kind::Batch;
    assert_eq!(findings(&application, Rule::IdleCores).len(), 1);
}
