//! When a request is sent again.

use std::time::Duration;

/// What the Collector's exporters do: begin soon, grow slowly, never all at
/// the same moment.
const FIRST: Duration = Duration::from_secs(1);
const FACTOR: f64 = 1.5;
const LONGEST: Duration = Duration::from_secs(30);
/// Waits are spread over this share to both sides.
const SPREAD: f64 = 0.5;

/// A back end that asks to be left alone for a week is asked again after so
/// long.
pub(super) const LONGEST_ASKED: Duration = Duration::from_hours(1);

/// The waits between the attempts of one request.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next wait; never sooner than the back end `asked` for, from which
    /// the further ones grow.
    pub(super) fn wait(&mut self, asked: Option<Duration>) -> Duration {
        let asked = asked.unwrap_or_default().min(LONGEST_ASKED);
        let base = self.next;
        self.next = base.max(asked).mul_f64(FACTOR).min(LONGEST);
        if asked > Duration::ZERO {
            // Not all who were asked come back at the same moment.
            return asked + FIRST.mul_f64(fastrand::f64());
        }
        base.mul_f64(1.0 + SPREAD * (2.0 * fastrand::f64() - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        let mut backoff = Backoff::new();
        let waits: Vec<f64> = (0..14).map(|_| backoff.wait(None).as_secs_f64()).collect();
        assert!((0.5..=1.5).contains(&waits[0]), "{waits:?}");
        assert!(waits[1..].iter().all(|wait| (0.5..=45.0).contains(wait)), "{waits:?}");
        assert!(waits[12..].iter().all(|wait| *wait >= 15.0), "{waits:?}");
        let mut other = Backoff::new();
        let others: Vec<f64> = (0..14).map(|_| other.wait(None).as_secs_f64()).collect();
        assert_ne!(waits, others);
    }

    #[test]
    fn a_wait_that_was_asked_for_is_kept() {
        let mut backoff = Backoff::new();
        let wait = backoff.wait(Some(Duration::from_secs(20))).as_secs_f64();
        assert!((20.0..=21.0).contains(&wait), "{wait}");
        // And what follows does not begin at one second again.
        assert!(backoff.wait(None).as_secs_f64() >= 15.0);
        let wait = Backoff::new().wait(Some(Duration::from_hours(200)));
        assert!(wait <= LONGEST_ASKED + FIRST);
    }
}
