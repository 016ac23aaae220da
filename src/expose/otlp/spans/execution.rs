//! What the span of a SQL execution says.

use opentelemetry::StringValue;

use super::attributes::Attributes;
use crate::diagnose::Diagnosis;
use crate::metrics::catalogue::Id;
use crate::model::SqlExecution;
use crate::report::{Texts, privacy};

/// Nodes of a plan that are told.
const MOST_NODES: usize = 64;

pub(super) fn attributes(
    execution: &SqlExecution,
    diagnosis: &Diagnosis,
    texts: Texts,
    to: &mut Attributes,
) {
    to.number("spark.sql_execution.id", execution.id);
    if let Some(root) = execution.root_id.filter(|root| *root != execution.id) {
        to.number("spark.sql_execution.root.id", root);
    }
    to.text("spark.sql_execution.status", execution.status.as_str());
    to.count(Id::SqlExecutionJobs, Some(execution.job_ids.len() as u64));
    to.number("spark.sql_execution.plan_updates", execution.plan_updates);
    if let Some(split) = diagnosis.sql_times.get(&execution.id) {
        to.time(split);
    }
    if texts.are_shown() {
        let description = privacy::cut(execution.description.as_str().trim(), 1_000);
        if !description.is_empty() {
            to.text("spark.sql_execution.description", description);
        }
        if let Some(error) = &execution.error {
            to.text("spark.sql_execution.error", privacy::cut(error.as_str(), 1_000));
        }
    }
    if let Some(plan) = &execution.plan {
        let nodes = plan.nodes.iter().take(MOST_NODES);
        let node = |node: &crate::model::PlanNode| -> StringValue {
            if texts.are_shown() {
                privacy::cut(node.text.as_str(), 200).into()
            } else {
                privacy::node_name(&node.name, texts).into()
            }
        };
        to.texts("spark.sql_execution.plan", nodes.map(node).collect());
        let omitted = plan.nodes.len().saturating_sub(MOST_NODES) as u64 + plan.nodes_omitted;
        if omitted > 0 {
            to.number("spark.sql_execution.plan_nodes_omitted", omitted);
        }
    }
}
