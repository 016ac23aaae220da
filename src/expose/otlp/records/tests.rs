//! What is said of one reading after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;

use super::*;
use crate::config::otlp::OtlpResource;
use crate::diagnose::{
    Advice, Cause, Confidence, Diagnosis, Evidence, Finding, FindingKind, Impact, Rule, Unit, Where,
};
use crate::expose::otlp::resource;
use crate::model::{Application, RunId, Source, Stage, StageId};
use crate::store::{Delivered, News};

/// Seconds after the run began.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

/// A run that goes on, with ten stages; the first three have ended.
pub(super) fn running() -> Application {
    let id = RunId { cluster: "prod".into(), app_id: "app-1".into(), attempt_id: None };
    let mut application = Application::new(id, Source::Driver, at(100));
    application.state = State::Running;
    application.start = Some(at(0));
    for stage in 0..10 {
        let mut stage = Stage::new(StageId { stage, attempt: 0 });
        if stage.id.stage < 3 {
            stage.completed = Some(at(10 + i64::from(stage.id.stage)));
        }
        application.stages.push(stage);
    }
    application
}

pub(super) fn ended() -> Application {
    let mut application = running();
    application.state = State::Succeeded;
    application.end = Some(at(200));
    application
}

pub(super) fn finding(rule: Rule, stage_id: u32, severity: Severity) -> Finding {
    Finding {
        rule,
        cause: None,
        severity,
        kind: FindingKind::Data,
        subject: Subject::Stage { stage_id, stage_attempt_id: 0 },
        headline: format!("{} in stage {stage_id}", rule.as_str()),
        evidence: Vec::new(),
        impact: Impact::default(),
        confidence: Confidence::High,
        advice: Vec::new(),
    }
}

fn skew(severity: Severity) -> Finding {
    finding(Rule::DataSkew, 1, severity)
}

fn about_all(rule: Rule, cause: Option<Cause>) -> Finding {
    Finding { subject: Subject::Application, cause, ..finding(rule, 0, Severity::Info) }
}

/// Reads one reading after the other, and has everything taken.
pub(super) struct Reader {
    pub(super) delivered: Delivered,
    pub(super) memo: Memo,
    began: Instant,
    seconds: u64,
    pub(super) ready: bool,
    again: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            delivered: Delivered::default(),
            memo: Memo::default(),
            began: Instant::now(),
            seconds: 1_000,
            ready: true,
            again: false,
        }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            at: at(self.seconds as i64),
            instant: self.began + Duration::from_secs(self.seconds),
            ready: self.ready,
        }
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.seconds += seconds;
    }

    pub(super) fn look(&mut self, application: &Application, findings: &[Finding]) -> Due {
        let (view, now) = (view(application, findings), self.now());
        due(&view, &self.delivered.findings, &mut self.memo, now, &|_| None)
    }

    pub(super) fn take(&mut self, due: Due) -> Vec<LogRecord> {
        self.again = due.again;
        let (logs, mut news): (Vec<_>, Vec<_>) =
            due.records.into_iter().map(|record| (record.log, record.news)).unzip();
        news.extend(due.silent);
        self.delivered.add(&News { findings: news, ..News::default() });
        logs
    }

    /// What is said, in short, after so many seconds.
    fn says(&mut self, after: u64, application: &Application, findings: &[Finding]) -> Vec<String> {
        self.pass(after);
        let due = self.look(application, findings);
        self.take(due).iter().map(short).collect()
    }
}

fn view(application: &Application, findings: &[Finding]) -> RunView {
    let diagnosis = Diagnosis { findings: findings.to_vec(), ..Diagnosis::default() };
    RunView {
        name: "etl".into(),
        application: Arc::new(application.clone()),
        diagnosis: Arc::new(diagnosis),
        trace_id: None,
    }
}

