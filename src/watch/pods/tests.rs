//! What Kubernetes tells, in whatever order it comes, put into runs of real
//! logs, in a daemon without sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::config::{Cluster, Config, Kubernetes, Limits, Storage};
use crate::diagnose::{Cause, Rule};
use crate::eventlog::{ReadOptions, read, scan};
use crate::fetch::files::LocalFiles;
use crate::model::{
    Application, ContainerEnd, DriverPod, ExecutorPod, Operator, Pod, PodName, PodPhase, Source,
    State, Submission, SubmissionState,
};
use crate::store::{self, LogSeen, OUTCOMES, RunKey};
use crate::telemetry::Telemetry;
use crate::watch::{Held, Watcher};

const CLUSTER: &str = "prod";

/// A recorded run, read from its log.
fn recorded(name: &str) -> Application {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs").join(name).join("4.3.0");
    let files = LocalFiles::at(&path).unwrap();
    let log = scan(&files).unwrap().logs.remove(0);
    let limits = Limits::default();
    read(&log, &files, &ReadOptions { cluster: CLUSTER, limits: &limits }).unwrap().application
}

fn pod(name: &str) -> Pod {
    Pod {
        name: PodName { namespace: "etl".into(), name: name.into(), uid: format!("{name}-uid") },
        node: Some("node-7".into()),
        phase: PodPhase::Running,
        reason: None,
        end: None,
        deletion: None,
        deleted: false,
    }
}

fn ended(pod: Pod, code: i32, reason: &str, finished: Option<Timestamp>) -> Pod {
    let end = ContainerEnd { exit_code: code, reason: Some(reason.to_owned()), finished };
    let phase = if code == 0 { PodPhase::Succeeded } else { PodPhase::Failed };
    Pod { end: Some(end), phase, ..pod }
}

fn driver(pod: Pod, run: &Application) -> DriverPod {
    DriverPod { pod, app_id: Some(run.id.app_id.clone()), labels: BTreeMap::new() }
}

fn notebook(pod: Pod) -> DriverPod {
    DriverPod { pod, app_id: None, labels: BTreeMap::new() }
}

fn executor(pod: Pod, run: &Application, id: &str) -> ExecutorPod {
    ExecutorPod { pod, app_id: run.id.app_id.clone(), executor_id: id.to_owned() }
}

fn submission(run: &Application, state: SubmissionState) -> Submission {
    Submission {
        operator: Operator::Kubeflow,
        namespace: "etl".into(),
        name: "orders".into(),
        uid: "orders-uid".into(),
        app_id: Some(run.id.app_id.clone()),
        driver_pod: Some("orders-driver".into()),
        state,
        attempts: 1,
        submitted: None,
        ended: run.end,
        message: None,
        deleted: false,
    }
}

/// A daemon without sources, on a store in a folder.
struct World {
    runtime: Runtime,
    watcher: Option<Arc<Watcher>>,
    path: PathBuf,
    telemetry: Arc<Telemetry>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self {
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            watcher: None,
            path: folder.path().join("store.redb"),
            telemetry: Arc::default(),
            _folder: folder,
        };
        world.start(Limits::default());
        world
    }

    fn start(&mut self, limits: Limits) {
        // Two daemons do not hold one file.
        self.watcher = None;
        let storage = Storage { path: Some(self.path.clone()), ..Storage::default() };
        let (runtime, of_store) = (self.runtime.handle().clone(), storage.clone());
        let open = move || store::open(&of_store, 100, &runtime);
        let cluster = Cluster {
            name: CLUSTER.to_owned(),
            kubernetes: Some(Kubernetes::default()),
            ..Cluster::default()
        };
        let config = Config { storage, limits, clusters: vec![cluster], ..Config::default() };
        let watcher = Watcher::new(config, Arc::clone(&self.telemetry), open);
        watcher.remember();
        self.watcher = Some(watcher);
    }

    fn watcher(&self) -> &Watcher {
        self.watcher.as_ref().unwrap()
    }

    /// The daemon's round.
    fn round(&self) {
        self.watcher().amend();
        while self.watcher().remember() {}
    }

    fn held(&self) -> Held {
        let mut shown = self.watcher().registry().shown();
        assert_eq!(shown.len(), 1, "one run");
        shown.remove(0)
    }

    fn stored(&self, run: &Application) -> Option<State> {
        self.watcher().memory.find(&RunKey::of(run)).map(|record| record.state)
    }

    /// How often runs were counted, by outcome.
    fn counted(&self) -> BTreeMap<State, u64> {
        let names = self.watcher().memory.store().unwrap().totals().unwrap();
        let runs = names.values().map(|totals| totals.runs);
        let mut counted = BTreeMap::new();
        for runs in runs {
            for (state, count) in OUTCOMES.into_iter().zip(runs).filter(|(_, count)| *count > 0) {
                *counted.entry(state).or_default() += count;
            }
        }
        counted
    }
}

