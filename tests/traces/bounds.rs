//! Whatever the settings are: no trace has more spans than it may, no request
//! more bytes, nothing hangs in the air, and what is left out is counted.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use opentelemetry::trace::{SpanId, Status};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_sdk::trace::SpanData;
use proptest::prelude::*;
use prost::Message;
use spark_exporter::expose::otlp::spans::{due, requests};
use spark_exporter::metrics::RunView;
use spark_exporter::model::{Kind, State};
use spark_exporter::report::Texts;
use spark_exporter::store::SentSpans;

use crate::{now, recorded, send, settings, view, whole};

static RUNS: LazyLock<Vec<RunView>> = LazyLock::new(|| {
    let names = ["hot_key/4.3.0", "stage_retries/4.3.0", "streaming/4.3.0", "job_failed/3.5.9"];
    names.into_iter().map(|name| view(recorded(name))).collect()
});

/// As it stood when a share of its jobs and what they ran had ended.
fn halfway(view: &RunView, share: f64) -> RunView {
    let mut application = (*view.application).clone();
    let start = application.start.unwrap();
    let whole = application.end.unwrap().duration_since(start);
    let at = start + whole.mul_f64(share);
    application.state = State::Running;
    application.end = None;
    application.observed = at;
    application.jobs.retain(|job| job.submitted.is_some_and(|time| time <= at));
    for job in &mut application.jobs {
        job.completed = job.completed.filter(|time| *time <= at);
    }
    application.stages.retain(|stage| stage.submitted.is_some_and(|time| time <= at));
    for stage in &mut application.stages {
        stage.completed = stage.completed.filter(|time| *time <= at);
    }
    let executions = application.sql.get_or_insert_default();
    executions.retain(|execution| execution.start.is_some_and(|time| time <= at));
    for execution in executions {
        execution.end = execution.end.filter(|time| *time <= at);
    }
    crate::view(application)
}

fn traces(spans: &[SpanData]) -> BTreeMap<String, Vec<&SpanData>> {
    let mut traces: BTreeMap<String, Vec<&SpanData>> = BTreeMap::new();
    for span in spans {
        traces.entry(span.span_context.trace_id().to_string()).or_default().push(span);
    }
    traces
}

