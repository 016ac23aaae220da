//! Each run as a trace: whole, with the times of its event log, and with what
//! is wrong at the place where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::collector::{Collector, Options};
use crate::common::{log_text, moved, now_ms};
use crate::log::{Log, Times};
use crate::received::{Received, Span};
use crate::world::{RUNS, SOON, Setup, logs, write_log};

/// What a span is of, by its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    Application,
    Execution(u64),
    Job(u64),
    Stage(u64, u64),
    Task(u64),
}

pub(crate) fn of(span: &Span) -> Of {
    let number = |key: &str| span.attributes.get(key).map(|text| text.parse::<u64>().unwrap());
    if let Some(task) = number("spark.task.id") {
        Of::Task(task)
    } else if let Some(stage) = number("spark.stage.id") {
        Of::Stage(stage, number("spark.stage.attempt.id").unwrap())
    } else if let Some(job) = number("spark.job.id") {
        Of::Job(job)
    } else if let Some(execution) = number("spark.sql_execution.id") {
        Of::Execution(execution)
    } else {
        Of::Application
    }
}

/// The spans of a run, once its application's own is there and all it names.
pub(crate) fn whole_trace(collector: &Collector, app_id: &str, log: &Log) -> Vec<Span> {
    let expected = 1 + log.executions.len() + log.jobs.len() + log.stages.len();
    collector.until(&format!("the whole trace of {app_id}"), SOON, |received| {
        let spans = received.trace_of(app_id);
        let parts = spans.iter().filter(|span| !matches!(of(span), Of::Task(_))).count();
        (parts >= expected).then(|| spans.into_iter().cloned().collect())
    })
}

/// Every part of the log has its span with the log's times, below the right
/// one, and there is nothing else.
pub(crate) fn is_the_log(spans: &[Span], log: &Log) {
    let nanoseconds = |times: Times| (times.0 * 1_000_000, times.1 * 1_000_000);
    let mut seen = BTreeSet::new();
    let by_id: BTreeMap<(&str, &str), &Span> =
        spans.iter().map(|span| ((&*span.trace, &*span.id), span)).collect();
    let parent = |span: &Span| by_id.get(&(&*span.trace, &*span.parent)).map(|above| of(above));
    for span in spans {
        let what = of(span);
        assert!(seen.insert(what), "{what:?} has two spans");
        let expected = match what {
            Of::Application => log.application,
            Of::Execution(id) => log.executions[&id],
            Of::Job(id) => log.jobs[&id],
            Of::Stage(id, attempt) => log.stages[&(id, attempt)],
            Of::Task(id) => *log.tasks.values().find_map(|tasks| tasks.get(&id)).unwrap(),
        };
        assert_eq!((span.start, span.end), nanoseconds(expected), "{what:?}");
        let above = (span.trace.clone(), span.parent.clone());
        assert!(!span.links.contains(&above), "{what:?} links to its parent");
        match what {
            Of::Application => assert_eq!(parent(span), None),
            // Of its execution that started it, or of the application.
            Of::Execution(_) => {
                assert!(matches!(parent(span), Some(Of::Application | Of::Execution(_))));
            }
            Of::Job(id) => {
                let above = log.execution_of.get(&id).map(|id| Of::Execution(*id));
                assert_eq!(parent(span), above.or(Some(Of::Application)), "{what:?}");
            }
            Of::Stage(id, _) => {
                let Some(Of::Job(job)) = parent(span) else { panic!("{what:?} has no job") };
                assert!(log.job_of[&id].contains(&job), "{what:?} is not of job {job}");
            }
            Of::Task(id) => {
                let Some(Of::Stage(stage, attempt)) = parent(span) else {
                    panic!("{what:?} has no stage")
                };
                assert!(log.tasks[&(stage, attempt)].contains_key(&id), "{what:?}");
            }
        }
    }
    let all = [Of::Application]
        .into_iter()
        .chain(log.executions.keys().map(|id| Of::Execution(*id)))
        .chain(log.jobs.keys().map(|id| Of::Job(*id)))
        .chain(log.stages.keys().map(|(id, attempt)| Of::Stage(*id, *attempt)));
    for part in all {
        assert!(seen.contains(&part), "{part:?} has no span");
    }
    slowest_tasks_only(&seen, log);
}

