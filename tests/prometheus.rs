//! A real Prometheus scrapes the web server and answers queries.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use spark_exporter::config::Limits;
use spark_exporter::expose::{self, ExposeState};
use spark_exporter::metrics::{RunView, build};
use spark_exporter::telemetry::Telemetry;
use support::{at, run_id, skewed_run};
use tokio::net::TcpListener;

/// Ends Prometheus whatever becomes of the test.
struct Prometheus {
    process: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// Scrapes `target` every second.
    fn start(target: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs: [{{job_name: spark, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, configuration).expect("written");
        let address = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            free.local_addr().expect("bound").to_string()
        };
        let log = std::fs::File::create(folder.path().join("log")).expect("created");
        let process = Command::new(part("prometheus").join("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Prometheus starts");
        Self { process, address, folder }
    }

    async fn query(&self, expression: &str) -> Option<Vec<Value>> {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut url =
            reqwest::Url::parse(&format!("http://{}/api/v1/query", self.address)).expect("a URL");
        url.query_pairs_mut().append_pair("query", expression);
        let text = client.get(url).send().await.ok()?.text().await.ok()?;
        let answer: Value = serde_json::from_str(&text).ok()?;
        assert_eq!(answer["status"], "success", "{expression}: {text}");
        answer["data"]["result"].as_array().cloned()
    }

    /// Asks until the result is as `wanted`, for half a minute.
    async fn wait(&self, expression: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let result = self.query(expression).await;
            if let Some(result) = &result
                && wanted(result)
            {
                return result.clone();
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "{expression} gave {result:?}; Prometheus says:\n{}",
                std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn part(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts").join(name);
    let output = Command::new(&script)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    assert!(
        output.status.success(),
        "tests/parts/{name} could not get the part that this test needs; run it by hand. It said:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_scrapes_and_answers() {
    let telemetry = Arc::new(Telemetry::new(at(0)));
    let limits = Limits::default();
    let state = Arc::new(ExposeState::new(Arc::clone(&telemetry), &limits, at(0)));
    let publish = |runs: Vec<RunView>| {
        let snapshot = build(&runs, &[], &telemetry.snapshot(), &limits, at(80));
        let series = snapshot.series();
        state.publish(snapshot, runs, at(80));
        series
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("bound").to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(expose::run(listener, Arc::clone(&state), async {
        let _ = stopped.await;
    }));
    let series = publish(vec![skewed_run(run_id("a", "app-1")), skewed_run(run_id("b", "app-1"))]);
    let prometheus = Prometheus::start(&target);

    prometheus.wait("up == 1", |result| result.len() == 1).await;
    // Every series arrived, none was refused as a duplicate.
    let expected = series.to_string();
    prometheus
        .wait("scrape_samples_post_metric_relabeling", |result| {
            result.first().is_some_and(|one| one["value"][1] == expected.as_str())
        })
        .await;
    let found =
        prometheus.wait("spark_finding{rule=\"data_skew\"}", |result| result.len() == 2).await;
    assert_eq!(found[0]["metric"]["app_name"], "orders \"daily\"");
    assert_eq!(found[0]["metric"]["spark_cluster"], "a");
    // No label of ours met one of the target's.
    assert!(
        found[0]["metric"]
            .as_object()
            .is_some_and(|labels| { labels.keys().all(|name| !name.starts_with("exported_")) })
    );
    // The join that docs/metrics.md shows.
    let joined = prometheus
        .wait(
            "spark_application_task_gc_time_seconds * on (spark_cluster, app_id, attempt_id) \
             group_left (app_name) spark_application_info",
            |result| result.len() == 2,
        )
        .await;
    assert_eq!(joined[0]["value"][1], "1.1");

    // A run that expired is gone at the next scrape.
    publish(vec![skewed_run(run_id("b", "app-1"))]);
    let left = prometheus.wait("spark_finding", |result| result.len() == 1).await;
    assert_eq!(left[0]["metric"]["spark_cluster"], "b");
    drop(prometheus);
    drop(stop);
    server.await.expect("no panic");
}
