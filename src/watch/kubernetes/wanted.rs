//! What of a Kubernetes cluster is to be watched: made when a configuration is
//! applied, and changed by a reload while the source goes on.

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{Cluster, Config, HttpConfig, Kubernetes};
use crate::discover::kubernetes::{self as discovery, Connection, Told, WatchId};
use crate::fetch::ClientError;
use crate::watch::source::{Clients, Reached};

/// Settings, and what they need to be watched by.
pub(in crate::watch) struct Wanted {
    watched: Watched,
    clients: Clients,
}

#[derive(Clone)]
pub(super) struct Watched {
    settings: Arc<Kubernetes>,
    connection: Connection,
}

impl Wanted {
    /// # Errors
    /// Where there is no service account or kubeconfig file, or it cannot be
    /// used.
    pub(in crate::watch) fn new(cluster: &Cluster, config: &Config) -> Result<Self, ClientError> {
        let settings = cluster.kubernetes.clone().unwrap_or_default();
        let connection = Connection::new(&settings).map_err(|error| {
            ClientError(format!("cluster {:?}: kubernetes: {error}", cluster.name))
        })?;
        // Whoever may make a pod can call it a driver: what a History Server
        // is shown must not go there.
        let tls_config = cluster.http_config.tls_config.clone();
        let http_config = HttpConfig { tls_config, ..HttpConfig::default() };
        let anonymous = Cluster { http_config, ..Cluster::default() };
        let clients = Clients::new(&anonymous, config)?;
        Ok(Self { watched: Watched { settings: Arc::new(settings), connection }, clients })
    }
}

impl Watched {
    pub(super) fn watches(&self) -> Vec<WatchId> {
        discovery::watches(&self.settings, &self.connection)
    }

    pub(super) fn start(&self, stop: &CancellationToken) -> (JoinSet<()>, Receiver<Told>) {
        discovery::start(&self.settings, &self.connection, stop)
    }
}

/// By which a reload changes what is watched.
#[derive(Clone)]
pub(in crate::watch) struct Handle {
    sender: watch::Sender<Watched>,
    receiver: watch::Receiver<Watched>,
    reached: Arc<Reached>,
}

impl Handle {
    pub(in crate::watch) fn new(wanted: Wanted) -> Self {
        let (sender, receiver) = watch::channel(wanted.watched);
        Self { sender, receiver, reached: Arc::new(Reached::by(wanted.clients)) }
    }

    pub(in crate::watch) fn change(&self, wanted: Wanted) {
        self.reached.change(wanted.clients);
        self.sender.send_replace(wanted.watched);
    }

    /// By which drivers are asked.
    pub(in crate::watch) fn reached(&self) -> &Arc<Reached> {
        &self.reached
    }

    /// Whether it already watches what this cluster says.
    pub(in crate::watch) fn is_for(&self, cluster: &Cluster) -> bool {
        let watched = self.receiver.borrow();
        cluster.kubernetes.as_ref().is_some_and(|settings| *settings == *watched.settings)
    }

    pub(super) fn wanted(&mut self) -> Watched {
        self.receiver.borrow_and_update().clone()
    }

    /// Returns when something else is wanted.
    pub(super) async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
