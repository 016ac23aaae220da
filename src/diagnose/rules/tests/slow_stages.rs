//! `spill`, `gc_pressure`, `io_bound`, `partitioning`.

use std::time::Duration;

use crate::diagnose::builders::{
    as_rest, diagnosis, findings, fired, only, run, running_task, stage, task, tasks, warm_up,
};
use crate::diagnose::{Confidence, FindingKind, Impact, Rule, Severity};
use crate::model::{Application, DataQuality, Measures, StageStatus, State, TaskCounts};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn spilling(disk: u64, moved: u64, spillers: usize) -> Application {
    let mut application = run(100);
    warm_up(&mut application);
    let n = 16;
    let even = task(10_000).shuffled(1_000_000, moved / n as u64);
    let mut specs = tasks(n - spillers, &even);
    specs.extend(tasks(
        spillers,
        &even.with(|metrics| {
            metrics.disk_spilled_bytes = disk / spillers as u64;
            metrics.memory_spilled_bytes = 4 * disk / spillers as u64;
        }),
    ));
    stage(&mut application, 1, 2_000, specs);
    application
}

#[test]
fn spill_is_judged_by_bytes_and_share() {
    for (disk, moved, severity) in [
        (20 * MIB, GIB, Some(Severity::Info)),
        (2 * GIB, 10 * GIB, Some(Severity::Warning)),
        (12 * GIB, 40 * GIB, Some(Severity::Critical)),
        // Much, and a hundredth of what moved.
        (2 * GIB, 400 * GIB, None),
        // A large share of little.
        (8 * MIB, 10 * MIB, None),
    ] {
        let found = findings(&spilling(disk, moved, 16), Rule::Spill);
        assert_eq!(found.first().map(|finding| finding.severity), severity, "{disk} of {moved}");
    }
}

#[test]
fn spill_costs_no_known_time_and_says_who_spilled() {
    let most = only(&spilling(2 * GIB, 10 * GIB, 16), Rule::Spill);
    assert_eq!(most.impact, Impact::default());
    assert_eq!(most.confidence, Confidence::Low);
    assert!(most.headline.contains("most of its partitions"), "{}", most.headline);
    let few = only(&spilling(2 * GIB, 10 * GIB, 1), Rule::Spill);
    assert!(few.headline.contains("a few of its partitions"), "{}", few.headline);
    assert_eq!(few.kind, FindingKind::Data);
}

fn collecting(gc_share: f64, task_ms: u64) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    let spec = task(task_ms).shuffled(10_000, MIB).with(|metrics| {
        metrics.gc_time = Duration::from_millis((task_ms as f64 * gc_share) as u64);
    });
    let n = (160_000 / task_ms) as usize;
    stage(&mut application, 1, 2_000, tasks(n, &spec));
    application
}

#[test]
fn gc_pressure_saves_the_excess() {
    let finding = only(&collecting(0.30, 4_000), Rule::GcPressure);
    assert_eq!(finding.severity, Severity::Warning);
    // 160 s of run time on 4 slots, 30 % of it collecting, 5 % of it healthy.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((wall - 10.0).abs() < 0.5, "{wall}");
    let core = finding.impact.core.expect("core time").as_secs_f64();
    assert!((core - 40.0).abs() < 0.5, "{core}");
}

#[test]
fn gc_pressure_near_misses() {
    assert!(findings(&collecting(0.09, 4_000), Rule::GcPressure).is_empty());
    // Tasks too short to judge.
    assert!(findings(&collecting(0.30, 80), Rule::GcPressure).is_empty());
    let mut zgc = collecting(0.30, 4_000);
    zgc.configuration.set("spark.executor.extraJavaOptions", "-XX:+UseZGC");
    assert!(findings(&zgc, Rule::GcPressure).is_empty());
    assert!(diagnosis(&zgc).stages.values().all(|stage| stage.gc_ratio.is_none()));
    let mut flagged = collecting(0.30, 4_000);
    flagged.data_quality.insert(DataQuality::ConcurrentGc);
    assert!(findings(&flagged, Rule::GcPressure).is_empty());
}

#[test]
fn gc_below_a_fifth_is_never_critical() {
    let mut application = run(4_000);
    warm_up(&mut application);
    let spec = |share: u32| {
        task(1_000_000).shuffled(10_000, MIB).with(move |metrics| {
            metrics.gc_time = Duration::from_secs(10) * share;
        })
    };
    stage(&mut application, 1, 2_000, tasks(12, &spec(40)));
    assert_eq!(only(&application, Rule::GcPressure).severity, Severity::Critical);
    application.stages.pop();
    stage(&mut application, 1, 2_000, tasks(12, &spec(19)));
    assert_eq!(only(&application, Rule::GcPressure).severity, Severity::Warning);
}

fn scanning(cpu_share: f64, bytes: u64) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    let spec = task(10_000).scanned(100_000, bytes).with(|metrics| {
        metrics.cpu_time = Duration::from_secs_f64(10.0 * cpu_share);
    });
    stage(&mut application, 1, 2_000, tasks(16, &spec)).operations = vec!["Scan text ".into()];
    application
}

