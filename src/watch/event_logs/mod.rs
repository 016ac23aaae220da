//! A place of event logs: listed at its interval. Each finished log is read
//! once; the log of a running application is followed as it grows.
//!
//! A cycle lists the place, takes the followed logs a step further, and reads
//! what is new, newest first, for about as long as its interval: then the
//! place is listed again, so that ten thousand old logs do not stand before
//! the one that ended just now. What is open at the same time is bounded over
//! all places ([`Watcher::parsing`]).

mod follow;
mod plan;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use jiff::Timestamp;
use tracing::{Instrument, info_span};

use self::follow::{Fate, Followed, Step};
use self::plan::{Known, Plan, Policy};
use super::schedule::Pace;
use super::share::Owner;
use super::source::{Cycle, Place, blocking, cycle_span};
use super::sources::Opened;
use super::{Offer, Watcher};
use crate::eventlog::{self, LogFiles, ReadError, ReadOptions, ReadStatistics};
use crate::fetch::files::Files;
use crate::model::State;
use crate::store::LogSeen;
use crate::telemetry::TargetId;
use crate::telemetry::events::{LogFailed, LogRead, LogsListed, SourceProbed};

/// Reading goes on for so many times as long as the listing took, where that
/// is longer than the interval.
const READING_TO_LISTING: u32 = 4;

/// Watches a place until told to stop.
pub(super) async fn watch(place: Place, opened: Arc<Opened>) {
    let files = opened.load().as_ref().clone();
    let mut source = Source { target: place.target(&files.display("")), place, files };
    let mut pace = Pace::new(&source.target.target);
    let mut known = Known::default();
    let mut probed = false;
    let mut generation = None;
    let mut config = source.place.watcher.config();
    loop {
        source.files = opened.load().as_ref().clone();
        let now = source.place.watcher.config();
        if !Arc::ptr_eq(&config, &now) {
            known.judge_again();
            config = now;
        }
        let interval = config.intervals.event_log_dir.get();
        pace.set_interval(interval);
        let mut cycle = Cycle::start();
        let span = cycle_span(&source.target);
        match source.list().instrument(span.clone()).await {
            Ok(found) => {
                let newest = source.place.watcher.memory.generation();
                if generation != Some(newest) {
                    generation = Some(newest);
                    known.restart(source.known_logs().await);
                }
                if !probed {
                    probed = true;
                    let target = source.target.clone();
                    SourceProbed { target, kind: "event_log", spark_version: None }
                        .emit(source.place.telemetry());
                }
                let budget = interval.max(cycle.started.elapsed() * READING_TO_LISTING);
                let reading = source.cycle(found, &mut known, budget, &mut cycle);
                reading.instrument(span).await;
            }
            Err(message) => {
                cycle.failure = Some(message.into());
                for left in known.leave_stale(&source.policy()) {
                    // It cannot be seen, which is not to say that it is gone.
                    left.leave(&source.place.watcher, State::Unknown);
                }
            }
        }
        if source.place.end_cycle(&source.target, &mut pace, cycle).await.is_break() {
            break;
        }
    }
    if source.place.is_removed() {
        for (_, left) in known.followed.drain() {
            left.leave(&source.place.watcher, State::Unknown);
        }
    }
}

/// A place with what its cycles need.
struct Source {
    place: Place,
    files: Arc<dyn Files>,
    target: TargetId,
}

/// What a listing showed.
struct Found {
    logs: Vec<LogFiles>,
    /// Entries that could not be looked at.
    unreadable: u64,
    /// Whether there were more than are listed at most.
    incomplete: bool,
}

