//! Against zips of real History Servers, and against the `zip` crate, which
//! shares no code with the reader.

use std::io::{Cursor, Write};
use std::path::Path;

use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/fixtures/zip").join(name)).expect(name)
}

fn open(bytes: Vec<u8>) -> Result<ZipFiles, String> {
    ZipFiles::new(bytes, "x.zip", NOW).map_err(|error| error.to_string())
}

fn text(files: &ZipFiles, path: &str, from: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut reader = files.open(path, from).map_err(|error| error.to_string())?;
    reader.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn zip_of<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    options: SimpleFileOptions,
) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(name, options).expect("into memory");
        writer.write_all(bytes).expect("into memory");
    }
    writer.finish().expect("into memory").into_inner()
}

fn deflated() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

#[test]
fn what_a_real_server_sends() {
    let files = open(fixture("rolling-3.5.9.zip")).expect("a zip");
    let listing = files.list().expect("a listing");
    assert_eq!(listing.entries.len(), 14);
    let folder = "eventlog_v2_app-20261130032031-0000";
    let directory = listing.entries.iter().find(|entry| entry.path == folder).expect("listed");
    assert_eq!(directory.kind, EntryKind::Directory);
    // In order they are the log that was split.
    let mut whole = Vec::new();
    for number in 1..=12 {
        let path = format!("{folder}/events_{number}_app-20261130032031-0000.zstd");
        let entry = listing.entries.iter().find(|entry| entry.path == path).expect("listed");
        let packed = text(&files, &path, 0).expect("reads");
        assert_eq!(packed.len() as u64, entry.bytes);
        zstd::stream::copy_decode(packed.as_slice(), &mut whole).expect("zstd");
        assert_eq!(text(&files, &path, 7).expect("reads"), packed[7..]);
        assert_eq!(text(&files, &path, 1 << 40).expect("reads"), b"");
    }
    let log =
        format!("tests/fixtures/eventlog/3.5.9/{folder}/events_1_app-20261130032031-0000.zstd");
    let log = File::open(log).expect("the log");
    let mut plain = Vec::new();
    zstd::stream::copy_decode(log, &mut plain).expect("zstd");
    assert_eq!(whole, plain);
}

#[test]
fn several_entries_are_read_at_a_time() {
    let files = open(fixture("attempts-4.3.0.zip")).expect("a zip");
    let names = ["local-1796009084799_1.zstd", "local-1796009084799_2.zstd"];
    let mut readers = names.map(|name| files.open(name, 0).expect("opens"));
    let mut read = [Vec::new(), Vec::new()];
    loop {
        let mut buffer = [0; 1_000];
        let counts = [0, 1].map(|at| {
            let count = readers[at].read(&mut buffer).expect("reads");
            read[at].extend_from_slice(&buffer[..count]);
            count
        });
        if counts == [0, 0] {
            break;
        }
    }
    for (name, read) in names.iter().zip(read) {
        assert_eq!(read, text(&files, name, 0).expect("reads"));
    }
}

#[test]
fn a_file_is_read_where_it_lies() {
    let name = "tests/fixtures/zip/single-4.3.0.zip";
    let files = ZipFiles::of_file(File::open(name).expect("opens"), name).expect("a zip");
    assert_eq!(files.display(""), name);
    assert_eq!(files.display("a"), format!("{name}!/a"));
    let log = text(&files, "local-1796009084799.zstd", 0).expect("reads");
    let plain = std::fs::read("tests/fixtures/eventlog/4.3.0/local-1796009084799.zstd");
    assert_eq!(log, plain.expect("the log"));
    assert_eq!(files.open("b", 0).err().expect("nothing there").kind, FilesErrorKind::NotFound);
}

/// A driver's own UI answers so.
#[test]
fn a_zip_without_entries_is_one() {
    let mut empty = b"PK\x05\x06".to_vec();
    empty.resize(22, 0);
    let files = open(empty).expect("a zip");
    assert!(files.is_empty());
}

#[test]
fn names_are_only_names() {
    let names = ["../../etc/passwd", "/etc/passwd", "a/./b", "C:\\x"];
    let files = open(zip_of(names.map(|name| (name, name.as_bytes())), deflated())).expect("a zip");
    for name in names {
        assert_eq!(text(&files, name, 0).expect("reads"), name.as_bytes());
    }
    assert_eq!(files.open("etc/passwd", 0).err().expect("no entry").kind, FilesErrorKind::NotFound);
}

#[test]
fn wherever_it_is_cut_it_is_refused() {
    let whole = fixture("attempts-4.3.0.zip");
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1, whole.len() - 22]) {
        let error = open(whole[..length].to_vec()).expect_err("cut");
        assert!(error.starts_with("cannot read x.zip: "), "{error}");
        let expected = if length < 4 { "no zip" } else { "the zip is cut" };
        assert!(error.contains(expected), "{length}: {error}");
    }
}

#[test]
fn what_is_no_zip_is_said_to_be_none() {
    for bytes in [&b""[..], b"PK", b"<html>Sign in</html>", &vec![0; 100_000]] {
        let error = open(bytes.to_vec()).expect_err("no zip");
        assert!(error.contains("it is no zip"), "{error}");
    }
}

