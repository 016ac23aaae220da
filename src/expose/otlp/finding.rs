//! A finding as attributes, the same ones on the event of a span and on a log
//! record.
//!
//! Texts are cut, and what looks like a secret is cut out of them. Of texts of
//! users a finding has none: its lines are made by the rules.

use jiff::Timestamp;
use opentelemetry::{KeyValue, StringValue, Value};

use crate::diagnose::{Finding, FindingKind, Subject, Unit};
use crate::model::{Application, SqlExecution, Stage, StageId};
use crate::report::privacy::plain;

/// Of the event and of the record.
pub(super) const EVENT: &str = "spark.finding";
/// The one line with its numbers: an attribute of the event, the body of the
/// record.
pub(super) const HEADLINE: &str = "spark.finding.headline";
/// `new`, `changed` or `cleared`: of records only.
pub(super) const STATE: &str = "spark.finding.state";
pub(super) const RULE: &str = "spark.finding.rule";
pub(super) const CAUSE: &str = "spark.finding.cause";
pub(super) const SEVERITY: &str = "spark.finding.severity";

/// The most characters of one text.
const TEXT: usize = 1_000;
/// The most pieces of evidence: rules have fewer than ten.
const EVIDENCE: usize = 20;

/// Everything but its headline.
pub(super) fn attributes(finding: &Finding) -> Vec<KeyValue> {
    let mut all = vec![
        KeyValue::new(RULE, finding.rule.as_str()),
        KeyValue::new(SEVERITY, finding.severity.as_str()),
        KeyValue::new("spark.finding.kind", kind(finding.kind)),
        KeyValue::new("spark.finding.confidence", finding.confidence.as_str()),
    ];
    if let Some(cause) = finding.cause {
        all.push(KeyValue::new(CAUSE, cause.as_str()));
    }
    all.extend(subject(&finding.subject));
    let impact = &finding.impact;
    let seconds = [("spark.finding.wall", impact.wall), ("spark.finding.core", impact.core)];
    for (key, time) in seconds {
        // As the metrics of the same names: seconds.
        all.extend(time.map(|time| KeyValue::new(key, time.as_secs_f64())));
    }
    if impact.estimated {
        all.push(KeyValue::new("spark.finding.estimated", true));
    }
    if let Some(advice) = finding.advice.first() {
        all.push(KeyValue::new("spark.finding.advice", cut(&advice.change)));
    }
    let mut seen = Vec::new();
    for evidence in finding.evidence.iter().take(EVIDENCE) {
        seen.push(evidence.name);
        let name = match seen.iter().filter(|name| **name == evidence.name).count() {
            1 => evidence.name.to_owned(),
            nth => format!("{}_{nth}", evidence.name),
        };
        let mut add = |part: &str, value: Value| {
            all.push(KeyValue::new(format!("spark.finding.evidence.{name}.{part}"), value));
        };
        add("value", Value::F64(evidence.value));
        add("unit", StringValue::from(unit(evidence.unit)).into());
        if let Some(threshold) = evidence.threshold {
            add("threshold", Value::F64(threshold));
        }
        if !evidence.from.is_empty() {
            add("from", StringValue::from(cut(&evidence.from)).into());
        }
    }
    all
}

/// Its one line.
pub(super) fn headline(finding: &Finding) -> String {
    cut(&finding.headline)
}

/// What it is about.
pub(super) fn subject(subject: &Subject) -> Vec<KeyValue> {
    let number = |key: &'static str, value: u64| {
        KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
    };
    let mut all = vec![KeyValue::new("spark.finding.subject", subject.as_str())];
    match subject {
        Subject::Application => {}
        Subject::Job { job_id } => all.push(number("spark.job.id", (*job_id).into())),
        Subject::Stage { stage_id, stage_attempt_id } => {
            all.push(number("spark.stage.id", (*stage_id).into()));
            all.push(number("spark.stage.attempt.id", (*stage_attempt_id).into()));
        }
        Subject::Executor { executor_id } => {
            all.push(KeyValue::new("spark.executor.id", cut(executor_id)));
        }
        Subject::Host { host } => all.push(KeyValue::new("host.name", cut(host))),
        Subject::ConfigurationKey { key } => {
            all.push(KeyValue::new("spark.configuration.key", cut(key)));
        }
        Subject::SqlExecution { sql_id } => all.push(number("spark.sql.execution.id", *sql_id)),
        Subject::PlanNode { sql_id, node } => {
            all.push(number("spark.sql.execution.id", *sql_id));
            all.push(number("spark.sql.plan.node", (*node).into()));
        }
    }
    all
}

/// When what it is about had ended, so that the finding was true at the
/// latest; `None` while that goes on, or where the source does not tell.
pub(super) fn ended(application: &Application, subject: &Subject) -> Option<Timestamp> {
    match subject {
        Subject::Application | Subject::Host { .. } | Subject::ConfigurationKey { .. } => {
            application.end
        }
        Subject::Job { job_id } => {
            let place = application.jobs.binary_search_by_key(job_id, |job| job.id).ok()?;
            application.jobs[place].completed
        }
        Subject::Stage { stage_id, stage_attempt_id } => {
            stage(application, StageId { stage: *stage_id, attempt: *stage_attempt_id })?.completed
        }
        Subject::Executor { executor_id } => {
            let found = application.executors.iter().find(|one| one.id == *executor_id);
            found.and_then(|executor| executor.removed).or(application.end)
        }
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => {
            execution(application, *sql_id)?.end
        }
    }
}

/// Whether the reading still has what it is about: of a long run, old parts
/// are left out.
pub(super) fn is_there(application: &Application, subject: &Subject) -> bool {
    match subject {
        Subject::Application | Subject::Host { .. } | Subject::ConfigurationKey { .. } => true,
        Subject::Job { job_id } => {
            application.jobs.binary_search_by_key(job_id, |job| job.id).is_ok()
        }
        Subject::Stage { stage_id, stage_attempt_id } => {
            stage(application, StageId { stage: *stage_id, attempt: *stage_attempt_id }).is_some()
        }
        Subject::Executor { executor_id } => {
            application.executors.iter().any(|executor| executor.id == *executor_id)
        }
        Subject::SqlExecution { sql_id } | Subject::PlanNode { sql_id, .. } => {
            execution(application, *sql_id).is_some()
        }
    }
}

fn stage(application: &Application, id: StageId) -> Option<&Stage> {
    let place = application.stages.binary_search_by_key(&id, |stage| stage.id).ok()?;
    application.stages.get(place)
}

fn execution(application: &Application, id: u64) -> Option<&SqlExecution> {
    let all = application.sql.as_deref()?;
    all.get(all.binary_search_by_key(&id, |execution| execution.id).ok()?)
}

fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Data => "data",
        FindingKind::Resources => "resources",
        FindingKind::Configuration => "configuration",
    }
}

/// As UCUM writes it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "s",
        Unit::Bytes => "By",
        Unit::BytesPerSecond => "By/s",
        Unit::Ratio | Unit::Count => "1",
    }
}

fn cut(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
