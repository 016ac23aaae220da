//! Last step of reading a log: lines in, one [`Application`] out.
//!
//! Events are replayed in the order of the log, as Spark's History Server
//! does it (`AppStatusListener`), so that both tell the same. State that is
//! needed only while something runs goes when it has ended; what is left
//! grows with stages, jobs and executors, each within its limit, and with
//! task spans up to theirs.

mod accumulators;
mod checks;
mod environment;
mod executors;
mod jobs;
mod measures;
mod outcome;
mod sql;
mod stages;
mod streaming;
mod tasks;

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;

use self::checks::Checks;
use self::executors::Executors;
use self::jobs::Jobs;
use self::sql::Executions;
use self::stages::Stages;
use self::streaming::Queries;
use self::tasks::ActiveTasks;
use super::event;
use super::event_sql::SqlEvent;
use super::field::{Number, Text};
use crate::config::Limits;
use crate::model::{
    Application, Configuration, DataQuality, Job, JobStatus, Kind, ResourceProfile, RunId, Source,
    Stage, StageStatus, State,
};

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// An event of Spark's.
    Event,
    /// An event that nobody here knows.
    Unknown,
    /// Nothing: an empty line, or padding.
    Nothing,
    /// No event.
    Bad,
}

/// What the name and place of a log say of it, where the log itself does not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hints<'a> {
    pub(super) name: &'a str,
    pub(super) in_progress: Option<bool>,
    pub(super) modified: Timestamp,
}

/// A log being replayed. A copy can be finished while the log goes on.
#[derive(Clone)]
pub(super) struct Replay<'a> {
    limits: Cow<'a, Limits>,
    checks: Checks,
    id: Option<String>,
    attempt: Option<String>,
    name: Option<String>,
    user: Option<String>,
    version: Option<String>,
    start: Option<Timestamp>,
    ended: Option<End>,
    configuration: Configuration,
    profiles: BTreeMap<u32, ResourceProfile>,
    streamed: bool,
    executors: Executors,
    jobs: Jobs,
    stages: Stages<'a>,
    sql: Executions<'a>,
    queries: Queries,
    active: ActiveTasks,
}

/// The ApplicationEnd.
#[derive(Clone)]
struct End {
    time: Option<Timestamp>,
    exit_code: Option<i32>,
}

fn owned(text: &Text<'_>) -> Option<String> {
    text.get().map(str::to_owned)
}

