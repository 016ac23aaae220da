//! A Kubernetes cluster: its drivers begin to be polled when their pods run,
//! and stop when these end or go.
//!
//! ```text
//! discover/kubernetes -> what pods tell of runs (pods.rs)
//!                     -> one Child a driver's URL (child.rs), polled as any driver is
//! ```
//!
//! What a pod tells is passed on before its driver is left, so that the run's
//! outcome is the pod's. The drivers have no gauges of their own as sources:
//! they come and go by the thousand, and one that is only starting is no
//! source that is down. They are counted by state instead.

mod child;
mod joined;
mod wanted;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::child::{Child, DriverState};
use self::joined::Joined;
pub(super) use self::wanted::{Handle, Wanted};
use super::source::Place;
use crate::discover::kubernetes::{Change, FoundDriver, FoundSubmission, Reason, Told, WatchId};
use crate::telemetry::events::{
    CycleFinished, KubernetesListed, KubernetesRemoved, KubernetesSeen, KubernetesWatchFailed,
};
use crate::telemetry::{KubernetesCounts, TargetId};

/// How it is called among the sources of its cluster.
pub(super) const TARGET: &str = "kubernetes";
/// How things stand is told so often.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Between the first polls of drivers that are found at the same time.
const APART: Duration = Duration::from_millis(20);

/// Watches until told to stop.
pub(super) async fn watch(place: Place, mut handle: Handle) {
    let place = Arc::new(place);
    let wanted = handle.wanted();
    // Ended with this task, and begun anew where the settings change.
    let (mut _tasks, mut changes) = wanted.start(&place.stop);
    let mut cluster = Cluster::new(Arc::clone(&place), wanted.watches());
    let mut tick = tokio::time::interval(TELL_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = place.stop.cancelled() => break,
            _ = tick.tick() => cluster.tell(),
            Some(_) = cluster.children.join_next() => {}
            () = handle.changed() => {
                let wanted = handle.wanted();
                (_tasks, changes) = wanted.start(&place.stop);
                cluster.begin_anew(wanted.watches());
            }
            told = changes.recv() => match told {
                Some(told) => cluster.take(told),
                // Only when all watches ended: the daemon stops.
                None => break,
            },
        }
    }
    if place.is_removed() {
        // Those who polled leave their runs.
        while cluster.children.join_next().await.is_some() {}
        KubernetesRemoved { cluster: place.cluster.to_string() }.emit(place.telemetry());
    }
}

/// How one watch stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    /// Its first list is not in yet.
    #[default]
    Beginning,
    Up,
    /// The server has no such kind.
    Absent,
    /// Why.
    Down(&'static str),
}

#[derive(Debug, Default)]
struct WatchState {
    standing: Standing,
    objects: usize,
}

/// A pod with a driver in it, and who polls it.
struct DriverEntry {
    found: FoundDriver,
    children: Vec<Child>,
    /// Of the settings under which it was told last.
    generation: u32,
}

struct Cluster {
    place: Arc<Place>,
    target: TargetId,
    watches: BTreeMap<WatchId, WatchState>,
    /// By uid of the pod.
    drivers: HashMap<String, DriverEntry>,
    joined: Joined,
    children: JoinSet<()>,
    told_at: Instant,
    /// Counts the settings that were watched under.
    generation: u32,
}

impl Cluster {
    fn new(place: Arc<Place>, watches: Vec<WatchId>) -> Self {
        let target = place.target(&TARGET);
        let watches = watches.into_iter().map(|watch| (watch, WatchState::default())).collect();
        Self {
            generation: 0,
            place,
            target,
            watches,
            drivers: HashMap::new(),
            joined: Joined::default(),
            children: JoinSet::new(),
            told_at: Instant::now(),
        }
    }

    /// With other settings: what was polled is polled on, unless the new
    /// lists lack it.
    fn begin_anew(&mut self, watches: Vec<WatchId>) {
        self.watches = watches.into_iter().map(|watch| (watch, WatchState::default())).collect();
        self.generation = self.generation.wrapping_add(1);
        self.joined = Joined::default();
    }

