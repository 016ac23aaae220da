//! The store in a real PostgreSQL: the suite of all back ends, two daemons at
//! once, and servers that are closed, gone, full or wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "store/server.rs"]
mod server;
mod store_suite;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use server::{Server, authority, runtime};
use spark_exporter::config::{Span, Storage};
use spark_exporter::store::postgres::Postgres;
use spark_exporter::store::{
    Backend, Keep, NameKey, Recorded, Store, StoreError, Totals, open, open_unchanged,
};
use store_suite::{Place, at, keep, key, name, run, runs_of, sent};

store_suite!(Server::shared().database());

fn file(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn store(storage: &Storage) -> Result<Store, StoreError> {
    open(storage, 100, runtime().handle())
}

fn record(store: &Store, app_id: &str) -> Result<Recorded, StoreError> {
    store.record(&key(app_id, 1), &run("etl", at(1_000_000_000)), at(0), at(1_000_000_000))
}

#[test]
fn two_daemons_with_the_same_runs_count_each_once() {
    const RUNS: u64 = 1_000;
    let database = Server::shared().database();
    let count = |from_behind: bool| {
        let store = database.store(Keep { names: 5, ..keep() });
        let mut counted = 0;
        for step in 0..RUNS {
            let number = if from_behind { RUNS - 1 - step } else { step };
            // Each sees starts a little differently, in names that are more
            // than may have totals.
            let start = 10_000 + if from_behind { 700 } else { 0 };
            let run = run(&format!("job-{}", number % 8), at(9));
            let recorded = store.record(&key(&format!("app-{number}"), start), &run, at(0), at(9));
            counted += u64::from(recorded.unwrap() == Recorded::Counted);
        }
        counted
    };
    let counted: Vec<u64> = std::thread::scope(|scope| {
        let both = [false, true].map(|behind| scope.spawn(move || count(behind)));
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(counted.iter().sum::<u64>(), RUNS, "{counted:?}");
    assert!(counted.iter().all(|one| *one > 0), "both at once: {counted:?}");
    let store = database.store(keep());
    let totals = store.totals().unwrap();
    assert_eq!(totals.values().map(runs_of).sum::<u64>(), RUNS);
    assert_eq!(totals.len(), 6, "five names, and the others");
    assert_eq!(store.backend().size().unwrap().runs, RUNS);
    store.backend().check().unwrap();
}

#[test]
fn what_two_daemons_sent_of_a_run_adds_up() {
    const PARTS: u64 = 200;
    let database = Server::shared().database();
    let send = |first: u64| {
        let store = database.store(keep());
        for part in (first..PARTS).step_by(2) {
            // Each has seen another start, and both send some parts.
            let key = key("app-1", 10_000 + first as i64 * 700);
            store.add_delivered(&key, &sent(&[part, part / 2], &["spill"]), at(9)).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for first in [0, 1] {
            scope.spawn(move || send(first));
        }
    });
    let store = database.store(keep());
    let all = store.backend().delivered(&key("app-1", 0).id).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].1.spans.jobs.len(), all[0].1.findings.len()), (PARTS, 1));
    store.backend().check().unwrap();
}

#[test]
fn a_store_of_the_version_before_gains_what_was_sent() {
    let database = Server::shared().database();
    record(&store(&database.storage()).unwrap(), "a").unwrap();
    database
        .execute("DROP TABLE spark_exporter.delivered; UPDATE spark_exporter.meta SET version = 1");
    // Who only looks at it finds nothing sent, and changes nothing.
    let looked_at = open_unchanged(&database.storage(), runtime().handle()).unwrap().unwrap();
    assert_eq!(looked_at.version(), 1);
    looked_at.check().unwrap();
    assert_eq!(looked_at.size().unwrap().delivered, 0);
    assert!(looked_at.delivered(&key("a", 1).id).unwrap().is_empty());
    looked_at.each_delivered(&mut |key, _| panic!("{key:?}")).unwrap();
    let store = store(&database.storage()).unwrap();
    assert_eq!(store.backend().version(), 2);
    store.add_delivered(&key("a", 1), &sent(&[1], &["spill"]), at(9)).unwrap();
    assert_eq!(store.backend().size().unwrap().delivered, 1);
    assert!(store.find(&key("a", 1)).unwrap().is_some(), "what was there is");
    store.backend().check().unwrap();
    database
        .execute("UPDATE spark_exporter.delivered SET delivered = '{\"at_ms\": 1, \"spans\": 7}'");
    let error = store.backend().check().unwrap_err();
    assert!(error.to_string().contains("what was sent of production/a"), "{error}");
}

