//! Reading and diagnosing the log of a finished application of 100,000 tasks,
//! against `zstd -dc FILES | wc -l` (what a user would run to look at it at
//! all) and against the first answer of a real History Server about it (what
//! asking Spark itself would cost).
//!
//! Made by `make bench`, or by hand:
//!
//! ```sh
//! EVENT_LOGS=$(benches/make_many_tasks) cargo bench --bench event_log
//! ```
//!
//! All sides run in one process run, so that a busy machine slows all of them;
//! the figures are ratios of medians.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::diagnose;
use spark_exporter::eventlog::{LogFiles, ReadOptions, read, scan};
use spark_exporter::fetch::files::{Files, LocalFiles};

const ROUNDS: usize = 7;

/// The version whose History Server answers, as in `make_many_tasks`.
const SPARK: &str = "4.3.0";

fn main() -> ExitCode {
    let Some(directory) = std::env::var_os("EVENT_LOGS").map(PathBuf::from) else {
        println!("set EVENT_LOGS to what benches/make_many_tasks prints, or run make bench");
        return ExitCode::FAILURE;
    };
    match compare(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

fn compare(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let files = LocalFiles::at(path)?;
    let scan = scan(&files)?;
    let log = scan.logs.first().ok_or("no event log in it")?;
    let limits = Limits::default();
    let options = ReadOptions { cluster: "bench", limits: &limits };
    let (mut ours, mut reading, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        let outcome = read(log, &files, &options)?;
        reading.push(began.elapsed());
        let diagnosis = diagnose(&outcome.application, &Thresholds::default());
        ours.push(began.elapsed());
        drop(diagnosis);
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
        theirs.push(count_lines(log, &files)?);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!("read and diagnose            {ours:>10.3?}  (median of {ROUNDS})");
    println!("  of which reading           {:>10.3?}", median(reading));
    println!("zstd -dc FILES | wc -l       {theirs:>10.3?}");
    println!("  we take so many times that {:>10.2}", ours.as_secs_f64() / theirs.as_secs_f64());
    println!("peak memory: {}", peak_memory());
    let server = first_answer(path)?;
    println!("History Server, first /stages {server:>9.3?}");
    println!("  that takes so many times us {:>9.1}", server.as_secs_f64() / ours.as_secs_f64());
    Ok(())
}

/// How long a History Server that was just started takes for its first answer
/// about the stages of the application.
fn first_answer(directory: &Path) -> Result<Duration, Box<dyn std::error::Error>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spark/cluster");
    let mut server = Command::new(script)
        .args(["history", "--spark", SPARK, "--log-dir"])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let result = ask(&mut server);
    // It ends when its standard input closes.
    drop(server.stdin.take());
    server.wait()?;
    result
}

fn ask(server: &mut Child) -> Result<Duration, Box<dyn std::error::Error>> {
    let output = server.stdout.take().ok_or("no output")?;
    let url = BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .take_while(|line| line != "ready=true")
        .find_map(|line| line.strip_prefix("history=").map(str::to_owned))
        .ok_or("the History Server did not start")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let api = format!("{url}/api/v1/applications");
        let id = loop {
            let listed: serde_json::Value =
                serde_json::from_str(&reqwest::get(&api).await?.text().await?)?;
            if let Some(id) = listed[0]["id"].as_str() {
                break id.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        let began = Instant::now();
        let stages = reqwest::get(format!("{api}/{id}/stages?details=false")).await?;
        if !stages.status().is_success() {
            return Err(stages.status().to_string().into());
        }
        stages.bytes().await?;
        Ok(began.elapsed())
    })
}

fn count_lines(log: &LogFiles, files: &LocalFiles) -> Result<Duration, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let status = Command::new("sh")
        .args(["-c", "zstd -dcq \"$@\" | wc -l", "sh"])
        .args(log.files.iter().map(|file| files.display(&file.path)))
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
