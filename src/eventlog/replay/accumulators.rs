//! What plan metrics came to: accumulators by id, added up from tasks and
//! from the driver.
//!
//! Only accumulators that some plan names are followed: plans come before
//! their tasks. An accumulator is kept by stage attempt, because those below
//! the scan of a cached table are shared by all executions that read it, and
//! each execution counts its own stages.
//!
//! A partition counts once, whichever attempt computed it first: neither a
//! retried stage nor the second of two copies adds its rows again. Spark's UI
//! keeps a value for each task of a stage's *last* attempt instead, so that
//! after a retry it shows the partitions that were computed again and no
//! others (`docs/accuracy.md`).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::model::{LargestTask, MetricValue, StageId};

/// Stage attempts told apart for one accumulator; what comes later is added
/// to the last one.
const MOST_PARTS: usize = 256;

/// Partitions remembered as computed, over all stages, in bits: 8 MB. Beyond
/// it, what a retry computes again counts again.
const MOST_PARTITIONS: usize = 1 << 26;

/// Hashes a number by multiplication: ids of accumulators and stages are
/// counters of Spark's and collide with nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio's digits, and its high bits where the table looks.
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product.rotate_left(26);
    }
}

type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// What the tasks of one stage attempt told of one accumulator.
#[derive(Debug, Clone)]
struct Part {
    stage: StageId,
    total: u64,
    tasks: u64,
    largest: u64,
    largest_task: u64,
    wasted: u64,
}

#[derive(Debug, Clone, Default)]
struct Tracked {
    /// Executions that name it.
    holders: u32,
    unit: u64,
    /// What the driver told, by execution.
    driver: Vec<(u64, u64)>,
    parts: Vec<Part>,
}

/// Partitions of a stage that a successful task has computed, one bit each.
#[derive(Debug, Clone, Default)]
struct Computed(Vec<u64>);

impl Computed {
    /// Whether it is new. `left`: bits that may still be added.
    fn insert(&mut self, partition: u32, left: &mut usize) -> bool {
        let (word, bit) = (partition as usize / 64, 1_u64 << (partition % 64));
        if word >= self.0.len() {
            let more = (word + 1 - self.0.len()) * 64;
            if more > *left {
                return true;
            }
            *left -= more;
            self.0.resize(word + 1, 0);
        }
        let Some(bits) = self.0.get_mut(word) else { return true };
        let new = *bits & bit == 0;
        *bits |= bit;
        new
    }
}

/// A task that ended, as its metrics count.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedTask {
    pub(super) stage: StageId,
    /// `None` where the log does not tell which partition a retry computed.
    pub(super) partition: Option<u32>,
    pub(super) id: u64,
    pub(super) succeeded: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Accumulators {
    map: ByNumber<u64, Tracked>,
    computed: ByNumber<u32, Computed>,
    partitions_left: usize,
}

impl Default for Accumulators {
    fn default() -> Self {
        Self {
            map: HashMap::default(),
            computed: HashMap::default(),
            partitions_left: MOST_PARTITIONS,
        }
    }
}

impl Accumulators {
    /// How many are followed.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    /// An execution names it: from now on it is followed. `unit`: what one of
    /// Spark's units is in the model's ([`crate::model::MetricKind::of`]).
    pub(super) fn hold(&mut self, id: u64, unit: u64) {
        let tracked = self.map.entry(id).or_default();
        tracked.holders += 1;
        tracked.unit = unit;
    }

    /// An execution that named it does so no more.
    pub(super) fn release(&mut self, id: u64) {
        if let Some(tracked) = self.map.get_mut(&id) {
            tracked.holders = tracked.holders.saturating_sub(1);
            if tracked.holders == 0 {
                self.map.remove(&id);
            }
        }
    }

