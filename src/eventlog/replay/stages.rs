//! Stage attempts while they run, and what is kept of them when they have
//! ended.
//!
//! An attempt collects columns of numbers as long as its tasks run. Spark may
//! report the end of a stage before the ends of its last tasks (SPARK-24415),
//! so it is put together when it has ended *and* no task of it is active. That
//! bounds memory by what runs at one time, not by what has run.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::checks::{Checks, first_lines, name};
use super::executors::{Executors, UNKNOWN};
use super::measures::{Columns, Measured, add_late};
use crate::config::Limits;
use crate::eventlog::event::{Scope, StageInfo};
use crate::model::{
    DataQuality, ExecutorShare, FailedTask, FailureClass, Stage, StageId, StageStatus, Task,
    TaskSpan,
};

/// Exception classes told apart in one stage attempt, for its example.
const MOST_CLASSES: usize = 64;

/// The name of the RDD that runs a function of Python.
const PYTHON_RDD: &str = "PythonRDD";

/// A stage shows its slowest tasks, and all of them below ten.
const FEWEST_SLOWEST: usize = 9;

/// A stage attempt that has not been put together yet.
#[derive(Clone, Default)]
struct Collecting {
    columns: Columns,
    /// Successful tasks and their run time, by executor place.
    shares: HashMap<u32, (u64, Duration)>,
    /// Failures by exception class.
    classes: BTreeMap<String, u64>,
    /// `None`: over the limit.
    spans: Option<Vec<TaskSpan>>,
}

#[derive(Clone)]
pub(super) struct StageState {
    pub(super) stage: Stage,
    collecting: Option<Box<Collecting>>,
    /// Put together: what comes now is only added to counts and sums.
    done: bool,
}

/// One task attempt that ended, as its stage counts it.
pub(super) struct Ended<'a> {
    pub(super) succeeded: bool,
    /// `None` for a success.
    pub(super) failure: Option<FailureClass>,
    pub(super) exception_class: Option<&'a str>,
    pub(super) executor: u32,
    pub(super) task: Option<&'a Measured>,
    pub(super) span: Option<TaskSpan>,
}

#[derive(Clone)]
pub(super) struct Stages<'a> {
    limits: Cow<'a, Limits>,
    map: BTreeMap<StageId, StageState>,
    omitted: u64,
    /// Task spans that may still be kept.
    spans_left: usize,
    /// From how many attempts on it is worth looking for some to leave out.
    next_cut: usize,
}

impl<'a> Stages<'a> {
    pub(super) fn new(limits: Cow<'a, Limits>) -> Self {
        Self {
            map: BTreeMap::new(),
            omitted: 0,
            spans_left: limits.task_spans,
            next_cut: limits.stages.saturating_add(slack(&limits)),
            limits,
        }
    }

    pub(super) fn known(&mut self, id: StageId) -> Option<&mut StageState> {
        self.map.get_mut(&id)
    }

    /// The stage attempt, made if it is new.
    pub(super) fn entry(&mut self, id: StageId) -> &mut StageState {
        self.map.entry(id).or_insert_with(|| {
            let mut stage = Stage::new(id);
            stage.failures = Some(BTreeMap::new());
            StageState { stage, collecting: None, done: false }
        })
    }

    pub(super) fn id_of(info: &StageInfo<'_>) -> Option<StageId> {
        Some(StageId { stage: info.id.id()?, attempt: info.attempt.id().unwrap_or_default() })
    }

    /// A job named the stage as one of its own.
    pub(super) fn announced(&mut self, info: &StageInfo<'_>) {
        let Some(id) = Self::id_of(info) else { return };
        let state = self.entry(id);
        if state.stage.status == StageStatus::Pending {
            state.describe(info);
        }
    }

    pub(super) fn submitted(&mut self, info: &StageInfo<'_>, checks: &mut Checks) {
        let Some(id) = Self::id_of(info) else { return };
        let submitted = checks.time(info.submitted);
        let state = self.entry(id);
        state.describe(info);
        state.stage.status = StageStatus::Active;
        state.stage.submitted = submitted.or(state.stage.submitted);
    }

    pub(super) fn completed(
        &mut self,
        info: &StageInfo<'_>,
        executors: &Executors,
        checks: &mut Checks,
    ) {
        let Some(id) = Self::id_of(info) else { return };
        let (submitted, completed) = (checks.time(info.submitted), checks.time(info.completed));
        let state = self.entry(id);
        state.describe(info);
        let stage = &mut state.stage;
        stage.submitted = submitted.or(stage.submitted);
        stage.completed = completed;
        stage.failure_reason = info.failure_reason.get().and_then(first_lines);
        // As AppStatusListener decides it.
        stage.status = if stage.failure_reason.is_some() {
            StageStatus::Failed
        } else if submitted.is_some() {
            StageStatus::Complete
        } else {
            StageStatus::Skipped
        };
        self.put_together_if_done(id, executors, checks);
    }

