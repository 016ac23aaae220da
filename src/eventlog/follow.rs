//! A log that grows, read on from where it was, never again from the start.
//!
//! Spark writes into one `.inprogress` file, renamed when the application
//! ends, or into a directory where the next `events_<N>` appears when one is
//! full. What is not whole yet (a line, a frame) waits for the rest and is no
//! damage. Whether a file grew is asked of the file, not of the listing: on
//! HDFS the listed length stays behind.
//!
//! What lies before the place where reading stopped is compared when it goes
//! on. A file that shrank or was replaced, and one that a History Server's
//! compaction took away, is another log: it is read from the start.

use std::fmt;
use std::io::Read;

use jiff::Timestamp;

use super::feed::{Feed, Opened};
use super::layout::{LogFile, LogFiles, finished};
use super::read::{About, ReadError, ReadOutcome, Reading, Wants, open};
use super::replay::{Hints, Replay};
use crate::config::Limits;
use crate::fetch::files::Files;
use crate::model::DataQuality;

/// Follows one log. Holds what the run's model holds, and a line and a
/// frame's window at most.
pub struct Follower {
    cluster: String,
    limits: Limits,
    log: Option<Following>,
}

/// What came of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// The run as all lines so far tell it, running unless its end was among
    /// them. `None`: nothing is new, or nothing was told yet.
    pub outcome: Option<ReadOutcome>,
    /// Lines that are new.
    pub lines: u64,
    /// The log is another one than before, and was read from its start.
    pub restarted: bool,
    /// Nothing more will come: the application's end was read, or nobody
    /// writes the log any more and all of it was read.
    pub ended: bool,
}

/// A log in the middle of being followed.
struct Following {
    reading: Reading<'static>,
    feed: Feed,
    /// The file that is read, or was last; `None` before the first.
    file: Option<LogFile>,
    /// Begun with a file that a History Server compacted.
    compacted: bool,
    /// Numbers were left out among the files.
    missing_files: bool,
    /// All of it was read, and nobody writes it any more.
    closed: bool,
}

/// Where reading begins.
struct Begin {
    /// Among the files of the listing.
    at: usize,
    /// That file, where it was opened already.
    opened: Option<Opened<'static>>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.log.as_ref().and_then(|log| log.file.as_ref());
        f.debug_struct("Follower")
            .field("cluster", &self.cluster)
            .field("file", &file)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// `cluster`: the operator's name for the source's group.
    pub fn new(cluster: &str, limits: &Limits) -> Self {
        Self { cluster: cluster.to_owned(), limits: limits.clone(), log: None }
    }

    /// Reads what is new since the last time. `log` is what a listing says of
    /// it now. Blocks.
    ///
    /// # Errors
    /// When nothing of it can be read now, or it is no event log. What was
    /// read is kept, and the next call goes on from there.
    pub fn advance(&mut self, log: &LogFiles, files: &dyn Files) -> Result<Advance, ReadError> {
        self.advance_if(log, files, &|_| true)
    }

    /// As [`Follower::advance`], unless the log names an application that is
    /// not wanted: then no more is read of it, now or later.
    ///
    /// # Errors
    /// As [`Follower::advance`], and [`ReadError::NotWanted`].
    pub fn advance_if(
        &mut self,
        log: &LogFiles,
        files: &dyn Files,
        wants: Wants<'_>,
    ) -> Result<Advance, ReadError> {
        let Some(first) = log.files.first() else {
            return Err(ReadError::NoEvents { path: files.display(&log.path) });
        };
        let begin = Begin { at: 0, opened: None };
        let known = match &self.log {
            Some(following) => following.resume(log, files)?,
            None => None,
        };
        let restarted = self.log.is_some() && known.is_none();
        let (following, begin) = match (&mut self.log, known) {
            (Some(following), Some(begin)) => (following, begin),
            (place, _) => (place.insert(Following::new(&self.limits, log, first)), begin),
        };
        let (lines, was_closed) = (following.reading.statistics.lines, following.closed);
        if let Err(error) = following.read_on(log, files, begin, wants) {
            if matches!(error, ReadError::UnsupportedCodec { .. }) {
                self.log = None;
            }
            return Err(error);
        }
        if following.reading.is_unwanted() {
            let path = files.display(&log.path);
            return Err(ReadError::NotWanted { path, bytes: following.feed.compressed });
        }
        let lines = following.reading.statistics.lines - lines;
        let ended = following.closed || following.reading.replay.has_ended();
        let news = lines > 0 || restarted || following.closed != was_closed;
        let outcome = if news {
            let about = About {
                cluster: &self.cluster,
                path: &files.display(&log.path),
                hints: Hints {
                    name: &log.name,
                    in_progress: if following.closed { Some(false) } else { log.in_progress },
                    modified: Timestamp::try_from(log.modified).unwrap_or(Timestamp::UNIX_EPOCH),
                },
                limits: &self.limits,
            };
            match following.so_far(&about) {
                Err(ReadError::NoEvents { .. }) if !ended => None,
                outcome => Some(outcome?),
            }
        } else {
            None
        };
        Ok(Advance { outcome, lines, restarted, ended })
    }
}

