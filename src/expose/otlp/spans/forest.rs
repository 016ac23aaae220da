//! Which parts of a run have spans, whose children they are, and in which
//! trace.
//!
//! A batch run is one tree in one trace. A run that never ends (streaming,
//! interactive) would be one trace without an end: there each part directly
//! below the application is a tree in a trace of its own. So is a job that
//! carries the trace context of somebody else: it belongs to theirs.

use std::collections::HashMap;

use jiff::Timestamp;

use super::Mark;
use crate::model::{
    Application, Job, JobStatus, Kind, SpanId, SpanOf, SqlExecution, SqlStatus, Stage, StageId,
    StageStatus, TraceContext, TraceId,
};
use crate::store::SentSpans;

/// One span to be: a part of the run that has a start.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) mark: Mark,
    /// Its place in the list of its sort in [`Application`].
    pub(super) place: usize,
    /// Always before it in [`Forest::nodes`]; `None` for the application.
    pub(super) parent: Option<usize>,
    pub(super) tree: usize,
    pub(super) start: Timestamp,
    /// `None` while it runs.
    pub(super) end: Option<Timestamp>,
    /// False where nobody saw it end: `end` is that of the run, which it
    /// cannot have outlived.
    pub(super) end_seen: bool,
    pub(super) sent: bool,
}

/// Spans of one trace with one root.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: usize,
    pub(super) trace: TraceId,
    /// Whose child the root is, where that is not ours.
    pub(super) remote: Option<TraceContext>,
}

/// All of a run. The first node is the application, the first tree is its
/// trace.
#[derive(Debug)]
pub(super) struct Forest<'a> {
    pub(super) application: &'a Application,
    /// What ids of spans are made of.
    pub(super) run: TraceId,
    pub(super) nodes: Vec<Node>,
    pub(super) trees: Vec<Tree>,
    /// Of each tree its nodes, ascending.
    pub(super) members: Vec<Vec<usize>>,
    by_mark: HashMap<Mark, usize>,
    pub(super) start_seen: bool,
}

impl<'a> Forest<'a> {
    /// `None` for a run of which no time is known. `ended`: whether what has
    /// no end in it ended with it.
    pub(super) fn of(application: &'a Application, sent: &SentSpans, ended: bool) -> Option<Self> {
        let start = application.start.or_else(|| first_moment(application))?;
        let mut forest = Self {
            application,
            run: TraceId::of_run(&application.id, application.start),
            nodes: Vec::new(),
            trees: Vec::new(),
            members: Vec::new(),
            by_mark: HashMap::new(),
            start_seen: application.start.is_some(),
        };
        forest.trees.push(Tree {
            root: 0,
            trace: TraceId::of(application),
            remote: application.trace_parent(),
        });
        let end = ended.then(|| application.end.unwrap_or(application.observed));
        forest.add(Mark::Application, 0, None, start, end, sent);
        forest.nodes[0].end_seen = application.end.is_some();
        forest.executions(sent);
        forest.jobs(sent);
        forest.stages(sent);
        forest.keep_together();
        Some(forest)
    }

    pub(super) fn node_of(&self, mark: Mark) -> Option<usize> {
        self.by_mark.get(&mark).copied()
    }

    pub(super) fn trace_of(&self, node: usize) -> TraceId {
        self.trees[self.nodes[node].tree].trace
    }

    pub(super) fn span_of(&self, node: usize) -> SpanId {
        SpanId::of(self.run, span_of(self.nodes[node].mark))
    }

    /// Whether the application is done, with or without an end that was seen.
    pub(super) fn has_ended(&self) -> bool {
        self.nodes[0].end.is_some()
    }

    /// Whether it is one that ends by itself.
    pub(super) fn is_batch(&self) -> bool {
        self.application.kind == Kind::Batch
    }

    fn add(
        &mut self,
        mark: Mark,
        place: usize,
        parent: Option<usize>,
        start: Timestamp,
        end: Option<Timestamp>,
        sent: &SentSpans,
    ) {
        if self.by_mark.contains_key(&mark) {
            return;
        }
        let of_run = self.nodes.first().and_then(|application| application.end);
        let node = self.nodes.len();
        let own = parent == Some(0) && !self.is_batch();
        let tree = if own {
            self.trees.push(Tree {
                root: node,
                trace: TraceId::of_part(self.run, span_of(mark)),
                remote: None,
            });
            self.trees.len() - 1
        } else {
            parent.map_or(0, |parent| self.nodes[parent].tree)
        };
        self.by_mark.insert(mark, node);
        self.nodes.push(Node {
            mark,
            place,
            parent,
            tree,
            start,
            // Clocks that were set back make no span of negative length.
            end: end.or(of_run).map(|end| end.max(start)),
            end_seen: end.is_some(),
            sent: mark.is_in(sent),
        });
    }

    fn executions(&mut self, sent: &SentSpans) {
        let application = self.application;
        for (place, execution) in application.sql.iter().flatten().enumerate() {
            let Some(start) = execution.start else { continue };
            // One that started others has the lower id.
            let root = execution
                .root_id
                .filter(|root| *root < execution.id)
                .and_then(|root| self.node_of(Mark::Execution(root)));
            let end = execution.end.filter(|_| execution.status != SqlStatus::Running);
            let mark = Mark::Execution(execution.id);
            self.add(mark, place, Some(root.unwrap_or(0)), start, end, sent);
        }
    }

