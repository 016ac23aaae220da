//! `driver_gap`: executors stand idle between jobs while the driver is busy,
//! or waits.

use std::time::Duration;

use super::context::{Context, millis, seconds};
use super::draft::Draft;
use super::gap_parts::{GapPart, GapParts};
use super::steps::Spans;
use super::{
    About, Confidence, FindingKind, Impact, Rule, Subject, Unit, Where, application_idle, humane,
    jobs,
};
use crate::model::{Application, Kind};

/// Gaps shown one by one.
const LONGEST: usize = 3;

pub(super) const ABOUT: About = About {
    rule: Rule::DriverGap,
    meaning: "Between jobs the executors stand idle, because the driver is busy or waits.",
    details: r#"A gap is a time between the first job's submission and the end of the run in which no
job runs. *Fires* where the gaps are 10 s (`at`) and 10 % of the run (`ratio`) and more
in all. What the driver did in them, as far as an event log tells:

| part | what it is |
|---|---|
| `file_listing` | "metadata time" of the scans of queries whose first job the gap came before |
| `query_planning` | the rest of the time from a query's start to its first job, and between its jobs |
| `commit` | from a query's last job to its end |
| `command` | statements without a job |
| `program` | no query was open: the program itself, or Spark before the query's start |

Spark writes the start of a query after it has planned it, so most planning falls into
`program`. From REST all of it does.

*Sources*: the definition is Sparklens' driver time (the run less the union of its
jobs); the thresholds are ours: Databricks' guide calls gaps of a minute worth a look
where they are a large share of the run.

*Cost*: the gaps' wall time, as an upper bound (`estimated`) where the program itself
was busy; core-seconds of the executors there.

*Silent* for streaming applications, where the driver waits for the next trigger. In
interactive ones only gaps while a query was open count, of the last hour. The wait for
a first executor is no gap (a job runs then), an application that lives on after its
work is `application_idle`, and the time that `large_broadcast` explains is left out. Silent where events were dropped or compacted away, or the
driver's lists do not hold all jobs.
"#,
    evidence: &[
        ("gaps", "time without a job, in all"),
        ("share_of_run", "of the time judged"),
        ("gap", "one of the longest, with the jobs on both sides"),
        ("file_listing", "part of it: listing files"),
        ("query_planning", "part of it: queries that were open and had no job yet"),
        ("commit", "part of it: queries whose jobs were done"),
        ("command", "part of it: statements without a job"),
        ("program", "part of it: no query was open"),
    ],
    fires: &["driver_gap", "driver_gap_listing", "driver_gap_planning"],
    near_misses: &["many_stages"],
    resists: &[
        ("streaming", "waiting for the trigger is no gap"),
        ("cold_start", "waiting for executors is no gap of the driver's making"),
    ],
};

/// A time without a job.
struct Gap {
    from: i64,
    to: i64,
}

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    let application = context.application;
    if context.thresholds.driver_gap.enabled
        && application.kind != Kind::Streaming
        && jobs::are_complete(application)
    {
        let found = judge(context, drafts);
        drafts.extend(found);
    }
}

fn judge(context: &Context<'_>, drafts: &[Draft]) -> Option<Draft> {
    let thresholds = &context.thresholds.driver_gap;
    let application = context.application;
    let (from, to) = jobs::judged(application)?;
    let judged = millis(to.saturating_sub(from));
    // What follows the last job of an idle application is told by another.
    let to = application_idle::since(context).unwrap_or(to);
    let from = jobs::first(application)?.max(from);
    let mut gaps = jobs::gaps(application, from, to);
    let parts = GapParts::of(context, from, to);
    if application.kind == Kind::Interactive {
        gaps = gaps.intersect(parts.open());
    }
    // A broadcast is collected and built between jobs: its finding says so.
    let told = drafts
        .iter()
        .filter(|draft| draft.finding.rule == Rule::LargeBroadcast)
        .filter_map(|draft| draft.finding.impact.wall)
        .fold(Duration::ZERO, Duration::saturating_add);
    let all = Duration::from_millis(gaps.millis()).saturating_sub(told);
    let share = all.as_secs_f64() / judged.as_secs_f64().max(1e-3);
    if all < thresholds.at.get() || share < thresholds.ratio {
        return None;
    }
    let split = parts.split(&gaps);
    let main =
        split.iter().max_by_key(|(_, span)| *span).map_or(GapPart::Program, |(part, _)| *part);
    let longest = longest(&gaps);
    let worst = longest.first()?;
    let headline = format!(
        "{} in which no job ran{}, {} of it {}: {}",
        humane::duration(all),
        // Of a driver's log alone nobody knows who was there.
        if context.supplies.cores.is_empty() { "" } else { " and the executors stood idle" },
        humane::duration(millis(worst.to.saturating_sub(worst.from))),
        beside(application, worst),
        main.words(),
    );
    let held: f64 = gaps.iter().map(|(from, to)| context.supplies.cores.integral(from, to)).sum();
    let core = (!context.supplies.cores.is_empty()).then(|| seconds(held));
    let program = main == GapPart::Program;
    let impact = Impact { wall: Some(all), core, estimated: program };
    let from = "jobs submitted and completed";
    let mut draft =
        Draft::new(Rule::DriverGap, FindingKind::Resources, Subject::Application, headline)
            .confidence(Confidence::High)
            .evidence(
                "gaps",
                all.as_secs_f64(),
                Unit::Seconds,
                thresholds.at.get().as_secs_f64(),
                from,
            )
            .evidence("share_of_run", share, Unit::Ratio, thresholds.ratio, from);
    for gap in &longest {
        let length = millis(gap.to.saturating_sub(gap.from));
        let place = beside(application, gap);
        draft = draft.evidence("gap", length.as_secs_f64(), Unit::Seconds, None, place);
    }
    for (part, span) in split {
        let span = span.as_secs_f64();
        draft = draft.evidence(part.as_str(), span, Unit::Seconds, None, part.source());
    }
    Some(advise(draft.impact(impact, Vec::new()), main))
}

