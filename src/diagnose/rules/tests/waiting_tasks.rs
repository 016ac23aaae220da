//! `scheduling_delay`, and what it is not.

use std::time::Duration;

use crate::diagnose::builders::{
    as_rest, at, diagnosis, findings, fired, only, run, stage, task, tasks, warm_up,
};
use crate::diagnose::{Cause, Rule, Severity};
use crate::model::{Application, DataQuality};

/// Submitted at 1 s; executors come after `seconds`.
fn late_executors(seconds: i64) -> Application {
    let mut application = run(60);
    for executor in &mut application.executors {
        executor.added = Some(at(seconds * 1_000));
    }
    stage(&mut application, 0, 1_000, tasks(40, &task(1_000).shuffled(10_000, 1_000_000)));
    application
}

#[test]
fn nobody_there_to_run_tasks() {
    let application = late_executors(21);
    let finding = only(&application, Rule::SchedulingDelay);
    assert_eq!(finding.cause, Some(Cause::NoExecutors));
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.impact.wall, Some(Duration::from_secs(20)));
    assert_eq!(only(&as_rest(&application), Rule::SchedulingDelay).cause, Some(Cause::NoExecutors));
    assert!(findings(&late_executors(9), Rule::SchedulingDelay).is_empty(), "below 10 s");
}

#[test]
fn a_stage_that_waits_for_its_sibling_is_not_delayed() {
    // Both submitted together; the second gets its first task after 20 s.
    let mut application = run(60);
    warm_up(&mut application);
    let spec = task(1_000).shuffled(10_000, 1_000_000);
    stage(&mut application, 1, 2_000, tasks(80, &spec));
    let second = stage(&mut application, 2, 22_200, tasks(40, &spec));
    second.submitted = Some(at(2_000));
    assert_eq!(fired(&application), vec![]);
    let delay = diagnosis(&application)
        .stages
        .into_values()
        .nth(2)
        .and_then(|stage| stage.scheduling_delay)
        .expect("known");
    assert!(delay < Duration::from_millis(200), "{delay:?}");
    // From REST the sibling's cores are not known to be free either.
    assert!(findings(&as_rest(&application), Rule::SchedulingDelay).is_empty());
}

/// Eight cached partitions on one executor, the other idle.
fn cached_on_one(wait: &str) -> Application {
    let mut application = run(60);
    application.configuration.set("spark.locality.wait", wait);
    warm_up(&mut application);
    let spec = task(5_000).scanned(10_000, 1_000_000).on(0);
    stage(&mut application, 1, 2_000, tasks(12, &spec));
    application
}

#[test]
fn tasks_wait_for_their_data_beside_a_free_executor() {
    let application = cached_on_one("10s");
    let finding = only(&application, Rule::SchedulingDelay);
    assert_eq!(finding.cause, Some(Cause::Locality));
    assert!(finding.advice.first().expect("advice").change.contains("spark.locality.wait"));
    // 60 s of work on 2 slots instead of 4.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((wall - 15.0).abs() < 1.0, "{wall}");
    assert_eq!(fired(&application).len(), 1, "no skew, no straggler");
    assert_eq!(
        only(&cached_on_one("0s"), Rule::SchedulingDelay).cause,
        Some(Cause::Unknown),
        "nobody waits for locality here"
    );
}

#[test]
fn what_is_missing_keeps_it_silent() {
    for quality in [
        DataQuality::LogCompacted,
        DataQuality::DroppedEvents,
        DataQuality::StagesEvicted,
        DataQuality::StagesOmitted,
    ] {
        let mut application = late_executors(21);
        application.data_quality.insert(quality);
        assert!(findings(&application, Rule::SchedulingDelay).is_empty());
        let numbers = diagnosis(&application).stages.into_values().next().expect("a stage");
        assert_eq!(numbers.scheduling_delay, None);
    }
}
