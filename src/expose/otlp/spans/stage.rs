//! What the span of a stage attempt says.

use super::attributes::Attributes;
use crate::diagnose::Diagnosis;
use crate::metrics::catalogue::Id;
use crate::model::{Stage, StageStatus};
use crate::report::{Texts, privacy};

pub(super) fn attributes(stage: &Stage, diagnosis: &Diagnosis, texts: Texts, to: &mut Attributes) {
    to.number("spark.stage.id", stage.id.stage);
    to.number("spark.stage.attempt.id", stage.id.attempt);
    to.text("spark.stage.status", stage.status.as_str());
    if let Some(name) = privacy::call_site(&stage.name, texts) {
        to.text("spark.stage.name", name);
    }
    let tasks = stage.tasks;
    to.count(Id::StagePartitions, Some(tasks.total));
    for (status, count) in
        [("succeeded", tasks.succeeded), ("failed", tasks.failed), ("killed", tasks.killed)]
    {
        to.some(Id::StageTasks, status, count);
    }
    for (class, count) in stage.failures.iter().flatten() {
        to.some_of("spark.stage.task_failures", class.as_str(), *count);
    }
    spread(stage, to);
    sums(stage, to);
    derived(stage, diagnosis, to);
    let failed = stage.status == StageStatus::Failed && texts.are_shown();
    if let Some(reason) = stage.failure_reason.as_deref().filter(|_| failed) {
        to.text("spark.stage.failure_reason", privacy::cut(reason, 1_000));
    }
}

fn spread(stage: &Stage, to: &mut Attributes) {
    let measures = &stage.measures;
    if let Some(run_time) = measures.run_time.quantiles {
        to.span(Id::StageTaskRunTimeMedian, Some(run_time.median));
        to.span(Id::StageTaskRunTimeP95, Some(run_time.p95));
        to.span(Id::StageTaskRunTimeMax, Some(run_time.max));
    }
    for (median, max, measure) in [
        (Id::StageTaskRecordsReadMedian, Id::StageTaskRecordsReadMax, &measures.records_read),
        (Id::StageTaskInputMedian, Id::StageTaskInputMax, &measures.input_bytes),
        (Id::StageTaskShuffleReadMedian, Id::StageTaskShuffleReadMax, &measures.shuffle_read_bytes),
    ] {
        // Of what the stage does not do there is nothing to say.
        if measure.sum.is_none_or(|sum| sum > 0) {
            to.count(median, measure.median());
            to.count(max, measure.max());
        }
    }
    to.count(Id::StagePeakExecutionMemory, measures.peak_execution_memory_bytes.max());
}

fn sums(stage: &Stage, to: &mut Attributes) {
    let measures = &stage.measures;
    for (id, time) in [
        (Id::StageTaskRunTime, &measures.run_time),
        (Id::StageTaskCpuTime, &measures.cpu_time),
        (Id::StageTaskGcTime, &measures.gc_time),
        (Id::StageTaskDeserializeTime, &measures.deserialize_time),
        (Id::StageTaskFetchWaitTime, &measures.fetch_wait_time),
        (Id::StageTaskShuffleWriteTime, &measures.shuffle_write_time),
        (Id::StageTaskSchedulerDelay, &measures.scheduler_delay),
    ] {
        to.sum(id, time);
    }
    for (id, size) in [
        (Id::StageInputBytes, &measures.input_bytes),
        (Id::StageInputRecords, &measures.input_records),
        (Id::StageOutputBytes, &measures.output_bytes),
        (Id::StageOutputRecords, &measures.output_records),
        (Id::StageShuffleReadBytes, &measures.shuffle_read_bytes),
        (Id::StageShuffleReadRecords, &measures.shuffle_read_records),
        (Id::StageShuffleWriteBytes, &measures.shuffle_write_bytes),
        (Id::StageShuffleWriteRecords, &measures.shuffle_write_records),
        (Id::StageMemorySpilled, &measures.memory_spilled_bytes),
        (Id::StageDiskSpilled, &measures.disk_spilled_bytes),
    ] {
        to.sum(id, size);
    }
}

fn derived(stage: &Stage, diagnosis: &Diagnosis, to: &mut Attributes) {
    if let Some(numbers) = diagnosis.stages.get(&stage.id) {
        to.float(Id::StageCores, numbers.cores);
        to.span(Id::StageRunning, numbers.running);
        to.float(Id::StageRunTimeRatio, numbers.run_time_ratio);
        to.float(Id::StageRecordsRatio, numbers.records_ratio);
        to.float(Id::StageBytesRatio, numbers.bytes_ratio);
        to.float(Id::StageSpillRatio, numbers.spill_ratio);
        to.float(Id::StageGcRatio, numbers.gc_ratio);
        to.span(Id::StageSchedulingDelay, numbers.scheduling_delay);
        to.float(Id::StageTaskFailureRatio, numbers.task_failure_ratio);
        let io = numbers.io_per_core;
        for (direction, rate) in [
            ("input", io.input),
            ("output", io.output),
            ("shuffle_read", io.shuffle_read),
            ("shuffle_write", io.shuffle_write),
        ] {
            if let Some(rate) = rate.filter(|rate| *rate > 0.0) {
                to.of_word(Id::StageIoPerCore, direction, rate);
            }
        }
    }
    if let Some(split) = diagnosis.stage_times.get(&stage.id) {
        to.time(split);
    }
}
