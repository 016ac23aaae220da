//! The exposition before independent judges: `promtool check metrics`, the
//! strict OpenMetrics parser of Python's `prometheus_client`, and a reader of
//! our own that gives back every label. All read what the real server sends
//! over a socket.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use spark_exporter::config::Limits;
use spark_exporter::diagnose::{Cause, Rule, Severity, Subject};
use spark_exporter::expose::{self, ExposeState};
use spark_exporter::metrics::catalogue::{Id, Kind};
use spark_exporter::metrics::label::clean;
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{NameView, RunView, build};
use spark_exporter::model::{DataQuality, SpanId, SpanOf, StageStatus, State, TraceId};
use spark_exporter::telemetry::events::{CycleFinished, LogFailed, LogRead, RequestsCounted};
use spark_exporter::telemetry::{TargetId, Telemetry, TelemetrySnapshot};
use support::{at, changed, executor, finding, name_view, run_id, skewed_run, skewed_stage};
use tokio::net::TcpListener;

const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0";

/// Names that break what does not escape.
const HOSTILE: &str =
    "a \"quoted\" \\ back\\slash\nnew line\r\ttab {brace=\"x\"} # EOF 🚀 ünï \u{0} \u{202e}";

/// Many runs of every sort, with hostile names.
fn rich() -> Vec<RunView> {
    let base = skewed_run(run_id("default", "app-1"));
    let mut runs = vec![base.clone(), skewed_run(run_id("other", "app-1"))];
    for (number, state) in (0..).zip(State::ALL) {
        runs.push(changed(&base, |application, diagnosis| {
            application.id = run_id("default", &format!("app-20261130-{number}"));
            application.id.attempt_id = Some(number.to_string());
            application.name = format!("{HOSTILE} {number}");
            application.user = Some(HOSTILE.to_owned());
            application.state = state;
            application.end = (state != State::Running).then(|| at(600));
            application.exit_code = Some(-number);
            application.data_quality = DataQuality::ALL.into_iter().collect();
            application.stages = (0..30)
                .map(|id| {
                    let status =
                        if id % 7 == 0 { StageStatus::Failed } else { StageStatus::Complete };
                    skewed_stage(id, status)
                })
                .collect();
            application.executors = (0..120).map(executor).collect();
            HOSTILE.clone_into(&mut application.executors[0].host);
            HOSTILE.clone_into(&mut application.executors[1].id);
            diagnosis.findings.extend((0..40).map(|stage_id| {
                let subject = match stage_id % 5 {
                    0 => Subject::Application,
                    1 => Subject::Job { job_id: stage_id },
                    2 => Subject::Executor { executor_id: HOSTILE.to_owned() },
                    3 => Subject::Host { host: HOSTILE.to_owned() },
                    _ => Subject::Stage { stage_id, stage_attempt_id: 1 },
                };
                let rule = Rule::ALL[stage_id as usize % Rule::ALL.len()];
                finding(rule, Some(Cause::Unknown), Severity::Critical, subject)
            }));
        }));
    }
    runs
}

/// Names of every sort, with all they can have.
fn names() -> Vec<NameView> {
    [("default", "orders"), ("default", HOSTILE), (HOSTILE, "orders"), ("", "_other")]
        .into_iter()
        .map(|(cluster, app_name)| name_view(cluster, app_name))
        .collect()
}

fn telemetry() -> Telemetry {
    let telemetry = Telemetry::new(at(0));
    RequestsCounted { endpoint: "stages", requests: 2, bytes: 10, errors: vec![("timeout", 1)] }
        .emit(&telemetry);
    LogRead {
        path: "/logs/app-1".to_owned(),
        application: "app-1".to_owned(),
        bytes: 1,
        lines: 2,
        bad_lines: 3,
        unknown_events: 4,
        duration: Duration::ZERO,
    }
    .emit(&telemetry);
    LogFailed { path: "x".to_owned(), reason: "unreadable", message: String::new() }
        .emit(&telemetry);
    for target in ["http://history:18080/a?b=\"c\"", HOSTILE, ""] {
        CycleFinished {
            elsewhere: 0,
            target: TargetId { cluster: HOSTILE.to_owned(), target: target.to_owned() },
            success: !target.is_empty(),
            at: at(1),
            duration: Duration::from_millis(12),
            requests: 1,
            bytes: 1,
            skipped: vec![("limit", 3)],
        }
        .emit(&telemetry);
    }
    telemetry
}