impl<'a> Replay<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self::with(Cow::Borrowed(limits))
    }

    /// One that outlives whoever made it.
    pub(super) fn owned(limits: Limits) -> Replay<'static> {
        Replay::with(Cow::Owned(limits))
    }

    fn with(limits: Cow<'a, Limits>) -> Self {
        Self {
            checks: Checks::default(),
            id: None,
            attempt: None,
            name: None,
            user: None,
            version: None,
            start: None,
            ended: None,
            configuration: Configuration::default(),
            profiles: BTreeMap::new(),
            streamed: false,
            executors: Executors::default(),
            jobs: Jobs::default(),
            stages: Stages::new(limits.clone()),
            sql: Executions::new(limits.clone()),
            queries: Queries::default(),
            limits,
            active: ActiveTasks::default(),
        }
    }

    /// Whether the log has an ApplicationEnd.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The name of the application, once its start was read: its id where it
    /// has none.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.id.as_deref())
    }

    pub(super) fn mark(&mut self, quality: DataQuality) {
        self.checks.mark(quality);
    }

    /// Replays one line. A line that is no event changes nothing.
    pub(super) fn line(&mut self, line: &[u8]) -> Seen {
        // HDFS leaves NULs where a writer died.
        let blank = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
        let Some(begin) = line.iter().position(|byte| !blank(byte)) else {
            return Seen::Nothing;
        };
        let end = line.iter().rposition(|byte| !blank(byte)).map_or(line.len(), |at| at + 1);
        let line = &line[begin..end];
        // Spark wrote logs in the JVM's own charset once. The lossy reading
        // of good text takes as long as all the rest: it is asked second.
        let line = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        self.event(&line).unwrap_or(Seen::Bad)
    }

    /// Replays the end of a task, of which `read` is what is read. Task ends
    /// are nearly all of a log.
    pub(super) fn task_end_line(&mut self, read: &str, whole: &[u8]) -> Seen {
        match serde_json::from_str::<event::TaskEnd<'_>>(read) {
            Ok(event) if event.task.is_some() => {
                self.task_end(&event);
                Seen::Event
            }
            _ => self.line(whole),
        }
    }

    /// Parses the line as the event it says it is; only then anything is
    /// changed.
    fn event(&mut self, line: &str) -> Result<Seen, serde_json::Error> {
        if !line.starts_with('{') {
            return Ok(Seen::Bad);
        }
        let Some(name) = event::name(line)? else { return Ok(Seen::Bad) };
        match &*name {
            "SparkListenerTaskEnd" => self.task_end(&serde_json::from_str(line)?),
            "SparkListenerTaskStart" => self.task_start(&serde_json::from_str(line)?),
            "SparkListenerStageSubmitted" => self.stage_submitted(&serde_json::from_str(line)?),
            "SparkListenerStageCompleted" => self.stage_completed(&serde_json::from_str(line)?),
            "SparkListenerJobStart" => self.job_start(&serde_json::from_str(line)?),
            "SparkListenerJobEnd" => self.job_end(&serde_json::from_str(line)?),
            "SparkListenerExecutorAdded" => {
                self.executors.added(&serde_json::from_str(line)?, &mut self.checks);
            }
            "SparkListenerExecutorRemoved" => {
                self.executors.removed(&serde_json::from_str(line)?, &mut self.checks);
            }
            "SparkListenerBlockManagerAdded" => {
                self.executors.block_manager_added(&serde_json::from_str(line)?, &mut self.checks);
            }
            "SparkListenerStageExecutorMetrics" => {
                let event: event::StageExecutorMetrics<'_> = serde_json::from_str(line)?;
                self.executors.peaks_of(event.executor_id.get(), event.metrics.as_ref());
            }
            "SparkListenerExecutorMetricsUpdate" => {
                let event: event::ExecutorMetricsUpdate<'_> = serde_json::from_str(line)?;
                for update in event.updates.iter().flatten() {
                    let (id, metrics) = (event.executor_id.get(), update.metrics.as_ref());
                    self.executors.peaks_of(id, metrics);
                    self.executors.driver_told(id, metrics);
                }
            }
            "SparkListenerLogStart" => {
                let event: event::LogStart<'_> = serde_json::from_str(line)?;
                self.version = owned(&event.spark_version).or_else(|| self.version.take());
            }
            "SparkListenerApplicationStart" => {
                self.application_start(&serde_json::from_str(line)?);
            }
            "SparkListenerApplicationEnd" => {
                let event: event::ApplicationEnd = serde_json::from_str(line)?;
                let exit_code = event.exit_code.get().and_then(|code| i32::try_from(code).ok());
                self.ended = Some(End { time: self.checks.time(event.time), exit_code });
            }
            "SparkListenerEnvironmentUpdate" => self.environment(serde_json::from_str(line)?),
            "SparkListenerResourceProfileAdded" => {
                self.resource_profile(&serde_json::from_str(line)?);
            }
            name => {
                if let Some(event) = SqlEvent::of(name) {
                    self.sql_event(event, line)?;
                } else if name.starts_with("com.databricks.") {
                    self.checks.mark(DataQuality::Databricks);
                } else if event::is_stream_start(name) {
                    self.streamed = true;
                } else if !event::is_passed_over(name) {
                    return Ok(Seen::Unknown);
                }
            }
        }
        Ok(Seen::Event)
    }

    fn sql_event(&mut self, event: SqlEvent, line: &str) -> Result<(), serde_json::Error> {
        let checks = &mut self.checks;
        match event {
            SqlEvent::ExecutionStart => self.sql.started(&serde_json::from_str(line)?, checks)?,
            SqlEvent::ExecutionEnd => self.sql.ended(&serde_json::from_str(line)?, checks),
            SqlEvent::AdaptiveExecutionUpdate => {
                self.sql.plan_updated(&serde_json::from_str(line)?, checks)?;
            }
            SqlEvent::AdaptiveMetricUpdates => {
                self.sql.metrics_added(&serde_json::from_str(line)?);
            }
            SqlEvent::DriverAccumUpdates => self.sql.driver_updates(&serde_json::from_str(line)?),
            SqlEvent::QueryStarted => {
                self.queries.started(&serde_json::from_str(line)?, checks);
                self.streamed = true;
            }
            SqlEvent::QueryProgress => {
                self.queries.progress(&serde_json::from_str(line)?, checks)?;
                self.streamed = true;
            }
            SqlEvent::QueryIdle => self.queries.idle(&serde_json::from_str(line)?, checks),
            SqlEvent::QueryTerminated => {
                self.queries.terminated(&serde_json::from_str(line)?, checks);
            }
        }
        Ok(())
    }

    fn job_start(&mut self, event: &event::JobStart<'_>) {
        self.streamed |= jobs::is_streaming(event);
        self.jobs.started(event, self.limits.stages, &mut self.checks);
        let execution = event.properties.as_ref().map(|job| job.sql_execution_id);
        if let Some(execution) = execution.and_then(Number::count) {
            self.sql.seen(execution, &mut self.checks);
        }
        for info in event.stages.iter().flatten() {
            self.stages.announced(info);
        }
        self.stages.keep_within_limit(&mut self.checks);
    }

    fn job_end(&mut self, event: &event::JobEnd<'_>) {
        match self.jobs.ended(event, &mut self.checks) {
            Some(stage_ids) => self.stages.job_ended(stage_ids),
            None => self.checks.mark(DataQuality::DroppedEvents),
        }
    }

    fn stage_submitted(&mut self, event: &event::StageEvent<'_>) {
        if let Some(info) = &event.stage {
            self.stages.submitted(info, &mut self.checks);
            self.stages.keep_within_limit(&mut self.checks);
        }
    }

    fn stage_completed(&mut self, event: &event::StageEvent<'_>) {
        if let Some(info) = &event.stage {
            self.stages.completed(info, &self.executors, &mut self.checks);
            if let Some(id) = Stages::id_of(info) {
                self.sql.accumulators.stage_completed(id, &info.accumulables.0);
            }
        }
    }

    /// The run, as far as the lines told.
    pub(super) fn finish(mut self, cluster: &str, hints: Hints<'_>) -> Application {
        if self.id.is_none() {
            self.checks.mark(DataQuality::NoApplicationStart);
        }
        let id = RunId {
            cluster: cluster.to_owned(),
            app_id: self.id.unwrap_or_else(|| hints.name.to_owned()),
            attempt_id: self.attempt,
        };
        let observed = self.checks.latest.unwrap_or(hints.modified);
        let mut application = Application::new(id, Source::EventLog, observed);
        if let Some(name) = self.name {
            application.name = name;
        }
        application.spark_version = self.version;
        application.user = self.user;
        application.start = self.start;
        application.state = state(self.ended.as_ref(), hints.in_progress);
        match self.ended {
            Some(end) => {
                application.end = end.time;
                application.exit_code = end.exit_code;
            }
            None => self.checks.mark(DataQuality::LogIncomplete),
        }
        application.kind =
            Kind::of(self.streamed, self.configuration.java_command.as_deref(), &application.name);
        if self.configuration.concurrent_gc() {
            self.checks.mark(DataQuality::ConcurrentGc);
        }
        application.configuration = self.configuration;
        let (mut stages, omitted) = self.stages.finish(&self.executors, &mut self.checks);
        let running = application.state == State::Running;
        let (executions, omitted_executions) =
            self.sql.finish(&self.jobs.map, running, &mut self.checks);
        application.sql = Some(executions);
        application.sql_omitted = omitted_executions;
        application.streaming_queries = Some(self.queries.finish());
        application.driver = self.executors.driver();
        application.jobs = self.jobs.map.into_values().collect();
        link(&application.jobs, &mut stages);
        let (executors, places) = self.executors.finish();
        for span in stages.iter_mut().flat_map(|stage| stage.timeline.iter_mut().flatten()) {
            span.executor = places.get(span.executor as usize).copied().unwrap_or(u32::MAX);
        }
        application.executors = executors;
        application.stages = stages;
        application.stages_omitted = omitted;
        application.data_quality = self.checks.quality;
        application.doubt_success();
        application
    }
}

