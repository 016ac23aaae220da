//! Every codec, on what Spark's own classes wrote and on bytes made by hand
//! from its format: no way of cutting the bytes changes what comes out, what
//! is cut short keeps what came before, and what lies is refused.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use twox_hash::XxHash32;

use super::*;

/// Decodes bytes that come in pieces of these sizes, in turn, into buffers of
/// those; what came out, and whether the stream may end there.
fn decode(bytes: &[u8], pieces: &[usize], buffers: &[usize]) -> (Vec<u8>, Result<bool, Failure>) {
    let mut decompressor = Decompressor::default();
    let mut out = Vec::new();
    let mut pieces = pieces.iter().copied().cycle();
    let mut buffers = buffers.iter().copied().cycle();
    let mut rest = bytes;
    loop {
        let (piece, others) = rest.split_at(pieces.next().unwrap_or(1).min(rest.len()));
        rest = others;
        let last = rest.is_empty();
        let mut input = piece;
        loop {
            let mut buffer = vec![0; buffers.next().unwrap_or(1)];
            let (step, result) = decompressor.decode(input, last, &mut buffer);
            out.extend_from_slice(&buffer[..step.written]);
            if let Err(failure) = result {
                return (out, Err(failure));
            }
            input = &input[step.read..];
            if step.written < buffer.len() {
                assert!(input.is_empty(), "room in the output and input left");
                break;
            }
        }
        if last {
            return (out, Ok(decompressor.may_end()));
        }
    }
}

fn decode_whole(bytes: &[u8]) -> (Vec<u8>, Result<bool, Failure>) {
    decode(bytes, &[1 << 16], &[1 << 16])
}

/// Blocks of a few bytes, so that a short text has many.
const BLOCK: usize = 100;

fn zstd_frames(text: &[u8]) -> Vec<u8> {
    let skippable = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
    let frames = text.chunks(BLOCK).map(|part| ::zstd::encode_all(part, 1).expect("compresses"));
    std::iter::once(skippable.to_vec()).chain(frames).flatten().collect()
}

fn lz4_block_header(method: u8, compressed: usize, original: usize, checksum: u32) -> Vec<u8> {
    let mut header = b"LZ4Block".to_vec();
    header.push(method | 5);
    header.extend((compressed as u32).to_le_bytes());
    header.extend((original as u32).to_le_bytes());
    header.extend(checksum.to_le_bytes());
    header
}

fn lz4_blocks(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, part) in text.chunks(BLOCK).enumerate() {
        let checksum = XxHash32::oneshot(0x9747_b28c, part) & 0x0fff_ffff;
        let packed = lz4_flex::block::compress(part);
        if index % 3 == 0 {
            out.extend(lz4_block_header(0x10, part.len(), part.len(), checksum));
            out.extend(part);
        } else {
            out.extend(lz4_block_header(0x20, packed.len(), part.len(), checksum));
            out.extend(packed);
        }
        if index % 4 == 3 {
            // Another stream begins.
            out.extend(lz4_block_header(0x10, 0, 0, 0));
        }
    }
    out.extend(lz4_block_header(0x10, 0, 0, 0));
    out
}

/// Two frames: the first with linked blocks and checksums of each, the second
/// with stored ones and a checksum of them all.
fn lz4_frames(text: &[u8]) -> Vec<u8> {
    let (first, second) = text.split_at(text.len() / 2);
    let header = |flags: u8, out: &mut Vec<u8>| {
        out.extend(0x184d_2204_u32.to_le_bytes());
        let descriptor = [flags, 4 << 4];
        out.extend(descriptor);
        out.push((XxHash32::oneshot(0, &descriptor) >> 8) as u8);
    };
    let mut out = Vec::new();
    header(0x40 | 0x10 | 0x04, &mut out);
    for (index, part) in first.chunks(BLOCK).enumerate() {
        let before = &first[..index * BLOCK];
        let packed = lz4_flex::block::compress_with_dict(part, before);
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend(&packed);
        out.extend(XxHash32::oneshot(0, &packed).to_le_bytes());
    }
    out.extend(0_u32.to_le_bytes());
    out.extend(XxHash32::oneshot(0, first).to_le_bytes());
    out.extend(b"\x51\x2a\x4d\x18\x03\0\0\0abc");
    header(0x40 | 0x20 | 0x04, &mut out);
    for part in second.chunks(BLOCK) {
        out.extend((part.len() as u32 | 1 << 31).to_le_bytes());
        out.extend(part);
    }
    out.extend(0_u32.to_le_bytes());
    out.extend(XxHash32::oneshot(0, second).to_le_bytes());
    out
}