/// What the real server sends for the rich snapshot, after a first scrape.
async fn scraped(accept: &str) -> String {
    let telemetry = Arc::new(telemetry());
    let limits = Limits::default();
    let state = Arc::new(ExposeState::new(Arc::clone(&telemetry), &limits, at(0)));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/metrics", listener.local_addr().expect("bound"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(expose::run(listener, Arc::clone(&state), async {
        let _ = stopped.await;
    }));
    // With gzip, as Prometheus asks; the client unpacks.
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let get = async || {
        let request = client.get(&url).header("accept", accept);
        request.send().await.expect("an answer").text().await.expect("text")
    };
    get().await;
    let runs = rich();
    state.publish(build(&runs, &names(), &telemetry.snapshot(), &limits, at(700)), runs, at(700));
    let text = get().await;
    drop(stop);
    server.await.expect("no panic");
    text
}

/// The folder that a script of `tests/parts/` prints; the script gets the
/// part where it is missing.
fn part(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts").join(name);
    let output = Command::new(&script).output().unwrap_or_else(|error| {
        panic!("cannot run {}: {error}. This test needs the real part", script.display())
    });
    assert!(
        output.status.success(),
        "tests/parts/{name} could not get the part that this test needs; run it by hand. It said:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// Runs a judge with `text` on its standard input and gives what it says.
fn judge(command: &mut Command, text: &str) -> (bool, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let mut input = child.stdin.take().expect("piped");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    // A judge that refuses early does not read on.
    let _ = writer.join().expect("no panic");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test]
async fn promtool_finds_nothing_to_say() {
    let promtool = part("prometheus").join("promtool");
    let text = scraped("text/plain;version=0.0.4").await;
    let (good, said) = judge(Command::new(&promtool).args(["check", "metrics"]), &text);
    assert!(good && said.trim().is_empty(), "promtool check metrics says:\n{said}");

    // The judge judges: a broken text must not pass.
    let broken = text.replacen("# TYPE spark_application_state gauge", "# TYPE 1bad gauge", 1);
    let (good, _) = judge(Command::new(&promtool).args(["check", "metrics"]), &broken);
    assert!(!good);
}

const STRICT_PARSER: &str = r#"
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
text = sys.stdin.buffer.read().decode("utf-8")
series = 0
for family in text_string_to_metric_families(text):
    seen = set()
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        assert key not in seen, f"twice: {key}"
        seen.add(key)
        assert sample.value == sample.value and abs(sample.value) != float("inf"), key
    series += len(family.samples)
print(series)
"#;

const EXEMPLARS: &str = r#"
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
text = sys.stdin.buffer.read().decode("utf-8")
for family in text_string_to_metric_families(text):
    for sample in family.samples:
        if sample.exemplar:
            labels, value, at = sample.exemplar.labels, sample.exemplar.value, sample.exemplar.timestamp
            print(sample.name, sample.labels["le"], labels["trace_id"], labels["span_id"], float(value), float(at))
"#;

#[test]
fn the_strict_openmetrics_parser_reads_exemplars() {
    let python = part("python-tools").join("bin/python");
    let mut view = changed(&skewed_run(run_id("default", "app-9")), |application, _| {
        "orders".clone_into(&mut application.name);
        application.state = State::Succeeded;
        application.end = Some(at(63));
    });
    view.trace_id = Some(TraceId([0xab; 16]));
    let application = &view.application;
    let run = TraceId::of_run(&application.id, application.start);
    let span = SpanId::of(run, SpanOf::Application);
    let runs = [view];
    let telemetry = TelemetrySnapshot::default();
    let snapshot = Arc::new(build(&runs, &names(), &telemetry, &Limits::default(), at(700)));
    let text = render(&snapshot, Format::OpenMetrics);
    let (good, said) = judge(Command::new(&python).args(["-c", EXEMPLARS]), &text);
    assert!(good, "the parser refuses:\n{said}");
    let at = at(63).as_second();
    assert_eq!(
        said.trim(),
        format!(
            "spark_application_runs_duration_seconds_bucket 64.0 {} {span} 63.0 {at}.0",
            "ab".repeat(16)
        )
    );
}

#[tokio::test]
async fn the_strict_openmetrics_parser_reads_every_series() {
    let python = part("python-tools").join("bin/python");
    let text = scraped(OPEN_METRICS).await;
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    let (good, said) = judge(Command::new(&python).args(["-c", STRICT_PARSER]), &text);
    assert!(good, "the parser refuses:\n{said}");
    assert_eq!(said.trim(), series.to_string());
    assert!(series > 5_000, "{series}");

    let broken = text.replacen("# EOF\n", "", 1);
    let (good, _) = judge(Command::new(&python).args(["-c", STRICT_PARSER]), &broken);
    assert!(!good, "a text without its end must not pass");
}

#[tokio::test]
async fn both_formats_carry_the_same_series() {
    let open = parse(&scraped(OPEN_METRICS).await);
    let plain = parse(&scraped("text/plain").await);
    assert_eq!(open, plain);
}

/// A series: name and labels.
type Series = (String, BTreeMap<String, String>);

/// Reads one series a line, strictly: every escape known, nothing left over,
/// nothing twice.
fn parse(text: &str) -> BTreeMap<Series, String> {
    let mut series = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (key, value) = parse_line(line).unwrap_or_else(|| panic!("bad line: {line}"));
        assert!(series.insert(key, value).is_none(), "twice: {line}");
    }
    series
}

fn parse_line(line: &str) -> Option<(Series, String)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let mut value = String::new();
            let mut chars = after.char_indices();
            let close = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match chars.next()?.1 {
                        'n' => '\n',
                        c @ ('"' | '\\') => c,
                        _ => return None,
                    }),
                    (_, c) => value.push(c),
                }
            };
            // OpenMetrics writes bounds as floats, `1.0`; the other format `1`.
            if label == "le" && value != "+Inf" {
                value = value.parse::<f64>().ok()?.to_string();
            }
            labels.insert(label.to_owned(), value).is_none().then_some(())?;
            rest = &after[close + 1..];
            if let Some(next) = rest.strip_prefix(',') {
                rest = next;
            } else {
                rest = rest.strip_prefix('}')?;
                break;
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    value.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some(((name.to_owned(), labels), value.to_owned()))
}

