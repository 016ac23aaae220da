//! `application_failed`: the run failed, and no failed job tells why.

use super::context::Context;
use super::draft::{Draft, Weight};
use super::executor_lost::{name_of, pod_words};
use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    job_failed,
};
use crate::model::{Application, JobStatus, OnKubernetes, PodFate, State};

pub(super) const ABOUT: About = About {
    rule: Rule::ApplicationFailed,
    meaning: "The application failed, and no job of it is to blame.",
    details:
        "*Fires* where the exit code is not 0, or the resource manager or the pod says that the
application failed (`critical`), or where its source says that it is gone without an end
(`critical`, medium confidence). `info` where somebody killed it on purpose, as the
resource manager tells.

One story, one alert: where the run failed by a job, `job_failed` says so, with the
class of the reason, and this rule is silent. A job that failed earlier, and that the
program survived, does not count as such.

| exit code | cause |
|---|---|
| 52 | `heap_oom`: the driver ran out of memory |
| 137, 143 | `killed`: SIGKILL or SIGTERM, by whom is not proven |
| 50, 51 | an exception that nobody caught in a thread of the driver |
| other | the program's own |

Where the daemon watches the driver's pod (`clusters[].kubernetes`), that says more:

| pod | state | cause |
|---|---|---|
| Spark's container OOMKilled | failed | `container_memory`: 137 alone is `killed` |
| evicted, drained, preempted | failed | `preempted` |
| its node went | lost | `node_lost` |
| ran beyond `activeDeadlineSeconds` | failed | `killed` |
| deleted while it ran | killed (`info`) | `killed` |

*Sources*: `org.apache.spark.util.SparkExitCode`; 128 + signal is the shell's.

*Silent* where nothing tells how the run ended: Spark writes no exit code before 4.0,
and later ones write 0 also for a program that died of an exception, except on
Kubernetes.
",
    evidence: &[
        ("exit_code", "as Spark, the pod or the resource manager wrote it"),
        ("kubernetes", "where Kubernetes tells the end, and no exit code"),
        ("failed_jobs", "jobs that failed earlier"),
        ("jobs", "jobs in all"),
    ],
    fires: &["application_failed"],
    near_misses: &["job_failed_caught"],
    resists: &[("job_failed", "what a failed job explains is not told twice")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if !context.thresholds.application_failed.enabled || job_failed::ended_the_run(context) {
        return;
    }
    let severity = match context.application.state {
        State::Failed | State::Lost => Severity::Critical,
        State::Killed => Severity::Info,
        State::Running | State::Succeeded | State::Cancelled | State::Unknown => return,
    };
    drafts.push(judge(context, severity));
}

fn judge(context: &Context<'_>, severity: Severity) -> Draft {
    let application = context.application;
    let code = application.exit_code;
    let failed = application.jobs.iter().filter(|job| job.status == JobStatus::Failed).count();
    let jobs = application.jobs.len();
    let pod = of_pod(application);
    let cause = cause(code, pod);
    let how = match (application.state, code) {
        (State::Lost, _) => "is gone without an end".to_owned(),
        (State::Killed, _) => "was killed".to_owned(),
        (_, Some(code)) => format!("failed with exit code {code}"),
        _ => "failed".to_owned(),
    };
    let headline = format!(
        "The application {how}{}, after {}{}",
        why(code, pod),
        humane::count(jobs as u64, "job", "jobs"),
        match failed {
            0 => " of which none failed".to_owned(),
            failed => format!(" of which {failed} failed earlier"),
        },
    );
    let kind = match cause {
        Some(Cause::HeapOom | Cause::ContainerMemory) => FindingKind::Configuration,
        _ => FindingKind::Resources,
    };
    let mut draft = Draft::new(Rule::ApplicationFailed, kind, Subject::Application, headline)
        .cause(cause)
        .weight(Weight::Exactly(severity))
        .confidence(match (application.state, pod) {
            (State::Lost, Some(PodFate::NodeLost)) => Confidence::High,
            (State::Lost, _) => Confidence::Medium,
            _ => Confidence::High,
        });
    if let Some(code) = code {
        let from = match &application.kubernetes {
            Some(known) if known.proves_state => read_from(known),
            _ => "application end".to_owned(),
        };
        draft = draft.evidence("exit_code", f64::from(code), Unit::Count, 0.0, from);
    } else if let Some(known) = application.kubernetes.as_ref().filter(|known| known.proves_state) {
        draft = draft.evidence("kubernetes", 1.0, Unit::Count, None, read_from(known));
    }
    let draft = draft
        .evidence("failed_jobs", failed as f64, Unit::Count, None, "the run")
        .evidence("jobs", jobs as f64, Unit::Count, None, "the run")
        .impact(Impact::default(), Vec::new());
    advise(draft, cause, application.state, pod)
}

/// How the driver's pod ended, where that is what proves how the run did.
fn of_pod(application: &Application) -> Option<PodFate> {
    let known = application.kubernetes.as_ref()?;
    let fate = known.driver_fate()?;
    // Spark told the failure itself, and its pod why.
    (known.proves_state || application.state == State::Failed).then_some(fate)
}

fn cause(code: Option<i32>, pod: Option<PodFate>) -> Option<Cause> {
    match (pod, code) {
        (Some(PodFate::OutOfMemory), _) => Some(Cause::ContainerMemory),
        (Some(PodFate::Evicted | PodFate::Preempted), _) => Some(Cause::Preempted),
        (Some(PodFate::NodeLost), _) => Some(Cause::NodeLost),
        (_, Some(52)) => Some(Cause::HeapOom),
        (Some(PodFate::Deleted | PodFate::Deadline), _) | (_, Some(137 | 143)) => {
            Some(Cause::Killed)
        }
        _ => None,
    }
}

fn why(code: Option<i32>, pod: Option<PodFate>) -> &'static str {
    match (pod, code) {
        (Some(PodFate::OutOfMemory), _) => ": its driver's container went over its memory limit",
        (Some(PodFate::Evicted), _) => ": its driver's pod was evicted from its node",
        (Some(PodFate::Preempted), _) => ": its driver's pod was preempted",
        (Some(PodFate::NodeLost), _) => ": its driver's node was lost",
        (Some(PodFate::Deadline), _) => ": its driver's pod ran for longer than it may",
        (Some(PodFate::Deleted), _) => ": its driver's pod was deleted",
        (_, Some(52)) => ": its driver ran out of memory",
        (_, Some(50 | 51)) => ": an exception that nobody caught",
        (_, Some(137 | 143)) => ": killed from outside, by whom is not proven",
        _ => "",
    }
}

