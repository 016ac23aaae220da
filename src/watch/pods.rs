//! What Kubernetes told of pods and custom resources, kept for the runs they
//! belong to: whoever watches tells it here, and readings of runs take from
//! it what Spark itself does not tell.
//!
//! A fact that comes before the reading of its run is applied when that is
//! taken in; one that comes after it is noted, and the next round of the
//! daemon ([`Watcher::amend`]) applies it to the run that is held and judges
//! that anew. Facts are kept as long as a run they belong to may still be
//! read: while their pod is there, and some time after.

#![allow(dead_code, reason = "told by who watches a cluster of Kubernetes")]

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Watcher;
use crate::model::{
    DriverPod, ExecutorPod, KubernetesFacts, Pod, PodName, Submission, SubmissionState,
};
use crate::telemetry::events::{PodFactsForgotten, SubmissionTold};
use crate::telemetry::{SubmissionId, SubmissionStatus};

/// Executors' ends of one run, at most.
const MOST_EXECUTORS: usize = 2_000;
/// And of all runs.
const MOST_EXECUTORS_IN_ALL: usize = 50_000;
/// Runs that one pod in client mode is remembered to have held.
const MOST_RUNS_OF_POD: usize = 8;
/// Facts stay so long after the last pod went, at least: a log that nobody
/// closed is read late.
const AFTERWARDS: Duration = Duration::from_mins(10);

/// Cluster and Spark's id of an application.
pub(super) type RunName = (String, String);

/// See the module.
#[derive(Debug)]
pub(super) struct Pods {
    inner: Mutex<Inner>,
    /// Runs that facts are kept of, at most.
    most_runs: usize,
    keep: Duration,
}

#[derive(Debug, Default)]
struct Inner {
    runs: BTreeMap<RunName, Known>,
    /// Pods in client mode, by cluster and name.
    clients: BTreeMap<(String, PodName), Client>,
    /// Executors' ends in `runs`.
    executors: usize,
    /// Runs whose facts changed since the last round.
    news: BTreeSet<RunName>,
}

/// What is known of one run.
#[derive(Debug)]
struct Known {
    facts: KubernetesFacts,
    /// Rises with each change.
    version: u64,
    /// When something of it was told last.
    told: Instant,
}

/// A pod in client mode.
#[derive(Debug, Default)]
struct Client {
    pod: Option<DriverPod>,
    /// The applications that ran in it, the newest last.
    app_ids: Vec<String>,
}

impl Known {
    /// Whether a pod or a custom resource of it is still there.
    fn is_there(&self) -> bool {
        let pod = self.facts.driver.as_ref().is_some_and(|driver| !driver.pod.deleted);
        let resource = self.facts.submission.as_ref().is_some_and(|told| !told.deleted);
        pod || resource
    }
}

