//! Made-up runs for tests and benches of the exposition. Not every one of them
//! uses all of it.

#![allow(dead_code)]

pub(crate) mod everything;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use spark_exporter::diagnose::{
    Baseline, BlockedBy, Cause, Confidence, Diagnosis, Finding, FindingKind, Impact, IoPerCore,
    Rule, RunNumbers, Scenario, Severity, StageNumbers, Subject, TimeSplit, WhatIf,
};
use spark_exporter::metrics::{NameView, RunView, SuccessDue};
use spark_exporter::model::{
    Application, CachedRdd, Column, DataQuality, Distribution, Executor, ExecutorTotals, Job,
    JobStatus, Kind, Measures, MemoryPeaks, Quantity, RunId, Source, SourceProgress, SqlExecution,
    SqlStatus, Stage, StageId, StageStatus, State, StateOperator, StreamingBatch, StreamingQuery,
    StreamingState, TaskCounts, TraceId,
};
use spark_exporter::store::{Amounts, NameKey, RuleTotal, Totals};

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_764_460_800 + seconds).expect("in range")
}

pub(crate) fn run_id(cluster: &str, app_id: &str) -> RunId {
    RunId { cluster: cluster.to_owned(), app_id: app_id.to_owned(), attempt_id: None }
}

fn spread<T: Quantity>(values: &[T]) -> Distribution<T> {
    let mut column = Column::default();
    for value in values {
        column.push(*value, true, usize::MAX);
    }
    column.finish()
}

/// Eleven tasks, ten even ones and a slow one with most of the records.
pub(crate) fn skewed_stage(stage: u32, status: StageStatus) -> Stage {
    let many = |even: u64, slow: u64| {
        let mut values = [even; 11];
        values[10] = slow;
        spread(&values)
    };
    let time = |even: u64, slow: u64| {
        let mut values = [Duration::from_millis(even); 11];
        values[10] = Duration::from_millis(slow);
        spread(&values)
    };
    Stage {
        name: "count at Orders.scala:17".to_owned(),
        status,
        submitted: Some(at(10)),
        first_task_launched: Some(at(11)),
        completed: (status != StageStatus::Active).then(|| at(71)),
        job_ids: vec![0],
        tasks: TaskCounts { total: 11, active: 0, succeeded: 11, failed: 1, killed: 0 },
        measures: Measures {
            run_time: time(2_000, 60_000),
            cpu_time: time(1_900, 58_000),
            deserialize_time: time(3, 4),
            gc_time: time(20, 900),
            scheduler_delay: time(5, 5),
            fetch_wait_time: time(0, 0),
            shuffle_write_time: time(7, 70),
            records_read: many(1_000, 500_000),
            records_written: many(10, 10),
            input_bytes: many(0, 0),
            input_records: many(0, 0),
            output_bytes: many(0, 0),
            output_records: many(0, 0),
            shuffle_read_bytes: many(16_384, 8_388_608),
            shuffle_read_records: many(1_000, 500_000),
            shuffle_write_bytes: many(512, 512),
            shuffle_write_records: many(10, 10),
            memory_spilled_bytes: many(0, 268_435_456),
            disk_spilled_bytes: many(0, 33_554_432),
            peak_execution_memory_bytes: many(1_048_576, 536_870_912),
        },
        ..Stage::new(StageId { stage, attempt: 0 })
    }
}

pub(crate) fn executor(number: u32) -> Executor {
    Executor {
        id: number.to_string(),
        host: format!("worker-{number}"),
        cores: 2,
        resource_profile_id: 0,
        added: Some(at(3)),
        removed: None,
        removed_reason: None,
        pod: None,
        totals: ExecutorTotals {
            active_tasks: 1,
            succeeded_tasks: 6,
            failed_tasks: u64::from(number),
            task_time: Duration::from_secs(42),
            gc_time: Duration::from_millis(550),
            input_bytes: 0,
            shuffle_read_bytes: 4_276_224,
            shuffle_write_bytes: 2_816,
        },
        storage_memory_used_bytes: Some(1_024),
        storage_memory_bytes: Some(384_093_388),
        peaks: MemoryPeaks::default(),
    }
}

