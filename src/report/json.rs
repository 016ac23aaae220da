//! `diagnose --format json`: the documented, versioned form
//! (`docs/diagnose-json.md`, `docs/diagnose.schema.json`).
//!
//! Seconds and bytes throughout, times in RFC 3339. What the source cannot
//! tell is null, never 0. Fields are only ever added.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::time::Duration;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::json_kubernetes::KubernetesJson;
use super::json_report::{ReportJson, SplitJson};
use super::json_sql::{DriverJson, ExecutionJson, QueryJson};
use super::{Diagnosed, Texts, View, privacy};
use crate::diagnose::{
    Advice, Cause, Confidence, Evidence, Finding, FindingKind, Price, Rule, Severity, Subject,
};
use crate::model::{Distribution, Kind, Quantity, Source, Stage, StageStatus, State};

/// Raised only when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// All diagnosed runs as one pretty-printed JSON document with a final
/// newline; each is written, and let go, as it comes.
pub fn json(
    mut out: impl io::Write,
    runs: impl Iterator<Item = Diagnosed>,
    texts: Texts,
) -> Result<(), serde_json::Error> {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        applications: Applications { runs: RefCell::new(runs), texts },
    };
    serde_json::to_writer_pretty(&mut out, &document)?;
    out.write_all(b"\n").and_then(|()| out.flush()).map_err(serde_json::Error::io)
}

/// One run in the same form, with at most so many stage attempts, the
/// costliest: what is left out is in `stages_omitted`.
pub fn json_of_one(
    mut out: impl io::Write,
    run: View<'_>,
    texts: Texts,
    stages: usize,
) -> Result<(), serde_json::Error> {
    let applications = [ApplicationJson::new(run, texts, stages)];
    serde_json::to_writer_pretty(
        &mut out,
        &Document { schema_version: SCHEMA_VERSION, applications },
    )?;
    out.write_all(b"\n").and_then(|()| out.flush()).map_err(serde_json::Error::io)
}

#[derive(Serialize)]
struct Document<A> {
    schema_version: u32,
    applications: A,
}

/// Can be written once.
struct Applications<I> {
    runs: RefCell<I>,
    texts: Texts,
}

impl<I: Iterator<Item = Diagnosed>> Serialize for Applications<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(None)?;
        for run in &mut *self.runs.borrow_mut() {
            all.serialize_element(&ApplicationJson::new(run.view(), self.texts, usize::MAX))?;
        }
        all.end()
    }
}

#[derive(Serialize)]
struct ApplicationJson<'a> {
    spark_cluster: &'a str,
    app_id: &'a str,
    attempt_id: Option<&'a str>,
    app_name: String,
    spark_version: Option<&'a str>,
    source: Source,
    kind: Kind,
    state: State,
    start: Option<String>,
    end: Option<String>,
    duration_seconds: Option<f64>,
    cost: Option<CostJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<KubernetesJson<'a>>,
    data_quality: Vec<&'static str>,
    stages_omitted: u64,
    stages: Vec<StageJson>,
    driver: Option<DriverJson<'a>>,
    sql_executions: Option<Vec<ExecutionJson<'a>>>,
    sql_executions_omitted: u64,
    streaming_queries: Option<Vec<QueryJson<'a>>>,
    findings: Vec<FindingJson<'a>>,
    findings_omitted: u64,
    #[serde(flatten)]
    report: ReportJson,
}

impl<'a> ApplicationJson<'a> {
    fn new(run: View<'a>, texts: Texts, most_stages: usize) -> Self {
        let application = run.application;
        let stages = costliest(&application.stages, most_stages);
        Self {
            spark_cluster: &application.id.cluster,
            app_id: &application.id.app_id,
            attempt_id: application.id.attempt_id.as_deref(),
            app_name: privacy::redacted(&application.name).into_owned(),
            spark_version: application.spark_version.as_deref(),
            source: application.source,
            kind: application.kind,
            state: application.state,
            start: application.start.map(|time| time.to_string()),
            end: application.end.map(|time| time.to_string()),
            duration_seconds: application.duration().map(|duration| duration.as_secs_f64()),
            cost: run.diagnosis.price.as_ref().map(CostJson::from),
            kubernetes: application.kubernetes.as_deref().map(KubernetesJson::from),
            data_quality: application.data_quality.iter().map(|mark| mark.as_str()).collect(),
            stages_omitted: application
                .stages_omitted
                .saturating_add((application.stages.len() - stages.len()) as u64),
            stages: stages.into_iter().map(|stage| StageJson::new(stage, run, texts)).collect(),
            driver: application.driver.as_ref().map(DriverJson::from),
            sql_executions: application.sql.as_ref().map(|executions| {
                executions
                    .iter()
                    .map(|execution| ExecutionJson::new(execution, run, texts))
                    .collect()
            }),
            sql_executions_omitted: application.sql_omitted,
            streaming_queries: application
                .streaming_queries
                .as_ref()
                .map(|queries| queries.iter().map(|query| QueryJson::new(query, texts)).collect()),
            findings: run.diagnosis.findings.iter().map(FindingJson::from).collect(),
            findings_omitted: run.diagnosis.findings_omitted,
            report: ReportJson::new(run, texts),
        }
    }
}

/// By the operator's prices.
#[derive(Serialize)]
struct CostJson<'a> {
    amount: f64,
    unused: Option<f64>,
    currency: &'a str,
}

impl<'a> From<&'a Price> for CostJson<'a> {
    fn from(price: &'a Price) -> Self {
        Self { amount: price.amount, unused: price.unused, currency: &price.currency }
    }
}

