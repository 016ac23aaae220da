//! A run as a trace: application > SQL execution > job > stage attempt > its
//! slowest tasks, with the times that Spark gives. Pure: [`due`] says what is
//! to be sent now, [`requests`] encodes it, and the caller writes down
//! ([`Done::put`]) what was taken.

mod application;
mod attributes;
mod build;
mod events;
mod execution;
mod forest;
mod job;
mod links;
mod outcome;
mod places;
mod request;
mod sampling;
mod select;
mod stage;
mod task;

use std::collections::{BTreeSet, HashSet};

use jiff::{SignedDuration, Timestamp};
use opentelemetry_sdk::trace::SpanData;

use crate::config::otlp::TracesSettings;
use crate::metrics::RunView;
use crate::model::{Application, Source, StageId, State};
use crate::report::Texts;
use crate::store::SentSpans;

use build::Builder;
use forest::{Forest, Node};
use select::Chosen;

pub use places::{Places, trace_of};
pub use request::{Batch, requests};

/// How long after its end a part of a driver that is asked is waited with.
const SETTLED: SignedDuration = SignedDuration::from_secs(90);

/// How long a run whose driver is gone is waited with for a source that saw
/// how it ended.
const HAND_OVER: SignedDuration = SignedDuration::from_mins(5);

/// What is to be sent of a run now.
#[derive(Debug, Default)]
pub struct Due {
    /// To be sent in this order, and none where one before it was not taken:
    /// what comes later relies on what is known to be there.
    pub parts: Vec<Part>,
    /// Once these are taken nothing more will come of the run.
    pub is_last: bool,
    /// There may be more of the same reading some time later.
    pub again: bool,
}

/// Spans that are sent together, and what is written down of them.
#[derive(Debug, Default)]
pub struct Part {
    pub spans: Vec<SpanData>,
    pub done: Done,
}

/// What [`SentSpans`] gets when a part was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    pub marks: Vec<Mark>,
    /// Spans that were sent.
    pub spans: u64,
    /// Findings that are events of them, by hash.
    pub findings: Vec<u64>,
    /// Spans that are left out of the trace for good
    /// (`otlp.traces.spans_per_trace`), told by its root.
    pub dropped: u64,
}

/// A part of a run; tasks belong to their stage attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    Application,
    Execution(u64),
    Job(u32),
    Stage(StageId),
}

impl Mark {
    pub fn is_in(self, sent: &SentSpans) -> bool {
        match self {
            Self::Application => sent.application,
            Self::Execution(id) => sent.executions.contains(id),
            Self::Job(id) => sent.jobs.contains(u64::from(id)),
            Self::Stage(StageId { stage, attempt: 0 }) => sent.stages.contains(u64::from(stage)),
            Self::Stage(StageId { stage, attempt }) => sent.retries.contains(&(stage, attempt)),
        }
    }

    fn put(self, sent: &mut SentSpans) {
        match self {
            Self::Application => sent.application = true,
            Self::Execution(id) => sent.executions.insert(id),
            Self::Job(id) => sent.jobs.insert(u64::from(id)),
            Self::Stage(StageId { stage, attempt: 0 }) => sent.stages.insert(u64::from(stage)),
            Self::Stage(StageId { stage, attempt }) => sent.retried(stage, attempt),
        }
    }
}

impl Done {
    /// Writes down that a back end took it.
    pub fn put(&self, sent: &mut SentSpans) {
        for mark in &self.marks {
            mark.put(sent);
        }
        sent.spans = sent.spans.saturating_add(self.spans);
        sent.told(&self.findings);
    }
}

