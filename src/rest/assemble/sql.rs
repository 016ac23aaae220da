//! `/sql` into the model.

use std::time::Duration;

use super::plan;
use crate::model::{
    Configuration, JobStatus, Names, SqlExecution, SqlStatus, error_class, shorten,
};
use crate::rest::sql::ExecutionData;
use crate::rest::value::Count;
use crate::texts;

/// Characters kept of a description, as of an event log's.
const DESCRIPTION_LENGTH: usize = 500;

/// Session settings kept of one execution, and characters of each.
const MOST_SETTINGS: usize = 64;
const SETTING_LENGTH: usize = 200;

/// An execution, its plan of at most so many nodes. `None` without an id.
/// How often the plan was replaced is not told.
pub(crate) fn execution(
    data: &ExecutionData,
    plan_nodes: usize,
    names: &mut Names,
) -> Option<SqlExecution> {
    let mut execution = SqlExecution::new(data.id.get()?);
    execution.root_id = data.root_execution_id.get();
    execution.start = data.submission_time.0;
    execution.description = shorten(data.description.get(), DESCRIPTION_LENGTH).into();
    execution.status = match data.status.get() {
        "COMPLETED" => SqlStatus::Completed,
        "FAILED" => SqlStatus::Failed,
        "RUNNING" => SqlStatus::Running,
        _ => SqlStatus::Unknown,
    };
    if matches!(execution.status, SqlStatus::Completed | SqlStatus::Failed) {
        let wall = data.duration.get().map(Duration::from_millis);
        execution.end = wall.and_then(|wall| execution.start?.checked_add(wall).ok());
    }
    let message = data.error_message.get();
    if !message.is_empty() && execution.status != SqlStatus::Running {
        execution.status = match JobStatus::of_failure(message) {
            JobStatus::Cancelled => SqlStatus::Cancelled,
            _ => SqlStatus::Failed,
        };
        execution.error_class = error_class(message);
        execution.error = data.error_message.first_lines().map(Into::into);
    }
    let jobs = [&data.running_job_ids, &data.success_job_ids, &data.failed_job_ids];
    execution.job_ids = jobs.into_iter().flatten().filter_map(|id| Count::id(*id)).collect();
    execution.job_ids.sort_unstable();
    execution.job_ids.dedup();
    execution.configuration = Configuration::new(
        data.modified_configs
            .iter()
            .filter(|(key, value)| {
                key.starts_with("spark.sql.")
                    && key.len() <= SETTING_LENGTH
                    && value.get().len() <= SETTING_LENGTH
            })
            .take(MOST_SETTINGS)
            .map(|(key, value)| (key.clone(), value.get().to_owned())),
    );
    execution.plan = plan::plan(data, plan_nodes, names);
    if let (Some(plan), Some(text)) = (&mut execution.plan, &data.plan_description.0) {
        texts::add_text(plan, text);
    }
    Some(execution)
}
