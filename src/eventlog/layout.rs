//! Where event logs lie: which files of a directory make up which log, without
//! reading them.
//!
//! Spark writes a log as one file (`<id>[_<attempt>][.<codec>][.inprogress]`)
//! or, rolling, as a directory `eventlog_v2_<id>[_<attempt>]` of
//! `events_<N>_…` files and an empty `appstatus_…` file whose name says
//! whether the application has ended. Names are hints only: id and attempt
//! come from the log's ApplicationStart, the codec from its first bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const ROLLING_PREFIX: &str = "eventlog_v2_";
pub(super) const IN_PROGRESS: &str = ".inprogress";
const COMPACT: &str = ".compact";
const CODECS: [&str; 4] = [".zstd", ".lz4", ".snappy", ".lzf"];

/// The files of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFiles {
    /// The file, or the `eventlog_v2_` directory.
    pub path: PathBuf,
    /// What its name says of the application: a hint, see the module.
    pub name: String,
    /// In reading order.
    pub files: Vec<PathBuf>,
    /// On disk, in all.
    pub bytes: u64,
    /// Latest change of any of its files.
    pub modified: SystemTime,
    /// Whether its name says that the application still writes it; `None`
    /// for a rolling directory without `appstatus` (SPARK-46012).
    pub in_progress: Option<bool>,
    /// Whether a History Server compacted it: events of finished jobs are
    /// gone.
    pub compacted: bool,
    /// Whether the numbers of a rolling log's files have a gap, or do not
    /// begin with 1.
    pub missing_files: bool,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Scan {
    /// Ascending by path.
    pub logs: Vec<LogFiles>,
    /// What looked like a log and cannot be read, with the reason.
    pub skipped: Vec<(PathBuf, SkipReason)>,
}

/// Why an entry of a directory is no log.
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
}

#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    #[error("cannot read {path}: {source}; check that it exists and that this user may read it")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is neither a file nor a directory")]
    NeitherFileNorDirectory { path: PathBuf },
    #[error("{path} is empty: Spark has not written anything to it yet")]
    Empty { path: PathBuf },
}

/// All logs directly in `directory`: single files and rolling directories.
/// Hidden files and checksums (`.crc`) are passed over; an entry that cannot
/// be looked at costs only itself.
pub fn scan_directory(directory: &Path) -> Result<Scan, LayoutError> {
    let failed = |source| LayoutError::Io { path: directory.to_owned(), source };
    let mut scan = Scan::default();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_hidden(&path) {
            continue;
        }
        match examine(&path) {
            Ok(log) => scan.logs.push(log),
            Err(reason) => scan.skipped.push((path, reason)),
        }
    }
    scan.logs.sort_by(|a, b| a.path.cmp(&b.path));
    scan.skipped.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(scan)
}

/// The logs a person means by `path`: a file, one rolling directory, or a
/// directory of logs.
pub fn locate(path: &Path) -> Result<Scan, LayoutError> {
    let metadata =
        fs::metadata(path).map_err(|source| LayoutError::Io { path: path.to_owned(), source })?;
    if metadata.is_file() && metadata.len() == 0 {
        return Err(LayoutError::Empty { path: path.to_owned() });
    }
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(LayoutError::NeitherFileNorDirectory { path: path.to_owned() });
    }
    match examine(path) {
        Ok(log) => Ok(Scan { logs: vec![log], skipped: Vec::new() }),
        Err(_) => scan_directory(path),
    }
}

fn is_hidden(path: &Path) -> bool {
    let checksum = path.extension().is_some_and(|suffix| suffix == "crc");
    checksum || file_name(path).starts_with('.')
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One entry as a log.
fn examine(path: &Path) -> Result<LogFiles, SkipReason> {
    let unreadable = |error: io::Error| SkipReason::Unreadable(error.to_string());
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return rolling(path);
    }
    if !metadata.is_file() {
        return Err(SkipReason::NotALog);
    }
    if metadata.len() == 0 {
        return Err(SkipReason::Empty);
    }
    let full_name = file_name(path);
    let name = full_name.strip_suffix(IN_PROGRESS).unwrap_or(&full_name);
    let in_progress = name.len() < full_name.len();
    let stem = name.strip_suffix(COMPACT).unwrap_or(name);
    Ok(LogFiles {
        path: path.to_owned(),
        name: without_codec(stem).to_owned(),
        files: vec![path.to_owned()],
        bytes: metadata.len(),
        modified: metadata.modified().map_err(unreadable)?,
        in_progress: Some(in_progress),
        compacted: stem.len() < name.len(),
        missing_files: false,
    })
}

fn without_codec(name: &str) -> &str {
    CODECS.iter().find_map(|codec| name.strip_suffix(codec)).unwrap_or(name)
}

/// An `events_<N>_…` file.
struct Events {
    index: u64,
    compact: bool,
    path: PathBuf,
    bytes: u64,
}

