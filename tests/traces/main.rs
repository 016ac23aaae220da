//! Recorded runs of real Spark as traces: what is sent, when, and where it
//! hangs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod carried;
mod golden;
mod parts;
mod privacy;
mod restarts;
mod same;
mod waterfall;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opentelemetry_sdk::trace::SpanData;
use spark_exporter::config::otlp::{Compression, Destination, Protocol, Sampling, TracesSettings};
use spark_exporter::config::{Limits, Thresholds, TlsConfig};
use spark_exporter::diagnose::diagnose;
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::expose::otlp::spans::{Due, due};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::metrics::RunView;
use spark_exporter::model::Application;
use spark_exporter::report::Texts;
use spark_exporter::store::SentSpans;

/// Everything, whenever it ended.
pub(crate) fn settings() -> TracesSettings {
    TracesSettings {
        destination: Destination {
            protocol: Protocol::HttpProtobuf,
            endpoint: "http://localhost:4318/v1/traces".to_owned(),
            headers: Vec::new(),
            header_files: Vec::new(),
            timeout: Duration::from_secs(10),
            compression: Compression::None,
            tls: TlsConfig::default(),
            request_size: 4 << 20,
        },
        max_age: Duration::from_hours(24 * 365 * 100),
        sampling: Sampling { ratio: 1.0, keep_failed: true, keep_longer_than: None },
        tasks_per_stage: 3,
        spans_per_trace: 10_000,
    }
}

/// A recorded run (`hot_key/4.3.0`).
pub(crate) fn recorded(name: &str) -> Application {
    let files = LocalFiles::at(&common::recorded(name)).unwrap();
    let log = scan(&files).unwrap().logs.remove(0);
    let limits = Limits::default();
    read(&log, &files, &ReadOptions { cluster: "default", limits: &limits }).unwrap().application
}

pub(crate) fn view(application: Application) -> RunView {
    let diagnosis = diagnose(&application, &Thresholds::default());
    RunView {
        name: application.name.as_str().into(),
        application: Arc::new(application),
        diagnosis: Arc::new(diagnosis),
        trace_id: None,
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// What is due, all of which a back end takes.
pub(crate) fn send(
    view: &RunView,
    sent: &mut SentSpans,
    settings: &TracesSettings,
) -> Vec<SpanData> {
    let due = due(view, sent, settings, Texts::Hidden, now());
    let mut spans = Vec::new();
    for part in due.parts {
        part.done.put(sent);
        spans.extend(part.spans);
    }
    spans
}

/// All spans of a run that has ended.
pub(crate) fn whole(view: &RunView, settings: &TracesSettings) -> Vec<SpanData> {
    let Due { parts, is_last, .. } =
        due(view, &SentSpans::default(), settings, Texts::Hidden, now());
    assert!(is_last);
    parts.into_iter().flat_map(|part| part.spans).collect()
}
