//! What the codecs made of blocks share: a unit (a header, a block) has a
//! length that is known before it, is gathered from the pieces the input
//! comes in, and is decoded when it is whole.

use super::{Damage, Decode, Step};

/// No block of any of these formats needs to be larger: Spark's default is
/// 32 KiB, and the largest that lz4-java can write is this.
pub(super) const LARGEST_BLOCK: usize = 32 << 20;

/// Buffers above this size go back to the allocator once they are used up.
const KEEP: usize = 1 << 20;

/// A format of headers and blocks.
pub(super) trait Format: Send {
    /// Bytes of the next unit, at least 1.
    fn next_unit(&self) -> usize;

    /// Takes the next unit, which has just that many bytes. What it decodes
    /// to is put into `output`, which is empty.
    fn take(&mut self, unit: &[u8], output: &mut Vec<u8>) -> Result<(), Damage>;

    /// Whether the stream may end before the next unit.
    fn may_end(&self) -> bool;
}

/// A stream of such units.
pub(super) struct Blocks<F> {
    format: F,
    /// The part of the next unit that is there.
    held: Vec<u8>,
    /// What was decoded and not handed out yet is `decoded[at..]`.
    decoded: Vec<u8>,
    at: usize,
}

impl<F> Blocks<F> {
    pub(super) fn new(format: F) -> Self {
        Self { format, held: Vec::new(), decoded: Vec::new(), at: 0 }
    }
}

impl<F: Format> Decode for Blocks<F> {
    fn decode(&mut self, input: &[u8], output: &mut [u8], step: &mut Step) -> Result<(), Damage> {
        loop {
            let size = (self.decoded.len() - self.at).min(output.len() - step.written);
            output[step.written..step.written + size]
                .copy_from_slice(&self.decoded[self.at..self.at + size]);
            self.at += size;
            step.written += size;
            if self.at < self.decoded.len() {
                return Ok(());
            }
            self.at = 0;
            empty(&mut self.decoded);
            if step.written == output.len() {
                return Ok(());
            }

            // Memory is taken for what is there, not for what a header says
            // will come.
            let wanted = self.format.next_unit();
            let rest = &input[step.read..];
            let missing = wanted.saturating_sub(self.held.len());
            if rest.len() < missing {
                self.held.extend_from_slice(rest);
                step.read = input.len();
                return Ok(());
            }
            let part = &rest[..missing];
            step.read += missing;
            let taken = if self.held.is_empty() {
                self.format.take(part, &mut self.decoded)
            } else {
                self.held.extend_from_slice(part);
                let taken = self.format.take(&self.held, &mut self.decoded);
                empty(&mut self.held);
                taken
            };
            if taken.is_err() {
                // What a damaged block gave is nothing.
                self.decoded.clear();
            }
            taken?;
        }
    }

    fn may_end(&self) -> bool {
        self.held.is_empty() && self.at == self.decoded.len() && self.format.may_end()
    }
}

fn empty(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEEP {
        *buffer = Vec::new();
    } else {
        buffer.clear();
    }
}

/// `N` bytes of a unit.
pub(super) fn array<const N: usize>(unit: &[u8], at: usize) -> Result<[u8; N], Damage> {
    unit.get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or_else(|| Damage::new("a header is too short"))
}
