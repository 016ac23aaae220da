//! The runs the daemon holds: which are the same, which of two readings is
//! the better one, and when a finished run leaves.
//!
//! A run is known by [`RunId`] and its start: the same id with a start more
//! than a second away is another run (Standalone and local ids collide).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::diagnose::Diagnosis;
use crate::model::{Application, RunId, Source, State};
use crate::store::{NameKey, RunKey};

/// Starts of one run may differ by this much between sources.
const SAME_START_MS: i64 = RunKey::SAME_START_MS;

/// A run with what was found in it.
#[derive(Debug, Clone)]
pub struct Held {
    /// Its `app_name` label.
    pub name: Arc<str>,
    pub application: Arc<Application>,
    pub diagnosis: Arc<Diagnosis>,
    /// When it was first read as finished; runs still going have none.
    pub finished_read_at: Option<Timestamp>,
    /// Whether an event log of the run is followed, which will tell its end.
    log_followed: bool,
    /// Whether its driver, which told what is held, does not answer any more.
    driver_gone: bool,
}

/// What became of a reading that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A run not held before.
    New,
    /// Took the place of an older or poorer reading of the same run.
    Replaced,
    /// Replaced a running one by its finished form.
    Finished,
    /// The reading held is the better one.
    Kept,
    /// There is no room for another run.
    NoRoom,
    /// It belongs to another shard.
    Elsewhere,
    /// There is no room, and its time to be shown is over.
    TooOld,
}

/// A reading of a run.
#[derive(Debug, Clone)]
pub struct Reading {
    pub application: Arc<Application>,
    pub diagnosis: Arc<Diagnosis>,
    pub name: Arc<str>,
    /// When it was first read as finished, where that is known from before.
    pub read_at: Option<Timestamp>,
}

/// How many runs are held, and how long those that have ended.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub runs: usize,
    pub retention: Duration,
}

/// All runs held, by identity and start.
#[derive(Debug, Default)]
pub struct Registry {
    runs: BTreeMap<(RunId, i64), Held>,
    /// Runs that were given up here, for the store.
    given_up: Vec<Held>,
}

