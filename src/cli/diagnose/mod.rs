//! `spark-exporter diagnose`: the daemon's findings, for one person, once.
//!
//! `plan` finds what there is to read in everything that was given, `read`
//! reads one of these and diagnoses it, `in_order` does so for several at a
//! time, and what comes of it is printed here as it comes, in the order given:
//! however many logs there are, only a few are in memory.

mod earlier;
mod in_order;
mod narrow;
mod plan;
mod print;
mod progress;
mod read;
mod saved;
mod select;
mod session;
mod share;
mod texts;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shard::ShardFlags;
use super::{Colour, Common, Outcome};
use crate::config::{Config, Sharding};
use crate::diagnose::Severity;
use crate::report::{Colours, Diagnosed, Texts};
use earlier::Earlier;
use plan::Wanted;
use print::{Out, Style};
use progress::Progress;
use read::{Read, Work};
use select::SqlFlags;
use session::Session;
use share::Share;
use texts::TextFlags;

/// Runs of one source that [`read_runs`] holds in memory, and one more.
const MOST_TOGETHER: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 nothing at or above --fail-on, 1 something, \
    2 something could not be read.")]
pub struct Diagnose {
    /// Event logs, directories or buckets of them (also s3://, hdfs:// and the
    /// like), zips saved from a History Server, or URLs of drivers, of History
    /// Servers and of an application's page there (also by YARN's proxy), or
    /// answers of the REST API saved as JSON, alone or in a folder; any of
    /// them together
    #[arg(value_name = "PATH_OR_URL", required_unless_present_any = ["explain", "log"])]
    sources: Vec<String>,
    /// Only this application; repeatable
    #[arg(long = "app-id", value_name = "ID")]
    app_ids: Vec<String>,
    /// Of each directory and History Server only the N latest applications,
    /// latest first [default: all of a directory, 10 of a History Server]
    #[arg(long, value_name = "N",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    latest: Option<usize>,
    /// Earlier runs, in the same forms as PATH_OR_URL: a run that took longer
    /// than those of its name usually do gets the finding `regression`;
    /// repeatable
    #[arg(long, value_name = "PATH_OR_URL")]
    baseline: Vec<String>,
    /// text for a terminal, markdown for an issue or a wiki, html for one page
    /// that needs nothing else, json for a program (docs/diagnose-json.md)
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 if there is a finding of this severity or above
    #[arg(long, value_enum, default_value_t = FailOn::Warning)]
    fail_on: FailOn,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show what users wrote as well: SQL, tables, paths, descriptions, error
    /// messages, values of properties. What looks like a password or a token
    /// is cut out all the same
    #[arg(long)]
    show_sql: bool,
    /// When to colour the text
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
    #[command(flatten)]
    sql: SqlFlags,
    #[command(flatten)]
    texts: TextFlags,
    #[command(flatten)]
    shards: ShardFlags,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Html,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    Info,
    Warning,
    Critical,
    Never,
}

impl FailOn {
    /// The least severity that counts; `None`: none does.
    pub(super) fn least(self) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| self.reached_by(*severity))
    }

    fn reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Info => true,
            Self::Warning => severity >= Severity::Warning,
            Self::Critical => severity >= Severity::Critical,
            Self::Never => false,
        }
    }
}

/// Reads and diagnoses each run of one source, for a command that needs them
/// together; with where it was read. What could not be read is an error in
/// its place.
pub(super) fn read_runs(
    source: &str,
    app_id: Option<&str>,
    common: &Common,
) -> anyhow::Result<Vec<anyhow::Result<(Diagnosed, String)>>> {
    // Both sides of what is held against each other.
    let config = Config { sharding: Sharding::default(), ..common.config()? };
    let mut session = Session::new(config, &common.cluster_name)?;
    let wanted = Wanted { app_ids: app_id.map(str::to_owned).into_iter().collect(), latest: None };
    session.progress = Progress::new(0, 0);
    session.progress.looking_at(source);
    let mut sources = vec![source.to_owned()];
    let saved = saved::take(&mut sources);
    let mut work: Vec<Work> = saved.into_iter().map(|files| Work::Saved { files }).collect();
    for source in &sources {
        work.extend(plan::plan(source, &wanted, &session)?);
    }
    session.progress.end();
    session.progress = Progress::new(work.iter().map(Work::bytes).sum(), work.len());
    let mut runs = Vec::new();
    for read in work.into_iter().flat_map(|work| work.read(&wanted.app_ids, &session)) {
        match read {
            Ok(read) if !wanted.is(&read.run.application.id.app_id) => {}
            Ok(read) => runs.push(Ok((read.run, read.place))),
            Err(error) => runs.push(Err(error)),
        }
        if runs.len() > MOST_TOGETHER {
            break;
        }
    }
    session.progress.end();
    Ok(runs)
}

