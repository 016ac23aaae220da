//! What all reading of one call shares: settings, clients, the runtime.

use std::future::Future;

use tokio::runtime::Runtime;

use super::progress::Progress;
use super::share::Share;
use super::texts::Texts;
use crate::config::{Cluster, Config, HttpConfig};
use crate::eventlog::ReadError;
use crate::fetch::files::Access;
use crate::fetch::{HttpClient, Spool, Timeouts};

#[derive(Debug)]
pub(super) struct Session {
    pub(super) config: Config,
    /// The name that `--cluster.name` gives to what is read.
    pub(super) cluster: String,
    pub(super) driver: HttpClient,
    pub(super) history_server: HttpClient,
    pub(super) spool: Spool,
    /// How to reach places that are not local.
    pub(super) access: Access,
    pub(super) progress: Progress,
    /// Without credentials, for an address that nobody gave.
    pub(super) plain: HttpClient,
    /// What `--explain` and `--log` hold.
    pub(super) texts: Texts,
    /// How many runs were in this call's part.
    pub(super) share: Share,
    runtime: Runtime,
}

impl Session {
    pub(super) fn new(config: Config, cluster: &str) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let settings = settings(&config, cluster);
        let client = |timeouts: Timeouts| {
            HttpClient::new(&settings.http_config, timeouts, (&config.limits).into())
        };
        let intervals = &config.intervals;
        let history_server = Timeouts {
            total: Timeouts::HISTORY_SERVER.total.max(intervals.history_server_timeout.get()),
            ..Timeouts::HISTORY_SERVER
        };
        Ok(Self {
            driver: client(Timeouts::DRIVER)?,
            plain: HttpClient::new(
                &HttpConfig::default(),
                Timeouts::DRIVER,
                (&config.limits).into(),
            )?,
            texts: Texts::default(),
            share: Share::default(),
            history_server: client(history_server)?,
            spool: Spool::new(&config.storage.temp_path(), config.limits.spool_size.bytes()),
            progress: Progress::hidden(),
            access: Access::of(&settings, &config.limits, runtime.handle().clone()),
            runtime,
            cluster: cluster.to_owned(),
            config,
        })
    }

    /// Whether a run of an application with this name is in this call's part.
    pub(super) fn is_ours(&self, name: &str) -> bool {
        Share::is_ours(&self.config, &self.cluster, name)
    }

    /// Whether what never gets a name is.
    pub(super) fn has_nameless(&self) -> bool {
        Share::has_nameless(&self.config, &self.cluster)
    }

    /// Whether an error of a log is told by this call: see [`Share::tells`].
    pub(super) fn tells(&self, named: Option<bool>, error: &ReadError) -> bool {
        Share::tells(&self.config, &self.cluster, named, error)
    }

    /// Waits for what is asked of a server; from any thread but the
    /// runtime's.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

/// Credentials and the like of the cluster that `--cluster.name` names in the
/// file.
fn settings(config: &Config, name: &str) -> Cluster {
    let cluster = config.clusters.iter().find(|cluster| cluster.name == name);
    cluster.cloned().unwrap_or_default()
}
