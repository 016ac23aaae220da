//! Files that are no store of ours, or are one no more: refused with the
//! reason, left as they are, and never taken for an empty store.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use redb::TableDefinition;
use spark_exporter::store::embedded::Embedded;
use spark_exporter::store::{Backend, Keep, RunKey, Store, StoreError, StoredRun};

use super::store_suite::{self, Place, at, keep, key, run};
use super::{File, killed};

fn open(path: &Path) -> Result<Embedded, StoreError> {
    Embedded::open(path, at(0))
}

fn fill(path: &Path, runs: usize) {
    let store = Store::new(Box::new(open(path).unwrap()), keep());
    for number in 0..runs {
        let key = key(&format!("app-{number}"), 1);
        store.record(&key, &run(&format!("job-{}", number % 7), at(9)), at(0), at(9)).unwrap();
    }
}

fn all(store: &dyn Backend) -> Vec<(RunKey, StoredRun)> {
    let mut runs = Vec::new();
    store
        .each_run(&mut |key, run| {
            runs.push((key, run));
            Ok(())
        })
        .unwrap();
    runs
}

/// Opens what should be refused: says why, and checks that it was left alone.
fn refusal(path: &Path) -> StoreError {
    let before = std::fs::read(path).ok();
    let error = open(path).err().unwrap_or_else(|| panic!("{} was opened", path.display()));
    assert!(error.to_string().contains(path.to_str().unwrap()), "names the file: {error}");
    assert_eq!(std::fs::read(path).ok(), before, "left as it was: {error}");
    error
}