#[test]
fn a_wrong_byte_is_noticed_at_the_latest_at_the_end() {
    let whole = fixture("single-4.3.0.zip");
    let name = "local-1796009084799.zstd";
    // Within the data of the only entry.
    for at in (60..20_000).step_by(499) {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x20;
        let error = text(&open(wrong).expect("a directory"), name, 0).expect_err("wrong");
        assert!(error.contains("the zip is damaged"), "{at}: {error}");
    }
}

#[test]
fn a_bomb_gives_no_more_than_it_says() {
    let bomb = vec![0; 64 << 20];
    let mut zip = zip_of([("bomb", bomb.as_slice())], deflated());
    let files = open(zip.clone()).expect("a zip");
    let mut few = vec![0; 1_000];
    files.open("bomb", 0).expect("opens").read_exact(&mut few).expect("reads");
    // The directory claims 1,000 bytes: there it ends, in an error.
    let header = zip.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").expect("a directory");
    zip[header + 24..header + 28].copy_from_slice(&1_000_u32.to_le_bytes());
    let mut reader = open(zip.clone()).expect("a zip").open("bomb", 0).expect("opens");
    let mut read = 0;
    let error = loop {
        match reader.read(&mut few) {
            Ok(count) => read += count,
            Err(error) => break error.to_string(),
        }
        assert!(read <= 2_000);
    };
    assert!(error.contains("longer than the zip says"), "{error}");
    // More than deflate can do.
    zip[header + 24..header + 28].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let error = text(&open(zip).expect("a zip"), "bomb", 0).expect_err("impossible");
    assert!(error.contains("contradict each other"), "{error}");
}

#[test]
fn too_many_entries_are_refused_before_any_is_kept() {
    let end = |before: usize, members: u64, bytes: u64| {
        let mut zip = vec![0; before];
        let record = zip.len() as u64;
        zip.extend(b"PK\x06\x06");
        zip.resize(before + 32, 0);
        for number in [members, bytes, 0] {
            zip.extend(number.to_le_bytes());
        }
        zip.extend(b"PK\x06\x07");
        zip.extend([0; 4]);
        zip.extend(record.to_le_bytes());
        zip.extend([0; 4]);
        zip.extend(b"PK\x05\x06");
        zip.extend([0; 4]);
        zip.extend([0xff; 12]);
        zip.extend([0; 2]);
        open(zip).expect_err("too much")
    };
    for (error, expected) in [
        (end(0, u64::MAX, 0), "entries, more than any event log has"),
        (end(40 << 20, 1, 33 << 20), "bytes, more than any event log has"),
        (end(0, 1, u64::MAX), "not where it should be"),
        (end(1_000, 5, 900), "breaks off"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_cannot_be_unpacked_names_why() {
    let mut zip = zip_of([("a", &b"text"[..])], deflated());
    let header = zip.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").expect("a directory");
    zip[header + 10] = 93;
    let error = text(&open(zip.clone()).expect("a zip"), "a", 0).expect_err("zstd");
    assert!(error.contains("method 93"), "{error}");
    zip[header + 8] |= 1;
    let error = text(&open(zip).expect("a zip"), "a", 0).expect_err("encrypted");
    assert!(error.contains("encrypted"), "{error}");
}

proptest! {
    /// Any entries in any order, stored or deflated, with large-file fields or
    /// without, are read as the `zip` crate wrote them.
    #[test]
    fn what_was_put_in_comes_out(
        entries in prop::collection::btree_map("[a-z/._0-9]{0,20}[a-z]", prop::collection::vec(any::<u8>(), 0..3_000), 0..8),
        stored: bool,
        large: bool,
        comment in "[a-z]{0,40}",
        from in 0_usize..4_000,
    ) {
        let method = if stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let options = SimpleFileOptions::default().compression_method(method).large_file(large);
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.set_comment(comment).expect("short");
        for (name, bytes) in &entries {
            writer.start_file(name.as_str(), options).expect("into memory");
            writer.write_all(bytes).expect("into memory");
        }
        let files = open(writer.finish().expect("into memory").into_inner()).expect("a zip");
        let listing = files.list().expect("a listing");
        let listed: Vec<_> = listing.entries.iter().map(|entry| (&entry.path, entry.bytes)).collect();
        let expected: Vec<_> = entries.iter().map(|(name, bytes)| (name, bytes.len() as u64)).collect();
        prop_assert_eq!(listed, expected);
        for (name, bytes) in &entries {
            let rest = bytes.get(from..).unwrap_or_default();
            prop_assert_eq!(text(&files, name, from as u64).expect("reads"), rest);
        }
    }

    /// No bytes make it panic, or read more than there can be.
    #[test]
    fn any_bytes_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = fixture("attempts-4.3.0.zip");
        // Where the structure is: the headers and the end.
        let end = bytes.len();
        for (at, byte) in changes {
            let at = at.index(260);
            let at = if at < 60 { at } else { end - 1 - (at - 60) };
            bytes[at] = byte;
        }
        if cut.index(4) == 0 {
            bytes.truncate(cut.index(end));
        }
        if let Ok(files) = open(bytes) {
            for entry in files.list().expect("a listing").entries {
                let read = text(&files, &entry.path, 0).map_or(0, |bytes| bytes.len() as u64);
                prop_assert!(read <= entry.bytes);
            }
        }
    }
}
