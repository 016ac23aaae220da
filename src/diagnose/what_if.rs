//! How long the run would take with fewer or more executors.
//!
//! The run is replayed ([`super::job_replay`]) as it was: jobs after those
//! that they waited for, with the driver's gaps between them; stages after
//! their parents; each task attempt with its own duration, in launch order.
//! Only the number of slots changes. At 100 % the replay should give what the
//! run took: how far it is off is [`WhatIf::model_error`].

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, StageView, millis, seconds};
use super::humane;
use super::job_replay::{JobNode, Plan, StageNode, wall};
use super::steps::Spans;
use super::waiting;
use crate::model::{DataQuality, Job, Kind, StageId, State};

/// Executors to what they were.
const FACTORS: [f64; 8] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0];
/// A replay that is further off than this says nothing about other sizes.
const MOST_ERROR: f64 = 0.25;
/// Pairs of jobs of which one waits for the other: more are not followed.
const MOST_WAITS: usize = 1_000_000;
/// Among so many jobs that ended last those of its own SQL execution are
/// looked for.
const MOST_OF_OWN: usize = 64;

/// Predictions for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// Ascending by factor; 1.0 among them. A factor that makes no other
    /// number of whole executors than one before it is left out.
    pub scenarios: Vec<Scenario>,
    /// The run with no end of executors: gaps of the driver and the longest
    /// chain of tasks.
    pub critical_path: Duration,
    /// What the prediction takes for granted, for a reader.
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
        if known || (factor < 1.0 && cores >= size.cores) {
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
        assumptions: assumptions(context, &size, replayed, real, model_error),
        model_error,
    })
}

