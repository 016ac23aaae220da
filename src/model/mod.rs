//! What a Spark application is, whoever told us: the REST API of a driver or
//! a History Server ([`crate::rest`]), or an event log ([`crate::eventlog`]).
//!
//! The types are plain data. Times are [`jiff::Timestamp`], time spans are
//! [`std::time::Duration`], sizes are bytes in a `u64`: conversions from
//! Spark's mixture of milliseconds and nanoseconds happen where the data
//! comes in, never here. What a source cannot tell is `None`, never 0.

mod application;
mod column;
mod configuration;
mod distribution;
mod executor;
mod failure;
mod job;
mod kind;
mod kubernetes;
mod memory;
mod names;
mod plan;
mod pod;
mod pod_fate;
mod sql;
mod sql_error;
mod stage;
mod storage;
mod streaming;
mod task;
mod trace;

pub use application::{Application, DataQuality, RunId, Source, State};
pub use column::{Column, QUANTILE_ERROR};
pub(crate) use configuration::size;
pub use configuration::{Configuration, ResourceProfile};
pub use distribution::{Distribution, QUANTILES, Quantiles, Quantity, quantile_index};
pub use executor::{Executor, ExecutorTotals};
pub use failure::FailureClass;
pub use job::{Job, JobStatus};
pub use kind::Kind;
pub use kubernetes::{KubernetesFacts, OnKubernetes, PROVEN};
pub use memory::{Driver, MemoryPeaks};
pub(crate) use names::{Names, shorten};
pub use plan::{LargestTask, MetricKind, MetricValue, Plan, PlanMetric, PlanNode};
pub use pod::{
    ContainerEnd, DriverPod, ExecutorPod, Operator, Pod, PodName, PodPhase, Submission,
    SubmissionState,
};
pub use pod_fate::PodFate;
pub use sql::{SqlExecution, SqlStatus, SqlText};
pub(crate) use sql_error::error_class;
pub use stage::{
    ExecutorShare, Measures, Speculation, Stage, StageId, StageStatus, TaskCounts, TaskSpan,
};
pub use storage::CachedRdd;
pub use streaming::{
    SourceProgress, StateOperator, StreamingBatch, StreamingQuery, StreamingState,
};
pub use task::{FailedTask, Task, TaskMetrics, TaskStatus};
pub(crate) use trace::hash_of;
pub use trace::{SpanId, SpanOf, TraceContext, TraceId};
