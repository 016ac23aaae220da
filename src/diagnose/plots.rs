//! What a report draws that needs each task's span: cores over time, and how
//! the tasks of the stages that matter are spread.
//!
//! Spans are most of a run's memory and are let go once it is diagnosed, so
//! what is drawn is kept here, in a form that does not grow with the tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, StageView, millis};
use super::{Finding, steps::Steps};
use crate::model::{StageId, TaskSpan};

/// Slices of the run in [`CoresOverTime`].
const SLICES: i64 = 160;
/// Points of a [`TaskProfile`].
const POINTS: usize = 80;
/// Stage attempts with a profile.
const STAGES: usize = 5;

/// What is drawn of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plots {
    /// `None` where executors are not known.
    pub cores: Option<CoresOverTime>,
    /// Of the stages that findings name and the costliest others; empty where
    /// the source has no task spans.
    pub tasks: BTreeMap<StageId, TaskProfile>,
}

/// Cores in equal slices of the run, each the average over its slice.
#[derive(Debug, Clone, PartialEq)]
pub struct CoresOverTime {
    pub from: Timestamp,
    pub to: Timestamp,
    /// Of all executors.
    pub offered: Vec<f32>,
    /// Held by task attempts; `None` where their spans are not known.
    pub busy: Option<Vec<f32>>,
}

/// The run times of the successful tasks of a stage attempt, ascending: at
/// most 80 values, each the longest of its share of the tasks, so that the
/// last is the slowest task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProfile {
    pub tasks: usize,
    pub run_times: Vec<Duration>,
}

pub(super) fn of(context: &Context<'_>, findings: &[Finding]) -> Plots {
    let mut costly: Vec<&StageView<'_>> =
        context.stages.iter().filter(|view| view.stage.timeline.is_some()).collect();
    costly.sort_by_key(|view| std::cmp::Reverse(view.run_time_sum()));
    let named: Vec<StageId> = findings.iter().filter_map(Finding::stage).collect();
    let mut chosen = BTreeSet::new();
    for id in named.into_iter().chain(costly.iter().map(|view| view.stage.id)) {
        if chosen.len() < STAGES {
            chosen.insert(id);
        }
    }
    let tasks = context
        .stages
        .iter()
        .filter(|view| chosen.contains(&view.stage.id))
        .filter_map(|view| Some((view.stage.id, profile(view)?)))
        .collect();
    Plots { cores: cores(context), tasks }
}

fn profile(view: &StageView<'_>) -> Option<TaskProfile> {
    let timeline = view.stage.timeline.as_ref()?;
    let mut run: Vec<u32> =
        timeline.iter().filter(|task| task.succeeded).map(|task| task.run_ms).collect();
    run.sort_unstable();
    let points = run.len().min(POINTS);
    let run_times = (1..=points)
        .filter_map(|point| run.get((point * run.len()).div_ceil(points) - 1))
        .map(|run| view.run_time(Duration::from_millis(u64::from(*run))))
        .collect();
    (points > 0).then_some(TaskProfile { tasks: run.len(), run_times })
}

fn cores(context: &Context<'_>) -> Option<CoresOverTime> {
    let application = context.application;
    let (start, end) = (application.start?, application.end.unwrap_or(application.observed));
    let (from, to) = (start.as_millisecond(), end.as_millisecond());
    if context.supplies.cores.is_empty() || to <= from {
        return None;
    }
    let ran = || context.stages.iter().filter(|view| view.span.is_some());
    let busy = ran().all(|view| view.stage.timeline.is_some()).then(|| {
        let changes = ran().flat_map(|view| {
            let held = view.stage.timeline.iter().flatten();
            held.flat_map(|task: &TaskSpan| {
                let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
                [(task.launched_ms, view.cpus), (end, -view.cpus)]
            })
        });
        slices(&Steps::from_changes(changes.collect()), from, to)
    });
    let offered = slices(&context.supplies.cores, from, to);
    Some(CoresOverTime { from: start, to: end, offered, busy })
}

fn slices(steps: &Steps, from: i64, to: i64) -> Vec<f32> {
    let count = SLICES.min(to - from);
    let length = millis(to - from).as_millis() as i64;
    let at = |slice: i64| from + length * slice / count;
    (0..count).map(|slice| steps.average(at(slice), at(slice + 1)) as f32).collect()
}
