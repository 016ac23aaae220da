//! A History Server: two small lists a cycle, and each finished run read once.
//!
//! A run is read from its event log, which the server copies as it lies
//! (`run`); only where that fails by the REST API, whose first answer about an
//! application makes the server replay the whole log. Runs are read one after
//! the other, and never while they run: each growth of their log would make
//! the next answer another one. Where the cluster also has places of logs, a
//! run is left to them first: read there it costs the server nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::Instrument;

mod run;

use super::Offer;
use super::schedule::Pace;
use super::source::{Cycle, Place, cycle_span};
use crate::config::{Cluster, Config, ServerUrl};
use crate::eventlog::Listed;
use crate::fetch::{FetchError, FetchErrorKind};
use crate::model::RunId;
use crate::rest::Api;
use crate::rest::applications::{self, ApplicationAttemptInfo, ApplicationInfo, Filter, Status};
use crate::store::RunKey;

/// Runs that ended longer ago are not read, unless `read.lookback` says so.
const LOOKBACK: Duration = Duration::from_hours(24);
/// A server adds finished runs to its list some time after they ended, in no
/// order: the list is asked for from this long before the latest end seen.
const OVERLAP: Duration = Duration::from_hours(1);
/// No further run is begun once a cycle has taken this long.
const CYCLE_BUDGET: Duration = Duration::from_mins(2);
/// Tries of a run that cannot be read, before it is left alone until the
/// daemon starts again.
const TRIES: u32 = 3;

/// Why a run that the server takes to be running is not covered.
const GOES_ON: &str = "running_on_history_server";

/// How reading it went.
#[derive(Debug, Clone, Copy)]
enum Reading {
    Done,
    /// Its log says that it goes on, whatever the list says.
    GoesOn {
        look_again: Instant,
    },
    Failed {
        tries: u32,
    },
    /// The cluster's places of logs may have it, too.
    LeftToLogs {
        since: Instant,
    },
}

/// Listings of a place of logs in which a run should have turned up.
const LISTINGS: u32 = 2;

struct Reader {
    place: Place,
    url: ServerUrl,
    /// How long a run is left to the cluster's places of logs, where there
    /// are any.
    patience: Option<Duration>,
    readings: HashMap<Listed, Reading>,
    /// Of the memory that `readings` rest on.
    generation: u64,
    latest_end: Option<Timestamp>,
    /// Whether runs of the last list are still to be read: the window must
    /// not move past them.
    behind: bool,
    /// Whether the connection broke at the last run: at the next one as well,
    /// and it is the server's fault.
    broke: bool,
}

/// Lists and reads until told to stop.
pub(super) async fn watch(place: Place, url: ServerUrl) {
    let target = place.target(&url);
    let mut pace = Pace::new(&target.target);
    let mut reader = Reader {
        place,
        url,
        patience: None,
        readings: HashMap::new(),
        generation: 0,
        latest_end: None,
        behind: true,
        broke: false,
    };
    loop {
        let config = reader.place.watcher.config();
        pace.set_interval(config.intervals.history_server.get());
        reader.patience = patience(&config, &reader.place.cluster);
        let mut cycle = Cycle::start();
        let span = cycle_span(&target);
        if let Err(error) = reader.read_new(&mut cycle).instrument(span).await {
            cycle.failure = Some(error.into());
        }
        if reader.place.end_cycle(&target, &mut pace, cycle).await.is_break() {
            return;
        }
    }
}

/// How long a run of this cluster is left to its places of logs.
fn patience(config: &Config, cluster: &str) -> Option<Duration> {
    let named = |known: &&Cluster| known.name == cluster && !known.event_log_dirs.is_empty();
    let has_logs = config.clusters.iter().any(|known| named(&known));
    has_logs.then(|| config.intervals.event_log_dir.get() * LISTINGS)
}

