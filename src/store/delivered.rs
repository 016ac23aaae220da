//! What was sent of a run to an OTLP back end: so that neither a restart nor
//! another reading sends it twice.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Of one run. Serialized into the store; a few hundred bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivered {
    pub spans: SentSpans,
    pub findings: Vec<SentFinding>,
    /// When it was last changed; milliseconds since the epoch, by our clock.
    pub at_ms: i64,
}

/// Parts of a run whose spans a back end has accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentSpans {
    pub application: bool,
    pub executions: Ranges,
    pub jobs: Ranges,
    /// First attempts of stages, with their tasks, by stage id.
    pub stages: Ranges,
    /// Further attempts: stage id and attempt.
    pub retries: BTreeSet<(u32, u32)>,
    /// Spans in all.
    pub spans: u64,
    /// Findings that were events of them, by hash; at most
    /// [`SentSpans::MOST_FINDINGS`].
    pub findings: BTreeSet<u64>,
}

impl SentSpans {
    /// As many as are said about one run.
    const MOST_FINDINGS: usize = 1_000;

    /// Beyond the most, a finding is told a second time rather than kept.
    pub fn told(&mut self, findings: &[u64]) {
        for finding in findings {
            if self.findings.len() < Self::MOST_FINDINGS {
                self.findings.insert(*finding);
            }
        }
    }
}

/// A finding that a record was sent of and that is not cleared yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFinding {
    pub rule: String,
    pub cause: Option<String>,
    pub severity: String,
    /// As JSON of [`crate::diagnose::Subject`].
    pub subject: String,
}

/// A set of numbers as ranges: ids that Spark gives one after the other take
/// a few bytes however many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(
    /// First and last, both inside; ascending, with gaps between.
    Vec<(u64, u64)>,
);

impl Ranges {
    pub fn contains(&self, id: u64) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= id);
        after.checked_sub(1).is_some_and(|place| self.0[place].1 >= id)
    }

    pub fn insert(&mut self, id: u64) {
        let place = self.0.partition_point(|(first, _)| *first <= id);
        let joins_before = place
            .checked_sub(1)
            .filter(|before| self.0[*before].1.checked_add(1).is_none_or(|next| next >= id));
        let joins_after = self.0.get(place).is_some_and(|(first, _)| *first == id.wrapping_add(1));
        match (joins_before, joins_after) {
            (Some(before), true) => {
                self.0[before].1 = self.0[place].1;
                self.0.remove(place);
            }
            (Some(before), false) => self.0[before].1 = self.0[before].1.max(id),
            (None, true) => self.0[place].0 = id,
            (None, false) => self.0.insert(place, (id, id)),
        }
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| (last - first).saturating_add(1)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(ids in proptest::collection::vec(0_u64..40, 0..60)) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for id in ids {
                ranges.insert(id);
                set.insert(id);
            }
            for id in 0..45 {
                prop_assert_eq!(ranges.contains(id), set.contains(&id));
            }
            prop_assert_eq!(ranges.len(), set.len() as u64);
            // No two that touch.
            prop_assert!(ranges.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }

    #[test]
    fn the_largest_number_has_its_place() {
        let mut ranges = Ranges::default();
        for id in [u64::MAX, u64::MAX - 1, 0, u64::MAX] {
            ranges.insert(id);
        }
        assert!(ranges.contains(u64::MAX) && ranges.contains(0) && !ranges.contains(1));
        assert_eq!(
            serde_json::to_string(&ranges).ok(),
            Some(format!("[[0,0],[{},{}]]", u64::MAX - 1, u64::MAX))
        );
    }
}
