//! The sources that are watched: a set, which a configuration is applied to.
//!
//! A source is known by its cluster and by what it is. One that a new
//! configuration still names goes on as it is, with what it knows and where it
//! stands; what it is reached by (credentials, certificates, time-outs) is
//! changed under it, from its next cycle on. One that it does not name any
//! more ends its cycle and leaves; one that is new begins.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "kubernetes")]
use super::kubernetes;
use super::source::{Clients, Place, Reached};
use super::{Watcher, driver, event_logs, history_server, source};
use crate::config::{
    Cluster, Config, HttpConfig, Limits, Location, ObjectStoreConfig, ServerUrl, Span,
    WebHdfsConfig,
};
use crate::fetch::ClientError;
use crate::fetch::files::{Access, Files, open_place};
use crate::telemetry::events::SourceRemoved;

/// What a source is, as the operator named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Found out by asking.
    Url(ServerUrl),
    Driver(ServerUrl),
    HistoryServer(ServerUrl),
    EventLogs(Location),
    /// The one of its cluster.
    #[cfg(feature = "kubernetes")]
    Kubernetes,
}

impl What {
    /// Each source of a cluster once, however often it is named.
    fn all(cluster: &Cluster) -> Vec<Self> {
        let urls = cluster.urls.iter().cloned().map(Self::Url);
        let drivers = cluster.drivers.iter().cloned().map(Self::Driver);
        let servers = cluster.history_servers.iter().cloned().map(Self::HistoryServer);
        let logs = cluster.event_log_dirs.iter().cloned().map(Self::EventLogs);
        let mut all: Vec<Self> = urls.chain(drivers).chain(servers).chain(logs).collect();
        #[cfg(feature = "kubernetes")]
        all.extend(cluster.kubernetes.as_ref().map(|_| Self::Kubernetes));
        all.sort();
        all.dedup();
        all
    }
}

/// What a source is, by cluster.
type Key = (String, What);

/// The files of a place of event logs, which a reload may open in another way.
pub(super) type Opened = ArcSwap<Arc<dyn Files>>;

/// A source that is watched.
struct Running {
    /// Ends this source alone.
    stop: CancellationToken,
    /// Whether it has ended.
    ended: CancellationToken,
    parts: Parts,
}

/// What of a running source a reload may change, beside its clients.
#[derive(Clone)]
enum Parts {
    None,
    Files(Arc<Opened>),
    #[cfg(feature = "kubernetes")]
    Kubernetes(kubernetes::Handle),
}

/// What is made for a source before it begins, or anew while it runs.
enum Made {
    /// Nothing but its cluster's clients.
    None,
    Files(Arc<dyn Files>),
    #[cfg(feature = "kubernetes")]
    Kubernetes(kubernetes::Wanted),
}

impl Parts {
    fn of(made: Made) -> Self {
        match made {
            Made::None => Self::None,
            Made::Files(files) => Self::Files(Arc::new(Opened::from_pointee(files))),
            #[cfg(feature = "kubernetes")]
            Made::Kubernetes(wanted) => Self::Kubernetes(kubernetes::Handle::new(wanted)),
        }
    }

    fn change(&self, made: Made) {
        match (self, made) {
            (Self::Files(opened), Made::Files(files)) => opened.store(Arc::new(files)),
            #[cfg(feature = "kubernetes")]
            (Self::Kubernetes(handle), Made::Kubernetes(wanted)) => handle.change(wanted),
            // What it is made of is not new.
            _ => {}
        }
    }
}

/// How the sources of a cluster are reached. Where any of it changes, its
/// clients and files are made anew.
#[derive(Debug, Clone, PartialEq)]
struct Settings {
    http_config: HttpConfig,
    object_store: ObjectStoreConfig,
    webhdfs: WebHdfsConfig,
    timeouts: [Span; 2],
    limits: Limits,
}

impl Settings {
    fn of(cluster: &Cluster, config: &Config) -> Self {
        let intervals = &config.intervals;
        Self {
            http_config: cluster.http_config.clone(),
            object_store: cluster.object_store.clone(),
            webhdfs: cluster.webhdfs.clone(),
            timeouts: [intervals.driver_timeout, intervals.history_server_timeout],
            limits: config.limits.clone(),
        }
    }
}

/// All sources of the daemon.
pub(super) struct Sources {
    /// Ends all of them.
    stop: CancellationToken,
    tasks: JoinSet<()>,
    clusters: BTreeMap<String, (Settings, Arc<Reached>)>,
    running: BTreeMap<Key, Running>,
    /// Sources that were ended, and may be at their last cycle yet.
    ending: BTreeMap<Key, CancellationToken>,
}

/// Everything that a configuration needs and that may fail, made beforehand:
/// it is then applied as a whole or not at all.
pub(super) struct Prepared {
    /// With new clients, where they are needed.
    clusters: BTreeMap<String, (Settings, Option<Clients>)>,
    /// With what is new of them.
    sources: BTreeMap<Key, Made>,
}

/// What applying a configuration changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub started: usize,
    pub stopped: usize,
    pub kept: usize,
    /// Keys of settings that changed and stay as they were until a restart.
    pub waiting: Vec<&'static str>,
}

impl Sources {
    pub(super) fn new() -> Self {
        Self {
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            clusters: BTreeMap::new(),
            running: BTreeMap::new(),
            ending: BTreeMap::new(),
        }
    }

