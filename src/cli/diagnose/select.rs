//! Which SQL execution is meant: by id, by its text, by a time, or by the page
//! of Spark's UI that was given.
//!
//! Text of SQL is compared and never shown, unless text is shown anyway.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::config::Shown;
use crate::diagnose::humane;
use crate::model::{Application, SqlExecution};
use crate::report::Texts;
use crate::report::privacy::redacted;

/// A query's file is read up to here.
const QUERY: u64 = 1 << 20;

/// Of a time, an execution that began so long before or after is meant where
/// none ran then: clocks and memories differ.
const NEAR: SignedDuration = SignedDuration::from_mins(10);

/// A description at least so long may be the cut beginning of a query.
const CUT: usize = 60;

/// Candidates that are listed.
const LISTED: usize = 20;

/// Flags that choose one SQL execution; the report is then about it alone.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SqlFlags {
    /// Only this SQL execution (the number in the UI's SQL tab), with its
    /// stages and the findings about them
    #[arg(long, value_name = "ID", conflicts_with_all = ["sql_file", "at"])]
    sql_id: Option<u64>,
    /// Only the SQL execution with the text in this file (- is standard
    /// input), the latest one where several have it
    #[arg(long, value_name = "FILE")]
    sql_file: Option<PathBuf>,
    /// Only the SQL execution that ran at this time: 2026-11-30T04:01:00Z, or
    /// local time without a zone
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Timestamp>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Id(u64),
    Query {
        text: Option<String>,
        at: Option<Timestamp>,
    },
    /// What a page showed.
    Page(Shown),
}

/// What became of looking for it in one application.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The execution, and the earlier ones with the same text.
    One(u64, Vec<u64>),
    /// Several, none of which is more likely than another.
    Ambiguous(Vec<u64>),
    /// Why not.
    None(String),
}

impl SqlFlags {
    /// `page`: what a URL that was given shows.
    pub(super) fn choice(&self, page: Option<Shown>) -> anyhow::Result<Option<Choice>> {
        if let Some(id) = self.sql_id {
            return Ok(Some(Choice::Id(id)));
        }
        if self.sql_file.is_none() && self.at.is_none() {
            return Ok(page.map(Choice::Page));
        }
        let text = self.sql_file.as_deref().map(read_query).transpose()?;
        Ok(Some(Choice::Query { text, at: self.at }))
    }
}

fn read_query(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(QUERY).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(QUERY).read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read the query in {}", path.display()))?;
    let text = normalised(&text);
    if text.is_empty() {
        bail!("{} holds no query", path.display());
    }
    Ok(text)
}

fn time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let local: DateTime = text
        .parse()
        .map_err(|_| "write it as 2026-11-30T04:01:00Z or 2026-11-30T04:01:00".to_owned())?;
    TimeZone::system().to_timestamp(local).map_err(|error| error.to_string())
}

/// A query as it is compared: white space, comments to the end of a line, case
/// and a last semicolon make no difference.
fn normalised(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").trim_end_matches([';', ' ']).to_lowercase()
}

/// Whether a description that Spark or we may have cut is that of the query.
fn is_text(description: &str, query: &str) -> bool {
    let description = normalised(description);
    if description == query {
        return true;
    }
    // Ours leave out the middle, Spark's end in dots or just end.
    if let Some((head, tail)) = description.split_once('…') {
        return query.len() >= head.len() + tail.len()
            && query.starts_with(head.trim_end())
            && query.ends_with(tail.trim_start());
    }
    let head = description.trim_end_matches("...").trim_end();
    head.len() >= CUT && query.starts_with(head)
}

impl Choice {
    pub(super) fn of(&self, application: &Application) -> Chosen {
        let Some(executions) = application.sql.as_deref() else {
            return Chosen::None("its source tells of no SQL executions".to_owned());
        };
        match self {
            Self::Id(id) | Self::Page(Shown::Sql(id)) => {
                by_id(executions, *id, application.sql_omitted)
            }
            Self::Page(Shown::Job(job)) => by_jobs(application, &[*job], &format!("job {job}")),
            Self::Page(Shown::Stage(id)) => {
                let stages = application.stages.iter().filter(|stage| stage.id.stage == *id);
                let jobs: Vec<u32> = stages.flat_map(|stage| stage.job_ids.clone()).collect();
                by_jobs(application, &jobs, &format!("stage {id}"))
            }
            Self::Query { text, at } => {
                by_query(executions, text.as_deref(), *at, application.observed)
            }
        }
    }

