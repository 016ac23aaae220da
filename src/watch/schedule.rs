//! When a source is asked next: at its interval, and less and less often while
//! it does not answer, never all at the same moment.

use std::time::Duration;

/// The longest wait between two tries of a source that does not answer.
const LONGEST: Duration = Duration::from_mins(5);

/// The pace of one source.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    interval: Duration,
    longest: Duration,
    failures: u32,
    /// Of a small generator: jitter needs no better randomness.
    state: u64,
}

impl Pace {
    /// `seed` tells sources apart, so that they do not march in step.
    pub(super) fn new(seed: &str) -> Self {
        let state = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { interval: Duration::ZERO, longest: LONGEST, failures: 0, state: state | 1 }
    }

    /// Waits no longer than this after failures, unless its interval is.
    #[cfg(feature = "kubernetes")]
    pub(super) fn at_most(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// From now on; to be set before the first wait.
    pub(super) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    #[cfg(test)]
    fn failures(&self) -> u32 {
        self.failures
    }

    /// After an answer: the interval, give or take a tenth.
    pub(super) fn after_success(&mut self) -> Duration {
        self.failures = 0;
        self.jittered(self.interval, 0.1)
    }

    /// After a failure: the interval doubled for each in a row, up to five
    /// minutes (or the interval, if that is longer), and never sooner than
    /// the server asked for.
    pub(super) fn after_failure(&mut self, retry_after: Option<Duration>) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let doubled = self.interval.saturating_mul(1 << (self.failures - 1).min(10));
        let wait = self.jittered(doubled.min(self.longest.max(self.interval)), 0.2);
        // A server that says "in a week" is asked again in an hour.
        wait.max(retry_after.unwrap_or_default().min(Duration::from_hours(1)))
    }

    fn jittered(&mut self, span: Duration, share: f64) -> Duration {
        // xorshift64
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let unit = (self.state >> 11) as f64 / (1_u64 << 53) as f64;
        span.mul_f64(1.0 + share * (2.0 * unit - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        pace_of("http://driver:4040")
    }

    fn pace_of(seed: &str) -> Pace {
        let mut pace = Pace::new(seed);
        pace.set_interval(Duration::from_secs(10));
        pace
    }

    #[test]
    fn backs_off_and_recovers() {
        let mut pace = pace();
        let waits: Vec<f64> = (0..12).map(|_| pace.after_failure(None).as_secs_f64()).collect();
        assert!((8.0..=12.0).contains(&waits[0]), "{waits:?}");
        assert!(waits[2] > 30.0 && waits[2] < 50.0, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= 360.0), "{waits:?}");
        assert_eq!(pace.failures(), 12);
        assert!(pace.after_success() <= Duration::from_secs(11));
        assert_eq!(pace.failures(), 0);
    }

    #[test]
    fn obeys_retry_after_within_reason() {
        let mut pace = pace();
        let wait = pace.after_failure(Some(Duration::from_secs(90)));
        assert_eq!(wait, Duration::from_secs(90));
        let wait = pace.after_failure(Some(Duration::from_hours(168)));
        assert_eq!(wait, Duration::from_hours(1));
    }

    #[test]
    fn sources_do_not_march_in_step() {
        let mut one = pace_of("a");
        let mut other = pace_of("b");
        assert_ne!(one.after_success(), other.after_success());
    }
}
