//! A change of the file: one transaction of redb, of which there is one at a
//! time.

use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};

use super::Embedded;
use super::delivered;
use super::fault::{Fault, caught};
use super::read::runs_of;
use super::tables::{
    BY_END, BY_LOG, BY_NAME, BY_SINCE, DELIVERED, META, META_FACTS, META_RUN_BYTES, META_SHARDS,
    RUNS, SUMMARIES, TOTALS, UNCOUNTED, by_name, by_time, from_json, json, key, number, packed,
    stored_bytes,
};
use crate::model::RunId;
use crate::store::{
    Change, Counted, Delivered, Meta, NameKey, RunKey, RunRecord, ShardSince, StoreError,
    StoredRun, Totals,
};

pub(super) struct EmbeddedChange<'s> {
    store: &'s Embedded,
    /// Gone once it was committed or failed.
    transaction: Option<WriteTransaction>,
}

impl<'s> EmbeddedChange<'s> {
    pub(super) fn new(store: &'s Embedded, transaction: WriteTransaction) -> Self {
        Self { store, transaction: Some(transaction) }
    }

    fn work<T>(
        &mut self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let Some(transaction) = &self.transaction else {
            return Err(self.store.gone());
        };
        caught(|| work(transaction)).map_err(|fault| {
            self.undo();
            self.store.failed(fault)
        })
    }

    /// Also where redb cannot.
    fn undo(&mut self) {
        let transaction = self.transaction.take();
        let _ = caught(|| {
            drop(transaction);
            Ok(())
        });
    }
}

impl Drop for EmbeddedChange<'_> {
    fn drop(&mut self) {
        self.undo();
    }
}

impl Change for EmbeddedChange<'_> {
    fn shards(&mut self) -> Result<Option<Vec<ShardSince>>, StoreError> {
        self.work(|transaction| {
            let table = transaction.open_table(META)?;
            let parts = table.get(META_SHARDS)?;
            let parts = parts
                .map(|json| from_json(|| "its shards".to_owned(), json.value()))
                .transpose()?;
            Ok(Some(parts.unwrap_or_default()))
        })
    }

    fn put_shards(&mut self, parts: &[ShardSince]) -> Result<(), StoreError> {
        self.work(|transaction| {
            let mut table = transaction.open_table(META)?;
            table.insert(META_SHARDS, json(&parts)?.as_slice())?;
            Ok(())
        })
    }

    fn runs(&mut self, id: &RunId) -> Result<Vec<(RunKey, RunRecord)>, StoreError> {
        self.work(|transaction| runs_of(&transaction.open_table(RUNS)?, id))
    }

    fn put_run(&mut self, key: &RunKey, run: &StoredRun) -> Result<(), StoreError> {
        self.work(|transaction| {
            remove(transaction, key)?;
            put(transaction, key, &run.record, &packed(&run.summary)?)
        })
    }

    fn put_record(&mut self, key: &RunKey, record: &RunRecord) -> Result<(), StoreError> {
        self.work(|transaction| {
            let summary = remove(transaction, key)?
                .ok_or_else(|| Fault::Damaged(format!("the run {} has no summary", key.id)))?;
            put(transaction, key, record, &summary)
        })
    }

    fn remove_run(&mut self, key: &RunKey) -> Result<(), StoreError> {
        self.work(|transaction| remove(transaction, key).map(drop))
    }

    fn totals(&mut self, name: &NameKey) -> Result<Option<Totals>, StoreError> {
        self.work(|transaction| {
            let table = transaction.open_table(TOTALS)?;
            let found = table.get((name.cluster.as_str(), name.app_name.as_str()))?;
            found.map(|json| from_json(|| totals_of(name), json.value())).transpose()
        })
    }

    fn put_totals(&mut self, name: &NameKey, totals: &Totals) -> Result<(), StoreError> {
        self.work(|transaction| {
            let mut table = transaction.open_table(TOTALS)?;
            let name = (name.cluster.as_str(), name.app_name.as_str());
            table.insert(name, json(totals)?.as_slice())?;
            Ok(())
        })
    }

    fn remove_totals(&mut self, name: &NameKey) -> Result<(), StoreError> {
        self.work(|transaction| {
            let mut table = transaction.open_table(TOTALS)?;
            table.remove((name.cluster.as_str(), name.app_name.as_str()))?;
            Ok(())
        })
    }

    fn names(&mut self) -> Result<usize, StoreError> {
        self.work(|transaction| Ok(transaction.open_table(TOTALS)?.len()? as usize))
    }

    fn delivered(&mut self, id: &RunId) -> Result<Vec<(RunKey, Delivered)>, StoreError> {
        self.work(|transaction| delivered::of(&transaction.open_table(DELIVERED)?, id))
    }

    fn put_delivered(&mut self, key: &RunKey, sent: &Delivered) -> Result<(), StoreError> {
        self.work(|transaction| delivered::put(transaction, key, sent))
    }

    fn remove_delivered(&mut self, key: &RunKey) -> Result<(), StoreError> {
        self.work(|transaction| delivered::remove(transaction, key))
    }

    fn meta(&mut self) -> Result<Meta, StoreError> {
        self.work(|transaction| facts(&transaction.open_table(META)?))
    }

    fn put_meta(&mut self, meta: &Meta) -> Result<(), StoreError> {
        self.work(|transaction| {
            let mut table = transaction.open_table(META)?;
            table.insert(META_FACTS, json(meta)?.as_slice())?;
            Ok(())
        })
    }

    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let Some(transaction) = self.transaction.take() else {
            return Err(self.store.gone());
        };
        caught(|| Ok(transaction.commit()?)).map_err(|fault| self.store.failed(fault))
    }
}

