//! The files of a zip: what a History Server sends as `/logs`, or what a
//! person saved of it.
//!
//! Nothing is unpacked to disk. The directory at the zip's end is read once
//! ([`directory`]); each entry is then a reader of its own over the same open
//! file, so that several can be read at a time, in any order. That a zip's
//! entries come unsorted and with their lengths behind them (Java writes
//! both) is why it has to lie in a file first.

mod directory;
mod entry;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::SystemTime;

use super::{Entry, EntryKind, Files, FilesError, FilesErrorKind, Listing};
use directory::Member;
use entry::EntryReader;

/// Bytes that can be read from anywhere, by several readers at once.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads from byte `at` on; 0 beyond the end.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Bytes in all.
    fn bytes(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, at)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Reads exactly so many bytes.
fn read_exact_at(source: &dyn ReadAt, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match source.read_at(buffer, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A zip whose entries are the files.
///
/// Names of entries are only ever names: one with `..` in it, or an absolute
/// one, leads nowhere.
#[derive(Debug)]
pub struct ZipFiles {
    source: Arc<dyn ReadAt>,
    name: String,
    modified: SystemTime,
    members: BTreeMap<String, Member>,
    /// Names that are no text, and why.
    unreadable: Vec<(String, String)>,
    /// Where the directory begins, and entries must have ended.
    entries_end: u64,
}

impl ZipFiles {
    /// Reads the directory of the zip. `name` stands for it in errors (a
    /// path, a URL without secrets). Entries count as changed at `modified`:
    /// the times in a zip have no time zone, and a History Server writes that
    /// of the download.
    ///
    /// # Errors
    /// When it is no zip, is cut or damaged (its directory is its end), or
    /// has more entries than a log could.
    pub fn new(
        source: impl ReadAt + 'static,
        name: impl Into<String>,
        modified: SystemTime,
    ) -> Result<Self, FilesError> {
        let name = name.into();
        match directory::read(&source) {
            Ok(found) => Ok(Self {
                source: Arc::new(source),
                name,
                modified,
                members: found.members,
                unreadable: found.unreadable,
                entries_end: found.begins,
            }),
            Err(error) => Err(of(name, error.to_string())),
        }
    }

    /// A saved zip; see [`ZipFiles::new`].
    pub fn of_file(file: File, name: impl Into<String>) -> Result<Self, FilesError> {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        Self::new(file, name, modified.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Whether there is nothing in it: the answer of a driver's own UI to
    /// `/logs`, which serves none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unreadable.is_empty()
    }
}

fn of(place: String, message: String) -> FilesError {
    FilesError { place, kind: FilesErrorKind::Other, message }
}

impl Files for ZipFiles {
    fn list(&self) -> Result<Listing, FilesError> {
        let mut listing = Listing { unreadable: self.unreadable.clone(), ..Listing::default() };
        for (path, member) in &self.members {
            let (path, kind) = match path.strip_suffix('/') {
                Some(path) => (path, EntryKind::Directory),
                None => (path.as_str(), EntryKind::File),
            };
            listing.push(Entry {
                path: path.to_owned(),
                kind,
                bytes: member.bytes,
                modified: self.modified,
            });
        }
        Ok(listing)
    }

    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let Some(member) = self.members.get(path) else {
            return Err(FilesError {
                kind: FilesErrorKind::NotFound,
                ..of(self.display(path), "the zip has no such entry".to_owned())
            });
        };
        let source = Arc::clone(&self.source);
        match EntryReader::open(source, member, self.entries_end, from) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(error) => Err(of(self.display(path), error.to_string())),
        }
    }

    fn display(&self, path: &str) -> String {
        if path.is_empty() { self.name.clone() } else { format!("{}!/{path}", self.name) }
    }
}

#[cfg(test)]
mod tests;