impl Pods {
    /// `runs`: how many the daemon holds. `keep`: how long a run may still be
    /// read after its pod is gone.
    pub(super) fn new(runs: usize, keep: Duration) -> Self {
        let keep = keep.saturating_add(AFTERWARDS);
        Self { inner: Mutex::default(), most_runs: runs.saturating_mul(2).max(100), keep }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A panic half way leaves at worst one fact half noted; it is told
        // again with the next change of its pod.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a run, and which version of it.
    pub(super) fn of(&self, cluster: &str, app_id: &str) -> (KubernetesFacts, u64) {
        let name = (cluster.to_owned(), app_id.to_owned());
        let inner = self.inner();
        let known = inner.runs.get(&name);
        known.map(|known| (known.facts.clone(), known.version)).unwrap_or_default()
    }

    /// A reading that was made with this version is held now: where newer
    /// facts came meanwhile, the next round applies them.
    pub(super) fn was_applied(&self, cluster: &str, app_id: &str, version: u64) {
        let name = (cluster.to_owned(), app_id.to_owned());
        let mut inner = self.inner();
        if inner.runs.get(&name).is_some_and(|known| known.version != version) {
            inner.news.insert(name);
        }
    }

    /// Runs whose facts changed since this was last called.
    pub(super) fn take_news(&self) -> BTreeSet<RunName> {
        mem::take(&mut self.inner().news)
    }

    pub(super) fn put_news(&self, name: RunName) {
        self.inner().news.insert(name);
    }

    /// Forgets what is over. Returns how many facts had to go before their
    /// time, for want of room.
    fn tidy(&self, inner: &mut Inner, now: Instant) -> u64 {
        let is_over =
            |known: &Known| !known.is_there() && now.duration_since(known.told) > self.keep;
        let Inner { runs, executors, .. } = inner;
        runs.retain(|_, known| {
            let over = is_over(known);
            if over {
                *executors -= known.facts.executors.len();
            }
            !over
        });
        let mut early = 0;
        while inner.runs.len() > self.most_runs || inner.executors > MOST_EXECUTORS_IN_ALL {
            let first = inner.runs.iter().min_by_key(|(_, known)| (known.is_there(), known.told));
            let Some(name) = first.map(|(name, _)| name.clone()) else { break };
            if let Some(known) = inner.runs.remove(&name) {
                inner.executors -= known.facts.executors.len();
            }
            inner.news.remove(&name);
            early += 1;
        }
        while inner.clients.len() > self.most_runs {
            inner.clients.pop_first();
            early += 1;
        }
        early
    }

    /// Changes what is known of a run. `change` says whether it did anything.
    /// Returns whether it is news, and how many facts had to go for it.
    fn tell(
        &self,
        inner: &mut Inner,
        cluster: &str,
        app_id: &str,
        change: impl FnOnce(&mut KubernetesFacts) -> bool,
    ) -> (bool, u64) {
        let now = Instant::now();
        let name = (cluster.to_owned(), app_id.to_owned());
        let known = inner.runs.entry(name.clone()).or_insert_with(|| Known {
            facts: KubernetesFacts::default(),
            version: 0,
            told: now,
        });
        let before = known.facts.executors.len();
        if !change(&mut known.facts) {
            return (false, 0);
        }
        known.version += 1;
        known.told = now;
        inner.executors = inner.executors - before + known.facts.executors.len();
        inner.news.insert(name);
        (true, self.tidy(inner, now))
    }
}

impl Watcher {
    /// A driver's pod came, changed or went.
    pub(super) fn driver_pod(&self, cluster: &str, pod: &DriverPod) {
        let mut inner = self.pods.inner();
        if let Some(app_id) = &pod.app_id {
            let told = self.pods.tell(&mut inner, cluster, app_id, |facts| put_driver(facts, pod));
            drop(inner);
            return self.told(told);
        }
        let name = (cluster.to_owned(), pod.pod.name.clone());
        let client = inner.clients.entry(name.clone()).or_default();
        client.pod = Some(pod.clone());
        let app_ids = client.app_ids.clone();
        if pod.pod.deleted {
            inner.clients.remove(&name);
        }
        let mut all = (false, 0);
        for app_id in app_ids {
            let told = self.pods.tell(&mut inner, cluster, &app_id, |facts| put_client(facts, pod));
            all = (all.0 || told.0, all.1 + told.1);
        }
        drop(inner);
        self.told(all);
    }

    /// The driver in this pod says which application it runs: what a pod in
    /// client mode does not tell.
    pub(super) fn driver_runs(&self, cluster: &str, pod: &PodName, app_id: &str) {
        let mut inner = self.pods.inner();
        let client = inner.clients.entry((cluster.to_owned(), pod.clone())).or_default();
        if client.app_ids.last().is_some_and(|last| last == app_id) {
            return;
        }
        client.app_ids.retain(|known| known != app_id);
        client.app_ids.push(app_id.to_owned());
        if client.app_ids.len() > MOST_RUNS_OF_POD {
            client.app_ids.remove(0);
        }
        let Some(mut pod) = client.pod.clone() else { return };
        // A driver answers: what ended is an earlier container of the pod.
        pod.pod.end = None;
        let told = self.pods.tell(&mut inner, cluster, app_id, |facts| put_client(facts, &pod));
        drop(inner);
        self.told(told);
    }

