//! `spark-exporter diagnose`: the daemon's findings, for one person, once.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::{Colour, Common, Outcome};
use crate::config::{Config, HttpConfig, ServerUrl};
use crate::diagnose::{Severity, diagnose};
use crate::discover::{self, Role};
use crate::eventlog::{self, ReadOptions};
use crate::fetch::files::{Files, LocalFiles};
use crate::fetch::{HttpClient, Timeouts};
use crate::model::Application;
use crate::report::{self, Colours, Diagnosed, SqlTexts};
use crate::rest::Api;
use crate::rest::applications::{self, Filter, Status};
use crate::rest::completed;
use crate::rest::running::RunningApplication;

/// Of a History Server that lists more, the latest are diagnosed.
const LATEST: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 nothing at or above --fail-on, 1 something, \
    2 something could not be read.")]
pub struct Diagnose {
    /// Event logs, directories of them, or URLs of drivers and History Servers
    #[arg(value_name = "PATH_OR_URL", required = true)]
    sources: Vec<String>,
    /// Only this application; repeatable
    #[arg(long = "app-id", value_name = "ID")]
    app_ids: Vec<String>,
    /// text for a person, json for a program (docs/diagnose-json.md)
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 if there is a finding of this severity or above
    #[arg(long, value_enum, default_value_t = FailOn::Warning)]
    fail_on: FailOn,
    /// Show text of SQL as well: descriptions, arguments of plan nodes, error
    /// messages. They may hold secrets
    #[arg(long)]
    sql_text: bool,
    /// When to colour the text
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Info,
    Warning,
    Critical,
    Never,
}

impl FailOn {
    fn reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Info => true,
            Self::Warning => severity >= Severity::Warning,
            Self::Critical => severity >= Severity::Critical,
            Self::Never => false,
        }
    }
}

impl Diagnose {
    /// Reads every source, prints what could be read, and says on standard
    /// error what could not.
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let config = self.common.config()?;
        let mut runs = Vec::new();
        let mut unread = false;
        for source in &self.sources {
            if let Err(error) = self.read(source, &config, &mut runs, &mut unread) {
                unread = true;
                complain(&format!("{error:#}"));
            }
        }
        for wanted in &self.app_ids {
            if !runs.iter().any(|run: &Diagnosed| run.application.id.app_id == *wanted) {
                unread = true;
                complain(&format!("no application {wanted:?} in what was read"));
            }
        }
        self.print(&runs)?;
        let found = runs
            .iter()
            .flat_map(|run| &run.diagnosis.findings)
            .any(|finding| self.fail_on.reached_by(finding.severity));
        Ok(match (unread, found) {
            (true, _) => Outcome::Unread,
            (false, true) => Outcome::Found,
            (false, false) => Outcome::Good,
        })
    }

    fn print(&self, runs: &[Diagnosed]) -> anyhow::Result<()> {
        let stdout = std::io::stdout();
        let text = match self.format {
            Format::Json => {
                report::json(runs, self.sql_texts()).context("cannot write the JSON")?
            }
            Format::Text => {
                report::text(runs, self.colours(stdout.is_terminal()), self.sql_texts())
            }
        };
        match stdout.lock().write_all(text.as_bytes()) {
            // `| head` is no error.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write to standard output"),
        }
    }

    fn sql_texts(&self) -> SqlTexts {
        if self.sql_text { SqlTexts::Shown } else { SqlTexts::Hidden }
    }

    fn colours(&self, terminal: bool) -> Colours {
        let automatic =
            terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match self.color {
            Colour::Always => Colours::Ansi,
            Colour::Auto if automatic => Colours::Ansi,
            Colour::Auto | Colour::Never => Colours::None,
        }
    }

    fn read(
        &self,
        source: &str,
        config: &Config,
        runs: &mut Vec<Diagnosed>,
        unread: &mut bool,
    ) -> anyhow::Result<()> {
        let mut take = |application: Application| {
            if self.wants(&application.id.app_id) {
                let diagnosis = diagnose(&application, &config.thresholds);
                runs.push(Diagnosed { application, diagnosis });
            }
        };
        if source.starts_with("http://") || source.starts_with("https://") {
            let url: ServerUrl = source.parse().map_err(anyhow::Error::msg)?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            return runtime.block_on(self.read_url(&url, config, &mut take, unread));
        }
        let files = LocalFiles::at(Path::new(source))?;
        let scan = eventlog::scan(&files)?;
        if scan.logs.is_empty() && scan.skipped.is_empty() {
            bail!("{source} holds no event log");
        }
        for (path, reason) in scan.skipped {
            *unread = true;
            complain(&format!("{} {}", files.display(&path), reason.message()));
        }
        let options = ReadOptions { cluster: &self.common.cluster_name, limits: &config.limits };
        for log in &scan.logs {
            match eventlog::read(log, &files, &options) {
                Ok(outcome) => take(outcome.application),
                Err(error) => {
                    *unread = true;
                    complain(&error.to_string());
                }
            }
        }
        Ok(())
    }

    async fn read_url(
        &self,
        url: &ServerUrl,
        config: &Config,
        take: &mut impl FnMut(Application),
        unread: &mut bool,
    ) -> anyhow::Result<()> {
        let client = |timeouts: Timeouts| {
            HttpClient::new(&self.http_config(config), timeouts, (&config.limits).into())
        };
        let endpoint = discover::probe(&client(Timeouts::DRIVER)?, url).await?;
        if endpoint.role == Role::Driver {
            let mut reader = RunningApplication::new(&self.common.cluster_name, url.clone());
            take(reader.poll(&client(Timeouts::DRIVER)?, Timestamp::now()).await?);
            return Ok(());
        }
        let api = Api::new(&client(Timeouts::HISTORY_SERVER)?, url);
        let filter = Filter { status: Some(Status::Completed), ..Filter::default() };
        let mut attempts = Vec::new();
        for application in applications::get(&api, filter).await? {
            for attempt in &application.attempts {
                if attempt.is_completed() && self.wants(application.id.get()) {
                    attempts.push((application.clone(), attempt.clone()));
                }
            }
        }
        if attempts.is_empty() && self.app_ids.is_empty() {
            bail!("the History Server at {url} lists no finished application");
        }
        attempts.sort_by_key(|(_, attempt)| std::cmp::Reverse(attempt.end()));
        if self.app_ids.is_empty() && attempts.len() > LATEST {
            complain(&format!(
                "{url} lists {} finished applications: reading the {LATEST} latest; --app-id \
                 chooses others",
                attempts.len()
            ));
            attempts.truncate(LATEST);
        }
        let options = completed::Options { stages: config.limits.stages, ..Default::default() };
        let cluster = &self.common.cluster_name;
        for (application, attempt) in &attempts {
            match completed::read(&api, cluster, application, attempt, options).await {
                Ok(run) => take(run),
                Err(error) => {
                    *unread = true;
                    complain(&error.to_string());
                }
            }
        }
        Ok(())
    }

    fn wants(&self, app_id: &str) -> bool {
        self.app_ids.is_empty() || self.app_ids.iter().any(|wanted| wanted == app_id)
    }

    /// Credentials of the cluster that `--cluster.name` names in the file.
    fn http_config(&self, config: &Config) -> HttpConfig {
        config
            .clusters
            .iter()
            .find(|cluster| cluster.name == self.common.cluster_name)
            .map(|cluster| cluster.http_config.clone())
            .unwrap_or_default()
    }
}

/// One line on standard error.
fn complain(message: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "spark-exporter: {message}");
}
