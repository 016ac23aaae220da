//! Spark's `lz4`: the block stream of lz4-java's `LZ4BlockOutputStream`, which
//! is not the frame format of the `lz4` command.
//!
//! A block has a header of 21 bytes: `LZ4Block`, a token (high half: 1 stored,
//! 2 compressed; low half: log2 of the block size - 10), and three numbers,
//! little endian: compressed length, original length, checksum of the original
//! bytes. Both lengths 0 mark the end of a stream; another may follow it.

use twox_hash::XxHash32;

use super::Damage;
use super::block::{Format, array};

const HEADER: usize = 21;
const MAGIC: &[u8] = b"LZ4Block";
const STORED: u8 = 0x10;
const COMPRESSED: u8 = 0x20;

/// lz4-java takes its checksums with this seed and drops the highest four
/// bits.
const SEED: u32 = 0x9747_b28c;
const MASK: u32 = 0x0fff_ffff;

#[derive(Default)]
pub(super) struct Lz4Block {
    /// The header that was read; `None`: the next unit is one.
    block: Option<Header>,
}

struct Header {
    stored: bool,
    compressed: usize,
    original: usize,
    checksum: u32,
}

impl Header {
    /// `None` for an end mark.
    fn parse(unit: &[u8]) -> Result<Option<Self>, Damage> {
        if !unit.starts_with(MAGIC) {
            return Err(Damage::new("an lz4 block does not begin with LZ4Block"));
        }
        let [token] = array(unit, 8)?;
        let length =
            |at| array(unit, at).map(|bytes| usize::try_from(i32::from_le_bytes(bytes)).ok());
        let (compressed, original) = (length(9)?, length(13)?);
        let checksum = u32::from_le_bytes(array(unit, 17)?);
        let wrong = || Damage::new("the header of an lz4 block contradicts itself");
        let (Some(compressed), Some(original)) = (compressed, original) else {
            return Err(wrong());
        };
        if compressed == 0 && original == 0 && checksum == 0 {
            return Ok(None);
        }
        let stored = match token & 0xf0 {
            STORED => true,
            COMPRESSED => false,
            _ => return Err(Damage::new("an lz4 block says that it is neither stored nor lz4")),
        };
        // At most 32 MiB, as the low half of the token is at most 15.
        let block_size = 1_usize << (10 + (token & 0x0f));
        let longest = original + original / 255 + 16;
        if original == 0
            || original > block_size
            || compressed == 0
            || compressed > longest
            || (stored && compressed != original)
        {
            return Err(wrong());
        }
        Ok(Some(Self { stored, compressed, original, checksum }))
    }
}

impl Format for Lz4Block {
    fn next_unit(&self) -> usize {
        self.block.as_ref().map_or(HEADER, |block| block.compressed)
    }

    fn take(&mut self, unit: &[u8], output: &mut Vec<u8>) -> Result<(), Damage> {
        let Some(block) = self.block.take() else {
            self.block = Header::parse(unit)?;
            return Ok(());
        };
        if block.stored {
            output.extend_from_slice(unit);
        } else {
            output.resize(block.original, 0);
            let size = lz4_flex::block::decompress_into(unit, output)
                .map_err(|error| Damage::new(format!("an lz4 block: {error}")))?;
            if size != block.original {
                return Err(Damage::new("an lz4 block is shorter than its header says"));
            }
        }
        if XxHash32::oneshot(SEED, output) & MASK != block.checksum {
            return Err(Damage::new("the checksum of an lz4 block does not match"));
        }
        Ok(())
    }

    fn may_end(&self) -> bool {
        // A program that was killed writes no end mark.
        self.block.is_none()
    }
}
