//! Answers of the API that somebody saved as files, by `curl` or a script,
//! into one run: as much of it as there is.
//!
//! Each is known by what is in it and only where that does not tell (an empty
//! list, the tasks of which stage) by its name: `jobs.json`,
//! `taskSummary_2_0.json`, `stages/2/0/taskList`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::applications::{ApplicationAttemptInfo, ApplicationInfo};
use super::assemble::{self, Parts, ReadJob};
use super::environment::ApplicationEnvironmentInfo;
use super::executors::ExecutorSummary;
use super::jobs::JobData;
use super::sql::ExecutionData;
use super::stages::StageData;
use super::storage_rdd::RddStorageInfo;
use super::task_list::TaskData;
use super::task_summary::TaskMetricDistributions;
use crate::model::{Application, Configuration, DataQuality, Names, Source, Stage, StageId};

/// A part of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    Applications,
    Jobs,
    Stages,
    Executors,
    Environment,
    Sql,
    Tasks,
}

impl Endpoint {
    pub const ALL: [Self; 7] = [
        Self::Applications,
        Self::Jobs,
        Self::Stages,
        Self::Executors,
        Self::Environment,
        Self::Sql,
        Self::Tasks,
    ];

    /// Below `/api/v1/applications/ID`, as it should be asked.
    pub fn path(self) -> &'static str {
        match self {
            Self::Applications => "(/api/v1/applications itself)",
            Self::Jobs => "/jobs",
            Self::Stages => "/stages?details=false",
            Self::Executors => "/allexecutors",
            Self::Environment => "/environment",
            Self::Sql => "/sql?details=true&planDescription=true&offset=0&length=1000",
            Self::Tasks => {
                "/stages/STAGE/ATTEMPT/taskSummary?quantiles=0.0,0.25,0.5,0.75,0.95,1.0 and \
                 .../taskList?sortBy=-runtime&offset=0&length=50"
            }
        }
    }

    /// What it would add.
    pub fn adds(self) -> &'static str {
        match self {
            Self::Applications => "id, name, when the run began and ended, and how",
            Self::Jobs => "failed jobs, gaps between jobs, which stage belongs to what",
            Self::Stages => "everything about stages: time, bytes, spill, garbage collection",
            Self::Executors => "cores, memory and lost executors, waiting and idle cores",
            Self::Environment => "the configuration that advice refers to",
            Self::Sql => "plans: joins, scans, Python, broadcasts",
            Self::Tasks => "skew and stragglers: how the tasks of one stage compare",
        }
    }
}

/// What one file holds.
enum Part {
    Applications(Vec<ApplicationInfo>),
    Jobs(Vec<JobData>),
    Stages(Vec<StageData>),
    Executors(Vec<ExecutorSummary>),
    Environment(Box<ApplicationEnvironmentInfo>),
    Sql(Vec<ExecutionData>),
    Cached(Vec<RddStorageInfo>),
    Summary(StageId, Box<TaskMetricDistributions>),
    Tasks(StageId, Vec<TaskData>),
    /// Of the API, and not needed: `/version`.
    Other,
}

/// Files of one run, taken in one after the other.
#[derive(Debug, Default)]
pub struct Saved {
    applications: Vec<ApplicationInfo>,
    jobs: Option<Vec<JobData>>,
    stages: Option<Vec<StageData>>,
    executors: Option<Vec<ExecutorSummary>>,
    configuration: Option<Configuration>,
    sql: Option<Vec<ExecutionData>>,
    cached: Option<Vec<RddStorageInfo>>,
    summaries: BTreeMap<StageId, TaskMetricDistributions>,
    tasks: BTreeMap<StageId, Vec<TaskData>>,
    /// What could not be used as it is, in words.
    notes: Vec<String>,
}

/// A run, and what was not there of it.
#[derive(Debug)]
pub struct ReadSaved {
    pub application: Application,
    pub missing: Vec<Endpoint>,
    pub notes: Vec<String>,
}

/// Why files are no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SavedError {
    #[error("{0}")]
    NotTheApis(String),
    #[error(
        "answers about several applications ({0}): put those of each into a folder of its own, or \
         choose with --app-id"
    )]
    Several(String),
    #[error("none of the answers says anything about a run")]
    Empty,
}

