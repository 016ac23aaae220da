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
    client: reqwest::Client,
    telemetry: Arc<Telemetry>,
}

impl Sender {
    pub fn new(
        signal: Signal,
        destination: &Destination,
        telemetry: Arc<Telemetry>,
    ) -> Result<Self, SenderError> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(destination.timeout)
            .build()
            .map_err(|error| SenderError::Unusable(format!("no HTTP client: {error}")))?;
        Ok(Self { signal, destination: destination.clone(), client, telemetry })
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
        let _ = &self.telemetry;
        let mut outgoing = self
            .client
            .post(&self.destination.endpoint)
            .header(http::header::CONTENT_TYPE, "application/x-protobuf")
            .body(request.body.clone());
        for (name, value) in &self.destination.headers {
            outgoing = outgoing.header(name, value.expose());
        }
        let Ok(Ok(answer)) = tokio::time::timeout_at(until, outgoing.send()).await else {
            return Sent::GivenUp;
        };
        match answer.status().as_u16() {
            200..300 => Sent::Accepted { rejected: 0 },
            429 | 502 | 503 | 504 => Sent::GivenUp,
            _ => Sent::Refused,
        }
    }
}
