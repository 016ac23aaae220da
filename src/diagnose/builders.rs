//! Synthetic runs for tests, laid out as Spark would: tasks in launch order
//! on the slot that is free first, everything else worked out from them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Cause, Diagnosis, Finding, Rule, diagnose};
use crate::config::Thresholds;
use crate::model::{
    Application, Column, Executor, ExecutorShare, ExecutorTotals, FailureClass, Job, JobStatus,
    Measures, MemoryPeaks, RunId, Source, Stage, StageId, StageStatus, State, Task, TaskMetrics,
    TaskSpan, TaskStatus,
};

/// When all runs here start.
pub(super) const START: i64 = 1_700_000_000_000;
/// As many slowest tasks as a reader would keep.
const KEPT: usize = 20;

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(START + millis).expect("in range")
}

/// A succeeded run of `seconds` with two executors of two cores on two hosts.
pub(super) fn run(seconds: i64) -> Application {
    let id = RunId { cluster: "default".into(), app_id: "app-1".into(), attempt_id: None };
    let mut application = Application::new(id, Source::EventLog, at(seconds * 1_000));
    application.state = State::Succeeded;
    application.start = Some(at(0));
    application.end = Some(at(seconds * 1_000));
    application.executors = vec![executor("1", "host-a", 2), executor("2", "host-b", 2)];
    application
}

pub(super) fn executor(id: &str, host: &str, cores: u32) -> Executor {
    Executor {
        id: id.into(),
        host: host.into(),
        cores,
        resource_profile_id: 0,
        added: Some(at(0)),
        removed: None,
        removed_reason: None,
        pod: None,
        totals: ExecutorTotals::default(),
        storage_memory_used_bytes: None,
        storage_memory_bytes: None,
        peaks: MemoryPeaks::default(),
    }
}

/// One task attempt to lay out.
#[derive(Clone)]
pub(super) struct Spec {
    /// Launch to finish beyond run time.
    pub(super) overhead: u64,
    pub(super) metrics: TaskMetrics,
    pub(super) failure: Option<FailureClass>,
    pub(super) locality: &'static str,
    /// Runs on this executor only.
    pub(super) only_on: Option<usize>,
}

pub(super) fn task(run_ms: u64) -> Spec {
    let run_time = Duration::from_millis(run_ms);
    let cpu_time = run_time * 9 / 10;
    Spec {
        overhead: 10,
        metrics: TaskMetrics { run_time, cpu_time, ..TaskMetrics::default() },
        failure: None,
        locality: "PROCESS_LOCAL",
        only_on: None,
    }
}

impl Spec {
    pub(super) fn with(mut self, change: impl Fn(&mut TaskMetrics)) -> Self {
        change(&mut self.metrics);
        self
    }

    /// Reads this much of a shuffle.
    pub(super) fn shuffled(self, records: u64, bytes: u64) -> Self {
        self.with(|metrics| {
            metrics.shuffle_read_records = records;
            metrics.shuffle_read_bytes = bytes;
        })
    }

    /// Reads this much of files.
    pub(super) fn scanned(self, records: u64, bytes: u64) -> Self {
        self.with(|metrics| {
            metrics.input_records = records;
            metrics.input_bytes = bytes;
        })
    }

    pub(super) fn failed(mut self, class: FailureClass) -> Self {
        self.failure = Some(class);
        self
    }

    pub(super) fn on(mut self, executor: usize) -> Self {
        self.only_on = Some(executor);
        self
    }
}

/// Many of the same.
pub(super) fn tasks(n: usize, spec: &Spec) -> Vec<Spec> {
    vec![spec.clone(); n]
}

/// Adds a stage submitted at `from` (milliseconds of the run), its tasks on
/// the executors' slots.
pub(super) fn stage(
    application: &mut Application,
    id: u32,
    from: i64,
    specs: impl AsRef<[Spec]>,
) -> &mut Stage {
    stage_attempt(application, StageId { stage: id, attempt: 0 }, from, specs.as_ref())
}