fn snappy_blocks(text: &[u8]) -> Vec<u8> {
    let header = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
    let mut out = header.to_vec();
    for (index, part) in text.chunks(BLOCK).enumerate() {
        let packed = snap::raw::Encoder::new().compress_vec(part).expect("compresses");
        out.extend((packed.len() as u32).to_be_bytes());
        out.extend(packed);
        if index % 3 == 2 {
            out.extend(header);
        }
    }
    out
}

fn snappy_frames(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in text.chunks(BLOCK) {
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        encoder.write_all(part).expect("compresses");
        out.extend(encoder.into_inner().expect("compresses"));
        out.extend(b"\xfe\x02\0\0ab");
    }
    if out.is_empty() { b"\xff\x06\0\0sNaPpY".to_vec() } else { out }
}

fn lzf_chunks(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, part) in text.chunks(BLOCK).enumerate() {
        let packed = lzf_pack(part);
        if index % 3 == 0 {
            out.extend(b"ZV\0");
            out.extend((part.len() as u16).to_be_bytes());
            out.extend(part);
        } else {
            out.extend(b"ZV\x01");
            out.extend((packed.len() as u16).to_be_bytes());
            out.extend((part.len() as u16).to_be_bytes());
            out.extend(packed);
        }
    }
    if out.is_empty() { b"ZV\0\0\0".to_vec() } else { out }
}

/// LZF the slow way: the longest earlier match, or a literal.
fn lzf_pack(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let best = (at.saturating_sub(8192)..at)
            .map(|from| {
                let same = text[from..].iter().zip(&text[at..]).take_while(|(a, b)| a == b);
                (same.count().min(264), from)
            })
            .max()
            .unwrap_or_default();
        let (length, from) = best;
        if length < 3 {
            out.extend([0, text[at]]);
            at += 1;
            continue;
        }
        let distance = at - from - 1;
        let high = (distance >> 8) as u8;
        if length < 9 {
            out.push((length as u8 - 2) << 5 | high);
        } else {
            out.extend([7 << 5 | high, (length - 9) as u8]);
        }
        out.push(distance as u8);
        at += length;
    }
    out
}

fn gzip_members(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut members: Vec<&[u8]> = text.chunks(BLOCK * 3).collect();
    if members.is_empty() {
        members.push(b"");
    }
    for (index, part) in members.into_iter().enumerate() {
        let mut builder = flate2::GzBuilder::new();
        if index % 2 == 0 {
            builder = builder.filename("events.log").comment("rotated").extra(vec![7; 300]);
        }
        let mut encoder = builder.write(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).expect("compresses");
        out.extend(encoder.finish().expect("compresses"));
    }
    out.extend([0; 5]);
    out
}

type Encode = fn(&[u8]) -> Vec<u8>;

const CODECS: [(&str, Encode); 8] = [
    ("plain", |text| text.to_vec()),
    ("zstd", zstd_frames),
    ("lz4 block", lz4_blocks),
    ("lz4 frame", lz4_frames),
    ("snappy", snappy_blocks),
    ("snappy frame", snappy_frames),
    ("lzf", lzf_chunks),
    ("gzip", gzip_members),
];

