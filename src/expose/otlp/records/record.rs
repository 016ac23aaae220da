//! One log record.

use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::transform::common::tonic::Attributes;

use crate::diagnose::{Finding, Severity, Subject};
use crate::expose::otlp::finding::subject as subject_attributes;
use crate::expose::otlp::finding::{CAUSE, EVENT, RULE, SEVERITY, STATE, attributes, headline};
use crate::model::{SpanId, TraceId};
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
    let mut all = vec![KeyValue::new(STATE, state)];
    all.extend(attributes(finding));
    record(number, text, headline(finding), all, time, observed, span)
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
    all.extend(subject_attributes(subject));
    let body = format!("{} is not found any more: {}", said.rule, about(subject));
    record(SeverityNumber::Info, "INFO", body, all, time, observed, span)
}

fn about(subject: &Subject) -> String {
    match subject {
        Subject::Application => "the application".to_owned(),
        Subject::Job { job_id } => format!("job {job_id}"),
        Subject::Stage { stage_id, stage_attempt_id } => {
            format!("stage {stage_id}.{stage_attempt_id}")
        }
        Subject::Executor { executor_id } => {
            format!("executor {}", crate::report::privacy::plain(executor_id))
        }
        Subject::Host { host } => format!("host {}", crate::report::privacy::plain(host)),
        Subject::ConfigurationKey { key } => crate::report::privacy::plain(key),
        Subject::SqlExecution { sql_id } => format!("SQL execution {sql_id}"),
        Subject::PlanNode { sql_id, node } => format!("node {node} of SQL execution {sql_id}"),
    }
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
