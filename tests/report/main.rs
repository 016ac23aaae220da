//! Reports as people get them: the daemon's pages, the files of `diagnose`,
//! and that neither shows what it should not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod forms;
mod pages;
mod pods;
mod privacy;

use std::process::Command;
use std::time::Duration;

/// What the program prints of a log, whatever it finds there.
pub(crate) fn diagnose(log: &std::path::Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .arg("diagnose")
        .arg(log)
        .args(["--fail-on", "never"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) const SOON: Duration = Duration::from_mins(2);
