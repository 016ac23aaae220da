//! The pages of `/sql`, taken in execution by execution.

use jiff::SignedDuration;

use super::sql::{self, ExecutionData, PAGE, Part};
use super::{Api, ApplicationPath, assemble};
use crate::fetch::FetchError;
use crate::model::{Names, SqlExecution};
use crate::texts;

/// Pages read of one list: far more than a server retains by default.
const MOST_PAGES: usize = 1_000;

/// The executions of one finished run, as many as fit.
#[derive(Debug)]
struct SqlList {
    executions: usize,
    plan_nodes: usize,
    kept: Vec<SqlExecution>,
    /// Of all their plans.
    nodes: usize,
    omitted: u64,
}

/// One page while it is decoded.
#[derive(Debug, Default)]
pub(super) struct Page {
    names: Names,
    /// Nodes of one plan.
    plan_nodes: usize,
    /// Elements, whatever they are.
    pub(super) elements: usize,
    pub(super) executions: Vec<SqlExecution>,
}

/// What became of reading a list.
#[derive(Debug)]
pub(super) struct ReadList {
    /// Ascending.
    pub(super) executions: Vec<SqlExecution>,
    pub(super) omitted: u64,
    /// A page is missing.
    pub(super) missing: bool,
    pub(super) implausible: bool,
}

/// Reads the whole list with the nodes of each plan.
pub(super) async fn whole(
    api: &Api,
    path: &ApplicationPath,
    executions: usize,
    plan_nodes: usize,
) -> Result<ReadList, FetchError> {
    let mut list = SqlList::new(executions, plan_nodes);
    let (mut missing, mut implausible) = (false, false);
    for number in 0..MOST_PAGES {
        match page(api, path, true, number * PAGE, plan_nodes).await {
            Ok((page, skipped)) => {
                implausible |= skipped > 0;
                page.executions.into_iter().for_each(|execution| list.add(execution));
                if page.elements < PAGE {
                    break;
                }
            }
            Err(error) if number == 0 => return Err(error),
            Err(_) => {
                missing = true;
                break;
            }
        }
    }
    let (executions, omitted) = list.finish();
    Ok(ReadList { executions, omitted, missing, implausible })
}

/// One page, and how many of its elements were of another shape.
pub(super) async fn page(
    api: &Api,
    path: &ApplicationPath,
    details: bool,
    offset: usize,
    plan_nodes: usize,
) -> Result<(Page, u64), FetchError> {
    let state = Page { plan_nodes: (plan_nodes / 10).max(1), ..Page::default() };
    let visit = |page: &mut Page, data: ExecutionData| {
        page.elements += 1;
        let execution = assemble::execution(&data, page.plan_nodes, &mut page.names);
        page.executions.extend(execution);
    };
    let read = sql::page(api, path, details, offset, state, visit).await?;
    let mut page = read.state;
    page.elements = page.elements.saturating_add(usize::try_from(read.skipped).unwrap_or(PAGE));
    Ok((page, read.skipped))
}

/// Adds the text of each node to the plans of the longest executions: before
/// 4.3 the list comes without, and joins, filters and kinds of Python stand in
/// it. False where an answer is missing.
pub(super) async fn add_texts(
    api: &Api,
    path: &ApplicationPath,
    executions: &mut [SqlExecution],
    at_most: usize,
) -> bool {
    let without = |execution: &SqlExecution| {
        let mut nodes = execution.plan.iter().flat_map(|plan| &plan.nodes);
        !execution.job_ids.is_empty() && nodes.any(|node| node.text.is_empty())
    };
    let mut places: Vec<usize> =
        (0..executions.len()).filter(|place| without(&executions[*place])).collect();
    places.sort_by_key(|place| std::cmp::Reverse(wall(&executions[*place])));
    for place in places.into_iter().take(at_most) {
        let execution = &mut executions[place];
        let Ok(data) = sql::one(api, path, execution.id, Part::Text).await else { return false };
        let text = data.and_then(|data| data.plan_description.0);
        if let (Some(plan), Some(text)) = (&mut execution.plan, text) {
            texts::add_text(plan, &text);
        }
    }
    true
}

impl SqlList {
    fn new(executions: usize, plan_nodes: usize) -> Self {
        Self { executions, plan_nodes, kept: Vec::new(), nodes: 0, omitted: 0 }
    }

    fn add(&mut self, execution: SqlExecution) {
        self.nodes += nodes(&execution);
        self.kept.push(execution);
        if self.nodes > self.plan_nodes {
            self.give_up_plans();
        }
        if self.kept.len() > self.executions.saturating_add(self.executions / 8 + 16) {
            self.leave_out();
        }
    }

    /// Plans of the shortest, somewhat more than must be.
    fn give_up_plans(&mut self) {
        let enough = self.plan_nodes - self.plan_nodes / 8;
        for place in self.shortest() {
            if self.nodes <= enough {
                break;
            }
            self.nodes -= nodes(&self.kept[place]);
            self.kept[place].plan = None;
        }
    }

    /// The shortest executions beyond the limit.
    fn leave_out(&mut self) {
        let excess = self.kept.len().saturating_sub(self.executions);
        let mut out: Vec<usize> = self.shortest().into_iter().take(excess).collect();
        out.sort_unstable();
        for place in out.into_iter().rev() {
            self.nodes -= nodes(&self.kept.remove(place));
            self.omitted += 1;
        }
    }

    fn shortest(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.kept.len()).collect();
        places.sort_by_key(|place| wall(&self.kept[*place]));
        places
    }

    fn finish(mut self) -> (Vec<SqlExecution>, u64) {
        self.leave_out();
        self.kept.sort_by_key(|execution| execution.id);
        self.kept.dedup_by_key(|execution| execution.id);
        (self.kept, self.omitted)
    }
}

/// To compare by: one without an end may be the longest of all.
fn wall(execution: &SqlExecution) -> (bool, Option<SignedDuration>) {
    let ends = execution.start.zip(execution.end);
    let wall = ends.map(|(start, end)| end.duration_since(start));
    (wall.is_none(), wall)
}

fn nodes(execution: &SqlExecution) -> usize {
    execution.plan.as_ref().map_or(0, |plan| plan.nodes.len())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn execution(id: u64, millis: i64) -> SqlExecution {
        let mut execution = SqlExecution::new(id);
        execution.start = Some(Timestamp::UNIX_EPOCH);
        execution.end = Timestamp::from_millisecond(millis).ok();
        let data = serde_json::json!({"id": id, "nodes": [{"nodeId": 0, "nodeName": "Range"}]});
        let data: ExecutionData = serde_json::from_value(data).expect("an execution");
        execution.plan = assemble::execution(&data, 9, &mut Names::default()).and_then(|e| e.plan);
        execution
    }

    #[test]
    fn the_longest_stay_and_keep_their_plans() {
        let mut list = SqlList::new(100, 50);
        for id in 0..1_000 {
            list.add(execution(id, if id % 25 == 3 { 9_000 } else { 1 }));
        }
        let (kept, omitted) = list.finish();
        assert_eq!((kept.len(), omitted), (100, 900));
        assert!(kept.is_sorted_by_key(|execution| execution.id));
        let mut long = kept.iter().filter(|execution| execution.id % 25 == 3);
        assert_eq!(long.clone().count(), 40);
        assert!(long.all(|execution| execution.plan.is_some()));
        assert!(kept.iter().map(nodes).sum::<usize>() <= 50);
    }
}
