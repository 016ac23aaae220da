//! The quick start of README.md, command by command: a newcomer's Prometheus
//! scrapes what `spark-exporter` serves and has our rules, and Grafana is sent
//! every dashboard as its API takes them. What is not run: `git clone` and
//! `cargo install`, and Grafana itself, for which a server stands that writes
//! down what it is sent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use common::real::{Program, daemon, free_port, part, root, until};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

/// Where the quick start puts the checkout.
const CHECKOUT: &str = "/opt/spark-exporter";

/// The commands and the lines for prometheus.yml, with this checkout's place.
fn quick_start() -> (Vec<String>, String) {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- quick start: begin -->\n```sh\n").unwrap();
    let (commands, rest) = rest.split_once("```\n\n```yaml\n").unwrap();
    let (lines, _) = rest.split_once("```\n<!-- quick start: end -->").unwrap();
    // A loop is one command; its lines are indented or close it.
    let mut found: Vec<String> = Vec::new();
    for line in commands.lines() {
        if line.starts_with(' ') || line == "done" {
            let last = found.last_mut().unwrap();
            last.push('\n');
            last.push_str(line);
        } else {
            found.push(line.to_owned());
        }
    }
    let here = root().display().to_string();
    let found = found.iter().map(|command| command.replace(CHECKOUT, &here)).collect();
    (found, lines.replace(CHECKOUT, &here))
}

#[tokio::test]
async fn prometheus_has_the_series_and_the_rules() {
    let (commands, lines) = quick_start();
    assert!(commands.len() <= 5, "{commands:#?}");
    assert!(commands[0].starts_with("git clone ") && commands[1].starts_with("cargo install "));

    // spark-exporter --event-log.dir DIR &
    let words: Vec<&str> = commands[2].split_whitespace().take(3).collect();
    assert_eq!(words, ["spark-exporter", "--event-log.dir", "/mnt/spark-events"]);
    let run = common::recorded("hot_key/4.3.0").display().to_string();
    let (_exporter, url) = daemon(&[words[1], &run]);

    // A Prometheus that knows nothing of Spark yet, and then reads its file again.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prometheus.yml");
    let global = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n";
    std::fs::write(&file, global).unwrap();
    let page = format!("127.0.0.1:{}", free_port());
    let mut command = Command::new(part(&["prometheus"]).join("prometheus"));
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
    command.arg(format!("--web.listen-address={page}"));
    let mut prometheus = Program::start(command, "Prometheus", true);
    prometheus.wait_for(SOON, |line| line.contains("Server is ready").then_some(()));
    assert!(lines.contains("localhost:10404"), "{lines}");
    let lines = lines.replace("localhost:10404", url.trim_start_matches("http://"));
    std::fs::write(&file, format!("{global}{lines}")).unwrap();
    assert!(commands[3].starts_with("systemctl reload prometheus"));
    prometheus.hang_up();

    until(&format!("http://{page}/api/v1/query?query=spark_finding"), SOON, |text| {
        text.contains("data_skew").then_some(())
    })
    .await;
    let rules = until(&format!("http://{page}/api/v1/rules?type=alert"), SOON, |text| {
        let answer: Value = serde_json::from_str(text).unwrap();
        let groups = answer["data"]["groups"].as_array()?.clone();
        (!groups.is_empty()).then_some(groups)
    })
    .await;
    let names: BTreeSet<&str> = rules
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .map(|rule| rule["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains("SparkApplicationFailed") && names.contains("SparkExporterDown"),
        "{names:?}"
    );
    assert!(!prometheus.has_ended());
}

const SOON: Duration = Duration::from_mins(2);

/// What was sent to Grafana: path, Authorization, body.
type Sent = Arc<Mutex<Vec<(String, String, Value)>>>;

async fn write_down(
    request: Request<Incoming>,
    sent: Sent,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = format!("{} {}", request.method(), request.uri().path());
    let who = request.headers()["authorization"].to_str().unwrap().to_owned();
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await?.to_bytes();
    sent.lock().unwrap().push((path, who, serde_json::from_slice(&body).unwrap()));
    Ok(Response::new(Full::new(Bytes::from_static(b"{\"status\":\"success\"}"))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grafana_is_sent_every_dashboard() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let grafana = format!("http://{}", listener.local_addr().unwrap());
    let sent = Sent::default();
    let written = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sent = Arc::clone(&written);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(move |request| write_down(request, Arc::clone(&sent))),
            ));
        }
    });
    let (commands, _) = quick_start();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands[4]])
        .envs([("GRAFANA_URL", grafana.as_str()), ("GRAFANA_TOKEN", "a-token")])
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let sent = sent.lock().unwrap();
    let mut uids = BTreeSet::new();
    for (path, who, body) in sent.iter() {
        assert_eq!((path.as_str(), who.as_str()), ("POST /api/dashboards/db", "Bearer a-token"));
        assert_eq!(body["overwrite"], true);
        // A new dashboard has no id of Grafana's.
        assert!(body["dashboard"]["id"].is_null(), "{}", body["dashboard"]["id"]);
        uids.insert(body["dashboard"]["uid"].as_str().unwrap().to_owned());
    }
    let files =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards")).unwrap();
    let files = files
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "json"));
    assert_eq!(uids.len(), files.count());
    assert!(uids.contains("spark-exporter-fleet"), "{uids:?}");
}
