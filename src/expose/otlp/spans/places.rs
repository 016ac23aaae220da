//! Where the span of what a finding is about is to be found, for records that
//! name it, and the trace of a run, for series that lead there.

use jiff::Timestamp;

use super::forest::Forest;
use super::{events, is_old, sampling};
use crate::config::otlp::{Sampling, TracesSettings};
use crate::diagnose::Subject;
use crate::model::{Application, SpanId, State, TraceId};
use crate::store::SentSpans;

/// Of one run.
#[derive(Debug)]
pub struct Places<'a> {
    forest: Option<Forest<'a>>,
    sampling: Sampling,
}

impl<'a> Places<'a> {
    pub fn of(application: &'a Application, sampling: Sampling) -> Self {
        let ended = application.state != State::Running;
        Self { forest: Forest::of(application, &SentSpans::default(), ended), sampling }
    }

    /// The span that the finding is told on, sent or still to be; that of the
    /// application where it is about nothing that has one. `None` where the
    /// trace is not sampled, or not yet.
    pub fn of_subject(&self, subject: &Subject) -> Option<(TraceId, SpanId)> {
        let forest = self.forest.as_ref()?;
        let node = events::of_subject(forest, subject);
        sampling::is_in(forest, forest.nodes[node].tree, &self.sampling)
            .then(|| (forest.trace_of(node), forest.span_of(node)))
    }
}

/// The trace that the application's span is in, was it sent or is it to be.
/// `None` where it is not sampled, or not yet, and where it ended too long
/// ago: nobody is to be led to a trace that is not there. Whether a back end
/// took it is not known here.
pub fn trace_of(
    application: &Application,
    settings: &TracesSettings,
    now: Timestamp,
) -> Option<TraceId> {
    if application.end.is_some_and(|end| is_old(end, settings, now)) {
        return None;
    }
    let id = TraceId::of(application);
    // Mostly this decides; what else may keep a trace takes a look at the run.
    if application.trace_parent().is_some() || sampling::by_ratio(id, settings.sampling.ratio) {
        return Some(id);
    }
    let place = Places::of(application, settings.sampling).of_subject(&Subject::Application);
    place.map(|(trace_id, _)| trace_id)
}
