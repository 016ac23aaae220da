//! When jobs ran and when none did, and over which span of a run the findings
//! about the whole application are judged: what the rules about driver,
//! start and idleness share.

use std::time::Duration;

use jiff::Timestamp;

use super::steps::{Spans, Steps};
use crate::model::{Application, DataQuality, Kind};

/// Streams and shells run for days: what they did last is what can be mended.
const JUDGED: Duration = Duration::from_hours(1);

/// The span over which findings about the whole application are judged, in
/// milliseconds since the epoch: the run, and of streaming and interactive
/// ones its last hour. `None` where the start is not known.
pub(super) fn judged(application: &Application) -> Option<(i64, i64)> {
    let start = application.start?.as_millisecond();
    let end = end(application);
    let from = match application.kind {
        Kind::Batch => start,
        Kind::Streaming | Kind::Interactive => {
            start.max(end.saturating_sub(JUDGED.as_millis() as i64))
        }
    };
    (from < end).then_some((from, end))
}

/// The end of the run, or the latest moment that is known of it.
pub(super) fn end(application: &Application) -> i64 {
    application.end.unwrap_or(application.observed).as_millisecond()
}

/// Whether the jobs that are known are all that ran. Where some are missing,
/// a gap between the others means nothing.
pub(super) fn are_complete(application: &Application) -> bool {
    let holes = [
        DataQuality::DroppedEvents,
        DataQuality::LogCompacted,
        DataQuality::StagesEvicted,
        DataQuality::StagesOmitted,
    ];
    !holes.iter().any(|hole| application.has(*hole))
        && application.jobs.iter().all(|job| job.submitted.is_some())
}

/// When the first job was submitted.
pub(super) fn first(application: &Application) -> Option<i64> {
    application.jobs.iter().filter_map(|job| job.submitted).min().map(Timestamp::as_millisecond)
}

/// The parts of `[from, to]` in which no job ran. One whose end is not known
/// runs to the end.
pub(super) fn gaps(application: &Application, from: i64, to: i64) -> Spans {
    let mut changes = Vec::new();
    for job in &application.jobs {
        let Some(submitted) = job.submitted.map(Timestamp::as_millisecond) else { continue };
        changes.push((submitted, 1.0));
        if let Some(completed) = job.completed.map(Timestamp::as_millisecond) {
            changes.push((completed.max(submitted), -1.0));
        }
    }
    Steps::from_changes(changes).when(from, to, |jobs| jobs < 0.5)
}
