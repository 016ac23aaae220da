//! SQL executions: started, planned, planned again, ended.
//!
//! What an execution keeps is bounded: its last plan, cut where it is long,
//! and the metrics of that plan. Beyond the limits old and short executions
//! go first, and the plans of such before that.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::accumulators::Accumulators;
use super::checks::{Checks, first_lines};
use super::outcome::{error_class, settle};
use crate::config::Limits;
use crate::eventlog::event_sql::{
    AdaptiveExecutionUpdate, AdaptiveMetricUpdates, DriverAccumUpdates, ExecutionEnd,
    ExecutionStart,
};
use crate::eventlog::field::{Object, Properties};
use crate::eventlog::plan::{self, Parsed};
use crate::model::{
    Configuration, DataQuality, Job, JobStatus, Names, Plan, SqlExecution, SqlStatus, StageId,
    shorten,
};

/// Characters kept of a description.
const DESCRIPTION_LENGTH: usize = 500;

/// Session settings kept of one execution, and characters of each.
const MOST_SETTINGS: usize = 64;
const SETTING_LENGTH: usize = 200;

/// Accumulators followed for each node that may be kept.
const METRICS_PER_NODE: usize = 40;

/// Accumulators of plans that adaptive execution has replaced are followed
/// until the execution ends, unless there are more than this: stages of the
/// old plan run on in the new one.
const MOST_HELD: usize = 100_000;

/// Stage attempts listed with one node.
const MOST_STAGES: usize = 64;

#[derive(Debug, Clone)]
struct State {
    execution: SqlExecution,
    /// Spark wrote how it ended (since 3.4): an error or none.
    told: bool,
    /// Accumulators it holds.
    held: HashSet<u64>,
}

#[derive(Clone)]
pub(super) struct Executions<'a> {
    limits: Cow<'a, Limits>,
    map: BTreeMap<u64, State>,
    names: Names,
    pub(super) accumulators: Accumulators,
    /// Nodes of all plans.
    nodes: usize,
    omitted: u64,
}

impl<'a> Executions<'a> {
    pub(super) fn new(limits: Cow<'a, Limits>) -> Self {
        Self {
            limits,
            map: BTreeMap::new(),
            names: Names::default(),
            accumulators: Accumulators::default(),
            nodes: 0,
            omitted: 0,
        }
    }

    /// The execution, made if it is new: its start may be missing.
    fn entry(&mut self, id: u64) -> &mut State {
        self.map.entry(id).or_insert_with(|| State {
            execution: SqlExecution::new(id),
            told: false,
            held: HashSet::new(),
        })
    }

    /// A job of it was started.
    pub(super) fn seen(&mut self, id: u64, checks: &mut Checks) {
        self.entry(id);
        self.keep_within_limits(checks);
    }

    pub(super) fn started(
        &mut self,
        event: &ExecutionStart<'_>,
        checks: &mut Checks,
    ) -> Result<(), serde_json::Error> {
        let Some(id) = event.id.count() else { return Ok(()) };
        let parsed = self.parse(event.plan)?;
        let time = checks.time(event.time);
        let execution = &mut self.entry(id).execution;
        execution.root_id = event.root_id.count();
        execution.start = time;
        let description = event.description.get().unwrap_or_default();
        execution.description = shorten(description, DESCRIPTION_LENGTH).into();
        execution.configuration = settings(&event.configuration);
        if let Some(parsed) = parsed {
            self.replace_plan(id, parsed, checks);
        }
        self.keep_within_limits(checks);
        Ok(())
    }

    /// Adaptive execution made a new plan of what is left to do.
    pub(super) fn plan_updated(
        &mut self,
        event: &AdaptiveExecutionUpdate<'_>,
        checks: &mut Checks,
    ) -> Result<(), serde_json::Error> {
        let Some(id) = event.id.count() else { return Ok(()) };
        let Some(parsed) = self.parse(event.plan)? else { return Ok(()) };
        let execution = &mut self.entry(id).execution;
        execution.plan_updates = execution.plan_updates.saturating_add(1);
        self.replace_plan(id, parsed, checks);
        self.keep_within_limits(checks);
        Ok(())
    }

