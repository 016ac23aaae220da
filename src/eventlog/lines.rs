//! Second step of reading a log: decompressed bytes in, lines out, in bounded
//! memory.
//!
//! Spark writes one event a line. A line may be tens of megabytes long (query
//! plans, jobs of many stages), and a file may have no line end at all (a
//! decompression bomb, a picture), so a line over the limit is skipped to its
//! end without being kept.

use std::io::{self, Read};

use memchr::memchr;

/// What is read at once.
const CHUNK: usize = 128 * 1024;

/// A buffer above this size goes back to the allocator once its long line is
/// done.
const KEEP: usize = 4 * 1024 * 1024;

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line that ended with `\n` (not included).
    Whole(&'a [u8]),
    /// What stands after the last `\n`: a line cut short, or the last one of
    /// a writer that leaves the line end out.
    Unterminated(&'a [u8]),
    /// A line over the limit, skipped.
    TooLong,
}

/// Splits a stream at `\n`. Holds at most one line of `limit` bytes and one
/// chunk.
pub(super) struct LineReader<R> {
    reader: R,
    limit: usize,
    buffer: Vec<u8>,
    /// The bytes not yet handed out are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Up to here there is no line end, so nobody looks twice.
    scanned: usize,
    /// Inside a line over the limit: its bytes are dropped as they come.
    skipping: bool,
    ended: bool,
    failure: Option<io::Error>,
}

impl<R: Read> LineReader<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            skipping: false,
            ended: false,
            failure: None,
        }
    }

    /// The next line; `None` at the end. A read that fails ends the stream:
    /// first what came before it is handed out, then the error, once.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let line_end = self.scanned + at;
                let line = self.start..line_end;
                self.start = line_end + 1;
                self.scanned = self.start;
                let skipped = std::mem::take(&mut self.skipping);
                return Ok(Some(if skipped || line.len() > self.limit {
                    Line::TooLong
                } else {
                    Line::Whole(&self.buffer[line])
                }));
            }
            self.scanned = self.end;
            if self.skipping || self.end - self.start > self.limit {
                self.skipping = true;
                self.start = self.end;
            }
            if self.ended {
                let rest = self.start..self.end;
                self.start = self.end;
                if std::mem::take(&mut self.skipping) {
                    return Ok(Some(Line::TooLong));
                }
                if !rest.is_empty() {
                    return Ok(Some(Line::Unterminated(&self.buffer[rest])));
                }
                return self.failure.take().map_or(Ok(None), Err);
            }
            self.fill();
        }
    }

    /// Moves what is left to the front of the buffer and reads once.
    fn fill(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
            if self.buffer.len() > KEEP && self.end < CHUNK {
                self.buffer.truncate(2 * CHUNK);
                self.buffer.shrink_to_fit();
            }
        }
        if self.buffer.len() - self.end < CHUNK {
            // Doubling keeps the copies of a long line linear; the limit
            // keeps it from taking twice what it may.
            let wanted =
                (self.buffer.len() * 2).clamp(2 * CHUNK, self.limit.max(CHUNK) + 2 * CHUNK);
            self.buffer.resize(wanted.max(self.end + CHUNK), 0);
        }
        match self.reader.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(read) => self.end += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.ended = true;
                self.failure = Some(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out its bytes in pieces of the given sizes, in turn.
    struct Pieces<'a> {
        bytes: &'a [u8],
        sizes: Vec<usize>,
        turn: usize,
        fail_at_end: bool,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.bytes.is_empty() && self.fail_at_end {
                return Err(io::Error::other("cut"));
            }
            let size = self.sizes[self.turn % self.sizes.len()];
            self.turn += 1;
            let size = size.min(buffer.len()).min(self.bytes.len());
            buffer[..size].copy_from_slice(&self.bytes[..size]);
            self.bytes = &self.bytes[size..];
            Ok(size)
        }
    }

    /// Owned lines, `None` for one that was too long; and whether the last
    /// one had its end.
    fn split(bytes: &[u8], sizes: Vec<usize>, limit: usize) -> (Vec<Option<Vec<u8>>>, bool) {
        let mut reader =
            LineReader::new(Pieces { bytes, sizes, turn: 0, fail_at_end: false }, limit);
        let (mut lines, mut terminated) = (Vec::new(), true);
        while let Some(line) = reader.next().expect("no failure") {
            lines.push(match line {
                Line::Whole(line) => Some(line.to_vec()),
                Line::Unterminated(line) => {
                    terminated = false;
                    Some(line.to_vec())
                }
                Line::TooLong => None,
            });
        }
        (lines, terminated)
    }

    proptest! {
        #[test]
        fn equals_the_naive_split(
            bytes in proptest::collection::vec(prop_oneof![3 => Just(b'a'), 1 => Just(b'\n'), 1 => any::<u8>()], 0..400),
            sizes in proptest::collection::vec(1_usize..50, 1..8),
            limit in 0_usize..40,
        ) {
            let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let last = expected.pop().unwrap_or_default();
            if !last.is_empty() {
                expected.push(last);
            }
            let expected: Vec<Option<Vec<u8>>> = expected
                .into_iter()
                .map(|line| (line.len() <= limit).then(|| line.to_vec()))
                .collect();
            let (lines, terminated) = split(&bytes, sizes, limit);
            prop_assert_eq!(lines, expected);
            prop_assert_eq!(terminated, last.is_empty() || last.len() > limit);
        }
    }

    #[test]
    fn a_failed_read_comes_after_what_was_read() {
        let pieces = Pieces { bytes: b"a\nb", sizes: vec![2], turn: 0, fail_at_end: true };
        let mut reader = LineReader::new(pieces, 10);
        assert_eq!(reader.next().expect("a line"), Some(Line::Whole(b"a")));
        assert_eq!(reader.next().expect("a piece"), Some(Line::Unterminated(b"b")));
        assert!(reader.next().is_err());
        assert_eq!(reader.next().expect("said once"), None);
    }

    #[test]
    fn memory_stays_bounded_by_the_limit() {
        let long = io::repeat(b'x').take(64 * 1024 * 1024);
        let mut reader = LineReader::new(long.chain(&b"\nshort\n"[..]), 1024 * 1024);
        assert_eq!(reader.next().expect("skipped"), Some(Line::TooLong));
        assert!(reader.buffer.len() <= 1024 * 1024 + 3 * CHUNK, "{}", reader.buffer.len());
        assert_eq!(reader.next().expect("a line"), Some(Line::Whole(b"short")));
    }
}