fn assumptions(
    context: &Context<'_>,
    size: &Size,
    replayed: u64,
    real: u64,
    error: f64,
) -> Vec<String> {
    let span = |millis: u64| humane::duration(Duration::from_millis(millis));
    let mut all = vec![
        format!(
            "The replay of the run as it was gives {} where it took {} ({:+.0} %): take the \
             predictions to be no better than that.",
            span(replayed),
            span(real),
            error * 100.0
        ),
        "Each task takes as long as it did. With more executors, storage, network and caches may \
         be slower or faster than that; with fewer, more may spill."
            .to_owned(),
        "Stages keep their number of tasks: one with fewer tasks than cores gains nothing from \
         more executors."
            .to_owned(),
        "Jobs wait for the jobs that they waited for, and the driver takes the same time between \
         them."
            .to_owned(),
        "No data moves: tasks go to the slot that is free first, none waits for its data to be \
         near."
            .to_owned(),
        format!(
            "All executors are there from when the first were; 100 % are the {:.1} cores there \
             were on average while tasks ran.",
            size.cores
        ),
    ];
    if context.application.configuration.get("spark.dynamicAllocation.enabled") == Some("true") {
        all.push(
            "Executors neither come nor go: under dynamic allocation fewer core-seconds are \
             bought than said here."
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

/// The run as it is replayed; `None` where jobs are not known.
fn plan(context: &Context<'_>, ran: &[&StageView<'_>]) -> Option<Plan> {
    let application = context.application;
    let start = application.start?.as_millisecond();
    let end = application.end.unwrap_or(application.observed).as_millisecond();
    let mut jobs: Vec<JobSpan<'_>> =
        application.jobs.iter().filter_map(|job| JobSpan::of(job, end)).collect();
    jobs.sort_by_key(|job| (job.from, job.job.id));
    let last = jobs.iter().map(|job| job.to).max()?;
    let groups = groups(context, &jobs);
    let mut plan = Plan { tail_ms: between(last, end), ..Plan::default() };
    for (place, waits_for) in waits(&jobs, &groups)?.into_iter().enumerate() {
        let job = &jobs[place];
        let before = waits_for.iter().map(|other| jobs[*other].to).max().unwrap_or(start);
        for other in &waits_for {
            plan.jobs[*other].then.push(place);
        }
        plan.jobs.push(JobNode {
            waits_for: waits_for.len(),
            after_ms: between(before, job.from),
            then: Vec::new(),
            tail_ms: between(job.from, job.to),
            stages: Vec::new(),
        });
    }
    let hand_overs = hand_overs(ran);
    let mut of_job: BTreeMap<usize, Vec<&StageView<'_>>> = BTreeMap::new();
    for view in ran {
        of_job.entry(job_of(view, &jobs)?).or_default().push(view);
    }
    for (place, mut views) in of_job {
        views.sort_by_key(|view| (view.stage.submitted, view.stage.id));
        let from = plan.stages.len();
        for (at, view) in views.iter().enumerate() {
            let parents = parents(view, &views[..at]);
            let submitted =
                view.stage.submitted.map_or(jobs[place].from, Timestamp::as_millisecond);
            let before = parents
                .iter()
                .filter_map(|parent| views[*parent].span)
                .map(|(_, to)| to)
                .max()
                .unwrap_or(jobs[place].from);
            for parent in &parents {
                plan.stages[from + parent].then.push(from + at);
            }
            let tasks = view.stage.timeline.as_deref().unwrap_or_default();
            let last = tasks
                .iter()
                .map(|task| task.launched_ms.saturating_add(i64::from(task.duration_ms)))
                .max();
            plan.stages.push(StageNode {
                job: place,
                waits_for: parents.len(),
                after_ms: between(before, submitted).saturating_add(delay(context, view)),
                then: Vec::new(),
                tasks_ms: tasks.iter().map(|task| task.duration_ms).collect(),
                hand_over_ms: hand_overs.get(&view.stage.id).copied().unwrap_or(0),
                tail_ms: last.zip(view.span).map_or(0, |(last, (_, to))| between(last, to)),
            });
        }
        let end = views.iter().filter_map(|view| view.span).map(|(_, to)| to).max();
        let node = plan.jobs.get_mut(place)?;
        node.stages = (from..plan.stages.len()).collect();
        node.tail_ms = end.map_or(node.tail_ms, |end| between(end, jobs[place].to));
    }
    Some(plan)
}

fn between(from: i64, to: i64) -> u64 {
    u64::try_from(millis(to.saturating_sub(from)).as_millis()).unwrap_or(u64::MAX)
}

/// A job with when it ran.
struct JobSpan<'a> {
    job: &'a Job,
    from: i64,
    to: i64,
}

impl<'a> JobSpan<'a> {
    fn of(job: &'a Job, end: i64) -> Option<Self> {
        let from = job.submitted?.as_millisecond();
        let to = job.completed.map_or(end, Timestamp::as_millisecond).max(from);
        Some(Self { job, from, to })
    }
}

/// What each job belongs to: the SQL execution that nobody else started, or
/// itself alone.
fn groups(context: &Context<'_>, jobs: &[JobSpan<'_>]) -> Vec<(bool, u64)> {
    let roots: BTreeMap<u64, u64> = context
        .executions
        .iter()
        .map(|view| (view.execution.id, view.execution.root_id.unwrap_or(view.execution.id)))
        .collect();
    jobs.iter()
        .map(|job| match job.job.sql_execution_id {
            Some(sql) => (true, roots.get(&sql).copied().unwrap_or(sql)),
            None => (false, u64::from(job.job.id)),
        })
        .collect()
}

/// For each job those that it waits for: what had ended when it was submitted,
/// but for what these had waited for in their turn. Where jobs of something
/// else ran at that moment there are several threads in the driver, of which
/// nothing tells: then it waits for those of its own SQL execution, or for the
/// one that ended last. Each waits for earlier ones only, by their place.
fn waits(jobs: &[JobSpan<'_>], groups: &[(bool, u64)]) -> Option<Vec<Vec<usize>>> {
    let mut by_end: Vec<usize> = (0..jobs.len()).collect();
    by_end.sort_by_key(|place| (jobs[*place].to, *place));
    let mut running: BTreeMap<(bool, u64), usize> = BTreeMap::new();
    let mut ended: Vec<usize> = Vec::new();
    // The latest submission among what has ended.
    let mut latest = i64::MIN;
    let mut edges = 0_usize;
    let mut next = 0;
    let mut all = Vec::with_capacity(jobs.len());
    for (place, job) in jobs.iter().enumerate() {
        while let Some(over) = by_end.get(next).copied().filter(|over| {
            // Of jobs that take no time, the earlier one has ended.
            *over < place && jobs[*over].to <= job.from
        }) {
            next += 1;
            latest = latest.max(jobs[over].from);
            ended.push(over);
            if let Some(count) = running.get_mut(&groups[over]) {
                *count -= 1;
                if *count == 0 {
                    running.remove(&groups[over]);
                }
            }
        }
        let frontier = || ended.iter().rev().take_while(|over| jobs[**over].to >= latest).copied();
        let several_threads = running.keys().any(|group| *group != groups[place]);
        let waits_for: Vec<usize> = if several_threads {
            let recent = ended.iter().rev().take(MOST_OF_OWN).copied();
            let own: Vec<usize> = recent.filter(|over| groups[*over] == groups[place]).collect();
            if own.is_empty() { ended.last().copied().into_iter().collect() } else { own }
        } else {
            frontier().collect()
        };
        edges = edges.saturating_add(waits_for.len());
        if edges > MOST_WAITS {
            return None;
        }
        all.push(waits_for);
        *running.entry(groups[place]).or_default() += 1;
    }
    Some(all)
}

/// The job for which a stage attempt ran: of those that listed it the first
/// that ran when it was submitted, by its place.
fn job_of(view: &StageView<'_>, jobs: &[JobSpan<'_>]) -> Option<usize> {
    let submitted = view.stage.submitted.map(Timestamp::as_millisecond);
    let listed = |job: &JobSpan<'_>| view.stage.job_ids.contains(&job.job.id);
    let open = |job: &JobSpan<'_>| submitted.is_none_or(|at| job.from <= at && at <= job.to);
    jobs.iter().position(|job| listed(job) && open(job)).or_else(|| jobs.iter().position(listed))
}

