//! Real parts: Spark's servers and applications, Prometheus, and our own
//! daemon, each ended when its handle is dropped.
//!
//! The parts come by `tests/parts/`; a missing one fails the test with what
//! that script says.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Lines of a child that nobody has read yet; far more than any test makes.
const LINES: usize = 100_000;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program that runs until this is dropped.
pub(crate) struct Program {
    child: Child,
    /// The scripts of `tests/spark/` end when this closes.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    what: String,
}

impl Program {
    /// Starts a command and reads its lines (standard output, or standard
    /// error where `errors`).
    pub(crate) fn start(mut command: Command, what: &str, errors: bool) -> Self {
        command.stdin(Stdio::piped());
        if errors {
            command.stdout(Stdio::null()).stderr(Stdio::piped());
        } else {
            command.stdout(Stdio::piped()).stderr(Stdio::null());
        }
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        let (sender, lines) = sync_channel(LINES);
        let output: Box<dyn std::io::Read + Send> = if errors {
            Box::new(child.stderr.take().unwrap())
        } else {
            Box::new(child.stdout.take().unwrap())
        };
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // A full queue drops lines, so that the child never stalls.
                let _ = sender.try_send(line);
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, what: what.to_owned() }
    }

    /// Waits for a line that `pick` takes something from.
    pub(crate) fn wait_for<T>(
        &self,
        within: Duration,
        mut pick: impl FnMut(&str) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + within;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    if let Some(picked) = pick(&line) {
                        return picked;
                    }
                    seen.push(line);
                }
                Err(error) => panic!(
                    "{} did not say what was waited for within {within:?} ({error}); it said:\n{}",
                    self.what,
                    seen.join("\n")
                ),
            }
        }
    }

    /// Writes a line to its standard input.
    pub(crate) fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap_or_else(|| panic!("{} takes no input", self.what));
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .unwrap_or_else(|error| panic!("{} does not listen: {error}", self.what));
    }

    /// What it said and nobody has read yet.
    pub(crate) fn said(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// The value of a `key=value` line.
    pub(crate) fn value(&self, key: &str, within: Duration) -> String {
        self.wait_for(within, |line| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end; the exit code.
    pub(crate) fn end(&mut self, within: Duration) -> i32 {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{} did not end within {within:?}", self.what);
    }

    /// Sends SIGTERM and waits; the exit code.
    pub(crate) fn terminate(&mut self, within: Duration) -> i32 {
        self.signal("-TERM");
        self.end(within)
    }

    /// Sends SIGHUP: many servers then read their configuration again.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&self) {
        self.signal("-KILL");
    }

    fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal("-TERM");
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a script of `tests/parts/` prints last: where the part is.
pub(crate) fn part(arguments: &[&str]) -> PathBuf {
    let script = root().join("tests/parts").join(arguments[0]);
    let output = Command::new(&script)
        .args(&arguments[1..])
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    assert!(output.status.success(), "{} failed: it says above why", script.display());
    let text = String::from_utf8(output.stdout).unwrap();
    PathBuf::from(text.lines().last().expect("the script prints where the part is"))
}

pub(crate) fn spark_script(name: &str, version: &str) -> Command {
    part(&["spark", version]);
    Command::new(root().join("tests/spark").join(name))
}

/// A Standalone master and one worker on loopback.
pub(crate) struct Cluster {
    _program: Program,
    web: String,
}

impl Cluster {
    /// The master's web page.
    pub(crate) fn web(&self) -> String {
        self.web.clone()
    }
}

/// Servers are tried three times, each for a minute and some.
const SERVERS: Duration = Duration::from_mins(4);

/// Starts them; the second value is the master's URL.
pub(crate) fn standalone(version: &str) -> (Cluster, String) {
    let mut command = spark_script("cluster", version);
    command.args(["standalone", "--spark", version]);
    let program = Program::start(command, "the Standalone cluster", false);
    let within = SERVERS;
    let master = program.value("master", within);
    let web = program.value("web", within);
    program.value("ready", within);
    (Cluster { _program: program, web }, master)
}

/// A History Server over `directory`, and its URL.
pub(crate) fn history_server(version: &str, directory: &Path) -> (Program, String) {
    history_server_at(version, directory, None)
}

/// The same on a port that is known to be free.
pub(crate) fn history_server_at(
    version: &str,
    directory: &Path,
    port: Option<&str>,
) -> (Program, String) {
    let mut command = spark_script("cluster", version);
    command.args(["history", "--spark", version, "--log-dir"]).arg(directory);
    command.args(port.iter().flat_map(|port| ["--port", port]));
    let program = Program::start(command, "the History Server", false);
    let within = SERVERS;
    let url = program.value("history", within);
    program.value("ready", within);
    (program, url)
}

/// A workload under way.
pub(crate) struct Submitted {
    pub(crate) program: Program,
    pub(crate) app_id: String,
    pub(crate) ui: String,
}

/// Submits a workload of `tests/spark/workloads/` and waits until it says who
/// it is.
pub(crate) fn submit(
    version: &str,
    master: &str,
    log_directory: &Path,
    conf: &[&str],
    workload: &[&str],
) -> Submitted {
    let mut command = spark_script("submit", version);
    command.args(["--spark", version, "--master", master, "--event-log-dir"]).arg(log_directory);
    for pair in conf {
        command.args(["--conf", pair]);
    }
    command.args(workload);
    let program = Program::start(command, &format!("the workload {workload:?}"), false);
    let within = Duration::from_mins(2);
    let app_id = program.value("app_id", within);
    let ui = program.value("ui", within);
    Submitted { program, app_id, ui }
}

/// Our daemon on a free port, and its address.
pub(crate) fn daemon(arguments: &[&str]) -> (Program, String) {
    daemon_at("127.0.0.1:0", arguments)
}

/// The same where it listens at this address.
pub(crate) fn daemon_at(listen: &str, arguments: &[&str]) -> (Program, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    command.args(arguments).args(["--web.listen-address", listen, "--log.level", "trace"]);
    let program = Program::start(command, "spark-exporter", true);
    let address = program.wait_for(Duration::from_mins(1), |line| {
        let (_, rest) = line.split_once("address=")?;
        Some(rest.split_whitespace().next()?.trim_matches('"').to_owned())
    });
    (program, format!("http://{address}"))
}

/// A Prometheus that scrapes `target` (host:port) every second, and its URL.
pub(crate) fn prometheus(target: &str, folder: &Path) -> (Program, String) {
    let binary = part(&["prometheus"]).join("prometheus");
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: spark-exporter\n  \
         static_configs: [{{targets: ['{target}']}}]\n"
    );
    std::fs::write(&config, text).unwrap();
    let port = free_port();
    let mut command = Command::new(binary);
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let program = Program::start(command, "Prometheus", true);
    program.wait_for(Duration::from_mins(1), |line| {
        line.contains("Server is ready to receive web requests").then_some(())
    });
    (program, format!("http://127.0.0.1:{port}"))
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Asks servers on this machine. Made once, since that reads all the machine's
/// certificates, which takes a while in a test build; and without connections
/// that are kept, since each test has a runtime of its own, with which they end.
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
    });
    &CLIENT
}

/// The body of a GET that must succeed.
pub(crate) async fn get(url: &str) -> String {
    let response = client().get(url).send().await;
    let response = response.unwrap_or_else(|error| panic!("{url}: {error:?}"));
    assert!(response.status().is_success(), "{url}: {}", response.status());
    response.text().await.unwrap()
}

/// Asks again and again until `pick` takes something from the answer.
pub(crate) async fn until<T>(
    url: &str,
    within: Duration,
    mut pick: impl FnMut(&str) -> Option<T>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        let text = get(url).await;
        if let Some(picked) = pick(&text) {
            return picked;
        }
        assert!(Instant::now() < deadline, "{url}: not within {within:?}; at last:\n{text}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn exporter(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
    command.arg("diagnose").args(arguments).output().unwrap()
}

/// The JSON that `diagnose` prints.
pub(crate) fn diagnose(arguments: &[&str]) -> serde_json::Value {
    let output = exporter(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `diagnose` complains of, where it can read nothing.
pub(crate) fn diagnose_error(arguments: &[&str]) -> String {
    let output = exporter(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}