/// Attributes as text.
pub(super) fn attributes(log: &LogRecord) -> BTreeMap<&str, String> {
    let text = |value: &any_value::Value| match value {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::DoubleValue(number) => number.to_string(),
        any_value::Value::BoolValue(flag) => flag.to_string(),
        other => panic!("{other:?}"),
    };
    let all = log.attributes.iter().map(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref()).unwrap();
        (attribute.key.as_str(), text(value))
    });
    let all: Vec<_> = all.collect();
    let map: BTreeMap<_, _> = all.iter().cloned().collect();
    assert_eq!(map.len(), all.len(), "each key once: {all:?}");
    map
}

fn short(log: &LogRecord) -> String {
    let all = attributes(log);
    let of = |key: &str| all.get(key).map_or("-", String::as_str).to_owned();
    let part = ["state", "rule", "severity"].map(|name| of(&format!("spark.finding.{name}")));
    part.join(" ")
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_finding_is_said_once() {
    let mut reader = Reader::new();
    let findings = [skew(Severity::Warning), finding(Rule::Spill, 1, Severity::Info)];
    let said = reader.says(0, &running(), &findings);
    assert_eq!(said, ["new data_skew warning", "new spill info"]);
    for _ in 0..5 {
        assert_eq!(reader.says(1_000, &running(), &findings), NOTHING);
    }
    // Nor by the better reading of the run's log, nor after a restart.
    reader.memo = Memo::default();
    assert_eq!(reader.says(1, &ended(), &findings), NOTHING);
    let more = [findings[0].clone(), findings[1].clone(), finding(Rule::Spill, 2, Severity::Info)];
    assert_eq!(reader.says(1, &ended(), &more), ["new spill info"]);
}

#[test]
fn worse_is_said_at_once_and_better_once_it_lasts() {
    let mut reader = Reader::new();
    let (worse, better) = ([skew(Severity::Critical)], [skew(Severity::Warning)]);
    assert_eq!(reader.says(0, &running(), &better), ["new data_skew warning"]);
    assert_eq!(reader.says(15, &running(), &worse), ["changed data_skew critical"]);
    // It goes up and down.
    for _ in 0..50 {
        assert_eq!(reader.says(15, &running(), &better), NOTHING);
        assert!(reader.again);
        assert_eq!(reader.says(15, &running(), &worse), NOTHING);
        assert!(!reader.again);
    }
    assert_eq!(reader.says(15, &running(), &better), NOTHING);
    assert_eq!(reader.says(299, &running(), &better), NOTHING);
    assert_eq!(reader.says(1, &running(), &better), ["changed data_skew warning"]);
    assert_eq!(reader.says(1_000, &running(), &better), NOTHING);
}

#[test]
fn what_is_gone_is_cleared_once_it_stays_away() {
    let mut reader = Reader::new();
    let there = [skew(Severity::Warning)];
    assert_eq!(reader.says(0, &running(), &there), ["new data_skew warning"]);
    for _ in 0..50 {
        assert_eq!(reader.says(15, &running(), &[]), NOTHING);
        assert_eq!(reader.says(200, &running(), &[]), NOTHING);
        assert_eq!(reader.says(15, &running(), &there), NOTHING);
    }
    assert_eq!(reader.says(15, &running(), &[]), NOTHING);
    reader.pass(300);
    let due = reader.look(&running(), &[]);
    let record = &due.records[0].log;
    assert_eq!(short(record), "cleared data_skew warning");
    let all = attributes(record);
    assert_eq!(all["spark.stage.id"], "1");
    assert_eq!(record.severity_number, 9);
    let body = record.body.as_ref().and_then(|body| body.value.clone());
    let text = "data_skew is not found any more: stage 1.0".to_owned();
    assert_eq!(body, Some(any_value::Value::StringValue(text)));
    // Since when it was away, and when that was known for sure.
    assert_eq!(record.observed_time_unix_nano - record.time_unix_nano, 300_000_000_000);
    // It did not arrive: it is said again, and then not any more.
    assert_eq!(reader.says(15, &running(), &[]), ["cleared data_skew warning"]);
    assert_eq!(reader.says(1_000, &running(), &[]), NOTHING);
    assert_eq!(reader.says(15, &running(), &there), ["new data_skew warning"]);
}

#[test]
fn another_cause_is_a_change() {
    let mut reader = Reader::new();
    let with = |cause| [Finding { cause, ..skew(Severity::Warning) }];
    reader.says(0, &running(), &with(Some(Cause::HotKey)));
    assert_eq!(reader.says(15, &running(), &with(Some(Cause::InputFiles))), NOTHING);
    let said = reader.says(300, &running(), &with(Some(Cause::InputFiles)));
    assert_eq!(said, ["changed data_skew warning"]);
    assert_eq!(reader.says(15, &running(), &with(Some(Cause::InputFiles))), NOTHING);
    // A third one before the second has lasted begins to wait anew.
    reader.says(15, &running(), &with(None));
    assert_eq!(reader.says(299, &running(), &with(Some(Cause::Gc))), NOTHING);
    assert_eq!(reader.says(15, &running(), &with(Some(Cause::Gc))), NOTHING);
    assert_eq!(reader.says(285, &running(), &with(Some(Cause::Gc))), ["changed data_skew warning"]);
}

#[test]
fn the_reading_of_an_end_counts_at_once() {
    let mut reader = Reader::new();
    let findings = [skew(Severity::Critical), finding(Rule::StuckStage, 5, Severity::Warning)];
    reader.says(0, &running(), &findings);
    let due = reader.look(&ended(), &[skew(Severity::Warning)]);
    let logs = reader.take(due);
    let said: Vec<String> = logs.iter().map(short).collect();
    assert_eq!(said, ["changed data_skew warning", "cleared stuck_stage warning"]);
    let end = at(200).as_nanosecond() as u64;
    assert!(logs.iter().all(|log| log.time_unix_nano == end), "when the run ended");
    assert!(!reader.again);
    // One that is merely gone waits: it may come back.
    let mut reader = Reader::new();
    reader.says(0, &running(), &findings);
    let mut lost = running();
    lost.state = State::Lost;
    assert_eq!(reader.says(15, &lost, &[]), NOTHING);
    assert!(reader.again, "the same reading is looked at again");
    assert_eq!(reader.says(300, &lost, &[]).len(), 2);
}

#[test]
fn nothing_is_cleared_before_everything_was_read() {
    let mut reader = Reader::new();
    reader.says(0, &running(), &[skew(Severity::Info)]);
    reader.ready = false;
    for application in [running(), ended()] {
        assert_eq!(reader.says(1_000, &application, &[]), NOTHING);
        assert!(reader.again);
    }
    // What is new is.
    let other = [finding(Rule::Spill, 1, Severity::Info)];
    assert_eq!(reader.says(1, &running(), &other), ["new spill info"]);
    reader.ready = true;
    assert_eq!(reader.says(1, &ended(), &other), ["cleared data_skew info"]);
}

#[test]
fn what_left_the_reading_of_a_long_run_is_not_cleared() {
    let mut reader = Reader::new();
    let findings = [skew(Severity::Warning)];
    reader.says(0, &running(), &findings);
    let mut later = running();
    later.stages.remove(1);
    assert_eq!(reader.says(1_000, &later, &[]), NOTHING);
    assert_eq!(reader.says(1_000, &later, &[]), NOTHING);
    // Its log has it again: nothing new.
    assert_eq!(reader.says(1_000, &ended(), &findings), NOTHING);
    // Nor where there was no room for it among the findings.
    let mut short = view(&ended(), &[]);
    let diagnosis = Diagnosis { findings_omitted: 1, ..Diagnosis::default() };
    short.diagnosis = Arc::new(diagnosis);
    let said = &reader.delivered.findings;
    let due = due(&short, said, &mut Memo::default(), reader.now(), &|_| None);
    assert!(due.records.is_empty() && due.silent.is_empty());
}

#[test]
fn what_is_remembered_of_an_endless_run_is_bounded() {
    let mut reader = Reader::new();
    let mut application = running();
    for stage in 0..700 {
        application.stages = vec![Stage::new(StageId { stage, attempt: 0 })];
        let said = reader.says(15, &application, &[finding(Rule::Spill, stage, Severity::Info)]);
        assert_eq!(said, ["new spill info"]);
    }
    assert_eq!(reader.delivered.findings.len(), MOST_LEFT + 1);
    // The latest are.
    assert!(reader.delivered.findings[0].subject.contains("199"));
}

#[test]
fn several_of_one_rule_and_subject_are_several() {
    let mut reader = Reader::new();
    let lost = |cause| about_all(Rule::ExecutorLost, Some(cause));
    let memory = about_all(Rule::Memory, None);
    let findings =
        [memory.clone(), memory.clone(), lost(Cause::Killed), lost(Cause::Heartbeat), memory];
    assert_eq!(reader.says(0, &running(), &findings).len(), 5);
    assert_eq!(reader.says(1_000, &running(), &findings), NOTHING);
    let mut back = findings.clone();
    back.reverse();
    assert_eq!(reader.says(1_000, &running(), &back), NOTHING, "in whichever order");
    // Of three one goes, and comes again; of two causes one.
    let fewer = [findings[0].clone(), findings[1].clone(), findings[3].clone()];
    assert_eq!(reader.says(15, &running(), &fewer), NOTHING);
    let due = {
        reader.pass(300);
        reader.look(&running(), &fewer)
    };
    let logs = reader.take(due);
    let mut said: Vec<String> = logs.iter().map(short).collect();
    said.sort();
    assert_eq!(said, ["cleared executor_lost info", "cleared memory info"]);
    let causes: Vec<_> = logs.iter().filter_map(|log| attributes(log).remove(CAUSE)).collect();
    assert_eq!(causes, ["killed"]);
    assert_eq!(reader.says(15, &running(), &findings).len(), 2);
    assert_eq!(reader.says(15, &running(), &findings), NOTHING);
}

const CAUSE: &str = "spark.finding.cause";

#[test]
fn a_record_says_all_of_the_finding() {
    let evidence = |name, value, unit, threshold| Evidence {
        name,
        value,
        unit,
        threshold,
        from: "stage 1.0".to_owned(),
    };
    let found = Finding {
        cause: Some(Cause::HotKey),
        headline: "one task of stage 1.0 took 9x; see jdbc:x://me:hunter2@db/x\u{1b}[31m".into(),
        evidence: vec![
            evidence("run_time_ratio", 9.5, Unit::Ratio, Some(4.0)),
            evidence("largest", 1e9, Unit::Bytes, None),
        ],
        impact: Impact {
            wall: Some(Duration::from_millis(12_500)),
            core: Some(Duration::from_secs(50)),
            estimated: true,
        },
        confidence: Confidence::Medium,
        advice: vec![Advice {
            change: "salt the key, password=hunter2".into(),
            place: Where::Sql,
            not_when: None,
        }],
        ..skew(Severity::Critical)
    };
    let reader = Reader::new();
    let span = (TraceId([7; 16]), SpanId([9; 8]));
    let span_of = |subject: &Subject| {
        assert_eq!(*subject, Subject::Stage { stage_id: 1, stage_attempt_id: 0 });
        Some(span)
    };
    let ill = view(&running(), &[found]);
    let records = due(&ill, &[], &mut Memo::default(), reader.now(), &span_of).records;
    let log = &records[0].log;
    assert_eq!((log.event_name.as_str(), log.severity_text.as_str()), ("spark.finding", "ERROR"));
    assert_eq!(log.severity_number, 17);
    assert_eq!((&log.trace_id[..], &log.span_id[..], log.flags), (&[7; 16][..], &[9; 8][..], 1));
    // When its stage had ended, and when we saw it.
    assert_eq!(log.time_unix_nano, at(11).as_nanosecond() as u64);
    assert_eq!(log.observed_time_unix_nano, at(1_000).as_nanosecond() as u64);
    let all = attributes(log);
    for (key, expected) in [
        ("state", "new"),
        ("rule", "data_skew"),
        ("cause", "hot_key"),
        ("severity", "critical"),
        ("kind", "data"),
        ("confidence", "medium"),
        ("subject", "stage"),
        ("estimated", "true"),
        ("evidence.run_time_ratio", "9.5"),
        ("threshold.run_time_ratio", "4"),
        ("evidence.largest_bytes", "1000000000"),
        ("wall_seconds", "12.5"),
        ("core_seconds", "50"),
        ("advice", "salt the key, password=<redacted>"),
    ] {
        assert_eq!(all[&*format!("spark.finding.{key}")], expected, "{key}");
    }
    assert_eq!((&*all["spark.stage.id"], &*all["spark.stage.attempt.id"]), ("1", "0"));
    let Some(any_value::Value::StringValue(body)) = log.body.clone().and_then(|body| body.value)
    else {
        panic!("{:?}", log.body);
    };
    assert_eq!(body, "one task of stage 1.0 took 9x; see jdbc:x://<redacted>@db/x [31m");
    assert!(!format!("{log:?}").contains("hunter2"));
    // A stage that goes on: when it was seen.
    let going_on = view(&running(), &[finding(Rule::Spill, 5, Severity::Info)]);
    let records = due(&going_on, &[], &mut Memo::default(), reader.now(), &|_| None).records;
    let log = &records[0].log;
    assert_eq!(log.time_unix_nano, log.observed_time_unix_nano);
    assert!(log.trace_id.is_empty() && log.span_id.is_empty() && log.flags == 0);
}

#[test]
fn requests_have_the_size_they_may_have() {
    let mut reader = Reader::new();
    let findings: Vec<Finding> = (0..200)
        .map(|stage| Finding {
            headline: "x".repeat(300),
            ..finding(Rule::Spill, stage % 10, Severity::Info)
        })
        .collect();
    let due = reader.look(&running(), &findings);
    assert_eq!(due.records.len(), 200);
    let all: Vec<LogRecord> = due.records.iter().map(|record| record.log.clone()).collect();
    let news: Vec<FindingNews> = due.records.iter().map(|record| record.news.clone()).collect();
    let resource = resource::of_run(&OtlpResource::default(), &view(&running(), &[]));
    let batches = requests(due.records, &resource, 8_000);
    assert!(batches.len() > 10, "{}", batches.len());
    let mut sent = Vec::new();
    for batch in &batches {
        assert!(batch.request.body.len() <= 8_000);
        let message = ExportLogsServiceRequest::decode(&*batch.request.body).unwrap();
        let of_run = &message.resource_logs[0];
        assert_eq!(of_run.resource.as_ref(), Some(&resource));
        let logs = &of_run.scope_logs[0].log_records;
        assert_eq!((logs.len() as u64, logs.len()), (batch.request.items, batch.news.len()));
        sent.extend(logs.iter().cloned());
    }
    assert_eq!(sent, all);
    assert_eq!(batches.into_iter().flat_map(|batch| batch.news).collect::<Vec<_>>(), news);
    // One that is too large for any request loses attributes, and says so.
    let due = Reader::new().look(&running(), &findings[..1]);
    let batches = requests(due.records, &resource, 700);
    let message = ExportLogsServiceRequest::decode(&*batches[0].request.body).unwrap();
    let log = &message.resource_logs[0].scope_logs[0].log_records[0];
    assert!(batches[0].request.body.len() <= 700);
    assert!(log.dropped_attributes_count > 0 && !log.attributes.is_empty(), "{log:?}");
}
