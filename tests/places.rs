//! Event logs behind a real S3-compatible server and a real HDFS: what is
//! listed, what is read, and what is said where that is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read;

#[cfg(feature = "s3")]
use common::places::S3;
use common::places::{HDFS_USER, Hdfs, codec_fixture};
use spark_exporter::config::{Cluster, Limits};
use spark_exporter::eventlog::{self, Follower, ReadOptions};
use spark_exporter::fetch::files::{Access, Files, FilesErrorKind, LocalFiles, open_place};
use spark_exporter::model::Application;
use tokio::runtime::Handle;

fn access(cluster: &Cluster) -> Access {
    Access::of(cluster, &Limits::default(), Handle::current())
}

fn place(location: &str, access: &Access) -> Box<dyn Files> {
    open_place(&location.parse().unwrap(), access).unwrap()
}

fn applications(files: &dyn Files) -> Vec<Application> {
    let limits = Limits::default();
    let options = ReadOptions { cluster: "c", limits: &limits };
    let scan = eventlog::scan(files).unwrap();
    assert!(scan.skipped.is_empty(), "{:?}", scan.skipped);
    scan.logs.iter().map(|log| eventlog::read(log, files, &options).unwrap().application).collect()
}

fn text(files: &dyn Files, path: &str, from: u64) -> String {
    let mut text = String::new();
    files.open(path, from).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Files block: they are used on threads that may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Of a store that takes any key: the options, and a file with the secret.
#[cfg(feature = "s3")]
fn object_store(
    folder: &std::path::Path,
    endpoint: &str,
) -> spark_exporter::config::ObjectStoreConfig {
    let secret = folder.join("secret");
    std::fs::write(&secret, "hunter2\n").unwrap();
    let mut config = spark_exporter::config::ObjectStoreConfig::default();
    for (key, value) in [
        ("aws_endpoint", endpoint),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", "anybody"),
        ("connect_timeout", "2s"),
    ] {
        config.options.insert(key.to_owned(), value.into());
    }
    config.secret_files.insert("aws_secret_access_key".to_owned(), secret);
    config
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_holds_the_same_logs_as_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let s3 = S3::start().await;
    s3.bucket("logs").await;
    let rolling = codec_fixture("zstd-rolling");
    s3.put_folder(&rolling, "logs/prefix").await;
    let cluster =
        Cluster { object_store: object_store(folder.path(), &s3.endpoint), ..Cluster::default() };
    let access = access(&cluster);
    blocking(move || {
        let files = place("s3a://logs/prefix", &access);
        let local = LocalFiles::at(&rolling).unwrap();
        let read = applications(&*files);
        assert_eq!(read.len(), 1);
        assert_eq!(read, applications(&local));
        // The log's own directory and one of its files are places too.
        let scan = eventlog::scan(&*files).unwrap();
        let directory = format!("s3a://logs/prefix/{}", scan.logs[0].path);
        assert_eq!(applications(&*place(&directory, &access)).len(), 1);
        let first = files.display(&scan.logs[0].files[0].path);
        let one = place(&first, &access);
        let listing = one.list().unwrap();
        assert_eq!(listing.entries.len(), 1);
        assert_eq!(one.display(&listing.entries[0].path), first);

        // A whole bucket, and one without a thing in it.
        let scan = eventlog::scan(&*place("s3://logs", &access)).unwrap();
        assert!(scan.logs.is_empty(), "they lie too deep");
        assert!(place("s3://logs/nothing", &access).list().unwrap().entries.is_empty());

        let error = place("s3://nowhere/prefix", &access).list().unwrap_err();
        assert_eq!(error.kind, FilesErrorKind::NotFound);
        assert!(error.to_string().contains("there is no nowhere"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    })
    .await;
}

#[cfg(feature = "s3")]
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_there_is_said_within_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = format!("http://127.0.0.1:{}", common::real::free_port());
    let cluster =
        Cluster { object_store: object_store(folder.path(), &endpoint), ..Cluster::default() };
    let access = access(&cluster);
    let begun = std::time::Instant::now();
    let error = blocking(move || place("s3://logs/x", &access).list().unwrap_err()).await;
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert_eq!(error.kind, FilesErrorKind::Other);
    let text = error.to_string();
    assert!(text.contains("refused") && text.contains("check the endpoint"), "{text}");
}

/// What a WebHDFS place and one of Hadoop's own protocol have in common.
fn hdfs_place(location: &str, access: &Access, rolling: &std::path::Path) {
    let files = place(location, access);
    let local = LocalFiles::at(rolling).unwrap();
    let read = applications(&*files);
    assert_eq!(read, applications(&local));
    assert_eq!(applications(&*files), read, "listed a second time");
    assert!(!files.tells_growth());
    let scan = eventlog::scan(&*files).unwrap();
    let file = &scan.logs[0].files[0];
    let one = place(&files.display(&file.path), access);
    assert_eq!(one.list().unwrap().entries.len(), 1);
    let name = one.list().unwrap().entries.remove(0).path;
    let mut bytes = Vec::new();
    one.open(&name, file.bytes - 5).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 5);
    for beyond in [file.bytes, file.bytes + 100] {
        bytes.clear();
        files.open(&file.path, beyond).unwrap().read_to_end(&mut bytes).unwrap();
        assert!(bytes.is_empty(), "beyond the end there is nothing");
    }
    let error = place(&format!("{location}/gone"), access).list().unwrap_err();
    assert_eq!(error.kind, FilesErrorKind::NotFound, "{error}");
    let error = files.open("gone", 0).err().unwrap();
    assert_eq!(error.kind, FilesErrorKind::NotFound, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hdfs_holds_the_same_logs_as_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut hdfs = Hdfs::start(folder.path());
    let rolling = codec_fixture("zstd-rolling");
    hdfs.put(&rolling, "/spark/logs");
    let mut cluster = Cluster::default();
    cluster.webhdfs.user = Some(HDFS_USER.to_owned());
    let access = access(&cluster);
    let web = format!("webhdfs://{}/spark/logs", hdfs.web);
    // One that does not answer stands before the one that does.
    let two = format!("webhdfs://127.0.0.1:{},{}/spark/logs", common::real::free_port(), hdfs.web);
    #[cfg(feature = "hdfs")]
    let native = format!("{}/spark/logs", hdfs.hdfs.trim_end_matches('/'));
    {
        let (access, rolling) = (access.clone(), rolling.clone());
        blocking(move || {
            hdfs_place(&web, &access, &rolling);
            hdfs_place(&two, &access, &rolling);
            #[cfg(feature = "hdfs")]
            hdfs_place(&native, &access, &rolling);
        })
        .await;
    }
    // Nobody in particular may not look into it.
    hdfs.change_mode("700", "/spark/logs");
    cluster.webhdfs.user = Some("nobody".to_owned());
    let stranger = Access::of(&cluster, &Limits::default(), Handle::current());
    let web = format!("webhdfs://{}/spark/logs", hdfs.web);
    let error = blocking(move || place(&web, &stranger).list().unwrap_err()).await;
    assert_eq!(error.kind, FilesErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("user \"nobody\" needs r-x"), "{error}");
}

/// A file that is being written: the NameNode knows how long it was when it
/// was first flushed, and only the DataNode how far it has come.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_grows_in_hdfs_is_read_as_far_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut hdfs = Hdfs::start(folder.path());
    let mut cluster = Cluster::default();
    cluster.webhdfs.user = Some(HDFS_USER.to_owned());
    let access = access(&cluster);
    let log = common::plain_log("executor_idle_removed/4.3.0");
    let lines: Vec<&str> = log.lines().collect();
    let half = lines.len() / 2;
    let (first, second) = (lines[..half].join("\n") + "\n", lines[half..].join("\n") + "\n");
    let parts = [folder.path().join("first"), folder.path().join("second")];
    std::fs::write(&parts[0], &first).unwrap();
    std::fs::write(&parts[1], &second).unwrap();
    hdfs.write(&parts[0], "/logs/app-1.inprogress");
    let web = format!("webhdfs://{}/logs", hdfs.web);
    let (files, follower, told) = blocking(move || {
        let files = place(&web, &access);
        assert_eq!(text(&*files, "app-1.inprogress", 0), first);
        let rest = text(&*files, "app-1.inprogress", first.len() as u64 - 10);
        assert_eq!(rest, first[first.len() - 10..]);
        assert_eq!(text(&*files, "app-1.inprogress", first.len() as u64), "");
        let mut follower = Follower::new("c", &Limits::default());
        let listing = files.list().unwrap();
        assert_eq!(listing.entries[0].bytes, first.len() as u64);
        let log = eventlog::LogFiles {
            path: "app-1.inprogress".to_owned(),
            name: "app-1".to_owned(),
            files: vec![eventlog::LogFile {
                path: "app-1.inprogress".to_owned(),
                bytes: listing.entries[0].bytes,
                number: 1,
            }],
            bytes: listing.entries[0].bytes,
            modified: listing.entries[0].modified,
            in_progress: Some(true),
            compacted: false,
            missing_files: false,
        };
        let told = follower.advance(&log, &*files).unwrap();
        assert_eq!(told.lines, half as u64);
        (files, follower, log)
    })
    .await;
    hdfs.write(&parts[1], "/logs/app-1.inprogress");
    blocking(move || {
        let mut follower = follower;
        let listed = files.list().unwrap().entries.remove(0).bytes;
        assert_eq!(listed, told.bytes, "the NameNode knows of no growth");
        assert_eq!(text(&*files, "app-1.inprogress", listed), second);
        assert_eq!(text(&*files, "app-1.inprogress", listed + 7), second[7..]);
        let end = listed + second.len() as u64;
        assert_eq!(text(&*files, "app-1.inprogress", end), "");
        assert_eq!(text(&*files, "app-1.inprogress", end + 1), "");
        let advance = follower.advance(&told, &*files).unwrap();
        assert_eq!(advance.lines, second.lines().count() as u64);
        assert!(advance.ended, "the ApplicationEnd was in it");
    })
    .await;
}
