//! Spark's events: the fields that are read, under the names that
//! `org.apache.spark.util.JsonProtocol` gives them, 3.3 to 4.3.
//!
//! Everything is optional ([`super::field`]) and borrowed from the line; what
//! is not named here is skipped without being kept. Times are milliseconds
//! since the epoch, spans milliseconds unless the name says CPU or write
//! (nanoseconds), sizes bytes.

use std::borrow::Cow;

use serde::Deserialize;

use super::accumulables::{SqlUpdates, SqlValues};
use super::field::{Decimal, Flag, Number, Properties, Text};

/// The name of an event, whichever place in the object it has.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Named<'a> {
    #[serde(rename = "Event", borrow)]
    event: Text<'a>,
}

/// The event's name. Spark writes it first, so that a look at the line's
/// beginning is enough; whoever rewrote the log pays for a look at all of it.
/// `None` for an object without one.
pub(super) fn name(line: &str) -> Result<Option<Cow<'_, str>>, serde_json::Error> {
    if let Some(rest) = line.strip_prefix("{\"Event\":\"")
        && let Some(end) = memchr::memchr2(b'"', b'\\', rest.as_bytes())
        && rest.as_bytes()[end] == b'"'
    {
        return Ok(Some(rest[..end].into()));
    }
    let named: Named<'_> = serde_json::from_str(line)?;
    Ok(named.event.get().map(|name| name.to_owned().into()))
}

