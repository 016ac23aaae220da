//! The configuration is read again while the daemon runs: what changed is done,
//! and nothing that is held is lost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use common::real::{client, daemon, get, until};
use common::recorded_server::recorded_driver;
use common::{ended_now, run_state, value};
use reqwest::{Method, StatusCode};

const SOON: Duration = Duration::from_mins(2);

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.yml")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.config(), text).unwrap();
    }

    /// The place of event logs of a cluster.
    fn place(&self, cluster: &str) -> PathBuf {
        let place = self.folder.path().join("logs").join(cluster);
        std::fs::create_dir_all(&place).unwrap();
        place
    }

    /// Clusters with one place each.
    fn clusters(&self, clusters: &[&str], rest: &str) {
        let mut text = "intervals: {event_log_dir: 1s}\nclusters:\n".to_owned();
        for cluster in clusters {
            let place = self.place(cluster);
            let place = place.display();
            writeln!(text, "- name: {cluster}\n  event_log_dirs: ['{place}']").unwrap();
        }
        self.write(&(text + rest));
    }

    /// A recorded run ends now.
    fn ends(&self, cluster: &str, run: &str) {
        let id = format!("app-20261130000000-{run}");
        let text = ended_now(&format!("{run}/4.3.0"), &id);
        let partial = self.folder.path().join("partial");
        std::fs::write(&partial, text).unwrap();
        std::fs::rename(partial, self.place(cluster).join(id)).unwrap();
    }

    fn start(&self, more: &[&str]) -> (common::real::Program, String) {
        let config = self.config();
        let mut arguments = vec!["--config.file", config.to_str().unwrap()];
        arguments.extend_from_slice(more);
        daemon(&arguments)
    }
}

async fn reload(address: &str) -> (StatusCode, String) {
    let url = format!("{address}/-/reload");
    let answer = client().post(url).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

fn good(text: &str) -> Option<f64> {
    value(text, "spark_exporter_config_last_reload_successful ")
}

fn up(cluster: &str) -> String {
    format!("spark_exporter_target_up{{spark_cluster=\"{cluster}\"")
}

fn info(cluster: &str) -> String {
    format!("spark_application_info{{spark_cluster=\"{cluster}\"")
}

/// A source is added and another taken away: the one that stays is not read
/// again, the runs of the one that went stay, totals do not move.
#[tokio::test]
async fn sources_come_and_go_and_nothing_is_lost() {
    let world = World::new();
    let store = format!("storage: {{path: {}}}\n", world.folder.path().join("s.redb").display());
    world.clusters(&["stays", "goes"], &store);
    let (mut exporter, address) = world.start(&["--web.enable-lifecycle"]);
    // Runs that ended before there was a store are in no total.
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.ends("stays", "hot_key");
    world.ends("goes", "healthy");
    let metrics = format!("{address}/metrics");
    let reads = until(&metrics, SOON, |text| {
        let there = text.contains(&info("stays")) && text.contains(&info("goes"));
        there.then(|| value(text, "spark_exporter_event_log_reads_total "))?
    })
    .await;

    world.clusters(&["stays", "comes"], &store);
    world.ends("comes", "spill");
    let (status, text) = reload(&address).await;
    assert_eq!(
        (status, text.as_str()),
        (StatusCode::OK, "Reloaded. Sources: 1 new, 1 gone, 1 as before.\n")
    );
    let text = until(&metrics, SOON, |text| {
        let gone = !text.contains(&up("goes"));
        (text.contains(&info("comes")) && gone).then(|| text.to_owned())
    })
    .await;
    for cluster in ["stays", "goes"] {
        assert!(text.contains(&info(cluster)), "its run stays for its retention: {cluster}");
    }
    assert!(text.contains(&up("stays")) && text.contains(&up("comes")));
    assert_eq!(value(&text, "spark_exporter_event_log_reads_total "), Some(reads + 1.0));
    assert_eq!(get(&format!("{address}/-/ready")).await, "Ready.\n");

    // And back: what was counted is not counted twice.
    world.clusters(&["stays", "goes"], &store);
    assert_eq!(reload(&address).await.0, StatusCode::OK);
    until(&metrics, SOON, |text| text.contains(&up("goes")).then_some(())).await;
    until(&metrics, SOON, |text| {
        let read = value(text, "spark_exporter_event_log_reads_total ")?;
        (read >= reads + 2.0).then_some(())
    })
    .await;
    assert_eq!(exporter.terminate(Duration::from_secs(30)), 0);
    let file = world.folder.path().join("s.redb");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["store", "export", "--storage.path"])
        .arg(file)
        .output()
        .unwrap();
    let lines: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let counted: Vec<String> = lines
        .iter()
        .filter(|line| !line["totals"].is_null())
        .map(|line| line["totals"]["totals"]["runs"].to_string())
        .collect();
    assert_eq!(counted, ["[1,0,0,0,0,0]"; 3], "{lines:#?}");
}

