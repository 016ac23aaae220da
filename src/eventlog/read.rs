//! One log, from its files to the model.

use std::io::{self, Read};

use jiff::Timestamp;

use super::codec::{Counters, Failure, OpenError, UnsupportedCodec, decompress};
use super::layout::{IN_PROGRESS, LogFiles};
use super::lines::{Line, LineReader};
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
    #[error(
        "{path} is compressed with {}, which is not supported: write the log with \
         spark.eventLog.compression.codec=zstd, or decompress it first",
        codec.as_str()
    )]
    UnsupportedCodec { path: String, codec: UnsupportedCodec },
    #[error("{path} cannot be decompressed: {source}; the file is damaged")]
    Damaged { path: String, source: io::Error },
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
}

impl ReadError {
    /// One word, safe as a label.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::Io { .. } => "unreadable",
            Self::UnsupportedCodec { .. } => "unsupported_codec",
            Self::Damaged { .. } => "damaged",
            Self::NoEvents { .. } => "no_events",
            Self::NotAnEventLog { .. } => "not_an_event_log",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

/// Reads a log of a place, all its files in turn. Blocks.
///
/// What is wrong with parts of it costs those parts and is marked in the
/// application's data quality; an error means that nothing could be read.
pub fn read(
    log: &LogFiles,
    files: &dyn Files,
    options: &ReadOptions<'_>,
) -> Result<ReadOutcome, ReadError> {
    let mut reading = Reading::new(*options);
    for file in &log.files {
        let (reader, path) = open(files, &file.path)?;
        if !reading.stream(reader, &files.display(path))? {
            break;
        }
    }
    if log.missing_files {
        reading.replay.mark(DataQuality::LogTruncated);
    }
    if log.compacted {
        reading.replay.mark(DataQuality::LogCompacted);
    }
    let modified = Timestamp::try_from(log.modified).unwrap_or(Timestamp::UNIX_EPOCH);
    let hints = Hints { name: &log.name, in_progress: log.in_progress, modified };
    reading.finish(&files.display(&log.path), hints)
}

/// Reads a log that is one stream, compressed or not. `name` stands for the
/// application's id where the log does not tell it, and in errors.
pub fn read_from(
    reader: impl Read,
    name: &str,
    options: &ReadOptions<'_>,
) -> Result<ReadOutcome, ReadError> {
    let mut reading = Reading::new(*options);
    reading.stream(reader, name)?;
    let hints = Hints { name, in_progress: None, modified: Timestamp::UNIX_EPOCH };
    reading.finish(name, hints)
}

/// Opens a file of a log. Spark takes `.inprogress` off the name of a single
/// file when the application ends, perhaps since the directory was listed.
fn open<'p>(
    files: &dyn Files,
    path: &'p str,
) -> Result<(Box<dyn Read + Send>, &'p str), FilesError> {
    match files.open(path, 0) {
        Err(error) if error.kind == FilesErrorKind::NotFound => {
            let Some(finished) = path.strip_suffix(IN_PROGRESS) else { return Err(error) };
            files.open(finished, 0).map(|reader| (reader, finished)).map_err(|_| error)
        }
        opened => opened.map(|reader| (reader, path)),
    }
}

/// Characters shown of a file that is no log.
const BEGINNING: usize = 60;

/// A log in the middle of being read.
struct Reading<'a> {
    options: ReadOptions<'a>,
    replay: Replay<'a>,
    counters: Counters,
    statistics: ReadStatistics,
    events: u64,
    /// First words of the first line that is no event.
    begins: Option<String>,
    limit_reached: bool,
    damage: Option<io::Error>,
}

impl<'a> Reading<'a> {
    fn new(options: ReadOptions<'a>) -> Self {
        Self {
            options,
            replay: Replay::new(options.limits),
            counters: Counters::default(),
            statistics: ReadStatistics::default(),
            events: 0,
            begins: None,
            limit_reached: false,
            damage: None,
        }
    }

    /// Reads one file to its end. `false`: the log's limit was reached.
    fn stream(&mut self, reader: impl Read, path: &str) -> Result<bool, ReadError> {
        let limits = self.options.limits;
        let stream = decompress(reader, limits.log_size.bytes(), &self.counters);
        let stream = stream.map_err(|error| match error {
            OpenError::Unsupported(codec) => {
                ReadError::UnsupportedCodec { path: path.to_owned(), codec }
            }
            OpenError::Io(source) => ReadError::Io { path: path.to_owned(), source },
        })?;
        let longest = usize::try_from(limits.line_size.bytes()).unwrap_or(usize::MAX);
        let mut lines = LineReader::new(stream, longest);
        loop {
            let (line, terminated) = match lines.next() {
                Ok(None) => return Ok(true),
                Ok(Some(Line::Whole(line))) => (line, true),
                Ok(Some(Line::Unterminated(line))) => (line, false),
                Ok(Some(Line::TooLong)) => {
                    self.statistics.lines += 1;
                    self.statistics.long_lines += 1;
                    self.replay.mark(DataQuality::LongLines);
                    continue;
                }
                Err(error) => match Failure::from(error) {
                    Failure::Source(source) => {
                        return Err(ReadError::Io { path: path.to_owned(), source });
                    }
                    Failure::Limit => {
                        self.limit_reached = true;
                        self.replay.mark(DataQuality::LogTruncated);
                        return Ok(false);
                    }
                    Failure::Damaged(source) => {
                        self.damage.get_or_insert(source);
                        self.replay.mark(DataQuality::LogTruncated);
                        return Ok(true);
                    }
                },
            };
            self.statistics.lines += 1;
            match self.replay.line(line) {
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
    }

    fn finish(mut self, path: &str, hints: Hints<'_>) -> Result<ReadOutcome, ReadError> {
        let path = || path.to_owned();
        let statistics = &mut self.statistics;
        statistics.bytes_compressed = self.counters.compressed.get();
        statistics.bytes_decompressed = self.counters.decompressed.get();
        if self.events == 0 {
            return Err(if self.limit_reached {
                ReadError::TooLarge { path: path(), limit: self.options.limits.log_size.bytes() }
            } else if let Some(begins) = self.begins {
                ReadError::NotAnEventLog { path: path(), lines: statistics.lines, begins }
            } else if let Some(source) = self.damage {
                ReadError::Damaged { path: path(), source }
            } else {
                ReadError::NoEvents { path: path() }
            });
        }
        let application = self.replay.finish(self.options.cluster, hints);
        Ok(ReadOutcome { application, statistics: self.statistics })
    }
}
