//! What jobs, stages and SQL executions say about one another.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Application, DataQuality, JobStatus, Source, SqlStatus, StageStatus, State};

/// Fills in `Stage::job_ids`, `Stage::reads_cache`, the failure reasons of
/// jobs, and ends stages that only seem to run. Sorts both lists.
pub(super) fn jobs_and_stages(
    application: &mut Application,
    cache_known: bool,
    jobs_before_stages: bool,
) {
    application.jobs.sort_by_key(|job| job.id);
    application.stages.sort_by_key(|stage| stage.id);
    let mut jobs_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, job) in application.jobs.iter().enumerate() {
        for stage in &job.stage_ids {
            jobs_of.entry(*stage).or_default().push(index);
        }
    }
    let cached: BTreeSet<u64> = application.cached.iter().map(|rdd| rdd.id).collect();
    for stage in &mut application.stages {
        let jobs = jobs_of.get(&stage.id.stage).map(Vec::as_slice).unwrap_or_default();
        stage.job_ids = jobs.iter().map(|index| application.jobs[*index].id).collect();
        if cache_known {
            stage.reads_cache = Some(stage.rdd_ids.iter().any(|id| cached.contains(id)));
        }
        // An active stage none of whose jobs runs is a remnant of dropped or
        // late events (SPARK-30388): it ended when they did.
        let remnant = stage.status == StageStatus::Active
            && jobs_before_stages
            && !jobs.is_empty()
            && jobs.iter().all(|index| application.jobs[*index].completed.is_some());
        if remnant {
            let last = jobs.iter().map(|index| &application.jobs[*index]);
            let last = last.max_by_key(|job| job.completed);
            let failed = last.is_some_and(|job| job.status == JobStatus::Failed);
            stage.status = if failed { StageStatus::Failed } else { StageStatus::Complete };
            stage.completed = last.and_then(|job| job.completed);
            stage.tasks.active = 0;
            stage.running.clear();
        }
    }
    failure_reasons(application);
}

/// REST tells no job's reason: it is that of its stage that failed last. A
/// cancellation is no failure.
fn failure_reasons(application: &mut Application) {
    let mut failed: BTreeMap<u32, (Option<jiff::Timestamp>, &str)> = BTreeMap::new();
    for stage in &application.stages {
        if stage.status != StageStatus::Failed {
            continue;
        }
        if let Some(reason) = &stage.failure_reason {
            let entry = failed.entry(stage.id.stage).or_insert((stage.completed, reason));
            *entry = (*entry).max((stage.completed, reason));
        }
    }
    for job in application.jobs.iter_mut().filter(|job| job.status == JobStatus::Failed) {
        let last = job.stage_ids.iter().filter_map(|id| failed.get(id)).max();
        if let Some((_, reason)) = last {
            job.failure_reason = Some((*reason).to_owned());
            job.status = JobStatus::of_failure(reason);
        }
    }
}

/// Which execution started a job, and how executions stand of which Spark does
/// not tell it whole.
pub(super) fn jobs_and_sql(application: &mut Application) {
    let running = application.state == State::Running;
    let Some(executions) = &mut application.sql else { return };
    let places: BTreeMap<u32, usize> =
        application.jobs.iter().enumerate().map(|(place, job)| (job.id, place)).collect();
    let mut plans_missing = false;
    let mut rounded = false;
    for execution in executions {
        let mut cancelled = 0;
        let mut failed = 0;
        for job in &execution.job_ids {
            let Some(job) = places.get(job).and_then(|place| application.jobs.get_mut(*place))
            else {
                continue;
            };
            job.sql_execution_id = Some(execution.id);
            cancelled += usize::from(job.status == JobStatus::Cancelled);
            failed += usize::from(job.status == JobStatus::Failed);
        }
        match execution.status {
            // Before 4.2 there is no message to tell a wish by.
            SqlStatus::Failed if execution.error.is_none() && failed == 0 && cancelled > 0 => {
                execution.status = SqlStatus::Cancelled;
            }
            SqlStatus::Running if !running => execution.status = SqlStatus::Unknown,
            _ => {}
        }
        plans_missing |= execution.plan.is_none();
        rounded |= execution.plan.is_some();
    }
    // A driver is asked for the plans of its costly executions only.
    if plans_missing && application.source != Source::Driver {
        application.data_quality.insert(DataQuality::SqlPlansMissing);
    }
    if rounded {
        application.data_quality.insert(DataQuality::SqlMetricsRounded);
    }
}