/// As if it ended just now, after the store was made: older runs are history,
/// and are not waited for.
fn fresh(mut run: Application) -> Application {
    let soon = Timestamp::now().checked_add(SignedDuration::from_secs(20)).unwrap();
    let late = soon.duration_since(run.end.unwrap());
    let move_on = |time: &mut Option<Timestamp>| {
        *time = time.and_then(|time| time.checked_add(late).ok());
    };
    move_on(&mut run.start);
    move_on(&mut run.end);
    run.observed = run.observed.checked_add(late).unwrap();
    for executor in &mut run.executors {
        move_on(&mut executor.added);
        move_on(&mut executor.removed);
    }
    run
}

/// A log as Spark 3 writes it: it ended, and nothing says how.
fn without_code(mut run: Application) -> Application {
    run.exit_code = None;
    run.state = State::Unknown;
    run
}

#[test]
fn a_fact_before_the_reading_and_one_after_it_give_the_same() {
    let run = recorded("stage_retries");
    let lost = run.executors.iter().find(|executor| executor.removed.is_some()).unwrap();
    let killed = ended(pod("orders-exec"), 137, "OOMKilled", lost.removed);
    let killed = executor(killed, &run, &lost.id);
    let cause = |world: &World| {
        let held = world.held();
        let findings = &held.diagnosis.findings;
        let lost: Vec<_> = findings.iter().filter(|one| one.rule == Rule::ExecutorLost).collect();
        assert_eq!(lost.len(), 1);
        lost[0].cause
    };
    let before = World::new();
    before.watcher().executor_pod(CLUSTER, &killed);
    before.watcher().take_in(run.clone(), None);
    before.round();
    assert_eq!(cause(&before), Some(Cause::ContainerMemory));

    let after = World::new();
    after.watcher().take_in(run.clone(), None);
    after.round();
    assert_eq!(cause(&after), Some(Cause::Killed), "137 alone");
    let untouched = after.held();
    after.watcher().executor_pod(CLUSTER, &killed);
    after.round();
    assert_eq!(cause(&after), Some(Cause::ContainerMemory));
    // What was found in its tasks, which are not held, is as it was.
    let rules = |held: &Held| {
        let findings = held.diagnosis.findings.iter();
        let mut rules: Vec<_> = findings
            .filter(|one| one.rule != Rule::ExecutorLost && one.rule != Rule::Configuration)
            .map(|one| (one.rule, one.cause, one.impact.wall))
            .collect();
        rules.sort_by_key(|(rule, ..)| *rule);
        rules
    };
    assert_eq!(after.held().diagnosis.what_if, untouched.diagnosis.what_if);
    assert_eq!(after.held().diagnosis.totals, untouched.diagnosis.totals);
    assert!(!rules(&untouched).is_empty());
    for kept in rules(&after.held()) {
        let known = rules(&before.held());
        assert!(known.iter().any(|(rule, cause, _)| (*rule, *cause) == (kept.0, kept.1)));
    }
    // The same once more is no news.
    let held = after.held();
    after.watcher().executor_pod(CLUSTER, &killed);
    assert!(after.watcher().pods.take_news().is_empty());
    after.round();
    assert!(Arc::ptr_eq(&held.application, &after.held().application));
    assert_eq!(after.telemetry.snapshot().pod_facts.amended, 1);
}

