//! `/allexecutors`: the executors, removed ones and the driver included.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::value::{Count, Moment, Text};
use super::{Api, ApplicationPath};
use crate::fetch::FetchError;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExecutorSummary {
    pub id: Text,
    pub host_port: Text,
    pub is_active: Option<bool>,
    /// Of storage in the unified region, not of the heap.
    pub memory_used: Count,
    pub max_memory: Count,
    pub total_cores: Count,
    pub active_tasks: Count,
    pub failed_tasks: Count,
    pub completed_tasks: Count,
    /// Sum of task durations in milliseconds, not its age.
    pub total_duration: Count,
    #[serde(rename = "totalGCTime")]
    pub total_gc_time: Count,
    pub total_input_bytes: Count,
    pub total_shuffle_read: Count,
    pub total_shuffle_write: Count,
    pub add_time: Moment,
    pub remove_time: Moment,
    pub remove_reason: Text,
    pub peak_memory_metrics: Option<BTreeMap<String, Count>>,
    pub resource_profile_id: Count,
}

pub async fn get(
    api: &Api,
    application: &ApplicationPath,
) -> Result<Vec<ExecutorSummary>, FetchError> {
    api.list("allexecutors", api.application_url(application, &["allexecutors"], &[])).await
}