impl Diagnose {
    /// Reads every source, prints what could be read, and says on standard
    /// error what could not.
    pub(super) fn run(mut self) -> anyhow::Result<Outcome> {
        let choice = self.sql.choice(plan::shown(&self.sources))?;
        // What a file says of the daemon's part is not meant for a person who
        // asks about a run.
        let mut config = Config { sharding: Sharding::default(), ..self.common.config()? };
        self.shards.add_to(&mut config.sharding)?;
        let mut session = Session::new(config, &self.common.cluster_name)?;
        session.texts = self.texts.read(&session.cluster)?;
        let followed = self.texts.followed(&session.texts);
        session.texts.tell(followed.is_some(), &session.progress);
        let wanted = Wanted { app_ids: self.app_ids.clone(), latest: self.latest };
        let mut work = Vec::new();
        work.extend(saved::take(&mut self.sources).into_iter().map(|files| Work::Saved { files }));
        work.extend(followed.map(|url| Work::Followed { url }));
        session.progress = Progress::new(0, 0);
        for source in &self.sources {
            session.progress.looking_at(source);
            match plan::plan(source, &wanted, &session) {
                Ok(found) => work.extend(found),
                Err(error) => work.push(Work::Fault(format!("{error:#}"))),
            }
        }
        session.progress.end();
        let earlier = Earlier::read(&self.baseline, &mut session);
        session.share = Share::default();
        if work.is_empty() {
            let alone = session.texts.alone(&session.cluster, &session.progress);
            let text =
                |(application, place)| Work::Text { application: Box::new(application), place };
            work.extend(alone.into_iter().map(text));
        }
        let terminal = self.output.is_none() && io::stdout().is_terminal();
        // A document is written in pieces that the bar would cut apart.
        session.progress = if terminal && self.format != Format::Text {
            Progress::hidden()
        } else {
            Progress::new(work.iter().map(Work::bytes).sum(), work.len())
        };
        let threads = session.config.limits.concurrent_logs;
        let style = Style {
            format: self.format,
            colours: self.colours(terminal),
            texts: if self.show_sql { Texts::Shown } else { Texts::Hidden },
            fail_on: self.fail_on,
        };
        let mut out = Out::new(self.output.as_deref())?;
        let read = |work: Work| -> Vec<anyhow::Result<Read>> {
            let runs = work.read(&wanted.app_ids, &session).into_iter();
            runs.map(|run| run.map(|run| earlier.hold(run, &session.config))).collect()
        };
        let mut seen = in_order::in_order(work, threads, read, |results| {
            let mut results = results.flatten();
            let Some(choice) = &choice else {
                return print::print(&mut results, &wanted, style, &mut out, &session.progress);
            };
            let narrowed =
                narrow::narrow(&mut results, choice, &wanted, style.texts, &session.progress);
            print::print(&mut narrowed.into_iter(), &wanted, style, &mut out, &session.progress)
        })?;
        seen.unread |= earlier.unread;
        session.share.tell(&session.config, &session.progress);
        for wanted in &self.app_ids {
            // Of several parts one has it.
            if !seen.app_ids.contains(wanted) && !session.config.sharding.is_divided() {
                seen.unread = true;
                session.progress.complain(&format!("no application {wanted:?} in what was read"));
            }
        }
        Ok(match (seen.unread, seen.found) {
            (true, _) => Outcome::Unread,
            (false, true) => Outcome::Found,
            (false, false) => Outcome::Good,
        })
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
}
