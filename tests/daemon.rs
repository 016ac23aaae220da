//! The daemon on recorded runs and on everything that can go wrong: nothing
//! lost, nothing hung, each fault counted and said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::fake_spark::{Answer, FakeSpark};
use common::real::{client, daemon, get, prometheus, until};
use common::recorded_server::{answer, folder};
use common::{plain_log, recorded, value};

const SOON: Duration = Duration::from_mins(2);

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

async fn ready(address: &str) {
    let deadline = Instant::now() + SOON;
    while Instant::now() < deadline {
        let response = client().get(format!("{address}/-/ready")).send().await.unwrap();
        if response.status().is_success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not ready");
}

#[tokio::test]
async fn the_demo_shows_what_each_run_really_did() {
    let mut arguments = vec!["--cluster.name".to_owned(), "demo".to_owned()];
    for workload in ["hot_key", "healthy", "spill", "job_cancelled"] {
        arguments.push("--event-log.dir".to_owned());
        arguments.push(recorded(&format!("{workload}/4.3.0")).display().to_string());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut exporter, address) = daemon(&arguments);
    ready(&address).await;
    let text = until(&format!("{address}/metrics"), SOON, |text| {
        (text.matches("spark_application_info{").count() == 4).then(|| text.to_owned())
    })
    .await;
    let findings: Vec<&str> =
        text.lines().filter(|line| line.starts_with("spark_finding{")).collect();
    let of = |name: &str| {
        findings.iter().filter(|line| line.contains(&format!("app_name=\"{name}\""))).count()
    };
    assert_eq!(of("orders-by-customer"), 1, "{findings:#?}");
    assert_eq!(of("orders-daily"), 0, "{findings:#?}");
    assert!(of("ledger-sort") >= 1, "{findings:#?}");
    assert!(!text.contains("rule=\"job_failed\",cause="), "a cancelled job has not failed");
    let page = get(&address).await;
    assert!(page.contains("orders-by-customer") && page.contains("data_skew"));
    assert_eq!(exporter.terminate(Duration::from_secs(30)), 0);
}

#[tokio::test]
async fn finished_runs_leave_when_their_retention_is_over_and_do_not_return() {
    let folder = tempfile::tempdir().unwrap();
    copy(&recorded("hot_key/4.3.0"), folder.path());
    let (_exporter, address) =
        daemon(&["--event-log.dir", folder.path().to_str().unwrap(), "--retention", "3s"]);
    let metrics = format!("{address}/metrics");
    until(&metrics, SOON, |text| text.contains("spark_finding{").then_some(())).await;
    until(&metrics, SOON, |text| (!text.contains("spark_application_info{")).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let text = get(&metrics).await;
    assert!(!text.contains("spark_application_info{"), "the log is still there, and was read");
    assert_eq!(value(&text, "spark_exporter_event_log_reads_total "), Some(1.0));
}

/// A directory that is not there yet, an empty one, one with bad logs among
/// good ones: what can be read is, and the rest is counted with its reason.
#[tokio::test]
async fn bad_logs_cost_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yml");
    let logs = folder.path().join("logs");
    let text = format!(
        "clusters:\n- name: a\n  event_log_dirs: ['{}']\nintervals: {{event_log_dir: 1s}}\n\
         limits: {{followed_logs: 0}}\n",
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let up =
        format!("spark_exporter_target_up{{spark_cluster=\"a\",target=\"{}\"}} ", logs.display());
    until(&metrics, SOON, |text| (value(text, &up) == Some(0.0)).then_some(())).await;

    std::fs::create_dir(&logs).unwrap();
    until(&metrics, SOON, |text| (value(text, &up) == Some(1.0)).then_some(())).await;

    let good = plain_log("executor_idle_removed/4.3.0");
    std::fs::write(logs.join("app-good"), &good).unwrap();
    std::fs::write(logs.join("app-page"), "<html>\nSign in\n</html>\n").unwrap();
    std::fs::write(logs.join("app-logs.zip"), b"PK\x03\x04rest of it").unwrap();
    std::fs::write(logs.join("app-going.inprogress"), &good).unwrap();
    std::os::unix::fs::symlink("nowhere", logs.join("app-gone")).unwrap();
    // Cut in the middle of a line, and in the middle of a zstd frame. Their
    // ids are others, or they would be the same run.
    let other = |id: &str| good.replace("\"App ID\":\"app-", &format!("\"App ID\":\"{id}-"));
    let cut = other("cut");
    std::fs::write(logs.join("app-cut"), &cut[..cut.len() * 2 / 3]).unwrap();
    let framed = other("frame");
    let lines: Vec<&str> = framed.lines().collect();
    let frames: Vec<u8> = lines
        .chunks(1)
        .flat_map(|lines| zstd::encode_all((lines.join("\n") + "\n").as_bytes(), 3).unwrap())
        .collect();
    std::fs::write(logs.join("app-frame.zstd"), &frames[..frames.len() * 2 / 3]).unwrap();

    let text = until(&metrics, SOON, |text| {
        let all = text.matches("spark_application_info{").count() == 3
            && text.contains("reason=\"in_progress\"} 1\n");
        all.then(|| text.to_owned())
    })
    .await;
    let in_progress = "spark_exporter_applications_skipped{reason=\"in_progress\"} ";
    assert_eq!(value(&text, in_progress), Some(1.0));
    for id in ["cut-", "frame-"] {
        let marked = text.lines().any(|line| {
            line.starts_with("spark_application_data_quality{")
                && line.contains(&format!("app_id=\"{id}"))
                && line.contains("reason=\"log_truncated\"")
                && line.ends_with(" 1")
        });
        assert!(marked, "{id} is not marked as cut");
    }
    let failures = |reason: &str| {
        value(
            &text,
            &format!("spark_exporter_event_log_read_failures_total{{reason=\"{reason}\"}} "),
        )
    };
    assert_eq!(failures("not_an_event_log"), Some(1.0));
    assert_eq!(failures("unsupported_codec"), Some(1.0));
    // The two that cannot be read, and the link to nowhere.
    assert_eq!(
        value(&text, "spark_exporter_applications_skipped{reason=\"unreadable\"} "),
        Some(3.0)
    );
}

#[tokio::test]
async fn the_same_id_in_two_clusters_is_two_runs() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yml");
    let log = recorded("hot_key/4.3.0");
    let text = format!(
        "clusters:\n- name: east\n  event_log_dirs: ['{0}']\n- name: west\n  event_log_dirs: ['{0}']\n",
        log.display()
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let text = until(&format!("{address}/metrics"), SOON, |text| {
        (text.matches("spark_finding{").count() == 2).then(|| text.to_owned())
    })
    .await;
    for cluster in ["east", "west"] {
        assert!(text.contains(&format!("spark_finding{{spark_cluster=\"{cluster}\"")));
    }
}

/// The server is down at the start, comes, and goes again.
#[tokio::test]
async fn a_server_that_is_down_is_said_to_be_and_tried_again() {
    let (mut exporter, address) = daemon(&["--spark.url", "http://127.0.0.1:1"]);
    let metrics = format!("{address}/metrics");
    let text = until(&metrics, SOON, |text| {
        let up =
            "spark_exporter_target_up{spark_cluster=\"default\",target=\"http://127.0.0.1:1\"} ";
        (value(text, up) == Some(0.0)).then(|| text.to_owned())
    })
    .await;
    let errors = "spark_exporter_fetch_errors_total{endpoint=\"version\",kind=\"unreachable\"} ";
    assert!(value(&text, errors) >= Some(1.0), "{text}");
    ready(&address).await;
    assert_eq!(check_ready(&[&address]).0, 0);
    assert_eq!(exporter.terminate(Duration::from_secs(30)), 0);
    let (status, said) = check_ready(&[&address]);
    assert!(status == 1 && said.contains("no answer"), "{said}");
}

/// The question of a health check: its exit status, and all it says.
fn check_ready(arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    let output = command.arg("check-ready").args(arguments).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_says_what_it_met() {
    let asks = AtomicUsize::new(0);
    let server = FakeSpark::start(move |asked| match asked.target.as_str() {
        "/under/a/path/-/ready"
            if asked.header("authorization") == "Basic cHJvYmU6aHVudGVyMg==" =>
        {
            Answer::new(200, "text/plain", "Ready.\n")
        }
        "/under/a/path/-/ready" => Answer::new(401, "text/plain", "no"),
        "/-/healthy" => Answer::new(200, "text/plain", "Healthy.\n"),
        "/soon/-/ready" if asks.fetch_add(1, Ordering::Relaxed) > 0 => {
            Answer::new(200, "text/plain", "Ready.\n")
        }
        _ => Answer::new(503, "text/plain", "Not ready: the first cycle.\n"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.yml");
    let path = file.to_str().unwrap();
    let guarded = server.url("/under/a/path");
    std::fs::write(&file, "basic_auth: {username: probe, password: hunter2}\n").unwrap();
    let (status, said) = check_ready(&[&guarded, "--http.config.file", path]);
    assert_eq!((status, said), (0, format!("{guarded} is ready\n")));
    std::fs::write(&file, "basic_auth: {username: probe, password: hunter3}\n").unwrap();
    let (status, said) = check_ready(&[&guarded, "--http.config.file", path]);
    assert!(status == 1 && said.contains("401") && !said.contains("hunter3"), "{said}");
    let (status, said) = check_ready(&[&server.url("")]);
    assert!(status == 1 && said.contains("503"), "{said}");
    assert_eq!(check_ready(&[&server.url(""), "--healthy"]).0, 0);
    let soon = server.url("/soon");
    assert_eq!(check_ready(&[&soon, "--wait", "20s"]), (0, format!("{soon} is ready\n")));
    std::fs::write(&file, "basic_auth: {username: probe, pasword: hunter2}\n").unwrap();
    let (status, said) = check_ready(&[&guarded, "--http.config.file", path]);
    assert!(status == 2 && said.contains("did you mean `password`?"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let (status, said) = check_ready(&["http://probe:hunter2@127.0.0.1:1"]);
    assert!(status == 2 && !said.contains("hunter2"), "{said}");
}

/// A History Server that was there goes away: said at once, tried again.
#[tokio::test]
async fn a_server_that_goes_away_is_said_to_be_down() {
    let server = FakeSpark::start(|_| Answer::json("[]")).await;
    let url = server.url("");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n- name: a\n  history_servers: ['{url}']\nintervals: {{history_server: 5s}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let up = format!(
        "spark_exporter_target_up{{spark_cluster=\"a\",target=\"{}\"}} ",
        url.trim_end_matches('/')
    );
    until(&metrics, SOON, |text| (value(text, &up) == Some(1.0)).then_some(())).await;
    drop(server);
    until(&metrics, SOON, |text| (value(text, &up) == Some(0.0)).then_some(())).await;
}

/// What stands before Spark and is not Spark: each kind of answer has its
/// class, and none of them stops the daemon.
#[tokio::test]
async fn answers_that_are_not_spark_s_are_classed() {
    for (answer, kind) in [
        (Answer::new(200, "text/html", "<html><body>Sign in</body></html>"), "not_json"),
        (
            Answer::new(302, "text/html", "")
                .with("location", "https://login.example.org/?token=hunter2"),
            "status",
        ),
        (Answer::new(503, "text/plain", "busy"), "status"),
    ] {
        let server = FakeSpark::start(move |_| answer.clone()).await;
        let (_exporter, address) = daemon(&["--spark.url", &server.url("")]);
        let errors =
            format!("spark_exporter_fetch_errors_total{{endpoint=\"version\",kind=\"{kind}\"}} ");
        let text = until(&format!("{address}/metrics"), SOON, |text| {
            (value(text, &errors) >= Some(1.0)).then(|| text.to_owned())
        })
        .await;
        assert!(!text.contains("hunter2"));
    }
}

/// Of three applications that a History Server lists one is gone when asked
/// for and one answers half a body: both are counted and tried again, a few
/// times; the third, whose log is not given, is read once by REST, however
/// often the list is.
#[tokio::test]
async fn one_bad_application_costs_only_itself() {
    let recorded = folder("4.3.0", "hot_key");
    let list = std::fs::read_to_string(recorded.join("applications.json")).unwrap();
    let good = "app-20261130040127-0000";
    let server = FakeSpark::start(move |asked| {
        if asked.target.contains("status=running") {
            return Answer::json("[]");
        }
        if asked.target.starts_with("/api/v1/applications?") {
            let one = list.trim().trim_start_matches('[').trim_end_matches(']');
            let (gone, cut) = (one.replace(good, "app-gone"), one.replace(good, "app-cut"));
            return Answer::json(format!("[{gone},{cut},{one}]"));
        }
        if asked.target.contains("app-gone") {
            return Answer::not_found("no such app: app-gone");
        }
        if asked.target.contains("app-cut") {
            return Answer::cut("[ { \"jobId\" : 1, \"na");
        }
        answer(&recorded, asked)
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n- name: a\n  history_servers: ['{}']\nintervals: {{history_server: 5s}}\n\
         read: {{lookback: 36500d}}\n",
        server.url("")
    );
    std::fs::write(&config, text).unwrap();
    let (_exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let found = |text: &str| {
        let skipped = "spark_exporter_applications_skipped{reason=\"unreadable\"} ";
        text.contains("rule=\"data_skew\",cause=") && value(text, skipped) == Some(2.0)
    };
    until(&metrics, SOON, |text| found(text).then_some(())).await;
    let asked =
        |part: &str| server.asked().iter().filter(|asked| asked.target.contains(part)).count();
    let lists = asked("status=completed");
    // Each of the two would be tried again in the next cycle, and is not.
    until(&metrics, SOON, |_| (asked("status=completed") >= lists + 4).then_some(())).await;
    assert_eq!(asked(&format!("{good}/stages?")), 1, "a run is read once");
    assert_eq!(asked("app-gone/"), 3, "given up after three tries");
    let text = get(&metrics).await;
    assert!(found(&text), "and still counted as not covered");
    let errors = |kind: &str| {
        let series =
            format!("spark_exporter_fetch_errors_total{{endpoint=\"logs\",kind=\"{kind}\"}} ");
        value(&text, &series)
    };
    assert_eq!(errors("unknown_application"), Some(3.0));
}

/// A secret given by file, header and configuration is in nothing that the
/// daemon says: metrics, page, log.
#[tokio::test]
async fn secrets_reach_only_the_server_they_are_for() {
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "hunter2\n").unwrap();
    let config = folder.path().join("config.yml");
    let server = FakeSpark::start(|_| Answer::new(401, "text/plain", "who are you")).await;
    let text = format!(
        "clusters:\n- name: a\n  urls: ['{}']\n  http_config:\n    basic_auth: {{username: reader, \
         password_file: '{}'}}\n    http_headers:\n      X-Key: {{secrets: [hunter3]}}\n",
        server.url(""),
        password.display()
    );
    std::fs::write(&config, text).unwrap();
    let (exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let metrics = until(&format!("{address}/metrics"), SOON, |text| {
        let errors = "spark_exporter_fetch_errors_total{endpoint=\"version\",kind=\"status\"} ";
        (value(text, errors) >= Some(1.0)).then(|| text.to_owned())
    })
    .await;
    let asked = server.asked();
    // "reader:hunter2" in base64.
    let sent = |asked: &common::fake_spark::Asked| {
        let headers = format!("{:?}", asked.headers);
        headers.contains("cmVhZGVyOmh1bnRlcjI=") && headers.contains("hunter3")
    };
    assert!(asked.iter().any(sent), "the server got them: {asked:?}");
    let page = get(&address).await;
    let log = exporter.said().join("\n");
    assert!(log.contains("source down"), "the fault is in the log: {log}");
    for secret in ["hunter2", "hunter3", "cmVhZGVyOmh1bnRlcjI="] {
        for (what, text) in [("metrics", &metrics), ("page", &page), ("log", &log)] {
            assert!(!text.contains(secret), "{secret} is in the {what}:\n{text}");
        }
    }
}

/// Spark's clock may be ahead of ours: nothing is negative, nothing stays for
/// ever.
#[tokio::test]
async fn a_clock_ahead_of_ours_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    // Every time in the log three days later.
    let shift = |line: &str| {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(":17960") {
            let digits = &rest[at + 1..];
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            out.push_str(&rest[..=at]);
            match digits[..end].parse::<i64>() {
                Ok(time) if end == 13 => out.push_str(&(time + 259_200_000).to_string()),
                _ => out.push_str(&digits[..end]),
            }
            rest = &digits[end..];
        }
        out + rest
    };
    let log: String =
        plain_log("executor_idle_removed/4.3.0").lines().map(|line| shift(line) + "\n").collect();
    std::fs::write(folder.path().join("app-ahead"), log).unwrap();
    let (_exporter, address) =
        daemon(&["--event-log.dir", folder.path().to_str().unwrap(), "--retention", "4s"]);
    let metrics = format!("{address}/metrics");
    let text = until(&metrics, SOON, |text| {
        text.contains("spark_application_info{").then(|| text.to_owned())
    })
    .await;
    let negative: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#') && line.contains("} -")).collect();
    assert!(negative.is_empty(), "{negative:#?}");
    until(&metrics, SOON, |text| (!text.contains("spark_application_info{")).then_some(())).await;
}

/// A real Prometheus scrapes the daemon and answers the query of the README.
#[tokio::test]
async fn a_real_prometheus_answers_what_is_wrong() {
    let (_exporter, address) =
        daemon(&["--event-log.dir", recorded("hot_key/4.3.0").to_str().unwrap()]);
    let folder = tempfile::tempdir().unwrap();
    let target = address.strip_prefix("http://").unwrap();
    let (_prometheus, url) = prometheus(target, folder.path());
    let query = "sort_desc(spark_finding_wall_seconds{severity!=\"info\"})";
    let mut asked = reqwest::Url::parse(&format!("{url}/api/v1/query")).unwrap();
    asked.query_pairs_mut().append_pair("query", query);
    let answer = until(asked.as_str(), SOON, |text| {
        let answer: serde_json::Value = serde_json::from_str(text).unwrap();
        (!answer["data"]["result"].as_array().unwrap().is_empty()).then_some(answer)
    })
    .await;
    let worst = &answer["data"]["result"][0];
    assert_eq!(worst["metric"]["rule"], "data_skew");
    assert_eq!(worst["metric"]["cause"], "hot_key");
    let saved: f64 = worst["value"][1].as_str().unwrap().parse().unwrap();
    assert!((1.0..40.0).contains(&saved), "{saved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_can_ask_for_life_only_and_wait() {
    let asked = AtomicUsize::new(0);
    let server = FakeSpark::start(move |request| match request.target.as_str() {
        "/-/healthy" if request.header("authorization") == "Basic cHJvYmU6aHVudGVyMg==" => {
            Answer::new(200, "text/plain", "Healthy.\n")
        }
        "/-/ready" if asked.fetch_add(1, Ordering::SeqCst) > 0 => {
            Answer::new(200, "text/plain", "Ready.\n")
        }
        _ => Answer::new(503, "text/plain", "Not ready: the first cycle.\n"),
    })
    .await;
    let url = server.url("");
    // A proxy that nobody is behind: what is near is asked without it.
    let waiting = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["check-ready", &url, "--wait", "10s"])
        .envs([("http_proxy", "http://127.0.0.1:1"), ("HTTP_PROXY", "http://127.0.0.1:1")])
        .output()
        .unwrap();
    assert!(waiting.status.success(), "{}", String::from_utf8_lossy(&waiting.stderr));

    let folder = tempfile::tempdir().unwrap();
    let (file, user, word) =
        (folder.path().join("c.yml"), folder.path().join("u"), folder.path().join("p"));
    std::fs::write(&user, "probe\n").unwrap();
    std::fs::write(&word, "hunter2\n").unwrap();
    let text = format!(
        "basic_auth: {{username_file: {}, password_file: {}}}\n",
        user.display(),
        word.display()
    );
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let (status, said) = check_ready(&[&url, "--healthy", "--http.config.file", path]);
    assert_eq!((status, said), (0, format!("{url} is healthy\n")));
    std::fs::write(&file, "basic_auth: {username: probe, username_file: /u}\n").unwrap();
    let (status, said) = check_ready(&[&url, "--healthy", "--http.config.file", path]);
    assert!(status == 2 && said.contains("exclude each other"), "{said}");
}