#[test]
fn daemons_that_start_together_make_one_store() {
    for _ in 0..10 {
        start_together(&Server::shared().database());
    }
}

fn start_together(database: &server::Database) {
    let barrier = Barrier::new(4);
    let made: Vec<i64> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    database.open(at(number)).unwrap().meta().unwrap().created_ms
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(made.iter().all(|one| *one == made[0]), "{made:?}");
}

#[test]
fn who_is_in_the_way_of_the_other_is_told_and_the_store_tries_again() {
    let database = Server::shared().database();
    let (one, other) = (database.open(at(0)).unwrap(), database.open(at(0)).unwrap());
    let barrier = Barrier::new(2);
    let ends: Vec<Result<(), StoreError>> = std::thread::scope(|scope| {
        let all = [(&one, "a", "b"), (&other, "b", "a")].map(|(backend, first, second)| {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut change = backend.begin()?;
                change.totals(&name(first))?;
                barrier.wait();
                change.totals(&name(second))?;
                change.put_totals(&name(second), &Totals::default())?;
                change.commit()
            })
        });
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let failed: Vec<&StoreError> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
    assert!(matches!(failed[..], [StoreError::Contended { .. }]), "{ends:?}");
    // Its connection is used again.
    one.begin().unwrap().totals(&name("a")).unwrap();
    other.begin().unwrap().totals(&name("a")).unwrap();
}

#[test]
fn a_server_that_ends_and_comes_back_costs_what_was_under_way() {
    let mut server = Server::start(None, &["fsync=on"]);
    let database = server.database();
    let store = database.store(keep());
    record(&store, "before").unwrap();
    let before = store.totals().unwrap();
    for how in ["stop", "kill"] {
        // In the middle of a change.
        let mut change = store.backend().begin().unwrap();
        change.put_run(&key("never", 1), &run("etl", at(9))).unwrap();
        let etl = name("etl");
        change.put_totals(&etl, &Totals::default()).unwrap();
        if how == "kill" {
            server.say(how);
            let error = change.commit().unwrap_err();
            assert!(!error.is_unusable() && error.to_string().contains("reached"), "{error}");
        } else {
            drop(change);
            server.say(how);
        }
        for error in [record(&store, "during").unwrap_err(), store.totals().unwrap_err()] {
            assert!(!error.is_unusable(), "{how}: {error}");
            assert!(error.to_string().contains("cannot be reached"), "{how}: {error}");
        }
        server.say("start");
        assert_eq!(store.totals().unwrap(), before, "{how}");
        assert!(store.find(&key("never", 1)).unwrap().is_none());
    }
    assert_eq!(record(&store, "before").unwrap(), Recorded::Known);
    assert_eq!(record(&store, "during").unwrap(), Recorded::Counted);
    // A connection that ended while it lay in the pool costs nothing.
    server.say("stop");
    server.say("start");
    assert_eq!(record(&store, "after").unwrap(), Recorded::Counted);
    store.backend().check().unwrap();
}