/// Text that compresses, as a log does.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        4 => Just(b"{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":".to_vec()),
        2 => proptest::collection::vec(b'0'..=b'9', 1..6),
        1 => Just(vec![b'a'; 300]),
        1 => Just(b"}\n".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..40),
    ];
    proptest::collection::vec(words, 0..60).prop_map(|words| {
        let text = words.concat();
        // Not another codec's magic.
        [b"{".as_slice(), &text].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_split_gives_the_same(
        text in text(),
        pieces in proptest::collection::vec(1_usize..70, 1..6),
        buffers in proptest::collection::vec(1_usize..90, 1..6),
    ) {
        for (name, encode) in CODECS {
            let (out, end) = decode(&encode(&text), &pieces, &buffers);
            prop_assert_eq!(end, Ok(true), "{}", name);
            prop_assert!(out == text, "{}", name);
        }
    }

    #[test]
    fn cut_anywhere_it_keeps_what_came_before(text in text(), cut in any::<prop::sample::Index>()) {
        for (name, encode) in CODECS {
            let bytes = encode(&text);
            let part = &bytes[..cut.index(bytes.len())];
            let (out, end) = decode_whole(part);
            prop_assert!(end.is_ok(), "{}: {:?}", name, end);
            // A handful of bytes that begin as a codec does are taken as they are.
            prop_assert!(text.starts_with(&out) || part.len() < PREFIX, "{}", name);
        }
    }

    #[test]
    fn changed_bytes_are_no_panic(
        text in text(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for (name, encode) in CODECS {
            let mut bytes = encode(&text);
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            // The same comes out before the damage, however it is cut; of the
            // damaged block itself zstd may give a piece more or less.
            let (out, end) = decode_whole(&bytes);
            let (out_of_pieces, end_of_pieces) = decode(&bytes, &[7], &[5]);
            let same = if name == "zstd" {
                out.starts_with(&out_of_pieces) || out_of_pieces.starts_with(&out)
            } else {
                out == out_of_pieces
            };
            prop_assert!(same, "{}", name);
            prop_assert_eq!(end.is_ok(), end_of_pieces.is_ok(), "{}", name);
        }
    }
}

/// zstd changed its format until 0.8 and can be built to read the old ones, to
/// an end that depends on how they are cut. Spark never wrote them.
#[test]
fn frames_of_zstd_before_0_8_are_damage() {
    let text = b"{\"Event\":\"SparkListenerTaskEnd\"}\n";
    for version in [0x22, 0x25, 0x27] {
        let bytes = [zstd_frames(text), vec![version, 0xb5, 0x2f, 0xfd, 0x20, 0x3c]].concat();
        for piece in [1, 7, 1_000] {
            let (out, end) = decode(&bytes, &[piece], &[50]);
            assert_eq!(out, text);
            assert!(end.is_err(), "{version}, {piece}: {end:?}");
        }
    }
}

/// Every block that is whole before a cut is there.
#[test]
fn cut_at_any_byte_it_keeps_all_whole_blocks() {
    let text = b"{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":1}\n".repeat(20);
    let without_end: Encode = |text| {
        let mut bytes = lz4_blocks(text);
        bytes.truncate(bytes.len() - 21);
        bytes
    };
    let appended: [(&str, Encode); 5] = [
        ("zstd", zstd_frames),
        ("lz4", without_end),
        ("snappy", snappy_blocks),
        ("lzf", lzf_chunks),
        ("plain", |text| text.to_vec()),
    ];
    for (name, encode) in appended {
        let bytes = encode(&text);
        let ends: Vec<usize> =
            (0..=text.len() / BLOCK).map(|blocks| encode(&text[..blocks * BLOCK]).len()).collect();
        for cut in PREFIX..bytes.len() {
            let (out, end) = decode_whole(&bytes[..cut]);
            let whole = ends.iter().rposition(|end| *end <= cut).unwrap_or_default();
            assert!(end.is_ok() && text.starts_with(&out), "{name} at {cut}");
            assert!(out.len() >= whole * BLOCK, "{name} at {cut}: {} bytes", out.len());
        }
    }
}

#[test]
fn codecs_are_told_by_first_bytes() {
    use Sniffed::{Is, IsNot, TooShort};
    let cases: [(&[u8], Sniffed); 15] = [
        (b"{\"Event\"", Is(Codec::Plain)),
        (b"{", Is(Codec::Plain)),
        (b"LZ5Block", Is(Codec::Plain)),
        (b"", TooShort),
        (b"LZ4Bloc", TooShort),
        (b"\x28\xb5\x2f\xfd\x04", Is(Codec::Zstd)),
        (b"\x5a\x2a\x4d", TooShort),
        (b"\x5a\x2a\x4d\x18", Is(Codec::Zstd)),
        (b"LZ4Block\x25", Is(Codec::Lz4Block)),
        (b"\x04\x22\x4d\x18\x64", Is(Codec::Lz4Frame)),
        (b"\x82SNAPPY\0\0\0\0\x01", Is(Codec::Snappy)),
        (b"\xff\x06\0\0sNaPpY", Is(Codec::SnappyFrame)),
        (b"ZV\x01\x10", Is(Codec::Lzf)),
        (b"\x1f\x8b\x08", Is(Codec::Gzip)),
        (b"PK\x03\x04\x14", IsNot(UnsupportedCodec::Zip)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(sniff(bytes), expected, "{bytes:?}");
    }
    let longest = MAGIC.iter().map(|(magic, _)| magic.len()).max();
    assert_eq!(longest, Some(PREFIX));
}

#[test]
fn a_few_bytes_that_begin_as_a_codec_does_are_plain() {
    for bytes in [&b"ZV"[..], b"LZ4", b"PK", b"P"] {
        assert_eq!(decode(bytes, &[1], &[1]), (bytes.to_vec(), Ok(true)));
    }
}

/// Files in the order of their numbers, or by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("appst"))
        {
            found.push(path);
        }
    }
    // The newest of Databricks' files is `eventlog` alone.
    found.sort_by_key(|path| (path.ends_with("eventlog"), path.clone()));
    found
}

