//! Which directories of a place are looked into, and how a place is walked
//! whose servers list one directory at a time.
//!
//! Event logs lie flat: files, and directories of files. Databricks delivers
//! them deeper, as `<cluster>/eventlog/<host>/<context>/eventlog`; there, and
//! only there, the walk goes on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::{Entry, EntryKind, FilesError, FilesErrorKind, Listing, MOST_ENTRIES};

/// The folder under which Databricks puts the logs of a cluster.
const DELIVERED: &str = "eventlog";

/// Whether what is in a directory belongs to a listing. `path` is from the
/// root; the root itself always is.
pub(super) fn is_looked_into(path: &str) -> bool {
    if path.split('/').any(|name| name.starts_with('.')) {
        return false;
    }
    let depth = path.split('/').count();
    let delivered = path.split('/').take(2).position(|name| name == DELIVERED);
    depth == 1 || delivered.is_some_and(|at| depth <= at + 3)
}

/// What was in a directory when it was listed last.
#[derive(Debug)]
struct Kept {
    modified: SystemTime,
    entries: Vec<Entry>,
}

/// Listings of directories that will not change any more.
///
/// A directory of HDFS changes its time when a file in it comes, goes or is
/// renamed. One in which nothing is being written any more and whose time is
/// still the same holds the same files: asking again for each of five
/// thousand finished logs, twice a minute, would be five thousand questions
/// to the NameNode.
#[derive(Debug, Default)]
pub(super) struct Tree(Mutex<HashMap<String, Kept>>);

impl Tree {
    /// Walks a place. `list` gives what is in one directory, each entry with
    /// its name as path.
    ///
    /// # Errors
    /// When the root cannot be listed.
    pub(super) fn walk(
        &self,
        mut list: impl FnMut(&str) -> Result<Vec<Entry>, FilesError>,
    ) -> Result<Listing, FilesError> {
        let mut kept = std::mem::take(&mut *self.lock());
        let mut still = HashMap::new();
        let mut listing = Listing::default();
        let mut waiting = vec![(String::new(), SystemTime::UNIX_EPOCH)];
        while let Some((directory, modified)) = waiting.pop() {
            if listing.entries.len() >= MOST_ENTRIES {
                listing.incomplete = true;
                break;
            }
            let before = kept.remove(&directory).filter(|kept| kept.modified == modified);
            let entries = match before {
                Some(kept) => kept.entries,
                None => match list(&directory) {
                    Ok(entries) => entries,
                    Err(error) if directory.is_empty() => return Err(error),
                    // Gone since its parent was listed.
                    Err(error) if error.kind == FilesErrorKind::NotFound => continue,
                    Err(error) => {
                        listing.unreadable.push((directory, error.message));
                        continue;
                    }
                },
            };
            for entry in &entries {
                let path = match directory.as_str() {
                    "" => entry.path.clone(),
                    directory => format!("{directory}/{}", entry.path),
                };
                if entry.kind == EntryKind::Directory && is_looked_into(&path) {
                    waiting.push((path.clone(), entry.modified));
                }
                listing.push(Entry { path, ..entry.clone() });
            }
            if !directory.is_empty() && is_settled(&entries) {
                still.insert(directory, Kept { modified, entries });
            }
        }
        *self.lock() = still;
        Ok(listing)
    }

    /// A panic in the middle leaves an empty map at worst: all is asked again.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a directory is a rolling log that has ended: the only ones that
/// are many.
fn is_settled(entries: &[Entry]) -> bool {
    let is = |entry: &Entry, ended: bool| {
        entry.path.starts_with("appstatus_") && entry.path.ends_with(".inprogress") != ended
    };
    entries.iter().any(|entry| is(entry, true))
        && !entries.iter().any(|entry| is(entry, false) || entry.kind == EntryKind::Directory)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn deeper_only_where_databricks_delivers() {
        for path in ["a", "eventlog", "c/eventlog", "eventlog/h", "eventlog/h/x", "c/eventlog/h/x"]
        {
            assert!(is_looked_into(path), "{path}");
        }
        for path in
            ["a/b", "a/b/eventlog", "eventlog/h/x/y", "c/eventlog/h/x/y", ".a", "c/eventlog/.h"]
        {
            assert!(!is_looked_into(path), "{path}");
        }
    }

    fn entry(name: &str, second: u64) -> Entry {
        let (path, kind) = match name.strip_suffix('/') {
            Some(path) => (path, EntryKind::Directory),
            None => (name, EntryKind::File),
        };
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        Entry { path: path.to_owned(), kind, bytes: 1, modified }
    }

    #[test]
    fn ended_logs_are_asked_for_once() {
        let tree = Tree::default();
        let walk = |ended_at: u64| {
            let mut asked = Vec::new();
            let listing = tree
                .walk(|directory| {
                    asked.push(directory.to_owned());
                    Ok(match directory {
                        "" => vec![entry("ended/", ended_at), entry("going/", 1), entry("x", 1)],
                        "ended" => vec![entry("events_1_a", 1), entry("appstatus_a", 1)],
                        _ => vec![entry("events_1_b", 1), entry("appstatus_b.inprogress", 1)],
                    })
                })
                .expect("a listing");
            asked.sort();
            let mut paths: Vec<String> =
                listing.entries.into_iter().map(|entry| entry.path).collect();
            paths.sort();
            assert_eq!(paths.len(), 7, "{paths:?}");
            assert!(paths.contains(&"ended/events_1_a".to_owned()));
            asked
        };
        assert_eq!(walk(5), ["", "ended", "going"]);
        assert_eq!(walk(5), ["", "going"]);
        assert_eq!(walk(6), ["", "ended", "going"], "something in it changed");
    }

    #[test]
    fn what_cannot_be_listed_costs_only_itself() {
        let tree = Tree::default();
        let error = |kind, place: &str| FilesError {
            place: place.to_owned(),
            kind,
            message: "no".to_owned(),
        };
        let listing = tree
            .walk(|directory| match directory {
                "" => Ok(vec![entry("a/", 1), entry("gone/", 1), entry("x", 1)]),
                "a" => Err(error(FilesErrorKind::Denied, directory)),
                _ => Err(error(FilesErrorKind::NotFound, directory)),
            })
            .expect("a listing");
        assert_eq!(listing.unreadable, [("a".to_owned(), "no".to_owned())]);
        assert_eq!(listing.entries.len(), 3);
        assert!(tree.walk(|_| Err(error(FilesErrorKind::Other, ""))).is_err());
    }
}
