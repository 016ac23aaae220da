//! Links: what belongs together and is not parent and child in one trace; and
//! from a SQL execution to its jobs always.
//!
//! Never to a span's own parent: Jaeger has one relation between two spans, and
//! takes the link for it.

use std::collections::HashSet;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Link, SpanContext};
use opentelemetry_sdk::trace::SpanLinks;

use super::Mark;
use super::build::{context, remote};
use super::forest::{Forest, attempts};
use crate::model::{StageId, TraceContext};

/// As many as an SDK keeps by default.
const MOST_LINKS: usize = 128;

/// Of one span. `there`: nodes that have a span, or will have.
pub(super) fn of(forest: &Forest<'_>, node: usize, there: &HashSet<usize>) -> SpanLinks {
    let is_root = forest.trees[forest.nodes[node].tree].root == node;
    let parent = forest.nodes[node].parent.filter(|_| !is_root);
    let mut links = Links { forest, there, parent, links: SpanLinks::default() };
    if is_root && node != 0 {
        links.add_node(0, "application");
    }
    match forest.nodes[node].mark {
        Mark::Application => {
            let carried = forest.application.trace_context();
            links.carried(carried.filter(|context| !context.sampled).as_ref());
        }
        Mark::Execution(_) => {
            if let Some(execution) = forest.execution(node) {
                for job in &execution.job_ids {
                    links.add_mark(Mark::Job(*job), "job");
                }
            }
        }
        Mark::Job(_) => job(forest, node, &mut links),
        Mark::Stage(id) => {
            if let Some(attempt) = id.attempt.checked_sub(1) {
                links.add_mark(Mark::Stage(StageId { attempt, ..id }), "earlier_attempt");
            }
        }
    }
    links.links
}

fn job(forest: &Forest<'_>, node: usize, links: &mut Links<'_>) {
    let Some(job) = forest.job(node) else { return };
    if let Some(id) = job.sql_execution_id {
        links.add_mark(Mark::Execution(id), "sql_execution");
    }
    links.carried(job.trace_context.as_deref().filter(|context| !context.sampled));
    // Stages that another job ran and that this one waited for.
    for stage in &job.stage_ids {
        for id in attempts(forest.application, *stage) {
            let elsewhere = forest
                .node_of(Mark::Stage(id))
                .filter(|stage| forest.nodes[*stage].parent != Some(node));
            if let Some(stage) = elsewhere {
                links.add_node(stage, "shared_stage");
            }
        }
    }
}

struct Links<'a> {
    forest: &'a Forest<'a>,
    there: &'a HashSet<usize>,
    parent: Option<usize>,
    links: SpanLinks,
}

impl Links<'_> {
    fn add_mark(&mut self, mark: Mark, what: &'static str) {
        if let Some(node) = self.forest.node_of(mark) {
            self.add_node(node, what);
        }
    }

    fn add_node(&mut self, node: usize, what: &'static str) {
        if self.there.contains(&node) && self.parent != Some(node) {
            self.add(context(self.forest, node), what);
        }
    }

    /// A context of somebody else that was not sampled.
    fn carried(&mut self, carried: Option<&TraceContext>) {
        if let Some(carried) = carried {
            self.add(remote(carried), "carried");
        }
    }

    fn add(&mut self, context: SpanContext, what: &'static str) {
        if self.links.links.len() < MOST_LINKS {
            let attributes = vec![KeyValue::new("spark.link", what)];
            self.links.links.push(Link::new(context, attributes, 0));
        } else {
            self.links.dropped_count = self.links.dropped_count.saturating_add(1);
        }
    }
}
