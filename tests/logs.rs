//! A History Server's `/logs`: what a good answer gives, how each bad one is
//! told apart, and which way the daemon then goes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::fake_spark::{Answer, Asked, FakeSpark};
use common::real::{daemon, until};
use common::recorded_server::{answer, folder};
use spark_exporter::config::HttpConfig;
use spark_exporter::fetch::files::{Files, ZipFiles};
use spark_exporter::fetch::{FetchErrorKind, FetchLimits, HttpClient, Spool, Timeouts};
use spark_exporter::rest::Api;
use spark_exporter::rest::applications::{ApplicationAttemptInfo, ApplicationInfo};
use spark_exporter::rest::logs::{self, LogsError};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    idle: Duration::from_millis(1_500),
    total: Duration::from_secs(20),
};
const LIMIT: u64 = 1 << 20;
const SOON: Duration = Duration::from_mins(2);

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/fixtures/zip").join(name)).unwrap()
}

fn spool() -> Spool {
    Spool::new(&std::env::temp_dir(), LIMIT)
}

fn client() -> HttpClient {
    let limits = FetchLimits { response_size: 1_000, in_flight_per_server: 2 };
    HttpClient::new(&HttpConfig::default(), TIMEOUTS, limits).unwrap()
}

fn run() -> (ApplicationInfo, ApplicationAttemptInfo) {
    let application: ApplicationInfo = serde_json::from_str(
        r#"{"id": "app-20261130032031-0000", "attempts": [{"attemptId": "7", "completed": true,
            "lastUpdatedEpoch": 1796011236736}]}"#,
    )
    .unwrap();
    let attempt = application.attempts[0].clone();
    (application, attempt)
}

async fn logs_of(server: &FakeSpark, client: &HttpClient) -> Result<ZipFiles, LogsError> {
    let (application, attempt) = run();
    let api = Api::new(client, &server.url("/prefix").parse().unwrap());
    logs::get(&api, &application, &attempt, &spool()).await
}

async fn error_of(answer: Answer) -> LogsError {
    let server = FakeSpark::start(move |_| answer.clone()).await;
    logs_of(&server, &client()).await.expect_err("an error")
}

#[tokio::test]
async fn the_zip_is_asked_for_as_it_is() {
    let zip = fixture("rolling-3.5.9.zip");
    let bytes = zip.len() as u64;
    let server = FakeSpark::start(move |_| Answer::zip(zip.clone())).await;
    let client = client();
    let files = logs_of(&server, &client).await.unwrap();
    let listing = files.list().unwrap();
    assert_eq!(listing.entries.len(), 14);
    // The zip itself is dated at the download.
    let modified = listing.entries[0].modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(modified.as_millis(), 1_796_011_236_736);
    let asked = &server.asked()[0];
    assert_eq!(asked.target, "/prefix/api/v1/applications/app-20261130032031-0000/7/logs");
    assert_eq!(asked.header("accept"), "*/*", "a History Server has no JSON of it");
    assert_eq!(asked.header("accept-encoding"), "identity");
    assert_eq!(client.statistics()["logs"].wire_bytes, bytes);
    assert!(bytes > 1_000, "limits.response_size is not for downloads");
}

#[tokio::test]
async fn a_gzipped_zip_is_read_all_the_same() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&fixture("single-4.3.0.zip")).unwrap();
    let zip = encoder.finish().unwrap();
    let server =
        FakeSpark::start(move |_| Answer::zip(zip.clone()).with("content-encoding", "gzip")).await;
    assert_eq!(logs_of(&server, &client()).await.unwrap().list().unwrap().entries.len(), 1);
}

