//! One job night after night, as real Spark recorded it (`examples/history`):
//! each night is held against those before it, and only what was slowed on
//! purpose is a regression, with its reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use common::real::{daemon, until};
use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::{
    Cause, Finding, FindingKind, Judgement, Rule, RunSummary, Severity, about, diagnose, judge,
    with_regression,
};
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::model::{Application, Source};

const NAME: &str = "nightly-etl-2026-11-";
/// The hot key of the long history, and the nights after it.
const HOT: &str = "19";
const TRIPLE: &str = "26";
const MILD: &str = "27";
const WAITED: &str = "28";
const REVISED: &str = "29";

/// A night: the day in its name, and what was read of it.
type Night = (String, Application);

fn nights(folders: &[&str]) -> Vec<Night> {
    let limits = Limits::default();
    let mut nights = Vec::new();
    for folder in folders {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/history").join(folder);
        let files = LocalFiles::at(&path).unwrap_or_else(|error| panic!("{folder}: {error}"));
        for log in scan(&files).expect("logs").logs {
            let outcome = read(&log, &files, &ReadOptions { cluster: "test", limits: &limits });
            let application = outcome.unwrap_or_else(|error| panic!("{error}")).application;
            let day = application.name.strip_prefix(NAME).expect("a night").to_owned();
            nights.push((day, application));
        }
    }
    nights.sort_by(|(a, _), (b, _)| a.cmp(b));
    nights
}

/// 25 nights of one history, and four that follow it.
fn newest() -> &'static [Night] {
    static NIGHTS: LazyLock<Vec<Night>> =
        LazyLock::new(|| nights(&["nightly_etl/4.3.0", "nightly_etl_later/4.3.0"]));
    &NIGHTS
}

fn summary(application: &Application) -> RunSummary {
    RunSummary::of(application, &diagnose(application, &Thresholds::default()))
}

fn summaries(nights: &[Night]) -> Vec<RunSummary> {
    nights.iter().map(|(_, application)| summary(application)).collect()
}

/// Each held against all of them: `judge` itself takes those before it.
fn judgements(nights: &[Night]) -> BTreeMap<String, Judgement> {
    let all = summaries(nights);
    let thresholds = Thresholds::default();
    let judged =
        nights.iter().zip(&all).map(|((day, _), run)| (day.clone(), judge(run, &all, &thresholds)));
    judged.collect()
}

fn fired(judgements: &BTreeMap<String, Judgement>) -> Vec<&str> {
    let found = judgements.iter().filter(|(_, judgement)| judgement.finding.is_some());
    found.map(|(day, _)| day.as_str()).collect()
}

fn show(judgements: &BTreeMap<String, Judgement>) -> String {
    judgements.iter().fold(String::new(), |text, (day, judgement)| {
        let finding = judgement.finding.as_ref().map(|finding| &finding.headline);
        format!("{text}\n{day}: {:?} {:?} {finding:?}", judgement.ratio, judgement.baseline)
    })
}

fn value(finding: &Finding, name: &str) -> f64 {
    let evidence = finding.evidence.iter().find(|evidence| evidence.name == name);
    evidence.unwrap_or_else(|| panic!("no {name} in {finding:?}")).value
}

#[test]
fn of_25_nights_the_slowed_one_is_a_regression_and_no_other() {
    let nights = &newest()[..25];
    let judgements = judgements(nights);
    assert_eq!(judgements.len(), 25);
    assert_eq!(fired(&judgements), [HOT], "{}", show(&judgements));
    for (day, judgement) in &judgements {
        let first_five = day.as_str() <= "05";
        assert_eq!(judgement.baseline.is_none(), first_five, "{day}: {judgement:?}");
    }
    let finding = judgements[HOT].finding.as_ref().expect("a regression");
    assert!(finding.severity >= Severity::Warning);
    // It names the reason: the stage of the join, and that its work is uneven.
    let headline = &finding.headline;
    assert!(headline.contains("SortMergeJoin"), "{headline}");
    assert!(headline.contains("its slowest task took"), "{headline}");
    assert!(headline.contains("data_skew was not found in them"), "{headline}");
    assert_eq!(finding.kind, FindingKind::Data);
    assert_eq!(finding.cause, None, "nothing else changed");
    let (stage, excess) = (value(finding, "stage_growth"), value(finding, "excess"));
    assert!(stage > 0.7 * excess, "the stage explains {stage} of {excess} s");
    let orders = value(finding, "data_ratio");
    assert!((orders - 1.0).abs() < 1e-9, "as many orders as ever: {orders}");
    assert!(!headline.contains("/tmp") && !headline.contains("nightly"), "{headline}");
}

