//! The daemon: asks each source in its turn, politely, and keeps what they
//! show in one [`Registry`].
//!
//! One task a source (`driver`, `history_server`, `event_logs`), each with its
//! own schedule and back-off; parsing and diagnosing run on a bounded number
//! of blocking threads. After each change the runs held are handed to the
//! publisher, which the caller gave: it builds what is served.

mod amend;
mod driver;
mod event_logs;
mod history_server;
mod memory;
mod pods;
mod registry;
mod schedule;
mod source;

#[cfg(test)]
mod property_tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info_span;

pub use registry::{Held, Offer, Reading, Registry, Room};

use self::amend::Waiting;
use self::memory::Memory;
use self::pods::Pods;
use self::registry::locked;
use crate::config::{Cluster, Config, ServerUrl};
use crate::diagnose::{Diagnosis, diagnose};
use crate::fetch::files::{Access, Files, open_place};
use crate::fetch::{ClientError, Spool};
use crate::metrics::{NameView, RunView, app_name};
use crate::model::{Application, State};
use crate::store::{Deliveries, Found, LogSeen, News, RunKey, Store, StoreError, StoredRun};
use crate::telemetry::events::{
    ApplicationAppeared, ApplicationExpired, ApplicationFinished, ApplicationsHeld,
    IdentityCollision, ThresholdsSet,
};
use crate::telemetry::{Telemetry, ThresholdSetting};

/// What is served is renewed at most this often.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);
/// Retention is looked at and counters are shown at least this often.
const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// How long the end of the daemon may wait for the store.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// What the daemon holds at one moment.
#[derive(Debug, Clone, Default)]
pub struct Publication {
    /// Ascending by identity.
    pub runs: Vec<RunView>,
    /// Ascending by name.
    pub names: Vec<NameView>,
    /// Whether every source has ended its first cycle.
    pub ready: bool,
}

/// All sources and the runs they showed.
pub struct Watcher {
    config: Arc<Config>,
    telemetry: Arc<Telemetry>,
    registry: Mutex<Registry>,
    memory: Memory,
    /// What Kubernetes told.
    pods: Pods,
    /// Runs whose driver's pod has still to say how they ended.
    waiting_runs: Waiting,
    changed: Notify,
    /// Permits for parsing a log.
    parsing: Semaphore,
    /// Permits for following the log of a running application.
    following: Arc<Semaphore>,
    /// Where downloads lie, and permits for them.
    spool: Spool,
    spools: Semaphore,
    /// Sources whose first cycle has not ended yet.
    waiting: AtomicUsize,
}

/// A source and what belongs to its cluster.
#[derive(Debug, Clone)]
enum Source {
    /// Found out by asking.
    Url(ServerUrl),
    Driver(ServerUrl),
    HistoryServer(ServerUrl),
    EventLogs(Arc<dyn Files>),
}

impl Watcher {
    /// `open` opens the store, and again after each trouble; it may block.
    pub fn new(
        config: Config,
        telemetry: Arc<Telemetry>,
        open: impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let parsing = Semaphore::new(config.limits.concurrent_logs);
        let following = Arc::new(Semaphore::new(config.limits.followed_logs));
        let spools = Semaphore::new(config.limits.concurrent_logs);
        let spool = Spool::new(&config.storage.temp_path(), config.limits.spool_size.bytes());
        let thresholds = config.thresholds.numbers().into_iter();
        let thresholds = thresholds
            .map(|(rule, threshold, value)| ThresholdSetting { rule, threshold, value })
            .collect();
        ThresholdsSet { thresholds }.emit(&telemetry);
        let sources = config.clusters.iter().map(count_sources).sum();
        // How long after its end a run may still be read.
        let late = config.retention.0.get().max(config.read.stale_after.get());
        let config = Arc::new(config);
        Arc::new(Self {
            pods: Pods::new(config.limits.applications, late),
            waiting_runs: Waiting::default(),
            memory: Memory::new(Arc::clone(&config), Arc::clone(&telemetry), open),
            config,
            telemetry,
            registry: Mutex::default(),
            changed: Notify::new(),
            parsing,
            following,
            spool,
            spools,
            waiting: AtomicUsize::new(sources),
        })
    }

