//! The turns of one signal.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::waiting::{Turn, Waiting};
use super::work::{Parcel, Parcels, Work};
use crate::config::otlp::Signal;
use crate::expose::otlp::deliver::{Request, Sender, Sent};
use crate::expose::otlp::records::Now;
use crate::expose::otlp::{Feed, Moment};
use crate::metrics::RunView;
use crate::model::{RunId, State};
use crate::store::{Delivered, Deliveries, Found, News, RunKey};
use crate::telemetry::Telemetry;
use crate::telemetry::events::OtlpDropped;

/// Runs whose requests are built, at most: as much memory as they have to
/// send.
const OPEN: usize = 4;
/// What was taken last is noted within this, after the end.
const LAST_NOTE: Duration = Duration::from_secs(1);

/// How much and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Runs that wait at most.
    pub(super) most_waiting: usize,
    /// How long one request is tried before others have their turn.
    pub(super) turn: Duration,
    /// Between two questions to a store that is in trouble.
    pub(super) ask_again: Duration,
    /// Of what is left when it is to stop, so much time.
    pub(super) shutdown_timeout: Duration,
}

impl Pace {
    pub(super) fn new(shutdown_timeout: Duration) -> Self {
        Self {
            most_waiting: 1_000,
            turn: Duration::from_mins(1),
            ask_again: Duration::from_secs(5),
            shutdown_timeout,
        }
    }
}

/// The way to a back end.
pub(super) trait Carry: Send + Sync + 'static {
    fn send(&self, request: &Request, until: Instant) -> impl Future<Output = Sent> + Send;

    fn signal(&self) -> Signal;
}

impl Carry for Sender {
    fn send(&self, request: &Request, until: Instant) -> impl Future<Output = Sent> + Send {
        Self::send(self, request, until)
    }

