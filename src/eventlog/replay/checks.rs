//! Numbers that cannot be true do not enter the model.
//!
//! Spark has written run times since 1970 (SPARK-32898), negative spans where
//! clocks of two machines met (SPARK-9187), and counters that ran over. Such
//! a value is dropped, alone, and the run is marked.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::eventlog::field::Number;
use crate::model::DataQuality;

/// 1 January 2100: later moments are no moments.
const LATEST_MILLIS: i64 = 4_102_444_800_000;

/// Ten years: longer spans are no spans.
const LONGEST_MILLIS: u64 = 315_360_000_000;

/// An exbibyte, or as many records.
const LARGEST_COUNT: u64 = 1 << 60;

/// Characters kept of names.
const NAME_LENGTH: usize = 2_000;

/// What is known to be wrong, and the latest moment seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Checks {
    pub(super) quality: BTreeSet<DataQuality>,
    pub(super) latest: Option<Timestamp>,
}

impl Checks {
    pub(super) fn mark(&mut self, quality: DataQuality) {
        self.quality.insert(quality);
    }

    fn implausible<T>(&mut self) -> Option<T> {
        self.mark(DataQuality::ImplausibleValues);
        None
    }

    /// A moment in milliseconds since the epoch. Spark writes 0 or -1 where
    /// it has none.
    pub(super) fn millis(&mut self, number: Number) -> Option<i64> {
        match number.get()? {
            0 | -1 => None,
            millis @ 1..=LATEST_MILLIS => Some(millis),
            _ => self.implausible(),
        }
    }

    /// The same as a timestamp; also the latest moment, if it is.
    pub(super) fn time(&mut self, number: Number) -> Option<Timestamp> {
        let time = Timestamp::from_millisecond(self.millis(number)?).ok()?;
        self.latest = self.latest.max(Some(time));
        Some(time)
    }

    /// A moment that was told in another form.
    pub(super) fn moment(&mut self, time: Timestamp) {
        if (1..=LATEST_MILLIS).contains(&time.as_millisecond()) {
            self.latest = self.latest.max(Some(time));
        }
    }

    /// A span in milliseconds; absent is zero.
    pub(super) fn span_millis(&mut self, number: Number) -> Option<Duration> {
        self.bounded(number, LONGEST_MILLIS).map(Duration::from_millis)
    }

    /// A span in nanoseconds; absent is zero.
    pub(super) fn span_nanos(&mut self, number: Number) -> Option<Duration> {
        self.bounded(number, LONGEST_MILLIS * 1_000_000).map(Duration::from_nanos)
    }

    /// Bytes or records; absent is zero.
    pub(super) fn count(&mut self, number: Number) -> Option<u64> {
        self.bounded(number, LARGEST_COUNT)
    }

    fn bounded(&mut self, number: Number, largest: u64) -> Option<u64> {
        match number.get() {
            None => Some(0),
            Some(_) => match number.count() {
                Some(value) if value <= largest => Some(value),
                _ => self.implausible(),
            },
        }
    }

    /// The time a task ran, unless it is longer than the task with a second
    /// of tolerance. `cpus`: Spark multiplies run time by the task's cores
    /// since SPARK-51666.
    pub(super) fn run_time(
        &mut self,
        number: Number,
        duration: Option<Duration>,
        cpus: impl FnOnce() -> f64,
    ) -> Option<Duration> {
        let run_time = self.span_millis(number)?;
        let Some(duration) = duration else { return Some(run_time) };
        let tolerance = Duration::from_secs(1);
        if run_time <= duration + tolerance
            || run_time.as_secs_f64() <= duration.as_secs_f64() * cpus().max(1.0) + 1.0
        {
            return Some(run_time);
        }
        self.implausible()
    }
}

/// The first lines of a text of Spark's, for people: at most three and 500
/// characters.
pub(super) fn first_lines(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let lines: Vec<&str> = text.lines().take(3).collect();
    Some(lines.join("\n").chars().take(500).collect())
}

/// A name, cut where nobody reads on.
pub(super) fn name(text: &str) -> String {
    match text.char_indices().nth(NAME_LENGTH) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(json: &str) -> Number {
        serde_json::from_str(json).expect("a number")
    }

    #[test]
    fn absurd_values_are_dropped_and_marked() {
        let mut checks = Checks::default();
        assert_eq!(checks.count(number("5")), Some(5));
        assert_eq!(checks.count(number("null")), Some(0));
        assert_eq!(checks.time(number("-1")), None);
        assert!(checks.quality.is_empty(), "what Spark means by nothing is nothing wrong");
        for absurd in ["-5", "99999999999999999999", "1e300"] {
            let mut checks = Checks::default();
            assert_eq!(checks.count(number(absurd)), None, "{absurd}");
            assert!(checks.quality.contains(&DataQuality::ImplausibleValues));
        }
        let mut checks = Checks::default();
        assert_eq!(checks.time(number("9999999999999999")), None);
        assert_eq!(checks.latest, None);
    }

    #[test]
    fn a_task_does_not_run_longer_than_it_is() {
        let mut checks = Checks::default();
        let duration = Some(Duration::from_secs(10));
        let millis = |value: &str| number(value);
        assert!(checks.run_time(millis("10900"), duration, || 1.0).is_some());
        assert!(checks.run_time(millis("20900"), duration, || 2.0).is_some());
        assert!(checks.quality.is_empty());
        assert!(checks.run_time(millis("1796009135010"), duration, || 1.0).is_none());
        assert!(checks.run_time(millis("11001"), duration, || 1.0).is_none());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(first_lines("\n a\nb\nc\nd").as_deref(), Some("a\nb\nc"));
        assert_eq!(first_lines("  \n"), None);
        assert_eq!(name(&"é".repeat(3_000)).chars().count(), NAME_LENGTH);
    }
}
