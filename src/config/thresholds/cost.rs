//! What a finding must save to be said, and to be loud.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::units::Span;

/// What a finding must save to be said, and to be loud. The 0.5 % floor is
/// the band that SparkForensics uses below which a stage is not looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cost {
    /// Emitted from this share of the run ...
    pub emit_ratio: f64,
    /// ... or from this much, whichever is less ...
    pub emit_at: Span,
    /// ... and never below this: in a run of seconds half a percent is
    /// noise.
    pub emit_min: Span,
    /// Below this: `info`.
    pub warning_at: Span,
    pub warning_ratio: f64,
    pub critical_at: Span,
    pub critical_ratio: f64,
}

impl Default for Cost {
    fn default() -> Self {
        Self {
            emit_ratio: 0.005,
            emit_at: Span::seconds(60),
            emit_min: Span::seconds(1),
            warning_at: Span::seconds(5),
            warning_ratio: 0.01,
            critical_at: Span::seconds(300),
            critical_ratio: 0.2,
        }
    }
}

impl Cost {
    /// The saving from which a finding is emitted in a run of `duration`.
    pub fn emit_floor(&self, duration: Duration) -> Duration {
        let share = Duration::try_from_secs_f64(duration.as_secs_f64() * self.emit_ratio.max(0.0));
        share.unwrap_or(Duration::MAX).min(self.emit_at.get()).max(self.emit_min.get())
    }
}
