//! What polling a driver may cost: the driver's UI shares its JVM with the
//! work.

use std::time::Duration;

use jiff::Timestamp;

/// What one poll cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CycleCost {
    pub requests: u64,
    /// Bytes of bodies as they came over the wire.
    pub bytes: u64,
    /// Whether this cycle did more than look at what runs: it read the full
    /// lists, or the tasks of finished stages. Such a cycle is under the
    /// budget of a minute only.
    pub extended: bool,
}

/// Requests of a normal cycle, at most.
pub const REQUESTS_PER_CYCLE: u64 = 5;

/// Bytes of a normal cycle: beyond them a cycle asks nothing optional.
pub const BYTES_PER_CYCLE: u64 = 64 << 10;

/// Bytes of a minute.
pub const BYTES_PER_MINUTE: u64 = 2 << 20;

/// Bytes that may be spent: filled evenly, at most a minute's worth.
///
/// The size of an answer is known only afterwards, so the purse may go below
/// zero by one answer; nothing optional is then asked until it is filled
/// again, which holds the mean at [`BYTES_PER_MINUTE`].
#[derive(Debug)]
pub(super) struct Purse {
    left: i64,
    filled: Option<Timestamp>,
}

impl Purse {
    pub(super) fn new() -> Self {
        Self { left: BYTES_PER_MINUTE as i64, filled: None }
    }

    /// Fills it up to `now`. A clock that jumps fills no more than a minute,
    /// and takes nothing away.
    pub(super) fn fill(&mut self, now: Timestamp) {
        let elapsed = self.filled.map_or(Duration::ZERO, |filled| {
            Duration::try_from(now.duration_since(filled)).unwrap_or_default()
        });
        let minutes = elapsed.as_secs_f64().min(60.0) / 60.0;
        let more = (BYTES_PER_MINUTE as f64 * minutes) as i64;
        self.left = self.left.saturating_add(more).min(BYTES_PER_MINUTE as i64);
        self.filled = Some(now);
    }

    pub(super) fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Whether an optional question may be asked, given what this cycle has
    /// cost already.
    pub(super) fn allows(&self, cycle_bytes: u64) -> bool {
        self.left > i64::try_from(cycle_bytes).unwrap_or(i64::MAX)
    }

    /// The same for something that could as well wait a minute: half a
    /// minute's worth must be left.
    pub(super) fn is_half_full(&self) -> bool {
        self.left > BYTES_PER_MINUTE as i64 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
    }

    #[test]
    fn the_mean_stays_within_the_budget() {
        let mut purse = Purse::new();
        let mut spent = 0;
        for second in (0..6_000).step_by(10) {
            purse.fill(at(second));
            if purse.allows(0) {
                purse.spend(3 << 20);
                spent += 3 << 20;
            }
        }
        // 100 minutes, and what the purse held at first, and one answer.
        assert!(spent <= 102 * BYTES_PER_MINUTE + (3 << 20), "{spent}");
        assert!(spent >= 95 * BYTES_PER_MINUTE, "{spent}");
    }

    #[test]
    fn a_clock_that_jumps_fills_a_minute_at_most() {
        let mut purse = Purse::new();
        purse.fill(at(0));
        purse.spend(3 * BYTES_PER_MINUTE);
        purse.fill(at(-1_000_000));
        assert!(!purse.allows(0));
        purse.fill(at(1_000_000));
        assert!(!purse.allows(0), "a minute's worth is not enough after three");
        purse.fill(at(2_000_000));
        purse.fill(at(2_000_060));
        assert!(purse.allows(BYTES_PER_CYCLE));
    }
}
