//! The same real run in every codec, layout and place is the same application,
//! with the same findings.
//!
//! `tests/spark/write_logs` writes one recorded run through Spark's own writers
//! in all codecs and layouts, finished and left by a killed driver. What of it
//! is read, from wherever it lies, is compared whole with the plain lines on
//! the local disk. Where a killed driver lost its buffers (lz4, lzf), so much
//! of the plain lines is taken as was found.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use common::places::{codec_fixture, write_logs};
use common::recorded;
use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::diagnose;
use spark_exporter::eventlog::{ReadOptions, ReadOutcome, read, scan};
use spark_exporter::fetch::files::{Files, LocalFiles};
use spark_exporter::model::{Application, DataQuality, Stage};

const SPARK: &str = "4.3.0";
const CODECS: [&str; 5] = ["none", "zstd", "lz4", "snappy", "lzf"];
const LAYOUTS: [&str; 4] = ["single", "rolling", "single-inprogress", "rolling12-inprogress"];

/// The run in all codecs and layouts, one folder each.
fn logs() -> &'static Path {
    static LOGS: OnceLock<PathBuf> = OnceLock::new();
    LOGS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("matrix");
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir(&folder).unwrap();
        let run = recorded("hot_key/4.3.0");
        let log = fs::read_dir(run).unwrap().next().unwrap().unwrap().path();
        write_logs(SPARK, &log, folder.to_str().unwrap(), &specs());
        folder
    })
}

fn specs() -> Vec<&'static str> {
    let specs = CODECS
        .iter()
        .flat_map(|codec| LAYOUTS.iter().map(move |layout| &*format!("{codec}-{layout}").leak()));
    specs.collect()
}

/// The one log of a place.
fn the_log(files: &dyn Files) -> ReadOutcome {
    let scan = scan(files).unwrap_or_else(|error| panic!("{}: {error}", files.display("")));
    assert_eq!(scan.logs.len(), 1, "{}: {scan:?}", files.display(""));
    let limits = Limits::default();
    let options = ReadOptions { cluster: "matrix", limits: &limits };
    read(&scan.logs[0], files, &options)
        .unwrap_or_else(|error| panic!("{}: {error}", files.display("")))
}

fn local(folder: &Path) -> ReadOutcome {
    the_log(&LocalFiles::at(folder).unwrap())
}

/// The plain lines.
fn plain() -> Vec<u8> {
    let folder = logs().join("none-single");
    let log = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::read(log).unwrap()
}

/// What the first `bytes` of the plain lines tell, of an application that runs.
fn beginning(bytes: u64) -> Application {
    let folder = tempfile::tempdir().unwrap();
    let text = plain();
    let bytes = usize::try_from(bytes).unwrap().min(text.len());
    fs::write(folder.path().join("app-1.inprogress"), &text[..bytes]).unwrap();
    local(folder.path()).application
}

/// Compares what was read of a `spec` with the plain lines.
fn assert_same(found: &ReadOutcome, spec: &str, place: &str) {
    static WHOLE: OnceLock<Application> = OnceLock::new();
    let whole = WHOLE.get_or_init(|| local(&logs().join("none-single")).application);
    let all = plain().len() as u64;
    let statistics = found.statistics;
    let loses = spec.starts_with("lz") && spec.ends_with("inprogress");
    let of_the_beginning;
    let expected = if loses {
        assert!((all / 2..all).contains(&statistics.bytes_decompressed), "{spec} {statistics:?}");
        of_the_beginning = beginning(statistics.bytes_decompressed);
        &of_the_beginning
    } else {
        assert_eq!(statistics.bytes_decompressed, all, "{spec} in {place}");
        whole
    };
    assert_eq!(found.application, *expected, "{spec} in {place}");
    let findings = |application| diagnose(application, &Thresholds::default()).findings;
    let found = findings(&found.application);
    assert_eq!(found, findings(expected), "{spec} in {place}");
    assert!(loses || found.iter().any(|finding| finding.rule.as_str() == "data_skew"));
}

#[test]
fn every_codec_and_layout_on_a_local_disk() {
    for spec in specs() {
        assert_same(&local(&logs().join(spec)), spec, "a directory");
    }
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
