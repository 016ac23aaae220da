//! `application_idle`: the program is done, or hangs, and its driver lives on
//! with the cores it holds.

use super::context::{Context, millis, seconds};
use super::draft::{Draft, Weight};
use super::{
    About, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane, jobs,
};
use crate::model::{JobStatus, Kind, StageStatus, State};

pub(super) const ABOUT: About = About {
    rule: Rule::ApplicationIdle,
    meaning: "The application runs, has had no job for long, and holds its cores.",
    details: r#"*Fires* on a batch application that runs, with no job running and none for 15 min
(`at`). Typically its work is done and `stop()` was never called, or threads that are no
daemons keep the driver alive; or the driver waits for something else.

`warning`; `info` where it holds no cores.

*Source*: SPARK-48547 (drivers that live on after the last job); 15 min is longer than
what programs do between two jobs.

*Cost*: the core-seconds held since the last job. No wall time: what would end earlier
does nothing.

*Silent* for streaming and interactive applications, whose idleness is waiting for
data or people; where events were dropped; and from an event log alone: a log that
does not grow tells neither idle from dead nor how late it is. The driver's own REST
API does.
"#,
    evidence: &[
        ("idle", "since the last job ended, or since the start"),
        ("cores_held", "cores of the executors there now"),
        ("jobs", "jobs that ran before"),
    ],
    fires: &["left_running"],
    near_misses: &["left_running"],
    resists: &[("stuck_stage", "a job whose tasks hang is not an idle application")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    drafts.extend(since(context).map(|since| judge(context, since)));
}

/// Since when it idles, in milliseconds since the epoch; `None` where the
/// rule has nothing to say.
pub(super) fn since(context: &Context<'_>) -> Option<i64> {
    let thresholds = &context.thresholds.application_idle;
    let application = context.application;
    let busy = application.jobs.iter().any(|job| job.status == JobStatus::Running)
        || application.stages.iter().any(|stage| stage.status == StageStatus::Active);
    if !thresholds.enabled
        || application.state != State::Running
        || application.kind != Kind::Batch
        || busy
        || !jobs::are_complete(application)
    {
        return None;
    }
    let last = application.jobs.iter().map(|job| job.completed).max().unwrap_or(application.start);
    let since = last.or(application.start)?.as_millisecond();
    let idle = millis(jobs::end(application).saturating_sub(since));
    (idle >= thresholds.at.get()).then_some(since)
}

fn judge(context: &Context<'_>, since: i64) -> Draft {
    let thresholds = &context.thresholds.application_idle;
    let application = context.application;
    let now = jobs::end(application);
    let idle = millis(now.saturating_sub(since));
    let cores: u32 = application
        .executors
        .iter()
        .filter(|executor| executor.removed.is_none())
        .map(|executor| executor.cores)
        .sum();
    let held = seconds(context.supplies.cores.integral(since, now));
    let ran = application.jobs.len() as u64;
    let headline = format!(
        "No job for {}, and {} held: {}",
        humane::duration(idle),
        humane::count(cores.into(), "core", "cores"),
        match ran {
            0 => "none was ever submitted".to_owned(),
            ran => format!("{} ended, and the driver lives on", humane::count(ran, "job", "jobs")),
        },
    );
    let severity = if cores == 0 { Severity::Info } else { Severity::Warning };
    let impact = Impact { wall: None, core: Some(held), estimated: false };
    Draft::new(Rule::ApplicationIdle, FindingKind::Resources, Subject::Application, headline)
        .weight(Weight::Exactly(severity))
        .confidence(Confidence::High)
        .evidence(
            "idle",
            idle.as_secs_f64(),
            Unit::Seconds,
            thresholds.at.get().as_secs_f64(),
            "jobs ended, and now",
        )
        .evidence("cores_held", f64::from(cores), Unit::Count, None, "executors there now")
        .evidence("jobs", ran as f64, Unit::Count, None, "the run")
        .impact(impact, Vec::new())
        .advice_unless(
            "If its work is done, end it; then make the program call stop() in a finally block, \
             and make threads that it starts daemons: the JVM waits for all others",
            Where::Resources,
            "the program is waiting for something that will come: look at a thread dump of the \
             driver",
        )
        .advice_unless(
            "Let it give idle executors back: spark.dynamicAllocation.enabled, with \
             executorIdleTimeout and, for cached data, cachedExecutorIdleTimeout",
            Where::Conf,
            "it should not be there at all",
        )
}
