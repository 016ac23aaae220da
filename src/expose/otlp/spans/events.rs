//! Findings as events: on the span of what they are about where that is sent
//! with them, else on the application's, so that none is lost.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::trace::Event;
use opentelemetry_sdk::trace::SpanEvents;

use super::Mark;
use super::build::system_time;
use super::forest::Forest;
use super::select::{Chosen, end_of};
use crate::diagnose::{Finding, Rule, Subject};
use crate::expose::otlp::finding as otlp_finding;
use crate::model::{StageId, hash_of};
use crate::store::SentSpans;

/// As many as an SDK keeps by default; the most severe come first.
const MOST_EVENTS: usize = 128;

/// Which findings go on which node of those that are sent now.
#[derive(Debug, Default)]
pub(super) struct Placed<'a> {
    by_node: HashMap<usize, Vec<(&'a Finding, u64)>>,
    /// Events that were sent with a part and that are no findings any more.
    pub(super) withdrawn: u64,
}

/// The node that a finding is about: the application where it is about
/// nothing that has a span.
pub(super) fn of_subject(forest: &Forest<'_>, subject: &Subject) -> usize {
    let mark = match *subject {
        Subject::Job { job_id } => Mark::Job(job_id),
        Subject::Stage { stage_id, stage_attempt_id } => {
            Mark::Stage(StageId { stage: stage_id, attempt: stage_attempt_id })
        }
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => {
            Mark::Execution(sql_id)
        }
        Subject::Application
        | Subject::Executor { .. }
        | Subject::Host { .. }
        | Subject::ConfigurationKey { .. } => Mark::Application,
    };
    forest.node_of(mark).unwrap_or(0)
}

/// Nodes that something was found in.
pub(super) fn remarkable(forest: &Forest<'_>, findings: &[Finding]) -> HashSet<usize> {
    findings.iter().map(|finding| of_subject(forest, &finding.subject)).collect()
}

/// What tells one finding from another: how bad it is belongs to it, so that
/// one that got worse after its span was sent is told again.
fn hash(finding: &Finding) -> u64 {
    let subject = format!("{:?}", finding.subject);
    let cause = finding.cause.map_or("", crate::diagnose::Cause::as_str);
    hash_of(&[finding.rule.as_str(), cause, finding.severity.as_str(), &subject])
}

pub(super) fn place<'a>(
    forest: &Forest<'_>,
    findings: &'a [Finding],
    chosen: &[(usize, Chosen)],
    sent: &SentSpans,
) -> Placed<'a> {
    let goes: HashSet<usize> =
        chosen.iter().flat_map(|(_, chosen)| chosen.nodes.iter().copied()).collect();
    let mut placed = Placed::default();
    let mut hashes = BTreeSet::new();
    for finding in findings {
        let hash = hash(finding);
        hashes.insert(hash);
        if sent.findings.contains(&hash) {
            continue;
        }
        let subject = of_subject(forest, &finding.subject);
        let node = if goes.contains(&subject) { subject } else { 0 };
        if goes.contains(&node) {
            placed.by_node.entry(node).or_default().push((finding, hash));
        }
    }
    // A run that never ends forgets its old parts, and what was found in them.
    if forest.is_batch() {
        placed.withdrawn = sent.findings.difference(&hashes).count() as u64;
    }
    placed
}

impl Placed<'_> {
    /// The events of a node, and the hashes of what they tell.
    pub(super) fn of(&self, forest: &Forest<'_>, node: usize) -> (SpanEvents, Vec<u64>) {
        let mut events = SpanEvents::default();
        let findings = self.by_node.get(&node).map(Vec::as_slice).unwrap_or_default();
        let told = findings.iter().take(MOST_EVENTS);
        events.dropped_count = findings.len().saturating_sub(MOST_EVENTS) as u32;
        let mut hashes = Vec::new();
        for (finding, hash) in told {
            let (mut attributes, dropped) = otlp_finding::attributes(finding);
            if !forest.has_ended() {
                // More may come to be known before the application ends.
                attributes.push(KeyValue::new("spark.finding.preliminary", true));
            }
            let at = system_time(moment(forest, node, finding));
            events.events.push(Event::new(otlp_finding::EVENT, at, attributes, dropped));
            hashes.push(*hash);
        }
        (events, hashes)
    }
}

/// When it showed, within the span that it is told on: at its end unless the
/// finding is about a moment before.
fn moment(forest: &Forest<'_>, node: usize, finding: &Finding) -> Timestamp {
    let span = &forest.nodes[node];
    let end = span.end.unwrap_or(span.start);
    let stage = forest.node_of(match finding.stage() {
        Some(id) => Mark::Stage(id),
        None => Mark::Application,
    });
    let stage = stage.and_then(|stage| forest.stage(stage));
    let executors = &forest.application.executors;
    let showed = match finding.rule {
        // The slowest task is over.
        Rule::DataSkew | Rule::Straggler => {
            stage.and_then(|stage| stage.slowest.first()).map(end_of)
        }
        Rule::SchedulingDelay => stage.and_then(|stage| stage.first_task_launched),
        Rule::ColdStart => executors.iter().filter_map(|executor| executor.added).min(),
        Rule::ExecutorLost => match &finding.subject {
            Subject::Executor { executor_id } => executors
                .iter()
                .find(|executor| executor.id == *executor_id)
                .and_then(|executor| executor.removed),
            _ => None,
        },
        // Told on the application's span, it belongs where its stage ended.
        _ => stage.and_then(|stage| stage.completed),
    };
    showed.unwrap_or(end).clamp(span.start, end.max(span.start))
}
