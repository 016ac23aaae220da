//! Delivery against back ends that answer in every way there is, over real
//! sockets and over both protocols.

mod back_end;
mod connections;
mod faults;
mod outcomes;
mod secrets;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Request, Sender, Sent};
use crate::config::otlp::{Compression, Destination, Protocol, Signal};
use crate::config::{Secret, TlsConfig};
use crate::telemetry::{OtlpCounts, Telemetry};

const BOTH: [Protocol; 2] = [Protocol::HttpProtobuf, Protocol::Grpc];

/// Long enough for anything that should happen.
const LONG: Duration = Duration::from_secs(20);
/// Shorter than the shortest wait between two attempts.
const SHORT: Duration = Duration::from_millis(400);

fn destination(protocol: Protocol, endpoint: String) -> Destination {
    Destination {
        protocol,
        endpoint,
        headers: vec![("x-team".to_owned(), Secret::new("data"))],
        header_files: Vec::new(),
        timeout: Duration::from_secs(5),
        compression: Compression::None,
        tls: TlsConfig::default(),
        request_size: 64 << 20,
    }
}

/// A sender, and the counters of what it does.
struct Way {
    sender: Sender,
    telemetry: Arc<Telemetry>,
}

impl Way {
    fn to(destination: &Destination) -> Self {
        Self::of(Signal::Traces, destination)
    }

    fn of(signal: Signal, destination: &Destination) -> Self {
        let telemetry = Arc::new(Telemetry::default());
        let sender = Sender::new(signal, destination, Arc::clone(&telemetry)).expect("a sender");
        Self { sender, telemetry }
    }

    async fn send(&self, within: Duration) -> Sent {
        self.send_body(request(), within).await
    }

    async fn send_body(&self, request: Request, within: Duration) -> Sent {
        self.sender.send(&request, Instant::now() + within).await
    }

    fn counts(&self) -> OtlpCounts {
        let signal = self.sender.signal().as_str();
        self.telemetry.snapshot().otlp.remove(signal).expect("a signal that is sent")
    }
}

/// Workers are tasks of their own.
#[test]
fn sending_can_be_a_task() {
    fn is_send<T: Send>(_: &T) {}
    let way = Way::to(&destination(Protocol::HttpProtobuf, "http://localhost:1".to_owned()));
    is_send(&way.send(SHORT));
}

/// Nobody here looks into it.
fn request() -> Request {
    Request { body: Bytes::from_static(b"spans"), items: 5 }
}
