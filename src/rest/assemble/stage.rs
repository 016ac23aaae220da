//! `/stages`, `/taskSummary` and `/taskList` into one [`Stage`].

use std::collections::BTreeMap;

use super::task::task;
use crate::model::{
    Distribution, FailedTask, FailureClass, Measures, Speculation, Stage, StageId, StageStatus,
    Task, TaskCounts,
};
use crate::rest::stages::{KillReasons, StageData};
use crate::rest::task_list::TaskData;
use crate::rest::task_summary::TaskMetricDistributions;
use crate::rest::value::Count;

/// A stage attempt with its sums. `None` without an id.
pub fn stage(data: &StageData) -> Option<Stage> {
    let id = StageId { stage: data.stage_id.id()?, attempt: data.attempt_id.id()? };
    let mut stage = Stage::new(id);
    data.name.get().clone_into(&mut stage.name);
    stage.status = match data.status.get() {
        "ACTIVE" => StageStatus::Active,
        "COMPLETE" => StageStatus::Complete,
        "FAILED" => StageStatus::Failed,
        "SKIPPED" => StageStatus::Skipped,
        _ => StageStatus::Pending,
    };
    stage.submitted = data.submission_time.0;
    stage.first_task_launched = data.first_task_launched_time.0;
    stage.completed = data.completion_time.0;
    stage.failure_reason = data.failure_reason.first_lines();
    stage.rdd_ids = data.rdd_ids.iter().filter_map(|id| id.get()).collect();
    stage.resource_profile_id = data.resource_profile_id.id().unwrap_or_default();
    stage.tasks = TaskCounts {
        total: data.num_tasks.or_zero(),
        // Below 0 after executor loss in some versions (SPARK-41187).
        active: data.num_active_tasks.or_zero(),
        succeeded: data.num_complete_tasks.or_zero(),
        failed: data.num_failed_tasks.or_zero(),
        killed: data.num_killed_tasks.or_zero(),
    };
    // With failed attempts their classes are in the task list only.
    stage.failures =
        (data.num_failed_tasks.or_zero() == 0).then(|| kills(data.killed_tasks_summary));
    stage.result_bytes = data.result_size.get().filter(|_| stage.tasks.succeeded > 0);
    stage.speculation = data.speculation_summary.as_ref().map(|summary| Speculation {
        copies: summary.num_tasks.or_zero(),
        won: summary.num_completed_tasks.or_zero(),
        lost: summary.num_killed_tasks.or_zero(),
        lost_time: None,
    });
    stage.measures = sums(data);
    Some(stage)
}

