//! What survives a restart: which runs were read, what the runs of a name add
//! up to, and what later ones are compared with.
//!
//! A run enters the totals of its name once: its record and the new totals
//! are one change of the [`Backend`], and who is there already is not counted
//! again, whoever shows it and however often. What that means stands here;
//! the back ends ([`embedded`], and PostgreSQL where several daemons share one
//! memory) only keep and find.
//!
//! - A run whose end was seen is counted at once; one that is merely gone
//!   only after it has stayed so for [`SETTLED_AFTER`].
//! - A run that ended before the store was made, or before anything the store
//!   has forgotten, is history: kept, compared with, never counted. So neither
//!   a first start nor a log that turns up again is a burst of failures.
//! - Nor is one that another shard counted, where each has a store of its own
//!   (`shards`).
//! - A better reading of a run that is counted improves what is kept of it,
//!   and leaves the totals alone: counters do not go back.

mod backend;
mod check;
mod delivered;
mod deliveries;
pub mod embedded;
mod error;
mod open;
#[cfg(feature = "postgres")]
pub mod postgres;
mod record;
mod shards;
mod totals;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

pub use backend::{Backend, Change, Meta, Oldest, Size};
pub use delivered::{
    Delivered, Deliveries, FindingNews, Found, News, Ranges, SentFinding, SentSpans,
};
pub use error::StoreError;
pub use open::{open, open_unchanged};
pub use record::{Amounts, Counted, LogSeen, RunKey, RunRecord, StoredRun, ended_well};
pub use shards::ShardSince;
pub use totals::{DURATION_BOUNDS, NameKey, OUTCOMES, OVERFLOW_NAME, RuleTotal, Totals};

use crate::config::Sharding;
use crate::model::{PROVEN, RunId};

/// How long a run whose end nobody saw must have stayed so before it is
/// counted: its log or a History Server may still tell the end.
pub const SETTLED_AFTER: Duration = Duration::from_hours(1);
/// Of the runs to be forgotten, so many at a time.
const FORGET_AT_ONCE: usize = 200;
/// A change that others are in the way of is made so often,
const TRIES: u32 = 8;
/// with twice the pause each time: 1.3 s in all.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Retention is measured against a clock that does not run ahead of the
/// latest run by more than this: a wall clock that jumps must not empty the
/// store.
const AHEAD_OF_RUNS: Duration = Duration::from_hours(24);

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub time: Duration,
    /// Bytes of all stored runs.
    pub size: Option<u64>,
    /// Names with totals of their own, over all clusters.
    pub names: usize,
}

/// What became of a run that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is in the totals now.
    Counted,
    /// It was not there, and is not in the totals.
    Kept,
    /// It was there; what is kept of it got better.
    Improved,
    /// It was there, as good or better.
    Known,
}

/// The memory of the daemon. All calls block.
#[derive(Debug)]
pub struct Store {
    backend: Box<dyn Backend>,
    keep: Keep,
    /// The part of the runs that its daemon covers,
    sharding: Sharding,
    /// and those that it covered, the latest last.
    parts: Vec<ShardSince>,
    resized_from: Option<Sharding>,
}

impl Store {
    pub fn new(backend: Box<dyn Backend>, keep: Keep) -> Self {
        let sharding = Sharding::default();
        Self { backend, keep, sharding, parts: Vec::new(), resized_from: None }
    }

    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Takes a run in that has ended. `counted`, `total_name` and `read_at_ms`
    /// of its record are settled here. `since`: when the series of its name
    /// began to exist in this process, where the store does not know the name.
    pub fn record(
        &self,
        key: &RunKey,
        run: &StoredRun,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        let key = &key.normal();
        self.change(|change| self.record_in(change, key, run, since, now))
    }

