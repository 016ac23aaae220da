//! Second step of reading a log: decompressed bytes in, lines out, in bounded
//! memory.
//!
//! Spark writes one event a line. A line may be tens of megabytes long (query
//! plans, jobs of many stages), and a file may have no line end at all (a
//! decompression bomb, a picture), so a line over the limit is skipped to its
//! end without being kept.
//!
//! Lines leave in batches, which the replay takes on another thread
//! ([`super::pipeline`]) and gives back to be filled again.

use std::ops::Range;

use memchr::memchr_iter;

use super::task_end;

/// Bytes of a batch: small enough to stay in a core's cache.
const BATCH: usize = 256 * 1024;

/// With less room than this a batch is full.
const LEAST_ROOM: usize = 32 * 1024;

/// A batch above this size goes back to the allocator once its long line is
/// done.
const KEEP: usize = 4 * 1024 * 1024;

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line that ended with `\n` (not included).
    Whole(&'a [u8]),
    /// The end of a task: what is read of it, and the whole line.
    TaskEnd { read: &'a str, whole: &'a [u8] },
    /// What stands after the last `\n`: a line cut short, or the last one of
    /// a writer that leaves the line end out.
    Unterminated(&'a [u8]),
    /// A line over the limit, skipped.
    TooLong,
}

/// The same within a batch: ranges of its bytes, and of its texts.
#[derive(Debug)]
enum Place {
    Whole(Range<usize>),
    TaskEnd { read: Range<usize>, whole: Range<usize> },
    Unterminated(Range<usize>),
    TooLong,
}

/// Decompressed bytes and the lines in them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// How many of `bytes` were filled.
    end: usize,
    /// Where the line begins whose end has not come yet.
    start: usize,
    lines: Vec<Place>,
    /// Task ends without what is not read.
    texts: String,
}

impl Batch {
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().map(|place| match place {
            Place::Whole(line) => Line::Whole(&self.bytes[line.clone()]),
            Place::TaskEnd { read, whole } => {
                Line::TaskEnd { read: &self.texts[read.clone()], whole: &self.bytes[whole.clone()] }
            }
            Place::Unterminated(line) => Line::Unterminated(&self.bytes[line.clone()]),
            Place::TooLong => Line::TooLong,
        })
    }
}

/// Splits a stream at `\n` into batches. Between batches it holds the
/// beginning of at most one line of `limit` bytes.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    limit: usize,
    /// The beginning of a line that goes on in the next batch.
    rest: Vec<u8>,
    /// Inside a line over the limit: its bytes are dropped as they come.
    skipping: bool,
}

impl Splitter {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Makes a batch ready to be filled, beginning with what is left of the
    /// one before it.
    pub(super) fn begin(&mut self, batch: &mut Batch) {
        batch.lines.clear();
        batch.texts.clear();
        if batch.bytes.len() > KEEP {
            batch.bytes = Vec::new();
        }
        if batch.texts.capacity() > KEEP {
            batch.texts = String::new();
        }
        batch.start = 0;
        batch.end = self.rest.len();
        let wanted = BATCH.max(self.rest.len() + LEAST_ROOM);
        if batch.bytes.len() < wanted {
            batch.bytes.resize(wanted, 0);
        }
        batch.bytes[..self.rest.len()].copy_from_slice(&self.rest);
        self.rest.clear();
        if self.rest.capacity() > KEEP {
            self.rest = Vec::new();
        }
    }

