//! A directory of event logs: listed at its interval, each finished log read
//! once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::schedule::Pace;
use super::source::{Cycle, Place};
use super::{Offer, Watcher};
use crate::eventlog::{self, LogFiles, ReadOptions};
use crate::fetch::files::Files;
use crate::telemetry::events::{LogFailed, LogRead, SourceProbed};
use futures_util::StreamExt;

/// A log as it was when it was read: it is read again only if it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    bytes: u64,
    modified: SystemTime,
    /// Why nothing came of it.
    skipped: Option<&'static str>,
}

/// Reads the logs of a directory until told to stop.
pub(super) async fn watch(place: Place, files: Arc<dyn Files>) {
    let target = place.target(&files.display(""));
    let mut pace = Pace::new(place.watcher.config.intervals.event_log_dir.get(), &target.target);
    let mut readings: HashMap<String, Reading> = HashMap::new();
    let mut known = false;
    loop {
        let mut cycle = Cycle::start();
        match scan(Arc::clone(&files)).await {
            Ok(found) => {
                if !known {
                    known = true;
                    SourceProbed { target: target.clone(), kind: "event_log", spark_version: None }
                        .emit(place.telemetry());
                }
                read_new(&place, &files, found, &mut readings, &mut cycle).await;
            }
            Err(message) => cycle.failure = Some(message.into()),
        }
        if place.end_cycle(&target, &mut pace, cycle).await.is_break() {
            return;
        }
    }
}

/// What a scan found: the logs, and how many entries could not be looked at.
struct Found {
    logs: Vec<LogFiles>,
    unreadable: u64,
}

async fn scan(files: Arc<dyn Files>) -> Result<Found, String> {
    let scan = move || match eventlog::scan(&*files) {
        Ok(scan) => {
            let unreadable = |reason: &eventlog::SkipReason| reason.as_str() == "unreadable";
            let unreadable = scan.skipped.iter().filter(|(_, reason)| unreadable(reason)).count();
            Ok(Found { logs: scan.logs, unreadable: unreadable as u64 })
        }
        Err(error) => Err(error.to_string()),
    };
    tokio::task::spawn_blocking(scan).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Reads what is new, newest first, and counts what was left out and why.
async fn read_new(
    place: &Place,
    files: &Arc<dyn Files>,
    found: Found,
    readings: &mut HashMap<String, Reading>,
    cycle: &mut Cycle,
) {
    let watcher = &place.watcher;
    let Found { mut logs, unreadable } = found;
    logs.sort_by_key(|log| std::cmp::Reverse(log.modified));
    // What is no longer listed needs no memory.
    readings.retain(|path, _| logs.iter().any(|log| log.path == *path));

    let lookback = watcher.config.read.lookback.map(|span| SystemTime::now() - span.get());
    let mut to_read = Vec::new();
    for log in logs {
        let reason = if log.in_progress == Some(true) || still_appears(&log) {
            Some("in_progress")
        } else if lookback.is_some_and(|oldest| log.modified < oldest) {
            Some("lookback")
        } else {
            match readings.get(&log.path) {
                Some(reading) if reading.is_of(&log) => reading.skipped,
                _ => {
                    to_read.push(log);
                    continue;
                }
            }
        };
        if let Some(reason) = reason {
            cycle.skip(reason, 1);
        }
    }

    let results: Vec<(LogFiles, Option<&'static str>)> = futures_util::stream::iter(to_read)
        .map(|log| async {
            let result = read(place, files, &log).await;
            (log, result)
        })
        .buffer_unordered(watcher.config.limits.concurrent_logs)
        .collect()
        .await;
    for (log, skipped) in results {
        if let Some(reason) = skipped {
            cycle.skip(reason, 1);
        }
        // A run for which there was no room is read again when there is.
        if skipped != Some("limit") {
            let reading = Reading { bytes: log.bytes, modified: log.modified, skipped };
            readings.insert(log.path, reading);
        }
    }
    cycle.skip("unreadable", unreadable);
}

impl Reading {
    fn is_of(&self, log: &LogFiles) -> bool {
        self.bytes == log.bytes && self.modified == log.modified
    }
}

/// A rolling directory without `appstatus` is one whose end marker is being
/// renamed, for a moment (object stores); after a day it will not come.
fn still_appears(log: &LogFiles) -> bool {
    let age = SystemTime::now().duration_since(log.modified).unwrap_or_default();
    log.in_progress.is_none() && age < Duration::from_hours(24)
}

/// Reads and takes in one log; the reason where nothing came of it.
async fn read(place: &Place, files: &Arc<dyn Files>, log: &LogFiles) -> Option<&'static str> {
    let watcher = Arc::clone(&place.watcher);
    let Ok(_permit) = watcher.parsing.acquire().await else { return Some("unreadable") };
    if watcher.registry().len() >= watcher.config.limits.applications {
        return Some("limit");
    }
    let cluster = Arc::clone(&place.cluster);
    let log = log.clone();
    let path = files.display(&log.path);
    let (reader, files) = (Arc::clone(&watcher), Arc::clone(files));
    let result =
        tokio::task::spawn_blocking(move || read_blocking(&reader, &cluster, &*files, &log)).await;
    result.unwrap_or_else(|error| {
        failed(&watcher, path, "unreadable", format!("reading it stopped half way: {error}"));
        Some("unreadable")
    })
}

fn read_blocking(
    watcher: &Watcher,
    cluster: &str,
    files: &dyn Files,
    log: &LogFiles,
) -> Option<&'static str> {
    let started = Instant::now();
    let options = ReadOptions { cluster, limits: &watcher.config.limits };
    let path = files.display(&log.path);
    match eventlog::read(log, files, &options) {
        Err(error) => {
            failed(watcher, path, error.reason(), error.to_string());
            Some("unreadable")
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
            (watcher.take_in(outcome.application) == Offer::NoRoom).then_some("limit")
        }
    }
}

fn failed(watcher: &Watcher, path: String, reason: &'static str, message: String) {
    LogFailed { path, reason, message }.emit(&watcher.telemetry);
}
