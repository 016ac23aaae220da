//! One measure of a stage attempt while it is collected, task by task, before
//! it becomes a [`Distribution`]. Exact up to a number of values, a sketch
//! beyond it: memory does not grow with the tasks of a stage.

use sketches_ddsketch::{Config, DDSketch};

use super::distribution::{Distribution, QUANTILES, Quantiles, Quantity, quantile_index};

/// How far an estimated quantile lies from the exact one at most, relative to
/// the exact one. (A count is rounded to a whole number as well.)
pub const QUANTILE_ERROR: f64 = 0.01;

/// Bins that [`QUANTILE_ERROR`] needs for everything from 1 to `u64::MAX`:
/// ln(2^64) / ln(1.01 / 0.99), rounded up to the sketch's steps of 128. With
/// so many it never merges the lowest ones, and takes 18 KiB at most.
const BINS: u32 = 2_304;

/// Collects one measure task by task and becomes a [`Distribution`].
///
/// Zeros are counted, not stored: most measures of most stages are all zero,
/// so 20 measures of 100,000 tasks cost a few megabytes.
#[derive(Debug, Clone, Default)]
pub struct Column<T> {
    count: u64,
    sum: T,
    zeros: u64,
    values: Values,
}

/// Of successful tasks, without zeros, in [`Quantity::to_units`].
#[derive(Debug, Clone)]
enum Values {
    Exact(Vec<u64>),
    Estimated(Box<Sketch>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Exact(Vec::new())
    }
}

/// Quantiles within [`QUANTILE_ERROR`]; the ends are exact.
#[derive(Clone)]
struct Sketch {
    bins: DDSketch,
    count: u64,
    min: u64,
    max: u64,
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bins: _, count, min, max } = self;
        write!(formatter, "Sketch of {count} values from {min} to {max}")
    }
}

impl<T: Quantity> Column<T> {
    /// Adds the value of one task attempt. Only `successful` ones enter the
    /// quantiles; at most `limit` values are stored, and with more of them the
    /// quantiles are estimated.
    pub fn push(&mut self, value: T, successful: bool, limit: usize) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        if !successful {
            return;
        }
        let value = value.to_units();
        if value == 0 {
            self.zeros += 1;
            return;
        }
        match &mut self.values {
            Values::Exact(values) if values.len() < limit => values.push(value),
            Values::Exact(values) => {
                let mut sketch = Sketch::new(values);
                sketch.add(value);
                self.values = Values::Estimated(Box::new(sketch));
            }
            Values::Estimated(sketch) => sketch.add(value),
        }
    }

    /// Whether more values came than were stored.
    pub fn is_estimated(&self) -> bool {
        matches!(self.values, Values::Estimated(_))
    }

    /// The finished distribution. `count` and `sum` are always known.
    pub fn finish(self) -> Distribution<T> {
        let Self { count, sum, zeros, mut values } = self;
        let stored = match &mut values {
            Values::Exact(values) => {
                values.sort_unstable();
                values.len() as u64
            }
            Values::Estimated(sketch) => sketch.count,
        };
        let at = |q: f64| {
            let index = quantile_index(q, zeros + stored)?;
            let Some(rank) = index.checked_sub(zeros) else { return Some(T::default()) };
            let units = match &values {
                Values::Exact(values) => *values.get(usize::try_from(rank).ok()?)?,
                Values::Estimated(sketch) => sketch.at(rank)?,
            };
            Some(T::from_units(units))
        };
        let quantiles = QUANTILES
            .iter()
            .map(|q| at(*q))
            .collect::<Option<Vec<T>>>()
            .and_then(|values| <[T; 6]>::try_from(values).ok())
            .map(Quantiles::from_array);
        Distribution { count: Some(count), sum: Some(sum), quantiles }
    }
}

impl Sketch {
    fn new(values: &[u64]) -> Self {
        // Everything stored is 1 or more: the sketch's own zero is not used.
        let config = Config::new(QUANTILE_ERROR, BINS, 0.5);
        let mut sketch = Self { bins: DDSketch::new(config), count: 0, min: u64::MAX, max: 0 };
        for value in values {
            sketch.add(*value);
        }
        sketch
    }

