//! A change on the server: one transaction on one connection.
//!
//! Whoever is about to change a run holds a lock on its id first, whether the
//! run is there or not, since its start may differ between two who see it;
//! and one on a name that has no totals yet. What was seen is seen only after
//! the lock, so two daemons with the same run come one after the other.

use deadpool::managed::Object;

use super::Postgres;
use super::connect::{Connection, Connector};
use super::delivered;
use super::fault::Fault;
use super::rows::{self, Key, from_json, json, text, totals_of};
use crate::model::RunId;
use crate::store::{
    Change, Delivered, Meta, NameKey, RunKey, RunRecord, StoreError, StoredRun, Totals,
};

pub(super) struct PostgresChange<'s> {
    store: &'s Postgres,
    /// Gone once it was committed or failed.
    connection: Option<Object<Connector>>,
}

impl<'s> PostgresChange<'s> {
    /// On a connection whose transaction was begun.
    pub(super) fn new(store: &'s Postgres, connection: Object<Connector>) -> Self {
        Self { store, connection: Some(connection) }
    }

    fn work<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let Some(connection) = &mut self.connection else {
            return Err(self.store.gone());
        };
        self.store.runtime().block_on(work(connection)).map_err(|fault| {
            self.undo(fault.spares_connection());
            fault.of(self.store.name())
        })
    }

    fn undo(&mut self, spared: bool) {
        let Some(mut connection) = self.connection.take() else { return };
        let rolled_back =
            spared && self.store.runtime().block_on(connection.batch("ROLLBACK")).is_ok();
        if !rolled_back {
            // The server rolls back what was open on it.
            drop(Object::take(connection));
        }
    }
}

impl Drop for PostgresChange<'_> {
    fn drop(&mut self) {
        self.undo(true);
    }
}

impl Change for PostgresChange<'_> {
    fn runs(&mut self, id: &RunId) -> Result<Vec<(RunKey, RunRecord)>, StoreError> {
        self.work(async |connection| {
            lock(connection, id).await?;
            runs_of(connection, id).await
        })
    }

    fn put_run(&mut self, key: &RunKey, run: &StoredRun) -> Result<(), StoreError> {
        self.work(async |connection| {
            let Key { cluster, app_id, attempt } = Key::of(&key.id);
            let (record, summary) = (json(&run.record)?, json(&run.summary)?);
            connection
                .query(
                    "INSERT INTO spark_exporter.runs \
                     (spark_cluster, app_id, attempt_id, start_ms, record, summary) \
                     VALUES ($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb) \
                     ON CONFLICT (spark_cluster, app_id, attempt_id, start_ms) \
                     DO UPDATE SET record = excluded.record, summary = excluded.summary",
                    &[&cluster, &app_id, &attempt, &key.start_ms, &record, &summary],
                )
                .await?;
            Ok(())
        })
    }

    fn put_record(&mut self, key: &RunKey, record: &RunRecord) -> Result<(), StoreError> {
        self.work(async |connection| {
            let Key { cluster, app_id, attempt } = Key::of(&key.id);
            let changed = connection
                .query(
                    "UPDATE spark_exporter.runs SET record = $5::text::jsonb \
                     WHERE spark_cluster = $1 AND app_id = $2 AND attempt_id = $3 \
                     AND start_ms = $4 RETURNING 1",
                    &[&cluster, &app_id, &attempt, &key.start_ms, &json(record)?],
                )
                .await?;
            match changed.len() {
                1 => Ok(()),
                _ => Err(Fault::Damaged(format!("the run {} is not there", key.id))),
            }
        })
    }

    fn remove_run(&mut self, key: &RunKey) -> Result<(), StoreError> {
        self.work(async |connection| {
            let Key { cluster, app_id, attempt } = Key::of(&key.id);
            connection
                .query(
                    "DELETE FROM spark_exporter.runs WHERE spark_cluster = $1 AND app_id = $2 \
                     AND attempt_id = $3 AND start_ms = $4",
                    &[&cluster, &app_id, &attempt, &key.start_ms],
                )
                .await?;
            Ok(())
        })
    }

    fn totals(&mut self, name: &NameKey) -> Result<Option<Totals>, StoreError> {
        self.work(async |connection| {
            if let Some(totals) = locked_totals(connection, name).await? {
                return Ok(Some(totals));
            }
            // Nothing to lock: so that only one begins them.
            connection
                .query(
                    "SELECT pg_advisory_xact_lock(hashtextextended(\
                     concat_ws(chr(31), 'name', $1::text, $2::text), 0))",
                    &[&text(&name.cluster), &text(&name.app_name)],
                )
                .await?;
            locked_totals(connection, name).await
        })
    }

    fn put_totals(&mut self, name: &NameKey, totals: &Totals) -> Result<(), StoreError> {
        self.work(async |connection| {
            connection
                .query(
                    "INSERT INTO spark_exporter.totals (spark_cluster, app_name, totals) \
                     VALUES ($1, $2, $3::text::jsonb) \
                     ON CONFLICT (spark_cluster, app_name) DO UPDATE SET totals = excluded.totals",
                    &[&text(&name.cluster), &text(&name.app_name), &json(totals)?],
                )
                .await?;
            Ok(())
        })
    }

    fn remove_totals(&mut self, name: &NameKey) -> Result<(), StoreError> {
        self.work(async |connection| {
            connection
                .query(
                    "DELETE FROM spark_exporter.totals WHERE spark_cluster = $1 AND app_name = $2",
                    &[&text(&name.cluster), &text(&name.app_name)],
                )
                .await?;
            Ok(())
        })
    }

    fn names(&mut self) -> Result<usize, StoreError> {
        self.work(async |connection| {
            let rows = connection.query("SELECT count(*) FROM spark_exporter.totals", &[]).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
            Ok(count as usize)
        })
    }

    fn delivered(&mut self, id: &RunId) -> Result<Vec<(RunKey, Delivered)>, StoreError> {
        self.work(async |connection| {
            lock(connection, id).await?;
            delivered::of(connection, id).await
        })
    }

    fn put_delivered(&mut self, key: &RunKey, sent: &Delivered) -> Result<(), StoreError> {
        self.work(async |connection| delivered::put(connection, key, sent).await)
    }

    fn remove_delivered(&mut self, key: &RunKey) -> Result<(), StoreError> {
        self.work(async |connection| delivered::remove(connection, key).await)
    }

    fn meta(&mut self) -> Result<Meta, StoreError> {
        self.work(async |connection| {
            let rows = connection
                .query("SELECT created_ms, forgotten_ms FROM spark_exporter.meta FOR UPDATE", &[])
                .await?;
            meta(&rows)
        })
    }

    fn put_meta(&mut self, meta: &Meta) -> Result<(), StoreError> {
        self.work(async |connection| {
            let Meta { created_ms, forgotten_ms } = meta;
            connection
                .query(
                    "UPDATE spark_exporter.meta SET created_ms = $1, forgotten_ms = $2",
                    &[created_ms, forgotten_ms],
                )
                .await?;
            Ok(())
        })
    }

    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let Some(mut connection) = self.connection.take() else {
            return Err(self.store.gone());
        };
        self.store.runtime().block_on(connection.batch("COMMIT")).map_err(|fault| {
            // Whether it was committed is not known: the connection is not
            // used again, and who asks later sees.
            drop(Object::take(connection));
            fault.of(self.store.name())
        })
    }
}

