//! The rows of the catalogue.
//!
//! A row reads: identifier, Prometheus name, OpenTelemetry name, kind, unit,
//! scope; then labels beside those of the scope and how many series they can
//! make; then stability and help. Order is the order of the exposition.

use super::Kind::{Counter, Gauge, Histogram, Info};
use super::Metric;
use super::Scope::{Daemon, Executor, Finding, Name, Query, Run, SqlExecution, Stage};
use super::Stability::{Experimental, Stable};
use super::Unit::{Bytes, BytesPerSecond, Ratio, Seconds, Things, ThingsPerSecond};

/// Makes the table, and an identifier for each row that cannot be misspelt.
macro_rules! catalogue {
    ($($id:ident, $name:literal, $otel:literal, $kind:expr, $unit:expr, $scope:expr,
       $labels:expr, $times:literal, $stability:expr, $help:literal;)*) => {
        /// Names a row of [`CATALOGUE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Id { $($id),* }

        /// Every metric, in the order of the exposition.
        pub static CATALOGUE: &[Metric] = &[$(Metric {
            name: $name, otel: $otel, kind: $kind, unit: $unit, scope: $scope,
            labels: &$labels, times: $times, help: $help, stability: $stability,
        }),*];

        impl Id {
            pub const ALL: &'static [Self] = &[$(Self::$id),*];

            /// Its row.
            pub fn metric(self) -> &'static Metric {
                &CATALOGUE[self as usize]
            }
        }
    };
}

