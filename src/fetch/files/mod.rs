//! Files wherever they lie, behind one trait: what [`crate::eventlog`] reads
//! logs through.
//!
//! A place is listed whole and its files are opened one by one, each as a
//! plain blocking reader, from any byte on (a log that grows is read on from
//! where it was). Everything here blocks: call it where a thread may wait.

mod error;
#[cfg(feature = "hdfs")]
mod hdfs;
mod local;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod object_store;
mod place;
mod stream;
mod tree;
mod webhdfs;
mod zip;

use std::fmt;
use std::io::Read;
use std::time::SystemTime;

pub use error::{FilesError, FilesErrorKind};
pub use local::LocalFiles;
pub use place::{Access, open_place};
pub use zip::{ReadAt, ZipFiles};

/// Entries of one listing; beyond it the rest is left out and
/// [`Listing::incomplete`] is true.
pub(crate) const MOST_ENTRIES: usize = 1_000_000;

/// A place that holds files: a directory, a bucket, a zip.
pub trait Files: fmt::Debug + Send + Sync {
    /// The files of the root and of the directories in it, and those
    /// directories themselves, in no order; deeper only where Databricks
    /// delivers its logs (`tree`). What cannot be looked at costs only
    /// itself.
    ///
    /// # Errors
    /// When the root itself cannot be listed.
    fn list(&self) -> Result<Listing, FilesError>;

    /// Reads a file from byte `from` to what is its end now. Beyond the end
    /// there is nothing to read, which is no error.
    ///
    /// # Errors
    /// When the file is not there (any more) or may not be read.
    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError>;

    /// Whether a listing tells at once how long a file is that is being
    /// written, and when it changed last. HDFS does so only block by block.
    fn tells_growth(&self) -> bool {
        true
    }

    /// A file or, with an empty `path`, the place itself, as a person would
    /// write it; without secrets.
    fn display(&self, path: &str) -> String;
}

/// What a place holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// Path and why: no right to look at it, a link to nowhere.
    pub unreadable: Vec<(String, String)>,
    /// Whether there were more entries than are listed at most.
    pub incomplete: bool,
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// From the root of its place, with `/` between names.
    pub path: String,
    pub kind: EntryKind,
    /// Of a file, as far as the place knows: the length of a file that is
    /// being written may lag behind (HDFS).
    pub bytes: u64,
    pub modified: SystemTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
}

impl Listing {
    /// Adds an entry, up to [`MOST_ENTRIES`].
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.entries.len() < MOST_ENTRIES {
            self.entries.push(entry);
        } else {
            self.incomplete = true;
        }
    }
}
