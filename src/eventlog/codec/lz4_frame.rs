//! The frame format of the `lz4` command: nothing of Spark's, but what a
//! person makes of a log.
//!
//! Frames follow each other: magic, descriptor, blocks (length, little endian,
//! highest bit: stored; bytes; perhaps a checksum), a length of 0, perhaps a
//! checksum of it all. Blocks may refer to the 64 KiB before them.

use std::hash::Hasher;

use twox_hash::XxHash32;

use super::Damage;
use super::block::{Format, array};

const MAGIC: u32 = 0x184d_2204;
/// Sixteen magics of frames to skip begin with this one.
const SKIPPABLE: u32 = 0x184d_2a50;

/// What is skipped is skipped in pieces of this size.
const PIECE: usize = 64 * 1024;
/// How far back a block may refer.
const WINDOW: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Lz4Frame {
    next: Next,
    frame: Frame,
    /// The end of what was decoded before.
    window: Vec<u8>,
}

#[derive(Default)]
enum Next {
    #[default]
    Magic,
    SkippableLength,
    Skip(usize),
    /// The two bytes that say which others follow.
    Flags,
    Descriptor {
        flags: [u8; 2],
    },
    Length,
    Block {
        length: usize,
        stored: bool,
    },
    Checksum,
}

/// What a descriptor says.
#[derive(Default)]
struct Frame {
    block_size: usize,
    independent: bool,
    block_checksums: bool,
    content: Option<XxHash32>,
}

impl Frame {
    fn parse([flags, sizes]: [u8; 2]) -> Result<Self, Damage> {
        if flags >> 6 != 1 || flags & 0x02 != 0 || sizes & 0x8f != 0 {
            return Err(Damage::new("an lz4 frame is of a version that is not known"));
        }
        if flags & 0x01 != 0 {
            return Err(Damage::new("an lz4 frame needs a dictionary"));
        }
        let block_size = match sizes >> 4 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            _ => return Err(Damage::new("an lz4 frame has an impossible block size")),
        };
        Ok(Self {
            block_size,
            independent: flags & 0x20 != 0,
            block_checksums: flags & 0x10 != 0,
            content: (flags & 0x04 != 0).then(|| XxHash32::with_seed(0)),
        })
    }
}

/// Bytes of the descriptor after its first two: perhaps the length of the
/// content, and a checksum.
fn rest_of_descriptor([flags, _]: [u8; 2]) -> usize {
    if flags & 0x08 == 0 { 1 } else { 9 }
}

impl Lz4Frame {
    fn block(&mut self, unit: &[u8], stored: bool, output: &mut Vec<u8>) -> Result<(), Damage> {
        let frame = &mut self.frame;
        let data = if frame.block_checksums {
            let (data, checksum) = unit
                .split_last_chunk::<4>()
                .ok_or_else(|| Damage::new("an lz4 block is too short"))?;
            if XxHash32::oneshot(0, data) != u32::from_le_bytes(*checksum) {
                return Err(Damage::new("the checksum of an lz4 block does not match"));
            }
            data
        } else {
            unit
        };
        if stored {
            output.extend_from_slice(data);
        } else {
            output.resize(frame.block_size, 0);
            let size = lz4_flex::block::decompress_into_with_dict(data, output, &self.window)
                .map_err(|error| Damage::new(format!("an lz4 block: {error}")))?;
            output.truncate(size);
        }
        if let Some(content) = &mut frame.content {
            content.write(output);
        }
        if !frame.independent {
            let from_output = &output[output.len().saturating_sub(WINDOW)..];
            let kept = WINDOW - from_output.len();
            self.window.drain(..self.window.len().saturating_sub(kept));
            self.window.extend_from_slice(from_output);
        }
        Ok(())
    }
}

impl Format for Lz4Frame {
    fn next_unit(&self) -> usize {
        match self.next {
            Next::Magic | Next::SkippableLength | Next::Length | Next::Checksum => 4,
            Next::Skip(left) => left.min(PIECE),
            Next::Flags => 2,
            Next::Descriptor { flags } => rest_of_descriptor(flags),
            Next::Block { length, .. } => length + if self.frame.block_checksums { 4 } else { 0 },
        }
    }

    fn take(&mut self, unit: &[u8], output: &mut Vec<u8>) -> Result<(), Damage> {
        let number = || array(unit, 0).map(u32::from_le_bytes);
        self.next = match self.next {
            Next::Magic => match number()? {
                MAGIC => Next::Flags,
                magic if magic & !0x0f == SKIPPABLE => Next::SkippableLength,
                _ => return Err(Damage::new("what follows an lz4 frame is none")),
            },
            Next::SkippableLength => skip(number()? as usize),
            Next::Skip(left) => skip(left - unit.len()),
            Next::Flags => {
                let flags = array(unit, 0)?;
                self.frame = Frame::parse(flags)?;
                self.window.clear();
                Next::Descriptor { flags }
            }
            Next::Descriptor { flags } => {
                let (checksum, rest) =
                    unit.split_last().ok_or_else(|| Damage::new("a header is too short"))?;
                let descriptor = [&flags, rest].concat();
                if (XxHash32::oneshot(0, &descriptor) >> 8) as u8 != *checksum {
                    return Err(Damage::new("the checksum of an lz4 header does not match"));
                }
                Next::Length
            }
            Next::Length => {
                let length = number()?;
                let stored = length >> 31 == 1;
                match (length & 0x7fff_ffff) as usize {
                    0 if self.frame.content.is_some() => Next::Checksum,
                    0 => Next::Magic,
                    length if length <= self.frame.block_size => Next::Block { length, stored },
                    _ => return Err(Damage::new("an lz4 block has an impossible length")),
                }
            }
            Next::Block { stored, .. } => {
                self.block(unit, stored, output)?;
                Next::Length
            }
            Next::Checksum => {
                let found = self.frame.content.take().map(|content| content.finish_32());
                if found != Some(number()?) {
                    return Err(Damage::new("the checksum of an lz4 frame does not match"));
                }
                Next::Magic
            }
        };
        Ok(())
    }

    fn may_end(&self) -> bool {
        matches!(self.next, Next::Magic)
    }
}

fn skip(left: usize) -> Next {
    if left == 0 { Next::Magic } else { Next::Skip(left) }
}