    /// Watches until `stop`, handing every change to `publish` (called from a
    /// blocking thread, never twice at the same time).
    ///
    /// # Errors
    /// When the HTTP client of a cluster or a place of event logs cannot be
    /// made: a certificate file that does not exist, for instance.
    pub async fn run(
        self: Arc<Self>,
        stop: CancellationToken,
        publish: impl Fn(Publication) + Send + Sync + 'static,
    ) -> Result<(), ClientError> {
        let mut tasks = JoinSet::new();
        for cluster in &self.config.clusters {
            let clients = source::Clients::new(cluster, &self.config)?;
            let cluster_name: Arc<str> = cluster.name.as_str().into();
            let access = Access::of(cluster, &self.config.limits, Handle::current());
            for source in sources(cluster, &access) {
                let source = source?;
                let place = source::Place {
                    watcher: Arc::clone(&self),
                    cluster: Arc::clone(&cluster_name),
                    clients: clients.clone(),
                    stop: stop.clone(),
                    told: AtomicBool::new(false),
                };
                tasks.spawn(async move {
                    match source {
                        Source::Url(url) => source::find_out(place, url).await,
                        Source::Driver(url) => driver::watch(place, url).await,
                        Source::HistoryServer(url) => history_server::watch(place, url).await,
                        Source::EventLogs(files) => event_logs::watch(place, files).await,
                    }
                });
            }
        }
        let publish = Arc::new(publish);
        while !stop.is_cancelled() {
            self.expire();
            let (watcher, publish) = (Arc::clone(&self), Arc::clone(&publish));
            // A panic here must not end the watch; it is logged by the
            // runtime, and the next change tries again.
            let round = tokio::task::spawn_blocking(move || {
                let _span = info_span!("publish").entered();
                watcher.amend();
                let more = watcher.remember();
                publish(watcher.publication());
                more
            });
            if round.await.unwrap_or(false) {
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(HOUSEKEEPING) => {}
                () = self.changed.notified() => tokio::time::sleep(PUBLISH_EVERY).await,
            }
        }
        tasks.shutdown().await;
        // What was read last is written, as far as that goes quickly; the
        // rest is read again at the next start.
        let writing = tokio::task::spawn_blocking(move || {
            self.amend();
            self.end_waiting(true);
            self.remember()
        });
        let _ = tokio::time::timeout(LAST_WRITES, writing).await;
        Ok(())
    }

    /// Diagnoses a reading and takes it in. Blocking: call it where a log
    /// may be parsed. `log`: the log it was read from, to its end.
    fn take_in(&self, mut application: Application, log: Option<LogSeen>) -> Offer {
        let _span = info_span!("diagnose", spark.application.id = application.id.app_id).entered();
        let version = self.learn(&mut application);
        let thresholds = self.config.thresholds_for(&application.name);
        let diagnosis =
            diagnose(&application, &thresholds).priced(&application, &self.config.prices);
        let diagnosis = Arc::new(diagnosis);
        let name = app_name(&application.name, &self.config.names, &self.config.limits);
        let finished = application.state != State::Running;
        let key = RunKey::of(&application);
        let stored = finished.then(|| Self::stored(&application, &diagnosis, &name, log));
        let application = Arc::new(slim(application));
        let now = Timestamp::now();
        // When a run that was read before was first read.
        let read_at_ms = finished
            .then(|| self.memory.find(&key))
            .flatten()
            .filter(|known| known.end_seen || application.end.is_none())
            .map(|known| known.read_at_ms);
        let offer = if read_at_ms.is_some_and(|ms| self.memory.is_over(ms, now)) {
            Offer::Kept
        } else {
            let reading = Reading {
                application: Arc::clone(&application),
                diagnosis: Arc::clone(&diagnosis),
                name,
                read_at: read_at_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
            };
            self.registry().offer(reading, now, self.room())
        };
        self.pods.was_applied(&application.id.cluster, &application.id.app_id, version);
        if let Some(run) = stored.filter(|_| offer != Offer::NoRoom) {
            self.settle_later(&application, key, run);
        }
        let run = application.id.to_string();
        if offer == Offer::New {
            ApplicationAppeared { run: run.clone(), source: application.source.as_str() }
                .emit(&self.telemetry);
            self.tell_collisions(&application);
        }
        if offer == Offer::Finished || (offer == Offer::New && finished) {
            ApplicationFinished {
                run,
                state: application.state.as_str(),
                duration: application.duration(),
                findings: diagnosis.findings.len(),
            }
            .emit(&self.telemetry);
        }
        self.changed.notify_one();
        offer
    }

