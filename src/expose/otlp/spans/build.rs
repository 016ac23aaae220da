//! One node as spans: its own, and those of its slowest tasks.

use std::borrow::Cow;
use std::collections::HashSet;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::attributes::Attributes;
use super::events::Placed;
use super::forest::Forest;
use super::select::{Chosen, end_of};
use super::{Done, Mark, Part, application, execution, job, links, outcome, select, stage, task};
use crate::metrics::RunView;
use crate::model::{FailureClass, SpanOf, StageId, Task, TraceContext};
use crate::report::Texts;

/// What all spans of one time are made with.
pub(super) struct Builder<'a> {
    pub(super) view: &'a RunView,
    pub(super) forest: &'a Forest<'a>,
    pub(super) placed: &'a Placed<'a>,
    /// Nodes that have a span, or will have.
    pub(super) there: &'a HashSet<usize>,
    pub(super) texts: Texts,
    pub(super) tasks_per_stage: usize,
}

impl Builder<'_> {
    pub(super) fn part(&self, node: usize, chosen: &Chosen) -> Part {
        let mark = self.forest.nodes[node].mark;
        let (span, findings) = self.span(node, chosen.dropped);
        let mut spans = vec![span];
        if let Some(stage) = self.forest.stage(node) {
            let tasks = select::tasks(stage, self.tasks_per_stage).enumerate();
            let tasks = tasks.filter(|(place, _)| chosen.tasks.contains(&(node, *place)));
            spans
                .extend(tasks.map(|(_, (task, failure))| self.task(node, stage.id, task, failure)));
        }
        let mut marks = vec![mark];
        if let Some(job) = self.forest.job(node).filter(|job| job.completed.is_some()) {
            // So that what was sent is ranges without gaps.
            marks.extend(job::never_ran(self.forest, job).map(Mark::Stage));
        }
        let is_root = self.forest.trees[self.forest.nodes[node].tree].root == node;
        let dropped = if is_root { chosen.dropped } else { 0 };
        let done = Done { marks, spans: spans.len() as u64, findings, dropped };
        Part { spans, done }
    }

    fn span(&self, index: usize, dropped: u64) -> (SpanData, Vec<u64>) {
        let forest = self.forest;
        let node = &forest.nodes[index];
        let mut attributes = Attributes::default();
        let diagnosis = &self.view.diagnosis;
        match node.mark {
            Mark::Application => application::attributes(self.view, &mut attributes),
            Mark::Execution(_) => {
                if let Some(execution) = forest.execution(index) {
                    execution::attributes(execution, diagnosis, self.texts, &mut attributes);
                }
            }
            Mark::Job(_) => {
                if let Some(job) = forest.job(index) {
                    job::attributes(forest, job, self.texts, &mut attributes);
                }
            }
            Mark::Stage(_) => {
                if let Some(stage) = forest.stage(index) {
                    stage::attributes(stage, diagnosis, self.texts, &mut attributes);
                }
            }
        }
        if !node.end_seen {
            attributes.flag("spark.end_observed", false);
        }
        if index == 0 {
            if !forest.start_seen {
                attributes.flag("spark.start_observed", false);
            }
            if self.placed.withdrawn > 0 {
                attributes.number("spark.findings.withdrawn", self.placed.withdrawn);
            }
        }
        if dropped > 0 && forest.trees[node.tree].root == index {
            attributes.number("spark.spans.dropped", dropped);
        }
        let status = outcome::status(forest, index, &mut attributes);
        let (events, findings) = self.placed.of(forest, index);
        let span = SpanData {
            span_context: context(forest, index),
            parent_span_id: parent(forest, index),
            parent_span_is_remote: self.is_remote(index),
            events,
            links: links::of(forest, index, self.there),
            status,
            ..plain(
                name(node.mark, forest.is_batch()),
                node.start,
                node.end.unwrap_or(node.start),
                attributes,
            )
        };
        (span, findings)
    }

    fn is_remote(&self, index: usize) -> bool {
        let tree = &self.forest.trees[self.forest.nodes[index].tree];
        tree.root == index && tree.remote.is_some()
    }

    fn task(
        &self,
        node: usize,
        stage: StageId,
        task: &Task,
        failure: Option<FailureClass>,
    ) -> SpanData {
        let mut attributes = Attributes::default();
        task::attributes(stage, task, &mut attributes);
        let status = outcome::of_class(failure, &mut attributes);
        let parent = context(self.forest, node);
        let id = crate::model::SpanId::of(self.forest.run, SpanOf::Task(task.id));
        SpanData {
            span_context: SpanContext::new(
                parent.trace_id(),
                SpanId::from_bytes(id.0),
                TraceFlags::SAMPLED,
                false,
                parent.trace_state().clone(),
            ),
            parent_span_id: parent.span_id(),
            status,
            ..plain("task".into(), task.launched, end_of(task), attributes)
        }
    }
}

/// A span without a place.
fn plain(
    name: Cow<'static, str>,
    start: Timestamp,
    end: Timestamp,
    attributes: Attributes,
) -> SpanData {
    SpanData {
        span_context: SpanContext::NONE,
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name,
        start_time: system_time(start),
        end_time: system_time(end),
        attributes: attributes.into_list(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::default(),
    }
}

/// The epoch for what is before it, which OTLP has no number for.
pub(super) fn system_time(at: Timestamp) -> SystemTime {
    let since = at.duration_since(Timestamp::UNIX_EPOCH);
    SystemTime::UNIX_EPOCH + Duration::try_from(since).unwrap_or_default()
}

/// A name says what sort of thing it is. Numbers are in it only where they
/// come again with each run of the same program: those of a stream go on for
/// ever, and a back end keeps a list of names.
fn name(mark: Mark, is_batch: bool) -> Cow<'static, str> {
    let (sort, number) = match mark {
        Mark::Application => return "application".into(),
        Mark::Execution(id) => ("sql", id.to_string()),
        Mark::Job(id) => ("job", id.to_string()),
        Mark::Stage(StageId { stage, attempt: 0 }) => ("stage", stage.to_string()),
        Mark::Stage(id) => ("stage", id.to_string()),
    };
    if is_batch { format!("{sort} {number}").into() } else { sort.into() }
}

/// Of a node's span.
pub(super) fn context(forest: &Forest<'_>, node: usize) -> SpanContext {
    let remote = forest.trees[forest.nodes[node].tree].remote.as_ref();
    SpanContext::new(
        TraceId::from_bytes(forest.trace_of(node).0),
        SpanId::from_bytes(forest.span_of(node).0),
        TraceFlags::SAMPLED,
        false,
        remote.map(state).unwrap_or_default(),
    )
}

/// Of somebody else.
pub(super) fn remote(context: &TraceContext) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(context.trace_id.0),
        SpanId::from_bytes(context.span_id.0),
        if context.sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED },
        true,
        state(context),
    )
}

fn state(context: &TraceContext) -> TraceState {
    TraceState::from_str(&context.state).unwrap_or_default()
}

fn parent(forest: &Forest<'_>, index: usize) -> SpanId {
    let node = &forest.nodes[index];
    let tree = &forest.trees[node.tree];
    match (&tree.remote, node.parent) {
        (Some(remote), _) if tree.root == index => SpanId::from_bytes(remote.span_id.0),
        (_, Some(parent)) if tree.root != index => SpanId::from_bytes(forest.span_of(parent).0),
        _ => SpanId::INVALID,
    }
}
