//! What the daemon was told to do.

use tracing::{debug, info, warn};

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

/// This daemon covers one part of the runs, by their names.
#[derive(Debug)]
pub struct ShardSet {
    pub shard: u32,
    pub total_shards: u32,
    /// Whether all shards have one store.
    pub is_store_shared: bool,
}

impl ShardSet {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { shard, total_shards, is_store_shared } = self;
        telemetry.counters().shards = (shard, total_shards);
        if total_shards <= 1 {
            return;
        }
        let totals = if is_store_shared {
            "all shards share one store: another number of shards loses no total and no baseline"
        } else {
            "each shard has a store of its own: with another number of shards, totals and \
             baselines of the names that move begin anew; storage.url shares one"
        };
        info!(shard, total_shards, totals, "this daemon covers one shard");
    }
}

/// The store was used under other numbers of shards before.
#[derive(Debug)]
pub struct ShardsChanged {
    pub before: (u32, u32),
    pub now: (u32, u32),
}

impl ShardsChanged {
    pub fn emit(self, _: &Telemetry) {
        let ((shard_before, total_before), (shard, total_shards)) = (self.before, self.now);
        warn!(
            shard_before,
            total_shards_before = total_before,
            shard,
            total_shards,
            "the number of shards changed: totals and baselines of the names that came here begin \
             anew, since each shard has a store of its own"
        );
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