    fn signal(&self) -> Signal {
        Self::signal(self)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Worker<W: Work, C> {
    work: Arc<W>,
    carry: Arc<C>,
    deliveries: Arc<dyn Deliveries>,
    telemetry: Arc<Telemetry>,
    feed: Feed,
    pace: Pace,
    last: Option<Arc<Moment>>,
    waiting: Waiting,
    open: VecDeque<Open>,
    /// Of runs that are shown, wait or are open.
    known: BTreeMap<RunKey, Known<W::Memo>>,
    /// Until then the store is not asked.
    ask_at: Option<Instant>,
    /// Once it is to stop: until when something may still be sent.
    end: Option<Instant>,
}

/// A run of which requests are built.
#[derive(Debug)]
struct Open {
    turn: Turn,
    parcels: VecDeque<Parcel>,
}

#[derive(Debug)]
struct Known<M> {
    delivered: Delivered,
    /// Whether the store told.
    certain: bool,
    memo: M,
    /// Whether its reading is looked at again though it is the same.
    again: bool,
    /// That reading, where the daemon does not show the run any more.
    left: Option<RunView>,
}

/// What came of looking at a run.
enum Built<M> {
    Due(Known<M>, Parcels),
    /// The store does not tell what was sent of it.
    Unknown(Known<M>),
}

impl<W: Work, C: Carry> Worker<W, C> {
    pub(super) fn new(
        work: W,
        carry: C,
        deliveries: Arc<dyn Deliveries>,
        telemetry: Arc<Telemetry>,
        feed: Feed,
        pace: Pace,
    ) -> Self {
        Self {
            work: Arc::new(work),
            carry: Arc::new(carry),
            deliveries,
            telemetry,
            feed,
            pace,
            last: None,
            waiting: Waiting::new(pace.most_waiting),
            open: VecDeque::new(),
            known: BTreeMap::new(),
            ask_at: None,
            end: None,
        }
    }

    /// Sends until `stop`, and then what is left as long as there is time.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.look().await;
            self.build().await;
            if let Some(open) = self.open.pop_front() {
                let until = Instant::now() + self.pace.turn;
                let sent = self.send(&open, until, &stop).await;
                if !self.sent(open, sent).await {
                    // Tried until then, or told to wait for longer.
                    self.wait(Some(until), &stop).await;
                }
            } else {
                let until = self.ask_at.filter(|_| self.waiting.len() > 0);
                if !self.wait(until, &stop).await {
                    break;
                }
            }
        }
        let end = self.end.unwrap_or_else(|| Instant::now() + self.pace.shutdown_timeout);
        let last = async {
            self.look().await;
            loop {
                self.build().await;
                let Some(open) = self.open.pop_front() else { break };
                let sent = self.carry.send(first(&open), end).await;
                // A back end that does not take one takes no other.
                if !self.sent(open, sent).await || Instant::now() >= end {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout_at(end + LAST_NOTE, last).await;
    }

    /// Looks at each new moment until then, or until there is a new one where
    /// no time is given. `false`: there will be none any more.
    async fn wait(&mut self, until: Option<Instant>, stop: &CancellationToken) -> bool {
        loop {
            tokio::select! {
                () = stop.cancelled() => return true,
                () = sleep(until) => return true,
                changed = self.feed.changed() => match (changed, until) {
                    (Ok(()), Some(_)) => self.look().await,
                    (Ok(()), None) => return true,
                    // Whoever made moments is gone; what waits has its turns.
                    (Err(_), Some(until)) => {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = sleep_until(until) => {}
                        }
                        return true;
                    }
                    (Err(_), None) => {
                        stop.cancelled().await;
                        return false;
                    }
                },
            }
        }
    }

    /// Sends the first request of a run, and looks at moments that come
    /// meanwhile. What was begun is not broken off: whether it arrived would
    /// not be known.
    async fn send(&mut self, open: &Open, until: Instant, stop: &CancellationToken) -> Sent {
        let carry = Arc::clone(&self.carry);
        let sending = carry.send(first(open), until);
        tokio::pin!(sending);
        let mut feed_is_open = true;
        loop {
            tokio::select! {
                sent = &mut sending => return sent,
                () = stop.cancelled(), if self.end.is_none() => {
                    self.end = Some(Instant::now() + self.pace.shutdown_timeout);
                }
                () = sleep(self.end) => return Sent::GivenUp,
                changed = self.feed.changed(), if feed_is_open => match changed {
                    Ok(()) => self.look().await,
                    Err(_) => feed_is_open = false,
                },
            }
        }
    }

    /// Notes what became of the first request of a run; whether it was taken
    /// or refused, and not given up.
    async fn sent(&mut self, mut open: Open, sent: Sent) -> bool {
        match sent {
            Sent::Accepted { .. } | Sent::Refused => {
                if let Some(parcel) = open.parcels.pop_front() {
                    self.tell_dropped("spans_limit", parcel.left_out);
                    self.note(&open.turn.key, parcel.news).await;
                }
                if open.parcels.is_empty() {
                    self.forget();
                } else {
                    self.open.push_back(open);
                }
                true
            }
            Sent::GivenUp => {
                // Built anew when it has its turn: there may be a newer
                // reading then.
                open.turn.failures = open.turn.failures.saturating_add(1);
                let gone = self.waiting.put_back(open.turn);
                self.drop_run(gone).await;
                false
            }
        }
    }

    async fn note(&mut self, key: &RunKey, news: News) {
        if let Some(known) = self.known.get_mut(key) {
            known.delivered.add(&news);
        }
        let (deliveries, key) = (Arc::clone(&self.deliveries), key.clone());
        let _ = spawn_blocking(move || deliveries.add(&key, news)).await;
    }

    /// Takes in the runs of a new moment whose reading changed.
    async fn look(&mut self) {
        let Some(moment) = self.feed.borrow_and_update().clone() else { return };
        let last = self.last.replace(Arc::clone(&moment));
        if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &moment)) {
            return;
        }
        for view in moment.runs.iter() {
            let key = self.key_of(view);
            let again = self.known.get(&key).is_some_and(|known| known.again);
            let is_same = last.as_ref().is_some_and(|last| is_in(view, &last.runs));
            if (is_same && !again) || self.is_too_old(view, moment.at) {
                continue;
            }
            let gone = self.waiting.put(key, view.clone());
            self.drop_run(gone).await;
        }
        for view in self.left(last.as_deref()) {
            let gone = self.waiting.put(self.key_of(&view), view);
            self.drop_run(gone).await;
        }
        self.forget();
    }

    /// Runs that the daemon does not show any more and that are to be looked
    /// at again all the same.
    fn left(&mut self, last: Option<&Moment>) -> Vec<RunView> {
        let Some(moment) = self.last.clone() else { return Vec::new() };
        let is_shown = |key: &RunKey| {
            shown(&moment.runs, &key.id)
                .is_some_and(|now| RunKey::of(&now.application).is_same_run(key))
        };
        let many = self.known.values().filter(|known| known.left.is_some()).count();
        let mut room = self.pace.most_waiting.saturating_sub(many);
        for view in last.iter().flat_map(|last| last.runs.iter()) {
            let key = self.key_of(view);
            let known = self.known.get_mut(&key).filter(|known| known.again && !is_shown(&key));
            if let Some(known) = known.filter(|_| room > 0) {
                known.left = Some(view.clone());
                room -= 1;
            }
        }
        let mut left = Vec::new();
        for (key, known) in &mut self.known {
            known.left = known.left.take().filter(|_| known.again && !is_shown(key));
            left.extend(known.left.clone().filter(|_| !self.waiting.contains(key)));
        }
        // What is beyond the list comes when there is room.
        left.truncate(self.pace.most_waiting.saturating_sub(self.waiting.len()));
        left
    }

