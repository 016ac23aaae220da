//! The PostgreSQL back end, for several daemons that share one memory.
//!
//! The server's own constraints make a run count once, whoever sees it first:
//! the primary key of runs, and locks that make those who see the same run,
//! or count into the same name, wait for each other. A connection that is
//! lost costs the call that was under way, which changes all or nothing; the
//! next call makes another one.

mod change;
mod connect;
mod delivered;
mod fault;
mod rows;
mod schema;

use std::fmt;

use deadpool::managed::{Object, Pool};
use jiff::Timestamp;
use tokio::runtime::Handle;

use self::change::PostgresChange;
use self::connect::{Connection, Connector};
use self::fault::Fault;
use self::rows::{from_json, text, totals_of};
use super::check::{Checked, Wrong};
use super::{
    Backend, Change, Delivered, LogSeen, Meta, NameKey, Oldest, RunKey, RunRecord, Size,
    StoreError, StoredRun, Totals,
};
use crate::config::{Storage, StoreUrl};
use crate::model::RunId;

/// Runs that are read at a time where all of them are.
const AT_ONCE: i64 = 256;

/// A store in the schema `spark_exporter` of a database.
pub struct Postgres {
    name: String,
    pool: Pool<Connector>,
    runtime: Handle,
    /// Of its tables; one that is only looked at may be older.
    version: u32,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One moment of the whole store, for as long as it is looked at.
const BEGIN_VIEW: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                          SET LOCAL idle_in_transaction_session_timeout = 0";

impl Postgres {
    /// Connects, and makes or migrates the tables. `made`: the time at which
    /// they are made where they are not there; `None`: nothing is made or
    /// changed.
    pub fn open(
        url: &StoreUrl,
        storage: &Storage,
        made: Option<Timestamp>,
        runtime: &Handle,
    ) -> Result<Self, StoreError> {
        let name = format!("the store {url}");
        let make = || -> Result<Pool<Connector>, Fault> {
            // The pool's timers live on the runtime.
            let _entered = runtime.enter();
            Connector::new(url, storage)?.pool(storage.pool_size)
        };
        let pool = make().map_err(|fault| fault.of(&name))?;
        let mut store = Self { name, pool, runtime: runtime.clone(), version: schema::VERSION };
        store.version = store.with(async |connection| schema::prepare(connection, made).await)?;
        Ok(store)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Whether its tables have a place for what was sent of runs.
    fn has_delivered(&self) -> bool {
        self.version >= 2
    }

    fn gone(&self) -> StoreError {
        StoreError::Unavailable {
            what: self.name.clone(),
            why: "this change failed already".to_owned(),
        }
    }

    /// Does something on a connection; once more on another one where it was
    /// lost while it lay in the pool. Not for what changes anything twice.
    fn with<T>(
        &self,
        work: impl AsyncFn(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.lent(work).map(|(result, _)| result)
    }

    /// The same, and the connection.
    #[expect(clippy::needless_pass_by_value, reason = "callers read like sentences")]
    fn lent<T>(
        &self,
        work: impl AsyncFn(&mut Connection) -> Result<T, Fault>,
    ) -> Result<(T, Object<Connector>), StoreError> {
        let all = async {
            let mut again = self.pool.status().size;
            loop {
                let mut connection = self.pool.get().await?;
                match work(&mut connection).await {
                    Ok(result) => return Ok((result, connection)),
                    Err(fault) => {
                        let closed = fault.is_closed();
                        // Inside a transaction it may be anything.
                        drop(Object::take(connection));
                        if !closed || again == 0 {
                            return Err(fault);
                        }
                        again -= 1;
                    }
                }
            }
        };
        self.runtime.block_on(all).map_err(|fault: Fault| fault.of(&self.name))
    }

    /// Does something that sees one moment of the whole store.
    fn view<T>(
        &self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let ((), mut connection) =
            self.lent(async |connection| connection.batch(BEGIN_VIEW).await)?;
        let result = self.runtime.block_on(async {
            let result = work(&mut connection).await?;
            connection.batch("COMMIT").await?;
            Ok(result)
        });
        result.map_err(|fault: Fault| {
            drop(Object::take(connection));
            fault.of(&self.name)
        })
    }
}

async fn totals(connection: &mut Connection) -> Result<Vec<(NameKey, Totals)>, Fault> {
    let rows = connection
        .query(
            "SELECT spark_cluster, app_name, totals::text FROM spark_exporter.totals \
             ORDER BY spark_cluster, app_name",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let name = NameKey { cluster: row.try_get(0)?, app_name: row.try_get(1)? };
            let totals = from_json(|| totals_of(&name), row.try_get(2)?)?;
            Ok((name, totals))
        })
        .collect()
}

async fn meta(connection: &mut Connection) -> Result<Meta, Fault> {
    let sql = "SELECT created_ms, forgotten_ms FROM spark_exporter.meta";
    change::meta(&connection.query(sql, &[]).await?)
}

/// Some rows after `after`, in the order of their keys.
async fn rows_after(
    connection: &mut Connection,
    after: Option<&RunKey>,
) -> Result<Vec<tokio_postgres::Row>, Fault> {
    match after {
        None => {
            let sql = "SELECT spark_cluster, app_id, attempt_id, start_ms, record::text, \
                       summary::text FROM spark_exporter.runs \
                       ORDER BY spark_cluster, app_id, attempt_id, start_ms LIMIT $1";
            connection.query(sql, &[&AT_ONCE]).await
        }
        Some(RunKey { id, start_ms }) => {
            let attempt = id.attempt_id.as_deref().unwrap_or_default();
            let sql = "SELECT spark_cluster, app_id, attempt_id, start_ms, record::text, \
                       summary::text FROM spark_exporter.runs \
                       WHERE (spark_cluster, app_id, attempt_id, start_ms) > ($2, $3, $4, $5) \
                       ORDER BY spark_cluster, app_id, attempt_id, start_ms LIMIT $1";
            connection.query(sql, &[&AT_ONCE, &id.cluster, &id.app_id, &attempt, start_ms]).await
        }
    }
}

impl Backend for Postgres {
    fn begin(&self) -> Result<Box<dyn Change + '_>, StoreError> {
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
        let ((), connection) = self.lent(async |connection| connection.batch(begin).await)?;
        Ok(Box::new(PostgresChange::new(self, connection)))
    }