pub(crate) fn finding(
    rule: Rule,
    cause: Option<Cause>,
    severity: Severity,
    subject: Subject,
) -> Finding {
    Finding {
        rule,
        cause,
        severity,
        kind: FindingKind::Data,
        subject,
        headline:
            "Stage 1.0: the slowest task ran 60 s, 30x the median of 2 s, over 500x the records"
                .to_owned(),
        evidence: Vec::new(),
        impact: Impact {
            wall: Some(Duration::from_millis(49_500)),
            core: Some(Duration::from_secs(99)),
            estimated: false,
        },
        confidence: Confidence::High,
        advice: Vec::new(),
    }
}

/// 80 s in parts that add up.
fn time_split() -> TimeSplit {
    let seconds = [3, 5, 2, 1, 60, 4, 0, 1, 1, 3];
    TimeSplit {
        total: Duration::from_secs(80),
        parts: seconds.map(Duration::from_secs),
        blocked_by: Some(BlockedBy::Spill),
        estimated: false,
    }
}

fn what_if() -> WhatIf {
    let scenario = |(factor, seconds): (f64, u64)| Scenario {
        factor,
        cores: 4.0 * factor,
        wall: Duration::from_secs(seconds),
        bought: Duration::from_secs(seconds * 3),
    };
    WhatIf {
        scenarios: [(0.5, 140), (1.0, 79), (2.0, 65)].map(scenario).to_vec(),
        critical_path: Duration::from_secs(61),
        assumptions: vec!["Each task takes as long as it did.".to_owned()],
        model_error: -0.0125,
    }
}

fn streaming_query() -> StreamingQuery {
    StreamingQuery {
        id: "8fea2bec".to_owned(),
        run_id: "a4643d2a".to_owned(),
        name: Some("visits".to_owned()),
        started: Some(at(5)),
        state: StreamingState::Active,
        ended: None,
        exception: None,
        error_class: None,
        batches: vec![StreamingBatch {
            id: 11,
            start: Some(at(60)),
            duration: Some(Duration::from_millis(2_014)),
            parts: Vec::new(),
            input_rows: Some(1_200),
            input_rows_per_second: Some(183.5),
            processed_rows_per_second: Some(595.5),
            output_rows: Some(2),
            sources: vec![SourceProgress {
                name: "KafkaV2".to_owned(),
                input_rows: Some(1_200),
                backlog: Some(40),
            }],
            state: vec![StateOperator {
                name: "stateStoreSave".to_owned(),
                rows: Some(7),
                rows_updated: Some(2),
                memory_bytes: Some(1_344),
                commit_time: None,
                rows_dropped_late: Some(0),
            }],
        }],
        batches_seen: 12,
        idle_since: None,
    }
}

