//! The body of an answer as a blocking reader: counted, decompressed,
//! limited, and able to say why it ended early.
//!
//! The chain is: frames from the network (counted as they came over the
//! wire) -> gzip, where the server compressed -> the limit on decompressed
//! bytes -> a buffer. Whatever reads from it (serde_json) sees only an I/O
//! error; the reason stays in [`Fault`] beside it.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;

/// Why a body could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection broke off.
    Broken(String),
    TimedOut,
    TooLarge,
    /// The gzip stream is damaged, or ends in the middle.
    Gzip(String),
}

/// The first fault of a body, shared by the layers that may meet one.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultCell(Arc<Mutex<Option<Fault>>>);

impl FaultCell {
    pub(crate) fn set(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    pub(crate) fn get(&self) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A body, decompressed and limited.
pub(crate) struct Body {
    reader: BufReader<Limited>,
}

impl Body {
    pub(crate) fn new(
        raw: impl Read + Send + 'static,
        gzip: bool,
        limit: u64,
        fault: &FaultCell,
    ) -> Self {
        let source: Box<dyn Read + Send> = if gzip {
            // The decoder reads a few bytes at a time at the header.
            Box::new(MultiGzDecoder::new(BufReader::new(raw)))
        } else {
            Box::new(raw)
        };
        let limited = Limited { source, gzip, limit, read: 0, fault: fault.clone() };
        Self { reader: BufReader::with_capacity(32 * 1024, limited) }
    }

    /// The first byte that is not blank, left in place; `None` at the end.
    pub(crate) fn first_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            if let Some(at) = buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
                let first = buffer[at];
                self.reader.consume(at);
                return Ok(Some(first));
            }
            let blank = buffer.len();
            self.reader.consume(blank);
        }
    }

    /// The beginning, for [`super::text::glance`]; whatever can be had.
    pub(crate) fn beginning(&mut self) -> Vec<u8> {
        let mut start = Vec::new();
        // An error in the middle leaves what came before it.
        let _ = (&mut self.reader).take(4 * 1024).read_to_end(&mut start);
        start
    }

    /// What comes next, left in place; empty at the end.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    /// Decompressed bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.reader.get_ref().read
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Fails, and does not merely end, at the limit: an end would look like a
/// short body.
struct Limited {
    source: Box<dyn Read + Send>,
    gzip: bool,
    limit: u64,
    read: u64,
    fault: FaultCell,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.source.read(buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                // A fault of the network was noted where it happened.
                if self.gzip {
                    self.fault.set(Fault::Gzip(error.to_string()));
                }
                return Err(error);
            }
        };
        self.read += count as u64;
        if self.read > self.limit {
            self.fault.set(Fault::TooLarge);
            return Err(io::Error::other("over the limit"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn read(raw: Vec<u8>, gzip: bool, limit: u64) -> (io::Result<Vec<u8>>, Option<Fault>) {
        let fault = FaultCell::default();
        let mut body = Body::new(io::Cursor::new(raw), gzip, limit, &fault);
        let mut bytes = Vec::new();
        (body.read_to_end(&mut bytes).map(|_| bytes), fault.get())
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = gzip(&vec![b' '; 8 << 20]);
        assert!(bomb.len() < 100_000);
        let (result, fault) = read(bomb, true, 1 << 20);
        assert!(result.is_err());
        assert_eq!(fault, Some(Fault::TooLarge));
    }

    #[test]
    fn a_body_of_exactly_the_limit_is_read() {
        let (result, fault) = read(gzip(b"[1, 2]"), true, 6);
        assert_eq!((result.expect("whole"), fault), (b"[1, 2]".to_vec(), None));
    }

    #[test]
    fn gzip_cut_in_the_middle_is_damage() {
        let mut cut = gzip(b"[1, 2, 3, 4, 5, 6, 7, 8]");
        cut.truncate(cut.len() - 6);
        let (result, fault) = read(cut, true, 1_000);
        assert!(result.is_err());
        assert!(matches!(fault, Some(Fault::Gzip(_))), "{fault:?}");
    }

    #[test]
    fn blanks_before_the_first_byte_are_passed_over() {
        let fault = FaultCell::default();
        let mut body = Body::new(&b"\r\n \t{}"[..], false, 100, &fault);
        assert_eq!(body.first_byte().expect("readable"), Some(b'{'));
        assert_eq!(body.beginning(), b"{}");
    }
}