    /// As it was called before, where another source has another start.
    fn key_of(&self, view: &RunView) -> RunKey {
        let key = RunKey::of(&view.application);
        let of_id = |start_ms| RunKey { id: key.id.clone(), start_ms };
        let all = self.known.range(of_id(i64::MIN)..=of_id(i64::MAX));
        let same = all.map(|(known, _)| known).find(|known| known.is_same_run(&key)).cloned();
        same.unwrap_or(key)
    }

    fn is_too_old(&self, view: &RunView, now: Timestamp) -> bool {
        let application = &view.application;
        let ended = application.end.unwrap_or(application.observed);
        let max_age = SignedDuration::try_from(self.work.max_age()).unwrap_or(SignedDuration::MAX);
        application.state != State::Running && now.duration_since(ended) > max_age
    }

    /// Forgets what is known of runs that are neither shown nor to be sent.
    fn forget(&mut self) {
        let Some(moment) = &self.last else { return };
        let (waiting, open) = (&self.waiting, &self.open);
        self.known.retain(|key, known| {
            known.left.is_some()
                || waiting.contains(key)
                || open.iter().any(|open| open.turn.key == *key)
                || shown(&moment.runs, &key.id)
                    .is_some_and(|view| RunKey::of(&view.application).is_same_run(key))
        });
    }

    /// Builds requests of runs that wait, up to a few.
    async fn build(&mut self) {
        if self.ask_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.ask_at = None;
        while self.open.len() < OPEN {
            let open = &self.open;
            let held = |key: &RunKey| open.iter().any(|open| open.turn.key == *key);
            let Some(turn) = self.waiting.next(held) else { break };
            match self.built(&turn).await {
                // A run that cannot be built costs only itself.
                None => {}
                Some(Built::Unknown(known)) => {
                    self.known.insert(turn.key.clone(), known);
                    self.ask_at = Some(Instant::now() + self.pace.ask_again);
                    let gone = self.waiting.put_back(turn);
                    self.drop_run(gone).await;
                    break;
                }
                Some(Built::Due(known, Parcels { parcels, silent, again })) => {
                    self.known.insert(turn.key.clone(), Known { again, ..known });
                    if silent != News::default() {
                        self.note(&turn.key, silent).await;
                    }
                    if !parcels.is_empty() {
                        self.open.push_back(Open { turn, parcels: parcels.into() });
                    }
                }
            }
        }
    }

    /// Where blocking is allowed: the store is asked, and a run may be large.
    async fn built(&mut self, turn: &Turn) -> Option<Built<W::Memo>> {
        let known = self.known.remove(&turn.key);
        let (work, deliveries) = (Arc::clone(&self.work), Arc::clone(&self.deliveries));
        let (key, view) = (turn.key.clone(), turn.view.clone());
        let now = self.now();
        let built = move || {
            let mut known = match known {
                Some(known) if known.certain => known,
                known => {
                    let Found { delivered, certain } = deliveries.find(&key);
                    let memo = known.map(|known| known.memo).unwrap_or_default();
                    Known { delivered, certain, memo, again: false, left: None }
                }
            };
            if !(known.certain || W::THOUGH_UNCERTAIN) {
                return Built::Unknown(known);
            }
            let parcels = work.due(&view, &known.delivered, &mut known.memo, now);
            Built::Due(known, parcels)
        };
        spawn_blocking(built).await.ok()
    }

    fn now(&self) -> Now {
        Now {
            at: Timestamp::now(),
            instant: Instant::now().into_std(),
            ready: self.last.as_ref().is_some_and(|moment| moment.ready),
        }
    }

    /// A run had to go: what it had to send is counted.
    async fn drop_run(&mut self, gone: Option<Turn>) {
        let Some(turn) = gone else { return };
        let items = match self.built(&turn).await {
            Some(Built::Due(_, parcels)) => {
                parcels.parcels.iter().map(|parcel| parcel.request.items).sum()
            }
            // Nobody knows; it is one at least.
            Some(Built::Unknown(_)) | None => 1,
        };
        self.tell_dropped("backlog", items);
    }

    fn tell_dropped(&self, reason: &'static str, count: u64) {
        let signal = self.carry.signal().as_str();
        OtlpDropped { signal, reason, count }.emit(&self.telemetry);
    }
}

/// A run is open only as long as it has requests.
fn first(open: &Open) -> &Request {
    static NOTHING: Request = Request { body: bytes::Bytes::new(), items: 0 };
    open.parcels.front().map_or(&NOTHING, |parcel| &parcel.request)
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Runs are in the order of their ids.
fn shown<'a>(runs: &'a [RunView], id: &RunId) -> Option<&'a RunView> {
    let place = runs.binary_search_by(|view| view.application.id.cmp(id)).ok()?;
    runs.get(place)
}

/// Whether the same reading was there already.
fn is_in(view: &RunView, runs: &[RunView]) -> bool {
    shown(runs, &view.application.id).is_some_and(|known| {
        Arc::ptr_eq(&known.application, &view.application)
            && Arc::ptr_eq(&known.diagnosis, &view.diagnosis)
    })
}
