//! What every source of a cluster has: its clients, its place in the daemon,
//! and the patience to wait.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::{Span, info_span};

use super::schedule::Pace;
use super::{Offer, Watcher, driver, history_server};
use crate::config::{Cluster, Config, ServerUrl};
use crate::discover::{self, Role};
use crate::fetch::{ClientError, EndpointCounts, FetchError, FetchLimits, HttpClient, Timeouts};
use crate::model::Application;
use crate::telemetry::events::{CycleFinished, RequestsCounted, SourceProbed, SourceUnreachable};
use crate::telemetry::{TargetId, Telemetry};

/// Between two cycles where there is more to read.
const HURRY: Duration = Duration::from_millis(100);

/// The HTTP clients of one cluster: same settings, different patience.
pub(super) struct Clients {
    pub(super) driver: HttpClient,
    pub(super) history_server: HttpClient,
    /// What was told of each client's requests so far.
    told: Mutex<[BTreeMap<&'static str, EndpointCounts>; 2]>,
}

/// The clients by which the sources of a cluster are reached now.
pub(super) struct Reached {
    now: ArcSwap<Clients>,
    /// Those of before a reload, as long as requests of theirs are under way.
    before: Mutex<Vec<Arc<Clients>>>,
}

impl Reached {
    pub(super) fn by(clients: Clients) -> Self {
        Self { now: ArcSwap::from_pointee(clients), before: Mutex::default() }
    }

    /// Whatever begins from now on is done by these.
    pub(super) fn change(&self, clients: Clients) {
        let before = self.now.swap(Arc::new(clients));
        self.before().push(before);
    }

    fn before(&self) -> MutexGuard<'_, Vec<Arc<Clients>>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked since this was last called, by endpoint.
    fn counted(&self) -> Vec<RequestsCounted> {
        let mut events = self.now.load().counted();
        self.before().retain(|clients| {
            let over = Arc::strong_count(clients) == 1;
            events.extend(clients.counted());
            !over
        });
        events
    }
}

impl Clients {
    pub(super) fn new(cluster: &Cluster, config: &Config) -> Result<Self, ClientError> {
        let limits = FetchLimits::from(&config.limits);
        let client = |patience: Timeouts, total: Duration| {
            let timeouts =
                Timeouts { total, idle: total.min(patience.idle.max(total / 2)), ..patience };
            HttpClient::new(&cluster.http_config, timeouts, limits)
        };
        let intervals = &config.intervals;
        Ok(Self {
            driver: client(Timeouts::DRIVER, intervals.driver_timeout.get())?,
            history_server: client(
                Timeouts::HISTORY_SERVER,
                intervals.history_server_timeout.get(),
            )?,
            told: Mutex::default(),
        })
    }

    /// What was asked since this was last called, by endpoint.
    fn counted(&self) -> Vec<RequestsCounted> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        for (before, client) in told.iter_mut().zip([&self.driver, &self.history_server]) {
            let now = client.statistics();
            for (endpoint, counts) in &now {
                let before = before.get(endpoint).cloned().unwrap_or_default();
                let errors: Vec<(&'static str, u64)> = counts
                    .errors
                    .iter()
                    .map(|(kind, count)| {
                        (kind.as_str(), count - before.errors.get(kind).unwrap_or(&0))
                    })
                    .filter(|(_, count)| *count > 0)
                    .collect();
                let requests = counts.requests - before.requests;
                let bytes = counts.wire_bytes - before.wire_bytes;
                if requests > 0 || bytes > 0 || !errors.is_empty() {
                    events.push(RequestsCounted { endpoint, requests, bytes, errors });
                }
            }
            *before = now;
        }
        events
    }
}

/// What became of one cycle over a source.
#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) started: Instant,
    /// Why the source as a whole gave no answer.
    pub(super) failure: Option<Failure>,
    pub(super) requests: u64,
    pub(super) bytes: u64,
    /// Applications that it showed and that are not covered, by reason.
    pub(super) skipped: HashMap<&'static str, u64>,
    /// Applications that it showed and that other shards cover.
    pub(super) elsewhere: u64,
    /// Whether the next one is to begin at once: there is more to read.
    pub(super) hurry: bool,
    /// The next one need not begin before this is over.
    pub(super) at_leisure: Option<Duration>,
}

/// Why a source gave no answer, in words without secrets.
#[derive(Debug)]
pub(super) struct Failure {
    message: String,
    retry_after: Option<Duration>,
}

impl Cycle {
    pub(super) fn start() -> Self {
        Self {
            started: Instant::now(),
            failure: None,
            requests: 0,
            bytes: 0,
            skipped: HashMap::new(),
            elsewhere: 0,
            hurry: false,
            at_leisure: None,
        }
    }

    pub(super) fn skip(&mut self, reason: &'static str, applications: u64) {
        if applications > 0 {
            *self.skipped.entry(reason).or_default() += applications;
        }
    }
}

#[cfg(feature = "kubernetes")]
impl Failure {
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self { message: error.to_string(), retry_after: error.retry_after }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, retry_after: None }
    }
}