#[test]
fn passwords_are_read_anew_and_never_repeated() {
    let database = Server::shared().database();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "password", "hunter2\n");
    let storage = Storage { password_file: Some(path.clone()), ..database.storage() };
    let error = store(&storage).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("password authentication failed"), "{text}");
    assert!(text.contains("password_file") && !text.contains("hunter2"), "{text}");
    file(folder.path(), "password", "secret\r\n");
    let store = store(&storage).unwrap();
    record(&store, "a").unwrap();
    std::fs::remove_file(&path).unwrap();
    // Connections that are there go on.
    record(&store, "b").unwrap();
    let error = self::store(&storage).unwrap_err();
    assert!(error.to_string().contains("password_file"), "{error}");
    assert!(!format!("{store:?}").contains("secret"), "{store:?}");
}

#[test]
fn tls_is_checked_to_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let ours = authority(folder.path(), "ours", "db.example.org");
    let others = authority(folder.path(), "others", "db.example.org");
    let server = Server::start(Some(&ours), &[]);
    let plain = server.database().storage();
    let error = store(&plain).unwrap_err();
    assert!(error.to_string().contains("no encryption"), "{error}");
    let with = |ca: &Path, server_name: Option<&str>| {
        let mut storage = plain.clone();
        let url = format!("{}?sslmode=verify-full", plain.url.as_ref().unwrap());
        storage.url = Some(url.parse().unwrap());
        storage.tls_config.ca_file = Some(ca.join("ca.pem"));
        storage.tls_config.server_name = server_name.map(str::to_owned);
        storage
    };
    let store = store(&with(&ours, Some("db.example.org"))).unwrap();
    record(&store, "a").unwrap();
    for (storage, why) in [
        (with(&others, Some("db.example.org")), "another authority"),
        (with(&ours, None), "another name"),
        (with(&ours, Some("db.example.com")), "another name"),
    ] {
        let error = self::store(&storage).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{why}: {error}");
        assert!(error.to_string().contains("ca_file"), "{why}: {error}");
    }
    let missing = with(folder.path(), None);
    let error = self::store(&missing).unwrap_err();
    assert!(error.is_unusable() && error.to_string().contains("ca.pem"), "{error}");
}

