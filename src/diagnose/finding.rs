//! What a rule says when it fires.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::StageId;

/// Each rule by its public name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    DataSkew,
    Straggler,
    Spill,
    GcPressure,
    IoBound,
    ShuffleHeavy,
    Partitioning,
    SchedulingDelay,
    ColdStart,
    DriverGap,
    ApplicationIdle,
    StuckStage,
    IdleCores,
    TaskFailures,
    StageRetries,
    FetchFailures,
    SpeculationWaste,
    ExecutorLost,
    Memory,
    JobFailed,
    ApplicationFailed,
    Configuration,
    JoinExplosion,
    Cartesian,
    PartialAggregation,
    CountDistinct,
    PythonUdf,
    LargeBroadcast,
    MissedBroadcast,
    CacheEvicted,
    SmallFilesRead,
    SmallFilesWritten,
    FullScan,
    RepeatedSubplan,
    StreamingBehind,
    Regression,
}

impl Rule {
    pub const ALL: [Self; 36] = [
        Self::DataSkew,
        Self::Straggler,
        Self::Spill,
        Self::GcPressure,
        Self::IoBound,
        Self::ShuffleHeavy,
        Self::Partitioning,
        Self::SchedulingDelay,
        Self::ColdStart,
        Self::DriverGap,
        Self::ApplicationIdle,
        Self::StuckStage,
        Self::IdleCores,
        Self::TaskFailures,
        Self::StageRetries,
        Self::FetchFailures,
        Self::SpeculationWaste,
        Self::ExecutorLost,
        Self::Memory,
        Self::JobFailed,
        Self::ApplicationFailed,
        Self::Configuration,
        Self::JoinExplosion,
        Self::Cartesian,
        Self::PartialAggregation,
        Self::CountDistinct,
        Self::PythonUdf,
        Self::LargeBroadcast,
        Self::MissedBroadcast,
        Self::CacheEvicted,
        Self::SmallFilesRead,
        Self::SmallFilesWritten,
        Self::FullScan,
        Self::RepeatedSubplan,
        Self::StreamingBehind,
        Self::Regression,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::DataSkew => "data_skew",
            Self::Straggler => "straggler",
            Self::Spill => "spill",
            Self::GcPressure => "gc_pressure",
            Self::IoBound => "io_bound",
            Self::ShuffleHeavy => "shuffle_heavy",
            Self::Partitioning => "partitioning",
            Self::SchedulingDelay => "scheduling_delay",
            Self::ColdStart => "cold_start",
            Self::DriverGap => "driver_gap",
            Self::ApplicationIdle => "application_idle",
            Self::StuckStage => "stuck_stage",
            Self::IdleCores => "idle_cores",
            Self::TaskFailures => "task_failures",
            Self::StageRetries => "stage_retries",
            Self::FetchFailures => "fetch_failures",
            Self::SpeculationWaste => "speculation_waste",
            Self::ExecutorLost => "executor_lost",
            Self::Memory => "memory",
            Self::JobFailed => "job_failed",
            Self::ApplicationFailed => "application_failed",
            Self::Configuration => "configuration",
            Self::JoinExplosion => "join_explosion",
            Self::Cartesian => "cartesian",
            Self::PartialAggregation => "partial_aggregation",
            Self::CountDistinct => "count_distinct",
            Self::PythonUdf => "python_udf",
            Self::LargeBroadcast => "large_broadcast",
            Self::MissedBroadcast => "missed_broadcast",
            Self::CacheEvicted => "cache_evicted",
            Self::SmallFilesRead => "small_files_read",
            Self::SmallFilesWritten => "small_files_written",
            Self::FullScan => "full_scan",
            Self::RepeatedSubplan => "repeated_subplan",
            Self::StreamingBehind => "streaming_behind",
            Self::Regression => "regression",
        }
    }
}

/// Why, in a closed list: safe as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    HotKey,
    CompressibleHotKey,
    InputFiles,
    ColdExecutor,
    SlowHost,
    Gc,
    FetchWait,
    Locality,
    CoresBusy,
    NoExecutors,
    NoExecutor,
    Driver,
    HeapOom,
    ContainerMemory,
    Killed,
    Preempted,
    Decommissioned,
    Heartbeat,
    NodeLost,
    SlowVectorised,
    SettingsChanged,
    PlanChanged,
    FewerCores,
    Unknown,
}

