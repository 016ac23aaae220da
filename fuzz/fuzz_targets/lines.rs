//! Any bytes as lines: splitting them in pieces and batches gives what
//! splitting them at once gives.
//!
//! ```sh
//! cargo +nightly fuzz run --fuzz-dir fuzz lines -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use spark_exporter::eventlog::fuzzing::lines;

fuzz_target!(|bytes: &[u8]| lines(bytes));
