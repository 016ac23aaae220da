//! One run of a Spark application.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    CachedRdd, Configuration, Driver, Executor, Job, JobStatus, Kind, OnKubernetes, SqlExecution,
    Stage, StreamingQuery,
};

/// A run that ends within so many seconds after a job failed, with nothing
/// after it, ended by it.
const MOMENTS: i64 = 5;

/// What tells one run from another: the operator's name for the cluster,
/// Spark's application id and, where the resource manager starts several, the
/// attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId {
    pub cluster: String,
    pub app_id: String,
    /// `None` outside YARN cluster mode.
    pub attempt_id: Option<String>,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster, self.app_id)?;
        match &self.attempt_id {
            Some(attempt) => write!(f, "/{attempt}"),
            None => Ok(()),
        }
    }
}

/// Where a run was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// REST API of the driver's own UI.
    Driver,
    /// REST API of a History Server, where it did not send the log.
    HistoryServer,
    /// An event log, in a directory or bucket or as a History Server sent it.
    EventLog,
    /// The log that a driver writes for people: jobs and stages in time, and
    /// no numbers of tasks.
    DriverLog,
    /// A plan as `EXPLAIN` shows it: no run at all.
    Explain,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::HistoryServer => "history_server",
            Self::EventLog => "event_log",
            Self::DriverLog => "driver_log",
            Self::Explain => "explain",
        }
    }

    /// How much its reading of a run that has ended tells, of two of the same
    /// run: the log has every task. The daemon reads no texts.
    pub(crate) fn tells(self) -> u8 {
        match self {
            Self::EventLog => 2,
            Self::HistoryServer => 1,
            Self::Driver | Self::DriverLog | Self::Explain => 0,
        }
    }
}

/// How a run stands, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Running,
    Succeeded,
    /// Non-zero exit code, or a resource manager said so.
    Failed,
    Killed,
    Cancelled,
    /// Its source says it is gone, without an ApplicationEnd.
    Lost,
    /// Ended, and nothing tells how (Spark wrote no exit code before 4.0), or
    /// a log that stopped without an end.
    Unknown,
}

impl State {
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Killed,
        Self::Cancelled,
        Self::Lost,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// What is wrong with the data itself. Rules that need the missing part stay
/// silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DataQuality {
    /// The log ends in the middle of a line or of a compressed frame.
    LogTruncated,
    /// The log has no ApplicationEnd: the application runs, or was lost.
    LogIncomplete,
    /// The History Server compacted the log: events of finished jobs are gone.
    LogCompacted,
    /// The log decompresses to more than `limits.compression_ratio` times its
    /// size: it was read up to there.
    CompressionRatio,
    /// Lines that are not an event: skipped.
    BadLines,
    /// Lines over the length limit: skipped.
    LongLines,
    /// No ApplicationStart: id taken from the file name.
    NoApplicationStart,
    /// Spark's listener bus dropped events: counts may be low.
    DroppedEvents,
    /// Stages were evicted from the driver's lists before we saw them.
    StagesEvicted,
    /// Tasks were evicted from the driver's lists: quantiles of that stage
    /// are absent.
    TasksEvicted,
    /// A stage has more tasks than `limits.tasks_per_stage`: its quantiles
    /// are within [`super::QUANTILE_ERROR`] of the exact ones.
    QuantilesEstimated,
    /// Task ends without metrics (lost executors): their work is not counted.
    MissingTaskMetrics,
    /// More stage attempts than `limits.stages`: the cheapest are left out.
    StagesOmitted,
    /// ZGC or Shenandoah: Spark adds up concurrent cycles as if they stopped
    /// the program, so GC fractions mean nothing.
    ConcurrentGc,
    /// One or more REST endpoints did not answer.
    EndpointsMissing,
    /// Negative or absurd numbers were dropped.
    ImplausibleValues,
    /// The start of SQL executions is missing, or their plans are over
    /// `limits.plan_nodes`: their plans are unavailable.
    SqlPlansMissing,
    /// More SQL executions than `limits.sql_executions`: old and short ones
    /// are left out.
    SqlExecutionsOmitted,
    /// Metrics of plans were read from texts for people (REST): sizes and
    /// times are cut to three digits, and which tasks told them is unknown
    /// but for the largest.
    SqlMetricsRounded,
    /// A log of Databricks, where one application is one cluster with all its
    /// notebooks, has no end, and where tasks of its own engine carry few of
    /// Spark's metrics.
    Databricks,
}

impl DataQuality {
    pub const ALL: [Self; 20] = [
        Self::LogTruncated,
        Self::LogIncomplete,
        Self::LogCompacted,
        Self::CompressionRatio,
        Self::BadLines,
        Self::LongLines,
        Self::NoApplicationStart,
        Self::DroppedEvents,
        Self::StagesEvicted,
        Self::TasksEvicted,
        Self::QuantilesEstimated,
        Self::MissingTaskMetrics,
        Self::StagesOmitted,
        Self::ConcurrentGc,
        Self::EndpointsMissing,
        Self::ImplausibleValues,
        Self::SqlPlansMissing,
        Self::SqlExecutionsOmitted,
        Self::SqlMetricsRounded,
        Self::Databricks,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::LogTruncated => "log_truncated",
            Self::LogIncomplete => "log_incomplete",
            Self::LogCompacted => "log_compacted",
            Self::CompressionRatio => "compression_ratio",
            Self::BadLines => "bad_lines",
            Self::LongLines => "long_lines",
            Self::NoApplicationStart => "no_application_start",
            Self::DroppedEvents => "dropped_events",
            Self::StagesEvicted => "stages_evicted",
            Self::TasksEvicted => "tasks_evicted",
            Self::QuantilesEstimated => "quantiles_estimated",
            Self::MissingTaskMetrics => "missing_task_metrics",
            Self::StagesOmitted => "stages_omitted",
            Self::ConcurrentGc => "concurrent_gc",
            Self::EndpointsMissing => "endpoints_missing",
            Self::ImplausibleValues => "implausible_values",
            Self::SqlPlansMissing => "sql_plans_missing",
            Self::SqlExecutionsOmitted => "sql_executions_omitted",
            Self::SqlMetricsRounded => "sql_metrics_rounded",
            Self::Databricks => "databricks",
        }
    }
}

