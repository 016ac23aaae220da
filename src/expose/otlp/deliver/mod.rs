//! Gets requests to a back end: over HTTP ([`http`]) or gRPC ([`grpc`]), with
//! what the specification says of tries again ([`retry`]), of answers
//! ([`answer`]) and of credentials ([`headers`]). Certificates and files of
//! headers that are rotated are taken without a restart ([`renewed`]).
//!
//! Nothing is queued here: [`Sender::send`] ends when the request is taken,
//! refused or out of time, whatever the other side does, and at once when its
//! future is dropped.

mod answer;
mod codec;
mod grpc;
mod headers;
mod http;
mod proxied;
mod renewed;
mod retry;
mod sender;
#[cfg(test)]
mod tests;
mod trouble;
mod words;

use bytes::Bytes;

pub use sender::{Sender, SenderError};

/// One encoded `Export*ServiceRequest`.
#[derive(Debug, Clone)]
pub struct Request {
    /// Protobuf, not compressed.
    pub body: Bytes,
    /// Data points, spans or log records in it.
    pub items: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It arrived; so many of its items were not taken, and never will be.
    Accepted { rejected: u64 },
    /// It will never be taken.
    Refused,
    /// It was not taken in time, and may be sent again.
    GivenUp,
}

/// Who asks, as the specification wants it told.
const USER_AGENT: &str =
    concat!("OTel-OTLP-Exporter-spark-exporter/", env!("CARGO_PKG_VERSION"), " (Rust)");

/// The largest answer that is read, decompressed.
const ANSWER_SIZE: usize = 4 << 20;
