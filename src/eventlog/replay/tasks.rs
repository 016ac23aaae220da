//! Task attempts: the bulk of every log, so nothing is copied from a line
//! unless somebody will look at it.
//!
//! Which ends count as failed and which as killed is AppStatusListener's
//! reckoning: kills and refused commits are killed, everything else that is
//! not a success has failed, a resubmitted success included.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use super::Replay;
use super::accumulators::EndedTask;
use super::checks::name;
use super::executors::End;
use super::measures::{Measured, When};
use super::stages::Ended;
use crate::eventlog::event::{Reason, TaskEnd, TaskInfo, TaskStart};
use crate::eventlog::field::Number;
use crate::model::{
    DataQuality, FailedTask, FailureClass, Speculation, Stage, StageId, StageStatus, Task,
    TaskSpan, TaskStatus,
};

/// Tasks that run at one time; a log that starts more and ends none of them
/// is not followed task by task.
const MOST_ACTIVE: usize = 1_000_000;

/// Executors told apart of which fetches of one stage attempt failed.
const MOST_SOURCES: usize = 1_000;

/// A task attempt between its start and its end.
#[derive(Clone)]
pub(super) struct Active {
    executor: u32,
    /// How many tasks its executor had been given before.
    ordinal: Option<u32>,
    stage: StageId,
}

#[derive(Clone, Default)]
pub(super) struct ActiveTasks {
    map: HashMap<u64, Active>,
    /// Starts were let go: an end without a start says nothing any more.
    overflowed: bool,
}

fn stage_id(stage: Number, attempt: Number) -> Option<StageId> {
    Some(StageId { stage: stage.id()?, attempt: attempt.id().unwrap_or_default() })
}

/// The class of an end that is not a success; `None` for one that is. The
/// flags of the task speak where the event gives no reason.
fn failure(event: &TaskEnd<'_>, task: &TaskInfo<'_>) -> Option<FailureClass> {
    let reason = event.reason.as_ref();
    let Some(word) = reason.and_then(|reason| reason.reason.get()) else {
        return match (task.killed.0, task.failed.0) {
            (true, _) => Some(FailureClass::Killed),
            (false, true) => Some(FailureClass::Unknown),
            (false, false) => None,
        };
    };
    Some(match word {
        "Success" => return None,
        "TaskKilled" => FailureClass::Killed,
        "TaskCommitDenied" => FailureClass::CommitDenied,
        "Resubmitted" => FailureClass::Resubmitted,
        "TaskResultLost" => FailureClass::ResultLost,
        "FetchFailed" => FailureClass::FetchFailed,
        "ExecutorLostFailure" => {
            let text = reason.and_then(|reason| reason.loss_reason.get()).unwrap_or_default();
            match FailureClass::of_text(text) {
                class @ (FailureClass::ContainerMemory | FailureClass::HeapOom) => class,
                _ => FailureClass::ExecutorLost,
            }
        }
        "ExceptionFailure" => reason.map_or(FailureClass::Exception, exception),
        _ => FailureClass::Unknown,
    })
}

/// From the whole stack trace, which is what REST shows: the cause may be
/// deep in it.
fn exception(reason: &Reason<'_>) -> FailureClass {
    if let Some(trace) = reason.stack_trace.get() {
        return FailureClass::of_text(trace);
    }
    let class = reason.class_name.get().unwrap_or_default();
    let description = reason.description.get().unwrap_or_default();
    FailureClass::of_text(&format!("{class}: {description}"))
}

