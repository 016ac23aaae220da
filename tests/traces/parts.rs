//! A run that is looked at again and again while it goes on: each span once,
//! and the same in the end as if it had been looked at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::SignedDuration;
use opentelemetry::trace::SpanId;
use opentelemetry_sdk::trace::SpanData;
use spark_exporter::config::Limits;
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::expose::otlp::spans::{Mark, due};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::model::{Application, Kind, Source, State};
use spark_exporter::report::Texts;
use spark_exporter::store::SentSpans;

use crate::{common, now, recorded, send, settings, view, whole};

/// The run as its log told it after so many lines.
pub(crate) fn after(text: &str, lines: usize) -> Application {
    let folder = tempfile::tempdir().unwrap();
    let part: Vec<&str> = text.lines().take(lines).collect();
    std::fs::write(folder.path().join("app-1.inprogress"), part.join("\n") + "\n").unwrap();
    let files = LocalFiles::at(folder.path()).unwrap();
    let log = scan(&files).unwrap().logs.remove(0);
    let limits = Limits::default();
    let read = read(&log, &files, &ReadOptions { cluster: "default", limits: &limits });
    read.unwrap().application
}

fn ids(spans: &[SpanData]) -> BTreeSet<String> {
    let id = |span: &SpanData| {
        format!("{}/{}", span.span_context.trace_id(), span.span_context.span_id())
    };
    spans.iter().map(id).collect()
}

/// What an event says of which finding it is.
fn findings(spans: &[SpanData]) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for event in spans.iter().flat_map(|span| &span.events.events) {
        let of = |key: &str| {
            let found = event.attributes.iter().find(|one| one.key.as_str() == key);
            found.map(|one| one.value.to_string()).unwrap_or_default()
        };
        let finding = ["rule", "severity", "cause", "subject"]
            .map(|name| of(&format!("spark.finding.{name}")))
            .join(" ");
        *all.entry(finding).or_default() += 1;
    }
    all
}

#[test]
fn each_span_is_sent_once_and_none_is_lost() {
    for name in ["hot_key/4.3.0", "job_failed/3.5.9", "stage_retries/4.3.0", "streaming/4.3.0"] {
        let text = common::log_text(name);
        let lines = text.lines().count();
        let mut sent = SentSpans::default();
        let mut spans = Vec::new();
        let steps = 12;
        for step in 1..=steps {
            let application = after(&text, lines * step / steps);
            assert_eq!(application.state == State::Running, step < steps, "{name} {step}");
            spans.extend(send(&view(application), &mut sent, &settings()));
        }
        let last = view(after(&text, lines));
        let at_once = whole(&last, &settings());
        assert_eq!(ids(&spans).len(), spans.len(), "{name}: a span was sent twice");
        // The stream was seen as a batch run before its first query ran, so
        // what ended before that hangs below the application.
        if last.application.kind == Kind::Batch {
            assert_eq!(ids(&spans), ids(&at_once), "{name}");
        } else {
            assert_eq!(spans.len(), at_once.len(), "{name}");
        }
        let told = findings(&spans);
        for finding in findings(&at_once).keys() {
            assert!(told.contains_key(finding), "{name}: {finding} is not told");
        }
        assert_eq!(sent.spans, spans.len() as u64);
        assert!(send(&last, &mut sent, &settings()).is_empty(), "{name}: nothing is left");
        every_parent_is_there(name, &spans);
    }
}

#[test]
fn what_a_back_end_did_not_take_comes_again() {
    let view = view(recorded("streaming/4.3.0"));
    let all = whole(&view, &settings());
    let mut sent = SentSpans::default();
    let mut spans = Vec::new();
    // Three parts are taken each time, and then it gives up.
    for _ in 0..all.len() {
        let due = due(&view, &sent, &settings(), Texts::Hidden, now());
        for part in due.parts.into_iter().take(3) {
            part.done.put(&mut sent);
            spans.extend(part.spans);
        }
    }
    assert_eq!(ids(&spans), ids(&all));
    assert_eq!(spans.len(), all.len());
}

