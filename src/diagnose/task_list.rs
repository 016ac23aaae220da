//! The tasks of a stage for a replay: from its timeline, or, where the source
//! has none, put together from quantiles and the slowest tasks.

use std::time::Duration;

use super::context::StageView;
use super::replay::{self, Saving};
use crate::model::{Quantiles, Task};

/// One attempt on a slot, in milliseconds of wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Launch to finish.
    pub(super) held: u64,
    /// Of it, run time.
    pub(super) run: u64,
    /// Of it, garbage collection.
    pub(super) gc: u64,
    pub(super) succeeded: bool,
}

/// The attempts of a stage in launch order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskList {
    pub(super) attempts: Vec<Attempt>,
    /// Not from every task, or of a stage that still runs.
    pub(super) estimated: bool,
}

/// A list put together from quantiles never grows beyond this.
const MOST_ESTIMATED: u64 = 200_000;

impl TaskList {
    /// `None` where nothing tells how long tasks took.
    pub(super) fn of(view: &StageView<'_>) -> Option<Self> {
        let mut list = match &view.stage.timeline {
            Some(timeline) => Self {
                attempts: timeline
                    .iter()
                    .map(|task| Attempt {
                        held: u64::from(task.duration_ms),
                        run: divided(u64::from(task.run_ms), view),
                        gc: u64::from(task.gc_ms),
                        succeeded: task.succeeded,
                    })
                    .collect(),
                estimated: false,
            },
            None => match Self::from_quantiles(view) {
                Some(list) => list,
                // None has ended yet.
                None if !view.stage.running.is_empty() => {
                    Self { attempts: Vec::new(), estimated: true }
                }
                None => return None,
            },
        };
        for task in &view.stage.running {
            let elapsed = whole_millis(elapsed(task, view));
            list.attempts.push(Attempt {
                held: elapsed.max(whole_millis(task.duration)),
                run: elapsed,
                gc: whole_millis(task.metrics.gc_time),
                succeeded: true,
            });
            list.estimated = true;
        }
        Some(list)
    }

    /// As many tasks as succeeded, their run times along the quantiles with
    /// the slowest known ones at the top, scaled so that the sum is right
    /// where nothing failed. The slowest stand where they were launched, the
    /// others evenly between.
    fn from_quantiles(view: &StageView<'_>) -> Option<Self> {
        let stage = view.stage;
        let n = stage.tasks.succeeded.min(MOST_ESTIMATED);
        let quantiles = stage.measures.run_time.quantiles?;
        let known: Vec<&Task> = stage.slowest.iter().take(n as usize).collect();
        let rest = n.saturating_sub(known.len() as u64);
        let mut others: Vec<f64> =
            (0..rest).map(|i| along(&quantiles, (i as f64 + 0.5) / n as f64)).collect();
        if stage.tasks.failed == 0
            && stage.tasks.killed == 0
            && let Some(sum) = stage.measures.run_time.sum
        {
            let known_sum: f64 = known.iter().map(|task| task.metrics.run_time.as_secs_f64()).sum();
            let guessed: f64 = others.iter().sum();
            let wanted = (sum.as_secs_f64() - known_sum).max(0.0);
            if guessed > 0.0 {
                let longest =
                    known.last().map_or(quantiles.max, |task| task.metrics.run_time).as_secs_f64();
                for run in &mut others {
                    *run = (*run * wanted / guessed).min(longest);
                }
            }
        }
        let (from, to) = view.span?;
        let place = |launched: i64| {
            launched.saturating_sub(from) as f64 / (to.saturating_sub(from)).max(1) as f64
        };
        let mut placed: Vec<(f64, Attempt)> = known
            .into_iter()
            .map(|task| {
                let run = whole_millis(view.run_time(task.metrics.run_time));
                let attempt = Attempt {
                    held: whole_millis(task.duration).max(run),
                    run,
                    gc: whole_millis(task.metrics.gc_time),
                    succeeded: true,
                };
                (place(task.launched.as_millisecond()), attempt)
            })
            .collect();
        let overhead = stage
            .measures
            .deserialize_time
            .median()
            .unwrap_or_default()
            .saturating_add(stage.measures.scheduler_delay.median().unwrap_or_default());
        let overhead = whole_millis(overhead);
        let gc = gc_share(view);
        // A stride that shares no factor with most counts mixes short and long.
        let stride = 7_919_u64;
        for i in 0..rest {
            let pick = (i.wrapping_mul(stride) % rest) as usize;
            let run = divided((others.get(pick).copied().unwrap_or(0.0) * 1_000.0) as u64, view);
            let attempt = Attempt {
                held: run.saturating_add(overhead),
                run,
                gc: (run as f64 * gc) as u64,
                succeeded: true,
            };
            placed.push(((i as f64 + 0.5) / rest as f64, attempt));
        }
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let attempts = placed.into_iter().map(|(_, attempt)| attempt).collect();
        Some(Self { attempts, estimated: true })
    }

