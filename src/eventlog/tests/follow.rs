//! Following a log that grows tells in the end what reading the finished log
//! tells, whatever pieces it grew in, and tells no damage on the way.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::sync::Mutex;
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::sample::Index;

use super::fixture;
use crate::config::Limits;
use crate::eventlog::{
    Advance, Follower, LogFiles, ReadError, ReadOptions, ReadOutcome, group, read,
};
use crate::fetch::files::{Entry, EntryKind, Files, FilesError, Listing};
use crate::model::{Application, DataQuality, State};

/// A place in memory whose files grow.
#[derive(Debug, Default)]
struct Growing {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Listed lengths never change, as those of a file open on HDFS.
    lengths_lie: bool,
    /// Readers fail after so many bytes.
    fail_after: Mutex<Option<usize>>,
}

impl Growing {
    fn put(&self, path: &str, bytes: &[u8]) {
        self.files.lock().expect("not poisoned").insert(path.to_owned(), bytes.to_vec());
    }

    fn remove(&self, path: &str) {
        self.files.lock().expect("not poisoned").remove(path).expect("was there");
    }

    fn log(&self) -> LogFiles {
        group(&self.list().expect("lists")).logs.remove(0)
    }

    fn advance(&self, follower: &mut Follower) -> Result<Advance, ReadError> {
        follower.advance(&self.log(), self)
    }

    fn read(&self) -> ReadOutcome {
        let limits = Limits::default();
        read(&self.log(), self, &ReadOptions { cluster: "test", limits: &limits }).expect("a log")
    }
}

/// Gives few bytes at a time, and may fail.
struct Slow {
    bytes: io::Cursor<Vec<u8>>,
    fail_after: Option<usize>,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(777);
        if let Some(left) = &mut self.fail_after {
            if *left == 0 {
                return Err(io::Error::other("connection reset"));
            }
            let read = self.bytes.read(&mut buffer[..most.min(*left)])?;
            *left -= read;
            return Ok(read);
        }
        self.bytes.read(&mut buffer[..most])
    }
}

impl Files for Growing {
    fn list(&self) -> Result<Listing, FilesError> {
        let files = self.files.lock().expect("not poisoned");
        let entries = files.iter().map(|(path, bytes)| Entry {
            path: path.clone(),
            kind: EntryKind::File,
            bytes: if self.lengths_lie { 1 } else { bytes.len() as u64 },
            modified: SystemTime::UNIX_EPOCH,
        });
        Ok(Listing { entries: entries.collect(), ..Listing::default() })
    }

    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let files = self.files.lock().expect("not poisoned");
        let Some(bytes) = files.get(path) else {
            return Err(FilesError::io(self.display(path), &io::ErrorKind::NotFound.into()));
        };
        let from = (from as usize).min(bytes.len());
        let fail_after = self.fail_after.lock().expect("not poisoned").take();
        Ok(Box::new(Slow { bytes: io::Cursor::new(bytes[from..].to_vec()), fail_after }))
    }

    fn display(&self, path: &str) -> String {
        format!("memory:{path}")
    }
}

fn follower() -> Follower {
    Follower::new("test", &Limits::default())
}

/// One run in each codec, as Spark's own writers wrote it.
pub(super) fn recorded() -> Vec<(&'static str, Vec<u8>)> {
    ["none", "zstd", "lz4", "snappy", "lzf"]
        .into_iter()
        .map(|codec| {
            let folder = fixture("codecs").join(format!("{codec}-single"));
            let entry = fs::read_dir(folder).expect("a folder").next().expect("a file");
            (codec, fs::read(entry.expect("a file").path()).expect("reads"))
        })
        .collect()
}

fn plain() -> Vec<u8> {
    recorded().remove(0).1
}

const OPEN: &str = "app-20261130034219-0000.inprogress";
const FINISHED: &str = "app-20261130034219-0000";

