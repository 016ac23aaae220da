//! The daemon's memory across runs: hands each run that ended to the store,
//! once and for all, and keeps ready what is exported by name.
//!
//! Nothing here waits for the store while somebody else waits for it: runs
//! come in by [`Memory::remember`] into a bounded list, and [`Memory::work`],
//! called between two publications, writes them. Where the store is in
//! trouble (no connection, no space, a damaged file) the list is kept and the
//! store opened again and again; series by name are absent meanwhile, since a
//! wrong total is worse than none. What does not fit in the list is read again
//! once the store is back ([`Memory::generation`]).

mod history;
mod rhythm;
mod sent;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use self::history::{History, is_many_jobs};
use super::live::Live;
use super::registry::Registry;
use crate::config::{Config, Within};
use crate::metrics::NameView;
use crate::store::{
    LogSeen, NameKey, News, OVERFLOW_NAME, RunKey, RunRecord, Store, StoreError, StoredRun, Totals,
    is_better,
};
use crate::telemetry::Telemetry;
use crate::telemetry::events::{ShardsChanged, StorageFailed, StorageOpened, StoragePending};

/// Runs that wait to be written, at most.
const MOST_PENDING: usize = 10_000;
/// Between two tries to open a store that is in trouble.
const RETRY: Duration = Duration::from_secs(15);
/// Writing and judging go on for so long between two publications.
const WORK_FOR: Duration = Duration::from_millis(500);

type Open = dyn Fn() -> Result<Store, StoreError> + Send + Sync;

/// See the module.
pub(super) struct Memory {
    open: Box<Open>,
    live: Live,
    telemetry: Arc<Telemetry>,
    inner: Mutex<Inner>,
    /// Held while it is opened, which may take long.
    opening: Mutex<()>,
    generation: AtomicU64,
    /// Held while what was sent is looked for or noted.
    sent_order: Mutex<()>,
    clock: Clock,
}

#[derive(Default)]
struct Inner {
    store: Option<Arc<Store>>,
    /// When to open it, where it is not.
    retry_at: Option<Instant>,
    /// What was said of its trouble last.
    trouble: Option<String>,
    pending: BTreeMap<RunKey, StoredRun>,
    /// Whether runs were left out of `pending`.
    overflowed: bool,
    /// What was sent of runs and is not noted in the store yet.
    sent: BTreeMap<RunKey, News>,
    totals: BTreeMap<NameKey, Totals>,
    refreshed: Option<Instant>,
    tidied: Option<Instant>,
    measured: Option<Instant>,
    /// Names that the store does not know, of running applications and of
    /// those that the operator expects, with since when: their series stand at
    /// 0 from then on.
    unstored: BTreeMap<NameKey, i64>,
    histories: BTreeMap<NameKey, History>,
    /// Names whose history is to be looked at again.
    changed: BTreeSet<NameKey>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// The wall clock as it was at the start, and the time since: it does not
/// jump, so that no series goes back to 0.
#[derive(Debug)]
struct Clock {
    started: Timestamp,
    since: Instant,
}

impl Clock {
    fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        self.started.checked_add(since).unwrap_or(self.started)
    }
}

