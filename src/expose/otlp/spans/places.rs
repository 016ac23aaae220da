//! Where the span of what a finding is about is to be found, for records that
//! name it.

use super::forest::Forest;
use super::{events, sampling};
use crate::config::otlp::Sampling;
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
