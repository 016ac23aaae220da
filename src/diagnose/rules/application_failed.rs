//! `application_failed`: the run failed, and no failed job tells why.

use super::context::Context;
use super::draft::{Draft, Weight};
use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    job_failed,
};
use crate::model::{JobStatus, State};

pub(super) const ABOUT: About = About {
    rule: Rule::ApplicationFailed,
    meaning: "The application failed, and no job of it is to blame.",
    details: r#"*Fires* where the exit code is not 0, or the resource manager or the pod says that the
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

*Sources*: `org.apache.spark.util.SparkExitCode`; 128 + signal is the shell's.

*Silent* where nothing tells how the run ended: Spark writes no exit code before 4.0,
and later ones write 0 also for a program that died of an exception, except on
Kubernetes.
"#,
    evidence: &[
        ("exit_code", "as Spark or the resource manager wrote it"),
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
    let cause = match code {
        Some(52) => Some(Cause::HeapOom),
        Some(137 | 143) => Some(Cause::Killed),
        _ => None,
    };
    let how = match (application.state, code) {
        (State::Lost, _) => "is gone without an end".to_owned(),
        (State::Killed, _) => "was killed".to_owned(),
        (_, Some(code)) => format!("failed with exit code {code}"),
        _ => "failed".to_owned(),
    };
    let why = match code {
        Some(52) => ": its driver ran out of memory",
        Some(50 | 51) => ": an exception that nobody caught",
        Some(137 | 143) => ": killed from outside, by whom is not proven",
        _ => "",
    };
    let headline = format!(
        "The application {how}{why}, after {}{}",
        humane::count(jobs as u64, "job", "jobs"),
        match failed {
            0 => " of which none failed".to_owned(),
            failed => format!(" of which {failed} failed earlier"),
        },
    );
    let kind = if cause == Some(Cause::HeapOom) {
        FindingKind::Configuration
    } else {
        FindingKind::Resources
    };
    let mut draft = Draft::new(Rule::ApplicationFailed, kind, Subject::Application, headline)
        .cause(cause)
        .weight(Weight::Exactly(severity))
        .confidence(match application.state {
            State::Lost => Confidence::Medium,
            _ => Confidence::High,
        });
    if let Some(code) = code {
        draft = draft.evidence("exit_code", f64::from(code), Unit::Count, 0.0, "application end");
    }
    let draft = draft
        .evidence("failed_jobs", failed as f64, Unit::Count, None, "the run")
        .evidence("jobs", jobs as f64, Unit::Count, None, "the run")
        .impact(Impact::default(), Vec::new());
    match (cause, application.state) {
        (Some(Cause::HeapOom), _) => draft.advice_unless(
            "Bring less to the driver: collect() and toPandas() of large results, broadcasts, \
                 very many tasks or partitions; else raise spark.driver.memory",
            Where::Sql,
            "a heap dump shows the program's own objects",
        ),
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
