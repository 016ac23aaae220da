//! A driver's log (or that of a Kyuubi engine, which is one) -> what it tells
//! of a run: its id, its UI, jobs and stages in time, errors.
//!
//! Spark's own messages are told by their words, which hardly change: `Got job
//! 3`, `Submitting 4 missing tasks from ShuffleMapStage 7`, `ResultStage 8
//! (...) finished in 1.2 s`, `Job 3 finished: ..., took 1.9 s`. The log has no
//! numbers of tasks: whatever is said of bytes, rows or memory needs the event
//! log or the UI. Nothing in it is believed beyond that: a URL found here is
//! shown, not asked.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::time::Duration;

use jiff::Timestamp;

use super::log_line::{self, LogLine};
use crate::model::{
    Application, Job, JobStatus, RunId, Source, Stage, StageId, StageStatus, State,
};

/// Jobs and stage attempts kept, the first ones.
const MOST: usize = 100_000;

/// Error lines kept.
const ERRORS: usize = 100;

/// What a driver's log tells.
#[derive(Debug, Clone)]
pub struct DriverLog {
    /// Jobs, stages, name, version, times, as far as they are there.
    pub application: Application,
    /// Whether the id was found; else it is made up.
    pub id_known: bool,
    /// The UI's address as the driver announced it, or YARN's.
    pub ui: Option<String>,
    /// When the driver's heap, not an executor's, was used up.
    pub out_of_memory: Option<Option<Timestamp>>,
    pub executors_lost: u64,
    /// Lines of level ERROR and FATAL, and by which logger: never their text,
    /// which may hold anything.
    pub errors: BTreeMap<String, u64>,
    /// Lines that a logger began.
    pub lines: u64,
}

/// Reads a log to its end.
pub fn read(cluster: &str, name: &str, reader: impl BufRead) -> io::Result<DriverLog> {
    let mut reading = Reading::new(cluster, name);
    log_line::for_each(reader, |line| reading.line(&log_line::parse(line)))?;
    Ok(reading.finish())
}

struct Reading {
    log: DriverLog,
    jobs: BTreeMap<u32, Job>,
    stages: BTreeMap<StageId, Stage>,
    /// The attempt of each stage that ran last.
    attempts: BTreeMap<u32, u32>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// Whoever wrote the last line: its stack trace follows.
    logger: String,
    /// That line was about a task that failed.
    of_task: bool,
    exit_code: Option<i32>,
    stopped: bool,
    /// The job that the next stages are of.
    job: Option<u32>,
}

impl Reading {
    fn new(cluster: &str, name: &str) -> Self {
        let id = RunId { cluster: cluster.to_owned(), app_id: name.to_owned(), attempt_id: None };
        let application = Application::new(id, Source::DriverLog, Timestamp::UNIX_EPOCH);
        Self {
            log: DriverLog {
                application,
                id_known: false,
                ui: None,
                out_of_memory: None,
                executors_lost: 0,
                errors: BTreeMap::new(),
                lines: 0,
            },
            jobs: BTreeMap::new(),
            stages: BTreeMap::new(),
            attempts: BTreeMap::new(),
            first: None,
            last: None,
            logger: String::new(),
            of_task: false,
            exit_code: None,
            stopped: false,
            job: None,
        }
    }

    fn line(&mut self, line: &LogLine) {
        if !line.level.is_empty() {
            self.log.lines += 1;
            self.first = self.first.or(line.time);
            self.last = self.last.max(line.time);
            self.logger.clone_from(&line.logger);
            self.of_task = is_of_task(&line.message);
            if matches!(line.level.as_str(), "ERROR" | "FATAL")
                && (self.log.errors.len() < ERRORS || self.log.errors.contains_key(&line.logger))
            {
                *self.log.errors.entry(line.logger.clone()).or_default() += 1;
            }
        }
        self.memory(line);
        self.identity(&line.message);
        match line.logger.as_str() {
            "DAGScheduler" => self.scheduler(&line.message, line.time),
            "SparkContext" => self.context(&line.message),
            "TaskSchedulerImpl" if line.message.starts_with("Lost executor ") => {
                self.log.executors_lost += 1;
            }
            _ => {}
        }
    }

