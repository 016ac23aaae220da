//! How long the run would take with fewer or more executors.

use std::time::Duration;

/// Predictions for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// Ascending by factor; 1.0 among them.
    pub scenarios: Vec<Scenario>,
    /// The run with no end of executors: gaps of the driver and the longest
    /// chain of tasks.
    pub critical_path: Duration,
    /// What the prediction takes for granted, for a reader.
    pub assumptions: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Executors to what they were.
    pub factor: f64,
    /// Most cores at once under it.
    pub cores: f64,
    /// Predicted wall time of the run.
    pub wall: Duration,
    /// Core-seconds bought under it.
    pub bought: Duration,
}
