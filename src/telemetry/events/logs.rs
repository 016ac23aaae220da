//! Event logs that were read, or could not be.

use std::time::Duration;

use tracing::{debug, info, trace, warn};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::{PlaceCounts, TargetId, add, target};

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
    /// Of [`crate::telemetry::LOG_FAILURES`].
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
    /// Of [`crate::telemetry::HISTORY_ROUTES`].
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
