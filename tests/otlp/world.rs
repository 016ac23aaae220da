//! Recorded runs that ended just now, and the daemon that reads them and sends
//! what it finds, set up by OpenTelemetry's own variables.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::ended_now;
use crate::common::real::Program;
use crate::scraped::Scrape;

/// Generous: the machine may be busy with a compiler.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// A run of every sort: skewed, failed, spilled, streamed, one that is lost.
pub(crate) const RUNS: [(&str, &str); 9] = [
    ("hot_key/4.3.0", "app-otlp-skewed"),
    ("healthy/4.3.0", "app-otlp-healthy"),
    ("spill/4.3.0", "app-otlp-spill"),
    ("application_failed/4.3.0", "app-otlp-failed"),
    ("streaming_behind/4.3.0", "app-otlp-stream"),
    ("executor_heap_oom/4.3.0", "app-otlp-oom"),
    ("stage_retries/4.3.0", "app-otlp-retries"),
    ("python_udf/3.5.9", "app-otlp-python"),
    ("job_failed/4.3.0", "app-otlp-job"),
];

/// A folder with event logs of these runs, ended now.
pub(crate) fn logs(runs: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (recorded, id) in runs {
        write_log(folder.path(), recorded, id);
    }
    folder
}

pub(crate) fn write_log(folder: &Path, recorded: &str, id: &str) {
    // Whole at once, as the rename at the end of a run makes it.
    let partial = folder.join(format!(".{id}"));
    std::fs::write(&partial, ended_now(recorded, id)).unwrap();
    std::fs::rename(partial, folder.join(id)).unwrap();
}

/// How a daemon is started: variables of the environment, lines of the file
/// and flags.
#[derive(Debug, Default, Clone)]
pub(crate) struct Setup {
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
    file: String,
}

impl Setup {
    /// Everything to one endpoint, metrics each second.
    pub(crate) fn to(protocol: &str, endpoint: &str) -> Self {
        Self::default()
            .with("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .with("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
            .with("OTEL_METRIC_EXPORT_INTERVAL", "1000")
    }

    pub(crate) fn with(mut self, variable: &str, value: &str) -> Self {
        self.variables.push((variable.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// A line of YAML for the daemon's file.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.file += line;
        self.file.push('\n');
        self
    }

    /// On a folder of event logs that is looked at every second.
    pub(crate) fn start(&self, logs: &Path) -> Exporter {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(CONFIG);
        write_config(&file, &self.file);
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        // What the machine that runs the test sets is not ours.
        for (name, _) in std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("OTEL_")))
        {
            command.env_remove(name);
        }
        command
            .arg("--config.file")
            .arg(&file)
            .arg("--event-log.dir")
            .arg(logs)
            .args(["--web.listen-address", "127.0.0.1:0", "--log.level", "debug"])
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let program = Program::start(command, "spark-exporter", true);
        let mut said = Vec::new();
        let address = program.wait_for(SOON, |line| {
            said.push(line.to_owned());
            let (_, rest) = line.split_once("address=")?;
            Some(rest.split_whitespace().next()?.trim_matches('"').to_owned())
        });
        Exporter { program, address: format!("http://{address}"), said, folder }
    }
}

/// The daemon.
pub(crate) struct Exporter {
    pub(crate) program: Program,
    pub(crate) address: String,
    /// Its lines up to the one with its address.
    pub(crate) said: Vec<String>,
    folder: tempfile::TempDir,
}

const CONFIG: &str = "spark-exporter.yml";

fn write_config(file: &Path, lines: &str) {
    std::fs::write(file, format!("intervals: {{event_log_dir: 1s}}\n{lines}")).unwrap();
}

impl Exporter {
    /// Gives it other lines of YAML, which it takes.
    pub(crate) fn reload(&self, lines: &str) {
        write_config(&self.folder.path().join(CONFIG), lines);
        self.program.hang_up();
        self.program.wait_for(SOON, |line| {
            assert!(!line.contains("configuration not taken"), "{line}");
            line.contains("configuration read again").then_some(())
        });
    }

    pub(crate) async fn text(&self) -> String {
        crate::common::real::get(&format!("{}/metrics", self.address)).await
    }

    pub(crate) async fn scrape(&self) -> Scrape {
        Scrape::parse(&self.text().await)
    }

    /// Waits until it shows so many runs, and for three looks nothing new of
    /// any of them.
    pub(crate) async fn settled(&self, runs: usize) -> Scrape {
        let deadline = Instant::now() + SOON;
        let mut before = Vec::new();
        let mut same = 0;
        loop {
            let text = self.text().await;
            let of_runs: Vec<String> = text
                .lines()
                .filter(|line| line.contains("app_id=") || line.contains("app_name="))
                .map(str::to_owned)
                .collect();
            let there = of_runs.iter().filter(|line| is_info(line)).count();
            same = if there == runs && of_runs == before { same + 1 } else { 0 };
            if same == 3 {
                return Scrape::parse(&text);
            }
            before = of_runs;
            assert!(Instant::now() < deadline, "{there} of {runs} runs are there");
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    }

    /// SIGTERM; it must end well.
    pub(crate) fn stop(mut self) {
        assert_eq!(self.program.terminate(Duration::from_secs(30)), 0, "SIGTERM ends it well");
    }
}

fn is_info(line: &str) -> bool {
    line.starts_with("spark_application_info{")
}