#[test]
fn the_pod_s_last_word_is_waited_for_before_the_run_is_counted() {
    let run = fresh(without_code(recorded("healthy")));
    let name = pod("orders-driver");
    let world = World::new();
    world.watcher().driver_pod(CLUSTER, &driver(name.clone(), &run));
    let log = LogSeen { place: "/logs".into(), key: "1".into(), bytes: 1, modified_ms: 1 };
    world.watcher().take_in(run.clone(), Some(log.clone()));
    world.round();
    assert_eq!(world.held().application.state, State::Unknown, "shown at once");
    assert_eq!(world.stored(&run), None, "and counted once it is known");
    let failed = ended(name, 1, "Error", run.end);
    world.watcher().driver_pod(CLUSTER, &driver(failed, &run));
    world.round();
    let held = world.held();
    assert_eq!((held.application.state, held.application.exit_code), (State::Failed, Some(1)));
    assert!(held.diagnosis.findings.iter().any(|one| one.rule == Rule::ApplicationFailed));
    assert_eq!(world.stored(&run), Some(State::Failed));
    let record = world.watcher().memory.find(&RunKey::of(&run)).unwrap();
    assert_eq!(record.log, Some(log), "its log need not be read again");
}

#[test]
fn a_pod_that_never_says_a_last_word_is_not_waited_for_for_ever() {
    let run = fresh(without_code(recorded("healthy")));
    let world = World::new();
    world.watcher().driver_pod(CLUSTER, &driver(pod("orders-driver"), &run));
    world.watcher().take_in(run.clone(), None);
    assert_eq!(world.stored(&run), None);
    world.watcher().end_waiting(true);
    world.round();
    assert_eq!(world.stored(&run), Some(State::Unknown));
    // What it says then is kept as well; the run stays counted as it was.
    let late = ended(pod("orders-driver"), 0, "Completed", run.end);
    world.watcher().driver_pod(CLUSTER, &driver(late, &run));
    world.round();
    assert_eq!(world.stored(&run), Some(State::Succeeded));
    assert_eq!(world.held().application.state, State::Succeeded);
    // A run that ended long ago is not waited for.
    let old = without_code(recorded("job_failed_caught"));
    world.watcher().take_in(old.clone(), None);
    world.round();
    assert_eq!(world.stored(&old), Some(State::Unknown));
}

/// A driver's reading of the run, as it is told while it runs.
fn live(run: &Application) -> Application {
    let mut live = run.clone();
    live.source = Source::Driver;
    live.state = State::Running;
    live.end = None;
    live.exit_code = None;
    for stage in &mut live.stages {
        stage.timeline = None;
    }
    live
}

#[test]
fn the_end_of_the_pod_ends_the_run_and_the_log_follows() {
    let run = fresh(recorded("healthy"));
    let world = World::new();
    let name = pod("orders-driver");
    world.watcher().driver_pod(CLUSTER, &driver(name.clone(), &run));
    world.watcher().take_in(live(&run), None);
    world.round();
    assert_eq!(world.held().application.state, State::Running);
    let at = run.end.unwrap().checked_add(SignedDuration::from_secs(1)).unwrap();
    world.watcher().driver_pod(CLUSTER, &driver(ended(name, 0, "Completed", Some(at)), &run));
    world.round();
    let held = world.held();
    assert_eq!((held.application.state, held.application.end), (State::Succeeded, Some(at)));
    assert!(held.finished_read_at.is_some());
    assert_eq!(world.telemetry.snapshot().applications_finished, 1);
    // A History Server's list may still have it: the log tells more.
    assert!(!world.watcher().registry().has_finished(&run.id, run.start));
    world.watcher().take_in(run.clone(), None);
    world.round();
    let held = world.held();
    assert_eq!((held.application.source, held.application.end), (Source::EventLog, run.end));
    assert_eq!(world.counted().values().sum::<u64>(), 1);
    assert_eq!(world.telemetry.snapshot().applications_finished, 1);
}

#[test]
fn runs_of_a_notebook_each_have_their_own_end() {
    let (first, mut second) = (fresh(recorded("healthy")), fresh(recorded("healthy")));
    second.id.app_id = "spark-second".to_owned();
    let world = World::new();
    let name = pod("jupyter-anna");
    // Whichever comes first.
    world.watcher().driver_runs(CLUSTER, &name.name, &first.id.app_id);
    world.watcher().driver_pod(CLUSTER, &notebook(name.clone()));
    world.watcher().take_in(live(&first), None);
    world.round();
    let crashed = ended(name.clone(), 137, "OOMKilled", first.end);
    world.watcher().driver_pod(CLUSTER, &notebook(crashed));
    world.round();
    assert_eq!(world.held().application.state, State::Lost);
    // Its container starts again, and another application in it.
    world.watcher().driver_pod(CLUSTER, &notebook(name.clone()));
    world.watcher().driver_runs(CLUSTER, &name.name, &second.id.app_id);
    world.watcher().take_in(live(&second), None);
    world.round();
    let states: BTreeMap<String, State> = world
        .watcher()
        .registry()
        .shown()
        .into_iter()
        .map(|held| (held.application.id.app_id.clone(), held.application.state))
        .collect();
    assert_eq!(states[&first.id.app_id], State::Lost);
    assert_eq!(states[&second.id.app_id], State::Running);
}

