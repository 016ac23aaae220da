//! The latest snapshot, and whether there has been a first one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::OnceCell;

use super::body;
use super::lifecycle::Reloader;
use super::negotiate::Encoding;
use super::report_cache::Reports;
use super::texts::LiveTexts;
use super::web::WebConfig;
use crate::config::Limits;
use crate::metrics::prometheus::Format;
use crate::metrics::{RunView, Snapshot, build};
use crate::telemetry::{Telemetry, TelemetrySnapshot};

/// What requests read. Share it in an `Arc`.
#[derive(Debug)]
pub struct ExposeState {
    current: ArcSwap<Published>,
    ready: AtomicBool,
    pub(super) reports: Reports,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) web: Arc<WebConfig>,
    pub(super) reloader: Option<Reloader>,
}

impl ExposeState {
    /// Not ready, and without any run: `/metrics` answers from the start.
    pub fn new(telemetry: Arc<Telemetry>, limits: &Limits, now: Timestamp) -> Self {
        let counters = telemetry.snapshot();
        let snapshot = build(&[], &[], &counters, limits, now);
        let published = Published::new(Arc::new(snapshot), Arc::new([]), counters, now);
        Self {
            current: ArcSwap::from_pointee(published),
            ready: AtomicBool::new(false),
            reports: Reports::default(),
            web: Arc::new(WebConfig::open(Arc::clone(&telemetry))),
            reloader: None,
            telemetry,
        }
    }

    /// The same with reports that show texts of users, or not (the default).
    #[must_use]
    pub fn showing(mut self, texts: Arc<LiveTexts>) -> Self {
        self.reports = Reports::new(texts);
        self
    }

    /// The same for those whom the file of the web end lets in.
    #[must_use]
    pub fn guarded_by(mut self, web: Arc<WebConfig>) -> Self {
        self.web = web;
        self
    }

    /// The same with `/-/reload`.
    #[must_use]
    pub fn reloaded_by(mut self, reloader: Reloader) -> Self {
        self.reloader = Some(reloader);
        self
    }

    /// Makes a new snapshot the one that requests see. `runs` and `now` are
    /// what it was built from.
    pub fn publish(
        &self,
        snapshot: impl Into<Arc<Snapshot>>,
        runs: impl Into<Arc<[RunView]>>,
        now: Timestamp,
    ) {
        let counters = self.telemetry.snapshot();
        self.current.store(Arc::new(Published::new(snapshot.into(), runs.into(), counters, now)));
    }

    /// To be called once the first cycle of every source has ended, well or
    /// not: from then on `/-/ready` says yes.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(super) fn current(&self) -> Arc<Published> {
        self.current.load_full()
    }
}

/// One snapshot with what was made of it so far.
#[derive(Debug)]
pub(super) struct Published {
    snapshot: Arc<Snapshot>,
    pub(super) runs: Arc<[RunView]>,
    pub(super) counters: TelemetrySnapshot,
    pub(super) at: Timestamp,
    /// Bodies by format and encoding. A snapshot never changes, so each is
    /// made once at most, however many ask: memory and time spent on scrapes
    /// have a bound, and two Prometheus servers cost as much as one.
    bodies: [OnceCell<Bytes>; 4],
}

impl Published {
    fn new(
        snapshot: Arc<Snapshot>,
        runs: Arc<[RunView]>,
        counters: TelemetrySnapshot,
        at: Timestamp,
    ) -> Self {
        let bodies = std::array::from_fn(|_| OnceCell::new());
        Self { snapshot, runs, counters, at, bodies }
    }

    /// The snapshot in this format. Writing tens of megabytes takes long
    /// enough to do it off the async threads.
    ///
    /// # Errors
    /// When the blocking task dies, which only the end of the runtime brings
    /// about.
    pub(super) async fn metrics(
        &self,
        format: Format,
        encoding: Encoding,
    ) -> Result<Bytes, tokio::task::JoinError> {
        let place = match (format, encoding) {
            (Format::OpenMetrics, Encoding::Identity) => 0,
            (Format::OpenMetrics, Encoding::Gzip) => 1,
            (Format::Prometheus, Encoding::Identity) => 2,
            (Format::Prometheus, Encoding::Gzip) => 3,
        };
        self.bodies[place]
            .get_or_try_init(|| async {
                let snapshot = Arc::clone(&self.snapshot);
                tokio::task::spawn_blocking(move || body::metrics(&snapshot, format, encoding))
                    .await
            })
            .await
            .cloned()
    }
}