/// Whether nobody writes this file of the log any more.
fn is_closed(log: &LogFiles, at: usize) -> bool {
    at + 1 < log.files.len() || log.in_progress == Some(false)
}

impl Following {
    fn new(limits: &Limits, log: &LogFiles, first: &LogFile) -> Self {
        Self {
            reading: Reading::new(Replay::owned(limits.clone())),
            feed: Feed::new(limits),
            file: None,
            compacted: log.compacted,
            missing_files: !log.compacted && first.number != 1,
            closed: false,
        }
    }

    /// Where to go on; `None`: the file that was read last is another one, or
    /// gone.
    fn resume(&self, log: &LogFiles, files: &dyn Files) -> Result<Option<Begin>, ReadError> {
        let Some(file) = &self.file else { return Ok(Some(Begin { at: 0, opened: None })) };
        let same = |other: &LogFile| finished(&other.path) == finished(&file.path);
        let Some(at) = log.files.iter().position(same) else { return Ok(None) };
        if !self.feed.is_inside() {
            return Ok(Some(Begin { at: at + 1, opened: None }));
        }
        let (bytes, tail) = self.feed.place();
        let from = bytes - tail.len() as u64;
        let mut opened = open(files, &log.files[at].path, from, is_closed(log, at))?;
        let mut found = Vec::with_capacity(tail.len());
        let read = (&mut opened.reader).take(tail.len() as u64).read_to_end(&mut found);
        read.map_err(|source| ReadError::Io { path: opened.display.clone(), source })?;
        Ok((found == tail).then_some(Begin { at, opened: Some(opened) }))
    }

    /// Reads to the end of what is there.
    fn read_on(
        &mut self,
        log: &LogFiles,
        files: &dyn Files,
        mut begin: Begin,
        wants: Wants<'_>,
    ) -> Result<(), ReadError> {
        let mut places = log.files.iter().enumerate().skip(begin.at);
        let mut closed = log.in_progress == Some(false);
        let Self { reading, feed, file, missing_files, .. } = self;
        reading.run(
            feed,
            &mut || {
                let Some((at, place)) = places.next() else { return Ok(None) };
                let opened = match begin.opened.take() {
                    Some(opened) => opened,
                    None => open(files, &place.path, 0, is_closed(log, at))?,
                };
                let before = file.replace(place.clone());
                *missing_files |=
                    before.is_some_and(|before| place.number > before.number.saturating_add(1));
                // It may have been renamed since the listing.
                closed |= opened.closed && at + 1 == log.files.len();
                Ok(Some(opened))
            },
            wants,
        )?;
        let file = self.file.as_ref().map(|file| finished(&file.path));
        let is_last = log.files.last().map(|last| finished(&last.path)) == file;
        let is_read = !self.feed.is_inside() || self.feed.faults.stop();
        self.closed = closed && is_last && is_read;
        Ok(())
    }

    fn so_far(&self, about: &About<'_>) -> Result<ReadOutcome, ReadError> {
        let mut reading = self.reading.clone();
        if self.missing_files {
            reading.replay.mark(DataQuality::LogTruncated);
        }
        if self.compacted {
            reading.replay.mark(DataQuality::LogCompacted);
        }
        reading.finish(&self.feed, about)
    }
}