    /// A job ended: what it named and nobody submitted was skipped, its
    /// output being there already.
    pub(super) fn job_ended(&mut self, stage_ids: &[u32]) {
        for stage in stage_ids {
            let attempts = StageId { stage: *stage, attempt: 0 }..=StageId {
                stage: *stage,
                attempt: u32::MAX,
            };
            for (_, state) in self.map.range_mut(attempts) {
                if state.stage.status == StageStatus::Pending {
                    state.stage.status = StageStatus::Skipped;
                }
            }
        }
    }

    /// A task attempt ended: counts, columns, spans.
    pub(super) fn task_ended(&mut self, id: StageId, ended: &Ended<'_>) {
        let limits = &*self.limits;
        let Some(state) = self.map.get_mut(&id) else { return };
        let stage = &mut state.stage;
        match ended.failure {
            None => stage.tasks.succeeded += 1,
            Some(class) => {
                if class.is_failure() {
                    stage.tasks.failed += 1;
                } else {
                    stage.tasks.killed += 1;
                }
                *stage.failures.get_or_insert_default().entry(class).or_default() += 1;
            }
        }
        if state.done {
            if let Some(task) = ended.task {
                add_late(&mut stage.measures, task);
            }
            return;
        }
        let collecting = state.collecting.get_or_insert_with(|| {
            Box::new(Collecting { spans: Some(Vec::new()), ..Collecting::default() })
        });
        if let Some(class) = ended.exception_class
            && (collecting.classes.len() < MOST_CLASSES || collecting.classes.contains_key(class))
        {
            *collecting.classes.entry(name(class)).or_default() += 1;
        }
        if let Some(task) = ended.task {
            collecting.columns.push(task, ended.succeeded, limits.tasks_per_stage);
        }
        if ended.succeeded && ended.executor != UNKNOWN {
            let share = collecting.shares.entry(ended.executor).or_default();
            share.0 += 1;
            let run_time = ended.task.and_then(|task| task.run_time).unwrap_or_default();
            share.1 = share.1.saturating_add(run_time);
        }
        if let (Some(spans), Some(span)) = (&mut collecting.spans, ended.span) {
            if self.spans_left == 0 {
                self.spans_left += spans.len();
                collecting.spans = None;
            } else {
                self.spans_left -= 1;
                spans.push(span);
            }
        }
    }

    /// Whether a successful attempt of this run time is among the slowest so
    /// far: asked before anything of it is copied.
    pub(super) fn is_slow(&self, id: StageId, run_time: Duration) -> bool {
        let most = self.limits.slowest_tasks.max(FEWEST_SLOWEST);
        self.map.get(&id).is_some_and(|state| {
            let slowest = &state.stage.slowest;
            slowest.len() < most
                || slowest.last().is_some_and(|last| last.metrics.run_time < run_time)
        })
    }

    /// Keeps it among the slowest, longest run time first.
    pub(super) fn keep_slow(&mut self, id: StageId, task: Task) {
        let most = self.limits.slowest_tasks.max(FEWEST_SLOWEST);
        let Some(state) = self.map.get_mut(&id) else { return };
        let slowest = &mut state.stage.slowest;
        let at = slowest.partition_point(|other| other.metrics.run_time >= task.metrics.run_time);
        slowest.insert(at, task);
        slowest.truncate(most);
    }

    pub(super) fn keep_failed(&mut self, id: StageId, task: FailedTask) {
        if let Some(state) = self.map.get_mut(&id) {
            task.keep(&mut state.stage.failed);
        }
    }

    /// Puts a stage attempt together if it has ended and no task of it runs.
    pub(super) fn put_together_if_done(
        &mut self,
        id: StageId,
        executors: &Executors,
        checks: &mut Checks,
    ) {
        let Some(state) = self.map.get_mut(&id) else { return };
        let over = matches!(
            state.stage.status,
            StageStatus::Complete | StageStatus::Failed | StageStatus::Skipped
        );
        if over && state.stage.tasks.active == 0 {
            state.put_together(executors, checks);
        }
    }

    /// Leaves out the cheapest attempts that have ended, once there are
    /// clearly more than may be kept; in a log of nothing but beginnings, of
    /// those that have not ended too.
    pub(super) fn keep_within_limit(&mut self, checks: &mut Checks) {
        if self.map.len() <= self.next_cut {
            return;
        }
        let most = self.limits.stages;
        let ended = self.map.values().filter(|state| state.has_ended()).count();
        self.cut(ended.saturating_sub(most), checks);
        self.cut(
            self.map.len().saturating_sub(most.saturating_mul(2).saturating_add(1_024)),
            checks,
        );
        self.next_cut = self.map.len() + slack(&self.limits);
    }

