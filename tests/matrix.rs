//! The same real run in every codec, layout and place is the same application.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::places::{HDFS_USER, Hdfs, S3, codec_fixture};

#[tokio::test]
async fn the_places_answer() {
    let s3 = S3::start().await;
    s3.bucket("logs").await;
    s3.put_folder(&codec_fixture("zstd-rolling"), "logs/prefix").await;
    let listed = common::real::get(&format!("{}/logs?list-type=2", s3.endpoint)).await;
    assert_eq!(listed.matches("<Key>prefix/eventlog_v2_").count(), 5, "{listed}");

    let folder = tempfile::tempdir().unwrap();
    let mut hdfs = Hdfs::start(folder.path());
    hdfs.put(&codec_fixture("zstd-rolling"), "/logs");
    let url = format!("http://{}/webhdfs/v1/logs?op=LISTSTATUS&user.name={HDFS_USER}", hdfs.web);
    let listed = common::real::get(&url).await;
    assert_eq!(listed.matches("eventlog_v2_").count(), 1, "{listed}");
}
