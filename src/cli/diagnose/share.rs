//! `diagnose --shard`: the part of what is given that this call reads, where
//! the pods of an indexed Job divide a bucket among them, and how much was
//! left to the others.
//!
//! The same owner as the daemon's: all runs of a name are in one part, so that
//! a `--baseline` holds for them. What has no name is of the part that
//! `_unnamed` is in, and what cannot be reached is told by each.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::progress::Progress;
use crate::config::{Config, UNNAMED};
use crate::eventlog::ReadError;
use crate::metrics::app_name;

/// How many runs were whose.
#[derive(Debug, Default)]
pub(super) struct Share {
    read: AtomicUsize,
    elsewhere: AtomicUsize,
}

impl Share {
    /// Whether a run of an application with this name is read here.
    pub(super) fn is_ours(config: &Config, cluster: &str, name: &str) -> bool {
        let sharding = &config.sharding;
        !sharding.is_divided()
            || sharding.owns(cluster, &app_name(name, &config.names, &config.limits))
    }

    /// Whether this part has what never gets a name.
    pub(super) fn has_nameless(config: &Config, cluster: &str) -> bool {
        config.sharding.owns(cluster, UNNAMED)
    }

    /// Whether an error of a log, of which `named` tells whether its name was
    /// read and is ours, is told here.
    pub(super) fn tells(
        config: &Config,
        cluster: &str,
        named: Option<bool>,
        error: &ReadError,
    ) -> bool {
        match error {
            ReadError::NotWanted { .. } => false,
            _ => named.unwrap_or(error.is_of_place()) || Self::has_nameless(config, cluster),
        }
    }

    pub(super) fn leave(&self) {
        self.elsewhere.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn take(&self) {
        self.read.fetch_add(1, Ordering::Relaxed);
    }

    /// One line at the end, where there are other parts.
    pub(super) fn tell(&self, config: &Config, progress: &Progress) {
        if config.sharding.is_divided() {
            let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
            progress.complain(&format!(
                "{}: {} of {} runs are in it, the others in the other shards",
                config.sharding,
                of(&self.read),
                of(&self.read) + of(&self.elsewhere),
            ));
        }
    }
}