    /// In words, without text of SQL.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Id(id) | Self::Page(Shown::Sql(id)) => format!("SQL execution {id}"),
            Self::Page(Shown::Job(id)) => format!("SQL execution of job {id}"),
            Self::Page(Shown::Stage(id)) => format!("SQL execution of stage {id}"),
            Self::Query { text: Some(_), at: None } => "SQL execution with that text".to_owned(),
            Self::Query { text: Some(_), at: Some(at) } => {
                format!("SQL execution with that text at {at}")
            }
            Self::Query { at: Some(at), .. } => format!("SQL execution at {at}"),
            Self::Query { .. } => "SQL execution".to_owned(),
        }
    }

    /// Whether nothing is lost by reporting the whole application where there
    /// is none: the page of a stage or job need not be one of SQL.
    pub(super) fn may_be_none(&self) -> bool {
        matches!(self, Self::Page(Shown::Job(_) | Shown::Stage(_)))
    }
}

fn by_id(executions: &[SqlExecution], id: u64, omitted: u64) -> Chosen {
    if executions.iter().any(|execution| execution.id == id) {
        return Chosen::One(id, Vec::new());
    }
    let known = match (executions.first(), executions.last()) {
        (Some(first), Some(last)) => format!("{} to {} are there", first.id, last.id),
        _ => "it has none".to_owned(),
    };
    let left_out = if omitted > 0 { format!(", {omitted} were left out") } else { String::new() };
    Chosen::None(format!("execution {id} not found or evicted ({known}{left_out})"))
}