    /// Leaves out this many: what has ended before what has not, the cheapest
    /// first.
    fn cut(&mut self, too_many: usize, checks: &mut Checks) {
        if too_many == 0 {
            return;
        }
        let mut costs: Vec<(bool, Duration, StageId)> = self
            .map
            .iter()
            .map(|(id, state)| {
                (!state.has_ended(), state.stage.measures.run_time.sum_or_zero(), *id)
            })
            .collect();
        costs.sort_unstable();
        for (_, _, id) in costs.into_iter().take(too_many) {
            if let Some(state) = self.map.remove(&id)
                && let Some(spans) = state.stage.timeline
            {
                self.spans_left += spans.len();
            }
        }
        self.omitted += too_many as u64;
        checks.mark(DataQuality::StagesOmitted);
    }

    /// All attempts, ascending, and how many were left out.
    pub(super) fn finish(
        mut self,
        executors: &Executors,
        checks: &mut Checks,
    ) -> (Vec<Stage>, u64) {
        for state in self.map.values_mut() {
            state.put_together(executors, checks);
        }
        let incomplete = |id: &StageId| {
            // Partitions of a later attempt may come from tasks of the one
            // before.
            let next = StageId { stage: id.stage, attempt: 1 };
            id.attempt == 0 && !self.map.contains_key(&next)
        };
        if self.map.iter().any(|(id, state)| incomplete(id) && state.lacks_ends()) {
            checks.mark(DataQuality::DroppedEvents);
        }
        self.cut(self.map.len().saturating_sub(self.limits.stages), checks);
        (self.map.into_values().map(|state| state.stage).collect(), self.omitted)
    }
}

/// Looking for what to leave out costs a pass over all attempts: it is done
/// once in so many.
fn slack(limits: &Limits) -> usize {
    limits.stages / 8 + 16
}

impl StageState {
    fn has_ended(&self) -> bool {
        !matches!(self.stage.status, StageStatus::Active | StageStatus::Pending)
    }

    /// It completed with fewer ends of tasks than it has partitions: some are
    /// missing from the log.
    fn lacks_ends(&self) -> bool {
        let tasks = self.stage.tasks;
        self.stage.status == StageStatus::Complete
            && tasks.succeeded + tasks.failed + tasks.killed < tasks.total
    }

    /// What Spark says of the stage itself. Its RDDs are listed in three
    /// events; once is enough.
    fn describe(&mut self, info: &StageInfo<'_>) {
        let stage = &mut self.stage;
        if stage.name.is_empty()
            && let Some(text) = info.name.get()
        {
            stage.name = name(text);
        }
        if let Some(tasks) = info.tasks.count() {
            stage.tasks.total = tasks;
        }
        if let Some(profile) = info.resource_profile_id.id() {
            stage.resource_profile_id = profile;
        }
        if let Some(parents) = &info.parents
            && stage.parent_ids.is_empty()
        {
            stage.parent_ids = parents.iter().filter_map(|id| id.id()).collect();
        }
        if stage.reads_cache.is_some() {
            return;
        }
        let Some(rdds) = &info.rdds else { return };
        stage.rdd_ids = rdds.iter().filter_map(|rdd| rdd.id.count()).collect();
        let mut reads_cache = false;
        for rdd in rdds {
            let rdd_name = rdd.name.get().unwrap_or_default();
            reads_cache |= rdd_name.starts_with("In-memory table");
            // Functions of Python over RDDs have no scope of their own.
            if rdd_name == PYTHON_RDD && !stage.operations.iter().any(|known| known == PYTHON_RDD) {
                stage.operations.push(name(PYTHON_RDD));
            }
            let scope: Option<Scope<'_>> =
                rdd.scope.get().and_then(|scope| serde_json::from_str(scope).ok());
            if let Some(operation) = scope.as_ref().and_then(|scope| scope.name.get()) {
                reads_cache |= operation == "InMemoryTableScan";
                if !stage.operations.iter().any(|known| known == operation) {
                    stage.operations.push(name(operation));
                }
            }
        }
        stage.reads_cache = Some(reads_cache);
    }

    fn put_together(&mut self, executors: &Executors, checks: &mut Checks) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let stage = &mut self.stage;
        let collecting = self.collecting.take().map_or_else(
            || Collecting { spans: Some(Vec::new()), ..Collecting::default() },
            |collecting| *collecting,
        );
        if collecting.columns.is_estimated() {
            checks.mark(DataQuality::QuantilesEstimated);
        }
        stage.measures = collecting.columns.finish();
        stage.failure_example = collecting
            .classes
            .into_iter()
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
            .map(|(class, _)| class);
        let mut shares: Vec<(u32, (u64, Duration))> = collecting.shares.into_iter().collect();
        shares.sort_unstable();
        stage.executors = shares
            .into_iter()
            .filter_map(|(place, (tasks, run_time))| {
                let executor = executors.get(place)?;
                Some(ExecutorShare {
                    executor_id: executor.id.clone(),
                    host: executor.host.clone(),
                    tasks,
                    run_time,
                })
            })
            .collect();
        stage.timeline = collecting.spans.map(|mut spans| {
            spans.sort_by_key(|span| span.launched_ms);
            spans.shrink_to_fit();
            spans
        });
        stage.slowest.shrink_to_fit();
    }
}