/// How the run stands.
///
/// Spark says how an application ended since 4.0, with an exit code. Before,
/// an ApplicationEnd says only that its context was stopped: a shutdown hook
/// stops it after an uncaught exception as well, and a job that failed may
/// have been caught. Neither success nor failure can be proven from such a
/// log, so it is `Unknown`; a resource manager may know better. A code of 0
/// is doubted where a fatal job speaks against it ([`Application::died_with`]).
fn state(ended: Option<&End>, in_progress: Option<bool>) -> State {
    match (ended, in_progress) {
        (Some(End { exit_code: Some(0), .. }), _) => State::Succeeded,
        (Some(End { exit_code: Some(_), .. }), _) => State::Failed,
        (None, Some(true)) => State::Running,
        _ => State::Unknown,
    }
}

/// Tells each stage which jobs listed it. A stage still active when all of
/// them have ended is a remnant of dropped or late events (SPARK-30388): it
/// ended when they did.
fn link(jobs: &[Job], stages: &mut [Stage]) {
    let mut jobs_of: BTreeMap<u32, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        for stage in &job.stage_ids {
            jobs_of.entry(*stage).or_default().push(job);
        }
    }
    for stage in stages {
        let Some(jobs) = jobs_of.get(&stage.id.stage) else { continue };
        stage.job_ids = jobs.iter().map(|job| job.id).collect();
        let over = jobs.iter().all(|job| job.completed.is_some());
        if stage.status == StageStatus::Active
            && over
            && let Some(last) = jobs.iter().max_by_key(|job| job.completed)
        {
            let failed = last.status == JobStatus::Failed;
            stage.status = if failed { StageStatus::Failed } else { StageStatus::Complete };
            stage.completed = last.completed;
            stage.tasks.active = 0;
        }
    }
}
