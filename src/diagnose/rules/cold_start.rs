//! `cold_start`: the first executor came late, or none ever did, and the
//! application waited for it.

use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, millis};
use super::draft::{Draft, Weight};
use super::steps::Spans;
use super::{
    About, Cause, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane,
    jobs,
};
use crate::model::{Application, Configuration, DataQuality, Kind, Source};

/// `spark.scheduler.maxRegisteredResourcesWaitingTime` where nothing sets it.
const REGISTRATION_WAIT: Duration = Duration::from_secs(30);
/// Executors that went away and that a driver's UI still remembers
/// (`spark.ui.retainedDeadExecutors`).
const REMEMBERED: usize = 100;

pub(super) const ABOUT: About = About {
    rule: Rule::ColdStart,
    meaning: "The application waited more than half a minute for its first executor, or never \
              got one.",
    details: r#"*Fires* where the first executor was added more than 30 s (`at`) after the
application started, or, where dynamic allocation starts from no executor, after the
first job was submitted. Executors that come late to an application that does not
need them yet cost nothing, so it counts only what was waited:

* from the first job's submission to the first executor, and
* on YARN and Kubernetes, or where `spark.scheduler.minRegisteredResourcesRatio` is
  set, the time in which Spark holds the program back until executors are there: from
  the start of the application, for at most
  `spark.scheduler.maxRegisteredResourcesWaitingTime` (30 s).

`no_executor`: none ever came, and something waited; the whole run was for nothing.

*Source*: SparkForensics (30 s).

*Cost*: the time waited. It is promised here only: `scheduling_delay` counts from the
first executor on where this rule speaks. At most `info` in interactive
applications; in streaming ones older than an hour nothing is said.

*Silent* where events were dropped or compacted away, or the driver's lists do not
reach back to the first executor.
"#,
    evidence: &[
        (
            "first_executor",
            "from the start (or the first job) to the first executor, or to the end",
        ),
        ("waited", "of it the time in which something waited"),
        ("job_waited", "from the first job to the first executor"),
    ],
    fires: &["cold_start", "no_executor"],
    near_misses: &["scheduling_no_executors"],
    resists: &[(
        "cold_start_unnoticed",
        "executors that came as late, to a driver that was not waiting, are no cold start",
    )],
};

/// What was waited for the first executor.
pub(super) struct Late {
    /// When the application began to need executors.
    began: i64,
    /// The first executor, or the end where none came.
    first: i64,
    came: bool,
    waited: Spans,
    job_waited: Duration,
}

impl Late {
    /// Up to here the time without executors is this rule's to promise.
    pub(super) fn until(&self) -> i64 {
        self.first
    }
}

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    drafts.extend(late(context).map(|late| judge(context, &late)));
}

/// `None` where the rule has nothing to say.
pub(super) fn late(context: &Context<'_>) -> Option<Late> {
    let thresholds = &context.thresholds.cold_start;
    let application = context.application;
    if !thresholds.enabled || !knows_the_first(application) {
        return None;
    }
    let start = application.start?.as_millisecond();
    // Of a stream that runs for days nobody can mend the start.
    let (judged_from, end) = jobs::judged(application)?;
    if application.kind == Kind::Streaming && judged_from > start {
        return None;
    }
    let first_job = jobs::first(application);
    let added = application.executors.iter().filter_map(|executor| executor.added).min();
    let ran = application.stages.iter().any(|stage| stage.first_task_launched.is_some());
    if added.is_none() && (ran || !application.executors.is_empty()) {
        // Somebody was there: we only do not know since when.
        return None;
    }
    let first = added.map_or(end, Timestamp::as_millisecond);
    let began = if starts_from_none(&application.configuration) { first_job? } else { start };
    if millis(first.saturating_sub(began)) <= thresholds.at.get() {
        return None;
    }
    let job_span = first_job.filter(|job| *job < first).map(|job| (job, first));
    let held_back = held_back(&application.configuration)
        .filter(|_| began == start)
        .map(|most| (start, first.min(start.saturating_add(most.as_millis() as i64))));
    let waited = Spans::union(job_span.into_iter().chain(held_back).collect());
    let floor = context.thresholds.cost.emit_floor(context.run);
    (Duration::from_millis(waited.millis()) >= floor).then(|| Late {
        began,
        first,
        came: added.is_some(),
        job_waited: job_span.map_or(Duration::ZERO, |(from, to)| millis(to.saturating_sub(from))),
        waited,
    })
}

