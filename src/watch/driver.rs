//! A running driver: polled at its interval until it is gone.

use std::time::Instant;

use jiff::Timestamp;

use super::schedule::Pace;
use super::source::Place;
use crate::config::ServerUrl;
use crate::fetch::FetchError;
use crate::model::{Application, State};
use crate::rest::running::RunningApplication;
use crate::telemetry::TargetId;
use crate::telemetry::events::{CycleFinished, SourceUnreachable};

/// Failed cycles in a row after which a driver is taken to be gone: one that
/// is busy collecting garbage misses one or two.
const GONE_AFTER: u32 = 3;

/// Polls a driver until told to stop. Another application on the same port
/// (the next one that was started) is watched as well.
pub(super) async fn watch(place: Place, url: ServerUrl) {
    let target = place.target(&url);
    let mut pace = Pace::new(place.watcher.config.intervals.driver.get(), &target.target);
    let mut reader = RunningApplication::new(place.cluster.as_ref(), url.clone());
    let mut last: Option<Application> = None;
    loop {
        let started = Instant::now();
        let result = reader.poll(&place.clients.driver, Timestamp::now()).await;
        let success = result.is_ok();
        let wait = match result {
            Ok(application) => {
                if let Some(before) = last.take_if(|before| !is_same_run(before, &application)) {
                    leave(&place, before).await;
                }
                last = Some(application.clone());
                place.take_in(application).await;
                pace.after_success()
            }
            Err(error) => {
                let wait = pace.after_failure(error.retry_after);
                tell(&place, &target, &error, wait);
                if pace.failures() >= GONE_AFTER
                    && let Some(application) = last.take()
                {
                    leave(&place, application).await;
                    reader = RunningApplication::new(place.cluster.as_ref(), url.clone());
                }
                wait
            }
        };
        let cost = reader.cost();
        CycleFinished {
            target: target.clone(),
            success,
            at: Timestamp::now(),
            duration: started.elapsed(),
            requests: cost.requests,
            bytes: cost.bytes,
            skipped: Vec::new(),
        }
        .emit(place.telemetry());
        place.cycle_ended();
        if place.wait(wait).await.is_break() {
            return;
        }
    }
}

fn tell(place: &Place, target: &TargetId, error: &FetchError, wait: std::time::Duration) {
    SourceUnreachable { target: target.clone(), message: error.to_string(), retry_in: Some(wait) }
        .emit(place.telemetry());
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