pub(super) fn stage_attempt<'a>(
    application: &'a mut Application,
    id: StageId,
    from: i64,
    specs: &[Spec],
) -> &'a mut Stage {
    let cpus = application.configuration.task_cpus(0);
    let mut slots: Vec<(i64, usize)> = Vec::new();
    for (index, executor) in application.executors.iter().enumerate() {
        let count = (f64::from(executor.cores) / cpus) as usize;
        let added = executor.added.map_or(START, Timestamp::as_millisecond) - START;
        slots.extend(vec![(added.max(from), index); count]);
    }
    let mut launched_on: BTreeMap<usize, u32> = BTreeMap::new();
    for earlier in &application.stages {
        for span in earlier.timeline.iter().flatten() {
            *launched_on.entry(span.executor as usize).or_default() += 1;
        }
    }
    let mut stage = Stage::new(id);
    let mut done: Vec<Task> = Vec::new();
    let mut timeline = Vec::new();
    let mut failures: BTreeMap<FailureClass, u64> = BTreeMap::new();
    for (index, spec) in specs.iter().enumerate() {
        let slot = slots
            .iter_mut()
            .filter(|(_, executor)| spec.only_on.is_none_or(|only| only == *executor))
            .min_by_key(|(free, _)| *free)
            .expect("a slot");
        let run = spec.metrics.run_time.as_millis() as u64;
        let held = (run as f64 / if multiplies(application) { cpus } else { 1.0 }) as u64
            + spec.overhead
            + spec.metrics.deserialize_time.as_millis() as u64;
        let (launched, executor) = *slot;
        slot.0 += held as i64;
        let ordinal = launched_on.entry(executor).or_default();
        let status = match spec.failure {
            None => TaskStatus::Succeeded,
            Some(FailureClass::Killed) => TaskStatus::Killed,
            Some(_) => TaskStatus::Failed,
        };
        timeline.push(TaskSpan {
            launched_ms: START + launched,
            duration_ms: held as u32,
            run_ms: run as u32,
            deserialize_ms: spec.metrics.deserialize_time.as_millis() as u32,
            cpu_ms: spec.metrics.cpu_time.as_millis() as u32,
            gc_ms: spec.metrics.gc_time.as_millis() as u32,
            fetch_wait_ms: spec.metrics.fetch_wait_time.as_millis() as u32,
            shuffle_write_ms: spec.metrics.shuffle_write_time.as_millis() as u32,
            result_ms: spec.metrics.result_serialization_time.as_millis() as u32,
            executor: executor as u32,
            succeeded: spec.failure.is_none(),
        });
        match spec.failure {
            None => stage.tasks.succeeded += 1,
            Some(FailureClass::Killed) => stage.tasks.killed += 1,
            Some(_) => stage.tasks.failed += 1,
        }
        if let Some(class) = spec.failure {
            *failures.entry(class).or_default() += 1;
        }
        done.push(Task {
            id: u64::from(id.stage) * 100_000 + index as u64,
            index: index as u32,
            attempt: 0,
            executor_id: application.executors[executor].id.clone(),
            host: application.executors[executor].host.clone(),
            locality: spec.locality.into(),
            speculative: false,
            status,
            launched: at(launched),
            duration: Duration::from_millis(held),
            ordinal_on_executor: Some(*ordinal),
            metrics: spec.metrics,
        });
        *ordinal += 1;
    }
    timeline.sort_by_key(|span: &TaskSpan| span.launched_ms);
    stage.status = StageStatus::Complete;
    stage.submitted = Some(at(from));
    stage.first_task_launched = timeline
        .first()
        .map(|first| Timestamp::from_millisecond(first.launched_ms).expect("in range"));
    let end = timeline.iter().map(|span| span.launched_ms + i64::from(span.duration_ms)).max();
    stage.completed = end.map(|end| Timestamp::from_millisecond(end).expect("in range"));
    stage.tasks.total = stage.tasks.succeeded.max(1);
    stage.failures = Some(failures);
    stage.rdd_ids = vec![u64::from(id.stage)];
    stage.measures = measures(&done);
    stage.executors = shares(&done);
    let mut slowest: Vec<Task> =
        done.into_iter().filter(|task| task.status == TaskStatus::Succeeded).collect();
    slowest.sort_by_key(|task| std::cmp::Reverse(task.metrics.run_time));
    slowest.truncate(KEPT);
    stage.slowest = slowest;
    stage.timeline = Some(timeline);
    application.stages.push(stage);
    application.stages.last_mut().expect("just pushed")
}

/// Whether this run's Spark multiplies run time by task cpus, in tests that
/// say so.
fn multiplies(application: &Application) -> bool {
    application.configuration.get("test.multiplies") == Some("true")
}

fn shares(done: &[Task]) -> Vec<ExecutorShare> {
    let mut shares: BTreeMap<&str, ExecutorShare> = BTreeMap::new();
    for task in done.iter().filter(|task| task.status == TaskStatus::Succeeded) {
        let share = shares.entry(&task.executor_id).or_insert_with(|| ExecutorShare {
            executor_id: task.executor_id.clone(),
            host: task.host.clone(),
            tasks: 0,
            run_time: Duration::ZERO,
        });
        share.tasks += 1;
        share.run_time += task.metrics.run_time;
    }
    shares.into_values().collect()
}

