//! Which traces are sent.

use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, ShouldSample};

use super::Mark;
use super::forest::{Forest, Node};
use crate::config::otlp::Sampling;
use crate::model::{JobStatus, SqlStatus, State, TraceId};

/// Whether a tree is sent; `false` for one that runs and may still be, by its
/// end or by how long it takes.
pub(super) fn is_in(forest: &Forest<'_>, tree: usize, sampling: &Sampling) -> bool {
    let tree = &forest.trees[tree];
    // Whoever started it has sampled it: a trace is sent whole.
    tree.remote.is_some()
        || by_ratio(tree.trace, sampling.ratio)
        || sampling.keep_failed && did_not_end_well(forest, tree.root)
        || takes_long(forest, &forest.nodes[tree.root], sampling)
}

/// As every OpenTelemetry SDK of Rust decides of the same id.
pub(super) fn by_ratio(trace: TraceId, ratio: f64) -> bool {
    let id = opentelemetry::trace::TraceId::from_bytes(trace.0);
    let sampler = Sampler::TraceIdRatioBased(ratio);
    sampler.should_sample(None, id, "", &SpanKind::Internal, &[], &[]).decision
        == SamplingDecision::RecordAndSample
}

fn takes_long(forest: &Forest<'_>, node: &Node, sampling: &Sampling) -> bool {
    let Some(limit) = sampling.keep_longer_than else { return false };
    let end = node.end.unwrap_or(forest.application.observed);
    jiff::SignedDuration::try_from(limit).is_ok_and(|limit| end.duration_since(node.start) > limit)
}

/// Nothing is known of a run that ended nobody knows how, and a cancellation
/// is somebody's wish.
fn did_not_end_well(forest: &Forest<'_>, node: usize) -> bool {
    let application = forest.application;
    match forest.nodes[node].mark {
        Mark::Application => match application.state {
            State::Failed | State::Killed | State::Lost => true,
            State::Unknown => application.jobs.iter().any(|job| application.died_with(job)),
            State::Running | State::Succeeded | State::Cancelled => false,
        },
        Mark::Execution(_) => {
            forest.execution(node).is_some_and(|execution| execution.status == SqlStatus::Failed)
        }
        Mark::Job(_) => forest.job(node).is_some_and(|job| job.status == JobStatus::Failed),
        Mark::Stage(_) => false,
    }
}
