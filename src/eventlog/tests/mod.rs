//! The whole way from bytes to the model: on logs that real Spark wrote, on
//! lines cut by hand for each edge, and on bytes that are no log at all.

mod codecs;
mod edges;
mod faults;
mod follow;
mod properties;
mod real;
mod sql;
mod streams_and_memory;

use std::path::{Path, PathBuf};

use crate::config::Limits;
use crate::eventlog::{LogFiles, ReadError, ReadOptions, ReadOutcome, read, read_from, scan};
use crate::fetch::files::LocalFiles;
use crate::model::{Application, Stage};

/// Logs of one small program (`tests/fixtures/eventlog/README.md`), each with
/// what Spark's own History Server answered for it.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/eventlog").join(name)
}

/// A log and the place it lies in.
type PlacedLog = (LogFiles, LocalFiles);

fn logs_at(path: &Path) -> Vec<PlacedLog> {
    let files = LocalFiles::at(path).expect("a place");
    let logs = scan(&files).expect("a listing").logs;
    logs.into_iter().map(|log| (log, files.clone())).collect()
}

fn try_read_log((log, files): &PlacedLog) -> Result<ReadOutcome, ReadError> {
    let limits = Limits::default();
    read(log, files, &ReadOptions { cluster: "test", limits: &limits })
}

fn try_read_with(bytes: &[u8], limits: &Limits) -> Result<ReadOutcome, ReadError> {
    read_from(bytes, "app-from-name", &ReadOptions { cluster: "test", limits })
}

fn try_read(bytes: &[u8]) -> Result<ReadOutcome, ReadError> {
    try_read_with(bytes, &Limits::default())
}

fn read_lines(lines: &[&str]) -> ReadOutcome {
    try_read((lines.join("\n") + "\n").as_bytes()).expect("a log")
}

fn stage(application: &Application, stage: u32, attempt: u32) -> &Stage {
    application
        .stages
        .iter()
        .find(|candidate| candidate.id == crate::model::StageId { stage, attempt })
        .expect("the stage is there")
}
