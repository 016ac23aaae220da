//! `data_skew` and `straggler`.

use std::time::Duration;

use crate::config::Thresholds;
use crate::diagnose::builders::{
    as_rest, at, diagnosis, findings, fired, only, run, running_task, stage, task, tasks, warm_up,
};
use crate::diagnose::{Cause, Confidence, Rule, Severity, Unit, diagnose, humane};
use crate::model::{Application, DataQuality, StageStatus, State};

/// 16 tasks of 2 s, one of 40 s with 20 times the records and bytes.
fn hot_key() -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000).shuffled(10_000, 1_000_000));
    specs.push(task(40_000).shuffled(200_000, 20_000_000));
    stage(&mut application, 1, 2_000, specs);
    application
}

#[test]
fn a_hot_key_is_skew() {
    let application = hot_key();
    let finding = only(&application, Rule::DataSkew);
    assert_eq!(finding.cause, Some(Cause::HotKey));
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.confidence, Confidence::High);
    // 70 s of work on 4 slots take 18 s at best; the stage took 48.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((24.0..34.0).contains(&wall), "{wall}");
    let core = finding.impact.core.expect("core time").as_secs_f64();
    assert!(core > 3.0 * wall && core <= 4.0 * wall + 0.1, "{core}");
    assert_eq!(
        finding.headline,
        format!(
            "Stage 1.0: one task ran 40 s, 20x the median of 16 tasks, and had 20x the records: {} could \
             be saved",
            humane::duration(finding.impact.wall.expect("a saving"))
        )
    );
    let ratio = finding.evidence.iter().find(|evidence| evidence.name == "records_ratio");
    assert_eq!(ratio.map(|evidence| evidence.threshold), Some(Some(2.0)));
    assert!(findings(&application, Rule::Straggler).is_empty());
}

#[test]
fn the_same_skew_without_work_is_not_worth_saying() {
    // As skewed in records, but the tasks take milliseconds.
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(5).shuffled(10_000, 1_000_000));
    specs.push(task(120).shuffled(200_000, 20_000_000));
    stage(&mut application, 1, 2_000, specs);
    assert_eq!(fired(&application), vec![]);
}

#[test]
fn three_times_the_median_is_a_near_miss() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(5_000).shuffled(10_000, 1_000_000));
    specs.push(task(19_000).shuffled(200_000, 20_000_000));
    stage(&mut application, 1, 2_000, specs);
    assert!(findings(&application, Rule::DataSkew).is_empty());
}

#[test]
fn few_tasks_are_held_against_the_mean_of_the_others() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(4, &task(3_000).shuffled(10_000, 1_000_000));
    specs.push(task(30_000).shuffled(90_000, 9_000_000));
    stage(&mut application, 1, 2_000, specs);
    let finding = only(&application, Rule::DataSkew);
    assert!(finding.headline.contains("10x the mean of the other 4"), "{}", finding.headline);
    assert_eq!(finding.confidence, Confidence::Medium);
}

#[test]
fn rows_that_compress_hide_from_bytes() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000).shuffled(10_000, 1_000_000));
    specs.push(task(40_000).shuffled(800_000, 3_000_000));
    stage(&mut application, 1, 2_000, specs);
    let finding = only(&application, Rule::DataSkew);
    assert_eq!(finding.cause, Some(Cause::CompressibleHotKey));
    let first = finding.advice.first().expect("advice");
    assert!(first.change.starts_with("Salt"), "{first:?}");
}

#[test]
fn uneven_files_get_no_advice_about_keys() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(48, &task(200).scanned(1_000, 100_000));
    specs.push(task(30_000).scanned(2_000_000, 200_000_000));
    stage(&mut application, 1, 2_000, specs).operations = vec!["Scan csv ".into()];
    let finding = only(&application, Rule::DataSkew);
    assert_eq!(finding.cause, Some(Cause::InputFiles));
    for advice in &finding.advice {
        let text = advice.change.to_lowercase();
        assert!(!text.contains("salt") && !text.contains("adaptive"), "{text}");
    }
    assert!(finding.headline.contains("Scan csv"), "{}", finding.headline);
}

#[test]
fn an_in_memory_scan_counts_batches() {
    // 4 batches against 1 look like 4x the records; the bytes are even.
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000).scanned(1_000, 50_000_000));
    specs.push(task(40_000).scanned(4_000, 52_000_000));
    let stage = stage(&mut application, 1, 2_000, specs);
    stage.reads_cache = Some(true);
    stage.operations = vec!["InMemoryTableScan".into()];
    assert!(findings(&application, Rule::DataSkew).is_empty());
    let finding = only(&application, Rule::Straggler);
    assert!(finding.evidence.iter().any(|evidence| evidence.name == "bytes_ratio"));
}

