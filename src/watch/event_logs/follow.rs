//! The log of a running application, step by step.
//!
//! Between two cycles a [`Followed`] keeps what the log told so far; each
//! step reads what is new and offers the run to the registry, where a driver
//! that answers for itself goes first. Renamed, ended or silent for too long,
//! the log is read to its end and left.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use super::plan::{self, Policy};
use super::{failed, seen, told};
use crate::eventlog::{Follower, LogFiles, ReadError, ReadStatistics};
use crate::fetch::files::Files;
use crate::model::{Application, RunId, State};
use crate::store::LogSeen;
use crate::telemetry::events::LogFollowed;
use crate::watch::share::Owner;
use crate::watch::{Offer, Watcher};

/// What a listing says of a followed log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its application runs, as far as one can see.
    Going,
    /// Nobody wrote it for `read.stale_after`.
    Stale,
    /// Its name says that nobody writes it any more.
    Ended,
}

/// A log that is followed, and its place among `limits.followed_logs`.
pub(super) struct Followed {
    cluster: Arc<str>,
    follower: Follower,
    /// As far as it told.
    owner: Owner,
    /// Size, time and number of files as of the last step.
    listed: Option<(u64, SystemTime, usize)>,
    /// When it last changed: by its listing, or by what was read of it.
    pub(super) changed: SystemTime,
    /// Number of the listing that showed it last.
    pub(super) seen: u64,
    /// Whether to look at it though it did not grow.
    pub(super) judge_again: bool,
    /// The run it is the log of, once it told.
    run: Option<(RunId, Option<Timestamp>)>,
    /// Of all steps so far.
    statistics: ReadStatistics,
    _place: OwnedSemaphorePermit,
}

/// What came of a step.
pub(super) struct Step {
    /// `None`: it is followed no more.
    pub(super) followed: Option<Followed>,
    /// Why the run has no series.
    pub(super) skipped: Option<&'static str>,
    /// Whether it is to be read again, from the start.
    pub(super) again: bool,
    pub(super) owner: Owner,
    /// As they lie in the place.
    pub(super) bytes: u64,
}

impl Followed {
    /// `None`: as many are followed as may be.
    pub(super) fn begin(watcher: &Arc<Watcher>, cluster: &Arc<str>, seen: u64) -> Option<Self> {
        let place = Arc::clone(&watcher.following).try_acquire_owned().ok()?;
        Some(Self {
            cluster: Arc::clone(cluster),
            owner: Owner::default(),
            follower: Follower::new(cluster, &watcher.config().limits),
            listed: None,
            changed: SystemTime::UNIX_EPOCH,
            seen,
            judge_again: false,
            run: None,
            statistics: ReadStatistics::default(),
            _place: place,
        })
    }

    /// Whether the listing says the same of it as the last time.
    pub(super) fn is_of(&self, log: &LogFiles) -> bool {
        !self.judge_again && self.listed == Some((log.bytes, log.modified, log.files.len()))
    }

    /// Whether nobody wrote it for too long.
    pub(super) fn is_stale(&self, log: &LogFiles, policy: &Policy) -> bool {
        policy.is_stale(self.changed.max(log.modified))
    }

