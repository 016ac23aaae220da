//! What every back end of the store must do: one suite, run against each of
//! them (`store_suite!`).

#![allow(dead_code, reason = "not every test that has this module uses all of it")]

pub(crate) mod model;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use spark_exporter::diagnose::RunSummary;
use spark_exporter::model::{Kind, RunId, Source, State};
use spark_exporter::store::{
    Amounts, Backend, Counted, Delivered, FindingNews, Keep, LogSeen, NameKey, News, OVERFLOW_NAME,
    Recorded, RunKey, RunRecord, SETTLED_AFTER, SentFinding, Store, StoreError, StoredRun, Totals,
};

/// Somewhere a store can be, and still is when it is opened again.
pub(crate) trait Place {
    /// `now`: when it is made, where it is not there yet.
    fn open(&self, now: Timestamp) -> Result<Box<dyn Backend>, StoreError>;

    fn store(&self, keep: Keep) -> Store {
        Store::new(self.open(at(0)).expect("opened"), keep)
    }
}

/// Makes a test of each case of the suite, for places made by `$place`.
#[macro_export]
macro_rules! store_suite {
    ($place:expr) => {
        store_suite!(@ $place =>
            a_run_is_counted_once, a_better_reading_leaves_the_totals_alone,
            what_nobody_saw_end_is_counted_later, history_is_never_counted,
            a_name_begins_before_its_first_run, what_is_old_is_forgotten,
            the_largest_memory_is_kept_to, a_clock_that_jumps_forgets_nothing,
            a_run_of_the_future_makes_nothing_history, names_are_bounded,
            the_same_id_with_another_start_is_another_run, an_unknown_start_is_the_only_run,
            everything_is_there_when_it_is_opened_again, what_is_not_committed_never_was,
            what_was_sent_adds_up, what_was_sent_is_forgotten_with_the_run,
            what_was_sent_is_there_when_it_is_opened_again,
            what_was_sent_of_runs_that_are_not_stored_goes_by_age,
            logs_are_found_by_their_place, the_latest_of_a_name_come_first,
            any_text_is_kept, totals_that_do_not_add_up_are_found, totals_stay_as_long_as_a_run_of_theirs);
        $crate::store_suite!(@ $place => any_order_adds_up_the_same);
    };
    (@ $place:expr => $($case:ident),+) => { $(
        #[test]
        fn $case() {
            let place = $place;
            store_suite::$case(&place);
        }
    )+ };
}

/// Seconds after the store was made.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).expect("a time")
}

pub(crate) fn keep() -> Keep {
    Keep { time: Duration::from_hours(30 * 24), size: None, names: 100 }
}

pub(crate) fn key(app_id: &str, start_ms: i64) -> RunKey {
    let id =
        RunId { cluster: "production".to_owned(), app_id: app_id.to_owned(), attempt_id: None };
    RunKey { id, start_ms }
}

pub(crate) fn name(app_name: &str) -> NameKey {
    NameKey { cluster: "production".to_owned(), app_name: app_name.to_owned() }
}

/// A run that succeeded after ten minutes, read from its log.
pub(crate) fn run(app_name: &str, end: Timestamp) -> StoredRun {
    let record = RunRecord {
        app_name: app_name.to_owned(),
        total_name: String::new(),
        state: State::Succeeded,
        kind: Kind::Batch,
        source: Source::EventLog,
        end_seen: true,
        ended_well: true,
        proof: 0,
        end_ms: end.as_millisecond(),
        read_at_ms: 0,
        duration_ms: Some(600_000),
        amounts: Amounts { bought_core_ms: 1_000, input_bytes: 7, ..Amounts::default() },
        findings: BTreeMap::from([("spill".to_owned(), 2)]),
        counted: Counted::NotYet,
        log: None,
    };
    let summary = RunSummary { spark_version: Some("4.0.1".to_owned()), ..RunSummary::default() };
    StoredRun { record, summary }
}