#[test]
fn the_finding_stands_in_the_diagnosis_and_promises_no_second_twice() {
    let judgements = judgements(&newest()[..25]);
    let (_, application) = newest().iter().find(|(day, _)| day == HOT).expect("the night");
    let diagnosis = diagnose(application, &Thresholds::default());
    let with = with_regression(&diagnosis, judgements[HOT].finding.clone());
    assert_eq!(with.findings.len(), diagnosis.findings.len() + 1);
    let promised: Duration = with.findings.iter().filter_map(|finding| finding.impact.wall).sum();
    assert!(promised <= application.duration().expect("a duration"), "{promised:?}");
    let skew = with.findings.iter().any(|finding| finding.rule == Rule::DataSkew);
    assert!(skew, "the finding that says what to do is there as well");
    let about = about(Rule::Regression);
    let own = with.findings.iter().find(|finding| finding.rule == Rule::Regression);
    for evidence in &own.expect("a regression").evidence {
        assert!(about.evidence.iter().any(|(name, _)| *name == evidence.name), "{}", evidence.name);
    }
}

#[test]
fn of_the_nights_that_follow_each_is_what_it_is() {
    let judgements = judgements(newest());
    assert_eq!(judgements.len(), 29);
    assert_eq!(fired(&judgements), [HOT, WAITED, REVISED], "{}", show(&judgements));

    // Three times the data: nothing it could be held against.
    assert_eq!(judgements[TRIPLE], Judgement::default());
    // Slower, and not by enough.
    let mild = judgements[MILD].ratio.expect("a baseline");
    assert!((1.03..1.3).contains(&mild), "{mild}");

    let waited = judgements[WAITED].finding.as_ref().expect("a regression");
    assert_eq!((waited.cause, waited.kind), (Some(Cause::NoExecutors), FindingKind::Resources));
    assert!(waited.headline.contains("more without an executor"), "{}", waited.headline);
    assert!(value(waited, "part_growth") > 0.5 * value(waited, "excess"));

    let revised = judgements[REVISED].finding.as_ref().expect("a regression");
    assert_eq!(revised.cause, Some(Cause::PlanChanged), "{}", revised.headline);
    assert!(revised.headline.contains("is not one that they had"), "{}", revised.headline);
}

#[test]
fn spark_3_5_with_a_setting_that_was_changed() {
    let nights = nights(&["nightly_etl/3.5.9"]);
    assert_eq!(nights.len(), 8);
    let judgements = judgements(&nights);
    assert_eq!(fired(&judgements), ["07"], "{}", show(&judgements));
    let finding = judgements["07"].finding.as_ref().expect("a regression");
    assert_eq!(finding.cause, Some(Cause::SettingsChanged), "{}", finding.headline);
    assert_eq!(finding.kind, FindingKind::Configuration);
    assert!(finding.headline.contains("spark.sql.shuffle.partitions is 1, was 8"));
    assert!(finding.advice[0].change.contains("back to 8"), "{:?}", finding.advice);
}

#[test]
fn it_does_not_matter_in_which_order_logs_are_read() {
    let thresholds = Thresholds::default();
    let mut all = summaries(newest());
    let in_order: Vec<Judgement> = all.iter().map(|run| judge(run, &all, &thresholds)).collect();
    let runs = all.clone();
    // Three shuffles, the same each time.
    for step in [7, 11, 17] {
        let shuffled = (0..all.len()).map(|place| all[place * step % all.len()].clone());
        all = shuffled.collect();
        let judged: Vec<Judgement> = runs.iter().map(|run| judge(run, &all, &thresholds)).collect();
        assert_eq!(judged, in_order);
    }
}

