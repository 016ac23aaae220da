//! Which of two readings is held, and for how long.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn run(cluster: &str, start: i64, source: Source, state: State) -> Arc<Application> {
    let id = RunId { cluster: cluster.to_owned(), app_id: "app-1".to_owned(), attempt_id: None };
    let mut application = Application::new(id, source, at(start + 60));
    application.start = Some(at(start));
    application.state = state;
    application.end = (state != State::Running).then(|| at(start + 60));
    Arc::new(application)
}

const RETENTION: Duration = Duration::from_mins(30);

fn offer_to(
    registry: &mut Registry,
    application: Arc<Application>,
    now: i64,
    runs: usize,
) -> Offer {
    let name = "job".into();
    let reading = Reading { application, diagnosis: Arc::default(), name, read_at: None };
    registry.offer(reading, at(now), Room { runs, retention: RETENTION })
}

fn offer(registry: &mut Registry, application: Arc<Application>, now: i64) -> Offer {
    offer_to(registry, application, now, 10)
}

#[test]
fn running_becomes_finished_once() {
    let mut registry = Registry::default();
    let driver = run("c", 0, Source::Driver, State::Running);
    assert_eq!(offer(&mut registry, Arc::clone(&driver), 10), Offer::New);
    assert_eq!(offer(&mut registry, Arc::clone(&driver), 20), Offer::Replaced);
    let log = run("c", 0, Source::EventLog, State::Succeeded);
    assert_eq!(offer(&mut registry, Arc::clone(&log), 70), Offer::Finished);
    // A last, late answer of the driver does not bring it back to life.
    assert_eq!(offer(&mut registry, driver, 75), Offer::Kept);
    // Nor does the poorer reading of a History Server replace the log.
    let history = run("c", 0, Source::HistoryServer, State::Succeeded);
    assert_eq!(offer(&mut registry, history, 80), Offer::Kept);
    assert_eq!(registry.len(), 1);
    assert!(registry.has_finished(&log.id, log.start));
}

#[test]
fn a_second_attempt_ends_the_first() {
    let attempt = |number: &str, start, state| {
        let mut application = (*run("c", start, Source::EventLog, state)).clone();
        application.id.attempt_id = Some(number.to_owned());
        Arc::new(application)
    };
    let mut registry = Registry::default();
    let first = attempt("9", 0, State::Running);
    offer(&mut registry, Arc::clone(&first), 1);
    offer(&mut registry, attempt("10", 600, State::Running), 601);
    let states: Vec<State> = registry.shown().iter().map(|held| held.application.state).collect();
    // "10" comes before "9" as a text.
    assert_eq!(states, [State::Running, State::Lost]);
    // Its old log, read again, does not bring it back to life.
    assert_eq!(offer(&mut registry, first, 700), Offer::Kept);
    assert_eq!(registry.len(), 2);
}

#[test]
fn a_vanished_driver_yields_to_whoever_saw_the_end() {
    let mut registry = Registry::default();
    let mut gone = (*run("c", 0, Source::Driver, State::Unknown)).clone();
    gone.end = None;
    offer(&mut registry, Arc::new(gone.clone()), 70);
    let history = run("c", 0, Source::HistoryServer, State::Failed);
    assert_eq!(offer(&mut registry, history, 80), Offer::Replaced);
    assert_eq!(offer(&mut registry, Arc::new(gone), 90), Offer::Kept);
}

fn seen_at(application: &Arc<Application>, second: i64) -> Arc<Application> {
    let mut application = (**application).clone();
    application.observed = at(second);
    Arc::new(application)
}

/// A run that its driver shows and its log, which is followed.
#[test]
fn a_driver_goes_before_the_log_while_it_answers() {
    let mut registry = Registry::default();
    let log = run("c", 0, Source::EventLog, State::Running);
    let driver = run("c", 0, Source::Driver, State::Running);
    assert_eq!(offer(&mut registry, Arc::clone(&log), 1), Offer::New);
    assert!(!registry.yields_to_driver(&log));
    assert_eq!(offer(&mut registry, Arc::clone(&driver), 2), Offer::Replaced);
    assert!(registry.yields_to_driver(&log));
    assert_eq!(offer(&mut registry, Arc::clone(&log), 3), Offer::Kept);

    // The driver does not answer any more, but the log is still there.
    let mut gone = (*driver).clone();
    gone.state = State::Unknown;
    assert_eq!(offer(&mut registry, Arc::new(gone), 4), Offer::Kept);
    assert!(!registry.yields_to_driver(&log));
    assert_eq!(registry.shown()[0].application.state, State::Running);
    assert_eq!(offer(&mut registry, Arc::clone(&log), 5), Offer::Replaced);
    assert_eq!(registry.shown()[0].application.source, Source::EventLog);

    let ended = run("c", 0, Source::EventLog, State::Succeeded);
    assert_eq!(offer(&mut registry, ended, 6), Offer::Finished);
    registry.unfollow(&log.id, log.start, State::Lost, at(7));
    assert_eq!(registry.shown()[0].application.state, State::Succeeded);
    assert_eq!(registry.len(), 1);
}

