//! What an event log says of a run, read without any of the daemon's code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// Start and end in milliseconds since the epoch.
pub(crate) type Times = (u64, u64);

#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) application: Times,
    pub(crate) executions: BTreeMap<u64, Times>,
    pub(crate) jobs: BTreeMap<u64, Times>,
    pub(crate) stages: BTreeMap<(u64, u64), Times>,
    /// By stage attempt: task id and times of its ended attempts.
    pub(crate) tasks: BTreeMap<(u64, u64), BTreeMap<u64, Times>>,
    /// Those of them that did not succeed.
    pub(crate) failed_tasks: BTreeSet<u64>,
    /// The SQL execution of a job.
    pub(crate) execution_of: BTreeMap<u64, u64>,
    /// The first job that lists a stage.
    pub(crate) job_of: BTreeMap<u64, BTreeSet<u64>>,
}

impl Log {
    pub(crate) fn read(folder: &Path, app_id: &str) -> Self {
        Self::of(&std::fs::read_to_string(folder.join(app_id)).unwrap())
    }

    pub(crate) fn of(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let name = event["Event"].as_str().unwrap();
            let number = |key: &str| event[key].as_u64().unwrap();
            match name.rsplit('.').next().unwrap() {
                "SparkListenerApplicationStart" => log.application.0 = number("Timestamp"),
                "SparkListenerApplicationEnd" => log.application.1 = number("Timestamp"),
                "SparkListenerSQLExecutionStart" => {
                    log.executions.insert(number("executionId"), (number("time"), 0));
                }
                "SparkListenerSQLExecutionEnd" => {
                    log.executions.get_mut(&number("executionId")).unwrap().1 = number("time");
                }
                "SparkListenerJobStart" => log.job_started(&event),
                "SparkListenerJobEnd" => {
                    log.jobs.get_mut(&number("Job ID")).unwrap().1 = number("Completion Time");
                }
                "SparkListenerStageCompleted" => {
                    let info = &event["Stage Info"];
                    let number = |key: &str| info[key].as_u64();
                    // A stage that was given up before it began has none.
                    if let (Some(start), Some(end)) =
                        (number("Submission Time"), number("Completion Time"))
                    {
                        let id = (number("Stage ID").unwrap(), number("Stage Attempt ID").unwrap());
                        log.stages.insert(id, (start, end));
                    }
                }
                "SparkListenerTaskEnd" => {
                    let info = &event["Task Info"];
                    let id = (number("Stage ID"), number("Stage Attempt ID"));
                    let times = (
                        info["Launch Time"].as_u64().unwrap(),
                        info["Finish Time"].as_u64().unwrap(),
                    );
                    let task = info["Task ID"].as_u64().unwrap();
                    log.tasks.entry(id).or_default().insert(task, times);
                    if event["Task End Reason"]["Reason"] != "Success" {
                        log.failed_tasks.insert(task);
                    }
                }
                _ => {}
            }
        }
        log
    }

    fn job_started(&mut self, event: &Value) {
        let job = event["Job ID"].as_u64().unwrap();
        self.jobs.insert(job, (event["Submission Time"].as_u64().unwrap(), 0));
        if let Some(id) = event["Properties"]["spark.sql.execution.id"].as_str() {
            self.execution_of.insert(job, id.parse().unwrap());
        }
        for stage in event["Stage IDs"].as_array().unwrap() {
            self.job_of.entry(stage.as_u64().unwrap()).or_default().insert(job);
        }
    }
}
