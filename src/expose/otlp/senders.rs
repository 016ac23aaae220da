//! Everything that sends, made at the start: what cannot be used is refused
//! there, by name, and not found out in the night.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::deliver::{Sender, SenderError};
use super::{Feed, points, runs};
use crate::config::Limits;
use crate::config::otlp::{OtlpSettings, Signal};
use crate::expose::LiveTexts;
use crate::store::Deliveries;
use crate::telemetry::Telemetry;

/// See the module. Without a destination there is nothing in it.
#[derive(Debug, Default)]
pub struct Senders {
    points: Option<points::Push>,
    runs: Option<runs::Push>,
}

impl Senders {
    /// `instance`: what tells this exporter from others.
    ///
    /// # Errors
    /// When a certificate cannot be read, for instance.
    pub fn new(
        settings: &OtlpSettings,
        instance: &str,
        limits: &Limits,
        texts: &Arc<LiveTexts>,
        deliveries: Arc<dyn Deliveries>,
        telemetry: &Arc<Telemetry>,
    ) -> Result<Self, SenderError> {
        let OtlpSettings { resource, shutdown_timeout, .. } = settings;
        let sender = |signal, destination| Sender::new(signal, destination, Arc::clone(telemetry));
        let points = match &settings.metrics {
            None => None,
            Some(metrics) => Some(points::Push {
                sender: sender(Signal::Metrics, &metrics.destination)?,
                settings: metrics.clone(),
                resource: resource.clone(),
                instance: instance.to_owned(),
                series: limits.series,
                shutdown_timeout: *shutdown_timeout,
                telemetry: Arc::clone(telemetry),
            }),
        };
        let traces = match &settings.traces {
            None => None,
            Some(traces) => Some((sender(Signal::Traces, &traces.destination)?, traces.clone())),
        };
        let logs = match &settings.logs {
            None => None,
            Some(logs) => Some((sender(Signal::Logs, &logs.destination)?, logs.clone())),
        };
        let runs = (traces.is_some() || logs.is_some()).then(|| runs::Push {
            traces,
            logs,
            resource: resource.clone(),
            texts: Arc::clone(texts),
            deliveries,
            shutdown_timeout: *shutdown_timeout,
            telemetry: Arc::clone(telemetry),
        });
        Ok(Self { points, runs })
    }

    /// Sends until `stop`, and what is left then for so long as the end may
    /// wait.
    pub async fn run(self, feed: Feed, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        if let Some(points) = self.points {
            tasks.spawn(points::push(points, feed.clone(), stop.clone()));
        }
        if let Some(runs) = self.runs {
            tasks.spawn(runs.run(feed, stop));
        }
        tasks.join_all().await;
    }
}
