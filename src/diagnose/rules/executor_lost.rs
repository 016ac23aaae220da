//! `executor_lost`: executors went away that nobody sent away, by cause.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, StageView, seconds};
use super::draft::{Draft, Weight};
use super::humane;
use super::loss;
use super::{About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where};
use crate::model::{Executor, Pod, PodFate};

pub(super) const ABOUT: About = About {
    rule: Rule::ExecutorLost,
    meaning: "Executors went away that nobody sent away: their running tasks failed, and what they held of shuffle output and cache had to be made again.",
    details: r#"*Fires* on executors that went away and were not sent away, one finding a cause.
No losses: "Executor killed by driver" (idle), a scale-down, exit code 0, and what
goes within 2 s of the application's end unless it says out of memory or 137.

| cause | Spark's words |
|---|---|
| `heap_oom` | exit code 52, OutOfMemoryError |
| `container_memory` | OOMKilled, "exceeding (physical) memory limits" |
| `killed` | exit code 137 or 143 alone: who sent the signal is not proven |
| `heartbeat` | "heartbeat timed out", exit code 56 |
| `preempted` | preempted, evicted, YARN's -102 |
| `decommissioned` | decommission |
| `node_lost` | worker lost or shutting down, lost node, bad node, YARN's -100 |
| `unknown` | anything else, "Remote RPC client disassociated" included |

With several containers in a pod the status of the Spark container decides, not
the first line. Where the daemon watches executors' pods (`clusters[].kubernetes`), the
pod's own word sharpens Spark's:

| pod | cause |
|---|---|
| Spark's container OOMKilled | `container_memory`, for sure: 137 alone is not |
| Spark's container ended with 52 | `heap_oom`, whatever a sidecar ended with |
| evicted, preempted, drained | `preempted` |
| its node went, or was shut down | `node_lost` |
| deleted, and Spark does not say that it sent it away | `killed` |
| Spark's container ended with 0 | none, where Spark tells no more than a number |

What Spark sent away is no loss, whatever became of its pod. `warning`; `preempted` and `decommissioned` `info` unless they
cost more. The cost includes shuffle output computed again: later stages or
attempts over the same RDDs with fewer tasks.
"#,
    evidence: &[
        ("executors_lost", "by this cause"),
        ("stages_recomputed", "later stages or attempts that made lost output again"),
        ("recomputed", "run time of those"),
        ("failed_attempts", "task attempts that went with them"),
        ("exit_code", "as its pod or Spark tells it"),
        ("pods_ended", "of those lost, how many pods Kubernetes tells the end of"),
    ],
    fires: &["executor_killed", "executor_heap_oom", "stage_retries"],
    near_misses: &["executor_idle_removed"],
    resists: &[(
        "executor_killed",
        "exit code 137 alone is `killed`, not out of memory: who sent the signal is not proven",
    )],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.executor_lost.enabled {
        return;
    }
    let mut by_cause: BTreeMap<Cause, Vec<&Executor>> = BTreeMap::new();
    for executor in &context.application.executors {
        if let Some(cause) = loss::cause(context.application, executor) {
            by_cause.entry(cause).or_default().push(executor);
        }
    }
    let mut recomputed = Recomputed::of(context, by_cause.values().flatten().copied());
    for (cause, executors) in by_cause {
        drafts.push(judge(context, cause, &executors, &mut recomputed));
    }
}