impl Saved {
    /// Takes in one file; `name` is its path, which may tell what an empty
    /// list is of.
    pub fn add(&mut self, name: &str, json: &[u8]) -> Result<(), SavedError> {
        let value: Value = serde_json::from_slice(json).map_err(|error| {
            // The parser's own words may quote values.
            let at = format!("line {}, column {}", error.line(), error.column());
            SavedError::NotTheApis(format!("{name} is not JSON ({at})"))
        })?;
        let unknown =
            || SavedError::NotTheApis(format!("{name} is none of the answers of Spark's REST API"));
        match recognise(name, value).ok_or_else(unknown)? {
            Part::Applications(more) => self.applications.extend(more),
            Part::Jobs(more) => self.jobs.get_or_insert_default().extend(more),
            Part::Stages(more) => self.stages.get_or_insert_default().extend(more),
            Part::Executors(more) => {
                // `executors` has the living only; `allexecutors` has all.
                if self.executors.as_ref().is_none_or(|known| known.len() < more.len()) {
                    self.executors = Some(more);
                }
            }
            Part::Environment(environment) => {
                self.configuration = Some(environment.configuration());
            }
            Part::Sql(more) => self.sql.get_or_insert_default().extend(more),
            Part::Cached(more) => self.cached = Some(more),
            Part::Summary(id, summary) if summary.is_as_asked() => {
                self.summaries.insert(id, *summary);
            }
            Part::Summary(id, _) => self.notes.push(format!(
                "the quantiles of stage {id} are not those asked for: save them with {}",
                "?quantiles=0.0,0.25,0.5,0.75,0.95,1.0"
            )),
            Part::Tasks(id, more) => self.tasks.entry(id).or_default().extend(more),
            Part::Other => {}
        }
        Ok(())
    }

    /// The run. `wanted`: ids to choose by where there are several; `at`: when
    /// the files were saved.
    pub fn finish(
        mut self,
        cluster: &str,
        wanted: &[String],
        at: Timestamp,
        plan_nodes: usize,
    ) -> Result<ReadSaved, SavedError> {
        if self.jobs.is_none() && self.stages.is_none() && self.sql.is_none() {
            return Err(SavedError::Empty);
        }
        let missing: Vec<Endpoint> =
            Endpoint::ALL.into_iter().filter(|endpoint| !self.has(*endpoint)).collect();
        let configuration = self.configuration.take();
        let application = self.application(wanted, configuration.as_ref())?;
        let attempt = application.latest().cloned().unwrap_or_default();
        let running = !self.applications.is_empty() && !attempt.is_completed();
        let source = if running { Source::Driver } else { Source::HistoryServer };
        let stages = self.stages();
        let mut names = Names::default();
        let most = (plan_nodes / 10).max(1);
        let executions = self.sql.as_ref().map(|all| {
            let read = all.iter().filter_map(|one| assemble::execution(one, most, &mut names));
            let mut executions: Vec<_> = read.collect();
            executions.sort_by_key(|execution| execution.id);
            // One answer with nodes and one without: the richer stays.
            executions.dedup_by(|later, kept| {
                let same = later.id == kept.id;
                if same && kept.plan.is_none() {
                    kept.plan = later.plan.take();
                }
                same
            });
            executions
        });
        let jobs: Vec<ReadJob> = self.jobs.iter().flatten().filter_map(assemble::job).collect();
        let cached: Option<Vec<_>> = self
            .cached
            .as_ref()
            .filter(|_| running)
            .map(|all| all.iter().filter_map(RddStorageInfo::cached).collect());
        let gaps = missing.iter().any(|endpoint| *endpoint != Endpoint::Tasks);
        let mut application = assemble::application(Parts {
            cluster,
            source,
            application: &application,
            attempt: &attempt,
            configuration: configuration.as_ref(),
            executors: self.executors.as_deref().unwrap_or_default(),
            cached: cached.as_deref(),
            jobs,
            stages,
            stages_omitted: 0,
            sql: executions,
            sql_omitted: 0,
            jobs_before_stages: false,
            data_quality: gaps.then_some(DataQuality::EndpointsMissing).into_iter().collect(),
            now: attempt.end().unwrap_or(at),
        });
        if self.applications.is_empty() {
            // Nothing says that it is without an end.
            application.data_quality.remove(&DataQuality::LogIncomplete);
        }
        Ok(ReadSaved { application, missing, notes: self.notes })
    }

