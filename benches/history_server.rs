//! What a real History Server spends on 20 finished applications: CPU seconds
//! of its process while we read their event logs (`/logs`, a zip each), and
//! while we ask its REST API instead. It is started anew for each way, and has
//! listed the applications before the counting begins.
//!
//! ```sh
//! cargo bench --bench history_server
//! ```

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use spark_exporter::config::{HttpConfig, Limits, ServerUrl};
use spark_exporter::eventlog::{Listed, ReadOptions, read_listed};
use spark_exporter::fetch::{HttpClient, Spool, Timeouts};
use spark_exporter::model::Application;
use spark_exporter::rest::applications::{self, ApplicationInfo, Filter};
use spark_exporter::rest::{Api, completed, logs};

const SPARK: &str = "4.3.0";
const APPLICATIONS: usize = 20;

/// Recorded runs, each of them under 20 ids: 42 tasks in 614 kB of JSON, and
/// 1,001 tasks in 4.8 MB.
const RUNS: [&str; 2] = ["healthy", "tiny_tasks"];

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    for run in RUNS {
        if let Err(error) = compare(run) {
            println!("{run}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn compare(run: &str) -> Answer<()> {
    let directory = tempfile::tempdir()?;
    write(run, directory.path())?;
    let by_log = measure(directory.path(), Way::Log)?;
    let by_rest = measure(directory.path(), Way::Rest)?;
    println!("{APPLICATIONS} times {run}, {} tasks each", by_log.tasks / APPLICATIONS as u64);
    for (name, spent) in [("/logs (zip)", &by_log), ("REST", &by_rest)] {
        println!(
            "  {name:<12} {:>6.2} CPU-seconds of the History Server, {:>6.2} s until all were read",
            spent.cpu.as_secs_f64(),
            spent.wall.as_secs_f64()
        );
    }
    let ratio = by_rest.cpu.as_secs_f64() / by_log.cpu.as_secs_f64();
    println!("  REST costs it {ratio:.1} times as much");
    if by_log.tasks != by_rest.tasks {
        return Err(format!("{} tasks by log, {} by REST", by_log.tasks, by_rest.tasks).into());
    }
    Ok(())
}

/// Spark's own writer writes the run 20 times, rolling and zstd as by default.
fn write(run: &str, directory: &Path) -> Answer<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = root.join("examples/logs").join(run).join(SPARK);
    let log = fs::read_dir(recorded)?.next().ok_or("not recorded")??.path();
    let status = Command::new(root.join("tests/spark/write_logs"))
        .args(["--spark", SPARK, "--together"])
        .arg(log)
        .arg(directory)
        .args(["zstd-rolling1"; APPLICATIONS])
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err("write_logs failed".into()) }
}

#[derive(Clone, Copy)]
enum Way {
    Log,
    Rest,
}

struct Spent {
    cpu: Duration,
    wall: Duration,
    /// That succeeded, of all applications.
    tasks: u64,
}

fn measure(directory: &Path, way: Way) -> Answer<Spent> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spark/cluster");
    let mut server = Command::new(script)
        .args(["history", "--spark", SPARK, "--log-dir"])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let result = read_all(&mut server, way);
    // It ends when its standard input closes.
    drop(server.stdin.take());
    server.wait()?;
    result
}

fn read_all(server: &mut Child, way: Way) -> Answer<Spent> {
    let output = server.stdout.take().ok_or("no output")?;
    // To the last line: it would end for want of a reader.
    let said: Vec<String> = BufReader::new(output)
        .lines()
        .map_while(Result::ok)
        .take_while(|line| line != "ready=true")
        .collect();
    let url = said.iter().find_map(|line| line.strip_prefix("history="));
    let url = url.ok_or("the History Server did not start")?;
    let java = child_of(server.id())?;
    let url: ServerUrl = url.parse()?;
    let limits = Limits::default();
    let client =
        HttpClient::new(&HttpConfig::default(), Timeouts::HISTORY_SERVER, (&limits).into())?;
    let api = Api::new(&client, &url);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listed = loop {
            let listed = applications::get(&api, Filter::default()).await?;
            if listed.len() == APPLICATIONS {
                break listed;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        let before = settled(&java).await?;
        let began = Instant::now();
        let mut tasks = 0;
        for application in &listed {
            let read = match way {
                Way::Log => by_log(&api, application, &limits).await?,
                Way::Rest => by_rest(&api, application).await?,
            };
            tasks += read.stages.iter().map(|stage| stage.tasks.succeeded).sum::<u64>();
        }
        let wall = began.elapsed();
        let cpu = settled(&java).await?.saturating_sub(before);
        Ok(Spent { cpu, wall, tasks })
    })
}

async fn by_log(api: &Api, application: &ApplicationInfo, limits: &Limits) -> Answer<Application> {
    let attempt = application.latest().ok_or("no attempt")?;
    let spool = Spool::new(&std::env::temp_dir(), limits.spool_size.bytes());
    let files = logs::get(api, application, attempt, &spool).await?;
    let listed = Listed {
        app_id: application.id.get().to_owned(),
        attempt_id: None,
        name: None,
        user: None,
        start: attempt.start(),
        completed: attempt.is_completed(),
        end: attempt.end(),
    };
    let options = ReadOptions { cluster: "bench", limits };
    Ok(read_listed(&files, &listed, &options)?.application)
}

async fn by_rest(api: &Api, application: &ApplicationInfo) -> Answer<Application> {
    let attempt = application.latest().ok_or("no attempt")?;
    let options = completed::Options::default();
    Ok(completed::read(api, "bench", application, attempt, options).await?)
}

/// The folder of `/proc` of the one child of a process.
fn child_of(parent: u32) -> Answer<PathBuf> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(fields) = stat(&path) else { continue };
        if fields.get(1).and_then(|field| field.parse().ok()) == Some(parent) {
            return Ok(path);
        }
    }
    Err("the History Server's process is not there".into())
}

/// The fields of `stat` after the name: state, parent, ...
fn stat(process: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// User and system time of a process, all its threads together.
fn cpu_time(process: &Path) -> Answer<Duration> {
    /// Linux says so to every program on every machine (`USER_HZ`).
    const TICKS_A_SECOND: f64 = 100.0;
    let fields = stat(process).ok_or("the History Server ended")?;
    let ticks = |field: usize| -> Answer<f64> { Ok(fields.get(field).ok_or("no time")?.parse()?) };
    Ok(Duration::from_secs_f64((ticks(11)? + ticks(12)?) / TICKS_A_SECOND))
}

/// Its CPU time, once it uses less than 3 % of a core (it looks for new logs
/// every second).
async fn settled(process: &Path) -> Answer<Duration> {
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut before = cpu_time(process)?;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = cpu_time(process)?;
        if now.saturating_sub(before) < Duration::from_millis(60) || Instant::now() > deadline {
            return Ok(now);
        }
        before = now;
    }
}
