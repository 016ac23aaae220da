//! The questions about tasks: of finished attempts once, of active ones while
//! they look ill.

use jiff::Timestamp;

use super::budget::{BYTES_PER_CYCLE, Purse, REQUESTS_PER_CYCLE};
use super::{Cycle, Known};
use crate::model::StageId;
use crate::rest::details::{FAILED_ROWS, ROWS, details, retained_tasks};
use crate::rest::listing::cost;
use crate::rest::task_list::{self, Top};
use crate::rest::{Api, ApplicationPath, task_summary};

/// Finished attempts asked about in one cycle.
const FINISHED_PER_CYCLE: usize = 3;

/// Finished attempts of at least 10 s of run time, costliest first.
pub(super) async fn of_finished(
    known: &mut Known,
    purse: &Purse,
    api: &Api,
    path: &ApplicationPath,
    cycle: &mut Cycle,
) {
    for id in known.retained.worth_details(FINISHED_PER_CYCLE) {
        if !purse.allows(api.meter().wire_bytes()) {
            return;
        }
        cycle.extended = true;
        let limit = retained_tasks(known.configuration.as_ref());
        let Some(finished) = known.retained.ask(id) else { continue };
        let kills = finished.kills;
        let details = details(api, path, &mut finished.stage, kills, limit).await;
        known.tasks_evicted |= details.evicted;
        cycle.missing |= details.missing;
    }
}

/// Active attempts that look ill, within what a normal cycle may cost. Who
/// waited longest comes first, then the costliest.
pub(super) async fn of_active(
    known: &mut Known,
    purse: &Purse,
    api: &Api,
    path: &ApplicationPath,
    now: Timestamp,
    cycle: &mut Cycle,
) {
    let mut ill: Vec<_> = known
        .active
        .values()
        .filter(|active| active.looks_ill(now) && active.is_due(now))
        .map(|active| {
            let cost = cost(&active.stage);
            (active.looked(), std::cmp::Reverse(cost), active.stage.id)
        })
        .collect();
    ill.sort_unstable();
    // A cycle that read whole lists has its budget by the minute.
    let extended = cycle.extended;
    let affordable = |api: &Api| {
        let bytes = api.meter().wire_bytes();
        let normal = api.meter().requests() < REQUESTS_PER_CYCLE && bytes < BYTES_PER_CYCLE;
        (extended || normal) && purse.allows(bytes)
    };
    let most = if extended { FINISHED_PER_CYCLE } else { usize::MAX };
    for (_, _, id) in ill.into_iter().take(most) {
        if !affordable(api) {
            return;
        }
        look(known, api, path, id, now, &affordable, cycle).await;
    }
}

async fn look(
    known: &mut Known,
    api: &Api,
    path: &ApplicationPath,
    id: StageId,
    now: Timestamp,
    affordable: &impl Fn(&Api) -> bool,
    cycle: &mut Cycle,
) {
    let limit = retained_tasks(known.configuration.as_ref());
    let Some(active) = known.active.get_mut(&id) else { return };
    active.mark_looked(now);
    if active.stage.tasks.active > 0 {
        match task_list::get(api, path, id, Top::Running, ROWS).await {
            Ok(tasks) => active.running = tasks,
            Err(_) => cycle.missing = true,
        }
    }
    if active.failures_are_due() && affordable(api) {
        match task_list::get(api, path, id, Top::Failed, FAILED_ROWS).await {
            Ok(tasks) => {
                active.failed = tasks;
                active.mark_failures();
            }
            Err(_) => cycle.missing = true,
        }
    }
    if active.summary_is_due(now) && active.stage.tasks.succeeded <= limit && affordable(api) {
        active.mark_summarised(now);
        match task_summary::get(api, path, id).await {
            Ok(summary) => active.summary = summary,
            Err(_) => cycle.missing = true,
        }
    }
}