impl Memory {
    /// The store is opened by the first [`Memory::work`] or
    /// [`Memory::find`], and again after each trouble.
    pub(super) fn new(
        live: Live,
        telemetry: Arc<Telemetry>,
        open: impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            open: Box::new(open),
            live,
            telemetry,
            inner: Mutex::default(),
            opening: Mutex::default(),
            generation: AtomicU64::new(0),
            sent_order: Mutex::default(),
            clock: Clock { started: Timestamp::now(), since: Instant::now() },
        }
    }

    fn config(&self) -> Arc<Config> {
        self.live.get()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each change of it is whole before the next one begins.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rises when sources have to look again at what they take for read.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Takes a run that has ended, to be written soon.
    pub(super) fn remember(&self, key: RunKey, run: StoredRun) {
        let mut inner = self.inner();
        if inner.pending.len() >= MOST_PENDING && !inner.pending.contains_key(&key) {
            inner.overflowed = true;
            return;
        }
        // Of two readings the better one waits, whichever came first; with the
        // log, whichever has it.
        let (mut kept, other) = match inner.pending.remove(&key) {
            Some(known) if !is_better(&run.record, &known.record) => (known, Some(run)),
            known => (run, known),
        };
        let log = other.and_then(|other| other.record.log);
        kept.record.log = kept.record.log.take().or(log);
        inner.pending.insert(key, kept);
    }

    /// What is known of a run, in the list or in the store. Blocks. `None`
    /// also where the store is in trouble.
    pub(super) fn find(&self, key: &RunKey) -> Option<RunRecord> {
        let same = |known: &&RunKey| known.is_same_run(key);
        {
            let inner = self.inner();
            if let Some(known) = inner.pending.keys().find(same) {
                let mut record = inner.pending.get(known)?.record.clone();
                record.read_at_ms = Timestamp::now().as_millisecond();
                return Some(record);
            }
        }
        let store = self.store()?;
        self.tell(store.find(key)).flatten()
    }

    /// Logs of a place that need not be read again, unless they change. The
    /// runs of the others are still to be shown. Blocks.
    pub(super) fn known_logs(&self, cluster: &str, place: &str) -> Vec<LogSeen> {
        let Some(store) = self.store() else { return Vec::new() };
        let logs = self.tell(store.backend().logs(cluster, place)).unwrap_or_default();
        let now = Timestamp::now();
        logs.into_iter()
            .filter(|(_, read_at_ms)| self.is_over(*read_at_ms, now))
            .map(|(log, _)| log)
            .collect()
    }

    /// Whether the series of a run read then are gone by now.
    pub(super) fn is_over(&self, read_at_ms: i64, now: Timestamp) -> bool {
        let retention = self.config().retention.0.get().as_millis();
        now.as_millisecond().saturating_sub(read_at_ms)
            >= i64::try_from(retention).unwrap_or(i64::MAX)
    }

    /// All names are to be held against their earlier runs again: the
    /// thresholds may be others.
    pub(super) fn judge_again(&self) {
        let mut inner = self.inner();
        let names: Vec<NameKey> = inner.totals.keys().cloned().collect();
        inner.changed.extend(names);
    }

    /// The store, opened where it has to be and its time has come.
    pub(super) fn store(&self) -> Option<Arc<Store>> {
        let ready = self.inner().store.clone();
        if ready.is_some() {
            return ready;
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        {
            // Somebody else may have tried while we waited.
            let inner = self.inner();
            let early = inner.retry_at.is_some_and(|at| Instant::now() < at);
            if early || inner.store.is_some() {
                return inner.store.clone();
            }
        }
        let sharding = self.config().sharding;
        let opened = (self.open)()
            .and_then(|store| store.of_shard(sharding, Timestamp::now()))
            .and_then(|store| Ok((store.backend().size()?, store)));
        let mut inner = self.inner();
        match opened {
            Ok((size, store)) => {
                let store = Arc::new(store);
                let config = self.config();
                let storage = &config.storage;
                let lasts = storage.path.is_some() || storage.url.is_some();
                let place = lasts.then(|| store.backend().about());
                StorageOpened { place, runs: size.runs, names: size.names }.emit(&self.telemetry);
                if let Some(before) = store.resized_from() {
                    ShardsChanged { before: before.into(), now: sharding.into() }
                        .emit(&self.telemetry);
                }
                inner.store = Some(Arc::clone(&store));
                inner.trouble = None;
                inner.refreshed = None;
                if std::mem::take(&mut inner.overflowed) {
                    self.generation.fetch_add(1, Ordering::AcqRel);
                }
                Some(store)
            }
            Err(error) => {
                self.is_in_trouble(&mut inner, &error);
                None
            }
        }
    }

    fn is_in_trouble(&self, inner: &mut Inner, error: &StoreError) {
        let message = error.to_string();
        let reason = if error.is_unusable() { "unusable" } else { "unavailable" };
        let told = inner.trouble.as_ref() == Some(&message);
        StorageFailed { reason, message: message.clone(), told }.emit(&self.telemetry);
        inner.trouble = Some(message);
        inner.store = None;
        inner.retry_at = Some(Instant::now() + RETRY);
    }

    /// The result, or the store's trouble noted.
    fn tell<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.is_in_trouble(&mut self.inner(), &error)).ok()
    }

    /// Writes what waits, settles and forgets what is due, and judges names
    /// whose runs changed. Blocks; gives back after about half a second.
    /// Returns whether more is to be done.
    pub(super) fn work(&self, registry: &Mutex<Registry>) -> bool {
        let begun = Instant::now();
        let more = self.store().is_some_and(|store| {
            let done = self.try_work(&store, registry, begun);
            self.tell(done).unwrap_or(false)
        });
        StoragePending { count: self.inner().pending.len() as u64 }.emit(&self.telemetry);
        more
    }

    /// Whether the series of a name that the store knows come from here: of
    /// all shards only its owner has them. What was added up of many names is
    /// each store's own.
    fn exports(&self, name: &NameKey) -> bool {
        self.config().sharding.owns(&name.cluster, &name.app_name)
            || (name.app_name == OVERFLOW_NAME && self.config().storage.url.is_none())
    }

    /// What is exported by name, ascending. Empty while the store is in
    /// trouble.
    pub(super) fn views(&self) -> Vec<NameView> {
        let inner = self.inner();
        if inner.store.is_none() || inner.refreshed.is_none() {
            return Vec::new();
        }
        let now_ms = self.clock.now().as_millisecond();
        let config = self.config();
        let prices = &config.prices;
        let currency: Option<Arc<str>> =
            prices.are_given().then(|| prices.currency.as_str().into());
        let view = |name: &NameKey, totals: &Totals| {
            let history = inner.histories.get(name).cloned().unwrap_or_default();
            let said = if is_many_jobs(name) {
                Some(Within::Never)
            } else {
                config.names.expected_within(&name.cluster, &name.app_name)
            };
            NameView {
                name: name.clone(),
                totals: totals.shown(now_ms),
                success_due: rhythm::due(totals, said, history.success_within, now_ms),
                baseline: history.baseline,
                regression_ratio: history.regression_ratio,
                success_interval: history.success_interval,
                failures_in_a_row: history.failures_in_a_row,
                currency: currency.clone(),
            }
        };
        let exported = inner.totals.iter().filter(|(name, _)| self.exports(name));
        let known = exported.map(|(name, totals)| view(name, totals));
        let unstored = inner.unstored.iter().map(|(name, since_ms)| {
            view(name, &Totals { since_ms: *since_ms, ..Totals::default() })
        });
        let mut views: Vec<NameView> = known.chain(unstored).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }
}
