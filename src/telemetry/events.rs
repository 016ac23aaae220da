//! Everything the daemon may say about itself, one struct each.
//!
//! `event.emit(&telemetry)` writes the log line and bumps the counter. To add
//! one: a struct with what a reader needs, an `emit` with one log line, one
//! counter in [`super::TelemetrySnapshot`], one row in the metrics catalogue.
//! Texts must be clean of secrets before they come here: URLs without user
//! information or query, messages without header values.

use std::time::Duration;

use jiff::Timestamp;
use tracing::{debug, info, trace, warn};

use super::Telemetry;
use super::counters::{PlaceCounts, TargetId, add, target};

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
    /// Failed requests by kind, of [`super::FETCH_ERROR_KINDS`].
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

/// One event log was read to its end, or as far as it goes.
#[derive(Debug)]
pub struct LogRead {
    pub path: String,
    pub application: String,
    /// Decompressed.
    pub bytes: u64,
    pub lines: u64,
    /// Lines that are no event, too long, or cut.
    pub bad_lines: u64,
    /// Events of a kind we do not know: newer Spark, or a plug-in.
    pub unknown_events: u64,
    pub duration: Duration,
}

impl LogRead {
    pub fn emit(self, telemetry: &Telemetry) {
        info!(
            path = self.path,
            application = self.application,
            bytes = self.bytes,
            lines = self.lines,
            bad_lines = self.bad_lines,
            unknown_events = self.unknown_events,
            seconds = self.duration.as_secs_f64(),
            "event log read"
        );
        self.count(telemetry, 1);
    }

    fn count(&self, telemetry: &Telemetry, reads: u64) {
        let mut counters = telemetry.counters();
        let logs = &mut counters.logs;
        logs.reads += reads;
        logs.bytes = logs.bytes.saturating_add(self.bytes);
        logs.lines = logs.lines.saturating_add(self.lines);
        logs.bad_lines = logs.bad_lines.saturating_add(self.bad_lines);
        logs.unknown_events = logs.unknown_events.saturating_add(self.unknown_events);
    }
}

/// More of the log of a running application was read.
#[derive(Debug)]
pub struct LogFollowed {
    /// What was new.
    pub read: LogRead,
    /// Whether it had not been read before.
    pub first: bool,
}

impl LogFollowed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { read, first } = self;
        debug!(
            path = read.path,
            application = read.application,
            first,
            bytes = read.bytes,
            lines = read.lines,
            seconds = read.duration.as_secs_f64(),
            "event log followed"
        );
        read.count(telemetry, u64::from(first));
    }
}

/// A place of event logs was listed and read from.
#[derive(Debug)]
pub struct LogsListed {
    pub target: TargetId,
    /// Logs that it holds.
    pub logs: u64,
    /// Those of them that are followed now.
    pub followed: u64,
    /// Read in this cycle, as they lie there.
    pub bytes: u64,
}

impl LogsListed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { target: id, logs, followed, bytes } = self;
        trace!(cluster = id.cluster, target = id.target, logs, followed, bytes, "logs listed");
        if let Some(status) = target(&mut telemetry.counters(), &id) {
            let read = status.logs.map_or(0, |before| before.bytes);
            status.logs =
                Some(PlaceCounts { listed: logs, followed, bytes: read.saturating_add(bytes) });
        }
    }
}

/// An event log could not be read at all. Counts as a read too.
#[derive(Debug)]
pub struct LogFailed {
    pub path: String,
    /// Of [`super::LOG_FAILURES`].
    pub reason: &'static str,
    pub message: String,
}

impl LogFailed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { path, reason, message } = self;
        warn!(path, reason, error = message, "event log not read");
        let mut counters = telemetry.counters();
        counters.logs.reads += 1;
        add(&mut counters.log_failures, reason, 1);
    }
}

/// A finished run that a History Server listed was read, or could not be.
#[derive(Debug)]
pub struct HistoryRead {
    pub run: String,
    /// Of [`super::HISTORY_ROUTES`].
    pub route: &'static str,
    /// What the server sent for it, as it came over the wire.
    pub bytes: u64,
    pub duration: Duration,
    /// Why its log was not read; where nothing was, why nothing was.
    pub message: Option<String>,
}