#[test]
fn a_restarted_daemon_is_told_again_and_counts_nothing_twice() {
    let run = fresh(without_code(recorded("healthy")));
    let mut world = World::new();
    let failed = driver(ended(pod("orders-driver"), 1, "Error", run.end), &run);
    world.watcher().driver_pod(CLUSTER, &failed);
    world.watcher().take_in(run.clone(), None);
    world.round();
    let counted = world.counted();
    world.start(Limits::default());
    world.watcher().take_in(run.clone(), None);
    world.watcher().driver_pod(CLUSTER, &failed);
    world.round();
    assert_eq!(world.held().application.state, State::Failed);
    assert_eq!(world.stored(&run), Some(State::Failed));
    assert_eq!(world.counted(), counted);
    // Once the pod is gone, nobody tells again: what it told is remembered.
    world.start(Limits::default());
    world.watcher().take_in(run.clone(), None);
    world.round();
    assert_eq!(world.held().application.state, State::Failed);
    assert_eq!(world.stored(&run), Some(State::Failed));
    assert_eq!(world.counted(), counted);
}

#[test]
fn facts_are_bounded_and_what_goes_is_counted() {
    let mut world = World::new();
    world.start(Limits { applications: 60, ..Limits::default() });
    let run = recorded("healthy");
    for number in 0..130 {
        let mut other = run.clone();
        other.id.app_id = format!("spark-{number}");
        let mut went = ended(pod("d"), 0, "Completed", None);
        went.deleted = number < 100;
        world.watcher().driver_pod(CLUSTER, &driver(went, &other));
        for id in 0..2_200 {
            if number == 0 {
                let id = id.to_string();
                let went = ended(pod("e"), 143, "Error", None);
                world.watcher().executor_pod(CLUSTER, &executor(went, &other, &id));
            }
        }
        if number == 0 {
            let known = world.watcher().pods.of(CLUSTER, "spark-0").0.executors.len();
            assert_eq!(known, super::MOST_EXECUTORS);
        }
    }
    let inner = world.watcher().pods.inner();
    assert_eq!(inner.runs.len(), 120);
    let executors: usize = inner.runs.values().map(|one| one.facts.executors.len()).sum();
    assert_eq!(inner.executors, executors);
    let there = inner.runs.values().filter(|known| known.is_there()).count();
    assert_eq!(there, 30, "those whose pods are there stay");
    drop(inner);
    assert_eq!(world.telemetry.snapshot().pod_facts.forgotten, 10);
    // And they go by themselves some time after their pod.
    let mut inner = world.watcher().pods.inner();
    let later = std::time::Instant::now() + std::time::Duration::from_hours(24);
    assert_eq!(world.watcher().pods.tidy(&mut inner, later), 0);
    assert_eq!(inner.runs.len(), 30);
}

/// What can come, of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Live,
    DriverGone,
    Log,
    HistoryServer,
    PodStarts,
    PodEnds,
    PodGoes,
    ExecutorEnds,
    Resource,
    Round,
}

const MUST: [Event; 4] = [Event::Log, Event::PodEnds, Event::ExecutorEnds, Event::Resource];