/// The same, gone without an end.
pub(crate) fn lost(app_name: &str, end: Timestamp) -> StoredRun {
    let mut run = run(app_name, end);
    run.record.end_seen = false;
    run.record.ended_well = false;
    run.record.state = State::Lost;
    run
}

pub(crate) fn runs_of(totals: &Totals) -> u64 {
    totals.runs.iter().sum()
}

fn total(store: &Store, app_name: &str) -> Totals {
    store.totals().expect("totals").remove(&name(app_name)).unwrap_or_default()
}

fn sound(store: &Store) {
    store.backend().check().expect("the store agrees with itself");
}

pub(crate) fn a_run_is_counted_once(place: &dyn Place) {
    let store = place.store(keep());
    let (key, mut run) = (key("app-1", 5_000), run("etl", at(100)));
    let record = |run: &StoredRun| store.record(&key, run, at(90), at(200)).expect("recorded");
    assert_eq!(record(&run), Recorded::Counted);
    assert_eq!(record(&run), Recorded::Known);
    // Another source, whose clock is a little off; and worse ones.
    let other = RunKey { start_ms: 5_900, ..key.clone() };
    run.record.source = Source::HistoryServer;
    assert_eq!(store.record(&other, &run, at(90), at(200)).expect("recorded"), Recorded::Known);
    // An empty attempt is none.
    let mut empty = key.clone();
    empty.id.attempt_id = Some(String::new());
    assert_eq!(store.record(&empty, &run, at(90), at(200)).expect("recorded"), Recorded::Known);
    // A second attempt is another run.
    let mut second = key.clone();
    second.id.attempt_id = Some("2".to_owned());
    assert_eq!(store.record(&second, &run, at(90), at(200)).expect("ok"), Recorded::Counted);
    let totals = total(&store, "etl");
    assert_eq!((runs_of(&totals), totals.amounts.input_bytes), (2, 14));
    assert_eq!(totals.findings["spill"].runs, 2);
    assert_eq!(totals.last_end_ms, Some(at(100).as_millisecond()));
    let size = store.backend().size().expect("size");
    assert_eq!((size.runs, size.names), (2, 1));
    assert!(size.run_bytes > 100, "{size:?}");
    sound(&store);
}

pub(crate) fn a_better_reading_leaves_the_totals_alone(place: &dyn Place) {
    let store = place.store(keep());
    let key = key("app-1", 5_000);
    let mut first = run("etl", at(100));
    first.record.source = Source::Driver;
    let mut better = run("etl", at(101));
    better.record.amounts.input_bytes = 99;
    better.record.log = Some(LogSeen {
        place: "/logs".to_owned(),
        key: "app-1".to_owned(),
        bytes: 10,
        modified_ms: 20,
    });
    assert_eq!(store.record(&key, &first, at(0), at(200)).expect("ok"), Recorded::Counted);
    assert_eq!(store.record(&key, &better, at(0), at(300)).expect("ok"), Recorded::Improved);
    let known = store.find(&key).expect("ok").expect("there");
    assert_eq!(known.amounts.input_bytes, 99);
    assert_eq!(known.read_at_ms, at(200).as_millisecond(), "when it was read first");
    assert_eq!(known.counted, Counted::Yes);
    assert_eq!(total(&store, "etl").amounts.input_bytes, 7);
    assert_eq!(runs_of(&total(&store, "etl")), 1);
    // A worse one that comes later changes nothing, and a log is not lost.
    assert_eq!(store.record(&key, &first, at(0), at(400)).expect("ok"), Recorded::Known);
    assert_eq!(store.find(&key).expect("ok").expect("there").log, better.record.log);
    sound(&store);
}