fn recorded(name: &str) -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/eventlog/codecs").join(name))
}

#[test]
fn what_spark_wrote_is_read_whole() {
    let plain = fs::read(&recorded("none-single")[0]).expect("the plain log");
    for name in [
        "none-single",
        "zstd-single",
        "zstd-rolling",
        "lz4-single",
        "lz4-rolling",
        "lzf-single",
        "lzf-rolling",
        "snappy-single",
        "snappy-rolling",
        "gzip-rotated",
    ] {
        let mut text = Vec::new();
        for path in recorded(name) {
            let bytes = fs::read(&path).expect("a file of the log");
            let (out, end) = decode_whole(&bytes);
            assert_eq!(end, Ok(true), "{}", path.display());
            assert_eq!(decode(&bytes, &[1, 30], &[3, 700]).0, out, "{}", path.display());
            text.extend(out);
        }
        assert!(text == plain, "{name}: {} bytes, not {}", text.len(), plain.len());
    }
}

#[test]
fn what_a_killed_driver_left_is_read_to_its_last_block() {
    let plain = fs::read(&recorded("none-single")[0]).expect("the plain log");
    let mut text = Vec::new();
    for path in recorded("lzf-rolling-inprogress") {
        let (out, end) = decode_whole(&fs::read(path).expect("a file of the log"));
        assert_eq!(end, Ok(true));
        text.extend(out);
    }
    assert!(plain.starts_with(&text) && text.len() > 10_000, "{} bytes", text.len());
    let (text, end) = decode_whole(&fs::read(&recorded("lz4-single-inprogress")[0]).expect("it"));
    assert_eq!(end, Ok(true));
    assert!(plain.starts_with(&text) && text.len() > 10_000, "{} bytes", text.len());
}

/// Where a format has checksums a change of one bit is seen.
#[test]
fn checksums_are_verified() {
    let text = b"{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":1}\n".repeat(20);
    for (name, encode) in CODECS {
        if !["lz4 block", "lz4 frame", "snappy frame", "gzip"].contains(&name) {
            continue;
        }
        let bytes = encode(&text);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x04;
            let (out, end) = decode_whole(&changed);
            assert!(end != Ok(true) || out == text || at < PREFIX, "{name}: byte {at}");
        }
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let huge = 0x7fff_ffff;
    let lz4 = |compressed, original| lz4_block_header(0x20, compressed, original, 1);
    let block = |length: u32, bytes: &[u8]| {
        [b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01", length.to_be_bytes().as_slice(), bytes].concat()
    };
    let frame = |length: u32| {
        let mut bytes = lz4_frames(b"");
        bytes.truncate(7);
        bytes.extend(length.to_le_bytes());
        bytes
    };
    let cases = [
        ("lz4: larger than its block size", lz4(10, 40_000)),
        ("lz4: compressed to more than possible", lz4(huge, 32_000)),
        ("lz4: from nothing", lz4(0, 10)),
        ("lz4: negative", lz4(0xffff_ffff, 10)),
        ("snappy: 2 GiB", block(huge as u32, b"")),
        ("snappy: negative", block(0x9000_0000, b"")),
        // The block says that its four bytes become 2 GiB.
        ("snappy: more than its bytes can make", block(6, b"\xff\xff\xff\xff\x07\0")),
        ("snappy frame: more than 64 KiB", b"\xff\x06\0\0sNaPpY\0\xff\xff\xff".to_vec()),
        ("lz4 frame: more than its block size", frame(70_000)),
        ("lzf: from nothing", b"ZV\x01\0\0\0\x10".to_vec()),
        ("lzf: a copy from before the beginning", b"ZV\x01\0\x02\0\x03\x20\0".to_vec()),
        ("lzf: more than it says", b"ZV\x01\0\x03\0\x01\x01ab".to_vec()),
        ("zstd: a window of 2 GiB", vec![0x28, 0xb5, 0x2f, 0xfd, 0, (31 - 10) << 3, 1, 0, 0]),
        ("gzip: no deflate", b"\x1f\x8b\x07\0\0\0\0\0\0\0".to_vec()),
    ];
    for (name, bytes) in cases {
        let (out, end) = decode_whole(&bytes);
        assert!(matches!(end, Err(Failure::Damaged(_))), "{name}: {end:?}");
        assert!(out.is_empty(), "{name}");
    }
}
