//! When what ran: lanes of bars over the length of the run, and cores over
//! time. Bounded, whatever the run: a page of 5,000 jobs shows nothing.

use jiff::Timestamp;

use crate::diagnose::CoresOverTime;
use crate::model::{Application, Job, JobStatus, SqlStatus, Stage, StageStatus};
use crate::report::Diagnosed;

/// Bars of one lane group; of more, the longest are shown.
const BARS: usize = 40;

/// Positions are shares of the run, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    pub from: Timestamp,
    pub to: Timestamp,
    pub cores: Option<Cores>,
    pub lanes: Vec<Lane>,
}

/// Cores in equal slices of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Cores {
    pub offered: Vec<f32>,
    pub busy: Option<Vec<f32>>,
}

/// Bars of one kind, by the time they began.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    pub title: &'static str,
    pub bars: Vec<Bar>,
    /// Shorter ones that are not shown.
    pub omitted: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub label: String,
    pub from: f64,
    pub to: f64,
    pub tone: Tone,
    /// Id of a stage attempt, for links to its row.
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    /// Cancelled, unknown.
    Quiet,
    /// Goes on.
    Open,
}

impl Timeline {
    /// `None` where start or end is not known.
    pub(super) fn of(run: &Diagnosed) -> Option<Self> {
        let application = &run.application;
        let (from, to) = (application.start?, application.end.unwrap_or(application.observed));
        let scale = Scale { from: from.as_millisecond(), to: to.as_millisecond() };
        if scale.to <= scale.from {
            return None;
        }
        let lanes = [
            lane("Executors", executors(application, &scale)),
            lane("SQL executions", sql(application, &scale)),
            lane("Jobs", application.jobs.iter().filter_map(|job| scale.job(job)).collect()),
            lane("Stages", stages(application, &scale)),
        ];
        let cores = run.diagnosis.plots.cores.as_ref().map(|cores| {
            let CoresOverTime { offered, busy, .. } = cores;
            Cores { offered: offered.clone(), busy: busy.clone() }
        });
        let lanes = lanes.into_iter().filter(|lane| !lane.bars.is_empty()).collect();
        Some(Self { from, to, cores, lanes })
    }
}

/// The longest of these in the order of their beginning.
fn lane(title: &'static str, mut bars: Vec<Bar>) -> Lane {
    let omitted = bars.len().saturating_sub(BARS);
    bars.sort_by(|one, other| (other.to - other.from).total_cmp(&(one.to - one.from)));
    bars.truncate(BARS);
    bars.sort_by(|one, other| one.from.total_cmp(&other.from));
    Lane { title, bars, omitted }
}

struct Scale {
    from: i64,
    to: i64,
}

impl Scale {
    fn at(&self, time: Timestamp) -> f64 {
        let length = (self.to - self.from) as f64;
        ((time.as_millisecond().saturating_sub(self.from)) as f64 / length).clamp(0.0, 1.0)
    }

    fn bar(
        &self,
        label: String,
        from: Timestamp,
        to: Option<Timestamp>,
        tone: Tone,
        what: String,
    ) -> Bar {
        let from = self.at(from);
        Bar { label, from, to: to.map_or(1.0, |to| self.at(to)).max(from), tone, what }
    }

    fn job(&self, job: &Job) -> Option<Bar> {
        let tone = match job.status {
            JobStatus::Succeeded => Tone::Good,
            JobStatus::Failed => Tone::Bad,
            JobStatus::Running => Tone::Open,
            JobStatus::Cancelled | JobStatus::Unknown => Tone::Quiet,
        };
        let label = format!("job {}", job.id);
        Some(self.bar(label, job.submitted?, job.completed, tone, String::new()))
    }
}

fn stages(application: &Application, scale: &Scale) -> Vec<Bar> {
    let bar = |stage: &Stage| {
        let (from, to) = stage.running_span(application.observed)?;
        let tone = match stage.status {
            StageStatus::Complete => Tone::Good,
            StageStatus::Failed => Tone::Bad,
            StageStatus::Active => Tone::Open,
            StageStatus::Pending | StageStatus::Skipped => Tone::Quiet,
        };
        let id = stage.id.to_string();
        Some(scale.bar(format!("stage {id}"), from, Some(to), tone, id))
    };
    application.stages.iter().filter_map(bar).collect()
}

fn sql(application: &Application, scale: &Scale) -> Vec<Bar> {
    let executions = application.sql.iter().flatten().filter(|one| !one.is_nested());
    executions
        .filter_map(|execution| {
            let tone = match execution.status {
                SqlStatus::Completed => Tone::Good,
                SqlStatus::Failed => Tone::Bad,
                SqlStatus::Running => Tone::Open,
                SqlStatus::Cancelled | SqlStatus::Unknown => Tone::Quiet,
            };
            let label = format!("SQL {}", execution.id);
            Some(scale.bar(label, execution.start?, execution.end, tone, String::new()))
        })
        .collect()
}

fn executors(application: &Application, scale: &Scale) -> Vec<Bar> {
    let executors = application.executors.iter();
    executors
        .filter_map(|executor| {
            let from = executor.added.or(application.start)?;
            let label = match executor.id.as_str() {
                "driver" => "driver".to_owned(),
                id => format!("executor {}", crate::report::privacy::cut(id, 12)),
            };
            // Whether it was lost is what findings say.
            Some(scale.bar(label, from, executor.removed, Tone::Quiet, String::new()))
        })
        .collect()
}
