//! The daemon: asks each source in its turn, politely, and keeps what they
//! show in one [`Registry`].
//!
//! One task a source (`driver`, `history_server`, `event_logs`), each with its
//! own schedule and back-off; parsing and diagnosing run on a bounded number
//! of blocking threads. After each change the runs held are handed to the
//! publisher, which the caller gave: it builds what is served.

mod driver;
mod event_logs;
mod history_server;
mod registry;
mod schedule;
mod source;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use registry::{Held, Offer, Registry};

use crate::config::{Cluster, Config, ServerUrl};
use crate::diagnose::diagnose;
use crate::fetch::files::{Access, Files, open_place};
use crate::fetch::{ClientError, Spool};
use crate::metrics::{NameView, RunView, app_name};
use crate::model::{Application, State};
use crate::telemetry::Telemetry;
use crate::telemetry::events::{
    ApplicationAppeared, ApplicationExpired, ApplicationFinished, ApplicationsHeld,
    IdentityCollision,
};

/// What is served is renewed at most this often.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);
/// Retention is looked at and counters are shown at least this often.
const HOUSEKEEPING: Duration = Duration::from_secs(5);

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
    pub fn new(config: Config, telemetry: Arc<Telemetry>) -> Arc<Self> {
        let parsing = Semaphore::new(config.limits.concurrent_logs);
        let following = Arc::new(Semaphore::new(config.limits.followed_logs));
        let spools = Semaphore::new(config.limits.concurrent_logs);
        let spool = Spool::new(&config.storage.temp_path(), config.limits.spool_size.bytes());
        let sources = config.clusters.iter().map(count_sources).sum();
        Arc::new(Self {
            config: Arc::new(config),
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
            let publication = self.publication();
            let publish = Arc::clone(&publish);
            // A panic in the publisher must not end the watch; it is logged
            // by the runtime, and the next change tries again.
            let _ = tokio::task::spawn_blocking(move || publish(publication)).await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(HOUSEKEEPING) => {}
                () = self.changed.notified() => tokio::time::sleep(PUBLISH_EVERY).await,
            }
        }
        tasks.shutdown().await;
        Ok(())
    }

    /// Diagnoses a reading and takes it in. Blocking: call it where a log
    /// may be parsed.
    fn take_in(&self, application: Application) -> Offer {
        let thresholds = self.config.thresholds_for(&application.name);
        let diagnosis =
            diagnose(&application, &thresholds).priced(&application, &self.config.prices);
        let diagnosis = Arc::new(diagnosis);
        let application = Arc::new(slim(application));
        let offer = self.registry().offer(
            Arc::clone(&application),
            Arc::clone(&diagnosis),
            Timestamp::now(),
            self.config.limits.applications,
        );
        let run = application.id.to_string();
        let finished = application.state != State::Running;
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
                name: app_name(&held.application.name, &self.config.names, &self.config.limits),
                application: held.application,
                diagnosis: held.diagnosis,
            })
            .collect();
        Publication { runs, names: Vec::new(), ready: self.waiting.load(Ordering::Acquire) == 0 }
    }

    /// A panic while the lock was held leaves the registry whole: every
    /// change of it is one insertion or removal.
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first_cycle_ended(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
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
