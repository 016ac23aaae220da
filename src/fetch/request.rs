//! One GET: what is asked, how long it may take and how much it may bring.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use super::statistics::Meter;
use crate::config::Limits;

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect, TLS included.
    pub connect: Duration,
    /// Between two pieces of an answer, and until its first.
    pub idle: Duration,
    /// In all, once it is its turn (see [`FetchLimits`]).
    pub total: Duration,
}

impl Timeouts {
    /// For a driver, which answers from memory.
    pub const DRIVER: Self = Self {
        connect: Duration::from_secs(5),
        idle: Duration::from_secs(15),
        total: Duration::from_secs(30),
    };

    /// For a History Server, whose first answer about an application comes
    /// after it has replayed the whole log.
    pub const HISTORY_SERVER: Self = Self {
        connect: Duration::from_secs(5),
        idle: Duration::from_mins(3),
        total: Duration::from_mins(5),
    };
}

/// How much a request may bring, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of one body, decompressed.
    pub response_size: u64,
    /// Requests in flight to one server (host and port); the next waits.
    pub in_flight_per_server: usize,
}

impl From<&Limits> for FetchLimits {
    fn from(limits: &Limits) -> Self {
        Self { response_size: limits.response_size.bytes(), in_flight_per_server: 2 }
    }
}

/// One GET.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the endpoint for counters: a constant, never the URL.
    pub endpoint: &'static str,
    pub url: Url,
    /// Also counts what this request costs.
    pub meter: Option<Arc<Meter>>,
}

/// How an answer is wanted, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) accept: &'static str,
    /// Of the transfer: `gzip` or `identity`.
    pub(super) encoding: &'static str,
    /// Bytes, decompressed.
    pub(super) limit: u64,
    /// The key that sets the limit, for its error.
    pub(super) limit_key: &'static str,
    /// Time in all.
    pub(super) total: Duration,
}
