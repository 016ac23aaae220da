//! The same real run in every codec, layout and place is the same application,
//! with the same findings.
//!
//! `tests/spark/write_logs` writes one recorded run through Spark's own writers
//! in all codecs and layouts, finished and left by a killed driver, into one
//! directory. What of it is read, from wherever it lies, is compared whole with
//! the plain lines on the local disk. Where a killed driver lost its buffers
//! (lz4, lzf), so much of the plain lines is taken as was found.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::places::{
    AZURE_ACCOUNT, AZURE_KEY, Azure, Gcs, HDFS_USER, Hdfs, S3, codec_fixture, files_below,
    write_logs,
};
use common::real::{client, history_server, until};
use common::recorded;
use spark_exporter::config::{
    Cluster, Limits, Location, ObjectStoreConfig, Thresholds, WebHdfsConfig,
};
use spark_exporter::diagnose::diagnose;
use spark_exporter::eventlog::{ReadOptions, ReadOutcome, read, scan};
use spark_exporter::fetch::files::{Access, Files, LocalFiles, ZipFiles, open_place};
use spark_exporter::model::{Application, DataQuality, Stage};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

const SPARK: &str = "4.3.0";
const RUN: &str = "hot_key/4.3.0";
const CODECS: [&str; 5] = ["none", "zstd", "lz4", "snappy", "lzf"];
const LAYOUTS: [&str; 4] = ["single", "rolling", "single-inprogress", "rolling12-inprogress"];

/// Every codec in every layout. The first is the plain file that all others
/// are compared with.
fn specs() -> Vec<String> {
    let all = CODECS.iter().flat_map(|codec| LAYOUTS.map(|layout| format!("{codec}-{layout}")));
    all.collect()
}

fn write(directory: &str) {
    let run = fs::read_dir(recorded(RUN)).unwrap().next().unwrap().unwrap().path();
    write_logs(SPARK, &run, directory, &specs());
}

/// A rolling log that a History Server compacted, of another run: it stands among
/// the others in each place.
fn compacted() -> PathBuf {
    codec_fixture("zstd-compacted")
}

/// The run in all codecs and layouts, on the local disk, and the compacted one.
fn logs() -> &'static Path {
    static LOGS: OnceLock<PathBuf> = OnceLock::new();
    LOGS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("matrix");
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        write(folder.to_str().unwrap());
        for file in files_below(&compacted()) {
            let copy = folder.join(file.strip_prefix(compacted()).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(file, copy).unwrap();
        }
        folder
    })
}

/// All logs of a place, by application id.
fn read_all(files: &dyn Files) -> BTreeMap<String, ReadOutcome> {
    let scan = scan(files).unwrap_or_else(|error| panic!("{}: {error}", files.display("")));
    assert_eq!(scan.skipped, [], "{}", files.display(""));
    let limits = Limits::default();
    let options = ReadOptions { cluster: "matrix", limits: &limits };
    let outcomes = scan.logs.iter().map(|log| {
        let outcome = read(log, files, &options).unwrap_or_else(|error| panic!("{error}"));
        (outcome.application.id.app_id.clone(), outcome)
    });
    outcomes.collect()
}

/// The one log of a directory.
fn local(folder: &Path) -> ReadOutcome {
    let all = read_all(&LocalFiles::at(folder).unwrap());
    assert_eq!(all.len(), 1, "{}", folder.display());
    all.into_values().next().unwrap()
}

/// The plain lines.
fn plain() -> Vec<u8> {
    let files = fs::read_dir(logs()).unwrap().map(|entry| entry.unwrap().path());
    let mut plain = files.filter(|path| path.extension().is_none() && path.is_file());
    fs::read(plain.next().unwrap()).unwrap()
}

/// What the first `bytes` of the plain lines tell: of a finished application, or
/// of one that still writes.
fn of_plain(bytes: Option<u64>) -> Application {
    let folder = tempfile::tempdir().unwrap();
    let mut text = plain();
    let name = if bytes.is_some() { "app-1.inprogress" } else { "app-1" };
    text.truncate(bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap()));
    fs::write(folder.path().join(name), text).unwrap();
    local(folder.path()).application
}

