//! Reading the file's tables.

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::change::{facts, run_bytes, totals_of};
use super::delivered;
use super::fault::Fault;
use super::tables::{
    BY_END, BY_LOG, BY_NAME, BY_SINCE, Key, META, RUNS, SUMMARIES, TOTALS, UNCOUNTED, attempt,
    from_json, key, run_key, unpacked,
};
use crate::diagnose::RunSummary;
use crate::model::RunId;
use crate::store::{
    LogSeen, Meta, NameKey, Oldest, RunKey, RunRecord, Size, StoreError, StoredRun, Totals,
};

/// Runs that [`each_run`] reads before it hands them over.
const AT_ONCE: usize = 256;

pub(super) fn runs_of(
    runs: &impl ReadableTable<Key, &'static [u8]>,
    id: &RunId,
) -> Result<Vec<(RunKey, RunRecord)>, Fault> {
    let (cluster, app_id, attempt) = (id.cluster.as_str(), id.app_id.as_str(), attempt(id));
    let all = (cluster, app_id, attempt, i64::MIN)..=(cluster, app_id, attempt, i64::MAX);
    runs.range(all)?
        .map(|entry| {
            let (key, json) = entry?;
            let key = run_key(key.value());
            let record = record(&key, json.value())?;
            Ok((key, record))
        })
        .collect()
}

pub(super) fn record(key: &RunKey, json: &[u8]) -> Result<RunRecord, Fault> {
    from_json(|| format!("the record of {}", key.id), json)
}

pub(super) fn meta(transaction: &ReadTransaction) -> Result<Meta, Fault> {
    facts(&transaction.open_table(META)?)
}

pub(super) fn totals(transaction: &ReadTransaction) -> Result<Vec<(NameKey, Totals)>, Fault> {
    transaction
        .open_table(TOTALS)?
        .iter()?
        .map(|entry| {
            let (name, json) = entry?;
            let (cluster, app_name) = name.value();
            let name = NameKey { cluster: cluster.to_owned(), app_name: app_name.to_owned() };
            let totals = from_json(|| totals_of(&name), json.value())?;
            Ok((name, totals))
        })
        .collect()
}

fn stored(
    transaction: &ReadTransaction,
    key_: &RunKey,
    summaries: &impl ReadableTable<Key, &'static [u8]>,
) -> Result<StoredRun, Fault> {
    let json = transaction.open_table(RUNS)?.get(key(key_))?;
    let json = json.ok_or_else(|| Fault::Damaged(format!("{} has no record", key_.id)))?;
    let record = record(key_, json.value())?;
    Ok(StoredRun { record, summary: summary(key_, summaries)? })
}

pub(super) fn summary(
    key_: &RunKey,
    summaries: &impl ReadableTable<Key, &'static [u8]>,
) -> Result<RunSummary, Fault> {
    let bytes = summaries.get(key(key_))?;
    let bytes = bytes.ok_or_else(|| Fault::Damaged(format!("{} has no summary", key_.id)))?;
    unpacked(key_, bytes.value())
}

pub(super) fn runs_by_name(
    transaction: &ReadTransaction,
    name: &NameKey,
    limit: usize,
) -> Result<Vec<(RunKey, StoredRun)>, Fault> {
    let by_name = transaction.open_table(BY_NAME)?;
    let summaries = transaction.open_table(SUMMARIES)?;
    let cluster = name.cluster.as_str();
    // The text that follows `app_name`, with nothing between them.
    let next = format!("{}\0", name.app_name);
    let first = (cluster, name.app_name.as_str(), i64::MIN, "", "", i64::MIN);
    let end = (cluster, next.as_str(), i64::MIN, "", "", i64::MIN);
    by_name
        .range(first..end)?
        .rev()
        .take(limit)
        .map(|entry| {
            let (place, ()) = entry.map(|(place, _)| (place, ()))?;
            let (cluster, _, _, app_id, attempt, start) = place.value();
            let key = run_key((cluster, app_id, attempt, start));
            let run = stored(transaction, &key, &summaries)?;
            Ok((key, run))
        })
        .collect()
}

