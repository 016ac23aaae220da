//! A trace as text for a person: one line a span, below its parent.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::SystemTime;

use opentelemetry::Value;
use opentelemetry::trace::{SpanId, Status, TraceId};
use opentelemetry_sdk::trace::SpanData;

/// Attributes that are shown.
const SHOWN: [&str; 12] = [
    "error.type",
    "spark.application.state",
    "spark.end_observed",
    "spark.executor.id",
    "spark.job.status",
    "spark.job.stages_skipped",
    "spark.spans.dropped",
    "spark.sql_execution.status",
    "spark.stage.partitions",
    "spark.stage.name",
    "spark.stage.task.run_time_ratio",
    "spark.stage.task_failures.fetch_failed",
];

/// Every trace among the spans, in the order of their starts.
pub(crate) fn draw(spans: &[SpanData]) -> String {
    let zero = spans.iter().map(|span| span.start_time).min().unwrap();
    let mut below: HashMap<(TraceId, SpanId), Vec<&SpanData>> = HashMap::new();
    let mut roots: Vec<&SpanData> = Vec::new();
    let names: HashMap<(TraceId, SpanId), &str> =
        spans.iter().map(|span| (id(span), &*span.name)).collect();
    for span in spans {
        let parent = (span.span_context.trace_id(), span.parent_span_id);
        if names.contains_key(&parent) {
            below.entry(parent).or_default().push(span);
        } else {
            roots.push(span);
        }
    }
    roots.sort_by_key(|span| order(span));
    let mut text = String::new();
    for root in roots {
        let parent = match root.parent_span_id {
            SpanId::INVALID => String::new(),
            other => format!(" below {other}"),
        };
        let remote = if root.parent_span_is_remote { ", remote" } else { "" };
        writeln!(text, "trace {}{parent}{remote}", root.span_context.trace_id()).unwrap();
        draw_one(root, 1, zero, &below, &names, &mut text);
    }
    text
}

fn id(span: &SpanData) -> (TraceId, SpanId) {
    (span.span_context.trace_id(), span.span_context.span_id())
}

fn order(span: &SpanData) -> (SystemTime, SystemTime, String) {
    (span.start_time, span.end_time, span.name.to_string())
}

fn draw_one(
    span: &SpanData,
    depth: usize,
    zero: SystemTime,
    below: &HashMap<(TraceId, SpanId), Vec<&SpanData>>,
    names: &HashMap<(TraceId, SpanId), &str>,
    text: &mut String,
) {
    let indent = "  ".repeat(depth);
    let at = span.start_time.duration_since(zero).unwrap().as_secs_f64();
    let took = span.end_time.duration_since(span.start_time).unwrap().as_secs_f64();
    write!(text, "{indent}{} +{at:.3} {took:.3}s", span.name).unwrap();
    for attribute in &span.attributes {
        if SHOWN.contains(&attribute.key.as_str()) {
            let value = match &attribute.value {
                Value::F64(value) => format!("{value:.1}"),
                value => value.to_string(),
            };
            let key = attribute.key.as_str().trim_start_matches("spark.");
            write!(text, " {key}={value}").unwrap();
        }
    }
    if let Status::Error { description } = &span.status {
        write!(text, " ERROR {description}").unwrap();
    }
    text.push('\n');
    for link in &span.links.links {
        let context = &link.span_context;
        let to = (context.trace_id(), context.span_id());
        let what = &link.attributes[0].value;
        let name = names.get(&to).copied().unwrap_or("elsewhere");
        let other = if to.0 == span.span_context.trace_id() { "" } else { " of another trace" };
        writeln!(text, "{indent}  -> {what} {name}{other}").unwrap();
    }
    for event in &span.events.events {
        let at = event.timestamp.duration_since(zero).unwrap().as_secs_f64();
        let of = |key: &str| {
            let found = event.attributes.iter().find(|one| one.key.as_str() == key);
            found.map(|one| one.value.to_string()).unwrap_or_default()
        };
        let (severity, rule) = (of("spark.finding.severity"), of("spark.finding.rule"));
        let headline = of("spark.finding.headline");
        writeln!(text, "{indent}  ! +{at:.3} {severity} {rule}: {headline}").unwrap();
    }
    let mut children: Vec<&SpanData> = below.get(&id(span)).cloned().unwrap_or_default();
    children.sort_by_key(|span| order(span));
    for child in children {
        draw_one(child, depth + 1, zero, below, names, text);
    }
}