fn happens(world: &World, run: &Application, event: Event, code: i32) {
    let watcher = world.watcher();
    let lost = run.executors.iter().find(|executor| executor.removed.is_some()).unwrap();
    let end = ended(pod("orders-driver"), code, "Error", run.end);
    match event {
        Event::Live => {
            watcher.take_in(live(run), None);
        }
        Event::DriverGone => {
            let mut gone = live(run);
            gone.state = State::Unknown;
            watcher.take_in(gone, None);
        }
        Event::Log => {
            watcher.take_in(run.clone(), None);
        }
        Event::HistoryServer => {
            let mut poorer = run.clone();
            poorer.source = Source::HistoryServer;
            watcher.take_in(poorer, None);
        }
        Event::PodStarts => watcher.driver_pod(CLUSTER, &driver(pod("orders-driver"), run)),
        Event::PodEnds => watcher.driver_pod(CLUSTER, &driver(end, run)),
        Event::PodGoes => {
            watcher.driver_pod(CLUSTER, &driver(Pod { deleted: true, ..end }, run));
        }
        Event::ExecutorEnds => {
            let killed = ended(pod("orders-exec"), 137, "OOMKilled", lost.removed);
            watcher.executor_pod(CLUSTER, &executor(killed, run, &lost.id));
        }
        Event::Resource => {
            let state =
                if code == 0 { SubmissionState::Failed } else { SubmissionState::Succeeded };
            watcher.submission(CLUSTER, &submission(run, state));
        }
        Event::Round => world.round(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In whatever order, and however often.
    #[test]
    fn any_order_gives_the_same(
        more in prop::collection::vec(
            prop::sample::select(vec![
                Event::Live, Event::DriverGone, Event::HistoryServer, Event::PodStarts,
                Event::Round, Event::Round, Event::Log, Event::ExecutorEnds,
            ]),
            0..8,
        ),
        code in prop::sample::select(vec![0, 1]),
        goes in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let run = fresh(without_code(recorded("executor_killed")));
        let mut events: Vec<Event> = MUST.into_iter().chain(more).collect();
        // Shuffled by the seed; but what a watch tells of one pod is in order.
        let mut state = seed | 1;
        for place in (1..events.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            events.swap(place, (state >> 33) as usize % (place + 1));
        }
        let ends = events.iter().position(|event| *event == Event::PodEnds).unwrap();
        let mut place = 0;
        events.retain(|event| {
            let keep = *event != Event::PodStarts || place < ends;
            place += 1;
            keep
        });
        if goes {
            events.push(Event::PodGoes);
        }
        let world = World::new();
        for event in events {
            happens(&world, &run, event, code);
        }
        world.round();
        let expected = if code == 0 { State::Succeeded } else { State::Failed };
        let held = world.held();
        let shown = &held.application;
        prop_assert_eq!(
            (shown.state, shown.exit_code, shown.source, shown.end),
            (expected, Some(code), Source::EventLog, run.end)
        );
        let causes: Vec<_> = held
            .diagnosis
            .findings
            .iter()
            .filter(|one| matches!(one.rule, Rule::ExecutorLost | Rule::ApplicationFailed))
            .map(|one| (one.rule, one.cause))
            .collect();
        prop_assert!(causes.contains(&(Rule::ExecutorLost, Some(Cause::ContainerMemory))));
        prop_assert_eq!(causes.len(), if code == 0 { 1 } else { 2 });
        prop_assert_eq!(world.stored(&run), Some(expected));
        prop_assert_eq!(world.counted().values().sum::<u64>(), 1);
    }
}

/// An operator makes another attempt: the one before ended as it said then.
#[test]
fn what_an_operator_said_of_an_attempt_stays() {
    let run = fresh(without_code(recorded("healthy")));
    let world = World::new();
    world.watcher().take_in(run.clone(), None);
    world.watcher().submission(CLUSTER, &submission(&run, SubmissionState::Failed));
    world.watcher().submission(CLUSTER, &submission(&run, SubmissionState::Restarting));
    world.round();
    assert_eq!(world.held().application.state, State::Failed);
    let mut next = submission(&run, SubmissionState::Running);
    next.app_id = Some("spark-next".to_owned());
    world.watcher().submission(CLUSTER, &next);
    world.watcher().submission(CLUSTER, &Submission { deleted: true, ..next });
    world.round();
    assert_eq!(world.held().application.state, State::Failed);
    assert!(world.telemetry.snapshot().pod_facts.submissions.is_empty(), "it is not there");
    // What never came to run is no run.
    let mut failed = submission(&run, SubmissionState::SubmissionFailed);
    failed.app_id = None;
    world.watcher().submission(CLUSTER, &failed);
    world.round();
    assert_eq!(world.watcher().registry().len(), 1);
    assert_eq!(world.telemetry.snapshot().pod_facts.submissions.len(), 1);
}