/// A running job of two stages, one of them skewed, on two executors.
pub(crate) fn skewed_run(id: RunId) -> RunView {
    let stages = vec![
        Stage { status: StageStatus::Skipped, ..Stage::new(StageId { stage: 0, attempt: 0 }) },
        skewed_stage(1, StageStatus::Active),
    ];
    let application = Application {
        name: "orders \"daily\"".to_owned(),
        spark_version: Some("4.0.1".to_owned()),
        user: Some("etl".to_owned()),
        kind: Kind::Batch,
        state: State::Running,
        start: Some(at(0)),
        jobs: vec![Job {
            id: 0,
            status: JobStatus::Running,
            submitted: Some(at(10)),
            completed: None,
            stage_ids: vec![0, 1],
            failure_reason: None,
            sql_execution_id: Some(3),
            trace_context: None,
        }],
        stages,
        executors: vec![executor(0), executor(1)],
        cached: vec![CachedRdd {
            id: 4,
            partitions: 8,
            cached_partitions: 6,
            memory_bytes: 1_000,
            disk_bytes: 0,
        }],
        sql: Some(vec![SqlExecution {
            status: SqlStatus::Running,
            start: Some(at(9)),
            job_ids: vec![0],
            ..SqlExecution::new(3)
        }]),
        streaming_queries: Some(vec![streaming_query()]),
        data_quality: BTreeSet::from([DataQuality::StagesEvicted]),
        ..Application::new(id, Source::Driver, at(75))
    };
    let numbers = StageNumbers {
        cores: Some(4.0),
        running: Some(Duration::from_secs(64)),
        run_time_ratio: Some(30.0),
        records_ratio: Some(500.0),
        bytes_ratio: Some(512.0),
        spill_ratio: Some(3.9),
        gc_ratio: Some(0.01375),
        io_per_core: IoPerCore { shuffle_read: Some(33_408.0), ..IoPerCore::default() },
        scheduling_delay: Some(Duration::ZERO),
        task_failure_ratio: Some(1.0 / 12.0),
    };
    let diagnosis = Diagnosis {
        findings_omitted: 0,
        findings: vec![finding(
            Rule::DataSkew,
            Some(Cause::HotKey),
            Severity::Warning,
            Subject::Stage { stage_id: 1, stage_attempt_id: 0 },
        )],
        stages: BTreeMap::from([(StageId { stage: 1, attempt: 0 }, numbers)]),
        totals: RunNumbers {
            bought: Some(Duration::from_secs(288)),
            used: Some(Duration::from_secs(84)),
            peak_cores: Some(4),
            gc_ratio: Some(0.01375),
            task_failure_ratio: Some(1.0 / 12.0),
        },
        time: Some(time_split()),
        what_if: Some(what_if()),
        ..Diagnosis::default()
    };
    let trace_id = TraceId::of_run(&application.id, application.start);
    RunView {
        name: application.name.as_str().into(),
        application: Arc::new(application),
        diagnosis: Arc::new(diagnosis),
        trace_id: Some(trace_id),
    }
}

/// A name with something in every series it can have.
pub(crate) fn name_view(cluster: &str, app_name: &str) -> NameView {
    let name = NameKey { cluster: cluster.to_owned(), app_name: app_name.to_owned() };
    let mut durations = [0; 20];
    // Up to 64 s, up to 128 s, over the last bound.
    (durations[6], durations[7], durations[19]) = (18, 2, 1);
    let totals = Totals {
        counted_at_ms: None,
        since_ms: at(-100_000).as_millisecond(),
        runs: [21, 3, 1, 0, 2, 1],
        durations,
        duration_sum_ms: 1_300_500,
        amounts: Amounts {
            bought_core_ms: 8_064_000,
            used_core_ms: 2_352_500,
            wasted_core_ms: 5_711_500,
            memory_spilled_bytes: 4 << 30,
            disk_spilled_bytes: 1 << 30,
            shuffle_read_bytes: 5 << 30,
            shuffle_write_bytes: 6 << 30,
            input_bytes: 7 << 30,
            output_bytes: 8 << 30,
            cost: Some(12.75),
        },
        findings: [("data_skew", 4), ("spill", 0)]
            .map(|(rule, runs)| (rule.to_owned(), RuleTotal { runs, since_ms: 0 }))
            .into(),
        last_end_ms: Some(at(75).as_millisecond()),
        last_success_ms: Some(at(75).as_millisecond() - 86_400_000),
        last_duration_ms: Some(75_250),
    };
    NameView {
        currency: Some("EUR".into()),
        baseline: Some(Baseline {
            runs: 20,
            median: Duration::from_millis(50_125),
            spread: Duration::from_millis(2_500),
        }),
        regression_ratio: Some(1.5),
        success_interval: Some(Duration::from_hours(24)),
        failures_in_a_row: Some(2),
        success_due: Some(SuccessDue { at_ms: at(172_800).as_millisecond(), learned: true }),
        ..NameView::new(name, totals)
    }
}

/// The same run with parts replaced.
pub(crate) fn changed(
    view: &RunView,
    change: impl FnOnce(&mut Application, &mut Diagnosis),
) -> RunView {
    let mut application = (*view.application).clone();
    let mut diagnosis = (*view.diagnosis).clone();
    change(&mut application, &mut diagnosis);
    RunView {
        name: application.name.as_str().into(),
        application: Arc::new(application),
        diagnosis: Arc::new(diagnosis),
        trace_id: view.trace_id,
    }
}