    /// What [`Self::record`] changes, and whether anything.
    fn record_in(
        &self,
        change: &mut dyn Change,
        key: &RunKey,
        run: &StoredRun,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<(Recorded, bool), StoreError> {
        let mut run = run.clone();
        let (recorded, count) = if let Some((known_key, known)) = key.among(change.runs(&key.id)?) {
            let better = is_better(&run.record, &known);
            let log = run.record.log.clone().or_else(|| known.log.clone());
            if !better {
                let changed = log != known.log;
                if changed {
                    change.put_record(&known_key, &RunRecord { log, ..known })?;
                }
                return Ok((Recorded::Known, changed));
            }
            if known.proof == PROVEN && run.record.proof < PROVEN {
                // Its pod may be gone by now: what it told is as true as then.
                run.record.state = known.state;
                run.record.ended_well = known.ended_well;
                run.record.proof = known.proof;
            }
            let count = known.counted == Counted::NotYet && run.record.end_seen;
            // Of a run that had been given up, its end is news.
            let news = run.record.end_seen && !known.end_seen;
            run.record = RunRecord {
                counted: if count { Counted::Yes } else { known.counted },
                read_at_ms: if news { now.as_millisecond() } else { known.read_at_ms },
                total_name: known.total_name,
                log,
                ..run.record
            };
            let tells_start = known_key.start_ms == 0 && key.start_ms != 0;
            if tells_start {
                change.remove_run(&known_key)?;
            }
            change.put_run(if tells_start { key } else { &known_key }, &run)?;
            (if count { Recorded::Counted } else { Recorded::Improved }, count)
        } else {
            let Meta { created_ms, forgotten_ms } = change.meta()?;
            let record = &mut run.record;
            let name = name_of(&key.id, &record.app_name);
            let is_history = record.end_ms <= created_ms.max(forgotten_ms)
                || !self.was_ours(&name, record.end_ms);
            record.counted = if is_history {
                Counted::History
            } else if record.end_seen {
                Counted::Yes
            } else {
                Counted::NotYet
            };
            record.read_at_ms = now.as_millisecond();
            record.total_name = self.total_name(change, key, &record.app_name)?;
            let count = record.counted == Counted::Yes;
            change.put_run(key, &run)?;
            (if count { Recorded::Counted } else { Recorded::Kept }, count)
        };
        if run.record.counted != Counted::NotYet {
            add(change, &key.id, &run.record, count, since, now)?;
        }
        Ok((recorded, true))
    }

    /// Makes a change, and again where somebody else was in its way. `work`
    /// says what came of it and whether there is anything to commit.
    fn change<T>(
        &self,
        work: impl Fn(&mut dyn Change) -> Result<(T, bool), StoreError>,
    ) -> Result<T, StoreError> {
        let once = || {
            let mut change = self.backend.begin()?;
            let (result, changed) = work(&mut *change)?;
            if changed {
                change.commit()?;
            }
            Ok(result)
        };
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            match once() {
                Err(StoreError::Contended { .. }) => std::thread::sleep(pause),
                result => return result,
            }
            pause *= 2;
        }
        once().map_err(|error| match error {
            StoreError::Contended { what, why } => StoreError::Unavailable {
                what,
                why: format!("others were in the way {TRIES} times in a row ({why})"),
            },
            error => error,
        })
    }

    fn total_name(
        &self,
        change: &mut dyn Change,
        key: &RunKey,
        app_name: &str,
    ) -> Result<String, StoreError> {
        let name = name_of(&key.id, app_name);
        let own = change.totals(&name)?.is_some() || change.names()? < self.keep.names;
        Ok(if own { name.app_name } else { OVERFLOW_NAME.to_owned() })
    }

    /// Counts the runs that nobody saw end, once that has lasted. `goes_on`
    /// says which of them run again: their wait begins anew, for other daemons
    /// that share the store as well. Names of other shards are left to their
    /// daemons, which alone see whether such a run goes on. Returns how many were counted.
    pub fn settle(
        &self,
        now: Timestamp,
        goes_on: &dyn Fn(&RunKey) -> bool,
    ) -> Result<usize, StoreError> {
        let mut settled = 0;
        for (key, record) in self.backend.uncounted()? {
            if !self.sharding.owns(&key.id.cluster, &record.app_name) {
                continue;
            }
            let waited = now.as_millisecond().saturating_sub(record.read_at_ms);
            let wait = SETTLED_AFTER.as_millis() as i64;
            // Not in every round: each is a write.
            let goes_on = waited >= wait / 4 && goes_on(&key);
            if waited < wait && !goes_on {
                continue;
            }
            let counted = self.change(|change| {
                let known = change.runs(&key.id)?.into_iter().find(|(known, _)| *known == key);
                let Some((_, mut record)) = known else { return Ok((false, false)) };
                if record.counted != Counted::NotYet {
                    return Ok((false, false));
                }
                if goes_on {
                    record.read_at_ms = now.as_millisecond();
                    change.put_record(&key, &record)?;
                    return Ok((false, true));
                }
                record.counted = Counted::Yes;
                change.put_record(&key, &record)?;
                add(change, &key.id, &record, true, now, now)?;
                Ok((true, true))
            })?;
            settled += usize::from(counted);
        }
        Ok(settled)
    }

