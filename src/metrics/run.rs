//! Series of a run as a whole.

use std::sync::Arc;

use super::catalogue::Id;
use super::group::Group;
use super::kubernetes;
use super::label::Text;
use super::sample::Extra;
use super::snapshot::RunView;
use crate::config::Limits;
use crate::diagnose::{Diagnosis, Severity, TimePart};
use crate::model::{
    Application, DataQuality, Distribution, JobStatus, Measures, Quantity, Source, SqlStatus,
    Stage, StageStatus, State,
};

const STAGE_STATUSES: [StageStatus; 5] = [
    StageStatus::Pending,
    StageStatus::Active,
    StageStatus::Complete,
    StageStatus::Failed,
    StageStatus::Skipped,
];

/// Label values of predictions.
const FACTORS: [(f64, &str); 8] = [
    (0.25, "0.25"),
    (0.5, "0.5"),
    (0.75, "0.75"),
    (1.0, "1"),
    (1.5, "1.5"),
    (2.0, "2"),
    (3.0, "3"),
    (4.0, "4"),
];

/// Values of the labels that name a run.
pub(super) fn labels(application: &Application, limits: &Limits) -> Arc<[Text]> {
    let id = &application.id;
    Arc::new([
        Text::clean(&id.cluster, limits.label_length),
        Text::clean(&id.app_id, limits.label_length),
        Text::clean_or_empty(id.attempt_id.as_deref(), limits.label_length),
    ])
}

pub(super) fn group(view: &RunView, labels: &Arc<[Text]>, limits: &Limits) -> Group {
    let RunView { application, diagnosis, .. } = view;
    let mut group = Group::new(Arc::clone(labels));
    identity(&mut group, view, limits);
    // An empty list beside an endpoint that did not answer is not "none".
    let unanswered = application.has(DataQuality::EndpointsMissing);
    if !(application.jobs.is_empty() && unanswered) {
        for status in JobStatus::ALL {
            let jobs = application.jobs.iter().filter(|job| job.status == status).count();
            group.add_for(Id::ApplicationJobs, status.as_str(), jobs);
        }
    }
    if let Some(executions) = &application.sql {
        for status in SqlStatus::ALL {
            let count = executions.iter().filter(|execution| execution.status == status).count();
            group.add_for(Id::ApplicationSqlExecutions, status.as_str(), count);
        }
    }
    if !(application.stages.is_empty() && unanswered) {
        stages(&mut group, &application.stages);
    }
    group.add(Id::ApplicationStagesOmitted, application.stages_omitted);
    if !(application.executors.is_empty() && unanswered) {
        executors(&mut group, application);
    }
    measures(&mut group, &application.stages);

    let totals = &diagnosis.totals;
    group.add(Id::ApplicationExecutorCoresPeak, totals.peak_cores);
    group.add(Id::ApplicationBoughtCore, totals.bought);
    group.add(Id::ApplicationUsedCore, totals.used);
    group.add(Id::ApplicationGcRatio, totals.gc_ratio);
    group.add(Id::ApplicationTaskFailureRatio, totals.task_failure_ratio);

    if let Some(price) = &diagnosis.price {
        let currency = Arc::new([Text::clean(&price.currency, limits.label_length)]);
        group.with(Id::ApplicationCost, Extra::Many(currency), price.amount);
    }

    time(&mut group, diagnosis);

    // Event logs do not tell what is cached.
    if application.source != Source::EventLog && !(application.cached.is_empty() && unanswered) {
        let cached = &application.cached;
        group.add(Id::ApplicationCachedRdds, cached.len());
        let sum = |of: fn(&crate::model::CachedRdd) -> u64| {
            cached.iter().map(of).fold(0_u64, u64::saturating_add)
        };
        group.add(Id::ApplicationCachedPartitions, sum(|rdd| rdd.cached_partitions));
        group.add(Id::ApplicationCacheablePartitions, sum(|rdd| rdd.partitions));
        group.add(Id::ApplicationCachedMemory, sum(|rdd| rdd.memory_bytes));
        group.add(Id::ApplicationCachedDisk, sum(|rdd| rdd.disk_bytes));
    }
    for quality in &application.data_quality {
        group.add_for(Id::ApplicationDataQuality, quality.as_str(), true);
    }
    for severity in Severity::ALL {
        let findings = diagnosis.findings.iter().filter(|one| one.severity == severity).count();
        group.add_for(Id::ApplicationFindings, severity.as_str(), findings);
    }
    group
}

fn time(group: &mut Group, diagnosis: &Diagnosis) {
    if let Some(split) = &diagnosis.time {
        for part in TimePart::ALL {
            group.add_for(Id::ApplicationTime, part.as_str(), split.part(part));
        }
    }
    let Some(what_if) = &diagnosis.what_if else { return };
    for scenario in &what_if.scenarios {
        #[expect(clippy::float_cmp, reason = "both are the same constants")]
        let factor = FACTORS.iter().find(|(factor, _)| *factor == scenario.factor);
        if let Some((_, factor)) = factor {
            group.add_for(Id::ApplicationPredictedDuration, factor, scenario.wall);
        }
    }
    group.add(Id::ApplicationCriticalPath, what_if.critical_path);
}

