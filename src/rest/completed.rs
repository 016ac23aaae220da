//! One finished run from a History Server, by its API.
//!
//! The fallback where no event log can be reached ([`super::logs`]): the
//! server replays the whole log for the first question, so a run is read once, one question
//! after the other, and only its costly stages are asked for their tasks.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::applications::{ApplicationAttemptInfo, ApplicationInfo};
use super::assemble::{self, Parts, ReadJob};
use super::details::{Details, details, retained_tasks};
use super::jobs::JobData;
use super::listing::Listing;
use super::{Api, ApplicationPath, environment, executors, jobs, sql_list, stages};
use crate::config::Limits;
use crate::fetch::{FetchError, FetchErrorKind};
use crate::model::{Application, DataQuality, Source};

/// How much of a run is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Stage attempts with this run time (of all tasks together) and more
    /// are asked for their tasks ...
    pub details_from: Duration,
    /// ... at most so many, the costliest.
    pub details_at_most: usize,
    /// Stage attempts kept.
    pub stages: usize,
    /// SQL executions that are asked for the text of their plan, the longest,
    /// where its nodes came without.
    pub texts_at_most: usize,
    /// SQL executions kept.
    pub sql_executions: usize,
    /// Nodes kept of all their plans.
    pub plan_nodes: usize,
}

impl Options {
    /// As much as the operator's limits allow.
    pub fn within(limits: &Limits) -> Self {
        Self {
            stages: limits.stages,
            sql_executions: limits.sql_executions,
            plan_nodes: limits.plan_nodes,
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            details_from: Duration::from_secs(1),
            details_at_most: 50,
            stages: 100_000,
            texts_at_most: 20,
            sql_executions: 1_000,
            plan_nodes: 50_000,
        }
    }
}

/// Reads the run that `attempt`, as the server listed it, names. Fails where
/// the server does not know it (any more), or the list of its stages or jobs
/// cannot be had; any other part that fails is marked
/// ([`DataQuality::EndpointsMissing`]).
pub async fn read(
    api: &Api,
    cluster: &str,
    application: &ApplicationInfo,
    attempt: &ApplicationAttemptInfo,
    options: Options,
) -> Result<Application, FetchError> {
    let path = ApplicationPath::new(application.id.get(), attempt.attempt_id.0.clone());
    let mut missing = false;
    // The first question makes the server read the log; what it cannot answer
    // at all is found out here.
    let read_jobs = jobs::get(api, &path, None, Vec::new(), keep_job).await?.state;
    let listing = Listing::whole(options.stages);
    let visit = |listing: &mut Listing, data| listing.visit(&data);
    let read = stages::get(api, &path, None, listing, visit).await?;
    let implausible = read.state.implausible || read.skipped > 0;
    let (mut stages, omitted) = read.state.into_stages();
    let environment = keep(environment::get(api, &path).await, &mut missing)?;
    let executors = keep(executors::get(api, &path).await, &mut missing)?.unwrap_or_default();
    let configuration = environment.map(|environment| environment.configuration());
    let listed = sql_list::whole(api, &path, options.sql_executions, options.plan_nodes).await;
    let sql = keep(listed, &mut missing)?;
    missing |= sql.as_ref().is_some_and(|read| read.missing);
    let sql_implausible = sql.as_ref().is_some_and(|read| read.implausible);
    let (mut sql, sql_omitted) =
        sql.map_or((None, 0), |read| (Some(read.executions), read.omitted));
    if let Some(executions) = &mut sql {
        missing |= !sql_list::add_texts(api, &path, executions, options.texts_at_most).await;
    }

    let retained = retained_tasks(configuration.as_ref());
    stages.sort_by_key(|(stage, _)| std::cmp::Reverse(stage.measures.run_time.sum));
    let mut evicted = false;
    for (stage, kills) in stages.iter_mut().take(options.details_at_most) {
        if stage.measures.run_time.sum_or_zero() < options.details_from {
            break;
        }
        let Details { evicted: tasks_evicted, missing: tasks_missing } =
            details(api, &path, stage, *kills, retained).await;
        evicted |= tasks_evicted;
        missing |= tasks_missing;
    }

    let stages: Vec<_> = stages.into_iter().map(|(stage, _)| stage).collect();
    let ids: BTreeSet<u32> = stages.iter().map(|stage| stage.id.stage).collect();
    let lost = ids.last().map_or(0, |last| u64::from(*last) + 1 - ids.len() as u64);
    let lost = lost.saturating_sub(omitted);
    let marks = [
        (DataQuality::EndpointsMissing, missing),
        (DataQuality::StagesEvicted, lost > 0),
        (DataQuality::StagesOmitted, omitted > 0),
        (DataQuality::TasksEvicted, evicted),
        (DataQuality::ImplausibleValues, implausible || sql_implausible),
        (DataQuality::SqlExecutionsOmitted, sql_omitted > 0),
    ];
    Ok(assemble::application(Parts {
        cluster,
        source: Source::HistoryServer,
        application,
        attempt,
        configuration: configuration.as_ref(),
        executors: &executors,
        // Logs do not tell what is cached: the server's answer is an empty list,
        // also for a run that did cache.
        cached: None,
        jobs: read_jobs,
        stages,
        stages_omitted: lost + omitted,
        sql,
        sql_omitted,
        jobs_before_stages: true,
        data_quality: marks.into_iter().filter(|(_, set)| *set).map(|(mark, _)| mark).collect(),
        now: attempt.end().or(attempt.last_updated()).unwrap_or_else(Timestamp::now),
    }))
}

/// A part that may be missing; a server that is gone, or has forgotten the
/// run meanwhile, ends the reading.
fn keep<T>(result: Result<T, FetchError>, missing: &mut bool) -> Result<Option<T>, FetchError> {
    match result {
        Ok(part) => Ok(Some(part)),
        Err(error)
            if matches!(
                error.kind,
                FetchErrorKind::Unreachable | FetchErrorKind::UnknownApplication
            ) =>
        {
            Err(error)
        }
        Err(_) => {
            *missing = true;
            Ok(None)
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a visitor")]
fn keep_job(all: &mut Vec<ReadJob>, data: JobData) {
    all.extend(assemble::job(&data));
}
