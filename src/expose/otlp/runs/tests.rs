//! The worker against a back end that is down, slow or picky, and a store
//! that is in trouble. The work is a simple one: a run's stages, one request
//! each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::work::{Parcel, Parcels, Work};
use super::worker::{Carry, Pace, Worker};
use crate::config::otlp::Signal;
use crate::diagnose::Diagnosis;
use crate::expose::otlp::Moment;
use crate::expose::otlp::deliver::{Request, Sent};
use crate::expose::otlp::records::Now;
use crate::metrics::{RunView, Snapshot};
use crate::model::{Application, RunId, Source, Stage, StageId, State};
use crate::store::{Delivered, Deliveries, Found, News, RunKey};
use crate::telemetry::Telemetry;

/// Each stage that was not sent.
struct Stages {
    /// Whether it is sent though nobody knows what was.
    though_uncertain: bool,
}

/// As [`Stages`], and waits for a store that does not tell.
struct Careful(Stages);

impl Stages {
    fn parcels(view: &RunView, sent: &Delivered) -> Parcels {
        let application = &view.application;
        let stages = application.stages.iter().map(|stage| u64::from(stage.id.stage));
        let parcel = |stage: u64| {
            let mut news = News::default();
            news.spans.stages.insert(stage);
            let body = format!("{}/{stage}", application.id.app_id).into();
            Parcel { request: Request { body, items: 1 }, news, left_out: 0 }
        };
        let due = stages.filter(|stage| !sent.spans.stages.contains(*stage));
        Parcels { parcels: due.map(parcel).collect(), ..Parcels::default() }
    }
}

impl Work for Stages {
    type Memo = ();
    const THOUGH_UNCERTAIN: bool = true;

    fn max_age(&self) -> Duration {
        assert!(self.though_uncertain);
        Duration::from_hours(1)
    }

    fn due(&self, view: &RunView, sent: &Delivered, (): &mut (), _: Now) -> Parcels {
        Self::parcels(view, sent)
    }
}

impl Work for Careful {
    type Memo = ();
    const THOUGH_UNCERTAIN: bool = false;

    fn max_age(&self) -> Duration {
        assert!(!self.0.though_uncertain);
        Duration::from_hours(1)
    }

    fn due(&self, view: &RunView, sent: &Delivered, (): &mut (), _: Now) -> Parcels {
        Stages::parcels(view, sent)
    }
}

/// As [`Stages`], once so much time has passed.
struct Late(Instant);

impl Work for Late {
    type Memo = ();
    const THOUGH_UNCERTAIN: bool = true;

    fn max_age(&self) -> Duration {
        Duration::from_hours(1)
    }

    fn due(&self, view: &RunView, sent: &Delivered, (): &mut (), now: Now) -> Parcels {
        if now.instant < self.0.into_std() {
            return Parcels { again: true, ..Parcels::default() };
        }
        Stages::parcels(view, sent)
    }
}

/// A back end.
#[derive(Debug, Default)]
struct Server {
    /// What it took, in that order.
    taken: Mutex<Vec<String>>,
    down: AtomicBool,
    slow: AtomicBool,
    /// Gives up at once, as where one is told to wait for long.
    hasty: AtomicBool,
    /// What begins so is refused.
    refused: Mutex<Option<&'static str>>,
    attempts: Mutex<Vec<Instant>>,
}

impl Server {
    fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }

    /// What was taken, each once.
    fn all(&self) -> BTreeSet<String> {
        let taken = self.taken();
        let all: BTreeSet<String> = taken.iter().cloned().collect();
        assert_eq!(all.len(), taken.len(), "each once: {taken:?}");
        all
    }
}

impl Carry for Arc<Server> {
    async fn send(&self, request: &Request, until: Instant) -> Sent {
        self.attempts.lock().unwrap().push(Instant::now());
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        if self.slow.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(200)).await;
        }
        while self.down.load(Ordering::SeqCst) {
            if self.hasty.load(Ordering::SeqCst) || Instant::now() >= until {
                return Sent::GivenUp;
            }
            sleep_until(until.min(Instant::now() + Duration::from_millis(5))).await;
        }
        if self.refused.lock().unwrap().is_some_and(|start| body.starts_with(start)) {
            return Sent::Refused;
        }
        self.taken.lock().unwrap().push(body);
        Sent::Accepted { rejected: 0 }
    }

    fn signal(&self) -> Signal {
        Signal::Traces
    }
}

/// What the daemon remembers.
#[derive(Debug, Default)]
struct Memory {
    sent: Mutex<BTreeMap<RunKey, Delivered>>,
    trouble: AtomicBool,
}

