//! Runs that come, end and go, and the series made of them.

use std::time::Duration;

use jiff::Timestamp;
use tracing::{debug, info, trace, warn};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::add;

/// A run was seen for the first time.
#[derive(Debug)]
pub struct ApplicationAppeared {
    /// `cluster/app_id` or `cluster/app_id/attempt`.
    pub run: String,
    pub source: &'static str,
}

impl ApplicationAppeared {
    pub fn emit(self, telemetry: &Telemetry) {
        info!(run = self.run, source = self.source, "application appeared");
        telemetry.counters().applications_appeared += 1;
    }
}

/// A run ended.
#[derive(Debug)]
pub struct ApplicationFinished {
    pub run: String,
    pub state: &'static str,
    pub duration: Option<Duration>,
    pub findings: usize,
}

impl ApplicationFinished {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { run, state, duration, findings } = self;
        let seconds = duration.map(|span| span.as_secs_f64());
        info!(run, state, seconds, findings, "application finished");
        telemetry.counters().applications_finished += 1;
    }
}

/// A finished run passed its retention: its series go.
#[derive(Debug)]
pub struct ApplicationExpired {
    pub run: String,
}

impl ApplicationExpired {
    pub fn emit(self, telemetry: &Telemetry) {
        debug!(run = self.run, "application expired");
        telemetry.counters().applications_expired += 1;
    }
}

/// Two runs carry the same identity and different start times.
#[derive(Debug)]
pub struct IdentityCollision {
    pub run: String,
    pub kept_start: Option<Timestamp>,
    pub other_start: Option<Timestamp>,
}

impl IdentityCollision {
    pub fn emit(self, telemetry: &Telemetry) {
        let start = |start: Option<Timestamp>| start.map(|start| start.to_string());
        warn!(
            run = self.run,
            kept_start = start(self.kept_start),
            other_start = start(self.other_start),
            "two runs have the same id: give their sources different cluster names"
        );
        telemetry.counters().identity_collisions += 1;
    }
}

/// A run was put into the totals of `_other`: there are as many names as
/// `limits.app_names` allows.
#[derive(Debug)]
pub struct NameOverflowed {
    pub run: String,
    /// As it would have been exported.
    pub app_name: String,
    /// `limits.app_names`.
    pub limit: usize,
}

impl NameOverflowed {
    /// A warning for the first, since it changes what totals mean; the others
    /// are told to whoever looks for them.
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { run, app_name, limit } = self;
        let mut counters = telemetry.counters();
        let is_first = counters.names_overflowed == 0;
        counters.names_overflowed += 1;
        drop(counters);
        if is_first {
            warn!(
                run,
                app_name,
                limit,
                "no room for another name: this run, and later ones like it, are added up as                  _other; raise limits.app_names, or join names with names.rules"
            );
        } else {
            debug!(run, app_name, limit, "run added up as _other");
        }
    }
}

/// Series were left out of one exposition.
#[derive(Debug)]
pub struct SeriesDropped {
    /// Of [`crate::telemetry::SERIES_DROPPED`].
    pub reason: &'static str,
    pub count: u64,
}

impl SeriesDropped {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { reason, count } = self;
        if count == 0 {
            return;
        }
        debug!(reason, count, "series left out");
        add(&mut telemetry.counters().series_dropped, reason, count);
    }
}

/// How many runs are held now, running and retained.
#[derive(Debug)]
pub struct ApplicationsHeld {
    pub count: u64,
}

impl ApplicationsHeld {
    pub fn emit(self, telemetry: &Telemetry) {
        trace!(count = self.count, "applications held");
        telemetry.counters().applications_held = self.count;
    }
}
