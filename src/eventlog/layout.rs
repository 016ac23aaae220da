//! Where event logs lie: which files of a place make up which log, without
//! reading them.
//!
//! Spark writes a log as one file (`<id>[_<attempt>][.<codec>][.inprogress]`)
//! or, rolling, as a directory `eventlog_v2_<id>[_<attempt>]` of
//! `events_<N>_…` files and an empty `appstatus_…` file whose name says
//! whether the application has ended. Databricks delivers the log of a
//! cluster's driver as a folder of its own: `eventlog`, and beside it what was
//! rotated, `eventlog-YYYY-MM-DD--HH-MM.gz`. Names are hints only: id and
//! attempt come from the log's ApplicationStart, the codec from its first
//! bytes.

use std::collections::{BTreeMap, HashSet};
use std::time::SystemTime;

use crate::fetch::files::{Entry, EntryKind, Files, FilesError, Listing};

pub(super) const IN_PROGRESS: &str = ".inprogress";
const COMPACT: &str = ".compact";
const CODECS: [&str; 4] = [".zstd", ".lz4", ".snappy", ".lzf"];

/// The files of one log. Paths are from the root of their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFiles {
    /// The file, or the directory of a rolling log (empty: the root).
    pub path: String,
    /// What its name says of the application: a hint, see the module.
    pub name: String,
    /// In reading order.
    pub files: Vec<LogFile>,
    /// As stored, in all.
    pub bytes: u64,
    /// Latest change of any of its files.
    pub modified: SystemTime,
    /// Whether its name says that the application still writes it; `None`
    /// for a rolling directory without `appstatus` (SPARK-46012), and for a
    /// log that Databricks delivered.
    pub in_progress: Option<bool>,
    /// Whether a History Server compacted it: events of finished jobs are
    /// gone.
    pub compacted: bool,
    /// Whether the numbers of a rolling log's files have a gap, or do not
    /// begin with 1.
    pub missing_files: bool,
}

/// One file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    pub path: String,
    pub bytes: u64,
    /// `N` of `events_<N>_…`; 1 for a log that is one file; of a log that
    /// Databricks delivered the place in its order, from 1.
    pub number: u64,
}

impl LogFiles {
    /// What the log is called once its application has ended.
    pub fn finished_path(&self) -> &str {
        finished(&self.path)
    }
}

/// The name of a file once nobody writes it any more.
pub(super) fn finished(path: &str) -> &str {
    path.strip_suffix(IN_PROGRESS).unwrap_or(path)
}

/// What a place holds.
#[derive(Debug, Default)]
pub struct Scan {
    /// Ascending by path.
    pub logs: Vec<LogFiles>,
    /// What looked like a log and cannot be read, with the reason; ascending
    /// by path.
    pub skipped: Vec<(String, SkipReason)>,
}

/// Why an entry of a place is no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// No right to look at it, gone, or a link to nowhere.
    Unreadable(String),
    /// No byte in it yet.
    Empty,
    /// A directory without any `events_<N>_` file.
    NotALog,
}

impl SkipReason {
    /// One word, safe as a label.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Empty => "empty",
            Self::NotALog => "not_a_log",
        }
    }

    /// For a person, to stand after the path.
    pub fn message(&self) -> String {
        match self {
            Self::Unreadable(why) => format!("cannot be looked at: {why}"),
            Self::Empty => "is empty: Spark has not written anything to it yet".to_owned(),
            Self::NotALog => "is no event log: no file in it is named events_<N>_…".to_owned(),
        }
    }
}

/// Lists a place and says which logs it holds ([`group`]). Blocks.
///
/// # Errors
/// When the place cannot be listed.
pub fn scan(files: &dyn Files) -> Result<Scan, FilesError> {
    Ok(group(&files.list()?))
}

