//! Prometheus, Alertmanager and the receiver of its webhooks, each on a free
//! port of loopback and ended with its handle.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::SOON;
use crate::common::real::{Program, free_port, get, part};

/// The parts that carry the two versions: Debian's 2.42, and 3.
pub(crate) const VERSIONS: [&str; 2] = ["prometheus", "prometheus-3"];

pub(crate) struct Prometheus {
    pub(crate) version: &'static str,
    url: String,
    client: reqwest::Client,
    targets: PathBuf,
    program: Program,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// With these files of rules, evaluated every two seconds, and this Alertmanager.
    pub(crate) fn start(
        version: &'static str,
        rules: &[PathBuf],
        alertmanager: Option<&Alertmanager>,
    ) -> Self {
        Self::with_flags(version, rules, alertmanager, &[])
    }

    /// One that takes OTLP, at [`Self::otlp_endpoint`].
    pub(crate) fn fed(rules: &[PathBuf]) -> Self {
        Self::with_flags("prometheus-3", rules, None, &["--web.enable-otlp-receiver"])
    }

    pub(crate) fn otlp_endpoint(&self) -> String {
        format!("{}/api/v1/otlp/v1/metrics", self.url)
    }

    fn with_flags(
        version: &'static str,
        rules: &[PathBuf],
        alertmanager: Option<&Alertmanager>,
        flags: &[&str],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let targets = folder.path().join("targets.json");
        std::fs::write(&targets, "[]").unwrap();
        let alertmanagers: Vec<_> = alertmanager.iter().map(|one| one.host()).collect();
        let configuration = serde_json::json!({
            // A daemon without optimisation on a busy machine takes its time.
            "global": {
                "scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "2s",
            },
            "rule_files": rules,
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": alertmanagers}]}]},
            "scrape_configs": [{
                "job_name": "spark-exporter",
                "file_sd_configs": [{"files": [targets], "refresh_interval": "1s"}],
            }],
        });
        // JSON is YAML as well.
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, configuration.to_string()).unwrap();
        let port = free_port();
        let mut command = Command::new(part(&[version]).join("prometheus"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(flags);
        let program = Program::start(command, version, true);
        program.wait_for(SOON, |line| {
            line.contains("Server is ready to receive web requests").then_some(())
        });
        let url = format!("http://127.0.0.1:{port}");
        // One for all questions: to make one reads the system's certificates.
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { version, url, client, targets, program, _folder: folder }
    }

    /// From now on these are scraped (host:port), and no others.
    pub(crate) fn scrape(&self, targets: &[String]) {
        let text = serde_json::json!([{"targets": targets}]).to_string();
        // Renamed into place, so that no half of it is read.
        let new = self.targets.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &self.targets).unwrap();
    }

    /// An answer of its API: what is in `data`, or what it complains of.
    pub(crate) async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let mut url = reqwest::Url::parse(&format!("{}/api/v1/{path}", self.url)).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let response = self.client.get(url).send().await.map_err(|error| error.to_string())?;
        let text = response.text().await.map_err(|error| error.to_string())?;
        let mut answer: Value =
            serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        if answer["status"] == "success" { Ok(answer["data"].take()) } else { Err(text) }
    }

    /// The samples that an expression gives now.
    pub(crate) async fn query(&self, expression: &str) -> Vec<Value> {
        let data = self.ask("query", &[("query", expression)]).await;
        let data = data.unwrap_or_else(|error| panic!("{}: {expression}: {error}", self.version));
        data["result"].as_array().cloned().unwrap_or_default()
    }

    /// Asks until the result is as `wanted`.
    pub(crate) async fn wait(
        &self,
        expression: &str,
        within: Duration,
        wanted: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let result = self.query(expression).await;
            if wanted(&result) {
                return result;
            }
            assert!(
                started.elapsed() < within,
                "{}: {expression} gave {result:?} after {within:?}; it says:\n{}",
                self.version,
                self.program.said().join("\n")
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// What it logged since it was asked last.
    pub(crate) fn said(&self) -> Vec<String> {
        self.program.said()
    }
}

pub(crate) struct Alertmanager {
    port: u16,
    _program: Program,
    _folder: tempfile::TempDir,
}

impl Alertmanager {
    pub(crate) fn start(configuration: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alertmanager.yml");
        std::fs::write(&file, configuration.to_string()).unwrap();
        let port = free_port();
        let mut command = Command::new(part(&["alertmanager"]).join("alertmanager"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            // One of a kind: no gossip.
            .arg("--cluster.listen-address=");
        let program = Program::start(command, "Alertmanager", true);
        program.wait_for(SOON, |line| line.contains("Listening on").then_some(()));
        Self { port, _program: program, _folder: folder }
    }

    /// All alerts that it knows of, those that it keeps back too.
    pub(crate) async fn alerts(&self) -> Value {
        let text = get(&format!("http://{}/api/v2/alerts", self.host())).await;
        serde_json::from_str(&text).unwrap()
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// One message of Alertmanager.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The last part of the address it was sent to: the receiver.
    pub(crate) receiver: String,
    pub(crate) body: Value,
}

/// Takes what Alertmanager sends.
pub(crate) struct Webhook {
    address: String,
    messages: Arc<Mutex<Vec<Message>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Webhook {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let messages: Arc<Mutex<Vec<Message>>> = Arc::default();
        let kept = Arc::clone(&messages);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| take(request, Arc::clone(&kept)));
                connections.spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { address, messages, task }
    }

    pub(crate) fn url(&self, receiver: &str) -> String {
        format!("http://{}/{receiver}", self.address)
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(
    request: Request<Incoming>,
    kept: Arc<Mutex<Vec<Message>>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let receiver = request.uri().path().trim_start_matches('/').to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    kept.lock().unwrap().push(Message { receiver, body });
    Ok(Response::new(Full::default()))
}