#[test]
fn what_is_not_a_store_is_refused_and_left_as_it_is() {
    let place = File::new();
    let mut sqlite = b"SQLite format 3\0".to_vec();
    sqlite.resize(8_192, 7);
    let mut begin_only = b"redb\x1A\x0A\xA9\x0D\x0A".to_vec();
    begin_only.resize(20_000, 0);
    for (bytes, part) in [
        (&b""[..], "it is empty"),
        (b"runs:\n- one\n", "not a store of spark-exporter"),
        (b"PK\x03\x04\x14\0\0\0\x08\0", "not a store of spark-exporter"),
        (&sqlite, "not a store of spark-exporter"),
        (b"redb", "not a store of spark-exporter"),
        (b"redb\x1A\x0A\xA9\x0D\x0A", "damaged"),
        (&begin_only, "damaged"),
    ] {
        std::fs::write(&place.path, bytes).unwrap();
        let error = refusal(&place.path);
        assert!(error.is_unusable() && error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let place = File::new();
    let database = redb::Database::create(&place.path).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: TableDefinition<'_, &str, u64> = TableDefinition::new("users");
    transaction.open_table(table).unwrap().insert("me", 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refusal(&place.path);
    assert!(error.is_unusable() && error.to_string().contains("another program"), "{error}");
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let place = File::new();
    fill(&place.path, 3);
    let database = redb::Database::open(&place.path).unwrap();
    let transaction = database.begin_write().unwrap();
    let meta: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
    let newer = 3_u64.to_le_bytes();
    transaction.open_table(meta).unwrap().insert("version", &newer[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refusal(&place.path);
    assert!(error.is_unusable() && error.to_string().contains("newer spark-exporter"), "{error}");
}

#[test]
fn a_store_of_the_version_before_gains_what_was_sent() {
    let place = File::new();
    fill(&place.path, 3);
    let database = redb::Database::open(&place.path).unwrap();
    let transaction = database.begin_write().unwrap();
    let delivered: TableDefinition<'_, (&str, &str, &str, i64), &[u8]> =
        TableDefinition::new("delivered");
    let by_age: TableDefinition<'_, (i64, &str, &str, &str, i64), ()> =
        TableDefinition::new("delivered_by_age");
    assert!(transaction.delete_table(delivered).unwrap());
    assert!(transaction.delete_table(by_age).unwrap());
    {
        let meta: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
        let mut meta = transaction.open_table(meta).unwrap();
        meta.insert("version", &1_u64.to_le_bytes()[..]).unwrap();
        meta.remove("delivered_bytes").unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    // Who only looks at it finds nothing sent, and changes nothing.
    let before = std::fs::read(&place.path).unwrap();
    let looked_at = Embedded::open_unchanged(&place.path).unwrap();
    assert_eq!(looked_at.version(), 1);
    looked_at.check().unwrap();
    assert_eq!(looked_at.size().unwrap().delivered, 0);
    assert!(looked_at.delivered(&key("app-0", 1).id).unwrap().is_empty());
    looked_at.each_delivered(&mut |key, _| panic!("{key:?}")).unwrap();
    drop(looked_at);
    assert!(std::fs::read(&place.path).unwrap() == before);
    let store = place.store(keep());
    assert_eq!(store.backend().version(), 2);
    let sent = store_suite::sent(&[1], &[]);
    store.add_delivered(&key("app-0", 1), &sent, at(9)).unwrap();
    assert_eq!(all(store.backend()).len(), 3);
    store.backend().check().unwrap();
    drop(store);
    let store = place.store(keep());
    assert!(store.delivered(&key("app-0", 1)).unwrap().is_some());
}

#[test]
fn a_path_that_cannot_be_a_store_says_what_to_do() {
    let place = File::new();
    let folder = place.path.parent().unwrap();
    for (path, part) in [
        (folder.to_owned(), "it is a folder"),
        (folder.join("not/there/store.db"), "make it"),
        (Path::new("/dev/null").to_owned(), "not a regular file"),
    ] {
        let error = open(&path).unwrap_err();
        assert!(error.is_unusable() && error.to_string().contains(part), "{error}");
    }
    let error = Embedded::open_unchanged(&place.path).unwrap_err();
    assert!(error.to_string().contains("no such file"), "{error}");
    assert!(!place.path.exists(), "looking makes nothing");
}

#[test]
fn a_new_store_is_for_its_owner_alone() {
    let place = File::new();
    fill(&place.path, 1);
    let mode = std::fs::metadata(&place.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let files = std::fs::read_dir(place.path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing else is left");
}

#[test]
fn a_file_cut_short_is_never_taken_for_a_store_with_less_in_it() {
    let place = File::new();
    fill(&place.path, 150);
    let bytes = std::fs::read(&place.path).unwrap();
    let whole = all(&open(&place.path).unwrap());
    assert_eq!(whole.len(), 150);
    let mut refused = 0;
    for length in (4_096..bytes.len()).step_by(4_096) {
        std::fs::write(&place.path, &bytes[..length]).unwrap();
        match open(&place.path) {
            Ok(store) => assert_eq!(all(&store), whole, "{length} of {}", bytes.len()),
            Err(error) => {
                assert!(error.is_unusable(), "{length}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_changed_byte_is_found_or_does_not_matter() {
    let place = File::new();
    fill(&place.path, 150);
    let whole = all(&open(&place.path).unwrap());
    let bytes = std::fs::read(&place.path).unwrap();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut refused = 0;
    // Half of them in the pages that hold most, half anywhere.
    for number in 0..300_usize {
        let mut changed = bytes.clone();
        let place_of = |random: &mut TestRng| random.next_u64() as usize % changed.len();
        let mut at = place_of(&mut random);
        while number % 2 == 0 && changed[at] == 0 {
            at = place_of(&mut random);
        }
        changed[at] ^= 1 << (random.next_u32() % 8);
        std::fs::write(&place.path, &changed).unwrap();
        match open(&place.path) {
            Ok(store) => {
                let found = all(&store);
                // The header has two sides, of which the older one may lack
                // the last change.
                assert!(found.len() + 1 >= whole.len(), "byte {at}: {} runs", found.len());
                assert!(found.iter().all(|run| whole.contains(run)), "byte {at}");
                store.check().unwrap_or_else(|error| panic!("byte {at}: {error}"));
            }
            Err(error) => {
                assert!(error.is_unusable(), "byte {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn one_process_has_it_for_itself() {
    let place = File::new();
    let first = open(&place.path).unwrap();
    for error in
        [open(&place.path).unwrap_err(), Embedded::open_unchanged(&place.path).unwrap_err()]
    {
        assert!(!error.is_unusable(), "may be over soon: {error}");
        assert!(error.to_string().contains("another process uses it"), "{error}");
    }
    drop(first);
    open(&place.path).unwrap();
}

#[test]
fn a_file_that_is_taken_away_is_noticed() {
    let place = File::new();
    let store = place.store(keep());
    store.record(&key("a", 1), &run("etl", at(9)), at(0), at(9)).unwrap();
    let aside = place.path.with_extension("aside");
    std::fs::rename(&place.path, &aside).unwrap();
    let record = || store.record(&key("b", 1), &run("etl", at(9)), at(0), at(9));
    let error = record().unwrap_err();
    assert!(!error.is_unusable() && error.to_string().contains("removed or replaced"), "{error}");
    assert!(!place.path.exists(), "no second store is begun");
    std::fs::rename(&aside, &place.path).unwrap();
    record().unwrap();
}

#[test]
fn looking_into_it_changes_nothing_not_even_after_a_crash() {
    let place = File::new();
    let acknowledged = killed::record_and_kill(&place.path, 0, 40);
    let before = std::fs::read(&place.path).unwrap();
    let store = Embedded::open_unchanged(&place.path).unwrap();
    assert!(all(&store).len() as u64 >= acknowledged);
    store.check().unwrap();
    drop(store);
    assert!(std::fs::read(&place.path).unwrap() == before);
    // A side that says more than it holds is noticed.
    let text = std::fs::read(&place.path).unwrap();
    std::fs::File::options()
        .append(true)
        .open(&place.path)
        .unwrap()
        .write_all(&text[..4_096])
        .unwrap();
    let _ = Embedded::open_unchanged(&place.path);
    assert_eq!(std::fs::metadata(&place.path).unwrap().len(), before.len() as u64 + 4_096);
}

#[test]
fn what_contradicts_itself_is_found_and_named() {
    let place = File::new();
    let store = place.store(keep());
    for number in 0..20 {
        let key = key(&format!("app-{number}"), 1);
        store.record(&key, &run("etl", at(9)), at(0), at(9)).unwrap();
    }
    drop(store);
    let database = redb::Database::open(&place.path).unwrap();
    let transaction = database.begin_write().unwrap();
    let by_end: TableDefinition<'_, (i64, &str, &str, &str, i64), ()> =
        TableDefinition::new("by_end");
    let end = at(9).as_millisecond();
    let lost = (end, "production", "app-7", "", 1);
    assert!(transaction.open_table(by_end).unwrap().remove(lost).unwrap().is_some());
    let sent: TableDefinition<'_, (&str, &str, &str, i64), &[u8]> =
        TableDefinition::new("delivered");
    let of_one = ("production", "app-5", "", 1);
    transaction.open_table(sent).unwrap().insert(of_one, &b"{}"[..]).unwrap();
    let runs: TableDefinition<'_, (&str, &str, &str, i64), &[u8]> = TableDefinition::new("runs");
    let odd = ("production", "app-3", "", 1);
    transaction.open_table(runs).unwrap().insert(odd, &b"{}"[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open(&place.path).unwrap().check().unwrap_err();
    for part in [
        "production/app-7",
        "the list by end",
        "production/app-3",
        "sum of all bytes",
        "what was sent of production/app-5",
        "the sum of its bytes",
    ] {
        assert!(error.is_unusable() && error.to_string().contains(part), "{part}: {error}");
    }
    // What can be read goes on being read.
    let store = place.store(keep());
    assert!(store.find(&key("app-7", 1)).unwrap().is_some());
    let error = store.find(&key("app-3", 1)).unwrap_err();
    assert!(error.to_string().contains("production/app-3"), "{error}");
}

#[test]
fn much_that_is_forgotten_gives_its_space_back() {
    let place = File::new();
    let store = place.store(Keep { size: Some(1 << 20), ..keep() });
    let mut big = run("etl", at(9));
    // What zstd cannot pack.
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut text: Vec<u8> = (0..400_000).map(|_| b' ' + (random.next_u32() % 90) as u8).collect();
    for number in 0..60 {
        text.rotate_left(1);
        big.summary.spark_version = String::from_utf8(text.clone()).ok();
        store.record(&key(&format!("app-{number}"), 1), &big, at(0), at(9)).unwrap();
    }
    let length = || std::fs::metadata(&place.path).unwrap().len();
    let before = length();
    assert!(before > 20 << 20, "{before}");
    assert!(store.forget(at(10)).unwrap() >= 57);
    assert!(length() < before / 3, "{} of {before}", length());
    store.record(&key("after", 1), &run("etl", at(11)), at(0), at(11)).unwrap();
    store.backend().check().unwrap();
}
