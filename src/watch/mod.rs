//! The daemon: asks each source in its turn, politely, and keeps what they
//! show in one [`Registry`].
//!
//! One task a source (`driver`, `history_server`, `event_logs`, `kubernetes`), each with its
//! own schedule and back-off; parsing and diagnosing run on a bounded number
//! of blocking threads. After each change the runs held are handed to the
//! publisher, which the caller gave: it builds what is served.

mod amend;
mod driver;
mod event_logs;
mod history_server;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod live;
mod memory;
mod pods;
mod registry;
mod schedule;
mod share;
mod source;
mod sources;

#[cfg(test)]
mod property_tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::info_span;

pub use registry::{Held, Offer, Reading, Registry, Room};
pub use sources::Applied;

use self::amend::Waiting;
use self::live::Live;
use self::memory::Memory;
use self::pods::Pods;
use self::registry::locked;
use self::sources::Sources;
use crate::config::{Config, Limits, Sharding};
use crate::diagnose::{Diagnosis, diagnose};
use crate::fetch::{ClientError, Spool};
use crate::metrics::{NameView, RunView, app_name};
use crate::model::{Application, State};
use crate::store::{Deliveries, Found, LogSeen, News, RunKey, Store, StoreError, StoredRun};
use crate::telemetry::events::{
    ApplicationAppeared, ApplicationExpired, ApplicationFinished, ApplicationsHeld,
    IdentityCollision, ShardSet, ThresholdsSet,
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
    /// In force now, for what is served.
    pub limits: Limits,
}

/// All sources and the runs they showed.
pub struct Watcher {
    live: Live,
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
    sources: tokio::sync::Mutex<Sources>,
    /// Sources whose first cycle has not ended yet.
    waiting: AtomicUsize,
    was_ready: AtomicBool,
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
        thresholds_set(&config).emit(&telemetry);
        let Sharding { shard, total_shards } = config.sharding;
        let is_store_shared = config.storage.url.is_some();
        ShardSet { shard: shard.0, total_shards, is_store_shared }.emit(&telemetry);
        // How long after its end a run may still be read.
        let late = config.retention.0.get().max(config.read.stale_after.get());
        let pods = Pods::new(config.limits.applications, late);
        let live = Live::new(config);
        Arc::new(Self {
            pods,
            waiting_runs: Waiting::default(),
            memory: Memory::new(live.clone(), Arc::clone(&telemetry), open),
            live,
            telemetry,
            registry: Mutex::default(),
            changed: Notify::new(),
            parsing,
            following,
            spool,
            spools,
            sources: tokio::sync::Mutex::new(Sources::new()),
            waiting: AtomicUsize::new(0),
            was_ready: AtomicBool::new(false),
        })
    }

    /// The configuration in force now.
    fn config(&self) -> Arc<Config> {
        self.live.get()
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
        {
            let mut sources = self.sources.lock().await;
            let prepared = sources.prepare(&self.config())?;
            sources.apply(&self, prepared);
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
        self.sources.lock().await.shutdown().await;
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

    /// Goes by another configuration from now on: its sources, and whatever
    /// is read, judged or forgotten next. Nothing that is held is lost.
    ///
    /// # Errors
    /// As [`Watcher::run`] has them; the configuration before stays in force.
    pub async fn reload(self: &Arc<Self>, mut config: Config) -> Result<Applied, ClientError> {
        let mut sources = self.sources.lock().await;
        let waiting = share::keep_owners(&self.config(), &mut config);
        let prepared = sources.prepare(&config)?;
        let config = Arc::new(config);
        self.live.put(Arc::clone(&config));
        thresholds_set(&config).emit(&self.telemetry);
        let applied = Applied { waiting, ..sources.apply(self, prepared) };
        drop(sources);
        self.memory.judge_again();
        self.changed.notify_one();
        Ok(applied)
    }

    /// Diagnoses a reading and takes it in. Blocking: call it where a log
    /// may be parsed. `log`: the log it was read from, to its end.
    fn take_in(&self, mut application: Application, log: Option<LogSeen>) -> Offer {
        let _span = info_span!("diagnose", spark.application.id = application.id.app_id).entered();
        let version = self.learn(&mut application);
        let config = self.config();
        let name = app_name(&application.name, &config.names, &config.limits);
        if !config.sharding.owns(&application.id.cluster, &name) {
            return Offer::Elsewhere;
        }
        let thresholds = config.thresholds_for(&application.name);
        let diagnosis = diagnose(&application, &thresholds).priced(&application, &config.prices);
        let diagnosis = Arc::new(diagnosis);
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
        let config = self.config();
        Room { runs: config.limits.applications, retention: config.retention.0.get() }
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
        let expired = registry.expire(Timestamp::now(), self.config().retention.0.get());
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
        // What a reload adds is not waited for once more.
        let ready = self.waiting.load(Ordering::Acquire) == 0;
        let ready = self.was_ready.fetch_or(ready, Ordering::AcqRel) || ready;
        Publication {
            runs,
            names: self.memory.views(),
            ready,
            limits: self.config().limits.clone(),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        locked(&self.registry)
    }

    /// A source whose first cycle is waited for.
    fn source_begins(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
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

fn thresholds_set(config: &Config) -> ThresholdsSet {
    let thresholds = config.thresholds.numbers().into_iter();
    let setting = |(rule, threshold, value)| ThresholdSetting { rule, threshold, value };
    ThresholdsSet { thresholds: thresholds.map(setting).collect() }
}

/// Without what only diagnosing needs: task spans are most of a run's memory.
fn slim(mut application: Application) -> Application {
    for stage in &mut application.stages {
        stage.timeline = None;
    }
    application
}
