//! SQL executions: one each for a query, a command, a batch of a stream.
//!
//! Event logs tell them exactly; the REST API shows plan metrics as text cut
//! to three digits ([`super::DataQuality::SqlMetricsRounded`]).

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::application::span;
use super::{Configuration, Plan};

/// Text that a user wrote or that was made from it: SQL, a description, the
/// arguments of a plan's node. It may hold anything, secrets too, so it is
/// never a label, shown only on demand, and not part of debug output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SqlText(Box<str>);

impl SqlText {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for SqlText {
    fn from(text: String) -> Self {
        Self(text.into_boxed_str())
    }
}

impl From<&str> for SqlText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SqlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlText({} bytes)", self.0.len())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlStatus {
    Running,
    Completed,
    Failed,
    /// Ended by somebody's wish, as [`super::JobStatus::Cancelled`].
    Cancelled,
    /// Its end never came, and the application has ended.
    Unknown,
}

impl SqlStatus {
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Completed, Self::Failed, Self::Cancelled, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// One execution.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlExecution {
    pub id: u64,
    /// The execution that started this one (`CREATE TABLE ... AS` runs its
    /// query as another), or its own id; `None` where the log does not tell
    /// (before 3.4, SPARK-41752).
    pub root_id: Option<u64>,
    pub status: SqlStatus,
    /// `None` where its start is missing from the log.
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// `spark.job.description`, or the call site; cut.
    pub description: SqlText,
    /// Spark's error condition (`DIVIDE_BY_ZERO`) or the exception's class.
    pub error_class: Option<String>,
    /// First lines of its error message.
    pub error: Option<SqlText>,
    /// Ascending. Its stages are those of these jobs.
    pub job_ids: Vec<u32>,
    /// Session settings (`spark.sql.*`) that differ from the application's.
    pub configuration: Configuration,
    /// How often adaptive execution replaced the plan; from REST, which does
    /// not tell, 0.
    pub plan_updates: u32,
    /// The last plan. `None`: unavailable, because the start is missing from
    /// the log (SPARK-49872) or the plans together are over
    /// `limits.plan_nodes`. It never means that there was no SQL.
    pub plan: Option<Plan>,
}

impl SqlExecution {
    /// An execution of which only the id is known.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            root_id: None,
            status: SqlStatus::Unknown,
            start: None,
            end: None,
            description: SqlText::default(),
            error_class: None,
            error: None,
            job_ids: Vec::new(),
            configuration: Configuration::default(),
            plan_updates: 0,
            plan: None,
        }
    }

    /// Started by another execution, whose time contains its own: sums are
    /// over the others.
    pub fn is_nested(&self) -> bool {
        self.root_id.is_some_and(|root| root != self.id)
    }

    /// Start to end, or to `now` while it runs.
    pub fn wall(&self, now: Timestamp) -> Option<Duration> {
        let end = match self.status {
            SqlStatus::Running => self.end.unwrap_or(now),
            _ => self.end?,
        };
        Some(span(self.start?, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_text() {
        let mut execution = SqlExecution::new(1);
        execution.description = "select 'hunter2'".into();
        execution.error = Some("hunter2".into());
        assert!(!format!("{execution:?}").contains("hunter2"));
    }
}
