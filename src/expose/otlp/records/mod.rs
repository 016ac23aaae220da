//! New, changed and cleared findings as log records. Pure: `due` says what
//! is to be said of a reading, `requests` encodes it, and the caller notes
//! what was taken.
//!
//! A finding is the same one as long as rule and subject are. What was said of
//! it is known from the store, so neither a restart nor another source says it
//! again. While a run goes on, numbers go up and down around a threshold:
//!
//! - what is new or got worse is said at once;
//! - what is gone, got better, or has another cause is said once it has stayed
//!   so for `HOLD`. So a finding makes a few records in that time at most,
//!   however often it flaps.
//!
//! The reading of a run whose end was seen does not flap: what it says counts
//! at once. Nothing is cleared because a run left the daemon, because the
//! daemon has only just begun to read, or because an old stage or execution
//! left the reading of a long run: that is no news of the finding.

mod matched;
mod record;
mod request;
mod subject;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opentelemetry_proto::tonic::logs::v1::LogRecord;

use self::matched::Matched;
use self::record::{Change, cleared, found};
use self::subject::{ended, is_there};
use crate::diagnose::{Severity, Subject};
use crate::metrics::RunView;
use crate::model::{SpanId, State, TraceId};
use crate::store::{FindingNews, SentFinding};

pub(super) use request::{Batch, requests};

/// What is less than urgent must have stayed so for so long.
const HOLD: Duration = Duration::from_mins(5);
/// So many findings are remembered of parts that left the reading; of older
/// ones it would be said again if they came back.
const MOST_LEFT: usize = 500;

/// The span of what a finding is about, where it has one.
pub(super) type SpanOf<'a> = dyn Fn(&Subject) -> Option<(TraceId, SpanId)> + 'a;

/// When it is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// By our clock, for people.
    pub(super) at: Timestamp,
    /// By one that does not jump.
    pub(super) instant: Instant,
    /// Whether every source has ended its first cycle.
    pub(super) ready: bool,
}

/// What is not said yet because it may pass; kept between two looks at a run.
#[derive(Debug, Default)]
pub(super) struct Memo(BTreeMap<Identity, (Wish, Instant)>);

/// As in [`SentFinding::is_same`].
type Identity = (String, String, u32);

/// What would be said.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    Cleared,
    Changed { severity: Severity, cause: Option<String> },
}

/// One record, and what is noted once it was taken.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) log: LogRecord,
    pub(super) news: FindingNews,
}

/// What is to be said of a reading.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub(super) records: Vec<Record>,
    /// What is noted without a word to anybody.
    pub(super) silent: Vec<FindingNews>,
    /// Whether the same reading has to be looked at again, later.
    pub(super) again: bool,
}

/// What is to be said of a run of which `said` was.
pub(super) fn due(
    view: &RunView,
    said: &[SentFinding],
    memo: &mut Memo,
    now: Now,
    span_of: &SpanOf<'_>,
) -> Due {
    let application = &*view.application;
    let is_final = application.state != State::Running && application.end.is_some();
    let end = application.end.map_or(now.at, |end| end.min(now.at));
    let mut due = Due::default();
    let mut waits = BTreeMap::new();
    let matched = Matched::of(&view.diagnosis.findings, said);
    for (finding, known, new) in matched.found {
        let Some(known) = known else {
            let time = ended(application, &finding.subject).map_or(now.at, |end| end.min(now.at));
            let log = found(finding, Change::New, time, now.at, span_of(&finding.subject));
            due.records.push(Record { log, news: FindingNews::Said(new) });
            continue;
        };
        if known.severity == new.severity && known.cause == new.cause {
            continue;
        }
        let worse = severity(&known.severity) < Some(finding.severity);
        let wish = Wish::Changed { severity: finding.severity, cause: new.cause.clone() };
        if worse || is_final || memo.has_lasted(&new, &wish, now.instant, &mut waits) {
            let time = if is_final { end } else { now.at };
            let log = found(finding, Change::Changed, time, now.at, span_of(&finding.subject));
            due.records.push(Record { log, news: FindingNews::Said(new) });
        }
    }
    let mut left = Vec::new();
    for known in matched.missing {
        let subject: Option<Subject> = serde_json::from_str(&known.subject).ok();
        let Some(subject) = subject.filter(|subject| is_there(application, subject)) else {
            left.push(known);
            continue;
        };
        // It may be among those that there was no room for.
        if view.diagnosis.findings_omitted > 0 {
            continue;
        }
        if !now.ready {
            due.again = true;
            continue;
        }
        if is_final || memo.has_lasted(known, &Wish::Cleared, now.instant, &mut waits) {
            let since = memo.since(known).map(|since| now.instant.duration_since(since));
            let away = since.and_then(|since| now.at.checked_sub(since).ok());
            let time = if is_final { end } else { away.unwrap_or(now.at) };
            let log = cleared(known, &subject, time, now.at, span_of(&subject));
            due.records.push(Record { log, news: FindingNews::Gone(known.clone()) });
        }
    }
    let over = left.len().saturating_sub(MOST_LEFT);
    due.silent = left.into_iter().take(over).cloned().map(FindingNews::Gone).collect();
    due.again |= !waits.is_empty();
    memo.0 = waits;
    due
}

impl Memo {
    /// Whether this has been wished for long enough; where not, it goes on
    /// waiting in `waits`.
    fn has_lasted(
        &self,
        finding: &SentFinding,
        wish: &Wish,
        now: Instant,
        waits: &mut BTreeMap<Identity, (Wish, Instant)>,
    ) -> bool {
        let identity = identity(finding);
        let known = self.0.get(&identity).filter(|(known, _)| known == wish);
        let since = known.map_or(now, |(_, since)| *since);
        // Until it was taken, it goes on waiting as well: what was sent may
        // not have arrived.
        waits.insert(identity, (wish.clone(), since));
        now.duration_since(since) >= HOLD
    }

    fn since(&self, finding: &SentFinding) -> Option<Instant> {
        self.0.get(&identity(finding)).map(|(_, since)| *since)
    }
}

fn identity(finding: &SentFinding) -> Identity {
    (finding.rule.clone(), finding.subject.clone(), finding.place)
}

fn severity(word: &str) -> Option<Severity> {
    Severity::ALL.into_iter().find(|severity| severity.as_str() == word)
}
