//! What is wrong with a run, and what it costs: model in, findings out. Pure.
//!
//! [`diagnose`] works out what all rules need (`context`: the run's length,
//! cores over time, each stage's span, slots and derived numbers), asks each
//! rule (`rules`, one file each) for drafts, and settles what they are worth (`cost`): which are
//! said, how loud, and that no second is promised twice. A ratio alone never
//! makes a finding; what mending would save does, and a `replay` of the
//! stage on its slots says how much that is.
//!
//! One rule needs other runs than the one diagnosed: `regression` holds the
//! summary of a run ([`RunSummary`]) against those of earlier ones.

mod about;
mod amended;
mod blocked;
mod context;
mod cost;
mod draft;
mod executions;
mod executor_memory;
mod finding;
pub mod humane;
mod job_plan;
mod job_replay;
mod jobs;
mod numbers;
mod plan_text;
mod plots;
mod price;
mod regression;
mod replay;
mod rounded;
mod rules;
mod run_numbers;
pub mod settings;
mod stage_numbers;
mod steps;
mod summary;
mod supply;
mod task_list;
mod time_split;
mod time_sweep;
mod waiting;
mod what_if;
mod without_run;

#[cfg(test)]
mod builders;
#[cfg(test)]
mod execution_tests;
#[cfg(test)]
mod plan_builders;
#[cfg(test)]
mod property_tests;

pub use about::{About, about};
pub use finding::{
    Advice, Cause, Confidence, Evidence, Finding, FindingKind, Impact, Rule, Severity, Subject,
    Unit, Where,
};
pub use numbers::{Diagnosis, IoPerCore, RunNumbers, StageNumbers};
pub use plots::{CoresOverTime, Plots, TaskProfile};
pub use price::{Price, price};
pub use regression::{Baseline, Judgement, judge, with_regression};
pub use summary::{
    CoresSummary, DataSummary, FindingSummary, PlanSummary, RunSummary, SettingSummary,
    StageSummary, TimeSummary,
};
pub use time_split::{BlockedBy, TimePart, TimeSplit};
pub use what_if::{Scenario, WhatIf};
pub use without_run::add_driver_out_of_memory;

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
    for (_, find) in rules::ALL {
        find(&context, &mut drafts);
    }
    let mut findings = cost::settle(&context, drafts);
    rounded::doubt(application, &mut findings);
    without_run::settle(application, &mut findings);
    let findings_omitted = findings.len().saturating_sub(MOST_FINDINGS) as u64;
    findings.truncate(MOST_FINDINGS);
    let times = time_split::of(&context);
    let stages = context.stages.iter().map(|view| (view.stage.id, view.numbers)).collect();
    let plots = plots::of(&context, &findings);
    Diagnosis {
        findings,
        findings_omitted,
        stages,
        totals: context.totals,
        time: times.run,
        stage_times: times.stages,
        sql_times: times.sql,
        what_if: what_if::of(&context),
        plots,
        price: None,
    }
}
