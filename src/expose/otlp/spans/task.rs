//! What the span of a task says: one of the slowest of its stage attempt.

use super::attributes::Attributes;
use crate::model::{StageId, Task, TaskMetrics, TaskStatus};
use crate::report::privacy;

pub(super) fn attributes(stage: StageId, task: &Task, to: &mut Attributes) {
    to.number("spark.stage.id", stage.stage);
    to.number("spark.stage.attempt.id", stage.attempt);
    to.number("spark.task.id", task.id);
    to.number("spark.task.index", task.index);
    to.number("spark.task.attempt", task.attempt);
    to.text("spark.task.status", status(task.status));
    to.text("spark.executor.id", privacy::cut(&task.executor_id, 200));
    to.text("spark.executor.host", privacy::cut(&task.host, 200));
    if !task.locality.is_empty() {
        to.text("spark.task.locality", privacy::cut(&task.locality, 40));
    }
    if task.speculative {
        to.flag("spark.task.speculative", true);
    }
    if let Some(ordinal) = task.ordinal_on_executor {
        to.number("spark.task.ordinal_on_executor", ordinal);
    }
    let metrics = &task.metrics;
    // Of one whose executor was lost Spark has no numbers.
    if *metrics == TaskMetrics::default() {
        return;
    }
    for (key, time) in [
        ("spark.task.run_time_seconds", metrics.run_time),
        ("spark.task.cpu_time_seconds", metrics.cpu_time),
        ("spark.task.gc_time_seconds", metrics.gc_time),
        ("spark.task.deserialize_time_seconds", metrics.deserialize_time),
        ("spark.task.scheduler_delay_seconds", metrics.scheduler_delay),
        ("spark.task.fetch_wait_time_seconds", metrics.fetch_wait_time),
        ("spark.task.shuffle_write_time_seconds", metrics.shuffle_write_time),
        ("spark.task.result_serialization_time_seconds", metrics.result_serialization_time),
        ("spark.task.getting_result_time_seconds", metrics.getting_result_time),
    ] {
        to.seconds(key, time);
    }
    for (key, size) in [
        ("spark.task.input_bytes", metrics.input_bytes),
        ("spark.task.input_records", metrics.input_records),
        ("spark.task.output_bytes", metrics.output_bytes),
        ("spark.task.output_records", metrics.output_records),
        ("spark.task.shuffle_read_bytes", metrics.shuffle_read_bytes),
        ("spark.task.shuffle_read_records", metrics.shuffle_read_records),
        ("spark.task.shuffle_write_bytes", metrics.shuffle_write_bytes),
        ("spark.task.shuffle_write_records", metrics.shuffle_write_records),
        ("spark.task.memory_spilled_bytes", metrics.memory_spilled_bytes),
        ("spark.task.disk_spilled_bytes", metrics.disk_spilled_bytes),
        ("spark.task.peak_execution_memory_bytes", metrics.peak_execution_memory_bytes),
    ] {
        to.number(key, size);
    }
}

fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "running",
        TaskStatus::Succeeded => "succeeded",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "killed",
        TaskStatus::Unknown => "unknown",
    }
}
