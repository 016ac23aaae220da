//! Recorded runs of real Spark (`examples/README.md`), each diagnosed as a
//! person would who knows what it did: what must be found, what may be, and
//! nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::{Cause, Diagnosis, Finding, Rule, Severity, diagnose};
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::model::{Application, Source};

mod about_rules;
mod edited;
mod impact;
mod judgement;
mod labels;
mod scans;
mod score;
mod time;
mod what_if;
mod whole_run;

use Rule::DataSkew;
use Severity::{Critical, Info};
use labels::Expected;

/// Runs of which no more than their severity is bounded: a failure that the
/// program survived is not critical.
const NEVER_CRITICAL: &[&str] = &["job_failed_caught", "speculation", "gc_pressure", "hot_key"];

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logs")
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(of)
        .unwrap_or_else(|error| panic!("{}: {error}", of.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    folders.sort();
    folders
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Every recorded run: its name, Spark's version, and the application; read
/// once for all tests.
fn recorded() -> Vec<(String, String, Application)> {
    static RUNS: LazyLock<Vec<(String, String, Application)>> = LazyLock::new(read_all);
    RUNS.clone()
}

fn read_all() -> Vec<(String, String, Application)> {
    let limits = Limits::default();
    let mut runs = Vec::new();
    for run in folders(&logs()) {
        for version in folders(&run) {
            let files = LocalFiles::at(&version).expect("a place");
            for log in scan(&files).expect("a log").logs {
                let outcome = read(&log, &files, &ReadOptions { cluster: "test", limits: &limits });
                let application = outcome.unwrap_or_else(|error| panic!("{error}")).application;
                runs.push((name(&run), name(&version), application));
            }
        }
    }
    runs
}

fn show(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |text, finding| {
        let cause = finding.cause.map_or("-", Cause::as_str);
        let (severity, rule) = (finding.severity.as_str(), finding.rule.as_str());
        format!("{text}\n    {severity} {rule} {cause}: {}", finding.headline)
    })
}

/// `by_rest`: what REST cannot tell need not be found.
fn complaints(expected: &Expected, findings: &[Finding], by_rest: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (rule, cause, severity) in expected.must {
        let found = findings.iter().any(|finding| {
            finding.rule == *rule && finding.cause == *cause && finding.severity >= *severity
        });
        let told = !by_rest || !labels::NEED_THE_LOG.contains(rule);
        if told && !found {
            complaints.push(format!("not found: {} {cause:?} {severity:?}", rule.as_str()));
        }
    }
    for finding in findings {
        let expected_here = expected
            .must
            .iter()
            .any(|(rule, cause, _)| *rule == finding.rule && *cause == finding.cause)
            || expected
                .may
                .iter()
                .any(|(rule, most)| *rule == finding.rule && finding.severity <= *most)
            || (finding.cause == Some(Cause::ColdExecutor) && finding.severity == Info);
        if !expected_here {
            complaints.push(format!("not expected: {}", finding.headline));
        }
        if finding.severity == Critical && NEVER_CRITICAL.contains(&expected.run) {
            complaints.push(format!("critical: {}", finding.headline));
        }
    }
    complaints
}

/// No second and no core-second is promised twice.
fn promises_are_kept(application: &Application, diagnosis: &Diagnosis) {
    let sum = |of: fn(&Finding) -> Option<Duration>| -> Duration {
        diagnosis.findings.iter().filter_map(of).sum()
    };
    let run = application.duration().expect("a start");
    assert!(sum(|finding| finding.impact.wall) <= run);
    if let Some(bought) = diagnosis.totals.bought {
        assert!(sum(|finding| finding.impact.core) <= bought);
    }
}

#[test]
fn each_recorded_run_is_diagnosed_as_what_it_is() {
    let mut wrong = String::new();
    let mut seen = 0;
    for (run, version, application) in recorded() {
        let diagnosis = diagnose(&application, &Thresholds::default());
        promises_are_kept(&application, &diagnosis);
        let Some(expected) = labels::of(&run) else {
            panic!("{run} is recorded, and nothing here says what it should be diagnosed as");
        };
        seen += 1;
        let complaints = complaints(expected, &diagnosis.findings, false);
        if !complaints.is_empty() {
            let all = show(&diagnosis.findings);
            wrong = format!("{wrong}\n{run} {version}: {}{all}", complaints.join("; "));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(seen >= 20, "only {seen} recorded runs in {}", logs().display());
}

#[test]
fn skew_of_a_recorded_run_in_numbers() {
    // What tests/spark/inspect_log.py, which shares no code with this, reads
    // from the same logs: one task of some 17 s, the other 15 of half a second.
    for (run, version, application) in recorded() {
        if run != "hot_key" {
            continue;
        }
        let diagnosis = diagnose(&application, &Thresholds::default());
        let skew = diagnosis.findings.iter().find(|finding| finding.rule == DataSkew);
        let skew = skew.unwrap_or_else(|| panic!("no skew in {version}"));
        let evidence: BTreeMap<&str, f64> =
            skew.evidence.iter().map(|evidence| (evidence.name, evidence.value)).collect();
        assert!(evidence["records_ratio"] > 50.0, "{version}: {evidence:?}");
        assert!(evidence["run_time_ratio"] > 10.0, "{version}: {evidence:?}");
        // Two cores share the work of all: about half of the long task.
        let wall = skew.impact.wall.expect("a saving").as_secs_f64();
        let task = evidence["run_time"];
        assert!((0.3 * task..0.6 * task).contains(&wall), "{version}: {wall} of {task}");
    }
}

/// The run with no more than the REST API tells of it.
fn as_rest(mut application: Application) -> Application {
    application.source = Source::HistoryServer;
    application.sql = None;
    application.streaming_queries = None;
    application.driver = None;
    for stage in &mut application.stages {
        stage.timeline = None;
        stage.operations.clear();
        stage.reads_cache = None;
        stage.measures.records_read.quantiles = None;
        stage.measures.records_written.quantiles = None;
        stage.slowest.truncate(10);
        for task in &mut stage.slowest {
            task.ordinal_on_executor = None;
        }
    }
    application
}

#[test]
fn without_a_timeline_the_verdict_is_the_same() {
    let mut wrong = String::new();
    for (run, version, application) in recorded() {
        if run.starts_with("scheduling_locality") {
            // Free slots beside running tasks cannot be seen.
            continue;
        }
        let expected = labels::of(&run).expect("a known run");
        let application = as_rest(application);
        let diagnosis = diagnose(&application, &Thresholds::default());
        promises_are_kept(&application, &diagnosis);
        let complaints = complaints(expected, &diagnosis.findings, true);
        if !complaints.is_empty() {
            let all = show(&diagnosis.findings);
            wrong = format!("{wrong}\n{run} {version}: {}{all}", complaints.join("; "));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