/// Those among the stages submitted before it that it waited for, by place. A
/// retry waits for all that had ended.
fn parents(view: &StageView<'_>, before: &[&StageView<'_>]) -> Vec<usize> {
    let submitted = view.stage.submitted.map(Timestamp::as_millisecond);
    let ended = |other: &StageView<'_>| {
        other.span.zip(submitted).is_some_and(|((_, to), submitted)| to <= submitted)
    };
    let is_parent = |other: &StageView<'_>| {
        view.stage.parent_ids.contains(&other.stage.id.stage) || view.stage.id.attempt > 0
    };
    before
        .iter()
        .enumerate()
        .filter(|(_, other)| ended(other) && is_parent(other))
        .map(|(place, _)| place)
        .collect()
}

/// Milliseconds from its submission in which it had no executor or a free slot
/// and yet no task was launched.
fn delay(context: &Context<'_>, view: &StageView<'_>) -> u64 {
    let submitted = view.stage.submitted.map(Timestamp::as_millisecond);
    let (Some(submitted), Some((first, _))) = (submitted, view.span) else { return 0 };
    waiting::of_stage(view, context.application, &context.supplies).map_or(0, |waiting| {
        let up_to = |spans: &Spans| spans.clip(submitted, first).millis();
        up_to(&waiting.no_executors).saturating_add(up_to(&waiting.free_slot))
    })
}

/// For each stage attempt the mean time from the end of a task to the launch
/// of the next one on its slot, in milliseconds: on each executor a task takes
/// the slot that became free last.
fn hand_overs(ran: &[&StageView<'_>]) -> BTreeMap<StageId, u32> {
    let mut tasks: Vec<(i64, i64, u32, usize)> = Vec::new();
    for (place, view) in ran.iter().enumerate() {
        for task in view.stage.timeline.iter().flatten() {
            let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
            tasks.push((task.launched_ms, end, task.executor, place));
        }
    }
    tasks.sort_unstable();
    let mut executors: BTreeMap<u32, (BinaryHeap<std::cmp::Reverse<i64>>, Vec<i64>)> =
        BTreeMap::new();
    let mut gaps: Vec<(u64, u64)> = vec![(0, 0); ran.len()];
    for (launched, end, executor, place) in tasks {
        let (running, free) = executors.entry(executor).or_default();
        while running.peek().is_some_and(|ended| ended.0 <= launched) {
            free.extend(running.pop().map(|ended| ended.0));
        }
        let since = ran[place].span.map_or(launched, |(first, _)| first);
        if let Some(freed) = free.pop().filter(|freed| *freed >= since) {
            gaps[place].0 = gaps[place].0.saturating_add(between(freed, launched));
            gaps[place].1 += 1;
        }
        running.push(std::cmp::Reverse(end));
    }
    ran.iter()
        .zip(gaps)
        .filter(|(_, (_, n))| *n > 0)
        .map(|(view, (sum, n))| (view.stage.id, u32::try_from(sum / n).unwrap_or(u32::MAX)))
        .collect()
}
