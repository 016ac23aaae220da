//! When each rule fires. Every default names its source.
//!
//! In the configuration file:
//!
//! ```yaml
//! thresholds:
//!   data_skew:
//!     run_time_ratio: 6
//!   gc_pressure:
//!     enabled: false
//! ```

mod cost;
mod numbers;
mod overrides;
mod run;
mod sql;
mod stages;

use serde::{Deserialize, Serialize};

pub use cost::Cost;
pub use overrides::{NamePattern, ThresholdOverride};
pub(super) use overrides::{Written, check as check_overrides, for_name};
pub use run::*;
pub use sql::*;
pub use stages::*;

/// Thresholds of all rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    pub cost: Cost,
    pub data_skew: DataSkew,
    pub straggler: Straggler,
    pub spill: Spill,
    pub gc_pressure: GcPressure,
    pub io_bound: IoBound,
    pub shuffle_heavy: ShuffleHeavy,
    pub partitioning: Partitioning,
    pub scheduling_delay: SchedulingDelay,
    pub cold_start: ColdStart,
    pub driver_gap: DriverGap,
    pub application_idle: ApplicationIdle,
    pub stuck_stage: StuckStage,
    pub idle_cores: IdleCores,
    pub task_failures: TaskFailures,
    pub stage_retries: StageRetries,
    pub fetch_failures: FetchFailures,
    pub speculation_waste: SpeculationWaste,
    pub executor_lost: ExecutorLost,
    pub memory: Memory,
    pub job_failed: JobFailed,
    pub application_failed: ApplicationFailed,
    pub configuration: Configuration,
    pub join_explosion: JoinExplosion,
    pub cartesian: Cartesian,
    pub partial_aggregation: PartialAggregation,
    pub count_distinct: CountDistinct,
    pub python_udf: PythonUdf,
    pub large_broadcast: LargeBroadcast,
    pub missed_broadcast: MissedBroadcast,
    pub cache_evicted: CacheEvicted,
    pub small_files_read: SmallFilesRead,
    pub small_files_written: SmallFilesWritten,
    pub full_scan: FullScan,
    pub repeated_subplan: RepeatedSubplan,
    pub streaming_behind: StreamingBehind,
    pub regression: Regression,
}
