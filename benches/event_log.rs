//! Reading and diagnosing the log of a finished application of 100,000 tasks,
//! against what a user would run instead:
//!
//! - `zstd -dc FILES | wc -l`, to look at it at all;
//! - the first answer of a real History Server about it;
//! - `spark-ignis` from PyPI, which looks for some of the same faults, on the
//!   same events in one plain file (it reads no rolling log).
//!
//! And of 1,000,000 tasks, against ourselves with 100,000.
//!
//! Made by `make bench`, or by hand:
//!
//! ```sh
//! EVENT_LOGS=$(benches/make_many_tasks) \
//!   MORE_EVENT_LOGS="$(benches/make_many_tasks 1000000) $(benches/make_many_tasks 1000000-one-stage)" \
//!   cargo bench --bench event_log
//! ```
//!
//! All sides run in turns in one run, so that a busy machine slows all of
//! them; the figures are ratios of medians, of the time that passed and of CPU
//! time (user and system, all threads), which another program's work changes
//! less. We read in a process of our own each time, which says how much memory
//! it took.

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
const LONG_ROUNDS: usize = 3;

/// The version whose History Server answers, as in `make_many_tasks`.
const SPARK: &str = "4.3.0";

/// Set in the process that only reads the log that it names.
const READ_ONLY: &str = "BENCH_READ_ONLY";

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let done = if let Some(path) = std::env::var_os(READ_ONLY) {
        read_it(Path::new(&path))
    } else if let Some(directory) = std::env::var_os("EVENT_LOGS") {
        compare(Path::new(&directory))
    } else {
        Err("set EVENT_LOGS to what benches/make_many_tasks prints, or run make bench".into())
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(path: &Path) -> Answer<()> {
    let files = LocalFiles::at(path)?;
    let scan = scan(&files)?;
    let log = scan.logs.first().ok_or("no event log in it")?;
    let plain = plain_file(log, &files)?;
    let ignis = ignis()?;
    let (mut ours, mut lines, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        ours.push(read_apart(path, round == 0)?);
        lines.push(count_lines(log, &files)?);
        if round < LONG_ROUNDS {
            peer.push(run_ignis(&ignis, plain.path())?);
        }
    }
    let (ours, lines, peer) = (Spent::median(&ours), Spent::median(&lines), Spent::median(&peer));
    println!("read and diagnose              {ours}  (medians of {ROUNDS})");
    println!("zstd -dc FILES | wc -l         {lines}");
    println!("  we take so many times that   {}", ours.ratio(lines));
    println!("spark-ignis, plain file        {peer}  (medians of {LONG_ROUNDS})");
    println!("  that takes so many times us  {}", peer.ratio(ours));
    let server = first_answer(path)?;
    println!("History Server, first /stages  {server:>10.3?}");
    println!(
        "  that takes so many times us  {:>10.2}",
        server.as_secs_f64() / ours.wall.as_secs_f64()
    );
    let more = std::env::var("MORE_EVENT_LOGS").unwrap_or_default();
    for directory in more.split_whitespace() {
        let directory = PathBuf::from(directory);
        let (mut many, mut few) = (Vec::new(), Vec::new());
        for round in 0..LONG_ROUNDS {
            many.push(read_apart(&directory, round == 0)?);
            few.push(read_apart(path, false)?);
        }
        let (many, few) = (Spent::median(&many), Spent::median(&few));
        println!("read and diagnose              {many}  (medians of {LONG_ROUNDS})");
        println!("  so many times the 100,000    {}", many.ratio(few));
    }
    Ok(())
}

/// What a child cost.
#[derive(Debug, Clone, Copy)]
struct Spent {
    wall: Duration,
    cpu: Duration,
}

impl Spent {
    fn median(all: &[Self]) -> Self {
        Self {
            wall: median(all.iter().map(|spent| spent.wall).collect()),
            cpu: median(all.iter().map(|spent| spent.cpu).collect()),
        }
    }

    fn ratio(self, other: Self) -> String {
        let of = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
        format!("{:>10.2}  CPU {:>10.2}", of(self.wall, other.wall), of(self.cpu, other.cpu))
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>10.3?}  CPU {:>10.3?}", self.wall, self.cpu)
    }
}

