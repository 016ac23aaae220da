//! A run is the same trace whoever told of it: its event log, or a History
//! Server by REST.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::trace::SpanData;
use spark_exporter::config::{HttpConfig, Limits, ServerUrl};
use spark_exporter::fetch::{FetchLimits, HttpClient, Timeouts};
use spark_exporter::model::Application;
use spark_exporter::rest::Api;
use spark_exporter::rest::applications::{self, Filter};
use spark_exporter::rest::completed::{self, Options};

use crate::common::fake_spark::FakeSpark;
use crate::common::recorded_server::{answer, folder};
use crate::{recorded, settings, view, whole};

async fn by_rest(version: &str, run: &str) -> Application {
    let folder = folder(version, run);
    let server = FakeSpark::start(move |asked| answer(&folder, asked)).await;
    let limits = FetchLimits::from(&Limits::default());
    let client = HttpClient::new(&HttpConfig::default(), Timeouts::HISTORY_SERVER, limits).unwrap();
    let base: ServerUrl = server.url("").parse().unwrap();
    let listed = applications::get(&Api::new(&client, &base), Filter::default()).await.unwrap();
    let attempt = listed[0].latest().unwrap();
    let api = Api::new(&client, &base);
    completed::read(&api, "default", &listed[0], attempt, Options::default()).await.unwrap()
}

type Places = BTreeMap<(String, String), (SpanId, SystemTime, SystemTime)>;

fn places(spans: &[SpanData]) -> Places {
    let place = |span: &SpanData| {
        let id = (span.name.to_string(), span.span_context.span_id().to_string());
        (id, (span.parent_span_id, span.start_time, span.end_time))
    };
    spans.iter().map(place).collect()
}

#[tokio::test]
async fn the_log_and_the_history_server_tell_the_same_trace() {
    for version in ["3.5.9", "4.3.0"] {
        for run in ["healthy", "hot_key", "spill", "task_failures", "sql_plans"] {
            let name = format!("{version} {run}");
            let log = whole(&view(recorded(&format!("{run}/{version}"))), &settings());
            let rest = whole(&view(by_rest(version, run).await), &settings());
            let trace = |spans: &[SpanData]| spans[0].span_context.trace_id();
            assert_eq!(trace(&log), trace(&rest), "{name}");
            let failed = |spans: &[SpanData]| {
                let failed = spans.iter().filter(|span| span.status != Status::Unset);
                let id = |span: &SpanData| {
                    (span.span_context.span_id().to_string(), span.status.clone())
                };
                let mut failed: Vec<_> = failed.map(id).collect();
                failed.sort_by(|a, b| a.0.cmp(&b.0));
                failed
            };
            // In the others stages that failed are too short to ask about.
            if run == "task_failures" {
                assert_eq!(failed(&log).len(), 3, "{name}: as many as tasks may have spans");
                assert_eq!(failed(&log), failed(&rest), "{name}");
            }
            let (log, rest) = (places(&log), places(&rest));
            let is_task = |name: &str| name == "task";
            let parts = |places: &Places| {
                places.keys().filter(|(name, _)| !is_task(name)).cloned().collect::<Vec<_>>()
            };
            assert_eq!(parts(&log), parts(&rest), "{name}");
            let mut tasks = 0;
            for (id, (parent, start, end)) in &rest {
                // Of tasks that took the same time either may be told.
                let Some(by_log) = log.get(id) else {
                    assert!(is_task(&id.0), "{name}: {id:?}");
                    continue;
                };
                tasks += usize::from(is_task(&id.0));
                // Before 4.0 REST does not tell which execution started another.
                if *parent != by_log.0 {
                    assert!(version == "3.5.9" && id.0.starts_with("sql "), "{name}: {id:?}");
                }
                let apart = |a: SystemTime, b: SystemTime| {
                    a.duration_since(b).unwrap_or_else(|error| error.duration())
                };
                assert!(apart(*start, by_log.1) <= Duration::from_millis(1), "{name}: {id:?}");
                // Spark rounds what an execution took.
                assert!(apart(*end, by_log.2) <= Duration::from_millis(2), "{name}: {id:?}");
            }
            assert!(tasks > 0, "{name}: no task in both");
        }
    }
}