    fn about(&self) -> String {
        self.name.clone()
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn meta(&self) -> Result<Meta, StoreError> {
        self.with(meta)
    }

    fn totals(&self) -> Result<Vec<(NameKey, Totals)>, StoreError> {
        self.with(totals)
    }

    fn runs(&self, id: &RunId) -> Result<Vec<(RunKey, RunRecord)>, StoreError> {
        self.with(async |connection| change::runs_of(connection, id).await)
    }

    fn runs_by_name(
        &self,
        name: &NameKey,
        limit: usize,
    ) -> Result<Vec<(RunKey, StoredRun)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with(async |connection| {
            let rows = connection
                .query(
                    "SELECT spark_cluster, app_id, attempt_id, start_ms, record::text, \
                     summary::text FROM spark_exporter.runs \
                     WHERE spark_cluster = $1 AND app_name = $2 \
                     ORDER BY end_ms DESC, app_id DESC, attempt_id DESC, start_ms DESC LIMIT $3",
                    &[&text(&name.cluster), &text(&name.app_name), &limit],
                )
                .await?;
            rows.iter().map(rows::stored).collect()
        })
    }

    fn uncounted(&self) -> Result<Vec<(RunKey, RunRecord)>, StoreError> {
        self.with(async |connection| {
            let rows = connection
                .query(
                    "SELECT spark_cluster, app_id, attempt_id, start_ms, record::text \
                     FROM spark_exporter.runs WHERE counted = 'not_yet' \
                     ORDER BY spark_cluster, app_id, attempt_id, start_ms",
                    &[],
                )
                .await?;
            rows.iter()
                .map(|row| {
                    let key = rows::key(row)?;
                    let record = rows::record(&key, row, 4)?;
                    Ok((key, record))
                })
                .collect()
        })
    }

    fn logs(&self, cluster: &str, place: &str) -> Result<Vec<(LogSeen, i64)>, StoreError> {
        self.with(async |connection| {
            let rows = connection
                .query(
                    "SELECT record ->> 'log', read_at_ms FROM spark_exporter.runs \
                     WHERE spark_cluster = $1 AND md5(log_place) = md5($2) AND log_place = $2",
                    &[&text(cluster), &text(place)],
                )
                .await?;
            rows.iter()
                .map(|row| {
                    let log: LogSeen = from_json(|| format!("a log of {place}"), row.try_get(0)?)?;
                    Ok((log, row.try_get(1)?))
                })
                .collect()
        })
    }