/// Each has its class, and it is known whether REST may help.
#[tokio::test]
async fn bad_answers_are_told_apart() {
    use FetchErrorKind::{NotJson, Status, UnknownApplication, Unreachable};

    let whole = fixture("rolling-3.5.9.zip");
    let mut empty = b"PK\x05\x06".to_vec();
    empty.resize(22, 0);
    let text = |status, text: &str| Answer::new(status, "text/plain", text.to_owned());
    let page = |status| Answer::new(status, "text/html", "<html><title>Sign in</title></html>");
    let broken = Answer::cut(whole[..9_000].to_vec());
    let short = broken.clone().with("content-length", whole.len().to_string());
    let not_available = "Event logs are not available for app: app-1.";
    for (answer, kind, rest_may_help, said) in [
        // A server that fails half way ends the transfer well.
        (Answer::zip(whole[..9_000].to_vec()), None, true, "the zip is cut"),
        (Answer::zip(empty), None, true, "a driver's own UI answers so"),
        (broken, Some(Unreachable), false, "broke off after 9000 bytes"),
        (short, Some(Unreachable), false, "broke off after 9000 bytes"),
        (page(200), Some(NotJson), false, "HTML with status 200, not a zip: \"Sign in\""),
        (text(200, "hello"), Some(NotJson), false, "text with status 200, not a zip: \"hello\""),
        (text(200, ""), Some(NotJson), false, "an empty answer"),
        (text(503, not_available), Some(Status), true, "could not read the log"),
        (text(503, "starting"), Some(Status), false, "asked again later"),
        (page(500), Some(Status), true, "failed at this one question"),
        (page(502), Some(Status), false, "a proxy answered"),
        (text(401, "no"), Some(Status), false, "basic_auth"),
        (text(403, "no"), Some(Status), true, "spark.history.ui.admin.acls"),
        (page(404), Some(Status), true, "path prefix"),
        (text(404, "no such app: app-1"), Some(UnknownApplication), false, "was forgotten"),
        (
            Answer::new(302, "text/html", "")
                .with("location", "https://sso.example.org/?t=hunter2"),
            Some(Status),
            false,
            "redirect to sso.example.org",
        ),
    ] {
        let error = error_of(answer).await;
        assert_eq!(error.rest_may_help(), rest_may_help, "{error}");
        assert!(
            error.to_string().contains(said) && !error.to_string().contains("hunter2"),
            "{error}"
        );
        assert_eq!(error.into_fetch_error().map(|error| error.kind), kind);
    }
}

