//! `spark-exporter compare A B`: is it getting better? Two runs, or a SQL
//! execution of each, read and diagnosed as `diagnose` does, side by side.

use std::io::{self, Write};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::diagnose::{FailOn, read_runs};
use super::{Common, Outcome};
use crate::report::Diagnosed;
use crate::report::compare::{Comparison, Values, Which, compare, markdown, text};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spark-exporter compare before/app-20261128101500-0001 after/app-20261129101500-0001\n      \
    two event logs\n  \
    spark-exporter compare --app-id app-1 --app-id-b app-2 https://history.example.org\n      \
    two runs of one History Server\n  \
    spark-exporter compare --sql-id 3 --sql-id-b 7 app-20261129101500-0001\n      \
    two SQL executions of one run\n\n\
    Exit status: 0 B has nothing new at or above --fail-on, 1 it has, 2 one of them could not be \
    read.")]
pub struct Compare {
    /// What B is held against: an event log, a directory, a zip or a URL, as
    /// diagnose takes it
    #[arg(value_name = "A")]
    a: String,
    /// The other one [default: A as well, with --app-id-b or --sql-id-b]
    #[arg(value_name = "B")]
    b: Option<String>,
    /// The application of A, where there are several
    #[arg(long, value_name = "ID")]
    app_id: Option<String>,
    /// The application of B
    #[arg(long, value_name = "ID")]
    app_id_b: Option<String>,
    /// A SQL execution of A instead of the whole run; of B too, unless
    /// --sql-id-b names another
    #[arg(long, value_name = "N")]
    sql_id: Option<u64>,
    /// The SQL execution of B
    #[arg(long, value_name = "N", requires = "sql_id")]
    sql_id_b: Option<u64>,
    /// text and markdown for a person, json for a program
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show values of all settings that differ, but for what looks like a
    /// secret: paths, names and options of JVMs among them
    #[arg(long)]
    show_values: bool,
    /// Exit with 1 if B has a finding of this severity or above that A has not
    #[arg(long, value_enum, default_value_t = FailOn::Warning)]
    fail_on: FailOn,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Json,
}

impl Compare {
    /// Reads both, holds B against A and prints what differs.
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if self.b.is_none() && self.app_id_b.is_none() && self.sql_id_b.is_none() {
            bail!("B is missing: give a second run, or --app-id-b, or --sql-id with --sql-id-b");
        }
        let a = one(&self.a, self.app_id.as_deref(), "--app-id", &self.common)?;
        let source = self.b.as_deref().unwrap_or(&self.a);
        let same = self.b.is_none() && self.app_id_b.is_none();
        let app_id_b = self.app_id_b.as_deref();
        let b = if same { None } else { Some(one(source, app_id_b, "--app-id-b", &self.common)?) };
        let values = if self.show_values { Values::All } else { Values::Safe };
        let comparison = compare(
            Which { run: &a, sql_id: self.sql_id },
            Which { run: b.as_ref().unwrap_or(&a), sql_id: self.sql_id_b.or(self.sql_id) },
            values,
        )
        .map_err(anyhow::Error::msg)?;
        print(&self.rendered(&comparison)?)?;
        let found = self.fail_on.least().is_some_and(|least| comparison.gained_at(least));
        Ok(if found { Outcome::Found } else { Outcome::Good })
    }

    fn rendered(&self, comparison: &Comparison) -> anyhow::Result<String> {
        Ok(match self.format {
            Format::Text => text(comparison),
            Format::Markdown => markdown(comparison),
            Format::Json => format!("{}\n", serde_json::to_string_pretty(comparison)?),
        })
    }
}

/// The one run that is meant.
fn one(
    source: &str,
    app_id: Option<&str>,
    flag: &str,
    common: &Common,
) -> anyhow::Result<Diagnosed> {
    let mut runs = Vec::new();
    for run in read_runs(source, app_id, common)? {
        runs.push(run?.0);
    }
    match (runs.pop(), runs.as_slice(), app_id) {
        (Some(only), [], _) => Ok(only),
        (None, _, Some(id)) => bail!("{source} has no application {id:?}"),
        (None, _, None) => bail!("{source} holds no application"),
        (Some(last), others, _) => {
            let all = others.iter().chain([&last]);
            let ids: Vec<&str> = all.map(|run| run.application.id.app_id.as_str()).collect();
            bail!("{source} holds several applications: name one with {flag} ({})", ids.join(", "))
        }
    }
}

/// A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}
