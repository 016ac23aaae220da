//! What Kubernetes told of pods and custom resources, kept for the runs they
//! belong to: whoever watches tells it here, and readings of runs take from
//! it what Spark itself does not tell.

#![allow(dead_code, reason = "told by who watches a cluster of Kubernetes")]

use super::Watcher;
use crate::model::{DriverPod, ExecutorPod, PodName, Submission};

impl Watcher {
    /// A driver's pod came, changed or went.
    pub(super) fn driver_pod(&self, _cluster: &str, _pod: &DriverPod) {}

    /// The driver in this pod says which application it runs: what a pod in
    /// client mode does not tell.
    pub(super) fn driver_runs(&self, _cluster: &str, _pod: &PodName, _app_id: &str) {}

    /// An executor's pod came, changed or went.
    pub(super) fn executor_pod(&self, _cluster: &str, _pod: &ExecutorPod) {}

    /// A `SparkApplication` came, changed or went.
    pub(super) fn submission(&self, _cluster: &str, _submission: &Submission) {}
}
