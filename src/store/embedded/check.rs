//! Whether everything in the file agrees with everything else.

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::fault::Fault;
use super::read::{record, summary};
use super::tables::{
    BY_END, BY_LOG, BY_NAME, BY_SINCE, META, RUNS, SUMMARIES, UNCOUNTED, by_name, by_time, key,
    run_key, stored_bytes,
};
use super::{change, delivered, read};
use crate::store::Counted;
use crate::store::check::{Checked, Wrong};

/// Reads all runs, one after the other, each with its places in the tables
/// beside them.
pub(super) fn all(transaction: &ReadTransaction) -> Result<Wrong, Fault> {
    let mut checked = Checked::default();
    let (runs, summaries) = (transaction.open_table(RUNS)?, transaction.open_table(SUMMARIES)?);
    let by_name_table = transaction.open_table(BY_NAME)?;
    let by_log = transaction.open_table(BY_LOG)?;
    let by_since = transaction.open_table(BY_SINCE)?;
    let by_end = transaction.open_table(BY_END)?;
    let uncounted = transaction.open_table(UNCOUNTED)?;
    let (mut run_bytes, mut logs, mut not_yet) = (0_u64, 0_u64, 0_u64);
    for entry in runs.iter()? {
        let (place, json) = entry?;
        let run = run_key(place.value());
        let (key, json) = (key(&run), json.value());
        let record = match record(&run, json) {
            Ok(record) => record,
            Err(Fault::Damaged(why)) => {
                checked.wrong.add(why);
                continue;
            }
            Err(fault) => return Err(fault),
        };
        match summary(&run, &summaries) {
            Ok(_) => {}
            Err(Fault::Damaged(why)) => checked.wrong.add(why),
            Err(fault) => return Err(fault),
        }
        let packed = summaries.get(key)?.map(|packed| packed.value().len()).unwrap_or_default();
        let bytes = stored_bytes(&run, json, &[]) + packed as u64;
        run_bytes += bytes;
        let mut found = |there: bool, table: &str| {
            if !there {
                checked.wrong.add(format!("{} is not where {table} has it", run.id));
            }
        };
        found(by_name_table.get(by_name(key, &record))?.is_some(), "the list by name");
        found(by_end.get(by_time(record.end_ms, key))?.is_some(), "the list by end");
        let since = by_since.get(by_time(record.since_ms(), key))?.map(|bytes| bytes.value());
        found(since == Some(bytes), "the list by age");
        if let Some(log) = &record.log {
            logs += 1;
            let (cluster, app_id, attempt, start) = key;
            let place = (cluster, log.place.as_str(), log.key.as_str(), app_id, attempt, start);
            let seen = by_log.get(place)?.map(|seen| seen.value());
            let expected = (log.bytes, log.modified_ms, record.read_at_ms);
            found(seen == Some(expected), "the list of logs");
        }
        let waits = record.counted == Counted::NotYet;
        not_yet += u64::from(waits);
        found(uncounted.get(key)?.is_some() == waits, "the list of those to be counted");
        checked.run(&run, &record);
    }
    let all = runs.len()?;
    for (table, has, expected) in [
        ("summaries", summaries.len()?, all),
        ("the list by name", by_name_table.len()?, all),
        ("the list by end", by_end.len()?, all),
        ("the list by age", by_since.len()?, all),
        ("the list of logs", by_log.len()?, logs),
        ("the list of those to be counted", uncounted.len()?, not_yet),
        ("the sum of all bytes", change::run_bytes(&transaction.open_table(META)?)?, run_bytes),
    ] {
        if has != expected {
            checked.wrong.add(format!("{table} should be {expected}, and is {has}"));
        }
    }
    delivered::check(transaction, &mut checked.wrong)?;
    let totals = read::totals(transaction)?;
    Ok(checked.against(&totals, &read::meta(transaction)?))
}
