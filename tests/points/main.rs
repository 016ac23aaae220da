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

use jiff::Timestamp;
use spark_exporter::config::Limits;
use spark_exporter::config::otlp::{OtlpResource, Temporality};
use spark_exporter::expose::otlp::Moment;
use spark_exporter::expose::otlp::deliver::Request;
use spark_exporter::expose::otlp::points::Points;
use spark_exporter::metrics::{NameView, RunView, build};
use spark_exporter::telemetry::TelemetrySnapshot;
use support::everything::{busy, full_run};
use support::{at, changed, name_view};

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