pub(crate) fn what_nobody_saw_end_is_counted_later(place: &dyn Place) {
    let store = place.store(keep());
    let (gone, back, ended) = (key("gone", 1_000), key("back", 1_000), key("ended", 1_000));
    for key in [&gone, &back, &ended] {
        let recorded = store.record(key, &lost("etl", at(100)), at(0), at(200)).expect("ok");
        assert_eq!(recorded, Recorded::Kept);
    }
    assert_eq!(runs_of(&total(&store, "etl")), 0);
    let uncounted = store.backend().uncounted().expect("ok");
    assert_eq!(uncounted.len(), 3);
    let soon = at(200) + SETTLED_AFTER - Duration::from_secs(1);
    assert_eq!(store.settle(soon, &|_| false).expect("ok"), 0);
    // Its end turns up in its log: counted as that, at once and once.
    let recorded = store.record(&ended, &run("etl", at(300)), at(0), at(400)).expect("ok");
    assert_eq!(recorded, Recorded::Counted);
    let later = at(200) + SETTLED_AFTER;
    assert_eq!(store.settle(later, &|key| *key == back).expect("ok"), 1);
    assert_eq!(store.settle(later, &|key| *key == back).expect("ok"), 0);
    let totals = total(&store, "etl");
    assert_eq!(runs_of(&totals), 2);
    assert_eq!((totals.runs[0], totals.runs[4]), (1, 1), "one succeeded, one lost");
    // Too late: it stays counted as lost, once.
    let recorded = store.record(&gone, &run("etl", at(500)), at(0), at(9_000)).expect("ok");
    assert_eq!(recorded, Recorded::Improved);
    assert_eq!(runs_of(&total(&store, "etl")), 2);
    assert_eq!(store.backend().uncounted().expect("ok").len(), 1);
    sound(&store);
}

pub(crate) fn history_is_never_counted(place: &dyn Place) {
    let store = place.store(keep());
    let old = key("old", 1_000);
    assert_eq!(store.record(&old, &run("etl", at(-5)), at(0), at(1)).expect("ok"), Recorded::Kept);
    // Nor when more is read of it, nor when nobody saw its end.
    let lost = lost("etl", at(-3));
    assert_eq!(store.record(&key("l", 1_000), &lost, at(0), at(1)).expect("ok"), Recorded::Kept);
    assert_eq!(store.settle(at(90_000), &|_| false).expect("ok"), 0);
    let totals = total(&store, "etl");
    assert_eq!(runs_of(&totals), 0);
    assert_eq!(totals.last_success_ms, Some(at(-5).as_millisecond()));
    let baseline = store.backend().runs_by_name(&name("etl"), 10).expect("ok");
    assert_eq!(baseline.len(), 2, "kept, to be compared with");
    sound(&store);
}

pub(crate) fn a_name_begins_before_its_first_run(place: &dyn Place) {
    let store = place.store(keep());
    store.record(&key("a", 1), &run("etl", at(500)), at(100), at(600)).expect("ok");
    store.record(&key("b", 1), &run("etl", at(550)), at(580), at(620)).expect("ok");
    let totals = total(&store, "etl");
    assert_eq!(totals.since_ms, at(100).as_millisecond());
    assert_eq!(totals.findings["spill"].since_ms, at(600).as_millisecond());
}

pub(crate) fn what_is_old_is_forgotten(place: &dyn Place) {
    let store = place.store(Keep { time: Duration::from_hours(1), ..keep() });
    for number in 0..450 {
        let end = at(1_000 + number);
        store.record(&key(&format!("app-{number}"), 1), &run("etl", end), at(0), end).expect("ok");
    }
    assert_eq!(store.forget(at(1_000)).expect("ok"), 0);
    // The first 430 are older than an hour.
    assert_eq!(store.forget(at(1_000 + 430 + 3_600)).expect("ok"), 430);
    let size = store.backend().size().expect("ok");
    assert_eq!((size.runs, size.names), (20, 1));
    assert_eq!(runs_of(&total(&store, "etl")), 450, "counters do not go back");
    // One that was forgotten turns up again: history.
    let again = store.record(&key("app-7", 1), &run("etl", at(1_007)), at(0), at(5_100));
    assert_eq!(again.expect("ok"), Recorded::Kept);
    assert_eq!(runs_of(&total(&store, "etl")), 450);
    sound(&store);
    // And the name, once it had no run for so long.
    store.record(&key("new", 1), &run("other", at(90_000)), at(0), at(90_000)).expect("ok");
    store.forget(at(90_000)).expect("ok");
    assert_eq!(store.totals().expect("ok").into_keys().collect::<Vec<_>>(), [name("other")]);
    sound(&store);
}

