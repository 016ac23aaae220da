//! A real Jaeger, told of as `docs/opentelemetry.md` says, and asked as its
//! page asks: traces stand there whole, with errors where they are and what is
//! wrong at the span that it is about.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::page::page;
use super::traces::{Of, is_the_log, of};
use crate::common::real::{Program, client, free_port, part};
use crate::log::Log;
use crate::received::{Attributes, Event, Span};
use crate::world::{RUNS, SOON, Setup, logs};

struct Jaeger {
    _program: Program,
    _folder: tempfile::TempDir,
    /// Where it takes OTLP over HTTP, and where it is asked.
    otlp: String,
    api: String,
}

impl Jaeger {
    /// As it is without a configuration, but for its ports.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("jaeger.yml");
        let (otlp, api) = (free_port(), free_port());
        let text = format!(
            "service:\n  extensions: [jaeger_storage, jaeger_query]\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}}}\n\
             extensions:\n  jaeger_storage: {{backends: {{some: {{memory: {{max_traces: 1000}}}}}}}}\n  \
             jaeger_query:\n    storage: {{traces: some}}\n    http: {{endpoint: '127.0.0.1:{api}'}}\n    \
             grpc: {{endpoint: '127.0.0.1:0'}}\n\
             receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{otlp}'}}}}}}}}\n\
             exporters: {{jaeger_storage_exporter: {{trace_storage: some}}}}\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(part(&["jaeger"]).join("jaeger"));
        command.arg("--config").arg(&config);
        let program = Program::start(command, "Jaeger", true);
        program.wait_for(SOON, |line| line.contains("Everything is ready").then_some(()));
        let local = |port| format!("http://127.0.0.1:{port}");
        Self { _program: program, _folder: folder, otlp: local(otlp), api: local(api) }
    }

    async fn ask(&self, path: &str) -> Value {
        let answer = client().get(format!("{}/api/{path}", self.api)).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap()["data"].take()
    }

    /// The spans of a job's only run, once all but those of tasks are there.
    async fn trace(&self, service: &str, parts: usize) -> Vec<Span> {
        let deadline = Instant::now() + SOON;
        loop {
            let traces = self.ask(&format!("traces?service={service}&limit=1000")).await;
            let spans: Vec<Span> = list(&traces).iter().flat_map(spans_of).collect();
            if spans.iter().filter(|span| !matches!(of(span), Of::Task(_))).count() >= parts {
                return spans;
            }
            assert!(Instant::now() < deadline, "{service}: {} spans", spans.len());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn tags(tags: &Value) -> Attributes {
    list(tags).iter().map(|tag| (text(&tag["key"]), text(&tag["value"]))).collect()
}

/// As Jaeger tells them: microseconds, a parent among the references, a status
/// among the tags, events as logs.
fn spans_of(trace: &Value) -> Vec<Span> {
    let nanoseconds = |time: &Value| time.as_u64().unwrap() * 1_000;
    let span = |span: &Value| {
        let mut attributes = tags(&span["tags"]);
        let referred = |kind: &str| -> Vec<(String, String)> {
            let of_kind = list(&span["references"]).iter().filter(|one| one["refType"] == kind);
            of_kind.map(|one| (text(&one["traceID"]), text(&one["spanID"]))).collect()
        };
        let parent = referred("CHILD_OF").pop().map_or_else(String::new, |(_, id)| id);
        let events = list(&span["logs"]).iter().map(|log| {
            let mut attributes = tags(&log["fields"]);
            let name = attributes.remove("event").unwrap_or_default();
            Event { name, time: nanoseconds(&log["timestamp"]), attributes }
        });
        let start = nanoseconds(&span["startTime"]);
        let process = &trace["processes"][span["processID"].as_str().unwrap()];
        let mut resource = tags(&process["tags"]);
        resource.insert("service.name".to_owned(), text(&process["serviceName"]));
        Span {
            resource,
            trace: text(&span["traceID"]),
            id: text(&span["spanID"]),
            parent,
            name: text(&span["operationName"]),
            kind: 0,
            start,
            end: start + nanoseconds(&span["duration"]),
            status: if attributes.remove("error").is_some_and(|is| is == "true") { 2 } else { 0 },
            message: attributes.remove("otel.status_description").unwrap_or_default(),
            attributes,
            events: events.collect(),
            links: referred("FOLLOWS_FROM"),
        }
    };
    list(&trace["spans"]).iter().map(span).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_stand_in_a_real_jaeger() {
    let jaeger = Jaeger::start();
    // By the one variable that the page gives, its address aside.
    let line = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/v1/traces spark-exporter ";
    assert!(page().contains(&format!("\n{line}")), "docs/opentelemetry.md does not say {line}");
    let logs = logs(&RUNS);
    let exporter = Setup::default()
        .with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/v1/traces", jaeger.otlp))
        .start(logs.path());
    let scrape = exporter.settled(RUNS.len()).await;

    let mut services = BTreeSet::new();
    for (recorded, app_id) in RUNS {
        let info = |(name, labels): &&(String, Attributes)| {
            name == "spark_application_info" && labels["app_id"] == app_id
        };
        let (_, labels) = scrape.series.keys().find(info).unwrap();
        let service = labels["app_name"].clone();
        let log = Log::read(logs.path(), app_id);
        let parts = 1 + log.executions.len() + log.jobs.len() + log.stages.len();
        let spans = jaeger.trace(&service, parts).await;
        services.insert(service.clone());
        let root = spans.iter().find(|span| of(span) == Of::Application).unwrap();
        assert_eq!(root.resource["service.name"], service);
        assert_eq!(root.resource["spark.application.id"], app_id);
        assert_eq!(root.trace, labels["trace_id"], "what dashboards link to");
        if recorded.starts_with("streaming") {
            let link = (root.trace.clone(), root.id.clone());
            let linked = spans.iter().filter(|span| span.links.contains(&link)).count();
            assert!(linked > 5, "{linked} parts of a stream link to it");
            continue;
        }
        is_the_log(&spans, &log);
        let failed = spans.iter().any(|span| span.status == 2 && of(span) == Of::Application);
        assert_eq!(failed, recorded.starts_with("application_failed"), "{recorded}");
    }
    let known: BTreeSet<String> = list(&jaeger.ask("services").await).iter().map(text).collect();
    assert_eq!(known, services, "the service is the job's name");

    // One finds the skewed stage by what is wrong, and reads why.
    let skewed = Log::read(logs.path(), RUNS[0].1);
    let spans = jaeger.trace("orders-by-customer", 1).await;
    let has_skew = |event: &&Event| {
        event.name == "spark.finding" && event.attributes["spark.finding.rule"] == "data_skew"
    };
    let (stage, finding) =
        spans.iter().find_map(|span| Some((span, span.events.iter().find(has_skew)?))).unwrap();
    let longest = skewed.stages.iter().max_by_key(|(_, times)| times.1 - times.0).unwrap().0;
    assert_eq!(of(stage), Of::Stage(longest.0, longest.1));
    assert!(finding.attributes["spark.finding.headline"].contains("one task ran"), "{finding:?}");
    exporter.stop();
}
