//! Whatever the order in which sources show runs, and whenever the daemon is
//! killed: each run is counted once, with its outcome, under its name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::Watcher;
use super::registry::locked;
use crate::config::{Config, Storage};
use crate::model::{Application, RunId, Source, State};
use crate::store::{self, Counted, LogSeen, NameKey, OUTCOMES, RunKey, Totals};
use crate::telemetry::Telemetry;

/// The runs: name, id, attempt, start, outcome. The second attempt of an
/// application, and an id that another run has, are runs of their own.
const RUNS: [(&str, &str, Option<&str>, i64, State); 5] = [
    ("orders-2026-11-29", "app-1", None, 0, State::Succeeded),
    ("orders-2026-11-30", "app-2", None, 100, State::Failed),
    ("ledger", "application_1_1", Some("1"), 200, State::Failed),
    ("ledger", "application_1_1", Some("2"), 300, State::Succeeded),
    ("stock", "app-1", None, 5_000, State::Succeeded),
];

#[derive(Debug, Clone, Copy)]
enum Event {
    /// The driver answers, so many seconds after the start.
    Driver(usize, i64),
    /// The driver does not answer any more.
    DriverGone(usize),
    /// Its log has grown.
    Grows(usize, i64),
    /// Its log has not grown for too long.
    Silent(usize),
    /// Its log is not followed any more.
    Left(usize),
    /// Its log is read to its end.
    LogEnds(usize),
    /// A History Server without its log shows it, now or once more.
    History(usize),
    /// What has ended is not held any more; a server may show it once more.
    Expire,
    /// The daemon writes what it knows.
    Write,
    /// It is killed, and starts again.
    Kill,
}

fn event() -> impl Strategy<Value = Event> {
    let run = 0..RUNS.len();
    prop_oneof![
        (run.clone(), 1..50_i64).prop_map(|(run, second)| Event::Driver(run, second)),
        run.clone().prop_map(Event::DriverGone),
        (run.clone(), 1..50_i64).prop_map(|(run, second)| Event::Grows(run, second)),
        run.clone().prop_map(Event::Silent),
        run.clone().prop_map(Event::Left),
        run.clone().prop_map(Event::LogEnds),
        run.prop_map(Event::History),
        Just(Event::Expire),
        Just(Event::Write),
        Just(Event::Write),
        Just(Event::Kill),
    ]
}

/// A daemon without sources, on a store in a folder.
struct World {
    runtime: Runtime,
    path: PathBuf,
    base: Timestamp,
    watcher: Option<Arc<Watcher>>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self {
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            path: folder.path().join("store.redb"),
            // After the store was made.
            base: Timestamp::now().checked_add(SignedDuration::from_mins(1)).unwrap(),
            watcher: None,
            _folder: folder,
        };
        world.start();
        world
    }

    fn storage(&self) -> Storage {
        Storage { path: Some(self.path.clone()), ..Storage::default() }
    }

    fn start(&mut self) {
        // Two daemons do not hold one file.
        self.watcher = None;
        let (storage, runtime) = (self.storage(), self.runtime.handle().clone());
        let open = move || store::open(&storage, 100, &runtime);
        let config = Config { storage: self.storage(), ..Config::default() };
        let watcher = Watcher::new(config, Arc::new(Telemetry::default()), open);
        watcher.remember();
        self.watcher = Some(watcher);
    }

    fn watcher(&self) -> &Watcher {
        self.watcher.as_ref().unwrap()
    }

    fn at(&self, run: usize, second: i64) -> Timestamp {
        self.base.checked_add(SignedDuration::from_secs(RUNS[run].3 + second)).unwrap()
    }

    fn reading(&self, run: usize, source: Source, state: State, observed: i64) -> Application {
        let (name, app_id, attempt_id, ..) = RUNS[run];
        let id = RunId {
            cluster: "c".to_owned(),
            app_id: app_id.to_owned(),
            attempt_id: attempt_id.map(str::to_owned),
        };
        let mut application = Application::new(id, source, self.at(run, observed));
        application.name = name.to_owned();
        application.start = Some(self.at(run, 0));
        application.state = state;
        application
    }

    fn ended(&self, run: usize, source: Source) -> Application {
        let mut application = self.reading(run, source, RUNS[run].4, 60);
        application.end = Some(self.at(run, 60));
        application
    }

    fn log(run: usize) -> LogSeen {
        LogSeen { place: "/logs".to_owned(), key: run.to_string(), bytes: 1, modified_ms: 1 }
    }

    fn happen(&mut self, event: Event) {
        let watcher = self.watcher();
        match event {
            Event::Driver(run, second) => {
                let reading = self.reading(run, Source::Driver, State::Running, second);
                watcher.take_in(reading, None);
            }
            Event::DriverGone(run) => {
                let reading = self.reading(run, Source::Driver, State::Unknown, 50);
                watcher.take_in(reading, None);
            }
            Event::Grows(run, second) => {
                let reading = self.reading(run, Source::EventLog, State::Running, second);
                if !locked(&watcher.registry).yields_to_driver(&reading) {
                    watcher.take_in(reading, None);
                }
            }
            Event::Silent(run) => {
                let reading = self.reading(run, Source::EventLog, State::Lost, 50);
                watcher.take_in(reading, Some(Self::log(run)));
            }
            Event::Left(run) => {
                let key = RunKey::of(&self.ended(run, Source::EventLog));
                let start = Some(self.at(run, 0));
                let now = self.at(run, 55);
                locked(&watcher.registry).unfollow(&key.id, start, State::Lost, now);
            }
            Event::LogEnds(run) => {
                watcher.take_in(self.ended(run, Source::EventLog), Some(Self::log(run)));
            }
            Event::History(run) => {
                watcher.take_in(self.ended(run, Source::HistoryServer), None);
            }
            Event::Expire => {
                let later = Timestamp::now().checked_add(SignedDuration::from_hours(9)).unwrap();
                locked(&watcher.registry).expire(later, Duration::from_mins(30));
            }
            Event::Write => while watcher.remember() {},
            Event::Kill => self.start(),
        }
    }
}