impl Cause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HotKey => "hot_key",
            Self::CompressibleHotKey => "compressible_hot_key",
            Self::InputFiles => "input_files",
            Self::ColdExecutor => "cold_executor",
            Self::SlowHost => "slow_host",
            Self::Gc => "gc",
            Self::FetchWait => "fetch_wait",
            Self::Locality => "locality",
            Self::CoresBusy => "cores_busy",
            Self::NoExecutors => "no_executors",
            Self::NoExecutor => "no_executor",
            Self::Driver => "driver",
            Self::HeapOom => "heap_oom",
            Self::ContainerMemory => "container_memory",
            Self::Killed => "killed",
            Self::Preempted => "preempted",
            Self::Decommissioned => "decommissioned",
            Self::Heartbeat => "heartbeat",
            Self::NodeLost => "node_lost",
            Self::SlowVectorised => "slow_vectorised",
            Self::SettingsChanged => "settings_changed",
            Self::PlanChanged => "plan_changed",
            Self::FewerCores => "fewer_cores",
            Self::Unknown => "unknown",
        }
    }
}

/// How bad, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

impl Severity {
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Whose problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    Data,
    Resources,
    Configuration,
}

/// How far to believe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

impl Confidence {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// One step less sure.
    #[must_use]
    pub fn lower(self) -> Self {
        match self {
            Self::High => Self::Medium,
            Self::Medium | Self::Low => Self::Low,
        }
    }
}

/// What the finding is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    Application,
    Job {
        job_id: u32,
    },
    Stage {
        stage_id: u32,
        stage_attempt_id: u32,
    },
    Executor {
        executor_id: String,
    },
    Host {
        host: String,
    },
    ConfigurationKey {
        key: String,
    },
    SqlExecution {
        sql_id: u64,
    },
    /// `node`: its place in the plan's list of nodes.
    PlanNode {
        sql_id: u64,
        node: u32,
    },
}

impl Subject {
    /// The word of its kind, as in the `subject` label.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Job { .. } => "job",
            Self::Stage { .. } => "stage",
            Self::Executor { .. } => "executor",
            Self::Host { .. } => "host",
            Self::ConfigurationKey { .. } => "configuration_key",
            Self::SqlExecution { .. } => "sql_execution",
            Self::PlanNode { .. } => "plan_node",
        }
    }
}

impl From<StageId> for Subject {
    fn from(id: StageId) -> Self {
        Self::Stage { stage_id: id.stage, stage_attempt_id: id.attempt }
    }
}

/// The unit of an evidence value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Seconds,
    Bytes,
    BytesPerSecond,
    Ratio,
    Count,
}

/// One number that the finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    pub name: &'static str,
    pub value: f64,
    pub unit: Unit,
    /// What it was held against; `None` where it only illustrates.
    pub threshold: Option<f64>,
    /// Where it was read: `stage 3.0`, `task 17 on executor 2`.
    pub from: String,
}

/// What would be saved without the fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impact {
    /// Of the run's wall time; `None` where Spark gives no time for the fault.
    pub wall: Option<Duration>,
    /// Core-seconds; `None` likewise.
    pub core: Option<Duration>,
    /// Worked out from quantiles and the slowest tasks, or while the stage
    /// still runs: not from every task. Confidence is then a step lower.
    pub estimated: bool,
}

/// Where a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    Conf,
    Sql,
    Data,
    Resources,
}

/// One thing to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub change: String,
    #[serde(rename = "where")]
    pub place: Where,
    /// When it does not help.
    pub not_when: Option<String>,
}

/// One thing that is wrong with a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub rule: Rule,
    pub cause: Option<Cause>,
    pub severity: Severity,
    pub kind: FindingKind,
    pub subject: Subject,
    /// One line with its numbers.
    pub headline: String,
    pub evidence: Vec<Evidence>,
    pub impact: Impact,
    pub confidence: Confidence,
    /// In order of expected gain.
    pub advice: Vec<Advice>,
}

impl Finding {
    /// The stage attempt it is about, if any.
    pub fn stage(&self) -> Option<StageId> {
        match self.subject {
            Subject::Stage { stage_id, stage_attempt_id } => {
                Some(StageId { stage: stage_id, attempt: stage_attempt_id })
            }
            _ => None,
        }
    }
}
