//! `diagnose` for a terminal: the conclusion first, then each finding with
//! what it costs, what it rests on and what to do, then the costliest stages.

use std::fmt::Write;
use std::time::Duration;

use super::{Diagnosed, SqlTexts};
use crate::diagnose::{Evidence, Finding, Severity, Unit, humane};
use crate::model::{Application, DataQuality, SqlExecution, Stage, StageStatus};

/// Stages in the closing table.
const STAGES_SHOWN: usize = 5;

/// SQL executions and streaming queries shown.
const EXECUTIONS_SHOWN: usize = 5;

/// Whether to colour severities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    Ansi,
    None,
}

/// All diagnosed runs, one after the other.
///
/// Text that comes from the application (names, failure reasons) is cleaned
/// of control characters: a name must not steer somebody's terminal.
pub fn text(runs: &[Diagnosed], colours: Colours, texts: SqlTexts) -> String {
    let mut out = String::new();
    for (number, run) in runs.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let mut page = Page { out: &mut out, colours, texts };
        page.application(run);
    }
    out
}

struct Page<'a> {
    out: &'a mut String,
    colours: Colours,
    texts: SqlTexts,
}

impl Page<'_> {
    /// One line; writing to a `String` cannot fail.
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref().trim_end());
        self.out.push('\n');
    }

    fn application(&mut self, run: &Diagnosed) {
        let application = &run.application;
        self.line(heading(application));
        for mark in &application.data_quality {
            self.line(format!("  note: {}", quality(*mark, application)));
        }
        let findings = &run.diagnosis.findings;
        self.line(format!("  {}", conclusion(application, findings)));
        for finding in findings {
            self.out.push('\n');
            self.finding(finding);
        }
        self.stages(application);
        self.executions(application);
        self.queries(application);
    }

    fn finding(&mut self, finding: &Finding) {
        let severity = format!("{:<8}", finding.severity.as_str().to_uppercase());
        let severity = paint(finding.severity, &severity, self.colours);
        self.line(format!("  {severity}  {}", clean(&finding.headline)));
        let cause =
            finding.cause.map_or(String::new(), |cause| format!(", cause {}", cause.as_str()));
        self.line(format!(
            "            {}{cause}; {}; confidence {}",
            finding.rule.as_str(),
            savings(finding),
            finding.confidence.as_str()
        ));
        for evidence in &finding.evidence {
            self.line(format!("              {}", evidence_line(evidence)));
        }
        for (number, advice) in finding.advice.iter().enumerate() {
            let not_when = advice
                .not_when
                .as_ref()
                .map_or(String::new(), |when| format!(" (not when {})", clean(when)));
            self.line(format!("            {}. {}{not_when}", number + 1, clean(&advice.change)));
        }
    }

    fn stages(&mut self, application: &Application) {
        let mut stages: Vec<&Stage> = application
            .stages
            .iter()
            .filter(|stage| stage.status != StageStatus::Skipped)
            .collect();
        if stages.is_empty() {
            return;
        }
        let total = stages.len();
        stages.sort_by_key(|stage| std::cmp::Reverse(stage.measures.run_time.sum_or_zero()));
        stages.truncate(STAGES_SHOWN);
        self.out.push('\n');
        self.line(format!("  Costliest stages ({} of {total}):", stages.len()));
        self.line(row(["stage", "wall", "tasks", "median", "max", "read", "written", "spilled"]));
        for stage in stages {
            let measures = &stage.measures;
            let moved = |one: Option<u64>, other: Option<u64>| {
                let sum = match (one, other) {
                    (None, None) => return "?".to_owned(),
                    (one, other) => one.unwrap_or(0).saturating_add(other.unwrap_or(0)),
                };
                humane::bytes(sum)
            };
            let time = |time: Option<Duration>| time.map_or("?".to_owned(), humane::duration);
            self.line(row([
                &stage.id.to_string(),
                &time(stage.wall(application.observed)),
                &humane::number(stage.tasks.total),
                &time(measures.run_time.median()),
                &time(measures.run_time.max()),
                &moved(measures.input_bytes.sum, measures.shuffle_read_bytes.sum),
                &moved(measures.output_bytes.sum, measures.shuffle_write_bytes.sum),
                &moved(measures.disk_spilled_bytes.sum, None),
            ]));
        }
    }
}

