//! What the daemon was told to do.

use tracing::{debug, warn};

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

/// Something that the environment says cannot be used and is not.
#[derive(Debug)]
pub struct SettingIgnored {
    /// Names the variable, and never its value.
    pub message: String,
}

impl SettingIgnored {
    pub fn emit(self, _: &Telemetry) {
        warn!(error = self.message, "setting ignored");
    }
}