/// What is done with runs of this id comes one after the other.
async fn lock(connection: &mut Connection, id: &RunId) -> Result<(), Fault> {
    let Key { cluster, app_id, attempt } = Key::of(id);
    connection
        .query(
            "SELECT pg_advisory_xact_lock(hashtextextended(\
             concat_ws(chr(31), 'run', $1::text, $2::text, $3::text), 0))",
            &[&cluster, &app_id, &attempt],
        )
        .await?;
    Ok(())
}

/// Runs of an id as they are now, under the key's own texts: they are what
/// was asked for.
pub(super) async fn runs_of(
    connection: &mut Connection,
    id: &RunId,
) -> Result<Vec<(RunKey, RunRecord)>, Fault> {
    let Key { cluster, app_id, attempt } = Key::of(id);
    let rows = connection
        .query(
            "SELECT spark_cluster, app_id, attempt_id, start_ms, record::text \
             FROM spark_exporter.runs \
             WHERE spark_cluster = $1 AND app_id = $2 AND attempt_id = $3 ORDER BY start_ms",
            &[&cluster, &app_id, &attempt],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let key = RunKey { id: id.clone(), start_ms: row.try_get(3)? };
            let record = rows::record(&key, row, 4)?;
            Ok((key, record))
        })
        .collect()
}

async fn locked_totals(
    connection: &mut Connection,
    name: &NameKey,
) -> Result<Option<Totals>, Fault> {
    let rows = connection
        .query(
            "SELECT totals::text FROM spark_exporter.totals \
             WHERE spark_cluster = $1 AND app_name = $2 FOR UPDATE",
            &[&text(&name.cluster), &text(&name.app_name)],
        )
        .await?;
    let Some(row) = rows.first() else { return Ok(None) };
    from_json(|| totals_of(name), row.try_get(0)?).map(Some)
}

pub(super) fn meta(rows: &[tokio_postgres::Row]) -> Result<Meta, Fault> {
    let row = rows
        .first()
        .ok_or_else(|| Fault::Damaged("it does not say when it was made".to_owned()))?;
    Ok(Meta { created_ms: row.try_get(0)?, forgotten_ms: row.try_get(1)? })
}
