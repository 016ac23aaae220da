//! What all reading of one call shares: settings, clients, the runtime.

use std::future::Future;

use tokio::runtime::Runtime;

use super::progress::Progress;
use super::texts::Texts;
use crate::config::{Cluster, Config, HttpConfig};
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
            history_server: client(history_server)?,
            spool: Spool::new(&config.storage.temp_path(), config.limits.spool_size.bytes()),
            progress: Progress::hidden(),
            access: Access::of(&settings, &config.limits, runtime.handle().clone()),
            runtime,
            cluster: cluster.to_owned(),
            config,
        })
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