/// Without what an application that runs has not yet.
fn is_healthy(application: &Application) {
    assert_eq!(application.state, State::Running);
    let marks: Vec<_> = application
        .data_quality
        .iter()
        .filter(|mark| {
            !matches!(mark, DataQuality::LogIncomplete | DataQuality::NoApplicationStart)
        })
        .collect();
    assert!(marks.is_empty(), "{marks:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_single_file_in_any_steps(
        cuts in proptest::collection::vec(any::<Index>(), 0..12),
        lengths_lie in any::<bool>(),
    ) {
        for (codec, bytes) in recorded() {
            let place = Growing { lengths_lie, ..Growing::default() };
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.sort_unstable();
            let mut follower = follower();
            let mut lines = 0;
            for cut in cuts.into_iter().filter(|cut| *cut > 0) {
                place.put(OPEN, &bytes[..cut]);
                let advance = place.advance(&mut follower).expect("goes on");
                lines += advance.lines;
                prop_assert!(!advance.restarted && !advance.ended, "{}", codec);
                if let Some(outcome) = advance.outcome {
                    prop_assert_eq!(outcome.statistics.bytes_compressed, cut as u64);
                    prop_assert_eq!(outcome.statistics.lines, lines);
                    is_healthy(&outcome.application);
                    prop_assert_eq!(&place.read().application, &outcome.application, "{}", codec);
                }
            }
            if place.list().expect("lists").entries.len() == 1 {
                place.remove(OPEN);
            }
            place.put(FINISHED, &bytes);
            let advance = place.advance(&mut follower).expect("goes on");
            prop_assert!(advance.ended && !advance.restarted, "{}", codec);
            prop_assert_eq!(advance.outcome, Some(place.read()), "{}", codec);
            let again = place.advance(&mut follower).expect("nothing new");
            prop_assert_eq!((again.outcome, again.lines, again.ended), (None, 0, true));
        }
    }

    #[test]
    fn a_rolling_log_in_any_steps(
        files in 1_usize..5,
        steps in proptest::collection::vec(any::<Index>(), 0..8),
    ) {
        let text = plain();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let parts: Vec<Vec<u8>> = lines
            .chunks(lines.len().div_ceil(files))
            .enumerate()
            .map(|(index, lines)| match index % 2 {
                0 => zstd::encode_all(lines.concat().as_slice(), 1).expect("compresses"),
                _ => lines.concat(),
            })
            .collect();
        let whole: Vec<u8> = parts.concat();
        let mut cuts: Vec<usize> = steps.iter().map(|step| step.index(whole.len()) + 1).collect();
        cuts.sort_unstable();
        let place = Growing::default();
        place.put("eventlog_v2_x/appstatus_x.inprogress", b"");
        let grow = |mut size: usize| {
            for (index, part) in parts.iter().enumerate() {
                let there = size.min(part.len());
                place.put(&format!("eventlog_v2_x/events_{}_x", index + 1), &part[..there]);
                size -= there;
                if size == 0 {
                    break;
                }
            }
        };
        let mut follower = follower();
        for cut in cuts {
            grow(cut);
            let advance = place.advance(&mut follower).expect("goes on");
            prop_assert!(!advance.restarted);
            if let Some(outcome) = advance.outcome.filter(|_| !advance.ended) {
                is_healthy(&outcome.application);
            }
        }
        grow(whole.len());
        place.remove("eventlog_v2_x/appstatus_x.inprogress");
        place.put("eventlog_v2_x/appstatus_x", b"");
        let advance = place.advance(&mut follower).expect("goes on");
        prop_assert!(advance.ended);
        let read = place.read();
        prop_assert_eq!(read.application.data_quality.len(), 0);
        if let Some(outcome) = advance.outcome {
            prop_assert_eq!(outcome, read);
        }
    }

    #[test]
    fn reading_that_fails_goes_on_where_it_was(
        failures in proptest::collection::vec(0_usize..9_000, 1..6),
    ) {
        for (codec, bytes) in recorded() {
            let place = Growing::default();
            place.put(FINISHED, &bytes);
            let mut follower = follower();
            for after in &failures {
                *place.fail_after.lock().expect("not poisoned") = Some(*after);
                match place.advance(&mut follower) {
                    Ok(_) => {}
                    Err(error) => prop_assert_eq!(error.reason(), "unreadable"),
                }
            }
            *place.fail_after.lock().expect("not poisoned") = None;
            let advance = place.advance(&mut follower).expect("goes on");
            prop_assert!(advance.ended && !advance.restarted, "{}", codec);
            if let Some(outcome) = advance.outcome {
                prop_assert_eq!(outcome, place.read(), "{}", codec);
            }
        }
    }
}