impl HistoryRead {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { run, route, bytes, duration, message } = self;
        let seconds = duration.as_secs_f64();
        match (route, message) {
            ("none", error) => warn!(run, route, bytes, seconds, error, "finished run not read"),
            (_, Some(error)) => {
                info!(run, route, bytes, seconds, error, "finished run read without its log");
            }
            (_, None) => info!(run, route, bytes, seconds, "finished run read"),
        }
        add(&mut telemetry.counters().history_reads, route, 1);
    }
}

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

/// Series were left out of one exposition.
#[derive(Debug)]
pub struct SeriesDropped {
    /// Of [`super::SERIES_DROPPED`].
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
    /// reason of [`super::SKIPPED`]. Replaces what its last cycle said.
    pub skipped: Vec<(&'static str, u64)>,
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
            "cycle finished"
        );
        let mut counters = telemetry.counters();
        let Some(status) = target(&mut counters, &self.target) else { return };
        status.up = self.success;
        status.cycle_duration = Some(self.duration);
        if self.success {
            status.last_success = Some(self.at);
        }
        counters.skipped.insert(self.target, self.skipped.into_iter().collect());
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

/// The web server listens.
#[derive(Debug)]
pub struct WebListening {
    pub address: String,
}

impl WebListening {
    pub fn emit(self, _: &Telemetry) {
        info!(address = self.address, "listening");
    }
}

/// A web request was answered.
#[derive(Debug)]
pub struct WebRequestServed {
    /// A path we know, or `other`.
    pub path: &'static str,
    pub code: u16,
    pub duration: Duration,
}

impl WebRequestServed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { path, code, duration } = self;
        trace!(path, code, seconds = duration.as_secs_f64(), "web request");
        add(&mut telemetry.counters().web_requests, (path, code), 1);
    }
}

/// A connection could not be taken or broke.
#[derive(Debug)]
pub struct WebRequestFailed {
    /// `accept`, `connection`, `limit`, `shutdown`.
    pub reason: &'static str,
    pub message: String,
}

impl WebRequestFailed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { reason, message } = self;
        debug!(reason, error = message, "web request failed");
        add(&mut telemetry.counters().web_failures, reason, 1);
    }
}

/// The daemon was asked to stop.
#[derive(Debug)]
pub struct ShutdownStarted {
    pub signal: &'static str,
}

impl ShutdownStarted {
    pub fn emit(self, _: &Telemetry) {
        info!(signal = self.signal, "stopping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> TargetId {
        TargetId { cluster: "prod".to_owned(), target: "http://history:18080".to_owned() }
    }

    fn cycle(success: bool, skipped: Vec<(&'static str, u64)>) -> CycleFinished {
        CycleFinished {
            target: id(),
            success,
            at: Timestamp::UNIX_EPOCH,
            duration: Duration::from_millis(20),
            requests: 2,
            bytes: 100,
            skipped,
        }
    }

    #[test]
    fn a_failed_request_is_a_request_and_an_error() {
        let telemetry = Telemetry::default();
        let counted = |errors| RequestsCounted { endpoint: "jobs", requests: 1, bytes: 10, errors };
        counted(Vec::new()).emit(&telemetry);
        counted(vec![("timeout", 1)]).emit(&telemetry);
        let counters = telemetry.snapshot();
        assert_eq!((counters.fetches["jobs"].requests, counters.fetches["jobs"].bytes), (2, 20));
        assert_eq!(counters.fetch_errors[&("jobs", "timeout")], 1);
    }

    #[test]
    fn a_cycle_replaces_what_the_last_one_skipped() {
        let telemetry = Telemetry::default();
        cycle(true, vec![("limit", 3), ("lookback", 1)]).emit(&telemetry);
        cycle(true, vec![("limit", 2)]).emit(&telemetry);
        let skipped = telemetry.snapshot().skipped_by_reason();
        assert_eq!(skipped.get("limit"), Some(&2));
        assert_eq!(skipped.get("lookback"), None);
    }

    #[test]
    fn a_failed_cycle_keeps_the_last_success() {
        let telemetry = Telemetry::default();
        cycle(true, Vec::new()).emit(&telemetry);
        cycle(false, Vec::new()).emit(&telemetry);
        let status = telemetry.snapshot().targets[&id()];
        assert!(!status.up);
        assert_eq!(status.last_success, Some(Timestamp::UNIX_EPOCH));
    }
}
