//! Documentation that is made: `docs/metrics.md` from the catalogue, the
//! example of the README from the program. `make docs` writes it; here it is
//! compared.

use std::fmt::Write;

use spark_exporter::config::{Limits, Thresholds};
use spark_exporter::diagnose::{Rule, about};
use spark_exporter::metrics::catalogue::{CATALOGUE, Metric, Scope};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");

#[test]
fn the_page_of_metrics_is_what_the_catalogue_says() {
    let expected = page(&Limits::default());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).expect("a folder");
        std::fs::write(FILE, &expected).expect("written");
    }
    let found = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        found == expected,
        "docs/metrics.md is not what the catalogue says: \
         run make docs"
    );
}

const DIAGNOSTICS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/diagnostics.md");
const RULES: &str = "<!-- rules: made from src/diagnose/rules by make docs -->\n";
const END_OF_RULES: &str = "<!-- end of rules -->";

#[test]
fn the_page_of_rules_is_what_they_say_of_themselves() {
    let found = std::fs::read_to_string(DIAGNOSTICS).expect("docs/diagnostics.md");
    let (before, rest) = found.split_once(RULES).expect("where the rules begin");
    let (_, after) = rest.split_once(END_OF_RULES).expect("where they end");
    let sections: String = Rule::ALL.into_iter().map(about_rule).collect();
    let expected = format!("{before}{RULES}\n{sections}{END_OF_RULES}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(DIAGNOSTICS, &expected).expect("written");
    } else {
        assert!(found == expected, "docs/diagnostics.md is not what the rules say: run make docs");
    }
}

/// One rule: what it says, its thresholds as they are by default, its
/// evidence, and the recorded runs that show it.
fn about_rule(rule: Rule) -> String {
    let about = about(rule);
    let name = rule.as_str();
    let mut out = format!("## {name}\n\n{}\n\n{}\n\n", about.meaning, about.details.trim());
    let thresholds = serde_json::to_value(Thresholds::default()).expect("thresholds");
    let own = thresholds[name].as_object().expect("a section of its own");
    let own: Vec<_> = own.iter().filter(|(key, _)| *key != "enabled").collect();
    if !own.is_empty() {
        out.push_str("| threshold | default |\n|---|---|\n");
        for (key, value) in own {
            writeln!(out, "| `{key}` | {} |", value.to_string().trim_matches('"'))
                .expect("written");
        }
        out.push('\n');
    }
    if !about.evidence.is_empty() {
        out.push_str("| evidence | |\n|---|---|\n");
        for (name, meaning) in about.evidence {
            writeln!(out, "| `{name}` | {meaning} |").expect("written");
        }
        out.push('\n');
    }
    for (what, runs) in [("Fires in", about.fires), ("Near misses", about.near_misses)] {
        if !runs.is_empty() {
            let runs: Vec<String> = runs.iter().map(|run| format!("`{run}`")).collect();
            writeln!(out, "*{what}* (recorded runs, `examples/logs`): {}.\n", runs.join(", "))
                .expect("written");
        }
    }
    for (run, verdict) in about.resists {
        writeln!(out, "*Resists*: in `{run}`, {verdict}.\n").expect("written");
    }
    out
}

fn of(scope: Scope) -> impl Iterator<Item = &'static Metric> {
    CATALOGUE.iter().filter(move |metric| metric.scope == scope)
}

/// Series of one subject of this scope, at most.
fn worst(scope: Scope) -> usize {
    of(scope).map(|metric| metric.times as usize).sum()
}

