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
use crate::model::{Application, State};
use crate::rest::running::RunningApplication;

/// Failed cycles in a row after which a driver is taken to be gone: one that
/// is busy collecting garbage misses one or two.
const GONE_AFTER: u32 = 3;

/// Where an application of another shard runs, it is looked for another one
/// as often as this: on a port, or in a pod, one usually stays the same.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Polls a driver until told to stop. Another application on the same port
/// (the next one that was started) is watched as well.
pub(super) async fn watch(place: Place, url: ServerUrl) {
    let target = place.target(&url);
    let mut pace = Pace::new(&target.target);
    let mut reader = RunningApplication::new(place.cluster.as_ref(), url.clone());
    let mut last: Option<Application> = None;
    loop {
        pace.set_interval(place.watcher.config().intervals.driver.get());
        let clients = place.clients();
        let mut cycle = Cycle::start();
        let span = cycle_span(&target);
        let (watcher, cluster) = (&place.watcher, &place.cluster);
        let ours = |name: &str| watcher.is_ours(cluster, name);
        let polled = reader.poll_if(&clients.driver, Timestamp::now(), &ours);
        match polled.instrument(span.clone()).await {
            Ok(None) => {
                if let Some(before) = last.take() {
                    leave(&place, before).await;
                }
                cycle.elsewhere = 1;
                cycle.at_leisure = Some(LOOK_AGAIN);
            }
            Ok(Some(application)) => {
                if let Some(before) = last.take_if(|before| !is_same_run(before, &application)) {
                    leave(&place, before).await;
                }
                last = Some(application.clone());
                if place.take_in(application).instrument(span).await == Offer::NoRoom {
                    cycle.skip("limit", 1);
                }
            }
            Err(error) => {
                cycle.failure = Some(error.into());
                if pace.failures() + 1 >= GONE_AFTER
                    && let Some(application) = last.take()
                {
                    leave(&place, application).await;
                    reader = RunningApplication::new(place.cluster.as_ref(), url.clone());
                }
            }
        }
        cycle.requests = reader.cost().requests;
        cycle.bytes = reader.cost().bytes;
        if place.end_cycle(&target, &mut pace, cycle).await.is_break() {
            break;
        }
    }
    // Nobody here sees it any more, as little as one that does not answer.
    if let Some(application) = last.filter(|_| place.is_removed()) {
        leave(&place, application).await;
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
