//! First step of reading a log: a file's bytes in, decompressed bytes out.
//!
//! What a file holds is told by its first bytes. Names lie: a compacted file
//! carries the suffix of the codec it once had (SPARK-43991), and people
//! rename and unpack.

use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};

/// Largest window of a zstd frame, as a power of two: 128 MiB, what `zstd`
/// itself accepts and what Spark's highest level writes. A frame that asks
/// for more is refused before memory is taken.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Bytes that tell the codecs apart.
const PREFIX: usize = 12;

/// How a log is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Zstd,
}

/// A format that is known by its first bytes and not read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedCodec {
    /// lz4-java's block stream, Spark's `lz4`.
    Lz4Block,
    /// The frame format of the `lz4` command.
    Lz4Frame,
    /// xerial's stream, Spark's `snappy`.
    Snappy,
    /// ning's chunks, Spark's `lzf`.
    Lzf,
    Gzip,
    Zip,
}

impl UnsupportedCodec {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lz4Block => "lz4 (Spark's block stream)",
            Self::Lz4Frame => "lz4 (frame format)",
            Self::Snappy => "snappy",
            Self::Lzf => "lzf",
            Self::Gzip => "gzip",
            Self::Zip => "zip",
        }
    }
}

/// The codec of a stream that begins with `prefix`.
pub(super) fn sniff(prefix: &[u8]) -> Result<Codec, UnsupportedCodec> {
    const UNSUPPORTED: [(&[u8], UnsupportedCodec); 10] = [
        (b"LZ4Block", UnsupportedCodec::Lz4Block),
        (b"\x04\x22\x4d\x18", UnsupportedCodec::Lz4Frame),
        (b"\x82SNAPPY\0", UnsupportedCodec::Snappy),
        (b"\xff\x06\0\0sNaPpY", UnsupportedCodec::Snappy),
        (b"ZV\0", UnsupportedCodec::Lzf),
        (b"ZV\x01", UnsupportedCodec::Lzf),
        (b"\x1f\x8b", UnsupportedCodec::Gzip),
        (b"PK\x03\x04", UnsupportedCodec::Zip),
        (b"PK\x05\x06", UnsupportedCodec::Zip),
        (b"PK\x07\x08", UnsupportedCodec::Zip),
    ];
    if let Some((_, codec)) = UNSUPPORTED.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return Err(*codec);
    }
    let skippable_frame =
        matches!(prefix, [first, 0x2a, 0x4d, 0x18, ..] if (0x50..=0x5f).contains(first));
    if prefix.starts_with(b"\x28\xb5\x2f\xfd") || skippable_frame {
        return Ok(Codec::Zstd);
    }
    Ok(Codec::Plain)
}

/// Marks an error as one of the file (disk, network), not of what it holds:
/// worth another try.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct SourceFailed(io::Error);

/// Ends a stream that goes on beyond its limit.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes when decompressed")]
struct LimitReached(u64);

/// Why a decompressed stream ended early.
#[derive(Debug)]
pub(super) enum Failure {
    /// Reading the file failed.
    Source(io::Error),
    /// The limit on decompressed bytes was reached.
    Limit,
    /// Cut in the middle of a frame, or damaged.
    Damaged(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.get_ref() {
            Some(inner) if inner.is::<SourceFailed>() => Self::Source(error),
            Some(inner) if inner.is::<LimitReached>() => Self::Limit,
            _ => Self::Damaged(error),
        }
    }
}

/// Counts what is read and marks the errors of the file.
pub(super) struct Source<'c, R> {
    inner: R,
    bytes: &'c Cell<u64>,
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(read) => {
                self.bytes.set(self.bytes.get() + read as u64);
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(io::Error::new(error.kind(), SourceFailed(error))),
        }
    }
}

/// What was read to tell the codec, followed by the rest.
type Whole<'c, R> = io::Chain<Cursor<Vec<u8>>, Source<'c, R>>;

enum Decoder<'c, R: Read> {
    Plain(Whole<'c, R>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Whole<'c, R>>>>),
}

/// Decompressed bytes, up to a limit.
pub(super) struct Decompressed<'c, R: Read> {
    decoder: Decoder<'c, R>,
    limit: u64,
    /// Decompressed bytes so far, over all files of the log.
    bytes: &'c Cell<u64>,
}

/// How many bytes a log had, shared by the readers of its files.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) compressed: Cell<u64>,
    pub(super) decompressed: Cell<u64>,
}

/// A stream that cannot even be begun.
#[derive(Debug)]
pub(super) enum OpenError {
    Unsupported(UnsupportedCodec),
    Io(io::Error),
}

