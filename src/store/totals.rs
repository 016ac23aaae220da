//! What all runs of one name add up to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{Amounts, RunRecord};
use crate::model::State;

/// An application's name in a cluster, as exported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NameKey {
    pub cluster: String,
    pub app_name: String,
}

/// Whose totals runs of further names are put in, once there are as many
/// names as `limits.app_names` allows.
pub const OVERFLOW_NAME: &str = "_other";

/// The states a run can end in: label values of `outcome`.
pub const OUTCOMES: [State; 6] =
    [State::Succeeded, State::Failed, State::Killed, State::Cancelled, State::Lost, State::Unknown];

/// Upper bounds of the duration histogram in seconds: powers of two, which are
/// also the bounds of a native histogram of schema 0. From a second to three
/// days; what took longer is in `+Inf`.
pub const DURATION_BOUNDS: [f64; 19] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 2_048.0, 4_096.0, 8_192.0,
    16_384.0, 32_768.0, 65_536.0, 131_072.0, 262_144.0,
];

/// A new series stands at 0 for so long before it shows what it counts: a
/// scrape must see the 0, or `increase()` misses the first failure.
const AT_ZERO: Duration = Duration::from_mins(2);

/// Runs in which a rule found something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleTotal {
    pub runs: u64,
    /// Since when the series exists; milliseconds since the epoch.
    pub since_ms: i64,
}

/// Sums over the counted runs of a name. Only ever grows, but for `last_*`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Since when the series of the name exist; milliseconds since the epoch.
    pub since_ms: i64,
    /// In the order of [`OUTCOMES`].
    pub runs: [u64; 6],
    /// Of runs that ended well, each bucket by itself (not cumulated): one for
    /// each of [`DURATION_BOUNDS`] and one for what took longer.
    pub durations: [u64; 20],
    pub duration_sum_ms: u64,
    /// `cost` is `None` until a run with prices was counted.
    pub amounts: Amounts,
    /// By rule.
    pub findings: BTreeMap<String, RuleTotal>,
    /// Ends of the latest run, of the latest that ended well; milliseconds
    /// since the epoch. Runs that were never counted are in these as well.
    pub last_end_ms: Option<i64>,
    pub last_success_ms: Option<i64>,
    /// Of the latest run.
    pub last_duration_ms: Option<u64>,
    /// When a run was last counted, by our clock: totals stay as long as a
    /// run that is in them.
    pub counted_at_ms: Option<i64>,
}

impl Totals {
    /// Adds a run. `now_ms`: when its series begin to exist, where they are
    /// new.
    pub fn count(&mut self, run: &RunRecord, now_ms: i64) {
        self.counted_at_ms = self.counted_at_ms.max(Some(now_ms));
        if let Some(place) = OUTCOMES.iter().position(|state| *state == run.state) {
            self.runs[place] = self.runs[place].saturating_add(1);
        }
        if run.ended_well
            && let Some(duration) = run.duration_ms
        {
            let seconds = duration as f64 / 1_000.0;
            let bucket = DURATION_BOUNDS.iter().position(|bound| seconds <= *bound);
            let count = &mut self.durations[bucket.unwrap_or(DURATION_BOUNDS.len())];
            *count = count.saturating_add(1);
            self.duration_sum_ms = self.duration_sum_ms.saturating_add(duration);
        }
        self.amounts.add(&run.amounts);
        for rule in run.findings.keys() {
            let total = self
                .findings
                .entry(rule.clone())
                .or_insert(RuleTotal { runs: 0, since_ms: now_ms });
            total.runs = total.runs.saturating_add(1);
        }
    }

    /// Notes when it ended, whether it is counted or not.
    pub fn note_last(&mut self, run: &RunRecord) {
        if self.last_end_ms.is_none_or(|last| run.end_ms >= last) {
            self.last_end_ms = Some(run.end_ms);
            self.last_duration_ms = run.duration_ms;
        }
        if run.ended_well {
            self.last_success_ms = self.last_success_ms.max(Some(run.end_ms));
        }
    }

    /// As it is to be exported at `now_ms`: series that are new still stand at
    /// 0.
    #[must_use]
    pub fn shown(&self, now_ms: i64) -> Self {
        let is_new = |since_ms: i64| now_ms.abs_diff(since_ms) < AT_ZERO.as_millis() as u64;
        if is_new(self.since_ms) {
            let findings = self.findings.iter();
            return Self {
                since_ms: self.since_ms,
                amounts: Amounts { cost: self.amounts.cost.map(|_| 0.0), ..Amounts::default() },
                findings: findings
                    .map(|(rule, total)| (rule.clone(), RuleTotal { runs: 0, ..*total }))
                    .collect(),
                last_end_ms: self.last_end_ms,
                last_success_ms: self.last_success_ms,
                last_duration_ms: self.last_duration_ms,
                ..Self::default()
            };
        }
        let mut shown = self.clone();
        for total in shown.findings.values_mut().filter(|total| is_new(total.since_ms)) {
            total.runs = 0;
        }
        shown
    }
}

impl Amounts {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.bought_core_ms, other.bought_core_ms),
            (&mut self.used_core_ms, other.used_core_ms),
            (&mut self.wasted_core_ms, other.wasted_core_ms),
            (&mut self.memory_spilled_bytes, other.memory_spilled_bytes),
            (&mut self.disk_spilled_bytes, other.disk_spilled_bytes),
            (&mut self.shuffle_read_bytes, other.shuffle_read_bytes),
            (&mut self.shuffle_write_bytes, other.shuffle_write_bytes),
            (&mut self.input_bytes, other.input_bytes),
            (&mut self.output_bytes, other.output_bytes),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
        if let Some(more) = other.cost {
            self.cost = Some(self.cost.unwrap_or_default() + more);
        }
    }
}