/// A driver that is taken out is asked no more, and nobody knows what becomes
/// of its run; given again, it is the same run.
#[tokio::test]
async fn the_run_of_a_driver_that_is_taken_out_is_unknown() {
    let world = World::new();
    let driver = recorded_driver().await;
    let place = world.place("logs");
    let text = |drivers: &str| {
        format!(
            "intervals: {{driver: 10s}}\nclusters: [{{name: a, event_log_dirs: ['{}'], \
             drivers: [{drivers}]}}]\n",
            place.display()
        )
    };
    let with_driver = text(&format!("'{}'", driver.url("")));
    world.write(&with_driver);
    let (exporter, address) = world.start(&[]);
    let metrics = format!("{address}/metrics");
    until(&metrics, SOON, |text| (run_state(text) == Some("running")).then_some(())).await;

    world.write(&text(""));
    exporter.hang_up();
    let text =
        until(&metrics, SOON, |text| (run_state(text) == Some("unknown")).then(|| text.to_owned()))
            .await;
    assert!(text.contains(&info("a")), "its run stays for its retention");
    assert!(!text.contains("target=\"driver\""), "no target is there to be down");
    let asked = driver.asked().len();
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(driver.asked().len(), asked, "asked after it was taken out");

    world.write(&with_driver);
    exporter.hang_up();
    let text =
        until(&metrics, SOON, |text| (run_state(text) == Some("running")).then(|| text.to_owned()))
            .await;
    let runs = text.lines().filter(|line| line.starts_with("spark_application_info{")).count();
    assert_eq!(runs, 1);
}

/// Where shards divide the runs, what decides whose a run is waits for a
/// restart, and whoever asked is told.
#[tokio::test]
async fn a_reload_moves_no_run_to_another_shard() {
    let world = World::new();
    world.clusters(&["a"], "");
    let (exporter, address) =
        world.start(&["--web.enable-lifecycle", "--shard=0", "--total-shards=1"]);
    let rules = "names: {rules: [{pattern: '.*', replacement: renamed}]}\n";
    world.clusters(&["a"], rules);
    assert_eq!(
        reload(&address).await,
        (StatusCode::OK, "Reloaded. Sources: 0 new, 0 gone, 1 as before.\n".to_owned()),
        "of one shard alone names may change"
    );
    drop(exporter);

    let divided = "sharding: {shard: 0, total_shards: 2}\n";
    world.clusters(&["a"], divided);
    let (exporter, address) = world.start(&["--web.enable-lifecycle"]);
    world.clusters(&["a"], &format!("sharding: {{shard: 1, total_shards: 2}}\n{rules}"));
    let (status, text) = reload(&address).await;
    assert_eq!(status, StatusCode::OK);
    let waiting: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        waiting,
        [
            "Changed, and only read at the start: sharding",
            "Changed, and only read at the start: names.rules"
        ]
    );
    exporter.wait_for(SOON, |line| line.contains("setting=names.rules").then_some(()));
    let text = get(&format!("{address}/metrics")).await;
    assert_eq!(value(&text, "spark_exporter_shard_ordinal "), Some(0.0));
    // They still wait at the next one, and are nothing new once they are back.
    assert_eq!(
        reload(&address).await.1,
        format!("Reloaded. Sources: 0 new, 0 gone, 1 as before.\n{}\n", waiting.join("\n"))
    );
    world.clusters(&["a"], divided);
    assert_eq!(reload(&address).await.1, "Reloaded. Sources: 0 new, 0 gone, 1 as before.\n");
}

/// By SIGHUP: a threshold changes what is found in the next run that is read,
/// and is shown as it is now.
#[tokio::test]
async fn thresholds_and_names_count_from_the_next_judgement() {
    let world = World::new();
    let place = world.place("a");
    let text = |rest: &str| {
        let sources = format!("[{{name: a, event_log_dirs: ['{}']}}]", place.display());
        format!("intervals: {{event_log_dir: 1s}}\nclusters: {sources}\n{rest}")
    };
    world.write(&text(""));
    let (exporter, address) = world.start(&[]);
    let metrics = format!("{address}/metrics");
    world.ends("a", "hot_key");
    let skew = "rule=\"data_skew\"";
    until(&metrics, SOON, |text| {
        text.lines()
            .any(|line| line.starts_with("spark_finding{") && line.contains(skew))
            .then_some(())
    })
    .await;

    world.write(&text(
        "thresholds: {data_skew: {enabled: false}}\n\
         names: {rules: [{pattern: '.*', replacement: renamed}]}\n",
    ));
    exporter.hang_up();
    until(&metrics, SOON, |text| {
        let set = text.contains("spark_exporter_threshold{rule=\"data_skew\"");
        (!set).then_some(())
    })
    .await;
    world.ends("a", "hot_key_aggregate");
    let text = until(&metrics, SOON, |text| {
        text.contains("app_name=\"renamed\"").then(|| text.to_owned())
    })
    .await;
    let findings: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("spark_finding{") && line.contains(skew))
        .collect();
    assert!(!findings.iter().any(|line| line.contains("renamed")), "{findings:#?}");
    assert!(!findings.is_empty(), "a run that ended keeps what was found in it");
    assert_eq!(good(&text), Some(1.0));
}

