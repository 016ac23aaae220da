//! What is sent by OTLP, and what becomes of it.

use std::time::Duration;

use jiff::Timestamp;
use tracing::{debug, error, info, warn};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::add;

/// A signal is sent from now on.
#[derive(Debug)]
pub struct OtlpStarted {
    /// `metrics`, `traces` or `logs`, like everywhere here.
    pub signal: &'static str,
    pub protocol: &'static str,
    /// Without user information and query.
    pub endpoint: String,
}

impl OtlpStarted {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { signal, protocol, endpoint } = self;
        info!(signal, protocol, endpoint, "sending by OTLP");
        telemetry.counters().otlp.entry(signal).or_default();
    }
}

/// A request was taken.
#[derive(Debug)]
pub struct OtlpAccepted {
    pub signal: &'static str,
    /// Items in it that were taken.
    pub items: u64,
    /// Before compression.
    pub bytes: u64,
    pub at: Timestamp,
}

impl OtlpAccepted {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { signal, items, bytes, at } = self;
        debug!(signal, items, bytes, "sent by OTLP");
        let mut counters = telemetry.counters();
        let counts = counters.otlp.entry(signal).or_default();
        counts.sent += items;
        counts.bytes += bytes;
        counts.last_success = Some(at);
        add(&mut counts.requests, "accepted", 1);
    }
}

/// A request was taken, and the back end had something to say about it.
#[derive(Debug)]
pub struct OtlpPartlyAccepted {
    pub signal: &'static str,
    /// Items that were not taken and never will be; may be 0.
    pub rejected: u64,
    /// The back end's words, cut and without secrets; or why its answer
    /// cannot be read.
    pub message: String,
    /// Whether the same was said before, and nothing else since.
    pub told: bool,
}

impl OtlpPartlyAccepted {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { signal, rejected, message, told } = self;
        if told {
            debug!(signal, rejected, message, "the OTLP back end still has objections");
        } else if rejected > 0 {
            warn!(signal, rejected, message, "the OTLP back end did not take everything");
        } else {
            warn!(signal, message, "the OTLP back end took everything, but says something");
        }
        telemetry.counters().otlp.entry(signal).or_default().rejected += rejected;
    }
}

/// One attempt to send a request failed; another one may follow.
#[derive(Debug)]
pub struct OtlpAttemptFailed {
    pub signal: &'static str,
    /// Of [`crate::telemetry::OTLP_FAILURES`].
    pub reason: &'static str,
    pub message: String,
    /// When it is tried again.
    pub retry_in: Option<Duration>,
}

impl OtlpAttemptFailed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { signal, reason, message, retry_in } = self;
        let retry_in = retry_in.map(|span| span.as_secs_f64());
        debug!(signal, reason, error = message, retry_in_seconds = retry_in, "OTLP attempt failed");
        let mut counters = telemetry.counters();
        add(&mut counters.otlp.entry(signal).or_default().failures, reason, 1);
    }
}

/// A request was not taken: never will be, or not in time.
#[derive(Debug)]
pub struct OtlpRequestFailed {
    pub signal: &'static str,
    /// `refused` or `given_up`.
    pub outcome: &'static str,
    pub items: u64,
    pub reason: &'static str,
    pub message: String,
    /// Whether the same was said before, and nothing else since.
    pub told: bool,
}

impl OtlpRequestFailed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { signal, outcome, items, reason, message, told } = self;
        if told {
            debug!(signal, outcome, items, reason, error = message, "OTLP still in trouble");
        } else if outcome == "refused" {
            error!(signal, items, reason, error = message, "refused by the OTLP back end: lost");
        } else {
            warn!(
                signal,
                reason,
                error = message,
                "not taken by the OTLP back end in time: what is sent next makes up for it"
            );
        }
        let mut counters = telemetry.counters();
        let counts = counters.otlp.entry(signal).or_default();
        add(&mut counts.requests, outcome, 1);
        if outcome == "refused" {
            add(&mut counts.failed, reason, items);
        }
    }
}

/// Requests are taken again.
#[derive(Debug)]
pub struct OtlpRecovered {
    pub signal: &'static str,
    /// Since trouble was first told.
    pub after: Duration,
}

impl OtlpRecovered {
    pub fn emit(self, _: &Telemetry) {
        let Self { signal, after } = self;
        info!(
            signal,
            after_seconds = after.as_secs_f64(),
            "the OTLP back end takes requests again"
        );
    }
}

/// Items (or runs, of which nothing is known but that they had some) were
/// given up before they were ever sent.
#[derive(Debug)]
pub struct OtlpDropped {
    pub signal: &'static str,
    /// Of [`crate::telemetry::OTLP_DROPPED`].
    pub reason: &'static str,
    pub count: u64,
}

impl OtlpDropped {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { signal, reason, count } = self;
        if count == 0 {
            return;
        }
        debug!(signal, reason, count, "left out of what is sent by OTLP");
        let mut counters = telemetry.counters();
        add(&mut counters.otlp.entry(signal).or_default().dropped, reason, count);
    }
}
