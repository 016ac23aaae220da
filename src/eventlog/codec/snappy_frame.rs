//! Snappy's own framing format: nothing of Spark's, but what a person makes
//! of a log.
//!
//! Chunks of a type, a length (little endian, 24 bits) and bytes. Type ff names
//! the format; 00 is compressed and 01 stored, each behind a masked CRC-32C of
//! the original bytes; 80 to fe are skipped.

use super::Damage;
use super::block::{Format, array};
use super::snappy::decompress;

const NAME: &[u8] = b"sNaPpY";
/// The most bytes of a chunk before compression.
const LARGEST_CHUNK: usize = 64 * 1024;
/// The most that compression adds to them, and the checksum.
const OVERHEAD: usize = 32 + LARGEST_CHUNK / 6 + 4;
/// What is skipped is skipped in pieces of this size.
const PIECE: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct SnappyFrame {
    next: Next,
    decoder: snap::raw::Decoder,
}

#[derive(Default)]
enum Next {
    #[default]
    Header,
    Name,
    Skip(usize),
    Data {
        length: usize,
        stored: bool,
    },
}

impl Format for SnappyFrame {
    fn next_unit(&self) -> usize {
        match self.next {
            Next::Header => 4,
            Next::Name => NAME.len(),
            Next::Skip(left) => left.min(PIECE),
            Next::Data { length, .. } => length,
        }
    }

    fn take(&mut self, unit: &[u8], output: &mut Vec<u8>) -> Result<(), Damage> {
        self.next = match self.next {
            Next::Header => {
                let [kind, low, middle, high] = array(unit, 0)?;
                let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
                match kind {
                    0xff if length == NAME.len() => Next::Name,
                    0 | 1 if (4..=LARGEST_CHUNK + OVERHEAD).contains(&length) => {
                        Next::Data { length, stored: kind == 1 }
                    }
                    0x80..=0xfe => skip(length),
                    _ => return Err(Damage::new("a snappy chunk is of no known kind or length")),
                }
            }
            Next::Name if unit == NAME => Next::Header,
            Next::Name => return Err(Damage::new("a snappy header does not say sNaPpY")),
            Next::Skip(left) => skip(left - unit.len()),
            Next::Data { stored, .. } => {
                let checksum = u32::from_le_bytes(array(unit, 0)?);
                if stored {
                    output.extend_from_slice(&unit[4..]);
                } else {
                    decompress(&mut self.decoder, &unit[4..], output)?;
                }
                if output.len() > LARGEST_CHUNK {
                    return Err(Damage::new("a snappy chunk has an impossible length"));
                }
                if masked_crc32c(output) != checksum {
                    return Err(Damage::new("the checksum of a snappy chunk does not match"));
                }
                Next::Header
            }
        };
        Ok(())
    }

    fn may_end(&self) -> bool {
        matches!(self.next, Next::Header)
    }
}

fn skip(left: usize) -> Next {
    if left == 0 { Next::Header } else { Next::Skip(left) }
}

/// CRC-32C (Castagnoli), turned and shifted as the format asks.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    let sum =
        !bytes.iter().fold(!0_u32, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8));
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = at as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};
