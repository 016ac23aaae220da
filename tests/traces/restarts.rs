//! A run that is watched from its first lines to its end by daemons that end
//! and begin again: what a back end has in the end is each span once, and of
//! each finding what it came to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use spark_exporter::config::otlp::{Destination, LogsSettings, OtlpResource, Signal};
use spark_exporter::expose::otlp::Moment;
use spark_exporter::expose::otlp::deliver::Sender;
use spark_exporter::expose::otlp::runs::Push;
use spark_exporter::metrics::{RunView, Snapshot};
use spark_exporter::store::embedded::Embedded;
use spark_exporter::store::{Deliveries, Found, Keep, News, RunKey, Store};
use spark_exporter::telemetry::Telemetry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::parts::after;
use crate::{common, settings, view, whole};

/// Takes everything.
#[derive(Debug, Default)]
struct BackEnd {
    traces: Mutex<Vec<Vec<u8>>>,
    logs: Mutex<Vec<Vec<u8>>>,
}

impl BackEnd {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(Arc::clone(&self).answer(stream));
        }
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => return,
                }
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length = length.lines().next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            let place = if head.contains("/v1/traces") { &self.traces } else { &self.logs };
            place.lock().unwrap().push(body);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    }

    fn spans(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for body in self.traces.lock().unwrap().iter() {
            let message = ExportTraceServiceRequest::decode(&**body).unwrap();
            for scope in message.resource_spans.into_iter().flat_map(|one| one.scope_spans) {
                all.extend(
                    scope.spans.iter().map(|span| (hex(&span.trace_id), hex(&span.span_id))),
                );
            }
        }
        all
    }

    fn records(&self) -> Vec<LogRecord> {
        let mut all = Vec::new();
        for body in self.logs.lock().unwrap().iter() {
            let message = ExportLogsServiceRequest::decode(&**body).unwrap();
            for scope in message.resource_logs.into_iter().flat_map(|one| one.scope_logs) {
                all.extend(scope.log_records);
            }
        }
        all
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// What the daemon keeps in its store.
#[derive(Debug)]
struct Kept(Store);

impl Deliveries for Kept {
    fn find(&self, key: &RunKey) -> Found {
        let delivered = self.0.delivered(key).unwrap().unwrap_or_default();
        Found { delivered, certain: true }
    }

    fn add(&self, key: &RunKey, news: News) {
        self.0.add_delivered(key, &news, Timestamp::now()).unwrap();
    }
}

/// One daemon: sees a reading, sends, and ends.
async fn daemon(store: &Path, port: u16, view: RunView) {
    let telemetry: Arc<Telemetry> = Arc::default();
    let to = |signal: Signal| Destination {
        endpoint: format!("http://127.0.0.1:{port}/v1/{}", signal.as_str()),
        ..settings().destination
    };
    let sender = |signal| Sender::new(signal, &to(signal), Arc::clone(&telemetry)).unwrap();
    let logs = LogsSettings { destination: to(Signal::Logs), max_age: settings().max_age };
    let keep = Keep { time: Duration::from_hours(24), size: None, names: 100 };
    let store = Embedded::open(store, Timestamp::now()).unwrap();
    let push = Push {
        traces: Some((sender(Signal::Traces), settings())),
        logs: Some((sender(Signal::Logs), logs)),
        resource: OtlpResource::default(),
        texts: Arc::default(),
        deliveries: Arc::new(Kept(Store::new(Box::new(store), keep))),
        shutdown_timeout: Duration::from_secs(10),
        telemetry: Arc::clone(&telemetry),
    };
    let moment = Moment {
        snapshot: Arc::new(Snapshot::default()),
        runs: [view].into(),
        ready: true,
        at: Timestamp::now(),
    };
    let (_feed, watched) = tokio::sync::watch::channel(Some(Arc::new(moment)));
    let stop = CancellationToken::new();
    // The end comes at once: what is left then is sent.
    stop.cancel();
    push.run(watched, stop).await;
}

fn attribute(record: &LogRecord, key: &str) -> String {
    let found = record.attributes.iter().find(|one| one.key == format!("spark.finding.{key}"));
    match found.and_then(|one| one.value.clone()).and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key}: {other:?}"),
    }
}

/// How often each rule is said to hold, by what was said from first to last.
fn said(records: &[LogRecord]) -> BTreeMap<String, i32> {
    let mut said: BTreeMap<String, i32> = BTreeMap::new();
    for record in records {
        let count = said.entry(attribute(record, "rule")).or_default();
        match attribute(record, "state").as_str() {
            "new" => *count += 1,
            "cleared" => *count -= 1,
            _ => {}
        }
        assert!(*count >= 0, "{record:?}");
    }
    said.retain(|_, count| *count > 0);
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_span_and_what_each_finding_came_to() {
    for name in ["hot_key/4.3.0", "job_failed/3.5.9", "stage_retries/4.3.0"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let back_end: Arc<BackEnd> = Arc::default();
        let serving = tokio::spawn(Arc::clone(&back_end).serve(listener));
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let text = common::log_text(name);
        let lines = text.lines().count();
        for step in 1..=6 {
            daemon(&store, port, view(after(&text, lines * step / 6))).await;
        }
        let last = view(after(&text, lines));
        let spans = back_end.spans();
        let records = back_end.records();
        let ids: BTreeSet<_> = spans.iter().cloned().collect();
        assert_eq!(ids.len(), spans.len(), "{name}: a span was sent twice");
        let id = |span: &opentelemetry_sdk::trace::SpanData| {
            let context = &span.span_context;
            (context.trace_id().to_string(), context.span_id().to_string())
        };
        let expected: BTreeSet<_> = whole(&last, &settings()).iter().map(id).collect();
        assert_eq!(ids, expected, "{name}");
        let mut holds: BTreeMap<String, i32> = BTreeMap::new();
        for finding in &last.diagnosis.findings {
            *holds.entry(finding.rule.as_str().to_owned()).or_default() += 1;
        }
        assert!(!holds.is_empty(), "{name}");
        assert_eq!(said(&records), holds, "{name}");
        // Each names a span that is there.
        for record in &records {
            let span = (hex(&record.trace_id), hex(&record.span_id));
            assert!(ids.contains(&span), "{name}: {record:?}");
        }
        // Once more, and by the store's own account: nothing.
        daemon(&store, port, last).await;
        assert_eq!(
            (back_end.spans().len(), back_end.records().len()),
            (spans.len(), records.len())
        );
        serving.abort();
    }
}
