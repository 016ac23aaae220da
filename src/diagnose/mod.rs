//! What is wrong with a run, and what it costs: model in, findings out. Pure.
//!
//! [`diagnose`] works out what all rules need (`context`: the run's length,
//! cores over time, each stage's span, slots and derived numbers), asks each
//! rule for drafts, and settles what they are worth (`cost`): which are
//! said, how loud, and that no second is promised twice. A ratio alone never
//! makes a finding; what mending would save does, and a `replay` of the
//! stage on its slots says how much that is.

mod context;
mod cost;
mod draft;
mod finding;
pub mod humane;
mod loss;
mod numbers;
mod replay;
mod run_numbers;
mod slow;
mod slow_hosts;
mod stage_numbers;
mod steps;
mod supply;
mod task_list;
mod waiting;

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

#[cfg(test)]
mod builders;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod rule_tests;

pub use finding::{
    Advice, Cause, Confidence, Evidence, Finding, FindingKind, Impact, Rule, Severity, Subject,
    Unit, Where,
};
pub use numbers::{Diagnosis, IoPerCore, RunNumbers, StageNumbers};

use crate::config::Thresholds;
use crate::model::Application;

/// The most that is said about one run. A stream of 100,000 stages that all
/// spill is one story; nobody reads its thousandth page.
const MOST_FINDINGS: usize = 1_000;

/// Everything that can be said about one run: the derived numbers of each of
/// its stage attempts and of the whole, and its findings, the worst first.
pub fn diagnose(application: &Application, thresholds: &Thresholds) -> Diagnosis {
    let context = context::Context::new(application, thresholds);
    let mut drafts = Vec::new();
    for rule in [
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
    ] {
        rule(&context, &mut drafts);
    }
    let mut findings = cost::settle(&context, drafts);
    let findings_omitted = findings.len().saturating_sub(MOST_FINDINGS) as u64;
    findings.truncate(MOST_FINDINGS);
    let stages = context.stages.iter().map(|view| (view.stage.id, view.numbers)).collect();
    Diagnosis { findings, findings_omitted, stages, totals: context.totals }
}