    fn has(&self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Applications => !self.applications.is_empty(),
            Endpoint::Jobs => self.jobs.is_some(),
            Endpoint::Stages => self.stages.is_some(),
            Endpoint::Executors => self.executors.is_some(),
            Endpoint::Environment => self.configuration.is_some(),
            Endpoint::Sql => self.sql.is_some(),
            Endpoint::Tasks => !self.summaries.is_empty() && !self.tasks.is_empty(),
        }
    }

    /// The application that the files are of.
    fn application(
        &self,
        wanted: &[String],
        configuration: Option<&Configuration>,
    ) -> Result<ApplicationInfo, SavedError> {
        let get = |key| configuration.and_then(|configuration| configuration.get(key));
        let own = get("spark.app.id");
        let mut listed: Vec<&ApplicationInfo> = self.applications.iter().collect();
        if listed.len() > 1 {
            let chosen = |id: &str| match own {
                Some(own) => own == id,
                None => wanted.iter().any(|wanted| wanted == id),
            };
            listed.retain(|application| chosen(application.id.get()));
            listed.dedup_by_key(|application| application.id.get().to_owned());
        }
        match listed.as_slice() {
            [one] => Ok((*one).clone()),
            [] if self.applications.is_empty() => {
                let mut made = ApplicationInfo::default();
                made.id.0 = Some(own.unwrap_or("saved").to_owned());
                made.name.0 = get("spark.app.name").map(str::to_owned);
                let start = get("spark.app.startTime").and_then(|text| text.parse().ok());
                made.attempts = vec![ApplicationAttemptInfo::begun(start)];
                Ok(made)
            }
            _ => {
                let ids: BTreeSet<&str> =
                    self.applications.iter().map(|application| application.id.get()).collect();
                let ids: Vec<&str> = ids.into_iter().take(10).collect();
                Err(SavedError::Several(ids.join(", ")))
            }
        }
    }

    fn stages(&mut self) -> Vec<Stage> {
        let mut stages = Vec::new();
        for data in self.stages.iter().flatten() {
            let Some(mut stage) = assemble::stage(data) else { continue };
            if let Some(summary) = self.summaries.get(&stage.id) {
                assemble::add_summary(&mut stage, summary);
            }
            if let Some(tasks) = self.tasks.remove(&stage.id) {
                let (failed, others): (Vec<TaskData>, Vec<TaskData>) =
                    tasks.into_iter().partition(|task| task.status.get() == "FAILED");
                if failed.len() as u64 == stage.tasks.failed && !failed.is_empty() {
                    assemble::add_failed(&mut stage, &failed, data.killed_tasks_summary);
                }
                let good: Vec<TaskData> =
                    others.into_iter().filter(|task| task.status.get() == "SUCCESS").collect();
                let times = good
                    .iter()
                    .map(|task| Some(task.task_metrics.as_ref()?.executor_run_time.or_zero()));
                // The first 20 by number are not the slowest.
                if good.len() as u64 >= stage.tasks.succeeded || times.is_sorted_by(|a, b| a >= b) {
                    assemble::add_slowest(&mut stage, &good);
                } else {
                    self.notes.push(format!(
                        "the tasks of stage {} are some of them in order of their numbers: save \
                         the slowest with ?sortBy=-runtime&offset=0&length=50",
                        stage.id
                    ));
                }
            }
            stages.push(stage);
        }
        stages.sort_by_key(|stage: &Stage| stage.id);
        stages.dedup_by_key(|stage| stage.id);
        stages
    }
}

/// A list, or one that was asked for alone. Elements of another shape are left
/// out.
fn list<T: DeserializeOwned>(value: Value) -> Vec<T> {
    let all = match value {
        Value::Array(all) => all,
        one => vec![one],
    };
    all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect()
}

fn recognise(name: &str, value: Value) -> Option<Part> {
    let first = match &value {
        Value::Array(all) => all.first(),
        other => Some(other),
    };
    let Some(first) = first else { return Some(by_name(name)) };
    let has = |key: &str| first.get(key).is_some();
    Some(if has("attempts") && has("id") {
        Part::Applications(list(value))
    } else if has("jobId") && has("stageIds") {
        Part::Jobs(list(value))
    } else if has("stageId") && has("numTasks") {
        Part::Stages(list(value))
    } else if has("hostPort") && has("totalCores") {
        Part::Executors(list(value))
    } else if has("sparkProperties") {
        Part::Environment(Box::new(serde_json::from_value(value).ok()?))
    } else if has("successJobIds") && has("submissionTime") {
        Part::Sql(list(value))
    } else if has("numCachedPartitions") {
        Part::Cached(list(value))
    } else if has("quantiles") && has("executorRunTime") {
        Part::Summary(stage_of(name)?, Box::new(serde_json::from_value(value).ok()?))
    } else if has("taskId") && has("launchTime") {
        Part::Tasks(stage_of(name)?, list(value))
    } else if has("spark") || has("gauges") || has("startTime") && has("completed") {
        Part::Other
    } else {
        return None;
    })
}

/// An empty list, by the last part of its name.
fn by_name(name: &str) -> Part {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let stem = last.split('.').next().unwrap_or(&last);
    match stem {
        "applications" => Part::Applications(Vec::new()),
        "jobs" => Part::Jobs(Vec::new()),
        "stages" => Part::Stages(Vec::new()),
        "executors" | "allexecutors" => Part::Executors(Vec::new()),
        "sql" => Part::Sql(Vec::new()),
        "storage_rdd" | "rdd" | "storage" => Part::Cached(Vec::new()),
        // An empty list of anything says nothing.
        _ => Part::Other,
    }
}

/// The stage attempt in a name: the last two numbers of `taskSummary_2_0.json`
/// or `stages/2/0/taskSummary`.
fn stage_of(name: &str) -> Option<StageId> {
    let without_suffix = name.strip_suffix(".json").unwrap_or(name);
    let numbers: Vec<u32> = without_suffix
        .rsplit(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .take(2)
        .filter_map(|part| part.parse().ok())
        .collect();
    match numbers.as_slice() {
        [attempt, stage] => Some(StageId { stage: *stage, attempt: *attempt }),
        _ => None,
    }
}
