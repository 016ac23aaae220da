//! One driver of a pod: polled until its pod ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::config::ServerUrl;
use crate::discover::kubernetes::FoundDriver;
use crate::model::PodName;
use crate::telemetry::events::{DriverFound, DriverSilent};
use crate::watch::driver::{Driver, GONE_AFTER};
use crate::watch::schedule::Pace;
use crate::watch::source::{Cycle, Place, cycle_span};

/// A pod runs while its driver starts, loads its dependencies, or cleans up
/// after the last job: silent is one that answered nobody for so long.
const SILENT_AFTER: Duration = Duration::from_mins(5);
/// Between two tries of one that does not answer: a notebook's next session
/// is to be seen soon, and a refused connection costs nothing.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How a driver stands; a later one counts where a pod has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DriverState {
    Waiting,
    Ended,
    Limit,
    Idle,
    Silent,
    Starting,
    Answering,
}

impl DriverState {
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Ended,
        Self::Limit,
        Self::Idle,
        Self::Silent,
        Self::Starting,
        Self::Answering,
    ];

    /// One of [`crate::telemetry::DRIVER_STATES`].
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Ended => "ended",
            Self::Limit => "limit",
            Self::Idle => "idle",
            Self::Silent => "silent",
            Self::Starting => "starting",
            Self::Answering => "answering",
        }
    }
}

/// What its poller last found.
#[derive(Debug)]
pub(super) struct Status {
    state: AtomicU8,
    /// Whether its run found no room among those held.
    pub(super) no_room: AtomicBool,
    /// Whether its application belongs to another shard.
    pub(super) elsewhere: AtomicBool,
}

impl Status {
    pub(super) fn state(&self) -> DriverState {
        let index = usize::from(self.state.load(Ordering::Relaxed));
        DriverState::ALL.get(index).copied().unwrap_or(DriverState::Starting)
    }

    fn set(&self, state: DriverState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }
}

/// Dropping it ends its polling, and with that its run.
pub(super) struct Child {
    pub(super) url: ServerUrl,
    pub(super) restarts: u32,
    pub(super) status: Arc<Status>,
    _gone: DropGuard,
}

impl Child {
    /// A handle, and the polling itself, which begins at some moment within
    /// `spread`.
    pub(super) fn new(
        place: Arc<Place>,
        found: &FoundDriver,
        url: ServerUrl,
        restarts: u32,
        spread: Duration,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let gone = CancellationToken::new();
        let status = Arc::new(Status {
            state: AtomicU8::new(DriverState::Starting as u8),
            no_room: AtomicBool::new(false),
            elsewhere: AtomicBool::new(false),
        });
        let poller = Poller {
            place,
            pod: found.pod.pod.name.clone(),
            client_mode: found.client_mode,
            url: url.clone(),
            status: Arc::clone(&status),
            gone: gone.clone(),
        };
        let child = Self { url, restarts, status, _gone: gone.drop_guard() };
        (child, poller.poll(spread.mul_f64(fastrand::f64())))
    }
}

struct Poller {
    place: Arc<Place>,
    pod: PodName,
    client_mode: bool,
    url: ServerUrl,
    status: Arc<Status>,
    gone: CancellationToken,
}

impl Poller {
    async fn poll(self, first_wait: Duration) {
        let place = &self.place;
        let target = place.target(&self.url);
        let mut pace = Pace::new(&target.target).at_most(LONGEST_WAIT);
        let mut driver = Driver::new(place, self.url.clone());
        DriverFound {
            cluster: place.cluster.to_string(),
            namespace: self.pod.namespace.clone(),
            pod: self.pod.name.clone(),
            url: self.url.to_string(),
        }
        .emit(place.telemetry());
        let mut heard = Instant::now();
        let mut app_id: Option<String> = None;
        let mut wait = first_wait;
        loop {
            tokio::select! {
                biased;
                () = place.stop.cancelled() => break,
                () = self.gone.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
            pace.set_interval(place.watcher.config().intervals.driver.get());
            let cycle = Cycle::start();
            let span = cycle_span(&target);
            let answer = tokio::select! {
                biased;
                () = place.stop.cancelled() => break,
                () = self.gone.cancelled() => break,
                answer = driver.ask(place).instrument(span.clone()) => answer,
            };
            if answer.is_ok() {
                heard = Instant::now();
            }
            if let Ok(Some(application)) = &answer {
                let id = &application.id.app_id;
                if self.client_mode && app_id.as_ref() != Some(id) {
                    place.watcher.driver_runs(&place.cluster, &self.pod, id);
                    app_id = Some(id.clone());
                }
            }
            let cycle = driver.took(place, answer, cycle).instrument(span).await;
            place.count_requests();
            self.status.no_room.store(!cycle.skipped.is_empty(), Ordering::Relaxed);
            self.status.elsewhere.store(cycle.elsewhere > 0, Ordering::Relaxed);
            wait = match &cycle.failure {
                None => pace.after_success().max(cycle.at_leisure.unwrap_or_default()),
                Some(failure) => pace.after_failure(failure.retry_after()),
            };
            self.judge(&driver, &cycle, heard);
        }
        // When the whole daemon stops, the run goes on without it.
        if !place.daemon.is_cancelled() {
            driver.leave(place).await;
        }
    }

    fn judge(&self, driver: &Driver, cycle: &Cycle, heard: Instant) {
        let before = self.status.state();
        let Some(failure) = &cycle.failure else { return self.status.set(DriverState::Answering) };
        if driver.failures() < GONE_AFTER {
            return;
        }
        if self.client_mode {
            self.status.set(DriverState::Idle);
        } else if heard.elapsed() < SILENT_AFTER {
            self.status.set(DriverState::Starting);
        } else if before != DriverState::Silent {
            self.status.set(DriverState::Silent);
            DriverSilent {
                cluster: self.place.cluster.to_string(),
                namespace: self.pod.namespace.clone(),
                pod: self.pod.name.clone(),
                url: self.url.to_string(),
                message: failure.message().to_owned(),
            }
            .emit(self.place.telemetry());
        }
    }
}