    /// Run time of all attempts together.
    pub(super) fn run_time(&self) -> Duration {
        let sum = self.attempts.iter().fold(0, |sum: u64, one| sum.saturating_add(one.run));
        Duration::from_millis(sum)
    }

    fn held(&self) -> Vec<u64> {
        self.attempts.iter().map(|attempt| attempt.held).collect()
    }

    /// The saving where each attempt would hold its slot for `mended`
    /// milliseconds; `None` without slots.
    pub(super) fn saving(
        &self,
        view: &StageView<'_>,
        mended: impl Fn(&Attempt) -> u64,
    ) -> Option<Saving> {
        let mended: Vec<u64> =
            self.attempts.iter().map(|attempt| mended(attempt).min(attempt.held)).collect();
        Some(replay::saving(&self.held(), &mended, view.slots?, view.running()))
    }

    /// The saving where the successful attempts shared their run time evenly.
    pub(super) fn saving_if_even(&self, view: &StageView<'_>) -> Option<Saving> {
        let even_of = |attempt: &&Attempt| attempt.succeeded;
        let total = self
            .attempts
            .iter()
            .filter(even_of)
            .fold(0, |sum: u64, attempt| sum.saturating_add(attempt.run));
        let mut parts = replay::even(total, self.attempts.iter().filter(even_of).count());
        let mended: Vec<u64> = self
            .attempts
            .iter()
            .map(|attempt| {
                if !attempt.succeeded {
                    return attempt.held;
                }
                let overhead = attempt.held.saturating_sub(attempt.run);
                overhead.saturating_add(parts.next().unwrap_or(0))
            })
            .collect();
        Some(replay::saving(&self.held(), &mended, view.slots?, view.running()))
    }
}

/// Run time so far of a running attempt: the time since its launch, because
/// Spark fills run time in at the end only.
pub(super) fn elapsed(task: &Task, view: &StageView<'_>) -> Duration {
    view.run_time(task.metrics.run_time).max(task.duration)
}

fn gc_share(view: &StageView<'_>) -> f64 {
    view.numbers.gc_ratio.unwrap_or(0.0).clamp(0.0, 1.0)
}

fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn divided(millis: u64, view: &StageView<'_>) -> u64 {
    if view.run_divisor > 1.0 { (millis as f64 / view.run_divisor) as u64 } else { millis }
}

/// The run time in seconds at `q`, linear between the quantiles.
fn along(quantiles: &Quantiles<Duration>, q: f64) -> f64 {
    let points = [
        (0.0, quantiles.min),
        (0.25, quantiles.p25),
        (0.5, quantiles.median),
        (0.75, quantiles.p75),
        (0.95, quantiles.p95),
        (1.0, quantiles.max),
    ];
    for pair in points.windows(2) {
        if let [(low, from), (high, to)] = pair
            && q <= *high
        {
            let part = (q - low) / (high - low);
            let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
            return from + (to - from) * part;
        }
    }
    quantiles.max.as_secs_f64()
}
