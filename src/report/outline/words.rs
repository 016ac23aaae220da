//! Words and numbers that several sections say alike.

use std::time::Duration;

use crate::diagnose::{BlockedBy, Finding, FindingKind, TimePart, Unit, Where, humane};
use crate::model::{Application, DataQuality};

/// Of a value that the source does not tell.
pub(crate) const UNKNOWN: &str = "?";

pub(crate) fn time(time: Option<Duration>) -> String {
    time.map_or(UNKNOWN.to_owned(), humane::duration)
}

pub(crate) fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or(UNKNOWN.to_owned(), humane::bytes)
}

/// A number of an evidence.
pub(crate) fn value(value: f64, unit: Unit) -> String {
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

/// `costs 7.0 s of wall time, 14 core-seconds`.
pub(crate) fn savings(finding: &Finding) -> String {
    let parts: Vec<String> = [
        finding.impact.wall.map(|wall| format!("{} of wall time", humane::duration(wall))),
        finding.impact.core.map(humane::core_time),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "cost unknown".to_owned() } else { format!("costs {}", parts.join(", ")) }
}

pub(crate) fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Data => "the data",
        FindingKind::Resources => "resources",
        FindingKind::Configuration => "configuration",
    }
}

pub(crate) fn place(place: Where) -> &'static str {
    match place {
        Where::Conf => "configuration",
        Where::Sql => "SQL or code",
        Where::Data => "data",
        Where::Resources => "resources",
    }
}

/// What an instant went to, for a reader.
pub(crate) fn part(part: TimePart) -> &'static str {
    match part {
        TimePart::Resources => "no executor",
        TimePart::Driver => "driver, no job",
        TimePart::Scheduling => "waiting to start tasks",
        TimePart::Deserialize => "loading task code",
        TimePart::Cpu => "CPU",
        TimePart::Gc => "garbage collection",
        TimePart::FetchWait => "waiting for shuffle data",
        TimePart::ShuffleWrite => "writing shuffle data",
        TimePart::Result => "results",
        TimePart::Blocked => "blocked",
    }
}

/// What blocked time most likely was: an inference, and said as one.
pub(crate) fn blocked_by(by: BlockedBy) -> &'static str {
    match by {
        BlockedBy::Input => "most likely reading input",
        BlockedBy::Output => "most likely writing output",
        BlockedBy::Spill => "most likely spilling to disk",
        BlockedBy::Python => "most likely in Python",
        BlockedBy::Unknown => "disk, network, Python or locks: Spark does not say which",
    }
}

/// `3 more jobs`, `1 more job`.
pub(crate) fn more(count: usize, one: &str, many: &str) -> String {
    format!("{} more {}", humane::number(count as u64), if count == 1 { one } else { many })
}

/// What a mark means for whoever reads the findings.
pub(crate) fn quality(mark: DataQuality, application: &Application) -> String {
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
