//! The web end, and the end of the daemon.

use std::time::Duration;

use tracing::{debug, info, trace};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::add;

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
    /// `accept`, `connection`, `handshake`, `limit`, `shutdown`.
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
