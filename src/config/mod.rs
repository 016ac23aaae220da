//! What the operator may say, with its meaning, its default and its checks.

mod limits;
mod thresholds;
mod units;

pub use limits::Limits;
pub use thresholds::{
    Cost, DataSkew, ExecutorLost, GcPressure, IoBound, JobFailed, Partitioning, SchedulingDelay,
    Spill, StageRetries, Straggler, TaskFailures, Thresholds,
};
pub use units::{Size, Span};
