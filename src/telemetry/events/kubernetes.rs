//! What the watches of a Kubernetes cluster see, and when they break.

use std::time::Duration;

use tracing::{debug, info, warn};

use crate::telemetry::Telemetry;
use crate::telemetry::counters::{KubernetesCounts, add};

/// Everything of a kind in one namespace (or in all) was listed, and changes
/// of it are being told from now on.
#[derive(Debug)]
pub struct KubernetesListed {
    pub cluster: String,
    /// One of [`crate::telemetry::KUBERNETES_KINDS`].
    pub kind: &'static str,
    pub namespace: Option<String>,
    pub objects: usize,
    /// Whether it was broken before.
    pub again: bool,
}

impl KubernetesListed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { cluster, kind, namespace, objects, again } = self;
        if again {
            info!(cluster, kind, namespace, objects, "Kubernetes is watched again");
        } else {
            debug!(cluster, kind, namespace, objects, "Kubernetes listed");
        }
        let mut counters = telemetry.counters();
        let totals = counters.kubernetes_totals.entry(cluster).or_default();
        add(&mut totals.lists, kind, 1);
    }
}

/// A list or watch failed. Logged as a warning when it begins to, and quietly
/// while it goes on: its gauge says so all the time.
#[derive(Debug)]
pub struct KubernetesWatchFailed {
    pub cluster: String,
    pub kind: &'static str,
    pub namespace: Option<String>,
    /// One of [`crate::telemetry::KUBERNETES_FAILURES`].
    pub reason: &'static str,
    pub message: String,
    pub retry_in: Duration,
    /// Whether this goes on from the last try, for the same reason.
    pub known: bool,
    /// Whether it is but another list, as after a version that the server
    /// forgot.
    pub harmless: bool,
}

impl KubernetesWatchFailed {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { cluster, kind, namespace, reason, message: error, .. } = self;
        let retry_in_seconds = self.retry_in.as_secs_f64();
        if self.known || self.harmless {
            debug!(cluster, kind, namespace, reason, error, retry_in_seconds, "watch failed");
        } else {
            warn!(
                cluster,
                kind, namespace, reason, error, retry_in_seconds, "Kubernetes cannot be watched"
            );
        }
        let mut counters = telemetry.counters();
        let totals = counters.kubernetes_totals.entry(cluster).or_default();
        add(&mut totals.failures, (kind, reason), 1);
    }
}

/// How things stand in a cluster by now; replaces what was told last.
#[derive(Debug)]
pub struct KubernetesSeen {
    pub cluster: String,
    pub counts: KubernetesCounts,
}

impl KubernetesSeen {
    pub fn emit(self, telemetry: &Telemetry) {
        let mut counters = telemetry.counters();
        counters.kubernetes_totals.entry(self.cluster.clone()).or_default();
        counters.kubernetes.insert(self.cluster, self.counts);
    }
}

/// A cluster is not watched any more: it was taken out of the configuration.
#[derive(Debug)]
pub struct KubernetesRemoved {
    pub cluster: String,
}

impl KubernetesRemoved {
    pub fn emit(self, telemetry: &Telemetry) {
        debug!(cluster = self.cluster, "Kubernetes is not watched any more");
        let mut counters = telemetry.counters();
        counters.pod_facts.submissions.retain(|id, _| id.cluster != self.cluster);
        counters.kubernetes.remove(&self.cluster);
        counters.kubernetes_totals.remove(&self.cluster);
    }
}

/// The pod of a driver runs, and is asked from now on.
#[derive(Debug)]
pub struct DriverFound {
    pub cluster: String,
    pub namespace: String,
    pub pod: String,
    pub url: String,
}

impl DriverFound {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { cluster, namespace, pod, url } = self;
        info!(cluster, namespace, pod, url, "driver found");
        let mut counters = telemetry.counters();
        let totals = counters.kubernetes_totals.entry(cluster).or_default();
        totals.drivers_found = totals.drivers_found.saturating_add(1);
    }
}

/// A driver whose pod runs does not answer, three times in a row.
#[derive(Debug)]
pub struct DriverSilent {
    pub cluster: String,
    pub namespace: String,
    pub pod: String,
    pub url: String,
    pub message: String,
}

impl DriverSilent {
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { cluster, namespace, pod, url, message: error } = self;
        warn!(cluster, namespace, pod, url, error, "driver does not answer, though its pod runs");
        let mut counters = telemetry.counters();
        let totals = counters.kubernetes_totals.entry(cluster).or_default();
        totals.drivers_silenced = totals.drivers_silenced.saturating_add(1);
    }
}
