//! One log, from its files to the model.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::codec::{Damage, UnsupportedCodec};
use super::feed::{Feed, Opened};
use super::layout::{IN_PROGRESS, LogFiles};
use super::lines::{Batch, Line};
use super::pipeline;
use super::replay::{Hints, Replay, Seen};
use crate::config::Limits;
use crate::fetch::files::{Files, FilesError, FilesErrorKind};
use crate::model::{Application, DataQuality};

/// How to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions<'a> {
    /// The operator's name for the source's group, part of the run's
    /// identity.
    pub cluster: &'a str,
    pub limits: &'a Limits,
}

/// What was read, for counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadStatistics {
    /// Lines in all, padding and empty ones included.
    pub lines: u64,
    /// Lines that are no event. The last line of a log cut short is not among
    /// them.
    pub bad_lines: u64,
    /// Lines over `limits.line_size`.
    pub long_lines: u64,
    /// Events that are not Spark's own, or newer than this program.
    pub unknown_events: u64,
    pub bytes_compressed: u64,
    pub bytes_decompressed: u64,
}

/// A log that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOutcome {
    pub application: Application,
    pub statistics: ReadStatistics,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Could not be opened. May pass: the daemon tries again.
    #[error(transparent)]
    Unreadable(#[from] FilesError),
    /// Reading stopped half way. May pass: the daemon tries again.
    #[error("reading {path} stopped: {source}; check its disk or server")]
    Io { path: String, source: io::Error },
    #[error("{path} is a {} file, which is no log as it is: unpack it first", codec.as_str())]
    UnsupportedCodec { path: String, codec: UnsupportedCodec },
    #[error("{path} cannot be decompressed: {source}; the file is damaged")]
    Damaged { path: String, source: Damage },
    #[error("{path} holds no complete event yet")]
    NoEvents { path: String },
    #[error(
        "{path} is no Spark event log: none of its {lines} lines is an event; it begins with {begins:?}"
    )]
    NotAnEventLog { path: String, lines: u64, begins: String },
    #[error(
        "{path} holds no event in its first {limit} bytes, the most that are read of a log \
         (limits.log_size)"
    )]
    TooLarge { path: String, limit: u64 },
    #[error(
        "{path} holds no event before it decompresses to more than {limit} times its size, the \
         most that is read of a log (limits.compression_ratio)"
    )]
    CompressionRatio { path: String, limit: u64 },
    /// No fault: reading ended where the log said whose it is. So many bytes
    /// of it were read, as they lie there.
    #[error("{path} is the log of an application that is not wanted")]
    NotWanted { path: String, bytes: u64 },
}

/// Whether the log of an application of this name is wanted.
pub type Wants<'a> = &'a dyn Fn(&str) -> bool;

impl ReadError {
    /// Whether it is a fault of the log's place, which may pass, not of the log.
    pub fn is_of_place(&self) -> bool {
        matches!(self, Self::Unreadable(_) | Self::Io { .. })
    }

    /// One word, safe as a label.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::Io { .. } => "unreadable",
            Self::UnsupportedCodec { .. } => "unsupported_codec",
            Self::Damaged { .. } => "damaged",
            Self::NoEvents { .. } => "no_events",
            Self::NotAnEventLog { .. } => "not_an_event_log",
            Self::TooLarge { .. } => "too_large",
            Self::CompressionRatio { .. } => "compression_ratio",
            Self::NotWanted { .. } => "not_wanted",
        }
    }
}

/// Reads a log of a place, all its files in turn. Blocks.
///
/// What is wrong with parts of it costs those parts and is marked in the
/// application's data quality; an error means that nothing could be read. Of
/// a log that is still written, a last line or frame that is not whole is no
/// damage: it waits for the rest.
pub fn read(
    log: &LogFiles,
    files: &dyn Files,
    options: &ReadOptions<'_>,
) -> Result<ReadOutcome, ReadError> {
    read_if(log, files, options, &|_| true)
}

