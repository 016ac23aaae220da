//! Runs about the application as a whole: driver, cores, memory, outcome.

use spark_exporter::diagnose::{Cause, Rule, Severity};

use super::{Expected, healthy, ill};
use Rule::{
    ApplicationFailed, ColdStart, Configuration, DataSkew, DriverGap, JobFailed, Memory,
    SchedulingDelay, SpeculationWaste,
};
use Severity::{Critical, Info, Warning};

pub(crate) const EXPECTED: &[Expected] = &[
    ill("cold_start", &[(ColdStart, None, Warning)]),
    // Executors came as late, and nobody waited for them.
    healthy("cold_start_unnoticed"),
    ill("no_executor", &[(ColdStart, Some(Cause::NoExecutor), Warning)]),
    ill("driver_gap", &[(DriverGap, None, Warning)]),
    ill("driver_gap_listing", &[(DriverGap, None, Warning)]),
    ill("driver_gap_planning", &[(DriverGap, None, Warning)]),
    // Their logs end with what they did last: how long ago that was is told by
    // a driver that answers, see `whole_run`.
    healthy("left_running"),
    healthy("stuck_stage"),
    ill("speculation_waste", &[(SpeculationWaste, None, Info)]),
    ill("result_size", &[(Memory, None, Warning), (JobFailed, None, Critical)]),
    healthy("result_size-few"),
    ill("driver_oom", &[(Memory, Some(Cause::HeapOom), Warning)]),
    ill("application_failed", &[(ApplicationFailed, None, Critical)]),
    ill("small_partitions", &[(Configuration, None, Info)]),
    healthy("small_partitions-healthy"),
    ill("skew_join_off", &[(DataSkew, Some(Cause::HotKey), Warning), (Configuration, None, Info)]),
    // The second executor is idle for longer than its timeout.
    ill("scheduling_locality_idle", &[(SchedulingDelay, Some(Cause::Locality), Info)]),
];