    /// Metrics that a later plan will name: tasks may tell of them before.
    pub(super) fn metrics_added(&mut self, event: &AdaptiveMetricUpdates<'_>) {
        let Some(id) = event.id.count() else { return };
        let metrics: Vec<(u64, u64)> = event
            .metrics
            .iter()
            .flatten()
            .filter_map(|Object(metric)| Some((metric.accumulator.count()?, metric.kind().1)))
            .collect();
        self.hold(id, &metrics);
    }

    pub(super) fn driver_updates(&mut self, event: &DriverAccumUpdates) {
        let Some(execution) = event.id.count() else { return };
        for pair in event.updates.iter().flatten() {
            if let [id, value] = pair.as_slice()
                && let (Some(id), Some(value)) = (id.count(), value.get())
            {
                self.accumulators.driver_update(execution, id, value);
            }
        }
    }

    pub(super) fn ended(&mut self, event: &ExecutionEnd<'_>, checks: &mut Checks) {
        let Some(id) = event.id.count() else { return };
        let time = checks.time(event.time);
        let state = self.entry(id);
        state.execution.end = time;
        state.execution.status = SqlStatus::Completed;
        if let Some(error) = &event.error {
            state.told = true;
            if let Some(message) = error.get() {
                state.execution.status = match JobStatus::of_failure(message) {
                    JobStatus::Cancelled => SqlStatus::Cancelled,
                    _ => SqlStatus::Failed,
                };
                state.execution.error_class = error_class(message);
                state.execution.error = first_lines(message).map(Into::into);
            }
        }
        self.release_old(id);
        self.keep_within_limits(checks);
    }

    fn parse(&mut self, plan: Option<&RawValue>) -> Result<Option<Parsed>, serde_json::Error> {
        let Some(json) = plan else { return Ok(None) };
        let most = self.limits.plan_nodes / 10;
        let parsed = plan::parse(json, most.max(1), &mut self.names)?;
        Ok(Some(parsed).filter(|parsed| !parsed.plan.nodes.is_empty()))
    }

    fn replace_plan(&mut self, id: u64, parsed: Parsed, checks: &mut Checks) {
        self.hold(id, &parsed.accumulators);
        if parsed.plan.nodes_omitted > 0 {
            checks.mark(DataQuality::SqlPlansMissing);
        }
        let state = self.entry(id);
        let new = parsed.plan.nodes.len();
        let old = state.execution.plan.replace(parsed.plan).map_or(0, |plan| plan.nodes.len());
        let too_many = state.held.len() > MOST_HELD;
        self.nodes = (self.nodes + new).saturating_sub(old);
        if too_many {
            self.release_old(id);
        }
    }

    fn hold(&mut self, id: u64, metrics: &[(u64, u64)]) {
        let most = self.limits.plan_nodes.saturating_mul(METRICS_PER_NODE);
        if metrics.is_empty() {
            return;
        }
        let full = self.accumulators.len() >= most;
        let state = self.entry(id);
        let new: Vec<(u64, u64)> = metrics
            .iter()
            .filter(|(accumulator, _)| !full && state.held.insert(*accumulator))
            .copied()
            .collect();
        for (accumulator, unit) in new {
            self.accumulators.hold(accumulator, unit);
        }
    }

    /// Lets go of what only plans before the last one named.
    fn release_old(&mut self, id: u64) {
        let Some(state) = self.map.get_mut(&id) else { return };
        let kept = accumulators_of(state.execution.plan.as_ref());
        let accumulators = &mut self.accumulators;
        state.held.retain(|accumulator| {
            let keep = kept.contains(accumulator);
            if !keep {
                accumulators.release(*accumulator);
            }
            keep
        });
        state.held.shrink_to_fit();
    }

    /// Gives up plans, then executions, of what is least missed.
    fn keep_within_limits(&mut self, checks: &mut Checks) {
        let most = self.limits.sql_executions;
        if self.map.len() > most.saturating_add(most / 8 + 16) {
            let too_many = self.map.len() - most;
            for id in self.least_missed().into_iter().take(too_many) {
                self.give_up_plan(id);
                self.map.remove(&id);
                self.omitted += 1;
            }
            checks.mark(DataQuality::SqlExecutionsOmitted);
        }
        if self.nodes > self.limits.plan_nodes {
            // Somewhat more than must be, so that this is not done each time.
            let enough = self.limits.plan_nodes - self.limits.plan_nodes / 8;
            for id in self.least_missed() {
                if self.nodes <= enough {
                    break;
                }
                self.give_up_plan(id);
            }
            checks.mark(DataQuality::SqlPlansMissing);
        }
    }

