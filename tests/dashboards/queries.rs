//! What dashboards ask Prometheus for exists: metrics, labels, and the values
//! of labels that come from closed lists.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::label::{MatchOp, Matcher};
use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::{Rule, Severity};
use spark_exporter::metrics::catalogue::{CATALOGUE, Kind, Scope};
use spark_exporter::model::State;

use crate::common::promql::{More, problems, selectors};
use crate::read::all;

/// Made by Prometheus where it has our rules: what alerts about runs have, and
/// some of those about the exporter.
const ALERTS: More<'static> = &[(
    "ALERTS",
    &[
        "alertname",
        "alertstate",
        "severity",
        "spark_cluster",
        "app_name",
        "app_id",
        "attempt_id",
        "rule",
    ],
)];

#[test]
fn every_metric_and_every_label_is_in_the_catalogue() {
    let mut queries = 0;
    for dashboard in all() {
        for query in dashboard.queries() {
            let problems = problems(&query.text, ALERTS);
            assert!(problems.is_empty(), "{}: {problems:?}\n{}", query.place, query.text);
            queries += 1;
        }
    }
    assert!(queries > 250, "{queries}");
}

/// A misspelt rule, state or threshold is no error anywhere, only an empty
/// panel or a count that stays at 0.
#[test]
fn values_of_labels_are_words_of_the_program() {
    let words = |values: &[&str]| values.iter().map(|word| (*word).to_owned()).collect();
    let states: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    let severities: Vec<&str> = Severity::ALL.iter().map(|severity| severity.as_str()).collect();
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    let closed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::from([
        ("state", words(&states)),
        ("outcome", words(&states)),
        ("severity", words(&severities)),
        ("rule", words(&rules)),
        ("status", words(&["active", "succeeded", "failed", "killed"])),
    ]);
    let mut seen = BTreeSet::new();
    for dashboard in all() {
        for query in dashboard.queries() {
            for matcher in selectors(&query.text).iter().flat_map(|found| &found.matchers.matchers)
            {
                let Some(closed) = closed.get(matcher.name.as_str()) else { continue };
                seen.insert(matcher.name.clone());
                for word in alternatives(matcher) {
                    assert!(closed.contains(word), "{}: {} {word}", query.place, matcher.name);
                }
            }
        }
    }
    assert_eq!(seen.len(), closed.len(), "{seen:?}");
}

fn alternatives(matcher: &Matcher) -> Vec<&str> {
    match matcher.op {
        MatchOp::Equal | MatchOp::NotEqual => vec![&matcher.value],
        MatchOp::Re(_) | MatchOp::NotRe(_) => matcher.value.split('|').collect(),
    }
}

#[test]
fn limits_in_panels_are_thresholds_of_the_configuration() {
    let thresholds = serde_json::to_value(Thresholds::default()).unwrap();
    let mut seen = BTreeSet::new();
    for dashboard in all() {
        for query in dashboard.queries() {
            for selector in selectors(&query.text) {
                if selector.name.as_deref() != Some("spark_exporter_threshold") {
                    continue;
                }
                let value = |name: &str| {
                    let mut found = selector.matchers.matchers.iter().filter(|m| m.name == name);
                    found
                        .next()
                        .unwrap_or_else(|| panic!("{}: no {name}", query.place))
                        .value
                        .clone()
                };
                let (rule, threshold) = (value("rule"), value("threshold"));
                assert!(
                    !thresholds[&rule][&threshold].is_null(),
                    "{}: {rule}.{threshold}",
                    query.place
                );
                seen.insert((rule, threshold));
            }
        }
    }
    assert!(seen.len() >= 6, "{seen:?}");
}

