//! Thresholds of rules about the whole run, its executors and its driver.

use serde::{Deserialize, Serialize};

use super::super::units::{Size, Span};

/// 30 s is SparkForensics' cold start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColdStart {
    pub enabled: bool,
    /// From the start of the application to its first executor.
    pub at: Span,
}

impl Default for ColdStart {
    fn default() -> Self {
        Self { enabled: true, at: Span::seconds(30) }
    }
}

/// The measure is Sparklens' driver time; the bounds are ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverGap {
    pub enabled: bool,
    /// Time between jobs in all ...
    pub at: Span,
    /// ... and its share of the run.
    pub ratio: f64,
}

impl Default for DriverGap {
    fn default() -> Self {
        Self { enabled: true, at: Span::seconds(10), ratio: 0.1 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApplicationIdle {
    pub enabled: bool,
    /// No job for this long.
    pub at: Span,
}

impl Default for ApplicationIdle {
    fn default() -> Self {
        Self { enabled: true, at: Span::seconds(15 * 60) }
    }
}

/// SparkScope warns below 60 % used, DataFlint and SparkForensics from half
/// idle; the floors are ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdleCores {
    pub enabled: bool,
    /// Core-seconds used over those bought, below which it fires.
    pub used_ratio: f64,
    /// And at least this many not used.
    pub core_seconds: f64,
    /// In runs of at least this length.
    pub run: Span,
}

impl Default for IdleCores {
    fn default() -> Self {
        Self { enabled: true, used_ratio: 0.6, core_seconds: 300.0, run: Span::seconds(5 * 60) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutorLost {
    pub enabled: bool,
}

impl Default for ExecutorLost {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// 95 % and 70 % are DataFlint's and SparkForensics' bounds of the heap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    pub enabled: bool,
    /// Peak over what was allocated, from which memory is short ...
    pub high_ratio: f64,
    /// ... and below which it is more than needed.
    pub low_ratio: f64,
    /// ... in runs of at least this length, whose executors have heaps ...
    pub low_run: Span,
    /// ... of at least this size: below, nobody saves much.
    pub low_bytes: Size,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            enabled: true,
            high_ratio: 0.95,
            low_ratio: 0.7,
            low_run: Span::seconds(30 * 60),
            low_bytes: Size::gib(4),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobFailed {
    pub enabled: bool,
}

impl Default for JobFailed {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApplicationFailed {
    pub enabled: bool,
}

impl Default for ApplicationFailed {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Configuration {
    pub enabled: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// When a run is slower than runs of its name used to be. 3.5 spreads are the
/// limit of Iglewicz and Hoaglin's modified z-score (NIST/SEMATECH e-Handbook
/// of Statistical Methods, 1.3.5.17); the other numbers are our judgement:
/// durations of recurring jobs vary by 10 to 20 % without a reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Regression {
    pub enabled: bool,
    /// It is held against so many of the latest comparable runs ...
    pub runs: usize,
    /// ... where there are at least so many.
    pub at_least: usize,
    /// Duration / median from which it fires ...
    pub ratio: f64,
    /// ... and so many deviations (1.4826 x MAD) above the median.
    pub spreads: f64,
    /// A deviation is at least this share of the median ...
    pub spread_ratio: f64,
    /// ... and this long.
    pub spread: Span,
    /// Runs with up to so many times as much data, or as little, are
    /// comparable.
    pub data_ratio: f64,
}

impl Default for Regression {
    fn default() -> Self {
        Self {
            enabled: true,
            runs: 20,
            at_least: 5,
            ratio: 1.3,
            spreads: 3.5,
            spread_ratio: 0.05,
            spread: Span::seconds(1),
            data_ratio: 1.5,
        }
    }
}
