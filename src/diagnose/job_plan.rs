//! What a run is replayed as ([`super::job_replay`]): which job waited for
//! which, which stage for which, and what is between them that no number of
//! slots changes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::context::{Context, StageView, millis};
use super::job_replay::{JobNode, Plan, StageNode};
use super::steps::Spans;
use super::waiting;
use crate::model::{Job, StageId, TaskSpan};

/// Slots of an executor of which it is followed when they become free.
const MOST_SLOTS: f64 = 256.0;
/// The end of a task is written down up to so long after the launch of the
/// next one on its slot.
const SOON_MS: i64 = 100;
/// A slot that was free for longer was not handed over.
const LONGEST_GAP_MS: i64 = 10_000;
/// Pairs of jobs of which one waits for the other: more are not followed.
const MOST_WAITS: usize = 1_000_000;
/// Among so many jobs that ended last those of its own SQL execution are
/// looked for.
const MOST_OF_OWN: usize = 64;

/// The run as it is replayed; `None` where jobs are not known.
pub(super) fn plan(context: &Context<'_>, ran: &[&StageView<'_>]) -> Option<Plan> {
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
    let on_slots = on_slots(context, ran);
    let unknown = OnSlots::default();
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
            let slots = on_slots.get(&view.stage.id).unwrap_or(&unknown);
            let (tasks_ms, cold_ms) = without_cold(tasks, &slots.firsts);
            plan.stages.push(StageNode {
                job: place,
                waits_for: parents.len(),
                after_ms: between(before, submitted).saturating_add(delay(context, view)),
                then: Vec::new(),
                tasks_ms,
                cold_ms,
                hand_over_ms: slots.hand_over_ms,
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

/// How the slots took the tasks of a stage attempt.
#[derive(Default)]
struct OnSlots {
    /// The mean time from the end of a task to the launch of the next one on
    /// its slot, in milliseconds. Below 0 where the driver launched the next
    /// one before it wrote down the end: real Spark does so by some 3 ms.
    hand_over_ms: i32,
    /// Tasks that were the first of the stage on their slot, by place in the
    /// timeline.
    firsts: Vec<usize>,
}

fn on_slots(context: &Context<'_>, ran: &[&StageView<'_>]) -> BTreeMap<StageId, OnSlots> {
    let mut tasks: Vec<(i64, i64, u32, usize, usize)> = Vec::new();
    for (place, view) in ran.iter().enumerate() {
        for (at, task) in view.stage.timeline.iter().flatten().enumerate() {
            let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
            tasks.push((task.launched_ms, end, task.executor, place, at));
        }
    }
    tasks.sort_unstable();
    let executors = &context.application.executors;
    let slots = |executor: u32, cpus: f64| {
        let cores = executors.get(executor as usize).map_or(1, |executor| executor.cores);
        (f64::from(cores) / cpus + 1e-9).clamp(1.0, MOST_SLOTS) as usize
    };
    // By executor when each of its slots became free.
    let mut free: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    let mut gaps: Vec<(i64, i64)> = vec![(0, 0); ran.len()];
    let mut firsts: Vec<Vec<usize>> = vec![Vec::new(); ran.len()];
    for (launched, end, executor, place, at) in tasks {
        let free = free.entry(executor).or_default();
        if free.len() < slots(executor, ran[place].cpus) {
            free.push(end);
            firsts[place].push(at);
            continue;
        }
        // The one that became free last, or about now.
        let later = |freed: i64| freed > launched.saturating_add(SOON_MS);
        let nearest = |freed: &&mut i64| (later(**freed), launched.abs_diff(**freed));
        let Some(slot) = free.iter_mut().min_by_key(nearest) else { continue };
        if ran[place].span.is_some_and(|(first, _)| *slot >= first) {
            gaps[place].0 += launched.saturating_sub(*slot).clamp(-SOON_MS, LONGEST_GAP_MS);
            gaps[place].1 += 1;
        } else {
            firsts[place].push(at);
        }
        *slot = end;
    }
    ran.iter()
        .zip(gaps)
        .zip(firsts)
        .map(|((view, (sum, n)), firsts)| {
            let hand_over_ms = if n > 0 { (sum / n) as i32 } else { 0 };
            (view.stage.id, OnSlots { hand_over_ms, firsts })
        })
        .collect()
}

/// Durations of tasks as they are once their executor is warm, and what the
/// first ones on each slot took longer because it was not. Real Spark's first
/// tasks spend about as much longer running as deserializing (classes are
/// loaded in both): no more than twice the latter is taken for it, so that a
/// hot task is not.
fn without_cold(tasks: &[TaskSpan], firsts: &[usize]) -> (Vec<u32>, Vec<u32>) {
    let is_first: BTreeSet<usize> = firsts.iter().copied().collect();
    let median = |of: fn(&TaskSpan) -> u32| {
        let others = tasks.iter().enumerate().filter(|(at, _)| !is_first.contains(at));
        let mut values: Vec<u32> = others.map(|(_, task)| of(task)).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let (duration, deserialize) =
        (median(|task| task.duration_ms), median(|task| task.deserialize_ms));
    let mut warm: Vec<u32> = tasks.iter().map(|task| task.duration_ms).collect();
    let mut cold = Vec::new();
    for at in is_first {
        let (Some(task), Some(warm)) = (tasks.get(at), warm.get_mut(at)) else { continue };
        let longer = task.duration_ms.saturating_sub(duration);
        let most = task.deserialize_ms.saturating_sub(deserialize).saturating_mul(2);
        *warm -= longer.min(most);
        cold.push(longer.min(most));
    }
    (warm, cold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::builders::at;
    use crate::model::JobStatus;

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

    fn waits_of(spans: &[(i64, i64)], groups: &[u64]) -> Vec<Vec<usize>> {
        let jobs: Vec<Job> =
            (0..).zip(spans).map(|(id, (from, to))| job(id, *from, *to, &[])).collect();
        let spans: Vec<JobSpan<'_>> =
            jobs.iter().filter_map(|job| JobSpan::of(job, i64::MAX)).collect();
        let groups: Vec<(bool, u64)> = groups.iter().map(|group| (true, *group)).collect();
        waits(&spans, &groups).expect("few jobs")
    }

    #[test]
    fn a_cold_start_is_told_from_a_hot_task() {
        let task = |duration_ms, deserialize_ms| TaskSpan {
            duration_ms,
            deserialize_ms,
            ..TaskSpan::default()
        };
        let tasks = [task(2_500, 900), task(9_000, 10), task(700, 10), task(700, 10)];
        let (warm, cold) = without_cold(&tasks, &[0, 1]);
        assert_eq!((warm, cold), (vec![720, 9_000, 700, 700], vec![1_780, 0]));
        // With no other task deserialization alone tells.
        assert_eq!(without_cold(&tasks[..1], &[0]), (vec![700], vec![1_800]));
        assert_eq!(without_cold(&[], &[0]), (vec![], vec![]));
    }

    #[test]
    fn jobs_wait_for_what_had_ended() {
        // One after the other; then two at a time of one execution, and one
        // that needs both.
        assert_eq!(
            waits_of(&[(0, 10), (12, 20), (21, 30), (21, 40), (41, 50)], &[1, 2, 3, 3, 3]),
            [vec![], vec![0], vec![1], vec![1], vec![3, 2]]
        );
        // Two threads: each goes on when its own job has ended.
        assert_eq!(
            waits_of(&[(0, 10), (0, 15), (11, 30), (16, 20), (21, 25)], &[1, 2, 1, 2, 2]),
            [vec![], vec![], vec![0], vec![1], vec![3, 1]]
        );
        // Jobs that take no time wait for earlier ones only.
        assert_eq!(waits_of(&[(5, 5), (5, 5), (5, 5)], &[1, 1, 1]), [vec![], vec![0], vec![1, 0]]);
    }
}
