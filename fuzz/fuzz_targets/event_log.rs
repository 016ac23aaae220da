//! Any bytes as an event log: reading ends, and never panics.
//!
//! ```sh
//! cargo +nightly fuzz run event_log -- -max_total_time=60
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use spark_exporter::config::Limits;
use spark_exporter::eventlog::{ReadOptions, read_from};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        line_size: "64KiB".parse().unwrap(),
        log_size: "1MiB".parse().unwrap(),
        stages: 50,
        task_spans: 100,
        tasks_per_stage: 50,
        ..Limits::default()
    };
    let _ = read_from(bytes, "fuzz", &ReadOptions { cluster: "fuzz", limits: &limits });
});