impl Page<'_> {
    /// The longest SQL executions; nested ones are part of another.
    fn executions(&mut self, application: &Application) {
        let now = application.observed;
        let mut executions: Vec<(Duration, &SqlExecution)> = application
            .sql
            .iter()
            .flatten()
            .filter(|execution| !execution.is_nested())
            .filter_map(|execution| Some((execution.wall(now)?, execution)))
            .collect();
        if executions.is_empty() {
            return;
        }
        let total = executions.len();
        executions.sort_by_key(|(wall, execution)| (std::cmp::Reverse(*wall), execution.id));
        executions.truncate(EXECUTIONS_SHOWN);
        self.out.push('\n');
        self.line(format!("  Longest SQL executions ({} of {total}):", executions.len()));
        for (wall, execution) in executions {
            let mut line = format!(
                "    {:>6} {:>11}  {:<9}  {}",
                execution.id,
                humane::duration(wall),
                execution.status.as_str(),
                jobs(&jobs_below(application, execution)),
            );
            if execution.plan.is_none() {
                line.push_str(", plan unavailable");
            }
            if self.texts == SqlTexts::Shown {
                let first = execution.description.as_str().lines().next().unwrap_or_default();
                let _ = write!(line, "  {}", clean(first));
            }
            self.line(line);
        }
    }

    /// Streaming queries with their last batch.
    fn queries(&mut self, application: &Application) {
        let Some(queries) = application.streaming_queries.as_ref().filter(|all| !all.is_empty())
        else {
            return;
        };
        self.out.push('\n');
        self.line(format!("  Streaming queries ({}):", queries.len()));
        for query in queries.iter().rev().take(EXECUTIONS_SHOWN) {
            let mut line = format!(
                "    {} {}, {} batches",
                clean(query.name.as_deref().unwrap_or(&query.id)),
                query.state.as_str(),
                humane::number(query.batches_seen)
            );
            if let Some(last) = query.batches.last() {
                let _ = write!(line, "; the last, {}:", last.id);
                if let Some(duration) = last.duration {
                    let _ = write!(line, " {}", humane::duration(duration));
                }
                if let Some(rows) = last.input_rows {
                    let _ = write!(line, ", {} rows", humane::number(rows));
                }
                if let Some(rows) = last.state_rows() {
                    let _ = write!(line, ", {} rows of state", humane::number(rows));
                }
            }
            self.line(line);
        }
    }
}

/// Jobs of the execution and of those that it started.
fn jobs_below(application: &Application, execution: &SqlExecution) -> Vec<u32> {
    let mut jobs: Vec<u32> = application
        .sql
        .iter()
        .flatten()
        .filter(|other| other.id == execution.id || other.root_id == Some(execution.id))
        .flat_map(|other| other.job_ids.iter().copied())
        .collect();
    jobs.sort_unstable();
    jobs
}

/// The first jobs of a list.
fn jobs(ids: &[u32]) -> String {
    const SHOWN: usize = 6;
    if ids.is_empty() {
        return "no jobs".to_owned();
    }
    let shown: Vec<String> = ids.iter().take(SHOWN).map(ToString::to_string).collect();
    let noun = if ids.len() == 1 { "job" } else { "jobs" };
    let more = ids.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{noun} {}{rest}", shown.join(", "))
}

