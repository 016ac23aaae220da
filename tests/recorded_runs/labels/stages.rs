//! Runs about stages, tasks and executors.

use spark_exporter::diagnose::{Cause, Rule, Severity};

use super::{Expected, healthy, ill};
use Rule::{
    ColdStart, DataSkew, DriverGap, ExecutorLost, FetchFailures, GcPressure, IoBound, JobFailed,
    Partitioning, SchedulingDelay, Spill, StageRetries, Straggler, TaskFailures,
};
use Severity::{Critical, Info, Warning};

pub(crate) const EXPECTED: &[Expected] = &[
    healthy("healthy"),
    ill("hot_key", &[(DataSkew, Some(Cause::HotKey), Warning)]),
    healthy("hot_key-healthy"),
    // As skewed, and nothing to save.
    healthy("hot_key-cheap"),
    healthy("jit_warmup"),
    healthy("tiny_tasks"),
    ill("compressible_hot_key", &[(DataSkew, Some(Cause::CompressibleHotKey), Warning)]),
    healthy("compressible_hot_key-healthy"),
    ill("input_files", &[(DataSkew, Some(Cause::InputFiles), Warning)]),
    healthy("input_files-healthy"),
    healthy("straggler_cold_executor"),
    // 8 s to save in one recording, 4.4 s in each of three stages in the other.
    ill("straggler_slow_host", &[(Straggler, Some(Cause::SlowHost), Info)]),
    healthy("straggler_slow_host-healthy"),
    // One task's collections are a good part of the stage's: both are true,
    // and they share what can be saved.
    Expected {
        run: "straggler_gc",
        must: &[(Straggler, Some(Cause::Gc), Info)],
        may: &[(GcPressure, Warning)],
    },
    healthy("straggler_gc-healthy"),
    ill("spill", &[(Spill, None, Warning)]),
    healthy("spill-healthy"),
    healthy("spill-small"),
    ill("gc_pressure", &[(GcPressure, None, Warning)]),
    healthy("gc_pressure-healthy"),
    healthy("gc_pressure-light"),
    ill("io_bound", &[(IoBound, None, Info)]),
    healthy("io_bound-healthy"),
    ill("partitioning_one_task", &[(Partitioning, None, Warning)]),
    healthy("partitioning_one_task-healthy"),
    ill("partitioning_too_few", &[(Partitioning, None, Info)]),
    healthy("partitioning_too_few-healthy"),
    healthy("partitioning_too_many-healthy"),
    ill("scheduling_no_executors", &[(SchedulingDelay, Some(Cause::NoExecutors), Warning)]),
    ill("scheduling_locality", &[(SchedulingDelay, Some(Cause::Locality), Info)]),
    healthy("scheduling_locality-healthy"),
    healthy("cores_busy"),
    ill("task_failures", &[(TaskFailures, Some(Cause::HeapOom), Warning)]),
    healthy("task_failures-healthy"),
    healthy("task_failures-few"),
    ill("job_failed", &[(JobFailed, None, Critical), (TaskFailures, None, Warning)]),
    ill("job_failed_local_cluster", &[(JobFailed, None, Critical), (TaskFailures, None, Warning)]),
    ill("job_failed_caught", &[(JobFailed, None, Warning), (TaskFailures, None, Warning)]),
    healthy("job_cancelled"),
    Expected {
        run: "stage_retries",
        must: &[
            (ExecutorLost, Some(Cause::Killed), Warning),
            (StageRetries, Some(Cause::Killed), Info),
            (FetchFailures, Some(Cause::Killed), Info),
        ],
        // Fetch failures, which the loss explains.
        may: &[(TaskFailures, Info)],
    },
    ill("executor_killed", &[(ExecutorLost, Some(Cause::Killed), Warning)]),
    ill("executor_heap_oom", &[(ExecutorLost, Some(Cause::HeapOom), Warning)]),
    // The driver does something else for twelve seconds.
    ill("executor_idle_removed", &[(DriverGap, None, Warning)]),
    // Copies win, so what is slow is mostly killed and judged by nobody.
    Expected { run: "speculation", must: &[], may: &[(Straggler, Warning)] },
    healthy("many_stages"),
    healthy("streaming"),
    healthy("cached"),
    // One query fails on purpose, and the program goes on.
    Expected {
        run: "sql_plans",
        must: &[(JobFailed, None, Warning)],
        // Recorded beside compilers: the driver planned for seconds, and the
        // executors of one recording came after 39 s.
        may: &[
            (TaskFailures, Warning),
            (SchedulingDelay, Warning),
            (Straggler, Warning),
            (DriverGap, Warning),
            (ColdStart, Warning),
        ],
    },
];
