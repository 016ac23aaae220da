//! The loop over a real socket: what it sends and when, and what a back end
//! that is away, slow or of another opinion does to it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use spark_exporter::config::Limits;
use spark_exporter::config::otlp::{
    Compression, Destination, MetricsSettings, OtlpResource, Protocol, Signal, Temporality,
};
use spark_exporter::expose::otlp::Moment;
use spark_exporter::expose::otlp::deliver::{Request as Sending, Sender};
use spark_exporter::expose::otlp::points::{Push, push};
use spark_exporter::metrics::{RunView, build};
use spark_exporter::telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::decode::{Point, all};
use crate::full_run;

/// A back end that answers as it is told to, and keeps what it took.
#[derive(Clone, Default)]
struct BackEnd {
    taken: Arc<Mutex<Vec<Vec<Point>>>>,
    /// Status codes of the answers to come; 200 after the last. 0: none at
    /// all.
    answers: Arc<Mutex<VecDeque<u16>>>,
}

impl BackEnd {
    async fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let back_end = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let back_end = back_end.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| back_end.clone().answer(request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        address
    }

    async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let body = request.into_body().collect().await?.to_bytes();
        let status = self.answers.lock().unwrap().pop_front().unwrap_or(200);
        if status == 0 {
            std::future::pending::<()>().await;
        }
        if status == 200 {
            // Its count is checked where it is made.
            let points = all_of(body);
            self.taken.lock().unwrap().push(points);
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = status.try_into().unwrap();
        Ok(response)
    }

    fn will(&self, answers: &[u16]) {
        self.answers.lock().unwrap().extend(answers);
    }

    fn requests(&self) -> Vec<Vec<Point>> {
        self.taken.lock().unwrap().clone()
    }

