//! The command line: one file a command.

mod check_config;
mod check_ready;
mod check_web_config;
mod compare;
mod diagnose;
mod otlp;
mod reload;
mod serve;
mod shard;
mod store;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use check_ready::CheckReady;
pub use compare::Compare;
pub use diagnose::Diagnose;
pub use serve::Serve;
pub use store::StoreCommand;

use crate::config::{Config, ConfigError, DEFAULT_CLUSTER};

/// How a command ended, as the exit status says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 0
    Good,
    /// 1: `diagnose` found something at or above `--fail-on`, `compare`
    /// something that is new in B, `check-ready` a daemon that is not ready.
    Found,
    /// 2: something could not be read, or a store is not as it should be.
    Unread,
}

impl Outcome {
    pub fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Found => 1,
            Self::Unread => 2,
        }
    }
}

/// Watches Apache Spark from outside and says what is wrong.
///
/// Without a command it runs as a daemon: it reads Spark's REST API and event
/// logs, works out what is wrong with each application, and serves that on
/// /metrics for Prometheus and on a page for people. It only ever sends GET.
#[derive(Debug, Parser)]
#[command(
    name = "spark-exporter",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        spark-exporter --spark.url http://driver:4040\n      \
        watch one running application\n  \
        spark-exporter --spark.url https://history.example.org --event-log.dir /mnt/spark-events\n      \
        watch what a History Server lists and what a directory holds\n  \
        spark-exporter --event-log.dir s3://logs/spark-events\n      \
        watch what a bucket holds, running applications too\n  \
        spark-exporter --config.file /etc/spark-exporter/config.yml\n      \
        several clusters, credentials, thresholds\n  \
        spark-exporter diagnose eventlog_v2_app-20261129101500-0001\n      \
        what was wrong with one finished application\n  \
        spark-exporter diagnose https://history.example.org/history/app-20261129101500-0001/jobs/\n      \
        the same, from its page on a History Server\n\n\
        Documentation: docs/ of the project, docs/configuration.md first."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: Serve,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is wrong with applications: logs, directories of logs, or URLs
    Diagnose(Diagnose),
    /// Hold a run against another one, or two SQL executions against each other
    Compare(Compare),
    /// Look into the store of runs: check it, or write all of it out
    #[command(subcommand)]
    Store(StoreCommand),
    /// Check a configuration file and say what it means
    CheckConfig {
        /// The file that --config.file would be given
        file: PathBuf,
        /// Also say what applications of this name become (names.rules);
        /// repeatable
        #[arg(long = "app-name", value_name = "NAME", allow_hyphen_values = true)]
        app_names: Vec<String>,
    },
    /// Check a file of the web end (TLS, users) and what it names, and say
    /// what it means
    CheckWebConfig {
        /// The file that --web.config.file would be given
        file: PathBuf,
    },
    /// Ask a daemon whether it is ready: for health checks where there is no
    /// shell and no curl
    CheckReady(CheckReady),
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Configuration file (YAML); flags are added to it
    #[arg(long = "config.file", value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Name of the cluster that sources on the command line form: the label
    /// spark_cluster
    #[arg(long = "cluster.name", value_name = "NAME", default_value = DEFAULT_CLUSTER)]
    pub cluster_name: String,
    /// Whether to read a finished run by a History Server's REST API where its
    /// event log cannot be had: the server then replays the whole log
    /// [default: true]
    #[arg(long = "read.rest-fallback", value_name = "BOOL", num_args = 0..=1,
        default_missing_value = "true", require_equals = true)]
    pub rest_fallback: Option<bool>,
    /// Folder in which the event logs of History Servers lie while they are
    /// read [default: the system's temporary folder]
    #[arg(long = "storage.temp-path", value_name = "DIR")]
    pub temp_path: Option<PathBuf>,
}

impl Common {
    fn config(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config_file {
            Some(path) => Config::load(path)?,
            None => Config::default(),
        };
        if let Some(fallback) = self.rest_fallback {
            config.read.rest_fallback = fallback;
        }
        if self.temp_path.is_some() {
            config.storage.temp_path.clone_from(&self.temp_path);
        }
        Ok(config)
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl Cli {
    /// Runs the command that was given.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.command {
            None => self.serve.run(),
            Some(Command::Diagnose(diagnose)) => diagnose.run(),
            Some(Command::Compare(compare)) => compare.run(),
            Some(Command::Store(store)) => store.run(),
            Some(Command::CheckConfig { file, app_names }) => check_config::run(&file, &app_names),
            Some(Command::CheckWebConfig { file }) => check_web_config::run(&file),
            Some(Command::CheckReady(check)) => check.run(),
        }
    }
}