/// CPU time of all children that were waited for, as `/proc` counts it.
fn cpu_of_children() -> Duration {
    /// Linux says so to every program on every machine (`USER_HZ`).
    const TICKS_A_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    Duration::from_secs_f64(ticks / TICKS_A_SECOND)
}

/// Reads and diagnoses the first log of a directory; prints the seconds that
/// it took and what it was.
fn read_it(path: &Path) -> Answer<()> {
    let limits = Limits::default();
    let options = ReadOptions { cluster: "bench", limits: &limits };
    let began = Instant::now();
    let files = LocalFiles::at(path)?;
    let scan = scan(&files)?;
    let log = scan.logs.first().ok_or("no event log in it")?;
    let outcome = read(log, &files, &options)?;
    let diagnosis = diagnose(&outcome.application, &Thresholds::default());
    println!("{}", began.elapsed().as_secs_f64());
    let tasks: u64 = outcome.application.stages.iter().map(|stage| stage.tasks.succeeded).sum();
    println!(
        "{}: {tasks} tasks, {} lines, {:.1} MB compressed, {:.1} MB of JSON, {} findings, \
         peak memory {}",
        outcome.application.id.app_id,
        outcome.statistics.lines,
        outcome.statistics.bytes_compressed as f64 / 1e6,
        outcome.statistics.bytes_decompressed as f64 / 1e6,
        diagnosis.findings.len(),
        peak_memory(),
    );
    Ok(())
}

/// [`read_it`] in a process of its own.
fn read_apart(path: &Path, say: bool) -> Answer<Spent> {
    let before = cpu_of_children();
    let output = Command::new(std::env::current_exe()?).env(READ_ONLY, path).output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("{}: {text}", path.display()).into());
    }
    let (seconds, what) = text.split_once('\n').ok_or("no answer")?;
    if say {
        println!("{}", what.trim());
    }
    let cpu = cpu_of_children().saturating_sub(before);
    Ok(Spent { wall: Duration::from_secs_f64(seconds.parse()?), cpu })
}

/// How long a History Server that was just started takes for its first answer
/// about the stages of the application.
fn first_answer(directory: &Path) -> Answer<Duration> {
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

fn ask(server: &mut Child) -> Answer<Duration> {
    let output = server.stdout.take().ok_or("no output")?;
    // To the last line: it would end for want of a reader.
    let said: Vec<String> = BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .take_while(|line| line != "ready=true")
        .collect();
    let url = said.iter().find_map(|line| line.strip_prefix("history="));
    let url = url.ok_or("the History Server did not start")?;
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

fn decompress(log: &LogFiles, files: &LocalFiles, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("zstd -dcq \"$@\" {command}"), "sh"])
        .args(log.files.iter().map(|file| files.display(&file.path)));
    shell
}

fn count_lines(log: &LogFiles, files: &LocalFiles) -> Answer<Spent> {
    timed(decompress(log, files, "| wc -l").stdout(Stdio::null()), &[0])
}

fn plain_file(log: &LogFiles, files: &LocalFiles) -> Answer<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new()?;
    timed(decompress(log, files, "").stdout(file.reopen()?), &[0])?;
    Ok(file)
}

fn ignis() -> Answer<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts/spark-ignis");
    let output = Command::new(script).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let folder = text.lines().last().ok_or("no spark-ignis: it says above why")?;
    Ok(Path::new(folder).join("bin/python"))
}

fn run_ignis(python: &Path, plain: &Path) -> Answer<Spent> {
    let mut command = Command::new(python);
    command.args(["-c", "from ignis.cli import main; main()", "analyze"]).arg(plain);
    // 1 where it has found something.
    timed(command.args(["--output", "json"]).stdout(Stdio::null()), &[0, 1])
}

fn timed(command: &mut Command, right: &[i32]) -> Answer<Spent> {
    let (before, began) = (cpu_of_children(), Instant::now());
    let status = command.status()?;
    if !status.code().is_some_and(|code| right.contains(&code)) {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(Spent { wall: began.elapsed(), cpu: cpu_of_children().saturating_sub(before) })
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
