//! The store: what it holds, and its troubles.

use tracing::{debug, error, info, trace};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::add;

/// The store was opened, at the start or after trouble.
#[derive(Debug)]
pub struct StorageOpened {
    /// Where it lies; `None` in memory.
    pub place: Option<String>,
    pub runs: u64,
    pub names: u64,
}

impl StorageOpened {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { place, runs, names } = self;
        if let Some(place) = place {
            info!(place, runs, names, "store opened");
        } else {
            info!(
                "totals, baselines and which runs were counted are kept in memory and begin anew \
                 at each start: give --storage.path FILE to keep them"
            );
        }
        let mut counters = telemetry.counters();
        counters.storage.up = true;
        counters.storage.runs = runs;
        counters.storage.names = names;
    }
}

/// The store could not be opened, read or written. Runs wait, and series by
/// name are left out, until it can.
#[derive(Debug)]
pub struct StorageFailed {
    /// Of [`crate::telemetry::STORAGE_FAILURES`].
    pub reason: &'static str,
    pub message: String,
    /// Whether the same was said before, and nothing else since.
    pub told: bool,
}

impl StorageFailed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { reason, message, told } = self;
        if told {
            debug!(reason, error = message, "store still in trouble");
        } else {
            error!(
                reason,
                error = message,
                "store in trouble: runs wait to be counted, series by name are left out"
            );
        }
        let mut counters = telemetry.counters();
        counters.storage.up = false;
        add(&mut counters.storage_failures, reason, 1);
    }
}

/// How many runs wait to be written now.
#[derive(Debug)]
pub struct StoragePending {
    pub count: u64,
}

impl StoragePending {
    pub fn emit(self, telemetry: &Telemetry) {
        trace!(count = self.count, "runs to be stored");
        telemetry.counters().storage.pending = self.count;
    }
}

/// What the store holds now.
#[derive(Debug)]
pub struct StorageSize {
    pub runs: u64,
    pub names: u64,
    pub bytes: u64,
}

impl StorageSize {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { runs, names, bytes } = self;
        trace!(runs, names, bytes, "store measured");
        let mut counters = telemetry.counters();
        let storage = &mut counters.storage;
        (storage.runs, storage.names, storage.bytes) = (runs, names, bytes);
    }
}

/// Runs left the store because their retention was over, or for others.
#[derive(Debug)]
pub struct RunsForgotten {
    pub count: u64,
}

impl RunsForgotten {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { count } = self;
        if count == 0 {
            return;
        }
        debug!(count, "runs forgotten");
        telemetry.counters().runs_forgotten += count;
    }
}
