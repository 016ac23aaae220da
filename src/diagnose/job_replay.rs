//! A whole run again on another number of slots: jobs after those that they
//! waited for, stages after their parents, tasks in launch order on the slot
//! that is free first. Pure arithmetic on whole milliseconds; what is replayed
//! is made by [`super::what_if`].

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// What is replayed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    /// In the order in which Spark would serve them: first come, first served.
    pub(super) jobs: Vec<JobNode>,
    /// In the order in which they are served within a job.
    pub(super) stages: Vec<StageNode>,
    /// From the end of the last job to that of the run.
    pub(super) tail_ms: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct JobNode {
    /// How many jobs must have ended before.
    pub(super) waits_for: usize,
    /// Then it is submitted after so long; from the start of the run where
    /// it waits for none.
    pub(super) after_ms: u64,
    /// Jobs that wait for it.
    pub(super) then: Vec<usize>,
    /// From the end of its last stage to its own.
    pub(super) tail_ms: u64,
    /// Of [`Plan::stages`].
    pub(super) stages: Vec<usize>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StageNode {
    pub(super) job: usize,
    /// How many stages of the job must have ended before.
    pub(super) waits_for: usize,
    /// Then its first task is launched after so long, if a slot is free.
    pub(super) after_ms: u64,
    /// Stages that wait for it.
    pub(super) then: Vec<usize>,
    /// Of its task attempts, in launch order, on a warm executor.
    pub(super) tasks_ms: Vec<u32>,
    /// What the first task on each slot takes longer, as far as it was seen:
    /// beyond that many slots the same again.
    pub(super) cold_ms: Vec<u32>,
    /// From the end of a task to the launch of the next on its slot; below 0
    /// where that was launched before the end was written down.
    pub(super) hand_over_ms: i32,
    /// From the end of its last task to its own.
    pub(super) tail_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    TaskEnded(usize),
    StageEnded(usize),
    JobEnded(usize),
    JobSubmitted(usize),
    StageReady(usize),
}

struct Replay<'a> {
    plan: &'a Plan,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    free: usize,
    slots: usize,
    /// Stages with tasks to launch, the first to be served first.
    ready: BTreeSet<(usize, usize)>,
    launched: Vec<usize>,
    ended: Vec<usize>,
    stages_left: Vec<usize>,
    stage_waits: Vec<usize>,
    job_waits: Vec<usize>,
    jobs_left: usize,
    last_job: u64,
}

/// How long the run takes on so many slots, in milliseconds; `None` where it
/// never ends, because something waits for itself.
pub(super) fn wall(plan: &Plan, slots: usize) -> Option<u64> {
    let slots = slots.max(1);
    let mut replay = Replay {
        plan,
        events: BinaryHeap::new(),
        free: slots,
        slots,
        ready: BTreeSet::new(),
        launched: vec![0; plan.stages.len()],
        ended: vec![0; plan.stages.len()],
        stages_left: plan.jobs.iter().map(|job| job.stages.len()).collect(),
        stage_waits: plan.stages.iter().map(|stage| stage.waits_for).collect(),
        job_waits: plan.jobs.iter().map(|job| job.waits_for).collect(),
        jobs_left: plan.jobs.len(),
        last_job: 0,
    };
    for (at, job) in plan.jobs.iter().enumerate() {
        if job.waits_for == 0 {
            replay.at(job.after_ms, Event::JobSubmitted(at));
        }
    }
    while let Some(Reverse((now, event))) = replay.events.pop() {
        replay.happens(now, event);
        // Everything of this instant before slots are given away.
        if replay.events.peek().is_none_or(|Reverse((next, _))| *next > now) {
            replay.launch(now);
        }
    }
    (replay.jobs_left == 0).then(|| replay.last_job.saturating_add(plan.tail_ms))
}

