//! Spark's `lzf`: the chunks of ning's compress-lzf.
//!
//! A chunk is `ZV`, a type, and lengths (big endian, 16 bits). Type 0 is
//! stored: length, bytes. Type 1 is compressed: compressed length, original
//! length, bytes. There are no checksums.

use super::Damage;
use super::block::{Format, array};

/// `ZV`, the type, and the first length.
const HEADER: usize = 5;

#[derive(Default)]
pub(super) struct Lzf {
    next: Next,
}

#[derive(Default)]
enum Next {
    #[default]
    Header,
    OriginalLength {
        compressed: usize,
    },
    Stored(usize),
    Compressed {
        compressed: usize,
        original: usize,
    },
}

impl Format for Lzf {
    fn next_unit(&self) -> usize {
        match self.next {
            Next::Header => HEADER,
            Next::OriginalLength { .. } => 2,
            Next::Stored(length) => length,
            Next::Compressed { compressed, .. } => compressed,
        }
    }

    fn take(&mut self, unit: &[u8], output: &mut Vec<u8>) -> Result<(), Damage> {
        let length = |at| array(unit, at).map(|bytes| usize::from(u16::from_be_bytes(bytes)));
        self.next = match self.next {
            Next::Header => match (unit, length(3)?) {
                ([b'Z', b'V', 0, ..], 0) => Next::Header,
                ([b'Z', b'V', 0, ..], stored) => Next::Stored(stored),
                ([b'Z', b'V', 1, ..], compressed @ 1..) => Next::OriginalLength { compressed },
                _ => return Err(Damage::new("an lzf chunk does not begin as one")),
            },
            Next::OriginalLength { compressed } => {
                Next::Compressed { compressed, original: length(0)? }
            }
            Next::Stored(_) => {
                output.extend_from_slice(unit);
                Next::Header
            }
            Next::Compressed { original, .. } => {
                decompress(unit, original, output)?;
                Next::Header
            }
        };
        Ok(())
    }

    fn may_end(&self) -> bool {
        matches!(self.next, Next::Header)
    }
}

/// LZF as Marc Lehmann's library defined it. A control byte below 32 is
/// followed by that many literal bytes + 1. Any other is a copy from what is
/// there already: its upper three bits are the length - 2 (7: another byte is
/// added to it), its lower five bits and the next byte the distance - 1.
fn decompress(input: &[u8], original: usize, output: &mut Vec<u8>) -> Result<(), Damage> {
    let wrong = || Damage::new("an lzf chunk does not decompress to what it says");
    output.reserve_exact(original);
    let mut rest = input;
    let byte = |rest: &mut &[u8]| {
        let (first, others) = rest.split_first().ok_or_else(wrong)?;
        *rest = others;
        Ok(usize::from(*first))
    };
    while !rest.is_empty() {
        let control = byte(&mut rest)?;
        if control < 32 {
            let (literals, others) = rest.split_at_checked(control + 1).ok_or_else(wrong)?;
            rest = others;
            if output.len() + literals.len() > original {
                return Err(wrong());
            }
            output.extend_from_slice(literals);
            continue;
        }
        let mut length = (control >> 5) + 2;
        if length == 9 {
            length += byte(&mut rest)?;
        }
        let distance = ((control & 0x1f) << 8) + byte(&mut rest)? + 1;
        let from = output.len().checked_sub(distance).ok_or_else(wrong)?;
        if output.len() + length > original {
            return Err(wrong());
        }
        if distance >= length {
            output.extend_from_within(from..from + length);
        } else {
            // It overlaps what it writes.
            for at in from..from + length {
                output.push(output[at]);
            }
        }
    }
    if output.len() == original { Ok(()) } else { Err(wrong()) }
}
