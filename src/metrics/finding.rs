//! Series of findings: the costliest of a run.
//!
//! The labels name rule, cause, severity and a subject of a closed sort.
//! Jobs and hosts have no label of their own (a run can have thousands), so
//! findings that differ only in those share one series, their seconds added
//! up: the savings of one run never exceed the run, so neither does the sum.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::catalogue::Id;
use super::group::Group;
use super::label::Text;
use super::snapshot::{Part, RunView};
use crate::config::Limits;
use crate::diagnose::{Finding, Impact, Subject};
use crate::model::{Application, StageId};

pub(super) fn groups(view: &RunView, run: &Arc<[Text]>, limits: &Limits) -> Part {
    let application = &view.application;
    let name = Text::clean(&view.name, limits.label_length);
    let mut merged: Vec<(Arc<[Text]>, Impact)> = Vec::new();
    let mut places: HashMap<Arc<[Text]>, usize> = HashMap::new();
    for finding in &view.diagnosis.findings {
        let labels = labels(finding, application, &name, run, limits);
        if let Some(place) = places.get(&labels) {
            let impact = &mut merged[*place].1;
            impact.wall = plus(impact.wall, finding.impact.wall);
            impact.core = plus(impact.core, finding.impact.core);
        } else {
            places.insert(Arc::clone(&labels), merged.len());
            merged.push((labels, finding.impact));
        }
    }
    let mut all = merged.into_iter().map(|(labels, impact)| {
        let mut group = Group::new(labels);
        group.add(Id::Finding, true);
        group.add(Id::FindingWall, impact.wall);
        group.add(Id::FindingCore, impact.core);
        group
    });
    let groups = all.by_ref().take(limits.findings_exported).collect();
    Part { groups, reason: "findings_limit", beyond: all.map(|group| group.len()).sum() }
}

fn plus(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, other) => one.or(other),
    }
}

fn labels(
    finding: &Finding,
    application: &Application,
    name: &Text,
    run: &[Text],
    limits: &Limits,
) -> Arc<[Text]> {
    let stage = finding.stage();
    let executor = match &finding.subject {
        Subject::Executor { executor_id } => Text::clean(executor_id, limits.label_length),
        _ => Text::EMPTY,
    };
    let own = [
        name.clone(),
        finding.rule.as_str().into(),
        finding.cause.map_or(Text::EMPTY, |cause| cause.as_str().into()),
        finding.severity.as_str().into(),
        finding.subject.as_str().into(),
        stage.map_or(Text::EMPTY, |stage| stage.stage.into()),
        stage.map_or(Text::EMPTY, |stage| stage.attempt.into()),
        sql_id(application, &finding.subject).map_or(Text::EMPTY, Text::Number),
        executor,
    ];
    run.iter().cloned().chain(own).collect()
}

/// The SQL execution that a job or stage belongs to, where the source tells.
fn sql_id(application: &Application, subject: &Subject) -> Option<u64> {
    let of_job = |id: u32| {
        let place = application.jobs.binary_search_by_key(&id, |job| job.id).ok()?;
        application.jobs[place].sql_execution_id
    };
    match *subject {
        Subject::Job { job_id } => of_job(job_id),
        Subject::Stage { stage_id, stage_attempt_id } => {
            let id = StageId { stage: stage_id, attempt: stage_attempt_id };
            let place = application.stages.binary_search_by_key(&id, |stage| stage.id).ok()?;
            application.stages[place].job_ids.iter().find_map(|job| of_job(*job))
        }
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => Some(sql_id),
        _ => None,
    }
}