/// One run of a Spark application, as far as its source tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    pub id: RunId,
    pub name: String,
    /// Of the application, not of the History Server that shows it.
    pub spark_version: Option<String>,
    pub user: Option<String>,
    pub source: Source,
    pub kind: Kind,
    pub state: State,
    pub start: Option<Timestamp>,
    /// `None` while it runs, or where the end is not known.
    pub end: Option<Timestamp>,
    /// The latest moment this data speaks of, on Spark's own clock where the
    /// source carries one (the last event of a log), else on ours.
    pub observed: Timestamp,
    pub exit_code: Option<i32>,
    pub configuration: Configuration,
    /// Ascending by id.
    pub jobs: Vec<Job>,
    /// Every stage attempt, ascending by (stage id, attempt), skipped ones
    /// included.
    pub stages: Vec<Stage>,
    /// Without the driver (see [`Application::local_mode`]); removed ones
    /// included.
    pub executors: Vec<Executor>,
    pub cached: Vec<CachedRdd>,
    /// Memory of the driver; `None` where the source does not tell.
    pub driver: Option<Driver>,
    /// SQL executions, ascending by id. `None`: the source was not asked, or
    /// did not answer.
    pub sql: Option<Vec<SqlExecution>>,
    /// Executions left out of `sql`.
    pub sql_omitted: u64,
    /// Runs of streaming queries in the order of their start. `None`: the
    /// source does not tell (REST).
    pub streaming_queries: Option<Vec<StreamingQuery>>,
    pub data_quality: BTreeSet<DataQuality>,
    /// Stage attempts left out of `stages` (evicted by Spark, or over our
    /// limit).
    pub stages_omitted: u64,
    /// `None`: nobody told anything of it ([`Application::learn`]).
    pub kubernetes: Option<Box<OnKubernetes>>,
}

impl Application {
    /// A run of which nothing but its identity is known yet.
    pub fn new(id: RunId, source: Source, observed: Timestamp) -> Self {
        Self {
            name: id.app_id.clone(),
            id,
            spark_version: None,
            user: None,
            source,
            kind: Kind::Batch,
            state: State::Unknown,
            start: None,
            end: None,
            observed,
            exit_code: None,
            configuration: Configuration::default(),
            jobs: Vec::new(),
            stages: Vec::new(),
            executors: Vec::new(),
            cached: Vec::new(),
            driver: None,
            sql: None,
            sql_omitted: 0,
            streaming_queries: None,
            data_quality: BTreeSet::new(),
            stages_omitted: 0,
            kubernetes: None,
        }
    }

    /// Start to end, or to the latest observation while it runs. Never
    /// negative, whatever the clocks say.
    pub fn duration(&self) -> Option<Duration> {
        Some(span(self.start?, self.end.unwrap_or(self.observed)))
    }

    /// In local mode the driver is the only executor: Spark calls it `driver`
    /// and it is kept among [`Application::executors`].
    pub fn local_mode(&self) -> bool {
        self.executors.iter().any(|executor| executor.id == "driver")
    }

    /// Whether the run ended by the failure of this job, as far as times can
    /// tell: nothing came after it, and the end did within moments.
    ///
    /// An exit code of 0 does not speak against it: Spark 4 writes 0 also for
    /// a program that died of an exception, whose shutdown hook stops the
    /// context (seen with PySpark 4.3.0 on a Standalone cluster). Only on
    /// Kubernetes does spark-submit hand the program's own code on, and does
    /// the pod tell it.
    pub fn died_with(&self, job: &Job) -> bool {
        let programs_own_code = self.proved_success()
            || self.exit_code.is_some()
                && self.configuration.get("spark.master").is_some_and(|url| url.starts_with("k8s"));
        let (Some(end), Some(failed_at)) = (self.end, job.completed) else { return false };
        !programs_own_code
            && job.status == JobStatus::Failed
            && !self.went_on_after(job)
            && end.duration_since(failed_at) <= SignedDuration::from_secs(MOMENTS)
    }

    /// Whether a later job ran that was not cancelled and did not fail.
    pub fn went_on_after(&self, job: &Job) -> bool {
        self.jobs.iter().any(|other| {
            other.id > job.id
                && other.submitted >= job.completed
                && !matches!(other.status, JobStatus::Cancelled | JobStatus::Failed)
        })
    }

    /// A success that the exit code claims and a fatal job speaks against is
    /// none: nothing tells then how the run ended.
    pub(crate) fn doubt_success(&mut self) {
        if self.state == State::Succeeded && self.jobs.iter().any(|job| self.died_with(job)) {
            self.state = State::Unknown;
        }
    }

    pub fn has(&self, quality: DataQuality) -> bool {
        self.data_quality.contains(&quality)
    }
}

/// Time from `from` to `to`; zero where `to` is earlier (clocks of driver and
/// executors differ).
pub(crate) fn span(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