    /// Where the next bytes go; `None`: the batch is full. One that is full of
    /// a single line grows.
    pub(super) fn room<'b>(&self, batch: &'b mut Batch) -> Option<&'b mut [u8]> {
        if batch.bytes.len() - batch.end < LEAST_ROOM {
            if !batch.lines.is_empty() {
                return None;
            }
            // Doubling keeps the copies of a long line linear; the limit
            // keeps it from taking twice what it may.
            let most = self.limit.saturating_add(BATCH).max(batch.end + LEAST_ROOM);
            let wanted = (batch.bytes.len() * 2).min(most).max(batch.end + LEAST_ROOM);
            batch.bytes.resize(wanted, 0);
        }
        Some(&mut batch.bytes[batch.end..])
    }

    /// So many bytes were put there: notes the lines that ended in them.
    pub(super) fn filled(&mut self, batch: &mut Batch, size: usize) {
        let from = batch.end;
        batch.end += size;
        for at in memchr_iter(b'\n', &batch.bytes[from..batch.end]) {
            let line = batch.start..from + at;
            batch.start = line.end + 1;
            if std::mem::take(&mut self.skipping) || line.len() > self.limit {
                batch.lines.push(Place::TooLong);
                continue;
            }
            let short = task_end::without_unread(&batch.bytes[line.clone()], &mut batch.texts);
            batch.lines.push(match short {
                Some(read) => Place::TaskEnd { read, whole: line },
                None => Place::Whole(line),
            });
        }
        if self.skipping || batch.end - batch.start > self.limit {
            self.skipping = true;
            batch.end = batch.start;
        }
    }

    /// Keeps the line that has begun for the next batch.
    pub(super) fn end(&mut self, batch: &Batch) {
        self.rest.clear();
        self.rest.extend_from_slice(&batch.bytes[batch.start..batch.end]);
    }

    /// The stream is over: the line that has begun is a line, too.
    pub(super) fn finish(&mut self, batch: &mut Batch) {
        if std::mem::take(&mut self.skipping) {
            batch.lines.push(Place::TooLong);
        } else if batch.start < batch.end {
            batch.lines.push(Place::Unterminated(batch.start..batch.end));
        }
        batch.start = batch.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Owned lines, `None` for one that was too long; and whether the last
    /// one had its end. `sizes`: how many bytes come at once, in turn; after
    /// each the batch may be changed.
    fn split(
        mut bytes: &[u8],
        sizes: &[(usize, bool)],
        limit: usize,
    ) -> (Vec<Option<Vec<u8>>>, bool) {
        let mut splitter = Splitter::new(limit);
        let mut batch = Batch::default();
        let (mut lines, mut terminated) = (Vec::new(), true);
        let mut take = |batch: &Batch| {
            for line in batch.lines() {
                lines.push(match line {
                    Line::Whole(line) | Line::TaskEnd { whole: line, .. } => Some(line.to_vec()),
                    Line::Unterminated(line) => {
                        terminated = false;
                        Some(line.to_vec())
                    }
                    Line::TooLong => None,
                });
            }
        };
        splitter.begin(&mut batch);
        let mut sizes = sizes.iter().cycle();
        while !bytes.is_empty() {
            let (size, change) = *sizes.next().expect("endless");
            let room = splitter.room(&mut batch);
            if change || room.is_none() {
                splitter.end(&batch);
                take(&batch);
                splitter.begin(&mut batch);
            }
            let room = splitter.room(&mut batch).expect("an empty batch has room");
            let size = size.min(bytes.len()).min(room.len());
            room[..size].copy_from_slice(&bytes[..size]);
            bytes = &bytes[size..];
            splitter.filled(&mut batch, size);
        }
        splitter.finish(&mut batch);
        take(&batch);
        (lines, terminated)
    }

    fn naive(bytes: &[u8], limit: usize) -> (Vec<Option<Vec<u8>>>, bool) {
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let last = lines.pop().unwrap_or_default();
        if !last.is_empty() {
            lines.push(last);
        }
        let kept = |line: &&[u8]| (line.len() <= limit).then(|| line.to_vec());
        (lines.iter().map(kept).collect(), last.is_empty() || last.len() > limit)
    }

    proptest! {
        #[test]
        fn equals_the_naive_split(
            bytes in proptest::collection::vec(prop_oneof![3 => Just(b'a'), 1 => Just(b'\n'), 1 => any::<u8>()], 0..400),
            sizes in proptest::collection::vec((1_usize..50, any::<bool>()), 1..8),
            limit in 0_usize..40,
        ) {
            prop_assert_eq!(split(&bytes, &sizes, limit), naive(&bytes, limit));
        }
    }

    #[test]
    fn lines_longer_than_a_batch() {
        let long = [vec![b'x'; 3 * BATCH], b"\nshort\n".to_vec(), vec![b'y'; BATCH]].concat();
        for sizes in [[(7_000, false)], [(BATCH, false)], [(50_000, true)]] {
            for limit in [BATCH, 3 * BATCH - 1, 3 * BATCH, 10 * BATCH] {
                assert!(split(&long, &sizes, limit) == naive(&long, limit), "{limit} {sizes:?}");
            }
        }
    }

    #[test]
    fn memory_stays_bounded_by_the_limit() {
        let limit = 1024 * 1024;
        let mut splitter = Splitter::new(limit);
        let mut batch = Batch::default();
        splitter.begin(&mut batch);
        for _ in 0..1_000 {
            let size = splitter.room(&mut batch).map_or(0, |room| {
                room.fill(b'x');
                room.len()
            });
            splitter.filled(&mut batch, size);
            assert!(batch.bytes.len() <= limit + 2 * BATCH, "{}", batch.bytes.len());
        }
        let room = splitter.room(&mut batch).expect("room");
        room[..7].copy_from_slice(b"\nshort\n");
        splitter.filled(&mut batch, 7);
        let lines: Vec<Line<'_>> = batch.lines().collect();
        assert_eq!(lines, [Line::TooLong, Line::Whole(b"short")]);
    }
}
