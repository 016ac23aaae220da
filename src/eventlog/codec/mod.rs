//! First step of reading a log: a file's bytes in, decompressed bytes out.
//!
//! What a file holds is told by its first bytes. Names lie: a compacted file
//! carries the suffix of the codec it once had (SPARK-43991), and people
//! rename and unpack.
//!
//! Bytes are pushed in, in whatever pieces they come, and all state is kept
//! between the pieces: a file that grows is continued where it ended, in the
//! middle of a frame too, and no way of cutting the bytes changes what comes
//! out. One file below is one codec.

mod block;
mod gzip;
mod lz4_block;
mod lz4_frame;
mod lzf;
mod snappy;
mod snappy_frame;
#[cfg(test)]
mod tests;
mod zstd;

use std::fmt;

use self::block::Blocks;

/// A format that is known by its first bytes and not read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedCodec {
    Zip,
}

impl UnsupportedCodec {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zip => "zip",
        }
    }
}

/// What a compressed stream has wrong: cut in the middle of a frame, or
/// changed since it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(String);

impl Damage {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// The stream ends where a frame or block does not.
    pub(super) fn cut() -> Self {
        Self::new("it ends in the middle of a compressed block")
    }
}

/// Why a stream cannot be read on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Unsupported(UnsupportedCodec),
    Damaged(Damage),
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// What one call took and gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes taken from the front of the input.
    pub(super) read: usize,
    /// Bytes written to the front of the output.
    pub(super) written: usize,
}

/// One codec.
///
/// A call takes input until there is none left, or the output is full. An
/// output that is full may have more behind it; one that is not has not. What
/// was taken and given is added to `step`, and counts where damage is found
/// behind it, too.
trait Decode: Send {
    fn decode(&mut self, input: &[u8], output: &mut [u8], step: &mut Step) -> Result<(), Damage>;

    /// Whether the stream may end here: no frame or block is open.
    fn may_end(&self) -> bool;
}

/// Not compressed.
struct Plain;

impl Decode for Plain {
    fn decode(&mut self, input: &[u8], output: &mut [u8], step: &mut Step) -> Result<(), Damage> {
        let (input, output) = (&input[step.read..], &mut output[step.written..]);
        let size = input.len().min(output.len());
        output[..size].copy_from_slice(&input[..size]);
        step.read += size;
        step.written += size;
        Ok(())
    }

    fn may_end(&self) -> bool {
        true
    }
}

/// How a log is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Zstd,
    Lz4Block,
    Lz4Frame,
    Snappy,
    SnappyFrame,
    Lzf,
    Gzip,
}

impl Codec {
    fn decoder(self) -> Result<Box<dyn Decode>, Damage> {
        Ok(match self {
            Self::Plain => Box::new(Plain),
            Self::Zstd => Box::new(zstd::Zstd::new()?),
            Self::Lz4Block => Box::new(Blocks::new(lz4_block::Lz4Block::default())),
            Self::Lz4Frame => Box::new(Blocks::new(lz4_frame::Lz4Frame::default())),
            Self::Snappy => Box::new(Blocks::new(snappy::Snappy::default())),
            Self::SnappyFrame => Box::new(Blocks::new(snappy_frame::SnappyFrame::default())),
            Self::Lzf => Box::new(Blocks::new(lzf::Lzf::default())),
            Self::Gzip => Box::new(gzip::Gzip::default()),
        })
    }
}

/// What the first bytes of a stream say of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sniffed {
    Is(Codec),
    IsNot(UnsupportedCodec),
    /// They begin as one of the formats does: more bytes will tell.
    TooShort,
}

/// Told apart by the first bytes; `None`: not read.
const MAGIC: [(&[u8], Result<Codec, UnsupportedCodec>); 11] = [
    (b"\x28\xb5\x2f\xfd", Ok(Codec::Zstd)),
    (b"LZ4Block", Ok(Codec::Lz4Block)),
    (b"\x04\x22\x4d\x18", Ok(Codec::Lz4Frame)),
    (b"\x82SNAPPY\0", Ok(Codec::Snappy)),
    (b"\xff\x06\0\0sNaPpY", Ok(Codec::SnappyFrame)),
    (b"ZV\0", Ok(Codec::Lzf)),
    (b"ZV\x01", Ok(Codec::Lzf)),
    (b"\x1f\x8b", Ok(Codec::Gzip)),
    (b"PK\x03\x04", Err(UnsupportedCodec::Zip)),
    (b"PK\x05\x06", Err(UnsupportedCodec::Zip)),
    (b"PK\x07\x08", Err(UnsupportedCodec::Zip)),
];

/// The longest of them.
const PREFIX: usize = 10;

fn sniff(prefix: &[u8]) -> Sniffed {
    for (magic, codec) in MAGIC {
        if prefix.starts_with(magic) {
            return codec.map_or_else(Sniffed::IsNot, Sniffed::Is);
        }
    }
    // zstd and lz4 share their skippable frames; only zstd is known to begin
    // with one.
    match prefix {
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => return Sniffed::Is(Codec::Zstd),
        [0x50..=0x5f] | [0x50..=0x5f, 0x2a] | [0x50..=0x5f, 0x2a, 0x4d] => {
            return Sniffed::TooShort;
        }
        _ => {}
    }
    if MAGIC.iter().any(|(magic, _)| magic.starts_with(prefix)) {
        return Sniffed::TooShort;
    }
    Sniffed::Is(Codec::Plain)
}

/// One file being decompressed.
#[derive(Default)]
pub(super) struct Decompressor {
    /// Bytes that told the codec and have not been decoded yet.
    prefix: Vec<u8>,
    /// `None` as long as the codec is not known.
    decoder: Option<Box<dyn Decode>>,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Decompressor {
    /// For a stream whose codec is known.
    pub(super) fn of(codec: Codec) -> Result<Self, Damage> {
        Ok(Self { prefix: Vec::new(), decoder: Some(codec.decoder()?) })
    }

    /// Takes input until there is none left, or the output is full: an output
    /// that is full may have more behind it, so the caller comes again, with
    /// empty input if need be. `last`: no input follows this one. What was
    /// taken and given counts where it fails, too.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
    ) -> (Step, Result<(), Failure>) {
        let mut step = Step::default();
        let result = self.decode_to(input, last, output, &mut step);
        (step, result)
    }

    fn decode_to(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        step: &mut Step,
    ) -> Result<(), Failure> {
        if self.decoder.is_none() {
            let held = self.prefix.len();
            let missing = PREFIX.saturating_sub(held).min(input.len());
            self.prefix.extend_from_slice(&input[..missing]);
            step.read = missing;
            let codec = match sniff(&self.prefix) {
                Sniffed::Is(codec) => codec,
                Sniffed::IsNot(codec) => return Err(Failure::Unsupported(codec)),
                Sniffed::TooShort if last => Codec::Plain,
                Sniffed::TooShort => return Ok(()),
            };
            self.decoder = Some(codec.decoder()?);
        }
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        if !self.prefix.is_empty() {
            let mut first = Step::default();
            let result = decoder.decode(&self.prefix, output, &mut first);
            self.prefix.drain(..first.read);
            step.written = first.written;
            result?;
            if !self.prefix.is_empty() || step.written == output.len() {
                return Ok(());
            }
        }
        Ok(decoder.decode(input, output, step)?)
    }

    /// Whether the stream may end here, with no frame or block open.
    pub(super) fn may_end(&self) -> bool {
        self.prefix.is_empty() && self.decoder.as_ref().is_none_or(|decoder| decoder.may_end())
    }
}
