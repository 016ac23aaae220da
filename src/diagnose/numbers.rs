//! The derived numbers of a stage attempt: what rules judge and metrics show
//! beside their inputs. One definition each, here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Finding, Plots, Price, TimeSplit, WhatIf};
use crate::model::StageId;

/// Everything worked out about one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    /// The most severe first, the costliest first among equals.
    pub findings: Vec<Finding>,
    /// Findings left out because there were too many: the least of them.
    pub findings_omitted: u64,
    pub stages: BTreeMap<StageId, StageNumbers>,
    pub totals: RunNumbers,
    /// Where the time of the run went; `None` where its start is not known.
    pub time: Option<TimeSplit>,
    /// The same of stage attempts, over first launch to end.
    pub stage_times: BTreeMap<StageId, TimeSplit>,
    /// The same of SQL executions by id.
    pub sql_times: BTreeMap<u64, TimeSplit>,
    /// `None` where tasks or executors are not known.
    pub what_if: Option<WhatIf>,
    pub plots: Plots,
    /// What it cost: [`Diagnosis::priced`], where the operator gives prices.
    pub price: Option<Price>,
}

/// Bytes per second and core, in each direction a stage moves data: bytes /
/// (cores of all executors x seconds from first launch to end).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoPerCore {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub shuffle_read: Option<f64>,
    pub shuffle_write: Option<f64>,
}

/// Derived numbers of one stage attempt. `None`: the data does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StageNumbers {
    /// Cores of all executors, averaged over the time its tasks ran.
    pub cores: Option<f64>,
    /// First launch to end.
    pub running: Option<Duration>,
    /// Slowest successful task's run time / typical run time (median for
    /// 10 tasks and more, mean of the others below).
    pub run_time_ratio: Option<f64>,
    /// Most to typical, in the same sense: the largest such ratio among
    /// records read, shuffle-written and output.
    pub records_ratio: Option<f64>,
    /// The same of bytes.
    pub bytes_ratio: Option<f64>,
    /// Bytes spilled to disk / largest of input, output, shuffle read, write.
    pub spill_ratio: Option<f64>,
    /// GC time / run time, sums over all task attempts.
    pub gc_ratio: Option<f64>,
    pub io_per_core: IoPerCore,
    /// Time in which it was submitted and had pending tasks, and the
    /// application had no executor or a free slot. Slots busy with the
    /// application's own tasks are no delay.
    pub scheduling_delay: Option<Duration>,
    /// Failed attempts (kills, refused commits and resubmissions excluded) /
    /// ended attempts.
    pub task_failure_ratio: Option<f64>,
}

/// Derived numbers of a whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunNumbers {
    /// Sum over executors of cores x (removed or end - added).
    pub bought: Option<Duration>,
    /// Sum over task attempts of duration x task cpus.
    pub used: Option<Duration>,
    /// Most cores at one time.
    pub peak_cores: Option<u32>,
    /// GC time / run time over all stage attempts.
    pub gc_ratio: Option<f64>,
    pub task_failure_ratio: Option<f64>,
}