fn judge(
    context: &Context<'_>,
    cause: Cause,
    executors: &[&Executor],
    recomputed: &mut Recomputed,
) -> Draft {
    let failed = failed_attempts(context, executors);
    let again = recomputed.take(executors);
    let core = failed.map(|failed| seconds(failed.as_secs_f64() + again.core));
    let wall =
        again.shares.iter().fold(Duration::ZERO, |sum, (_, share)| sum.saturating_add(*share));
    let count = executors.len() as u64;
    let subject = match executors {
        [only] => Subject::Executor { executor_id: only.id.clone() },
        _ => Subject::Application,
    };
    let headline = format!(
        "{} lost: {}",
        match executors {
            [only] => format!("Executor {} on {}", only.id, only.host),
            _ => humane::count(count, "executor", "executors"),
        },
        words(cause, executors.first().copied()),
    );
    let from = match executors.first().and_then(|first| first.removed) {
        Some(removed) => format!("executor removed at {removed:.0}"),
        None => "executors removed".to_owned(),
    };
    let weight = match cause {
        // The platform takes these back by design.
        Cause::Preempted | Cause::Decommissioned => Weight::AtLeast(Severity::Info),
        _ => Weight::AtLeast(Severity::Warning),
    };
    let mut draft = Draft::new(Rule::ExecutorLost, kind(cause), subject, headline)
        .cause(cause)
        .weight(weight)
        .confidence(match cause {
            Cause::Unknown => Confidence::Low,
            // 137 alone: somebody sent SIGKILL, who is not proven.
            Cause::Killed => Confidence::Medium,
            _ => Confidence::High,
        })
        .evidence("executors_lost", count as f64, Unit::Count, 1.0, from)
        .evidence("stages_recomputed", again.stages as f64, Unit::Count, None, "stages run again")
        .evidence("recomputed", again.core, Unit::Seconds, None, "run time of stages run again");
    if let Some(failed) = failed {
        draft = draft.evidence(
            "failed_attempts",
            failed.as_secs_f64(),
            Unit::Seconds,
            None,
            "attempts that ended with their executor",
        );
    }
    if let Some(code) = executors.first().and_then(|first| loss::exit_code_of(first)) {
        let told = executors.first().and_then(|first| first.pod.as_ref());
        let from = told.filter(|pod| pod.end.is_some()).map(|pod| pod_words(pod));
        let from = from.unwrap_or_else(|| "removal reason".to_owned());
        draft = draft.evidence("exit_code", code as f64, Unit::Count, None, from);
    }
    let pods = executors.iter().filter(|executor| executor.pod.is_some()).count();
    if pods > 0 {
        let from = executors.iter().find_map(|executor| executor.pod.as_ref());
        let from = from.map(|pod| pod_words(pod)).unwrap_or_default();
        draft = draft.evidence("pods_ended", pods as f64, Unit::Count, None, from);
    }
    let impact = Impact { wall: Some(wall), core, estimated: false };
    advise(draft.impact(impact, again.shares), cause)
}

/// Where it was read.
pub(super) fn pod_words(pod: &Pod) -> String {
    let name = name_of(&pod.name.name);
    match &pod.node {
        Some(node) => format!("status of pod {name} on {}", name_of(node)),
        None => format!("status of pod {name}"),
    }
}

/// Names of objects of Kubernetes have up to 253 characters.
pub(super) fn name_of(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(253).collect()
}

fn words(cause: Cause, executor: Option<&Executor>) -> String {
    let code = executor.and_then(loss::exit_code_of);
    let fate = executor.and_then(|executor| executor.pod.as_ref()?.fate());
    match (cause, fate) {
        (Cause::ContainerMemory, Some(PodFate::OutOfMemory)) => {
            return "its container went over its memory limit (OOMKilled)".to_owned();
        }
        (Cause::Killed, Some(PodFate::Deleted)) => {
            return "its pod was deleted, and not by Spark".to_owned();
        }
        (Cause::Preempted, Some(PodFate::Evicted)) => {
            return "its pod was evicted from its node".to_owned();
        }
        _ => {}
    }
    match cause {
        Cause::HeapOom => "its heap was full (OutOfMemoryError, exit code 52)".to_owned(),
        Cause::ContainerMemory => "its container went over its memory limit".to_owned(),
        Cause::Killed => match code {
            Some(code) => format!("killed from outside (exit code {code}), by whom is not proven"),
            None => "killed from outside".to_owned(),
        },
        Cause::Heartbeat => "it sent no heartbeat in time".to_owned(),
        Cause::Preempted => "preempted by the resource manager".to_owned(),
        Cause::Decommissioned => "decommissioned".to_owned(),
        Cause::NodeLost => "its node was lost".to_owned(),
        _ => match code {
            Some(code) => format!("it exited with code {code}"),
            None => "Spark does not say why".to_owned(),
        },
    }
}

fn kind(cause: Cause) -> FindingKind {
    match cause {
        Cause::HeapOom | Cause::ContainerMemory => FindingKind::Configuration,
        _ => FindingKind::Resources,
    }
}

/// Core-time of attempts that were cut off when their executor went.
fn failed_attempts(context: &Context<'_>, executors: &[&Executor]) -> Option<Duration> {
    let mut lost = 0.0;
    let mut told = false;
    let gone: BTreeMap<u32, i64> = context
        .application
        .executors
        .iter()
        .enumerate()
        .filter(|(_, executor)| executors.iter().any(|gone| gone.id == executor.id))
        .filter_map(|(index, executor)| {
            Some((u32::try_from(index).ok()?, executor.removed?.as_millisecond()))
        })
        .collect();
    for view in &context.stages {
        let Some(timeline) = &view.stage.timeline else { continue };
        told = true;
        for task in timeline.iter().filter(|task| !task.succeeded) {
            // Spark notices a loss some time after it: the attempt ends with
            // the removal, or a little around it.
            let end = task.launched_ms.saturating_add(i64::from(task.duration_ms));
            if gone.get(&task.executor).is_some_and(|removed| end.abs_diff(*removed) <= 5_000) {
                lost += f64::from(task.duration_ms) / 1_000.0 * view.cpus;
            }
        }
    }
    told.then(|| seconds(lost))
}

