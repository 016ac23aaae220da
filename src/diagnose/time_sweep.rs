//! One pass over the beginnings and ends of tasks that shares each instant of
//! a window among those that run in it.
//!
//! With `W(t)` tasks running at `t`, each gets `dt / W(t)` of every instant.
//! The integral of `1 / W` up to each change is kept, so that a task's share
//! is the difference of two of its values: O(n log n), however many overlap.

use std::time::Duration;

use super::steps::Spans;
use super::time_split::{BlockedBy, TimePart, TimeSplit};

/// Parts of a task: those of [`TimePart::ALL`] from `Scheduling` on.
pub(super) const TASK_PARTS: usize = 8;
/// Where they begin.
const FIRST_TASK_PART: usize = TimePart::Scheduling as usize;

/// A task attempt, or several of which only sums are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Milliseconds since the epoch.
    pub(super) from: i64,
    pub(super) to: i64,
    /// How many tasks it stands for, in thousandths: whole, so that sums
    /// return to 0.
    pub(super) weight: u32,
    /// Shares of its time, together 1.
    pub(super) parts: [f32; TASK_PARTS],
    /// What its stage most likely waited for.
    pub(super) blocked_by: BlockedBy,
}

impl Piece {
    pub(super) const ONE: u32 = 1_000;

    /// The weight of so many tasks at once: at least one thousandth.
    pub(super) fn weight(tasks: f64) -> u32 {
        (tasks * f64::from(Self::ONE)).clamp(1.0, 1e9) as u32
    }
}

/// What is split, in milliseconds since the epoch.
pub(super) struct Window<'a> {
    pub(super) from: i64,
    pub(super) to: i64,
    /// When executors were there.
    pub(super) executors: &'a Spans,
    /// When jobs ran.
    pub(super) jobs: &'a Spans,
}

/// The window by what held it up. `estimated` is left to the caller.
pub(super) fn split<'a>(window: &Window<'_>, pieces: impl Iterator<Item = &'a Piece>) -> TimeSplit {
    let (from, to) = (window.from, window.to.max(window.from));
    let executors = window.executors.clip(from, to);
    let open = executors.intersect(&window.jobs.clip(from, to));
    let pieces: Vec<(i64, i64, &Piece)> = pieces
        .map(|piece| (piece.from.clamp(from, to), piece.to.clamp(from, to), piece))
        .filter(|(from, to, _)| from < to)
        .collect();
    let shares = Shares::of(&open, &pieces);

    let mut parts = [0.0_f64; TimePart::ALL.len()];
    parts[TimePart::Resources as usize] = (to.abs_diff(from) - executors.millis()) as f64;
    parts[TimePart::Driver as usize] = (executors.millis() - open.millis()) as f64;
    parts[TimePart::Scheduling as usize] = (open.millis() - shares.busy.min(open.millis())) as f64;
    let mut blocked = [0.0_f64; BlockedBy::ALL.len()];
    for (from, to, piece) in &pieces {
        let share = shares.between(*from, *to) * f64::from(piece.weight);
        for (part, of_it) in parts.iter_mut().skip(FIRST_TASK_PART).zip(piece.parts) {
            *part += share * f64::from(of_it);
        }
        blocked[piece.blocked_by as usize] += share * f64::from(piece.parts[TASK_PARTS - 1]);
    }
    whole_microseconds(to.abs_diff(from), parts, likeliest(blocked))
}

/// `1 / W` integrated over the open time up to each change of `W`.
struct Shares {
    at: Vec<i64>,
    integral: Vec<f64>,
    /// Open milliseconds in which anything ran.
    busy: u64,
}

impl Shares {
    fn of(open: &Spans, pieces: &[(i64, i64, &Piece)]) -> Self {
        // Openings and closings change nothing of the weight.
        let mut changes: Vec<(i64, i64, i64)> = Vec::new();
        for (from, to, piece) in pieces {
            changes.push((*from, i64::from(piece.weight), 0));
            changes.push((*to, -i64::from(piece.weight), 0));
        }
        for (from, to) in open.iter() {
            changes.push((from, 0, 1));
            changes.push((to, 0, -1));
        }
        changes.sort_unstable();
        let mut shares =
            Self { at: Vec::with_capacity(changes.len()), integral: Vec::new(), busy: 0 };
        let (mut weight, mut opened, mut integral, mut since) = (0_i64, 0_i64, 0.0, 0_i64);
        for (at, by, opens) in changes {
            if weight > 0 && opened > 0 {
                let millis = at.abs_diff(since);
                integral += millis as f64 / weight as f64;
                shares.busy = shares.busy.saturating_add(millis);
            }
            since = at;
            weight += by;
            opened += opens;
            shares.at.push(at);
            shares.integral.push(integral);
        }
        shares
    }

    /// The integral between two of the changes, per unit of weight.
    fn between(&self, from: i64, to: i64) -> f64 {
        let up_to = |when: i64| {
            let place = self.at.partition_point(|at| *at < when);
            self.integral.get(place).copied().unwrap_or_default()
        };
        (up_to(to) - up_to(from)).max(0.0)
    }
}

fn likeliest(blocked: [f64; BlockedBy::ALL.len()]) -> Option<BlockedBy> {
    BlockedBy::ALL
        .into_iter()
        .zip(blocked)
        .filter(|(_, millis)| *millis > 0.0)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(by, _)| by)
}