/// The registry. A panic while the lock was held leaves it whole: every change
/// of it is one insertion or removal.
pub(super) fn locked(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Takes a reading in, unless a better one of the same run is held.
    /// Where there is no room, a run goes whose end is longer ago than
    /// retention lasts: it was read late.
    pub fn offer(&mut self, reading: Reading, now: Timestamp, room: Room) -> Offer {
        let Reading { application, diagnosis, name, read_at } = reading;
        self.end_earlier_attempts(&application, now);
        let key = self.key_of(&application);
        let finished = application.state != State::Running;
        let offer = match self.runs.get(&key) {
            Some(held) if held.log_followed && is_left_by_driver(&application) => {
                // Its log shows whether it goes on.
                if let Some(held) = self.runs.get_mut(&key) {
                    held.driver_gone = true;
                }
                return Offer::Kept;
            }
            Some(held) if !replaces(&application, held) => return Offer::Kept,
            Some(held) if finished && held.application.state == State::Running => Offer::Finished,
            Some(_) => Offer::Replaced,
            None => Offer::New,
        };
        if offer == Offer::New && self.runs.len() >= room.runs {
            if finished && is_old(&application, now, room) {
                return Offer::TooOld;
            }
            if !self.make_room(now, room) {
                return Offer::NoRoom;
            }
        }
        // Of a run that had been given up, its end is news.
        let ended = application.end.is_some();
        let known = self.runs.get(&key).filter(|held| held.application.end.is_some() || !ended);
        let known = known.and_then(|held| held.finished_read_at);
        let finished_read_at = finished.then(|| known.or(read_at).unwrap_or(now));
        let grows = application.told_state() == State::Running;
        let log_followed = (grows && application.source == Source::EventLog)
            || self.runs.get(&key).is_some_and(|held| held.log_followed);
        let held = Held {
            name,
            application,
            diagnosis,
            finished_read_at,
            log_followed,
            driver_gone: false,
        };
        self.runs.insert(key, held);
        offer
    }

    /// A later attempt of an application is there: what seemed to run before
    /// it does not any more, and nobody saw it end.
    fn end_earlier_attempts(&mut self, application: &Application, now: Timestamp) {
        let number = |id: &RunId| id.attempt_id.as_deref().and_then(|text| text.parse().ok());
        let Some(attempt): Option<u32> = number(&application.id) else { return };
        let first = RunId { attempt_id: None, ..application.id.clone() };
        let of_application = self
            .runs
            .range_mut((first, i64::MIN)..)
            .take_while(|((id, _), _)| {
                id.cluster == application.id.cluster && id.app_id == application.id.app_id
            })
            .filter(|((id, _), held)| {
                number(id).is_some_and(|other| other < attempt)
                    && held.application.start < application.start
                    && held.application.state == State::Running
            });
        for (_, held) in of_application {
            Arc::make_mut(&mut held.application).set_told_state(State::Lost);
            held.finished_read_at = Some(now);
            held.log_followed = false;
            self.given_up.push(held.clone());
        }
    }

    /// Whether a reading of a run that ended then can be taken in: there is
    /// room, or it can be made, or the run would not be shown anyway.
    pub fn has_room_for(&self, ended: Timestamp, now: Timestamp, room: Room) -> bool {
        self.runs.len() < room.runs
            || is_past(ended, now, room)
            || self.runs.values().any(|held| is_old(&held.application, now, room))
    }

    /// Drops the run that ended first, if its time is over but for its having
    /// been read late.
    fn make_room(&mut self, now: Timestamp, room: Room) -> bool {
        let old = self.runs.iter().filter(|(_, held)| is_old(&held.application, now, room));
        let first =
            old.min_by_key(|(_, held)| held.application.end.unwrap_or(held.application.observed));
        let Some(key) = first.map(|(key, _)| key.clone()) else { return false };
        self.runs.remove(&key).is_some()
    }

    /// Runs that were given up since this was last called.
    pub fn take_given_up(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.given_up)
    }

    /// Names of the applications that run.
    pub fn running_names(&self) -> Vec<NameKey> {
        let running = |held: &&Held| held.application.state == State::Running;
        let mut names: Vec<NameKey> = self.runs.values().filter(running).map(name_of).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The runs of a name that have ended.
    pub fn ended_runs_of(&self, name: &NameKey) -> Vec<Held> {
        self.runs
            .values()
            .filter(|held| held.application.state != State::Running && name_of(held) == *name)
            .cloned()
            .collect()
    }

    /// Puts another diagnosis in the place of the one of this reading, if
    /// that is still the one held.
    pub fn rejudge(&mut self, reading: &Held, diagnosis: Arc<Diagnosis>) {
        let key = self.key_of(&reading.application);
        if let Some(held) = self.runs.get_mut(&key)
            && Arc::ptr_eq(&held.diagnosis, &reading.diagnosis)
        {
            held.diagnosis = diagnosis;
        }
    }

    /// Whether the run is held as one that goes on.
    pub fn is_running(&self, key: &RunKey) -> bool {
        self.runs_of(&key.id).any(|((_, start), held)| {
            held.application.state == State::Running && same_start(*start, key.start_ms)
        })
    }

    /// Whether a driver that answers shows the run of this growing log: it
    /// knows more of it. The run is then noted as one whose log is followed.
    pub fn yields_to_driver(&mut self, application: &Application) -> bool {
        let key = self.key_of(application);
        let Some(held) = self.runs.get_mut(&key) else { return false };
        held.log_followed = true;
        let shown = &held.application;
        shown.state == State::Running && shown.source == Source::Driver && !held.driver_gone
    }

    /// The log of a run is not followed any more. Where nobody else sees the
    /// run, and nobody saw it end, it has this state from now on.
    pub fn unfollow(&mut self, id: &RunId, start: Option<Timestamp>, state: State, now: Timestamp) {
        let start = millis(start);
        let range = (id.clone(), i64::MIN)..=(id.clone(), i64::MAX);
        let held = self.runs.range_mut(range).find(|(key, _)| same_start(key.1, start));
        let Some((_, held)) = held else { return };
        held.log_followed = false;
        let shown = &held.application;
        let unseen = shown.source == Source::EventLog || held.driver_gone;
        if shown.told_state() == State::Running && unseen {
            Arc::make_mut(&mut held.application).set_told_state(state);
            held.finished_read_at = held.finished_read_at.or(Some(now));
            held.driver_gone = false;
            self.given_up.push(held.clone());
        }
    }

    /// Whether a finished reading of this run is held already. What a driver
    /// told until it was gone is none: it lacks the end.
    pub fn has_finished(&self, id: &RunId, start: Option<Timestamp>) -> bool {
        self.runs_of(id).any(|(key, held)| {
            let run = &held.application;
            let saw_it_go = run.source == Source::Driver && run.told_end().is_none();
            run.state != State::Running && !saw_it_go && same_start(key.1, millis(start))
        })
    }

    /// Whether what is held of this run has had its driver's pod from the
    /// start. `None`: it is not held.
    pub fn knows_driver_pod(&self, application: &Application) -> Option<bool> {
        let held = self.runs.get(&self.key_of(application))?;
        let kubernetes = held.application.kubernetes.as_ref();
        Some(kubernetes.is_some_and(|known| known.known_from_start))
    }

    /// The runs of an application, whatever their attempt and start.
    pub fn runs_of_application(&self, cluster: &str, app_id: &str) -> Vec<Held> {
        let first =
            RunId { cluster: cluster.to_owned(), app_id: app_id.to_owned(), attempt_id: None };
        self.runs
            .range((first, i64::MIN)..)
            .take_while(|((id, _), _)| id.cluster == cluster && id.app_id == app_id)
            .map(|(_, held)| held.clone())
            .collect()
    }

    /// Puts the same reading with more facts in its place, if that is still
    /// the one held.
    pub fn amend(
        &mut self,
        reading: &Held,
        application: Arc<Application>,
        diagnosis: Arc<Diagnosis>,
        now: Timestamp,
    ) -> Option<Offer> {
        let key = self.key_of(&reading.application);
        let held = self.runs.get_mut(&key)?;
        if !Arc::ptr_eq(&held.application, &reading.application)
            || !Arc::ptr_eq(&held.diagnosis, &reading.diagnosis)
        {
            return None;
        }
        let was_running = held.application.state == State::Running;
        let finished = application.state != State::Running;
        held.finished_read_at = finished.then(|| held.finished_read_at.unwrap_or(now));
        held.application = application;
        held.diagnosis = diagnosis;
        Some(if was_running && finished { Offer::Finished } else { Offer::Replaced })
    }

    /// Drops finished runs whose retention is over: `retention` after they
    /// were first read as finished, which is after their end. Returns what
    /// left.
    pub fn expire(&mut self, now: Timestamp, retention: Duration) -> Vec<RunId> {
        let mut expired = Vec::new();
        self.runs.retain(|(id, _), held| {
            let Some(read_at) = held.finished_read_at else { return true };
            // It was read after its end; where Spark's clock is ahead of ours
            // and says otherwise, the reading counts.
            let keep = now.duration_since(read_at) < jiff_duration(retention);
            if !keep {
                expired.push(id.clone());
            }
            keep
        });
        expired
    }

    /// The runs to show: of several with the same id, the one that started
    /// last (labels do not carry the start).
    pub fn shown(&self) -> Vec<Held> {
        let mut shown: BTreeMap<&RunId, &Held> = BTreeMap::new();
        for ((id, _), held) in &self.runs {
            // Ascending by start: the last one stays.
            shown.insert(id, held);
        }
        shown.into_values().cloned().collect()
    }

    /// When the held runs with this id started.
    pub fn starts_of(&self, id: &RunId) -> Vec<Option<Timestamp>> {
        self.runs_of(id).map(|(_, held)| held.application.start).collect()
    }

    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn runs_of(&self, id: &RunId) -> impl Iterator<Item = (&(RunId, i64), &Held)> {
        self.runs.range((id.clone(), i64::MIN)..=(id.clone(), i64::MAX))
    }

    /// The key of the held run that this is a reading of, or a new one.
    fn key_of(&self, application: &Application) -> (RunId, i64) {
        let start = millis(application.start);
        let held = self.runs_of(&application.id).find(|(key, _)| same_start(key.1, start));
        match held {
            Some((key, _)) => key.clone(),
            None => (application.id.clone(), start),
        }
    }
}