fn kills(reasons: KillReasons) -> BTreeMap<FailureClass, u64> {
    [(FailureClass::Killed, reasons.killed), (FailureClass::CommitDenied, reasons.commit_denied)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect()
}

fn sum<T>(value: Option<T>) -> Distribution<T> {
    Distribution { count: None, sum: value, quantiles: None }
}

fn sums(data: &StageData) -> Measures {
    let both = |one: Count, other: Count| Some(one.get()?.saturating_add(other.get()?));
    Measures {
        run_time: sum(data.executor_run_time.millis()),
        cpu_time: sum(data.executor_cpu_time.nanos()),
        deserialize_time: sum(data.executor_deserialize_time.millis()),
        gc_time: sum(data.jvm_gc_time.millis()),
        // The API has no such sum.
        scheduler_delay: sum(None),
        fetch_wait_time: sum(data.shuffle_fetch_wait_time.millis()),
        shuffle_write_time: sum(data.shuffle_write_time.nanos()),
        records_read: sum(both(data.input_records, data.shuffle_read_records)),
        records_written: sum(both(data.output_records, data.shuffle_write_records)),
        input_bytes: sum(data.input_bytes.get()),
        input_records: sum(data.input_records.get()),
        output_bytes: sum(data.output_bytes.get()),
        output_records: sum(data.output_records.get()),
        shuffle_read_bytes: sum(data.shuffle_read_bytes.get()),
        shuffle_read_records: sum(data.shuffle_read_records.get()),
        shuffle_write_bytes: sum(data.shuffle_write_bytes.get()),
        shuffle_write_records: sum(data.shuffle_write_records.get()),
        memory_spilled_bytes: sum(data.memory_bytes_spilled.get()),
        disk_spilled_bytes: sum(data.disk_bytes_spilled.get()),
        peak_execution_memory_bytes: sum(data.peak_execution_memory.get()),
    }
}

/// Quantiles over the successful tasks.
pub fn add_summary(stage: &mut Stage, summary: &TaskMetricDistributions) {
    let measures = &mut stage.measures;
    measures.run_time.quantiles = summary.executor_run_time.millis();
    measures.cpu_time.quantiles = summary.executor_cpu_time.nanos();
    measures.deserialize_time.quantiles = summary.executor_deserialize_time.millis();
    measures.gc_time.quantiles = summary.jvm_gc_time.millis();
    // Like `duration`, Spark's index of it takes failed and killed attempts
    // for successful ones: with any of them its quantiles are of other tasks.
    measures.scheduler_delay.quantiles = (stage.tasks.failed == 0 && stage.tasks.killed == 0)
        .then(|| summary.scheduler_delay.millis())
        .flatten();
    let read = &summary.shuffle_read_metrics;
    let write = &summary.shuffle_write_metrics;
    measures.fetch_wait_time.quantiles = read.fetch_wait_time.millis();
    measures.shuffle_write_time.quantiles = write.write_time.nanos();
    measures.input_bytes.quantiles = summary.input_metrics.bytes_read.counts();
    measures.input_records.quantiles = summary.input_metrics.records_read.counts();
    measures.output_bytes.quantiles = summary.output_metrics.bytes_written.counts();
    measures.output_records.quantiles = summary.output_metrics.records_written.counts();
    measures.shuffle_read_bytes.quantiles = read.read_bytes.counts();
    measures.shuffle_read_records.quantiles = read.read_records.counts();
    measures.shuffle_write_bytes.quantiles = write.write_bytes.counts();
    measures.shuffle_write_records.quantiles = write.write_records.counts();
    measures.memory_spilled_bytes.quantiles = summary.memory_bytes_spilled.counts();
    measures.disk_spilled_bytes.quantiles = summary.disk_bytes_spilled.counts();
    measures.peak_execution_memory_bytes.quantiles = summary.peak_execution_memory.counts();
    measures.records_read.quantiles =
        one_of(&measures.input_records, &measures.shuffle_read_records);
    measures.records_written.quantiles =
        one_of(&measures.output_records, &measures.shuffle_write_records);
}

/// The quantiles of the sum of two measures, known only where one of them is
/// 0 in all tasks: quantiles do not add up.
fn one_of(
    one: &Distribution<u64>,
    other: &Distribution<u64>,
) -> Option<crate::model::Quantiles<u64>> {
    let absent = |measure: &Distribution<u64>| {
        measure.sum == Some(0) && measure.max().is_none_or(|max| max == 0)
    };
    if absent(other) {
        one.quantiles
    } else if absent(one) {
        other.quantiles
    } else {
        None
    }
}

/// The slowest successful attempts, longest run time first.
pub fn add_slowest(stage: &mut Stage, tasks: &[TaskData]) {
    stage.slowest = tasks.iter().filter_map(task).collect();
    stage.slowest.sort_by_key(|task| std::cmp::Reverse(task.metrics.run_time));
}

/// The attempts that run now, longest running first.
pub fn add_running(stage: &mut Stage, tasks: &[TaskData]) {
    stage.running = tasks.iter().filter_map(task).collect();
    stage.running.sort_by_key(|task: &Task| std::cmp::Reverse(task.duration));
}

/// Failed attempts by class, from as many as were read (the others are
/// `Unknown`), and the kills from the stage's own numbers.
pub fn add_failed(stage: &mut Stage, tasks: &[TaskData], reasons: KillReasons) {
    let mut failures = kills(reasons);
    let mut examples: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sources: BTreeMap<String, u64> = BTreeMap::new();
    for task in tasks {
        let message = task.error_message.get();
        let class = FailureClass::of_text(message);
        *failures.entry(class).or_default() += 1;
        if class == FailureClass::FetchFailed {
            *sources.entry(fetched_from(message).to_owned()).or_default() += 1;
        }
        if let Some(class) = exception_class(message) {
            *examples.entry(class).or_default() += 1;
        }
    }
    stage.failed.clear();
    for data in tasks {
        let class = FailureClass::of_text(data.error_message.get());
        // What was lost after it had succeeded had not failed itself.
        let failed = class.is_failure() && class != FailureClass::Resubmitted;
        if let Some(task) = task(data).filter(|_| failed) {
            FailedTask { task, class }.keep(&mut stage.failed);
        }
    }
    let unread = stage.tasks.failed.saturating_sub(tasks.len() as u64);
    if unread > 0 {
        *failures.entry(FailureClass::Unknown).or_default() += unread;
    }
    stage.failures = Some(failures);
    stage.fetch_failures = sources;
    stage.failure_example =
        examples.into_iter().max_by_key(|(_, count)| *count).map(|(class, _)| class.to_owned());
}

/// The executor in `FetchFailed(BlockManagerId(1, host, 7337, None), ...`; empty
/// where Spark does not know it (`FetchFailed(null, ...`).
fn fetched_from(message: &str) -> &str {
    let after = message.split_once("FetchFailed(BlockManagerId(").map_or("", |(_, after)| after);
    after.split(',').next().unwrap_or_default().trim()
}

/// `java.lang.ArithmeticException` of `java.lang.ArithmeticException: / by
/// zero`, or of a message that begins otherwise and names it on its first
/// line.
fn exception_class(message: &str) -> Option<&str> {
    let word = message.lines().next()?.split([':', ' ', '(']).next()?;
    let named = word.contains('.')
        && word.len() <= 200
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$'));
    named.then_some(word)
}
