//! What was sent of a run to an OTLP back end: so that neither a restart nor
//! another reading sends it twice.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::RunKey;

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
    /// Further attempts: stage id and attempt; at most
    /// [`SentSpans::MOST_RETRIES`], the latest.
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

    /// The newest that are kept.
    const MOST_RETRIES: usize = 4_096;

    /// Beyond the most the oldest goes: its span ended long ago, and what
    /// ended long ago is not sent.
    pub fn retried(&mut self, stage: u32, attempt: u32) {
        self.retries.insert((stage, attempt));
        if self.retries.len() > Self::MOST_RETRIES {
            self.retries.pop_first();
        }
    }

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
    /// Tells several of one rule and subject from each other.
    #[serde(default, skip_serializing_if = "is_first")]
    pub place: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_first(place: &u32) -> bool {
    *place == 0
}

impl SentFinding {
    /// Whether both are the same finding, whatever was said of it.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.rule, &self.subject, self.place) == (&other.rule, &other.subject, other.place)
    }
}

/// What a back end has accepted of a run just now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    pub spans: SentSpans,
    /// In their order.
    pub findings: Vec<FindingNews>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingNews {
    /// It is new, or takes the place of what was said of the same one.
    Said(SentFinding),
    /// It is not said any more.
    Gone(SentFinding),
}

impl News {
    /// These, and then others.
    pub fn append(&mut self, later: Self) {
        self.spans.add(&later.spans);
        self.findings.extend(later.findings);
    }
}

impl Delivered {
    /// In whichever order two who share a store put theirs down, nothing is
    /// taken back that the other one sent.
    pub fn add(&mut self, news: &News) {
        self.spans.add(&news.spans);
        for news in &news.findings {
            let (FindingNews::Said(finding) | FindingNews::Gone(finding)) = news;
            let known = self.findings.iter().position(|known| known.is_same(finding));
            match (news, known) {
                (FindingNews::Said(finding), Some(place)) => {
                    self.findings[place] = finding.clone();
                }
                (FindingNews::Said(finding), None) => self.findings.push(finding.clone()),
                (FindingNews::Gone(_), Some(place)) => {
                    self.findings.remove(place);
                }
                (FindingNews::Gone(_), None) => {}
            }
        }
    }
}

impl SentSpans {
    fn add(&mut self, other: &Self) {
        self.application |= other.application;
        self.executions.add(&other.executions);
        self.jobs.add(&other.jobs);
        self.stages.add(&other.stages);
        for (stage, attempt) in &other.retries {
            self.retried(*stage, *attempt);
        }
        self.spans = self.spans.saturating_add(other.spans);
        self.told(&other.findings.iter().copied().collect::<Vec<_>>());
    }
}

/// What was sent of runs, as whoever sends sees and notes it. The calls block.
pub trait Deliveries: Send + Sync + fmt::Debug {
    /// Of the run; of one that nothing was sent of, nothing.
    fn find(&self, key: &RunKey) -> Found;

    /// Notes what was accepted. It is kept, in memory at first where the store
    /// is in trouble, and seen by the next [`Self::find`].
    fn add(&self, key: &RunKey, news: News);
}