pub(super) fn paint(severity: Severity, text: &str, colours: Colours) -> String {
    if colours == Colours::None {
        return text.to_owned();
    }
    let code = match severity {
        Severity::Critical => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => "36",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

fn row(cells: [&str; 8]) -> String {
    let mut line = String::from("   ");
    for cell in cells {
        let _ = write!(line, " {cell:>11}");
    }
    line
}

fn heading(application: &Application) -> String {
    let mut line = format!("{} ({})", clean(&application.name), clean(&application.id.app_id));
    if let Some(attempt) = &application.id.attempt_id {
        let _ = write!(line, " attempt {}", clean(attempt));
    }
    if let Some(version) = &application.spark_version {
        let _ = write!(line, ", Spark {}", clean(version));
    }
    let _ = write!(line, ", {}, {}", application.kind.as_str(), application.state.as_str());
    if let Some(duration) = application.duration() {
        let _ = write!(line, ", {}", humane::duration(duration));
    }
    line
}

fn conclusion(application: &Application, findings: &[Finding]) -> String {
    if findings.is_empty() {
        return if application.data_quality.is_empty() {
            "Nothing found.".to_owned()
        } else {
            "Nothing found in what could be read.".to_owned()
        };
    }
    let of = |severity: Severity| findings.iter().filter(|f| f.severity == severity).count();
    let counts: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
        .into_iter()
        .map(|severity| (of(severity), severity))
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| format!("{count} {}", severity.as_str()))
        .collect();
    let saved: Duration = findings.iter().filter_map(|finding| finding.impact.wall).sum();
    let noun = if findings.len() == 1 { "finding" } else { "findings" };
    let mut line = format!("{} {noun}: {}", findings.len(), counts.join(", "));
    if let (false, Some(run)) = (saved.is_zero(), application.duration()) {
        let _ = write!(
            line,
            "; up to {} of {} could be saved",
            humane::duration(saved),
            humane::duration(run)
        );
    }
    line
}

fn savings(finding: &Finding) -> String {
    let parts: Vec<String> = [
        finding.impact.wall.map(|wall| format!("{} of wall time", humane::duration(wall))),
        finding.impact.core.map(humane::core_time),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "cost unknown".to_owned() } else { format!("costs {}", parts.join(", ")) }
}

fn evidence_line(evidence: &Evidence) -> String {
    let threshold = evidence
        .threshold
        .map_or(String::new(), |limit| format!(" (threshold {})", value(limit, evidence.unit)));
    format!(
        "{}: {}{threshold}, {}",
        evidence.name.replace('_', " "),
        value(evidence.value, evidence.unit),
        clean(&evidence.from)
    )
}

fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => {
            humane::duration(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX))
        }
        Unit::Bytes => humane::bytes(value.max(0.0) as u64),
        Unit::BytesPerSecond => humane::rate(value),
        Unit::Ratio => format!("{value:.2}"),
        Unit::Count => humane::number(value.max(0.0).round() as u64),
    }
}

/// What a mark means for whoever reads the findings.
fn quality(mark: DataQuality, application: &Application) -> String {
    let meaning = match mark {
        DataQuality::LogTruncated => "the log is cut off: what came after is missing",
        DataQuality::LogIncomplete => "the log has no end: the application runs, or was lost",
        DataQuality::LogCompacted => "the log was compacted: finished jobs are missing from it",
        DataQuality::CompressionRatio => {
            "the log is compressed beyond limits.compression_ratio: its rest was not read"
        }
        DataQuality::BadLines => "some lines of the log are not events and were skipped",
        DataQuality::LongLines => {
            "some lines of the log are over limits.line_size and were skipped"
        }
        DataQuality::NoApplicationStart => {
            "the log has no ApplicationStart: the id is the file's name"
        }
        DataQuality::DroppedEvents => "Spark dropped events: counts may be low",
        DataQuality::StagesEvicted => "Spark evicted stages before they could be read",
        DataQuality::TasksEvicted => "tasks are missing: some stages have no quantiles",
        DataQuality::QuantilesEstimated => {
            "stages with more tasks than limits.tasks_per_stage: their quantiles are within 1 %"
        }
        DataQuality::MissingTaskMetrics => {
            "some tasks ended without metrics: their work is not counted"
        }
        DataQuality::StagesOmitted => {
            return format!("{} stage attempts are left out", application.stages_omitted);
        }
        DataQuality::ConcurrentGc => {
            "concurrent collector: GC times mean nothing and are not judged"
        }
        DataQuality::EndpointsMissing => "parts of the REST API did not answer",
        DataQuality::ImplausibleValues => "negative or absurd numbers were dropped",
        DataQuality::SqlPlansMissing => "plans of SQL executions are missing or cut",
        DataQuality::SqlExecutionsOmitted => {
            return format!("{} SQL executions are left out", application.sql_omitted);
        }
        DataQuality::SqlMetricsRounded => {
            "metrics of plans come from the REST API, which shows sizes and times in three \
             digits; the event log has them exactly"
        }
        DataQuality::Databricks => {
            "a log of Databricks: a cluster with all that ran on it, and fewer metrics"
        }
    };
    format!("{} ({})", meaning, mark.as_str())
}

/// Without control characters, on one line.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
