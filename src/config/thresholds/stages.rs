//! Thresholds of rules about stages and their tasks.

use serde::{Deserialize, Serialize};

use super::super::units::{Size, Span};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSkew {
    pub enabled: bool,
    /// Slowest task's run time to the typical one, 10 tasks and more. Dr.
    /// Elephant's stage skew warns from 2 to 8, AQE's skew join from 5.
    pub run_time_ratio: f64,
    /// The same for fewer than 10 tasks.
    pub run_time_ratio_few_tasks: f64,
    /// Slowest task's records to the typical ones.
    pub records_ratio: f64,
    /// Records ratio over bytes ratio from which the hot key is called
    /// compressible: AQE looks at compressed bytes.
    pub compressible_ratio: f64,
}

impl Default for DataSkew {
    fn default() -> Self {
        Self {
            enabled: true,
            run_time_ratio: 4.0,
            run_time_ratio_few_tasks: 3.0,
            records_ratio: 2.0,
            compressible_ratio: 2.0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Straggler {
    pub enabled: bool,
    pub run_time_ratio: f64,
    pub run_time_ratio_few_tasks: f64,
    /// Deserialization to duration from which the executor was cold.
    pub cold_deserialize_ratio: f64,
    /// Stages in which a host must be slow to be called so ...
    pub slow_host_stages: u32,
    /// ... or the share of the slow tasks that it holds.
    pub slow_host_share: f64,
}

impl Default for Straggler {
    fn default() -> Self {
        Self {
            enabled: true,
            run_time_ratio: 4.0,
            run_time_ratio_few_tasks: 3.0,
            cold_deserialize_ratio: 0.3,
            slow_host_stages: 3,
            slow_host_share: 0.75,
        }
    }
}

/// Ratios are those of Dr. Elephant's execution memory spill heuristic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spill {
    pub enabled: bool,
    /// Disk spill over the largest of input, output, shuffle read and write.
    pub ratio: f64,
    /// Needed besides the ratio: this much on disk ...
    pub disk_bytes: Size,
    /// ... or this much in memory.
    pub memory_bytes: Size,
    pub warning_ratio: f64,
    pub warning_bytes: Size,
    pub critical_ratio: f64,
    pub critical_bytes: Size,
}

impl Default for Spill {
    fn default() -> Self {
        Self {
            enabled: true,
            ratio: 0.01,
            disk_bytes: Size::mib(16),
            memory_bytes: Size::mib(256),
            warning_ratio: 0.10,
            warning_bytes: Size::gib(1),
            critical_ratio: 0.25,
            critical_bytes: Size::gib(10),
        }
    }
}

/// 10 % is where Spark's own UI turns an executor red (SPARK-12149), 20 %
/// Dr. Elephant's critical.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcPressure {
    pub enabled: bool,
    pub warning_ratio: f64,
    pub critical_ratio: f64,
    pub stage_run_time: Span,
    pub median_task: Span,
}

impl Default for GcPressure {
    fn default() -> Self {
        Self {
            enabled: true,
            warning_ratio: 0.10,
            critical_ratio: 0.20,
            stage_run_time: Span::seconds(10),
            median_task: Span::millis(100),
        }
    }
}

/// 3 MB/s per core is the figure of Databricks' guide to the Spark UI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IoBound {
    pub enabled: bool,
    /// Bytes per second and core, MB being 10^6.
    pub bytes_per_second_per_core: f64,
    /// Not where this much of the data was spilled.
    pub spill_ratio: f64,
    /// Not where the slowest task takes this many times the median.
    pub run_time_ratio: f64,
    /// Not where executor CPU time is at least this share of run time.
    pub cpu_ratio: f64,
}

impl Default for IoBound {
    fn default() -> Self {
        Self {
            enabled: true,
            bytes_per_second_per_core: 3_000_000.0,
            spill_ratio: 0.01,
            run_time_ratio: 3.0,
            cpu_ratio: 0.5,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShuffleHeavy {
    pub enabled: bool,
    /// Shuffle write over input.
    pub ratio: f64,
    /// And at least this much written.
    pub bytes: Size,
}

impl Default for ShuffleHeavy {
    fn default() -> Self {
        Self { enabled: true, ratio: 2.0, bytes: Size::gib(10) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Partitioning {
    pub enabled: bool,
    /// Fewer tasks than cores matters in stages with this share of the run.
    pub few_tasks_ratio: f64,
    /// DataFlint's smallTasks: more tasks than this ...
    pub many_tasks: u64,
    /// ... with a median below this.
    pub small_task: Span,
    /// DataFlint's maxPartitionToBig: bytes of the largest task.
    pub task_bytes: Size,
    /// What a partition should hold, for the suggested count
    /// (`spark.sql.files.maxPartitionBytes`).
    pub target_bytes: Size,
}

impl Default for Partitioning {
    fn default() -> Self {
        Self {
            enabled: true,
            few_tasks_ratio: 0.05,
            many_tasks: 5_000,
            small_task: Span::millis(500),
            task_bytes: Size::gib(5),
            target_bytes: Size::mib(128),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulingDelay {
    pub enabled: bool,
    pub at: Span,
    pub ratio: f64,
}

impl Default for SchedulingDelay {
    fn default() -> Self {
        Self { enabled: true, at: Span::seconds(10), ratio: 0.05 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StuckStage {
    pub enabled: bool,
    /// No task ended for this long ...
    pub at: Span,
    /// ... or for this many times the 95th percentile of its run times.
    pub p95_ratio: f64,
}

impl Default for StuckStage {
    fn default() -> Self {
        Self { enabled: true, at: Span::seconds(15 * 60), p95_ratio: 10.0 }
    }
}

/// 5 % is SparkForensics' warning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskFailures {
    pub enabled: bool,
    pub ratio: f64,
    pub attempts: u64,
}

impl Default for TaskFailures {
    fn default() -> Self {
        Self { enabled: true, ratio: 0.05, attempts: 3 }
    }
}

/// 30 s is SparkForensics' floor for retry waste.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StageRetries {
    pub enabled: bool,
    /// Repeated run time from which it warns.
    pub warning_at: Span,
}

impl Default for StageRetries {
    fn default() -> Self {
        Self { enabled: true, warning_at: Span::seconds(30) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchFailures {
    pub enabled: bool,
}

impl Default for FetchFailures {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// 5 attempts and 60 s are SparkForensics' floors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpeculationWaste {
    pub enabled: bool,
    /// Speculative copies that lost, at least ...
    pub copies: u64,
    /// ... how long they ran in all, at least ...
    pub at: Span,
    /// ... and their share of all copies.
    pub lost_ratio: f64,
}

impl Default for SpeculationWaste {
    fn default() -> Self {
        Self { enabled: true, copies: 5, at: Span::seconds(60), lost_ratio: 0.5 }
    }
}
