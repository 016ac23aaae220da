//! One turn of work on the store: what waits is written, what is due is settled
//! and forgotten, and the totals are read anew.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::super::registry::{Registry, locked};
use super::{Memory, WORK_FOR};
use crate::store::{
    NameKey, OVERFLOW_NAME, Recorded, RunKey, RunRecord, SETTLED_AFTER, Store, StoreError,
    StoredRun, Totals,
};
use crate::telemetry::events::{NameOverflowed, RunsForgotten, StorageSize};

/// Between two looks at what is to be settled and forgotten.
const TIDY_EVERY: Duration = Duration::from_mins(1);
/// Between two looks at how large the store is.
const MEASURE_EVERY: Duration = Duration::from_secs(10);
/// Other daemons may share the store: their totals are looked at so often.
const REFRESH_EVERY: Duration = Duration::from_secs(30);

impl Memory {
    pub(super) fn try_work(
        &self,
        store: &Store,
        registry: &Mutex<Registry>,
        begun: Instant,
    ) -> Result<bool, StoreError> {
        self.write_sent(store, begun)?;
        let written = self.write(store, begun)?;
        self.tidy(store, registry)?;
        self.measure(store)?;
        self.refresh(store, registry, written)?;
        self.judge(store, registry, begun)?;
        let inner = self.inner();
        Ok(!inner.pending.is_empty() || !inner.changed.is_empty())
    }

    /// Returns how many runs were new to the store or better than before.
    fn write(&self, store: &Store, begun: Instant) -> Result<usize, StoreError> {
        let mut written = 0;
        loop {
            let next = {
                let inner = self.inner();
                let next = inner.pending.iter().next();
                next.map(|(key, run)| (key.clone(), run.clone()))
            };
            let Some((key, mut run)) = next else { break };
            let name = name_of(&key, &run.record.app_name);
            if run.record.ended_well && self.is_regression(store, &name, &key, &run)? {
                *run.record.findings.entry("regression".to_owned()).or_default() += 1;
            }
            let since = self.inner().unstored.get(&name).copied();
            let now = self.clock.now();
            let since = since.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(now);
            let recorded = store.record(&key, &run, since, Timestamp::now())?;
            if matches!(recorded, Recorded::Counted | Recorded::Kept) {
                self.tell_overflow(store, &key, &name)?;
            }
            let mut inner = self.inner();
            if recorded != Recorded::Known {
                written += 1;
                inner.changed.insert(name);
            }
            // Whoever came meanwhile with a better reading stays.
            if inner.pending.get(&key).is_some_and(|waiting| waiting.record == unjudged(&run)) {
                inner.pending.remove(&key);
            }
            drop(inner);
            if begun.elapsed() >= WORK_FOR {
                break;
            }
        }
        Ok(written)
    }

    /// Where a new run had no room under its own name.
    fn tell_overflow(&self, store: &Store, key: &RunKey, name: &NameKey) -> Result<(), StoreError> {
        let limit = self.config().limits.app_names;
        let is_full = {
            let inner = self.inner();
            inner.totals.len() >= limit && !inner.totals.contains_key(name)
        };
        let overflowed = |record: RunRecord| record.total_name == OVERFLOW_NAME;
        if is_full && store.find(key)?.is_some_and(overflowed) {
            let (run, app_name) = (key.id.to_string(), name.app_name.clone());
            NameOverflowed { run, app_name, limit }.emit(&self.telemetry);
        }
        Ok(())
    }

    fn tidy(&self, store: &Store, registry: &Mutex<Registry>) -> Result<(), StoreError> {
        if self.inner().tidied.is_some_and(|at| at.elapsed() < TIDY_EVERY) {
            return Ok(());
        }
        self.inner().tidied = Some(Instant::now());
        let goes_on = |key: &RunKey| locked(registry).is_running(key);
        let now = Timestamp::now();
        // Not before the sources had time to show how runs went on while
        // nobody looked.
        let looked = self.clock.since.elapsed() >= SETTLED_AFTER / 4;
        let settled = if looked { store.settle(now, &goes_on)? } else { 0 };
        let forgotten = store.forget(now)?;
        if settled + forgotten > 0 {
            self.inner().refreshed = None;
        }
        RunsForgotten { count: forgotten as u64 }.emit(&self.telemetry);
        Ok(())
    }

    fn measure(&self, store: &Store) -> Result<(), StoreError> {
        if self.inner().measured.is_some_and(|at| at.elapsed() < MEASURE_EVERY) {
            return Ok(());
        }
        self.inner().measured = Some(Instant::now());
        let size = store.backend().size()?;
        let bytes = size.total_bytes.unwrap_or(size.run_bytes + size.delivered_bytes);
        StorageSize { runs: size.runs, names: size.names, bytes }.emit(&self.telemetry);
        Ok(())
    }

    /// Reads the totals anew where they changed, here or by another daemon.
    fn refresh(
        &self,
        store: &Store,
        registry: &Mutex<Registry>,
        written: usize,
    ) -> Result<(), StoreError> {
        let fresh = self.inner().refreshed.is_some_and(|at| at.elapsed() < REFRESH_EVERY);
        if written > 0 || !fresh {
            let totals = store.totals()?;
            let mut inner = self.inner();
            let before = std::mem::take(&mut inner.totals);
            for (name, now) in totals.iter().filter(|(name, _)| self.exports(name)) {
                let ends = |totals: &Totals| (totals.last_end_ms, totals.runs);
                if before.get(name).map(ends) != Some(ends(now)) {
                    inner.changed.insert(name.clone());
                }
            }
            inner.histories.retain(|name, _| totals.contains_key(name));
            inner.totals = totals;
            inner.refreshed = Some(Instant::now());
        }
        let running = locked(registry).running_names();
        let config = self.config();
        let clusters: Vec<&str> =
            config.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let expected = config.names.expected_names(&clusters);
        let expected =
            expected.into_iter().map(|(cluster, app_name)| NameKey { cluster, app_name });
        let mut inner = self.inner();
        let now_ms = self.clock.now().as_millisecond();
        let mut unstored = BTreeMap::new();
        for name in running.into_iter().chain(expected) {
            let room = inner.totals.len() + unstored.len() < config.limits.app_names;
            if room
                && config.sharding.owns(&name.cluster, &name.app_name)
                && !inner.totals.contains_key(&name)
            {
                let since = inner.unstored.get(&name).copied().unwrap_or(now_ms);
                unstored.insert(name, since);
            }
        }
        inner.unstored = unstored;
        Ok(())
    }
}

/// As it came in: without what judging it added.
fn unjudged(run: &StoredRun) -> RunRecord {
    let mut record = run.record.clone();
    record.findings.remove("regression");
    record
}

fn name_of(key: &RunKey, app_name: &str) -> NameKey {
    NameKey { cluster: key.id.cluster.clone(), app_name: app_name.to_owned() }
}
