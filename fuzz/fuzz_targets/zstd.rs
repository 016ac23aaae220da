//! Any bytes as frames of zstd: decompressing ends, never panics, and gives the same
//! in whatever pieces they come.
//!
//! ```sh
//! cargo +nightly fuzz run --fuzz-dir fuzz zstd -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use spark_exporter::eventlog::fuzzing::decompress;

fuzz_target!(|bytes: &[u8]| decompress("zstd", bytes));
