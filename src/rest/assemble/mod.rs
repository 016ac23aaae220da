//! Decoded answers into an [`Application`]: pure, so that it is tested on
//! recorded answers and needs no server.
//!
//! What REST cannot tell stays `None`: counts of attempts with metrics, the
//! sum of scheduler delays, quantiles of records where a stage reads (or
//! writes) both files and shuffles, the timeline of tasks, and what each
//! executor did in a stage.

mod executor;
mod job;
mod link;
mod metric_text;
mod plan;
mod sql;
mod stage;
mod task;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;

pub use executor::executors;
pub use job::{ReadJob, job};
pub(crate) use sql::execution;
pub use stage::{add_failed, add_running, add_slowest, add_summary, stage};

use super::applications::{ApplicationAttemptInfo, ApplicationInfo, Exit};
use super::executors::ExecutorSummary;
use super::value::Count;
use crate::model::{
    Application, CachedRdd, Configuration, DataQuality, Kind, RunId, Source, SqlExecution, Stage,
    State,
};

/// Everything that was read about one run.
#[derive(Debug)]
pub struct Parts<'a> {
    pub cluster: &'a str,
    pub source: Source,
    pub application: &'a ApplicationInfo,
    pub attempt: &'a ApplicationAttemptInfo,
    /// `None` where `/environment` did not answer.
    pub configuration: Option<&'a Configuration>,
    pub executors: &'a [ExecutorSummary],
    /// `None` where `/storage/rdd` did not answer, and always from a History
    /// Server, which cannot know it.
    pub cached: Option<&'a [CachedRdd]>,
    pub jobs: Vec<ReadJob>,
    pub stages: Vec<Stage>,
    pub stages_omitted: u64,
    /// Ascending; `None` where `/sql` did not answer.
    pub sql: Option<Vec<SqlExecution>>,
    pub sql_omitted: u64,
    /// Whether `jobs` were read before `stages`, so that an active stage of
    /// finished jobs only is a remnant and no race.
    pub jobs_before_stages: bool,
    /// What is known to be wrong with the data.
    pub data_quality: BTreeSet<DataQuality>,
    /// Our clock.
    pub now: Timestamp,
}

/// The run that these parts tell of.
pub fn application(parts: Parts<'_>) -> Application {
    let configuration = parts.configuration.cloned().unwrap_or_default();
    let attempt_id = parts
        .attempt
        .attempt_id
        .0
        .clone()
        // A live UI never names the attempt in its list.
        .or_else(|| configuration.get("spark.app.attempt.id").map(str::to_owned))
        .filter(|attempt| !attempt.is_empty());
    let id = RunId {
        cluster: parts.cluster.to_owned(),
        app_id: parts.application.id.get().to_owned(),
        attempt_id,
    };
    let mut application = Application::new(id, parts.source, parts.now);
    if !parts.application.name.get().is_empty() {
        parts.application.name.get().clone_into(&mut application.name);
    }
    application.spark_version =
        parts.attempt.app_spark_version.0.clone().filter(|version| !version.is_empty());
    application.user = parts.attempt.spark_user.0.clone().filter(|user| !user.is_empty());
    application.start = parts.attempt.start();
    application.end = parts.attempt.end().filter(|_| parts.attempt.is_completed());
    application.exit_code = parts.attempt.exit_code.and_then(Exit::code);
    application.state = state(parts.source, parts.attempt);
    application.kind = Kind::of(
        parts.jobs.iter().any(|job| job.streamed),
        configuration.java_command.as_deref(),
        &application.name,
    );
    application.data_quality = parts.data_quality;
    let cache_missing = parts.cached.is_none() && parts.source == Source::Driver;
    if parts.configuration.is_none() || cache_missing {
        application.data_quality.insert(DataQuality::EndpointsMissing);
    }
    if configuration.concurrent_gc() {
        application.data_quality.insert(DataQuality::ConcurrentGc);
    }
    // A completed run on a History Server has ended; one that is not there
    // may run or be dead: its log has no end.
    if parts.source == Source::HistoryServer && !parts.attempt.is_completed() {
        application.data_quality.insert(DataQuality::LogIncomplete);
    }
    application.configuration = configuration;
    application.executors = executors(parts.executors);
    application.cached = parts.cached.unwrap_or_default().to_vec();
    application.stages = parts.stages;
    application.stages_omitted = parts.stages_omitted;
    application.jobs = parts.jobs.into_iter().map(|read| read.job).collect();
    application.sql = parts.sql;
    application.sql_omitted = parts.sql_omitted;
    link::jobs_and_stages(&mut application, parts.cached.is_some(), parts.jobs_before_stages);
    link::jobs_and_sql(&mut application);
    application.observed = latest(&application);
    application.doubt_success();
    application
}

fn state(source: Source, attempt: &ApplicationAttemptInfo) -> State {
    match (attempt.is_completed(), attempt.exit_code.and_then(Exit::code)) {
        (false, _) if source == Source::Driver => State::Running,
        (false, _) | (true, None) => State::Unknown,
        (true, Some(0)) => State::Succeeded,
        (true, Some(_)) => State::Failed,
    }
}

/// Our clock, or the latest moment that Spark speaks of where its clock is
/// ahead.
fn latest(application: &Application) -> Timestamp {
    let stages = application
        .stages
        .iter()
        .flat_map(|stage| [stage.submitted, stage.first_task_launched, stage.completed]);
    let jobs = application.jobs.iter().flat_map(|job| [job.submitted, job.completed]);
    let executors =
        application.executors.iter().flat_map(|executor| [executor.added, executor.removed]);
    stages
        .chain(jobs)
        .chain(executors)
        .chain([application.start, application.end])
        .flatten()
        .fold(application.observed, Ord::max)
}
