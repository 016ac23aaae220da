//! The dashboards of `dashboards/`: what they ask for exists, what they say is
//! readable, and they are what their source makes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::promql::problems;

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