/// Where one source stands.
pub(super) struct Place {
    pub(super) watcher: Arc<Watcher>,
    pub(super) cluster: Arc<str>,
    pub(super) reached: Arc<Reached>,
    /// Cancelled when this source is to end.
    pub(super) stop: CancellationToken,
    /// Cancelled when the whole daemon ends.
    pub(super) daemon: CancellationToken,
    /// Whether its first cycle has ended and was told.
    pub(super) told: AtomicBool,
}

impl Place {
    pub(super) fn telemetry(&self) -> &Telemetry {
        &self.watcher.telemetry
    }

    /// Whether runs of applications with this name are read here.
    pub(super) fn is_ours(&self, name: &str) -> bool {
        self.watcher.is_ours(&self.cluster, name)
    }

    /// The clients to ask with in this cycle.
    pub(super) fn clients(&self) -> Arc<Clients> {
        self.reached.now.load_full()
    }

    /// Whether the daemon goes on without this source: it was taken out of
    /// the configuration.
    pub(super) fn is_removed(&self) -> bool {
        self.stop.is_cancelled() && !self.daemon.is_cancelled()
    }

    /// The name under which a source has its gauges.
    pub(super) fn target(&self, source: &impl std::fmt::Display) -> TargetId {
        TargetId { cluster: self.cluster.to_string(), target: source.to_string() }
    }

    /// Tells how a cycle went, then sleeps until the next one is due; breaks
    /// where the daemon stops first. The first cycle that ends makes the
    /// daemon a step readier.
    pub(super) async fn end_cycle(
        &self,
        target: &TargetId,
        pace: &mut Pace,
        cycle: Cycle,
    ) -> ControlFlow<()> {
        let success = cycle.failure.is_none();
        let wait = match cycle.failure {
            None if cycle.hurry => {
                pace.after_success();
                HURRY
            }
            None => pace.after_success().max(cycle.at_leisure.unwrap_or_default()),
            Some(Failure { message, retry_after }) => {
                let wait = pace.after_failure(retry_after);
                SourceUnreachable { target: target.clone(), message, retry_in: Some(wait) }
                    .emit(self.telemetry());
                wait
            }
        };
        CycleFinished {
            target: target.clone(),
            success,
            at: Timestamp::now(),
            duration: cycle.started.elapsed(),
            requests: cycle.requests,
            bytes: cycle.bytes,
            skipped: cycle.skipped.into_iter().collect(),
            elsewhere: cycle.elsewhere,
        }
        .emit(self.telemetry());
        self.count_requests();
        self.first_cycle_ended();
        self.wait(wait).await
    }

    /// Told once: the daemon is a step readier.
    pub(super) fn first_cycle_ended(&self) {
        if !self.told.swap(true, Ordering::AcqRel) {
            self.watcher.first_cycle_ended();
        }
    }

    /// Sleeps, unless the daemon stops first.
    async fn wait(&self, span: Duration) -> ControlFlow<()> {
        tokio::select! {
            () = self.stop.cancelled() => ControlFlow::Break(()),
            () = tokio::time::sleep(span) => ControlFlow::Continue(()),
        }
    }

    /// Diagnoses a reading and takes it in, off the asynchronous threads.
    pub(super) async fn take_in(&self, application: Application) -> Offer {
        let watcher = Arc::clone(&self.watcher);
        let taken = blocking(move || watcher.take_in(application, None)).await;
        // Only the end of the runtime stops a blocking task half way.
        taken.unwrap_or(Offer::Kept)
    }

    /// Counts what was asked of servers since the last time, for whichever
    /// source of the cluster: they share their clients.
    pub(super) fn count_requests(&self) {
        for event in self.reached.counted() {
            event.emit(self.telemetry());
        }
    }
}

/// A source that ends before its first cycle did is not waited for.
impl Drop for Place {
    fn drop(&mut self) {
        self.first_cycle_ended();
    }
}

/// The span of one cycle over a source, for whoever listens to the daemon's
/// own work.
pub(super) fn cycle_span(target: &TargetId) -> Span {
    info_span!("cycle", spark.cluster.name = target.cluster, source = target.target)
}

/// Work that blocks, off the asynchronous threads and in the same span.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let span = Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work)).await
}

/// Asks a URL what it is until it says so, then watches it as that.
pub(super) async fn find_out(place: Place, url: ServerUrl) {
    let target = place.target(&url);
    let mut pace = Pace::new(&target.target);
    loop {
        pace.set_interval(place.watcher.config().intervals.driver.get());
        let mut cycle = Cycle::start();
        match discover::probe(&place.clients().driver, &url).await {
            Ok(endpoint) => {
                SourceProbed {
                    target,
                    kind: endpoint.role.as_str(),
                    spark_version: endpoint.spark_version,
                }
                .emit(place.telemetry());
                return match endpoint.role {
                    Role::Driver => driver::watch(place, url).await,
                    Role::HistoryServer => history_server::watch(place, url).await,
                };
            }
            Err(error) => {
                cycle.requests = 1;
                cycle.failure = Some(error.into());
                if place.end_cycle(&target, &mut pace, cycle).await.is_break() {
                    return;
                }
            }
        }
    }
}
