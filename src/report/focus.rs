//! One SQL execution of a run, and what the diagnosis says of it.

use std::collections::BTreeSet;

use super::Diagnosed;
use crate::diagnose::Subject;
use crate::model::StageId;

/// Leaves out what belongs to other executions: them, their jobs and stages,
/// and findings about these. Executions that this one started stay, and so do
/// findings about the whole application, its executors and hosts: they are
/// this execution's as well. The whole stays as it is where there is no such
/// execution.
#[must_use]
pub fn focus(mut run: Diagnosed, sql_id: u64) -> Diagnosed {
    let application = &mut run.application;
    let Some(executions) = &mut application.sql else { return run };
    if !executions.iter().any(|execution| execution.id == sql_id) {
        return run;
    }
    executions.retain(|execution| execution.id == sql_id || execution.root_id == Some(sql_id));
    let ids: BTreeSet<u64> = executions.iter().map(|execution| execution.id).collect();
    let jobs: BTreeSet<u32> =
        executions.iter().flat_map(|execution| execution.job_ids.iter().copied()).collect();
    application.jobs.retain(|job| jobs.contains(&job.id));
    application.stages.retain(|stage| stage.job_ids.iter().any(|job| jobs.contains(job)));
    let stages: BTreeSet<StageId> = application.stages.iter().map(|stage| stage.id).collect();
    let belongs = |subject: &Subject| match subject {
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => ids.contains(sql_id),
        Subject::Job { job_id } => jobs.contains(job_id),
        Subject::Stage { stage_id, stage_attempt_id } => {
            stages.contains(&StageId { stage: *stage_id, attempt: *stage_attempt_id })
        }
        _ => true,
    };
    run.diagnosis.findings.retain(|finding| belongs(&finding.subject));
    run.diagnosis.stages.retain(|id, _| stages.contains(id));
    run.diagnosis.stage_times.retain(|id, _| stages.contains(id));
    run.diagnosis.sql_times.retain(|id, _| ids.contains(id));
    run
}