impl Reader {
    async fn read_new(&mut self, cycle: &mut Cycle) -> Result<(), FetchError> {
        let clients = self.place.clients();
        let url = self.url.clone();
        let api = Api::new(&clients.history_server, &url);
        let listed = self.list(&api, cycle).await;
        cycle.requests += api.meter().requests();
        cycle.bytes += api.meter().wire_bytes();
        let listed = listed?;
        self.behind = true;
        let generation = self.place.watcher.memory.generation();
        if generation != self.generation {
            self.generation = generation;
            self.readings.clear();
        }
        for (application, attempt) in listed {
            if !self.place.is_ours(application.name_or_id()) {
                cycle.elsewhere += 1;
                continue;
            }
            let listed = Listed::from((&application, &attempt));
            match self.readings.get(&listed) {
                Some(Reading::Done) => continue,
                Some(Reading::Failed { tries }) if *tries >= TRIES => {
                    cycle.skip("unreadable", 1);
                    continue;
                }
                Some(Reading::GoesOn { look_again }) if Instant::now() < *look_again => {
                    cycle.skip(GOES_ON, 1);
                    continue;
                }
                _ => {}
            }
            if cycle.started.elapsed() > CYCLE_BUDGET || self.place.stop.is_cancelled() {
                cycle.skip("waiting", 1);
                continue;
            }
            self.read(&application, &attempt, listed, cycle).await?;
        }
        self.behind = ["waiting", "limit", "unreadable"]
            .iter()
            .any(|reason| cycle.skipped.contains_key(reason));
        Ok(())
    }

    /// The finished attempts of the look-back, latest first; then those that
    /// the server takes to be running though their logs have not grown for
    /// too long. Running ones are counted as not covered.
    async fn list(
        &mut self,
        api: &Api,
        cycle: &mut Cycle,
    ) -> Result<Vec<(ApplicationInfo, ApplicationAttemptInfo)>, FetchError> {
        let config = self.place.watcher.config();
        let limit = u32::try_from(config.limits.applications).ok();
        let running = Filter { status: Some(Status::Running), limit, ..Filter::default() };
        let running = applications::get(api, running).await?;
        let now = Timestamp::now();
        let stale = before(now, config.read.stale_after.get());
        let mut silent = Vec::new();
        for application in &running {
            let Some(last) = application.latest().filter(|last| !last.is_completed()) else {
                continue;
            };
            if last.last_updated().is_some_and(|grew| grew <= stale) {
                silent.push((application.clone(), last.clone()));
            } else if !self.place.is_ours(application.name_or_id()) {
                cycle.elsewhere += 1;
            } else {
                cycle.skip(GOES_ON, 1);
            }
        }
        silent.sort_by_key(|(_, attempt)| std::cmp::Reverse(attempt.last_updated()));

        let lookback = config.read.lookback.map_or(LOOKBACK, crate::config::Span::get);
        let oldest = before(now, lookback);
        silent.retain(|(_, attempt)| attempt.last_updated().is_none_or(|grew| grew >= oldest));
        let since = match self.latest_end {
            Some(end) if !self.behind => before(end, OVERLAP).max(oldest),
            _ => oldest,
        };
        let filter = Filter { status: Some(Status::Completed), min_end: Some(since), limit };
        let completed = applications::get(api, filter).await?;
        let mut attempts: Vec<(ApplicationInfo, ApplicationAttemptInfo)> = Vec::new();
        for application in completed {
            for attempt in application.attempts.iter().filter(|attempt| attempt.is_completed()) {
                attempts.push((application.clone(), attempt.clone()));
            }
        }
        attempts.sort_by_key(|(_, attempt)| std::cmp::Reverse(attempt.end()));
        // A Spark clock ahead of ours must not move the window past runs that
        // are still to come.
        let latest = attempts.first().and_then(|(_, attempt)| attempt.end());
        self.latest_end = latest.map(|end| end.min(now)).max(self.latest_end);
        attempts.append(&mut silent);
        // What is no longer asked for needs no memory.
        let forget = before(since, OVERLAP);
        self.readings.retain(|listed, _| {
            listed.start.is_none_or(|start| start >= forget) || {
                attempts.iter().any(|(application, attempt)| {
                    application.id.get() == listed.app_id && attempt.start() == listed.start
                })
            }
        });
        Ok(attempts)
    }

