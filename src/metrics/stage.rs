//! Series of stage attempts: the costliest of a run, active ones first.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::catalogue::Id;
use super::group::Group;
use super::label::Text;
use super::snapshot::{Part, RunView};
use crate::config::Limits;
use crate::diagnose::StageNumbers;
use crate::model::{Distribution, Quantity, Stage, StageStatus};

/// What a stage attempt with series can be: pending and skipped ones have
/// none.
const STATUSES: [StageStatus; 3] =
    [StageStatus::Active, StageStatus::Complete, StageStatus::Failed];

pub(super) fn groups(view: &RunView, run: &Arc<[Text]>, limits: &Limits) -> Part {
    let application = &view.application;
    let mut seen = BTreeSet::new();
    let mut stages: Vec<&Stage> = application
        .stages
        .iter()
        .filter(|stage| STATUSES.contains(&stage.status) && seen.insert(stage.id))
        .collect();
    stages
        .sort_by_key(|stage| (stage.status != StageStatus::Active, Reverse(cost(stage)), stage.id));
    let nothing = StageNumbers::default();
    let mut all = stages.into_iter().map(|stage| {
        let numbers = view.diagnosis.stages.get(&stage.id).unwrap_or(&nothing);
        group(stage, numbers, application.observed, run)
    });
    let groups = all.by_ref().take(limits.stages_exported).collect();
    Part { groups, reason: "stages_limit", beyond: all.map(|group| group.len()).sum() }
}

/// Run time of its tasks, or the time it took where that is not known.
fn cost(stage: &Stage) -> Duration {
    stage
        .measures
        .run_time
        .sum
        .unwrap_or_else(|| stage.completed.and_then(|end| stage.wall(end)).unwrap_or_default())
}

fn group(stage: &Stage, numbers: &StageNumbers, now: Timestamp, run: &[Text]) -> Group {
    let labels =
        run.iter().cloned().chain([stage.id.stage.into(), stage.id.attempt.into()]).collect();
    let mut group = Group::new(labels);
    for status in STATUSES {
        group.add_for(Id::StageStatus, status.as_str(), status == stage.status);
    }
    group.add(Id::StageSubmitted, stage.submitted);
    group.add(Id::StageDuration, stage.wall(now));
    group.add(Id::StageRunning, numbers.running);
    group.add(Id::StageCores, numbers.cores);
    group.add(Id::StagePartitions, stage.tasks.total);
    let tasks = stage.tasks;
    for (status, count) in [
        ("active", tasks.active),
        ("succeeded", tasks.succeeded),
        ("failed", tasks.failed),
        ("killed", tasks.killed),
    ] {
        group.add_for(Id::StageTasks, status, count);
    }
    spread(&mut group, stage);
    sums(&mut group, stage);
    derived(&mut group, numbers);
    group
}

fn spread(group: &mut Group, stage: &Stage) {
    let measures = &stage.measures;
    if let Some(run_time) = measures.run_time.quantiles {
        group.add(Id::StageTaskRunTimeMedian, run_time.median);
        group.add(Id::StageTaskRunTimeP95, run_time.p95);
        group.add(Id::StageTaskRunTimeMax, run_time.max);
    }
    for (median, max, measure) in [
        (Id::StageTaskRecordsReadMedian, Id::StageTaskRecordsReadMax, measures.records_read),
        (
            Id::StageTaskRecordsWrittenMedian,
            Id::StageTaskRecordsWrittenMax,
            measures.records_written,
        ),
        (Id::StageTaskInputMedian, Id::StageTaskInputMax, measures.input_bytes),
        (Id::StageTaskOutputMedian, Id::StageTaskOutputMax, measures.output_bytes),
        (Id::StageTaskShuffleReadMedian, Id::StageTaskShuffleReadMax, measures.shuffle_read_bytes),
        (
            Id::StageTaskShuffleWriteMedian,
            Id::StageTaskShuffleWriteMax,
            measures.shuffle_write_bytes,
        ),
    ] {
        group.add(median, measure.median());
        group.add(max, measure.max());
    }
    group.add(Id::StagePeakExecutionMemory, measures.peak_execution_memory_bytes.max());
}

fn sums(group: &mut Group, stage: &Stage) {
    fn sum<T: Quantity>(measure: Distribution<T>) -> Option<f64> {
        measure.sum.map(Quantity::as_f64)
    }
    let measures = &stage.measures;
    group.add(Id::StageTaskRunTime, sum(measures.run_time));
    group.add(Id::StageTaskCpuTime, sum(measures.cpu_time));
    group.add(Id::StageTaskGcTime, sum(measures.gc_time));
    group.add(Id::StageTaskDeserializeTime, sum(measures.deserialize_time));
    group.add(Id::StageTaskFetchWaitTime, sum(measures.fetch_wait_time));
    group.add(Id::StageTaskShuffleWriteTime, sum(measures.shuffle_write_time));
    group.add(Id::StageTaskSchedulerDelay, sum(measures.scheduler_delay));
    group.add(Id::StageInputBytes, sum(measures.input_bytes));
    group.add(Id::StageInputRecords, sum(measures.input_records));
    group.add(Id::StageOutputBytes, sum(measures.output_bytes));
    group.add(Id::StageOutputRecords, sum(measures.output_records));
    group.add(Id::StageShuffleReadBytes, sum(measures.shuffle_read_bytes));
    group.add(Id::StageShuffleReadRecords, sum(measures.shuffle_read_records));
    group.add(Id::StageShuffleWriteBytes, sum(measures.shuffle_write_bytes));
    group.add(Id::StageShuffleWriteRecords, sum(measures.shuffle_write_records));
    group.add(Id::StageMemorySpilled, sum(measures.memory_spilled_bytes));
    group.add(Id::StageDiskSpilled, sum(measures.disk_spilled_bytes));
}

fn derived(group: &mut Group, numbers: &StageNumbers) {
    group.add(Id::StageRunTimeRatio, numbers.run_time_ratio);
    group.add(Id::StageRecordsRatio, numbers.records_ratio);
    group.add(Id::StageBytesRatio, numbers.bytes_ratio);
    group.add(Id::StageSpillRatio, numbers.spill_ratio);
    group.add(Id::StageGcRatio, numbers.gc_ratio);
    let io = numbers.io_per_core;
    group.add_for(Id::StageIoPerCore, "input", io.input);
    group.add_for(Id::StageIoPerCore, "output", io.output);
    group.add_for(Id::StageIoPerCore, "shuffle_read", io.shuffle_read);
    group.add_for(Id::StageIoPerCore, "shuffle_write", io.shuffle_write);
    group.add(Id::StageSchedulingDelay, numbers.scheduling_delay);
    group.add(Id::StageTaskFailureRatio, numbers.task_failure_ratio);
}