impl Source {
    async fn list(&self) -> Result<Found, String> {
        let files = Arc::clone(&self.files);
        let list = move || match files.list() {
            Ok(listing) => {
                let scan = eventlog::group(&listing);
                let unreadable = |(_, reason): &&(String, eventlog::SkipReason)| {
                    matches!(reason, eventlog::SkipReason::Unreadable(_))
                };
                Ok(Found {
                    unreadable: scan.skipped.iter().filter(unreadable).count() as u64,
                    incomplete: listing.incomplete,
                    logs: scan.logs,
                })
            }
            Err(error) => Err(error.to_string()),
        };
        tokio::task::spawn_blocking(list).await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Logs that were read before this daemon started, or that another one
    /// read, and that need not be read again.
    async fn known_logs(&self) -> Vec<LogSeen> {
        let (watcher, cluster) = (Arc::clone(&self.place.watcher), Arc::clone(&self.place.cluster));
        let place = self.files.display("");
        let look = move || watcher.memory.known_logs(&cluster, &place);
        // Only the end of the runtime stops it half way.
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    fn policy(&self) -> Policy {
        let read = self.place.watcher.config().read.clone();
        Policy {
            now: SystemTime::now(),
            lookback: read.lookback.map(crate::config::Span::get),
            stale_after: read.stale_after.get(),
            tells_growth: self.files.tells_growth(),
        }
    }

    async fn cycle(&self, found: Found, known: &mut Known, budget: Duration, cycle: &mut Cycle) {
        let logs = found.logs.len() as u64;
        let policy = self.policy();
        let Plan { follow, read, skipped, elsewhere, left } = known.plan(found.logs, &policy);
        cycle.skip("limit", u64::from(found.incomplete));
        if self.tells(Owner::Unknown) {
            cycle.skip("unreadable", found.unreadable);
            cycle.skip("lookback", skipped.lookback);
        }
        for (reason, count) in skipped.read {
            cycle.skip(reason, count);
        }
        cycle.elsewhere += elsewhere;
        for left in left {
            left.leave(&self.place.watcher, State::Lost);
        }
        self.follow(follow, known, &policy, cycle).await;
        self.read(read, known, budget, cycle).await;
        LogsListed {
            target: self.target.clone(),
            logs,
            followed: known.followed.len() as u64,
            bytes: cycle.bytes,
        }
        .emit(self.place.telemetry());
    }

    /// Takes the followed logs a step further, and new ones in as far as
    /// there is room.
    async fn follow(
        &self,
        logs: Vec<(String, LogFiles, Fate)>,
        known: &mut Known,
        policy: &Policy,
        cycle: &mut Cycle,
    ) {
        let watcher = &self.place.watcher;
        let (mut steps, mut waiting) = (Vec::new(), 0);
        for (key, log, fate) in logs {
            let followed = match known.followed.remove(&key) {
                Some(followed) => Some(followed),
                None => Followed::begin(watcher, &self.place.cluster, known.number()),
            };
            match followed {
                Some(followed) => steps.push((key, log, fate, followed)),
                None => waiting += 1,
            }
        }
        cycle.skip("in_progress", waiting);
        let mut ended = futures_util::stream::iter(steps)
            .map(|(key, log, fate, followed)| async move {
                let step = self.step(log.clone(), fate, followed, policy.clone()).await;
                (key, log, step)
            })
            .buffer_unordered(watcher.config().limits.concurrent_logs);
        while let Some((key, log, step)) = ended.next().await {
            let Some(step) = step else { continue };
            cycle.bytes += step.bytes;
            let told = step.skipped.filter(|_| self.tells(step.owner));
            if let Some(reason) = told {
                cycle.skip(reason, 1);
            }
            if step.owner == Owner::Another {
                cycle.elsewhere += 1;
                // There is room for another one.
                cycle.hurry |= waiting > 0;
                known.leave_to_others(key);
                continue;
            }
            match step.followed {
                Some(followed) => {
                    known.followed.insert(key, followed);
                }
                None if step.skipped != Some("limit") && !step.again => {
                    known.remember(key, &log, told);
                }
                None => {}
            }
        }
    }

    /// `None`: the step itself broke; the log is begun again.
    async fn step(
        &self,
        log: LogFiles,
        fate: Fate,
        followed: Followed,
        policy: Policy,
    ) -> Option<Step> {
        let watcher = Arc::clone(&self.place.watcher);
        let _permit = watcher.parsing.acquire().await.ok()?;
        let (files, path) = (Arc::clone(&self.files), self.files.display(&log.path));
        let at_work = Arc::clone(&watcher);
        let step = blocking(move || {
            let _span = info_span!("follow event log", path = files.display(&log.path)).entered();
            followed.step(&at_work, &*files, &log, fate, &policy)
        });
        step.await
            .inspect_err(|error| {
                let message = format!("following it stopped half way: {error}");
                failed(&watcher, path, "unreadable", message);
            })
            .ok()
    }

    /// Reads what is new, newest first, until the budget is used up.
    async fn read(
        &self,
        logs: Vec<LogFiles>,
        known: &mut Known,
        budget: Duration,
        cycle: &mut Cycle,
    ) {
        let watcher = &self.place.watcher;
        let begun = Instant::now();
        let mut results = futures_util::stream::iter(logs)
            .map(|log| async {
                let late = begun.elapsed() > budget || self.place.stop.is_cancelled();
                let result = if late { Read::unseen("waiting") } else { self.read_one(&log).await };
                (log, result)
            })
            .buffer_unordered(watcher.config().limits.concurrent_logs);
        while let Some((log, result)) = results.next().await {
            cycle.bytes += result.bytes;
            let told = result.skipped.filter(|_| self.tells(result.owner));
            if let Some(reason) = told {
                cycle.skip(reason, 1);
            }
            if result.owner == Owner::Another {
                cycle.elsewhere += 1;
                known.leave_to_others(plan::key(&log));
                continue;
            }
            match result.skipped {
                // Read as soon as the place was listed again.
                Some("waiting") => cycle.hurry = true,
                // Read when there is room.
                Some("limit") => {}
                _ => known.remember(plan::key(&log), &log, told),
            }
        }
    }

    /// Whether this daemon tells of such runs where they are not covered.
    fn tells(&self, owner: Owner) -> bool {
        self.place.watcher.tells(&self.place.cluster, owner)
    }

    /// Reads and takes in one log.
    async fn read_one(&self, log: &LogFiles) -> Read {
        let watcher = Arc::clone(&self.place.watcher);
        let Ok(_permit) = watcher.parsing.acquire().await else {
            return Read::unseen("unreadable");
        };
        let changed = Timestamp::try_from(log.modified).unwrap_or(Timestamp::MAX);
        if !watcher.registry().has_room_for(changed, Timestamp::now(), watcher.room()) {
            return Read::unseen("limit");
        }
        let cluster = Arc::clone(&self.place.cluster);
        let log = log.clone();
        let path = self.files.display(&log.path);
        let (reader, files) = (Arc::clone(&watcher), Arc::clone(&self.files));
        let reading = blocking(move || read_blocking(&reader, &cluster, &*files, &log));
        reading.await.unwrap_or_else(|error| {
            failed(&watcher, path, "unreadable", format!("reading it stopped half way: {error}"));
            Read::skipped("unreadable")
        })
    }
}

/// What came of reading a log.
struct Read {
    /// Why nothing came of it.
    skipped: Option<&'static str>,
    owner: Owner,
    /// As they lie in the place.
    bytes: u64,
}

impl Read {
    fn unseen(reason: &'static str) -> Self {
        Self { owner: Owner::Unseen, ..Self::skipped(reason) }
    }

    fn skipped(reason: &'static str) -> Self {
        Self { skipped: Some(reason), owner: Owner::Unknown, bytes: 0 }
    }
}

fn read_blocking(watcher: &Watcher, cluster: &str, files: &dyn Files, log: &LogFiles) -> Read {
    let started = Instant::now();
    let config = watcher.config();
    let options = ReadOptions { cluster, limits: &config.limits };
    let path = files.display(&log.path);
    let _span = info_span!("read event log", path).entered();
    let owner = Cell::new(Owner::Unknown);
    let ours = |name: &str| watcher.ask_owner(cluster, name, &owner);
    match eventlog::read_if(log, files, &options, &ours) {
        Err(ReadError::NotWanted { bytes, .. }) => {
            Read { skipped: None, owner: Owner::Another, bytes }
        }
        Err(error) => {
            failed(watcher, path, error.reason(), error.to_string());
            let owner = owner.get().of_error(&error);
            Read { owner, ..Read::skipped("unreadable") }
        }
        Ok(outcome) => {
            let statistics = outcome.statistics;
            let mut application = outcome.application;
            let name = application.id.to_string();
            told(path, name, statistics, started.elapsed()).emit(&watcher.telemetry);
            // Its name says that it is being written, and nobody does.
            if application.end.is_none() && !plan::is_closed(log) {
                application.state = State::Lost;
            }
            let offer = watcher.take_in(application, Some(seen(files, log)));
            let owner = if offer == Offer::Elsewhere { Owner::Another } else { Owner::Ours };
            let skipped = (offer == Offer::NoRoom).then_some("limit");
            Read { skipped, owner, bytes: statistics.bytes_compressed }
        }
    }
}

/// The log as its place lists it.
fn seen(files: &dyn Files, log: &LogFiles) -> LogSeen {
    LogSeen {
        place: files.display(""),
        key: plan::key(log),
        bytes: log.bytes,
        modified_ms: plan::millis(log.modified),
    }
}

fn told(
    path: String,
    application: String,
    statistics: ReadStatistics,
    duration: Duration,
) -> LogRead {
    LogRead {
        path,
        application,
        bytes: statistics.bytes_decompressed,
        lines: statistics.lines,
        bad_lines: statistics.bad_lines + statistics.long_lines,
        unknown_events: statistics.unknown_events,
        duration,
    }
}

fn failed(watcher: &Watcher, path: String, reason: &'static str, message: String) {
    LogFailed { path, reason, message }.emit(&watcher.telemetry);
}
