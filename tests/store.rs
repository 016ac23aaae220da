//! The embedded store: the suite of all back ends, files that are no store of
//! ours or are damaged, and a process that is killed while it writes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "store/command_line.rs"]
mod command_line;
#[path = "store/files.rs"]
mod files;
#[path = "store/killed.rs"]
mod killed;
mod store_suite;

use std::path::PathBuf;

use jiff::Timestamp;
use spark_exporter::store::embedded::Embedded;
use spark_exporter::store::{Backend, StoreError};
use store_suite::Place;

struct File {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("store.db"), _folder: folder }
    }
}

impl Place for File {
    fn open(&self, now: Timestamp) -> Result<Box<dyn Backend>, StoreError> {
        Ok(Box::new(Embedded::open(&self.path, now)?))
    }
}

store_suite!(File::new());

/// What is in memory alone does the same, as long as it lasts.
#[test]
fn in_memory_it_counts_once_too() {
    struct Memory;
    impl Place for Memory {
        fn open(&self, now: Timestamp) -> Result<Box<dyn Backend>, StoreError> {
            Ok(Box::new(Embedded::in_memory(now)?))
        }
    }
    store_suite::a_run_is_counted_once(&Memory);
    store_suite::what_nobody_saw_end_is_counted_later(&Memory);
    store_suite::what_was_sent_adds_up(&Memory);
    store_suite::what_was_sent_is_forgotten_with_the_run(&Memory);
    store_suite::what_is_old_is_forgotten(&Memory);
    store_suite::names_are_bounded(&Memory);
}
