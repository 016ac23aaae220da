//! What integration tests share.

// Each test binary uses its own part of this.
#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod agree;
pub(crate) mod fake_spark;
pub(crate) mod places;
pub(crate) mod poll_budget;
pub(crate) mod real;
pub(crate) mod recorded_server;

use std::path::{Path, PathBuf};

/// A recorded run: the folder of its log.
pub(crate) fn recorded(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs").join(name);
    assert!(path.is_dir(), "{} is not recorded: make collection", path.display());
    path
}

/// The text of a recorded run whose log is one plain file.
pub(crate) fn plain_log(name: &str) -> String {
    let file = std::fs::read_dir(recorded(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is not one plain file"));
    std::fs::read_to_string(file).unwrap()
}