/// What of a run has ended, is sampled and was not sent. `texts`: whether
/// texts of users (descriptions of SQL, messages of errors) are shown.
///
/// - While a batch run goes on, parts go as they end, as long as the whole may
///   still fit in `spans_per_trace`; the rest at its end, the costliest first.
/// - Of a run that never ends each SQL execution (or job without one) goes
///   whole when it has ended, in a trace of its own.
/// - A part that was running when its application ended ends with it, and
///   says so (`spark.end_observed`).
/// - A run that is outside the ratio waits for what else may keep it.
pub fn due(
    view: &RunView,
    sent: &SentSpans,
    settings: &TracesSettings,
    texts: Texts,
    now: Timestamp,
) -> Due {
    let application = &*view.application;
    let is_handed_over = is_handed_over(application, now);
    let has_ended = application.state != State::Running && !is_handed_over;
    let is_over = Due { is_last: true, ..Due::default() };
    let Some(forest) = Forest::of(application, sent, has_ended) else {
        return Due { is_last: has_ended, again: is_handed_over, ..Due::default() };
    };
    if sent.application || forest.nodes[0].end.is_some_and(|end| is_old(end, settings, now)) {
        return is_over;
    }
    let findings = &view.diagnosis.findings;
    let remarkable = events::remarkable(&forest, findings);
    // The application's own tree last: its root says what became of the rest.
    let trees = (1..forest.trees.len()).chain([0]);
    let mut chosen: Vec<(usize, Chosen)> = Vec::new();
    let mut not_sampled = Part::default();
    for tree in trees.filter(|tree| !forest.members[*tree].is_empty()) {
        let ended = ended(&forest, tree, settings, now);
        if ended.is_empty() {
            continue;
        }
        if !sampling::is_in(&forest, tree, &settings.sampling) {
            // That is settled, but for a run that goes on.
            if tree != 0 {
                let marks = ended.iter().map(|node| forest.nodes[*node].mark);
                not_sampled.done.marks.extend(marks);
            }
            continue;
        }
        let before = if tree == 0 && forest.is_batch() { sent.spans } else { 0 };
        chosen.extend(
            select::choose(&forest, tree, &ended, &remarkable, before, settings)
                .map(|chosen| (tree, chosen)),
        );
    }
    let placed = events::place(&forest, findings, &chosen, sent);
    let there = there(&forest, &chosen);
    let builder = Builder {
        view,
        forest: &forest,
        placed: &placed,
        there: &there,
        texts,
        tasks_per_stage: settings.tasks_per_stage,
    };
    let mut parts = Vec::new();
    if !not_sampled.done.marks.is_empty() {
        parts.push(not_sampled);
    }
    for (tree, chosen) in &chosen {
        let from = parts.len();
        if *tree == 0 {
            parts.extend(chosen.nodes.iter().rev().map(|node| builder.part(*node, chosen)));
        } else {
            parts.extend(chosen.nodes.iter().map(|node| builder.part(*node, chosen)));
        }
        // What was left out is not asked about again.
        if let Some(last) = parts[from..].last_mut() {
            let ended = ended(&forest, *tree, settings, now);
            let left = ended.difference(&chosen.nodes).map(|node| forest.nodes[*node].mark);
            last.done.marks.extend(left);
        }
    }
    Due { parts, is_last: has_ended, again: is_handed_over }
}

/// A driver that does not answer any more has left its run without an end:
/// the event log or the History Server will tell it, as a rule soon.
fn is_handed_over(application: &Application, now: Timestamp) -> bool {
    application.source == Source::Driver
        && application.state == State::Unknown
        && application.end.is_none()
        && now.duration_since(application.observed) < HAND_OVER
}

/// Nodes of a tree that may go now.
fn ended(
    forest: &Forest<'_>,
    tree: usize,
    settings: &TracesSettings,
    now: Timestamp,
) -> BTreeSet<usize> {
    let is_known = |node: &Node| {
        node.end.is_some_and(|end| {
            forest.has_ended() || is_settled(forest, end, now) && !is_old(end, settings, now)
        })
    };
    let root = &forest.nodes[forest.trees[tree].root];
    if tree != 0 && !root.sent && !is_known(root) {
        return BTreeSet::new();
    }
    let nodes = forest.members[tree].iter().copied();
    nodes.filter(|node| !forest.nodes[*node].sent && is_known(&forest.nodes[*node])).collect()
}

fn is_old(end: Timestamp, settings: &TracesSettings, now: Timestamp) -> bool {
    SignedDuration::try_from(settings.max_age).is_ok_and(|age| now.duration_since(end) > age)
}

/// Of a driver's REST API lists are read one after the other: which SQL
/// execution a job belongs to, and what the tasks of a stage did, is known
/// some time after these have ended.
fn is_settled(forest: &Forest<'_>, end: Timestamp, now: Timestamp) -> bool {
    forest.application.source != Source::Driver || now.duration_since(end) >= SETTLED
}

/// Nodes that have a span, or will have.
fn there(forest: &Forest<'_>, chosen: &[(usize, Chosen)]) -> HashSet<usize> {
    let goes = chosen.iter().flat_map(|(_, chosen)| chosen.nodes.iter().copied());
    let mut there: HashSet<usize> = goes.collect();
    for (index, node) in forest.nodes.iter().enumerate() {
        if node.sent || !forest.has_ended() && (node.end.is_none() || index == 0) {
            there.insert(index);
        }
    }
    there
}