impl Replay<'_> {
    pub(super) fn task_start(&mut self, event: &TaskStart<'_>) {
        let (Some(id), Some(task)) = (stage_id(event.stage, event.attempt), &event.task) else {
            return;
        };
        let launched = self.checks.time(task.launched);
        let executor = self.executors.place(task.executor_id.get(), task.host.get());
        let ordinal = self.executors.launch(executor);
        let stage = &mut self.stages.entry(id).stage;
        if stage.status == StageStatus::Pending || stage.status == StageStatus::Skipped {
            stage.status = StageStatus::Active;
        }
        if let Some(launched) = launched {
            let first = stage.first_task_launched.map_or(launched, |first| first.min(launched));
            stage.first_task_launched = Some(first);
        }
        let Some(task_id) = task.id.count() else { return };
        if self.active.map.len() >= MOST_ACTIVE {
            self.active.overflowed = true;
            return;
        }
        let active = Active { executor, ordinal, stage: id };
        if self.active.map.insert(task_id, active).is_none() {
            self.stages.entry(id).stage.tasks.active += 1;
        }
    }

    pub(super) fn task_end(&mut self, event: &TaskEnd<'_>) {
        let (Some(id), Some(info)) = (stage_id(event.stage, event.attempt), &event.task) else {
            return;
        };
        let finished = self.checks.time(info.finished);
        let failure = failure(event, info);
        let resubmitted = failure == Some(FailureClass::Resubmitted);
        let active = info.id.count().and_then(|task| self.active.map.remove(&task));
        if active.is_none() && !resubmitted && !self.active.overflowed {
            self.checks.mark(DataQuality::DroppedEvents);
        }
        if resubmitted && self.stages.known(id).is_none() {
            return;
        }
        let executor = match &active {
            Some(active) => active.executor,
            None => self.executors.place(info.executor_id.get(), info.host.get()),
        };
        self.leave(active.as_ref().map_or(id, |active| active.stage), active.is_some(), id);

        let when = When::of(info, &mut self.checks);
        let stage = &mut self.stages.entry(id).stage;
        stage.last_progress = stage.last_progress.max(finished);
        note(stage, event, info, failure, when.and_then(|when| when.duration));
        let duration = when.and_then(|when| when.duration).unwrap_or_default();
        // The numbers of a resubmitted task were counted when it succeeded.
        let metrics = event.metrics.as_ref().filter(|_| !resubmitted);
        let measured = metrics.map(|metrics| {
            let profile = self.stages.entry(id).stage.resource_profile_id;
            let configuration = &self.configuration;
            let cpus = || configuration.task_cpus(profile);
            Measured::of(metrics, when.as_ref(), cpus, &mut self.checks)
        });
        if measured.is_none() && !resubmitted {
            self.checks.mark(DataQuality::MissingTaskMetrics);
        }

        if !resubmitted {
            let ended = EndedTask {
                stage: id,
                partition: task_partition(info, id),
                id: info.id.count().unwrap_or_default(),
                succeeded: failure.is_none(),
            };
            let accumulators = &mut self.sql.accumulators;
            accumulators.task_ended(ended, |call| info.accumulables.each(call));
        }

        let end = match failure {
            None => End::Succeeded,
            Some(FailureClass::Resubmitted) => End::Resubmitted,
            Some(class) if class.is_failure() => End::Failed,
            Some(_) => End::Killed,
        };
        self.executors.end(executor, end, active.is_some(), duration, measured.as_ref());
        self.executors.peaks(executor, event.peaks.as_ref());
        let span = when
            .filter(|_| !resubmitted)
            .map(|when| span(&when, executor, measured.as_ref(), failure.is_none()));
        self.stages.task_ended(
            id,
            &Ended {
                succeeded: failure.is_none(),
                failure,
                exception_class: event.reason.as_ref().and_then(|reason| reason.class_name.get()),
                executor,
                task: measured.as_ref(),
                span,
            },
        );
        if let (None, Some(measured), Some(when)) = (failure, &measured, &when)
            && let Some(run_time) = measured.run_time
            && self.stages.is_slow(id, run_time)
            && let Ok(launched) = Timestamp::from_millisecond(when.launched)
        {
            let ordinal = active.as_ref().and_then(|active| active.ordinal);
            self.stages.keep_slow(id, task(info, launched, duration, ordinal, Some(measured)));
        }
        if let (Some(class), Some(when)) = (failure, &when)
            && class.is_failure()
            && !resubmitted
            && when.duration.is_some()
            && let Ok(launched) = Timestamp::from_millisecond(when.launched)
        {
            let ordinal = active.as_ref().and_then(|active| active.ordinal);
            let task = Task {
                status: TaskStatus::Failed,
                ..task(info, launched, duration, ordinal, measured.as_ref())
            };
            self.stages.keep_failed(id, FailedTask { task, class });
        }
        self.stages.put_together_if_done(id, &self.executors, &mut self.checks);
    }

    /// One active task fewer. A task whose end names another stage than its
    /// start did leaves the one it started in.
    fn leave(&mut self, started_in: StageId, was_active: bool, ended_in: StageId) {
        self.stages.entry(ended_in);
        if was_active && let Some(state) = self.stages.known(started_in) {
            state.stage.tasks.active = state.stage.tasks.active.saturating_sub(1);
        }
        let stage = &mut self.stages.entry(ended_in).stage;
        if stage.status == StageStatus::Pending {
            stage.status = StageStatus::Active;
        }
    }
}

