//! The counters behind the events.
//!
//! One plain struct under one mutex: events come a few hundred a second at
//! most (a log's lines are counted once a log), and a reader gets numbers that
//! belong together. Every map has keys from closed lists, or a bound.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

/// Targets that get series of their own; more are counted as dropped.
const MAX_TARGETS: usize = 1_000;
/// Custom resources that are kept; more are counted as forgotten.
pub(super) const MAX_SUBMISSIONS: usize = 10_000;
/// Distinct label values a map keeps, should a caller use words beyond the
/// closed lists.
const MAX_WORDS: usize = 512;

/// Which build this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    pub version: &'static str,
    /// Commit it was built from; `unknown` where the build did not say
    /// (environment variable `SPARK_EXPORTER_REVISION` at build time).
    pub revision: &'static str,
}

impl Default for Revision {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            revision: option_env!("SPARK_EXPORTER_REVISION").unwrap_or("unknown"),
        }
    }
}

/// A source, as the operator named it. The target is a URL without
/// credentials, or a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetId {
    pub cluster: String,
    pub target: String,
}

/// How the last cycle over a target went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetStatus {
    pub up: bool,
    pub last_success: Option<Timestamp>,
    /// Of the last cycle, whatever became of it.
    pub cycle_duration: Option<Duration>,
    /// Applications that the last cycle showed and that other shards cover.
    pub elsewhere: u64,
    /// Of a place of event logs that was listed.
    pub logs: Option<PlaceCounts>,
}

/// The event logs of one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlaceCounts {
    /// In its latest listing.
    pub listed: u64,
    pub followed: u64,
    /// Read in all, as they lie there.
    pub bytes: u64,
}

/// A Kubernetes cluster that is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubernetesCounts {
    /// Of each kind that is watched and that the server has: whether it is
    /// watched in every namespace asked for.
    pub up: BTreeMap<&'static str, bool>,
    /// Objects by kind.
    pub objects: BTreeMap<&'static str, u64>,
    /// Pods of drivers by state.
    pub drivers: BTreeMap<&'static str, u64>,
}

/// What has happened in it since the daemon started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubernetesTotals {
    /// Lists that ended, by kind.
    pub lists: BTreeMap<&'static str, u64>,
    /// By (kind, reason).
    pub failures: BTreeMap<(&'static str, &'static str), u64>,
    /// Drivers that began to be asked.
    pub drivers_found: u64,
    /// Times a driver of a running pod fell silent.
    pub drivers_silenced: u64,
}

/// Requests to one endpoint; failed ones included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchCounts {
    pub requests: u64,
    /// Bodies, as they came over the wire where that is known.
    pub bytes: u64,
}

/// Event logs read, in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCounts {
    pub reads: u64,
    pub bytes: u64,
    pub lines: u64,
    pub bad_lines: u64,
    pub unknown_events: u64,
}

/// A threshold of a rule, as configured.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdSetting {
    pub rule: String,
    pub threshold: String,
    /// Seconds, bytes, or a plain number.
    pub value: f64,
}

/// One signal that is sent by OTLP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtlpCounts {
    /// Data points, spans or log records that were taken.
    pub sent: u64,
    /// Of requests that were taken, those that were not.
    pub rejected: u64,
    /// Of refused requests, by reason.
    pub failed: BTreeMap<&'static str, u64>,
    /// Never sent at all, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// By outcome.
    pub requests: BTreeMap<&'static str, u64>,
    /// Attempts that failed, by reason: a request may have many.
    pub failures: BTreeMap<&'static str, u64>,
    /// Of requests that were taken, before compression.
    pub bytes: u64,
    pub last_success: Option<Timestamp>,
}

/// How the store is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageStatus {
    pub up: bool,
    /// Runs that wait to be written.
    pub pending: u64,
    pub runs: u64,
    pub names: u64,
    pub bytes: u64,
}

/// What became of a file that is read again while the daemon runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReloadStatus {
    /// Whether it could be used when it was looked at last.
    pub good: bool,
    pub last_success: Timestamp,
}

/// A `SparkApplication` of an operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubmissionId {
    pub cluster: String,
    pub operator: &'static str,
    pub namespace: String,
    pub name: String,
}

/// How it stands, as the operator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmissionStatus {
    /// Of [`crate::telemetry::SUBMISSION_STATES`].
    pub state: &'static str,
    /// How often its driver was started.
    pub attempts: u32,
    pub submitted: Option<Timestamp>,
}

/// What Kubernetes told of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodFactCounts {
    /// Runs that it told more of after they were read.
    pub amended: u64,
    /// Facts that went before their time, for want of room.
    pub forgotten: u64,
    /// Custom resources that are there.
    pub submissions: BTreeMap<SubmissionId, SubmissionStatus>,
}

