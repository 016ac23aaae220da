//! How long the run would take with fewer or more executors.
//!
//! The run is replayed ([`super::job_replay`]) as it was: jobs after those
//! that they waited for, with the driver's gaps between them; stages after
//! their parents; each task attempt with its own duration, in launch order.
//! Only the number of slots changes. At 100 % the replay should give what the
//! run took: how far it is off is [`WhatIf::model_error`].

use std::collections::BTreeSet;
use std::time::Duration;

use super::context::{Context, StageView, seconds};
use super::job_plan::plan;
use super::job_replay::wall;
use super::steps::Spans;
use crate::model::{DataQuality, Kind, State};

/// Executors to what they were.
const FACTORS: [f64; 8] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0];
/// A number of whole executors that is further from the factor stands for
/// another factor.
const MOST_ROUNDING: f64 = 0.15;
/// A replay that is further off than this says nothing about other sizes.
const MOST_ERROR: f64 = 0.25;

/// Predictions for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// Ascending by factor; 1.0 among them. Factors near which there is no
    /// number of whole executors are left out.
    pub scenarios: Vec<Scenario>,
    /// The run with no end of executors: gaps of the driver and the longest
    /// chain of tasks.
    pub critical_path: Duration,
    /// What the prediction takes for granted, for a reader: clauses, to be
    /// joined by `; `.
    pub assumptions: Vec<String>,
    /// What the replay at 100 % is off by: replayed / real - 1.
    pub model_error: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Executors to what they were.
    pub factor: f64,
    /// Cores all along under it.
    pub cores: f64,
    /// Predicted wall time of the run.
    pub wall: Duration,
    /// Core-seconds bought under it.
    pub bought: Duration,
}

/// `None` where it cannot be told or makes no sense: tasks, jobs or executors
/// are not known, the run goes on or is one of a stream (which takes as long
/// as its input comes), it runs in local mode or with several resource
/// profiles, or the replay is off by more than a quarter.
pub(super) fn of(context: &Context<'_>) -> Option<WhatIf> {
    let application = context.application;
    let holes = [
        DataQuality::DroppedEvents,
        DataQuality::LogCompacted,
        DataQuality::StagesEvicted,
        DataQuality::StagesOmitted,
        DataQuality::EndpointsMissing,
    ];
    if holes.iter().any(|hole| application.has(*hole))
        || application.state == State::Running
        || application.kind == Kind::Streaming
        || application.local_mode()
    {
        return None;
    }
    let ran: Vec<&StageView<'_>> =
        context.stages.iter().filter(|view| view.span.is_some()).collect();
    let profiles: BTreeSet<u32> = ran.iter().map(|view| view.stage.resource_profile_id).collect();
    if profiles.len() != 1 || ran.iter().any(|view| view.stage.timeline.is_none()) {
        return None;
    }
    let real = u64::try_from(application.duration()?.as_millis()).ok().filter(|real| *real > 0)?;
    let plan = plan(context, &ran)?;
    let size = Size::of(context, &ran)?;
    let replayed = wall(&plan, size.slots(1.0))?;
    let model_error = replayed as f64 / real as f64 - 1.0;
    if model_error.abs() > MOST_ERROR {
        return None;
    }
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut best = u64::MAX;
    for factor in FACTORS {
        let cores = size.cores(factor);
        #[expect(clippy::float_cmp, reason = "the same arithmetic on the same numbers")]
        let known = scenarios.iter().any(|scenario| scenario.cores == cores);
        let asked = size.cores * factor;
        let far = (cores - asked).abs() > asked * MOST_ROUNDING;
        if known || far || (factor < 1.0 && cores >= size.cores) {
            continue;
        }
        // More executors are never worse: those too many could stay idle.
        best = best.min(wall(&plan, size.slots(factor))?);
        let bought = best.saturating_sub(size.first_ms) as f64 / 1_000.0 * cores;
        let wall = Duration::from_millis(best);
        scenarios.push(Scenario { factor, cores, wall, bought: seconds(bought) });
    }
    let endless = wall(&plan, usize::MAX / 2)?.min(best);
    Some(WhatIf {
        scenarios,
        critical_path: Duration::from_millis(endless),
        assumptions: assumptions(context, &size),
        model_error,
    })
}

/// Clauses, each of which a reader may doubt.
fn assumptions(context: &Context<'_>, size: &Size) -> Vec<String> {
    let mut all = vec![
        "each task takes as long as it did, and the first one on each slot as much longer, because \
         its executor is cold (with more executors storage, network and caches may \
         be slower or faster; with fewer, more may spill)"
            .to_owned(),
        "stages keep their number of tasks, so that one with fewer tasks than cores gains nothing \
         from more executors"
            .to_owned(),
        "jobs wait for the jobs that they waited for, and the driver takes the same time between \
         them"
            .to_owned(),
        "no data moves: tasks go to the slot that is free first, and none waits for its data to \
         be near"
            .to_owned(),
        format!(
            "all executors are there from when the first were, and 100 % are the {:.1} cores \
             there were on average while tasks ran",
            size.cores
        ),
    ];
    if context.application.configuration.flag("spark.dynamicAllocation.enabled", false) {
        all.push(
            "executors neither come nor go (with dynamic allocation fewer core-seconds are bought \
             than said here)"
                .to_owned(),
        );
    }
    all
}

