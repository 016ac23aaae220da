//! What lies in the file: tables, their keys, and how values are written.
//!
//! Keys are tuples, which redb orders part by part, so everything of one name
//! or one place lies together. A run without an attempt has an empty one, as
//! in labels.

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::fault::Fault;
use crate::diagnose::RunSummary;
use crate::model::RunId;
use crate::store::{RunKey, RunRecord};

/// Of the tables below. A change of what they hold is a new version, with a
/// step in [`migrate`].
///
/// - 1: runs and totals.
/// - 2: what was sent of runs.
pub(super) const VERSION: u32 = 2;
/// Says that the file is ours.
pub(super) const MAGIC: &[u8] = b"spark-exporter store";

/// Facts about the store: [`MAGIC`], the version, [`crate::store::Meta`], and
/// the sum of [`stored_bytes`].
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const META_MAGIC: &str = "magic";
pub(super) const META_VERSION: &str = "version";
pub(super) const META_FACTS: &str = "facts";
/// The parts of the runs that its daemon covered, as JSON; since version 2.
pub(super) const META_SHARDS: &str = "shards";
pub(super) const META_RUN_BYTES: &str = "run_bytes";
/// The sum of the bytes of [`DELIVERED`].
pub(super) const META_DELIVERED_BYTES: &str = "delivered_bytes";