fn page(limits: &Limits) -> String {
    let mut out = String::new();
    let run = worst(Scope::Run);
    let finding = worst(Scope::Finding);
    let stage = worst(Scope::Stage);
    let sql = worst(Scope::SqlExecution);
    let query = worst(Scope::Query);
    let executor = worst(Scope::Executor);
    let (findings, stages, executors) =
        (limits.findings_exported, limits.stages_exported, limits.executors_exported);
    let (sqls, queries) = (limits.sql_executions_exported, limits.streaming_queries_exported);
    let application = run
        + finding * findings
        + stage * stages
        + sql * sqls
        + query * queries
        + executor * executors;
    let targets: usize =
        of(Scope::Daemon).filter(|metric| metric.labels.contains(&"target")).count();
    let name = worst(Scope::Name);
    let daemon: usize = of(Scope::Daemon)
        .filter(|metric| !metric.labels.contains(&"target"))
        .map(|metric| metric.times as usize)
        .sum();
    let small = run + finding * 2 + stage * 5 + sql * 2 + executor * 4;
    write!(
        out,
        "# Metrics

<!-- Made from the catalogue: make docs -->

Every metric of `/metrics`, in both text formats. Times are seconds, sizes are
bytes, ratios are plain numbers. A series is absent where the source cannot
tell its value: absent never means 0.

**Joining.** Series of one run carry `spark_cluster`, `app_id` and `attempt_id`
(empty where the resource manager starts only one). Facts such as the name are
on `spark_application_info`:

```promql
spark_application_task_gc_time_seconds
  * on (spark_cluster, app_id, attempt_id) group_left (app_name)
  spark_application_info
```

**Gauges, not counters.** What a run has done so far (task time, bytes, tasks)
is a gauge: Spark forgets old stages and executors, and a run is read anew from
its event log once it has ended, so such a total can shrink, which a counter
must not. Do not put `rate()` on it; compare runs by their totals, or use
`deriv()` on a running one. True counters (`_total`) are the daemon's own, and
those [by name of application](history.md), to which each run is added once.

**By name.** `app_name` is the name of a job: dates, ids and numbers of one run
are taken out of Spark's application name, or `names.rules` say what it is
([names](history.md#names)). It is the same on `spark_application_info`, on
findings and on the series by name, so these can be joined:

```promql
spark_application_duration_seconds
  * on (spark_cluster, app_id, attempt_id) group_left (app_name)
  spark_application_info
  / on (spark_cluster, app_name) group_left ()
  spark_application_runs_baseline_duration_seconds
```

`_unnamed` are applications without a name or with an id for one, `_other`
names beyond `limits.app_names`.

**How old.** Sources are read in the background and a scrape shows the latest
snapshot: `spark_exporter_snapshot_timestamp_seconds` says when it was made,
`spark_application_observed_timestamp_seconds` what moment a run's data speaks
of. A finished run keeps its series until its retention ends.

**Derived** metrics are worked out from what Spark sends, beside the numbers
they are made of. Prefer `spark_finding` for alerts: a finding has a floor in
seconds and a threshold from the configuration, a bare ratio has neither.

**Stability.** *Stable* names, labels and meanings change only after two minor
releases of notice. *Experimental* ones may change in a minor release.

## How many series

| for each | series, at most | how many of them |
|---|---:|---|
| run | {run} | all runs held (`limits.applications`, {applications}) |
| finding | {finding} | {findings} costliest of a run (`limits.findings_exported`) |
| stage attempt | {stage} | {stages} costliest of a run, active ones first (`limits.stages_exported`) |
| SQL execution | {sql} | {sqls} longest of a run, running ones first (`limits.sql_executions_exported`) |
| streaming query | {query} | {queries} of a run that told of progress last (`limits.streaming_queries_exported`) |
| executor | {executor} | {executors} of a run with the most task time, living ones first (`limits.executors_exported`) |
| name | {name} | all names (`limits.app_names`, {names}), and `_other` of each cluster |
| source | {targets} | all sources, up to 1,000 |
| daemon | {daemon} | one |

A run of 5 stages, 2 SQL executions, 4 executors and 2 findings has at most {small} series; the
largest possible run has {application}. One exposition has at most
`limits.series` ({series}) in all: beyond it the daemon's own series stay, then
come the numbers of every run, those of every name, then a run's findings, its
stages, its SQL executions, its streaming queries and its executors, running runs
first. A subject is shown as a whole or not at all. Whatever is left out is counted in
`spark_exporter_series_dropped_total`. With {names} names of {name} series each, names
take {all_names} at most.

Label values from outside are cut to `limits.label_length` ({length})
characters, and control characters in them become spaces. Text from users is
never a label, except `app_name`.
",
        applications = limits.applications,
        names = limits.app_names,
        all_names = name * limits.app_names,
        series = limits.series,
        length = limits.label_length,
    )
    .expect("a String takes it");
    for scope in Scope::ALL {
        section(&mut out, scope);
    }
    out
}

fn section(out: &mut String, scope: Scope) {
    let title = match scope {
        Scope::Run => "Runs",
        Scope::Finding => "Findings",
        Scope::Stage => "Stage attempts",
        Scope::SqlExecution => "SQL executions",
        Scope::Query => "Streaming queries",
        Scope::Executor => "Executors",
        Scope::Name => "Names",
        Scope::Daemon => "The daemon itself",
    };
    write!(out, "\n## {title}\n\n").expect("a String takes it");
    if !scope.labels().is_empty() {
        let labels: Vec<_> = scope.labels().iter().map(|label| format!("`{label}`")).collect();
        write!(out, "All have the labels {}.\n\n", labels.join(", ")).expect("a String takes it");
    }
    out.push_str("| metric | type | more labels | meaning | stability | OpenTelemetry |\n");
    out.push_str("|---|---|---|---|---|---|\n");
    for metric in of(scope) {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let unit = metric.unit.ucum();
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | `{}`{unit} |",
            metric.name,
            metric.kind.as_str(),
            labels.join(", "),
            metric.help,
            metric.stability.as_str(),
            metric.otel,
        )
        .expect("a String takes it");
    }
}

/// The example of the README is what the program prints.
#[test]
fn the_readme_shows_what_diagnose_prints() {
    const BEGIN: &str = "<!-- what diagnose prints: begin -->\n";
    const END: &str = "<!-- what diagnose prints: end -->";
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["diagnose", "examples/logs/hot_key/4.3.0"])
        .output()
        .expect("the program runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    // The rest is described: "Read a report".
    let (printed, _) = printed.split_once("\nExecution and timeline\n").expect("the section");
    let fresh = format!(
        "```text\n$ spark-exporter diagnose examples/logs/hot_key/4.3.0\n{printed}\nExecution and timeline\n  …\n```\n"
    );
    let readme = std::fs::read_to_string("README.md").expect("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("the begin mark");
    let (shown, after) = rest.split_once(END).expect("the end mark");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write("README.md", format!("{before}{BEGIN}{fresh}{END}{after}"))
            .expect("README.md can be written");
    } else {
        assert_eq!(shown, fresh, "README.md is out of date: make docs");
    }
}

/// Every word of a closed list that becomes a label value has its series from
/// the start, so that `rate()` sees the first increase.
#[test]
fn the_words_of_labels_are_those_the_parts_use() {
    use spark_exporter::fetch::FetchErrorKind;
    use spark_exporter::telemetry::{FETCH_ERROR_KINDS, LOG_FAILURES};
    for kind in FetchErrorKind::ALL {
        assert!(FETCH_ERROR_KINDS.contains(&kind.as_str()), "{}", kind.as_str());
    }
    assert_eq!(FETCH_ERROR_KINDS.len(), FetchErrorKind::ALL.len());
    let source = std::fs::read_to_string("src/eventlog/read.rs").expect("the source");
    let (_, body) = source.split_once("pub fn reason(&self)").expect("ReadError::reason");
    let (body, _) = body.split_once("\n    }\n").expect("its end");
    // A log that nobody wants is no failure, and never counted as one.
    let words = body.split('"').skip(1).step_by(2);
    let words: Vec<&str> = words.filter(|word| *word != "not_wanted").collect();
    assert!(words.len() >= 5, "{words:?}");
    for word in &words {
        assert!(LOG_FAILURES.contains(word), "{word} has no series from the start");
    }
    assert_eq!(words.len(), LOG_FAILURES.len());
}

/// Every line that people ask for is there, and each test that is said to show
/// it exists.
#[test]
fn every_line_of_the_coverage_names_tests_that_exist() {
    let page = std::fs::read_to_string("docs/coverage.md").expect("docs/coverage.md");
    let mut expected = Vec::new();
    for (letter, lines) in [("A", 11), ("B", 6), ("C", 15), ("D", 6)] {
        expected.extend((1..=lines).map(|line| format!("{letter}{line}")));
    }
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| line"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let ids: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(ids, expected, "each line once, in order");
    for row in rows {
        // Recorded runs stand in brackets after the test that goes over them.
        let words = row[2].split('`').skip(1).step_by(2);
        for run in words.clone().filter(|word| !word.contains(": ")) {
            let there = std::path::Path::new("examples/logs").join(run).is_dir();
            assert!(there, "{}: {run} is not recorded", row[0]);
        }
        let tests: Vec<(&str, &str)> = words.filter_map(|test| test.split_once(": ")).collect();
        assert!(!tests.is_empty(), "{} has no test", row[0]);
        for (file, function) in tests {
            let source = std::fs::read_to_string(file);
            let source = source.unwrap_or_else(|error| panic!("{}: {file}: {error}", row[0]));
            let begins = source.contains(&format!("fn {function}("));
            assert!(begins, "{}: {file} has no test {function}", row[0]);
        }
    }
}