    fn oldest(&self, limit: usize) -> Result<Vec<Oldest>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with(async |connection| {
            let rows = connection
                .query(
                    "SELECT spark_cluster, app_id, attempt_id, start_ms, since_ms, bytes \
                     FROM spark_exporter.runs ORDER BY since_ms LIMIT $1",
                    &[&limit],
                )
                .await?;
            rows.iter()
                .map(|row| {
                    let bytes: i64 = row.try_get(5)?;
                    let (key, since_ms) = (rows::key(row)?, row.try_get(4)?);
                    Ok(Oldest { key, since_ms, bytes: bytes.unsigned_abs() })
                })
                .collect()
        })
    }

    fn latest_end_ms(&self) -> Result<Option<i64>, StoreError> {
        self.with(async |connection| {
            let sql = "SELECT max(end_ms) FROM spark_exporter.runs";
            let rows = connection.query(sql, &[]).await?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
        })
    }

    fn delivered(&self, id: &RunId) -> Result<Vec<(RunKey, Delivered)>, StoreError> {
        if !self.has_delivered() {
            return Ok(Vec::new());
        }
        self.with(async |connection| delivered::of(connection, id).await)
    }

    fn delivered_before(&self, time_ms: i64, limit: usize) -> Result<Vec<RunKey>, StoreError> {
        if !self.has_delivered() {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with(async |connection| delivered::before(connection, time_ms, limit).await)
    }

    fn each_delivered(
        &self,
        each: &mut dyn FnMut(RunKey, Delivered) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if !self.has_delivered() {
            return Ok(());
        }
        self.view(async |connection| delivered::each(connection, each).await)?
    }

    fn size(&self) -> Result<Size, StoreError> {
        let there = self.has_delivered();
        self.with(async |connection| {
            let sql = "SELECT count(*), coalesce(sum(bytes), 0)::bigint, \
                       (SELECT count(*) FROM spark_exporter.totals), \
                       pg_total_relation_size('spark_exporter.runs') \
                       + pg_total_relation_size('spark_exporter.totals') \
                       + pg_total_relation_size('spark_exporter.meta') FROM spark_exporter.runs";
            let rows = connection.query(sql, &[]).await?;
            let Some(row) = rows.first() else { return Ok(Size::default()) };
            let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
            let [sent, sent_bytes, around] =
                if there { delivered::size(connection).await? } else { [0; 3] };
            Ok(Size {
                runs: number(0)?,
                run_bytes: number(1)?,
                names: number(2)?,
                delivered: sent,
                delivered_bytes: sent_bytes,
                total_bytes: Some(number(3)? + around),
            })
        })
    }

    /// The server's own vacuum does that.
    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn check(&self) -> Result<(), StoreError> {
        let there = self.has_delivered();
        let wrong: Wrong = self.view(async |connection| {
            let mut checked = Checked::default();
            let mut last = None;
            loop {
                let rows = rows_after(connection, last.as_ref()).await?;
                let Some(row) = rows.last() else { break };
                last = Some(rows::key(row)?);
                for row in &rows {
                    match rows::stored(row) {
                        Ok((key, run)) => checked.run(&key, &run.record),
                        Err(Fault::Damaged(why)) => checked.wrong.add(why),
                        Err(fault) => return Err(fault),
                    }
                }
            }
            if there {
                delivered::check(connection, &mut checked.wrong).await?;
            }
            let (totals, meta) = (totals(connection).await?, meta(connection).await?);
            Ok(checked.against(&totals, &meta))
        })?;
        wrong.into_result(&self.name)
    }

    fn each_run(
        &self,
        each: &mut dyn FnMut(RunKey, StoredRun) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut stopped = Ok(());
        self.view(async |connection| {
            let mut last = None;
            loop {
                let rows = rows_after(connection, last.as_ref()).await?;
                let Some(row) = rows.last() else { return Ok(()) };
                last = Some(rows::key(row)?);
                for row in &rows {
                    let (key, run) = rows::stored(row)?;
                    stopped = each(key, run);
                    if stopped.is_err() {
                        return Ok(());
                    }
                }
            }
        })?;
        stopped
    }
}