    /// A task ended. `updates` calls its argument for each (id, update).
    pub(super) fn task_ended(
        &mut self,
        task: EndedTask,
        updates: impl FnOnce(&mut dyn FnMut(u64, i64)),
    ) {
        let Self { map, computed, partitions_left } = self;
        let mut counts = None;
        updates(&mut |id, update| {
            // Metrics that start at -1 say so where nothing was added, and
            // killed tasks have told less than nothing.
            let Ok(update) = u64::try_from(update) else { return };
            let Some(tracked) = map.get_mut(&id) else { return };
            let counts = *counts.get_or_insert_with(|| {
                task.succeeded
                    && task.partition.is_none_or(|partition| {
                        let stage = computed.entry(task.stage.stage).or_default();
                        stage.insert(partition, partitions_left)
                    })
            });
            tracked.add(task, update, counts);
        });
    }

    /// What the driver told in the name of an execution; several times for the
    /// same metric it adds up, as in Spark.
    pub(super) fn driver_update(&mut self, execution: u64, id: u64, value: i64) {
        let (Ok(value), Some(tracked)) = (u64::try_from(value), self.map.get_mut(&id)) else {
            return;
        };
        let known = tracked.driver.iter_mut().find(|(teller, _)| *teller == execution);
        if let Some((_, sum)) = known {
            *sum = sum.saturating_add(value);
        } else if tracked.driver.len() < MOST_PARTS {
            tracked.driver.push((execution, value));
        }
    }

    /// A stage ended, and its accumulators had come to these values. It is
    /// believed only where no task told anything at all: their ends are
    /// missing from the log then.
    pub(super) fn stage_completed(&mut self, stage: StageId, values: &[(u64, i64)]) {
        for (id, value) in values {
            let Ok(value) = u64::try_from(*value) else { continue };
            if let Some(tracked) = self.map.get_mut(id)
                && tracked.parts.is_empty()
                && value > 0
            {
                tracked.parts.push(Part {
                    stage,
                    total: value,
                    tasks: 0,
                    largest: 0,
                    largest_task: 0,
                    wasted: 0,
                });
            }
        }
    }

    /// What an accumulator is to an execution that has these stages; also
    /// calls `ran` for each stage attempt of it that told of the accumulator.
    pub(super) fn value(
        &self,
        execution: u64,
        id: u64,
        is_own: impl Fn(u32) -> bool,
        mut ran: impl FnMut(StageId),
    ) -> Option<Box<MetricValue>> {
        let tracked = self.map.get(&id)?;
        let unit = tracked.unit;
        if tracked.driver.is_empty() && tracked.parts.is_empty() {
            return None;
        }
        let mut value = MetricValue::default();
        for (teller, told) in &tracked.driver {
            let sum = if *teller == execution { &mut value.total } else { &mut value.elsewhere };
            *sum = sum.saturating_add(told.saturating_mul(unit));
        }
        for part in &tracked.parts {
            let total = part.total.saturating_mul(unit);
            if !is_own(part.stage.stage) {
                value.elsewhere = value.elsewhere.saturating_add(total);
                continue;
            }
            ran(part.stage);
            value.total = value.total.saturating_add(total);
            value.tasks += part.tasks;
            value.wasted = value.wasted.saturating_add(part.wasted.saturating_mul(unit));
            let largest = part.largest.saturating_mul(unit);
            if part.tasks > 0 && value.largest.is_none_or(|known| known.value < largest) {
                value.largest = Some(LargestTask {
                    value: largest,
                    stage: part.stage,
                    task_id: part.largest_task,
                });
            }
        }
        Some(Box::new(value))
    }
}

