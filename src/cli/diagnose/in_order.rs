//! Several jobs at a time, their results one after the other in the order in
//! which the jobs were given.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the threads share.
struct State<J, R> {
    jobs: std::iter::Enumerate<std::vec::IntoIter<J>>,
    /// Done, and not yet taken; nothing came of a job whose thread died.
    done: BTreeMap<usize, Option<R>>,
    /// The next result to be taken.
    next: usize,
    count: usize,
    stopped: bool,
}

struct Shared<J, R> {
    state: Mutex<State<J, R>>,
    changed: Condvar,
    /// Jobs that may be begun before the oldest one's result is taken.
    ahead: usize,
}

/// Runs `jobs` on so many threads and hands `take` their results, lazily.
/// Memory holds at most twice as many results as there are threads.
pub(super) fn in_order<J: Send, R: Send, T>(
    jobs: Vec<J>,
    threads: usize,
    run: impl Fn(J) -> R + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = R>) -> T,
) -> T {
    let threads = threads.clamp(1, jobs.len().max(1));
    let count = jobs.len();
    let jobs = jobs.into_iter().enumerate();
    let state = State { jobs, done: BTreeMap::new(), next: 0, count, stopped: false };
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), ahead: 2 * threads };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, job)) = shared.begin() {
                    let mut done = Done { shared: &shared, number, result: None };
                    done.result = Some(run(job));
                }
            });
        }
        let mut results = std::iter::from_fn(|| shared.next());
        // However `take` ends, no further job is begun.
        let _stop = Stop(&shared);
        take(&mut results)
    })
}

impl<J, R> Shared<J, R> {
    fn state(&self) -> MutexGuard<'_, State<J, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Option<(usize, J)> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            let begun = state.count - state.jobs.len();
            if begun < state.next + self.ahead {
                return state.jobs.next();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next result, once it is there; `None` after the last.
    fn next(&self) -> Option<R> {
        let mut state = self.state();
        while state.next < state.count {
            let wanted = state.next;
            if let Some(result) = state.done.remove(&wanted) {
                state.next += 1;
                self.changed.notify_all();
                if result.is_some() {
                    return result;
                }
                continue;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// Tells of a job's end, also where its thread panics.
struct Done<'a, J, R> {
    shared: &'a Shared<J, R>,
    number: usize,
    result: Option<R>,
}

impl<J, R> Drop for Done<'_, J, R> {
    fn drop(&mut self) {
        self.shared.state().done.insert(self.number, self.result.take());
        self.shared.changed.notify_all();
    }
}

struct Stop<'a, J, R>(&'a Shared<J, R>);

impl<J, R> Drop for Stop<'_, J, R> {
    fn drop(&mut self) {
        self.0.state().stopped = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let begun = AtomicUsize::new(0);
        let taken = AtomicUsize::new(0);
        let jobs: Vec<usize> = (0..200).collect();
        let run = |job: usize| {
            let ahead = begun.fetch_add(1, Ordering::SeqCst) - taken.load(Ordering::SeqCst);
            assert!(ahead <= 9, "{ahead} results would be held");
            std::thread::sleep(Duration::from_micros((job as u64 * 7_919) % 900));
            job * 2
        };
        let results = in_order(jobs, 4, run, |results| {
            results
                .inspect(|_| {
                    taken.fetch_add(1, Ordering::SeqCst);
                })
                .collect::<Vec<_>>()
        });
        assert_eq!(results, (0..200).map(|job| job * 2).collect::<Vec<_>>());
    }

    #[test]
    fn whoever_stops_taking_stops_the_work() {
        let begun = AtomicUsize::new(0);
        let run = |job: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            job
        };
        let first = in_order((0..1_000).collect(), 2, run, |results| results.next());
        assert_eq!(first, Some(0));
        assert!(begun.load(Ordering::SeqCst) < 10);
        let none: Option<usize> = in_order(Vec::new(), 2, run, |results| results.next());
        assert_eq!(none, None);
    }

    #[test]
    fn a_thread_that_dies_holds_up_nothing() {
        let mut all = Vec::new();
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            in_order(
                (0..10).collect(),
                2,
                |job: usize| {
                    assert_ne!(job, 3, "as a test wants");
                    job
                },
                |results| all.extend(results),
            );
        }));
        assert!(died.is_err(), "it is not kept secret");
        assert_eq!(all, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    }
}
