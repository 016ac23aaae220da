//! A directory of 5,000 small logs: how many are listed and how many are read
//! and diagnosed in a second, and whether memory stays flat. The logs are the
//! recorded runs of `examples/`, each under many names.
//!
//! ```sh
//! cargo bench --bench many_logs
//! ```

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::diagnose;
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;

const LOGS: usize = 5_000;
const LISTINGS: usize = 5;

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Answer<()> {
    let directory = tempfile::tempdir()?;
    fill(directory.path())?;
    let mut listing = Vec::new();
    let files = LocalFiles::at(directory.path())?;
    for _ in 0..LISTINGS {
        let began = Instant::now();
        let scan = scan(&files)?;
        listing.push(began.elapsed());
        if scan.logs.len() != LOGS || !scan.skipped.is_empty() {
            return Err(format!("{} logs, not {LOGS}", scan.logs.len()).into());
        }
    }
    listing.sort_unstable();
    let listing = listing.get(LISTINGS / 2).copied().unwrap_or_default();
    let scan = scan(&files)?;
    let limits = Limits::default();
    let options = ReadOptions { cluster: "bench", limits: &limits };
    let (mut compressed, mut json, mut findings) = (0, 0, 0);
    let mut memory = Vec::new();
    let began = Instant::now();
    for (number, log) in scan.logs.iter().enumerate() {
        let outcome = read(log, &files, &options)?;
        findings += diagnose(&outcome.application, &Thresholds::default()).findings.len();
        compressed += outcome.statistics.bytes_compressed;
        json += outcome.statistics.bytes_decompressed;
        if (number + 1) % (LOGS / 5) == 0 {
            memory.push(resident_memory());
        }
    }
    let reading = began.elapsed();
    println!(
        "{LOGS} logs, {:.0} MB compressed, {:.0} MB of JSON, {findings} findings",
        compressed as f64 / 1e6,
        json as f64 / 1e6
    );
    println!("list               {listing:>10.3?}  {:>8.0} logs a second", per_second(listing));
    println!("read and diagnose  {reading:>10.3?}  {:>8.0} logs a second", per_second(reading));
    println!("resident memory after each fifth: {}", memory.join(", "));
    Ok(())
}

fn per_second(time: Duration) -> f64 {
    LOGS as f64 / time.as_secs_f64()
}

/// Links to the recorded logs, so that they take no room.
fn fill(directory: &Path) -> Answer<()> {
    let recorded = recorded()?;
    for (number, log) in recorded.iter().cycle().take(LOGS).enumerate() {
        let name = log.file_name().and_then(|name| name.to_str()).ok_or("a name")?;
        // After the prefix that makes it a log, before the suffix that says its codec.
        let target = directory.join(match name.strip_prefix("eventlog_v2_") {
            Some(rest) => format!("eventlog_v2_{number}-{rest}"),
            None => format!("{number}-{name}"),
        });
        if log.is_dir() {
            fs::create_dir(&target)?;
            for file in fs::read_dir(log)? {
                let file = file?;
                link(&file.path(), &target.join(file.file_name()))?;
            }
        } else {
            link(log, &target)?;
        }
    }
    Ok(())
}

fn link(from: &Path, to: &Path) -> Answer<()> {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to)?;
    }
    Ok(())
}

fn recorded() -> Answer<Vec<PathBuf>> {
    let mut logs = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs");
    for run in fs::read_dir(root)? {
        for version in fs::read_dir(run?.path())? {
            for log in fs::read_dir(version?.path())? {
                logs.push(log?.path());
            }
        }
    }
    logs.sort();
    Ok(logs)
}

/// `VmRSS` of this process.
fn resident_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
