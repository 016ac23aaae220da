//! What sources answer, or fail to.

use std::time::Duration;

use jiff::Timestamp;
use tracing::{debug, info, warn};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::{TargetId, add, target};

/// A source answered for the first time and said what it is.
#[derive(Debug)]
pub struct SourceProbed {
    pub target: TargetId,
    /// `driver`, `history_server`, `event_log`.
    pub kind: &'static str,
    pub spark_version: Option<String>,
}

impl SourceProbed {
    pub fn emit(self, telemetry: &Telemetry) {
        info!(
            cluster = self.target.cluster,
            target = self.target.target,
            kind = self.kind,
            spark_version = self.spark_version,
            "source found"
        );
        if let Some(status) = target(&mut telemetry.counters(), &self.target) {
            status.up = true;
        }
    }
}

/// A source is not watched any more: the configuration does not name it, or
/// it is gone for good. It has no gauges from now on.
#[derive(Debug)]
pub struct SourceRemoved {
    pub target: TargetId,
}

impl SourceRemoved {
    pub fn emit(self, telemetry: &Telemetry) {
        info!(cluster = self.target.cluster, target = self.target.target, "source removed");
        let mut counters = telemetry.counters();
        counters.targets.remove(&self.target);
        counters.skipped.remove(&self.target);
    }
}

/// A whole source gave no answer in this cycle. Logged as a warning when it
/// goes away and quietly while it stays away: its gauge says so all the time.
#[derive(Debug)]
pub struct SourceUnreachable {
    pub target: TargetId,
    pub message: String,
    pub retry_in: Option<Duration>,
}

impl SourceUnreachable {
    pub fn emit(self, telemetry: &Telemetry) {
        let mut counters = telemetry.counters();
        let known_down = counters.targets.get(&self.target).is_some_and(|status| !status.up);
        if let Some(status) = target(&mut counters, &self.target) {
            status.up = false;
        }
        drop(counters);
        let retry_in = self.retry_in.map(|span| span.as_secs_f64());
        let TargetId { cluster, target } = self.target;
        let error = self.message;
        if known_down {
            debug!(cluster, target, error, retry_in_seconds = retry_in, "source still down");
        } else {
            warn!(cluster, target, error, retry_in_seconds = retry_in, "source down");
        }
    }
}

/// What was asked of one endpoint since the last time this was told, over
/// all servers of a cluster.
#[derive(Debug)]
pub struct RequestsCounted {
    pub endpoint: &'static str,
    /// Failed ones included.
    pub requests: u64,
    /// Bodies as they came over the wire.
    pub bytes: u64,
    /// Failed requests by kind, of [`crate::telemetry::FETCH_ERROR_KINDS`].
    pub errors: Vec<(&'static str, u64)>,
}

impl RequestsCounted {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { endpoint, requests, bytes, errors } = self;
        let failed: u64 = errors.iter().map(|(_, count)| count).sum();
        if failed > 0 {
            let kinds: Vec<&str> = errors.iter().map(|(kind, _)| *kind).collect();
            debug!(endpoint, requests, failed, kinds = kinds.join(","), "requests failed");
        }
        let mut counters = telemetry.counters();
        let counts = counters.fetches.entry(endpoint).or_default();
        counts.requests = counts.requests.saturating_add(requests);
        counts.bytes = counts.bytes.saturating_add(bytes);
        for (kind, count) in errors {
            add(&mut counters.fetch_errors, (endpoint, kind), count);
        }
    }
}

/// One cycle over one target ended.
#[derive(Debug)]
pub struct CycleFinished {
    pub target: TargetId,
    /// Whether the source answered; single failed requests leave it up.
    pub success: bool,
    pub at: Timestamp,
    pub duration: Duration,
    pub requests: u64,
    pub bytes: u64,
    /// Applications that this source showed and that are not covered, by
    /// reason of [`crate::telemetry::SKIPPED`]. Replaces what its last cycle said.
    pub skipped: Vec<(&'static str, u64)>,
    /// Applications that this source showed and that other shards cover.
    pub elsewhere: u64,
}

impl CycleFinished {
    pub fn emit(self, telemetry: &Telemetry) {
        debug!(
            cluster = self.target.cluster,
            target = self.target.target,
            success = self.success,
            seconds = self.duration.as_secs_f64(),
            requests = self.requests,
            bytes = self.bytes,
            skipped = self.skipped.iter().map(|(_, count)| count).sum::<u64>(),
            elsewhere = self.elsewhere,
            "cycle finished"
        );
        let mut counters = telemetry.counters();
        let Some(status) = target(&mut counters, &self.target) else { return };
        status.up = self.success;
        status.cycle_duration = Some(self.duration);
        if self.success {
            status.last_success = Some(self.at);
        }
        status.elsewhere = self.elsewhere;
        counters.skipped.insert(self.target, self.skipped.into_iter().collect());
    }
}
