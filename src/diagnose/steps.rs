//! A quantity over time that changes in steps: cores bought, cores busy.
//! Everything that asks "how many at that moment" or "how much over that
//! span" asks here.

/// A piecewise constant function of time in milliseconds since the epoch, 0
/// before its first step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steps {
    /// Ascending.
    at: Vec<i64>,
    /// `value[i]` holds from `at[i]` until `at[i + 1]`.
    value: Vec<f64>,
    /// Integral up to `at[i]`, in value x milliseconds.
    area: Vec<f64>,
}

impl Steps {
    /// From changes in any order: `(when, by how much)`.
    pub(super) fn from_changes(mut changes: Vec<(i64, f64)>) -> Self {
        changes.retain(|(_, by)| by.is_finite());
        changes.sort_unstable_by_key(|(when, _)| *when);
        let mut steps = Self::default();
        let mut value = 0.0;
        for (when, by) in changes {
            value += by;
            // Sums of thousandths of cores do not return to 0 exactly.
            let settled = (value * 1e6_f64).round() / 1e6;
            steps.set(when, settled);
        }
        steps
    }

    fn set(&mut self, when: i64, value: f64) {
        match (self.at.last(), self.value.last_mut()) {
            (Some(last), Some(current)) if *last == when => *current = value,
            (Some(last), Some(current)) => {
                #[expect(clippy::float_cmp, reason = "an unchanged value needs no step")]
                if *current == value {
                    return;
                }
                let area = self.area.last().copied().unwrap_or_default()
                    + *current * when.saturating_sub(*last) as f64;
                self.at.push(when);
                self.value.push(value);
                self.area.push(area);
            }
            _ => {
                self.at.push(when);
                self.value.push(value);
                self.area.push(0.0);
            }
        }
    }

    /// `with(self, other)` at each moment.
    pub(super) fn combine(&self, other: &Self, with: impl Fn(f64, f64) -> f64) -> Self {
        let mut out = Self::default();
        let (mut i, mut j) = (0, 0);
        let (mut mine, mut theirs) = (0.0, 0.0);
        loop {
            let when = match (self.at.get(i), other.at.get(j)) {
                (Some(left), Some(right)) => *left.min(right),
                (Some(left), None) => *left,
                (None, Some(right)) => *right,
                (None, None) => return out,
            };
            while self.at.get(i) == Some(&when) {
                mine = self.value[i];
                i += 1;
            }
            while other.at.get(j) == Some(&when) {
                theirs = other.value[j];
                j += 1;
            }
            out.set(when, with(mine, theirs));
        }
    }

    /// Value x seconds over `[from, to]`.
    pub(super) fn integral(&self, from: i64, to: i64) -> f64 {
        if to <= from { 0.0 } else { (self.area_to(to) - self.area_to(from)) / 1_000.0 }
    }

    fn area_to(&self, when: i64) -> f64 {
        match self.at.partition_point(|at| *at <= when).checked_sub(1) {
            Some(i) => self.area[i] + self.value[i] * when.saturating_sub(self.at[i]) as f64,
            None => 0.0,
        }
    }

    /// Mean over `[from, to]`; the value at `from` where the span is empty.
    pub(super) fn average(&self, from: i64, to: i64) -> f64 {
        if to <= from {
            return match self.at.partition_point(|at| *at <= from).checked_sub(1) {
                Some(i) => self.value[i],
                None => 0.0,
            };
        }
        self.integral(from, to) / (to.saturating_sub(from) as f64 / 1_000.0)
    }

    pub(super) fn max(&self) -> f64 {
        self.value.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The parts of `[from, to]` in which the value satisfies `test`.
    pub(super) fn when(&self, from: i64, to: i64, test: impl Fn(f64) -> bool) -> Spans {
        let mut spans = Spans::default();
        if to <= from {
            return spans;
        }
        let mut start = from;
        let mut i = self.at.partition_point(|at| *at <= from);
        let mut value = i.checked_sub(1).map_or(0.0, |before| self.value[before]);
        loop {
            let end = self.at.get(i).copied().unwrap_or(to).min(to);
            if test(value) {
                spans.push(start, end);
            }
            if end >= to {
                return spans;
            }
            start = end;
            value = self.value[i];
            i += 1;
        }
    }
}

/// Spans of time, ascending and apart, in milliseconds since the epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<(i64, i64)>);

impl Spans {
    /// The union of spans in any order.
    pub(super) fn union(mut spans: Vec<(i64, i64)>) -> Self {
        spans.sort_unstable();
        let mut out = Self::default();
        for (from, to) in spans {
            out.push(from, to);
        }
        out
    }

    /// Adds a span that begins no earlier than the last one did.
    fn push(&mut self, from: i64, to: i64) {
        if to <= from {
            return;
        }
        match self.0.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => self.0.push((from, to)),
        }
    }

    pub(super) fn intersect(&self, other: &Self) -> Self {
        let mut out = Self::default();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            out.push(a.0.max(b.0), a.1.min(b.1));
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        out
    }

    /// What of them lies in `[from, to]`.
    pub(super) fn clip(&self, from: i64, to: i64) -> Self {
        let first = self.0.partition_point(|(_, end)| *end <= from);
        let last = self.0.partition_point(|(start, _)| *start < to).max(first);
        let within = self.0.get(first..last).unwrap_or_default();
        Self(within.iter().map(|(start, end)| ((*start).max(from), (*end).min(to))).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, i64)> {
        self.0.iter().copied()
    }

    /// All together, in milliseconds.
    pub(super) fn millis(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, (from, to)| sum.saturating_add(to.abs_diff(*from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integrals_and_spans() {
        let cores = Steps::from_changes(vec![(1_000, 4.0), (3_000, 4.0), (5_000, -8.0)]);
        assert!((cores.integral(0, 10_000) - (8.0 + 16.0)).abs() < 1e-9);
        assert!((cores.average(2_000, 4_000) - 6.0).abs() < 1e-9);
        assert!((cores.max() - 8.0).abs() < 1e-9);
        let none = cores.when(0, 6_000, |value| value < 1.0);
        assert_eq!(none, Spans(vec![(0, 1_000), (5_000, 6_000)]));
        assert_eq!(none.millis(), 2_000);
        let busy = Steps::from_changes(vec![(2_000, 4.0), (4_000, -4.0)]);
        let idle = cores.combine(&busy, |all, used| (all - used).max(0.0));
        assert!((idle.integral(0, 10_000) - 16.0).abs() < 1e-9);
    }

    #[test]
    fn unions_and_intersections() {
        let a = Spans::union(vec![(5, 9), (0, 3), (2, 4)]);
        assert_eq!(a, Spans(vec![(0, 4), (5, 9)]));
        let b = Spans::union(vec![(3, 6), (8, 20)]);
        assert_eq!(a.intersect(&b), Spans(vec![(3, 4), (5, 6), (8, 9)]));
    }

    proptest! {
        #[test]
        fn parts_add_up(
            changes in proptest::collection::vec((0_i64..1_000, -4_i32..5), 0..40),
            cut in 0_i64..1_000,
        ) {
            let steps = Steps::from_changes(
                changes.iter().map(|(at, by)| (*at, f64::from(*by))).collect(),
            );
            let whole = steps.integral(0, 1_000);
            let parts = steps.integral(0, cut) + steps.integral(cut, 1_000);
            prop_assert!((whole - parts).abs() < 1e-6);
            let low = steps.when(0, 1_000, |value| value < 1.0).millis();
            let high = steps.when(0, 1_000, |value| value >= 1.0).millis();
            prop_assert_eq!(low + high, 1_000);
        }
    }
}