pub(crate) fn the_largest_memory_is_kept_to(place: &dyn Place) {
    let all = place.store(keep());
    for number in 0..40 {
        let end = at(1_000 + number);
        all.record(&key(&format!("app-{number:02}"), 1), &run("etl", end), at(0), end).expect("ok");
    }
    let bytes = all.backend().size().expect("ok").run_bytes;
    drop(all);
    let store = place.store(Keep { size: Some(bytes / 2), ..keep() });
    assert_eq!(store.forget(at(1_100)).expect("ok"), 20);
    assert!(store.backend().size().expect("ok").run_bytes <= bytes / 2);
    let oldest = store.backend().oldest(1).expect("ok");
    assert_eq!(oldest[0].key, key("app-20", 1));
    sound(&store);
}

pub(crate) fn a_clock_that_jumps_forgets_nothing(place: &dyn Place) {
    let store = place.store(keep());
    store.record(&key("a", 1), &run("etl", at(100)), at(0), at(100)).expect("ok");
    let in_ten_years = at(10 * 365 * 86_400);
    assert_eq!(store.forget(in_ten_years).expect("ok"), 0);
    assert_eq!(store.forget(at(-10 * 365 * 86_400)).expect("ok"), 0);
    assert_eq!(store.backend().size().expect("ok").runs, 1);
}

pub(crate) fn a_run_of_the_future_makes_nothing_history(place: &dyn Place) {
    let store = place.store(Keep { size: Some(1), ..keep() });
    let in_a_year = at(365 * 86_400);
    store.record(&key("ahead", 1), &run("etl", in_a_year), at(0), at(100)).expect("ok");
    assert_eq!(store.forget(at(200)).expect("ok"), 1);
    let recorded = store.record(&key("a", 1), &run("etl", at(300)), at(0), at(400)).expect("ok");
    assert_eq!(recorded, Recorded::Counted);
}

pub(crate) fn names_are_bounded(place: &dyn Place) {
    let store = place.store(Keep { names: 2, ..keep() });
    for (app_id, app_name) in [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d"), ("5", "a")] {
        let recorded = store.record(&key(app_id, 1), &run(app_name, at(9)), at(0), at(9));
        assert_eq!(recorded.expect("ok"), Recorded::Counted);
    }
    let totals = store.totals().expect("ok");
    let counts: Vec<(&str, u64)> =
        totals.iter().map(|(name, totals)| (name.app_name.as_str(), runs_of(totals))).collect();
    assert_eq!(counts, [(OVERFLOW_NAME, 2), ("a", 2), ("b", 1)]);
    // What it is compared with stays its own.
    assert_eq!(store.backend().runs_by_name(&name("c"), 9).expect("ok").len(), 1);
    sound(&store);
}

pub(crate) fn the_same_id_with_another_start_is_another_run(place: &dyn Place) {
    let store = place.store(keep());
    for start in [10_000, 11_500, 13_000] {
        let recorded = store.record(&key("app-1", start), &run("etl", at(9)), at(0), at(9));
        assert_eq!(recorded.expect("ok"), Recorded::Counted, "{start}");
    }
    // Between two of them: it is the nearer one.
    let mut between = run("etl", at(9));
    between.record.log =
        Some(LogSeen { place: "p".to_owned(), key: "k".to_owned(), bytes: 1, modified_ms: 1 });
    let recorded = store.record(&key("app-1", 10_800), &between, at(0), at(9)).expect("ok");
    assert_eq!(recorded, Recorded::Known);
    let runs = store.backend().runs(&key("app-1", 0).id).expect("ok");
    let logs: Vec<bool> = runs.iter().map(|(_, record)| record.log.is_some()).collect();
    assert_eq!(logs, [false, true, false]);
    assert_eq!(runs_of(&total(&store, "etl")), 3);
    sound(&store);
}