#[test]
fn all_rows_in_one_partition() {
    // The median partition is empty: no ratio of records, and skew all the same.
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(199, &task(4));
    specs.push(task(40_000).shuffled(500_000, 5_000_000));
    stage(&mut application, 1, 2_000, specs);
    assert_eq!(only(&application, Rule::DataSkew).cause, Some(Cause::HotKey));
}

#[test]
fn cold_executors_are_neither_skew_nor_loud() {
    // 40 equal tasks; the first on each slot take 10 times the median.
    let mut application = run(40);
    let even = task(900).shuffled(10_000, 1_000_000);
    let mut specs = tasks(4, &task(9_000).shuffled(10_000, 1_000_000));
    specs.extend(tasks(40, &even));
    stage(&mut application, 0, 1_000, specs);
    assert!(findings(&application, Rule::DataSkew).is_empty());
    for finding in diagnosis(&application).findings {
        assert_eq!(
            (finding.rule, finding.cause, finding.severity),
            (Rule::Straggler, Some(Cause::ColdExecutor), Severity::Info)
        );
    }
}

#[test]
fn thousands_of_tiny_tasks_are_quiet() {
    let mut application = run(30);
    let mut specs = tasks(4, &task(710).shuffled(10, 1_000));
    specs.extend(tasks(3_996, &task(2).shuffled(10, 1_000)));
    stage(&mut application, 0, 1_000, specs);
    let diagnosis = diagnosis(&application);
    let ratio = diagnosis.stages.values().next().and_then(|stage| stage.run_time_ratio);
    assert_eq!(ratio, Some(355.0));
    assert_eq!(diagnosis.findings, vec![]);
}

#[test]
fn equal_records_make_a_straggler() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000).shuffled(10_000, 1_000_000));
    specs.push(task(40_000).shuffled(11_000, 1_100_000));
    stage(&mut application, 1, 2_000, specs);
    let finding = only(&application, Rule::Straggler);
    assert_eq!(finding.cause, Some(Cause::Unknown));
    assert_eq!(finding.severity, Severity::Warning);
    assert!(findings(&application, Rule::DataSkew).is_empty());
}

#[test]
fn a_straggler_that_collected_garbage() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000).shuffled(10_000, 1_000_000));
    specs.push(
        task(40_000)
            .shuffled(11_000, 1_100_000)
            .with(|metrics| metrics.gc_time = Duration::from_secs(30)),
    );
    stage(&mut application, 1, 2_000, specs);
    assert_eq!(only(&application, Rule::Straggler).cause, Some(Cause::Gc));
    application.data_quality.insert(DataQuality::ConcurrentGc);
    assert_eq!(only(&application, Rule::Straggler).cause, Some(Cause::Unknown));
}

#[test]
fn a_straggler_that_waited_for_blocks() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000).shuffled(10_000, 1_000_000));
    specs.push(
        task(40_000)
            .shuffled(11_000, 1_100_000)
            .with(|metrics| metrics.fetch_wait_time = Duration::from_secs(33)),
    );
    stage(&mut application, 1, 2_000, specs);
    assert_eq!(only(&application, Rule::Straggler).cause, Some(Cause::FetchWait));
}

#[test]
fn a_host_that_is_slow_in_three_stages() {
    let mut application = run(120);
    warm_up(&mut application);
    for id in 1..=3 {
        let mut specs = tasks(10, &task(1_000).shuffled(10_000, 1_000_000).on(0));
        specs.extend(tasks(2, &task(6_000).shuffled(10_000, 1_000_000).on(1)));
        stage(&mut application, id, i64::from(id) * 20_000, specs);
    }
    let found = findings(&application, Rule::Straggler);
    assert_eq!(found.len(), 3);
    for finding in found {
        assert_eq!(finding.cause, Some(Cause::SlowHost));
        assert!(finding.headline.contains("host-b"), "{}", finding.headline);
    }
    // On one host there is nothing to compare with.
    for executor in &mut application.executors {
        executor.host = "host-a".into();
    }
    for stage in &mut application.stages {
        for task in &mut stage.slowest {
            task.host = "host-a".into();
        }
    }
    assert!(
        findings(&application, Rule::Straggler)
            .iter()
            .all(|finding| finding.cause != Some(Cause::SlowHost))
    );
}

