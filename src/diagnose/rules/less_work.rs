//! What a run saves where the tasks of some stages have less to do: for rules
//! that know which share of their run time a fault took, and not which tasks
//! took it.

use std::time::Duration;

use super::Impact;
use super::context::Context;
use super::task_list::TaskList;

/// Each of these stages (by its place in `Context::stages`) needs the given
/// share of its run time no more: the whole saving, always an estimate, and
/// what of it lies in which stage.
pub(super) fn saving(
    context: &Context<'_>,
    stages: impl IntoIterator<Item = (usize, f64)>,
) -> (Impact, Vec<(usize, Duration)>) {
    let mut wall = Duration::ZERO;
    let mut core = Duration::ZERO;
    let mut shares = Vec::new();
    for (place, share) in stages {
        let Some(view) = context.stages.get(place) else { continue };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let Some(saving) = TaskList::of(view).and_then(|tasks| {
            tasks.saving(view, |task| {
                task.held.saturating_sub((task.run as f64 * share).round() as u64)
            })
        }) else {
            continue;
        };
        let of_stage = saving.wall.min(view.alone);
        wall = wall.saturating_add(of_stage);
        // The cores are given back, not left idle as beside a straggler.
        let freed = saving.removed.as_secs_f64() * view.cpus;
        core = core.saturating_add(super::context::seconds(freed));
        shares.push((place, of_stage));
    }
    (Impact { wall: Some(wall), core: Some(core), estimated: true }, shares)
}
