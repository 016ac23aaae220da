//! The measures of tasks, one column each, while a stage attempt collects
//! them.

use std::time::Duration;

use super::checks::Checks;
use crate::eventlog::event::{Metrics, TaskInfo};
use crate::model::{Column, Distribution, Measures, Quantity, TaskMetrics};

macro_rules! measures {
    ($($name:ident: $type:ty),+ $(,)?) => {
        /// The numbers of one task attempt; `None`: dropped as implausible.
        #[derive(Debug, Clone, Copy, Default)]
        pub(super) struct Measured {
            $(pub(super) $name: Option<$type>,)+
            pub(super) result_serialization_time: Option<Duration>,
            pub(super) getting_result_time: Duration,
        }

        /// One column a measure.
        #[derive(Debug, Clone, Default)]
        pub(super) struct Columns {
            $($name: Column<$type>,)+
        }

        impl Columns {
            pub(super) fn push(&mut self, task: &Measured, succeeded: bool, limit: usize) {
                $(if let Some(value) = task.$name {
                    self.$name.push(value, succeeded, limit);
                })+
            }

            /// Whether more tasks came than `limits.tasks_per_stage`.
            pub(super) fn is_estimated(&self) -> bool {
                false $(|| self.$name.is_estimated())+
            }

            pub(super) fn finish(self) -> Measures {
                Measures { $($name: self.$name.finish(),)+ }
            }
        }

        /// Adds an attempt that ended after its stage was put together: to
        /// sums and counts, as Spark does. Quantiles are over successful
        /// attempts, and those have all come by then.
        pub(super) fn add_late(measures: &mut Measures, task: &Measured) {
            $(if let Some(value) = task.$name {
                add(&mut measures.$name, value);
            })+
        }
    };
}

measures! {
    run_time: Duration,
    cpu_time: Duration,
    deserialize_time: Duration,
    gc_time: Duration,
    scheduler_delay: Duration,
    fetch_wait_time: Duration,
    shuffle_write_time: Duration,
    records_read: u64,
    records_written: u64,
    input_bytes: u64,
    input_records: u64,
    output_bytes: u64,
    output_records: u64,
    shuffle_read_bytes: u64,
    shuffle_read_records: u64,
    shuffle_write_bytes: u64,
    shuffle_write_records: u64,
    memory_spilled_bytes: u64,
    disk_spilled_bytes: u64,
    peak_execution_memory_bytes: u64,
}

fn add<T: Quantity>(distribution: &mut Distribution<T>, value: T) {
    distribution.count = Some(distribution.count.unwrap_or_default() + 1);
    distribution.sum = Some(distribution.sum.unwrap_or_default().saturating_add(value));
}

/// When a task ran, on the driver's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    /// Milliseconds since the epoch.
    pub(super) launched: i64,
    /// `None` where the end is before the launch, or unknown.
    pub(super) duration: Option<Duration>,
    /// From the moment the driver began to fetch the result to the end.
    pub(super) getting_result: Duration,
}

impl When {
    /// `None` without a launch time.
    pub(super) fn of(task: &TaskInfo<'_>, checks: &mut Checks) -> Option<Self> {
        let launched = checks.millis(task.launched)?;
        let finished = checks.millis(task.finished);
        let between = |from: i64, checks: &mut Checks| {
            let span = u64::try_from(finished? - from).ok().map(Duration::from_millis);
            if span.is_none() {
                checks.mark(crate::model::DataQuality::ImplausibleValues);
            }
            span
        };
        let duration = between(launched, checks);
        let getting_result = checks
            .millis(task.getting_result)
            .and_then(|began| between(began, checks))
            .unwrap_or_default();
        Some(Self { launched, duration, getting_result })
    }
}