pub(crate) fn an_unknown_start_is_the_only_run(place: &dyn Place) {
    let store = place.store(keep());
    let mut first = run("etl", at(9));
    first.record.source = Source::Driver;
    let mut ours = key("app-1", 0);
    assert_eq!(store.record(&ours, &first, at(0), at(9)).expect("ok"), Recorded::Counted);
    // A better reading tells the start: the run has it from now on.
    ours.start_ms = 50_000;
    let recorded = store.record(&ours, &run("etl", at(9)), at(0), at(9)).expect("ok");
    assert_eq!(recorded, Recorded::Improved);
    let recorded = store.record(&key("app-1", 0), &first, at(0), at(9)).expect("ok");
    assert_eq!(recorded, Recorded::Known);
    let runs = store.backend().runs(&ours.id).expect("ok");
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].0, ours);
    assert_eq!(runs_of(&total(&store, "etl")), 1);
    sound(&store);
}

pub(crate) fn everything_is_there_when_it_is_opened_again(place: &dyn Place) {
    let store = place.store(keep());
    for number in 0..30 {
        let app_name = format!("job-{}", number % 3);
        let mut run = if number % 5 == 0 { lost(&app_name, at(9)) } else { run(&app_name, at(9)) };
        run.record.amounts.cost = Some(f64::from(number) * 0.1);
        store.record(&key(&format!("app-{number}"), 1), &run, at(0), at(10)).expect("ok");
    }
    let all = |store: &Store| {
        let mut runs = Vec::new();
        store
            .backend()
            .each_run(&mut |key, run| {
                runs.push((key, run));
                Ok(())
            })
            .expect("ok");
        assert!(runs.is_sorted_by_key(|(key, _)| key.clone()));
        let backend = store.backend();
        let meta = backend.meta().expect("ok");
        let uncounted = backend.uncounted().expect("ok");
        (runs, store.totals().expect("ok"), meta, uncounted, backend.latest_end_ms().expect("ok"))
    };
    let before = all(&store);
    assert_eq!((before.0.len(), before.1.len(), before.3.len()), (30, 3, 6));
    assert_eq!(before.2.created_ms, at(0).as_millisecond());
    drop(store);
    // Made at the time when it was made first, whenever that is.
    let store = Store::new(place.open(at(1_000_000)).expect("opened"), keep());
    assert_eq!(all(&store), before);
    let recorded = store.record(&key("app-7", 1), &run("job-1", at(9)), at(0), at(10));
    assert_eq!(recorded.expect("ok"), Recorded::Known);
    sound(&store);
}

pub(crate) fn what_is_not_committed_never_was(place: &dyn Place) {
    let store = place.store(keep());
    store.record(&key("a", 1), &run("etl", at(9)), at(0), at(9)).expect("ok");
    let size = || {
        let size = store.backend().size().expect("ok");
        (size.runs, size.names, size.run_bytes)
    };
    let before = size();
    let mut change = store.backend().begin().expect("ok");
    change.put_run(&key("b", 1), &run("etl", at(9))).expect("ok");
    change.remove_run(&key("a", 1)).expect("ok");
    change.put_totals(&name("x"), &Totals::default()).expect("ok");
    assert_eq!(change.runs(&key("b", 1).id).expect("ok").len(), 1, "it sees itself");
    assert_eq!(size(), before, "and nobody else does");
    drop(change);
    assert_eq!(size(), before);
    assert!(store.find(&key("b", 1)).expect("ok").is_none());
    sound(&store);
}

