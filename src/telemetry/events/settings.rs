//! What the daemon was told to do.

use tracing::debug;

use crate::telemetry::{Telemetry, ThresholdSetting};

/// The thresholds of the rules are these from now on.
#[derive(Debug)]
pub struct ThresholdsSet {
    pub thresholds: Vec<ThresholdSetting>,
}

impl ThresholdsSet {
    pub fn emit(self, telemetry: &Telemetry) {
        debug!(count = self.thresholds.len(), "thresholds set");
        telemetry.counters().thresholds = self.thresholds.into();
    }
}