#[test]
fn the_families_are_those_of_the_catalogue_and_contiguous() {
    let snapshot =
        Arc::new(build(&rich(), &names(), &telemetry().snapshot(), &Limits::default(), at(700)));
    let text = render(&snapshot, Format::Prometheus);
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert!(seen.insert(name.to_owned()), "{name} twice");
            let id = Id::ALL.iter().find(|id| id.metric().name == name);
            let metric = id.unwrap_or_else(|| panic!("{name} is not in the catalogue")).metric();
            let expected = match metric.kind {
                Kind::Counter => "counter",
                Kind::Histogram => "histogram",
                Kind::Gauge | Kind::Info => "gauge",
            };
            assert_eq!(kind, expected, "{name}");
            name.clone_into(&mut current);
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().expect("a name");
            let of_histogram = ["_bucket", "_sum", "_count"];
            let family = of_histogram.iter().find_map(|suffix| name.strip_suffix(suffix));
            assert_eq!(family.unwrap_or(name), current, "{line}");
        }
    }
    assert!(seen.len() > 130, "{}", seen.len());
}

fn exposed_name(name: &str, format: Format) -> String {
    let view = changed(&skewed_run(run_id("default", "app-1")), |application, _| {
        name.clone_into(&mut application.name);
    });
    let limits = Limits { label_length: 20_000, ..Limits::default() };
    let snapshot = build(&[view], &[], &TelemetrySnapshot::default(), &limits, at(80));
    let series = parse(&render(&Arc::new(snapshot), format));
    let names: BTreeSet<_> = series
        .keys()
        .filter(|(metric, _)| metric == "spark_application_info" || metric == "spark_finding")
        .map(|(_, labels)| labels["app_name"].clone())
        .collect();
    assert_eq!(names.len(), 1);
    names.into_iter().next().expect("one")
}

#[test]
fn ten_kilobytes_of_hostile_name_survive() {
    let name = HOSTILE.repeat(10_240 / HOSTILE.len() + 1);
    assert!(name.len() >= 10_240);
    for format in [Format::OpenMetrics, Format::Prometheus] {
        assert_eq!(exposed_name(&name, format), clean(&name, 20_000));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_label_value_comes_back(name in prop_oneof![any::<String>(), "[\"\\\\\n{}=, 🚀a#]{0,60}"]) {
        for format in [Format::OpenMetrics, Format::Prometheus] {
            prop_assert_eq!(exposed_name(&name, format), clean(&name, 20_000));
        }
    }
}