    /// Reads what is new. Blocks.
    pub(super) fn step(
        mut self,
        watcher: &Watcher,
        files: &dyn Files,
        log: &LogFiles,
        fate: Fate,
        policy: &Policy,
    ) -> Step {
        let started = Instant::now();
        let first = self.listed.is_none();
        self.judge_again = false;
        self.listed = Some((log.bytes, log.modified, log.files.len()));
        self.changed = self.changed.max(log.modified);
        let path = files.display(&log.path);
        // A log whose name does not say is taken by its age; one that is left
        // as stale is read as one that nobody writes any more.
        let listed = log;
        let mut log = listed.clone();
        log.in_progress = Some(fate == Fate::Going);
        let owner = Cell::new(self.owner);
        let ours = |name: &str| watcher.ask_owner(&self.cluster, name, &owner);
        let advance = self.follower.advance_if(&log, files, &ours);
        self.owner = owner.get();
        let (mut application, statistics, lines) = match advance {
            Ok(advance) => match advance.outcome {
                Some(outcome) => (Some(outcome.application), outcome.statistics, advance.lines),
                None => (None, self.statistics, 0),
            },
            Err(error) => return self.refused(watcher, path, &error, fate),
        };
        let news = since(statistics, self.statistics);
        self.statistics = statistics;
        let mut over = fate != Fate::Going;
        if let Some(application) = &mut application {
            if lines > 0 && !first {
                self.changed = policy.now;
            }
            // Where listings are late, only the log itself tells how old it is.
            if first && !policy.tells_growth {
                self.changed = self.changed.max(system(application.observed));
                if !over && policy.is_stale(self.changed) {
                    over = true;
                }
            }
            // Nobody writes it, and it has no end.
            if over && application.end.is_none() && !plan::is_closed(listed) {
                application.state = State::Lost;
            }
            if over || is_told(application) {
                self.run = Some((application.id.clone(), application.start));
            }
            let read = told(path, application.id.to_string(), news, started.elapsed());
            LogFollowed { read, first }.emit(&watcher.telemetry);
        }
        let skipped = match application {
            Some(application) if !over && !is_told(&application) => Some("in_progress"),
            Some(application) => {
                let read = over.then(|| seen(files, listed));
                self.offer(watcher, application, read)
            }
            None if self.run.is_none() && !over => Some("in_progress"),
            None => None,
        };
        let bytes = news.bytes_compressed;
        let owner = self.owner;
        if over || owner == Owner::Another {
            self.leave(watcher, State::Lost);
            return Step { followed: None, skipped, again: false, owner, bytes };
        }
        Step { followed: Some(self), skipped, again: false, owner, bytes }
    }

    /// A driver that answers tells more of a running application than its
    /// log: tasks that run, what is cached.
    fn offer(
        &mut self,
        watcher: &Watcher,
        application: Application,
        read: Option<LogSeen>,
    ) -> Option<&'static str> {
        if application.end.is_none() && watcher.registry().yields_to_driver(&application) {
            return None;
        }
        let offer = watcher.take_in(application, read);
        self.owner = if offer == Offer::Elsewhere { Owner::Another } else { Owner::Ours };
        (offer == Offer::NoRoom).then_some("limit")
    }

    fn refused(self, watcher: &Watcher, path: String, error: &ReadError, fate: Fate) -> Step {
        let owner = self.owner.of_error(error);
        let step = |followed, skipped, again| Step {
            followed,
            skipped: Some(skipped),
            again,
            owner,
            bytes: 0,
        };
        match error {
            ReadError::NotWanted { bytes, .. } => {
                Step { followed: None, skipped: None, again: false, owner, bytes: *bytes }
            }
            // Spark has not written anything out yet.
            ReadError::NoEvents { .. } if fate == Fate::Going => {
                step(Some(self), "in_progress", false)
            }
            ReadError::Unreadable(_) | ReadError::Io { .. } => {
                failed(watcher, path, error.reason(), error.to_string());
                match fate {
                    Fate::Going => step(Some(Self { listed: None, ..self }), "unreadable", false),
                    // As a finished log, in the next cycle.
                    Fate::Ended | Fate::Stale => {
                        self.leave(watcher, State::Lost);
                        step(None, "unreadable", true)
                    }
                }
            }
            _ => {
                failed(watcher, path, error.reason(), error.to_string());
                self.leave(watcher, State::Lost);
                step(None, "unreadable", false)
            }
        }
    }

    /// Whoever held the run by this log alone does not see it any more: if it
    /// did not end, this is its state.
    pub(super) fn leave(self, watcher: &Watcher, state: State) {
        if let Some((id, start)) = &self.run {
            watcher.registry().unfollow(id, *start, state, Timestamp::now());
            watcher.changed.notify_one();
        }
    }
}

/// Whether a log says already whose it is. Its first lines come before the
/// start: a run that was shown by them alone would have another name and no
/// start, and the next step would show it as a second run of the same id.
fn is_told(application: &Application) -> bool {
    application.start.is_some() || !application.jobs.is_empty()
}

fn system(time: Timestamp) -> SystemTime {
    let since = u64::try_from(time.as_millisecond()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(since)
}

fn since(now: ReadStatistics, before: ReadStatistics) -> ReadStatistics {
    let less = u64::saturating_sub;
    ReadStatistics {
        lines: less(now.lines, before.lines),
        bad_lines: less(now.bad_lines, before.bad_lines),
        long_lines: less(now.long_lines, before.long_lines),
        unknown_events: less(now.unknown_events, before.unknown_events),
        bytes_compressed: less(now.bytes_compressed, before.bytes_compressed),
        bytes_decompressed: less(now.bytes_decompressed, before.bytes_decompressed),
    }
}