#[test]
fn what_is_not_whole_waits_while_it_may_come_and_is_damage_when_it_cannot() {
    for (codec, bytes) in recorded() {
        let place = Growing::default();
        let part = &bytes[..bytes.len() - 40];
        place.put(OPEN, part);
        let mut follower = follower();
        let outcome = place.advance(&mut follower).expect("a log").outcome.expect("told");
        is_healthy(&outcome.application);
        place.remove(OPEN);
        place.put(FINISHED, part);
        let advance = place.advance(&mut follower).expect("closed");
        assert!(advance.ended);
        let outcome = advance.outcome.expect("its end is news");
        assert!(outcome.application.has(DataQuality::LogTruncated), "{codec}");
        assert_eq!(outcome, place.read(), "{codec}");
    }
}

#[test]
fn an_application_end_ends_it_before_the_file_is_renamed() {
    let place = Growing::default();
    place.put(OPEN, &plain());
    let advance = place.advance(&mut follower()).expect("a log");
    assert!(advance.ended);
    assert_ne!(advance.outcome.expect("told").application.state, State::Running);
}

#[test]
fn a_file_that_shrank_or_was_replaced_is_read_from_the_start() {
    let text = plain();
    let half = text.len() / 2;
    let other = String::from_utf8_lossy(&text).replace("app-20261130034219-0000", "app-other");
    for (change, id) in [
        (text[..half / 2].to_vec(), "app-20261130034219-0000"),
        (other.clone().into_bytes(), "app-other"),
        (other.as_bytes()[..half].to_vec(), "app-other"),
    ] {
        let place = Growing::default();
        place.put(OPEN, &text[..half]);
        let mut follower = follower();
        assert!(!place.advance(&mut follower).expect("a log").restarted);
        place.put(OPEN, &change);
        let advance = place.advance(&mut follower).expect("another log");
        assert!(advance.restarted);
        let outcome = advance.outcome.expect("told");
        assert_eq!(outcome.application.id.app_id, id);
        assert_eq!(outcome, place.read());
        assert!(!place.advance(&mut follower).expect("goes on").restarted);
    }
}

#[test]
fn a_compaction_that_takes_the_file_away_is_another_log_and_one_before_it_is_none() {
    let text = plain();
    let (first, second) = text.split_at(text.len() / 2);
    let place = Growing::default();
    let name = |rest: &str| format!("eventlog_v2_x/{rest}");
    place.put(&name("appstatus_x.inprogress"), b"");
    place.put(&name("events_1_x"), first);
    let mut follower = follower();
    let half = place.advance(&mut follower).expect("a log").outcome.expect("told");
    // The first file goes while the second is there: the second is read.
    place.put(&name("events_2_x"), b"");
    place.advance(&mut follower).expect("goes on");
    place.remove(&name("events_1_x"));
    place.put(&name("events_1_x.compact"), b"{\"Event\":\"SparkListenerLogStart\"}\n");
    place.put(&name("events_2_x"), second);
    let advance = place.advance(&mut follower).expect("goes on");
    assert!(!advance.restarted && advance.ended);
    let outcome = advance.outcome.expect("told");
    assert!(outcome.application.stages.len() > half.application.stages.len());
    assert!(!outcome.application.has(DataQuality::LogCompacted));
    // Now the second goes as well.
    place.remove(&name("events_2_x"));
    place.put(&name("events_2_x.compact"), &text);
    place.remove(&name("events_1_x.compact"));
    let advance = place.advance(&mut follower).expect("another log");
    assert!(advance.restarted);
    assert!(advance.outcome.expect("told").application.has(DataQuality::LogCompacted));
}

