//! The finished stage attempts of a running application: each read once, and
//! never more of them than fit.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Stage, StageId};
use crate::rest::listing::{COSTLIEST, Listing, NEWEST, cost};
use crate::rest::stages::KillReasons;

/// From this run time on a finished attempt is worth the questions about its
/// tasks. Run time of all tasks together and not wall time: what a stage with
/// less work than this waited for is in no task.
const WORTH_DETAILS: Duration = Duration::from_secs(10);

/// A finished attempt and whether its tasks were asked for.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) stage: Stage,
    pub(super) kills: KillReasons,
    asked: bool,
}

impl Finished {
    fn new((stage, kills): (Stage, KillReasons)) -> Self {
        Self { stage, kills, asked: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct Retained {
    finished: BTreeMap<StageId, Finished>,
    /// Attempts that Spark listed when it was last asked, and those above:
    /// they need not be read again. Shared with the reading thread.
    seen: Arc<HashSet<StageId>>,
    /// Attempts that were known and are kept no more.
    dropped: u64,
    /// Stage ids that were ever seen, as ranges: ids are given one after the
    /// other, so there are few.
    ids: IdRanges,
}

impl Retained {
    /// What a reader need not decode again.
    pub(super) fn seen(&self) -> Arc<HashSet<StageId>> {
        Arc::clone(&self.seen)
    }

    /// Takes in one whole listing.
    pub(super) fn take(&mut self, listing: Listing) {
        let Listing { listed, new, skipped, .. } = listing;
        self.dropped += skipped.len() as u64;
        Arc::make_mut(&mut self.seen).extend(skipped);
        for id in &listed {
            self.ids.insert(id.stage);
        }
        for finished in new.into_iter().map(Finished::new) {
            self.finished.entry(finished.stage.id).or_insert(finished);
        }
        self.drop_beyond_limits();
        // Only what is still listed, or still kept, can come again.
        let mut seen: HashSet<StageId> = self.finished.keys().copied().collect();
        seen.extend(listed.into_iter().filter(|id| self.seen.contains(id)));
        self.seen = Arc::new(seen);
    }

    fn drop_beyond_limits(&mut self) {
        let excess = self.finished.len().saturating_sub(NEWEST + COSTLIEST);
        if excess == 0 {
            return;
        }
        // Of those that are not among the newest, the cheapest go.
        let old = self.finished.len() - NEWEST;
        let mut by_cost: Vec<(Duration, StageId)> =
            self.finished.iter().take(old).map(|(id, one)| (cost(&one.stage), *id)).collect();
        by_cost.sort_unstable();
        let dropped: BTreeSet<StageId> =
            by_cost.into_iter().take(excess).map(|(_, id)| id).collect();
        self.finished.retain(|id, _| !dropped.contains(id));
        // They may still be in Spark's list: `take` keeps them in `seen`.
        Arc::make_mut(&mut self.seen).extend(dropped.iter().copied());
        self.dropped += dropped.len() as u64;
    }

    /// Stage ids below the highest that no listing ever showed: Spark had
    /// dropped them before we came.
    pub(super) fn evicted(&self) -> u64 {
        self.ids.missing()
    }

    /// Attempts that are not in [`Retained::stages`].
    pub(super) fn omitted(&self) -> u64 {
        self.dropped + self.evicted()
    }

    pub(super) fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.finished.values().map(|one| &one.stage)
    }

    pub(super) fn contains(&self, id: StageId) -> bool {
        self.finished.contains_key(&id)
    }

    /// The costliest attempts whose tasks were not asked for yet.
    pub(super) fn worth_details(&self, at_most: usize) -> Vec<StageId> {
        let mut waiting: Vec<(Duration, StageId)> = self
            .finished
            .iter()
            .filter(|(_, one)| !one.asked && cost(&one.stage) >= WORTH_DETAILS)
            .map(|(id, one)| (cost(&one.stage), *id))
            .collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        waiting.into_iter().take(at_most).map(|(_, id)| id).collect()
    }

    /// The attempt, marked as asked for: once, also when the answer fails.
    pub(super) fn ask(&mut self, id: StageId) -> Option<&mut Finished> {
        let finished = self.finished.get_mut(&id)?;
        finished.asked = true;
        Some(finished)
    }
}

/// A set of ids as ranges `[from, to]`, ascending and apart.
#[derive(Debug, Default)]
struct IdRanges(BTreeMap<u32, u32>);

impl IdRanges {
    fn insert(&mut self, id: u32) {
        let before = self.0.range(..=id).next_back().map(|(from, to)| (*from, *to));
        let (mut from, mut to) = (id, id);
        if let Some((start, end)) = before {
            if end >= id {
                return;
            }
            if end.saturating_add(1) == id {
                from = start;
            }
        }
        if let Some(next) = id.checked_add(1)
            && let Some(end) = self.0.remove(&next)
        {
            to = end;
        }
        self.0.insert(from, to);
    }

    /// Ids from 0 to the highest that are not in it.
    fn missing(&self) -> u64 {
        let held: u64 = self.0.iter().map(|(from, to)| u64::from(to - from) + 1).sum();
        self.0.last_key_value().map_or(0, |(_, to)| u64::from(*to) + 1 - held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(stage: u32) -> StageId {
        StageId { stage, attempt: 0 }
    }

    fn finished(stage: u32, seconds: u64) -> (Stage, KillReasons) {
        let mut made = Stage::new(id(stage));
        made.measures.run_time.sum = Some(Duration::from_secs(seconds));
        (made, KillReasons::default())
    }

    fn listing(listed: Vec<StageId>, new: Vec<(Stage, KillReasons)>) -> Listing {
        let mut listing = Listing::unseen(Arc::default());
        listing.listed.extend(listed);
        listing.new = new;
        listing
    }

    #[test]
    fn the_newest_and_the_costliest_stay() {
        let mut retained = Retained::default();
        // Every hundredth stage is costly; Spark lists the last 1,000.
        for batch in 0..50_u32 {
            let ids = batch * 100..batch * 100 + 100;
            let listed = (0..batch * 100 + 100).rev().take(1_000).map(id).collect();
            let new = ids.map(|n| finished(n, if n % 100 == 7 { 500 } else { 1 })).collect();
            retained.take(listing(listed, new));
        }
        let kept: Vec<u32> = retained.stages().map(|stage| stage.id.stage).collect();
        assert_eq!(kept.len(), NEWEST + COSTLIEST);
        assert!((3_000..5_000).all(|n| kept.contains(&n)));
        assert!((0..30).all(|n| kept.contains(&(n * 100 + 7))), "{:?}", &kept[..40]);
        assert_eq!(retained.evicted(), 0);
        assert_eq!(retained.omitted(), 5_000 - kept.len() as u64);
        // What is dropped is not read again while it is listed.
        assert!((4_000..5_000).all(|n| retained.seen().contains(&id(n))));
        assert!(retained.seen().len() <= kept.len() + 1_000);
    }

    #[test]
    fn what_spark_dropped_before_we_came_is_counted() {
        let mut retained = Retained::default();
        let new = vec![finished(700, 20), finished(800, 30)];
        retained.take(listing((500..1_500).map(id).collect(), new));
        assert_eq!((retained.evicted(), retained.omitted()), (500, 500));
        // The same again, and a gap.
        retained.take(listing((600..1_600).map(id).collect(), vec![]));
        assert_eq!(retained.evicted(), 500);
        retained.take(listing((1_700..2_700).map(id).collect(), vec![]));
        assert_eq!(retained.evicted(), 600);
    }

    #[test]
    fn details_are_asked_once_costliest_first() {
        let mut retained = Retained::default();
        let all = vec![finished(1, 11), finished(2, 9), finished(3, 99), finished(4, 50)];
        retained.take(listing((0..5).map(id).collect(), all));
        assert_eq!(retained.worth_details(2), [id(3), id(4)]);
        assert!(retained.ask(id(3)).is_some());
        assert_eq!(retained.worth_details(9), [id(4), id(1)]);
    }

    proptest! {
        #[test]
        fn ranges_are_a_set(ids in proptest::collection::vec(0_u32..40, 0..60)) {
            let mut ranges = IdRanges::default();
            for id in &ids {
                ranges.insert(*id);
            }
            let set: BTreeSet<u32> = ids.iter().copied().collect();
            let missing = set.last().map_or(0, |last| u64::from(*last) + 1 - set.len() as u64);
            prop_assert_eq!(ranges.missing(), missing);
            let apart = ranges.0.iter().zip(ranges.0.iter().skip(1)).all(|((_, a), (b, _))| a + 1 < *b);
            prop_assert!(apart);
        }
    }
}
