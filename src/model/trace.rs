//! Trace and span ids: worked out from what names a run and its parts, so
//! that whoever knows the run knows its trace, and sending a part twice gives
//! the same span.
//!
//! An id is the XXH3 hash (128 bits for traces, the lower 64 for spans) of
//! the parts of its name, each followed by a zero byte.

use std::fmt;

use jiff::Timestamp;
use twox_hash::XxHash3_128;

use super::{Application, RunId, StageId};

mod context;

pub use context::TraceContext;

/// As W3C Trace Context has it; never all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// As W3C Trace Context has it; never all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

/// What has a span in the trace of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanOf {
    Application,
    SqlExecution(u64),
    Job(u32),
    Stage(StageId),
    /// By Spark's task id.
    Task(u64),
}

impl TraceId {
    /// The trace that the application's span is in: that of the context it was
    /// started with, where it has one that is sampled, else
    /// [`TraceId::of_run`].
    pub fn of(application: &Application) -> Self {
        match application.trace_parent() {
            Some(parent) => parent.trace_id,
            None => Self::of_run(&application.id, application.start),
        }
    }

    /// Of a run: `spark_cluster`, `app_id`, `attempt_id` (empty where there
    /// is none) and its start in milliseconds since the epoch (0 where it is
    /// not known).
    pub fn of_run(id: &RunId, start: Option<Timestamp>) -> Self {
        let start = start.map_or(0, Timestamp::as_millisecond).to_string();
        let attempt = id.attempt_id.as_deref().unwrap_or_default();
        Self(hash(&[&id.cluster, &id.app_id, attempt, &start]).to_be_bytes())
    }

    /// Of a part of a run that never ends, which has a trace of its own.
    pub fn of_part(run: Self, part: SpanOf) -> Self {
        Self(hash(&[&run.to_string(), &part.to_string(), "trace"]).to_be_bytes())
    }
}

impl SpanId {
    /// `run`: the id of [`TraceId::of_run`], whichever trace the span is in.
    pub fn of(run: TraceId, part: SpanOf) -> Self {
        let hash = hash(&[&run.to_string(), &part.to_string()]);
        Self((hash as u64).to_be_bytes())
    }
}

/// Of a name in parts, where 64 bits are enough.
pub(crate) fn hash_of(parts: &[&str]) -> u64 {
    hash(parts) as u64
}

fn hash(parts: &[&str]) -> u128 {
    let mut bytes = Vec::with_capacity(128);
    for part in parts {
        bytes.extend_from_slice(part.as_bytes());
        bytes.push(0);
    }
    let hash = XxHash3_128::oneshot(&bytes);
    // Zero is no id in either half.
    if hash as u64 == 0 { hash | 1 } else { hash }
}

impl fmt::Display for SpanOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application => f.write_str("application"),
            Self::SqlExecution(id) => write!(f, "sql {id}"),
            Self::Job(id) => write!(f, "job {id}"),
            Self::Stage(id) => write!(f, "stage {id}"),
            Self::Task(id) => write!(f, "task {id}"),
        }
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