    /// `OutOfMemoryError` in the driver itself: at the beginning of a trace
    /// that is not a task's, or where a thread of the driver died.
    fn memory(&mut self, line: &LogLine) {
        const ERROR: &str = "java.lang.OutOfMemoryError";
        let named = line.exception.as_deref() == Some(ERROR);
        if !named && !line.message.contains(ERROR) {
            return;
        }
        let of_executor = ["Executor", "TaskSetManager", "DAGScheduler", "TaskSchedulerImpl"]
            .contains(&self.logger.as_str());
        if of_executor || self.of_task || is_of_task(&line.message) {
            return;
        }
        let begins = line.message.trim_start_matches([':', ' ']).starts_with(ERROR);
        let thread = line.message.contains("Exception in thread \"")
            || line.message.contains("Uncaught exception in thread");
        if named || begins || thread {
            let time = line.time.or(self.last);
            self.log.out_of_memory.get_or_insert(time);
        }
    }

    fn identity(&mut self, message: &str) {
        if !self.log.id_known
            && let Some(id) = message.split(|c: char| !is_id_part(c)).find(|word| is_app_id(word))
        {
            id.clone_into(&mut self.log.application.id.app_id);
            self.log.id_known = true;
        }
        if self.log.ui.is_none() {
            let after = ["and started at ", "tracking URL: ", "application web UI: "]
                .iter()
                .find_map(|words| message.split_once(words));
            if let Some((_, url)) = after {
                let url = url.split_whitespace().next().unwrap_or_default();
                self.log.ui = url.starts_with("http").then(|| url.to_owned());
            }
        }
    }

    fn context(&mut self, message: &str) {
        let application = &mut self.log.application;
        if let Some(version) = message.strip_prefix("Running Spark version ") {
            application.spark_version = Some(version.trim().to_owned());
        } else if let Some(name) = message.strip_prefix("Submitted application: ") {
            name.trim().clone_into(&mut application.name);
        } else if let Some((_, code)) = message.split_once("stopping with exitCode ") {
            let digits = code.trim_start_matches(|c: char| c != '-' && !c.is_ascii_digit());
            let end = digits.find(|c: char| c != '-' && !c.is_ascii_digit());
            self.exit_code = digits[..end.unwrap_or(digits.len())].parse().ok();
        } else if message.starts_with("Successfully stopped SparkContext") {
            self.stopped = true;
        }
    }

    fn scheduler(&mut self, message: &str, time: Option<Timestamp>) {
        if let Some(rest) = message.strip_prefix("Got job ") {
            let Some(id) = number(rest) else { return };
            self.job = Some(id);
            if self.jobs.len() < MOST {
                self.jobs.entry(id).or_insert_with(|| Job {
                    id,
                    status: JobStatus::Running,
                    submitted: time,
                    completed: None,
                    stage_ids: Vec::new(),
                    failure_reason: None,
                    sql_execution_id: None,
                    trace_context: None,
                });
            }
        } else if let Some(rest) = message.strip_prefix("Submitting ")
            && let Some((tasks, stage)) = rest.split_once(" missing tasks from ")
        {
            if let (Ok(tasks), Some(stage)) = (tasks.parse(), stage_number(stage)) {
                self.stage_submitted(stage, tasks, time);
            }
        } else if let Some(rest) = message.strip_prefix("Job ") {
            self.job_ended(rest, time);
        } else if let Some(stage) = stage_number(message) {
            self.stage_ended(stage, message, time);
        }
    }

    fn stage_submitted(&mut self, stage: u32, tasks: u64, time: Option<Timestamp>) {
        let last = self.attempts.get(&stage).copied();
        let open = last.and_then(|attempt| self.stages.get(&StageId { stage, attempt }));
        // The same attempt again is told once.
        if open.is_some_and(|open| open.completed.is_none() && open.status == StageStatus::Active) {
            return;
        }
        if self.stages.len() >= MOST {
            return;
        }
        let id = StageId { stage, attempt: last.map_or(0, |attempt| attempt + 1) };
        let mut made = Stage::new(id);
        made.status = StageStatus::Active;
        made.submitted = time;
        made.tasks.total = tasks;
        if let Some(job) = self.job.and_then(|job| self.jobs.get_mut(&job)) {
            made.job_ids = vec![job.id];
            if !job.stage_ids.contains(&stage) {
                job.stage_ids.push(stage);
            }
        }
        self.attempts.insert(stage, id.attempt);
        self.stages.insert(id, made);
    }