/// All logs of a place: single files in its root, rolling directories, and
/// what Databricks delivered, however deep it lies. A root that holds
/// `events_<N>_` files, or rotated ones of Databricks, is a log itself.
/// Hidden files and checksums (`.crc`) are passed over.
pub fn group(listing: &Listing) -> Scan {
    let mut scan = Scan::default();
    let mut directories: BTreeMap<&str, Rolling<'_>> = BTreeMap::new();
    let mut delivered: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    let mut single = Vec::new();
    for entry in &listing.entries {
        let (directory, name) = split(&entry.path);
        if is_hidden(name) || is_hidden(split(directory).1) {
            continue;
        }
        if entry.kind == EntryKind::Directory {
            if directory.is_empty() {
                directories.entry(&entry.path).or_default();
            }
        } else if name.starts_with("appstatus_") || events_number(name).is_some() {
            directories.entry(directory).or_default().files.push((name, entry));
        } else if is_delivered(name) && (!directory.is_empty() || name != DELIVERED) {
            delivered.entry(directory).or_default().push(entry);
        } else if directory.is_empty() {
            single.push((name, entry));
        }
    }
    // In the root `eventlog` alone is a file like others.
    if let Some(files) = delivered.get_mut("") {
        let plain = single.iter().position(|(name, _)| *name == DELIVERED);
        files.extend(plain.map(|at| single.swap_remove(at).1));
    }
    // A directory that holds one, or leads to one, is no broken log.
    let leading: HashSet<&str> = delivered
        .keys()
        .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]).chain([*path]))
        .collect();
    directories.retain(|path, rolling| !(rolling.files.is_empty() && leading.contains(path)));
    for (name, entry) in single {
        if entry.bytes == 0 {
            scan.skipped.push((entry.path.clone(), SkipReason::Empty));
        } else {
            scan.logs.push(single_file(name, entry));
        }
    }
    for (directory, rolling) in directories {
        match rolling.log(directory) {
            Ok(log) => scan.logs.push(log),
            Err(reason) => scan.skipped.push((directory.to_owned(), reason)),
        }
    }
    for (directory, files) in delivered {
        match delivered_log(directory, files) {
            Some(log) => scan.logs.push(log),
            None => scan.skipped.push((directory.to_owned(), SkipReason::Empty)),
        }
    }
    let unreadable = listing.unreadable.iter().filter(|(path, _)| !is_hidden(split(path).1));
    for (path, why) in unreadable {
        // A directory that cannot be looked into is one thing, not two.
        scan.skipped.retain(|(skipped, _)| skipped != path);
        scan.skipped.push((path.clone(), SkipReason::Unreadable(why.clone())));
    }
    scan.logs.sort_by(|a, b| a.path.cmp(&b.path));
    scan.skipped.sort_by(|a, b| a.0.cmp(&b.0));
    scan
}

/// Directory (empty: the root) and name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || name.rsplit_once('.').is_some_and(|(_, suffix)| suffix == "crc")
}

fn single_file(full_name: &str, entry: &Entry) -> LogFiles {
    let name = full_name.strip_suffix(IN_PROGRESS).unwrap_or(full_name);
    let stem = name.strip_suffix(COMPACT).unwrap_or(name);
    LogFiles {
        path: entry.path.clone(),
        name: without_codec(stem).to_owned(),
        files: vec![LogFile { path: entry.path.clone(), bytes: entry.bytes, number: 1 }],
        bytes: entry.bytes,
        modified: entry.modified,
        in_progress: (full_name != DELIVERED).then_some(name.len() < full_name.len()),
        compacted: stem.len() < name.len(),
        missing_files: false,
    }
}

/// The file that Databricks' driver writes now.
const DELIVERED: &str = "eventlog";

/// `eventlog`, or `eventlog-2026-11-30--08-00` with or without a suffix.
fn is_delivered(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(DELIVERED) else { return false };
    let Some(stamp) = rest.strip_prefix('-') else { return rest.is_empty() };
    let stamp = stamp.get(..17).unwrap_or_default();
    stamp.len() == 17
        && stamp
            .chars()
            .zip("dddd-dd-dd--dd-dd".chars())
            .all(|(c, shape)| if shape == 'd' { c.is_ascii_digit() } else { c == shape })
}

/// What was rotated, oldest first, then what is written now.
fn delivered_log(directory: &str, mut files: Vec<&Entry>) -> Option<LogFiles> {
    // `eventlog` sorts before `eventlog-…`, and is the latest.
    files.sort_by_key(|entry| {
        let name = split(&entry.path).1;
        (name == DELIVERED, name)
    });
    let bytes = files.iter().map(|entry| entry.bytes).sum();
    let modified = files.iter().map(|entry| entry.modified).max()?;
    let name = match split(directory).1 {
        "" => DELIVERED,
        name => name,
    };
    (bytes > 0).then(|| LogFiles {
        path: directory.to_owned(),
        name: name.to_owned(),
        files: (1..)
            .zip(files)
            .map(|(number, entry)| LogFile { path: entry.path.clone(), bytes: entry.bytes, number })
            .collect(),
        bytes,
        modified,
        in_progress: None,
        compacted: false,
        missing_files: false,
    })
}

fn without_codec(name: &str) -> &str {
    CODECS.iter().find_map(|codec| name.strip_suffix(codec)).unwrap_or(name)
}

/// `N` of `events_<N>_<id>…`.
fn events_number(name: &str) -> Option<u64> {
    name.strip_prefix("events_")?.split_once('_')?.0.parse().ok()
}

