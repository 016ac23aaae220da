//! The derived numbers of stages and runs, and what bounds them all.

use std::time::Duration;

use crate::diagnose::builders::{
    as_rest, at, diagnosis, executor, findings, run, stage, task, tasks, warm_up,
};
use crate::diagnose::{Rule, StageNumbers};
use crate::model::{Application, FailureClass, StageId};

fn numbers(application: &Application, stage: u32) -> StageNumbers {
    diagnosis(application).stages[&StageId { stage, attempt: 0 }]
}

fn near(value: Option<f64>, expected: f64) {
    let value = value.expect("a number");
    assert!((value - expected).abs() < 0.01 * expected.abs(), "{value} for {expected}");
}

#[test]
fn ratios_of_few_and_of_many_tasks() {
    let mut application = run(60);
    let mut specs = tasks(3, &task(1_000).shuffled(100, 2_000));
    specs.push(task(6_000).shuffled(900, 3_000));
    stage(&mut application, 0, 0, &specs);
    specs.extend(tasks(8, &task(2_000).shuffled(300, 2_000)));
    stage(&mut application, 1, 10_000, specs);
    // Four tasks: against the mean of the other three.
    let few = numbers(&application, 0);
    near(few.run_time_ratio, 6.0);
    near(few.records_ratio, 9.0);
    near(few.bytes_ratio, 1.5);
    // Twelve: against the median.
    let many = numbers(&application, 1);
    near(many.run_time_ratio, 3.0);
    near(many.records_ratio, 3.0);
    // REST has no quantiles of input and shuffle records together.
    near(numbers(&as_rest(&application), 1).records_ratio, 3.0);
}

#[test]
fn a_single_task_and_a_median_of_nothing_have_no_ratio() {
    let mut application = run(60);
    stage(&mut application, 0, 0, tasks(1, &task(1_000)));
    let mut specs = tasks(20, &task(0));
    specs.push(task(900));
    stage(&mut application, 1, 10_000, specs);
    assert_eq!(numbers(&application, 0).run_time_ratio, None);
    assert_eq!(numbers(&application, 1).run_time_ratio, None);
    assert_eq!(numbers(&application, 1).bytes_ratio, None);
}

#[test]
fn cores_are_averaged_over_the_time_that_tasks_ran() {
    let mut application = run(60);
    // A third executor for the second half of a stage of 20 s.
    application.executors.push(executor("3", "host-c", 4));
    application.executors[2].added = Some(at(10_000));
    let mut spec = task(10_000).scanned(1_000, 80_000_000);
    spec.overhead = 0;
    let mut specs = tasks(4, &spec.clone().on(0));
    specs.extend(tasks(4, &spec.on(1)));
    stage(&mut application, 0, 0, specs);
    let numbers = numbers(&application, 0);
    assert_eq!(numbers.running, Some(Duration::from_secs(20)));
    near(numbers.cores, 6.0);
    near(numbers.io_per_core.input, 8.0 * 80e6 / (6.0 * 20.0));
    let totals = diagnosis(&application).totals;
    assert_eq!(totals.peak_cores, Some(8));
    assert_eq!(totals.bought, Some(Duration::from_secs(4 * 60 + 4 * 50)));
    assert_eq!(totals.used, Some(Duration::from_secs(80)));
}

#[test]
fn a_removed_executor_is_paid_until_it_went() {
    let mut application = run(60);
    application.executors[0].removed = Some(at(30_000));
    assert_eq!(diagnosis(&application).totals.bought, Some(Duration::from_mins(3)));
    application.executors.clear();
    assert_eq!(diagnosis(&application).totals.bought, None);
}

#[test]
fn failures_count_without_kills() {
    let mut application = run(60);
    let spec = task(1_000);
    let mut specs = tasks(6, &spec);
    specs.extend(tasks(2, &spec.clone().failed(FailureClass::Exception)));
    specs.extend(tasks(2, &spec.failed(FailureClass::Killed)));
    stage(&mut application, 0, 0, specs);
    near(numbers(&application, 0).task_failure_ratio, 0.2);
    near(diagnosis(&application).totals.task_failure_ratio, 0.2);
}

#[test]
fn a_task_of_two_cores_takes_two_slots() {
    // Two executors of two cores run two tasks at once: three tasks are two
    // waves, and no core is idle before the last.
    let mut application = run(60);
    application.configuration.set("spark.task.cpus", "2");
    warm_up(&mut application);
    stage(&mut application, 1, 5_000, tasks(3, &task(10_000).shuffled(1_000, 1_000)));
    assert!(findings(&application, Rule::Partitioning).is_empty(), "3 tasks on 2 slots");
    stage(&mut application, 2, 30_000, tasks(1, &task(25_000).shuffled(1_000, 1_000)));
    let found = findings(&application, Rule::Partitioning);
    assert_eq!(found.len(), 1);
    assert!(found[0].headline.contains("1 task on 2 slots"), "{}", found[0].headline);
    let core = found[0].impact.core.expect("core time").as_secs_f64();
    assert!((core - 50.0).abs() < 1.0, "{core}: 2 slots of 2 cores, 12.5 s less");
}

#[test]
fn findings_have_a_bound() {
    let mut application = run(60);
    for id in 0..1_200 {
        let spec = task(10).shuffled(100, 1_000).with(|metrics| {
            metrics.disk_spilled_bytes = 100 << 20;
        });
        stage(&mut application, id, i64::from(id) * 40, tasks(4, &spec));
    }
    let diagnosis = diagnosis(&application);
    assert_eq!((diagnosis.findings.len(), diagnosis.findings_omitted), (1_000, 200));
}