#[test]
fn damage_costs_its_file_and_the_next_is_read() {
    let text = plain();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    let mut damaged = zstd::encode_all(first.concat().as_slice(), 1).expect("compresses");
    damaged.extend(b"this is no frame, and what follows it is lost");
    let place = Growing::default();
    place.put("eventlog_v2_x/appstatus_x.inprogress", b"");
    place.put("eventlog_v2_x/events_1_x", &damaged);
    let mut follower = follower();
    let outcome = place.advance(&mut follower).expect("a log").outcome.expect("told");
    assert!(outcome.application.has(DataQuality::LogTruncated));
    place.put("eventlog_v2_x/events_1_x", &[damaged.as_slice(), b"more"].concat());
    assert_eq!(place.advance(&mut follower).expect("nothing new").outcome, None);
    place.put("eventlog_v2_x/events_2_x", &second.concat());
    let advance = place.advance(&mut follower).expect("goes on");
    assert!(advance.ended && !advance.restarted);
    let outcome = advance.outcome.expect("told");
    assert!(outcome.application.has(DataQuality::LogTruncated));
    assert_eq!(outcome.statistics.bad_lines, 0);
}

#[test]
fn nothing_yet_is_no_error_and_no_log_is_one() {
    let place = Growing::default();
    place.put(OPEN, b"{\"Event\":\"SparkLis");
    let mut follower = follower();
    let advance = place.advance(&mut follower).expect("nothing yet");
    assert_eq!((advance.outcome, advance.lines, advance.ended), (None, 0, false));
    place.put(OPEN, b"PK\x03\x04");
    let error = place.advance(&mut follower).expect_err("a zip");
    assert_eq!(error.reason(), "unsupported_codec");
    place.put(OPEN, b"<html>\nno log\n");
    assert_eq!(place.advance(&mut follower).expect_err("no log").reason(), "not_an_event_log");
    place.put(OPEN, &plain());
    assert!(place.advance(&mut follower).expect("at last").outcome.is_some());
}

#[test]
fn a_file_that_cannot_be_opened_yet_is_not_left_out() {
    let place = Growing::default();
    place.put(OPEN, &plain());
    let log = place.log();
    place.remove(OPEN);
    let mut follower = follower();
    let error = follower.advance(&log, &place).expect_err("gone");
    assert_eq!(error.reason(), "unreadable");
    place.put(FINISHED, &plain());
    // The old listing will do: the file was renamed.
    let advance = follower.advance(&log, &place).expect("found under its last name");
    assert!(advance.ended);
    assert_eq!(advance.outcome, Some(place.read()));
}

#[test]
fn limits_end_it() {
    let limits = Limits { log_size: "8KiB".parse().expect("a size"), ..Limits::default() };
    let place = Growing::default();
    let text = plain();
    place.put(OPEN, &text[..6_000]);
    let mut follower = Follower::new("test", &limits);
    place.advance(&mut follower).expect("a log");
    place.put(OPEN, &text[..12_000]);
    let outcome = place.advance(&mut follower).expect("a log").outcome;
    if let Some(outcome) = outcome {
        assert!(outcome.application.has(DataQuality::LogTruncated));
        assert_eq!(outcome.statistics.bytes_decompressed, 8 << 10);
    }
    place.put(OPEN, &text);
    let advance = place.advance(&mut follower).expect("a log");
    assert_eq!((advance.lines, advance.ended), (0, false));
}