/// Ascending by id.
fn costliest(stages: &[Stage], most: usize) -> Vec<&Stage> {
    let mut chosen: Vec<&Stage> = stages.iter().collect();
    if chosen.len() > most {
        chosen.sort_by_key(|stage| std::cmp::Reverse(stage.measures.run_time.sum_or_zero()));
        chosen.truncate(most);
        chosen.sort_by_key(|stage| stage.id);
    }
    chosen
}

#[derive(Serialize)]
struct StageJson {
    stage_id: u32,
    stage_attempt_id: u32,
    /// Empty where it may not be shown.
    name: String,
    status: StageStatus,
    wall_seconds: Option<f64>,
    tasks: u64,
    tasks_succeeded: u64,
    tasks_failed: u64,
    tasks_killed: u64,
    run_time_seconds: DistributionJson,
    records_read: DistributionJson,
    records_written: DistributionJson,
    input_bytes: DistributionJson,
    output_bytes: DistributionJson,
    shuffle_read_bytes: DistributionJson,
    shuffle_write_bytes: DistributionJson,
    memory_spilled_bytes: DistributionJson,
    disk_spilled_bytes: DistributionJson,
    gc_seconds: DistributionJson,
    deserialize_seconds: DistributionJson,
    scheduler_delay_seconds: DistributionJson,
    fetch_wait_seconds: DistributionJson,
    peak_execution_memory_bytes: DistributionJson,
    time: Option<SplitJson>,
}

impl StageJson {
    fn new(stage: &Stage, run: View<'_>, texts: Texts) -> Self {
        let measures = &stage.measures;
        let now = run.application.observed;
        let time = run.diagnosis.stage_times.get(&stage.id);
        Self {
            stage_id: stage.id.stage,
            stage_attempt_id: stage.id.attempt,
            name: privacy::call_site(&stage.name, texts).unwrap_or_default(),
            status: stage.status,
            wall_seconds: stage.wall(now).map(|wall| wall.as_secs_f64()),
            tasks: stage.tasks.total,
            tasks_succeeded: stage.tasks.succeeded,
            tasks_failed: stage.tasks.failed,
            tasks_killed: stage.tasks.killed,
            run_time_seconds: measures.run_time.into(),
            records_read: measures.records_read.into(),
            records_written: measures.records_written.into(),
            input_bytes: measures.input_bytes.into(),
            output_bytes: measures.output_bytes.into(),
            shuffle_read_bytes: measures.shuffle_read_bytes.into(),
            shuffle_write_bytes: measures.shuffle_write_bytes.into(),
            memory_spilled_bytes: measures.memory_spilled_bytes.into(),
            disk_spilled_bytes: measures.disk_spilled_bytes.into(),
            gc_seconds: measures.gc_time.into(),
            deserialize_seconds: measures.deserialize_time.into(),
            scheduler_delay_seconds: measures.scheduler_delay.into(),
            fetch_wait_seconds: measures.fetch_wait_time.into(),
            peak_execution_memory_bytes: measures.peak_execution_memory_bytes.into(),
            time: time.map(SplitJson::from),
        }
    }
}

/// A number of the JSON document: whole for counts, with a fraction for
/// seconds.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Number {
    Count(u64),
    Seconds(f64),
}

trait ToNumber: Quantity {
    fn number(self) -> Number;
}

impl ToNumber for u64 {
    fn number(self) -> Number {
        Number::Count(self)
    }
}

impl ToNumber for Duration {
    fn number(self) -> Number {
        Number::Seconds(self.as_secs_f64())
    }
}

#[derive(Serialize)]
struct DistributionJson {
    count: Option<u64>,
    sum: Option<Number>,
    min: Option<Number>,
    p25: Option<Number>,
    median: Option<Number>,
    p75: Option<Number>,
    p95: Option<Number>,
    max: Option<Number>,
}

impl<T: ToNumber> From<Distribution<T>> for DistributionJson {
    fn from(distribution: Distribution<T>) -> Self {
        let quantiles = distribution.quantiles;
        Self {
            count: distribution.count,
            sum: distribution.sum.map(T::number),
            min: quantiles.map(|q| q.min.number()),
            p25: quantiles.map(|q| q.p25.number()),
            median: quantiles.map(|q| q.median.number()),
            p75: quantiles.map(|q| q.p75.number()),
            p95: quantiles.map(|q| q.p95.number()),
            max: quantiles.map(|q| q.max.number()),
        }
    }
}

#[derive(Serialize)]
struct FindingJson<'a> {
    anchor: String,
    rule: Rule,
    cause: Option<Cause>,
    severity: Severity,
    kind: FindingKind,
    subject: &'a Subject,
    headline: Cow<'a, str>,
    evidence: &'a [Evidence],
    impact: ImpactJson,
    confidence: Confidence,
    advice: &'a [Advice],
}

#[derive(Serialize)]
struct ImpactJson {
    wall_seconds: Option<f64>,
    core_seconds: Option<f64>,
    estimated: bool,
}

impl<'a> From<&'a Finding> for FindingJson<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            anchor: super::anchor(finding),
            rule: finding.rule,
            cause: finding.cause,
            severity: finding.severity,
            kind: finding.kind,
            subject: &finding.subject,
            headline: privacy::redacted(&finding.headline),
            evidence: &finding.evidence,
            impact: ImpactJson {
                wall_seconds: finding.impact.wall.map(|wall| wall.as_secs_f64()),
                core_seconds: finding.impact.core.map(|core| core.as_secs_f64()),
                estimated: finding.impact.estimated,
            },
            confidence: finding.confidence,
            advice: &finding.advice,
        }
    }
}