/// Shuffle output that had to be made again: later stages or attempts over
/// the same RDDs with fewer tasks, which wrote a shuffle.
struct Recomputed {
    /// Launch, core-seconds, place and wall time alone of each.
    stages: Vec<(i64, f64, usize, Duration)>,
}

#[derive(Default)]
struct Again {
    stages: usize,
    core: f64,
    shares: Vec<(usize, Duration)>,
}

impl Recomputed {
    fn of<'a>(context: &Context<'_>, lost: impl Iterator<Item = &'a Executor>) -> Self {
        let Some(first_loss) = lost.filter_map(|executor| executor.removed).min() else {
            return Self { stages: Vec::new() };
        };
        let mut over: BTreeMap<&[u64], Vec<&StageView<'_>>> = BTreeMap::new();
        for view in context.stages.iter().filter(|view| view.span.is_some()) {
            over.entry(&view.stage.rdd_ids).or_default().push(view);
        }
        let stages = context
            .stages
            .iter()
            .filter(|view| {
                let same = over.get(view.stage.rdd_ids.as_slice());
                is_recomputation(view, same.map_or(&[], Vec::as_slice), first_loss)
            })
            .filter_map(|view| {
                let core = view.run_time_sum()?.as_secs_f64() * view.cpus;
                Some((view.span?.0, core, view.index, view.alone))
            })
            .collect();
        Self { stages }
    }

    /// What ran again after the first of these losses; each stage is given
    /// to one cause only.
    fn take(&mut self, executors: &[&Executor]) -> Again {
        let mut again = Again::default();
        let Some(since) = executors.iter().filter_map(|executor| executor.removed).min() else {
            return again;
        };
        let since = since.as_millisecond();
        self.stages.retain(|(launched, core, index, alone)| {
            if *launched < since {
                return true;
            }
            again.stages += 1;
            again.core += core;
            again.shares.push((*index, *alone));
            false
        });
        again
    }
}

/// `same`: all stage attempts over the same RDDs.
fn is_recomputation(view: &StageView<'_>, same: &[&StageView<'_>], after: Timestamp) -> bool {
    let stage = view.stage;
    let (Some((launched, _)), false) = (view.span, stage.rdd_ids.is_empty()) else { return false };
    launched >= after.as_millisecond()
        && stage.measures.shuffle_write_bytes.sum_or_zero() > 0
        && same.iter().any(|earlier| {
            earlier.stage.id != stage.id
                && earlier.span.is_some_and(|(first, _)| first < launched)
                && earlier.stage.tasks.total > stage.tasks.total
        })
}

fn advise(draft: Draft, cause: Cause) -> Draft {
    match cause {
        Cause::HeapOom => draft
            .advice_unless(
                "Raise spark.executor.memory, or lower spark.executor.cores so that fewer tasks \
                 share the heap",
                Where::Resources,
                "one row or one key needs more than any heap: see the stage it failed in",
            )
            .advice_unless(
                "Make partitions smaller (spark.sql.shuffle.partitions)",
                Where::Conf,
                "one partition is one key",
            ),
        Cause::ContainerMemory => draft
            .advice_unless(
                "Raise spark.executor.memoryOverhead (or spark.executor.memoryOverheadFactor): \
                 Python workers, Netty and native libraries live outside the heap",
                Where::Resources,
                "off-heap memory is not what grew: then lower spark.executor.memory",
            )
            .advice_unless(
                "With Python, set spark.executor.pyspark.memory, and lower spark.executor.cores",
                Where::Conf,
                "no Python runs",
            ),
        Cause::Killed => draft.advice(
            "Ask the resource manager or the kernel's log who sent the signal: the kernel's OOM \
             killer, an operator, a node drain. Spark does not know",
            Where::Resources,
        ),
        Cause::Heartbeat => draft
            .advice_unless(
                "Look for long garbage collections on that executor, and at its host's load",
                Where::Resources,
                "the network between driver and executor was cut",
            )
            .advice_unless(
                "Raise spark.network.timeout (and keep spark.executor.heartbeatInterval well \
                 below it)",
                Where::Conf,
                "the executor was gone for good",
            ),
        Cause::Preempted => draft.advice_unless(
            "Run in a queue or priority class that is not preempted, or accept the loss and keep \
             shuffle elsewhere (external or remote shuffle service)",
            Where::Resources,
            "spot capacity is what was paid for",
        ),
        Cause::Decommissioned => draft.advice_unless(
            "Set spark.storage.decommission.enabled=true with its shuffle and RDD block options, \
             so that blocks move before the node goes",
            Where::Conf,
            "nodes go faster than blocks move",
        ),
        Cause::NodeLost => {
            draft.advice("Look at the node: it went with everything on it", Where::Resources)
        }
        _ => draft.advice(
            "Read the executor's own log (stderr) around the time of the removal",
            Where::Resources,
        ),
    }
}
