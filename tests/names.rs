//! The daemon knows jobs by their names: runs whose names differ by a date are
//! one name on every series, by the operator's rules or the default ones, and
//! what they cost stands beside them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::real::{daemon, until};
use common::{ended_now, moved, now_ms, plain_log, value};

const SOON: Duration = Duration::from_mins(2);

/// The recorded run under another name and id.
fn named(name: &str, id: &str) -> String {
    let log = plain_log("executor_idle_removed/4.3.0");
    let start = log.lines().find(|line| line.contains("SparkListenerApplicationStart")).unwrap();
    let mut event: serde_json::Value = serde_json::from_str(start).unwrap();
    event["App Name"] = name.into();
    event["App ID"] = id.into();
    // A reader tells events by the beginning of their lines.
    let event = event.to_string();
    let kind = "{\"Event\":\"SparkListenerApplicationStart\",";
    let rest = event[1..].replace("\"Event\":\"SparkListenerApplicationStart\",", "");
    log.replace(start, &format!("{kind}{rest}"))
}

#[tokio::test]
async fn runs_of_a_job_have_one_name_and_a_price() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    for (name, id) in [
        ("orders-2026-11-28", "app-1"),
        ("orders_20261129T0300", "app-2"),
        ("export-customer-17", "app-3"),
        ("app-20261129034512-0003", "app-4"),
        ("load password=hunter2", "app-5"),
    ] {
        std::fs::write(logs.join(id), named(name, id)).unwrap();
    }
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters: [{{name: c, event_log_dirs: ['{}']}}]\nintervals: {{event_log_dir: 1s}}\n\
         names:\n  rules:\n  - {{pattern: '(.+)-customer-\\d+', replacement: '$1'}}\n\
         prices: {{core_hour: 3600, gib_hour: 0, currency: EUR}}\n",
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let (mut exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let text = until(&format!("{address}/metrics"), SOON, |text| {
        let by_name = text.matches("spark_application_runs_last_end_timestamp_seconds{").count();
        (text.matches("spark_application_info{").count() == 5 && by_name == 4)
            .then(|| text.to_owned())
    })
    .await;
    let of_runs = |name: &str| {
        let label = format!("app_name=\"{name}\"");
        let infos = text.lines().filter(|line| line.starts_with("spark_application_info{"));
        infos.filter(|line| line.contains(&label)).count()
    };
    for (name, runs) in
        [("orders", 2), ("export", 1), ("_unnamed", 1), ("load password=<redacted>", 1)]
    {
        assert_eq!(of_runs(name), runs, "{name}");
        let labels = format!("{{spark_cluster=\"c\",app_name=\"{name}\"");
        for series in [
            "spark_application_runs_last_end_timestamp_seconds",
            "spark_application_runs_duration_seconds_count",
        ] {
            let found = text.lines().filter(|line| line.starts_with(&format!("{series}{labels}")));
            assert_eq!(found.count(), 1, "{series} of {name}");
        }
    }
    assert!(!text.contains("hunter2"));

    // A core-second for 1 EUR: the cost is what was bought.
    let value = |series: &str| value(&text, series).unwrap_or_else(|| panic!("no {series}"));
    let run = "spark_cluster=\"c\",app_id=\"app-1\",attempt_id=\"\"";
    let bought = value(&format!("spark_application_bought_core_seconds{{{run}}}"));
    let cost = value(&format!("spark_application_cost{{{run},currency=\"EUR\"}}"));
    assert!(bought > 10.0 && (cost - bought).abs() < 1e-6, "{cost} is not {bought}");
    assert_eq!(exporter.terminate(Duration::from_secs(30)), 0);
}

/// The tempting wrong verdicts are beside it: runs that people start have no
/// rhythm, and nothing is expected of what the operator excepts.
#[tokio::test]
async fn a_success_is_due_as_learned_or_as_the_operator_says() {
    const HOUR: i64 = 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let end = now_ms();
    let plain = ended_now("executor_idle_removed/4.3.0", "app-0");
    // Hours ago.
    for (name, runs) in [
        ("hourly", [1.0, 2.0, 3.0, 4.1, 5.0]),
        ("excepted", [1.0, 2.0, 3.0, 4.0, 5.0]),
        ("by hand", [1.0, 1.1, 4.0, 4.2, 9.0]),
        ("daily", [30.0, 31.0, 32.0, 33.0, 34.0]),
    ] {
        for (number, hours) in runs.into_iter().enumerate() {
            let id = format!("app-{}-{number}", name.replace(' ', "-"));
            let own_name =
                plain.split_once("\"App Name\":\"").unwrap().1.split_once('"').unwrap().0;
            let log = moved(&plain, -(hours * HOUR as f64) as i64)
                .replace("\"app-0\"", &format!("\"{id}\""))
                .replace(
                    &format!("\"App Name\":\"{own_name}\""),
                    &format!("\"App Name\":\"{name}\""),
                );
            std::fs::write(logs.join(&id), log).unwrap();
        }
    }
    let config = folder.path().join("config.yml");
    let text = format!(
        "clusters: [{{name: c, event_log_dirs: ['{}']}}]\nintervals: {{event_log_dir: 1s}}\n\
         names:\n  expected:\n  - {{app_name: 'exc.*', within: never}}\n\
         \x20 - {{app_name: daily, within: 26h}}\n  - {{app_name: never-seen, within: 3h}}\n",
        logs.display()
    );
    std::fs::write(&config, text).unwrap();
    let (mut exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
    let due = |name: &str| {
        let basis = if name == "hourly" { "learned" } else { "configured" };
        format!(
            "spark_application_runs_success_due_timestamp_seconds{{spark_cluster=\"c\",app_name=\"{name}\",basis=\"{basis}\"}}"
        )
    };
    let text = until(&format!("{address}/metrics"), SOON, |text| {
        let judged = text.matches("spark_application_runs_success_interval_seconds{").count() == 4;
        (judged && value(text, &due("hourly")).is_some()).then(|| text.to_owned())
    })
    .await;
    let hours = |name: &str| value(&text, &due(name)).map(|due| (due - end as f64 / 1e3) / 3_600.0);
    let near = |name: &str, expected: f64| {
        let found = hours(name).unwrap_or_else(|| panic!("{name} has none in {text}"));
        assert!((found - expected).abs() < 0.05, "{name}: {found}, not {expected}");
    };
    // The last an hour ago, and one is usual every hour: due within two.
    near("hourly", 1.0);
    near("daily", -4.0);
    // From the daemon's start.
    near("never-seen", 3.0);
    for none in ["by hand", "excepted"] {
        assert!(!text.contains(&format!("app_name=\"{none}\",basis")), "{none}");
    }
    let row = "spark_application_runs_failures_in_a_row{spark_cluster=\"c\",app_name=\"hourly\"}";
    assert_eq!(value(&text, row), Some(0.0));
    let never = "spark_application_runs_total{spark_cluster=\"c\",app_name=\"never-seen\",outcome=\"failed\"}";
    assert_eq!(value(&text, never), Some(0.0));
    assert!(
        value(&text, "spark_exporter_threshold{rule=\"data_skew\",threshold=\"run_time_ratio\"}")
            == Some(4.0)
    );
    assert_eq!(exporter.terminate(Duration::from_secs(30)), 0);
}