fn every_parent_is_there(name: &str, spans: &[SpanData]) {
    let mut by_id = HashMap::new();
    for span in spans {
        let context = &span.span_context;
        let before = by_id.insert((context.trace_id(), context.span_id()), span);
        assert!(before.is_none(), "{name}: an id came twice");
    }
    let has_parent =
        |span: &&SpanData| span.parent_span_id != SpanId::INVALID && !span.parent_span_is_remote;
    for span in spans.iter().filter(has_parent) {
        let trace = span.span_context.trace_id();
        let parent = by_id.get(&(trace, span.parent_span_id));
        let parent = parent.unwrap_or_else(|| panic!("{name}: {} has no parent", span.name));
        assert!(parent.start_time <= span.start_time, "{name}: {} is early", span.name);
        let late = span.end_time.duration_since(parent.end_time).unwrap_or_default();
        // A stage is told to have ended some milliseconds before or after its job.
        assert!(late.as_millis() <= 100, "{name}: {} is {late:?} late", span.name);
    }
}

#[test]
fn every_recorded_run_is_whole_traces() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs");
    for run in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()) {
        let name = format!("{}/4.3.0", run.to_string_lossy());
        if !std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples/logs")
            .join(&name)
            .is_dir()
        {
            continue;
        }
        let mut application = recorded(&name);
        if application.state == State::Running {
            application.state = State::Lost;
        }
        let view = view(application);
        let spans = whole(&view, &settings());
        every_parent_is_there(&name, &spans);
        let events: usize = findings(&spans).values().sum();
        assert_eq!(events, view.diagnosis.findings.len(), "{name}: each finding once");
    }
}

/// As the driver's REST API left it when the driver was gone.
fn left_by_driver(state: State) -> Application {
    let mut application = recorded("left_running/4.3.0");
    application.source = Source::Driver;
    application.state = state;
    application
}

#[test]
fn a_driver_that_is_gone_is_waited_with_for_a_source_that_saw_the_end() {
    let application = left_by_driver(State::Unknown);
    let observed = application.observed;
    let view = view(application);
    let mut sent = SentSpans::default();
    let mut look = |minutes: i64| {
        let now = observed + SignedDuration::from_mins(minutes);
        let due = due(&view, &sent, &settings(), Texts::Hidden, now);
        let names: Vec<_> =
            due.parts.iter().flat_map(|part| &part.spans).map(|span| span.name.clone()).collect();
        for part in &due.parts {
            part.done.put(&mut sent);
        }
        (names, due.again, due.is_last)
    };
    let (names, again, is_last) = look(2);
    assert!(names.iter().any(|name| name == "sql 1") && again && !is_last);
    assert!(!names.iter().any(|name| name == "application"));
    assert_eq!(look(3), (vec![], true, false));
    let (names, again, is_last) = look(6);
    assert_eq!(names, ["application"]);
    assert!(is_last && !again);
}

#[test]
fn parts_of_a_driver_go_when_its_lists_have_been_read() {
    let application = left_by_driver(State::Running);
    let ended = |at: usize| application.jobs[at].completed.unwrap();
    let view = view(application.clone());
    let stages = |now| {
        let due = due(&view, &SentSpans::default(), &settings(), Texts::Hidden, now);
        let parts = due.parts.iter().filter(|part| matches!(part.done.marks[0], Mark::Stage(_)));
        parts.count()
    };
    assert_eq!(stages(ended(0) + SignedDuration::from_secs(60)), 0);
    assert_eq!(stages(ended(3) + SignedDuration::from_secs(91)), 4);
}

#[test]
fn what_is_not_sampled_or_never_ran_is_settled_too() {
    let mut settings = settings();
    settings.sampling.ratio = 0.0;
    let view = view(recorded("streaming/4.3.0"));
    let mut sent = SentSpans::default();
    assert!(send(&view, &mut sent, &settings).is_empty());
    let ids = view.application.sql.iter().flatten().map(|execution| execution.id);
    assert!(ids.max().is_some_and(|last| sent.executions.len() == last + 1));

    settings.sampling.ratio = 1.0;
    let mut sent = SentSpans::default();
    send(&view, &mut sent, &settings);
    let known = view.application.stages.iter().map(|stage| u64::from(stage.id.stage));
    for stage in known {
        assert!(sent.stages.contains(stage), "stage {stage}");
    }
    assert!(!sent.stages.contains(100_000));
}
