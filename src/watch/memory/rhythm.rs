//! How often runs of a name succeed, and when the next success is due.
//!
//! Twice the usual spacing is late, unless longer pauses are usual too: a job
//! of weekdays pauses for a weekend. Where runs come as people start them there
//! is no rhythm, and nothing is due: an alarm about those would be false
//! whenever people do something else.

use std::time::Duration;

use crate::config::Within;
use crate::metrics::SuccessDue;
use crate::store::{RunKey, StoredRun, Totals};

/// Successes whose spacing is learned, at least and at most.
const SUCCESSES: std::ops::RangeInclusive<usize> = 5..=50;
/// The spacing is regular where its median deviation is no more than this part
/// of its median. Runs by schedule deviate by how unevenly they take long,
/// people's by more than half.
const REGULAR: f64 = 0.25;
/// A success is due after so many times the usual spacing,
const LATE: u32 = 2;
/// and after so many times the longest pause there was.
const LONGER_THAN_EVER: f64 = 1.25;
/// What was learned is given up when it is overdue by that much, and by twice
/// what was expected: the job was retired, and nobody is to be told for ever.
const GIVEN_UP_AFTER: Duration = Duration::from_hours(7 * 24);

/// The spacing of the latest successes of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rhythm {
    pub(super) median: Duration,
    longest: Duration,
    is_regular: bool,
}

impl Rhythm {
    /// Of runs in any order. `None` below five successes.
    pub(super) fn of(runs: &[(RunKey, StoredRun)]) -> Option<Self> {
        let well = runs.iter().filter(|(_, run)| run.record.ended_well);
        Self::of_ends(well.map(|(_, run)| run.record.end_ms).collect())
    }

    fn of_ends(mut ends_ms: Vec<i64>) -> Option<Self> {
        if ends_ms.len() < *SUCCESSES.start() {
            return None;
        }
        ends_ms.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
        ends_ms.truncate(*SUCCESSES.end());
        let mut gaps: Vec<u64> = ends_ms.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
        let middle = median(&mut gaps);
        let longest = gaps.last().copied().unwrap_or(middle);
        let mut deviations: Vec<u64> = gaps.iter().map(|gap| gap.abs_diff(middle)).collect();
        let is_regular = median(&mut deviations) as f64 <= REGULAR * middle as f64 && middle > 0;
        Some(Self {
            median: Duration::from_millis(middle),
            longest: Duration::from_millis(longest),
            is_regular,
        })
    }

    /// How long after a success the next one is due; `None` without a rhythm.
    pub(super) fn within(&self) -> Option<Duration> {
        let late = self.median.saturating_mul(LATE).max(self.longest.mul_f64(LONGER_THAN_EVER));
        self.is_regular.then_some(late)
    }
}

/// When the next success of a name is due at the latest: `said` is what the operator expects, `learned` what its runs
/// tell. Of a name that is said to succeed and never did, counted from when its
/// series began.
pub(super) fn due(
    totals: &Totals,
    said: Option<Within>,
    learned: Option<Duration>,
    now_ms: i64,
) -> Option<SuccessDue> {
    let after = |from_ms: i64, span: Duration| {
        from_ms.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    };
    match said {
        Some(Within::Never) => None,
        Some(Within::Span(within)) => {
            let at_ms = after(totals.last_success_ms.unwrap_or(totals.since_ms), within.get());
            Some(SuccessDue { at_ms, learned: false })
        }
        None => {
            let within = learned?;
            let at_ms = after(totals.last_success_ms?, within);
            let given_up = after(at_ms, GIVEN_UP_AFTER.max(within.saturating_mul(2)));
            (now_ms < given_up).then_some(SuccessDue { at_ms, learned: true })
        }
    }
}

