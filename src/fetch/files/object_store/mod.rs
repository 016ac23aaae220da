//! A bucket of an object store: S3 and what speaks like it, Google Cloud
//! Storage, Azure.
//!
//! A bucket has no directories. One flat listing, a thousand objects a page,
//! shows what [`Files::list`] promises at a fraction of the requests that a
//! listing of each directory would take; what lies deeper is passed over, by
//! the page and not by the object.

mod build;
mod failure;

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use futures_util::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Handle;

use self::failure::{Doing, Naming};
use super::stream::{self, Begin, STALL};
use super::tree::is_looked_into;
use super::{Access, Entry, EntryKind, Files, FilesError, FilesErrorKind, Listing, MOST_ENTRIES};
use crate::config::RemoteLocation;

/// Objects passed over in a row, in one place, before the rest of it is
/// skipped with a new request.
const PASSED_OVER: usize = 1_000;
/// Objects looked at in one listing, those passed over included.
const MOST_OBJECTS: usize = 2 * MOST_ENTRIES;

/// What lies under a prefix of a bucket.
pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    root: Path,
    runtime: Handle,
    naming: Naming,
    /// Of one file.
    most_bytes: u64,
    /// Whether the root turned out to be one object.
    single: AtomicBool,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.display(""))
    }
}

impl Bucket {
    /// Asks nothing of the store yet.
    ///
    /// # Errors
    /// When options contradict each other or a secret cannot be read.
    pub(super) fn at(location: &RemoteLocation, access: &Access) -> Result<Self, FilesError> {
        let naming = Naming::of(location);
        let store = build::store(location, access).map_err(|message| naming.other("", message))?;
        let root = Path::parse(location.path())
            .map_err(|_| naming.other("", "this is no path of an object store".to_owned()))?;
        let (runtime, most_bytes) = (access.runtime.clone(), access.most_bytes);
        Ok(Self { store, root, runtime, naming, most_bytes, single: AtomicBool::new(false) })
    }

    fn path_of(&self, path: &str) -> Result<Path, FilesError> {
        let whole = match (self.root.as_ref(), path) {
            (root, "") => root.to_owned(),
            ("", path) => path.to_owned(),
            (root, path) => format!("{root}/{path}"),
        };
        Path::parse(whole)
            .map_err(|_| self.naming.other(path, "this is no path of an object store".to_owned()))
    }

    /// The objects under the root, or the one object that the root is.
    async fn objects(&self) -> Result<Listing, FilesError> {
        let mut found = Found::default();
        let root = (!self.root.as_ref().is_empty()).then_some(&self.root);
        let mut objects = self.store.list(root);
        loop {
            let next = tokio::time::timeout(STALL, objects.next()).await;
            let object = match next.map_err(|_| self.naming.stalled(""))? {
                None => break,
                Some(object) => {
                    object.map_err(|error| self.naming.error("", Doing::Listing, &error))?
                }
            };
            if found.seen >= MOST_OBJECTS {
                found.listing.incomplete = true;
                break;
            }
            let Some(path) = self.within(&object.location) else { continue };
            if let Some(skipped) = found.take(&path, &object) {
                // `0` follows `/`: on behind the directory (and behind an
                // object of just that name, which is no log).
                let behind = self.path_of(&format!("{skipped}0"))?;
                objects = self.store.list_with_offset(root, &behind);
            }
        }
        if found.seen == 0
            && let Some(name) = self.root.filename()
            && let Ok(object) = self.store.head(&self.root).await
        {
            self.single.store(true, Ordering::Relaxed);
            found.take(name, &object);
        }
        Ok(found.listing())
    }

    /// The path of an object from the root.
    fn within(&self, object: &Path) -> Option<String> {
        let whole = object.as_ref();
        match self.root.as_ref() {
            "" => Some(whole.to_owned()),
            root => whole.strip_prefix(root)?.strip_prefix('/').map(str::to_owned),
        }
    }

    /// Where a path of a listing lies: below the root, unless the root is the
    /// one object that was listed.
    fn object(&self, path: &str) -> Result<Path, FilesError> {
        if self.is_root(path) { Ok(self.root.clone()) } else { self.path_of(path) }
    }