/// At most five of a stage attempt that succeeded, with none slower left out,
/// and at most five that failed, some if there are any.
fn slowest_tasks_only(seen: &BTreeSet<Of>, log: &Log) {
    for (stage, tasks) in &log.tasks {
        let length = |times: &Times| times.1 - times.0;
        let (shown, hidden): (Vec<_>, Vec<_>) =
            tasks.iter().partition(|(id, _)| seen.contains(&Of::Task(**id)));
        let has_failed = |(id, _): &(&u64, &Times)| log.failed_tasks.contains(id);
        let (failed, shown): (Vec<_>, Vec<_>) = shown.into_iter().partition(has_failed);
        let (hidden_failed, hidden): (Vec<_>, Vec<_>) = hidden.into_iter().partition(has_failed);
        assert!(shown.len() <= 5, "stage {stage:?} has {} tasks", shown.len());
        assert!(failed.len() <= 5, "stage {stage:?} has {} failed tasks", failed.len());
        assert!(hidden_failed.is_empty() || failed.len() == 5, "stage {stage:?}: {failed:?}");
        // By run time, which is a little less than launch to finish.
        let least = shown.iter().map(|(_, times)| length(times)).min();
        let most = hidden.iter().map(|(_, times)| length(times)).max();
        if let (Some(least), Some(most)) = (least, most) {
            assert!(most <= least + 500, "stage {stage:?}: {most} ms is left out, {least} shown");
        }
    }
}

/// The run of the README: one task of one stage is slow, and the span of that
/// stage says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_skewed_run_shows_the_slow_stage_and_why() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS[..1]);
    let app_id = RUNS[0].1;
    let exporter = Setup::to("http/protobuf", &collector.http()).start(logs.path());
    let log = Log::read(logs.path(), app_id);
    let spans = whole_trace(&collector, app_id, &log);
    is_the_log(&spans, &log);

    let traces: BTreeSet<&str> = spans.iter().map(|span| &*span.trace).collect();
    assert_eq!(traces.len(), 1, "a batch application is one trace");
    let findings: Vec<_> = spans
        .iter()
        .flat_map(|span| span.events.iter().map(move |event| (span, event)))
        .filter(|(_, event)| event.name == "spark.finding")
        .collect();
    let (stage, finding) = findings
        .iter()
        .find(|(_, event)| event.attributes["spark.finding.rule"] == "data_skew")
        .expect("the skew is an event");
    assert_eq!(finding.attributes["spark.finding.cause"], "hot_key");
    assert!(finding.attributes["spark.finding.headline"].contains("one task ran"), "{finding:?}");
    assert!(stage.start <= finding.time && finding.time <= stage.end, "{finding:?}");
    // It is the longest stage, and its slowest task the longest task.
    let Of::Stage(id, attempt) = of(stage) else { panic!("{stage:?} is no stage") };
    let longest = log.stages.iter().max_by_key(|(_, times)| times.1 - times.0).unwrap().0;
    assert_eq!((id, attempt), *longest);
    let slowest = spans
        .iter()
        .filter(|span| matches!(of(span), Of::Task(_)))
        .max_by_key(|span| span.end - span.start)
        .unwrap();
    assert_eq!(slowest.parent, stage.id);

    // The log record of the finding names that span, and /metrics the trace.
    let record = collector.until("the record of the finding", SOON, |received| {
        let mut records = received.records.iter();
        let of_skew = records.find(|record| {
            record.attributes.get("spark.finding.rule").is_some_and(|rule| rule == "data_skew")
        });
        of_skew.cloned()
    });
    assert_eq!((&record.trace, &record.span), (&stage.trace, &stage.id));
    let labelled = format!("trace_id=\"{}\"", stage.trace);
    let info = exporter.settled(1).await;
    let info = info
        .series
        .keys()
        .find(|(name, _)| name == "spark_application_info")
        .map(|(_, labels)| labels.clone())
        .unwrap();
    assert_eq!(info.get("trace_id"), Some(&stage.trace), "{labelled}");
    exporter.stop();
}

/// Runs of every sort, batch and not: each is whole; failures are errors, and
/// nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn every_run_is_whole() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS);
    let exporter = Setup::to("grpc", &collector.grpc()).start(logs.path());
    for (recorded, app_id) in RUNS {
        let log = Log::read(logs.path(), app_id);
        let spans = whole_trace(&collector, app_id, &log);
        if recorded.starts_with("streaming") {
            parts_are_traces_of_their_own(&spans);
            continue;
        }
        is_the_log(&spans, &log);
        // A task that failed and was run again is no error of the run.
        let failed = |span: &&Span| span.status == 2 && !matches!(of(span), Of::Task(_));
        let errors: Vec<Of> = spans.iter().filter(failed).map(of).collect();
        let badly = ["application_failed", "stage_retries", "job_failed"];
        if badly.iter().any(|name| recorded.starts_with(name)) {
            assert!(!errors.is_empty(), "{recorded} has no error");
        } else {
            assert!(errors.is_empty(), "{recorded}: {errors:?}");
        }
        for span in spans.iter().filter(failed) {
            assert!(span.attributes.contains_key("error.type"), "{span:?}");
        }
    }
    exporter.stop();
}