#[test]
fn io_bound_is_cores_that_wait_for_bytes() {
    let finding = only(&scanning(0.1, 80_000_000), Rule::IoBound);
    assert!(finding.headline.contains("wait for input"), "{}", finding.headline);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.impact, Impact::default());
    // The rate itself: 80 MB a task of 10 s on a core.
    let application = scanning(0.1, 80_000_000);
    let numbers = diagnosis(&application).stages.into_values().nth(1).expect("the scan");
    let rate = numbers.io_per_core.input.expect("a rate");
    assert!((rate / 8e6 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_busy_scan_is_healthy() {
    assert!(findings(&scanning(0.9, 80_000_000), Rule::IoBound).is_empty());
    assert!(findings(&scanning(0.1, 20_000_000), Rule::IoBound).is_empty());
    let mut python = scanning(0.1, 80_000_000);
    for stage in &mut python.stages {
        stage.operations.push("ArrowEvalPython".into());
    }
    assert!(findings(&python, Rule::IoBound).is_empty());
    let mut shorter = scanning(0.1, 80_000_000);
    stage(&mut shorter, 2, 43_000, tasks(2, &task(45_000).shuffled(1_000, 1_000)));
    assert!(findings(&shorter, Rule::IoBound).is_empty(), "not the longest stage");
}

#[test]
fn one_task_in_the_longest_stage() {
    let mut application = run(60);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(1, &task(40_000).shuffled(1_000_000, 300 * MIB)));
    let finding = only(&application, Rule::Partitioning);
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((wall - 30.0).abs() < 1.0, "{wall}");
    assert!(finding.headline.contains("1 task on 4 slots"), "{}", finding.headline);
    assert_eq!(fired(&application).len(), 1, "nothing to compare: no skew");
    let advice = &finding.advice.first().expect("advice").change;
    assert!(advice.contains("300 MiB / 128 MiB = 3 and 4 slots x 3 waves = 12"), "{advice}");
}

#[test]
fn a_single_task_shows_while_it_runs() {
    let mut application = run(42);
    warm_up(&mut application);
    let spec = task(30_000).shuffled(1_000_000, 300 * MIB);
    let stage = stage(&mut application, 1, 2_000, tasks(1, &spec));
    stage.status = StageStatus::Active;
    stage.completed = None;
    stage.tasks = TaskCounts { total: 1, active: 1, ..TaskCounts::default() };
    stage.measures = Measures::default();
    stage.slowest.clear();
    stage.timeline = None;
    stage.running = vec![running_task(&spec, 2_000, 42_000, 900)];
    application.state = State::Running;
    application.end = None;
    let finding = only(&application, Rule::Partitioning);
    assert!(finding.impact.estimated);
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((wall - 30.0).abs() < 1.0, "{wall}");
}

#[test]
fn one_quick_task_is_no_finding() {
    let mut application = run(60);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(1, &task(400).shuffled(1_000, MIB)));
    assert!(findings(&application, Rule::Partitioning).is_empty());
}

#[test]
fn fewer_tasks_than_slots() {
    let mut application = run(60);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(3, &task(20_000).shuffled(1_000_000, 300 * MIB)));
    let finding = only(&application, Rule::Partitioning);
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((wall - 5.0).abs() < 0.2, "{wall}");
    application.stages.pop();
    stage(&mut application, 1, 2_000, tasks(4, &task(20_000).shuffled(1_000_000, 300 * MIB)));
    assert!(findings(&application, Rule::Partitioning).is_empty(), "as many as slots");
}

fn small_tasks(n: usize, run_ms: u64, overhead: u64) -> Application {
    let mut application = run(120);
    warm_up(&mut application);
    let mut spec = task(run_ms).shuffled(50, 1_000);
    spec.overhead = overhead;
    stage(&mut application, 1, 2_000, tasks(n, &spec));
    application
}

#[test]
fn many_small_tasks_only_where_launching_is_the_cost() {
    let finding = only(&small_tasks(6_000, 5, 15), Rule::Partitioning);
    assert!(finding.headline.contains("6,000 tasks"), "{}", finding.headline);
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    // 6,000 x 15 ms on 4 slots.
    assert!((wall - 22.5).abs() < 1.0, "{wall}");
    assert!(findings(&small_tasks(6_000, 60, 15), Rule::Partitioning).is_empty());
    assert!(findings(&small_tasks(4_000, 5, 15), Rule::Partitioning).is_empty());
    let rest = as_rest(&small_tasks(6_000, 5, 15));
    assert_eq!(findings(&rest, Rule::Partitioning).len(), 1);
}

#[test]
fn a_task_of_gigabytes() {
    let mut application = run(100);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(8, &task(30_000).scanned(1_000_000, 6 * GIB)));
    let finding = only(&application, Rule::Partitioning);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.headline.contains("6.0 GiB"), "{}", finding.headline);
    application.stages.pop();
    stage(&mut application, 1, 2_000, tasks(8, &task(30_000).scanned(1_000_000, 4 * GIB)));
    assert!(findings(&application, Rule::Partitioning).is_empty());
}