    async fn wait(&self, what: &str, done: impl Fn(&[Vec<Point>]) -> bool) -> Vec<Vec<Point>> {
        let started = Instant::now();
        loop {
            let requests = self.requests();
            if done(&requests) {
                return requests;
            }
            let waited = started.elapsed();
            assert!(waited < Duration::from_mins(1), "{what}: {} requests", requests.len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn all_of(body: Bytes) -> Vec<Point> {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use prost::Message;
    let decoded = ExportMetricsServiceRequest::decode(body.clone()).unwrap();
    let metrics = decoded.resource_metrics.iter().flat_map(|group| &group.scope_metrics);
    let counts = metrics.flat_map(|scope| &scope.metrics).map(|metric| match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        other => panic!("{other:?}"),
    });
    let items = counts.sum::<usize>() as u64;
    all(&[Sending { body, items }])
}

pub(crate) fn destination(endpoint: String) -> Destination {
    Destination {
        protocol: Protocol::HttpProtobuf,
        endpoint,
        headers: Vec::new(),
        header_files: Vec::new(),
        timeout: Duration::from_secs(30),
        compression: Compression::None,
        tls: spark_exporter::config::TlsConfig::default(),
        request_size: 4_000_000,
    }
}

/// A daemon that sends to it.
struct Daemon {
    telemetry: Arc<Telemetry>,
    moments: watch::Sender<Option<Arc<Moment>>>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Daemon {
    fn start(address: SocketAddr, interval: Duration) -> Self {
        let destination = destination(format!("http://{address}/v1/metrics"));
        let telemetry = Arc::new(Telemetry::new(Timestamp::now()));
        let sender = Sender::new(Signal::Metrics, &destination, Arc::clone(&telemetry)).unwrap();
        let settings = MetricsSettings {
            destination,
            interval,
            export_timeout: LONG,
            temporality: Temporality::Cumulative,
        };
        let what = Push {
            sender,
            settings,
            resource: OtlpResource::default(),
            instance: "here".to_owned(),
            series: 100_000,
            shutdown_timeout: Duration::from_secs(2),
            telemetry: Arc::clone(&telemetry),
        };
        let (moments, feed) = watch::channel(None);
        let stop = CancellationToken::new();
        let task = tokio::spawn(push(what, feed, stop.clone()));
        Self { telemetry, moments, stop, task }
    }

    fn publish(&self, runs: &[RunView], ready: bool) {
        let at = Timestamp::now();
        let snapshot = build(runs, &[], &self.telemetry.snapshot(), &Limits::default(), at);
        let moment = Moment { snapshot: Arc::new(snapshot), runs: runs.into(), ready, at };
        self.moments.send_replace(Some(Arc::new(moment)));
    }

    async fn end(self) -> Duration {
        let started = Instant::now();
        self.stop.cancel();
        self.task.await.unwrap();
        started.elapsed()
    }
}

fn has_run(points: &[Point]) -> bool {
    points.iter().any(|point| point.attributes.contains_key("app_id"))
}

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_mins(10);

#[tokio::test]
async fn the_first_moment_that_is_whole_goes_out_at_once_and_the_last_at_the_end() {
    let back_end = BackEnd::default();
    let daemon = Daemon::start(back_end.start().await, LONG);
    daemon.publish(&[], false);
    tokio::time::sleep(SHORT).await;
    assert!(back_end.requests().is_empty(), "not every source has ended its first cycle");
    daemon.publish(&[full_run("app-1")], true);
    let requests = back_end.wait("the first", |requests| !requests.is_empty()).await;
    assert!(has_run(&requests[0]));
    // Nothing more before the next is due, however often it is published.
    daemon.publish(&[full_run("app-1"), full_run("app-2")], true);
    tokio::time::sleep(SHORT).await;
    assert_eq!(back_end.requests().len(), 1);
    daemon.end().await;
    let requests = back_end.requests();
    let [_, last, farewell] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert!(
        last.iter().any(|point| point.attributes.get("app_id").is_some_and(|id| id == "app-2"))
    );
    assert!(farewell.iter().all(|point| point.ended) && !has_run(farewell) && !farewell.is_empty());
}

#[tokio::test]
async fn a_moment_that_was_sent_is_not_sent_again() {
    let back_end = BackEnd::default();
    let daemon = Daemon::start(back_end.start().await, SHORT / 4);
    daemon.publish(&[full_run("app-1")], true);
    back_end.wait("the first", |requests| !requests.is_empty()).await;
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(back_end.requests().len(), 1);
    daemon.publish(&[full_run("app-1")], true);
    back_end.wait("the second", |requests| requests.len() == 2).await;
    daemon.end().await;
}

#[tokio::test]
async fn what_was_refused_or_not_answered_is_in_the_next() {
    let back_end = BackEnd::default();
    // An answer that never comes holds nothing up beyond the interval.
    back_end.will(&[400, 0]);
    let daemon = Daemon::start(back_end.start().await, SHORT);
    daemon.publish(&[full_run("app-1")], true);
    let requests = back_end.wait("the third", |requests| !requests.is_empty()).await;
    assert!(has_run(&requests[0]));
    daemon.publish(&[], true);
    // It left meanwhile: its end is told although two requests were lost.
    let requests = back_end.wait("the end", |requests| requests.len() >= 2).await;
    assert!(requests[1].iter().any(|point| point.ended && point.attributes.contains_key("app_id")));
    daemon.end().await;
}

/// A back end that never answers holds the end up for as long as the operator
/// allows, and no longer.
#[tokio::test]
async fn the_end_has_a_deadline() {
    let back_end = BackEnd::default();
    back_end.will(&[0; 20]);
    let daemon = Daemon::start(back_end.start().await, LONG);
    daemon.publish(&[full_run("app-1")], true);
    tokio::time::sleep(SHORT).await;
    let took = daemon.end().await;
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test]
async fn it_ends_also_where_nothing_was_ever_published() {
    let back_end = BackEnd::default();
    let daemon = Daemon::start(back_end.start().await, LONG);
    assert!(daemon.end().await < Duration::from_secs(20));
    assert!(back_end.requests().is_empty());
}
