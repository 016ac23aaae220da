//! `/jobs`: all jobs that the driver still remembers (up to
//! `spark.ui.retainedJobs`), newest first. No paging.

use serde::Deserialize;

use super::value::{Count, Moment, Text};
use super::{Api, ApplicationPath};
use crate::fetch::{Elements, FetchError};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobData {
    pub job_id: Count,
    /// Text of the program, or the query; a stream's micro-batches are known
    /// by it.
    pub description: Text,
    pub submission_time: Moment,
    pub completion_time: Moment,
    pub stage_ids: Vec<Count>,
    /// `RUNNING`, `SUCCEEDED`, `FAILED`, `UNKNOWN`.
    pub status: Text,
}

/// All jobs, or those of one status (`running`).
pub async fn get<S, F>(
    api: &Api,
    application: &ApplicationPath,
    status: Option<&str>,
    state: S,
    visit: F,
) -> Result<Elements<S>, FetchError>
where
    S: Send + 'static,
    F: FnMut(&mut S, JobData) + Send + 'static,
{
    let query: Vec<(&str, &str)> = status.map(|status| ("status", status)).into_iter().collect();
    let url = api.application_url(application, &["jobs"], &query);
    api.array("jobs", url, state, visit).await
}