fn measures(done: &[Task]) -> Measures {
    fn column<T: crate::model::Quantity>(
        done: &[Task],
        of: impl Fn(&TaskMetrics) -> T,
    ) -> crate::model::Distribution<T> {
        let mut column = Column::default();
        for task in done {
            column.push(of(&task.metrics), task.status == TaskStatus::Succeeded, usize::MAX);
        }
        column.finish()
    }
    Measures {
        run_time: column(done, |m| m.run_time),
        cpu_time: column(done, |m| m.cpu_time),
        deserialize_time: column(done, |m| m.deserialize_time),
        gc_time: column(done, |m| m.gc_time),
        scheduler_delay: column(done, |m| m.scheduler_delay),
        fetch_wait_time: column(done, |m| m.fetch_wait_time),
        shuffle_write_time: column(done, |m| m.shuffle_write_time),
        records_read: column(done, TaskMetrics::records_read),
        records_written: column(done, TaskMetrics::records_written),
        input_bytes: column(done, |m| m.input_bytes),
        input_records: column(done, |m| m.input_records),
        output_bytes: column(done, |m| m.output_bytes),
        output_records: column(done, |m| m.output_records),
        shuffle_read_bytes: column(done, |m| m.shuffle_read_bytes),
        shuffle_read_records: column(done, |m| m.shuffle_read_records),
        shuffle_write_bytes: column(done, |m| m.shuffle_write_bytes),
        shuffle_write_records: column(done, |m| m.shuffle_write_records),
        memory_spilled_bytes: column(done, |m| m.memory_spilled_bytes),
        disk_spilled_bytes: column(done, |m| m.disk_spilled_bytes),
        peak_execution_memory_bytes: column(done, |m| m.peak_execution_memory_bytes),
    }
}

/// Adds a job over `[from, to]` (milliseconds of the run); without an end it
/// runs.
pub(super) fn job(application: &mut Application, id: u32, from: i64, to: Option<i64>) -> &mut Job {
    application.jobs.push(Job {
        id,
        status: if to.is_some() { JobStatus::Succeeded } else { JobStatus::Running },
        submitted: Some(at(from)),
        completed: to.map(at),
        stage_ids: Vec::new(),
        failure_reason: None,
        sql_execution_id: None,
        trace_context: None,
    });
    application.jobs.last_mut().expect("just pushed")
}

/// Warms both executors up, so that later stages' first tasks are not their
/// executors' first.
pub(super) fn warm_up(application: &mut Application) {
    let spec = task(100).shuffled(1_000, 10_000);
    stage(application, 0, 0, tasks(40, &spec));
}

/// The same run as the REST API shows it.
pub(super) fn as_rest(application: &Application) -> Application {
    let mut application = application.clone();
    application.source = Source::HistoryServer;
    for stage in &mut application.stages {
        stage.timeline = None;
        stage.operations.clear();
        stage.reads_cache = None;
        stage.failures = None;
        stage.measures.records_read.quantiles = None;
        stage.measures.records_written.quantiles = None;
        for task in stage.slowest.iter_mut().chain(&mut stage.running) {
            task.ordinal_on_executor = None;
        }
    }
    application
}

/// The same run while stage `last` still runs: what had not ended by `now`
/// (milliseconds of the run) is running.
pub(super) fn running_task(spec: &Spec, launched: i64, now: i64, id: u64) -> Task {
    Task {
        id,
        index: id as u32,
        attempt: 0,
        executor_id: "1".into(),
        host: "host-a".into(),
        locality: spec.locality.into(),
        speculative: false,
        status: TaskStatus::Running,
        launched: at(launched),
        duration: Duration::from_millis((now - launched) as u64),
        ordinal_on_executor: None,
        metrics: spec.metrics,
    }
}

pub(super) fn diagnosis(application: &Application) -> Diagnosis {
    diagnose(application, &Thresholds::default())
}

/// Findings of one rule.
pub(super) fn findings(application: &Application, rule: Rule) -> Vec<Finding> {
    diagnosis(application).findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// The one finding of a rule.
pub(super) fn only(application: &Application, rule: Rule) -> Finding {
    let mut found = findings(application, rule);
    assert_eq!(found.len(), 1, "{:?} of {:?}", rule, diagnosis(application).findings);
    found.remove(0)
}

/// Rules and causes that fired.
pub(super) fn fired(application: &Application) -> Vec<(Rule, Option<Cause>)> {
    diagnosis(application).findings.iter().map(|finding| (finding.rule, finding.cause)).collect()
}
