//! A running driver: polled at its interval until it is gone. One whose
//! application belongs to another shard is only asked what it runs, now and
//! then.

use std::time::Duration;

use jiff::Timestamp;
use tracing::Instrument;

use super::Offer;
use super::schedule::Pace;
use super::source::{Cycle, Place, cycle_span};
use crate::config::ServerUrl;
use crate::fetch::FetchError;
use crate::model::{Application, State};
use crate::rest::running::RunningApplication;

/// Failed cycles in a row after which a driver is taken to be gone: one that
/// is busy collecting garbage misses one or two.
pub(super) const GONE_AFTER: u32 = 3;

/// Where an application of another shard runs, it is looked for another one
/// as often as this: on a port, or in a pod, one usually stays the same.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Polls a driver until told to stop. Another application on the same port
/// (the next one that was started) is watched as well.
pub(super) async fn watch(place: Place, url: ServerUrl) {
    let target = place.target(&url);
    let mut pace = Pace::new(&target.target);
    let mut driver = Driver::new(&place, url);
    loop {
        pace.set_interval(place.watcher.config().intervals.driver.get());
        let cycle = Cycle::start();
        let span = cycle_span(&target);
        let answer = driver.ask(&place).instrument(span.clone()).await;
        let cycle = driver.took(&place, answer, cycle).instrument(span).await;
        if place.end_cycle(&target, &mut pace, cycle).await.is_break() {
            break;
        }
    }
    // Nobody here sees it any more, as little as one that does not answer.
    if place.is_removed() {
        driver.leave(&place).await;
    }
}

/// What answers at one URL, and the run that it showed last.
pub(super) struct Driver {
    url: ServerUrl,
    reader: RunningApplication,
    last: Option<Application>,
    /// Failed cycles in a row.
    failures: u32,
}

impl Driver {
    pub(super) fn new(place: &Place, url: ServerUrl) -> Self {
        let reader = RunningApplication::new(place.cluster.as_ref(), url.clone());
        Self { url, reader, last: None, failures: 0 }
    }

    /// Failed cycles in a row.
    #[cfg(feature = "kubernetes")]
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// One poll; nothing where its application belongs to another shard.
    /// Whoever gives it up half way has changed nothing.
    pub(super) async fn ask(&mut self, place: &Place) -> Result<Option<Application>, FetchError> {
        let clients = place.clients();
        let ours = |name: &str| place.is_ours(name);
        self.reader.poll_if(&clients.driver, Timestamp::now(), &ours).await
    }

    /// Takes in what it answered. Not to be given up half way: what is being
    /// taken in would come after whatever is taken in next.
    pub(super) async fn took(
        &mut self,
        place: &Place,
        answer: Result<Option<Application>, FetchError>,
        mut cycle: Cycle,
    ) -> Cycle {
        cycle.requests = self.reader.cost().requests;
        cycle.bytes = self.reader.cost().bytes;
        match answer {
            Ok(None) => {
                self.failures = 0;
                self.leave(place).await;
                cycle.elsewhere = 1;
                cycle.at_leisure = Some(LOOK_AGAIN);
            }
            Ok(Some(application)) => {
                self.failures = 0;
                if let Some(before) = self.last.take_if(|before| !is_same_run(before, &application))
                {
                    leave(place, before).await;
                }
                self.last = Some(application.clone());
                if place.take_in(application).await == Offer::NoRoom {
                    cycle.skip("limit", 1);
                }
            }
            Err(error) => {
                cycle.failure = Some(error.into());
                self.failures = self.failures.saturating_add(1);
                if self.failures >= GONE_AFTER {
                    self.leave(place).await;
                }
            }
        }
        cycle
    }

    /// The run that it showed last is over; whatever comes is another.
    pub(super) async fn leave(&mut self, place: &Place) {
        if let Some(application) = self.last.take() {
            leave(place, application).await;
            self.reader = RunningApplication::new(place.cluster.as_ref(), self.url.clone());
        }
    }
}

fn is_same_run(one: &Application, other: &Application) -> bool {
    one.id == other.id && one.start == other.start
}

/// A driver that does not answer any more ended, in a way that nobody here
/// saw: its run is kept for its retention as `unknown`, without an end, until
/// an event log or a History Server tells more.
async fn leave(place: &Place, mut application: Application) {
    application.state = State::Unknown;
    place.take_in(application).await;
}