    fn is_root(&self, path: &str) -> bool {
        self.single.load(Ordering::Relaxed) && self.root.filename() == Some(path)
    }

    fn begin(&self, path: &str, object: Path, to: u64) -> Begin {
        let (store, naming) = (Arc::clone(&self.store), self.naming.clone());
        let path = path.to_owned();
        Box::new(move |from| {
            let (store, naming) = (Arc::clone(&store), naming.clone());
            let (object, path) = (object.clone(), path.clone());
            async move {
                let options = GetOptions {
                    range: (from > 0).then_some(GetRange::Bounded(from..to)),
                    ..GetOptions::default()
                };
                let got = tokio::time::timeout(STALL, store.get_opts(&object, options))
                    .await
                    .map_err(|_| naming.stalled(&path))?
                    .map_err(|error| naming.error(&path, Doing::Reading, &error))?;
                let pieces = got.into_stream().map(move |piece| {
                    piece.map_err(|error| naming.error(&path, Doing::Reading, &error).message)
                });
                Ok(pieces.boxed())
            }
            .boxed()
        })
    }
}

impl Files for Bucket {
    fn list(&self) -> Result<Listing, FilesError> {
        self.runtime.block_on(self.objects())
    }

    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let object = self.object(path)?;
        // A range that begins at the end is an error of its own in every
        // store, and each says it in other words.
        let head = self
            .runtime
            .block_on(async { tokio::time::timeout(STALL, self.store.head(&object)).await })
            .map_err(|_| self.naming.stalled(path))?
            .map_err(|error| self.naming.error(path, Doing::Reading, &error))?;
        let most = head.size.saturating_sub(from).min(self.most_bytes);
        if most == 0 {
            return Ok(Box::new(std::io::empty()));
        }
        stream::open(&self.runtime, from, most, self.begin(path, object, head.size))
    }

    fn display(&self, path: &str) -> String {
        self.naming.display(if self.is_root(path) { "" } else { path })
    }
}

/// A listing in the making.
#[derive(Default)]
struct Found {
    listing: Listing,
    seen: usize,
    directories: HashSet<String>,
    /// A directory that is not looked into, and how many objects of it came
    /// in a row.
    passing: Option<(String, usize)>,
}

impl Found {
    /// Takes an object in, with the directories it lies in. Gives back the
    /// directory whose further objects are better skipped.
    fn take(&mut self, path: &str, object: &ObjectMeta) -> Option<String> {
        self.seen += 1;
        let directories: Vec<&str> = path.match_indices('/').map(|(at, _)| &path[..at]).collect();
        if let Some(closed) = directories.iter().find(|directory| !is_looked_into(directory)) {
            self.add_directories(&directories, closed, object);
            let count = match &self.passing {
                Some((passing, count)) if passing == closed => count + 1,
                _ => 1,
            };
            self.passing = Some((String::from(*closed), count));
            return (count >= PASSED_OVER).then(|| String::from(*closed));
        }
        self.passing = None;
        self.add_directories(&directories, "", object);
        self.listing.push(Entry {
            path: path.to_owned(),
            kind: EntryKind::File,
            bytes: object.size,
            modified: SystemTime::from(object.last_modified),
        });
        None
    }

    /// An object of no byte with the name of a directory stands for it (some
    /// tools write such) and is no file.
    fn listing(self) -> Listing {
        let Self { mut listing, directories, .. } = self;
        let stands_for_one = |entry: &Entry| {
            entry.kind == EntryKind::File && entry.bytes == 0 && directories.contains(&entry.path)
        };
        listing.entries.retain(|entry| !stands_for_one(entry));
        listing
    }

    /// The directories of a path, down to `last`.
    fn add_directories(&mut self, directories: &[&str], last: &str, object: &ObjectMeta) {
        for directory in directories {
            if !self.directories.contains(*directory) {
                self.directories.insert(String::from(*directory));
                self.listing.push(Entry {
                    path: String::from(*directory),
                    kind: EntryKind::Directory,
                    bytes: 0,
                    modified: SystemTime::from(object.last_modified),
                });
            }
            if *directory == last {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
