//! Reading the log of a finished application of 100,000 tasks, against
//! `zstd -dc FILES | wc -l`: what a user would run to look at it at all.
//!
//! ```sh
//! benches/make_many_tasks             # once; needs Java 17, minutes
//! cargo bench --bench event_log [PATH]
//! ```
//!
//! Both sides run alternately in one process run, so that a busy machine slows
//! both; the figure is the ratio of the medians.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use spark_exporter::config::Limits;
use spark_exporter::eventlog::{LogFiles, ReadOptions, locate, read};

const ROUNDS: usize = 7;

fn main() -> ExitCode {
    let Some(path) = path() else {
        println!("no log to read: make one with benches/make_many_tasks, or give its path");
        return ExitCode::SUCCESS;
    };
    match compare(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// From the command line, the environment, or where `make_many_tasks` puts
/// it.
fn path() -> Option<PathBuf> {
    let argument = std::env::args_os().skip(1).find(|argument| argument != "--bench");
    if let Some(path) = argument.or_else(|| std::env::var_os("EVENT_LOG")) {
        return Some(path.into());
    }
    let made =
        PathBuf::from(std::env::var_os("HOME")?).join(".cache/spark-exporter/bench/many_tasks");
    made.exists().then_some(made)
}

fn compare(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let scan = locate(path)?;
    let log = scan.logs.first().ok_or("no event log in it")?;
    let limits = Limits::default();
    let options = ReadOptions { cluster: "bench", limits: &limits };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        let outcome = read(log, &options)?;
        ours.push(began.elapsed());
        if round == 0 {
            let tasks: u64 =
                outcome.application.stages.iter().map(|stage| stage.tasks.succeeded).sum();
            println!(
                "{}: {} tasks, {} lines, {:.1} MB compressed, {:.1} MB of JSON",
                outcome.application.id.app_id,
                tasks,
                outcome.statistics.lines,
                outcome.statistics.bytes_compressed as f64 / 1e6,
                outcome.statistics.bytes_decompressed as f64 / 1e6,
            );
            println!("peak memory after the first reading: {}", peak_memory());
        }
        drop(outcome);
        theirs.push(count_lines(log)?);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!("eventlog::read             {ours:>10.3?}  (median of {ROUNDS})");
    println!("zstd -dc FILES | wc -l     {theirs:>10.3?}");
    println!("ratio                      {:>10.2}", ours.as_secs_f64() / theirs.as_secs_f64());
    println!("peak memory: {}", peak_memory());
    Ok(())
}

fn count_lines(log: &LogFiles) -> Result<Duration, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let status = Command::new("sh")
        .args(["-c", "zstd -dcq \"$@\" | wc -l", "sh"])
        .args(&log.files)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("zstd failed".into());
    }
    Ok(began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// `VmHWM` of this process: the most memory it ever had.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
