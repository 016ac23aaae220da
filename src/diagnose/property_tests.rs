//! What holds for every run, the absurd included: nothing panics, numbers
//! are numbers, and no second is promised twice.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::builders::{diagnosis, run, running_task, stage, task, warm_up};
use super::{Diagnosis, Rule, Severity};
use crate::model::{Application, DataQuality, StageStatus, TaskSpan};

/// Sizes from nothing to the largest.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1_u64..1_000_000, any::<u64>()]
}

fn plausible() -> impl Strategy<Value = Application> {
    let one = (1_u64..20_000, 0_u64..100_000, 0_u64..50, any::<bool>());
    let tasks = proptest::collection::vec(one, 1..40);
    proptest::collection::vec((tasks, 0_i64..20_000), 1..6).prop_map(|stages| {
        let mut application = run(120);
        warm_up(&mut application);
        let mut from = 1_000;
        for (id, (specs, gap)) in stages.into_iter().enumerate() {
            let specs: Vec<_> = specs
                .into_iter()
                .map(|(run, records, gc, failed)| {
                    let spec = task(run).shuffled(records, records * 50).with(|metrics| {
                        metrics.gc_time = Duration::from_millis(run * gc / 100);
                    });
                    if failed { spec.failed(crate::model::FailureClass::Exception) } else { spec }
                })
                .collect();
            stage(&mut application, id as u32 + 1, from, specs);
            from += gap;
        }
        let end = application.stages.iter().filter_map(|stage| stage.completed).max();
        application.end = end.max(application.end);
        application
    })
}

/// A run whose numbers make no sense.
fn absurd() -> impl Strategy<Value = Application> {
    let times = proptest::collection::vec(-377_705_000_000_000_i64..253_402_000_000_000, 6);
    let spans = proptest::collection::vec(
        (any::<i64>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<bool>()),
        0..30,
    );
    (plausible(), times, spans, proptest::collection::vec(size(), 12), any::<[u32; 3]>(), 0..5_u8)
        .prop_map(|(mut application, times, spans, sizes, cores, status)| {
            let time = |i: usize| Timestamp::from_millisecond(times[i]).ok();
            application.start = time(0);
            application.end = time(1);
            application.observed = time(2).unwrap_or(application.observed);
            for (executor, cores) in application.executors.iter_mut().zip(cores) {
                executor.cores = cores;
                executor.added = time(3);
                executor.removed = time(4);
                executor.removed_reason = Some("exit code: -".into());
            }
            application
                .configuration
                .set("spark.task.cpus", ["0", "NaN", "1e300"][sizes.len() % 3]);
            let last = application.stages.len() - 1;
            let stage = &mut application.stages[last];
            stage.submitted = time(5);
            stage.first_task_launched = time(3);
            stage.completed = time(4);
            stage.status = [
                StageStatus::Active,
                StageStatus::Complete,
                StageStatus::Failed,
                StageStatus::Pending,
                StageStatus::Skipped,
            ][usize::from(status)];
            stage.tasks.total = sizes[0];
            stage.tasks.succeeded = sizes[1];
            stage.tasks.failed = sizes[2];
            stage.tasks.killed = sizes[3];
            stage.tasks.active = sizes[4];
            stage.failures =
                Some(BTreeMap::from([(crate::model::FailureClass::Unknown, sizes[5])]));
            stage.measures.run_time.sum = Some(Duration::from_secs(sizes[6]));
            stage.measures.gc_time.sum = Some(Duration::MAX);
            stage.measures.input_bytes.sum = Some(sizes[7]);
            stage.measures.disk_spilled_bytes.sum = Some(sizes[8]);
            if let Some(quantiles) = &mut stage.measures.run_time.quantiles {
                quantiles.median = Duration::from_nanos(sizes[9]);
                quantiles.max = Duration::MAX;
            }
            if let Some(slow) = stage.slowest.first_mut() {
                slow.metrics.run_time = Duration::MAX;
                slow.metrics.shuffle_read_records = u64::MAX;
                slow.duration = Duration::from_nanos(sizes[10]);
            }
            stage.running = vec![running_task(&task(5).shuffled(sizes[11], 1), 0, 1, 9)];
            stage.timeline = (sizes[11] % 2 == 0).then(|| {
                spans
                    .into_iter()
                    .map(|(launched_ms, duration_ms, run_ms, gc_ms, executor, succeeded)| {
                        TaskSpan {
                            launched_ms,
                            duration_ms,
                            run_ms,
                            deserialize_ms: gc_ms.rotate_left(3),
                            cpu_ms: run_ms.rotate_left(5),
                            gc_ms,
                            fetch_wait_ms: executor.rotate_left(7),
                            shuffle_write_ms: u32::MAX,
                            result_ms: duration_ms.rotate_left(9),
                            executor,
                            succeeded,
                        }
                    })
                    .collect()
            });
            application
        })
}