/// As [`read`], unless the log's first lines name an application that is not
/// wanted: then the rest is not read. One that never names its application is
/// read to its end.
///
/// # Errors
/// As [`read`], and [`ReadError::NotWanted`].
pub fn read_if(
    log: &LogFiles,
    files: &dyn Files,
    options: &ReadOptions<'_>,
    wants: Wants<'_>,
) -> Result<ReadOutcome, ReadError> {
    let mut reading = Reading::new(Replay::new(options.limits));
    let mut feed = Feed::new(options.limits);
    let mut places = log.files.iter().peekable();
    let mut next = || {
        let Some(file) = places.next() else { return Ok(None) };
        let closed = places.peek().is_some() || log.in_progress != Some(true);
        open(files, &file.path, 0, closed).map(Some).map_err(ReadError::from)
    };
    reading.run(&mut feed, &mut next, wants)?;
    if log.missing_files {
        reading.replay.mark(DataQuality::LogTruncated);
    }
    if log.compacted {
        reading.replay.mark(DataQuality::LogCompacted);
    }
    let about = About {
        cluster: options.cluster,
        path: &files.display(&log.path),
        hints: Hints {
            name: &log.name,
            in_progress: log.in_progress,
            modified: Timestamp::try_from(log.modified).unwrap_or(Timestamp::UNIX_EPOCH),
        },
        limits: options.limits,
    };
    reading.finish(&feed, &about)
}

/// Reads a log that is one stream, compressed or not. `name` stands for the
/// application's id where the log does not tell it, and in errors.
pub fn read_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions<'_>,
) -> Result<ReadOutcome, ReadError> {
    let mut reading = Reading::new(Replay::new(options.limits));
    let mut feed = Feed::new(options.limits);
    let stream = Opened { reader: Box::new(reader), display: name.to_owned(), closed: true };
    let mut stream = Some(stream);
    reading.run(&mut feed, &mut || Ok(stream.take()), &|_| true)?;
    let hints = Hints { name, in_progress: None, modified: Timestamp::UNIX_EPOCH };
    let about = About { cluster: options.cluster, path: name, hints, limits: options.limits };
    reading.finish(&feed, &about)
}

/// Opens a file of a log from byte `from` on. Spark takes `.inprogress` off
/// the name of a single file when the application ends, perhaps since the
/// place was listed: then nobody writes it any more.
pub(super) fn open(
    files: &dyn Files,
    path: &str,
    from: u64,
    closed: bool,
) -> Result<Opened<'static>, FilesError> {
    let opened = |reader, path, closed| Opened { reader, display: files.display(path), closed };
    match files.open(path, from) {
        Err(error) if error.kind == FilesErrorKind::NotFound => {
            let Some(finished) = path.strip_suffix(IN_PROGRESS) else { return Err(error) };
            let reader = files.open(finished, from).map_err(|_| error)?;
            Ok(opened(reader, finished, true))
        }
        Err(error) => Err(error),
        Ok(reader) => Ok(opened(reader, path, closed)),
    }
}

/// Characters shown of a file that is no log.
const BEGINNING: usize = 60;

/// What is known of a log beside its lines.
pub(super) struct About<'a> {
    pub(super) cluster: &'a str,
    /// For errors.
    pub(super) path: &'a str,
    pub(super) hints: Hints<'a>,
    pub(super) limits: &'a Limits,
}