/// The daemon's own counters of trouble, and everything about queries, stages,
/// SQL and names that is worth a series, is on a dashboard; what is not is
/// listed here with where it shows instead.
#[test]
fn what_is_exposed_is_shown() {
    const NOT_SHOWN: [(&str, &str); 15] = [
        (
            "spark_application_end_timestamp_seconds",
            "of a run that ended the data speaks of no later moment",
        ),
        ("spark_application_exit_code", "the state says what it means"),
        ("spark_application_stages_omitted", "marked in data_quality"),
        ("spark_application_sql_executions", "the longest are listed"),
        ("spark_application_gc_ratio", "by stage and executor; a finding where it matters"),
        ("spark_application_task_failure_ratio", "by stage; counts by status"),
        ("spark_application_executors_added", "executors are listed"),
        ("spark_application_executors_removed", "executors are listed"),
        ("spark_application_runs_baseline_size", "a baseline needs five"),
        ("spark_application_runs_success_interval_seconds", "what is due follows from it"),
        ("spark_application_runs_last_end_timestamp_seconds", "last success and runs"),
        ("spark_application_runs_memory_spilled_bytes_total", "disk says it"),
        (
            "spark_exporter_config_last_reload_success_timestamp_seconds",
            "of trouble, in its runbook",
        ),
        (
            "spark_exporter_web_config_last_reload_success_timestamp_seconds",
            "of trouble, in its runbook",
        ),
        ("spark_application_runs_duration_seconds", "a histogram for people's own objectives"),
    ];
    let mut used = BTreeSet::new();
    for dashboard in all() {
        for query in dashboard.queries() {
            used.extend(selectors(&query.text).into_iter().filter_map(|selector| selector.name));
        }
    }
    // Sums of task time and volumes of a run are there for people's own
    // queries: time parts and bytes are shown.
    let own_queries = |name: &str| {
        (name.starts_with("spark_application_task_") && name.ends_with("_time_seconds"))
            || name == "spark_application_task_scheduler_delay_seconds"
            || name.ends_with("_records")
            || name.starts_with("spark_application_cache")
            || name == "spark_application_memory_spilled_bytes"
    };
    let mut wrong = Vec::new();
    for metric in CATALOGUE {
        let asked = used.iter().any(|name| {
            name == metric.name || metric.kind == Kind::Histogram && name.starts_with(metric.name)
        });
        let excused = NOT_SHOWN.iter().any(|(name, _)| *name == metric.name);
        if metric.scope == Scope::Run && own_queries(metric.name) && !asked {
            continue;
        }
        let stage_or_executor_detail = matches!(metric.scope, Scope::Stage | Scope::Executor)
            && (metric.name.ends_with("_records")
                || metric.name.contains("storage_memory")
                || metric.name.ends_with("_timestamp_seconds")
                || metric.name == "spark_executor_input_bytes"
                || metric.name == "spark_stage_running_seconds");
        if asked == (excused || stage_or_executor_detail) {
            wrong.push((metric.name, asked));
        }
    }
    assert!(wrong.is_empty(), "shown (or not) against what is said here: {wrong:?}");
}
/// The judge itself: what it lets pass and what it does not.
#[test]
fn a_query_is_held_against_the_catalogue() {
    for right in [
        r#"max by (app_id) (spark_application_duration_seconds{job=~"a", app_id="x"})"#,
        "spark_application_duration_seconds * on (spark_cluster, app_id, attempt_id) \
           group_left (app_name) spark_application_info",
        "histogram_quantile(0.9, sum by (app_name, le) \
           (increase(spark_application_runs_duration_seconds_bucket[7d])))",
        "topk(5, max without (instance, pod) (spark_finding_wall_seconds)) > 0",
        r#"label_replace(spark_finding, "what", "$1", "rule", "(.+)")"#,
        r#"sum by (rule) (ALERTS{alertstate="firing"})"#,
    ] {
        let more: &[(&str, &[&str])] = &[("ALERTS", &["alertstate", "rule"])];
        assert_eq!(problems(right, more), Vec::<String>::new(), "{right}");
    }
    for (wrong, why) in [
        ("spark_application_duration", "not in the catalogue"),
        ("spark_stage_gc_ratio{stage=\"1\"}", "has no label stage"),
        ("sum by (app_name) (spark_application_duration_seconds)", "grouped by app_name"),
        ("sum by (app_id) (sum by (app_name) (spark_finding))", "grouped by app_id"),
        ("spark_stage_gc_ratio * on (app_name) spark_application_info", "left side: app_name"),
        (
            "spark_stage_gc_ratio * on (app_id) group_left (name) spark_application_info",
            "group_left: name",
        ),
        (
            "histogram_quantile(0.9, sum(spark_application_runs_duration_seconds_bucket))",
            "reads le",
        ),
        ("sum(spark_finding", "no PromQL"),
        ("{app_id=\"x\"}", "names its metric"),
        ("ALERTS", "not in the catalogue"),
    ] {
        let found = problems(wrong, &[]);
        assert!(found.iter().any(|problem| problem.contains(why)), "{wrong}: {found:?}");
    }
}
