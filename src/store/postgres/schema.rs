//! The tables, and how they come to be: each version's step once, by one
//! daemon at a time.

use jiff::Timestamp;

use super::connect::Connection;
use super::fault::Fault;
use crate::store::Meta;

/// Of the tables below. A change of them is a new version, with a step in
/// [`prepare`].
///
/// - 1: runs and totals.
/// - 2: what was sent of runs.
pub(super) const VERSION: u32 = 2;

/// Of the lock that one daemon at a time makes tables under: any number that
/// nobody else takes.
const LOCK: i64 = 0x7370_6172_6b5f_6578;

/// Texts are ordered by their bytes, as everywhere else. What people ask by is
/// taken out of the record by the server, so that it cannot differ from it.
const MAKE: &str = r#"
CREATE TABLE spark_exporter.meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    created_ms bigint NOT NULL,
    forgotten_ms bigint NOT NULL
);
CREATE TABLE spark_exporter.runs (
    spark_cluster text COLLATE "C" NOT NULL,
    app_id text COLLATE "C" NOT NULL,
    attempt_id text COLLATE "C" NOT NULL,
    start_ms bigint NOT NULL,
    record jsonb NOT NULL,
    summary jsonb NOT NULL,
    app_name text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'app_name') STORED,
    total_name text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'total_name') STORED,
    counted text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'counted') STORED,
    end_ms bigint NOT NULL GENERATED ALWAYS AS ((record ->> 'end_ms')::bigint) STORED,
    read_at_ms bigint NOT NULL GENERATED ALWAYS AS ((record ->> 'read_at_ms')::bigint) STORED,
    since_ms bigint NOT NULL GENERATED ALWAYS AS
        (greatest((record ->> 'end_ms')::bigint, (record ->> 'read_at_ms')::bigint)) STORED,
    log_place text COLLATE "C" GENERATED ALWAYS AS (record -> 'log' ->> 'place') STORED,
    bytes bigint NOT NULL GENERATED ALWAYS AS
        (octet_length(record::text) + octet_length(summary::text)) STORED,
    PRIMARY KEY (spark_cluster, app_id, attempt_id, start_ms)
);
CREATE INDEX runs_by_name ON spark_exporter.runs (spark_cluster, app_name, end_ms);
CREATE INDEX runs_by_age ON spark_exporter.runs (since_ms);
CREATE INDEX runs_by_end ON spark_exporter.runs (end_ms);
CREATE INDEX runs_by_place ON spark_exporter.runs (spark_cluster, md5(log_place));
CREATE INDEX runs_uncounted ON spark_exporter.runs (spark_cluster) WHERE counted = 'not_yet';
CREATE TABLE spark_exporter.totals (
    spark_cluster text COLLATE "C" NOT NULL,
    app_name text COLLATE "C" NOT NULL,
    totals jsonb NOT NULL,
    PRIMARY KEY (spark_cluster, app_name)
);
COMMENT ON SCHEMA spark_exporter IS 'Store of spark-exporter: see docs/history.md';
"#;

/// From version 1 to 2.
const MAKE_DELIVERED: &str = r#"
CREATE TABLE spark_exporter.delivered (
    spark_cluster text COLLATE "C" NOT NULL,
    app_id text COLLATE "C" NOT NULL,
    attempt_id text COLLATE "C" NOT NULL,
    start_ms bigint NOT NULL,
    delivered jsonb NOT NULL,
    at_ms bigint NOT NULL GENERATED ALWAYS AS ((delivered ->> 'at_ms')::bigint) STORED,
    bytes bigint NOT NULL GENERATED ALWAYS AS (octet_length(delivered::text)) STORED,
    PRIMARY KEY (spark_cluster, app_id, attempt_id, start_ms)
);
CREATE INDEX delivered_by_age ON spark_exporter.delivered (at_ms);
"#;

/// Sees that the tables are there and of a version that we know, and says
/// which. `made`: the time at which they are made where they are not there;
/// `None`: nothing is made or changed.
pub(super) async fn prepare(
    connection: &mut Connection,
    made: Option<Timestamp>,
) -> Result<u32, Fault> {
    let encoding = connection.query("SHOW server_encoding", &[]).await?;
    let encoding: String = encoding.first().map_or_else(String::new, |row| row.get(0));
    if encoding != "UTF8" {
        return Err(Fault::Refused(format!(
            "the encoding of the database is {encoding}: make it with ENCODING 'UTF8'"
        )));
    }
    if let Some(version) = version(connection).await? {
        known(version)?;
        if version == VERSION || made.is_none() {
            return Ok(version);
        }
    }
    let Some(now) = made else {
        return Err(Fault::Refused(
            "there is no store in it yet: the daemon makes one when it starts with this URL"
                .to_owned(),
        ));
    };
    connection.batch("BEGIN").await?;
    let done = make(connection, now).await;
    connection.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    done.map(|()| VERSION)
}

async fn make(connection: &mut Connection, now: Timestamp) -> Result<(), Fault> {
    connection.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Perhaps somebody else was faster.
    if let Some(version) = version(connection).await? {
        return migrate(connection, version).await;
    }
    let there = connection
        .query("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'spark_exporter')", &[]);
    if !there.await?.first().is_some_and(|row| row.get(0)) {
        connection.batch("CREATE SCHEMA spark_exporter").await?;
    }
    connection.batch(MAKE).await?;
    connection.batch(MAKE_DELIVERED).await?;
    let Meta { created_ms, forgotten_ms } = Meta::begun(now);
    connection
        .query(
            "INSERT INTO spark_exporter.meta (version, created_ms, forgotten_ms) \
             VALUES ($1, $2, $3)",
            &[&(VERSION as i32), &created_ms, &forgotten_ms],
        )
        .await?;
    Ok(())
}

/// Brings the tables from an older version to [`VERSION`], inside the
/// transaction that is open.
async fn migrate(connection: &mut Connection, from: u32) -> Result<(), Fault> {
    known(from)?;
    // One step a version, from N to N + 1.
    if from < 2 {
        connection.batch(MAKE_DELIVERED).await?;
    }
    let version = VERSION as i32;
    connection.query("UPDATE spark_exporter.meta SET version = $1", &[&version]).await?;
    Ok(())
}

async fn version(connection: &mut Connection) -> Result<Option<u32>, Fault> {
    // Not by to_regclass, which may answer from before the lock was waited for.
    let there = connection.query(
        "SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
         WHERE nspname = 'spark_exporter' AND relname = 'meta')",
        &[],
    );
    if !there.await?.first().is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    let rows = connection.query("SELECT version FROM spark_exporter.meta", &[]).await?;
    let version = rows.first().and_then(|row| row.try_get::<_, i32>(0).ok());
    match version.and_then(|version| u32::try_from(version).ok()) {
        Some(version) => Ok(Some(version)),
        None => Err(Fault::Damaged("it does not say its version".to_owned())),
    }
}

fn known(version: u32) -> Result<(), Fault> {
    match version {
        1..=VERSION => Ok(()),
        0 => Err(Fault::Damaged("version 0 of it never was".to_owned())),
        _ => Err(Fault::Refused(format!(
            "it is of version {version}, made by a newer spark-exporter; this one knows up to \
             version {VERSION}: run the newer one, or give another database"
        ))),
    }
}