impl Deliveries for Memory {
    fn find(&self, key: &RunKey) -> Found {
        if self.trouble.load(Ordering::SeqCst) {
            return Found { delivered: Delivered::default(), certain: false };
        }
        let delivered = self.sent.lock().unwrap().get(key).cloned().unwrap_or_default();
        Found { delivered, certain: true }
    }

    fn add(&self, key: &RunKey, news: News) {
        self.sent.lock().unwrap().entry(key.clone()).or_default().add(&news);
    }
}

/// A worker, what it reads, and where it sends.
struct World {
    feed: watch::Sender<Option<Arc<Moment>>>,
    server: Arc<Server>,
    memory: Arc<Memory>,
    telemetry: Arc<Telemetry>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    pace: Pace,
}

impl World {
    fn new() -> Self {
        Self {
            feed: watch::channel(None).0,
            server: Arc::default(),
            memory: Arc::default(),
            telemetry: Arc::default(),
            stop: CancellationToken::new(),
            task: None,
            pace: Pace {
                most_waiting: 1_000,
                turn: Duration::from_millis(100),
                ask_again: Duration::from_millis(20),
                shutdown_timeout: Duration::from_millis(500),
            },
        }
    }

    fn start(&mut self) {
        self.start_with(Stages { though_uncertain: true });
    }

    fn start_with<W: Work>(&mut self, work: W) {
        self.stop = CancellationToken::new();
        let worker = Worker::new(
            work,
            Arc::clone(&self.server),
            self.memory.clone(),
            Arc::clone(&self.telemetry),
            self.feed.subscribe(),
            self.pace,
        );
        self.task = Some(tokio::spawn(worker.run(self.stop.clone())));
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        let task = self.task.take().unwrap();
        timeout(Duration::from_secs(30), task).await.expect("it stops in time").unwrap();
    }

    fn publish(&self, runs: &[RunView]) {
        let mut runs = runs.to_vec();
        runs.sort_by(|one, other| one.application.id.cmp(&other.application.id));
        let moment = Moment {
            snapshot: Arc::new(Snapshot::default()),
            runs: runs.into(),
            ready: true,
            at: Timestamp::now(),
        };
        self.feed.send_replace(Some(Arc::new(moment)));
    }