fn number(span: &SpanData, key: &str) -> usize {
    let found = span.attributes.iter().find(|one| one.key.as_str() == key);
    found.map_or(0, |one| one.value.to_string().parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn traces_are_bounded(
        run in 0_usize..4,
        most in 1_usize..80,
        tasks in 0_usize..12,
        looks in proptest::collection::vec(0.0_f64..1.0, 0..3),
        request_size in 700_usize..40_000,
    ) {
        let view = &RUNS[run];
        let mut settings = settings();
        settings.spans_per_trace = most;
        settings.tasks_per_stage = tasks;
        let mut sent = SentSpans::default();
        let mut spans = Vec::new();
        let mut looks = looks;
        looks.sort_by(f64::total_cmp);
        for share in &looks {
            spans.extend(send(&halfway(view, *share), &mut sent, &settings));
        }
        let last = due(view, &sent, &settings, Texts::Hidden, now());
        spans.extend(last.parts.iter().flat_map(|part| part.spans.clone()));

        let mut ids = HashSet::new();
        for span in &spans {
            let context = &span.span_context;
            prop_assert!(ids.insert((context.trace_id(), context.span_id())), "an id came twice");
            prop_assert!(span.attributes.len() <= 128 && span.events.events.len() <= 128);
            let keys: HashSet<&str> = span.attributes.iter().map(|one| one.key.as_str()).collect();
            prop_assert_eq!(keys.len(), span.attributes.len(), "a key came twice");
        }
        for span in spans.iter().filter(|span| span.parent_span_id != SpanId::INVALID) {
            prop_assert!(ids.contains(&(span.span_context.trace_id(), span.parent_span_id)));
        }
        for (trace, spans) in traces(&spans) {
            prop_assert!(spans.len() <= most, "{trace} has {} spans, not {most}", spans.len());
        }
        if looks.is_empty() {
            settings.spans_per_trace = 100_000;
            let all = whole(view, &settings).len();
            let left_out: usize = spans.iter().map(|span| number(span, "spark.spans.dropped")).sum();
            prop_assert_eq!(spans.len() + left_out, all);
        }

        let expected: usize = last.parts.iter().map(|part| part.spans.len()).sum();
        let marks: usize = last.parts.iter().map(|part| part.done.marks.len()).sum();
        let batches = requests(last.parts, &Resource::default(), request_size);
        let mut decoded: Vec<Span> = Vec::new();
        let mut done = 0;
        for batch in &batches {
            prop_assert!(batch.request.body.len() <= request_size);
            let request = ExportTraceServiceRequest::decode(batch.request.body.clone()).unwrap();
            let spans = &request.resource_spans[0].scope_spans[0].spans;
            prop_assert_eq!(batch.request.items, spans.len() as u64);
            decoded.extend(spans.iter().cloned());
            done += batch.done.iter().map(|done| done.marks.len()).sum::<usize>();
        }
        prop_assert_eq!((decoded.len(), done), (expected, marks));
    }

    /// In or out as a whole, and the same whenever it is asked.
    #[test]
    fn a_sample_is_whole(run in 0_usize..4, ratio in 0.0_f64..1.0, look in 0.0_f64..1.0) {
        let view = &RUNS[run];
        let mut settings = settings();
        settings.sampling.ratio = ratio;
        settings.sampling.keep_failed = false;
        let mut sent = SentSpans::default();
        let mut spans = send(&halfway(view, look), &mut sent, &settings);
        spans.extend(send(view, &mut sent, &settings));
        settings.sampling.ratio = 1.0;
        let all = whole(view, &settings);
        for (trace, of_all) in traces(&all) {
            let of_some = traces(&spans).get(&trace).map_or(0, Vec::len);
            prop_assert!(of_some == 0 || of_some == of_all.len(), "{trace}: {of_some}");
        }
        if view.application.kind == Kind::Batch {
            prop_assert!(spans.is_empty() || spans.len() == all.len());
        }
    }
}

#[test]
fn what_failed_or_is_slow_is_kept() {
    let mut settings = settings();
    settings.sampling.ratio = 0.0;
    let run = |name: &str| view(recorded(name));
    assert!(!whole(&run("job_failed/4.3.0"), &settings).is_empty(), "it died with its job");
    assert!(whole(&run("hot_key/4.3.0"), &settings).is_empty());
    settings.sampling.keep_failed = false;
    assert!(whole(&run("job_failed/4.3.0"), &settings).is_empty());
    settings.sampling.keep_longer_than = Some(std::time::Duration::from_secs(30));
    assert!(!whole(&run("hot_key/4.3.0"), &settings).is_empty(), "it took 40 s");

    // Of a stream each batch is judged alone, and the application too.
    settings.sampling.keep_longer_than = Some(std::time::Duration::from_secs(5));
    let spans = whole(&run("streaming/4.3.0"), &settings);
    let roots = spans.iter().filter(|span| span.parent_span_id == SpanId::INVALID).count();
    assert_eq!(roots, 2, "the first batch took 5.5 s, the run 33 s");
}

#[test]
fn the_costliest_is_kept() {
    let mut settings = settings();
    settings.spans_per_trace = 6;
    let spans = whole(&view(recorded("hot_key/4.3.0")), &settings);
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    // Of the stage that something was found in also its tasks.
    assert_eq!(names, ["stage 10", "task", "task", "job 5", "sql 1", "application"]);
    let took = |span: &SpanData| span.end_time.duration_since(span.start_time).unwrap();
    assert!(spans[1..3].iter().any(|task| took(task).as_secs() >= 15), "the slowest is there");
    let failed = whole(&view(recorded("job_failed/4.3.0")), &settings);
    let errors = failed.iter().filter(|span| span.status != Status::Unset).count();
    assert_eq!(errors, 3, "execution, job and stage that failed come first");
}

#[test]
fn what_is_too_old_is_left_alone() {
    let mut settings = settings();
    settings.max_age = std::time::Duration::from_hours(1);
    let view = view(recorded("hot_key/4.3.0"));
    let ended = view.application.end.unwrap();
    let count = |hours: i64| {
        let now = ended + jiff::SignedDuration::from_mins(hours * 60 - 1);
        let due = due(&view, &SentSpans::default(), &settings, Texts::Hidden, now);
        assert!(due.is_last);
        due.parts.len()
    };
    assert!(count(1) > 0);
    assert_eq!(count(2), 0);
}