#[test]
fn connections_are_limited_and_waited_for() {
    let database = Server::shared().database();
    let mut storage = Storage { pool_size: 1, ..database.storage() };
    storage.connect_timeout = Span::seconds(1);
    storage.statement_timeout = Span::seconds(1);
    let store = Arc::new(store(&storage).unwrap());
    let held = store.backend().begin().unwrap();
    let started = Instant::now();
    let error = record(&store, "a").unwrap_err();
    assert!(error.to_string().contains("connections are busy"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(held);
    record(&store, "a").unwrap();
    // A lock that others hold for too long.
    let other = database.open(at(0)).unwrap();
    let mut held = other.begin().unwrap();
    held.runs(&key("b", 1).id).unwrap();
    let error = record(&store, "b").unwrap_err();
    assert!(error.to_string().contains("statement_timeout"), "{error}");
    drop(held);
    record(&store, "b").unwrap();
    // A server that takes no more.
    let server = Server::start(None, &["max_connections=5", "superuser_reserved_connections=1"]);
    let database = server.database();
    let stores: Vec<_> = (0..8).map(|_| database.open(at(0))).collect();
    let refused = stores.iter().find_map(|store| store.as_ref().err()).unwrap();
    assert!(!refused.is_unusable(), "{refused}");
    assert!(refused.to_string().contains("pool_size"), "{refused}");
    drop(stores);
}

#[test]
fn a_database_that_cannot_be_used_says_what_to_do() {
    let database = Server::shared().database();
    let unchanged =
        |storage: &Storage| open_unchanged(storage, runtime().handle()).map(|store| store.unwrap());
    let error = unchanged(&database.storage()).unwrap_err();
    assert!(error.is_unusable() && error.to_string().contains("no store in it yet"), "{error}");
    store(&database.storage()).unwrap();
    unchanged(&database.storage()).unwrap().check().unwrap();
    database.execute("UPDATE spark_exporter.meta SET version = 3");
    for error in
        [store(&database.storage()).unwrap_err(), unchanged(&database.storage()).unwrap_err()]
    {
        assert!(error.is_unusable() && error.to_string().contains("newer"), "{error}");
    }
    database.execute("UPDATE spark_exporter.meta SET version = 2");
    // A user who may do nothing, one who was given the schema.
    let other = Server::shared().database();
    other.execute("DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN PASSWORD 'secret'");
    let mut storage = other.storage();
    let url = storage.url.as_ref().unwrap().to_string().replace("postgres@", "poor@");
    storage.url = Some(url.parse().unwrap());
    let error = store(&storage).unwrap_err();
    assert!(error.is_unusable() && error.to_string().contains("needs CREATE"), "{error}");
    other.execute("CREATE SCHEMA spark_exporter AUTHORIZATION poor");
    record(&store(&storage).unwrap(), "a").unwrap();
    let missing = url.replace(other.name(), "nothing");
    storage.url = Some(missing.parse().unwrap());
    let error = store(&storage).unwrap_err();
    assert!(error.is_unusable() && error.to_string().contains("make the database"), "{error}");
    // Nobody there at all.
    storage.url = Some("postgres://me@127.0.0.1:1/spark".parse().unwrap());
    let error = store(&storage).unwrap_err();
    assert!(!error.is_unusable() && error.to_string().contains("cannot be reached"), "{error}");
    // Taken away while it is used.
    let store = database.store(keep());
    database.execute("DROP SCHEMA spark_exporter CASCADE");
    let error = record(&store, "a").unwrap_err();
    assert!(error.is_unusable() && error.to_string().contains("not as it was made"), "{error}");
}

#[test]
fn a_store_that_contradicts_itself_is_found() {
    let database = Server::shared().database();
    let store = database.store(keep());
    for number in 0..600 {
        let run = run(&format!("job-{}", number % 3), at(9));
        store.record(&key(&format!("app-{number}"), 1), &run, at(0), at(9)).unwrap();
    }
    store.backend().check().unwrap();
    database.execute("DELETE FROM spark_exporter.totals WHERE app_name = 'job-1'");
    let error = store.backend().check().unwrap_err();
    assert!(error.to_string().contains("job-1 has no totals, and 200 runs"), "{error}");
    database
        .execute("UPDATE spark_exporter.runs SET record = record - 'state' WHERE app_id = 'app-7'");
    let error = store.backend().check().unwrap_err();
    assert!(error.to_string().contains("app-7"), "{error}");
}

#[test]
fn people_look_into_it_by_the_command_line() {
    let database = Server::shared().database();
    let store = database.store(keep());
    for number in 0..300 {
        record(&store, &format!("app-{number}")).unwrap();
    }
    let url = database.storage().url.unwrap().to_string();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        command.args(["store"]).args(arguments).args(["--storage.url", &url]);
        command.env("PGPASSWORD", "secret").output().unwrap()
    };
    let output = run(&["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("is whole") && text.contains("runs:      300 ("), "{text}");
    let output = run(&["export"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 302);
    assert_eq!(lines[0]["meta"]["runs"], 300);
    assert_eq!(lines[1]["totals"]["totals"]["runs"][0], 300);
    let database_of = NameKey { cluster: "production".to_owned(), app_name: "etl".to_owned() };
    assert_eq!(lines[2]["run"]["spark_cluster"], database_of.cluster);
    database.execute("DELETE FROM spark_exporter.totals");
    assert_eq!(run(&["check"]).status.code(), Some(2));
}

/// So that a name of its own can be given to what is opened by hand above.
#[test]
fn what_is_shown_of_a_store_has_no_secret() {
    let database = Server::shared().database();
    let url = database.storage().url.unwrap();
    let backend =
        Postgres::open(&url, &database.storage(), Some(at(0)), runtime().handle()).unwrap();
    for text in [backend.about(), format!("{backend:?}")] {
        assert!(text.contains(database.name()) && !text.contains("secret"), "{text}");
    }
}