    /// Whether the run may still turn up in a place of logs.
    fn is_left_to_logs(&mut self, listed: &Listed) -> bool {
        let Some(patience) = self.patience else { return false };
        let now = Instant::now();
        let reading = self.readings.entry(listed.clone());
        match reading.or_insert(Reading::LeftToLogs { since: now }) {
            Reading::LeftToLogs { since } => now.duration_since(*since) < patience,
            Reading::Done | Reading::Failed { .. } | Reading::GoesOn { .. } => false,
        }
    }

    /// Whether the run was read before, and its time to be shown is over.
    async fn is_remembered(&self, key: RunKey, listed: &Listed) -> bool {
        let watcher = Arc::clone(&self.place.watcher);
        let completed = listed.completed;
        let look = move || {
            let known = watcher.memory.find(&key);
            known.is_some_and(|known| {
                (known.end_seen || !completed)
                    && watcher.memory.is_over(known.read_at_ms, Timestamp::now())
            })
        };
        // Only the end of the runtime stops it half way.
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }

    /// Reads one run. An error that is the server's, not the run's, ends the
    /// cycle: a connection that breaks at two runs in a row, or the word to
    /// stay away for a while.
    async fn read(
        &mut self,
        application: &ApplicationInfo,
        attempt: &ApplicationAttemptInfo,
        listed: Listed,
        cycle: &mut Cycle,
    ) -> Result<(), FetchError> {
        let watcher = &self.place.watcher;
        let id = RunId {
            cluster: self.place.cluster.to_string(),
            app_id: listed.app_id.clone(),
            attempt_id: listed.attempt_id.clone(),
        };
        if watcher.registry().has_finished(&id, listed.start) {
            self.readings.insert(listed, Reading::Done);
            return Ok(());
        }
        if self.is_remembered(RunKey::new(id, listed.start), &listed).await {
            self.readings.insert(listed, Reading::Done);
            return Ok(());
        }
        let now = Timestamp::now();
        let ended = attempt.end().or_else(|| attempt.last_updated()).unwrap_or(now);
        if !watcher.registry().has_room_for(ended, now, watcher.room()) {
            cycle.skip("limit", 1);
            return Ok(());
        }
        if self.is_left_to_logs(&listed) {
            cycle.skip("waiting", 1);
            return Ok(());
        }
        match run::read(&self.place, &self.url, application, attempt, cycle).await {
            Ok(taken) => {
                self.broke = false;
                match taken {
                    Some(Offer::NoRoom) => cycle.skip("limit", 1),
                    Some(_) => {
                        self.readings.insert(listed, Reading::Done);
                    }
                    None => {
                        let stale_after = self.place.watcher.config().read.stale_after.get();
                        let look_again = Instant::now() + stale_after;
                        self.readings.insert(listed, Reading::GoesOn { look_again });
                        cycle.skip(GOES_ON, 1);
                    }
                }
                Ok(())
            }
            Err(unread) => {
                let broke =
                    unread.fetch.as_ref().is_some_and(|e| e.kind == FetchErrorKind::Unreachable);
                if !(broke && self.broke) {
                    let tries = match self.readings.get(&listed) {
                        Some(Reading::Failed { tries }) => tries + 1,
                        _ => 1,
                    };
                    self.readings.insert(listed, Reading::Failed { tries });
                    cycle.skip("unreadable", 1);
                }
                let servers = broke && self.broke;
                self.broke = broke;
                match unread.fetch {
                    Some(error) if servers || error.retry_after.is_some() => Err(*error),
                    _ => Ok(()),
                }
            }
        }
    }
}

fn before(time: Timestamp, span: Duration) -> Timestamp {
    time.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH)
}