/// Events that Spark writes and that nothing is asked of yet: known, so that
/// the count of unknown ones means something.
pub(super) fn is_passed_over(name: &str) -> bool {
    const CORE: [&str; 25] = [
        "SparkListenerTaskGettingResult",
        "SparkListenerBlockManagerRemoved",
        "SparkListenerUnpersistRDD",
        "SparkListenerBlockUpdated",
        "SparkListenerSpeculativeTaskSubmitted",
        "SparkListenerUnschedulableTaskSetAdded",
        "SparkListenerUnschedulableTaskSetRemoved",
        "SparkListenerMiscellaneousProcessAdded",
        "SparkListenerExecutorBlacklisted",
        "SparkListenerExecutorBlacklistedForStage",
        "SparkListenerNodeBlacklisted",
        "SparkListenerNodeBlacklistedForStage",
        "SparkListenerExecutorUnblacklisted",
        "SparkListenerNodeUnblacklisted",
        "SparkListenerExecutorExcluded",
        "SparkListenerExecutorExcludedForStage",
        "SparkListenerNodeExcluded",
        "SparkListenerNodeExcludedForStage",
        "SparkListenerExecutorUnexcluded",
        "SparkListenerNodeUnexcluded",
        "org.apache.spark.scheduler.SparkListenerExecutorExcluded",
        "org.apache.spark.scheduler.SparkListenerExecutorExcludedForStage",
        "org.apache.spark.scheduler.SparkListenerNodeExcludedForStage",
        "org.apache.spark.scheduler.SparkListenerExecutorUnexcluded",
        "org.apache.spark.scheduler.SparkListenerMiscellaneousProcessAdded",
    ];
    CORE.contains(&name)
        || ["org.apache.spark.sql.", "org.apache.spark.scheduler.", "org.apache.spark.streaming."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Whether the event says that a DStream runs.
pub(super) fn is_stream_start(name: &str) -> bool {
    name.ends_with("StreamingListenerStreamingStarted")
}

/// Declares events by Spark's field names. A struct with a lifetime borrows
/// from the line.
macro_rules! events {
    () => {};
    ($(#[$meta:meta])* struct $name:ident<$life:lifetime> {
        $($(#[$field_meta:meta])* $key:literal => $field:ident: $type:ty),+ $(,)?
    } $($rest:tt)*) => {
        $(#[$meta])*
        #[derive(serde::Deserialize, Default)]
        #[serde(default, bound(deserialize = "'de: 'a"))]
        pub(super) struct $name<$life> {
            $($(#[$field_meta])* #[serde(rename = $key)] pub(super) $field: $type,)+
        }
        events! { $($rest)* }
    };
    ($(#[$meta:meta])* struct $name:ident {
        $($(#[$field_meta:meta])* $key:literal => $field:ident: $type:ty),+ $(,)?
    } $($rest:tt)*) => {
        $(#[$meta])*
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        pub(super) struct $name {
            $($(#[$field_meta])* #[serde(rename = $key)] pub(super) $field: $type,)+
        }
        events! { $($rest)* }
    };
}

events! {
    struct LogStart<'a> {
        "Spark Version" => spark_version: Text<'a>,
    }
    struct ApplicationStart<'a> {
        "App Name" => name: Text<'a>,
        "App ID" => id: Text<'a>,
        "App Attempt ID" => attempt: Text<'a>,
        "Timestamp" => time: Number,
        "User" => user: Text<'a>,
    }
    struct ApplicationEnd {
        "Timestamp" => time: Number,
        /// Since 4.0.
        "ExitCode" => exit_code: Number,
    }
    struct EnvironmentUpdate<'a> {
        "JVM Information" => jvm: Option<JvmInformation<'a>>,
        "Spark Properties" => spark: Properties,
        "System Properties" => system: Option<SystemProperties<'a>>,
    }
    struct JvmInformation<'a> {
        "Java Version" => java_version: Text<'a>,
    }
    struct SystemProperties<'a> {
        "sun.java.command" => java_command: Text<'a>,
        "traceparent" => traceparent: Text<'a>,
        "tracestate" => tracestate: Text<'a>,
        "TRACEPARENT" => upper_traceparent: Text<'a>,
        "TRACESTATE" => upper_tracestate: Text<'a>,
    }
    struct ResourceProfileAdded {
        "Resource Profile Id" => id: Number,
        "Executor Resource Requests" => executor: Option<ExecutorRequests>,
        "Task Resource Requests" => task: Option<TaskRequests>,
    }
    struct ExecutorRequests {
        "cores" => cores: Option<Request>,
        /// MiB.
        "memory" => memory: Option<Request>,
        "memoryOverhead" => overhead: Option<Request>,
        "pyspark.memory" => python: Option<Request>,
        "offHeap" => off_heap: Option<Request>,
    }
    struct TaskRequests {
        "cpus" => cpus: Option<Request>,
    }
    struct Request {
        "Amount" => amount: Decimal,
    }
    struct ExecutorAdded<'a> {
        "Timestamp" => time: Number,
        "Executor ID" => id: Text<'a>,
        "Executor Info" => info: Option<ExecutorInfo<'a>>,
    }
    struct ExecutorInfo<'a> {
        "Host" => host: Text<'a>,
        "Total Cores" => cores: Number,
        "Resource Profile Id" => resource_profile_id: Number,
    }
    struct ExecutorRemoved<'a> {
        "Timestamp" => time: Number,
        "Executor ID" => id: Text<'a>,
        "Removed Reason" => reason: Text<'a>,
    }
    struct BlockManagerAdded<'a> {
        "Timestamp" => time: Number,
        "Block Manager ID" => manager: Option<BlockManagerId<'a>>,
        "Maximum Memory" => memory: Number,
    }
    struct BlockManagerId<'a> {
        "Executor ID" => executor_id: Text<'a>,
        "Host" => host: Text<'a>,
    }
    /// Written only with `spark.eventLog.logStageExecutorMetrics`.
    struct StageExecutorMetrics<'a> {
        "Executor ID" => executor_id: Text<'a>,
        "Executor Metrics" => metrics: Option<PeakMetrics>,
    }
    /// Heartbeats are not logged but the driver's own, and those only with
    /// `spark.eventLog.logStageExecutorMetrics`.
    struct ExecutorMetricsUpdate<'a> {
        "Executor ID" => executor_id: Text<'a>,
        "Executor Metrics Updated" => updates: Option<Vec<StagePeaks>>,
    }
    struct StagePeaks {
        "Executor Metrics" => metrics: Option<PeakMetrics>,
    }
    struct JobStart<'a> {
        "Job ID" => id: Number,
        "Submission Time" => submitted: Number,
        "Stage IDs" => stage_ids: Option<Vec<Number>>,
        "Stage Infos" => stages: Option<Vec<StageInfo<'a>>>,
        "Properties" => properties: Option<JobProperties<'a>>,
    }
    struct JobProperties<'a> {
        "spark.sql.execution.id" => sql_execution_id: Number,
        "spark.job.description" => description: Text<'a>,
        /// Set for the jobs of a streaming query.
        "sql.streaming.queryId" => query_id: Text<'a>,
        /// Set for the jobs of a DStream.
        "spark.streaming.internal.batchTime" => batch_time: Text<'a>,
        /// Set by the program: W3C Trace Context.
        "traceparent" => traceparent: Text<'a>,
        "tracestate" => tracestate: Text<'a>,
    }
    struct JobEnd<'a> {
        "Job ID" => id: Number,
        "Completion Time" => completed: Number,
        "Job Result" => result: Option<JobResult<'a>>,
    }
    struct JobResult<'a> {
        "Result" => result: Text<'a>,
        "Exception" => exception: Option<JobException<'a>>,
    }
    struct JobException<'a> {
        "Message" => message: Text<'a>,
    }
    struct StageEvent<'a> {
        "Stage Info" => stage: Option<StageInfo<'a>>,
    }
    struct StageInfo<'a> {
        "Stage ID" => id: Number,
        "Stage Attempt ID" => attempt: Number,
        "Stage Name" => name: Text<'a>,
        "Number of Tasks" => tasks: Number,
        "RDD Info" => rdds: Option<Vec<RddInfo<'a>>>,
        "Parent IDs" => parents: Option<Vec<Number>>,
        "Submission Time" => submitted: Number,
        "Completion Time" => completed: Number,
        "Failure Reason" => failure_reason: Text<'a>,
        "Resource Profile Id" => resource_profile_id: Number,
        /// Of a stage that completed: what its accumulators had come to.
        "Accumulables" => accumulables: SqlValues,
    }
    struct RddInfo<'a> {
        "RDD ID" => id: Number,
        "Name" => name: Text<'a>,
        /// JSON inside a text: [`Scope`].
        "Scope" => scope: Text<'a>,
    }
    /// The operation an RDD comes from.
    struct Scope<'a> {
        "name" => name: Text<'a>,
    }
    struct TaskStart<'a> {
        "Stage ID" => stage: Number,
        "Stage Attempt ID" => attempt: Number,
        "Task Info" => task: Option<TaskInfo<'a>>,
    }
    struct TaskEnd<'a> {
        "Stage ID" => stage: Number,
        "Stage Attempt ID" => attempt: Number,
        "Task End Reason" => reason: Option<Reason<'a>>,
        "Task Info" => task: Option<TaskInfo<'a>>,
        "Task Executor Metrics" => peaks: Option<PeakMetrics>,
        "Task Metrics" => metrics: Option<Metrics>,
    }
    struct TaskInfo<'a> {
        "Task ID" => id: Number,
        "Index" => index: Number,
        "Attempt" => attempt: Number,
        /// Since 3.3.
        "Partition ID" => partition: Number,
        "Launch Time" => launched: Number,
        "Executor ID" => executor_id: Text<'a>,
        "Host" => host: Text<'a>,
        "Locality" => locality: Text<'a>,
        "Speculative" => speculative: Flag,
        "Getting Result Time" => getting_result: Number,
        "Finish Time" => finished: Number,
        "Failed" => failed: Flag,
        "Killed" => killed: Flag,
        "Accumulables" => accumulables: SqlUpdates<'a>,
    }
    struct Reason<'a> {
        "Reason" => reason: Text<'a>,
        /// Of an `ExceptionFailure`.
        "Class Name" => class_name: Text<'a>,
        "Description" => description: Text<'a>,
        "Full Stack Trace" => stack_trace: Text<'a>,
        /// Of a `FetchFailed`: where the shuffle output was; null where nobody
        /// knows.
        "Block Manager Address" => block_manager: Option<BlockManagerId<'a>>,
        /// Of an `ExecutorLostFailure`.
        "Loss Reason" => loss_reason: Text<'a>,
    }
    /// Peaks of the executor while the task ran; all 0 or -1 where Spark took
    /// no sample.
    struct PeakMetrics {
        "JVMHeapMemory" => heap: Number,
        "JVMOffHeapMemory" => jvm_off_heap: Number,
        "OnHeapExecutionMemory" => on_heap_execution: Number,
        "OffHeapExecutionMemory" => off_heap_execution: Number,
        "OnHeapStorageMemory" => on_heap_storage: Number,
        "OffHeapStorageMemory" => off_heap_storage: Number,
        "OnHeapUnifiedMemory" => on_heap_unified: Number,
        "OffHeapUnifiedMemory" => off_heap_unified: Number,
        "DirectPoolMemory" => direct: Number,
        "MappedPoolMemory" => mapped: Number,
        "ProcessTreeJVMRSSMemory" => jvm_resident: Number,
        "ProcessTreePythonRSSMemory" => python_resident: Number,
        "ProcessTreeOtherRSSMemory" => other_resident: Number,
    }
    struct Metrics {
        "Executor Deserialize Time" => deserialize: Number,
        "Executor Run Time" => run: Number,
        "Executor CPU Time" => cpu_nanos: Number,
        "Peak Execution Memory" => peak_execution_memory: Number,
        "Result Size" => result_size: Number,
        "JVM GC Time" => gc: Number,
        "Result Serialization Time" => result_serialization: Number,
        "Memory Bytes Spilled" => memory_spilled: Number,
        "Disk Bytes Spilled" => disk_spilled: Number,
        "Shuffle Read Metrics" => shuffle_read: Option<ShuffleRead>,
        "Shuffle Write Metrics" => shuffle_write: Option<ShuffleWrite>,
        "Input Metrics" => input: Option<Input>,
        "Output Metrics" => output: Option<Output>,
    }
    struct ShuffleRead {
        "Fetch Wait Time" => fetch_wait: Number,
        "Remote Bytes Read" => remote_bytes: Number,
        "Local Bytes Read" => local_bytes: Number,
        "Total Records Read" => records: Number,
    }
    struct ShuffleWrite {
        "Shuffle Bytes Written" => bytes: Number,
        "Shuffle Write Time" => nanos: Number,
        "Shuffle Records Written" => records: Number,
    }
    struct Input {
        "Bytes Read" => bytes: Number,
        "Records Read" => records: Number,
    }
    struct Output {
        "Bytes Written" => bytes: Number,
        "Records Written" => records: Number,
    }
}

pub(super) use events;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_wherever_it_stands() {
        let name = |line: &'static str| name(line).ok().flatten();
        assert_eq!(
            name(r#"{"Event":"SparkListenerJobEnd","Job ID":1}"#).as_deref(),
            Some("SparkListenerJobEnd")
        );
        // A nested key of that name is not the event's.
        assert_eq!(
            name(r#"{ "a": {"Event":"x"}, "Event" : "SparkListenerJobEnd" }"#).as_deref(),
            Some("SparkListenerJobEnd")
        );
        assert_eq!(name(r#"{"Event":"Spark\u004cistener"}"#).as_deref(), Some("SparkListener"));
        assert_eq!(name(r#"{"a":1}"#), None);
        assert_eq!(name("not json"), None);
    }
}