/// All counters at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetrySnapshot {
    pub build: Revision,
    pub started: Option<Timestamp>,
    pub thresholds: Arc<[ThresholdSetting]>,
    /// Number of this daemon's shard, and how many there are.
    pub shards: (u32, u32),
    pub fetches: BTreeMap<&'static str, FetchCounts>,
    /// By (endpoint, kind).
    pub fetch_errors: BTreeMap<(&'static str, &'static str), u64>,
    pub targets: BTreeMap<TargetId, TargetStatus>,
    pub logs: LogCounts,
    /// By reason.
    pub log_failures: BTreeMap<&'static str, u64>,
    /// Finished runs of History Servers, by route.
    pub history_reads: BTreeMap<&'static str, u64>,
    pub applications_held: u64,
    /// By source, then reason: what the latest cycle of each source left out.
    pub skipped: BTreeMap<TargetId, BTreeMap<&'static str, u64>>,
    pub applications_appeared: u64,
    pub applications_finished: u64,
    pub applications_expired: u64,
    pub identity_collisions: u64,
    pub pod_facts: PodFactCounts,
    /// Runs whose name had no room: added up under `_other`.
    pub names_overflowed: u64,
    /// By reason.
    pub series_dropped: BTreeMap<&'static str, u64>,
    /// The configuration; `None` before the first.
    pub config: Option<ReloadStatus>,
    /// The file of `--web.config.file`; `None` where there is none.
    pub web_config: Option<ReloadStatus>,
    pub storage: StorageStatus,
    /// By reason.
    pub storage_failures: BTreeMap<&'static str, u64>,
    /// Runs whose retention in the store is over.
    pub runs_forgotten: u64,
    /// By signal, those that are sent.
    pub otlp: BTreeMap<&'static str, OtlpCounts>,
    /// By cluster, those that are watched.
    pub kubernetes: BTreeMap<String, KubernetesCounts>,
    /// The same clusters.
    pub kubernetes_totals: BTreeMap<String, KubernetesTotals>,
    /// By (path, status code).
    pub web_requests: BTreeMap<(&'static str, u16), u64>,
    /// By reason.
    pub web_failures: BTreeMap<&'static str, u64>,
}

impl TelemetrySnapshot {
    /// Applications that the latest cycles showed and that other shards cover,
    /// by cluster.
    pub fn elsewhere_by_cluster(&self) -> BTreeMap<&str, u64> {
        let mut sums = BTreeMap::new();
        for (target, status) in &self.targets {
            *sums.entry(target.cluster.as_str()).or_default() += status.elsewhere;
        }
        sums
    }

    /// Applications left out by all sources in their latest cycles.
    pub fn skipped_by_reason(&self) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for (reason, count) in self.skipped.values().flatten() {
            *sums.entry(*reason).or_default() += count;
        }
        sums
    }
}

/// The daemon's counters. Share it in an `Arc`.
#[derive(Debug, Default)]
pub struct Telemetry {
    counters: Mutex<TelemetrySnapshot>,
}

impl Telemetry {
    pub fn new(started: Timestamp) -> Self {
        let telemetry = Self::default();
        telemetry.counters().started = Some(started);
        telemetry
    }

    /// A copy of all counters that belong together.
    pub fn snapshot(&self) -> TelemetrySnapshot {
        self.counters().clone()
    }

    /// Only events write here. A panic elsewhere while the lock was held
    /// leaves at worst one event half counted, no reason to stop counting.
    pub(super) fn counters(&self) -> MutexGuard<'_, TelemetrySnapshot> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds `count` under `key`, unless the map is full of other keys.
pub(super) fn add<K: Ord>(map: &mut BTreeMap<K, u64>, key: K, count: u64) {
    if let Some(value) = map.get_mut(&key) {
        *value = value.saturating_add(count);
    } else if map.len() < MAX_WORDS {
        map.insert(key, count);
    }
}

/// The entry of a target; `None` where there are too many already, which is
/// counted.
pub(super) fn target<'a>(
    counters: &'a mut TelemetrySnapshot,
    id: &TargetId,
) -> Option<&'a mut TargetStatus> {
    if !counters.targets.contains_key(id) && counters.targets.len() >= MAX_TARGETS {
        add(&mut counters.series_dropped, "targets_limit", 1);
        return None;
    }
    Some(counters.targets.entry(id.clone()).or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_a_bound_and_the_rest_is_counted() {
        let mut counters = TelemetrySnapshot::default();
        for number in 0..MAX_TARGETS + 3 {
            let id = TargetId { cluster: "c".to_owned(), target: number.to_string() };
            target(&mut counters, &id);
        }
        assert_eq!(counters.targets.len(), MAX_TARGETS);
        assert_eq!(counters.series_dropped.get("targets_limit"), Some(&3));
    }

    #[test]
    fn words_have_a_bound() {
        let mut map = BTreeMap::new();
        for number in 0..MAX_WORDS + 9 {
            add(&mut map, number, 1);
        }
        add(&mut map, 0, 5);
        assert_eq!(map.len(), MAX_WORDS);
        assert_eq!(map.get(&0), Some(&6));
    }
}