/// What a stage keeps of the end of an attempt beside its measures.
fn note(
    stage: &mut Stage,
    event: &TaskEnd<'_>,
    info: &TaskInfo<'_>,
    failure: Option<FailureClass>,
    duration: Option<Duration>,
) {
    if failure.is_none()
        && let Some(bytes) = event.metrics.as_ref().and_then(|metrics| metrics.result_size.count())
    {
        let sum = stage.result_bytes.unwrap_or_default();
        stage.result_bytes = Some(sum.saturating_add(bytes));
    }
    if info.speculative.0 {
        let copies = stage.speculation.get_or_insert_with(|| Speculation {
            lost_time: Some(Duration::ZERO),
            ..Speculation::default()
        });
        copies.copies += 1;
        match failure {
            None => copies.won += 1,
            Some(FailureClass::Killed | FailureClass::CommitDenied) => {
                copies.lost += 1;
                let sum = copies.lost_time.unwrap_or_default();
                copies.lost_time = Some(sum.saturating_add(duration.unwrap_or_default()));
            }
            Some(_) => {}
        }
    }
    if failure == Some(FailureClass::FetchFailed) {
        let manager = event.reason.as_ref().and_then(|reason| reason.block_manager.as_ref());
        let from = name(manager.and_then(|manager| manager.executor_id.get()).unwrap_or_default());
        if stage.fetch_failures.len() < MOST_SOURCES || stage.fetch_failures.contains_key(&from) {
            *stage.fetch_failures.entry(from).or_default() += 1;
        }
    }
}

/// A retry numbers its tasks from 0: without their partitions (before 3.3)
/// nobody knows which those are.
fn task_partition(info: &TaskInfo<'_>, stage: StageId) -> Option<u32> {
    info.partition.id().or_else(|| info.index.id().filter(|_| stage.attempt == 0))
}

fn span(when: &When, executor: u32, task: Option<&Measured>, succeeded: bool) -> TaskSpan {
    let millis = |span: Option<Duration>| {
        u32::try_from(span.unwrap_or_default().as_millis()).unwrap_or(u32::MAX)
    };
    let of = |part: fn(&Measured) -> Option<Duration>| millis(task.and_then(part));
    TaskSpan {
        launched_ms: when.launched,
        duration_ms: millis(when.duration),
        run_ms: of(|task| task.run_time),
        deserialize_ms: of(|task| task.deserialize_time),
        cpu_ms: of(|task| task.cpu_time),
        gc_ms: of(|task| task.gc_time),
        fetch_wait_ms: of(|task| task.fetch_wait_time),
        shuffle_write_ms: of(|task| task.shuffle_write_time),
        result_ms: of(|task| {
            let serialization = task.result_serialization_time.unwrap_or_default();
            Some(serialization.saturating_add(task.getting_result_time))
        }),
        executor,
        succeeded,
    }
}

fn task(
    info: &TaskInfo<'_>,
    launched: Timestamp,
    duration: Duration,
    ordinal_on_executor: Option<u32>,
    measured: Option<&Measured>,
) -> Task {
    Task {
        id: info.id.count().unwrap_or_default(),
        index: info.index.id().unwrap_or_default(),
        attempt: info.attempt.id().unwrap_or_default(),
        executor_id: name(info.executor_id.get().unwrap_or_default()),
        host: name(info.host.get().unwrap_or_default()),
        locality: name(info.locality.get().unwrap_or_default()),
        speculative: info.speculative.0,
        status: TaskStatus::Succeeded,
        launched,
        duration,
        ordinal_on_executor,
        metrics: measured.map(Measured::metrics).unwrap_or_default(),
    }
}
