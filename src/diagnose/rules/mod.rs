//! The rules, one file each: what they look for, at which thresholds, what it
//! costs and what to do about it (`docs/diagnostics.md`).
//!
//! A rule reads the [`Context`] and writes [`Draft`]s; what they are worth is
//! settled afterwards, in [`super::cost`]. Three files serve several rules:
//! `slow` (which tasks of a stage are slow, and with how much data),
//! `slow_hosts` and `loss` (why an executor went away).

mod data_skew;
mod executor_lost;
mod gc_pressure;
mod io_bound;
mod job_failed;
mod partitioning;
mod scheduling_delay;
mod spill;
mod stage_retries;
mod straggler;
mod task_failures;

mod loss;
mod slow;
mod slow_hosts;

#[cfg(test)]
mod tests;

// What the rules are made of.
use super::context::{self, Context};
use super::draft::{self, Draft};
use super::{
    Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane, replay,
    stage_numbers, steps, task_list, waiting,
};

/// All of them. The order decides nothing but which of two equal findings
/// comes first.
pub(super) const ALL: [fn(&Context<'_>, &mut Vec<Draft>); 11] = [
    job_failed::find,
    executor_lost::find,
    data_skew::find,
    straggler::find,
    gc_pressure::find,
    scheduling_delay::find,
    partitioning::find,
    task_failures::find,
    stage_retries::find,
    spill::find,
    io_bound::find,
];
