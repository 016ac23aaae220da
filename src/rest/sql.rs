//! `/sql`: SQL executions with their plans as a graph of nodes, whose metrics
//! are texts for a person (`1.2 s (3 ms, ...)`), cut to three digits.
//!
//! Ascending by id, and paged: without a length releases up to 4.1 send the
//! oldest 20, later ones all. `planDescription` is refused on the list: one of
//! 20 million characters has been seen (SPARK-49872).

use serde::Deserialize;
use serde::de::Deserializer;

use super::value::{Count, Moment, Text};
use super::{Api, ApplicationPath};
use crate::fetch::{Elements, FetchError, FetchErrorKind};
use crate::model::shorten;

/// Executions asked for at once.
pub const PAGE: usize = 100;

/// Characters kept of a node's description, as of an event log's.
const DESCRIPTION: usize = 1_000;

/// Characters kept of a whole plan's text.
const PLAN_TEXT: usize = 2 << 20;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExecutionData {
    pub id: Count,
    /// `RUNNING`, `COMPLETED`, `FAILED`; a hint only (SPARK-40834).
    pub status: Text,
    /// The query's text, or the call site.
    pub description: Text,
    /// Where it was asked for: `EXPLAIN FORMATTED` of the last plan.
    pub plan_description: PlanText,
    pub submission_time: Moment,
    /// Milliseconds; of one that runs: so far.
    pub duration: Count,
    pub running_job_ids: Vec<Count>,
    pub success_job_ids: Vec<Count>,
    pub failed_job_ids: Vec<Count>,
    pub nodes: Vec<NodeData>,
    pub edges: Vec<EdgeData>,
    /// Since 4.2.
    pub error_message: Text,
    /// Since 4.2.
    pub root_execution_id: Count,
    /// Since 4.3.
    pub modified_configs: std::collections::BTreeMap<String, Text>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeData {
    pub node_id: Count,
    pub node_name: Text,
    /// Of nodes that were compiled together: which `WholeStageCodegen (N)`.
    pub whole_stage_codegen_id: Count,
    pub metrics: Vec<MetricData>,
    /// Name and arguments; since 4.3.
    pub desc: NodeText,
}

/// A metric as Spark's UI shows it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MetricData {
    pub name: Text,
    pub value: Text,
}

/// The rows of `from` go to `to`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EdgeData {
    pub from_id: Count,
    pub to_id: Count,
}

/// A node's text, its middle left out where it is long.
#[derive(Debug, Clone, Default)]
pub struct NodeText(pub Option<String>);

/// A plan's text; none where it is longer than anybody reads.
#[derive(Debug, Clone, Default)]
pub struct PlanText(pub Option<String>);

fn any_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Any {
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Any::deserialize(deserializer)? {
        Any::Text(text) => Some(text),
        Any::Other(_) => None,
    })
}

impl<'de> Deserialize<'de> for NodeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(any_text(deserializer)?.map(|text| shorten(&text, DESCRIPTION))))
    }
}

impl<'de> Deserialize<'de> for PlanText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(any_text(deserializer)?.filter(|text| text.len() <= PLAN_TEXT)))
    }
}

/// One page of the list, oldest first, from this place of it on. Without
/// `details` there are no nodes.
pub async fn page<S, F>(
    api: &Api,
    application: &ApplicationPath,
    details: bool,
    offset: usize,
    state: S,
    visit: F,
) -> Result<Elements<S>, FetchError>
where
    S: Send + 'static,
    F: FnMut(&mut S, ExecutionData) + Send + 'static,
{
    let (offset, length) = (offset.to_string(), PAGE.to_string());
    let query = [
        ("details", if details { "true" } else { "false" }),
        ("planDescription", "false"),
        ("offset", &offset),
        ("length", &length),
    ];
    api.array("sql", api.application_url(application, &["sql"], &query), state, visit).await
}

/// What is sent of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its nodes and their metrics.
    Nodes,
    /// The text of its plan.
    Text,
}

/// One execution; `None` where Spark does not know it, or not any more
/// (`spark.sql.ui.retainedExecutions`). It says so with 404 and, before
/// SPARK-45291, in the words for an unknown application.
pub async fn one(
    api: &Api,
    application: &ApplicationPath,
    id: u64,
    part: Part,
) -> Result<Option<ExecutionData>, FetchError> {
    let (details, text) = match part {
        Part::Nodes => ("true", "false"),
        Part::Text => ("false", "true"),
    };
    let query = [("details", details), ("planDescription", text)];
    let url = api.application_url(application, &["sql", &id.to_string()], &query);
    match api.json("sql_execution", url).await {
        Ok(execution) => Ok(Some(execution)),
        Err(error)
            if error.kind == FetchErrorKind::UnknownApplication
                || (error.status == Some(404) && error.what.contains("unknown query")) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_fields_cost_only_themselves() {
        let execution: ExecutionData = serde_json::from_str(
            r#"{"id": 3, "status": 7, "planDescription": null, "nodes": [{"nodeId": 1,
                "nodeName": "Range", "desc": [1], "metrics": [{"name": "x", "value": 3}]}],
                "edges": [{"fromId": 1}], "new": {"a": 1}}"#,
        )
        .expect("readable");
        assert_eq!(execution.id.get(), Some(3));
        assert!(execution.plan_description.0.is_none() && execution.nodes[0].desc.0.is_none());
    }

    #[test]
    fn a_plan_s_text_beyond_all_measure_is_left_out() {
        let long = format!(r#"{{"id": 1, "planDescription": "{}"}}"#, "x".repeat(PLAN_TEXT + 1));
        let execution: ExecutionData = serde_json::from_str(&long).expect("readable");
        assert!(execution.plan_description.0.is_none());
    }
}