/// With no more than REST tells.
fn as_rest((day, application): &Night) -> Night {
    let mut application = application.clone();
    application.source = Source::HistoryServer;
    application.sql = None;
    application.driver = None;
    for stage in &mut application.stages {
        stage.timeline = None;
        stage.operations.clear();
        stage.reads_cache = None;
    }
    (day.clone(), application)
}

#[test]
fn by_rest_the_verdicts_are_the_same() {
    let nights: Vec<Night> = newest().iter().map(as_rest).collect();
    let judged = judgements(&nights);
    assert_eq!(fired(&judged), [HOT, WAITED, REVISED], "{}", show(&judged));
    let waited = judged[WAITED].finding.as_ref().expect("a regression");
    assert_eq!(waited.cause, Some(Cause::NoExecutors), "{}", waited.headline);

    // A log among runs that were read by REST: no stage is new for that.
    let mut mixed = nights;
    let hot = newest().iter().position(|(day, _)| day == HOT).expect("the night");
    mixed[hot] = newest()[hot].clone();
    let judged = judgements(&mixed);
    assert_eq!(fired(&judged), [HOT, WAITED, REVISED], "{}", show(&judged));
    let finding = judged[HOT].finding.as_ref().expect("a regression");
    assert!(!finding.headline.contains("is new"), "{}", finding.headline);
    assert_eq!(finding.cause, None, "{}", finding.headline);
}

#[test]
fn a_clock_that_jumps_makes_no_regression() {
    let thresholds = Thresholds::default();
    let all = summaries(newest());
    let hot = all.iter().max_by_key(|run| run.duration_ms).expect("runs").clone();
    // Set back to before the others: nothing to be held against.
    let early = RunSummary { start_ms: Some(0), ..hot.clone() };
    assert_eq!(judge(&early, &all, &thresholds), Judgement::default());
    // An end before the start is no duration.
    for run in &all {
        let backwards = RunSummary { duration_ms: Some(0), ..run.clone() };
        assert_eq!(judge(&backwards, &all, &thresholds), Judgement::default());
    }
}

#[test]
fn what_is_stored_of_a_night_is_small_and_says_nothing_of_places() {
    for (day, application) in newest() {
        let summary = summary(application);
        let json = serde_json::to_string(&summary).expect("JSON");
        assert!(json.len() < 8_000, "{day}: {} bytes", json.len());
        for text in ["/tmp", "nightly", "127.0.0.1", "app-2026"] {
            assert!(!json.contains(text), "{day}: {text} in {json}");
        }
        assert_eq!(serde_json::from_str::<RunSummary>(&json).expect("read"), summary);
    }
}

/// The 25 nights as plain files in a folder, all under the name of their job.
fn of_one_name(folder: &Path) -> PathBuf {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/history/nightly_etl/4.3.0");
    let mut hot = None;
    for log in std::fs::read_dir(recorded).expect("logs") {
        let log = log.expect("a log").path();
        let mut events = std::fs::read_dir(&log).expect("files").map(|file| file.unwrap().path());
        let events = events.find(|file| file.extension().is_some()).expect("events");
        let events = std::fs::File::open(events).expect("events");
        let mut text = String::new();
        zstd::Decoder::new(events).expect("zstd").read_to_string(&mut text).expect("text");
        let id = log.file_name().unwrap().to_str().unwrap().trim_start_matches("eventlog_v2_");
        let file = folder.join(id);
        if text.contains(&format!("{NAME}{HOT}")) {
            hot = Some(file.clone());
        }
        let days = (1..=25).map(|day| format!("\"App Name\":\"{NAME}{day:02}\""));
        let text = days.fold(text, |text, day| text.replace(&day, "\"App Name\":\"nightly etl\""));
        std::fs::write(file, text).expect("written");
    }
    hot.expect("the hot night")
}

