//! Series of SQL executions: the longest of a run, running ones first.
//!
//! Their text is never a label: `sql_id` is the number that Spark's SQL tab
//! and `diagnose --sql-id` have, and findings carry.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::catalogue::Id;
use super::group::Group;
use super::label::Text;
use super::snapshot::{Part, RunView};
use crate::config::Limits;
use crate::model::{Application, SqlExecution, SqlStatus};

pub(super) fn groups(view: &RunView, run: &Arc<[Text]>, limits: &Limits) -> Part {
    let application = &view.application;
    let run_time = run_time(application);
    let mut seen = HashSet::new();
    let mut executions: Vec<(Option<Duration>, &SqlExecution)> = application
        .sql
        .iter()
        .flatten()
        .filter(|execution| seen.insert(execution.id))
        .map(|execution| (duration(execution, application.observed), execution))
        .collect();
    executions.sort_by_key(|(duration, execution)| {
        (execution.status != SqlStatus::Running, Reverse(*duration), execution.id)
    });
    let mut all = executions.into_iter().map(|(duration, execution)| {
        group(execution, duration, run_time.get(&execution.id).copied(), run)
    });
    let groups = all.by_ref().take(limits.sql_executions_exported).collect();
    Part { groups, reason: "sql_executions_limit", beyond: all.map(|group| group.len()).sum() }
}

/// Start to end, or to the latest observation while it runs. `None` of one
/// whose end never came.
fn duration(execution: &SqlExecution, observed: Timestamp) -> Option<Duration> {
    let running = execution.status == SqlStatus::Running;
    let end = execution.end.or(running.then_some(observed))?;
    Duration::try_from(end.duration_since(execution.start?)).ok()
}

/// Run time of the tasks of each execution: those of the stages of its jobs. A
/// stage that several of them share is of the one whose job came first.
fn run_time(application: &Application) -> HashMap<u64, Duration> {
    let mut execution_of: HashMap<u32, u64> = HashMap::new();
    for execution in application.sql.iter().flatten() {
        for job in &execution.job_ids {
            execution_of.entry(*job).or_insert(execution.id);
        }
    }
    let mut sums: HashMap<u64, Duration> = HashMap::new();
    for stage in &application.stages {
        let execution = stage.job_ids.iter().find_map(|job| execution_of.get(job));
        if let (Some(execution), Some(run_time)) = (execution, stage.measures.run_time.sum) {
            let sum = sums.entry(*execution).or_default();
            *sum = sum.saturating_add(run_time);
        }
    }
    sums
}

fn group(
    execution: &SqlExecution,
    duration: Option<Duration>,
    run_time: Option<Duration>,
    run: &[Text],
) -> Group {
    let labels = run.iter().cloned().chain([Text::Number(execution.id)]).collect();
    let mut group = Group::new(labels);
    for status in SqlStatus::ALL {
        group.add_for(Id::SqlExecutionStatus, status.as_str(), status == execution.status);
    }
    group.add(Id::SqlExecutionSubmitted, execution.start);
    group.add(Id::SqlExecutionDuration, duration);
    group.add(Id::SqlExecutionJobs, execution.job_ids.len());
    group.add(Id::SqlExecutionTaskRunTime, run_time);
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Diagnosis;
    use crate::metrics::{Value, build};
    use crate::model::{RunId, Source, Stage, StageId};
    use crate::telemetry::TelemetrySnapshot;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn execution(id: u64, start: i64, end: Option<i64>, jobs: &[u32]) -> SqlExecution {
        let status = if end.is_some() { SqlStatus::Completed } else { SqlStatus::Running };
        let (start, end) = (Some(at(start)), end.map(at));
        SqlExecution { status, start, end, job_ids: jobs.to_vec(), ..SqlExecution::new(id) }
    }

    fn stage(id: u32, jobs: &[u32], run_time: Option<u64>) -> Stage {
        let mut stage = Stage::new(StageId { stage: id, attempt: 0 });
        stage.job_ids = jobs.to_vec();
        stage.measures.run_time.sum = run_time.map(Duration::from_secs);
        stage
    }

    fn view(executions: Vec<SqlExecution>, stages: Vec<Stage>) -> RunView {
        let id = RunId { cluster: "c".into(), app_id: "app-1".into(), attempt_id: None };
        let mut application = Application::new(id, Source::EventLog, at(100));
        application.sql = Some(executions);
        application.stages = stages;
        let (application, diagnosis) = (Arc::new(application), Arc::new(Diagnosis::default()));
        RunView { name: "job".into(), application, diagnosis, trace_id: None }
    }

    #[test]
    fn running_ones_come_first_then_the_longest() {
        let mut lost = execution(4, 0, Some(0), &[]);
        lost.end = None;
        lost.status = SqlStatus::Unknown;
        let executions = vec![
            execution(1, 0, Some(5), &[]),
            execution(2, 10, Some(60), &[]),
            execution(3, 98, None, &[]),
            lost,
        ];
        let view = view(executions, Vec::new());
        let limits = Limits { sql_executions_exported: 3, ..Limits::default() };
        let snapshot = build(&[view], &[], &TelemetrySnapshot::default(), &limits, at(100));
        let shown = snapshot.family(Id::SqlExecutionJobs).iter();
        let shown: Vec<String> =
            shown.map(|sample| sample.label_values().last().unwrap().to_string()).collect();
        assert_eq!(shown, ["3", "2", "1"]);
        let durations = snapshot.family(Id::SqlExecutionDuration).iter();
        let durations: Vec<Value> = durations.map(|sample| sample.value.clone()).collect();
        assert_eq!(durations, [2.0, 50.0, 5.0].map(Value::Number));
        // The one that never ended: five states, when it began, its jobs.
        assert_eq!(snapshot.dropped()["sql_executions_limit"], 7);
    }

    #[test]
    fn tasks_are_those_of_the_stages_of_its_jobs() {
        let executions = vec![execution(1, 0, Some(5), &[0, 1]), execution(2, 6, Some(9), &[2])];
        let stages = vec![
            stage(0, &[0], Some(3)),
            stage(1, &[1, 2], Some(4)),
            stage(2, &[2], None),
            stage(3, &[7], Some(50)),
        ];
        let sums = run_time(&view(executions, stages).application);
        assert_eq!(sums, HashMap::from([(1, Duration::from_secs(7))]));
    }
}