/// Of a stream: each part directly below the application is a trace that
/// links to it.
fn parts_are_traces_of_their_own(spans: &[Span]) {
    // The query was stopped while a batch ran: somebody's wish, no error.
    let errors: Vec<_> = spans.iter().filter(|span| span.status == 2).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let application = spans.iter().find(|span| of(span) == Of::Application).unwrap();
    let mut traces: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        traces.entry(&span.trace).or_default().push(span);
    }
    assert!(traces.len() > 5, "{} traces of a stream", traces.len());
    assert_eq!(traces[&*application.trace].len(), 1);
    for (trace, spans) in traces.iter().filter(|(trace, _)| **trace != application.trace) {
        let ids: BTreeSet<&str> = spans.iter().map(|span| &*span.id).collect();
        let roots: Vec<_> = spans.iter().filter(|span| !ids.contains(&*span.parent)).collect();
        assert_eq!(roots.len(), 1, "trace {trace}");
        assert_eq!(roots[0].parent, "");
        let link = (application.trace.clone(), application.id.clone());
        assert!(roots[0].links.contains(&link), "{:?}", roots[0]);
    }
}

/// A restart, in peace and by a crash: nothing is sent twice, and what ended
/// meanwhile is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_sends_nothing_twice() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS[..2]);
    let store = tempfile::tempdir().unwrap();
    let store = store.path().join("store.db");
    let setup = Setup::to("http/protobuf", &collector.http())
        .arguments(&["--storage.path", store.to_str().unwrap()]);
    let counts = |received: &Received| {
        for (_, app_id) in RUNS {
            received.trace_of(app_id);
        }
        (received.spans.len(), received.records.len())
    };
    let mut before = (0, 0);
    for (round, crash) in [false, true, false].into_iter().enumerate() {
        let exporter = setup.start(logs.path());
        exporter.settled(2 + round).await;
        for (_, app_id) in &RUNS[..2 + round] {
            whole_trace(&collector, app_id, &Log::read(logs.path(), app_id));
        }
        // Two cycles on, all that would come again has come.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = counts(&collector.received());
        assert!(now > before, "round {round} sent nothing new");
        before = now;
        if crash {
            exporter.program.kill();
        } else {
            exporter.stop();
        }
        // One more run for the next round.
        let (recorded, app_id) = RUNS[2 + round];
        write_log(logs.path(), recorded, app_id);
    }
}

/// A run that is watched from its growing log: each part is sent when it has
/// ended, and in the end the trace is whole and nothing came twice.
#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_running_application_come_as_they_end() {
    let collector = Collector::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let app_id = "app-otlp-running";
    let text = running_now("hot_key/4.3.0", app_id);
    let growing = folder.path().join(format!("{app_id}.inprogress"));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // Up to the end of the third job.
    let third = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("SparkListenerJobEnd"))
        .nth(2)
        .unwrap()
        .0;
    std::fs::write(&growing, lines[..=third].concat()).unwrap();
    let exporter = Setup::to("grpc", &collector.grpc()).start(folder.path());
    let jobs = |received: &Received| {
        let spans = received.trace_of(app_id);
        assert!(spans.iter().all(|span| of(span) != Of::Application), "it still runs");
        spans.iter().filter(|span| matches!(of(span), Of::Job(_))).count()
    };
    collector.until("spans of three jobs", SOON, |received| (jobs(received) == 3).then_some(()));
    // All of it, under the name of a log that is done.
    std::fs::write(&growing, &text).unwrap();
    std::fs::rename(&growing, folder.path().join(app_id)).unwrap();
    let log = Log::of(&text);
    is_the_log(&whole_trace(&collector, app_id, &log), &log);
    exporter.stop();
    is_the_log(&whole_trace(&collector, app_id, &log), &log);
}

/// A recorded log as one of a run that began so long ago as it took.
fn running_now(recorded: &str, id: &str) -> String {
    let text = log_text(recorded);
    let log = Log::of(&text);
    let old_id = text.split_once("\"App ID\":\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let by = now_ms() - i64::try_from(log.application.1).unwrap();
    moved(&text, by).replace(&old_id, id)
}

/// A driver that was started within a trace: the application is a child of
/// what started it.
#[tokio::test(flavor = "multi_thread")]
async fn a_driver_within_a_trace_belongs_to_it() {
    let collector = Collector::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let app_id = "app-otlp-child";
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let property = format!(
        "\"Spark Properties\":{{\"spark.executorEnv.TRACEPARENT\":\"00-{trace}-{span}-01\","
    );
    let text = running_now("healthy/4.3.0", app_id).replace("\"Spark Properties\":{", &property);
    assert!(text.contains(trace));
    std::fs::write(folder.path().join(app_id), &text).unwrap();
    let exporter = Setup::to("http/protobuf", &collector.http()).start(folder.path());
    let log = Log::of(&text);
    let spans = whole_trace(&collector, app_id, &log);
    is_the_log(&spans, &log);
    assert!(spans.iter().all(|one| one.trace == trace));
    let application = spans.iter().find(|one| of(one) == Of::Application).unwrap();
    assert_eq!(application.parent, span);
    exporter.stop();
}