#[test]
fn a_log_that_is_left_leaves_no_run_running() {
    let mut registry = Registry::default();
    let log = run("c", 0, Source::EventLog, State::Running);
    offer(&mut registry, Arc::clone(&log), 1);
    registry.unfollow(&log.id, log.start, State::Lost, at(2));
    let held = registry.shown().remove(0);
    assert_eq!(held.application.state, State::Lost);
    assert_eq!(held.finished_read_at, Some(at(2)));
    assert_eq!(registry.take_given_up().len(), 1);
    // The same old lines do not bring it back, new ones do.
    assert_eq!(offer(&mut registry, Arc::clone(&log), 3), Offer::Kept);
    assert_eq!(offer(&mut registry, seen_at(&log, 99), 4), Offer::Replaced);
    assert_eq!(registry.shown()[0].finished_read_at, None);
    // Beside a driver that answers it says nothing.
    offer(&mut registry, run("c", 0, Source::Driver, State::Running), 5);
    registry.unfollow(&log.id, log.start, State::Lost, at(6));
    assert_eq!(registry.shown()[0].application.state, State::Running);
}

#[test]
fn same_id_is_another_run_with_another_start_or_cluster() {
    let mut registry = Registry::default();
    offer(&mut registry, run("a", 0, Source::EventLog, State::Succeeded), 100);
    offer(&mut registry, run("b", 0, Source::EventLog, State::Failed), 100);
    offer(&mut registry, run("a", 1, Source::EventLog, State::Failed), 100);
    assert_eq!(registry.len(), 2, "1 s apart is the same run");
    offer(&mut registry, run("a", 50, Source::EventLog, State::Failed), 100);
    assert_eq!(registry.len(), 3);
    let shown = registry.shown();
    assert_eq!(shown.len(), 2);
    let of_a = shown.iter().find(|held| held.application.id.cluster == "a").unwrap();
    assert_eq!(of_a.application.start, Some(at(50)), "the one that started last");
}

#[test]
fn retention_counts_from_the_end_or_the_reading() {
    let retention = Duration::from_secs(100);
    let mut registry = Registry::default();
    // Ended at 60, read at 1000: stays until 1100.
    offer(&mut registry, run("old", 0, Source::EventLog, State::Succeeded), 1_000);
    offer(&mut registry, run("going", 0, Source::Driver, State::Running), 1_000);
    assert!(registry.expire(at(1_099), retention).is_empty());
    assert_eq!(registry.expire(at(1_100), retention).len(), 1);
    assert!(registry.expire(at(999_999), retention).is_empty(), "running ones stay");
    // Reading it again does not prolong its stay.
    offer(&mut registry, run("again", 0, Source::EventLog, State::Succeeded), 2_000);
    offer(&mut registry, run("again", 0, Source::EventLog, State::Succeeded), 2_090);
    assert_eq!(registry.expire(at(2_100), retention).len(), 1);
    // An end in the future (Spark's clock ahead of ours) keeps nothing
    // for longer.
    offer(&mut registry, run("ahead", 50_000, Source::EventLog, State::Succeeded), 3_000);
    assert_eq!(registry.expire(at(3_100), retention).len(), 1);
}

#[test]
fn room_is_bounded() {
    let mut registry = Registry::default();
    let first = run("a", 0, Source::EventLog, State::Succeeded);
    assert_eq!(offer_to(&mut registry, Arc::clone(&first), 70, 1), Offer::New);
    let second = run("b", 0, Source::EventLog, State::Succeeded);
    assert_eq!(offer_to(&mut registry, Arc::clone(&second), 70, 1), Offer::NoRoom);
    assert_eq!(offer_to(&mut registry, first, 70, 1), Offer::Replaced);
    // A run that ended long ago gives way, and does not push another out.
    let late = run("b", 5_000, Source::EventLog, State::Succeeded);
    assert_eq!(offer_to(&mut registry, second, 5_070, 1), Offer::TooOld);
    assert_eq!(offer_to(&mut registry, late, 5_070, 1), Offer::New);
    assert_eq!(registry.shown().len(), 1);
    assert_eq!(registry.shown()[0].application.id.cluster, "b");
}
