//! Any bytes as a zip: its entries are listed and read, at most to the length
//! that it says, from any byte on; and never a panic.
//!
//! ```sh
//! mkdir -p fuzz/corpus/zip && cp tests/fixtures/zip/*.zip fuzz/corpus/zip/
//! cargo +nightly fuzz run zip -- -max_total_time=60
//! ```
#![no_main]

use std::io::Read;
use std::time::SystemTime;

use libfuzzer_sys::fuzz_target;
use spark_exporter::fetch::files::{EntryKind, Files, ZipFiles};

fuzz_target!(|bytes: &[u8]| {
    let Ok(zip) = ZipFiles::new(bytes.to_vec(), "fuzz.zip", SystemTime::UNIX_EPOCH) else {
        return;
    };
    let listing = zip.list().unwrap();
    let files = listing.entries.iter().filter(|entry| entry.kind == EntryKind::File);
    for (number, entry) in files.take(20).enumerate() {
        let Ok(reader) = zip.open(&entry.path, number as u64) else { continue };
        let mut read = Vec::new();
        // A lie is told by an error or by fewer bytes, never by more.
        let whole = reader.take(1 << 20).read_to_end(&mut read).is_ok();
        let said = entry.bytes.saturating_sub(number as u64);
        assert!(read.len() as u64 <= said);
        assert!(!whole || read.len() as u64 == said.min(1 << 20));
    }
});