    fn jobs(&mut self, sent: &SentSpans) {
        let application = self.application;
        let own = application.trace_context();
        for (place, job) in application.jobs.iter().enumerate() {
            let Some(start) = job.submitted else { continue };
            let execution =
                job.sql_execution_id.and_then(|id| self.node_of(Mark::Execution(id))).unwrap_or(0);
            let end = job.completed.filter(|_| job.status != JobStatus::Running);
            self.add(Mark::Job(job.id), place, Some(execution), start, end, sent);
            let Some(context) = job.trace_context.as_deref().filter(|context| context.sampled)
            else {
                continue;
            };
            let is_own = own.as_ref().is_some_and(|own| {
                own.trace_id == context.trace_id && own.span_id == context.span_id
            });
            if let Some(node) = self.node_of(Mark::Job(job.id)).filter(|_| !is_own) {
                self.move_to_trace_of(node, context);
            }
        }
    }

    /// Moves a node into the trace of somebody else.
    fn move_to_trace_of(&mut self, node: usize, context: &TraceContext) {
        let tree = Tree { root: node, trace: context.trace_id, remote: Some(context.clone()) };
        let before = self.nodes[node].tree;
        if self.trees[before].root == node {
            self.trees[before] = tree;
        } else {
            self.trees.push(tree);
            self.nodes[node].tree = self.trees.len() - 1;
        }
    }

    fn stages(&mut self, sent: &SentSpans) {
        let application = self.application;
        let jobs: HashMap<u32, &Job> = application.jobs.iter().map(|job| (job.id, job)).collect();
        for (place, stage) in application.stages.iter().enumerate() {
            let ran = matches!(
                stage.status,
                StageStatus::Active | StageStatus::Complete | StageStatus::Failed
            );
            let Some(start) = stage.submitted.filter(|_| ran) else { continue };
            let job = ran_by(stage, start, &jobs).and_then(|id| self.node_of(Mark::Job(id)));
            let end = stage.completed.filter(|_| stage.status != StageStatus::Active);
            self.add(Mark::Stage(stage.id), place, Some(job.unwrap_or(0)), start, end, sent);
        }
    }

    /// What was sent of a tree before its root was sent in the trace of the
    /// tree above: before the run turned out to be one that does not end, or
    /// by a source that does not tell of the context. Trees of their own are
    /// sent root first, so then the whole of it stays there.
    fn keep_together(&mut self) {
        let mut begun = vec![false; self.trees.len()];
        for node in self.nodes.iter().filter(|node| node.sent) {
            begun[node.tree] = true;
        }
        // Trees stand after those above them.
        let mut becomes: Vec<usize> = (0..self.trees.len()).collect();
        for tree in 1..self.trees.len() {
            let root = &self.nodes[self.trees[tree].root];
            if begun[tree] && !root.sent {
                becomes[tree] = root.parent.map_or(0, |parent| becomes[self.nodes[parent].tree]);
            }
        }
        self.members = vec![Vec::new(); self.trees.len()];
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.tree = becomes[node.tree];
            self.members[node.tree].push(index);
        }
    }

    pub(super) fn execution(&self, node: usize) -> Option<&'a SqlExecution> {
        let Node { mark: Mark::Execution(_), place, .. } = self.nodes[node] else { return None };
        self.application.sql.as_ref()?.get(place)
    }

    pub(super) fn job(&self, node: usize) -> Option<&'a Job> {
        let Node { mark: Mark::Job(_), place, .. } = self.nodes[node] else { return None };
        self.application.jobs.get(place)
    }

    pub(super) fn stage(&self, node: usize) -> Option<&'a Stage> {
        let Node { mark: Mark::Stage(_), place, .. } = self.nodes[node] else { return None };
        self.application.stages.get(place)
    }
}

pub(super) fn span_of(mark: Mark) -> SpanOf {
    match mark {
        Mark::Application => SpanOf::Application,
        Mark::Execution(id) => SpanOf::SqlExecution(id),
        Mark::Job(id) => SpanOf::Job(id),
        Mark::Stage(id) => SpanOf::Stage(id),
    }
}

/// Of the jobs that listed the stage the one that ran it: the first that was
/// there when it was submitted.
fn ran_by(stage: &Stage, start: Timestamp, jobs: &HashMap<u32, &Job>) -> Option<u32> {
    let listed = || stage.job_ids.iter().filter_map(|id| jobs.get(id));
    let was_there = |job: &&&Job| {
        job.submitted.is_some_and(|submitted| submitted <= start)
            && job.completed.is_none_or(|completed| completed >= start)
    };
    let job = listed().filter(was_there).min_by_key(|job| (job.submitted, job.id));
    job.or_else(|| listed().min_by_key(|job| (job.submitted, job.id))).map(|job| job.id)
}

/// The stage attempts of one stage id that have a place.
pub(super) fn attempts(application: &Application, stage: u32) -> impl Iterator<Item = StageId> {
    let from = application.stages.partition_point(|one| one.id.stage < stage);
    application.stages[from..].iter().map(|one| one.id).take_while(move |id| id.stage == stage)
}

/// The earliest that is known of a run whose start is not.
fn first_moment(application: &Application) -> Option<Timestamp> {
    let jobs = application.jobs.iter().filter_map(|job| job.submitted);
    let stages = application.stages.iter().filter_map(|stage| stage.submitted);
    let executions = application.sql.iter().flatten().filter_map(|execution| execution.start);
    let executors = application.executors.iter().filter_map(|executor| executor.added);
    jobs.chain(stages).chain(executions).chain(executors).min()
}