/// Compares what was read of a place with the plain lines.
fn assert_same(mut found: BTreeMap<String, ReadOutcome>, place: &str) {
    let whole = of_plain(None);
    let all = plain().len() as u64;
    assert_eq!(found.len(), specs().len() + 1, "{place}");
    let expected = local(&compacted()).application;
    let application = found.remove(&expected.id.app_id).expect("the compacted log").application;
    assert_equal(&application, &expected, &format!("compacted in {place}"));
    for (number, spec) in specs().iter().enumerate() {
        let id = format!("{}{number:04}", whole.id.app_id.strip_suffix("0000").unwrap());
        let ReadOutcome { application, statistics } =
            found.remove(&id).unwrap_or_else(|| panic!("no {spec} ({id}) in {place}"));
        let read = statistics.bytes_decompressed;
        let loses = is_torn(spec);
        let expected = if loses {
            assert!((all / 2..all).contains(&read), "{spec} in {place}: {statistics:?}");
            of_plain(Some(read))
        } else {
            assert_eq!(read, all, "{spec} in {place}");
            whole.clone()
        };
        assert_equal(&application, &expected, &format!("{spec} in {place}"));
        let findings = |application| diagnose(application, &Thresholds::default()).findings;
        let found = findings(&application);
        assert_eq!(found, findings(&expected), "{spec} in {place}");
        assert!(loses || found.iter().any(|finding| finding.rule.as_str() == "data_skew"));
    }
}

/// Whether a log of this kind ends in the middle of a block, so that what
/// stood in it is lost.
fn is_torn(spec: &str) -> bool {
    spec.starts_with("lz") && spec.ends_with("inprogress")
}

/// All of it but the application's id, which is also among the configuration.
fn assert_equal(found: &Application, expected: &Application, what: &str) {
    let found_text = format!("{found:?}").replace(&found.id.app_id, &expected.id.app_id);
    let expected_text = format!("{expected:?}");
    let differs = found_text.bytes().zip(expected_text.bytes()).position(|(a, b)| a != b);
    let differs = differs.or((found_text.len() != expected_text.len()).then_some(0));
    if let Some(at) = differs {
        let near = |text: &str| -> String {
            text.chars().skip(at.saturating_sub(100)).take(300).collect()
        };
        panic!("{what}\nfound:    {}\nexpected: {}", near(&found_text), near(&expected_text));
    }
}

#[test]
fn in_a_directory() {
    assert_same(read_all(&LocalFiles::at(logs()).unwrap()), "a directory");
}

#[tokio::test]
async fn in_what_a_history_server_sends() {
    let (_server, url) = history_server(SPARK, logs());
    let api = format!("{url}/api/v1/applications");
    // A log that is cut in the middle of a block is now and then more than the
    // server's own reader bears (seen with lzf in 4.3.0): it lists all others.
    let torn = specs().iter().filter(|spec| is_torn(spec)).count();
    let begun = Instant::now();
    let ids = until(&api, Duration::from_mins(2), |body| {
        let listed: serde_json::Value = serde_json::from_str(body).unwrap();
        let ids =
            listed.as_array().unwrap().iter().map(|app| app["id"].as_str().unwrap().to_owned());
        let all = specs().len() + 1;
        let least = if begun.elapsed() < Duration::from_secs(20) { all } else { all - torn };
        Some(ids.collect::<Vec<_>>()).filter(|ids| ids.len() >= least)
    });
    let folder = tempfile::tempdir().unwrap();
    let mut found = BTreeMap::new();
    for id in ids.await {
        let zip = client().get(format!("{api}/{id}/logs")).send().await.unwrap().error_for_status();
        let file = folder.path().join(&id);
        fs::write(&file, zip.unwrap().bytes().await.unwrap()).unwrap();
        found.extend(read_all(&ZipFiles::of_file(fs::File::open(file).unwrap(), &id).unwrap()));
    }
    for (id, outcome) in read_all(&LocalFiles::at(logs()).unwrap()) {
        let number: Option<usize> = id.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        let spec = number.and_then(|number| specs().get(number).cloned());
        if spec.is_some_and(|spec| is_torn(&spec)) {
            found.entry(id).or_insert(outcome);
        }
    }
    assert_same(found, "a History Server's zip");
}

/// What a place behind a URL holds, read as the daemon reads it.
async fn read_remote(
    location: &str,
    object_store: ObjectStoreConfig,
) -> BTreeMap<String, ReadOutcome> {
    let location: Location = location.parse().unwrap();
    let cluster = Cluster {
        object_store,
        webhdfs: WebHdfsConfig { user: Some(HDFS_USER.to_owned()) },
        ..Cluster::default()
    };
    let access = Access::of(&cluster, &Limits::default(), Handle::current());
    let read = spawn_blocking(move || read_all(&*open_place(&location, &access).unwrap()));
    read.await.unwrap()
}