fn numbers_are_numbers(diagnosis: &Diagnosis) {
    for finding in &diagnosis.findings {
        for evidence in &finding.evidence {
            assert!(evidence.value.is_finite(), "{finding:?}");
            assert!(evidence.threshold.is_none_or(f64::is_finite), "{finding:?}");
        }
        assert!(!finding.headline.contains('\n') && !finding.headline.contains("NaN"));
        assert!(!finding.evidence.is_empty() && !finding.advice.is_empty(), "{finding:?}");
    }
    for stage in diagnosis.stages.values() {
        let numbers = [
            stage.cores,
            stage.run_time_ratio,
            stage.records_ratio,
            stage.bytes_ratio,
            stage.spill_ratio,
            stage.gc_ratio,
            stage.io_per_core.input,
            stage.io_per_core.shuffle_read,
            stage.task_failure_ratio,
        ];
        assert!(
            numbers.into_iter().flatten().all(|number| number.is_finite() && number >= 0.0),
            "{stage:?}"
        );
    }
}

fn nothing_is_promised_twice(application: &Application, diagnosis: &Diagnosis) {
    let sum = |stage: Option<crate::model::StageId>| {
        diagnosis
            .findings
            .iter()
            .filter(|finding| stage.is_none() || finding.stage() == stage)
            .filter_map(|finding| finding.impact.wall)
            .fold(Duration::ZERO, Duration::saturating_add)
    };
    let run = application.duration().unwrap_or_default().max(Duration::from_millis(1));
    assert!(sum(None) <= run, "{:?} of {run:?}", sum(None));
    for stage in &application.stages {
        let span = stage.running_span(application.observed).map_or(Duration::ZERO, |(from, to)| {
            Duration::try_from(to.duration_since(from)).unwrap_or_default()
        });
        // Waiting before a stage's first task is no part of its span.
        let delay = diagnosis.stages.get(&stage.id).and_then(|stage| stage.scheduling_delay);
        assert!(sum(Some(stage.id)) <= span + delay.unwrap_or_default(), "{:?}", stage.id);
    }
    if let Some(bought) = diagnosis.totals.bought {
        let core = diagnosis
            .findings
            .iter()
            .filter_map(|finding| finding.impact.core)
            .fold(Duration::ZERO, Duration::saturating_add);
        assert!(core <= bought, "{core:?} of {bought:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn plausible_runs(application in plausible()) {
        let diagnosis = diagnosis(&application);
        numbers_are_numbers(&diagnosis);
        nothing_is_promised_twice(&application, &diagnosis);
        let rest = super::builders::as_rest(&application);
        let from_rest = super::builders::diagnosis(&rest);
        numbers_are_numbers(&from_rest);
        nothing_is_promised_twice(&rest, &from_rest);
    }

    #[test]
    fn absurd_runs(application in absurd()) {
        let diagnosis = diagnosis(&application);
        numbers_are_numbers(&diagnosis);
        if application.duration().is_some() {
            nothing_is_promised_twice(&application, &diagnosis);
        }
    }

    #[test]
    fn a_hotter_key_is_never_less_severe(seconds in 1_u64..400, more in 0_u64..2_000) {
        let severity = |hot: u64| {
            let mut application = run(5_000);
            warm_up(&mut application);
            let mut specs = vec![task(500).shuffled(1_000, 10_000); 15];
            specs.push(task(hot * 1_000).shuffled(100_000, 1_000_000));
            stage(&mut application, 1, 2_000, specs);
            super::builders::findings(&application, Rule::DataSkew)
                .iter()
                .map(|finding| finding.severity)
                .max()
        };
        prop_assert!(severity(seconds + more) >= severity(seconds));
    }

    #[test]
    fn even_runs_are_quiet(run_ms in 1_u64..20_000, n in 4_usize..60, records in 0_u64..100_000) {
        let mut application = run(600);
        warm_up(&mut application);
        let n = n.div_ceil(4) * 4;
        stage(&mut application, 1, 2_000, vec![task(run_ms).shuffled(records, records * 50); n]);
        // Ten minutes of which the work takes a few.
        let mut findings = diagnosis(&application).findings;
        findings.retain(|finding| finding.rule != Rule::IdleCores);
        prop_assert_eq!(findings, vec![]);
    }
}

#[test]
fn every_silence_of_the_data_is_survived() {
    let mut application = run(60);
    assert_eq!(diagnosis(&application).findings, vec![]);
    application.data_quality.extend(DataQuality::ALL);
    application.executors.clear();
    assert_eq!(diagnosis(&application).findings, vec![]);
    assert!(Severity::Info < Severity::Critical);
}
