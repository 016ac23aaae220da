//! The rules, one file each: what they look for, at which thresholds, what it
//! costs and what to do about it (`docs/diagnostics.md`).
//!
//! A rule reads the [`Context`] and writes [`Draft`]s; what they are worth is
//! settled afterwards, in [`super::cost`]. Some files serve several rules:
//! `slow` (which tasks of a stage are slow, and with how much data),
//! `slow_hosts`, `loss` (why an executor went away), `less_work` (what stages
//! save that have less to do) and `plan_cost` (what a node of a plan cost).
//! Others belong to one: `fed_by` and `skew_advice` to `data_skew`,
//! `python_nodes` to `python_udf`, `trigger` to `streaming_behind`, `gap_parts`
//! (what the driver did meanwhile) to `driver_gap`, `result_size` (what tasks
//! sent to the driver) to `memory`.

mod application_failed;
mod application_idle;
mod cache_evicted;
mod cartesian;
mod cold_start;
mod configuration;
mod count_distinct;
mod data_skew;
mod driver_gap;
mod executor_lost;
mod fetch_failures;
mod file_scans;
mod full_scan;
mod gc_pressure;
mod idle_cores;
mod io_bound;
mod job_failed;
mod join_explosion;
mod large_broadcast;
mod memory;
mod missed_broadcast;
mod partial_aggregation;
mod partitioning;
mod python_udf;
mod repeated_subplan;
mod scheduling_delay;
mod shuffle_heavy;
mod small_files_read;
mod small_files_written;
mod speculation_waste;
mod spill;
mod stage_retries;
mod straggler;
mod streaming_behind;
mod stuck_stage;
mod task_failures;

mod fed_by;
mod gap_parts;
mod less_work;
mod loss;
mod plan_cost;
mod python_nodes;
mod result_size;
mod skew_advice;
mod slow;
mod slow_hosts;
mod trigger;
mod unsplittable;

#[cfg(test)]
mod tests;

// What the rules are made of.
use super::context::{self, Context};
use super::draft::{self, Draft};
use super::executions::{self, ExecutionView, NodeRef};
use super::executor_memory;

use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    jobs, plan_text, regression, replay, stage_numbers, steps, task_list, waiting,
};

/// A rule: what it says about itself, and how it looks.
pub(super) type Entry = (&'static About, fn(&Context<'_>, &mut Vec<Draft>));

/// All that look at one run. The order decides which of two equal findings comes first,
/// and a rule may look at the drafts of those before it.
pub(super) const ALL: [Entry; 35] = [
    (&job_failed::ABOUT, job_failed::find),
    (&application_failed::ABOUT, application_failed::find),
    (&executor_lost::ABOUT, executor_lost::find),
    (&data_skew::ABOUT, data_skew::find),
    (&straggler::ABOUT, straggler::find),
    (&gc_pressure::ABOUT, gc_pressure::find),
    (&scheduling_delay::ABOUT, scheduling_delay::find),
    (&partitioning::ABOUT, partitioning::find),
    (&task_failures::ABOUT, task_failures::find),
    (&stage_retries::ABOUT, stage_retries::find),
    (&fetch_failures::ABOUT, fetch_failures::find),
    (&spill::ABOUT, spill::find),
    (&io_bound::ABOUT, io_bound::find),
    (&shuffle_heavy::ABOUT, shuffle_heavy::find),
    (&cold_start::ABOUT, cold_start::find),
    (&application_idle::ABOUT, application_idle::find),
    (&stuck_stage::ABOUT, stuck_stage::find),
    (&speculation_waste::ABOUT, speculation_waste::find),
    (&memory::ABOUT, memory::find),
    (&configuration::ABOUT, configuration::find),
    (&join_explosion::ABOUT, join_explosion::find),
    (&cartesian::ABOUT, cartesian::find),
    (&partial_aggregation::ABOUT, partial_aggregation::find),
    (&count_distinct::ABOUT, count_distinct::find),
    (&python_udf::ABOUT, python_udf::find),
    (&large_broadcast::ABOUT, large_broadcast::find),
    (&missed_broadcast::ABOUT, missed_broadcast::find),
    (&cache_evicted::ABOUT, cache_evicted::find),
    (&small_files_read::ABOUT, small_files_read::find),
    (&small_files_written::ABOUT, small_files_written::find),
    (&full_scan::ABOUT, full_scan::find),
    (&repeated_subplan::ABOUT, repeated_subplan::find),
    (&streaming_behind::ABOUT, streaming_behind::find),
    // These count what the others have not explained.
    (&driver_gap::ABOUT, driver_gap::find),
    (&idle_cores::ABOUT, idle_cores::find),
];

/// What a rule says about itself; also of the one that looks at several runs.
pub(super) fn about(rule: Rule) -> &'static About {
    let mut all = ALL.iter().map(|(about, _)| *about).chain([&regression::ABOUT]);
    all.find(|about| about.rule == rule).unwrap_or(&data_skew::ABOUT)
}