impl Replay<'_> {
    fn at(&mut self, when: u64, event: Event) {
        self.events.push(Reverse((when, event)));
    }

    fn happens(&mut self, now: u64, event: Event) {
        match event {
            Event::JobSubmitted(job) => {
                let plan = self.plan;
                for stage in &plan.jobs[job].stages {
                    if plan.stages[*stage].waits_for == 0 {
                        let after = plan.stages[*stage].after_ms;
                        self.at(now.saturating_add(after), Event::StageReady(*stage));
                    }
                }
                if plan.jobs[job].stages.is_empty() {
                    self.at(now.saturating_add(plan.jobs[job].tail_ms), Event::JobEnded(job));
                }
            }
            Event::StageReady(stage) => {
                let node = &self.plan.stages[stage];
                if node.tasks_ms.is_empty() {
                    self.at(now.saturating_add(node.tail_ms), Event::StageEnded(stage));
                } else {
                    self.ready.insert((node.job, stage));
                }
            }
            Event::TaskEnded(stage) => {
                self.free += 1;
                self.ended[stage] += 1;
                let node = &self.plan.stages[stage];
                if self.ended[stage] == node.tasks_ms.len() {
                    self.at(now.saturating_add(node.tail_ms), Event::StageEnded(stage));
                }
            }
            Event::StageEnded(stage) => {
                let node = &self.plan.stages[stage];
                for next in &node.then {
                    self.stage_waits[*next] -= 1;
                    if self.stage_waits[*next] == 0 {
                        let after = self.plan.stages[*next].after_ms;
                        self.at(now.saturating_add(after), Event::StageReady(*next));
                    }
                }
                self.stages_left[node.job] -= 1;
                if self.stages_left[node.job] == 0 {
                    let tail = self.plan.jobs[node.job].tail_ms;
                    self.at(now.saturating_add(tail), Event::JobEnded(node.job));
                }
            }
            Event::JobEnded(job) => {
                self.jobs_left -= 1;
                self.last_job = self.last_job.max(now);
                for next in &self.plan.jobs[job].then {
                    self.job_waits[*next] -= 1;
                    if self.job_waits[*next] == 0 {
                        let after = self.plan.jobs[*next].after_ms;
                        self.at(now.saturating_add(after), Event::JobSubmitted(*next));
                    }
                }
            }
        }
    }

    fn launch(&mut self, now: u64) {
        while self.free > 0
            && let Some((job, stage)) = self.ready.first().copied()
        {
            let node = &self.plan.stages[stage];
            let next = self.launched[stage];
            let cold = node.cold_ms.get(next % node.cold_ms.len().max(1));
            // The first tasks find their slots waiting, and cold.
            let more = if next < self.slots {
                cold.map_or(0, |cold| i64::from(*cold))
            } else {
                i64::from(node.hand_over_ms)
            };
            let task = u64::from(node.tasks_ms[next]).saturating_add_signed(more);
            self.at(now.saturating_add(task), Event::TaskEnded(stage));
            self.free -= 1;
            self.launched[stage] += 1;
            if self.launched[stage] == node.tasks_ms.len() {
                self.ready.remove(&(job, stage));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Jobs one after the other, each of stages one after the other.
    fn chain(jobs: &[&[&[u32]]]) -> Plan {
        let mut plan = Plan::default();
        for (at, stages) in jobs.iter().enumerate() {
            let from = plan.stages.len();
            for (place, tasks) in stages.iter().enumerate() {
                let last = place + 1 == stages.len();
                plan.stages.push(StageNode {
                    job: at,
                    waits_for: usize::from(place > 0),
                    then: if last { vec![] } else { vec![from + place + 1] },
                    tasks_ms: tasks.to_vec(),
                    ..StageNode::default()
                });
            }
            plan.jobs.push(JobNode {
                waits_for: usize::from(at > 0),
                after_ms: 100,
                then: if at + 1 == jobs.len() { vec![] } else { vec![at + 1] },
                stages: (from..plan.stages.len()).collect(),
                ..JobNode::default()
            });
        }
        plan
    }

    #[test]
    fn stages_wait_for_their_parents_and_gaps_stay() {
        let plan = chain(&[&[&[10, 10, 10, 10], &[40]], &[&[10, 10]]]);
        assert_eq!(wall(&plan, 1), Some(100 + 40 + 40 + 100 + 20));
        assert_eq!(wall(&plan, 2), Some(100 + 20 + 40 + 100 + 10));
        assert_eq!(wall(&plan, 1_000), Some(100 + 10 + 40 + 100 + 10));
    }

    #[test]
    fn stages_side_by_side_share_the_slots() {
        let mut plan = chain(&[&[&[10; 4]]]);
        plan.stages.push(StageNode { tasks_ms: vec![10; 4], ..StageNode::default() });
        plan.jobs[0].stages.push(1);
        assert_eq!(wall(&plan, 2), Some(140));
        assert_eq!(wall(&plan, 4), Some(120));
        assert_eq!(wall(&plan, 8), Some(110));
    }

    #[test]
    fn what_waits_for_itself_has_no_end() {
        let mut plan = chain(&[&[&[10], &[10]]]);
        plan.stages[0].waits_for = 1;
        plan.stages[1].then = vec![0];
        assert_eq!(wall(&plan, 2), None);
        assert_eq!(wall(&Plan::default(), 2), Some(0));
    }

    proptest! {
        #[test]
        fn between_the_longest_chain_and_one_after_the_other(
            stages in proptest::collection::vec(proptest::collection::vec(0_u32..1_000, 1..30), 1..6),
            slots in 1_usize..20,
        ) {
            let slices: Vec<&[u32]> = stages.iter().map(Vec::as_slice).collect();
            let plan = chain(&[&slices]);
            let took = wall(&plan, slots).expect("it ends");
            let longest: u32 = stages.iter().map(|tasks| tasks.iter().max().copied().unwrap_or(0)).sum();
            let all: u32 = stages.iter().flatten().sum();
            prop_assert!(took >= 100 + u64::from(longest));
            prop_assert!(took >= 100 + u64::from(all) / slots as u64);
            prop_assert!(took <= 100 + u64::from(all));
            prop_assert_eq!(wall(&plan, 1), Some(100 + u64::from(all)));
        }
    }
}