pub(crate) fn logs_are_found_by_their_place(place: &dyn Place) {
    let store = place.store(keep());
    for (number, place) in ["/logs", "/logs", "/logs/more", "s3://logs"].into_iter().enumerate() {
        let mut run = run("etl", at(9));
        run.record.log = Some(LogSeen {
            place: place.to_owned(),
            key: format!("app-{number}"),
            bytes: 1_000 + number as u64,
            modified_ms: 5,
        });
        store.record(&key(&format!("app-{number}"), 1), &run, at(0), at(10)).expect("ok");
    }
    let mut logs = store.backend().logs("production", "/logs").expect("ok");
    logs.sort_by(|one, other| one.0.key.cmp(&other.0.key));
    let seen: Vec<(&str, u64, i64)> =
        logs.iter().map(|(log, read_at)| (log.key.as_str(), log.bytes, *read_at)).collect();
    let read = at(10).as_millisecond();
    assert_eq!(seen, [("app-0", 1_000, read), ("app-1", 1_001, read)]);
    assert!(store.backend().logs("test", "/logs").expect("ok").is_empty());
}

pub(crate) fn the_latest_of_a_name_come_first(place: &dyn Place) {
    let store = place.store(keep());
    for number in 0..9 {
        let app_name = ["etl", "etl2", "et"][number as usize % 3];
        let run = run(app_name, at(10 + number));
        store.record(&key(&format!("app-{number}"), 1), &run, at(0), at(30)).expect("ok");
    }
    let latest = store.backend().runs_by_name(&name("etl"), 2).expect("ok");
    let ids: Vec<&str> = latest.iter().map(|(key, _)| key.id.app_id.as_str()).collect();
    assert_eq!(ids, ["app-6", "app-3"]);
    assert_eq!(latest[0].1.summary.spark_version.as_deref(), Some("4.0.1"));
}

pub(crate) fn any_text_is_kept(place: &dyn Place) {
    let store = place.store(keep());
    for (number, text) in
        ["'; DROP TABLE runs; --", "a\\u0000b", "\u{1F525} \"quoted\"\n\t", "\u{FFFF}", "%_"]
            .into_iter()
            .enumerate()
    {
        let mut run = run(text, at(9));
        run.summary.spark_version = Some(text.to_owned());
        let key = key(text, number as i64 * 10_000);
        assert_eq!(store.record(&key, &run, at(0), at(9)).expect(text), Recorded::Counted);
        assert_eq!(store.record(&key, &run, at(0), at(9)).expect(text), Recorded::Known);
        let named = store.backend().runs_by_name(&name(text), 9).expect(text);
        assert_eq!(named.len(), 1, "{text:?}");
        assert_eq!(named[0].1.summary, run.summary);
        assert_eq!(runs_of(&total(&store, text)), 1, "{text:?}");
    }
    // A byte 0 need not come back as it was, but counts once too.
    let (key, run) = (key("app\0", 1), run("etl\0", at(9)));
    assert_eq!(store.record(&key, &run, at(0), at(9)).expect("ok"), Recorded::Counted);
    assert_eq!(store.record(&key, &run, at(0), at(9)).expect("ok"), Recorded::Known);
    assert!(store.find(&key).expect("ok").is_some());
    sound(&store);
}

pub(crate) fn totals_that_do_not_add_up_are_found(place: &dyn Place) {
    let store = place.store(keep());
    for app_id in ["a", "b"] {
        store.record(&key(app_id, 1), &run("etl", at(9)), at(0), at(9)).expect("ok");
    }
    sound(&store);
    for (runs, part) in [(1, "of 1 runs, of which 2"), (3, "of 3 runs, of which 2")] {
        let mut wrong = Totals::default();
        wrong.runs[0] = runs;
        let mut change = store.backend().begin().expect("ok");
        change.put_totals(&name("etl"), &wrong).expect("ok");
        change.commit().expect("ok");
        let error = store.backend().check().expect_err("found");
        assert!(error.is_unusable() && error.to_string().contains(part), "{error}");
    }
}

