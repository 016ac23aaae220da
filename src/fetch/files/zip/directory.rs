//! The directory at the end of a zip: which entries there are and where.
//!
//! Read by hand and not by a library, because what a server sends must not
//! decide how much memory is used: the number of entries and the size of the
//! directory are looked at before any of it is kept. The format is PKWARE's
//! APPNOTE 6.3, sections 4.3.12 to 4.3.16 and 4.5.3.

use std::collections::BTreeMap;
use std::io;

use super::{ReadAt, read_exact_at};

/// A rolling log of so many files would hold a terabyte.
pub(super) const MOST_MEMBERS: u64 = 100_000;
/// Bytes of the directory; an entry with a long name takes some 200.
const MOST_BYTES: u64 = 32 * 1024 * 1024;

const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
/// Of the end record's comment.
const LONGEST_COMMENT: u64 = 0xffff;
const END64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
const END64_LOCATOR_BYTES: u64 = 20;
const END64: [u8; 4] = *b"PK\x06\x06";
const END64_BYTES: usize = 56;
const HEADER: [u8; 4] = *b"PK\x01\x02";
const HEADER_BYTES: usize = 46;
const ZIP64_EXTRA: u16 = 1;

/// An entry, as the directory describes it. The lengths before its data are
/// 0 where it was written as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) method: u16,
    pub(super) encrypted: bool,
    pub(super) crc: u32,
    /// As it lies in the zip.
    pub(super) stored: u64,
    /// Unpacked.
    pub(super) bytes: u64,
    /// Where its own header is.
    pub(super) header: u64,
}

#[derive(Debug, Default)]
pub(super) struct Directory {
    /// By name; that of a directory ends with `/`. Of two entries with one
    /// name the last counts, as everywhere.
    pub(super) members: BTreeMap<String, Member>,
    pub(super) unreadable: Vec<(String, String)>,
    pub(super) begins: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}; check its disk")]
    Io(io::Error),
    #[error("it is no zip")]
    NoZip,
    #[error(
        "the zip is cut: it ends before the list of its entries; a server that fails half way, or \
         a broken download, leaves such a file: get it again"
    )]
    Cut,
    #[error("the zip is damaged ({0}): get it again")]
    Damaged(&'static str),
    #[error("the zip {0}, more than any event log has: it is not read")]
    TooLarge(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Damaged("an address in it points behind its end")
        } else {
            Self::Io(error)
        }
    }
}

/// What the end record says.
struct End {
    members: u64,
    bytes: u64,
    begins: u64,
}

pub(super) fn read(source: &dyn ReadAt) -> Result<Directory, Fault> {
    let end = end(source)?;
    if end.members > MOST_MEMBERS {
        return Err(Fault::TooLarge(format!("has {} entries", end.members)));
    }
    if end.bytes > MOST_BYTES {
        return Err(Fault::TooLarge(format!("lists its entries in {} bytes", end.bytes)));
    }
    // Both are bounded now.
    let mut text = vec![0; end.bytes as usize];
    read_exact_at(source, &mut text, end.begins)?;
    let mut directory = Directory { begins: end.begins, ..Directory::default() };
    let mut rest = text.as_slice();
    for _ in 0..end.members {
        rest = directory.add(rest)?;
    }
    Ok(directory)
}

/// Finds the end record: the last thing in a zip, but for a comment.
fn end(source: &dyn ReadAt) -> Result<End, Fault> {
    let length = source.bytes()?;
    let tail_bytes = length.min(END_BYTES as u64 + LONGEST_COMMENT);
    let tail_begins = length - tail_bytes;
    let mut tail = vec![0; tail_bytes as usize];
    read_exact_at(source, &mut tail, tail_begins)?;
    let is_end = |at: usize| {
        let record = &tail[at..];
        record.starts_with(&END) && record.len() - END_BYTES >= usize::from(u16_at(record, 20))
    };
    let last = tail.len().checked_sub(END_BYTES);
    let Some(at) = last.and_then(|last| (0..=last).rev().find(|at| is_end(*at))) else {
        let mut start = [0; 4];
        let zip = read_exact_at(source, &mut start, 0).is_ok() && start == *b"PK\x03\x04";
        return Err(if zip { Fault::Cut } else { Fault::NoZip });
    };
    let record = &tail[at..];
    let end = End {
        members: u16_at(record, 10).into(),
        bytes: u32_at(record, 12).into(),
        begins: u32_at(record, 16).into(),
    };
    let at = tail_begins + at as u64;
    let full = end.members == 0xffff || end.bytes == 0xffff_ffff || end.begins == 0xffff_ffff;
    let end = if full { end64(source, at)?.unwrap_or(end) } else { end };
    match end.begins.checked_add(end.bytes) {
        Some(ends) if ends <= at => Ok(end),
        _ => Err(Fault::Damaged("its list of entries is not where it should be")),
    }
}

/// The longer end record of a zip with large numbers; `None` where there is
/// none, and 65,535 is a number like others.
fn end64(source: &dyn ReadAt, end: u64) -> Result<Option<End>, Fault> {
    let Some(at) = end.checked_sub(END64_LOCATOR_BYTES) else { return Ok(None) };
    let mut locator = [0; END64_LOCATOR_BYTES as usize];
    read_exact_at(source, &mut locator, at)?;
    if !locator.starts_with(&END64_LOCATOR) {
        return Ok(None);
    }
    let mut record = [0; END64_BYTES];
    read_exact_at(source, &mut record, u64_at(&locator, 8))?;
    if !record.starts_with(&END64) {
        return Err(Fault::Damaged("its zip64 record is not where it should be"));
    }
    Ok(Some(End {
        members: u64_at(&record, 32),
        bytes: u64_at(&record, 40),
        begins: u64_at(&record, 48),
    }))
}

impl Directory {
    /// Takes in the first entry of `text`; returns what comes behind it.
    fn add<'a>(&mut self, text: &'a [u8]) -> Result<&'a [u8], Fault> {
        if text.len() < HEADER_BYTES || !text.starts_with(&HEADER) {
            return Err(Fault::Damaged("its list of entries breaks off"));
        }
        let (header, rest) = text.split_at(HEADER_BYTES);
        let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(u16_at(header, at)));
        if rest.len() < name + extra + comment {
            return Err(Fault::Damaged("its list of entries breaks off"));
        }
        let (name, rest) = rest.split_at(name);
        let (extra, rest) = rest.split_at(extra);
        let mut member = Member {
            method: u16_at(header, 10),
            encrypted: u16_at(header, 8) & 1 != 0,
            crc: u32_at(header, 16),
            stored: u32_at(header, 20).into(),
            bytes: u32_at(header, 24).into(),
            header: u32_at(header, 42).into(),
        };
        member.enlarge(extra);
        if let Ok(name) = str::from_utf8(name) {
            self.members.insert(name.to_owned(), member);
        } else {
            let name = String::from_utf8_lossy(name).into_owned();
            self.unreadable.push((name, "its name is not UTF-8".to_owned()));
        }
        Ok(&rest[comment..])
    }
}

impl Member {
    /// Numbers that do not fit into the header stand in the extra field, in
    /// this order and only where they do not.
    fn enlarge(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let (id, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
            let Some(mut field) = extra.get(4..4 + length) else { return };
            extra = &extra[4 + length..];
            if id != ZIP64_EXTRA {
                continue;
            }
            for number in [&mut self.bytes, &mut self.stored, &mut self.header] {
                if *number == 0xffff_ffff && field.len() >= 8 {
                    *number = u64_at(field, 0);
                    field = &field[8..];
                }
            }
        }
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