/// Announced too large it is not even begun; else it stops at the limit.
#[tokio::test]
async fn a_huge_zip_stops_at_the_limit() {
    let chunk = b"PK\x03\x04".repeat(16 << 10);
    let endless = Answer::repeated(chunk.clone(), 32_768, Duration::ZERO);
    let announced = endless.clone().with("content-length", "2147483648");
    for (answer, most) in [(endless, 8 * LIMIT), (announced, LIMIT)] {
        let server = FakeSpark::start(move |_| answer.clone()).await;
        let client = client();
        let error = logs_of(&server, &client).await.expect_err("too large");
        assert!(error.rest_may_help());
        assert!(error.to_string().contains("limits.spool_size"), "{error}");
        assert_eq!(error.into_fetch_error().unwrap().kind, FetchErrorKind::TooLarge);
        assert!(client.statistics()["logs"].wire_bytes <= most);
        assert_eq!(client.statistics()["logs"].errors[&FetchErrorKind::TooLarge], 1);
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left() {
    let chunk = b"PK\x03\x04".to_vec();
    let error = error_of(Answer::repeated(chunk, 2, Duration::from_mins(1))).await;
    assert!(!error.rest_may_help(), "it is overloaded already");
    assert_eq!(error.into_fetch_error().unwrap().kind, FetchErrorKind::Timeout);
}

#[tokio::test]
async fn a_disk_that_takes_nothing_is_said_to_be_ours() {
    let zip = fixture("single-4.3.0.zip");
    let server = FakeSpark::start(move |_| Answer::zip(zip.clone())).await;
    let (application, attempt) = run();
    let client = client();
    let api = Api::new(&client, &server.url("").parse().unwrap());
    let missing = Spool::new(Path::new("/no/such/folder"), LIMIT);
    let error = logs::get(&api, &application, &attempt, &missing).await.expect_err("no disk");
    assert!(error.rest_may_help());
    let text = error.to_string();
    assert!(text.contains("/no/such/folder") && text.contains("--storage.temp-path"), "{text}");
    assert_eq!(client.statistics()["logs"].errors[&FetchErrorKind::Disk], 1);
    let text = missing.check().expect_err("no folder").to_string();
    assert!(text.contains("/no/such/folder") && text.contains("--storage.temp-path"), "{text}");
    spool().check().unwrap();
}

/// A disk that is full in the middle of a download.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_an_error_and_no_cut_zip() {
    // A file may not grow beyond this; the parent has no such limit.
    if std::env::var_os("LOGS_TEST_SMALL_FILES").is_none() {
        let test = std::env::current_exe().unwrap();
        let command = "trap '' XFSZ; ulimit -f 40; exec \"$0\" \
                       --exact a_full_disk_is_an_error_and_no_cut_zip --nocapture";
        let output = std::process::Command::new("bash")
            .args(["-c", command])
            .arg(test)
            .env("LOGS_TEST_SMALL_FILES", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let zip = fixture("rolling-3.5.9.zip");
    assert!(zip.len() > 41 * 1024);
    let error = error_of(Answer::zip(zip)).await;
    assert!(error.rest_may_help());
    let error = error.into_fetch_error().unwrap();
    assert_eq!(error.kind, FetchErrorKind::Disk, "{error}");
    assert!(error.to_string().contains("make room there"), "{error}");
}

/// A recorded History Server that also gives the log of its run, or not.
async fn history_server(
    logs: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static,
) -> FakeSpark {
    let recorded = folder("3.5.9", "hot_key");
    FakeSpark::start(move |asked| {
        if asked.target.contains("status=running") {
            return Answer::json("[]");
        }
        if asked.target.ends_with("/logs")
            && let Some(answer) = logs(asked)
        {
            return answer;
        }
        answer(&recorded, asked)
    })
    .await
}

const APP: &str = "app-20261130040001-0000";

fn zipped() -> Vec<u8> {
    use std::io::Write;
    let directory = common::recorded("hot_key/3.5.9");
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(&std::fs::read(&path).unwrap()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn settings(folder: &Path, server: &FakeSpark, more: &str) -> String {
    let config = folder.join("config.yml");
    let text = format!(
        "clusters:\n- name: a\n  history_servers: ['{}']\nintervals: {{history_server: 5s}}\n{more}",
        server.url("")
    );
    std::fs::write(&config, text).unwrap();
    config.to_str().unwrap().to_owned()
}

fn reads(text: &str, route: &str) -> u64 {
    let series = format!("spark_exporter_history_server_reads_total{{route=\"{route}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)?.trim().parse().ok()).unwrap()
}

fn asked(server: &FakeSpark, what: &str) -> usize {
    server.asked().iter().filter(|asked| asked.target.contains(what)).count()
}

/// The log it is where the server gives it, and nothing else is asked.
#[tokio::test]
async fn the_daemon_reads_the_log() {
    let zip = zipped();
    let server = history_server(move |_| Some(Answer::zip(zip.clone()))).await;
    let folder = tempfile::tempdir().unwrap();
    let config = settings(folder.path(), &server, "read: {lookback: 36500d}\n");
    let spool = tempfile::tempdir().unwrap();
    let (mut exporter, address) =
        daemon(&["--config.file", &config, "--storage.temp-path", spool.path().to_str().unwrap()]);
    let metrics = format!("{address}/metrics");
    let text = until(&metrics, SOON, |text| {
        text.contains("rule=\"data_skew\",cause=").then(|| text.to_owned())
    })
    .await;
    assert_eq!((reads(&text, "zip"), reads(&text, "rest"), reads(&text, "none")), (1, 0, 0));
    assert!(text.contains(&format!("app_id=\"{APP}\"")), "{text}");
    assert!(text.contains("source=\"event_log\""), "the reading is that of a log");
    assert_eq!(asked(&server, "/logs"), 1);
    assert_eq!(asked(&server, "/jobs"), 0, "the server replays nothing");
    assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0, "no file has a name");
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(asked(&server, "/logs"), 1, "once");
    assert_eq!(exporter.terminate(SOON), 0);
}

/// With a directory of logs in the same cluster a run is left to it first: one
/// that turns up there costs the server nothing, any other is asked for later.
#[tokio::test]
async fn a_run_is_left_to_the_directory_of_its_log() {
    let zip = zipped();
    for (log_is_there, asked_for) in [(true, 0), (false, 1)] {
        let zip = zip.clone();
        let server = history_server(move |_| Some(Answer::zip(zip.clone()))).await;
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let recorded = common::recorded("hot_key/3.5.9");
        std::fs::create_dir_all(&logs).unwrap();
        for entry in std::fs::read_dir(&recorded).unwrap().filter(|_| log_is_there) {
            let path = entry.unwrap().path();
            let copy = logs.join(path.file_name().unwrap());
            std::fs::copy(&path, copy).unwrap();
        }
        let more = "intervals: {history_server: 5s, event_log_dir: 5s}\nread: {lookback: 36500d}\n";
        let config = settings(folder.path(), &server, "");
        let text = std::fs::read_to_string(&config).unwrap();
        let text = text.replace("intervals: {history_server: 5s}\n", more).replace(
            "- name: a\n",
            &format!("- name: a\n  event_log_dirs: ['{}']\n", logs.display()),
        );
        std::fs::write(&config, text).unwrap();
        let (exporter, address) = daemon(&["--config.file", &config]);
        let metrics = format!("{address}/metrics");
        until(&metrics, SOON, |text| text.contains("rule=\"data_skew\",cause=").then_some(()))
            .await;
        assert_eq!(asked(&server, "/logs"), asked_for);
        if log_is_there {
            tokio::time::sleep(Duration::from_secs(12)).await;
            assert_eq!(asked(&server, "/logs"), 0, "also when patience is over");
        }
        drop(exporter);
    }
}

/// Where it is not given, REST tells; unless that is switched off.
#[tokio::test]
async fn rest_is_asked_instead_only_where_it_may_be() {
    let text = "Event logs are not available for app: app-1.";
    let server = history_server(move |_| Some(Answer::new(503, "text/plain", text))).await;
    let folder = tempfile::tempdir().unwrap();
    let config = settings(folder.path(), &server, "read: {lookback: 36500d}\n");
    let (exporter, address) = daemon(&["--config.file", &config]);
    let metrics = format!("{address}/metrics");
    let text = until(&metrics, SOON, |text| {
        text.contains("rule=\"data_skew\",cause=").then(|| text.to_owned())
    })
    .await;
    assert_eq!((reads(&text, "zip"), reads(&text, "rest"), reads(&text, "none")), (0, 1, 0));
    assert!(text.contains("source=\"history_server\""));
    exporter.wait_for(SOON, |line| {
        (line.contains("finished run read without its log") && line.contains("not available"))
            .then_some(())
    });
    drop(exporter);

    let before = asked(&server, "/jobs");
    let (_exporter, address) = daemon(&["--config.file", &config, "--read.rest-fallback=false"]);
    let metrics = format!("{address}/metrics");
    let text =
        until(&metrics, SOON, |text| (reads(text, "none") == 3).then(|| text.to_owned())).await;
    assert_eq!((reads(&text, "zip"), reads(&text, "rest")), (0, 0));
    assert_eq!(asked(&server, "/jobs"), before);
}

/// A zip that cannot be read is tried again, since a server may be cleaning
/// up; a damaged log in a whole zip as well.
#[tokio::test]
async fn a_log_that_comes_damaged_may_come_whole_the_next_time() {
    let whole = zipped();
    let tries = AtomicUsize::new(0);
    let server = history_server(move |_| {
        let mut zip = whole.clone();
        match tries.fetch_add(1, Ordering::Relaxed) {
            0 => zip.truncate(30_000),
            1 => zip[20_000] ^= 1,
            _ => {}
        }
        Some(Answer::zip(zip))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let more = "read: {lookback: 36500d, rest_fallback: false}\n";
    let config = settings(folder.path(), &server, more);
    let (_exporter, address) = daemon(&["--config.file", &config]);
    let metrics = format!("{address}/metrics");
    let text = until(&metrics, SOON, |text| {
        text.contains("rule=\"data_skew\",cause=").then(|| text.to_owned())
    })
    .await;
    assert_eq!((reads(&text, "zip"), reads(&text, "rest"), reads(&text, "none")), (1, 0, 2));
}

#[test]
fn a_folder_that_cannot_be_written_to_is_refused_at_the_start() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["--spark.url", "http://127.0.0.1:1", "--storage.temp-path", "/no/such/folder"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("/no/such/folder") && error.contains("--storage.temp-path"), "{error}");
}

/// Even while it is written the download has no name.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_leaves_nothing_behind() {
    let chunk = b"PK\x03\x04".repeat(1 << 10);
    let server = history_server(move |_| {
        Some(Answer::repeated(chunk.clone(), 10_000, Duration::from_millis(20)))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["diagnose", &server.url(""), "--storage.temp-path"])
        .arg(folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let files = format!("/proc/{}/fd", program.id());
    let spooled = || {
        let files = std::fs::read_dir(&files).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| {
            target.starts_with(folder.path()) && target.to_string_lossy().ends_with(" (deleted)")
        })
    };
    for _ in 0..300 {
        if spooled() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(spooled(), "a download is under way");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