pub(super) fn uncounted(transaction: &ReadTransaction) -> Result<Vec<(RunKey, RunRecord)>, Fault> {
    let runs = transaction.open_table(RUNS)?;
    transaction
        .open_table(UNCOUNTED)?
        .iter()?
        .map(|entry| {
            let key_ = run_key(entry?.0.value());
            let json = runs.get(key(&key_))?;
            let json = json.ok_or_else(|| Fault::Damaged(format!("{} has no record", key_.id)))?;
            let record = record(&key_, json.value())?;
            Ok((key_, record))
        })
        .collect()
}

pub(super) fn logs(
    transaction: &ReadTransaction,
    cluster: &str,
    place: &str,
) -> Result<Vec<(LogSeen, i64)>, Fault> {
    let next = format!("{place}\0");
    let first = (cluster, place, "", "", "", i64::MIN);
    let end = (cluster, next.as_str(), "", "", "", i64::MIN);
    transaction
        .open_table(BY_LOG)?
        .range(first..end)?
        .map(|entry| {
            let (log, seen) = entry?;
            let (_, place, key, ..) = log.value();
            let (bytes, modified_ms, read_at_ms) = seen.value();
            let (place, key) = (place.to_owned(), key.to_owned());
            Ok((LogSeen { place, key, bytes, modified_ms }, read_at_ms))
        })
        .collect()
}

pub(super) fn oldest(transaction: &ReadTransaction, limit: usize) -> Result<Vec<Oldest>, Fault> {
    transaction
        .open_table(BY_SINCE)?
        .iter()?
        .take(limit)
        .map(|entry| {
            let (place, bytes) = entry?;
            let (since_ms, cluster, app_id, attempt, start) = place.value();
            let key = run_key((cluster, app_id, attempt, start));
            Ok(Oldest { key, since_ms, bytes: bytes.value() })
        })
        .collect()
}

pub(super) fn latest_end_ms(transaction: &ReadTransaction) -> Result<Option<i64>, Fault> {
    Ok(transaction.open_table(BY_END)?.last()?.map(|(place, _)| place.value().0))
}

pub(super) fn size(transaction: &ReadTransaction) -> Result<Size, Fault> {
    let (delivered, delivered_bytes) = delivered::size(transaction)?;
    Ok(Size {
        runs: transaction.open_table(RUNS)?.len()?,
        names: transaction.open_table(TOTALS)?.len()?,
        run_bytes: run_bytes(&transaction.open_table(META)?)?,
        delivered,
        delivered_bytes,
        total_bytes: None,
    })
}

/// Some runs after `after`, in the order of their keys.
pub(super) fn runs_after(
    transaction: &ReadTransaction,
    after: Option<&RunKey>,
) -> Result<Vec<(RunKey, StoredRun)>, Fault> {
    use std::ops::Bound;
    let (runs, summaries) = (transaction.open_table(RUNS)?, transaction.open_table(SUMMARIES)?);
    let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(key(after)));
    runs.range::<(&str, &str, &str, i64)>((from, Bound::Unbounded))?
        .take(AT_ONCE)
        .map(|entry| {
            let (place, json) = entry?;
            let key = run_key(place.value());
            let record = record(&key, json.value())?;
            let summary = summary(&key, &summaries)?;
            Ok((key, StoredRun { record, summary }))
        })
        .collect()
}

/// Hands over runs as `some_after` finds them.
pub(super) fn each_run<T>(
    mut some_after: impl FnMut(Option<&RunKey>) -> Result<Vec<(RunKey, T)>, StoreError>,
    each: &mut dyn FnMut(RunKey, T) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut last: Option<RunKey> = None;
    loop {
        let runs = some_after(last.as_ref())?;
        let Some((key, _)) = runs.last() else { return Ok(()) };
        last = Some(key.clone());
        for (key, run) in runs {
            each(key, run)?;
        }
    }
}