impl Measured {
    /// From an event's `Task Metrics`. Parts that the event leaves out are
    /// zero, as they are in Spark.
    pub(super) fn of(
        metrics: &Metrics,
        when: Option<&When>,
        cpus: impl FnOnce() -> f64,
        checks: &mut Checks,
    ) -> Self {
        let duration = when.and_then(|when| when.duration);
        let mut task = Self {
            run_time: checks.run_time(metrics.run, duration, cpus),
            cpu_time: checks.span_nanos(metrics.cpu_nanos),
            deserialize_time: checks.span_millis(metrics.deserialize),
            gc_time: checks.span_millis(metrics.gc),
            result_serialization_time: checks.span_millis(metrics.result_serialization),
            getting_result_time: when.map(|when| when.getting_result).unwrap_or_default(),
            memory_spilled_bytes: checks.count(metrics.memory_spilled),
            disk_spilled_bytes: checks.count(metrics.disk_spilled),
            peak_execution_memory_bytes: checks.count(metrics.peak_execution_memory),
            fetch_wait_time: Some(Duration::ZERO),
            shuffle_write_time: Some(Duration::ZERO),
            input_bytes: Some(0),
            input_records: Some(0),
            output_bytes: Some(0),
            output_records: Some(0),
            shuffle_read_bytes: Some(0),
            shuffle_read_records: Some(0),
            shuffle_write_bytes: Some(0),
            shuffle_write_records: Some(0),
            ..Self::default()
        };
        if let Some(read) = &metrics.shuffle_read {
            task.fetch_wait_time = checks.span_millis(read.fetch_wait);
            task.shuffle_read_bytes =
                both(checks.count(read.remote_bytes), checks.count(read.local_bytes));
            task.shuffle_read_records = checks.count(read.records);
        }
        if let Some(write) = &metrics.shuffle_write {
            task.shuffle_write_time = checks.span_nanos(write.nanos);
            task.shuffle_write_bytes = checks.count(write.bytes);
            task.shuffle_write_records = checks.count(write.records);
        }
        if let Some(input) = &metrics.input {
            task.input_bytes = checks.count(input.bytes);
            task.input_records = checks.count(input.records);
        }
        if let Some(output) = &metrics.output {
            task.output_bytes = checks.count(output.bytes);
            task.output_records = checks.count(output.records);
        }
        task.records_read = both(task.input_records, task.shuffle_read_records);
        task.records_written = both(task.output_records, task.shuffle_write_records);
        // A delay is what the parts leave of the duration: with one of them
        // missing there is none.
        task.scheduler_delay = match (duration, task.run_time, task.deserialize_time) {
            (Some(duration), Some(_), Some(_)) if task.result_serialization_time.is_some() => {
                Some(task.metrics().scheduler_delay_of(duration))
            }
            _ => None,
        };
        task
    }

    /// As the model keeps it for the slowest tasks: a dropped value is zero
    /// there.
    pub(super) fn metrics(&self) -> TaskMetrics {
        TaskMetrics {
            run_time: self.run_time.unwrap_or_default(),
            cpu_time: self.cpu_time.unwrap_or_default(),
            deserialize_time: self.deserialize_time.unwrap_or_default(),
            gc_time: self.gc_time.unwrap_or_default(),
            result_serialization_time: self.result_serialization_time.unwrap_or_default(),
            getting_result_time: self.getting_result_time,
            scheduler_delay: self.scheduler_delay.unwrap_or_default(),
            fetch_wait_time: self.fetch_wait_time.unwrap_or_default(),
            shuffle_write_time: self.shuffle_write_time.unwrap_or_default(),
            input_bytes: self.input_bytes.unwrap_or_default(),
            input_records: self.input_records.unwrap_or_default(),
            output_bytes: self.output_bytes.unwrap_or_default(),
            output_records: self.output_records.unwrap_or_default(),
            shuffle_read_bytes: self.shuffle_read_bytes.unwrap_or_default(),
            shuffle_read_records: self.shuffle_read_records.unwrap_or_default(),
            shuffle_write_bytes: self.shuffle_write_bytes.unwrap_or_default(),
            shuffle_write_records: self.shuffle_write_records.unwrap_or_default(),
            memory_spilled_bytes: self.memory_spilled_bytes.unwrap_or_default(),
            disk_spilled_bytes: self.disk_spilled_bytes.unwrap_or_default(),
            peak_execution_memory_bytes: self.peak_execution_memory_bytes.unwrap_or_default(),
        }
    }
}

fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}
