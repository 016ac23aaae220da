//! Spark's `snappy`: the stream of xerial's `SnappyOutputStream`, which is not
//! snappy's own framing format.
//!
//! A header of 16 bytes (`82 SNAPPY 00`, version, lowest compatible version),
//! then blocks: length of the compressed bytes (big endian), and the bytes.
//! Where streams were put one after the other a header stands between blocks.
//! There are no checksums.

use super::Damage;
use super::block::{Format, LARGEST_BLOCK, array};

const MAGIC: &[u8] = b"\x82SNAPPY\0";
/// Its versions, behind the magic.
const VERSIONS: usize = 8;
/// What a header has in place of a block's length; as a length it would be
/// negative.
const FIRST_OF_MAGIC: &[u8] = b"\x82SNA";

/// The most that snappy makes of a byte: a copy of 64 bytes takes 3.
const HIGHEST_RATIO: usize = 22;

#[derive(Default)]
pub(super) struct Snappy {
    next: Next,
    decoder: snap::raw::Decoder,
}

#[derive(Default)]
enum Next {
    #[default]
    Length,
    /// A header after its first four bytes.
    RestOfHeader,
    Block(usize),
}

impl Format for Snappy {
    fn next_unit(&self) -> usize {
        match self.next {
            Next::Length => 4,
            Next::RestOfHeader => MAGIC.len() - FIRST_OF_MAGIC.len() + VERSIONS,
            Next::Block(length) => length,
        }
    }

    fn take(&mut self, unit: &[u8], output: &mut Vec<u8>) -> Result<(), Damage> {
        self.next = match self.next {
            Next::Length if unit == FIRST_OF_MAGIC => Next::RestOfHeader,
            Next::Length => match usize::try_from(i32::from_be_bytes(array(unit, 0)?)) {
                Ok(0) => Next::Length,
                Ok(length) if length <= LARGEST_BLOCK => Next::Block(length),
                _ => return Err(Damage::new("a snappy block has an impossible length")),
            },
            Next::RestOfHeader => {
                if !unit.starts_with(&MAGIC[FIRST_OF_MAGIC.len()..]) {
                    return Err(Damage::new("a snappy header does not say SNAPPY"));
                }
                Next::Length
            }
            Next::Block(_) => {
                decompress(&mut self.decoder, unit, output)?;
                Next::Length
            }
        };
        Ok(())
    }

    fn may_end(&self) -> bool {
        matches!(self.next, Next::Length)
    }
}

/// Decompresses one raw block. What it says of its length is believed only as
/// far as its bytes can make it true.
pub(super) fn decompress(
    decoder: &mut snap::raw::Decoder,
    block: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), Damage> {
    let failed = |error: snap::Error| Damage::new(format!("a snappy block: {error}"));
    let length = snap::raw::decompress_len(block).map_err(failed)?;
    if length > LARGEST_BLOCK || length > block.len().saturating_mul(HIGHEST_RATIO) {
        return Err(Damage::new("a snappy block has an impossible length"));
    }
    output.resize(length, 0);
    let size = decoder.decompress(block, output).map_err(failed)?;
    output.truncate(size);
    Ok(())
}