#[test]
fn from_rest_it_is_the_same_verdict_and_says_estimated() {
    let log = hot_key();
    let rest = as_rest(&log);
    let (exact, estimate) = (only(&log, Rule::DataSkew), only(&rest, Rule::DataSkew));
    assert_eq!(estimate.cause, exact.cause);
    assert!(estimate.impact.estimated && !exact.impact.estimated);
    assert!(estimate.confidence < exact.confidence);
    assert!(estimate.headline.contains("(estimated)"), "{}", estimate.headline);
    let seconds =
        |finding: &crate::diagnose::Finding| finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((seconds(&estimate) / seconds(&exact) - 1.0).abs() < 0.2);
}

/// 15 tasks have ended, one runs for 30 s already.
fn still_running(records: u64) -> Application {
    let mut application = run(40);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(15, &task(2_000).shuffled(10_000, 1_000_000)));
    let stage = application.stages.last_mut().expect("a stage");
    stage.status = StageStatus::Active;
    stage.completed = None;
    stage.tasks.active = 1;
    stage.tasks.total = 16;
    // Heartbeats carry records, but no run time.
    let hot = task(0).shuffled(records, records * 100);
    stage.running = vec![running_task(&hot, 10_000, 40_000, 900)];
    application.state = State::Running;
    application.end = None;
    application.observed = at(40_000);
    as_rest(&application)
}

#[test]
fn a_hot_key_shows_while_its_task_runs() {
    let application = still_running(150_000);
    let finding = only(&application, Rule::DataSkew);
    assert!(finding.impact.estimated);
    assert!(finding.severity >= Severity::Warning, "{finding:?}");
    assert!(finding.headline.contains("has run for 30 s"), "{}", finding.headline);
}

#[test]
fn a_running_task_of_unknown_records_is_not_called_skewed() {
    let application = still_running(0);
    assert!(findings(&application, Rule::DataSkew).is_empty());
    assert_eq!(only(&application, Rule::Straggler).confidence, Confidence::Low);
    // Nor one that read as much as the others.
    assert!(findings(&still_running(11_000), Rule::DataSkew).is_empty());
}

#[test]
fn run_time_multiplied_by_task_cpus_is_divided_again() {
    let mut application = run(60);
    application.configuration.set("spark.task.cpus", "2");
    application.configuration.set("test.multiplies", "true");
    warm_up(&mut application);
    let mut specs = tasks(15, &task(4_000).shuffled(10_000, 1_000_000));
    specs.push(task(60_000).shuffled(200_000, 20_000_000));
    stage(&mut application, 1, 2_000, specs);
    let finding = only(&application, Rule::DataSkew);
    let run_time = finding.evidence.iter().find(|evidence| evidence.name == "run_time");
    assert_eq!(
        run_time.map(|evidence| (evidence.value, evidence.unit)),
        Some((30.0, Unit::Seconds))
    );
}

#[test]
fn rules_can_be_switched_off_and_moved() {
    let application = hot_key();
    let mut thresholds = Thresholds::default();
    thresholds.data_skew.enabled = false;
    let rules = |thresholds: &Thresholds| -> Vec<Rule> {
        diagnose(&application, thresholds).findings.iter().map(|finding| finding.rule).collect()
    };
    assert!(!rules(&thresholds).contains(&Rule::DataSkew));
    thresholds.data_skew.enabled = true;
    thresholds.data_skew.run_time_ratio = 25.0;
    assert!(!rules(&thresholds).contains(&Rule::DataSkew));
}

#[test]
fn dropped_events_keep_comparisons_silent() {
    let mut application = hot_key();
    application.data_quality.insert(DataQuality::DroppedEvents);
    assert!(findings(&application, Rule::DataSkew).is_empty());
    assert!(findings(&application, Rule::Straggler).is_empty());
}

#[test]
fn tasks_of_an_engine_that_does_not_count_are_no_stragglers() {
    let mut application = run(60);
    warm_up(&mut application);
    let mut specs = tasks(15, &task(2_000));
    specs.push(task(40_000));
    stage(&mut application, 1, 2_000, specs);
    assert!(!findings(&application, Rule::Straggler).is_empty());
    application.data_quality.insert(DataQuality::Databricks);
    assert!(findings(&application, Rule::Straggler).is_empty(), "skew looks the same there");
}
