//! A token bucket: `burst` requests at once, then one each `interval`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(super) struct Bucket {
    interval: Duration,
    burst: f64,
    /// What is in it, and when that was so.
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(super) fn new(interval: Duration, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { interval, burst, level: Mutex::new((burst, Instant::now())) }
    }

    /// # Errors
    /// How long to wait for the next one, where there is none.
    pub(super) fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(level.1);
        let filled = level.0 + since.as_secs_f64() / self.interval.as_secs_f64();
        *level = (filled.min(self.burst), now.max(level.1));
        if level.0 >= 1.0 {
            level.0 -= 1.0;
            Ok(())
        } else {
            Err(self.interval.mul_f64(1.0 - level.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_at_once_and_then_one_each_interval() {
        let bucket = Bucket::new(Duration::from_secs(2), 3);
        let begun = Instant::now();
        let at = |second: f64| begun + Duration::from_secs_f64(second);
        for _ in 0..3 {
            assert_eq!(bucket.take(at(0.5)), Ok(()));
        }
        let wait = bucket.take(at(0.5)).expect_err("it is empty");
        assert!(wait > Duration::from_secs(1) && wait <= Duration::from_secs(2), "{wait:?}");
        assert!(bucket.take(at(1.0)).is_err());
        assert_eq!(bucket.take(at(2.6)), Ok(()));
        assert!(bucket.take(at(3.0)).is_err());
        // No more than a burst is saved up.
        let taken = (0..10).filter(|_| bucket.take(at(1_000.0)).is_ok()).count();
        assert_eq!(taken, 3);
    }
}