    /// Those that have ended before those that have not; of those the newest
    /// quarter last; of the others the shortest first.
    fn least_missed(&self) -> Vec<u64> {
        let newest = self.map.keys().nth_back(self.map.len() / 4).copied().unwrap_or_default();
        let mut order: Vec<(bool, bool, Duration, u64)> = self
            .map
            .values()
            .map(|state| {
                let execution = &state.execution;
                let wall = execution.wall(Timestamp::UNIX_EPOCH).unwrap_or_default();
                (execution.end.is_none(), execution.id > newest, wall, execution.id)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, _, id)| id).collect()
    }

    fn give_up_plan(&mut self, id: u64) {
        let Some(state) = self.map.get_mut(&id) else { return };
        if let Some(plan) = state.execution.plan.take() {
            self.nodes = self.nodes.saturating_sub(plan.nodes.len());
        }
        for accumulator in state.held.drain() {
            self.accumulators.release(accumulator);
        }
    }

    /// The executions, ascending, and how many were left out. `running`: the
    /// application still is.
    pub(super) fn finish(
        mut self,
        jobs: &BTreeMap<u32, Job>,
        running: bool,
        checks: &mut Checks,
    ) -> (Vec<SqlExecution>, u64) {
        while self.map.len() > self.limits.sql_executions {
            let too_many = self.map.len() - self.limits.sql_executions;
            for id in self.least_missed().into_iter().take(too_many) {
                self.map.remove(&id);
                self.omitted += 1;
            }
            checks.mark(DataQuality::SqlExecutionsOmitted);
        }
        let mut jobs_of: HashMap<u64, Vec<&Job>> = HashMap::new();
        for job in jobs.values() {
            if let Some(id) = job.sql_execution_id {
                jobs_of.entry(id).or_default().push(job);
            }
        }
        let accumulators = &self.accumulators;
        let executions = self.map.into_values().map(|state| {
            let mut execution = state.execution;
            let jobs = jobs_of.remove(&execution.id).unwrap_or_default();
            execution.job_ids = jobs.iter().map(|job| job.id).collect();
            settle(&mut execution, &jobs, state.told, running);
            let stages: HashSet<u32> =
                jobs.iter().flat_map(|job| job.stage_ids.iter().copied()).collect();
            match &mut execution.plan {
                Some(plan) => fill(execution.id, plan, accumulators, &stages),
                None => checks.mark(DataQuality::SqlPlansMissing),
            }
            execution
        });
        (executions.collect(), self.omitted)
    }
}

/// Writes to each metric what it came to.
fn fill(execution: u64, plan: &mut Plan, accumulators: &Accumulators, stages: &HashSet<u32>) {
    for node in &mut plan.nodes {
        let mut ran: Vec<StageId> = Vec::new();
        for metric in &mut node.metrics {
            metric.value = accumulators.value(
                execution,
                metric.accumulator,
                |stage| stages.contains(&stage),
                |stage| {
                    if ran.len() < MOST_STAGES && !ran.contains(&stage) {
                        ran.push(stage);
                    }
                },
            );
        }
        ran.sort_unstable();
        node.stages = ran;
    }
}

fn accumulators_of(plan: Option<&Plan>) -> HashSet<u64> {
    plan.iter()
        .flat_map(|plan| &plan.nodes)
        .flat_map(|node| node.metrics.iter().map(|metric| metric.accumulator))
        .collect()
}

/// Session settings of Spark SQL's own; others are not read by any rule and
/// may hold anything.
fn settings(properties: &Properties) -> Configuration {
    let Properties(properties) = properties;
    Configuration::new(
        properties
            .iter()
            .filter(|(key, value)| key.starts_with("spark.sql.") && value.len() <= SETTING_LENGTH)
            .filter(|(key, _)| key.len() <= SETTING_LENGTH)
            .take(MOST_SETTINGS)
            .cloned(),
    )
}