/// Parts in milliseconds to whole microseconds that sum to the whole exactly:
/// what rounding leaves goes to the largest.
fn whole_microseconds(
    total: u64,
    parts: [f64; TimePart::ALL.len()],
    blocked_by: Option<BlockedBy>,
) -> TimeSplit {
    let total = total.saturating_mul(1_000);
    let mut micros = parts.map(|part| ((part * 1_000.0) as u64).min(total));
    let sum = micros.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    if let Some(largest) = micros.iter_mut().max_by_key(|part| **part) {
        *largest = largest.saturating_add(total).saturating_sub(sum);
    }
    TimeSplit {
        total: Duration::from_micros(total),
        parts: micros.map(Duration::from_micros),
        blocked_by: blocked_by.filter(|_| micros[TimePart::Blocked as usize] > 0),
        estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(from: i64, to: i64, parts: [f32; TASK_PARTS]) -> Piece {
        Piece { from, to, weight: Piece::ONE, parts, blocked_by: BlockedBy::Unknown }
    }

    const CPU: [f32; TASK_PARTS] = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    const BLOCKED: [f32; TASK_PARTS] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];

    fn seconds(split: &TimeSplit, part: TimePart) -> f64 {
        split.part(part).as_secs_f64()
    }

    #[test]
    fn each_instant_goes_where_it_belongs() {
        // 0-1 s nobody; 1-2 s executors; 2-10 s a job: 2-3 s nothing runs,
        // 3-5 s one task, 5-7 s two, 7-8 s the other; 8-10 s nothing.
        let executors = Spans::union(vec![(1_000, i64::MAX)]);
        let jobs = Spans::union(vec![(2_000, 10_000)]);
        let window = Window { from: 0, to: 11_000, executors: &executors, jobs: &jobs };
        let pieces = [piece(3_000, 7_000, CPU), piece(5_000, 8_000, BLOCKED)];
        let split = split(&window, pieces.iter());
        let of = |part| seconds(&split, part);
        assert!((of(TimePart::Resources) - 1.0).abs() < 1e-3);
        assert!((of(TimePart::Driver) - 2.0).abs() < 1e-3);
        assert!((of(TimePart::Scheduling) - 3.0).abs() < 1e-3);
        assert!((of(TimePart::Cpu) - 3.0).abs() < 1e-3);
        assert!((of(TimePart::Blocked) - 2.0).abs() < 1e-3);
        assert_eq!(split.parts.iter().sum::<Duration>(), split.total);
        assert_eq!(split.blocked_by, Some(BlockedBy::Unknown));
        assert_eq!(split.largest(), Some(TimePart::Cpu));
    }

    /// What the definition says, instant by instant.
    fn by_hand(window: &Window<'_>, pieces: &[Piece]) -> [f64; 10] {
        let within = |spans: &Spans, at: i64| spans.iter().any(|(from, to)| from <= at && at < to);
        let mut parts = [0.0; 10];
        for at in window.from..window.to {
            let running: Vec<&Piece> =
                pieces.iter().filter(|piece| piece.from <= at && at < piece.to).collect();
            let all: f64 = running.iter().map(|piece| f64::from(piece.weight)).sum();
            if !within(window.executors, at) {
                parts[TimePart::Resources as usize] += 1.0;
            } else if !within(window.jobs, at) {
                parts[TimePart::Driver as usize] += 1.0;
            } else if running.is_empty() {
                parts[TimePart::Scheduling as usize] += 1.0;
            } else {
                for piece in running {
                    for (part, share) in piece.parts.iter().enumerate() {
                        parts[FIRST_TASK_PART + part] +=
                            f64::from(piece.weight) / all * f64::from(*share);
                    }
                }
            }
        }
        parts
    }

    fn spans() -> impl Strategy<Value = Spans> {
        proptest::collection::vec((0_i64..400, 0_i64..200), 0..5)
            .prop_map(|spans| Spans::union(spans.into_iter().map(|(at, n)| (at, at + n)).collect()))
    }

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let one = (-50_i64..450, 0_i64..200, 1_u32..5_000, proptest::array::uniform8(0_u8..10));
        proptest::collection::vec(one, 0..25).prop_map(|pieces| {
            pieces
                .into_iter()
                .map(|(from, long, weight, parts)| {
                    let sum = parts.iter().map(|part| f32::from(*part)).sum::<f32>().max(1.0);
                    let mut parts = parts.map(|part| f32::from(part) / sum);
                    parts[1] += 1.0 - parts.iter().sum::<f32>();
                    let blocked_by = BlockedBy::ALL[weight as usize % 5];
                    Piece { from, to: from + long, weight, parts, blocked_by }
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn the_sweep_is_the_definition(
            executors in spans(), jobs in spans(), pieces in pieces(), from in 0_i64..100, long in 0_i64..400,
        ) {
            let window = Window { from, to: from + long, executors: &executors, jobs: &jobs };
            let split = split(&window, pieces.iter());
            prop_assert_eq!(split.total, Duration::from_millis(long as u64));
            prop_assert_eq!(split.parts.iter().sum::<Duration>(), split.total);
            for (part, millis) in split.parts.iter().zip(by_hand(&window, &pieces)) {
                let ours = part.as_secs_f64() * 1_000.0;
                prop_assert!((ours - millis).abs() < 0.05, "{:?} {:?}", split, millis);
            }
        }
    }
}
