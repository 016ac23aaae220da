//! What the span of a job says.

use super::Mark;
use super::attributes::Attributes;
use super::forest::{Forest, attempts};
use crate::model::{Job, StageId};
use crate::report::Texts;
use crate::report::privacy;

pub(super) fn attributes(forest: &Forest<'_>, job: &Job, texts: Texts, to: &mut Attributes) {
    to.number("spark.job.id", job.id);
    to.text("spark.job.status", job.status.as_str());
    to.number("spark.job.stages", job.stage_ids.len() as u64);
    let skipped = never_ran(forest, job).count();
    if skipped > 0 && job.completed.is_some() {
        to.number("spark.job.stages_skipped", skipped as u64);
    }
    if let Some(id) = job.sql_execution_id {
        to.number("spark.sql_execution.id", id);
    }
    if let Some(reason) = job.failure_reason.as_deref().filter(|_| texts.are_shown()) {
        to.text("spark.job.failure_reason", privacy::cut(reason, 1_000));
    }
}

/// Stages that the job listed and that never ran, because their output was
/// there.
pub(super) fn never_ran(forest: &Forest<'_>, job: &Job) -> impl Iterator<Item = StageId> {
    job.stage_ids.iter().filter_map(|stage| {
        let mut known = attempts(forest.application, *stage).peekable();
        let first = *known.peek()?;
        known.all(|id| forest.node_of(Mark::Stage(id)).is_none()).then_some(first)
    })
}
