//! A file that is looked at and not changed.
//!
//! redb repairs a file that was not closed before it reads it. Here the
//! repair goes into memory instead: pages written are kept beside the file,
//! which stays as it is. So a store can be checked, and a file found to be
//! somebody else's, without touching it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

const PAGE: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Overlay {
    file: FileBackend,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    length: u64,
    /// Bytes of the file that still stand: beyond it there are zeros.
    original: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    pub(super) fn new(file: File) -> Result<Self, redb::Error> {
        let length = file.metadata()?.len();
        let written = Written { length, original: length, pages: BTreeMap::new() };
        Ok(Self { file: FileBackend::new(file)?, written: Mutex::new(written) })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page as it is now, zeros beyond the end.
    fn page(&self, written: &Written, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = written.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE as usize];
        let start = number * PAGE;
        let there = written.original.saturating_sub(start).min(PAGE) as usize;
        self.file.read(start, &mut page[..there])?;
        Ok(page)
    }
}

/// The parts of pages that `length` bytes from `offset` lie in: number of the
/// page, first byte in it, how many.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + length as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (number, first) = (at / PAGE, at % PAGE);
            let count = (PAGE - first).min(end - at);
            at += count;
            (number, first as usize, count as usize)
        })
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset.saturating_add(out.len() as u64) > written.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if written.pages.is_empty() && offset + out.len() as u64 <= written.original {
            return self.file.read(offset, out);
        }
        let mut done = 0;
        for (number, first, count) in parts(offset, out.len()) {
            let page = self.page(&written, number)?;
            out[done..done + count].copy_from_slice(&page[first..first + count]);
            done += count;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut written = self.written();
        if length < written.length {
            written.pages.split_off(&length.div_ceil(PAGE));
            if !length.is_multiple_of(PAGE) {
                let number = length / PAGE;
                let mut page = self.page(&written, number)?;
                page[(length % PAGE) as usize..].fill(0);
                written.pages.insert(number, page);
            }
            written.original = written.original.min(length);
        }
        written.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let mut done = 0;
        for (number, first, count) in parts(offset, data.len()) {
            let mut page = self.page(&written, number)?;
            page[first..first + count].copy_from_slice(&data[done..done + count]);
            written.pages.insert(number, page);
            done += count;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        // The file is open for reading only, which is enough for a shared lock.
        self.file.try_lock_shared_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_not_in_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let before: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
        file.write_all(&before).unwrap();
        let overlay = Overlay::new(file.reopen().unwrap()).unwrap();
        let mut expected = before.clone();
        for (offset, text) in [(4_090, "over a border"), (9_990, "at the end")] {
            overlay.write(offset, text.as_bytes()).unwrap();
            expected[offset as usize..offset as usize + text.len()]
                .copy_from_slice(text.as_bytes());
        }
        let read = |length: usize| {
            let mut bytes = vec![1; length];
            overlay.read(0, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(10_000).unwrap(), expected);
        assert!(read(10_001).is_err());
        // Shorter, and longer again: zeros, not what was there.
        overlay.set_len(5_000).unwrap();
        overlay.set_len(12_000).unwrap();
        expected.truncate(5_000);
        expected.resize(12_000, 0);
        assert_eq!(read(12_000).unwrap(), expected);
        assert_eq!(std::fs::read(file.path()).unwrap(), before);
    }
}