    /// Makes what this configuration needs.
    ///
    /// # Errors
    /// When the HTTP client of a cluster or a place of event logs cannot be
    /// made: a certificate file that does not exist, for instance.
    pub(super) fn prepare(&self, config: &Config) -> Result<Prepared, ClientError> {
        let mut clusters = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for cluster in &config.clusters {
            let settings = Settings::of(cluster, config);
            let known = self.clusters.get(&cluster.name);
            let is_same = known.is_some_and(|(known, _)| *known == settings);
            let access = Access::of(cluster, &config.limits, Handle::current());
            for what in What::all(cluster) {
                let key = (cluster.name.clone(), what);
                let running = self.running.get(&key).filter(|_| is_same);
                let made = match &key.1 {
                    What::EventLogs(_) if running.is_some() => Made::None,
                    What::EventLogs(location) => Made::Files(open_place(location, &access)?.into()),
                    What::Url(_) | What::Driver(_) | What::HistoryServer(_) => Made::None,
                    #[cfg(feature = "kubernetes")]
                    What::Kubernetes => match running.map(|running| &running.parts) {
                        Some(Parts::Kubernetes(handle)) if handle.is_for(cluster) => Made::None,
                        _ => Made::Kubernetes(kubernetes::Wanted::new(cluster, config)?),
                    },
                };
                sources.insert(key, made);
            }
            let clients = if is_same { None } else { Some(Clients::new(cluster, config)?) };
            clusters.insert(cluster.name.clone(), (settings, clients));
        }
        Ok(Prepared { clusters, sources })
    }

    /// Begins, changes and ends sources, as prepared.
    pub(super) fn apply(&mut self, watcher: &Arc<Watcher>, prepared: Prepared) -> Applied {
        while self.tasks.try_join_next().is_some() {}
        self.ending.retain(|_, ended| !ended.is_cancelled());
        let mut applied = Applied::default();
        let mut clusters = mem::take(&mut self.clusters);
        for (name, (settings, clients)) in prepared.clusters {
            let known = clusters.remove(&name).map(|(_, reached)| reached);
            let reached = match (known, clients) {
                (Some(reached), Some(clients)) => {
                    reached.change(clients);
                    reached
                }
                (Some(reached), None) => reached,
                (None, Some(clients)) => Arc::new(Reached::by(clients)),
                // What is new was prepared.
                (None, None) => continue,
            };
            self.clusters.insert(name, (settings, reached));
        }
        let mut before = mem::take(&mut self.running);
        for (key, made) in prepared.sources {
            if let Some(running) = before.remove(&key) {
                running.parts.change(made);
                self.running.insert(key, running);
                applied.kept += 1;
            } else {
                applied.started += 1;
                self.start(watcher, key, made);
            }
        }
        for (key, running) in before {
            applied.stopped += 1;
            running.stop.cancel();
            self.ending.insert(key, running.ended);
        }
        applied
    }

    fn start(&mut self, watcher: &Arc<Watcher>, key: Key, made: Made) {
        let Some((_, reached)) = self.clusters.get(&key.0) else { return };
        let parts = Parts::of(made);
        // Credentials of the cluster's servers are not for its pods.
        #[cfg(feature = "kubernetes")]
        let reached = match &parts {
            Parts::Kubernetes(handle) => handle.reached(),
            _ => reached,
        };
        let place = Place {
            watcher: Arc::clone(watcher),
            cluster: key.0.as_str().into(),
            reached: Arc::clone(reached),
            stop: self.stop.child_token(),
            daemon: self.stop.clone(),
            told: AtomicBool::new(false),
        };
        watcher.source_begins();
        let running = Running { stop: place.stop.clone(), ended: CancellationToken::new(), parts };
        let (what, parts) = (key.1.clone(), running.parts.clone());
        let ended = running.ended.clone().drop_guard();
        // The same source as it was before a reload: two would get in each
        // other's way.
        let before = self.ending.remove(&key);
        self.tasks.spawn(async move {
            let _ended = ended;
            if let Some(before) = before {
                before.cancelled().await;
            }
            watch(place, what, parts).await;
        });
        self.running.insert(key, running);
    }

    /// Ends all sources where they stand.
    pub(super) async fn shutdown(&mut self) {
        self.stop.cancel();
        self.tasks.shutdown().await;
    }
}

/// Watches one source until it is told to stop.
async fn watch(place: Place, what: What, parts: Parts) {
    let target = match (&what, &parts) {
        (What::EventLogs(_), Parts::Files(files)) => place.target(&files.load().display("")),
        (What::EventLogs(location), _) => place.target(location),
        (What::Url(url) | What::Driver(url) | What::HistoryServer(url), _) => place.target(url),
        #[cfg(feature = "kubernetes")]
        (What::Kubernetes, _) => place.target(&kubernetes::TARGET),
    };
    let (watcher, stop, daemon) =
        (Arc::clone(&place.watcher), place.stop.clone(), place.daemon.clone());
    match (what, parts) {
        (What::Url(url), _) => source::find_out(place, url).await,
        (What::Driver(url), _) => driver::watch(place, url).await,
        (What::HistoryServer(url), _) => history_server::watch(place, url).await,
        (What::EventLogs(_), Parts::Files(files)) => event_logs::watch(place, files).await,
        #[cfg(feature = "kubernetes")]
        (What::Kubernetes, Parts::Kubernetes(handle)) => kubernetes::watch(place, handle).await,
        // Each was prepared with its parts.
        _ => {}
    }
    if stop.is_cancelled() && !daemon.is_cancelled() {
        SourceRemoved { target }.emit(&watcher.telemetry);
    }
}
