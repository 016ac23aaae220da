//! zstd, Spark's default since 3.0: standard frames, one after the other.
//! Spark ends a frame whenever it flushes, so a log has thousands.

use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::{Damage, Decode, Step};

/// Largest window of a frame, as a power of two: 128 MiB, what `zstd` itself
/// accepts and what Spark's highest level writes. A frame that asks for more
/// is refused before memory is taken.
const WINDOW_LOG: u32 = 27;

/// A call never takes a block and the header of the next one: what it has
/// given is lost where it fails.
const BLOCK_HEADER: usize = 3;

/// The least that tells a frame's header.
const FIRST: usize = 5;

pub(super) struct Zstd {
    decoder: Decoder<'static>,
    /// Bytes that the decoder wants next; 0 between frames.
    wanted: usize,
}

impl Zstd {
    pub(super) fn new() -> Result<Self, Damage> {
        let failed = |error: std::io::Error| Damage::new(error.to_string());
        let mut decoder = Decoder::new().map_err(failed)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(failed)?;
        Ok(Self { decoder, wanted: 0 })
    }
}

impl Decode for Zstd {
    fn decode(&mut self, input: &[u8], output: &mut [u8], step: &mut Step) -> Result<(), Damage> {
        // Asked at a frame's end with nothing to read it would begin another.
        while step.written < output.len() && (step.read < input.len() || self.wanted > 0) {
            let size = match self.wanted {
                0 => FIRST,
                wanted if wanted > BLOCK_HEADER => wanted - BLOCK_HEADER,
                wanted => wanted,
            };
            let rest = &input[step.read..];
            let status = self
                .decoder
                .run_on_buffers(&rest[..size.min(rest.len())], &mut output[step.written..])
                .map_err(|error| Damage::new(error.to_string()))?;
            step.read += status.bytes_read;
            step.written += status.bytes_written;
            self.wanted = status.remaining;
            if status.bytes_read == 0 && status.bytes_written == 0 {
                break;
            }
        }
        Ok(())
    }

    fn may_end(&self) -> bool {
        self.wanted == 0
    }
}
