//! What was sent of runs, in the file.
//!
//! A file of version 1 that is only looked at has no tables of it: nothing was
//! sent then.

use std::ops::Bound;

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, TableError, WriteTransaction};

use super::fault::Fault;
use super::tables::{
    DELIVERED, DELIVERED_BY_AGE, Key, META, META_DELIVERED_BYTES, attempt, by_time, from_json,
    json, key, number, run_key, stored_bytes,
};
use crate::model::RunId;
use crate::store::check::Wrong;
use crate::store::{Delivered, RunKey};

/// Runs that are read before they are handed over.
const AT_ONCE: usize = 256;

/// Of the runs of an id.
pub(super) fn of(
    table: &impl ReadableTable<Key, &'static [u8]>,
    id: &RunId,
) -> Result<Vec<(RunKey, Delivered)>, Fault> {
    let (cluster, app_id, attempt) = (id.cluster.as_str(), id.app_id.as_str(), attempt(id));
    let all = (cluster, app_id, attempt, i64::MIN)..=(cluster, app_id, attempt, i64::MAX);
    table
        .range(all)?
        .map(|entry| {
            let (key, json) = entry?;
            let key = run_key(key.value());
            let delivered = delivered(&key, json.value())?;
            Ok((key, delivered))
        })
        .collect()
}

/// The same, where nothing is changed.
pub(super) fn find(
    transaction: &ReadTransaction,
    id: &RunId,
) -> Result<Vec<(RunKey, Delivered)>, Fault> {
    let table = if_there(transaction.open_table(DELIVERED))?;
    table.map_or_else(|| Ok(Vec::new()), |table| of(&table, id))
}

fn delivered(key: &RunKey, json: &[u8]) -> Result<Delivered, Fault> {
    from_json(|| format!("what was sent of {}", key.id), json)
}

fn if_there<T>(opened: Result<T, TableError>) -> Result<Option<T>, Fault> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn put(
    transaction: &WriteTransaction,
    run: &RunKey,
    delivered: &Delivered,
) -> Result<(), Fault> {
    remove(transaction, run)?;
    let (key, json) = (key(run), json(delivered)?);
    let bytes = stored_bytes(run, &json, &[]);
    transaction.open_table(DELIVERED)?.insert(key, json.as_slice())?;
    transaction.open_table(DELIVERED_BY_AGE)?.insert(by_time(delivered.at_ms, key), ())?;
    add_bytes(transaction, |sum| sum.saturating_add(bytes))
}

/// Where it is there.
pub(super) fn remove(transaction: &WriteTransaction, run: &RunKey) -> Result<(), Fault> {
    let key = key(run);
    let removed = transaction.open_table(DELIVERED)?.remove(key)?.map(|json| json.value().to_vec());
    let Some(json) = removed else { return Ok(()) };
    let at_ms = delivered(run, &json)?.at_ms;
    transaction.open_table(DELIVERED_BY_AGE)?.remove(by_time(at_ms, key))?;
    let bytes = stored_bytes(run, &json, &[]);
    add_bytes(transaction, |sum| sum.saturating_sub(bytes))
}

fn add_bytes(transaction: &WriteTransaction, sum: impl FnOnce(u64) -> u64) -> Result<(), Fault> {
    let mut meta = transaction.open_table(META)?;
    let bytes = bytes(&meta)?;
    meta.insert(META_DELIVERED_BYTES, sum(bytes).to_le_bytes().as_slice())?;
    Ok(())
}

fn bytes(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<u64, Fault> {
    let bytes = meta.get(META_DELIVERED_BYTES)?.and_then(|bytes| number(bytes.value()));
    bytes.ok_or_else(|| Fault::Damaged("it does not say how much was sent".to_owned()))
}

pub(super) fn before(
    transaction: &ReadTransaction,
    time_ms: i64,
    limit: usize,
) -> Result<Vec<RunKey>, Fault> {
    let Some(by_age) = if_there(transaction.open_table(DELIVERED_BY_AGE))? else {
        return Ok(Vec::new());
    };
    let end = (time_ms, "", "", "", i64::MIN);
    by_age
        .range(..end)?
        .take(limit)
        .map(|entry| {
            let place = entry?.0;
            let (_, cluster, app_id, attempt, start) = place.value();
            Ok(run_key((cluster, app_id, attempt, start)))
        })
        .collect()
}

/// How many runs, and their bytes.
pub(super) fn size(transaction: &ReadTransaction) -> Result<(u64, u64), Fault> {
    match if_there(transaction.open_table(DELIVERED))? {
        Some(table) => Ok((table.len()?, bytes(&transaction.open_table(META)?)?)),
        None => Ok((0, 0)),
    }
}

/// Some runs after `after`, in the order of their keys.
pub(super) fn some_after(
    transaction: &ReadTransaction,
    after: Option<&RunKey>,
) -> Result<Vec<(RunKey, Delivered)>, Fault> {
    let Some(table) = if_there(transaction.open_table(DELIVERED))? else {
        return Ok(Vec::new());
    };
    let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(key(after)));
    table
        .range::<(&str, &str, &str, i64)>((from, Bound::Unbounded))?
        .take(AT_ONCE)
        .map(|entry| {
            let (place, json) = entry?;
            let key = run_key(place.value());
            let delivered = delivered(&key, json.value())?;
            Ok((key, delivered))
        })
        .collect()
}

/// Whether all of it can be read and agrees with itself.
pub(super) fn check(transaction: &ReadTransaction, wrong: &mut Wrong) -> Result<(), Fault> {
    let Some(table) = if_there(transaction.open_table(DELIVERED))? else { return Ok(()) };
    let by_age = transaction.open_table(DELIVERED_BY_AGE)?;
    let mut sum = 0_u64;
    for entry in table.iter()? {
        let (place, json) = entry?;
        let run = run_key(place.value());
        sum += stored_bytes(&run, json.value(), &[]);
        match delivered(&run, json.value()) {
            Ok(delivered) => {
                if by_age.get(by_time(delivered.at_ms, key(&run)))?.is_none() {
                    wrong.add(format!("what was sent of {} is not in the list by age", run.id));
                }
            }
            Err(Fault::Damaged(why)) => wrong.add(why),
            Err(fault) => return Err(fault),
        }
    }
    for (what, has, expected) in [
        ("the list by age of what was sent", by_age.len()?, table.len()?),
        ("the sum of its bytes", bytes(&transaction.open_table(META)?)?, sum),
    ] {
        if has != expected {
            wrong.add(format!("{what} should be {expected}, and is {has}"));
        }
    }
    Ok(())
}
