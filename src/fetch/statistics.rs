//! What was asked, and what it cost: for the daemon's own counters and for
//! the budgets of a cycle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::FetchErrorKind;

/// Since the client was made, for one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    pub requests: u64,
    /// Bytes of bodies as they came over the wire: compressed where the
    /// server compresses, without headers and chunk framing.
    pub wire_bytes: u64,
    /// The same bodies, decompressed.
    pub body_bytes: u64,
    /// Failed requests by class.
    pub errors: BTreeMap<FetchErrorKind, u64>,
}

/// Counts by endpoint. Endpoint names are constants of the program, so the
/// map cannot grow.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Mutex<BTreeMap<&'static str, EndpointCounts>>);

impl Statistics {
    pub(crate) fn update(&self, endpoint: &'static str, change: impl FnOnce(&mut EndpointCounts)) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(counts.entry(endpoint).or_default());
    }

    pub(crate) fn snapshot(&self) -> BTreeMap<&'static str, EndpointCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What one piece of work (a poll cycle, a completed run) has cost so far.
#[derive(Debug, Default)]
pub struct Meter {
    requests: AtomicU64,
    wire_bytes: AtomicU64,
}

impl Meter {
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Bytes of bodies as they came over the wire.
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.wire_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
