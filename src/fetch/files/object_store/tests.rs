//! The bucket on an object store in memory: which objects make a listing.

use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutPayload};
use tokio::runtime::Runtime;

use super::*;
use crate::config::Location;

fn bucket(runtime: &Runtime, location: &str, objects: &[(&str, &str)]) -> Bucket {
    let store = InMemory::new();
    for (path, text) in objects {
        let payload = PutPayload::from((*text).to_owned());
        let path = Path::parse(path).expect("a path");
        runtime.block_on(store.put(&path, payload)).expect("into memory");
    }
    let Location::Remote(location) = location.parse().expect("a location") else {
        panic!("a path");
    };
    Bucket {
        store: Arc::new(store),
        root: Path::parse(location.path()).expect("a path"),
        runtime: runtime.handle().clone(),
        naming: Naming::of(&location),
        most_bytes: 1_000,
        single: AtomicBool::new(false),
    }
}

fn paths(bucket: &Bucket) -> Vec<String> {
    let listing = bucket.list().expect("a listing");
    assert!(!listing.incomplete);
    let mut paths: Vec<String> = listing
        .entries
        .into_iter()
        .map(|entry| match entry.kind {
            EntryKind::Directory => format!("{}/", entry.path),
            EntryKind::File => entry.path,
        })
        .collect();
    paths.sort();
    paths
}

fn text(bucket: &Bucket, path: &str, from: u64) -> String {
    let mut text = String::new();
    bucket.open(path, from).expect("opens").read_to_string(&mut text).expect("reads");
    text
}

#[test]
fn files_directories_and_nothing_deeper() {
    let runtime = Runtime::new().expect("a runtime");
    let objects = [
        ("logs/app-1", "one"),
        ("logs/eventlog_v2_app-2", ""),
        ("logs/eventlog_v2_app-2/events_1_app-2", "two"),
        ("logs/eventlog_v2_app-2/appstatus_app-2", ""),
        ("logs/table/day=1/part-0", "data"),
        ("logs/cluster/eventlog/host/ctx/eventlog", "three"),
        ("other/app-9", "nine"),
    ];
    let bucket = bucket(&runtime, "s3://b/logs", &objects);
    assert_eq!(
        paths(&bucket),
        [
            "app-1",
            "cluster/",
            "cluster/eventlog/",
            "cluster/eventlog/host/",
            "cluster/eventlog/host/ctx/",
            "cluster/eventlog/host/ctx/eventlog",
            "eventlog_v2_app-2/",
            "eventlog_v2_app-2/appstatus_app-2",
            "eventlog_v2_app-2/events_1_app-2",
            "table/",
            "table/day=1/",
        ]
    );
    assert_eq!(text(&bucket, "eventlog_v2_app-2/events_1_app-2", 1), "wo");
    assert_eq!(text(&bucket, "app-1", 3), "", "the end is no error");
    assert_eq!(text(&bucket, "app-1", 99), "");
    assert_eq!(bucket.display("app-1"), "s3://b/logs/app-1");
    let error = bucket.open("app-7", 0).err().expect("not there");
    assert_eq!(error.kind, FilesErrorKind::NotFound);
    assert!(error.to_string().contains("s3://b/logs/app-7"), "{error}");
}

#[test]
fn the_root_of_a_bucket() {
    let runtime = Runtime::new().expect("a runtime");
    let bucket = bucket(&runtime, "gs://b", &[("app-1", "one"), ("x/y", "z")]);
    assert_eq!(paths(&bucket), ["app-1", "x/", "x/y"]);
    assert_eq!(text(&bucket, "x/y", 0), "z");
}

#[test]
fn one_object_is_a_place_too() {
    let runtime = Runtime::new().expect("a runtime");
    let bucket =
        bucket(&runtime, "s3://b/logs/app-1", &[("logs/app-1", "one"), ("logs/app-2", "2")]);
    assert_eq!(paths(&bucket), ["app-1"]);
    assert_eq!(text(&bucket, "app-1", 0), "one");
    assert_eq!(bucket.display("app-1"), "s3://b/logs/app-1");
}

/// A lake beside the logs is passed over without looking at each of its
/// objects.
#[test]
fn what_lies_deeper_is_skipped_by_the_thousand() {
    let lake: Vec<String> = (0..5_000).map(|n| format!("lake/day/part-{n:05}")).collect();
    let mut objects: Vec<(&str, &str)> = lake.iter().map(|path| (path.as_str(), "x")).collect();
    objects.push(("lake/day1", "beside"));
    objects.push(("zone/app-1", "one"));
    let runtime = Runtime::new().expect("a runtime");
    let bucket = bucket(&runtime, "s3://b", &objects);
    assert_eq!(paths(&bucket), ["lake/", "lake/day/", "lake/day1", "zone/", "zone/app-1"]);
    let mut found = Found::default();
    let object = ObjectMeta {
        location: Path::from("x"),
        last_modified: SystemTime::UNIX_EPOCH.into(),
        size: 1,
        e_tag: None,
        version: None,
    };
    let skipped: Vec<Option<String>> =
        lake[..PASSED_OVER].iter().map(|path| found.take(path, &object)).collect();
    assert_eq!(skipped.last(), Some(&Some("lake/day".to_owned())));
    assert_eq!(skipped.iter().flatten().count(), 1);
}

/// More than any file should have is not read.
#[test]
fn a_file_has_a_bound() {
    let runtime = Runtime::new().expect("a runtime");
    let long = "x".repeat(5_000);
    let bucket = bucket(&runtime, "s3://b", &[("app-1", long.as_str())]);
    assert_eq!(text(&bucket, "app-1", 0).len(), 1_000);
}