/// The application's part of `events_<N>_<id>[_<attempt>][.codec][.compact]`.
fn events_name(name: &str) -> Option<&str> {
    let name = name.strip_prefix("events_")?.split_once('_')?.1;
    Some(without_codec(name.strip_suffix(COMPACT).unwrap_or(name)))
}

/// A directory that may be a rolling log.
#[derive(Default)]
struct Rolling<'a> {
    /// Name and entry of its `appstatus_` and `events_` files.
    files: Vec<(&'a str, &'a Entry)>,
}

impl Rolling<'_> {
    /// Reading starts at the highest compacted file, which stands for all
    /// before it, even where those are still there.
    fn log(self, directory: &str) -> Result<LogFiles, SkipReason> {
        let (mut ended, mut running) = (false, false);
        let mut events = Vec::new();
        for (name, entry) in self.files {
            match events_number(name) {
                Some(number) => events.push((number, name.ends_with(COMPACT), name, entry)),
                // On an object store the old name may be seen beside the new
                // one for a moment: the rename is a copy.
                None if name.ends_with(IN_PROGRESS) => running = true,
                None => ended = true,
            }
        }
        // The compacted file goes before a plain one of the same number.
        events.sort_by_key(|(number, compact, name, _)| (*number, !compact, *name));
        let compacted = events.iter().rposition(|(_, compact, ..)| *compact);
        if let Some(first) = compacted {
            let compacted_to = events[first].0;
            events.drain(..first);
            events.retain(|(number, compact, ..)| *compact || *number > compacted_to);
        }
        let (first, _, name, _) = *events.first().ok_or(SkipReason::NotALog)?;
        let missing_files = (compacted.is_none() && first != 1)
            || events.windows(2).any(|pair| pair[1].0 > pair[0].0.saturating_add(1));
        let bytes = events.iter().map(|(.., entry)| entry.bytes).sum();
        if bytes == 0 {
            return Err(SkipReason::Empty);
        }
        let modified = events.iter().map(|(.., entry)| entry.modified).max();
        Ok(LogFiles {
            path: directory.to_owned(),
            name: events_name(name).unwrap_or_default().to_owned(),
            files: events
                .into_iter()
                .map(|(number, _, _, entry)| LogFile {
                    path: entry.path.clone(),
                    bytes: entry.bytes,
                    number,
                })
                .collect(),
            bytes,
            modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
            in_progress: match (ended, running) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            },
            compacted: compacted.is_some(),
            missing_files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place that holds these paths: one that ends with `/` is a directory,
    /// one with `!` behind it is empty.
    fn holding(paths: &[&str]) -> Scan {
        let entries = paths.iter().enumerate().map(|(place, path)| {
            let empty = path.ends_with('!') || split(path).1.starts_with("appstatus_");
            Entry {
                path: path.trim_end_matches(['/', '!']).to_owned(),
                kind: if path.ends_with('/') { EntryKind::Directory } else { EntryKind::File },
                bytes: if empty { 0 } else { 10 },
                modified: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(place as u64),
            }
        });
        group(&Listing { entries: entries.collect(), ..Listing::default() })
    }

    fn names(log: &LogFiles) -> Vec<&str> {
        log.files.iter().map(|file| split(&file.path).1).collect()
    }

    #[test]
    fn single_files_and_what_their_names_say() {
        let scan = holding(&[
            "app-2.zstd",
            "app-1",
            "application_1_2_1.lz4.inprogress",
            ".app-1.crc",
            "x.crc",
            "app-9.inprogress!",
        ]);
        let seen: Vec<(&str, Option<bool>)> =
            scan.logs.iter().map(|log| (log.name.as_str(), log.in_progress)).collect();
        assert_eq!(
            seen,
            [("app-1", Some(false)), ("app-2", Some(false)), ("application_1_2_1", Some(true))]
        );
        assert_eq!(scan.skipped, [("app-9.inprogress".to_owned(), SkipReason::Empty)]);
    }

    #[test]
    fn rolling_files_are_read_by_number() {
        let mut files: Vec<String> =
            (1..=11).map(|n| format!("eventlog_v2_app-7/events_{n}_app-7.zstd")).collect();
        let of = |files: &[String], more: &[&str]| {
            let mut all: Vec<&str> = files.iter().map(String::as_str).collect();
            all.reverse();
            all.extend_from_slice(more);
            holding(&all).logs.remove(0)
        };
        let running = "eventlog_v2_app-7/appstatus_app-7.inprogress";
        let ended = "eventlog_v2_app-7/appstatus_app-7";
        let found = of(&files, &["eventlog_v2_app-7/", running]);
        assert_eq!(found.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), files);
        assert_eq!(
            found.files.iter().map(|file| file.number).collect::<Vec<_>>(),
            (1..=11).collect::<Vec<_>>()
        );
        assert_eq!((found.name.as_str(), found.in_progress), ("app-7", Some(true)));
        assert_eq!((found.path.as_str(), found.bytes), ("eventlog_v2_app-7", 110));
        assert!(!found.missing_files && !found.compacted);

        assert_eq!(of(&files, &[running, ended]).in_progress, Some(false));
        files.remove(3);
        let found = of(&files, &["eventlog_v2_app-7/.appstatus_app-7.crc"]);
        assert_eq!(found.in_progress, None);
        assert!(found.missing_files);
    }

    #[test]
    fn a_place_may_be_a_rolling_log_itself() {
        let scan = holding(&["events_1_app-7_1.lz4", "appstatus_app-7_1"]);
        let log = &scan.logs[0];
        assert_eq!((log.path.as_str(), log.name.as_str()), ("", "app-7_1"));
        assert_eq!(log.in_progress, Some(false));
        assert!(scan.skipped.is_empty());
    }

    #[test]
    fn what_databricks_delivered() {
        let names_of = |paths: &[&str]| {
            let scan = holding(paths);
            assert!(scan.skipped.is_empty(), "{:?}", scan.skipped);
            let log = &scan.logs[0];
            assert_eq!(log.in_progress, None);
            let numbers: Vec<u64> = log.files.iter().map(|file| file.number).collect();
            assert_eq!(numbers, [1, 2, 3]);
            assert_eq!(
                names(log),
                ["eventlog-2026-11-29--23-00.gz", "eventlog-2026-11-30--00-00.gz", "eventlog"]
            );
            (log.path.clone(), log.name.clone(), scan.logs.len())
        };
        let files = ["eventlog", "eventlog-2026-11-30--00-00.gz", "eventlog-2026-11-29--23-00.gz"];
        // The destination, the cluster, and the folder itself.
        for (prefix, parents) in [
            ("c/eventlog/host/77", &["c/", "c/eventlog/", "c/eventlog/host/"][..]),
            ("eventlog/host/77", &["eventlog/", "eventlog/host/", "driver/"][..]),
            ("77", &["77/"][..]),
        ] {
            let paths: Vec<String> = files.iter().map(|file| format!("{prefix}/{file}")).collect();
            let mut paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            paths.extend(parents.iter().filter(|path| **path != "driver/"));
            assert_eq!(names_of(&paths), (prefix.to_owned(), "77".to_owned(), 1));
        }
        assert_eq!(names_of(&files), (String::new(), "eventlog".to_owned(), 1));
        // Two contexts are two logs; a name that only looks like one is none.
        let scan = holding(&["c/eventlog/h/1/eventlog", "c/eventlog/h/2/eventlog", "eventlog-old"]);
        assert_eq!(scan.logs.len(), 3);
        assert!(!is_delivered("eventlog-2026") && !is_delivered("eventlog_v2_app-1"));
    }

    #[test]
    fn the_highest_compacted_file_stands_for_all_before_it() {
        let found = holding(&[
            "eventlog_v2_app-7_1/events_1_app-7_1",
            "eventlog_v2_app-7_1/events_2_app-7_1.compact",
            "eventlog_v2_app-7_1/events_3_app-7_1",
            "eventlog_v2_app-7_1/events_3_app-7_1.compact",
            "eventlog_v2_app-7_1/events_4_app-7_1",
            "eventlog_v2_app-7_1/events_10_app-7_1",
            "eventlog_v2_app-7_1/appstatus_app-7_1",
        ])
        .logs
        .remove(0);
        assert_eq!(
            names(&found),
            ["events_3_app-7_1.compact", "events_4_app-7_1", "events_10_app-7_1"]
        );
        assert!(found.compacted);
        assert!(found.missing_files, "5 to 9 are not there");
    }

    #[test]
    fn what_cannot_be_read_costs_only_itself() {
        let mut listing = Listing::default();
        for (path, kind) in [
            ("app-1", EntryKind::File),
            ("lost+found", EntryKind::Directory),
            ("closed", EntryKind::Directory),
        ] {
            listing.push(Entry {
                path: path.to_owned(),
                kind,
                bytes: 10,
                modified: SystemTime::UNIX_EPOCH,
            });
        }
        for path in ["app-2", ".hidden", "closed"] {
            listing.unreadable.push((path.to_owned(), "no".to_owned()));
        }
        let scan = group(&listing);
        assert_eq!(scan.logs.len(), 1);
        let reasons: Vec<(&str, &str)> =
            scan.skipped.iter().map(|(path, reason)| (path.as_str(), reason.as_str())).collect();
        assert_eq!(
            reasons,
            [("app-2", "unreadable"), ("closed", "unreadable"), ("lost+found", "not_a_log")]
        );
    }
}