    fn stored(
        application: &Application,
        diagnosis: &Diagnosis,
        name: &str,
        log: Option<LogSeen>,
    ) -> StoredRun {
        let cost = diagnosis.price.as_ref().map(|price| price.amount);
        StoredRun::of(application, diagnosis, name, cost, log)
    }

    /// Writes to the store what is to be written, for a while. Blocks.
    /// Returns whether there is more.
    fn remember(&self) -> bool {
        let given_up = self.registry().take_given_up();
        for held in given_up {
            let run = Self::stored(&held.application, &held.diagnosis, &held.name, None);
            self.memory.remember(RunKey::of(&held.application), run);
        }
        self.memory.work(&self.registry)
    }

    fn room(&self) -> Room {
        let retention = self.config.retention.0.get();
        Room { runs: self.config.limits.applications, retention }
    }

    fn tell_collisions(&self, application: &Application) {
        let starts = self.registry().starts_of(&application.id);
        if let Some(other) = starts.into_iter().find(|start| *start != application.start) {
            IdentityCollision {
                run: application.id.to_string(),
                kept_start: application.start.max(other),
                other_start: application.start.min(other),
            }
            .emit(&self.telemetry);
        }
    }

    fn expire(&self) {
        let mut registry = self.registry();
        let expired = registry.expire(Timestamp::now(), self.config.retention.0.get());
        let count = registry.len() as u64;
        drop(registry);
        for run in expired {
            ApplicationExpired { run: run.to_string() }.emit(&self.telemetry);
        }
        ApplicationsHeld { count }.emit(&self.telemetry);
    }

    fn publication(&self) -> Publication {
        let runs = self
            .registry()
            .shown()
            .into_iter()
            .map(|held| RunView {
                name: held.name,
                application: held.application,
                diagnosis: held.diagnosis,
                trace_id: None,
            })
            .collect();
        Publication {
            runs,
            names: self.memory.views(),
            ready: self.waiting.load(Ordering::Acquire) == 0,
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        locked(&self.registry)
    }

    fn first_cycle_ended(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// In the store that the daemon keeps its runs in.
impl Deliveries for Watcher {
    fn find(&self, key: &RunKey) -> Found {
        self.memory.sent_of(key)
    }

    fn add(&self, key: &RunKey, news: News) {
        self.memory.add_sent(key, news);
    }
}

/// Without what only diagnosing needs: task spans are most of a run's memory.
fn slim(mut application: Application) -> Application {
    for stage in &mut application.stages {
        stage.timeline = None;
    }
    application
}

fn count_sources(cluster: &Cluster) -> usize {
    let servers = [&cluster.urls, &cluster.drivers, &cluster.history_servers];
    servers.iter().map(|urls| urls.len()).sum::<usize>() + cluster.event_log_dirs.len()
}

fn sources<'a>(
    cluster: &'a Cluster,
    access: &'a Access,
) -> impl Iterator<Item = Result<Source, ClientError>> + 'a {
    let urls = cluster.urls.iter().cloned().map(Source::Url);
    let drivers = cluster.drivers.iter().cloned().map(Source::Driver);
    let servers = cluster.history_servers.iter().cloned().map(Source::HistoryServer);
    let logs = cluster.event_log_dirs.iter().map(|location| {
        let files = open_place(location, access);
        files.map(|files| Source::EventLogs(files.into())).map_err(ClientError::from)
    });
    urls.chain(drivers).chain(servers).map(Ok).chain(logs)
}
