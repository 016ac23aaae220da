//! How one measure is spread over the tasks of a stage attempt.

use std::time::Duration;

/// The quantiles kept of every measure, in the order of [`Quantiles`].
pub const QUANTILES: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.95, 1.0];

/// Something a task can be measured in: a time span, or a count (bytes,
/// records).
pub trait Quantity: Copy + Ord + Default + std::fmt::Debug {
    /// Seconds of a time span; the number itself of a count.
    fn as_f64(self) -> f64;
    /// Sum that stops at the largest value instead of overflowing.
    #[must_use]
    fn saturating_add(self, other: Self) -> Self;
}

impl Quantity for u64 {
    fn as_f64(self) -> f64 {
        self as f64
    }
    fn saturating_add(self, other: Self) -> Self {
        u64::saturating_add(self, other)
    }
}

impl Quantity for Duration {
    fn as_f64(self) -> f64 {
        self.as_secs_f64()
    }
    fn saturating_add(self, other: Self) -> Self {
        Duration::saturating_add(self, other)
    }
}

/// Spark's own quantile: lower nearest rank, no interpolation.
///
/// `index = min(floor(q * n), n - 1)` into the ascending values, as
/// `AppStatusStore.taskSummary` computes it. `None` for `n == 0`.
pub fn quantile_index(q: f64, n: usize) -> Option<usize> {
    let last = n.checked_sub(1)?;
    Some(((q * n as f64).floor() as usize).min(last))
}

/// Quantiles over the *successful* tasks of a stage attempt, by Spark's
/// definition ([`quantile_index`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles<T> {
    pub min: T,
    pub p25: T,
    pub median: T,
    pub p75: T,
    pub p95: T,
    pub max: T,
}

impl<T: Quantity> Quantiles<T> {
    /// The six values in the order of [`QUANTILES`].
    pub fn from_array([min, p25, median, p75, p95, max]: [T; 6]) -> Self {
        Self { min, p25, median, p75, p95, max }
    }

    /// `max / median`; `None` when the median is 0, where a ratio means
    /// nothing.
    pub fn max_to_median(&self) -> Option<f64> {
        let median = self.median.as_f64();
        (median > 0.0).then(|| self.max.as_f64() / median)
    }
}

/// One measure of the tasks of one stage attempt.
///
/// `count` and `sum` are over all task attempts that carried metrics, failed
/// and killed ones included, as Spark's stage totals are; the quantiles are
/// over successful tasks only. Each part is `None` where the source cannot
/// tell it (`docs/accuracy.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distribution<T> {
    pub count: Option<u64>,
    pub sum: Option<T>,
    pub quantiles: Option<Quantiles<T>>,
}

impl<T> Default for Distribution<T> {
    fn default() -> Self {
        Self { count: None, sum: None, quantiles: None }
    }
}

impl<T: Quantity> Distribution<T> {
    pub fn median(&self) -> Option<T> {
        self.quantiles.map(|q| q.median)
    }

    pub fn max(&self) -> Option<T> {
        self.quantiles.map(|q| q.max)
    }

    /// The sum, or the zero of `T` where it is unknown: for adding up sizes
    /// where an unknown part must not stop the rest.
    pub fn sum_or_zero(&self) -> T {
        self.sum.unwrap_or_default()
    }
}

/// Collects one measure task by task and becomes a [`Distribution`].
///
/// Zeros are counted, not stored: most measures of most stages are all zero,
/// so 20 measures of 100,000 tasks cost a few megabytes.
#[derive(Debug, Clone, Default)]
pub struct Column<T> {
    count: u64,
    sum: T,
    zeros: usize,
    values: Vec<T>,
    /// Successful tasks that came after the limit: the quantiles would be
    /// wrong without them, so there are none.
    beyond_limit: bool,
}

impl<T: Quantity> Column<T> {
    /// Adds the value of one task attempt. Only `successful` ones enter the
    /// quantiles; at most `limit` values are stored.
    pub fn push(&mut self, value: T, successful: bool, limit: usize) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        if !successful {
            return;
        }
        if value == T::default() {
            self.zeros += 1;
        } else if self.values.len() < limit {
            self.values.push(value);
        } else {
            self.beyond_limit = true;
        }
    }

    /// Whether more values came than could be kept.
    pub fn is_truncated(&self) -> bool {
        self.beyond_limit
    }

    /// The finished distribution. `count` and `sum` are always known.
    pub fn finish(mut self) -> Distribution<T> {
        self.values.sort_unstable();
        let n = self.zeros + self.values.len();
        let at = |q: f64| {
            let index = quantile_index(q, n)?;
            Some(match index.checked_sub(self.zeros) {
                Some(rank) => self.values.get(rank).copied()?,
                None => T::default(),
            })
        };
        let quantiles = if self.beyond_limit {
            None
        } else {
            QUANTILES
                .iter()
                .map(|q| at(*q))
                .collect::<Option<Vec<T>>>()
                .and_then(|values| <[T; 6]>::try_from(values).ok())
                .map(Quantiles::from_array)
        };
        Distribution { count: Some(self.count), sum: Some(self.sum), quantiles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_spark_s_lower_nearest_rank() {
        // Two tasks: q = 0.5 gives the larger one, as a real History Server
        // answered (2589, 3149, 3149 for 0, 0.5, 1).
        let mut column = Column::default();
        for value in [3149_u64, 2589] {
            column.push(value, true, 10);
        }
        let quantiles = column.finish().quantiles.expect("two tasks");
        assert_eq!((quantiles.min, quantiles.median, quantiles.max), (2589, 3149, 3149));
    }

    #[test]
    fn failed_tasks_count_in_the_sum_only() {
        let mut column = Column::default();
        column.push(10_u64, true, 10);
        column.push(1_000, false, 10);
        let distribution = column.finish();
        assert_eq!(distribution.count, Some(2));
        assert_eq!(distribution.sum, Some(1_010));
        assert_eq!(distribution.max(), Some(10));
    }

    #[test]
    fn no_successful_task_has_no_quantiles() {
        let mut column = Column::default();
        column.push(7_u64, false, 10);
        assert_eq!(column.finish().quantiles, None);
        assert_eq!(Column::<u64>::default().finish().quantiles, None);
    }

    #[test]
    fn over_the_limit_sums_stay_and_quantiles_go() {
        let mut column = Column::default();
        for value in 1..=3_u64 {
            column.push(value, true, 2);
        }
        assert!(column.is_truncated());
        let distribution = column.finish();
        assert_eq!(distribution.sum, Some(6));
        assert_eq!(distribution.quantiles, None);
    }

    proptest! {
        #[test]
        fn equals_the_sorted_list(values in proptest::collection::vec(0_u64..5, 1..60)) {
            let mut column = Column::default();
            for value in &values {
                column.push(*value, true, usize::MAX);
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let n = sorted.len();
            let expected = QUANTILES.map(|q| sorted[((q * n as f64).floor() as usize).min(n - 1)]);
            prop_assert_eq!(
                column.finish().quantiles,
                Some(Quantiles::from_array(expected))
            );
        }
    }
}