/// A directory as a rolling log. Reading starts at the highest compacted
/// file, which stands for all before it, even where those are still there.
fn rolling(directory: &Path) -> Result<LogFiles, SkipReason> {
    let unreadable = |error: io::Error| SkipReason::Unreadable(error.to_string());
    let mut events = Vec::new();
    let (mut ended, mut running) = (false, false);
    let mut modified = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if is_hidden(&path) {
            continue;
        }
        let name = file_name(&path);
        if name.starts_with("appstatus_") {
            // On an object store the old name may be seen beside the new one
            // for a moment: the rename is a copy.
            if name.ends_with(IN_PROGRESS) { running = true } else { ended = true }
        } else if let Some(index) = events_index(&name) {
            let metadata = fs::metadata(&path).map_err(unreadable)?;
            modified = modified.max(metadata.modified().map_err(unreadable)?);
            let compact = name.ends_with(COMPACT);
            events.push(Events { index, compact, path, bytes: metadata.len() });
        }
    }
    // The compacted file goes before a plain one of the same number.
    events.sort_by(|a, b| (a.index, !a.compact, &a.path).cmp(&(b.index, !b.compact, &b.path)));
    let compacted = events.iter().rposition(|file| file.compact);
    if let Some(first) = compacted {
        let index = events[first].index;
        events.drain(..first);
        events.retain(|file| file.compact || file.index > index);
    }
    let first = events.first().map(|file| file.index).ok_or(SkipReason::NotALog)?;
    let missing_files = (compacted.is_none() && first != 1)
        || events.windows(2).any(|pair| pair[1].index > pair[0].index.saturating_add(1));
    let bytes = events.iter().map(|file| file.bytes).sum();
    if bytes == 0 {
        return Err(SkipReason::Empty);
    }
    let name = file_name(directory);
    Ok(LogFiles {
        path: directory.to_owned(),
        name: name.strip_prefix(ROLLING_PREFIX).unwrap_or(&name).to_owned(),
        files: events.into_iter().map(|file| file.path).collect(),
        bytes,
        modified,
        in_progress: match (ended, running) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        },
        compacted: compacted.is_some(),
        missing_files,
    })
}

/// `N` of `events_<N>_<id>…`.
fn events_index(name: &str) -> Option<u64> {
    name.strip_prefix("events_")?.split_once('_')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, names: &[&str]) {
        fs::create_dir_all(directory).expect("directory");
        for name in names {
            let text = if name.starts_with("appstatus") { "" } else { "{}\n" };
            fs::write(directory.join(name), text).expect("file");
        }
    }

    fn names(log: &LogFiles) -> Vec<String> {
        log.files.iter().map(|path| file_name(path)).collect()
    }

    #[test]
    fn single_files_and_what_their_names_say() {
        let directory = tempfile::tempdir().expect("directory");
        write(
            directory.path(),
            &["app-1", "app-2.zstd", "application_1_2_1.lz4.inprogress", ".app-1.crc", "x.crc"],
        );
        fs::write(directory.path().join("app-9.inprogress"), "").expect("file");
        let scan = scan_directory(directory.path()).expect("scan");
        let seen: Vec<(&str, Option<bool>)> =
            scan.logs.iter().map(|log| (log.name.as_str(), log.in_progress)).collect();
        assert_eq!(
            seen,
            [("app-1", Some(false)), ("app-2", Some(false)), ("application_1_2_1", Some(true))]
        );
        assert_eq!(scan.skipped, [(directory.path().join("app-9.inprogress"), SkipReason::Empty)]);
    }

    #[test]
    fn rolling_files_are_read_by_number() {
        let directory = tempfile::tempdir().expect("directory");
        let log = directory.path().join("eventlog_v2_app-7");
        let files: Vec<String> = (1..=11).map(|n| format!("events_{n}_app-7.zstd")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        write(&log, &files);
        write(&log, &["appstatus_app-7.inprogress", ".appstatus_app-7.crc"]);
        let found = locate(&log).expect("a log").logs.remove(0);
        assert_eq!(names(&found), files);
        assert_eq!((found.name.as_str(), found.in_progress), ("app-7", Some(true)));
        assert!(!found.missing_files && !found.compacted);

        write(&log, &["appstatus_app-7"]);
        assert_eq!(locate(&log).expect("a log").logs[0].in_progress, Some(false));
        fs::remove_file(log.join("appstatus_app-7")).expect("removed");
        fs::remove_file(log.join("appstatus_app-7.inprogress")).expect("removed");
        fs::remove_file(log.join("events_4_app-7.zstd")).expect("removed");
        let found = locate(directory.path()).expect("a directory of logs").logs.remove(0);
        assert_eq!(found.in_progress, None);
        assert!(found.missing_files);
    }

    #[test]
    fn the_highest_compacted_file_stands_for_all_before_it() {
        let directory = tempfile::tempdir().expect("directory");
        let log = directory.path().join("eventlog_v2_app-7_1");
        write(
            &log,
            &[
                "events_1_app-7_1",
                "events_2_app-7_1.compact",
                "events_3_app-7_1",
                "events_3_app-7_1.compact",
                "events_4_app-7_1",
                "events_10_app-7_1",
                "appstatus_app-7_1",
            ],
        );
        let found = locate(&log).expect("a log").logs.remove(0);
        assert_eq!(
            names(&found),
            ["events_3_app-7_1.compact", "events_4_app-7_1", "events_10_app-7_1"]
        );
        assert!(found.compacted);
        assert!(found.missing_files, "5 to 9 are not there");
    }

    #[test]
    fn what_cannot_be_read_costs_only_itself() {
        let directory = tempfile::tempdir().expect("directory");
        write(directory.path(), &["app-1"]);
        fs::create_dir(directory.path().join("lost+found")).expect("directory");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/nowhere/at/all", directory.path().join("app-2"))
            .expect("link");
        let scan = scan_directory(directory.path()).expect("scan");
        assert_eq!(scan.logs.len(), 1);
        let reasons: Vec<&str> = scan.skipped.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(reasons, ["unreadable", "not_a_log"]);
    }

    #[test]
    fn an_empty_directory_holds_nothing_and_a_missing_one_is_an_error() {
        let directory = tempfile::tempdir().expect("directory");
        assert!(scan_directory(directory.path()).expect("scan").logs.is_empty());
        let missing = directory.path().join("gone");
        let error = locate(&missing).expect_err("no such path").to_string();
        assert!(error.contains("gone"), "{error}");
        fs::write(&missing, "").expect("file");
        assert!(matches!(locate(&missing), Err(LayoutError::Empty { .. })));
    }
}
