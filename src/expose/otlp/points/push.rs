//! The loop that sends the newest moment at each interval.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Points;
use crate::config::otlp::{MetricsSettings, OtlpResource, Temporality};
use crate::expose::otlp::deliver::{Request, Sender, Sent};
use crate::expose::otlp::{Feed, Moment};
use crate::telemetry::Telemetry;
use crate::telemetry::events::OtlpDropped;

/// What is sent, and where.
#[derive(Debug)]
pub struct Push {
    pub sender: Sender,
    pub settings: MetricsSettings,
    /// What the operator says of where things come from.
    pub resource: OtlpResource,
    /// What tells this exporter from others (`service.instance.id`).
    pub instance: String,
    /// `limits.series`: of series that left so many wait at most for the back
    /// end to take their end.
    pub series: usize,
    /// How long the last export may take, once `stop` has come.
    pub shutdown_timeout: Duration,
    pub telemetry: Arc<Telemetry>,
}

/// Sends the newest moment at each interval, until `stop`; then once more.
///
/// The first goes out as soon as every source has ended its first cycle, or
/// an interval has passed. A moment is tried until the next is due (or for
/// `export_timeout`), and given up then: the next one tells all of it.
pub async fn push(push: Push, mut feed: Feed, stop: CancellationToken) {
    let interval = push.settings.interval.max(Duration::from_millis(1));
    let at_most = push.settings.export_timeout.min(interval);
    let mut pusher = Pusher { points: None, done: None, push, stop };
    pusher.begin(&mut feed, interval).await;
    let mut due = interval_at(Instant::now(), interval);
    due.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            biased;
            () = pusher.stop.cancelled() => break,
            _ = due.tick() => {}
        }
        let moment = feed.borrow_and_update().clone();
        if let Some(moment) = moment {
            let until = Instant::now() + at_most;
            pusher.export(moment, until).await;
        }
    }
    let moment = feed.borrow_and_update().clone();
    if let Some(moment) = moment {
        let until = Instant::now() + pusher.push.shutdown_timeout;
        pusher.export(Arc::clone(&moment), until).await;
        pusher.blocking(move |points| points.end(moment)).await;
        pusher.send(until).await;
    }
}

struct Pusher {
    /// `None` while a blocking thread has it, and before the first time.
    points: Option<Points>,
    /// The moment that was sent last, all of it.
    done: Option<Arc<Moment>>,
    push: Push,
    stop: CancellationToken,
}

impl Pusher {
    /// Waits for the first moment that is worth sending.
    async fn begin(&mut self, feed: &mut Feed, at_most: Duration) {
        let until = Instant::now() + at_most;
        loop {
            let moment = feed.borrow_and_update().clone();
            if let Some(moment) = moment {
                if moment.ready {
                    return;
                }
                if self.push.settings.temporality == Temporality::Delta {
                    // Counters that are older than this process begin at what
                    // they stood at first.
                    self.blocking(move |points| points.begin(moment)).await;
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = timeout_at(until, feed.changed()) => {
                    if !matches!(changed, Ok(Ok(()))) {
                        return;
                    }
                }
            }
        }
    }

    async fn export(&mut self, moment: Arc<Moment>, until: Instant) {
        // Nothing new, and all of it there.
        if self.done.as_ref().is_some_and(|done| Arc::ptr_eq(done, &moment)) {
            return;
        }
        let begun = Arc::clone(&moment);
        self.blocking(move |points| points.begin(begun)).await;
        if self.send(until).await {
            self.done = Some(moment);
        }
    }

    /// Sends what was begun. Returns whether all of it was accepted.
    async fn send(&mut self, until: Instant) -> bool {
        let mut all = true;
        while let Some(request) = self.blocking(Points::request).await.flatten() {
            let sent = self.deliver(&request, until).await;
            let Some(points) = &mut self.points else { return false };
            match sent {
                Sent::Accepted { .. } => points.accepted(),
                Sent::Refused => {
                    points.refused();
                    all = false;
                }
                Sent::GivenUp => {
                    points.given_up();
                    all = false;
                }
            }
        }
        let dropped = self.points.as_mut().map(Points::take_dropped).unwrap_or_default();
        let signal = self.push.sender.signal().as_str();
        for (reason, count) in [("too_large", dropped.too_large), ("backlog", dropped.backlog)] {
            OtlpDropped { signal, reason, count }.emit(&self.push.telemetry);
        }
        all
    }

    /// Sends, but not for longer than the end of the daemon may take.
    async fn deliver(&self, request: &Request, until: Instant) -> Sent {
        let sending = self.push.sender.send(request, until);
        tokio::pin!(sending);
        if !self.stop.is_cancelled() {
            tokio::select! {
                sent = &mut sending => return sent,
                () = self.stop.cancelled() => {}
            }
        }
        let last = Instant::now() + self.push.shutdown_timeout;
        timeout_at(until.min(last), sending).await.unwrap_or(Sent::GivenUp)
    }

    /// Encoding megabytes takes long enough to do it off the asynchronous
    /// threads. `None` where it failed: then nothing is known of what was
    /// sent, and all begins anew.
    async fn blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Points) -> T + Send + 'static,
    ) -> Option<T> {
        let mut points = self.points.take().unwrap_or_else(|| {
            let Push { sender, settings, resource, instance, series, .. } = &self.push;
            let (resource, instance) = (resource.clone(), instance.clone());
            Points::new(settings.temporality, resource, instance, sender.request_size(), *series)
        });
        let worked = tokio::task::spawn_blocking(move || {
            let done = work(&mut points);
            (points, done)
        });
        let (points, done) = worked.await.ok()?;
        self.points = Some(points);
        Some(done)
    }
}
