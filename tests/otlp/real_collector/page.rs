//! `docs/opentelemetry.md` against what really arrives and what is really
//! understood.

use std::collections::BTreeSet;
use std::process::Command;

use spark_exporter::metrics::catalogue::CATALOGUE;

use super::traces::{Of, of, whole_trace};
use crate::collector::{Collector, Options};
use crate::common::real::{part, root};
use crate::log::Log;
use crate::received::Received;
use crate::world::{RUNS, SOON, Setup, logs};

pub(super) fn page() -> String {
    std::fs::read_to_string(root().join("docs/opentelemetry.md")).unwrap()
}

/// What the rows between two marks name in their first column.
fn named(page: &str, what: &str) -> BTreeSet<String> {
    let begin = format!("<!-- attributes: {what} -->");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (rows, _) = rest.split_once("<!-- attributes: end -->").unwrap();
    let first = rows.lines().filter_map(|row| row.split('|').nth(1));
    first.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// What is not in the runs that the test sends.
const ELSEWHERE: &[&str] = &[
    "k8s.namespace.name",
    "k8s.pod.name",
    "k8s.pod.uid",
    "k8s.node.name",
    "spark.application.attempt.id",
    // With prices, with texts shown, beyond limits, of sources that tell less.
    "spark.application.cost.currency",
    "spark.sql_execution.plan_nodes_omitted",
    "spark.sql_execution.description",
    "spark.sql_execution.error",
    "spark.job.failure_reason",
    "spark.stage.failure_reason",
    "spark.task.speculative",
    "spark.time.estimated",
    "spark.start_observed",
    "spark.end_observed",
    "spark.spans.dropped",
    "spark.findings.withdrawn",
    "spark.finding.preliminary",
    "spark.finding.configuration_key",
    "spark.executor.host",
];

/// `spark.finding.evidence.run_time.value` is named as
/// `spark.finding.evidence.NAME.value`, a word of a closed list as `WORD`.
fn is_named(key: &str, named: &BTreeSet<String>) -> bool {
    named.iter().any(|name| {
        let (mut words, mut of_key) = (name.split('.'), key.split('.'));
        loop {
            match (words.next(), of_key.next()) {
                (None, None) => return true,
                (Some("NAME" | "WORD"), Some(_)) => {}
                (Some(word), Some(part)) if word == part => {}
                _ => return false,
            }
        }
    })
}

/// A metric's name with its unit at the end, and perhaps a word after it.
fn is_a_metric(key: &str) -> bool {
    CATALOGUE.iter().any(|metric| {
        let unit = metric.unit.word().map(|word| format!("_{word}")).unwrap_or_default();
        let whole = metric.otel.ends_with(unit.trim_start_matches('_'));
        let name = format!("{}{}", metric.otel, if whole { "" } else { &unit });
        key.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn keys<'a>(
    all: impl Iterator<Item = &'a std::collections::BTreeMap<String, String>>,
) -> BTreeSet<String> {
    all.flat_map(|attributes| attributes.keys().cloned()).collect()
}

fn compare(page: &str, what: &str, arrived: &BTreeSet<String>) {
    let named = named(page, what);
    let unnamed: Vec<&String> =
        arrived.iter().filter(|key| !is_named(key, &named) && !is_a_metric(key)).collect();
    assert!(unnamed.is_empty(), "docs/opentelemetry.md, {what}: does not name {unnamed:#?}");
    let invented: Vec<&String> = named
        .iter()
        .filter(|name| {
            let one = BTreeSet::from([(*name).clone()]);
            !ELSEWHERE.contains(&name.as_str()) && !arrived.iter().any(|key| is_named(key, &one))
        })
        .collect();
    assert!(
        invented.is_empty(),
        "docs/opentelemetry.md, {what}: these never arrive: {invented:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_those_that_arrive() {
    let collector = Collector::start(Options::default());
    let logs = logs(&RUNS);
    let exporter = Setup::to("http/protobuf", &collector.http()).start(logs.path());
    for (recorded, app_id) in RUNS {
        if !recorded.starts_with("streaming") {
            whole_trace(&collector, app_id, &Log::read(logs.path(), app_id));
        }
    }
    exporter.settled(RUNS.len()).await;
    collector.until("records and points", SOON, |received| {
        (!received.records.is_empty() && !received.points.is_empty()).then_some(())
    });
    exporter.stop();
    let received = collector.received();
    let page = page();
    let runs = received.spans.iter().map(|span| &span.resource);
    compare(&page, "resource", &keys(runs));
    compare(&page, "spans", &keys(received.spans.iter().map(|span| &span.attributes)));
    let events = received.spans.iter().flat_map(|span| &span.events);
    let findings =
        events.filter(|event| event.name == "spark.finding").map(|event| &event.attributes);
    let records = received.records.iter().map(|record| &record.attributes);
    compare(&page, "findings", &keys(findings.chain(records)));
    ids_can_be_worked_out(&page, &received);
}

/// The Python of the page, run.
fn ids_can_be_worked_out(page: &str, received: &Received) {
    let (_, rest) = page.split_once("```python\nimport").expect("the snippet");
    let (snippet, _) = rest.split_once("```").unwrap();
    let spans = received.trace_of(RUNS[0].1);
    let application = spans.iter().find(|span| of(span) == Of::Application).unwrap();
    let start = application.start / 1_000_000;
    let mut program =
        format!("import{snippet}\nrun = trace_id('default', '{}', '', {start})\n", RUNS[0].1);
    program += "print(run)\n";
    let mut expected = vec![application.trace.clone()];
    for span in &spans {
        let name = match of(span) {
            Of::Application => "application".to_owned(),
            Of::Execution(id) => format!("sql {id}"),
            Of::Job(id) => format!("job {id}"),
            Of::Stage(id, attempt) => format!("stage {id}.{attempt}"),
            Of::Task(id) => format!("task {id}"),
        };
        program.push_str(&["print(span_id(run, '", &name, "'))\n"].concat());
        expected.push(span.id.clone());
    }
    let python = part(&["python-tools"]).join("bin/python");
    let output = Command::new(python).args(["-c", &program]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

/// The picture is what a Collector receives of the recorded run today.
#[test]
fn the_picture_is_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("fresh.svg");
    let output = Command::new("python3")
        .arg("-B")
        .arg(root().join("docs/opentelemetry/waterfall.py"))
        .arg(&fresh)
        .args(["--program", env!("CARGO_BIN_EXE_spark-exporter")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let fresh = std::fs::read_to_string(fresh).unwrap();
    let shown = std::fs::read_to_string(root().join("docs/opentelemetry/skewed-run.svg")).unwrap();
    assert!(fresh.contains("data_skew, hot_key"), "it says why");
    assert!(fresh == shown, "docs/opentelemetry/skewed-run.svg is out of date: make waterfall");
}

/// Fenced blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&*fence).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

#[test]
fn what_it_tells_to_write_is_understood() {
    let page = page();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let (mut of_collector, mut of_exporter) = (0, 0);
    for block in blocks(&page, "yaml") {
        std::fs::write(&file, block).unwrap();
        let output = if block.starts_with("receivers:") {
            of_collector += 1;
            let collector = part(&["collector"]).join("otelcol");
            Command::new(collector).arg("validate").arg("--config").arg(&file).output().unwrap()
        } else {
            of_exporter += 1;
            let endpoint = "otlp:\n  endpoint: http://localhost:4318\n";
            let block = if block.contains("endpoint:") {
                block.to_owned()
            } else {
                block.replace("otlp:\n", endpoint)
            };
            let text = format!("clusters: [{{name: default, event_log_dirs: [/tmp]}}]\n{block}");
            std::fs::write(&file, text).unwrap();
            Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
                .arg("check-config")
                .arg(&file)
                .output()
                .unwrap()
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{said}");
    }
    assert!(of_collector >= 1 && of_exporter >= 2, "{of_collector}, {of_exporter}");
}

/// Every variable that the page names is one that the daemon reads, and the
/// other way round.
#[test]
fn variables_are_those_that_are_read() {
    let page = page();
    let names = regex::Regex::new(r"\bOTEL_[A-Z_]+\b").unwrap();
    // Of one signal or of all: the same variable.
    let plain = |name: &str| {
        ["METRICS", "TRACES", "LOGS"].iter().fold(name.to_owned(), |name, signal| {
            let of_signal = format!("OTEL_EXPORTER_OTLP_{signal}_");
            let own = ["TEMPORALITY_PREFERENCE", "DEFAULT_HISTOGRAM_AGGREGATION"];
            match name.strip_prefix(&of_signal) {
                Some(rest) if !own.contains(&rest) => format!("OTEL_EXPORTER_OTLP_{rest}"),
                _ => name,
            }
        })
    };
    let on_page: BTreeSet<String> =
        names.find_iter(&page).map(|found| plain(found.as_str())).collect();
    let source = std::fs::read_to_string(root().join("src/config/otlp/environment.rs")).unwrap();
    let mut read: BTreeSet<String> = regex::Regex::new("\"(OTEL_[A-Z_]+)\"")
        .unwrap()
        .captures_iter(&source)
        .map(|found| found[1].to_owned())
        .collect();
    for found in regex::Regex::new("name\\(\"([A-Z_]+)\"\\)|file\\(\"([A-Z_]+)\"\\)")
        .unwrap()
        .captures_iter(&source)
    {
        let rest = found.get(1).or(found.get(2)).unwrap().as_str();
        read.insert(format!("OTEL_EXPORTER_OTLP_{rest}"));
    }
    for signal in ["METRICS", "TRACES", "LOGS"] {
        read.insert(format!("OTEL_{signal}_EXPORTER"));
    }
    // Only warned of.
    for name in ["OTEL_CONFIG_FILE", "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"] {
        read.remove(name);
    }
    assert!(read.len() > 15, "{read:?}");
    assert_eq!(on_page, read);
}
