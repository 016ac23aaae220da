//! What the driver did while no job ran, as far as an event log tells: for
//! `driver_gap`.
//!
//! Each moment of a query is before its first job, between its jobs, or after
//! the last one; a moment of several queries counts as the first of these
//! that holds for any of them.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::context::Context;
use super::steps::Spans;
use crate::model::{MetricKind, SqlExecution};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GapPart {
    Listing,
    Planning,
    Commit,
    Command,
    Program,
}

impl GapPart {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Listing => "file_listing",
            Self::Planning => "query_planning",
            Self::Commit => "commit",
            Self::Command => "command",
            Self::Program => "program",
        }
    }

    /// What the driver was busy with, for a headline.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Listing => "the driver listed files",
            Self::Planning => "the driver prepared queries",
            Self::Commit => "the driver committed what queries had written",
            Self::Command => "statements ran that have no job",
            Self::Program => {
                "no query was open: the program itself was busy or waited, or Spark planned"
            }
        }
    }

    pub(super) fn source(self) -> &'static str {
        match self {
            Self::Listing => "metadata time of scans",
            Self::Planning => "from queries' starts to their first jobs, and between their jobs",
            Self::Commit => "from queries' last jobs to their ends",
            Self::Command => "queries without a job",
            Self::Program => "no query open",
        }
    }
}

/// When queries were open in a span of the run, and how far they were.
pub(super) struct GapParts {
    open: Spans,
    /// Before the first job of a query, or between two.
    planning: Spans,
    after: Spans,
    /// Before the first job of each query that listed files, and the time it
    /// told for that.
    listed: Vec<(Spans, Duration)>,
}

impl GapParts {
    pub(super) fn of(context: &Context<'_>, from: i64, to: i64) -> Self {
        let mut open = Vec::new();
        let (mut planning, mut after) = (Vec::new(), Vec::new());
        let mut listed = Vec::new();
        for execution in context.application.sql.iter().flatten() {
            let ms = Timestamp::as_millisecond;
            let Some(start) = execution.start.map(ms) else { continue };
            let span = (start.max(from), execution.end.map_or(to, ms).min(to));
            if span.0 >= span.1 {
                continue;
            }
            open.push(span);
            let jobs = || {
                let all = &context.application.jobs;
                execution
                    .job_ids
                    .iter()
                    .filter_map(move |id| all.get(all.binary_search_by_key(id, |job| job.id).ok()?))
            };
            let (Some(first), last) = (
                jobs().filter_map(|job| job.submitted).min().map(ms),
                jobs().map(|job| job.completed.map_or(to, ms)).max().unwrap_or(to),
            ) else {
                continue;
            };
            // Between its jobs it prepares the next ones.
            planning.push((span.0, last.min(span.1)));
            after.push((last.max(span.0), span.1));
            let listing = listing(execution);
            if !listing.is_zero() {
                listed.push((Spans::union(vec![(span.0, first.min(span.1))]), listing));
            }
        }
        Self {
            open: Spans::union(open),
            planning: Spans::union(planning),
            after: Spans::union(after),
            listed,
        }
    }

    /// When any query was open.
    pub(super) fn open(&self) -> &Spans {
        &self.open
    }

    /// The gaps by what the driver did in them; parts that are nothing are
    /// left out.
    pub(super) fn split(&self, gaps: &Spans) -> Vec<(GapPart, Duration)> {
        let within = |spans: &Spans| gaps.intersect(spans).millis();
        let (all, open, planning) = (gaps.millis(), within(&self.open), within(&self.planning));
        let both = Spans::union(self.planning.iter().chain(self.after.iter()).collect());
        let with_jobs = within(&both);
        let listing = self
            .listed
            .iter()
            .map(|(spans, told)| within(spans).min(told.as_millis() as u64))
            .fold(0, u64::saturating_add)
            .min(planning);
        [
            (GapPart::Listing, listing),
            (GapPart::Planning, planning - listing),
            (GapPart::Commit, with_jobs.saturating_sub(planning)),
            (GapPart::Command, open.saturating_sub(with_jobs)),
            (GapPart::Program, all.saturating_sub(open)),
        ]
        .into_iter()
        .filter(|(_, millis)| *millis > 0)
        .map(|(part, millis)| (part, Duration::from_millis(millis)))
        .collect()
    }
}

/// Time that the scans of a query told for listing files.
fn listing(execution: &SqlExecution) -> Duration {
    let mut seen = BTreeSet::new();
    let nanos = execution
        .plan
        .iter()
        .flat_map(|plan| &plan.nodes)
        .flat_map(|node| &node.metrics)
        .filter(|metric| &*metric.name == "metadata time" && metric.kind == MetricKind::Nanoseconds)
        .filter(|metric| seen.insert(metric.accumulator))
        .filter_map(|metric| metric.value.as_deref())
        .fold(0, |sum: u64, value| sum.saturating_add(value.total));
    Duration::from_nanos(nanos)
}
