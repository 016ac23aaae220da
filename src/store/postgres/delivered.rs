//! What was sent of runs, on the server.

use super::AT_ONCE;
use super::connect::Connection;
use super::fault::Fault;
use super::rows::{self, Key, from_json, json};
use crate::model::RunId;
use crate::store::check::Wrong;
use crate::store::{Delivered, RunKey, StoreError};

/// Of the runs of an id, under the key's own texts: they are what was asked
/// for.
pub(super) async fn of(
    connection: &mut Connection,
    id: &RunId,
) -> Result<Vec<(RunKey, Delivered)>, Fault> {
    let Key { cluster, app_id, attempt } = Key::of(id);
    let rows = connection
        .query(
            "SELECT start_ms, delivered::text FROM spark_exporter.delivered \
             WHERE spark_cluster = $1 AND app_id = $2 AND attempt_id = $3 ORDER BY start_ms",
            &[&cluster, &app_id, &attempt],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let key = RunKey { id: id.clone(), start_ms: row.try_get(0)? };
            let delivered = delivered(&key, row.try_get(1)?)?;
            Ok((key, delivered))
        })
        .collect()
}

fn delivered(key: &RunKey, json: &str) -> Result<Delivered, Fault> {
    from_json(|| format!("what was sent of {}", key.id), json)
}

pub(super) async fn put(
    connection: &mut Connection,
    key: &RunKey,
    delivered: &Delivered,
) -> Result<(), Fault> {
    let Key { cluster, app_id, attempt } = Key::of(&key.id);
    connection
        .query(
            "INSERT INTO spark_exporter.delivered \
             (spark_cluster, app_id, attempt_id, start_ms, delivered) \
             VALUES ($1, $2, $3, $4, $5::text::jsonb) \
             ON CONFLICT (spark_cluster, app_id, attempt_id, start_ms) \
             DO UPDATE SET delivered = excluded.delivered",
            &[&cluster, &app_id, &attempt, &key.start_ms, &json(delivered)?],
        )
        .await?;
    Ok(())
}

pub(super) async fn remove(connection: &mut Connection, key: &RunKey) -> Result<(), Fault> {
    let Key { cluster, app_id, attempt } = Key::of(&key.id);
    connection
        .query(
            "DELETE FROM spark_exporter.delivered WHERE spark_cluster = $1 AND app_id = $2 \
             AND attempt_id = $3 AND start_ms = $4",
            &[&cluster, &app_id, &attempt, &key.start_ms],
        )
        .await?;
    Ok(())
}

pub(super) async fn before(
    connection: &mut Connection,
    time_ms: i64,
    limit: i64,
) -> Result<Vec<RunKey>, Fault> {
    let rows = connection
        .query(
            "SELECT spark_cluster, app_id, attempt_id, start_ms FROM spark_exporter.delivered \
             WHERE at_ms < $1 ORDER BY at_ms LIMIT $2",
            &[&time_ms, &limit],
        )
        .await?;
    rows.iter().map(rows::key).collect()
}

/// How many runs, and their bytes, also of what lies around them.
pub(super) async fn size(connection: &mut Connection) -> Result<[u64; 3], Fault> {
    let sql = "SELECT count(*), coalesce(sum(bytes), 0)::bigint, \
               pg_total_relation_size('spark_exporter.delivered') FROM spark_exporter.delivered";
    let rows = connection.query(sql, &[]).await?;
    let Some(row) = rows.first() else { return Ok([0; 3]) };
    let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
    Ok([number(0)?, number(1)?, number(2)?])
}

/// Rows of some runs after `after`, in the order of their keys: four columns
/// of the key, and what was sent.
async fn rows_after(
    connection: &mut Connection,
    after: Option<&RunKey>,
) -> Result<Vec<tokio_postgres::Row>, Fault> {
    match after {
        None => {
            let sql = "SELECT spark_cluster, app_id, attempt_id, start_ms, delivered::text \
                       FROM spark_exporter.delivered \
                       ORDER BY spark_cluster, app_id, attempt_id, start_ms LIMIT $1";
            connection.query(sql, &[&AT_ONCE]).await
        }
        Some(RunKey { id, start_ms }) => {
            let attempt = id.attempt_id.as_deref().unwrap_or_default();
            let sql = "SELECT spark_cluster, app_id, attempt_id, start_ms, delivered::text \
                       FROM spark_exporter.delivered \
                       WHERE (spark_cluster, app_id, attempt_id, start_ms) > ($2, $3, $4, $5) \
                       ORDER BY spark_cluster, app_id, attempt_id, start_ms LIMIT $1";
            connection.query(sql, &[&AT_ONCE, &id.cluster, &id.app_id, &attempt, start_ms]).await
        }
    }
}

/// Hands over what was sent of each run; the inner error is that of `each`.
pub(super) async fn each(
    connection: &mut Connection,
    each: &mut dyn FnMut(RunKey, Delivered) -> Result<(), StoreError>,
) -> Result<Result<(), StoreError>, Fault> {
    let mut last = None;
    loop {
        let rows = rows_after(connection, last.as_ref()).await?;
        let Some(row) = rows.last() else { return Ok(Ok(())) };
        last = Some(rows::key(row)?);
        for row in &rows {
            let key = rows::key(row)?;
            let sent = delivered(&key, row.try_get(4)?)?;
            if let Err(stopped) = each(key, sent) {
                return Ok(Err(stopped));
            }
        }
    }
}

/// Whether all of it can be read.
pub(super) async fn check(connection: &mut Connection, wrong: &mut Wrong) -> Result<(), Fault> {
    let mut last = None;
    loop {
        let rows = rows_after(connection, last.as_ref()).await?;
        let Some(row) = rows.last() else { return Ok(()) };
        last = Some(rows::key(row)?);
        for row in &rows {
            match delivered(&rows::key(row)?, row.try_get(4)?) {
                Ok(_) => {}
                Err(Fault::Damaged(why)) => wrong.add(why),
                Err(fault) => return Err(fault),
            }
        }
    }
}