    /// Forgets what is over its retention: runs first read and ended longer
    /// ago than [`Keep::time`], the oldest beyond [`Keep::size`], and totals
    /// of names without a run for so long. Returns how many runs went.
    pub fn forget(&self, now: Timestamp) -> Result<usize, StoreError> {
        let Some(latest) = self.backend.latest_end_ms()? else { return Ok(0) };
        let now_ms =
            now.as_millisecond().min(latest.saturating_add(AHEAD_OF_RUNS.as_millis() as i64));
        let before =
            now_ms.saturating_sub(i64::try_from(self.keep.time.as_millis()).unwrap_or(i64::MAX));
        let mut size = self.backend.size()?.run_bytes;
        let mut forgotten = 0;
        loop {
            let limit = self.keep.size.unwrap_or(u64::MAX);
            let oldest: Vec<Oldest> = self.backend.oldest(FORGET_AT_ONCE)?;
            let full = oldest.len() == FORGET_AT_ONCE;
            let mut go = Vec::new();
            for run in oldest {
                if run.since_ms < before || size > limit {
                    size = size.saturating_sub(run.bytes);
                    go.push(run.key);
                } else {
                    break;
                }
            }
            let more = full && go.len() == FORGET_AT_ONCE;
            let removed = self.remove(go, now)?;
            forgotten += removed;
            // Where none of them was there any more, somebody else removes
            // them: what is left is seen next time.
            if !more || removed == 0 {
                break;
            }
        }
        self.forget_delivered(before)?;
        self.forget_names(before)?;
        if forgotten > 0 {
            self.backend.compact()?;
        }
        Ok(forgotten)
    }

    fn remove(&self, mut keys: Vec<RunKey>, now: Timestamp) -> Result<usize, StoreError> {
        if keys.is_empty() {
            return Ok(0);
        }
        // In one order, whoever removes.
        keys.sort_unstable();
        self.change(|change| {
            let mut latest = i64::MIN;
            let mut removed = 0;
            for key in &keys {
                let runs = change.runs(&key.id)?;
                let Some((_, record)) = runs.into_iter().find(|(known, _)| known == key) else {
                    continue;
                };
                latest = latest.max(record.end_ms);
                change.remove_run(key)?;
                if let Some((sent, _)) = key.among(change.delivered(&key.id)?) {
                    change.remove_delivered(&sent)?;
                }
                removed += 1;
            }
            if removed > 0 {
                let meta = change.meta()?;
                // A run whose clock was ahead must not make history of all
                // that end before that moment comes.
                let forgotten_ms = meta.forgotten_ms.max(latest.min(now.as_millisecond()));
                change.put_meta(&Meta { forgotten_ms, ..meta })?;
            }
            Ok((removed, removed > 0))
        })
    }

    fn forget_names(&self, before_ms: i64) -> Result<(), StoreError> {
        let over = |totals: &Totals| {
            let is_over = |time: Option<i64>| time.is_none_or(|time| time < before_ms);
            totals.since_ms < before_ms
                && is_over(totals.last_end_ms)
                && is_over(totals.counted_at_ms)
        };
        for (name, totals) in self.backend.totals()? {
            if over(&totals) {
                self.change(|change| {
                    let still = change.totals(&name)?.as_ref().is_some_and(over);
                    if still {
                        change.remove_totals(&name)?;
                    }
                    Ok(((), still))
                })?;
            }
        }
        Ok(())
    }

    /// The stored run, where it is there.
    pub fn find(&self, key: &RunKey) -> Result<Option<RunRecord>, StoreError> {
        let key = key.normal();
        Ok(key.among(self.backend.runs(&key.id)?).map(|(_, record)| record))
    }

    /// Totals of all names.
    pub fn totals(&self) -> Result<BTreeMap<NameKey, Totals>, StoreError> {
        Ok(self.backend.totals()?.into_iter().collect())
    }
}

/// Adds the run to the totals of its name, or only notes when it ended.
fn add(
    change: &mut dyn Change,
    id: &RunId,
    record: &RunRecord,
    count: bool,
    since: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let name = name_of(id, &record.total_name);
    let known = change.totals(&name)?;
    let mut totals =
        known.unwrap_or_else(|| Totals { since_ms: since.as_millisecond(), ..Totals::default() });
    if count {
        totals.count(record, now.as_millisecond());
    }
    totals.note_last(record);
    change.put_totals(&name, &totals)
}

fn name_of(id: &RunId, app_name: &str) -> NameKey {
    NameKey { cluster: id.cluster.clone(), app_name: app_name.to_owned() }
}

/// Whether a reading tells more of a run than the one that is kept: who saw
/// the end is right, then who has every task, then who is surer how it ended
/// (Kubernetes may have told that later).
pub(crate) fn is_better(new: &RunRecord, known: &RunRecord) -> bool {
    let of = |record: &RunRecord| {
        let seen_until = if record.end_seen { 0 } else { record.end_ms };
        (record.end_seen, record.source.tells(), record.proof, seen_until)
    };
    of(new) > of(known)
}
