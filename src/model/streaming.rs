//! Streaming queries (Structured Streaming) and their newest batches.
//!
//! Found in event logs only. Batches of the older DStreams are in no event
//! that Spark logs: of them only the jobs are seen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::SqlText;

/// One run of a streaming query: a restart within the application has the
/// same `id` and another `run_id`.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamingQuery {
    /// The checkpoint's id: it survives restarts.
    pub id: String,
    pub run_id: String,
    /// Given by the user.
    pub name: Option<String>,
    pub started: Option<Timestamp>,
    pub state: StreamingState,
    /// Spark does not say when a query ended: the latest moment the log had
    /// told of when it said that it had.
    pub ended: Option<Timestamp>,
    /// First lines of what ended it.
    pub exception: Option<SqlText>,
    pub error_class: Option<String>,
    /// The newest, ascending: at most 100.
    pub batches: Vec<StreamingBatch>,
    /// All of which a progress event told.
    pub batches_seen: u64,
    /// When it last said that it had nothing to do.
    pub idle_since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamingState {
    /// No end was told: it runs, or ended with its application.
    Active,
    /// Stopped, or done with what there was.
    Stopped,
    /// Ended by an exception.
    Failed,
}

impl StreamingState {
    pub const ALL: [Self; 3] = [Self::Active, Self::Stopped, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// What one progress event told. A query without data tells now and then as
/// well, of a batch that it has told of before or will.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamingBatch {
    pub id: u64,
    /// When its trigger began.
    pub start: Option<Timestamp>,
    /// Start to end of the trigger (`triggerExecution`).
    pub duration: Option<Duration>,
    /// The parts of it by Spark's names (`addBatch`, `queryPlanning`, ...).
    pub parts: Vec<(Arc<str>, Duration)>,
    pub input_rows: Option<u64>,
    /// Rows that arrived a second since the last trigger began.
    pub input_rows_per_second: Option<f64>,
    /// Rows processed a second of this trigger.
    pub processed_rows_per_second: Option<f64>,
    /// `None` where the sink does not count (Spark says -1).
    pub output_rows: Option<u64>,
    pub sources: Vec<SourceProgress>,
    pub state: Vec<StateOperator>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SourceProgress {
    /// Name of its class or format, without arguments.
    pub name: String,
    pub input_rows: Option<u64>,
    /// The newest offset less the batch's last one, in the source's own unit
    /// (Kafka: records, over all partitions); `None` where its offsets are no
    /// numbers.
    pub backlog: Option<u64>,
}

/// A stateful operator of the query.
#[derive(Debug, Clone, PartialEq)]
pub struct StateOperator {
    pub name: String,
    pub rows: Option<u64>,
    pub rows_updated: Option<u64>,
    /// `None` where Spark tells nothing that can be true: the same shared
    /// memory once for each store (SPARK-48208), or 0 beside rows
    /// (SPARK-53002).
    pub memory_bytes: Option<u64>,
    pub commit_time: Option<Duration>,
    pub rows_dropped_late: Option<u64>,
}

impl StreamingBatch {
    /// The end of its trigger.
    pub fn end(&self) -> Option<Timestamp> {
        self.start?.checked_add(jiff::SignedDuration::try_from(self.duration?).ok()?).ok()
    }

    /// Rows of state over all operators; `None` without one that tells.
    pub fn state_rows(&self) -> Option<u64> {
        self.state.iter().filter_map(|operator| operator.rows).reduce(u64::saturating_add)
    }

    /// Over all sources that tell.
    pub fn backlog(&self) -> Option<u64> {
        self.sources.iter().filter_map(|source| source.backlog).reduce(u64::saturating_add)
    }
}