/// A run that was read long after its end was counted late: its totals stay
/// until it goes.
pub(crate) fn totals_stay_as_long_as_a_run_of_theirs(place: &dyn Place) {
    let hours = |hours: i64| at(hours * 3_600);
    let store = place.store(Keep { time: Duration::from_hours(10), ..keep() });
    store.record(&key("a", 1), &run("etl", hours(1)), hours(0), hours(1)).expect("ok");
    store.record(&key("b", 1), &run("etl", hours(2)), hours(0), hours(8)).expect("ok");
    store.record(&key("c", 1), &run("other", hours(14)), hours(0), hours(14)).expect("ok");
    assert_eq!(store.forget(hours(14)).expect("ok"), 1);
    assert_eq!(runs_of(&total(&store, "etl")), 2);
    sound(&store);
    assert_eq!(store.forget(hours(19)).expect("ok"), 1);
    assert_eq!(runs_of(&total(&store, "etl")), 0, "gone");
    sound(&store);
}

/// Accepted spans of these jobs, and records of findings of these rules.
pub(crate) fn sent(jobs: &[u64], rules: &[&str]) -> News {
    let mut news = News::default();
    for job in jobs {
        news.spans.jobs.insert(*job);
    }
    news.findings = rules.iter().map(|rule| FindingNews::Said(finding(rule))).collect();
    news
}

fn finding(rule: &str) -> SentFinding {
    SentFinding {
        rule: rule.to_owned(),
        cause: Some("hot_key".to_owned()),
        severity: "warning".to_owned(),
        subject: r#"{"kind":"stage","stage_id":3,"stage_attempt_id":0}"#.to_owned(),
        place: 0,
    }
}

fn jobs_and_rules(store: &Store, key: &RunKey) -> Option<(u64, Vec<String>)> {
    let delivered = store.delivered(key).expect("ok")?;
    let rules = delivered.findings.into_iter().map(|finding| finding.rule).collect();
    Some((delivered.spans.jobs.len(), rules))
}

pub(crate) fn what_was_sent_adds_up(place: &dyn Place) {
    let store = place.store(keep());
    let run = key("app-1", 5_000);
    let some = |jobs, rules: &[&str]| Some((jobs, rules.iter().map(ToString::to_string).collect()));
    assert_eq!(jobs_and_rules(&store, &run), None);
    store.add_delivered(&run, &sent(&[0, 1], &["spill"]), at(10)).expect("ok");
    // Another source, whose clock is a little off; an empty attempt is none.
    let mut other = RunKey { start_ms: 5_900, ..run.clone() };
    other.id.attempt_id = Some(String::new());
    store.add_delivered(&other, &sent(&[1, 2], &["data_skew"]), at(20)).expect("ok");
    for key in [&run, &other] {
        assert_eq!(jobs_and_rules(&store, key), some(3, &["spill", "data_skew"]));
    }
    let gone = News { findings: vec![FindingNews::Gone(finding("spill"))], ..News::default() };
    store.add_delivered(&run, &gone, at(30)).expect("ok");
    assert_eq!(jobs_and_rules(&store, &run), some(3, &["data_skew"]));
    assert_eq!(store.delivered(&run).expect("ok").expect("there").at_ms, at(30).as_millisecond());
    // Another start is another run; so is another attempt.
    assert_eq!(jobs_and_rules(&store, &key("app-1", 50_000)), None);
    let mut second = run.clone();
    second.id.attempt_id = Some("2".to_owned());
    assert_eq!(jobs_and_rules(&store, &second), None);
    // A start that is not known is that of the only one, and is learnt.
    store.add_delivered(&key("app-2", 0), &sent(&[7], &[]), at(40)).expect("ok");
    store.add_delivered(&key("app-2", 9_000), &sent(&[8], &[]), at(40)).expect("ok");
    assert_eq!(jobs_and_rules(&store, &key("app-2", 9_000)), some(2, &[]));
    let all = store.backend().delivered(&key("app-2", 0).id).expect("ok");
    assert_eq!((all.len(), all[0].0.start_ms), (1, 9_000));
    let size = store.backend().size().expect("ok");
    assert_eq!((size.runs, size.delivered), (0, 2));
    assert!((100..2_000).contains(&size.delivered_bytes), "{size:?}");
    let mut each = Vec::new();
    store
        .backend()
        .each_delivered(&mut |key, _| {
            each.push(key.id.app_id);
            Ok(())
        })
        .expect("ok");
    assert_eq!(each, ["app-1", "app-2"]);
    sound(&store);
}