catalogue! {
    ApplicationInfo, "spark_application_info", "spark.application.info", Info, Things(""), Run, ["app_name", "spark_version", "user", "kind", "source", "trace_id"], 1, Stable,
        "Facts about a run: name of its job (names.rules and the default rules make it of Spark's application name, and the series by name have the same), Spark version, user, kind (batch, streaming, interactive), where it was read (driver, history_server, event_log), and the trace it is in where traces are sent by OTLP; on Kubernetes also where its driver runs (k8s_namespace_name, k8s_pod_name, k8s_node_name) and the labels of its pod that clusters[].kubernetes.pod_labels allows (label_NAME)";
    ApplicationState, "spark_application_state", "spark.application.state", Gauge, Things(""), Run, ["state"], 7, Stable,
        "1 for the state a run is in, 0 for the others; lost: gone without an end; unknown: nothing tells how it ended";
    ApplicationStart, "spark_application_start_timestamp_seconds", "spark.application.start_timestamp", Gauge, Seconds, Run, [], 1, Stable,
        "When the run started, in seconds since the epoch, by the driver's clock";
    ApplicationEnd, "spark_application_end_timestamp_seconds", "spark.application.end_timestamp", Gauge, Seconds, Run, [], 1, Stable,
        "When the run ended, in seconds since the epoch, by the driver's clock; absent while it runs";
    ApplicationObserved, "spark_application_observed_timestamp_seconds", "spark.application.observed_timestamp", Gauge, Seconds, Run, [], 1, Experimental,
        "The latest moment the data of this run speaks of, in seconds since the epoch: its other series are as old as that; time() minus it is the lag of a run that is read from its growing log";
    ApplicationDuration, "spark_application_duration_seconds", "spark.application.duration", Gauge, Seconds, Run, [], 1, Stable,
        "Start to end, or to the latest observation while it runs";
    ApplicationExitCode, "spark_application_exit_code", "spark.application.exit_code", Gauge, Things(""), Run, [], 1, Experimental,
        "Exit code of the driver, as its pod tells it, or Spark since 4.0";
    ApplicationJobs, "spark_application_jobs", "spark.application.jobs", Gauge, Things("{job}"), Run, ["status"], 5, Experimental,
        "Jobs by status; cancelled ones are no failures";
    ApplicationSqlExecutions, "spark_application_sql_executions", "spark.application.sql_executions", Gauge, Things("{execution}"), Run, ["status"], 5, Experimental,
        "SQL executions by status, nested ones included, up to limits.sql_executions";
    ApplicationStages, "spark_application_stages", "spark.application.stages", Gauge, Things("{stage}"), Run, ["status"], 5, Experimental,
        "Stage attempts by status";
    ApplicationStagesOmitted, "spark_application_stages_omitted", "spark.application.stages_omitted", Gauge, Things("{stage}"), Run, [], 1, Experimental,
        "Stage attempts missing from all other numbers: evicted by Spark before they were read, or over limits.stages";
    ApplicationExecutors, "spark_application_executors", "spark.application.executors", Gauge, Things("{executor}"), Run, [], 1, Experimental,
        "Executors alive; 0 once the run has ended";
    ApplicationExecutorsAdded, "spark_application_executors_added", "spark.application.executors_added", Gauge, Things("{executor}"), Run, [], 1, Experimental,
        "Executors ever added, as far as the source remembers them";
    ApplicationExecutorsRemoved, "spark_application_executors_removed", "spark.application.executors_removed", Gauge, Things("{executor}"), Run, [], 1, Experimental,
        "Executors removed, for whatever reason, as far as the source remembers them";
    ApplicationExecutorCores, "spark_application_executor_cores", "spark.application.executor_cores", Gauge, Things("{core}"), Run, [], 1, Experimental,
        "Cores of the executors alive; 0 once the run has ended";
    ApplicationExecutorCoresPeak, "spark_application_executor_cores_peak", "spark.application.executor_cores_peak", Gauge, Things("{core}"), Run, [], 1, Experimental,
        "Most executor cores at one time";
    ApplicationBoughtCore, "spark_application_bought_core_seconds", "spark.application.bought_core", Gauge, Seconds, Run, [], 1, Experimental,
        "Core-seconds paid for: over all executors, cores times the time from added to removed or the end";
    ApplicationUsedCore, "spark_application_used_core_seconds", "spark.application.used_core", Gauge, Seconds, Run, [], 1, Experimental,
        "Core-seconds in which a task ran: over all task attempts, duration times spark.task.cpus";
    ApplicationCost, "spark_application_cost", "spark.application.cost", Gauge, Things(""), Run, ["currency"], 1, Experimental,
        "Derived: what the executors of the run cost so far by the operator's prices (core-hours and GiB-hours of memory, from added to removed or the end); absent without prices, or where cores or memory are not known";
    ApplicationTime, "spark_application_time_seconds", "spark.application.time", Gauge, Seconds, Run, ["part"], 10, Experimental,
        "Derived: where the wall time went, the parts together are spark_application_duration_seconds; no executor: resources, no job: driver, no task: scheduling, else shared equally among the running tasks by what they did; blocked: run time that Spark explains by nothing else";
    ApplicationPredictedDuration, "spark_application_predicted_duration_seconds", "spark.application.predicted_duration", Gauge, Seconds, Run, ["executor_factor"], 8, Experimental,
        "Derived: how long a finished batch run would have taken with so many times its executors, by replaying its tasks; executor_factor 1 is the replay of the run as it was; event logs only";
    ApplicationCriticalPath, "spark_application_critical_path_seconds", "spark.application.critical_path", Gauge, Seconds, Run, [], 1, Experimental,
        "Derived: how long a finished batch run would have taken with no end of executors: gaps of the driver and the longest chain of tasks; event logs only";
    ApplicationTasks, "spark_application_tasks", "spark.application.tasks", Gauge, Things("{task}"), Run, ["status"], 4, Experimental,
        "Task attempts of all stage attempts by status";
    ApplicationTaskRunTime, "spark_application_task_run_time_seconds", "spark.application.task.run_time", Gauge, Seconds, Run, [], 1, Experimental,
        "Time in which executors ran tasks, summed over all task attempts";
    ApplicationTaskCpuTime, "spark_application_task_cpu_time_seconds", "spark.application.task.cpu_time", Gauge, Seconds, Run, [], 1, Experimental,
        "CPU time of tasks, without that of Python and native processes, summed over all task attempts";
    ApplicationTaskGcTime, "spark_application_task_gc_time_seconds", "spark.application.task.gc_time", Gauge, Seconds, Run, [], 1, Experimental,
        "Garbage collection while tasks ran; tasks that share a JVM each count the same pause, summed over all task attempts";
    ApplicationTaskDeserializeTime, "spark_application_task_deserialize_time_seconds", "spark.application.task.deserialize_time", Gauge, Seconds, Run, [], 1, Experimental,
        "Time to deserialize tasks on executors, summed over all task attempts";
    ApplicationTaskFetchWaitTime, "spark_application_task_fetch_wait_time_seconds", "spark.application.task.fetch_wait_time", Gauge, Seconds, Run, [], 1, Experimental,
        "Time in which tasks waited for remote shuffle blocks, summed over all task attempts";
    ApplicationTaskShuffleWriteTime, "spark_application_task_shuffle_write_time_seconds", "spark.application.task.shuffle_write_time", Gauge, Seconds, Run, [], 1, Experimental,
        "Time in which tasks wrote shuffle files, summed over all task attempts";
    ApplicationTaskSchedulerDelay, "spark_application_task_scheduler_delay_seconds", "spark.application.task.scheduler_delay", Gauge, Seconds, Run, [], 1, Experimental,
        "Task time spent neither running, deserializing nor returning the result; event logs only, summed over all task attempts";
    ApplicationInputBytes, "spark_application_input_bytes", "spark.application.input", Gauge, Bytes, Run, [], 1, Experimental,
        "Bytes read from storage or cache, over all task attempts";
    ApplicationInputRecords, "spark_application_input_records", "spark.application.input_records", Gauge, Things("{record}"), Run, [], 1, Experimental,
        "Records read from storage or cache, over all task attempts; of a cached table Spark counts batches";
    ApplicationOutputBytes, "spark_application_output_bytes", "spark.application.output", Gauge, Bytes, Run, [], 1, Experimental,
        "Bytes written to storage, over all task attempts";
    ApplicationOutputRecords, "spark_application_output_records", "spark.application.output_records", Gauge, Things("{record}"), Run, [], 1, Experimental,
        "Records written to storage, over all task attempts";
    ApplicationShuffleReadBytes, "spark_application_shuffle_read_bytes", "spark.application.shuffle_read", Gauge, Bytes, Run, [], 1, Experimental,
        "Bytes read from shuffles, local and remote, over all task attempts";
    ApplicationShuffleReadRecords, "spark_application_shuffle_read_records", "spark.application.shuffle_read_records", Gauge, Things("{record}"), Run, [], 1, Experimental,
        "Records read from shuffles, local and remote, over all task attempts";
    ApplicationShuffleWriteBytes, "spark_application_shuffle_write_bytes", "spark.application.shuffle_write", Gauge, Bytes, Run, [], 1, Experimental,
        "Bytes written to shuffles, over all task attempts";
    ApplicationShuffleWriteRecords, "spark_application_shuffle_write_records", "spark.application.shuffle_write_records", Gauge, Things("{record}"), Run, [], 1, Experimental,
        "Records written to shuffles, over all task attempts";
    ApplicationMemorySpilled, "spark_application_memory_spilled_bytes", "spark.application.memory_spilled", Gauge, Bytes, Run, [], 1, Experimental,
        "Size in memory of what was spilled, over all task attempts";
    ApplicationDiskSpilled, "spark_application_disk_spilled_bytes", "spark.application.disk_spilled", Gauge, Bytes, Run, [], 1, Experimental,
        "Size on disk of what was spilled, over all task attempts";
    ApplicationGcRatio, "spark_application_gc_ratio", "spark.application.gc", Gauge, Ratio, Run, [], 1, Experimental,
        "Derived: spark_application_task_gc_time_seconds / spark_application_task_run_time_seconds; absent where the collector runs beside the program";
    ApplicationTaskFailureRatio, "spark_application_task_failure_ratio", "spark.application.task_failure", Gauge, Ratio, Run, [], 1, Experimental,
        "Derived: failed task attempts / ended task attempts, kills and refused commits excluded";
    ApplicationCachedRdds, "spark_application_cached_rdds", "spark.application.cached_rdds", Gauge, Things("{rdd}"), Run, [], 1, Experimental,
        "Cached RDDs and tables; REST only";
    ApplicationCachedPartitions, "spark_application_cached_partitions", "spark.application.cached_partitions", Gauge, Things("{partition}"), Run, [], 1, Experimental,
        "Partitions in the cache now; REST only";
    ApplicationCacheablePartitions, "spark_application_cacheable_partitions", "spark.application.cacheable_partitions", Gauge, Things("{partition}"), Run, [], 1, Experimental,
        "Partitions of all cached RDDs and tables, in the cache or not; REST only";
    ApplicationCachedMemory, "spark_application_cached_memory_bytes", "spark.application.cached_memory", Gauge, Bytes, Run, [], 1, Experimental,
        "Memory the cache takes; REST only";
    ApplicationCachedDisk, "spark_application_cached_disk_bytes", "spark.application.cached_disk", Gauge, Bytes, Run, [], 1, Experimental,
        "Disk the cache takes; REST only";
    ApplicationDataQuality, "spark_application_data_quality", "spark.application.data_quality", Gauge, Things(""), Run, ["reason"], 17, Stable,
        "1 for each thing that is wrong with the data of this run itself; rules that need the missing part stay silent";
    ApplicationFindings, "spark_application_findings", "spark.application.findings", Gauge, Things("{finding}"), Run, ["severity"], 3, Stable,
        "Findings by severity, also those beyond limits.findings_exported";
    Finding, "spark_finding", "spark.finding", Gauge, Things(""), Finding, [], 1, Stable,
        "1 for each thing found wrong with a run, costliest first up to limits.findings_exported; unused labels are empty; several jobs or hosts of one rule and cause share a series";
    FindingWall, "spark_finding_wall_seconds", "spark.finding_wall", Gauge, Seconds, Finding, [], 1, Stable,
        "Derived: estimate of the wall time the run would save without the fault; absent where Spark gives no time for it";
    FindingCore, "spark_finding_core_seconds", "spark.finding_core", Gauge, Seconds, Finding, [], 1, Stable,
        "Derived: estimate of the core-seconds the run would save without the fault; absent where Spark gives no time for it";
    StageStatus, "spark_stage_status", "spark.stage.status", Gauge, Things(""), Stage, ["status"], 3, Experimental,
        "1 for the status a stage attempt has, 0 for the others; only the costliest attempts up to limits.stages_exported have series, active ones first";
    StageSubmitted, "spark_stage_submitted_timestamp_seconds", "spark.stage.submitted_timestamp", Gauge, Seconds, Stage, [], 1, Experimental,
        "When the stage attempt was submitted, in seconds since the epoch";
    StageDuration, "spark_stage_duration_seconds", "spark.stage.duration", Gauge, Seconds, Stage, [], 1, Experimental,
        "Submission to completion, or to the latest observation while it is active";
    StageRunning, "spark_stage_running_seconds", "spark.stage.running", Gauge, Seconds, Stage, [], 1, Experimental,
        "First task launched to completion, or to the latest observation while it is active";
    StageCores, "spark_stage_executor_cores", "spark.stage.executor_cores", Gauge, Things("{core}"), Stage, [], 1, Experimental,
        "Derived: cores of all executors, averaged over the time in which tasks of the stage ran";
    StagePartitions, "spark_stage_partitions", "spark.stage.partitions", Gauge, Things("{partition}"), Stage, [], 1, Experimental,
        "Partitions the attempt was asked to compute";
    StageTasks, "spark_stage_tasks", "spark.stage.tasks", Gauge, Things("{task}"), Stage, ["status"], 4, Experimental,
        "Task attempts by status; retries and speculative copies count each";
    StageTaskRunTimeMedian, "spark_stage_task_run_time_median_seconds", "spark.stage.task.run_time_median", Gauge, Seconds, Stage, [], 1, Experimental,
        "Median task run time, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRunTimeP95, "spark_stage_task_run_time_p95_seconds", "spark.stage.task.run_time_p95", Gauge, Seconds, Stage, [], 1, Experimental,
        "95th percentile of task run time, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRunTimeMax, "spark_stage_task_run_time_max_seconds", "spark.stage.task.run_time_max", Gauge, Seconds, Stage, [], 1, Experimental,
        "Longest task run time, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRecordsReadMedian, "spark_stage_task_records_read_median", "spark.stage.task.records_read_median", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Median of input plus shuffle records a task read, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRecordsReadMax, "spark_stage_task_records_read_max", "spark.stage.task.records_read_max", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Most input plus shuffle records a task read, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRecordsWrittenMedian, "spark_stage_task_records_written_median", "spark.stage.task.records_written_median", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Median of output plus shuffle records a task wrote, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRecordsWrittenMax, "spark_stage_task_records_written_max", "spark.stage.task.records_written_max", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Most output plus shuffle records a task wrote, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskInputMedian, "spark_stage_task_input_median_bytes", "spark.stage.task.input_median", Gauge, Bytes, Stage, [], 1, Experimental,
        "Median of bytes read from storage or cache by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskInputMax, "spark_stage_task_input_max_bytes", "spark.stage.task.input_max", Gauge, Bytes, Stage, [], 1, Experimental,
        "Most bytes read from storage or cache by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskOutputMedian, "spark_stage_task_output_median_bytes", "spark.stage.task.output_median", Gauge, Bytes, Stage, [], 1, Experimental,
        "Median of bytes written to storage by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskOutputMax, "spark_stage_task_output_max_bytes", "spark.stage.task.output_max", Gauge, Bytes, Stage, [], 1, Experimental,
        "Most bytes written to storage by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskShuffleReadMedian, "spark_stage_task_shuffle_read_median_bytes", "spark.stage.task.shuffle_read_median", Gauge, Bytes, Stage, [], 1, Experimental,
        "Median of bytes read from shuffles by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskShuffleReadMax, "spark_stage_task_shuffle_read_max_bytes", "spark.stage.task.shuffle_read_max", Gauge, Bytes, Stage, [], 1, Experimental,
        "Most bytes read from shuffles by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskShuffleWriteMedian, "spark_stage_task_shuffle_write_median_bytes", "spark.stage.task.shuffle_write_median", Gauge, Bytes, Stage, [], 1, Experimental,
        "Median of bytes written to shuffles by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskShuffleWriteMax, "spark_stage_task_shuffle_write_max_bytes", "spark.stage.task.shuffle_write_max", Gauge, Bytes, Stage, [], 1, Experimental,
        "Most bytes written to shuffles by a task, over successful tasks (lower nearest rank, Spark's own definition)";
    StageTaskRunTime, "spark_stage_task_run_time_seconds", "spark.stage.task.run_time", Gauge, Seconds, Stage, [], 1, Experimental,
        "Time in which executors ran tasks, summed over all task attempts";
    StageTaskCpuTime, "spark_stage_task_cpu_time_seconds", "spark.stage.task.cpu_time", Gauge, Seconds, Stage, [], 1, Experimental,
        "CPU time of tasks, without that of Python and native processes, summed over all task attempts";
    StageTaskGcTime, "spark_stage_task_gc_time_seconds", "spark.stage.task.gc_time", Gauge, Seconds, Stage, [], 1, Experimental,
        "Garbage collection while tasks ran; tasks that share a JVM each count the same pause, summed over all task attempts";
    StageTaskDeserializeTime, "spark_stage_task_deserialize_time_seconds", "spark.stage.task.deserialize_time", Gauge, Seconds, Stage, [], 1, Experimental,
        "Time to deserialize tasks on executors, summed over all task attempts";
    StageTaskFetchWaitTime, "spark_stage_task_fetch_wait_time_seconds", "spark.stage.task.fetch_wait_time", Gauge, Seconds, Stage, [], 1, Experimental,
        "Time in which tasks waited for remote shuffle blocks, summed over all task attempts";
    StageTaskShuffleWriteTime, "spark_stage_task_shuffle_write_time_seconds", "spark.stage.task.shuffle_write_time", Gauge, Seconds, Stage, [], 1, Experimental,
        "Time in which tasks wrote shuffle files, summed over all task attempts";
    StageTaskSchedulerDelay, "spark_stage_task_scheduler_delay_seconds", "spark.stage.task.scheduler_delay", Gauge, Seconds, Stage, [], 1, Experimental,
        "Task time spent neither running, deserializing nor returning the result; event logs only, summed over all task attempts";
    StageInputBytes, "spark_stage_input_bytes", "spark.stage.input", Gauge, Bytes, Stage, [], 1, Experimental,
        "Bytes read from storage or cache, over all task attempts";
    StageInputRecords, "spark_stage_input_records", "spark.stage.input_records", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Records read from storage or cache, over all task attempts; of a cached table Spark counts batches";
    StageOutputBytes, "spark_stage_output_bytes", "spark.stage.output", Gauge, Bytes, Stage, [], 1, Experimental,
        "Bytes written to storage, over all task attempts";
    StageOutputRecords, "spark_stage_output_records", "spark.stage.output_records", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Records written to storage, over all task attempts";
    StageShuffleReadBytes, "spark_stage_shuffle_read_bytes", "spark.stage.shuffle_read", Gauge, Bytes, Stage, [], 1, Experimental,
        "Bytes read from shuffles, local and remote, over all task attempts";
    StageShuffleReadRecords, "spark_stage_shuffle_read_records", "spark.stage.shuffle_read_records", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Records read from shuffles, local and remote, over all task attempts";
    StageShuffleWriteBytes, "spark_stage_shuffle_write_bytes", "spark.stage.shuffle_write", Gauge, Bytes, Stage, [], 1, Experimental,
        "Bytes written to shuffles, over all task attempts";
    StageShuffleWriteRecords, "spark_stage_shuffle_write_records", "spark.stage.shuffle_write_records", Gauge, Things("{record}"), Stage, [], 1, Experimental,
        "Records written to shuffles, over all task attempts";
    StageMemorySpilled, "spark_stage_memory_spilled_bytes", "spark.stage.memory_spilled", Gauge, Bytes, Stage, [], 1, Experimental,
        "Size in memory of what was spilled, over all task attempts";
    StageDiskSpilled, "spark_stage_disk_spilled_bytes", "spark.stage.disk_spilled", Gauge, Bytes, Stage, [], 1, Experimental,
        "Size on disk of what was spilled, over all task attempts";
    StagePeakExecutionMemory, "spark_stage_task_peak_execution_memory_max_bytes", "spark.stage.task.peak_execution_memory_max", Gauge, Bytes, Stage, [], 1, Experimental,
        "Most execution memory a task held at one time, over successful tasks (lower nearest rank, Spark's own definition)";
    StageRunTimeRatio, "spark_stage_task_run_time_ratio", "spark.stage.task.run_time_ratio", Gauge, Ratio, Stage, [], 1, Experimental,
        "Derived: longest task run time / typical one (median from 10 tasks on, mean of the other tasks below)";
    StageRecordsRatio, "spark_stage_task_records_ratio", "spark.stage.task.records_ratio", Gauge, Ratio, Stage, [], 1, Experimental,
        "Derived: as spark_stage_task_run_time_ratio, of records: the largest of read, written to shuffles and written to storage";
    StageBytesRatio, "spark_stage_task_bytes_ratio", "spark.stage.task.bytes_ratio", Gauge, Ratio, Stage, [], 1, Experimental,
        "Derived: as spark_stage_task_run_time_ratio, of bytes: the largest of the directions";
    StageSpillRatio, "spark_stage_spill_ratio", "spark.stage.spill", Gauge, Ratio, Stage, [], 1, Experimental,
        "Derived: spark_stage_disk_spilled_bytes / the largest of the stage's input, output, shuffle read and shuffle write bytes";
    StageGcRatio, "spark_stage_gc_ratio", "spark.stage.gc", Gauge, Ratio, Stage, [], 1, Experimental,
        "Derived: spark_stage_task_gc_time_seconds / spark_stage_task_run_time_seconds; absent where the collector runs beside the program";
    StageIoPerCore, "spark_stage_io_per_core_bytes_per_second", "spark.stage.io_per_core", Gauge, BytesPerSecond, Stage, ["direction"], 4, Experimental,
        "Derived: bytes of the stage in one direction / (spark_stage_executor_cores x spark_stage_running_seconds)";
    StageSchedulingDelay, "spark_stage_scheduling_delay_seconds", "spark.stage.scheduling_delay", Gauge, Seconds, Stage, [], 1, Experimental,
        "Derived: time in which the stage was submitted, had pending tasks, and none of them could start for want of an executor or in spite of a free slot";
    StageTaskFailureRatio, "spark_stage_task_failure_ratio", "spark.stage.task_failure", Gauge, Ratio, Stage, [], 1, Experimental,
        "Derived: failed task attempts / ended task attempts, kills and refused commits excluded";
    SqlExecutionStatus, "spark_sql_execution_status", "spark.sql_execution.status", Gauge, Things(""), SqlExecution, ["status"], 5, Experimental,
        "1 for the status a SQL execution has, 0 for the others; only the longest up to limits.sql_executions_exported have series, running ones first, those that another execution started included";
    SqlExecutionSubmitted, "spark_sql_execution_submitted_timestamp_seconds", "spark.sql_execution.submitted_timestamp", Gauge, Seconds, SqlExecution, [], 1, Experimental,
        "When the SQL execution began, in seconds since the epoch";
    SqlExecutionDuration, "spark_sql_execution_duration_seconds", "spark.sql_execution.duration", Gauge, Seconds, SqlExecution, [], 1, Experimental,
        "Start to end, or to the latest observation while it runs; absent where its end never came";
    SqlExecutionJobs, "spark_sql_execution_jobs", "spark.sql_execution.jobs", Gauge, Things("{job}"), SqlExecution, [], 1, Experimental,
        "Jobs that the SQL execution started";
    SqlExecutionTaskRunTime, "spark_sql_execution_task_run_time_seconds", "spark.sql_execution.task.run_time", Gauge, Seconds, SqlExecution, [], 1, Experimental,
        "Time in which executors ran tasks of its stages; a stage shared with another execution is counted for the one whose job came first";
    StreamingQueryActive, "spark_streaming_query_active", "spark.streaming_query.active", Gauge, Things(""), Query, [], 1, Experimental,
        "1 while the streaming query runs, 0 once it or its application has ended; event logs only, and only the queries that told of progress last up to limits.streaming_queries_exported have series";
    StreamingQueryBatches, "spark_streaming_query_batches", "spark.streaming_query.batches", Gauge, Things("{batch}"), Query, [], 1, Experimental,
        "Batches of which this run of the query told";
    StreamingQueryBatchDuration, "spark_streaming_query_batch_duration_seconds", "spark.streaming_query.batch_duration", Gauge, Seconds, Query, [], 1, Experimental,
        "Start to end of the trigger of the last batch";
    StreamingQueryInputRate, "spark_streaming_query_input_rows_per_second", "spark.streaming_query.input_rows", Gauge, ThingsPerSecond("{row}/s"), Query, [], 1, Experimental,
        "Rows that arrived a second before the last batch, over all sources";
    StreamingQueryProcessedRate, "spark_streaming_query_processed_rows_per_second", "spark.streaming_query.processed_rows", Gauge, ThingsPerSecond("{row}/s"), Query, [], 1, Experimental,
        "Rows processed a second of the last batch, over all sources; a source with a limit a trigger balances it with the input";
    StreamingQueryBacklog, "spark_streaming_query_backlog_offsets", "spark.streaming_query.backlog_offsets", Gauge, Things("{offset}"), Query, [], 1, Experimental,
        "How far the last batch ended behind the newest offset, in the source's own unit (Kafka: records); absent where offsets are no numbers";
    StreamingQueryStateRows, "spark_streaming_query_state_rows", "spark.streaming_query.state_rows", Gauge, Things("{row}"), Query, [], 1, Experimental,
        "Rows of state after the last batch, over all stateful operators";
    StreamingQueryStateMemory, "spark_streaming_query_state_memory_bytes", "spark.streaming_query.state_memory", Gauge, Bytes, Query, [], 1, Experimental,
        "Memory of state after the last batch, over all stateful operators; absent where Spark tells what cannot be true";
    StreamingQueryLastProgress, "spark_streaming_query_last_progress_timestamp_seconds", "spark.streaming_query.last_progress_timestamp", Gauge, Seconds, Query, [], 1, Experimental,
        "When the last batch ended or, later, the query last said that it was idle, in seconds since the epoch";
    ExecutorInfo, "spark_executor_info", "spark.executor.info", Info, Things(""), Executor, ["host"], 1, Experimental,
        "Facts about an executor; only those with the most task time up to limits.executors_exported have series, living ones first";
    ExecutorAlive, "spark_executor_alive", "spark.executor.alive", Gauge, Things(""), Executor, [], 1, Experimental,
        "1 while the executor lives, 0 once it was removed or the run has ended";
    ExecutorCores, "spark_executor_cores", "spark.executor.cores", Gauge, Things("{core}"), Executor, [], 1, Experimental,
        "Cores of the executor";
    ExecutorTasks, "spark_executor_tasks", "spark.executor.tasks", Gauge, Things("{task}"), Executor, ["status"], 3, Experimental,
        "Task attempts by status";
    ExecutorTaskTime, "spark_executor_task_time_seconds", "spark.executor.task_time", Gauge, Seconds, Executor, [], 1, Experimental,
        "Durations of its task attempts in all: not its uptime";
    ExecutorGcTime, "spark_executor_task_gc_time_seconds", "spark.executor.task_gc_time", Gauge, Seconds, Executor, [], 1, Experimental,
        "Garbage collection while its tasks ran; tasks that run together each count the same pause";
    ExecutorInput, "spark_executor_input_bytes", "spark.executor.input", Gauge, Bytes, Executor, [], 1, Experimental,
        "Bytes its tasks read from storage or cache";
    ExecutorShuffleRead, "spark_executor_shuffle_read_bytes", "spark.executor.shuffle_read", Gauge, Bytes, Executor, [], 1, Experimental,
        "Bytes its tasks read from shuffles, local and remote";
    ExecutorShuffleWrite, "spark_executor_shuffle_write_bytes", "spark.executor.shuffle_write", Gauge, Bytes, Executor, [], 1, Experimental,
        "Bytes its tasks wrote to shuffles";
    ExecutorStorageMemoryUsed, "spark_executor_storage_memory_used_bytes", "spark.executor.storage_memory_used", Gauge, Bytes, Executor, [], 1, Experimental,
        "Storage memory in use; REST only";
    ExecutorStorageMemory, "spark_executor_storage_memory_bytes", "spark.executor.storage_memory", Gauge, Bytes, Executor, [], 1, Experimental,
        "Storage memory that could be used";
    ExecutorPeakHeap, "spark_executor_peak_heap_bytes", "spark.executor.peak_heap", Gauge, Bytes, Executor, [], 1, Experimental,
        "Most heap used at one time, as Spark sampled it; absent where it took no sample";
    NameRuns, "spark_application_runs_total", "spark.application.runs", Counter, Things("{run}"), Name, ["outcome"], 6, Stable,
        "Runs of this name that have ended, by outcome; each is counted once, through restarts, and a run that ended before the store was made is not";
    NameDuration, "spark_application_runs_duration_seconds", "spark.application.runs_duration", Histogram, Seconds, Name, [], 22, Experimental,
        "Durations of runs of this name that ended well: succeeded, or ended with nothing that speaks against it (Spark 3 does not tell success)";
    NameBoughtCore, "spark_application_runs_bought_core_seconds_total", "spark.application.runs_bought_core", Counter, Seconds, Name, [], 1, Experimental,
        "Core-seconds paid for by runs of this name that have ended, as spark_application_bought_core_seconds";
    NameUsedCore, "spark_application_runs_used_core_seconds_total", "spark.application.runs_used_core", Counter, Seconds, Name, [], 1, Experimental,
        "Core-seconds of them in which a task ran, as spark_application_used_core_seconds";
    NameWastedCore, "spark_application_runs_wasted_core_seconds_total", "spark.application.runs_wasted_core", Counter, Seconds, Name, [], 1, Experimental,
        "Core-seconds bought and not used, over the runs of this name of which both are known";
    NameCost, "spark_application_runs_cost_total", "spark.application.runs_cost", Counter, Things(""), Name, ["currency"], 1, Experimental,
        "What runs of this name cost, as spark_application_cost, each by the prices when it was read; absent without prices";
    NameMemorySpilled, "spark_application_runs_memory_spilled_bytes_total", "spark.application.runs_memory_spilled", Counter, Bytes, Name, [], 1, Experimental,
        "Size in memory of what runs of this name spilled";
    NameDiskSpilled, "spark_application_runs_disk_spilled_bytes_total", "spark.application.runs_disk_spilled", Counter, Bytes, Name, [], 1, Experimental,
        "Size on disk of what runs of this name spilled";
    NameShuffleRead, "spark_application_runs_shuffle_read_bytes_total", "spark.application.runs_shuffle_read", Counter, Bytes, Name, [], 1, Experimental,
        "Bytes that runs of this name read from shuffles, local and remote";
    NameShuffleWrite, "spark_application_runs_shuffle_write_bytes_total", "spark.application.runs_shuffle_write", Counter, Bytes, Name, [], 1, Experimental,
        "Bytes that runs of this name wrote to shuffles";
    NameInput, "spark_application_runs_input_bytes_total", "spark.application.runs_input", Counter, Bytes, Name, [], 1, Experimental,
        "Bytes that runs of this name read from storage or cache";
    NameOutput, "spark_application_runs_output_bytes_total", "spark.application.runs_output", Counter, Bytes, Name, [], 1, Experimental,
        "Bytes that runs of this name wrote to storage";
    NameFindings, "spark_application_runs_with_finding_total", "spark.application.runs_with_finding", Counter, Things("{run}"), Name, ["rule"], 36, Experimental,
        "Runs of this name in which the rule found something, whatever its severity; a rule has its series once it found something";
    NameLastRun, "spark_application_runs_last_end_timestamp_seconds", "spark.application.runs_last_end_timestamp", Gauge, Seconds, Name, [], 1, Stable,
        "When the latest run of this name ended, in seconds since the epoch, by the driver's clock; of a run that was lost, the latest moment its data speaks of";
    NameLastSuccess, "spark_application_runs_last_success_timestamp_seconds", "spark.application.runs_last_success_timestamp", Gauge, Seconds, Name, [], 1, Stable,
        "When a run of this name last ended well, in seconds since the epoch; runs that ended before the store was made are in it; absent before the first";
    NameLastDuration, "spark_application_runs_last_duration_seconds", "spark.application.runs_last_duration", Gauge, Seconds, Name, [], 1, Experimental,
        "How long the latest run of this name that has ended took";
    NameSuccessInterval, "spark_application_runs_success_interval_seconds", "spark.application.runs_success_interval", Gauge, Seconds, Name, [], 1, Experimental,
        "Derived: median time between the ends of runs of this name that ended well, of 5 and more: how often it usually succeeds";
    NameFailuresInARow, "spark_application_runs_failures_in_a_row", "spark.application.runs_failures_in_a_row", Gauge, Things("{application}"), Name, [], 1, Experimental,
        "Derived: the latest applications of this name, back to the last that ended well, whose latest attempt failed or was lost; of Spark 3, which does not tell, those with a job that failed and no end that was good; 0 after a good one";
    NameSuccessDue, "spark_application_runs_success_due_timestamp_seconds", "spark.application.runs_success_due_timestamp", Gauge, Seconds, Name, ["basis"], 1, Experimental,
        "Derived: when the next run of this name that ends well is due at the latest, in seconds since the epoch: as names.expected say (basis configured), or learned from the spacing of the earlier ones where that is regular (learned); absent where neither tells";
    NameBaseline, "spark_application_runs_baseline_duration_seconds", "spark.application.runs_baseline_duration", Gauge, Seconds, Name, [], 1, Experimental,
        "Derived: what runs of this name usually take: median of the earlier runs that the newest one which ended well was compared with; absent where they are too few";
    NameBaselineSpread, "spark_application_runs_baseline_spread_seconds", "spark.application.runs_baseline_spread", Gauge, Seconds, Name, [], 1, Experimental,
        "Derived: median distance of those runs from their median";
    NameBaselineRuns, "spark_application_runs_baseline_size", "spark.application.runs_baseline_size", Gauge, Things("{run}"), Name, [], 1, Experimental,
        "How many runs the baseline of this name is made of";
    NameRegression, "spark_application_regression_ratio", "spark.application.regression", Gauge, Ratio, Name, [], 1, Experimental,
        "Derived: duration of the newest run of this name that ended well / spark_application_runs_baseline_duration_seconds; absent where there is no baseline";
    BuildInfo, "spark_exporter_build_info", "spark_exporter.build.info", Info, Things(""), Daemon, ["version", "revision"], 1, Stable,
        "Version of this daemon and the commit it was built from";
    Started, "spark_exporter_start_timestamp_seconds", "spark_exporter.start_timestamp", Gauge, Seconds, Daemon, [], 1, Stable,
        "When this daemon started, in seconds since the epoch";
    SnapshotTime, "spark_exporter_snapshot_timestamp_seconds", "spark_exporter.snapshot_timestamp", Gauge, Seconds, Daemon, [], 1, Stable,
        "When the numbers of this exposition were put together, in seconds since the epoch: sources are read in the background and a scrape shows the latest snapshot";
    Threshold, "spark_exporter_threshold", "spark_exporter.threshold", Gauge, Things(""), Daemon, ["rule", "threshold"], 97, Experimental,
        "Thresholds of the rules as configured (threshold_overrides by name not included), in seconds, bytes or plain numbers; a rule that is switched off has none";
    TargetUp, "spark_exporter_target_up", "spark_exporter.target.up", Gauge, Things(""), Daemon, ["spark_cluster", "target"], 1000, Stable,
        "1 when the source answered in its latest cycle; one bad application or endpoint does not make it 0";
    TargetDuration, "spark_exporter_target_scrape_duration_seconds", "spark_exporter.target.scrape_duration", Gauge, Seconds, Daemon, ["spark_cluster", "target"], 1000, Experimental,
        "How long the latest cycle over the source took";
    TargetSuccessTime, "spark_exporter_target_last_success_timestamp_seconds", "spark_exporter.target.last_success_timestamp", Gauge, Seconds, Daemon, ["spark_cluster", "target"], 1000, Stable,
        "When the source last answered, in seconds since the epoch; absent before the first answer";
    TargetLogs, "spark_exporter_target_event_logs", "spark_exporter.target.event_logs", Gauge, Things("{log}"), Daemon, ["spark_cluster", "target"], 1000, Experimental,
        "Event logs that the latest listing of the place showed";
    TargetLogsFollowed, "spark_exporter_target_event_logs_followed", "spark_exporter.target.event_logs_followed", Gauge, Things("{log}"), Daemon, ["spark_cluster", "target"], 1000, Experimental,
        "Logs of running applications that are followed as they grow; those beyond limits.followed_logs count as skipped, in_progress";
    TargetLogBytes, "spark_exporter_target_event_log_read_bytes_total", "spark_exporter.target.event_log_read", Counter, Bytes, Daemon, ["spark_cluster", "target"], 1000, Experimental,
        "Bytes of event logs read from the place, as they lie there";
    FetchRequests, "spark_exporter_fetch_requests_total", "spark_exporter.fetch.requests", Counter, Things("{request}"), Daemon, ["endpoint"], 11, Experimental,
        "Requests to Spark by what was asked for, failed ones included";
    FetchBytes, "spark_exporter_fetched_bytes_total", "spark_exporter.fetched", Counter, Bytes, Daemon, ["endpoint"], 11, Experimental,
        "Bytes of bodies that Spark sent, by what was asked for";
    FetchErrors, "spark_exporter_fetch_errors_total", "spark_exporter.fetch.errors", Counter, Things("{request}"), Daemon, ["endpoint", "kind"], 77, Stable,
        "Failed requests to Spark by what was asked for and how they failed";
    LogReads, "spark_exporter_event_log_reads_total", "spark_exporter.event_log.reads", Counter, Things("{log}"), Daemon, [], 1, Experimental,
        "Event logs read, those that could not be read included";
    LogFailures, "spark_exporter_event_log_read_failures_total", "spark_exporter.event_log.read_failures", Counter, Things("{log}"), Daemon, ["reason"], 7, Stable,
        "Event logs that could not be read at all, by reason";
    LogBytes, "spark_exporter_event_log_decompressed_bytes_total", "spark_exporter.event_log.decompressed", Counter, Bytes, Daemon, [], 1, Experimental,
        "Bytes of event logs read, decompressed";
    LogLines, "spark_exporter_event_log_lines_total", "spark_exporter.event_log.lines", Counter, Things("{line}"), Daemon, [], 1, Experimental,
        "Lines of event logs read";
    LogBadLines, "spark_exporter_event_log_bad_lines_total", "spark_exporter.event_log.bad_lines", Counter, Things("{line}"), Daemon, [], 1, Experimental,
        "Lines of event logs that are no event, too long, or cut: skipped";
    LogUnknownEvents, "spark_exporter_event_log_unknown_events_total", "spark_exporter.event_log.unknown_events", Counter, Things("{event}"), Daemon, [], 1, Experimental,
        "Events of a kind this version does not know: skipped, no fault in itself";
    HistoryReads, "spark_exporter_history_server_reads_total", "spark_exporter.history_server.reads", Counter, Things("{run}"), Daemon, ["route"], 3, Stable,
        "Finished runs that History Servers listed, by how they were read: from their event log (zip), by the REST API instead (rest), or not at all this time (none)";
    ApplicationsHeld, "spark_exporter_applications", "spark_exporter.applications", Gauge, Things("{application}"), Daemon, [], 1, Stable,
        "Runs held in memory: running ones, and finished ones until their retention ends";
    ApplicationsSkipped, "spark_exporter_applications_skipped", "spark_exporter.applications_skipped", Gauge, Things("{application}"), Daemon, ["reason"], 6, Stable,
        "Runs that sources showed in their latest cycle and that have no series here, by reason: what is not covered";
    ApplicationsElsewhere, "spark_exporter_applications_elsewhere", "spark_exporter.applications_elsewhere", Gauge, Things("{application}"), Daemon, ["spark_cluster"], 1000, Stable,
        "Runs that sources of the cluster showed in their latest cycle and that another shard covers; a run that two sources show counts twice";
    ApplicationsAppeared, "spark_exporter_applications_appeared_total", "spark_exporter.applications_appeared", Counter, Things("{application}"), Daemon, [], 1, Experimental,
        "Runs seen for the first time";
    ApplicationsFinished, "spark_exporter_applications_finished_total", "spark_exporter.applications_finished", Counter, Things("{application}"), Daemon, [], 1, Experimental,
        "Runs that ended while they were watched, or were found ended";
    ApplicationsExpired, "spark_exporter_applications_expired_total", "spark_exporter.applications_expired", Counter, Things("{application}"), Daemon, [], 1, Experimental,
        "Finished runs whose series were given up after their retention";
    IdentityCollisions, "spark_exporter_identity_collisions_total", "spark_exporter.identity_collisions", Counter, Things("{application}"), Daemon, [], 1, Experimental,
        "Runs that carry the id of another run: give their sources different cluster names";
    ShardOrdinal, "spark_exporter_shard_ordinal", "spark_exporter.shard_ordinal", Gauge, Things(""), Daemon, [], 1, Stable,
        "Which shard of the runs this daemon covers, from 0; 0 where it covers all of them";
    Shards, "spark_exporter_shards", "spark_exporter.shards", Gauge, Things("{shard}"), Daemon, [], 1, Stable,
        "How many shards divide the runs (--total-shards); 1 where this daemon covers all of them";
    ConfigGood, "spark_exporter_config_last_reload_successful", "spark_exporter.config.last_reload_successful", Gauge, Things(""), Daemon, [], 1, Stable,
        "1 when the configuration was taken when it was read last (at the start, by SIGHUP or /-/reload); 0: it was not, and the one before is in force";
    ConfigTime, "spark_exporter_config_last_reload_success_timestamp_seconds", "spark_exporter.config.last_reload_success_timestamp", Gauge, Seconds, Daemon, [], 1, Stable,
        "When the configuration was last taken, in seconds since the epoch";
    WebConfigGood, "spark_exporter_web_config_last_reload_successful", "spark_exporter.web_config.last_reload_successful", Gauge, Things(""), Daemon, [], 1, Stable,
        "1 when the file of --web.config.file and the certificates it names were taken when they last changed; 0: they were not, and those before are in force; absent without that flag";
    WebConfigTime, "spark_exporter_web_config_last_reload_success_timestamp_seconds", "spark_exporter.web_config.last_reload_success_timestamp", Gauge, Seconds, Daemon, [], 1, Stable,
        "When the file of --web.config.file and the certificates it names were last taken, in seconds since the epoch";
    KubernetesAmended, "spark_exporter_kubernetes_runs_amended_total", "spark_exporter.kubernetes.runs_amended", Counter, Things("{run}"), Daemon, [], 1, Experimental,
        "Times that Kubernetes told more of a run after it was read, so that it was judged anew";
    KubernetesForgotten, "spark_exporter_kubernetes_facts_forgotten_total", "spark_exporter.kubernetes.facts_forgotten", Counter, Things("{fact}"), Daemon, [], 1, Experimental,
        "What Kubernetes told of runs that had to go before its time, for want of room: outcomes and causes may be less certain";
    KubernetesSubmissions, "spark_exporter_kubernetes_submissions", "spark_exporter.kubernetes.submissions", Gauge, Things("{resource}"), Daemon, ["spark_cluster", "operator", "state"], 140, Experimental,
        "SparkApplication resources that are there, by what their operator says of them; submission_failed: no driver ever ran, so that there is no run to show";
    KubernetesSubmissionAttempts, "spark_exporter_kubernetes_submission_attempts", "spark_exporter.kubernetes.submission_attempts", Gauge, Things("{attempt}"), Daemon, ["spark_cluster", "operator", "k8s_namespace_name", "submission", "state"], 100, Experimental,
        "How often the driver of a SparkApplication was started: of those that wait, failed, start again or run after a failed attempt, the newest 100";
    KubernetesSubmissionTime, "spark_exporter_kubernetes_submission_timestamp_seconds", "spark_exporter.kubernetes.submission_timestamp", Gauge, Seconds, Daemon, ["spark_cluster", "operator", "k8s_namespace_name", "submission", "state"], 100, Experimental,
        "When the newest attempt of the same SparkApplications was submitted, in seconds since the epoch: with state submitted, time() minus it is how long it waits for its driver";
    StorageUp, "spark_exporter_storage_up", "spark_exporter.storage.up", Gauge, Things(""), Daemon, [], 1, Stable,
        "1 while the store can be read and written; series by name are left out otherwise";
    StorageFailures, "spark_exporter_storage_failures_total", "spark_exporter.storage.failures", Counter, Things("{failure}"), Daemon, ["reason"], 2, Stable,
        "Times the store could not be opened, read or written; unusable: damaged, foreign or newer, somebody has to look; unavailable: not now";
    StoragePending, "spark_exporter_storage_pending_runs", "spark_exporter.storage.pending_runs", Gauge, Things("{run}"), Daemon, [], 1, Stable,
        "Runs that were read and wait to be written to the store";
    StorageRuns, "spark_exporter_storage_runs", "spark_exporter.storage.runs", Gauge, Things("{run}"), Daemon, [], 1, Stable,
        "Runs in the store, as of the last look";
    StorageNames, "spark_exporter_storage_names", "spark_exporter.storage.names", Gauge, Things("{name}"), Daemon, [], 1, Stable,
        "Names of applications with totals in the store, as of the last look";
    StorageBytes, "spark_exporter_storage_size_bytes", "spark_exporter.storage.size", Gauge, Bytes, Daemon, [], 1, Stable,
        "Size of the store: its file or tables, or what its runs take in memory, as of the last look";
    StorageForgotten, "spark_exporter_storage_runs_forgotten_total", "spark_exporter.storage.runs_forgotten", Counter, Things("{run}"), Daemon, [], 1, Experimental,
        "Runs that left the store: older than storage.retention.time, or the oldest beyond storage.retention.size";
    KubernetesWatchUp, "spark_exporter_kubernetes_watch_up", "spark_exporter.kubernetes.watch_up", Gauge, Things(""), Daemon, ["spark_cluster", "kind"], 50, Stable,
        "1 while objects of the kind are watched in every namespace asked for, 0 while that fails in one; absent where the server has no such kind. Without driver_pods and client_mode_pods drivers stay unseen, and spark_exporter_target_up of target kubernetes is 0 as well; the others only add to what is known";
    KubernetesObjects, "spark_exporter_kubernetes_objects", "spark_exporter.kubernetes.objects", Gauge, Things("{object}"), Daemon, ["spark_cluster", "kind"], 50, Experimental,
        "Objects of the kind that are known, ended ones included as long as the server keeps them";
    KubernetesDrivers, "spark_exporter_kubernetes_drivers", "spark_exporter.kubernetes.drivers", Gauge, Things("{pod}"), Daemon, ["spark_cluster", "state"], 70, Stable,
        "Pods of drivers by what became of asking them: answering; starting (no answer yet, or none of late); silent (none for 5 minutes, though the pod runs: a network policy, or spark.ui.enabled false); idle (client mode, no driver in it now); waiting (the pod does not run yet); ended; limit (beyond limits.applications, not asked)";
    KubernetesDriversFound, "spark_exporter_kubernetes_drivers_found_total", "spark_exporter.kubernetes.drivers_found", Counter, Things("{driver}"), Daemon, ["spark_cluster"], 10, Experimental,
        "Drivers that began to be asked, since their pod runs";
    KubernetesDriversSilenced, "spark_exporter_kubernetes_drivers_silenced_total", "spark_exporter.kubernetes.drivers_silenced", Counter, Things("{driver}"), Daemon, ["spark_cluster"], 10, Experimental,
        "Times a driver was found silent";
    KubernetesLists, "spark_exporter_kubernetes_lists_total", "spark_exporter.kubernetes.lists", Counter, Things("{list}"), Daemon, ["spark_cluster", "kind"], 50, Experimental,
        "Lists that a watch began with, the first and each after it broke";
    KubernetesFailures, "spark_exporter_kubernetes_watch_failures_total", "spark_exporter.kubernetes.watch_failures", Counter, Things("{failure}"), Daemon, ["spark_cluster", "kind", "reason"], 500, Stable,
        "Lists and watches that failed, each try, by reason; forbidden: the service account lacks list or watch; expired: the server forgot where the watch stood, and it began with a new list, no fault in itself";
    OtlpRequests, "spark_exporter_otlp_requests_total", "spark_exporter.otlp.requests", Counter, Things("{request}"), Daemon, ["signal", "outcome"], 9, Stable,
        "Requests by OTLP by what became of them: accepted, refused (never to be taken: lost) or given_up (not taken in time: what is sent next makes up for it); signals that are not sent have no series";
    OtlpAttemptFailures, "spark_exporter_otlp_attempt_failures_total", "spark_exporter.otlp.attempt_failures", Counter, Things("{attempt}"), Daemon, ["signal", "reason"], 21, Experimental,
        "Attempts to send by OTLP that failed, by reason; a request is tried again until it is taken, refused or given up";
    OtlpSent, "spark_exporter_otlp_items_sent_total", "spark_exporter.otlp.items_sent", Counter, Things("{item}"), Daemon, ["signal"], 3, Stable,
        "Data points, spans or log records that the OTLP back end took";
    OtlpRejected, "spark_exporter_otlp_items_rejected_total", "spark_exporter.otlp.items_rejected", Counter, Things("{item}"), Daemon, ["signal"], 3, Stable,
        "Data points, spans or log records that the OTLP back end left out of requests it took (partial success)";
    OtlpFailed, "spark_exporter_otlp_items_failed_total", "spark_exporter.otlp.items_failed", Counter, Things("{item}"), Daemon, ["signal", "reason"], 21, Stable,
        "Data points, spans or log records of requests that the OTLP back end refused, by reason: lost";
    OtlpDropped, "spark_exporter_otlp_items_dropped_total", "spark_exporter.otlp.items_dropped", Counter, Things("{item}"), Daemon, ["signal", "reason"], 9, Experimental,
        "What was never sent by OTLP, by reason: backlog (runs, or ends of series, that waited beyond the room for them), spans_limit (spans of a trace beyond otlp.traces.spans_per_trace) or too_large (larger than otlp.request_size)";
    OtlpBytes, "spark_exporter_otlp_request_bytes_total", "spark_exporter.otlp.request", Counter, Bytes, Daemon, ["signal"], 3, Experimental,
        "Bytes of requests that the OTLP back end took, before compression";
    OtlpSuccessTime, "spark_exporter_otlp_last_success_timestamp_seconds", "spark_exporter.otlp.last_success_timestamp", Gauge, Seconds, Daemon, ["signal"], 3, Stable,
        "When the OTLP back end last took a request, in seconds since the epoch; absent before the first";
    NamesOverflowed, "spark_exporter_app_names_overflowed_total", "spark_exporter.app_names_overflowed", Counter, Things("{run}"), Daemon, [], 1, Stable,
        "Runs added up under app_name _other, since there were as many names as limits.app_names allows";
    SeriesDropped, "spark_exporter_series_dropped_total", "spark_exporter.series_dropped", Counter, Things("{series}"), Daemon, ["reason"], 9, Stable,
        "Series left out of snapshots by reason, added up over snapshots";
    Series, "spark_exporter_series", "spark_exporter.series", Gauge, Things("{series}"), Daemon, [], 1, Stable,
        "Series of this exposition";
    WebRequests, "spark_exporter_http_requests_total", "spark_exporter.http.requests", Counter, Things("{request}"), Daemon, ["path", "code"], 40, Experimental,
        "Requests this daemon answered, by path and status code, as of the snapshot";
    WebFailures, "spark_exporter_http_failures_total", "spark_exporter.http.failures", Counter, Things("{connection}"), Daemon, ["reason"], 5, Experimental,
        "Connections that were refused or broke, by reason, as of the snapshot";
}
