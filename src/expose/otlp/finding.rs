//! A finding as attributes: the same on spans and in log records.

use std::borrow::Cow;

use opentelemetry::KeyValue;

use crate::diagnose::{Evidence, Finding, FindingKind, Subject, Unit};
use crate::model::StageId;
use crate::report::privacy;

/// The name of the event, and of the event that a record tells of.
pub(super) const EVENT: &str = "spark.finding";

pub(super) const RULE: &str = "spark.finding.rule";
pub(super) const CAUSE: &str = "spark.finding.cause";
pub(super) const SEVERITY: &str = "spark.finding.severity";
/// Of records, where it is the body, this is no attribute.
pub(super) const HEADLINE: &str = "spark.finding.headline";
/// Of records only: `new`, `changed` or `cleared`.
pub(super) const STATE: &str = "spark.finding.state";

/// Evidence of one finding that is told; the rest is counted.
const MOST_EVIDENCE: usize = 16;

/// Attributes of a finding, and how many were left out. Texts are cut and
/// without what looks like a secret; none of them is a user's.
pub(super) fn attributes(finding: &Finding) -> (Vec<KeyValue>, u32) {
    let mut all = vec![
        KeyValue::new(RULE, finding.rule.as_str()),
        KeyValue::new(SEVERITY, finding.severity.as_str()),
        KeyValue::new("spark.finding.kind", kind(finding.kind)),
        KeyValue::new("spark.finding.confidence", finding.confidence.as_str()),
        KeyValue::new(HEADLINE, headline(finding)),
    ];
    if let Some(cause) = finding.cause {
        all.push(KeyValue::new(CAUSE, cause.as_str()));
    }
    subject(&finding.subject, &mut all);
    let impact = finding.impact;
    if let Some(wall) = impact.wall {
        all.push(KeyValue::new("spark.finding.wall_seconds", wall.as_secs_f64()));
    }
    if let Some(core) = impact.core {
        all.push(KeyValue::new("spark.finding.core_seconds", core.as_secs_f64()));
    }
    if impact.estimated {
        all.push(KeyValue::new("spark.finding.estimated", true));
    }
    if let Some(advice) = finding.advice.first() {
        all.push(KeyValue::new("spark.finding.advice", privacy::cut(&advice.change, 600)));
        if let Some(when) = &advice.not_when {
            all.push(KeyValue::new("spark.finding.advice_not_when", privacy::cut(when, 400)));
        }
    }
    let dropped = evidence(&finding.evidence, &mut all);
    (all, dropped)
}

/// Its one line.
pub(super) fn headline(finding: &Finding) -> String {
    privacy::cut(&finding.headline, 600)
}

/// Each number by its name; of several of one name the first.
fn evidence(evidence: &[Evidence], all: &mut Vec<KeyValue>) -> u32 {
    let mut names: Vec<&str> = Vec::new();
    let mut dropped = 0;
    for one in evidence {
        if names.len() >= MOST_EVIDENCE || names.contains(&one.name) {
            dropped += 1;
            continue;
        }
        names.push(one.name);
        let name = with_unit(one.name, one.unit);
        all.push(KeyValue::new(format!("spark.finding.evidence.{name}"), one.value));
        if let Some(threshold) = one.threshold {
            all.push(KeyValue::new(format!("spark.finding.threshold.{name}"), threshold));
        }
    }
    dropped
}

/// Attributes have no unit but in their name.
fn with_unit(name: &str, unit: Unit) -> Cow<'_, str> {
    let word = match unit {
        Unit::Seconds => "_seconds",
        Unit::Bytes => "_bytes",
        Unit::BytesPerSecond => "_bytes_per_second",
        Unit::Ratio | Unit::Count => "",
    };
    if name.ends_with(word) { name.into() } else { format!("{name}{word}").into() }
}

/// What it is about, by the names that spans have too.
pub(super) fn subject(subject: &Subject, all: &mut Vec<KeyValue>) {
    all.push(KeyValue::new("spark.finding.subject", subject.as_str()));
    let mut number = |key: &'static str, id: u64| {
        all.push(KeyValue::new(key, i64::try_from(id).unwrap_or(i64::MAX)));
    };
    match subject {
        Subject::Application => {}
        Subject::Job { job_id } => number("spark.job.id", u64::from(*job_id)),
        Subject::Stage { stage_id, stage_attempt_id } => {
            let id = StageId { stage: *stage_id, attempt: *stage_attempt_id };
            number("spark.stage.id", u64::from(id.stage));
            number("spark.stage.attempt.id", u64::from(id.attempt));
        }
        Subject::SqlExecution { sql_id } => number("spark.sql_execution.id", *sql_id),
        Subject::PlanNode { sql_id, node } => {
            number("spark.sql_execution.id", *sql_id);
            number("spark.sql_execution.plan_node", u64::from(*node));
        }
        Subject::Executor { executor_id } => {
            all.push(KeyValue::new("spark.executor.id", privacy::cut(executor_id, 200)));
        }
        Subject::Host { host } => {
            all.push(KeyValue::new("spark.executor.host", privacy::cut(host, 200)));
        }
        Subject::ConfigurationKey { key } => {
            all.push(KeyValue::new("spark.finding.configuration_key", privacy::cut(key, 200)));
        }
    }
}

fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Data => "data",
        FindingKind::Resources => "resources",
        FindingKind::Configuration => "configuration",
    }
}
