//! The whole way from bytes to the model: on logs that real Spark wrote, on
//! lines cut by hand for each edge, and on bytes that are no log at all.

mod edges;
mod faults;
mod properties;
mod real;
mod sql;
mod streams_and_memory;

use std::path::PathBuf;

use crate::config::Limits;
use crate::eventlog::{ReadError, ReadOptions, ReadOutcome, read_from};
use crate::model::{Application, Stage};

/// Logs of one small program (`tests/fixtures/eventlog/README.md`), each with
/// what Spark's own History Server answered for it.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/eventlog").join(name)
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