fn outcome(totals: &Totals, state: State) -> u64 {
    totals.runs[OUTCOMES.iter().position(|other| *other == state).unwrap()]
}

/// What happened, then what sources show of it later, then two hours without
/// news.
fn count(events: &[Event]) -> Result<(), TestCaseError> {
    let mut world = World::new();
    let mut ended = [false; RUNS.len()];
    let mut given_up = [false; RUNS.len()];
    for event in events {
        world.happen(*event);
        match event {
            Event::LogEnds(run) | Event::History(run) => ended[*run] = true,
            Event::DriverGone(run) | Event::Silent(run) => given_up[*run] = true,
            _ => {}
        }
    }
    // What was not written before a kill is shown again by its source.
    for (run, _) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
        world.happen(Event::History(run));
        world.happen(Event::LogEnds(run));
    }
    world.happen(Event::Write);
    // Nothing is left to be written, and no second daemon holds the file.
    world.watcher = None;
    let store = store::open(&world.storage(), 100, world.runtime.handle()).unwrap();
    let later = Timestamp::now().checked_add(SignedDuration::from_hours(2)).unwrap();
    store.settle(later, &|_| false).unwrap();

    let mut expected: BTreeMap<(String, State), u64> = BTreeMap::new();
    let names = ["orders", "orders", "ledger", "ledger", "stock"];
    let mut sure = 0;
    for (run, _) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
        *expected.entry((names[run].to_owned(), RUNS[run].4)).or_default() += 1;
        sure += 1;
    }
    let totals = store.totals().unwrap();
    let of = |name: &str, state| {
        let name = NameKey { cluster: "c".to_owned(), app_name: name.to_owned() };
        totals.get(&name).map_or(0, |totals| outcome(totals, state))
    };
    for name in ["orders", "ledger", "stock"] {
        for state in [State::Succeeded, State::Failed] {
            let known = expected.get(&(name.to_owned(), state)).copied().unwrap_or_default();
            prop_assert_eq!(of(name, state), known, "{} {:?}", name, state);
        }
    }
    let mut runs = 0;
    let mut counted = 0;
    store
        .backend()
        .each_run(&mut |_, run| {
            runs += 1;
            counted += u64::from(run.record.counted == Counted::Yes);
            Ok(())
        })
        .unwrap();
    let all: u64 = totals.values().flat_map(|totals| totals.runs).sum();
    prop_assert_eq!(all, counted, "what is counted is in the totals");
    prop_assert_eq!(runs, counted, "after two hours nothing is left open");
    let most = (0..RUNS.len()).filter(|run| ended[*run] || given_up[*run]).count() as u64;
    // A later attempt ends an earlier one, and a log that is left its run.
    prop_assert!((sure..=RUNS.len() as u64).contains(&all), "{} of {}..{}", all, sure, most);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn each_run_is_counted_once(events in prop::collection::vec(event(), 0..60)) {
        count(&events)?;
    }
}

/// A log that is left after its run was taken in by another way does not undo
/// what that one told.
#[test]
fn who_saw_the_end_is_right() {
    use Event::{Driver, Grows, Kill, Left, LogEnds};
    count(&[LogEnds(3), Driver(0, 1), Kill, Grows(3, 1), Left(3)]).unwrap();
}