/// `spark_cluster`, `app_id`, `attempt_id`, start in milliseconds.
pub(super) type Key = (&'static str, &'static str, &'static str, i64);
/// Records as JSON.
pub(super) const RUNS: TableDefinition<'_, Key, &[u8]> = TableDefinition::new("runs");
/// Summaries as JSON in zstd.
pub(super) const SUMMARIES: TableDefinition<'_, Key, &[u8]> = TableDefinition::new("summaries");
/// `spark_cluster`, `app_name`, end in milliseconds, then the run.
pub(super) type ByName = (&'static str, &'static str, i64, &'static str, &'static str, i64);
pub(super) const BY_NAME: TableDefinition<'_, ByName, ()> = TableDefinition::new("by_name");
/// `spark_cluster`, place, log, then the run.
pub(super) type ByLog = (&'static str, &'static str, &'static str, &'static str, &'static str, i64);
/// Bytes, modification and first reading of the log.
pub(super) const BY_LOG: TableDefinition<'_, ByLog, (u64, i64, i64)> =
    TableDefinition::new("by_log");
/// A time in milliseconds, then the run.
pub(super) type ByTime = (i64, &'static str, &'static str, &'static str, i64);
/// By the begin of retention, with the bytes that are stored.
pub(super) const BY_SINCE: TableDefinition<'_, ByTime, u64> = TableDefinition::new("by_since");
pub(super) const BY_END: TableDefinition<'_, ByTime, ()> = TableDefinition::new("by_end");
pub(super) const UNCOUNTED: TableDefinition<'_, Key, ()> = TableDefinition::new("uncounted");
/// `spark_cluster`, `app_name`.
pub(super) type Name = (&'static str, &'static str);
/// Totals as JSON.
pub(super) const TOTALS: TableDefinition<'_, Name, &[u8]> = TableDefinition::new("totals");
/// What was sent of runs, as JSON.
pub(super) const DELIVERED: TableDefinition<'_, Key, &[u8]> = TableDefinition::new("delivered");
/// By when that changed last.
pub(super) const DELIVERED_BY_AGE: TableDefinition<'_, ByTime, ()> =
    TableDefinition::new("delivered_by_age");

/// Of a summary, unpacked: ours have a few KiB.
const SUMMARY_LIMIT: usize = 16 << 20;

pub(super) fn key(key: &RunKey) -> (&str, &str, &str, i64) {
    (&key.id.cluster, &key.id.app_id, attempt(&key.id), key.start_ms)
}

pub(super) fn attempt(id: &RunId) -> &str {
    id.attempt_id.as_deref().unwrap_or_default()
}

pub(super) fn run_key((cluster, app_id, attempt, start_ms): (&str, &str, &str, i64)) -> RunKey {
    RunKey {
        id: RunId {
            cluster: cluster.to_owned(),
            app_id: app_id.to_owned(),
            attempt_id: (!attempt.is_empty()).then(|| attempt.to_owned()),
        },
        start_ms,
    }
}

pub(super) fn by_name<'k>(
    (cluster, app_id, attempt, start): (&'k str, &'k str, &'k str, i64),
    record: &'k RunRecord,
) -> (&'k str, &'k str, i64, &'k str, &'k str, i64) {
    (cluster, &record.app_name, record.end_ms, app_id, attempt, start)
}

pub(super) fn by_time<'k>(
    time_ms: i64,
    (cluster, app_id, attempt, start): (&'k str, &'k str, &'k str, i64),
) -> (i64, &'k str, &'k str, &'k str, i64) {
    (time_ms, cluster, app_id, attempt, start)
}

/// Of one run, without what the tables need around it.
pub(super) fn stored_bytes(key: &RunKey, record: &[u8], summary: &[u8]) -> u64 {
    let id = &key.id;
    let key = id.cluster.len() + id.app_id.len() + attempt(id).len() + size_of::<i64>();
    (key + record.len() + summary.len()) as u64
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::Damaged(format!("cannot be written: {error}")))
}

pub(super) fn from_json<T: serde::de::DeserializeOwned>(
    what: impl FnOnce() -> String,
    bytes: &[u8],
) -> Result<T, Fault> {
    serde_json::from_slice(bytes)
        .map_err(|error| Fault::Damaged(format!("{} cannot be read: {error}", what())))
}

pub(super) fn packed(summary: &RunSummary) -> Result<Vec<u8>, Fault> {
    zstd::bulk::compress(&json(summary)?, 0)
        .map_err(|error| Fault::Damaged(format!("a summary cannot be packed: {error}")))
}

pub(super) fn unpacked(key: &RunKey, bytes: &[u8]) -> Result<RunSummary, Fault> {
    let what = || format!("the summary of {}", key.id);
    let limit = zstd::zstd_safe::get_frame_content_size(bytes)
        .ok()
        .flatten()
        .map_or(SUMMARY_LIMIT, |size| usize::try_from(size).unwrap_or(usize::MAX))
        .min(SUMMARY_LIMIT);
    let json = zstd::bulk::decompress(bytes, limit)
        .map_err(|error| Fault::Damaged(format!("{} cannot be unpacked: {error}", what())))?;
    from_json(what, &json)
}

/// A number in [`META`].
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What lies there before anything is known of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Not ours.
    Foreign,
    Version(u32),
}

pub(super) fn found(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Found, Fault> {
    if meta.get(META_MAGIC)?.is_none_or(|magic| magic.value() != MAGIC) {
        return Ok(Found::Foreign);
    }
    let version = meta.get(META_VERSION)?.and_then(|version| number(version.value()));
    match version.and_then(|version| u32::try_from(version).ok()) {
        Some(version) if version > 0 => Ok(Found::Version(version)),
        _ => Err(Fault::Damaged("it does not say its version".to_owned())),
    }
}

/// Brings a store of an older version to [`VERSION`], as one change.
pub(super) fn migrate(transaction: &WriteTransaction, from: u32) -> Result<(), Fault> {
    // One step a version, from N to N + 1, each in a function of its own.
    if !(1..=VERSION).contains(&from) {
        return Err(Fault::Damaged(format!("version {from} of it never was")));
    }
    if from < 2 {
        make_delivered(transaction)?;
    }
    let mut meta = transaction.open_table(META)?;
    meta.insert(META_VERSION, u64::from(VERSION).to_le_bytes().as_slice())?;
    Ok(())
}

/// From version 1 to 2.
pub(super) fn make_delivered(transaction: &WriteTransaction) -> Result<(), Fault> {
    transaction.open_table(DELIVERED)?;
    transaction.open_table(DELIVERED_BY_AGE)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(META_DELIVERED_BYTES, 0_u64.to_le_bytes().as_slice())?;
    Ok(())
}
