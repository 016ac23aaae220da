//! Which runs have something to send, and what was sent of them.
//!
//! Each signal has a worker of its own, so that neither waits for the other:
//! it looks at each moment for runs whose reading changed, keeps them in a
//! bounded list (`waiting`), builds what is due of a few at a time (`work`)
//! and sends one request of each in turn (`worker`). What was taken is noted
//! in the store before the next one goes. So:
//!
//! - what a back end does not take now waits, and is built anew from the
//!   latest reading when its turn comes; nothing is queued but readings, which
//!   are shared with everybody else;
//! - a run that leaves the daemon meanwhile still has its turn;
//! - whatever ends the daemon between a request and its note, that request is
//!   sent once more, and nothing else.

mod waiting;
mod work;
mod worker;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::work::{Logs, Traces};
use self::worker::{Pace, Worker};
use super::Feed;
use super::deliver::Sender;
use crate::config::otlp::{LogsSettings, OtlpResource, TracesSettings};
use crate::expose::LiveTexts;
use crate::store::Deliveries;
use crate::telemetry::Telemetry;

/// What is sent of runs, and where.
#[derive(Debug)]
pub struct Push {
    pub traces: Option<(Sender, TracesSettings)>,
    pub logs: Option<(Sender, LogsSettings)>,
    pub resource: OtlpResource,
    /// Whether texts of users may be sent (`web.show_sql`).
    pub texts: Arc<LiveTexts>,
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
        let texts = self.texts;
        let pace = Pace::new(self.shutdown_timeout);
        let telemetry = self.telemetry;
        let settings_of_traces = self.traces.as_ref().map(|(_, settings)| settings.clone());
        let traces = self.traces.map(|(sender, settings)| {
            let request_size = sender.request_size();
            let resource = self.resource.clone();
            let work = Traces { settings, resource, texts, request_size };
            let (deliveries, telemetry) = (Arc::clone(&self.deliveries), Arc::clone(&telemetry));
            Worker::new(work, sender, deliveries, telemetry, feed.clone(), pace)
        });
        let logs = self.logs.map(|(sender, settings)| {
            let request_size = sender.request_size();
            let traces = settings_of_traces;
            let work = Logs { settings, resource: self.resource, request_size, traces };
            Worker::new(work, sender, self.deliveries, telemetry, feed, pace)
        });
        tokio::join!(
            async {
                if let Some(worker) = traces {
                    worker.run(stop.clone()).await;
                }
            },
            async {
                if let Some(worker) = logs {
                    worker.run(stop.clone()).await;
                }
            },
        );
    }
}
