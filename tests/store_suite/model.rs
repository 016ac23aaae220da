//! Random orders of what can happen to a store, beside a simple account of
//! what must come of it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spark_exporter::model::Source;
use spark_exporter::store::{Counted, Keep, Recorded, SETTLED_AFTER, Store};

use super::{Place, at, keep, key, lost, run, runs_of};

/// Runs that may come, each at any time and from any source.
const RUNS: usize = 12;

#[derive(Debug, Clone)]
enum Step {
    Record { run: usize, source: Source, end_seen: bool, off_ms: i64 },
    Settle { goes_on: Option<usize> },
    Pass { seconds: i64 },
    Forget,
    OpenAgain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let source =
        prop_oneof![Just(Source::Driver), Just(Source::HistoryServer), Just(Source::EventLog)];
    let record = (0..RUNS, source, any::<bool>(), -400..=400_i64)
        .prop_map(|(run, source, end_seen, off_ms)| Step::Record { run, source, end_seen, off_ms });
    let step = prop_oneof![
        8 => record,
        2 => proptest::option::of(0..RUNS).prop_map(|goes_on| Step::Settle { goes_on }),
        2 => (1..20_000_i64).prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::Forget),
        1 => Just(Step::OpenAgain),
    ];
    proptest::collection::vec(step, 1..60)
}

/// What must be known of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    counted: Counted,
    read_at: i64,
}

/// Runs end one after the other, the first before the store is made.
fn end_of(run: usize) -> i64 {
    run as i64 * 3_000 - 3_000
}

fn check(place: &dyn Place, case: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let keep = Keep { names: 10_000, ..keep() };
    let mut store = place.store(keep);
    let app = |run: usize| format!("app-{case}-{run}");
    let name = |run: usize| format!("job-{case}-{}", run % 3);
    let mut known: BTreeMap<usize, Known> = BTreeMap::new();
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let mut now = 0_i64;
    for step in steps {
        match *step {
            Step::Record { run: number, source, end_seen, off_ms } => {
                now = now.max(end_of(number));
                let end = at(end_of(number));
                let mut stored =
                    if end_seen { run(&name(number), end) } else { lost(&name(number), end) };
                stored.record.source = source;
                let key = key(&app(number), 50_000 + off_ms);
                let recorded = store.record(&key, &stored, at(now), at(now)).unwrap();
                let before = known.get(&number).copied();
                let expected = match before.map(|known| known.counted) {
                    None if end_of(number) <= 0 => Counted::History,
                    None | Some(Counted::NotYet) if end_seen => Counted::Yes,
                    None => Counted::NotYet,
                    Some(counted) => counted,
                };
                let counts =
                    expected == Counted::Yes && before.is_none_or(|one| one.counted != expected);
                prop_assert_eq!(recorded == Recorded::Counted, counts, "{:?}", step);
                *counted.entry(name(number)).or_default() += u64::from(counts);
                let read_at = before.map_or(now, |known| known.read_at);
                known.insert(number, Known { counted: expected, read_at });
            }
            Step::Settle { goes_on } => {
                let running = goes_on.map(app);
                store.settle(at(now), &|key| Some(&key.id.app_id) == running.as_ref()).unwrap();
                for (number, known) in &mut known {
                    let due = now - known.read_at >= SETTLED_AFTER.as_secs() as i64;
                    if known.counted == Counted::NotYet && due && goes_on != Some(*number) {
                        known.counted = Counted::Yes;
                        *counted.entry(name(*number)).or_default() += 1;
                    }
                }
            }
            Step::Pass { seconds } => now += seconds,
            // Nothing is old enough.
            Step::Forget => prop_assert_eq!(store.forget(at(now)).unwrap(), 0),
            Step::OpenAgain => {
                drop(store);
                store = Store::new(place.open(at(now)).unwrap(), keep);
            }
        }
    }
    for (number, expected) in &known {
        let record = store.find(&key(&app(*number), 50_000)).unwrap();
        prop_assert_eq!(record.map(|record| record.counted), Some(expected.counted));
    }
    let totals = store.totals().unwrap();
    for (name, expected) in counted {
        let found = totals.get(&super::name(&name)).map(runs_of).unwrap_or_default();
        prop_assert_eq!(found, expected, "{}", name);
    }
    store.backend().check().unwrap();
    Ok(())
}

pub(super) fn any_order(place: &dyn Place) {
    let config = Config { cases: 25, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    // Each case has runs and names of its own in one store.
    let case = std::cell::Cell::new(0);
    runner
        .run(&steps(), |steps| {
            case.set(case.get() + 1);
            check(place, case.get(), &steps)
        })
        .unwrap();
}
