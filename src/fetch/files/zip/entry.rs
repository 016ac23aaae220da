//! One entry of a zip, unpacked as it is read.

use std::io::{self, Read};
use std::sync::Arc;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::directory::{Member, u16_at};
use super::{ReadAt, read_exact_at};

const HEADER: [u8; 4] = *b"PK\x03\x04";
const HEADER_BYTES: u64 = 30;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Deflate makes at most 1,032 bytes of one; an entry that claims more is a
/// lie.
const MOST_OF_ONE_BYTE: u64 = 1_032;
const BUFFER: usize = 64 * 1024;

/// Gives the entry's bytes, and an error instead of the end where they are
/// not those that were put in.
pub(super) struct EntryReader {
    unpacked: Box<dyn Read + Send>,
    crc: Crc,
    member: Member,
    read: u64,
}

impl EntryReader {
    /// Entries must lie before `entries_end`. Passes over the first `from`
    /// bytes.
    pub(super) fn open(
        source: Arc<dyn ReadAt>,
        member: &Member,
        entries_end: u64,
        from: u64,
    ) -> io::Result<Self> {
        if member.encrypted {
            return Err(io::Error::other("the entry is encrypted; unpack the zip first"));
        }
        let most = member.stored.saturating_mul(MOST_OF_ONE_BYTE);
        if member.bytes > most || (member.method == STORED && member.bytes != member.stored) {
            return Err(damaged("the lengths of the entry contradict each other"));
        }
        let mut header = [0; HEADER_BYTES as usize];
        read_exact_at(&*source, &mut header, member.header)?;
        if !header.starts_with(&HEADER) {
            return Err(damaged("the entry is not where it should be"));
        }
        // The extra field's length here is not the one of the directory.
        let lengths = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        let begins = member.header.saturating_add(HEADER_BYTES + lengths);
        let ends = begins.saturating_add(member.stored);
        if ends > entries_end {
            return Err(damaged("the entry reaches into the list of entries"));
        }
        let packed = Span { source, at: begins, ends };
        let unpacked: Box<dyn Read + Send> = match member.method {
            STORED => Box::new(packed),
            DEFLATED => Box::new(DeflateDecoder::new_with_buf(packed, vec![0; BUFFER])),
            method => {
                return Err(io::Error::other(format!(
                    "the entry is packed by method {method}, and History Servers deflate (8); \
                     unpack the zip first"
                )));
            }
        };
        let mut entry = Self { unpacked, crc: Crc::new(), member: *member, read: 0 };
        io::copy(&mut (&mut entry).take(from), &mut io::sink())?;
        Ok(entry)
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the zip is damaged: {what}"))
}

impl Read for EntryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.unpacked.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => return Err(damaged(&format!("an entry cannot be unpacked, {error}"))),
            Ok(count) => count,
        };
        self.read += count as u64;
        self.crc.update(&buffer[..count]);
        if self.read > self.member.bytes {
            return Err(damaged("an entry is longer than the zip says"));
        }
        if count == 0 && !buffer.is_empty() {
            if self.read < self.member.bytes {
                return Err(damaged("an entry ends early"));
            }
            if self.crc.sum() != self.member.crc {
                return Err(damaged("the checksum of an entry is wrong"));
            }
        }
        Ok(count)
    }
}

/// A part of the zip, from one byte to another.
struct Span {
    source: Arc<dyn ReadAt>,
    at: u64,
    ends: u64,
}

impl Read for Span {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.ends - self.at).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let count = self.source.read_at(&mut buffer[..wanted], self.at)?;
        if count == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += count as u64;
        Ok(count)
    }
}
