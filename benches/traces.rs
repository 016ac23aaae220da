//! A finished application of 1,000 stages as a trace: how long it takes to
//! make and encode, and to find that nothing is left to send; beside writing
//! the same run as a report and as an exposition.
//!
//! `cargo bench --bench traces`

#![allow(clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::resource::v1::Resource;
use spark_exporter::config::Limits;
use spark_exporter::config::TlsConfig;
use spark_exporter::config::otlp::{Compression, Destination, Protocol, Sampling, TracesSettings};
use spark_exporter::diagnose::{StageNumbers, Subject};
use spark_exporter::expose::otlp::spans::{due, requests};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{RunView, build};
use spark_exporter::model::{
    Job, JobStatus, SqlExecution, SqlStatus, Stage, StageStatus, State, Task, TaskMetrics,
    TaskStatus,
};
use spark_exporter::report::{Texts, View, json_of_one};
use spark_exporter::store::SentSpans;
use spark_exporter::telemetry::TelemetrySnapshot;
use support::{at, changed, run_id, skewed_run, skewed_stage};

const STAGES: u32 = 1_000;
const STAGES_OF_A_JOB: u32 = 4;
const JOBS_OF_AN_EXECUTION: u32 = 2;
const ROUNDS: usize = 15;

fn task(stage: u32, place: u32) -> Task {
    let run_time = Duration::from_millis(u64::from(60_000 - place));
    Task {
        id: u64::from(stage * 11 + place),
        index: place,
        attempt: 0,
        executor_id: "1".to_owned(),
        host: "10.0.0.7".to_owned(),
        locality: "PROCESS_LOCAL".to_owned(),
        speculative: false,
        status: TaskStatus::Succeeded,
        launched: at(11),
        duration: run_time,
        ordinal_on_executor: Some(place),
        metrics: TaskMetrics { run_time, shuffle_read_bytes: 8 << 20, ..TaskMetrics::default() },
    }
}

fn stage(id: u32) -> Stage {
    let mut stage = skewed_stage(id, StageStatus::Complete);
    stage.job_ids = vec![id / STAGES_OF_A_JOB];
    stage.slowest = (0..10).map(|place| task(id, place)).collect();
    stage
}

fn job(id: u32) -> Job {
    Job {
        id,
        status: JobStatus::Succeeded,
        submitted: Some(at(9)),
        completed: Some(at(72)),
        stage_ids: (id * STAGES_OF_A_JOB..(id + 1) * STAGES_OF_A_JOB).collect(),
        failure_reason: None,
        sql_execution_id: Some(u64::from(id / JOBS_OF_AN_EXECUTION)),
        trace_context: None,
    }
}

fn execution(id: u32) -> SqlExecution {
    let mut execution = SqlExecution::new(u64::from(id));
    execution.status = SqlStatus::Completed;
    (execution.start, execution.end) = (Some(at(8)), Some(at(73)));
    execution.job_ids = (id * JOBS_OF_AN_EXECUTION..(id + 1) * JOBS_OF_AN_EXECUTION).collect();
    execution
}

/// With 50 findings, each about a stage of its own.
fn run() -> RunView {
    changed(&skewed_run(run_id("default", "app-0")), |application, diagnosis| {
        application.state = State::Succeeded;
        application.end = Some(at(80));
        application.stages = (0..STAGES).map(stage).collect();
        let jobs = STAGES / STAGES_OF_A_JOB;
        application.jobs = (0..jobs).map(job).collect();
        application.sql = Some((0..jobs / JOBS_OF_AN_EXECUTION).map(execution).collect());
        let numbers: StageNumbers = diagnosis.stages.values().next().copied().unwrap_or_default();
        diagnosis.stages = application.stages.iter().map(|stage| (stage.id, numbers)).collect();
        let one = diagnosis.findings[0].clone();
        diagnosis.findings = (0..50)
            .map(|stage_id| {
                let subject = Subject::Stage { stage_id, stage_attempt_id: 0 };
                spark_exporter::diagnose::Finding { subject, ..one.clone() }
            })
            .collect();
    })
}

fn settings() -> TracesSettings {
    TracesSettings {
        destination: Destination {
            protocol: Protocol::HttpProtobuf,
            endpoint: "http://localhost:4318/v1/traces".to_owned(),
            headers: Vec::new(),
            header_files: Vec::new(),
            timeout: Duration::from_secs(10),
            compression: Compression::None,
            tls: TlsConfig::default(),
            request_size: 3 << 20,
        },
        max_age: Duration::from_hours(24),
        sampling: Sampling { ratio: 1.0, keep_failed: true, keep_longer_than: None },
        tasks_per_stage: 5,
        spans_per_trace: 10_000,
    }
}

/// The median of several rounds, after one to warm up.
fn time<T>(mut work: impl FnMut() -> T) -> Duration {
    black_box(work());
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn main() {
    let view = run();
    let settings = settings();
    let nothing = SentSpans::default();
    let resource = Resource::default();
    let make = || due(&view, &nothing, &settings, Texts::Hidden, at(100));
    let whole = || requests(make().parts, &resource, settings.destination.request_size);

    let batches = whole();
    let spans: u64 = batches.iter().map(|batch| batch.request.items).sum();
    let bytes: usize = batches.iter().map(|batch| batch.request.body.len()).sum();
    println!(
        "{STAGES} stages: {spans} spans, {:.1} MB in {} requests\n",
        bytes as f64 / 1e6,
        batches.len()
    );
    assert!(spans > u64::from(STAGES) * 6, "each stage with its tasks");

    // Of one that goes on everything but itself was sent.
    let running = changed(&view, |application, _| {
        application.state = State::Running;
        application.end = None;
    });
    let mut sent = SentSpans::default();
    for part in due(&running, &nothing, &settings, Texts::Hidden, at(100)).parts {
        part.done.put(&mut sent);
    }
    let limits = Limits { stages_exported: STAGES as usize, ..Limits::default() };
    let view_of_report = View { application: &view.application, diagnosis: &view.diagnosis };

    let report = time(|| {
        let mut report = Vec::new();
        json_of_one(&mut report, view_of_report, Texts::Hidden, STAGES as usize).expect("a report");
        report
    });
    let line = |what: &str, took: Duration| {
        let ratio = took.as_secs_f64() / report.as_secs_f64();
        println!("{what:<44} {:>8.2} ms {ratio:>7.2} x the report", took.as_secs_f64() * 1e3);
    };
    line("report as JSON", report);
    line("spans", time(make));
    line("spans, encoded", time(whole));
    let look = || due(&running, &sent, &settings, Texts::Hidden, at(100));
    assert!(look().parts.is_empty());
    line("a look at a run that goes on, nothing to send", time(look));
    let exposition = || {
        let runs = std::slice::from_ref(&view);
        let snapshot = Arc::new(build(runs, &[], &TelemetrySnapshot::default(), &limits, at(100)));
        render(&snapshot, Format::OpenMetrics)
    };
    line("exposition of the same run", time(exposition));
}