/// What is known of what was sent of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub delivered: Delivered,
    /// Whether the store told. Where it is in trouble there may be more.
    pub certain: bool,
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
    /// More would take more room than it is worth: the gap between the two
    /// lowest is then closed, as if what is in it had been sent.
    const MOST: usize = 4_096;

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
        self.close_oldest();
    }

    fn close_oldest(&mut self) {
        let too_many = self.0.len().saturating_sub(Self::MOST);
        if let Some(first) = self.0.first().map(|(first, _)| *first).filter(|_| too_many > 0) {
            self.0.drain(..too_many);
            self.0[0].0 = first;
        }
    }

    /// Adds all of the other's.
    fn add(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.0);
        all.extend(&other.0);
        all.sort_unstable();
        for (first, last) in all {
            match self.0.last_mut() {
                Some((_, end)) if end.saturating_add(1) >= first => *end = last.max(*end),
                _ => self.0.push((first, last)),
            }
        }
        self.close_oldest();
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

    proptest! {
        #[test]
        fn two_sets_together_are_what_is_in_either(
            one in proptest::collection::vec(0_u64..40, 0..40),
            other in proptest::collection::vec(0_u64..40, 0..40),
        ) {
            let set = |ids: &[u64]| {
                let mut ranges = Ranges::default();
                for id in ids {
                    ranges.insert(*id);
                }
                ranges
            };
            let mut both = set(&one);
            both.add(&set(&other));
            prop_assert_eq!(both, set(&[one, other].concat()));
        }
    }

    #[test]
    fn two_sets_together_have_no_more_gaps_than_one_may_have() {
        let every_other = |from: u64| {
            let mut ranges = Ranges::default();
            for step in 0..Ranges::MOST as u64 {
                ranges.insert(from + 2 * step);
            }
            ranges
        };
        let (mut both, later) = (every_other(0), every_other(1_000_000));
        both.add(&later);
        assert_eq!(both.0.len(), Ranges::MOST);
        assert!((0..Ranges::MOST as u64).all(|step| both.contains(2 * step)));
        assert!(both.contains(1_000_000) && !both.contains(1_000_003), "the latest are exact");
    }

    #[test]
    fn of_further_attempts_the_latest_are_kept() {
        let mut delivered = Delivered::default();
        for stages in [0..9_000, 9_000..18_000] {
            let mut news = News::default();
            news.spans.retries.extend(stages.map(|stage| (stage, 1)));
            delivered.add(&news);
        }
        let retries = delivered.spans.retries;
        assert_eq!(retries.len(), SentSpans::MOST_RETRIES);
        assert!(retries.contains(&(17_999, 1)) && !retries.contains(&(7_999, 1)));
    }

    #[test]
    fn what_was_said_of_findings_is_kept_until_it_is_gone() {
        let finding = |rule: &str, severity: &str, place| SentFinding {
            rule: rule.to_owned(),
            cause: None,
            severity: severity.to_owned(),
            subject: "{}".to_owned(),
            place,
        };
        let said = |finding: &SentFinding| FindingNews::Said(finding.clone());
        let (spill, worse) = (finding("spill", "info", 0), finding("spill", "warning", 0));
        let (second, skew) = (finding("spill", "info", 1), finding("data_skew", "info", 0));
        let first = vec![said(&spill), said(&second), said(&skew)];
        let mut news = News { findings: first, ..News::default() };
        let later = vec![said(&worse), FindingNews::Gone(skew.clone())];
        news.append(News { findings: later, ..News::default() });
        let mut delivered = Delivered::default();
        delivered.add(&news);
        assert_eq!(delivered.findings, [worse, second.clone()]);
        // Once more, by somebody who shares the store: the same.
        let before = delivered.clone();
        delivered.add(&News { findings: vec![said(&second), FindingNews::Gone(skew)], ..news });
        assert_eq!(delivered, before);
        // Where nothing tells several apart, nothing is written of it.
        assert!(!serde_json::to_string(&spill).unwrap().contains("place"));
    }

    #[test]
    fn the_oldest_gaps_are_closed_where_there_are_too_many() {
        let mut ranges = Ranges::default();
        for id in 0..10_000 {
            ranges.insert(2 * id);
        }
        assert_eq!(ranges.0.len(), Ranges::MOST);
        assert!(ranges.contains(1) && !ranges.contains(19_997) && ranges.contains(19_998));
        let mut other = Ranges::default();
        other.insert(100_000);
        ranges.add(&other);
        assert_eq!(ranges.0.len(), Ranges::MOST);
        assert!(ranges.contains(0) && ranges.contains(100_000) && !ranges.contains(99_999));
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