/// A log in the middle of being read: what its lines told so far.
#[derive(Clone)]
pub(super) struct Reading<'a> {
    pub(super) replay: Replay<'a>,
    pub(super) statistics: ReadStatistics,
    events: u64,
    /// First words of the first line that is no event.
    begins: Option<String>,
    /// Once the application's name was read, whether it is wanted.
    wanted: Option<bool>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(replay: Replay<'a>) -> Self {
        Self {
            replay,
            statistics: ReadStatistics::default(),
            events: 0,
            begins: None,
            wanted: None,
        }
    }

    /// Whether it was read far enough to see that nobody wants it.
    pub(super) fn is_unwanted(&self) -> bool {
        self.wanted == Some(false)
    }

    /// Reads the files that `next` opens, each to its end; no further than to
    /// the application's name where that is not wanted.
    pub(super) fn run<'r>(
        &mut self,
        feed: &mut Feed,
        next: &mut (dyn FnMut() -> Result<Option<Opened<'r>>, ReadError> + Send),
        wants: Wants<'_>,
    ) -> Result<(), ReadError> {
        let mut current = None;
        let stop = AtomicBool::new(self.is_unwanted());
        let fill = |batch: &mut Batch| {
            // What is in it then is not looked at.
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            feed.fill(&mut current, next, batch)
        };
        pipeline::run(fill, |batch| {
            self.batch(batch, wants);
            stop.store(self.is_unwanted(), Ordering::Relaxed);
        })
    }

    /// Asks once, as soon as the name is known.
    fn judge(&mut self, wants: Wants<'_>) {
        if self.wanted.is_none() {
            self.wanted = self.replay.name().map(wants);
        }
    }

    fn batch(&mut self, batch: &Batch, wants: Wants<'_>) {
        for line in batch.lines() {
            self.judge(wants);
            if self.is_unwanted() {
                return;
            }
            self.statistics.lines += 1;
            let (seen, line, terminated) = match line {
                Line::TaskEnd { read, whole } => {
                    (self.replay.task_end_line(read, whole), whole, true)
                }
                Line::Whole(line) => (self.replay.line(line), line, true),
                Line::Unterminated(line) => (self.replay.line(line), line, false),
                Line::TooLong => {
                    self.statistics.long_lines += 1;
                    self.replay.mark(DataQuality::LongLines);
                    continue;
                }
            };
            match seen {
                Seen::Event => self.events += 1,
                Seen::Unknown => self.statistics.unknown_events += 1,
                Seen::Nothing => {}
                Seen::Bad if !terminated && line.first() == Some(&b'{') => {
                    self.replay.mark(DataQuality::LogTruncated);
                }
                Seen::Bad => {
                    self.statistics.bad_lines += 1;
                    self.replay.mark(DataQuality::BadLines);
                    self.begins.get_or_insert_with(|| {
                        String::from_utf8_lossy(line).chars().take(BEGINNING).collect()
                    });
                }
            }
        }
        self.judge(wants);
    }

    /// The run, as far as the lines told.
    pub(super) fn finish(
        mut self,
        feed: &Feed,
        about: &About<'_>,
    ) -> Result<ReadOutcome, ReadError> {
        let faults = &feed.faults;
        self.statistics.bytes_compressed = feed.compressed;
        self.statistics.bytes_decompressed = feed.decompressed;
        if self.is_unwanted() {
            return Err(ReadError::NotWanted {
                path: about.path.to_owned(),
                bytes: feed.compressed,
            });
        }
        if self.events == 0 {
            let path = about.path.to_owned();
            return Err(if faults.log_size {
                ReadError::TooLarge { path, limit: about.limits.log_size.bytes() }
            } else if faults.ratio {
                ReadError::CompressionRatio { path, limit: about.limits.compression_ratio }
            } else if let Some(begins) = self.begins {
                ReadError::NotAnEventLog { path, lines: self.statistics.lines, begins }
            } else if let Some(source) = faults.damage.clone() {
                ReadError::Damaged { path, source }
            } else {
                ReadError::NoEvents { path }
            });
        }
        if faults.damage.is_some() || faults.log_size {
            self.replay.mark(DataQuality::LogTruncated);
        }
        if faults.ratio {
            self.replay.mark(DataQuality::CompressionRatio);
        }
        let application = self.replay.finish(about.cluster, about.hints);
        Ok(ReadOutcome { application, statistics: self.statistics })
    }
}