    fn take(&mut self, told: Told) {
        let Told { watch, objects, change } = told;
        let state = self.watches.entry(watch.clone()).or_default();
        state.objects = objects;
        let cluster = Arc::clone(&self.place.cluster);
        match change {
            Change::Driver(driver) => self.driver(driver),
            Change::Unselected(driver) => self.forget(&driver),
            Change::Executor(executor) => self.place.watcher.executor_pod(&cluster, &executor),
            Change::Submission(found) => self.submission(found),
            Change::Listed => {
                let again = matches!(state.standing, Standing::Down(_));
                state.standing = Standing::Up;
                KubernetesListed {
                    cluster: cluster.to_string(),
                    kind: watch.kind.as_str(),
                    namespace: watch.namespace.as_deref().map(str::to_owned),
                    objects,
                    again,
                }
                .emit(self.place.telemetry());
                self.listed();
            }
            Change::Absent => {
                state.standing = Standing::Absent;
                self.listed();
            }
            Change::Failed(failure) => {
                let reason = failure.reason.as_str();
                let harmless = failure.reason == Reason::Expired;
                let known = state.standing == Standing::Down(reason);
                // A new list follows at once: nothing is down.
                if !harmless {
                    state.standing = Standing::Down(reason);
                }
                KubernetesWatchFailed {
                    cluster: cluster.to_string(),
                    kind: watch.kind.as_str(),
                    namespace: watch.namespace.as_deref().map(str::to_owned),
                    reason,
                    message: failure.message,
                    retry_in: failure.retry_in,
                    known,
                    harmless,
                }
                .emit(self.place.telemetry());
                self.listed();
            }
        }
    }

    /// After the first list, or failure, of all that is watched the first
    /// cycle of this source has ended.
    fn listed(&mut self) {
        if self.watches.values().any(|state| state.standing == Standing::Beginning) {
            return;
        }
        if self
            .watches
            .iter()
            .all(|(watch, state)| !watch.kind.is_needed() || state.standing == Standing::Up)
        {
            let generation = self.generation;
            self.drivers.retain(|_, entry| entry.generation == generation);
        }
        self.tell();
        self.place.first_cycle_ended();
    }

    fn submission(&mut self, found: FoundSubmission) {
        let (namespace, name) = (found.submission.namespace.clone(), found.submission.name.clone());
        let (submission, port_changed) = self.joined.submission(found);
        self.place.watcher.submission(&self.place.cluster, &submission);
        if port_changed {
            let asked: Vec<String> = self
                .drivers
                .iter()
                .filter(|(_, entry)| {
                    entry.found.pod.pod.name.namespace == namespace
                        && entry.found.submitted_by.as_ref() == Some(&name)
                })
                .map(|(uid, _)| uid.clone())
                .collect();
            for uid in asked {
                self.poll(&uid);
            }
        }
    }

    fn driver(&mut self, found: FoundDriver) {
        // What the pod says first: a run that is left has its outcome then.
        self.place.watcher.driver_pod(&self.place.cluster, &found.pod);
        if let Some(submission) = self.joined.driver(&found) {
            self.place.watcher.submission(&self.place.cluster, &submission);
        }
        let uid = found.pod.pod.name.uid.clone();
        if found.pod.pod.deleted {
            self.forget(&found);
            return;
        }
        let generation = self.generation;
        let children = match self.drivers.remove(&uid) {
            Some(entry) => entry.children,
            None => Vec::new(),
        };
        self.drivers.insert(uid.clone(), DriverEntry { found, children, generation });
        self.poll(&uid);
    }

    /// Nobody asks it any more; that its pod ended was told, if it did.
    fn forget(&mut self, driver: &FoundDriver) {
        self.drivers.remove(&driver.pod.pod.name.uid);
        self.joined.forget(driver);
        self.fill();
    }

    /// Begins and stops polling what of a pod is to be polled.
    fn poll(&mut self, uid: &str) {
        let polled = self.polled();
        let config = self.place.watcher.config();
        let interval = config.intervals.driver.get();
        let spread = interval.min(APART.saturating_mul(u32::try_from(polled).unwrap_or(u32::MAX)));
        let Some(entry) = self.drivers.get_mut(uid) else { return };
        let port = self.joined.port(&entry.found);
        let ui = entry.found.ui.as_ref();
        let restarts = ui.map_or(0, |ui| ui.restarts);
        let urls = ui.map(|ui| ui.urls(port)).unwrap_or_default();
        let before = entry.polled();
        // Dropping a child stops it.
        entry.children.retain(|child| child.restarts == restarts && urls.contains(&child.url));
        let stopped = before.saturating_sub(entry.polled());
        let mut room = config.limits.applications.saturating_sub(polled.saturating_sub(stopped));
        for url in urls {
            if entry.children.iter().any(|child| child.url == url) {
                continue;
            }
            if room == 0 {
                break;
            }
            room -= 1;
            let (child, polling) =
                Child::new(Arc::clone(&self.place), &entry.found, url, restarts, spread);
            entry.children.push(child);
            self.children.spawn(polling);
        }
        if stopped > 0 {
            self.fill();
        }
    }