    /// Waits until so many were taken.
    async fn taken(&self, count: usize) -> BTreeSet<String> {
        let enough = async {
            while self.server.taken().len() < count {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = timeout(Duration::from_mins(1), enough).await;
        assert!(waited.is_ok(), "{} of {count}", self.server.taken().len());
        self.server.all()
    }

    fn dropped(&self) -> u64 {
        let counters = self.telemetry.snapshot();
        let of_traces = counters.otlp.get("traces");
        of_traces.and_then(|counts| counts.dropped.get("backlog").copied()).unwrap_or_default()
    }
}

fn run(app_id: &str, state: State, stages: u32) -> RunView {
    let id = RunId { cluster: "c".into(), app_id: app_id.into(), attempt_id: None };
    let now = Timestamp::now();
    let mut application = Application::new(id, Source::EventLog, now);
    application.start = Some(Timestamp::from_second(1_790_000_000).unwrap());
    application.state = state;
    application.end = (state != State::Running).then_some(now);
    let stage = |stage| Stage::new(StageId { stage, attempt: 0 });
    application.stages = (0..stages).map(stage).collect();
    RunView {
        name: "etl".into(),
        application: Arc::new(application),
        diagnosis: Arc::new(Diagnosis::default()),
        trace_id: None,
    }
}

fn done(app_id: &str, stages: u32) -> RunView {
    run(app_id, State::Succeeded, stages)
}

fn names(app_id: &str, stages: u32) -> BTreeSet<String> {
    (0..stages).map(|stage| format!("{app_id}/{stage}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_is_sent_once_whatever_is_published() {
    let mut world = World::new();
    world.start();
    world.publish(&[run("a", State::Running, 2)]);
    world.taken(2).await;
    // The same reading again, another one of the same, and more.
    let reading = run("a", State::Running, 3);
    for _ in 0..5 {
        world.publish(std::slice::from_ref(&reading));
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.taken(3).await, names("a", 3));
    world.publish(&[done("a", 4), done("b", 2)]);
    world.taken(6).await;
    // Restarted: nothing of what is known.
    world.stop().await;
    world.start();
    sleep(Duration::from_millis(50)).await;
    world.publish(&[done("a", 4), done("b", 3)]);
    let all = world.taken(7).await;
    assert_eq!(all, names("a", 4).union(&names("b", 3)).cloned().collect());
    world.stop().await;
    assert_eq!(world.server.all(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_back_end_that_is_down_for_a_while_gets_everything() {
    let mut world = World::new();
    world.server.down.store(true, Ordering::SeqCst);
    world.start();
    world.publish(&[done("gone", 3), run("b", State::Running, 1)]);
    sleep(Duration::from_millis(250)).await;
    // One leaves the daemon meanwhile, one comes and goes.
    let brief: Vec<RunView> =
        (0..20).map(|number| done(&format!("brief-{number:02}"), 1)).collect();
    for some in brief.windows(8) {
        let b = run("b", State::Running, 1);
        world.publish(&[some, &[b]].concat());
        sleep(Duration::from_millis(20)).await;
    }
    world.publish(&[done("b", 5)]);
    sleep(Duration::from_millis(150)).await;
    assert!(world.server.taken().is_empty());
    world.server.down.store(false, Ordering::SeqCst);
    let all = world.taken(28).await;
    assert!(all.is_superset(&names("gone", 3)) && all.is_superset(&names("b", 5)), "{all:?}");
    world.stop().await;
    assert_eq!(world.server.all().len(), 28);
    assert_eq!(world.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_to_wait_does_not_ask_all_the_time() {
    let mut world = World::new();
    world.server.down.store(true, Ordering::SeqCst);
    world.server.hasty.store(true, Ordering::SeqCst);
    world.start();
    world.publish(&(0..50).map(|number| done(&format!("a{number}"), 1)).collect::<Vec<_>>());
    sleep(Duration::from_millis(520)).await;
    let attempts = world.server.attempts.lock().unwrap().len();
    assert!((1..=6).contains(&attempts), "{attempts}");
    world.server.down.store(false, Ordering::SeqCst);
    world.taken(50).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_refused_costs_only_itself_and_only_once() {
    let mut world = World::new();
    *world.server.refused.lock().unwrap() = Some("bad/1");
    world.start();
    world.publish(&[done("bad", 3), done("good", 3)]);
    let all = world.taken(5).await;
    assert!(!all.contains("bad/1"));
    world.stop().await;
    let attempts = world.server.attempts.lock().unwrap().len();
    assert_eq!(attempts, 6);
    // It would be taken now, and was refused for good.
    *world.server.refused.lock().unwrap() = None;
    world.start();
    world.publish(&[done("bad", 3), done("good", 3), done("next", 1)]);
    world.taken(6).await;
    world.stop().await;
    assert_eq!(world.server.attempts.lock().unwrap().len(), attempts + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_huge_run_does_not_keep_others_waiting() {
    let mut world = World::new();
    world.publish(&[done("huge", 300), done("small", 2), run("that-runs", State::Running, 2)]);
    world.start();
    world.taken(304).await;
    let taken = world.server.taken();
    let place = |name: &str| taken.iter().position(|taken| taken == name).unwrap();
    assert!(place("small/1") < 8 && place("that-runs/1") < 8, "{:?}", &taken[..10]);
    assert!(place("small/0") < place("that-runs/0"), "what has ended comes first");
    let of_huge: Vec<&String> = taken.iter().filter(|one| one.starts_with("huge")).collect();
    assert_eq!(of_huge[299], "huge/299", "each run in its order");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_is_bounded_and_what_goes_is_counted() {
    let mut world = World::new();
    world.pace.most_waiting = 10;
    world.server.down.store(true, Ordering::SeqCst);
    world.start();
    world.publish(&[run("r", State::Running, 1)]);
    let runs: Vec<RunView> = (0..40).map(|number| done(&format!("a{number:02}"), 2)).collect();
    for count in 1..=runs.len() {
        world.publish(&runs[..count]);
        sleep(Duration::from_millis(5)).await;
    }
    // Those whose requests are built wait beside the list.
    let most_left = 2 * (10 + 5);
    let enough = async {
        while world.dropped() < 80 - most_left {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_mins(1), enough).await.expect("the oldest go");
    world.publish(&[]);
    sleep(Duration::from_millis(150)).await;
    let dropped = world.dropped();
    assert!(dropped <= 80 - 2 * 10 && dropped.is_multiple_of(2), "{dropped}");
    world.server.down.store(false, Ordering::SeqCst);
    let left = 80 - usize::try_from(dropped).unwrap();
    world.taken(left).await;
    // What runs comes again when it has changed.
    world.publish(&[done("r", 1)]);
    let all = world.taken(left + 1).await;
    let latest = (33..40).flat_map(|number| names(&format!("a{number}"), 2)).collect();
    assert!(all.contains("r/0") && all.is_superset(&latest), "the oldest went: {all:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_in_trouble_holds_up_what_must_not_come_twice() {
    let mut world = World::new();
    world.memory.trouble.store(true, Ordering::SeqCst);
    world.start();
    world.publish(&[done("a", 2)]);
    assert_eq!(world.taken(2).await, names("a", 2), "spans are sent all the same");
    world.stop().await;
    // What must not: only once the store tells that something is left.
    world.start_with(Careful(Stages { though_uncertain: false }));
    world.publish(&[done("a", 3)]);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(world.server.taken().len(), 2);
    world.memory.trouble.store(false, Ordering::SeqCst);
    assert_eq!(world.taken(3).await, names("a", 3));
    world.stop().await;
    assert_eq!(world.server.all().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_waits_for_what_is_left_and_no_longer() {
    let mut world = World::new();
    world.server.slow.store(true, Ordering::SeqCst);
    world.start();
    world.publish(&[done("a", 2)]);
    sleep(Duration::from_millis(50)).await;
    world.publish(&[done("a", 2), done("late", 1)]);
    // One is under way, the others follow; each takes 200 ms.
    world.pace.shutdown_timeout = Duration::from_secs(2);
    world.stop().await;
    let noted = |world: &World| -> u64 {
        let sent = world.memory.sent.lock().unwrap();
        sent.values().map(|delivered| delivered.spans.stages.len()).sum()
    };
    let taken = world.server.all().len();
    assert!((2..=3).contains(&taken), "{taken}");
    assert_eq!(noted(&world), taken as u64, "what was taken is noted");
    // What is left comes after the restart, and nothing twice.
    world.server.slow.store(false, Ordering::SeqCst);
    world.start();
    assert_eq!(world.taken(3).await.len(), 3);
    world.stop().await;
    // A dead one holds up the end for so long and no longer.
    world.server.down.store(true, Ordering::SeqCst);
    world.pace.shutdown_timeout = Duration::from_millis(300);
    world.pace.turn = Duration::from_mins(1);
    world.start();
    world.publish(&[done("never", 2)]);
    sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    world.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_nothing_is_lost_and_one_request_at_most_comes_twice() {
    const KILLS: u64 = 25;
    let mut world = World::new();
    let runs: Vec<RunView> = (0..20).map(|number| done(&format!("a{number}"), 15)).collect();
    world.publish(&runs);
    for kill in 0..KILLS {
        world.start();
        sleep(Duration::from_millis(3 + kill % 5)).await;
        let task = world.task.take().unwrap();
        task.abort();
        let _ = task.await;
    }
    world.start();
    let wanted: BTreeSet<String> =
        (0..20).flat_map(|number| names(&format!("a{number}"), 15)).collect();
    let all = async {
        while world.server.taken().iter().collect::<BTreeSet<_>>().len() < wanted.len() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_mins(1), all).await.expect("nothing is lost");
    world.stop().await;
    let taken = world.server.taken();
    assert_eq!(taken.iter().cloned().collect::<BTreeSet<_>>(), wanted);
    let twice = (taken.len() - wanted.len()) as u64;
    assert!(twice <= KILLS, "{twice}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_later_is_sent_though_the_run_has_left() {
    let mut world = World::new();
    let late = Instant::now() + Duration::from_millis(400);
    world.start_with(Late(late));
    let runs = [done("a", 2), done("b", 1)];
    world.publish(&runs);
    sleep(Duration::from_millis(100)).await;
    world.publish(&runs[1..]);
    // Moments come and go, each without news.
    for _ in 0..50 {
        world.publish(&runs[1..]);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(world.taken(3).await.len(), 3);
    world.stop().await;
    assert_eq!(world.server.all().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ended_long_ago_is_not_sent() {
    let mut world = World::new();
    world.start();
    let mut old = done("old", 1);
    let application = Arc::make_mut(&mut old.application);
    application.end = Timestamp::now().checked_sub(Duration::from_hours(2)).ok();
    let mut since_long = run("since-long", State::Running, 1);
    Arc::make_mut(&mut since_long.application).observed = Timestamp::UNIX_EPOCH;
    world.publish(&[old, since_long, done("new", 1)]);
    let all = world.taken(2).await;
    assert!(!all.contains("old/0"), "{all:?}");
    world.stop().await;
    assert_eq!(world.server.all().len(), 2);
}
