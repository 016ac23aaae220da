//! Drivers found by watching a Kubernetes cluster: pods, and the operators'
//! `SparkApplication`s where there are such.
//!
//! ```text
//! API server -> watch (list, then changes) -> pod, submission (what it means) -> Change
//! ```
//!
//! [`start`] begins one task for each kind of object and namespace; all send
//! into one bounded channel, so that a slow reader slows the watches down and
//! nothing piles up. Only list and watch are used, of pods and
//! sparkapplications. Objects are cut to what is needed as they are decoded.

mod client;
mod container;
mod custom;
mod failure;
mod lookup;
mod pod;
mod submission;
mod watch;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::client::{ConnectError, Connection};
pub use self::failure::{Failure, Reason};
pub use self::lookup::{DEFAULT_UI_PORT, Ui};
use self::pod::Reader;
use self::watch::{Feed, Scope};
use crate::config::{Kubernetes, Watched};
use crate::model::{DriverPod, ExecutorPod, Operator, Submission};

/// Changes that wait to be taken.
const WAITING: usize = 256;

/// What is watched, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    DriverPods,
    ClientModePods,
    ExecutorPods,
    Applications(Operator),
}

impl Kind {
    /// The `kind` label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DriverPods => "driver_pods",
            Self::ClientModePods => "client_mode_pods",
            Self::ExecutorPods => "executor_pods",
            Self::Applications(Operator::Kubeflow) => "kubeflow_applications",
            Self::Applications(Operator::Apache) => "apache_applications",
        }
    }

    /// Whether drivers stay unseen without it; all else only adds to them.
    pub fn is_needed(self) -> bool {
        matches!(self, Self::DriverPods | Self::ClientModePods)
    }
}

/// One watch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId {
    pub kind: Kind,
    /// All where `None`.
    pub namespace: Option<Arc<str>>,
}

/// What a watch has to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub watch: WatchId,
    /// How many objects it knows by now.
    pub objects: usize,
    pub change: Change,
}

/// What changed. Whatever is gone is told once more, `deleted`.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Driver(FoundDriver),
    /// It is still there, but not one of those that are meant any more: its
    /// labels or annotations changed.
    Unselected(FoundDriver),
    Executor(ExecutorPod),
    Submission(FoundSubmission),
    /// All that was there was told.
    Listed,
    /// The server has no such kind, by now.
    Absent,
    Failed(Failure),
}

/// A pod with a driver in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDriver {
    pub pod: DriverPod,
    /// Where its UI answers; `None` while none can: it does not run yet or
    /// any more, or has no address.
    pub ui: Option<Ui>,
    /// A notebook or worker, in which a driver comes and goes.
    pub client_mode: bool,
    /// Name of the `SparkApplication` it was made for.
    pub submitted_by: Option<String>,
}

/// A `SparkApplication`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSubmission {
    pub submission: Submission,
    /// Of the driver's UI, where it tells.
    pub ui_port: Option<u16>,
}

impl Change {
    /// The same object, gone.
    fn gone(mut self) -> Self {
        match &mut self {
            Self::Driver(driver) => {
                driver.pod.pod.deleted = true;
                driver.ui = None;
            }
            Self::Executor(executor) => executor.pod.deleted = true,
            Self::Submission(found) => found.submission.deleted = true,
            Self::Unselected(_) | Self::Listed | Self::Absent | Self::Failed(_) => {}
        }
        self
    }
}

/// Every watch that the settings ask for.
pub fn watches(settings: &Kubernetes, connection: &Connection) -> Vec<WatchId> {
    let mut kinds = vec![Kind::DriverPods];
    if settings.client_mode.is_on() {
        kinds.push(Kind::ClientModePods);
    }
    if settings.executors == Watched::Auto {
        kinds.push(Kind::ExecutorPods);
    }
    if settings.spark_applications == Watched::Auto {
        kinds.extend([Operator::Kubeflow, Operator::Apache].map(Kind::Applications));
    }
    let namespaces = connection.namespaces(settings);
    kinds
        .into_iter()
        .flat_map(|kind| {
            namespaces.iter().map(move |namespace| WatchId { kind, namespace: namespace.clone() })
        })
        .collect()
}

/// Watches until `stop`. The tasks end with the set.
pub fn start(
    settings: &Kubernetes,
    connection: &Connection,
    stop: &CancellationToken,
) -> (JoinSet<()>, Receiver<Told>) {
    let (sender, receiver) = channel(WAITING);
    let mut tasks = JoinSet::new();
    for watch in watches(settings, connection) {
        let feed = Feed::new(watch.clone(), sender.clone(), connection.client());
        let (client, stop) = (connection.client(), stop.clone());
        let scope = Scope { client, namespace: watch.namespace.clone() };
        let watching: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = match watch.kind {
            Kind::Applications(operator) => Box::pin(custom::watch(scope, operator, feed)),
            kind => Box::pin(pod::watch(scope, Reader::new(kind, settings), feed)),
        };
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = watching => {}
            }
        });
    }
    (tasks, receiver)
}

/// The library has a version of its own of what tells time.
fn instant(time: &Time) -> Option<Timestamp> {
    Timestamp::from_nanosecond(time.0.as_nanosecond()).ok()
}
