//! Any text as the output of `EXPLAIN`: a plan or none, never a panic.
//!
//! ```sh
//! cargo +nightly fuzz run --fuzz-dir fuzz explain -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use spark_exporter::texts::explain::read;

fuzz_target!(|bytes: &[u8]| {
    let _ = read(bytes);
});
