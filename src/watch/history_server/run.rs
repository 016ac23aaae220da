//! One finished run of a History Server: its event log where the server gives
//! it, else what its REST API says.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use tracing::info_span;

use super::super::Offer;
use super::super::source::{Cycle, Place, blocking};
use crate::config::ServerUrl;
use crate::eventlog::{self, Listed, ReadOptions};
use crate::fetch::FetchError;
use crate::fetch::files::{Files, ZipFiles};
use crate::model::{RunId, State};
use crate::rest::applications::{ApplicationAttemptInfo, ApplicationInfo};
use crate::rest::logs::LogsError;
use crate::rest::{Api, completed, logs};
use crate::telemetry::events::{HistoryRead, LogFailed, LogRead};

/// A run that could not be read.
#[derive(Debug)]
pub(super) struct Unread {
    message: String,
    /// What the server answered, where that was the reason.
    pub(super) fetch: Option<Box<FetchError>>,
    rest_may_help: bool,
}

impl From<FetchError> for Unread {
    fn from(error: FetchError) -> Self {
        Self { message: error.to_string(), fetch: Some(Box::new(error)), rest_may_help: false }
    }
}

/// Reads the run and takes it in; tells which way it came, and why not the
/// other. `None`: the server takes it to be running, and so does its log.
pub(super) async fn read(
    place: &Place,
    url: &ServerUrl,
    application: &ApplicationInfo,
    attempt: &ApplicationAttemptInfo,
    cycle: &mut Cycle,
) -> Result<Option<Offer>, Unread> {
    let started = Instant::now();
    let clients = place.clients();
    let api = Api::new(&clients.history_server, url);
    let mut route = "zip";
    let mut message = None;
    let mut result = by_log(place, &api, application, attempt).await;
    if let Err(unread) = &result
        && unread.rest_may_help
        // REST would show it as running.
        && attempt.is_completed()
        && place.watcher.config().read.rest_fallback
    {
        route = "rest";
        message = Some(unread.message.clone());
        result = by_rest(place, &api, application, attempt).await.map(Some);
    }
    if let Err(unread) = &result {
        let first = message.take().map_or(String::new(), |log| format!("{log}; and "));
        message = Some(first + &unread.message);
        route = "none";
    }
    cycle.requests += api.meter().requests();
    cycle.bytes += api.meter().wire_bytes();
    let listed = Listed::from((application, attempt));
    let run = RunId {
        cluster: place.cluster.to_string(),
        app_id: listed.app_id,
        attempt_id: listed.attempt_id,
    };
    HistoryRead {
        run: run.to_string(),
        route,
        bytes: api.meter().wire_bytes(),
        duration: started.elapsed(),
        message,
    }
    .emit(place.telemetry());
    result
}

async fn by_rest(
    place: &Place,
    api: &Api,
    application: &ApplicationInfo,
    attempt: &ApplicationAttemptInfo,
) -> Result<Offer, Unread> {
    let options = completed::Options::within(&place.watcher.config().limits);
    let run = completed::read(api, &place.cluster, application, attempt, options).await?;
    Ok(place.take_in(run).await)
}

/// Downloads the log when there is room for it, reads it when it is its turn.
async fn by_log(
    place: &Place,
    api: &Api,
    application: &ApplicationInfo,
    attempt: &ApplicationAttemptInfo,
) -> Result<Option<Offer>, Unread> {
    let interrupted = || Unread {
        message: "reading was interrupted".to_owned(),
        fetch: None,
        rest_may_help: false,
    };
    let watcher = &place.watcher;
    // Kept until the file is gone.
    let _room = watcher.spools.acquire().await.map_err(|_| interrupted())?;
    let files = match logs::get(api, application, attempt, &watcher.spool).await {
        Ok(files) => files,
        Err(error) => {
            let reason = match &error {
                LogsError::Fetch(_) => None,
                LogsError::Damaged(_) => Some("damaged"),
                LogsError::Empty { .. } => Some("no_events"),
            };
            let message = error.to_string();
            if let Some(reason) = reason {
                let path = api.base().to_string();
                LogFailed { path, reason, message: message.clone() }.emit(place.telemetry());
            }
            let rest_may_help = error.rest_may_help();
            return Err(Unread {
                message,
                fetch: error.into_fetch_error().map(Box::new),
                rest_may_help,
            });
        }
    };
    let _turn = watcher.parsing.acquire().await.map_err(|_| interrupted())?;
    let (watcher, cluster) = (watcher.clone(), place.cluster.clone());
    let listed = Listed::from((application, attempt));
    let parsing = blocking(move || parse(&watcher, &cluster, &listed, &files));
    parsing.await.map_err(|_| interrupted())?
}

fn parse(
    watcher: &super::super::Watcher,
    cluster: &str,
    listed: &Listed,
    files: &ZipFiles,
) -> Result<Option<Offer>, Unread> {
    let started = Instant::now();
    let config = watcher.config();
    let options = ReadOptions { cluster, limits: &config.limits };
    let path = files.display("");
    let _span = info_span!("read event log", path).entered();
    match eventlog::read_listed(files, listed, &options) {
        Err(error) => {
            let (reason, message) = (error.reason(), error.to_string());
            LogFailed { path, reason, message: message.clone() }.emit(&watcher.telemetry);
            Err(Unread { message, fetch: None, rest_may_help: true })
        }
        Ok(outcome) => {
            let statistics = outcome.statistics;
            LogRead {
                path,
                application: outcome.application.id.to_string(),
                bytes: statistics.bytes_decompressed,
                lines: statistics.lines,
                bad_lines: statistics.bad_lines + statistics.long_lines,
                unknown_events: statistics.unknown_events,
                duration: started.elapsed(),
            }
            .emit(&watcher.telemetry);
            let mut application = outcome.application;
            if !listed.completed && application.end.is_none() {
                // The time of a log is that of its last block in some stores:
                // what it says itself decides.
                let silent = Timestamp::now().duration_since(application.observed);
                let stale_after = config.read.stale_after.get();
                if silent < SignedDuration::try_from(stale_after).unwrap_or(SignedDuration::MAX) {
                    return Ok(None);
                }
                application.state = State::Lost;
            }
            Ok(Some(watcher.take_in(application, None)))
        }
    }
}