/// What cannot be used: told to whoever asked, in the log and in the metrics,
/// and nothing changes.
#[tokio::test]
async fn a_bad_file_changes_nothing() {
    let world = World::new();
    world.clusters(&["a"], "");
    world.ends("a", "hot_key");
    let (exporter, address) = world.start(&["--web.enable-lifecycle"]);
    let metrics = format!("{address}/metrics");
    let when =
        |text: &str| value(text, "spark_exporter_config_last_reload_success_timestamp_seconds ");
    let taken =
        until(&metrics, SOON, |text| text.contains(&info("a")).then(|| when(text)).flatten()).await;
    for (bad, part) in [
        ("clusters: [{nmae: a}]\n", "did you mean `name`?"),
        ("clusters: [{name: a, http_config: {basic_auth: hunter2}}]\n", "config.yml"),
        ("retention: 1h\n", "nothing to watch"),
        (
            "clusters: [{name: a, urls: ['http://x'], http_config: {tls_config: {ca_file: /nowhere/ca.pem}}}]\n",
            "/nowhere/ca.pem",
        ),
    ] {
        world.write(bad);
        let (status, text) = reload(&address).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{bad}");
        assert!(text.contains(part) && !text.contains("hunter2"), "{bad}: {text}");
        exporter.wait_for(SOON, |line| {
            assert!(!line.contains("hunter2"), "{line}");
            line.contains("configuration not taken").then_some(())
        });
        let text =
            until(&metrics, SOON, |text| (good(text) == Some(0.0)).then(|| text.to_owned())).await;
        assert!(text.contains(&up("a")) && text.contains(&info("a")));
        assert_eq!(when(&text), Some(taken));
    }
    std::fs::remove_file(world.config()).unwrap();
    assert_eq!(reload(&address).await.0, StatusCode::INTERNAL_SERVER_ERROR);
    world.clusters(&["a"], "storage: {temp_path: /tmp}\n");
    let (status, text) = reload(&address).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("only read at the start: storage"), "{text}");
    until(&metrics, SOON, |text| (good(text) == Some(1.0)).then_some(())).await;
}

#[tokio::test]
async fn only_who_may_reloads() {
    let world = World::new();
    world.clusters(&["a"], "");
    let ask = |method: Method, address: &str, headers: &[(&'static str, &str)]| {
        let mut request = client().request(method, format!("{address}/-/reload"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        async { request.send().await.unwrap().status() }
    };
    let (_off, address) = world.start(&[]);
    assert_eq!(ask(Method::POST, &address, &[]).await, StatusCode::FORBIDDEN);
    let web = world.folder.path().join("web.yml");
    let hash = bcrypt::hash("one", 4).unwrap();
    std::fs::write(&web, format!("basic_auth_users: {{alice: '{hash}'}}\n")).unwrap();
    let web = web.to_str().unwrap();
    let (exporter, address) = world.start(&["--web.enable-lifecycle", "--web.config.file", web]);
    let login = ("authorization", "Basic YWxpY2U6b25l");
    for (method, headers, status) in [
        (Method::POST, &[][..], StatusCode::UNAUTHORIZED),
        (Method::GET, &[login], StatusCode::METHOD_NOT_ALLOWED),
        (Method::POST, &[login, ("origin", "http://elsewhere")], StatusCode::FORBIDDEN),
        (Method::POST, &[login, ("sec-fetch-site", "cross-site")], StatusCode::FORBIDDEN),
        (Method::PUT, &[login], StatusCode::OK),
        (Method::POST, &[login], StatusCode::OK),
    ] {
        assert_eq!(ask(method.clone(), &address, headers).await, status, "{method} {headers:?}");
    }
    // A change of users is taken without being told.
    let hash = bcrypt::hash("two", 4).unwrap();
    std::fs::write(web, format!("basic_auth_users: {{alice: '{hash}'}}\n")).unwrap();
    exporter.wait_for(SOON, |line| line.contains("web configuration read again").then_some(()));
    exporter.wait_for(SOON, |line| line.contains("web configuration read again").then_some(()));
    exporter.wait_for(SOON, |line| line.contains("web configuration read again").then_some(()));
    assert_eq!(ask(Method::POST, &address, &[login]).await, StatusCode::UNAUTHORIZED);
}