    fn add(&mut self, value: u64) {
        self.bins.add(value as f64);
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The value at a rank of the ascending values.
    fn at(&self, rank: u64) -> Option<u64> {
        let last = self.count.checked_sub(1)?;
        if rank == 0 {
            return Some(self.min);
        }
        if rank >= last {
            return Some(self.max);
        }
        // The sketch takes floor(q * last) for the rank.
        let q = (rank as f64 + 0.5) / last as f64;
        let value = self.bins.quantile(q).ok()??;
        Some((value.round() as u64).clamp(self.min, self.max))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn over_the_limit_sums_and_ends_are_exact() {
        let mut column = Column::default();
        for value in [7_u64, 1_000_003, 0, 90_001] {
            column.push(value, true, 2);
        }
        assert!(column.is_estimated());
        let distribution = column.finish();
        assert_eq!((distribution.count, distribution.sum), (Some(4), Some(1_090_011)));
        let quantiles = distribution.quantiles.expect("four tasks");
        assert_eq!((quantiles.min, quantiles.max), (0, 1_000_003));
        assert!(quantiles.median.abs_diff(90_001) <= 900, "{quantiles:?}");
    }

    #[test]
    fn a_million_tasks_take_no_more_memory_than_the_limit() {
        let mut column = Column::default();
        // From a nanosecond to the longest span there is, many times over.
        for step in 0..1_000_000_u64 {
            column.push(Duration::from_nanos(1 << (step % 64)), true, 1_000);
        }
        let Values::Estimated(sketch) = &column.values else { panic!("a million values") };
        assert!(sketch.bins.length() <= BINS as usize);
        assert_eq!(sketch.count, 1_000_000);
        let quantiles = column.finish().quantiles.expect("a million tasks");
        let median = quantiles.median.as_nanos() as f64 / (1_u64 << 32) as f64;
        assert!((median - 1.0).abs() <= QUANTILE_ERROR, "{median}");
    }

    /// Values of many sizes, as bytes and nanoseconds are.
    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![
            1 => Just(0_u64),
            3 => 1_u64..200,
            3 => 1_u64..5_000_000_000,
            3 => (0_u32..63).prop_flat_map(|bits| (1_u64 << bits)..(1_u64 << (bits + 1))),
        ]
    }

    fn exact(values: &[u64]) -> [u64; 6] {
        let mut sorted = values.to_owned();
        sorted.sort_unstable();
        let n = sorted.len();
        QUANTILES.map(|q| sorted[((q * n as f64).floor() as usize).min(n - 1)])
    }

    proptest! {
        #[test]
        fn equals_the_sorted_list(values in proptest::collection::vec(0_u64..5, 1..60)) {
            let mut column = Column::default();
            for value in &values {
                column.push(*value, true, usize::MAX);
            }
            prop_assert_eq!(
                column.finish().quantiles,
                Some(Quantiles::from_array(exact(&values)))
            );
        }

        #[test]
        fn estimates_are_within_the_stated_error(
            values in proptest::collection::vec(value(), 2..400),
            limit in 0_usize..50,
        ) {
            let mut column = Column::default();
            for value in &values {
                column.push(*value, true, limit);
            }
            let stored = values.iter().filter(|value| **value > 0).count();
            prop_assert_eq!(column.is_estimated(), stored > limit);
            let found = column.finish().quantiles.expect("successful tasks");
            let exact = Quantiles::from_array(exact(&values));
            prop_assert_eq!((found.min, found.max), (exact.min, exact.max));
            for (found, exact) in [
                (found.p25, exact.p25),
                (found.median, exact.median),
                (found.p75, exact.p75),
                (found.p95, exact.p95),
            ] {
                // Half for rounding; a float holds 53 bits of a count.
                let allowed = exact as f64 * QUANTILE_ERROR * (1.0 + 1e-9) + 0.5;
                prop_assert!(found.abs_diff(exact) as f64 <= allowed, "{found} for {exact}");
            }
        }
    }
}