/// What was there to run tasks on.
struct Size {
    /// Cores of all executors, averaged over the time in which tasks ran.
    cores: f64,
    /// Of one executor.
    per_executor: f64,
    /// Those of them that tasks can use: whole slots.
    usable: f64,
    cpus: f64,
    /// When the first executor came, in milliseconds of the run.
    first_ms: u64,
}

impl Size {
    fn of(context: &Context<'_>, ran: &[&StageView<'_>]) -> Option<Self> {
        let application = context.application;
        let first = ran.first()?;
        let busy = Spans::union(ran.iter().filter_map(|view| view.span).collect());
        let time = busy.millis() as f64 / 1_000.0;
        let over = |steps: &super::steps::Steps| {
            busy.iter().map(|(from, to)| steps.integral(from, to)).sum::<f64>() / time
        };
        let cores = over(&context.supplies.cores);
        let usable = over(&context.supplies.of_stage(first.stage)?.capacity) / cores;
        let executors = application.executors.len() as f64;
        let per_executor =
            application.executors.iter().map(|executor| f64::from(executor.cores)).sum::<f64>()
                / executors;
        let start = application.start?.as_millisecond();
        let added = application.executors.iter().filter_map(|executor| executor.added).min()?;
        let first_ms = u64::try_from(added.as_millisecond().saturating_sub(start)).unwrap_or(0);
        let plausible = |value: f64| value.is_finite() && value > 0.0 && value < 1e9;
        [cores, usable, per_executor, first.cpus].into_iter().all(plausible).then_some(Self {
            cores,
            per_executor,
            usable,
            cpus: first.cpus,
            first_ms,
        })
    }

    /// Of whole executors, at least one.
    #[expect(clippy::float_cmp, reason = "1.0 is one of the constants")]
    fn cores(&self, factor: f64) -> f64 {
        if factor == 1.0 {
            return self.cores;
        }
        let executors = (self.cores * factor / self.per_executor).round().max(1.0);
        executors * self.per_executor
    }

    fn slots(&self, factor: f64) -> usize {
        (self.cores(factor) * self.usable / self.cpus + 1e-6).round().max(1.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::builders::{at, diagnosis, run, stage, task, tasks};
    use crate::model::{Application, Job, JobStatus};

    fn job(id: u32, from: i64, to: i64, stage_ids: &[u32]) -> Job {
        Job {
            id,
            status: JobStatus::Succeeded,
            submitted: Some(at(from)),
            completed: Some(at(to)),
            stage_ids: stage_ids.to_vec(),
            failure_reason: None,
            sql_execution_id: None,
            trace_context: None,
        }
    }

    /// Two jobs of 8 tasks of 10 s on four slots, with a gap of 5 s.
    fn two_jobs() -> Application {
        let mut application = run(60);
        let mut overhead_free = task(10_000);
        overhead_free.overhead = 0;
        stage(&mut application, 0, 5_000, tasks(8, &overhead_free)).job_ids = vec![0];
        stage(&mut application, 1, 30_000, tasks(8, &overhead_free)).job_ids = vec![1];
        application.jobs = vec![job(0, 5_000, 25_000, &[0]), job(1, 30_000, 50_000, &[1])];
        application
    }

    #[test]
    fn more_executors_shorten_tasks_and_not_gaps() {
        let what_if = diagnosis(&two_jobs()).what_if.expect("a prediction");
        assert!(what_if.model_error.abs() < 1e-9, "{what_if:?}");
        let walls: Vec<(f64, u64)> = what_if
            .scenarios
            .iter()
            .map(|scenario| (scenario.factor, scenario.wall.as_secs()))
            .collect();
        // Two executors of two cores: a half, one and a half, and so on.
        assert_eq!(walls, [(0.5, 100), (1.0, 60), (1.5, 60), (2.0, 40), (3.0, 40), (4.0, 40)]);
        assert_eq!(what_if.critical_path.as_secs(), 40);
        let half = what_if.scenarios.first().expect("a scenario");
        assert_eq!((half.cores, half.bought.as_secs()), (2.0, 200));
    }

    #[test]
    fn nothing_is_predicted_of_what_is_not_known() {
        let change = |change: fn(&mut Application)| {
            let mut application = two_jobs();
            change(&mut application);
            diagnosis(&application).what_if
        };
        assert!(change(|_| {}).is_some());
        assert_eq!(change(|run| run.state = State::Running), None);
        assert_eq!(change(|run| run.kind = Kind::Streaming), None);
        assert_eq!(change(|run| run.stages[0].timeline = None), None);
        assert_eq!(change(|run| run.stages[0].resource_profile_id = 3), None);
        assert_eq!(change(|run| run.executors.clear()), None);
        assert_eq!(change(|run| run.jobs.clear()), None);
        let dropped = |run: &mut Application| {
            run.data_quality.insert(DataQuality::DroppedEvents);
        };
        assert_eq!(change(dropped), None);
    }
}
