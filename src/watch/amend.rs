//! Runs that are held, when Kubernetes tells more of them: judged anew, and
//! handed to the store with what is now known of their end.
//!
//! A log is often read a moment before the pod's container has ended, and the
//! store counts a run once: what Spark says of an end, where the driver's pod
//! is still to say the last word, waits for it a while
//! ([`Watcher::settle_later`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::{Held, Offer, Watcher};
use crate::config::{Cluster, Config};
use crate::diagnose::{Diagnosis, Finding, Rule, diagnose, with_regression};
use crate::model::{Application, Source, State};
use crate::store::{RunKey, StoredRun};
use crate::telemetry::events::{ApplicationAmended, ApplicationFinished};

/// How long the pod's last word is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
/// Of a run that ended longer ago nothing more is expected.
const RECENT: SignedDuration = SignedDuration::from_mins(2);
/// Runs that wait, at most.
const MOST_WAITING: usize = 1_000;

/// Runs that are not in the store yet, by when they go there at the latest.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<BTreeMap<RunKey, (Instant, StoredRun)>>);

impl Waiting {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunKey, (Instant, StoredRun)>> {
        // Each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    /// What Kubernetes knows of a run that was read is put into it. Returns
    /// the version of that knowledge.
    pub(super) fn learn(&self, application: &mut Application) -> u64 {
        let id = &application.id;
        let (facts, version) = self.pods.of(&id.cluster, &id.app_id);
        application.learn(&facts);
        let known = self.registry().knows_driver_pod(application);
        if let Some(kubernetes) = &mut application.kubernetes {
            kubernetes.known_from_start = known.unwrap_or(true);
        }
        if is_watched(&self.config(), application)
            && application.end.is_some()
            && let Some(record) = self.memory.find(&RunKey::of(application))
        {
            application.restore_outcome(record.state, record.proof);
        }
        version
    }

    /// Hands a run that ended to the store: now, or when its driver's pod has
    /// said how it ended.
    pub(super) fn settle_later(&self, application: &Application, key: RunKey, mut run: StoredRun) {
        let mut waiting = self.waiting_runs.runs();
        let known = waiting.remove(&key);
        let until = known.as_ref().map_or_else(|| Instant::now() + PATIENCE, |known| known.0);
        if let Some((_, known)) = known {
            run.record.log = run.record.log.take().or(known.record.log);
        }
        let waits = is_still_to_speak(&self.config(), application) && until > Instant::now();
        if waits && waiting.len() < MOST_WAITING {
            waiting.insert(key, (until, run));
        } else {
            drop(waiting);
            self.memory.remember(key, run);
        }
    }

    /// Lets those go to the store that waited long enough, or all.
    pub(super) fn end_waiting(&self, all: bool) {
        let mut waiting = self.waiting_runs.runs();
        let now = Instant::now();
        let due: Vec<RunKey> = waiting
            .iter()
            .filter(|(_, (until, _))| all || *until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        let due: Vec<_> = due.into_iter().filter_map(|key| waiting.remove_entry(&key)).collect();
        drop(waiting);
        for (key, (_, run)) in due {
            self.memory.remember(key, run);
        }
    }

    /// Judges the held runs anew that Kubernetes told more of. Blocks.
    pub(super) fn amend(&self) {
        for (cluster, app_id) in self.pods.take_news() {
            let (facts, _) = self.pods.of(&cluster, &app_id);
            let held = self.registry().runs_of_application(&cluster, &app_id);
            for held in held {
                let mut application = (*held.application).clone();
                if !application.learn(&facts) {
                    continue;
                }
                if held.application.kubernetes.is_none()
                    && let Some(kubernetes) = &mut application.kubernetes
                {
                    kubernetes.known_from_start = false;
                }
                if !self.amend_run(&held, application) {
                    // Another reading came meanwhile.
                    self.pods.put_news((cluster.clone(), app_id.clone()));
                }
            }
        }
        self.end_waiting(false);
    }

    /// Whether the run is still held as it was.
    fn amend_run(&self, held: &Held, application: Application) -> bool {
        let diagnosis = Arc::new(self.judge_anew(held, &application));
        let finished = application.state != State::Running;
        let application = Arc::new(application);
        let offer = self.registry().amend(
            held,
            Arc::clone(&application),
            Arc::clone(&diagnosis),
            Timestamp::now(),
        );
        let Some(offer) = offer else { return false };
        let run = application.id.to_string();
        let (before, state) = (held.application.state.as_str(), application.state.as_str());
        ApplicationAmended { run: run.clone(), before, state }.emit(&self.telemetry);
        if offer == Offer::Finished {
            let (duration, findings) = (application.duration(), diagnosis.findings.len());
            ApplicationFinished { run, state, duration, findings }.emit(&self.telemetry);
        }
        if finished {
            let stored = Self::stored(&application, &diagnosis, &held.name, None);
            self.settle_later(&application, RunKey::of(&application), stored);
        }
        true
    }

    /// What is held of a run lacks its tasks one by one: what rests on them is
    /// kept as it was found, and only what the facts changed is found anew.
    fn judge_anew(&self, held: &Held, application: &Application) -> Diagnosis {
        let config = self.config();
        let thresholds = config.thresholds_for(&application.name);
        let after = diagnose(application, &thresholds);
        if application.source != Source::EventLog {
            let after = after.priced(application, &config.prices);
            // It comes from other runs.
            let of_others = |one: &&Finding| one.rule == Rule::Regression;
            return match held.diagnosis.findings.iter().find(of_others) {
                Some(finding) => with_regression(&after, Some(finding.clone())),
                None => after,
            };
        }
        let before = diagnose(&held.application, &thresholds);
        let mut judged = (*held.diagnosis).clone();
        judged.take_changes(&before, after);
        judged
    }
}

/// Whether the driver's pod has still to say how the run ended, which it will
/// within moments.
fn is_still_to_speak(config: &Config, application: &Application) -> bool {
    let ended = application.end.unwrap_or(application.observed);
    if !is_watched(config, application) || Timestamp::now().duration_since(ended) > RECENT {
        return false;
    }
    match &application.kubernetes {
        Some(known) if known.driver.is_some() => {
            known.is_cluster_mode() && known.driver_fate().is_none()
        }
        // Its pods may not have been listed yet.
        _ => {
            application.configuration.get("spark.master").is_some_and(|url| url.starts_with("k8s"))
        }
    }
}

/// Whether the pods of its cluster are watched.
fn is_watched(config: &Config, application: &Application) -> bool {
    let is_its = |cluster: &&Cluster| cluster.name == application.id.cluster;
    config.clusters.iter().find(is_its).is_some_and(|cluster| cluster.kubernetes.is_some())
}
