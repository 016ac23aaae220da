//! A driver that carries a W3C trace context: its application, or one of its
//! jobs, is a child of whoever gave it.

use opentelemetry::trace::SpanId;
use opentelemetry_sdk::trace::SpanData;
use spark_exporter::config::Limits;
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::model::{Application, TraceId};

use crate::{common, settings, view, whole};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const OTHER: &str = "0af7651916cd43dd8448eb211c80319c";

fn parent(trace: &str, flags: &str) -> String {
    format!("00-{trace}-00f067aa0ba902b7-{flags}")
}

/// The run with a property more, and one more of the job with that id.
fn edited(name: &str, property: Option<(&str, &str)>, job: Option<(u32, &str)>) -> Application {
    let lines: Vec<String> = common::log_text(name)
        .lines()
        .map(|line| {
            let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
            let kind = event["Event"].as_str().unwrap().to_owned();
            if let Some((key, value)) = property
                && kind == "SparkListenerEnvironmentUpdate"
            {
                let of = if key.starts_with("spark.") { "Spark" } else { "System" };
                event[format!("{of} Properties")][key] = value.into();
            }
            if let Some((id, value)) = job
                && kind == "SparkListenerJobStart"
                && event["Job ID"] == id
            {
                event["Properties"]["traceparent"] = value.into();
                event["Properties"]["tracestate"] = "vendor=1".into();
            }
            event.to_string()
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("app-1"), lines.join("\n") + "\n").unwrap();
    let files = LocalFiles::at(folder.path()).unwrap();
    let log = scan(&files).unwrap().logs.remove(0);
    let limits = Limits::default();
    let read = read(&log, &files, &ReadOptions { cluster: "default", limits: &limits });
    read.unwrap().application
}

fn named<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn in_trace(spans: &[SpanData], trace: &str) -> usize {
    spans.iter().filter(|span| span.span_context.trace_id().to_string() == trace).count()
}

#[test]
fn an_application_that_was_started_with_a_context() {
    for key in [
        "spark.yarn.appMasterEnv.TRACEPARENT",
        "spark.kubernetes.driverEnv.TRACEPARENT",
        "spark.executorEnv.TRACEPARENT",
        "traceparent",
    ] {
        let application = edited("hot_key/4.3.0", Some((key, &parent(TRACE, "01"))), None);
        assert_eq!(TraceId::of(&application).to_string(), TRACE, "{key}");
        let spans = whole(&view(application), &settings());
        assert_eq!(in_trace(&spans, TRACE), spans.len(), "{key}: all of it is in that trace");
        let root = named(&spans, "application");
        assert_eq!(root.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert!(root.parent_span_is_remote && root.links.links.is_empty());
        assert!(!named(&spans, "job 0").parent_span_is_remote);
    }
}

#[test]
fn one_that_is_not_sampled_is_only_linked() {
    let key = "spark.executorEnv.TRACEPARENT";
    let application = edited("hot_key/4.3.0", Some((key, &parent(TRACE, "00"))), None);
    let own = TraceId::of_run(&application.id, application.start);
    assert_eq!(TraceId::of(&application), own);
    let spans = whole(&view(application), &settings());
    assert_eq!(in_trace(&spans, TRACE), 0);
    let root = named(&spans, "application");
    assert_eq!(root.parent_span_id, SpanId::INVALID);
    assert_eq!(root.links.links[0].span_context.trace_id().to_string(), TRACE);
    assert!(!root.links.links[0].span_context.is_sampled());
}

#[test]
fn a_job_of_somebody_else() {
    let application = edited("hot_key/4.3.0", None, Some((5, &parent(OTHER, "01"))));
    // Kept because its parent was, whatever the ratio says of the rest.
    let mut only = settings();
    only.sampling.ratio = 0.0;
    let view = view(application);
    let spans = whole(&view, &only);
    assert_eq!(in_trace(&spans, OTHER), spans.len());
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["job 5", "stage 10", "task", "task", "task"]);
    assert_eq!(spans[0].parent_span_id.to_string(), "00f067aa0ba902b7");
    assert!(spans[0].parent_span_is_remote && !spans[1].parent_span_is_remote);
    assert_eq!(spans[2].span_context.trace_state().header(), "vendor=1");
    assert!(spans[1].events.events.len() == 1, "the finding goes with its stage");

    let all = whole(&view, &settings());
    let job = named(&all, "job 5");
    let linked: Vec<String> =
        job.links.links.iter().map(|link| link.attributes[0].value.to_string()).collect();
    assert_eq!(linked, ["application", "sql_execution"]);
    let sql = named(&all, "sql 1");
    let back = sql.links.links.iter().find(|link| link.span_context == job.span_context);
    assert!(back.is_some(), "its execution is linked to it");
    assert_eq!(in_trace(&all, OTHER), 5);
    // The same spans, whichever trace they are in.
    let ids = |spans: &[SpanData]| {
        let mut ids: Vec<String> =
            spans.iter().map(|span| span.span_context.span_id().to_string()).collect();
        ids.sort();
        ids
    };
    let plain = whole(&crate::view(crate::recorded("hot_key/4.3.0")), &settings());
    assert_eq!(ids(&all), ids(&plain));
}

#[test]
fn a_job_that_carries_what_its_application_does() {
    let key = "spark.executorEnv.TRACEPARENT";
    let context = parent(TRACE, "01");
    let property = Some((key, &*context));
    let application = edited("hot_key/4.3.0", property, Some((5, &context)));
    let spans = whole(&view(application), &settings());
    let job = named(&spans, "job 5");
    assert_eq!(job.parent_span_id, named(&spans, "sql 1").span_context.span_id());
    assert_eq!(in_trace(&spans, TRACE), spans.len());
}

#[test]
fn a_job_whose_context_is_not_sampled_or_not_valid() {
    for value in [parent(OTHER, "00"), "hello".to_owned()] {
        let application = edited("hot_key/4.3.0", None, Some((5, &value)));
        let spans = whole(&view(application), &settings());
        assert_eq!(in_trace(&spans, OTHER), 0);
        let links = &named(&spans, "job 5").links.links;
        let carried = links.iter().any(|link| link.span_context.trace_id().to_string() == OTHER);
        assert_eq!(carried, value != "hello");
    }
}

/// `tests/spark/workloads/trace_context.py`, as Spark logged it.
#[test]
fn a_real_driver_that_carries_contexts() {
    for version in ["3.5.9", "4.3.0"] {
        let application = crate::recorded(&format!("trace_context/{version}"));
        let spans = whole(&view(application), &settings());
        let root = named(&spans, "application");
        assert_eq!(root.span_context.trace_id().to_string(), TRACE, "{version}");
        assert_eq!(root.parent_span_id.to_string(), "00f067aa0ba902b7");
        let job = spans.iter().find(|span| span.parent_span_id.to_string() == "b7ad6b7169203331");
        let job = job.expect("a job below the request");
        assert_eq!(job.span_context.trace_id().to_string(), OTHER, "{version}");
        assert_eq!(job.span_context.trace_state().header(), "orders=1");
        // Its stage and that one's two tasks, and none of the jobs beside it.
        assert_eq!(in_trace(&spans, OTHER), 4, "{version}");
        assert_eq!(in_trace(&spans, TRACE) + 4, spans.len());
    }
}