/// Whether the first executor that is known is the first there was.
fn knows_the_first(application: &Application) -> bool {
    let holes =
        [DataQuality::DroppedEvents, DataQuality::LogCompacted, DataQuality::EndpointsMissing];
    let forgotten = application.source != Source::EventLog
        && application.executors.iter().filter(|executor| executor.removed.is_some()).count()
            >= REMEMBERED;
    !forgotten && !application.local_mode() && !holes.iter().any(|hole| application.has(*hole))
}

/// Whether dynamic allocation asks for executors only when there is work.
fn starts_from_none(configuration: &Configuration) -> bool {
    let number = |key| configuration.get(key).and_then(|text| text.trim().parse::<u32>().ok());
    configuration.flag("spark.dynamicAllocation.enabled", false)
        && [
            "spark.dynamicAllocation.initialExecutors",
            "spark.dynamicAllocation.minExecutors",
            "spark.executor.instances",
        ]
        .into_iter()
        .all(|key| number(key).unwrap_or(0) == 0)
}

/// How long Spark holds the program back for executors to register, where it
/// does.
fn held_back(configuration: &Configuration) -> Option<Duration> {
    let ratio = configuration
        .get("spark.scheduler.minRegisteredResourcesRatio")
        .and_then(|text| text.trim().parse::<f64>().ok());
    let master = configuration.get("spark.master").unwrap_or_default();
    let by_default = master.starts_with("yarn") || master.starts_with("k8s");
    let holds = ratio.map_or(by_default, |ratio| ratio > 0.0);
    holds.then(|| {
        configuration
            .time("spark.scheduler.maxRegisteredResourcesWaitingTime", Duration::from_millis(1))
            .unwrap_or(REGISTRATION_WAIT)
    })
}

fn judge(context: &Context<'_>, late: &Late) -> Draft {
    let thresholds = &context.thresholds.cold_start;
    let took = millis(late.first.saturating_sub(late.began));
    let waited = Duration::from_millis(late.waited.millis());
    let since = if starts_from_none(&context.application.configuration) {
        "the first job"
    } else {
        "the application started"
    };
    let headline = if late.came {
        format!("The first executor came {} after {since}", humane::duration(took))
    } else {
        format!("No executor in the {} since {since}", humane::duration(took))
    };
    let weight = match context.application.kind {
        Kind::Interactive => Weight::Saving { at_most: Severity::Info },
        Kind::Batch | Kind::Streaming => Weight::Saving { at_most: Severity::Critical },
    };
    let impact = Impact { wall: Some(waited), core: Some(Duration::ZERO), estimated: false };
    let from = "executors added, jobs submitted";
    let draft = Draft::new(Rule::ColdStart, FindingKind::Resources, Subject::Application, headline)
        .cause((!late.came).then_some(Cause::NoExecutor))
        .weight(weight)
        .confidence(if late.job_waited >= waited / 2 {
            Confidence::High
        } else {
            Confidence::Medium
        })
        .evidence(
            "first_executor",
            took.as_secs_f64(),
            Unit::Seconds,
            thresholds.at.get().as_secs_f64(),
            since,
        )
        .evidence("waited", waited.as_secs_f64(), Unit::Seconds, None, from)
        .evidence("job_waited", late.job_waited.as_secs_f64(), Unit::Seconds, None, from)
        .impact(impact, Vec::new());
    advise(draft, late.came)
}

fn advise(draft: Draft, came: bool) -> Draft {
    if !came {
        return draft
            .advice(
                "Look at why nobody gave it executors: does any worker have as many cores and as \
                 much memory free as one executor asks for (spark.executor.cores, \
                 spark.executor.memory and its overhead); is the queue or quota full; may the \
                 driver ask for them at all (account, network between driver and executors)",
                Where::Resources,
            )
            .advice_unless(
                "Ask for smaller executors",
                Where::Conf,
                "no worker is registered at all, or executors start and end at once: then read \
                 their own log",
            );
    }
    draft
        .advice_unless(
            "Look at why executors came late: a full queue or cluster, quota, image pulls, \
             start-up of nodes; keep some nodes warm, or images on them",
            Where::Resources,
            "the cluster was started for this run and waiting for it is accepted",
        )
        .advice_unless(
            "Several short runs: make them jobs of one application, which pays for its start once",
            Where::Resources,
            "they are one a day",
        )
        .advice_unless(
            "Do what needs no executor meanwhile (read configuration, list files) before the \
             session is made",
            Where::Conf,
            "the driver has nothing else to do",
        )
}