fn by_jobs(application: &Application, jobs: &[u32], what: &str) -> Chosen {
    let mut ids: Vec<u64> = application
        .jobs
        .iter()
        .filter(|job| jobs.contains(&job.id))
        .filter_map(|job| job.sql_execution_id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    match ids.as_slice() {
        [] => Chosen::None(format!("{what} belongs to no SQL execution")),
        [one] => Chosen::One(*one, Vec::new()),
        _ => Chosen::Ambiguous(ids),
    }
}

fn by_query(
    executions: &[SqlExecution],
    text: Option<&str>,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Chosen {
    let mut found: Vec<&SqlExecution> = executions
        .iter()
        .filter(|one| text.is_none_or(|text| is_text(one.description.as_str(), text)))
        .collect();
    if found.is_empty() {
        return Chosen::None("no execution has that text".to_owned());
    }
    if let Some(at) = at {
        // Those that another one started are part of it.
        let all = std::mem::take(&mut found);
        let outer = || all.iter().copied().filter(|one| text.is_some() || !one.is_nested());
        found = outer().filter(|one| ran_at(one, at, now)).collect();
        if found.is_empty() {
            let distance = |one: &SqlExecution| Some(one.start?.duration_since(at).abs());
            found = outer()
                .filter_map(|one| Some((distance(one).filter(|far| *far <= NEAR)?, one)))
                .min_by_key(|(far, _)| *far)
                .map(|(_, one)| one)
                .into_iter()
                .collect();
        }
        if found.is_empty() {
            return Chosen::None(format!("no such execution ran within 10 minutes of {at}"));
        }
    }
    let ids: Vec<u64> = found.iter().map(|one| one.id).collect();
    // The same query again and again: the latest is meant. Where a time was
    // given, or descriptions were cut so that they may be of different
    // queries, nothing says which.
    let same = found.windows(2).all(|pair| pair[0].description == pair[1].description);
    let exact = text
        .is_some_and(|text| found.iter().all(|one| normalised(one.description.as_str()) == text));
    match ids.split_last() {
        Some((last, [])) => Chosen::One(*last, Vec::new()),
        Some((last, earlier)) if exact && same && at.is_none() => {
            Chosen::One(*last, earlier.to_vec())
        }
        _ => Chosen::Ambiguous(ids),
    }
}

fn ran_at(execution: &SqlExecution, at: Timestamp, now: Timestamp) -> bool {
    execution.start.is_some_and(|start| start <= at) && execution.end.unwrap_or(now) >= at
}

/// A list of executions to choose from, a line each.
pub(super) fn candidates(application: &Application, ids: &[u64], texts: Texts) -> String {
    let mut lines = Vec::new();
    let all = application.sql.iter().flatten().filter(|one| ids.contains(&one.id));
    for execution in all.take(LISTED) {
        let start = execution.start.map_or("?".to_owned(), |start| start.to_string());
        let wall = execution.wall(application.observed).map_or("?".to_owned(), humane::duration);
        let mut line =
            format!("  --sql-id {}: {start}, {wall}, {}", execution.id, execution.status.as_str());
        if texts.are_shown() {
            let text = redacted(execution.description.as_str());
            let text: String = text.chars().take(120).collect();
            line.push_str(", ");
            line.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        }
        lines.push(line);
    }
    if ids.len() > LISTED {
        lines.push(format!("  and {} more", ids.len() - LISTED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RunId, Source, SqlStatus};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_796_000_000 + second).expect("a time")
    }

    /// Id, start, end and description of each.
    fn application(executions: &[(u64, i64, i64, &str)]) -> Application {
        let id = RunId { cluster: "c".into(), app_id: "a".into(), attempt_id: None };
        let mut application = Application::new(id, Source::EventLog, at(1_000));
        let made = executions.iter().map(|(id, start, end, text)| {
            let mut execution = SqlExecution::new(*id);
            execution.status = SqlStatus::Completed;
            execution.start = Some(at(*start));
            execution.end = Some(at(*end));
            execution.description = (*text).into();
            execution
        });
        application.sql = Some(made.collect());
        application
    }

    fn query(text: Option<&str>, second: Option<i64>) -> Choice {
        Choice::Query { text: text.map(normalised), at: second.map(at) }
    }

    #[test]
    fn by_id() {
        let application = application(&[(3, 0, 9, ""), (4, 9, 12, "")]);
        assert_eq!(Choice::Id(4).of(&application), Chosen::One(4, vec![]));
        let Chosen::None(why) = Choice::Id(99).of(&application) else { panic!("there is none") };
        assert!(why.contains("not found or evicted (3 to 4 are there)"), "{why}");
    }

    #[test]
    fn by_text_the_latest_of_the_same() {
        let application = application(&[
            (1, 0, 5, "SELECT *\n  FROM t"),
            (2, 6, 9, "select 1"),
            (7, 20, 30, "SELECT *\n  FROM t"),
        ]);
        let text = "-- mine\nselect * from T ;\n";
        assert_eq!(query(Some(text), None).of(&application), Chosen::One(7, vec![1]));
        assert_eq!(query(Some(text), Some(3)).of(&application), Chosen::One(1, vec![]));
        assert_eq!(query(None, Some(7)).of(&application), Chosen::One(2, vec![]));
        // A little beside it.
        assert_eq!(query(Some(text), Some(40)).of(&application), Chosen::One(7, vec![]));
        assert!(matches!(query(Some(text), Some(5_000)).of(&application), Chosen::None(_)));
        assert!(matches!(query(Some("select 2"), None).of(&application), Chosen::None(_)));
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_guessed() {
        let long = "select a, b, c from a_table_with_a_long_name where the_day = 5 and more";
        let cut = &long[..65];
        let cut_ours = format!("{}…{}", &long[..30], &long[60..]);
        let application = application(&[(1, 0, 50, cut), (2, 10, 40, &cut_ours), (3, 90, 95, "x")]);
        assert_eq!(query(Some(long), None).of(&application), Chosen::Ambiguous(vec![1, 2]));
        assert_eq!(query(None, Some(20)).of(&application), Chosen::Ambiguous(vec![1, 2]));
        let list = candidates(&application, &[1, 2], Texts::Hidden);
        assert!(list.contains("--sql-id 1:") && list.contains("completed"), "{list}");
        assert!(!list.contains("select"), "{list}");
        assert!(candidates(&application, &[1], Texts::Shown).contains("select a"));
    }

    #[test]
    fn times_with_and_without_a_zone() {
        assert_eq!(time("2026-11-30T04:01:00Z"), time("2026-11-30T05:01:00+01:00"));
        assert!(time("2026-11-30 04:01").is_ok());
        assert!(time("yesterday").is_err());
    }
}
