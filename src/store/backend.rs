//! Where the store's data lies: what each back end has to be able to do.
//!
//! What a run means for the totals is decided once, in [`super::Store`]; a
//! back end only keeps and finds. All calls block: make them where blocking
//! is allowed.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::delivered::Delivered;
use super::error::StoreError;
use super::record::{LogSeen, RunKey, RunRecord, StoredRun};
use super::shards::ShardSince;
use super::totals::{NameKey, Totals};
use crate::model::RunId;

/// Facts about the store itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// When it was made; milliseconds since the epoch.
    pub created_ms: i64,
    /// The latest end of all runs it has forgotten, `i64::MIN` while there are
    /// none. Who ended before is not counted any more: it may have been.
    pub forgotten_ms: i64,
}

impl Meta {
    /// Of a store that is made now and has not forgotten anything.
    pub fn begun(now: Timestamp) -> Self {
        Self { created_ms: now.as_millisecond(), forgotten_ms: i64::MIN }
    }

    pub fn has_forgotten(&self) -> bool {
        self.forgotten_ms > i64::MIN
    }
}

/// How much it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    pub runs: u64,
    pub names: u64,
    /// Of the stored runs, as they lie there.
    pub run_bytes: u64,
    /// Runs of which it is known what was sent of them; not all are stored.
    pub delivered: u64,
    /// Of what is known of that.
    pub delivered_bytes: u64,
    /// Of the whole file or of all tables; `None` in memory.
    pub total_bytes: Option<u64>,
}

/// A stored run that may be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oldest {
    pub key: RunKey,
    /// The later of its end and of when it was read: retention runs from here.
    pub since_ms: i64,
    /// As it lies there.
    pub bytes: u64,
}

/// Where data lies. Shared between threads.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Begins a change, of which nobody sees anything before its commit, and
    /// which is either there as a whole afterwards, whatever happens, or not
    /// at all. Dropped without commit, it never was.
    fn begin(&self) -> Result<Box<dyn Change + '_>, StoreError>;

    /// Where it lies, to be shown: `the store /var/lib/spark-exporter/store.db`.
    fn about(&self) -> String;

    /// Of the format it lies in.
    fn version(&self) -> u32;

    fn meta(&self) -> Result<Meta, StoreError>;

    /// Totals of all names, ascending.
    fn totals(&self) -> Result<Vec<(NameKey, Totals)>, StoreError>;

    /// Runs of this id, whatever their start.
    fn runs(&self, id: &RunId) -> Result<Vec<(RunKey, RunRecord)>, StoreError>;

    /// The runs of an `app_name` (not of a `total_name`) that ended last, the
    /// latest first.
    fn runs_by_name(
        &self,
        name: &NameKey,
        limit: usize,
    ) -> Result<Vec<(RunKey, StoredRun)>, StoreError>;

    /// Runs that are [`super::Counted::NotYet`].
    fn uncounted(&self) -> Result<Vec<(RunKey, RunRecord)>, StoreError>;

    /// The logs of a place that runs of this cluster were read from, with the
    /// time of their first reading ([`RunRecord::read_at_ms`]).
    fn logs(&self, cluster: &str, place: &str) -> Result<Vec<(LogSeen, i64)>, StoreError>;

    /// The runs whose retention began first, in that order.
    fn oldest(&self, limit: usize) -> Result<Vec<Oldest>, StoreError>;

    /// The latest [`RunRecord::end_ms`] of all runs.
    fn latest_end_ms(&self) -> Result<Option<i64>, StoreError>;

    /// What was sent of runs of this id, whatever their start.
    fn delivered(&self, id: &RunId) -> Result<Vec<(RunKey, Delivered)>, StoreError>;

    /// Runs of which something was sent, and nothing since this time
    /// ([`Delivered::at_ms`]), the earliest first.
    fn delivered_before(&self, time_ms: i64, limit: usize) -> Result<Vec<RunKey>, StoreError>;

    /// Hands over what was sent of each run, in the order of their keys, as
    /// [`Self::each_run`] does.
    fn each_delivered(
        &self,
        each: &mut dyn FnMut(RunKey, Delivered) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    fn size(&self) -> Result<Size, StoreError>;

    /// Gives space that is not needed any more back, where that makes sense.
    fn compact(&self) -> Result<(), StoreError>;

    /// Reads all of it, and says what is wrong. `Ok`: nothing.
    fn check(&self) -> Result<(), StoreError>;

    /// Every run in the order of its key, one after the other; the whole need
    /// not fit in memory. Stops at the first error of `each`.
    fn each_run(
        &self,
        each: &mut dyn FnMut(RunKey, StoredRun) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;
}

/// A change under way. What it reads, it reads locked: two changes that touch
/// the same run or name, or that read meta, come one after the other. To be
/// read in this order, or two of them may wait for each other: runs by
/// ascending key, then meta, then totals, those of [`super::OVERFLOW_NAME`]
/// last.
pub trait Change {
    /// What [`Self::put_shards`] noted; `None`: not here, since the daemons of
    /// all shards share it.
    fn shards(&mut self) -> Result<Option<Vec<ShardSince>>, StoreError> {
        Ok(None)
    }
    fn put_shards(&mut self, _parts: &[ShardSince]) -> Result<(), StoreError> {
        Ok(())
    }
    fn runs(&mut self, id: &RunId) -> Result<Vec<(RunKey, RunRecord)>, StoreError>;
    /// Adds or replaces the run of exactly this key.
    fn put_run(&mut self, key: &RunKey, run: &StoredRun) -> Result<(), StoreError>;
    /// Replaces the record of a run that is there, and leaves its summary.
    fn put_record(&mut self, key: &RunKey, record: &RunRecord) -> Result<(), StoreError>;
    fn remove_run(&mut self, key: &RunKey) -> Result<(), StoreError>;
    fn totals(&mut self, name: &NameKey) -> Result<Option<Totals>, StoreError>;
    fn put_totals(&mut self, name: &NameKey, totals: &Totals) -> Result<(), StoreError>;
    fn remove_totals(&mut self, name: &NameKey) -> Result<(), StoreError>;
    /// How many names have totals.
    fn names(&mut self) -> Result<usize, StoreError>;
    /// What was sent of runs of this id; locks as [`Self::runs`] does.
    fn delivered(&mut self, id: &RunId) -> Result<Vec<(RunKey, Delivered)>, StoreError>;
    /// Adds or replaces what was sent of the run of exactly this key.
    fn put_delivered(&mut self, key: &RunKey, delivered: &Delivered) -> Result<(), StoreError>;
    fn remove_delivered(&mut self, key: &RunKey) -> Result<(), StoreError>;
    fn meta(&mut self) -> Result<Meta, StoreError>;
    fn put_meta(&mut self, meta: &Meta) -> Result<(), StoreError>;
    fn commit(self: Box<Self>) -> Result<(), StoreError>;
}