fn identity(group: &mut Group, view: &RunView, limits: &Limits) {
    let RunView { name, application, trace_id, .. } = view;
    let facts: Arc<[Text]> = Arc::new([
        Text::clean(name, limits.label_length),
        Text::clean_or_empty(application.spark_version.as_deref(), limits.label_length),
        Text::clean_or_empty(application.user.as_deref(), limits.label_length),
        Text::Static(application.kind.as_str()),
        Text::Static(application.source.as_str()),
        trace_id.map_or(Text::EMPTY, |id| Text::Shared(id.to_string().into())),
    ]);
    let named = kubernetes::labels(application, limits);
    let facts =
        if named.is_empty() { Extra::Many(facts) } else { Extra::Named(facts, named.into()) };
    group.with(Id::ApplicationInfo, facts, true);
    for state in State::ALL {
        group.add_for(Id::ApplicationState, state.as_str(), state == application.state);
    }
    group.add(Id::ApplicationStart, application.start);
    group.add(Id::ApplicationEnd, application.end);
    group.add(Id::ApplicationObserved, application.observed);
    group.add(Id::ApplicationDuration, application.duration());
    group.add(Id::ApplicationExitCode, application.exit_code);
}

fn stages(group: &mut Group, stages: &[Stage]) {
    for status in STAGE_STATUSES {
        let count = stages.iter().filter(|stage| stage.status == status).count();
        group.add_for(Id::ApplicationStages, status.as_str(), count);
    }
    let mut sums = [("active", 0), ("succeeded", 0), ("failed", 0), ("killed", 0_u64)];
    for stage in stages {
        let tasks = stage.tasks;
        let counts = [tasks.active, tasks.succeeded, tasks.failed, tasks.killed];
        for ((_, sum), count) in sums.iter_mut().zip(counts) {
            *sum = sum.saturating_add(count);
        }
    }
    for (status, sum) in sums {
        group.add_for(Id::ApplicationTasks, status, sum);
    }
}

fn executors(group: &mut Group, application: &Application) {
    let running = application.state == State::Running;
    let alive = |executor: &&crate::model::Executor| running && executor.removed.is_none();
    let executors = &application.executors;
    group.add(Id::ApplicationExecutors, executors.iter().filter(alive).count());
    group.add(Id::ApplicationExecutorsAdded, executors.len());
    let removed = executors.iter().filter(|executor| executor.removed.is_some()).count();
    group.add(Id::ApplicationExecutorsRemoved, removed);
    let cores: u64 = executors.iter().filter(alive).map(|executor| u64::from(executor.cores)).sum();
    group.add(Id::ApplicationExecutorCores, cores);
}

fn measures(group: &mut Group, stages: &[Stage]) {
    group.add(Id::ApplicationTaskRunTime, sum(stages, |m| m.run_time));
    group.add(Id::ApplicationTaskCpuTime, sum(stages, |m| m.cpu_time));
    group.add(Id::ApplicationTaskGcTime, sum(stages, |m| m.gc_time));
    group.add(Id::ApplicationTaskDeserializeTime, sum(stages, |m| m.deserialize_time));
    group.add(Id::ApplicationTaskFetchWaitTime, sum(stages, |m| m.fetch_wait_time));
    group.add(Id::ApplicationTaskShuffleWriteTime, sum(stages, |m| m.shuffle_write_time));
    group.add(Id::ApplicationTaskSchedulerDelay, sum(stages, |m| m.scheduler_delay));
    group.add(Id::ApplicationInputBytes, sum(stages, |m| m.input_bytes));
    group.add(Id::ApplicationInputRecords, sum(stages, |m| m.input_records));
    group.add(Id::ApplicationOutputBytes, sum(stages, |m| m.output_bytes));
    group.add(Id::ApplicationOutputRecords, sum(stages, |m| m.output_records));
    group.add(Id::ApplicationShuffleReadBytes, sum(stages, |m| m.shuffle_read_bytes));
    group.add(Id::ApplicationShuffleReadRecords, sum(stages, |m| m.shuffle_read_records));
    group.add(Id::ApplicationShuffleWriteBytes, sum(stages, |m| m.shuffle_write_bytes));
    group.add(Id::ApplicationShuffleWriteRecords, sum(stages, |m| m.shuffle_write_records));
    group.add(Id::ApplicationMemorySpilled, sum(stages, |m| m.memory_spilled_bytes));
    group.add(Id::ApplicationDiskSpilled, sum(stages, |m| m.disk_spilled_bytes));
}

/// A measure over all stage attempts in which a task ended. `None` when there
/// is none yet, or when one of them does not know its part: a sum of the
/// others would look like the whole.
fn sum<T: Quantity>(stages: &[Stage], of: impl Fn(&Measures) -> Distribution<T>) -> Option<f64> {
    let mut ran = stages
        .iter()
        .filter(|stage| stage.tasks.succeeded + stage.tasks.failed + stage.tasks.killed > 0)
        .map(|stage| of(&stage.measures).sum)
        .peekable();
    ran.peek()?;
    let total = ran.try_fold(T::default(), |total, part| Some(total.saturating_add(part?)));
    total.map(Quantity::as_f64)
}
