//! Any bytes as snappy's own frames: decompressing ends, never panics, and gives the same
//! in whatever pieces they come.
//!
//! ```sh
//! cargo +nightly fuzz run --fuzz-dir fuzz snappy_frame -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use spark_exporter::eventlog::fuzzing::decompress;

fuzz_target!(|bytes: &[u8]| decompress("snappy_frame", bytes));