#[test]
fn diagnose_holds_a_run_against_a_baseline() {
    let folder = tempfile::tempdir().expect("a folder");
    let hot = of_one_name(folder.path());
    let diagnose = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spark-exporter"));
        let output = command.arg("diagnose").arg(&hot).args(more).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let baseline = folder.path().to_str().expect("a path");
    let (status, json) = diagnose(&["--format", "json", "--baseline", baseline]);
    assert_eq!(status, Some(1), "{json}");
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let schema = std::fs::read_to_string("docs/diagnose.schema.json").expect("a schema");
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).expect("JSON"));
    assert!(schema.expect("a schema").is_valid(&document));
    let findings = document["applications"][0]["findings"].as_array().expect("findings");
    let own = findings.iter().find(|finding| finding["rule"] == "regression").expect("found");
    let headline = own["headline"].as_str().expect("words");
    assert!(headline.contains("the median of the last 18 comparable runs"), "{headline}");

    let (_, text) = diagnose(&["--baseline", baseline]);
    assert!(text.contains("the median of the last 18 comparable runs"), "{text}");
    let (_, text) = diagnose(&[]);
    assert!(!text.contains("comparable runs"), "{text}");
    let (status, _) = diagnose(&["--baseline", "no/such/folder"]);
    assert_eq!(status, Some(2));
}

/// The days and causes of `spark_finding{rule="regression"}` in a cluster.
fn exported(metrics: &str, cluster: &str, days: &BTreeMap<String, String>) -> Vec<String> {
    let label = |line: &str, name: &str| {
        let value = line.split_once(&format!(",{name}=\"")).map(|(_, rest)| rest);
        value.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
    };
    let mut found: Vec<String> = metrics
        .lines()
        .filter(|line| line.starts_with(&format!("spark_finding{{spark_cluster=\"{cluster}\"")))
        .filter(|line| line.contains("rule=\"regression\""))
        .map(|line| format!("{} {}", days[&label(line, "app_id")], label(line, "cause")))
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn the_daemon_says_the_same_whatever_order_it_reads_them_in() {
    let history = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/history");
    let at = |folder: &str| history.join(folder).display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters:\n\
         - name: newest\n  event_log_dirs: ['{}', '{}']\n\
         - name: old\n  event_log_dirs: ['{}']\n",
        at("nightly_etl/4.3.0"),
        at("nightly_etl_later/4.3.0"),
        at("nightly_etl/3.5.9")
    );
    std::fs::write(&config, text).expect("written");
    let all = [newest().to_vec(), nights(&["nightly_etl/3.5.9"])].concat();
    let days: BTreeMap<String, String> =
        all.into_iter().map(|(day, application)| (application.id.app_id, day)).collect();
    let (_daemon, address) = daemon(&["--config.file", config.to_str().expect("a path")]);
    let metrics = format!("{address}/metrics");
    let expected =
        [format!("{HOT} "), format!("{WAITED} no_executors"), format!("{REVISED} plan_changed")];
    let ratio = |metrics: &str, cluster: &str| -> Option<f64> {
        let series = format!(
            "spark_application_regression_ratio{{spark_cluster=\"{cluster}\",\
             app_name=\"nightly-etl\"}} "
        );
        metrics.lines().find_map(|line| line.strip_prefix(&*series)?.parse().ok())
    };
    let (of_newest, of_old) = until(&metrics, Duration::from_mins(1), |metrics| {
        let right = exported(metrics, "newest", &days) == expected
            && exported(metrics, "old", &days) == ["07 settings_changed"];
        ratio(metrics, "newest").zip(ratio(metrics, "old")).filter(|_| right)
    })
    .await;
    // Of the newest run of the name, whatever it was held against when.
    assert!(of_newest > 1.3, "{of_newest}");
    assert!((0.7..1.3).contains(&of_old), "{of_old}");
}