fn name_of(held: &Held) -> NameKey {
    let cluster = held.application.id.cluster.clone();
    NameKey { cluster, app_name: held.name.to_string() }
}

/// Whether the run ended longer ago than it is shown.
fn is_old(application: &Application, now: Timestamp, room: Room) -> bool {
    application.state != State::Running
        && is_past(application.end.unwrap_or(application.observed), now, room)
}

fn is_past(ended: Timestamp, now: Timestamp, room: Room) -> bool {
    now.duration_since(ended) >= jiff_duration(room.retention)
}

/// What a driver's last reading becomes when it does not answer any more.
fn is_left_by_driver(application: &Application) -> bool {
    application.source == Source::Driver
        && application.told_state() != State::Running
        && application.told_end().is_none()
}

/// Whether a reading is at least as good as the one held.
///
/// Who saw the end is right, the event log before REST (it has every task).
/// Of a run whose end nobody saw, a driver that answers tells most; a run
/// that was given up lives on where somebody speaks of a later moment of it.
/// What Kubernetes says of the end is the same for both, and proves neither;
/// but a driver whose pod has ended answers no more.
fn replaces(new: &Application, held: &Held) -> bool {
    let rank = |application: &Application| application.source.tells();
    let running = |application: &Application| application.told_state() == State::Running;
    let seen_end =
        |application: &Application| !running(application) && application.told_end().is_some();
    let shown = &*held.application;
    let driver_gone = held.driver_gone || shown.ended_unseen();
    match (seen_end(new), seen_end(shown)) {
        (true, false) => true,
        (false, true) => false,
        (true, true) => rank(new) >= rank(shown),
        (false, false) => match (running(new), running(shown)) {
            (true, true) => {
                shown.source != Source::Driver || new.source == Source::Driver || driver_gone
            }
            (true, false) => new.observed > shown.observed,
            (false, true) => new.source != Source::Driver || shown.source == Source::Driver,
            (false, false) => rank(new) >= rank(shown),
        },
    }
}

fn same_start(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= SAME_START_MS.unsigned_abs()
}

fn millis(start: Option<Timestamp>) -> i64 {
    start.map_or(0, Timestamp::as_millisecond)
}

fn jiff_duration(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX)
}
