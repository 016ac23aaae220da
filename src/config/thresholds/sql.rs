//! Thresholds of rules about SQL plans and streaming queries.

use serde::{Deserialize, Serialize};

use super::super::units::{Size, Span};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JoinExplosion {
    pub enabled: bool,
    /// Output rows over those of the larger input.
    pub ratio: f64,
    /// And at least this many output rows.
    pub rows: u64,
}

impl Default for JoinExplosion {
    fn default() -> Self {
        Self { enabled: true, ratio: 10.0, rows: 1_000_000 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cartesian {
    pub enabled: bool,
    /// Product of the rows of both inputs: a core compares some 10^8 pairs a
    /// second (measured; DataFlint alarms at 10^10).
    pub rows: f64,
    /// Rows of the smaller side: below this, comparing is as cheap as finding.
    pub side_rows: u64,
}

impl Default for Cartesian {
    fn default() -> Self {
        Self { enabled: true, rows: 1e7, side_rows: 10 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PartialAggregation {
    pub enabled: bool,
    /// The partial node's output over its input, at most.
    pub ratio: f64,
    /// Rows of its input: below this nobody wonders.
    pub rows: u64,
    /// Run time of the execution's tasks over that of the run's.
    pub task_time_ratio: f64,
}

impl Default for PartialAggregation {
    fn default() -> Self {
        Self { enabled: true, ratio: 0.1, rows: 1_000_000, task_time_ratio: 0.1 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CountDistinct {
    pub enabled: bool,
    /// Rows of its input, and share of the run's task time: as for
    /// `partial_aggregation`.
    pub rows: u64,
    pub task_time_ratio: f64,
}

impl Default for CountDistinct {
    fn default() -> Self {
        Self { enabled: true, rows: 1_000_000, task_time_ratio: 0.1 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PythonUdf {
    pub enabled: bool,
    /// Share of the run's task time in stages with Python.
    pub ratio: f64,
    /// Vectorised: time in Python over run time (4.x).
    pub python_ratio: f64,
    /// Vectorised: CPU time of the JVM over run time, below (3.x).
    pub cpu_ratio: f64,
}

impl Default for PythonUdf {
    fn default() -> Self {
        Self { enabled: true, ratio: 0.1, python_ratio: 0.5, cpu_ratio: 0.1 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LargeBroadcast {
    pub enabled: bool,
    /// Size of the broadcast ...
    pub bytes: Size,
    /// ... and its share of the heap of executor or driver.
    pub heap_ratio: f64,
    /// Warning from this size ...
    pub warning_bytes: Size,
    /// ... or this share.
    pub warning_ratio: f64,
}

impl Default for LargeBroadcast {
    fn default() -> Self {
        Self {
            enabled: true,
            bytes: Size::mib(256),
            heap_ratio: 0.1,
            warning_bytes: Size::gib(1),
            warning_ratio: 0.5,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MissedBroadcast {
    pub enabled: bool,
    /// The larger side over the smaller one ...
    pub ratio: f64,
    /// ... where the smaller is below this.
    pub bytes: Size,
}

impl Default for MissedBroadcast {
    fn default() -> Self {
        Self { enabled: true, ratio: 20.0, bytes: Size::mib(100) }
    }
}

/// Half of a table computed again once, or less of it more often: our
/// judgement. SparkForensics warns of fewer than half of the partitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheEvicted {
    pub enabled: bool,
    /// Rows produced below the scan of a cached table over those of the table.
    pub ratio: f64,
}

impl Default for CacheEvicted {
    fn default() -> Self {
        Self { enabled: true, ratio: 1.5 }
    }
}

/// More than 100 files of less than 3 MiB on average: DataFlint and
/// SparkForensics alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmallFilesRead {
    pub enabled: bool,
    /// A scan reads more files than this ...
    pub files: u64,
    /// ... of less than this on average.
    pub file_bytes: Size,
}

impl Default for SmallFilesRead {
    fn default() -> Self {
        Self { enabled: true, files: 100, file_bytes: Size::mib(3) }
    }
}

/// As [`SmallFilesRead`] (DataFlint); that it is loud from ten times as many
/// is our judgement: a table partitioned by day gets a hundred files a
/// quarter and does no harm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmallFilesWritten {
    pub enabled: bool,
    /// A command writes more files than this ...
    pub files: u64,
    /// ... of less than this on average.
    pub file_bytes: Size,
    /// Warning from this many.
    pub warning_files: u64,
}

impl Default for SmallFilesWritten {
    fn default() -> Self {
        Self { enabled: true, files: 100, file_bytes: Size::mib(3), warning_files: 1_000 }
    }
}

/// DataFlint warns of any scan of a partitioned table without a filter; 10 GiB
/// are what a scan costs at least to be worth a word (some 30 core-minutes at
/// the 3 MB/s a core of [`super::IoBound`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FullScan {
    pub enabled: bool,
    /// Read without a partition filter.
    pub bytes: Size,
}

impl Default for FullScan {
    fn default() -> Self {
        Self { enabled: true, bytes: Size::gib(10) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepeatedSubplan {
    pub enabled: bool,
    /// Operators of the subtree, at least (SparkForensics' duplicate subtree).
    pub nodes: usize,
}

impl Default for RepeatedSubplan {
    fn default() -> Self {
        Self { enabled: true, nodes: 3 }
    }
}

/// Spark's own warning ("current batch is falling behind") is about one batch
/// that outlasted its trigger; half of ten is our judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamingBehind {
    pub enabled: bool,
    /// Of so many last batches ...
    pub batches: usize,
    /// ... this many must follow the one before without a pause; after as many
    /// good ones in a row it is over. And over so many batches a backlog must
    /// grow.
    pub late: usize,
    /// What is no pause.
    pub pause: Span,
    /// Batches that a query has to get going ...
    pub first_batches: usize,
    /// ... and time.
    pub first: Span,
}

impl Default for StreamingBehind {
    fn default() -> Self {
        Self {
            enabled: true,
            batches: 10,
            late: 5,
            pause: Span::millis(100),
            first_batches: 5,
            first: Span::seconds(60),
        }
    }
}
