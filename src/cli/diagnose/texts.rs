//! `--explain` and `--log`: what Spark writes for people, beside a run or where
//! nothing else is left.

use std::fs::File;
use std::io::{BufReader, stdin};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;

use super::progress::Progress;
use crate::diagnose::{Diagnosis, add_driver_out_of_memory};
use crate::model::{Application, Plan, RunId, Source, SqlExecution, State};
use crate::report::privacy::redacted;
use crate::texts::driver_log::{self, DriverLog};
use crate::texts::{add_details, explain};

/// The name of a plan's text where no run is given.
const EXPLAIN: &str = "explain";

#[derive(Debug, Clone, Default, Args)]
pub(super) struct TextFlags {
    /// A plan as EXPLAIN FORMATTED prints it (- is standard input): beside a
    /// run it adds what the nodes do; alone it is judged without numbers
    #[arg(long, value_name = "FILE")]
    explain: Option<PathBuf>,
    /// The log of a driver or of a Kyuubi engine: application id, UI, jobs and
    /// stages in time, errors
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ask the UI whose address is in that log as well, without any
    /// credentials
    #[arg(long, requires = "log")]
    follow_url: bool,
}

/// What was read of them.
#[derive(Debug, Default)]
pub(super) struct Texts {
    explained: Option<Plan>,
    log: Option<DriverLog>,
    explain_place: String,
    log_place: String,
}

impl TextFlags {
    pub(super) fn read(&self, cluster: &str) -> anyhow::Result<Texts> {
        let mut texts = Texts::default();
        if let Some(path) = &self.explain {
            texts.explain_place = path.display().to_string();
            let what = || format!("cannot use --explain {}", texts.explain_place);
            let plan = if path == Path::new("-") {
                explain::read(stdin().lock())
            } else {
                explain::read(BufReader::new(File::open(path).with_context(what)?))
            };
            texts.explained = Some(plan.with_context(what)?);
        }
        if let Some(path) = &self.log {
            texts.log_place = path.display().to_string();
            let what = || format!("cannot read --log {}", texts.log_place);
            let file = BufReader::new(File::open(path).with_context(what)?);
            let log = driver_log::read(cluster, "driver-log", file).with_context(what)?;
            if log.lines == 0 {
                anyhow::bail!(
                    "{} has no line of Spark's log: give what the driver writes to standard error, \
                     with time, level and logger in each line, at level INFO",
                    path.display()
                );
            }
            texts.log = Some(log);
        }
        Ok(texts)
    }

    /// The UI's address in the log, where it should be asked.
    pub(super) fn followed(&self, texts: &Texts) -> Option<String> {
        texts.log.as_ref()?.ui.clone().filter(|_| self.follow_url)
    }
}

impl Texts {
    /// What the log tells beside its timeline, a line each: never its text.
    pub(super) fn tell(&self, followed: bool, progress: &Progress) {
        let Some(log) = &self.log else { return };
        if log.id_known {
            progress.complain(&format!(
                "the log is of {}: --app-id {0} finds it on a History Server",
                log.application.id.app_id
            ));
        }
        if let Some(ui) = log.ui.as_deref().filter(|_| !followed) {
            progress.complain(&format!(
                "the log names the UI at {}: while the application runs, `spark-exporter diagnose \
                 URL` (or --follow-url, which sends no credentials) reads it",
                clean(ui)
            ));
        }
        if log.executors_lost > 0 {
            progress.complain(&format!(
                "the log tells of {} lost executors; the event log says why",
                log.executors_lost
            ));
        }
        if !log.errors.is_empty() {
            let all: Vec<String> = log
                .errors
                .iter()
                .take(8)
                .map(|(logger, count)| format!("{} {count}", clean(logger)))
                .collect();
            progress.complain(&format!("errors in the log, by logger: {}", all.join(", ")));
        }
    }

    /// Applications made of the texts alone, where there is no run.
    pub(super) fn alone(&self, cluster: &str, progress: &Progress) -> Vec<(Application, String)> {
        let mut made = Vec::new();
        if let Some(log) = &self.log {
            progress.complain(
                "a driver's log has no numbers of tasks: the event log (spark.eventLog.enabled) or \
                 the UI would add skew, spill, garbage collection, memory, plans and what mending \
                 them saves",
            );
            made.push((log.application.clone(), self.log_place.clone()));
        }
        if let Some(plan) = &self.explained {
            progress.complain(
                "a plan alone has no numbers: an event log, a UI or answers saved from it would \
                 add rows, bytes and times of each node",
            );
            made.push((of_plan(cluster, plan), self.explain_place.clone()));
        }
        made
    }

    /// Adds what `EXPLAIN` says of nodes to the plans of a run.
    pub(super) fn enrich(&self, application: &mut Application, progress: &Progress) {
        let Some(explained) = &self.explained else { return };
        let mut same = Vec::new();
        let mut added = 0;
        for execution in application.sql.iter_mut().flatten() {
            if let Some(plan) = &mut execution.plan {
                let nodes = add_details(plan, explained);
                added += nodes;
                if nodes > 0 {
                    same.push(execution.id.to_string());
                }
            }
        }
        let id = &application.id.app_id;
        progress.complain(&if added > 0 {
            format!("--explain told of {added} nodes of {id}, SQL execution {}", same.join(", "))
        } else {
            format!(
                "--explain added nothing to {id}: its plans are others, or known with all texts"
            )
        });
    }

    /// Adds what only the driver's log tells of this run.
    pub(super) fn judge(&self, application: &Application, diagnosis: &mut Diagnosis) {
        let Some(log) = self.log.as_ref().filter(|log| log.out_of_memory.is_some()) else {
            return;
        };
        if application.id.app_id == log.application.id.app_id {
            let ended =
                application.state != State::Succeeded && application.state != State::Running;
            add_driver_out_of_memory(diagnosis, ended);
        }
    }
}

fn of_plan(cluster: &str, plan: &Plan) -> Application {
    let id = RunId { cluster: cluster.to_owned(), app_id: EXPLAIN.to_owned(), attempt_id: None };
    let mut application = Application::new(id, Source::Explain, Timestamp::UNIX_EPOCH);
    "a plan without a run".clone_into(&mut application.name);
    let mut execution = SqlExecution::new(0);
    execution.plan = Some(plan.clone());
    application.sql = Some(vec![execution]);
    application
}

fn clean(text: &str) -> String {
    redacted(text).chars().filter(|c| !c.is_control()).take(200).collect()
}