    /// Drivers that are polled, without those that are only asked now and
    /// then because they belong to another shard.
    fn polled(&self) -> usize {
        self.drivers.values().map(DriverEntry::polled).sum()
    }

    /// Where there is room again, drivers that found none are polled.
    fn fill(&mut self) {
        let limit = self.place.watcher.config().limits.applications;
        let room = limit.saturating_sub(self.polled());
        let waiting = |entry: &DriverEntry| entry.found.ui.is_some() && entry.children.is_empty();
        let next = self.drivers.iter().filter(|(_, entry)| waiting(entry));
        let next: Vec<String> = next.take(room).map(|(uid, _)| uid.clone()).collect();
        for uid in next {
            self.poll(&uid);
        }
    }

    /// How things stand, and that this source was looked at.
    fn tell(&mut self) {
        let down = |(watch, state): (&WatchId, &WatchState)| {
            watch.kind.is_needed() && matches!(state.standing, Standing::Down(_))
        };
        let began = |(_, state): (&WatchId, &WatchState)| state.standing == Standing::Beginning;
        let counts = self.counts();
        // Some may have turned out to belong to another shard.
        if counts.drivers.get("limit").is_some_and(|waiting| *waiting > 0) {
            self.fill();
        }
        let beyond = counts.drivers.get("limit").copied().unwrap_or_default();
        let no_room = self.no_room();
        KubernetesSeen { cluster: self.place.cluster.to_string(), counts }
            .emit(self.place.telemetry());
        if self.watches.iter().any(began) {
            return;
        }
        let duration = std::mem::replace(&mut self.told_at, Instant::now()).elapsed();
        CycleFinished {
            target: self.target.clone(),
            success: !self.watches.iter().any(down),
            at: Timestamp::now(),
            duration,
            requests: 0,
            bytes: 0,
            skipped: vec![("limit", beyond + no_room)],
            elsewhere: self.elsewhere(),
        }
        .emit(self.place.telemetry());
    }

    /// Drivers whose applications belong to another shard.
    fn elsewhere(&self) -> u64 {
        self.drivers.values().map(|entry| entry.elsewhere() as u64).sum()
    }

    /// Drivers that are polled and whose runs found no room.
    fn no_room(&self) -> u64 {
        let children = self.drivers.values().flat_map(|entry| &entry.children);
        children.filter(|child| child.status.no_room.load(Ordering::Relaxed)).count() as u64
    }

    fn counts(&self) -> KubernetesCounts {
        let mut counts = KubernetesCounts::default();
        for (watch, state) in &self.watches {
            let kind = watch.kind.as_str();
            let up = match state.standing {
                Standing::Absent | Standing::Beginning => continue,
                Standing::Up => true,
                Standing::Down(_) => false,
            };
            *counts.up.entry(kind).or_insert(true) &= up;
            *counts.objects.entry(kind).or_default() += state.objects as u64;
        }
        for entry in self.drivers.values() {
            *counts.drivers.entry(entry.state().as_str()).or_default() += 1;
        }
        counts
    }
}

impl DriverEntry {
    fn polled(&self) -> usize {
        self.children.len() - self.elsewhere()
    }

    fn elsewhere(&self) -> usize {
        let elsewhere = |child: &&Child| child.status.elsewhere.load(Ordering::Relaxed);
        self.children.iter().filter(elsewhere).count()
    }

    /// Of the pod: that of its liveliest driver.
    fn state(&self) -> DriverState {
        if let Some(best) = self.children.iter().map(|child| child.status.state()).max() {
            return best;
        }
        let pod = &self.found.pod.pod;
        if self.found.ui.is_some() {
            DriverState::Limit
        } else if pod.end.is_some() || pod.phase.is_over() {
            DriverState::Ended
        } else {
            DriverState::Waiting
        }
    }
}