pub(super) fn totals_of(name: &NameKey) -> String {
    format!("the totals of {}/{}", name.cluster, name.app_name)
}

pub(super) fn facts(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Meta, Fault> {
    let facts = meta.get(META_FACTS)?;
    let facts = facts.ok_or_else(|| Fault::Damaged("it does not say when it was made".into()))?;
    from_json(|| "what it says of itself".to_owned(), facts.value())
}

/// Adds a run that is not there.
fn put(
    transaction: &WriteTransaction,
    run: &RunKey,
    record: &RunRecord,
    summary: &[u8],
) -> Result<(), Fault> {
    let (key, json) = (key(run), json(record)?);
    let bytes = stored_bytes(run, &json, summary);
    transaction.open_table(RUNS)?.insert(key, json.as_slice())?;
    transaction.open_table(SUMMARIES)?.insert(key, summary)?;
    transaction.open_table(BY_NAME)?.insert(by_name(key, record), ())?;
    if let Some(log) = &record.log {
        let (cluster, app_id, attempt, start) = key;
        let place = (cluster, log.place.as_str(), log.key.as_str(), app_id, attempt, start);
        let seen = (log.bytes, log.modified_ms, record.read_at_ms);
        transaction.open_table(BY_LOG)?.insert(place, seen)?;
    }
    transaction.open_table(BY_SINCE)?.insert(by_time(record.since_ms(), key), bytes)?;
    transaction.open_table(BY_END)?.insert(by_time(record.end_ms, key), ())?;
    if record.counted == Counted::NotYet {
        transaction.open_table(UNCOUNTED)?.insert(key, ())?;
    }
    add_bytes(transaction, |sum| sum.saturating_add(bytes))
}

/// Removes the run where it is there, from everywhere; its packed summary.
fn remove(transaction: &WriteTransaction, run: &RunKey) -> Result<Option<Vec<u8>>, Fault> {
    let key = key(run);
    let Some(json) = transaction.open_table(RUNS)?.remove(key)?.map(|json| json.value().to_vec())
    else {
        return Ok(None);
    };
    let record: RunRecord = from_json(|| format!("the record of {}", run.id), &json)?;
    let mut summaries = transaction.open_table(SUMMARIES)?;
    let summary = summaries.remove(key)?.map(|summary| summary.value().to_vec());
    let summary = summary.unwrap_or_default();
    transaction.open_table(BY_NAME)?.remove(by_name(key, &record))?;
    if let Some(log) = &record.log {
        let (cluster, app_id, attempt, start) = key;
        let place = (cluster, log.place.as_str(), log.key.as_str(), app_id, attempt, start);
        transaction.open_table(BY_LOG)?.remove(place)?;
    }
    transaction.open_table(BY_SINCE)?.remove(by_time(record.since_ms(), key))?;
    transaction.open_table(BY_END)?.remove(by_time(record.end_ms, key))?;
    transaction.open_table(UNCOUNTED)?.remove(key)?;
    let bytes = stored_bytes(run, &json, &summary);
    add_bytes(transaction, |sum| sum.saturating_sub(bytes))?;
    Ok(Some(summary))
}

fn add_bytes(transaction: &WriteTransaction, sum: impl FnOnce(u64) -> u64) -> Result<(), Fault> {
    let mut meta = transaction.open_table(META)?;
    let bytes = run_bytes(&meta)?;
    meta.insert(META_RUN_BYTES, sum(bytes).to_le_bytes().as_slice())?;
    Ok(())
}

pub(super) fn run_bytes(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<u64, Fault> {
    let bytes = meta.get(META_RUN_BYTES)?.and_then(|bytes| number(bytes.value()));
    bytes.ok_or_else(|| Fault::Damaged("it does not say how much it holds".to_owned()))
}
