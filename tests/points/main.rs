//! A snapshot as OTLP metrics, decoded again: the same series with the same
//! values as `/metrics`, whatever the size of a request and whichever requests
//! get through.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod decode;
mod deltas;
mod ends;
mod exemplars;
mod loops;
mod naming;
mod sizes;
mod values;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use spark_exporter::config::Limits;
use spark_exporter::config::otlp::{OtlpResource, Temporality};
use spark_exporter::diagnose::Price;
use spark_exporter::expose::otlp::Moment;
use spark_exporter::expose::otlp::deliver::Request;
use spark_exporter::expose::otlp::points::Points;
use spark_exporter::metrics::{NameView, RunView, build};
use spark_exporter::telemetry::events::{
    ConfigLoaded, CycleFinished, KubernetesSeen, LogsListed, OtlpAccepted, SubmissionTold,
    ThresholdsSet, WebConfigLoaded, WebRequestFailed, WebRequestServed,
};
use spark_exporter::telemetry::{
    KubernetesCounts, SubmissionId, SubmissionStatus, TargetId, Telemetry, TelemetrySnapshot,
    ThresholdSetting,
};
use support::{at, changed, name_view, run_id, skewed_run};

/// Larger than everything that a test sends.
const LARGE: usize = 64 << 20;

fn points(temporality: Temporality, request_size: usize) -> Points {
    let instance = "here:10404".to_owned();
    Points::new(temporality, OtlpResource::default(), instance, request_size, 1_000)
}

fn moment(
    runs: &[RunView],
    names: &[NameView],
    telemetry: &TelemetrySnapshot,
    at: Timestamp,
) -> Arc<Moment> {
    let snapshot = build(runs, names, telemetry, &Limits::default(), at);
    Arc::new(Moment { snapshot: Arc::new(snapshot), runs: runs.into(), ready: true, at })
}

/// All requests of a moment, each accepted.
fn requests(points: &mut Points, moment: &Arc<Moment>) -> Vec<Request> {
    points.begin(Arc::clone(moment));
    let mut all = Vec::new();
    while let Some(request) = points.request() {
        points.accepted();
        all.push(request);
    }
    all
}

/// A run that has something in every series.
fn full_run(app_id: &str) -> RunView {
    changed(&skewed_run(run_id("default", app_id)), |application, diagnosis| {
        application.exit_code = Some(0);
        application.end = Some(at(75));
        application.executors[0].peaks.heap = Some(5);
        for numbers in diagnosis.stages.values_mut() {
            numbers.io_per_core.input = Some(1.0);
        }
        diagnosis.price = Some(Price { amount: 1.5, unused: None, currency: "EUR".into() });
    })
}

/// Counters of a daemon that has done something of each sort.
fn busy() -> Telemetry {
    let telemetry = Telemetry::new(at(0));
    let target = TargetId { cluster: "c".to_owned(), target: "http://x".to_owned() };
    CycleFinished {
        elsewhere: 0,
        target: target.clone(),
        success: true,
        at: at(1),
        duration: Duration::from_millis(1_250),
        requests: 1,
        bytes: 1,
        skipped: Vec::new(),
    }
    .emit(&telemetry);
    LogsListed { target, logs: 1, followed: 1, bytes: 1 }.emit(&telemetry);
    let (rule, threshold) = ("io_bound".to_owned(), "bytes_per_second_per_core".to_owned());
    ThresholdsSet { thresholds: vec![ThresholdSetting { rule, threshold, value: 3e6 }] }
        .emit(&telemetry);
    KubernetesSeen {
        cluster: "c".to_owned(),
        counts: KubernetesCounts {
            up: [("driver_pods", true)].into(),
            objects: [("driver_pods", 1)].into(),
            drivers: [("answering", 1)].into(),
        },
    }
    .emit(&telemetry);
    SubmissionTold {
        id: SubmissionId {
            cluster: "c".to_owned(),
            operator: "kubeflow",
            namespace: "etl".to_owned(),
            name: "orders".to_owned(),
        },
        status: Some(SubmissionStatus { state: "submitted", attempts: 1, submitted: Some(at(0)) }),
    }
    .emit(&telemetry);
    ConfigLoaded { at: at(1), sources: None }.emit(&telemetry);
    WebConfigLoaded { at: at(1), tls: true, first: true }.emit(&telemetry);
    OtlpAccepted { signal: "traces", items: 1, bytes: 1, at: at(1) }.emit(&telemetry);
    WebRequestServed { path: "/metrics", code: 200, duration: Duration::ZERO }.emit(&telemetry);
    WebRequestFailed { reason: "limit", message: String::new() }.emit(&telemetry);
    telemetry
}

/// Every family of the catalogue, two runs of one name and another one's.
fn full() -> Arc<Moment> {
    let other = changed(&full_run("app-2"), |application, _| {
        "staging".clone_into(&mut application.id.cluster);
        application.id.attempt_id = Some("2".to_owned());
        "naïve \\ \"load\" 🚀".clone_into(&mut application.name);
    });
    let names = [name_view("c", "orders"), name_view("default", "orders \"daily\"")];
    moment(&[full_run("app-1"), other], &names, &busy().snapshot(), at(80))
}
