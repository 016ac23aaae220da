//! One log record.

use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::transform::common::tonic::Attributes;

use super::subject::words;
use crate::diagnose::{Finding, Severity, Subject};
use crate::expose::otlp::finding::{
    self, CAUSE, EVENT, HEADLINE, RULE, SEVERITY, STATE, attributes, headline,
};
use crate::model::{SpanId, TraceId};
use crate::report::privacy;
use crate::store::SentFinding;

/// Of the trace flags: it is sent.
const SAMPLED: u32 = 1;

/// What is new of a finding that is there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    New,
    Changed,
}

/// That a finding is there.
pub(super) fn found(
    finding: &Finding,
    change: Change,
    time: Timestamp,
    observed: Timestamp,
    span: Option<(TraceId, SpanId)>,
) -> LogRecord {
    let state = match change {
        Change::New => "new",
        Change::Changed => "changed",
    };
    let (number, text) = match finding.severity {
        Severity::Info => (SeverityNumber::Info, "INFO"),
        Severity::Warning => (SeverityNumber::Warn, "WARN"),
        Severity::Critical => (SeverityNumber::Error, "ERROR"),
    };
    let (mut all, dropped) = attributes(finding);
    // The body says it.
    all.retain(|attribute| attribute.key.as_str() != HEADLINE);
    all.insert(0, KeyValue::new(STATE, state));
    let mut record = record(number, text, headline(finding), all, time, observed, span);
    record.dropped_attributes_count = dropped;
    record
}

/// That a finding is not there any more.
pub(super) fn cleared(
    said: &SentFinding,
    subject: &Subject,
    time: Timestamp,
    observed: Timestamp,
    span: Option<(TraceId, SpanId)>,
) -> LogRecord {
    let mut all = vec![
        KeyValue::new(STATE, "cleared"),
        KeyValue::new(RULE, said.rule.clone()),
        KeyValue::new(SEVERITY, said.severity.clone()),
    ];
    all.extend(said.cause.clone().map(|cause| KeyValue::new(CAUSE, cause)));
    finding::subject(subject, &mut all);
    let body =
        privacy::cut(&format!("{} is not found any more: {}", said.rule, words(subject)), 600);
    record(SeverityNumber::Info, "INFO", body, all, time, observed, span)
}

fn record(
    number: SeverityNumber,
    text: &str,
    body: String,
    attributes: Vec<KeyValue>,
    time: Timestamp,
    observed: Timestamp,
    span: Option<(TraceId, SpanId)>,
) -> LogRecord {
    let nanos = |time: Timestamp| u64::try_from(time.as_nanosecond()).unwrap_or_default();
    LogRecord {
        time_unix_nano: nanos(time),
        observed_time_unix_nano: nanos(observed),
        severity_number: number.into(),
        severity_text: text.to_owned(),
        body: Some(AnyValue { value: Some(any_value::Value::StringValue(body)) }),
        attributes: Attributes::from(attributes).0,
        flags: if span.is_some() { SAMPLED } else { 0 },
        trace_id: span.map(|(trace, _)| trace.0.to_vec()).unwrap_or_default(),
        span_id: span.map(|(_, span)| span.0.to_vec()).unwrap_or_default(),
        event_name: EVENT.to_owned(),
        ..LogRecord::default()
    }
}
