//! How one measure is spread over the tasks of a stage attempt. Made by
//! [`super::Column`] from a log, or from what REST tells.

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
    /// Nanoseconds of a time span (of more than 584 years: as many as fit);
    /// the number itself of a count.
    fn to_units(self) -> u64;
    /// The inverse of [`Quantity::to_units`].
    fn from_units(units: u64) -> Self;
}

impl Quantity for u64 {
    fn as_f64(self) -> f64 {
        self as f64
    }
    fn saturating_add(self, other: Self) -> Self {
        u64::saturating_add(self, other)
    }
    fn to_units(self) -> u64 {
        self
    }
    fn from_units(units: u64) -> Self {
        units
    }
}

impl Quantity for Duration {
    fn as_f64(self) -> f64 {
        self.as_secs_f64()
    }
    fn saturating_add(self, other: Self) -> Self {
        Duration::saturating_add(self, other)
    }
    fn to_units(self) -> u64 {
        self.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(self.subsec_nanos()))
    }
    fn from_units(units: u64) -> Self {
        Duration::from_nanos(units)
    }
}

/// Spark's own quantile: lower nearest rank, no interpolation.
///
/// `index = min(floor(q * n), n - 1)` into the ascending values, as
/// `AppStatusStore.taskSummary` computes it. `None` for `n == 0`.
pub fn quantile_index(q: f64, n: u64) -> Option<u64> {
    let last = n.checked_sub(1)?;
    Some(((q * n as f64).floor() as u64).min(last))
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