    fn stage_ended(&mut self, stage: u32, message: &str, time: Option<Timestamp>) {
        let (status, took) =
            match (message.split_once(") finished in "), message.split_once(") failed in ")) {
                (Some((_, took)), _) => (StageStatus::Complete, took),
                (None, Some((_, took))) => (StageStatus::Failed, took),
                (None, None) => return,
            };
        let attempt = self.attempts.get(&stage).copied().unwrap_or_default();
        let Some(ended) = self.stages.get_mut(&StageId { stage, attempt }) else { return };
        ended.status = status;
        ended.completed = time;
        // Lines may be stamped by the second; this is by the millisecond.
        if let (Some(time), Some(span)) = (time, span(took)) {
            ended.submitted = time.checked_sub(span).ok().or(ended.submitted);
        }
        if status == StageStatus::Failed {
            let reason = took.split_once(" due to ").map(|(_, reason)| first_line(reason));
            ended.failure_reason = reason;
        }
    }

    fn job_ended(&mut self, rest: &str, time: Option<Timestamp>) {
        let status = match rest.split_once(' ') {
            Some((_, after)) if after.starts_with("finished:") => JobStatus::Succeeded,
            Some((_, after)) if after.starts_with("failed:") => JobStatus::Failed,
            _ => return,
        };
        let Some(job) = number(rest).and_then(|id| self.jobs.get_mut(&id)) else { return };
        job.status = status;
        job.completed = time;
        if let (Some(time), Some(span)) =
            (time, rest.rsplit_once("took ").and_then(|(_, took)| span(took)))
        {
            job.submitted = time.checked_sub(span).ok().or(job.submitted);
        }
    }

    fn finish(mut self) -> DriverLog {
        let application = &mut self.log.application;
        for job in self.jobs.values_mut().filter(|job| job.status == JobStatus::Failed) {
            let mut reasons = job.stage_ids.iter().filter_map(|stage| {
                let attempt = self.attempts.get(stage).copied()?;
                self.stages.get(&StageId { stage: *stage, attempt })?.failure_reason.clone()
            });
            job.failure_reason = reasons.next_back();
            if let Some(reason) = &job.failure_reason {
                job.status = JobStatus::of_failure(reason);
            }
        }
        application.start = self.first;
        application.exit_code = self.exit_code;
        let ended = self.stopped || self.exit_code.is_some() || self.log.out_of_memory.is_some();
        application.end = self.last.filter(|_| ended);
        application.state = match self.exit_code {
            Some(0) => State::Succeeded,
            Some(_) => State::Failed,
            None => State::Unknown,
        };
        application.observed = self.last.unwrap_or(Timestamp::UNIX_EPOCH);
        application.jobs = self.jobs.into_values().collect();
        application.stages = self.stages.into_values().collect();
        application.doubt_success();
        self.log
    }
}

/// A line about a task, whose error was an executor's.
fn is_of_task(message: &str) -> bool {
    ["Lost task ", "Exception in task ", "Job aborted due to stage failure", "Executor task launch"]
        .iter()
        .any(|words| message.contains(words))
}

fn is_id_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// `application_1700000000000_0001`, `app-20261130040055-0000`,
/// `local-1796009084799`, `spark-` and 32 hexadecimal digits.
fn is_app_id(word: &str) -> bool {
    let digits = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = word.strip_prefix("application_") {
        return rest.split_once('_').is_some_and(|(time, number)| digits(time) && digits(number));
    }
    if let Some(rest) = word.strip_prefix("app-") {
        return rest.split_once('-').is_some_and(|(time, number)| digits(time) && digits(number));
    }
    if let Some(rest) = word.strip_prefix("local-") {
        return rest.len() >= 12 && digits(rest);
    }
    word.strip_prefix("spark-")
        .is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Of `ShuffleMapStage 7 (...`.
fn stage_number(text: &str) -> Option<u32> {
    let rest =
        text.strip_prefix("ShuffleMapStage ").or_else(|| text.strip_prefix("ResultStage "))?;
    number(rest)
}

/// `1.234 s` of Spark 3.x, `1234 ms` or `1234.5 ms` of 4.x.
fn span(text: &str) -> Option<Duration> {
    let mut words = text.split_whitespace();
    let amount: f64 = words.next()?.parse().ok()?;
    let seconds = match words.next()?.trim_end_matches(|c: char| !c.is_alphabetic()) {
        "s" => amount,
        "ms" => amount / 1_000.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(500).collect()
}
