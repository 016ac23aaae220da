//! From the files of a log to batches of lines: reads, decompresses, splits,
//! and holds the log to its limits. All of it can stop after any byte and be
//! continued later.

use std::io::{self, Read};

use super::codec::{Damage, Decompressor, Failure, UnsupportedCodec};
use super::lines::{Batch, Splitter};
use super::read::ReadError;
use crate::config::Limits;

/// What is read of a file at once.
const PIECE: usize = 128 * 1024;

/// Up to here a log may be compressed as well as it likes: a short log of one
/// line again and again is no bomb.
const RATIO_FREE: u64 = 64 << 20;

/// Bytes before the place where reading stopped, by which a file is known
/// again.
const TAIL: usize = 64;

/// Why reading of a file ended.
#[derive(Debug)]
enum End {
    /// There is nothing more to read.
    Drained,
    Damaged(Damage),
    Unsupported(UnsupportedCodec),
    /// The limit on a log's decompressed bytes was reached.
    LogSize,
    /// The limit on its compression ratio was reached.
    Ratio,
}

/// What was wrong with the files, for the run's data quality.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// The first damage.
    pub(super) damage: Option<Damage>,
    /// The log went on beyond `limits.log_size`.
    pub(super) log_size: bool,
    /// The log went beyond `limits.compression_ratio`.
    pub(super) ratio: bool,
}

impl Faults {
    /// Whether nothing more is read of the log.
    pub(super) fn stop(&self) -> bool {
        self.log_size || self.ratio
    }
}

/// A file of a log that was opened.
pub(super) struct Opened<'r> {
    pub(super) reader: Box<dyn Read + Send + 'r>,
    /// For errors.
    pub(super) display: String,
    /// Whether nobody writes it any more, so that its end is the end, and not
    /// where more will come.
    pub(super) closed: bool,
}

/// One log on its way from files to batches.
#[derive(Debug)]
pub(super) struct Feed {
    log_size: u64,
    ratio: u64,
    decompressor: Decompressor,
    splitter: Splitter,
    /// What was read and not decompressed yet is `input[at..end]`.
    input: Vec<u8>,
    at: usize,
    end: usize,
    /// A file was begun and its end was not reached.
    inside: bool,
    /// Bytes read of it.
    file_bytes: u64,
    /// The last of them.
    tail: Vec<u8>,
    pub(super) compressed: u64,
    pub(super) decompressed: u64,
    pub(super) faults: Faults,
}

impl Feed {
    pub(super) fn new(limits: &Limits) -> Self {
        let longest = usize::try_from(limits.line_size.bytes()).unwrap_or(usize::MAX);
        Self {
            log_size: limits.log_size.bytes(),
            ratio: limits.compression_ratio,
            decompressor: Decompressor::default(),
            splitter: Splitter::new(longest),
            input: Vec::new(),
            at: 0,
            end: 0,
            inside: false,
            file_bytes: 0,
            tail: Vec::new(),
            compressed: 0,
            decompressed: 0,
            faults: Faults::default(),
        }
    }

    /// Whether more may come of the file that was begun last: neither its end
    /// was reached nor damage.
    pub(super) fn is_inside(&self) -> bool {
        self.inside
    }

    /// Bytes read of the current file, and the last of them.
    pub(super) fn place(&self) -> (u64, &[u8]) {
        (self.file_bytes, &self.tail)
    }

    /// Fills a batch from the current file, opening the next one where there
    /// is none. `false`: there is no other. What was put into the batch counts
    /// even where an error is given.
    pub(super) fn fill<'r>(
        &mut self,
        current: &mut Option<Opened<'r>>,
        next: &mut (dyn FnMut() -> Result<Option<Opened<'r>>, ReadError> + Send),
        batch: &mut Batch,
    ) -> Result<bool, ReadError> {
        self.splitter.begin(batch);
        if current.is_none() {
            *current = if self.faults.stop() { None } else { next()? };
            self.inside |= current.is_some();
        }
        let Some(file) = current else {
            self.splitter.end(batch);
            return Ok(false);
        };
        let ended = self.decompress(file, batch);
        let goes_on = match &ended {
            Ok(Some(End::Drained)) => !file.closed,
            Ok(None) | Err(_) => true,
            Ok(Some(_)) => false,
        };
        if goes_on {
            self.splitter.end(batch);
        } else {
            // The line that has begun ends with its file.
            self.splitter.finish(batch);
        }
        let ended = ended.map_err(|source| ReadError::Io { path: file.display.clone(), source })?;
        match ended {
            None => return Ok(true),
            Some(End::Drained) if !file.closed => {}
            Some(End::Drained) => {
                if !self.decompressor.may_end() {
                    self.faults.damage.get_or_insert_with(Damage::cut);
                }
                self.next_file();
            }
            Some(End::Damaged(damage)) => {
                self.faults.damage.get_or_insert(damage);
                self.next_file();
            }
            Some(End::LogSize) => self.faults.log_size = true,
            Some(End::Ratio) => self.faults.ratio = true,
            Some(End::Unsupported(codec)) => {
                return Err(ReadError::UnsupportedCodec { path: file.display.clone(), codec });
            }
        }
        *current = None;
        // Nothing of it is needed between two readings.
        self.input = Vec::new();
        Ok(true)
    }

    /// What comes next is the beginning of another file.
    fn next_file(&mut self) {
        self.decompressor = Decompressor::default();
        (self.at, self.end) = (0, 0);
        self.inside = false;
        self.file_bytes = 0;
        self.tail.clear();
    }

    /// Fills the batch; `None`: it is full.
    fn decompress(&mut self, file: &mut Opened<'_>, batch: &mut Batch) -> io::Result<Option<End>> {
        let mut drained = false;
        loop {
            let Some(room) = self.splitter.room(batch) else { return Ok(None) };
            let left = self.log_size.saturating_sub(self.decompressed);
            // At the limit one byte more tells a log that ends here from one
            // that goes on.
            let size = usize::try_from(left).unwrap_or(usize::MAX).clamp(1, room.len());
            let input = &self.input[self.at..self.end];
            let last = drained && file.closed;
            let (step, result) = self.decompressor.decode(input, last, &mut room[..size]);
            self.at += step.read;
            self.compressed += step.read as u64;
            if left == 0 && step.written > 0 {
                return Ok(Some(End::LogSize));
            }
            self.decompressed += step.written as u64;
            self.splitter.filled(batch, step.written);
            match result {
                Ok(()) => {}
                Err(Failure::Unsupported(codec)) => return Ok(Some(End::Unsupported(codec))),
                Err(Failure::Damaged(damage)) => return Ok(Some(End::Damaged(damage))),
            }
            if self.decompressed > RATIO_FREE
                && self.decompressed / self.ratio.max(1) > self.compressed
            {
                return Ok(Some(End::Ratio));
            }
            if step.written == size {
                continue;
            }
            if drained {
                return Ok(Some(End::Drained));
            }
            if self.input.is_empty() {
                self.input.resize(PIECE, 0);
            }
            match file.reader.read(&mut self.input) {
                Ok(0) => {
                    (self.at, self.end) = (0, 0);
                    drained = true;
                }
                Ok(size) => {
                    (self.at, self.end) = (0, size);
                    self.note(size);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// So many bytes of the file are in the input.
    fn note(&mut self, size: usize) {
        self.file_bytes += size as u64;
        let piece = &self.input[..size];
        let new = &piece[size.saturating_sub(TAIL)..];
        self.tail.drain(..(self.tail.len() + new.len()).saturating_sub(TAIL));
        self.tail.extend_from_slice(new);
    }
}