/// Sorts them. Of none, 0.
fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.len() {
        0 => 0,
        odd if odd % 2 == 1 => values[middle],
        _ => values[middle - 1].midpoint(values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const HOURS: fn(u64) -> Duration = Duration::from_hours;

    fn rhythm(ends_hours: &[f64]) -> Option<Rhythm> {
        Rhythm::of_ends(ends_hours.iter().map(|hour| (hour * HOUR as f64) as i64).collect())
    }

    #[test]
    fn five_successes_tell_the_usual_spacing() {
        assert_eq!(rhythm(&[0.0, 1.0, 2.0, 3.0]), None);
        let hourly = rhythm(&[4.0, 0.0, 1.0, 3.0, 2.0]).expect("five");
        assert_eq!(hourly.median, HOURS(1));
        assert_eq!(hourly.within(), Some(HOURS(2)));
    }

    #[test]
    fn nights_of_different_length_are_regular() {
        let nightly = rhythm(&[0.0, 24.3, 47.9, 72.5, 96.1, 119.8]).expect("six");
        let within = nightly.within().expect("a rhythm");
        assert!(within > HOURS(47) && within < HOURS(50), "{within:?}");
    }

    /// The tempting wrong verdict: on Sunday, two days after Friday's run.
    #[test]
    fn a_weekend_is_usual_for_a_job_of_weekdays() {
        let mut ends: Vec<f64> =
            (0..12).filter(|day| day % 7 < 5).map(|day| f64::from(day) * 24.0).collect();
        let weekdays = rhythm(&ends).expect("a rhythm");
        assert_eq!(weekdays.median, HOURS(24));
        assert_eq!(weekdays.within(), Some(HOURS(90)));
        // One long outage moves it as well: late is better than false.
        ends.push(12.0 * 24.0 + 240.0);
        assert!(rhythm(&ends).and_then(|one| one.within()) > Some(HOURS(90)));
    }

    /// The tempting wrong verdict: five runs within an hour, and then lunch.
    #[test]
    fn runs_that_people_start_have_no_rhythm() {
        let by_hand = rhythm(&[0.0, 0.1, 0.4, 0.5, 1.2, 1.3, 2.4]).expect("seven");
        assert_eq!(by_hand.within(), None);
        // All at once, as after an outage: no spacing at all.
        assert_eq!(rhythm(&[1.0; 6]).and_then(|one| one.within()), None);
    }

    #[test]
    fn what_the_operator_says_stands_before_what_was_learned() {
        let totals =
            Totals { since_ms: HOUR, last_success_ms: Some(10 * HOUR), ..Totals::default() };
        let said = |text: &str| Some(text.parse::<Within>().expect("valid"));
        let learned = Some(HOURS(2));
        let configured = |at_ms: i64| Some(SuccessDue { at_ms, learned: false });
        let twelve = SuccessDue { at_ms: 12 * HOUR, learned: true };
        assert_eq!(due(&totals, None, learned, 0), Some(twelve));
        assert_eq!(due(&totals, said("5h"), learned, 0), configured(15 * HOUR));
        assert_eq!(due(&totals, said("never"), learned, 0), None);
        assert_eq!(due(&totals, None, None, 0), None);
        // Never yet: since the name is watched, and only where it was said.
        let never = Totals { last_success_ms: None, ..totals };
        assert_eq!(due(&never, said("5h"), None, 0), configured(6 * HOUR));
        assert_eq!(due(&never, None, learned, 0), None);
    }

    #[test]
    fn a_retired_job_is_not_due_for_ever() {
        let totals = Totals { last_success_ms: Some(0), ..Totals::default() };
        let at = |due: Option<SuccessDue>| due.map(|due| due.at_ms);
        let overdue =
            |hours: i64, within: Duration| at(due(&totals, None, Some(within), hours * HOUR));
        assert_eq!(overdue(2 + 167, HOURS(2)), Some(2 * HOUR));
        assert_eq!(overdue(2 + 168, HOURS(2)), None);
        // A month's job has longer.
        assert_eq!(overdue(60 * 24 + 100 * 24, HOURS(60 * 24)), Some(60 * 24 * HOUR));
        // What somebody wrote down holds until somebody takes it away.
        let said = Some("2h".parse::<Within>().expect("valid"));
        assert_eq!(at(due(&totals, said, None, 10_000 * HOUR)), Some(2 * HOUR));
    }
}