/// Options, and one secret in a file.
fn store(options: &[(&str, &str)], secret: &str, value: &str, folder: &Path) -> ObjectStoreConfig {
    let file = folder.join("secret");
    fs::write(&file, value).unwrap();
    let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).into()));
    let secret_files = [(secret.to_owned(), file)].into();
    ObjectStoreConfig { options: options.collect(), secret_files }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_bucket() {
    let s3 = S3::start().await;
    s3.bucket("logs").await;
    s3.put_folder(logs(), "logs/spark/events").await;
    let folder = tempfile::tempdir().unwrap();
    let options = [
        ("aws_endpoint", s3.endpoint.as_str()),
        ("allow_http", "true"),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", "anybody"),
    ];
    let store = store(&options, "aws_secret_access_key", "anything", folder.path());
    assert_same(read_remote("s3://logs/spark/events", store).await, "a bucket");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_google_s_storage() {
    let gcs = Gcs::start("logs").await;
    gcs.put_folder(logs(), "logs", "spark/events").await;
    let options = [
        ("google_base_url", gcs.endpoint.as_str()),
        ("google_skip_signature", "true"),
        ("allow_http", "true"),
    ];
    let options = options.map(|(key, value)| (key.to_owned(), value.into()));
    let store = ObjectStoreConfig { options: options.into(), ..ObjectStoreConfig::default() };
    assert_same(read_remote("gs://logs/spark/events", store).await, "Google's storage");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_azure_s_storage() {
    let folder = tempfile::tempdir().unwrap();
    let azure = Azure::start(folder.path()).await;
    azure.put_folder(logs(), "logs", "spark/events");
    let options = [
        ("azure_storage_account_name", AZURE_ACCOUNT),
        ("azure_storage_endpoint", azure.endpoint.as_str()),
        ("allow_http", "true"),
    ];
    let store = store(&options, "azure_storage_account_key", AZURE_KEY, folder.path());
    assert_same(read_remote("az://logs/spark/events", store).await, "Azure's storage");
}

/// Written there by Spark itself, whose drivers were killed: WebHDFS tells what
/// they had flushed.
#[tokio::test(flavor = "multi_thread")]
async fn in_hdfs_by_webhdfs() {
    let folder = tempfile::tempdir().unwrap();
    let mut hdfs = Hdfs::start(folder.path());
    write(&format!("{}/spark/events", hdfs.hdfs));
    let compacted = fs::read_dir(compacted()).unwrap().next().unwrap().unwrap().path();
    hdfs.put(&compacted, "/spark/events/");
    let location = format!("webhdfs://{}/spark/events", hdfs.web);
    assert_same(read_remote(&location, ObjectStoreConfig::default()).await, "HDFS, by WebHDFS");
}

/// Copied there: of a file that is being written, Hadoop's own protocol tells less
/// (`src/fetch/files/hdfs.rs` says what).
#[tokio::test(flavor = "multi_thread")]
async fn in_hdfs_by_its_own_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let mut hdfs = Hdfs::start(folder.path());
    hdfs.put(logs(), "/spark/events");
    let location = format!("{}/spark/events", hdfs.hdfs.trim_end_matches('/'));
    assert_same(read_remote(&location, ObjectStoreConfig::default()).await, "HDFS");
}

/// Finished jobs and removed executors are gone from it; what is left is the
/// same in both codecs, and as the whole log tells it.
#[test]
fn compacted_by_a_history_server() {
    let whole = local(&codec_fixture("none-single")).application;
    let [zstd, lz4] = ["zstd-compacted", "lz4-compacted-as-zstd"]
        .map(|name| local(&codec_fixture(name)).application);
    assert_eq!(zstd, lz4);
    assert_eq!(zstd.data_quality, [DataQuality::LogCompacted].into());
    assert_eq!((&zstd.id, zstd.start, zstd.end), (&whole.id, whole.start, whole.end));
    assert_eq!(zstd.configuration, whole.configuration);
    let jobs: Vec<_> = whole.jobs.iter().filter(|job| job.id == 1).collect();
    assert_eq!(zstd.jobs.iter().collect::<Vec<_>>(), jobs);
    // The tasks of a timeline name their executors by place in the list, which is
    // shorter now.
    let stages = |application: &Application| -> Vec<Stage> {
        let of_job_1 = application.stages.iter().filter(|stage| stage.job_ids == [1]);
        of_job_1.map(|stage| Stage { timeline: None, ..stage.clone() }).collect()
    };
    assert_eq!((stages(&zstd).len(), stages(&zstd)), (1, stages(&whole)));
    let executors: Vec<_> =
        whole.executors.iter().filter(|executor| executor.removed.is_none()).collect();
    assert_eq!(zstd.executors.iter().collect::<Vec<_>>(), executors);
}