pub(crate) fn what_was_sent_is_forgotten_with_the_run(place: &dyn Place) {
    let store = place.store(Keep { time: Duration::from_hours(1), ..keep() });
    for (app_id, end) in [("old", 1_000), ("new", 5_000)] {
        let (key, end) = (key(app_id, 1_000), at(end));
        // The start as another source has it.
        let other = RunKey { start_ms: 1_400, ..key.clone() };
        store.add_delivered(&other, &sent(&[1], &["spill"]), end).expect("ok");
        store.record(&key, &run("etl", end), at(0), end).expect("ok");
    }
    assert_eq!(store.forget(at(5_100)).expect("ok"), 1);
    assert_eq!(jobs_and_rules(&store, &key("old", 1_000)), None);
    assert!(jobs_and_rules(&store, &key("new", 1_000)).is_some());
    assert_eq!(store.backend().size().expect("ok").delivered, 1);
    sound(&store);
}

pub(crate) fn what_was_sent_is_there_when_it_is_opened_again(place: &dyn Place) {
    let run = key("app-1", 5_000);
    let store = place.store(keep());
    store.add_delivered(&run, &sent(&[0, 4], &["spill\0"]), at(10)).expect("ok");
    let before = store.delivered(&run).expect("ok");
    drop(store);
    let store = place.store(keep());
    assert_eq!(store.delivered(&run).expect("ok"), before);
    // A change that is not committed never was.
    let mut change = store.backend().begin().expect("ok");
    change.remove_delivered(&run).expect("ok");
    change.put_delivered(&key("app-2", 1), &Delivered::default()).expect("ok");
    drop(change);
    assert_eq!(store.delivered(&run).expect("ok"), before);
    assert_eq!(store.backend().size().expect("ok").delivered, 1);
    sound(&store);
}

pub(crate) fn what_was_sent_of_runs_that_are_not_stored_goes_by_age(place: &dyn Place) {
    let hours = |hours: i64| at(hours * 3_600);
    let store = place.store(Keep { time: Duration::from_hours(10), ..keep() });
    store.add_delivered(&key("a", 1), &sent(&[1], &[]), hours(1)).expect("ok");
    store.add_delivered(&key("b", 1), &sent(&[1], &[]), hours(1)).expect("ok");
    store.add_delivered(&key("b", 1), &sent(&[2], &[]), hours(5)).expect("ok");
    // One that ran long, and was stored at its end.
    store.add_delivered(&key("stored", 1), &sent(&[1], &[]), hours(1)).expect("ok");
    store.record(&key("stored", 1), &run("etl", hours(12)), at(0), hours(12)).expect("ok");
    assert_eq!(store.forget(hours(12)).expect("ok"), 0);
    let there = |app_id| jobs_and_rules(&store, &key(app_id, 1)).is_some();
    assert_eq!([there("a"), there("b"), there("stored")], [false, true, true]);
    sound(&store);
    assert_eq!(store.forget(hours(23)).expect("ok"), 1);
    assert_eq!([there("b"), there("stored")], [false, false], "one with its run");
    sound(&store);
}

pub(crate) fn any_order_adds_up_the_same(place: &dyn Place) {
    model::any_order(place);
}