/// Looks at the first bytes of `reader` and decompresses it. `limit` is on
/// the decompressed bytes of all streams that share `counters`.
pub(super) fn decompress<R: Read>(
    reader: R,
    limit: u64,
    counters: &Counters,
) -> Result<Decompressed<'_, R>, OpenError> {
    let mut source = Source { inner: reader, bytes: &counters.compressed };
    let mut prefix = Vec::with_capacity(PREFIX);
    source.by_ref().take(PREFIX as u64).read_to_end(&mut prefix).map_err(OpenError::Io)?;
    let codec = sniff(&prefix).map_err(OpenError::Unsupported)?;
    let whole = Cursor::new(prefix).chain(source);
    let decoder = match codec {
        Codec::Plain => Decoder::Plain(whole),
        Codec::Zstd => {
            let mut decoder = zstd::Decoder::new(whole).map_err(OpenError::Io)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(OpenError::Io)?;
            Decoder::Zstd(Box::new(decoder))
        }
    };
    Ok(Decompressed { decoder, limit, bytes: &counters.decompressed })
}

impl<R: Read> Read for Decompressed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.limit.saturating_sub(self.bytes.get());
        // At the limit one byte more tells a log that ends here from one that
        // goes on.
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).clamp(1, buffer.len().max(1));
        let Some(buffer) = buffer.get_mut(..wanted) else { return Ok(0) };
        let read = match &mut self.decoder {
            Decoder::Plain(reader) => reader.read(buffer)?,
            Decoder::Zstd(decoder) => decoder.read(buffer)?,
        };
        if left == 0 && read > 0 {
            return Err(io::Error::other(LimitReached(self.limit)));
        }
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], limit: u64) -> (Vec<u8>, Option<Failure>) {
        let counters = Counters::default();
        let mut stream = decompress(bytes, limit, &counters).expect("a known codec");
        let mut out = Vec::new();
        let failure = stream.read_to_end(&mut out).err().map(Failure::from);
        assert_eq!(counters.decompressed.get(), out.len() as u64);
        (out, failure)
    }

    fn frame(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 1).expect("compresses")
    }

    #[test]
    fn codecs_are_told_by_first_bytes() {
        let cases: [(&[u8], Result<Codec, UnsupportedCodec>); 9] = [
            (b"{\"Event\"", Ok(Codec::Plain)),
            (b"", Ok(Codec::Plain)),
            (b"\x28\xb5\x2f\xfd\x04", Ok(Codec::Zstd)),
            (b"\x5a\x2a\x4d\x18", Ok(Codec::Zstd)),
            (b"LZ4Block\x25", Err(UnsupportedCodec::Lz4Block)),
            (b"\x82SNAPPY\0\0\0\0\x01", Err(UnsupportedCodec::Snappy)),
            (b"ZV\x01\x10", Err(UnsupportedCodec::Lzf)),
            (b"\x1f\x8b\x08", Err(UnsupportedCodec::Gzip)),
            (b"PK\x03\x04\x14", Err(UnsupportedCodec::Zip)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(sniff(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn many_frames_are_one_stream() {
        let mut bytes = frame(b"one\n");
        bytes.extend(frame(b""));
        bytes.extend(frame(b"two\n"));
        let (text, failure) = read(&bytes, 1000);
        assert_eq!(text, b"one\ntwo\n");
        assert!(failure.is_none());
    }

    #[test]
    fn a_frame_cut_short_keeps_what_came_before() {
        let mut bytes = frame(b"one\n");
        let second = frame(&b"two two two two ".repeat(100));
        bytes.extend(&second[..second.len() - 3]);
        let (text, failure) = read(&bytes, 10_000);
        assert!(text.starts_with(b"one\n"));
        assert!(matches!(failure, Some(Failure::Damaged(_))), "{failure:?}");
    }

    #[test]
    fn the_limit_ends_a_stream_that_goes_on_and_no_other() {
        assert!(read(b"12345", 5).1.is_none());
        let (text, failure) = read(&frame(&vec![0; 100_000]), 70_000);
        assert_eq!(text.len(), 70_000);
        assert!(matches!(failure, Some(Failure::Limit)), "{failure:?}");
    }

    #[test]
    fn errors_of_the_file_are_not_damage() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk on fire"))
            }
        }
        for start in [frame(b"one\n"), b"plain line\nand more".to_vec()] {
            let counters = Counters::default();
            let mut stream = decompress(start.chain(Broken), 100, &counters).expect("begins");
            let failure = stream.read_to_end(&mut Vec::new()).err().map(Failure::from);
            assert!(matches!(failure, Some(Failure::Source(_))), "{failure:?}");
        }
    }
}