/// The longest, those first.
fn longest(gaps: &Spans) -> Vec<Gap> {
    let mut all: Vec<Gap> = gaps.iter().map(|(from, to)| Gap { from, to }).collect();
    all.sort_by_key(|gap| std::cmp::Reverse(gap.to.saturating_sub(gap.from)));
    all.truncate(LONGEST);
    all
}

/// `between job 3 and job 4`.
fn beside(application: &Application, gap: &Gap) -> String {
    let jobs = || application.jobs.iter();
    let before = jobs()
        .filter(|job| job.completed.is_some_and(|end| end.as_millisecond() <= gap.from))
        .max_by_key(|job| (job.completed, job.id));
    let after = jobs()
        .filter(|job| job.submitted.is_some_and(|start| start.as_millisecond() >= gap.to))
        .min_by_key(|job| (job.submitted, job.id));
    match (before, after) {
        (Some(before), Some(after)) => format!("between job {} and job {}", before.id, after.id),
        (Some(before), None) => format!("after job {}", before.id),
        (None, Some(after)) => format!("before job {}", after.id),
        (None, None) => "without a job on either side".to_owned(),
    }
}

fn advise(draft: Draft, main: GapPart) -> Draft {
    let draft = match main {
        GapPart::Listing => draft
            .advice_unless(
                "Let queries name partitions (a filter on the partition column), so that only \
                 their folders are listed; have fewer, larger partitions and files",
                Where::Data,
                "every partition is needed",
            )
            .advice_unless(
                "Keep the list: raise spark.sql.hive.filesourcePartitionFileCacheSize, or use a \
                 table format that keeps its own list of files (Iceberg, Delta, Hudi)",
                Where::Conf,
                "the table is read once",
            )
            .advice_unless(
                "List on the executors: lower \
                 spark.sql.sources.parallelPartitionDiscovery.threshold",
                Where::Conf,
                "it is the metastore that is slow",
            ),
        GapPart::Planning => draft
            .advice_unless(
                "Make plans smaller: withColumns or one select instead of withColumn in a loop, \
                 no union of hundreds of frames; cut long lineages with checkpoint() or by \
                 writing and reading",
                Where::Sql,
                "the plan is small: then the time goes to broadcasts, or to listing that Spark \
                 does not measure",
            )
            .advice("Give the driver more CPU and heap", Where::Resources),
        GapPart::Commit => draft
            .advice_unless(
                "Use a committer that does not rename (S3A committers on S3), and write fewer \
                 files",
                Where::Conf,
                "the table format commits by itself: then look at its metadata (number of \
                 snapshots, manifests)",
            )
            .advice("Write fewer partitions at once", Where::Data),
        GapPart::Command => draft.advice_unless(
            "Repair or analyse tables apart from the run that needs its executors (MSCK REPAIR, \
             ANALYZE, ALTER TABLE)",
            Where::Sql,
            "the statements are cheap and the catalog is slow",
        ),
        GapPart::Program => draft
            .advice_unless(
                "Look at what the program does there: pandas or loops on the driver, collect() \
                 and toPandas(), calls to services, reading schemas, plans built column by \
                 column. Move it to the executors, or do it before the session is made",
                Where::Sql,
                "it waits for something outside on purpose",
            )
            .advice_unless(
                "Run jobs that do not need each other at the same time, each from a thread of \
                 its own",
                Where::Sql,
                "each needs the one before",
            ),
    };
    draft.advice_unless(
        "Give the cores back meanwhile: spark.dynamicAllocation.enabled with a short \
         executorIdleTimeout",
        Where::Conf,
        "the gaps are shorter than it takes to get executors",
    )
}
