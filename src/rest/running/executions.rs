//! SQL executions of a running driver: the list without plans once a minute,
//! from the first that had not ended on; the plan of an execution once, after
//! its end, the costliest first and a few a minute.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::Cycle;
use super::budget::Purse;
use crate::model::{Names, SqlExecution, SqlStatus};
use crate::rest::sql::{self, PAGE, Part};
use crate::rest::{Api, ApplicationPath, assemble, sql_list};

/// Executions kept, newest first, as many as Spark itself keeps ...
const NEWEST: usize = 1_000;
/// ... and of those that Spark has forgotten, the longest with a plan.
const LONGEST: usize = 200;
/// Plans asked for in one cycle.
const PLANS_PER_CYCLE: usize = 3;
/// Plans kept, those of the longest.
const PLANS: usize = 200;
/// Nodes kept of one plan.
const PLAN_NODES: usize = 2_000;
/// Pages of the list read in one cycle.
const PAGES: usize = 5;
/// A shorter execution is not worth the question.
const WORTH_PLAN: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Executions {
    /// `None` before the driver has answered.
    known: Option<BTreeMap<u64, SqlExecution>>,
    /// Those whose plan was asked for, also in vain.
    asked: BTreeSet<u64>,
    /// Where in Spark's list to read on.
    offset: usize,
    omitted: u64,
    names: Names,
}

impl Executions {
    /// Reads the list on, and then some plans.
    pub(super) async fn read(
        &mut self,
        purse: &Purse,
        api: &Api,
        path: &ApplicationPath,
        cycle: &mut Cycle,
    ) {
        for _ in 0..PAGES {
            if !purse.allows(api.meter().wire_bytes()) {
                return;
            }
            let page = sql_list::page(api, path, false, self.offset, PLAN_NODES).await;
            let Ok((page, _)) = page else {
                cycle.missing = true;
                return;
            };
            let whole = page.elements >= PAGE;
            if !self.take(page.executions, page.elements) && !whole {
                break;
            }
        }
        for id in self.worth_plan() {
            if !purse.allows(api.meter().wire_bytes()) {
                return;
            }
            self.asked.insert(id);
            match sql::one(api, path, id, Part::Nodes).await {
                Ok(Some(data)) => self.take_plan(id, &data),
                // Evicted meanwhile: it stays as the list had it.
                Ok(None) => {}
                Err(_) => cycle.missing = true,
            }
        }
        self.drop_beyond_limits();
    }

    /// Takes in a page that begins at `offset`. True where the page did not
    /// begin where it should have: Spark has dropped executions at the front
    /// of its list, so it is read again from its beginning.
    fn take(&mut self, page: Vec<SqlExecution>, elements: usize) -> bool {
        let known = self.known.get_or_insert_default();
        if let Some(first) = page.first().filter(|_| self.offset == 0) {
            // Spark drops only what has ended: how, nobody saw.
            for (_, gone) in known.range_mut(..first.id).filter(|(_, one)| runs(one)) {
                gone.status = SqlStatus::Unknown;
            }
        }
        let expected = known.values().find(|one| runs(one)).map(|one| one.id);
        let expected = expected.or_else(|| known.keys().next_back().map(|last| last + 1));
        let missed = match page.first() {
            None => self.offset > 0,
            Some(first) => self.offset > 0 && expected.is_some_and(|expected| first.id > expected),
        };
        // Up to the first that has not ended, the list will not change.
        let settled = page.iter().take_while(|one| !runs(one)).count();
        for execution in page {
            let plan = known.remove(&execution.id).and_then(|before| before.plan);
            known.insert(execution.id, SqlExecution { plan, ..execution });
        }
        if missed {
            self.offset = 0;
        } else if settled < elements.min(PAGE) && elements < PAGE {
            self.offset += settled;
        } else {
            self.offset += elements;
        }
        missed
    }

    fn take_plan(&mut self, id: u64, data: &sql::ExecutionData) {
        let read = assemble::execution(data, PLAN_NODES, &mut self.names);
        let known = self.known.get_or_insert_default();
        if let (Some(read), Some(known)) = (read, known.get_mut(&id)) {
            known.plan = read.plan;
        }
    }

    /// Ended executions whose plan was not asked for yet, longest first.
    fn worth_plan(&self) -> Vec<u64> {
        let mut waiting: Vec<(SignedDuration, u64)> = self
            .executions()
            .filter(|one| !self.asked.contains(&one.id) && !runs(one))
            .filter(|one| !one.job_ids.is_empty())
            .map(|one| (wall(one), one.id))
            .filter(|(wall, _)| *wall >= WORTH_PLAN)
            .collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        waiting.into_iter().take(PLANS_PER_CYCLE).map(|(_, id)| id).collect()
    }

    fn executions(&self) -> impl Iterator<Item = &SqlExecution> {
        self.known.iter().flat_map(BTreeMap::values)
    }

