//! Any bytes as the log of a driver: never a panic, never more lines than
//! the limits hold.
//!
//! ```sh
//! cargo +nightly fuzz run --fuzz-dir fuzz driver_log -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use spark_exporter::texts::driver_log::read;

fuzz_target!(|bytes: &[u8]| {
    let _ = read("default", "driver.log", bytes);
});