impl Tracked {
    fn add(&mut self, task: EndedTask, update: u64, counts: bool) {
        // Mostly the stage that ran last.
        let known = self.parts.iter().rposition(|part| part.stage == task.stage);
        let place = known.unwrap_or_else(|| {
            if self.parts.len() < MOST_PARTS {
                self.parts.push(Part {
                    stage: task.stage,
                    total: 0,
                    tasks: 0,
                    largest: 0,
                    largest_task: 0,
                    wasted: 0,
                });
            }
            self.parts.len() - 1
        });
        let Some(part) = self.parts.get_mut(place) else { return };
        if !counts {
            part.wasted = part.wasted.saturating_add(update);
            return;
        }
        part.total = part.total.saturating_add(update);
        if part.tasks == 0 || update > part.largest {
            part.largest = update;
            part.largest_task = task.id;
        }
        part.tasks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: StageId = StageId { stage: 3, attempt: 0 };
    const AGAIN: StageId = StageId { stage: 3, attempt: 1 };

    fn task(stage: StageId, partition: u32, id: u64, succeeded: bool) -> EndedTask {
        EndedTask { stage, partition: Some(partition), id, succeeded }
    }

    fn value(accumulators: &Accumulators, own: u32) -> Option<MetricValue> {
        let is_own = |stage| stage == own;
        accumulators.value(1, 7, is_own, |_| {}).map(|value| *value)
    }

    #[test]
    fn a_partition_counts_once() {
        let mut accumulators = Accumulators::default();
        accumulators.hold(7, 1);
        for (task, update) in [
            (task(FIRST, 0, 1, true), 10),
            (task(FIRST, 1, 2, false), 4),
            (task(FIRST, 1, 3, true), 30),
            // A second copy, and a killed one that counts backwards.
            (task(FIRST, 1, 4, true), 30),
            (task(FIRST, 2, 5, false), -5),
            // Lost with its executor and computed again.
            (task(AGAIN, 0, 6, true), 10),
            (task(AGAIN, 2, 7, true), 20),
            // Of another stage, and of nobody's plan.
            (task(StageId { stage: 9, attempt: 0 }, 0, 8, true), 1_000),
        ] {
            accumulators.task_ended(task, |each| {
                each(8, update);
                each(7, update);
            });
        }
        let value = value(&accumulators, 3).expect("told");
        assert_eq!((value.total, value.tasks), (60, 3));
        assert_eq!(value.largest, Some(LargestTask { value: 30, stage: FIRST, task_id: 3 }));
        assert_eq!(value.wasted, 4 + 30 + 10);
        assert_eq!(value.elsewhere, 1_000);
        assert_eq!(accumulators.len(), 1);
    }

    #[test]
    fn the_driver_and_the_stage_s_end_tell_too() {
        let mut accumulators = Accumulators::default();
        accumulators.hold(7, 1);
        accumulators.driver_update(1, 7, 5);
        accumulators.driver_update(1, 7, -1);
        accumulators.driver_update(1, 7, 6);
        accumulators.driver_update(2, 7, 1_000);
        let told = value(&accumulators, 3).expect("told");
        assert_eq!((told.total, told.elsewhere), (11, 1_000));
        accumulators.stage_completed(FIRST, &[(7, 100)]);
        assert_eq!(value(&accumulators, 3).map(|value| value.total), Some(111));
        // With a task to tell, the stage's word is not needed.
        accumulators.hold(9, 1_000_000);
        accumulators.task_ended(task(FIRST, 0, 1, true), |each| each(9, 3));
        accumulators.stage_completed(FIRST, &[(9, 100)]);
        let value = accumulators.value(1, 9, |_| true, |_| {});
        assert_eq!(value.map(|value| value.total), Some(3_000_000));
    }

    #[test]
    fn what_nobody_names_is_forgotten() {
        let mut accumulators = Accumulators::default();
        accumulators.hold(7, 1);
        accumulators.hold(7, 1);
        accumulators.release(7);
        accumulators.task_ended(task(FIRST, 0, 1, true), |each| each(7, 3));
        assert_eq!(value(&accumulators, 3).map(|value| value.total), Some(3));
        accumulators.release(7);
        assert_eq!(value(&accumulators, 3), None);
        assert_eq!(accumulators.len(), 0);
    }
}
