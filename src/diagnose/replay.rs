//! What a fault in a stage cost: the stage's task attempts are scheduled
//! again, in launch order, each on the slot that is free first, once as they
//! were and once with the fault removed.
//!
//! The saving is the lesser of the two differences: between the two replays
//! (so that what the replay cannot explain is not claimed), and between the
//! real span and the mended replay (so that no more is claimed than
//! happened). Whole milliseconds throughout: an even stage saves exactly 0.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What mending would save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Saving {
    /// Of the stage's span.
    pub(super) wall: Duration,
    /// Slot time that mended tasks no longer need.
    pub(super) removed: Duration,
}

/// When the last of these tasks ends, in milliseconds from the first launch:
/// list scheduling, each task on the slot that is free first.
pub(super) fn makespan(tasks: &[u64], slots: usize) -> u64 {
    let slots = slots.max(1);
    if tasks.len() <= slots {
        return tasks.iter().copied().max().unwrap_or(0);
    }
    let mut free: BinaryHeap<Reverse<u64>> = (0..slots).map(|_| Reverse(0)).collect();
    let mut last = 0;
    for task in tasks {
        let Reverse(at) = free.pop().unwrap_or(Reverse(0));
        let end = at.saturating_add(*task);
        last = last.max(end);
        free.push(Reverse(end));
    }
    last
}

/// The saving of turning `original` into `mended` (both in launch order and
/// milliseconds on a slot) in a stage that took `span` on `slots`.
pub(super) fn saving(original: &[u64], mended: &[u64], slots: usize, span: Duration) -> Saving {
    let before = makespan(original, slots);
    let after = Duration::from_millis(makespan(mended, slots));
    let explained = Duration::from_millis(before).saturating_sub(after);
    let happened = span.saturating_sub(after);
    let total = |tasks: &[u64]| tasks.iter().fold(0, |sum: u64, task| sum.saturating_add(*task));
    let removed = Duration::from_millis(total(original).saturating_sub(total(mended)));
    Saving { wall: explained.min(happened).min(span), removed }
}

/// `total` shared out over `n` tasks in whole milliseconds, the larger parts
/// first.
pub(super) fn even(total: u64, n: usize) -> impl Iterator<Item = u64> {
    let n = (n as u64).max(1);
    let (part, rest) = (total / n, total % n);
    (0..n).map(move |i| part + u64::from(i < rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn tasks_take_the_slot_that_is_free_first() {
        assert_eq!(makespan(&[4, 1, 1, 1, 1], 2), 4);
        assert_eq!(makespan(&[1, 1, 1, 1, 4], 2), 6);
        assert_eq!(makespan(&[], 2), 0);
        assert_eq!(makespan(&[7, 3], 0), 10);
        assert_eq!(makespan(&[u64::MAX, 5], 1), u64::MAX);
    }

    #[test]
    fn a_long_task_that_others_run_beside_costs_little() {
        // 100 tasks of 1 s and one of 10 s, launched first, on 10 slots: the
        // others fill the time.
        let mut original = vec![10_000];
        original.extend([1_000; 100]);
        let mended: Vec<u64> = even(110_000, 101).collect();
        let first = saving(&original, &mended, 10, span(12_000)).wall;
        original.rotate_left(1);
        let last = saving(&original, &mended, 10, span(20_000)).wall;
        assert!(first < Duration::from_secs(1), "{first:?}");
        assert!(last > Duration::from_secs(7), "{last:?}");
    }

    #[test]
    fn no_more_is_claimed_than_happened() {
        // The replay says 8 s where the stage took 5: slots were more.
        let result = saving(&[1_000, 7_000, 1_000], &[1_000; 3], 1, span(5_000));
        assert_eq!(result.wall, span(2_000));
        assert_eq!(result.removed, span(6_000));
    }

    proptest! {
        #[test]
        fn never_above_the_span_and_never_negative(
            original in proptest::collection::vec(0_u64..100_000, 0..80),
            mended in proptest::collection::vec(0_u64..100_000, 0..80),
            slots in 0_usize..20,
            took in 0_u64..1_000_000,
        ) {
            let result = saving(&original, &mended, slots, span(took));
            prop_assert!(result.wall <= span(took));
        }

        #[test]
        fn an_even_stage_saves_nothing(
            task in 0_u64..100_000, n in 1_usize..80, slots in 1_usize..20, took in 0_u64..1_000_000,
        ) {
            let original = vec![task; n];
            let mended: Vec<u64> = even(task * n as u64, n).collect();
            prop_assert_eq!(saving(&original, &mended, slots, span(took)).wall, Duration::ZERO);
        }

        #[test]
        fn a_longer_straggler_never_saves_less(
            mut tasks in proptest::collection::vec(1_u64..1_000, 2..60),
            at in 0_usize..60,
            more in 0_u64..100_000,
            slots in 1_usize..12,
        ) {
            let mended = tasks.clone();
            let at = at % tasks.len();
            tasks[at] += 1_000;
            let before = saving(&tasks, &mended, slots, span(u64::MAX / 2)).wall;
            tasks[at] += more;
            let after = saving(&tasks, &mended, slots, span(u64::MAX / 2)).wall;
            prop_assert!(after >= before);
        }

        #[test]
        fn a_hotter_key_never_saves_less(
            tasks in proptest::collection::vec(1_u64..1_000, 2..60),
            more in 0_u64..100_000,
            slots in 1_usize..12,
        ) {
            // Once the hot task outlasts the others together.
            let run = |hot: u64| {
                let mut original = tasks.clone();
                original.push(hot);
                let mended: Vec<u64> = even(original.iter().sum(), original.len()).collect();
                saving(&original, &mended, slots, span(u64::MAX / 2)).wall
            };
            let hot: u64 = tasks.iter().sum();
            // Whole milliseconds round a task by one at most, once a wave.
            let waves = (tasks.len() as u64 + 1).div_ceil(slots as u64);
            prop_assert!(run(hot + more) + span(waves) >= run(hot));
        }

        #[test]
        fn even_parts_add_up(total in 0_u64..1_000_000, n in 1_usize..300) {
            prop_assert_eq!(even(total, n).sum::<u64>(), total);
        }
    }
}
