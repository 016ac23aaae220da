//! A row of `/taskList` into the model.

use std::time::Duration;

use crate::model::{Task, TaskMetrics, TaskStatus};
use crate::rest::task_list::{self, TaskData};

/// `None` without an id or a launch time.
pub(super) fn task(data: &TaskData) -> Option<Task> {
    let status = match data.status.get() {
        "RUNNING" => TaskStatus::Running,
        "SUCCESS" => TaskStatus::Succeeded,
        "FAILED" => TaskStatus::Failed,
        "KILLED" => TaskStatus::Killed,
        _ => TaskStatus::Unknown,
    };
    let duration = data.duration.millis().unwrap_or_default();
    let mut metrics = data.task_metrics.as_ref().map(metrics).unwrap_or_default();
    metrics.getting_result_time = data.getting_result_time.millis().unwrap_or_default();
    // Of a running task the difference would be all that it does.
    if status != TaskStatus::Running && data.task_metrics.is_some() {
        metrics.scheduler_delay = metrics.scheduler_delay_of(duration);
    }
    Some(Task {
        id: data.task_id.get()?,
        index: data.index.id().unwrap_or_default(),
        attempt: data.attempt.id().unwrap_or_default(),
        executor_id: data.executor_id.get().to_owned(),
        host: data.host.get().to_owned(),
        locality: data.task_locality.get().to_owned(),
        speculative: data.speculative,
        status,
        launched: data.launch_time.0?,
        duration,
        ordinal_on_executor: None,
        metrics,
    })
}

fn metrics(data: &task_list::TaskMetrics) -> TaskMetrics {
    let read = &data.shuffle_read_metrics;
    let write = &data.shuffle_write_metrics;
    TaskMetrics {
        run_time: data.executor_run_time.millis().unwrap_or_default(),
        cpu_time: data.executor_cpu_time.nanos().unwrap_or_default(),
        deserialize_time: data.executor_deserialize_time.millis().unwrap_or_default(),
        gc_time: data.jvm_gc_time.millis().unwrap_or_default(),
        result_serialization_time: data.result_serialization_time.millis().unwrap_or_default(),
        getting_result_time: Duration::ZERO,
        scheduler_delay: Duration::ZERO,
        fetch_wait_time: read.fetch_wait_time.millis().unwrap_or_default(),
        shuffle_write_time: write.write_time.nanos().unwrap_or_default(),
        input_bytes: data.input_metrics.bytes_read.or_zero(),
        input_records: data.input_metrics.records_read.or_zero(),
        output_bytes: data.output_metrics.bytes_written.or_zero(),
        output_records: data.output_metrics.records_written.or_zero(),
        shuffle_read_bytes: read
            .remote_bytes_read
            .or_zero()
            .saturating_add(read.local_bytes_read.or_zero()),
        shuffle_read_records: read.records_read.or_zero(),
        shuffle_write_bytes: write.bytes_written.or_zero(),
        shuffle_write_records: write.records_written.or_zero(),
        memory_spilled_bytes: data.memory_bytes_spilled.or_zero(),
        disk_spilled_bytes: data.disk_bytes_spilled.or_zero(),
        peak_execution_memory_bytes: data.peak_execution_memory.or_zero(),
    }
}