    /// An executor's pod came, changed or went.
    pub(super) fn executor_pod(&self, cluster: &str, pod: &ExecutorPod) {
        // One that lives tells nothing that Spark does not.
        if pod.pod.fate().is_none() {
            return;
        }
        let mut inner = self.pods.inner();
        let told = self.pods.tell(&mut inner, cluster, &pod.app_id, |facts| {
            let known = facts.executors.get(&pod.executor_id);
            let next = later(known.map(|known| &**known), &pod.pod);
            if known.is_some_and(|known| **known == next)
                || (known.is_none() && facts.executors.len() >= MOST_EXECUTORS)
            {
                return false;
            }
            facts.executors.insert(pod.executor_id.clone(), Arc::new(next));
            true
        });
        drop(inner);
        self.told(told);
    }

    /// A `SparkApplication` came, changed or went.
    pub(super) fn submission(&self, cluster: &str, submission: &Submission) {
        let status = SubmissionStatus {
            state: submission.state.as_str(),
            attempts: submission.attempts,
            submitted: submission.submitted,
        };
        let id = SubmissionId {
            cluster: cluster.to_owned(),
            operator: submission.operator.as_str(),
            namespace: submission.namespace.clone(),
            name: submission.name.clone(),
        };
        // Of several shards, which all watch, one shows it.
        if self.config().sharding.owns(cluster, &submission.name) {
            SubmissionTold { id, status: (!submission.deleted).then_some(status) }
                .emit(&self.telemetry);
        }
        let Some(app_id) = submission.app_id.as_deref().filter(|id| !id.is_empty()) else { return };
        let mut inner = self.pods.inner();
        let told = self.pods.tell(&mut inner, cluster, app_id, |facts| {
            let known = facts.submission.as_deref();
            // How an attempt ended stays, whatever its resource goes on to do.
            let was_over = known.is_some_and(|known| is_over(known.state));
            if known == Some(submission)
                || (was_over && !is_over(submission.state) && !submission.deleted)
            {
                return false;
            }
            let mut submission = submission.clone();
            if let Some(known) = known.filter(|_| was_over && !is_over(submission.state)) {
                submission = Submission { deleted: true, ..known.clone() };
            }
            facts.submission = Some(Arc::new(submission));
            true
        });
        drop(inner);
        self.told(told);
    }

    fn told(&self, (news, forgotten): (bool, u64)) {
        PodFactsForgotten { count: forgotten }.emit(&self.telemetry);
        if news {
            self.changed.notify_one();
        }
    }
}

fn is_over(state: SubmissionState) -> bool {
    matches!(state, SubmissionState::Succeeded | SubmissionState::Failed)
}

fn put_driver(facts: &mut KubernetesFacts, pod: &DriverPod) -> bool {
    let known = facts.driver.as_deref();
    // Of two pods of one application the one that is there is meant.
    let is_of_another = known.is_some_and(|known| known.pod.name.uid != pod.pod.name.uid);
    if is_of_another && pod.pod.deleted {
        return false;
    }
    let next = DriverPod { pod: later(known.map(|known| &known.pod), &pod.pod), ..pod.clone() };
    if known == Some(&next) {
        return false;
    }
    facts.driver = Some(Arc::new(next));
    true
}

/// A pod in client mode outlives the runs in it: once its container has ended,
/// what comes next in it is not theirs.
fn put_client(facts: &mut KubernetesFacts, pod: &DriverPod) -> bool {
    let is_over = |driver: &DriverPod| driver.pod.end.is_some();
    if facts.driver.as_deref().is_some_and(is_over) && !pod.pod.deleted {
        return false;
    }
    put_driver(facts, pod)
}

/// The pod as it is told now: what was known of its end stays known where the
/// last word about it leaves that out.
fn later(known: Option<&Pod>, told: &Pod) -> Pod {
    let mut next = told.clone();
    if let Some(known) = known.filter(|known| known.name.uid == told.name.uid) {
        if known.deleted || told.deleted {
            next.end = next.end.or_else(|| known.end.clone());
            next.reason = next.reason.or_else(|| known.reason.clone());
            next.deletion = next.deletion.or(known.deletion);
            next.deleted = true;
        }
        next.node = next.node.or_else(|| known.node.clone());
    }
    next
}
