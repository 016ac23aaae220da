//! The way in for the fuzz targets of `fuzz/`, which see nothing of the
//! crate's inside. No interface: it changes as they need it.

use super::codec::{Codec, Decompressor};
use super::lines::{Batch, Line, Splitter};

/// Output that is looked at; a bomb has more.
const ENOUGH: usize = 1 << 20;

/// Decompresses bytes that are said to be of a codec, whole and in pieces: the
/// same has to come out. The first byte says how large the pieces are.
pub fn decompress(codec: &str, bytes: &[u8]) {
    let codec = match codec {
        "zstd" => Codec::Zstd,
        "lz4" => Codec::Lz4Block,
        "lz4_frame" => Codec::Lz4Frame,
        "snappy" => Codec::Snappy,
        "snappy_frame" => Codec::SnappyFrame,
        "lzf" => Codec::Lzf,
        "gzip" => Codec::Gzip,
        _ => Codec::Plain,
    };
    let Some((pieces, bytes)) = bytes.split_first() else { return };
    let pieces = usize::from(*pieces) + 1;
    let whole = run(codec, bytes, bytes.len().max(1), 1 << 16);
    let in_pieces = run(codec, bytes, pieces, 256 - pieces / 2);
    // Of a damaged block zstd itself may give a piece more or less.
    let damaged = codec == Codec::Zstd && whole.1.is_none();
    let begins = whole.0.starts_with(&in_pieces.0) || in_pieces.0.starts_with(&whole.0);
    assert!(
        whole.0 == in_pieces.0 || (damaged && begins),
        "pieces of {pieces} change what comes out"
    );
    assert_eq!(whole.1, in_pieces.1, "pieces of {pieces} change how it ends");
}

/// What comes out, up to [`ENOUGH`], and whether it fails before that; and
/// whether it may end there.
fn run(codec: Codec, bytes: &[u8], piece: usize, room: usize) -> (Vec<u8>, Option<bool>) {
    let mut out = Vec::new();
    let Ok(mut decompressor) = Decompressor::of(codec) else { return (out, None) };
    let mut buffer = vec![0; room];
    for mut input in bytes.chunks(piece) {
        loop {
            let (step, result) = decompressor.decode(input, false, &mut buffer);
            out.extend_from_slice(&buffer[..step.written]);
            input = &input[step.read..];
            if out.len() >= ENOUGH {
                out.truncate(ENOUGH);
                return (out, None);
            }
            if result.is_err() {
                return (out, None);
            }
            if step.written < buffer.len() {
                assert!(input.is_empty(), "room in the output and input left");
                break;
            }
        }
    }
    (out, Some(decompressor.may_end()))
}

/// Splits bytes into lines, in pieces and at once: the same has to come out.
/// The first two bytes say how large the pieces are and how long a line may
/// be.
pub fn lines(bytes: &[u8]) {
    let [pieces, limit, bytes @ ..] = bytes else { return };
    let limit = usize::from(*limit) * 16;
    let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = expected.pop().filter(|last| !last.is_empty());
    let expected: Vec<Option<Vec<u8>>> = expected
        .into_iter()
        .chain(last)
        .map(|line| (line.len() <= limit).then(|| line.to_vec()))
        .collect();

    let mut splitter = Splitter::new(limit);
    let mut batch = Batch::default();
    let mut found = Vec::new();
    let mut take = |batch: &Batch| {
        for line in batch.lines() {
            found.push(match line {
                Line::TaskEnd { whole, .. } => Some(whole.to_vec()),
                Line::Whole(line) | Line::Unterminated(line) => Some(line.to_vec()),
                Line::TooLong => None,
            });
        }
    };
    splitter.begin(&mut batch);
    for (turn, piece) in bytes.chunks(usize::from(*pieces) + 1).enumerate() {
        if turn % 3 == 2 || splitter.room(&mut batch).is_none() {
            splitter.end(&batch);
            take(&batch);
            splitter.begin(&mut batch);
        }
        let Some(room) = splitter.room(&mut batch) else { return };
        room[..piece.len()].copy_from_slice(piece);
        splitter.filled(&mut batch, piece.len());
    }
    splitter.finish(&mut batch);
    take(&batch);
    assert!(found == expected, "lines of at most {limit} bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_accept_what_is_right() {
        let text = b"{\"Event\":\"SparkListenerTaskEnd\",\"Task Info\":{\"Accumulables\":[]}}\n\nx";
        lines(&[b"\x05\xff", text.as_slice()].concat());
        lines(&[b"\x05\x01", text.as_slice()].concat());
        let packed = zstd::encode_all(text.as_slice(), 1).expect("compresses");
        decompress("zstd", &[b"\x05", packed.as_slice()].concat());
        decompress("lzf", b"\x01ZV\0\0\x03abcZV\x01\0\x02");
    }
}