/// Where Kubernetes' word about the end was read.
fn read_from(known: &OnKubernetes) -> String {
    if let Some(driver) = known.driver.as_ref().filter(|driver| driver.pod.fate().is_some()) {
        return pod_words(&driver.pod);
    }
    match &known.submission {
        Some(told) => format!("status of SparkApplication {}", name_of(&told.name)),
        None => "Kubernetes".to_owned(),
    }
}

fn advise(draft: Draft, cause: Option<Cause>, state: State, pod: Option<PodFate>) -> Draft {
    match (cause, state) {
        (Some(Cause::HeapOom), _) => draft.advice_unless(
            "Bring less to the driver: collect() and toPandas() of large results, broadcasts, \
                 very many tasks or partitions; else raise spark.driver.memory",
            Where::Sql,
            "a heap dump shows the program's own objects",
        ),
        (Some(Cause::ContainerMemory), _) => draft
            .advice_unless(
                "Raise spark.driver.memoryOverhead (or spark.driver.memoryOverheadFactor): the \
                 driver's Python program, Netty and native libraries live outside the heap",
                Where::Resources,
                "what is outside the heap grows for as long as the driver runs",
            )
            .advice_unless(
                "Bring less to the driver: toPandas() and collect() of large results fill the \
                 Python program beside the heap",
                Where::Sql,
                "the program collects nothing large",
            ),
        (Some(Cause::Preempted), _) => draft.advice_unless(
            "Keep drivers where they are not taken back: a priority class that is not preempted, \
             nodes that are not spot capacity, requests equal to limits so that node pressure \
             takes others first",
            Where::Resources,
            "the run is cheap to start again",
        ),
        (Some(Cause::NodeLost), _) => draft.advice(
            "Look at the node of the driver's pod: it went with everything on it",
            Where::Resources,
        ),
        _ if pod == Some(PodFate::Deadline) => draft.advice_unless(
            "Raise activeDeadlineSeconds of the driver's pod, or make the run shorter",
            Where::Resources,
            "the limit is there to end runs that hang",
        ),
        _ if pod == Some(PodFate::Deleted) => {
            draft.advice("Ask who deleted the driver's pod", Where::Resources)
        }
        (Some(Cause::Killed), _) | (_, State::Lost) => draft.advice_unless(
            "Ask the resource manager or the pod's status why it ended: a container over its \
                 memory (raise spark.driver.memoryOverhead), preemption, a node that went, a time \
                 limit of the scheduler",
            Where::Resources,
            "somebody stopped it",
        ),
        (_, State::Killed) => draft.advice("Ask who killed it", Where::Resources),
        _ => draft.advice_unless(
            "Read the end of the driver's log: the program ended itself, or an exception outside \
             of any job ended it",
            Where::Resources,
            "the exit code is one that the program uses to report",
        ),
    }
}