    fn drop_beyond_limits(&mut self) {
        let Some(known) = &mut self.known else { return };
        let mut plans: Vec<(SignedDuration, u64)> = known
            .values()
            .filter(|one| one.plan.is_some())
            .map(|one| (wall(one), one.id))
            .collect();
        plans.sort_unstable();
        for (_, id) in plans.iter().take(plans.len().saturating_sub(PLANS)) {
            if let Some(execution) = known.get_mut(id) {
                execution.plan = None;
            }
        }
        let old = known.len().saturating_sub(NEWEST);
        let mut old: Vec<(SignedDuration, u64)> =
            known.values().take(old).map(|one| (wall(one), one.id)).collect();
        old.sort_unstable();
        for (_, id) in old.iter().take(old.len().saturating_sub(LONGEST)) {
            known.remove(id);
            self.omitted += 1;
        }
        self.asked.retain(|id| known.contains_key(id));
    }

    /// What is known now, and how many were left out.
    pub(super) fn known(&self) -> (Option<Vec<SqlExecution>>, u64) {
        let known = self.known.as_ref();
        (known.map(|known| known.values().cloned().collect()), self.omitted)
    }
}

fn runs(execution: &SqlExecution) -> bool {
    execution.status == SqlStatus::Running
}

fn wall(execution: &SqlExecution) -> SignedDuration {
    let ends = execution.start.zip(execution.end);
    ends.map_or(SignedDuration::ZERO, |(start, end): (Timestamp, Timestamp)| {
        end.duration_since(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(id: u64, seconds: Option<i64>) -> SqlExecution {
        let mut execution = SqlExecution::new(id);
        execution.start = Some(Timestamp::UNIX_EPOCH);
        execution.end = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        execution.status =
            if seconds.is_some() { SqlStatus::Completed } else { SqlStatus::Running };
        execution.job_ids = vec![0];
        execution
    }

    fn take(all: &mut Executions, list: &[SqlExecution]) -> bool {
        let page: Vec<SqlExecution> = list.iter().skip(all.offset).take(PAGE).cloned().collect();
        let elements = page.len();
        all.take(page, elements)
    }

    #[test]
    fn the_list_is_read_on_from_the_first_that_has_not_ended() {
        let mut all = Executions::default();
        let mut list: Vec<SqlExecution> = (0..250).map(|id| execution(id, Some(1))).collect();
        list.push(execution(250, None));
        list.push(execution(251, Some(7)));
        for offset in [100, 200, 250] {
            assert!(!take(&mut all, &list));
            assert_eq!(all.offset, offset);
        }
        list[250] = execution(250, Some(9));
        list.push(execution(252, Some(1)));
        assert!(!take(&mut all, &list));
        assert_eq!((all.offset, all.executions().count()), (253, 253));
        assert_eq!(all.worth_plan(), [250, 251, 252]);
    }

    #[test]
    fn what_spark_dropped_at_the_front_is_noticed() {
        let mut all = Executions::default();
        let list: Vec<SqlExecution> = (0..40).map(|id| execution(id, Some(1))).collect();
        assert!(!take(&mut all, &list));
        assert_eq!(all.offset, 40);
        // 30 new ones, of which the list shows the last 20 of all.
        let list: Vec<SqlExecution> = (50..70).map(|id| execution(id, Some(1))).collect();
        assert!(take(&mut all, &list), "nothing stands there");
        assert!(!take(&mut all, &list));
        assert_eq!((all.offset, all.executions().count()), (20, 60));
        let list: Vec<SqlExecution> = (65..95).map(|id| execution(id, Some(1))).collect();
        assert!(take(&mut all, &list), "85 stands where 70 should");
        assert!(!take(&mut all, &list));
        assert_eq!(all.executions().count(), 85);
        // One that ran, ended and was dropped between two looks.
        all.take(vec![execution(100, None)], 1);
        all.offset = 0;
        all.take(vec![execution(200, Some(1))], 1);
        let status = |id| all.executions().find(|one| one.id == id).map(|one| one.status);
        assert_eq!(status(100), Some(SqlStatus::Unknown));
    }

    #[test]
    fn memory_is_bounded() {
        let mut all = Executions::default();
        for start in (0..50_000).step_by(100) {
            let page: Vec<SqlExecution> =
                (start..start + 100).map(|id| execution(id, Some((id % 500) as i64))).collect();
            all.take(page, 100);
            for id in all.worth_plan() {
                all.asked.insert(id);
            }
            all.drop_beyond_limits();
        }
        assert_eq!(all.executions().count(), NEWEST + LONGEST);
        assert_eq!(all.known().1, 50_000 - 1_200);
        assert!(all.asked.len() <= 50_000 / 100 * PLANS_PER_CYCLE);
    }
}
