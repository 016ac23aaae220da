//! A list of stages, taken in element by element.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::assemble;
use super::stages::{KillReasons, StageData};
use crate::model::{Stage, StageId, StageStatus};

/// Finished attempts of a running application kept because they are new ...
pub(super) const NEWEST: usize = 2_000;

/// ... and because they were costly.
pub(super) const COSTLIEST: usize = 200;

/// Run time of all tasks of an attempt.
pub(super) fn cost(stage: &Stage) -> Duration {
    stage.measures.run_time.sum_or_zero()
}

/// What a pass over `/stages` brings together. Bounded: the list is newest
/// first, so the first `newest` are kept, and of the others the costliest.
#[derive(Debug)]
pub(super) struct Listing {
    newest: usize,
    costliest: usize,
    /// Attempts whose elements need not be kept.
    seen: Arc<HashSet<StageId>>,
    pub(super) listed: HashSet<StageId>,
    /// Finished attempts that were not seen before.
    pub(super) new: Vec<(Stage, KillReasons)>,
    /// Finished and unseen, but over the bounds.
    pub(super) skipped: Vec<StageId>,
    /// Active and pending attempts.
    pub(super) open: Vec<(Stage, KillReasons)>,
    /// Whether Spark's counters went below 0.
    pub(super) implausible: bool,
}

impl Listing {
    /// For a running application, of which these attempts are known.
    pub(super) fn unseen(seen: Arc<HashSet<StageId>>) -> Self {
        Self::of(NEWEST, COSTLIEST, seen)
    }

    /// For a completed one: at most so many attempts, the costliest.
    pub(super) fn whole(at_most: usize) -> Self {
        Self::of(0, at_most, Arc::default())
    }

    fn of(newest: usize, costliest: usize, seen: Arc<HashSet<StageId>>) -> Self {
        Self {
            newest,
            costliest,
            seen,
            listed: HashSet::new(),
            new: Vec::new(),
            skipped: Vec::new(),
            open: Vec::new(),
            implausible: false,
        }
    }

    pub(super) fn visit(&mut self, data: &StageData) {
        self.implausible |= data.num_active_tasks.is_negative();
        let Some(stage) = assemble::stage(data) else { return };
        self.listed.insert(stage.id);
        match stage.status {
            StageStatus::Active | StageStatus::Pending => {
                self.open.push((stage, data.killed_tasks_summary));
            }
            _ if self.seen.contains(&stage.id) => {}
            _ => {
                self.new.push((stage, data.killed_tasks_summary));
                // Now and then, so that sorting costs little.
                if self.new.len() > self.newest + self.costliest + self.costliest / 4 + 100 {
                    self.shrink();
                }
            }
        }
    }

    /// All attempts of a completed application, and how many were left out.
    pub(super) fn into_stages(mut self) -> (Vec<(Stage, KillReasons)>, u64) {
        self.shrink();
        self.new.append(&mut self.open);
        (self.new, self.skipped.len() as u64)
    }

    fn shrink(&mut self) {
        if self.new.len() <= self.newest + self.costliest {
            return;
        }
        let mut old = self.new.split_off(self.newest);
        old.sort_by_key(|(stage, _)| std::cmp::Reverse(cost(stage)));
        let cheap = old.split_off(self.costliest);
        self.skipped.extend(cheap.iter().map(|(stage, _)| stage.id));
        self.new.extend(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(listing: &mut Listing, stages: std::ops::Range<u32>) {
        for stage in stages.rev() {
            let run_time = if stage % 10 == 3 { 1_000 } else { 1 };
            listing.visit(
                &serde_json::from_value(serde_json::json!({
                    "stageId": stage, "attemptId": 0, "status": "COMPLETE",
                    "executorRunTime": run_time,
                }))
                .expect("a stage"),
            );
        }
    }

    #[test]
    fn the_costliest_of_a_long_list_stay() {
        let mut listing = Listing::whole(500);
        listed(&mut listing, 0..4_000);
        let (stages, omitted) = listing.into_stages();
        assert_eq!((stages.len(), omitted), (500, 3_500));
        let costly = stages.iter().filter(|(stage, _)| stage.id.stage % 10 == 3).count();
        assert_eq!(costly, 400);
    }

    #[test]
    fn what_was_seen_is_listed_and_not_kept() {
        let seen = (0..90).map(|stage| StageId { stage, attempt: 0 }).collect();
        let mut listing = Listing::unseen(Arc::new(seen));
        listed(&mut listing, 0..100);
        assert_eq!((listing.listed.len(), listing.new.len()), (100, 10));
    }
}
