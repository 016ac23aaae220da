//! What the default rules take out of names, and what they must not.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::{Names, UNNAMED};

fn rewritten(name: &str) -> String {
    Names::default().rewrite(name)
}

#[test]
fn what_is_of_one_run_goes() {
    for (name, expected) in [
        ("etl-2026-11-29", "etl"),
        ("etl_2026_11_29", "etl"),
        ("etl 29.11.2026", "etl"),
        ("etl-11/29/2026", "etl"),
        ("etl-2026-1-5", "etl"),
        ("etl20261129", "etl"),
        ("etl2026-11-29", "etl"),
        ("job_20261129T0300", "job"),
        ("job_20261129_030000", "job"),
        ("job-20261129T030000Z-orders", "job-orders"),
        ("job-202611290300", "job"),
        ("report 2026/11/29", "report"),
        ("report 2026/11/29 (daily)", "report (daily)"),
        ("report (2026-11-29)", "report"),
        ("report [run of 2026-11-29 03:00]", "report [run of]"),
        ("report (2026-11-29, eu)", "report (eu)"),
        ("2026-11-29 report", "report"),
        ("2026-11-29_03-00-00.123_report", "report"),
        ("report 29 Nov 2026", "report"),
        ("report-nov-2026", "report"),
        ("report Sun Nov 29 03:00:00 UTC 2026", "report"),
        ("report Sunday, 29 November 2026 03:00:00 GMT+0100", "report"),
        ("report Sun Nov 29 2026 03:00:00 GMT+0100", "report"),
        ("1764390000.123 report", "report"),
        ("report_1764390000.123456", "report"),
        ("report-29NOV2026", "report"),
        ("Report Nov 29, 2026", "Report"),
        ("orders-2026-W48", "orders"),
        ("orders-2026W48-2", "orders"),
        ("orders-2026-Q4-final", "orders-final"),
        ("orders-2026-11", "orders"),
        ("orders_202611_eu", "orders_eu"),
        ("orders-2026", "orders"),
        ("orders-2026-333", "orders"),
        ("orders 03:00:00", "orders"),
        ("load_2026-11-29_03-00-00_daily", "load_daily"),
        ("load-2026-11-29T03:00:00.123456+00:00-eu", "load-eu"),
        ("load/dt=2026-11-29/eu", "load/eu"),
        ("load_run_date=2026-11-29", "load"),
        ("load year=2026/month=11/day=29", "load"),
        ("load dt=20261129,hour=3", "load"),
        ("dag.task.scheduled__2026-11-29T03:00:00+00:00", "dag.task"),
        ("dag__manual__2026-11-29T03:00:00.123456+00:00", "dag"),
        ("dag-scheduled--2026-11-29t030000-0000", "dag"),
        ("dag_scheduled__2026-11-29T03:00:00+00:00_orders", "dag_orders"),
        ("x-5f3c9a1e2b7d", "x"),
        ("x-5F3C9A1E", "x"),
        ("5f3c9a1e2b7d-x", "x"),
        ("deploy 8a7d3f1c4b2e9d0f8a7d3f1c4b2e9d0f8a7d3f1c (main)", "deploy (main)"),
        ("name-1764390000123", "name"),
        ("name-1764390000-eu", "name-eu"),
        ("spark-pi-1764390000123456789", "spark-pi"),
        ("nightly-4711", "nightly"),
        ("nightly-4711-4712", "nightly"),
        ("nightly (4711)", "nightly"),
        ("nightly_4711.py", "nightly.py"),
        ("script_20261129.py", "script.py"),
        ("nightly #12", "nightly"),
        ("nightly run 7", "nightly run"),
        ("job-1234-run-567", "job-1234-run"),
        ("livy-session-12", "livy-session"),
        ("query 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "query"),
        (
            "kyuubi_USER_SPARK_SQL_me_default_1b4e28ba-2fa1-11d2-883f-0016d3cca427",
            "kyuubi_USER_SPARK_SQL_me_default",
        ),
        ("Hive on Spark (sessionId = 1b4e28ba-2fa1-11d2-883f-0016d3cca427)", "Hive on Spark"),
        ("HIVE-1b4e28ba-2fa1-11d2-883f-0016d3cca427", "HIVE"),
        ("etl application_1764390000123_0012", "etl"),
        ("etl-app-20261129034512-0003", "etl"),
        ("Bestellungen für 2026-11-29", "Bestellungen für"),
        ("注文-2026-11-29", "注文"),
        // Neither the version nor a part of it is a date.
        ("load-1.2.20261129", "load-1.2"),
        ("scala-2.13-2026", "scala-2.13"),
        ("kafka_0.10_2026-11-29", "kafka_0.10"),
        ("a-2026-11-29-1b4e28ba-2fa1-11d2-883f-0016d3cca427-5f3c9a1e2b7d-b", "a-b"),
    ] {
        assert_eq!(rewritten(name), expected, "{name}");
    }
}

#[test]
fn what_may_tell_jobs_apart_stays() {
    for name in [
        "step2",
        "step-2",
        "load-step-2",
        "v2",
        "model-v2",
        "etl-v1.2.3",
        "s3-copy",
        "top10",
        "top-100",
        "2d-grid",
        "2g",
        "deadbeef",
        "deadbeef-load",
        "facade",
        "cafe2026",
        "decade2020-census",
        "covid19",
        "eu-west-1",
        "zone-101",
        "http-404",
        "k8s",
        "sha256",
        "utf8",
        "utf-16",
        "base64",
        "ipv4",
        "x86-64",
        "log4j-2",
        "web2.0",
        "p95-latency",
        "orders-7d",
        "last-30-days",
        "10-minute-rollup",
        "365-days",
        "24x7",
        "report-q3",
        "query-14",
        "tpcds query 1401",
        "customer-1001",
        "customer-1001-export",
        "port-8080",
        "spark-3.5.1",
        "10.0.0.7",
        "2026-budget",
        "census-2000s",
        "a1b2",
        "step-3-of-5",
        "account-12345678-sync",
        "country-12",
        "dry-run",
        "backup at 03:00",
        "16:9-transcode",
        "job(3)",
        "region 12 (eu)",
        "Spark Pi",
        "PySparkShell",
        "SparkSQL::10.1.2.3",
        "local-copy",
        "spark-application",
        "manual__load",
        "scheduled",
        "load-1.2.20261129x",
        "scala-2.13",
        "top-1000",
        "us-zip-90210",
        "-x-",
        "42",
        "_other",
        "_unnamed",
        "accede12",
        "feed-me",
        "c#7",
        "run2",
        "sessions",
        "timestamp",
        "date",
        "may-june",
        "march",
        "mar 5",
        "1-2-3",
        "3-D",
        "e2e-tests",
    ] {
        assert_eq!(rewritten(name), name);
    }
}

#[test]
fn a_name_that_is_only_an_id_is_unnamed() {
    for name in [
        "",
        " ",
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "app-20261129034512-0003",
        "application_1764390000123_0012",
        "local-1764390000123",
        "spark-8a7d3f1c4b2e9d0f8a7d3f1c4b2e9d0f",
        "spark-application-1764390000123",
        "5f3c9a1e2b7d",
        "2026-11-29",
        "1764390000123",
        "20261129T0300",
        "(2026-11-29)",
        "4711",
    ] {
        assert_eq!(rewritten(name), UNNAMED, "{name}");
    }
}

/// Whatever stands around it, and however it is nested.
#[test]
fn hostile_names_take_no_longer_than_they_are_long() {
    let nested = format!("x{}2026-11-29{}", "(".repeat(500), ")".repeat(500));
    assert_eq!(rewritten(&nested), "x");
    for hostile in [
        "2026-11-29-".repeat(10_000),
        "1234-".repeat(20_000),
        "deadbeef1-".repeat(10_000),
        "(2026-11-29".repeat(10_000),
        "dt=2026-11-29/".repeat(8_000),
        "scheduled__".repeat(10_000),
        "2026-11-".repeat(13_000),
        "é2026-11-29".repeat(9_000),
        "0".repeat(100_000),
        "-".repeat(100_000),
        "\0".repeat(100_000),
        nested,
    ] {
        let started = Instant::now();
        let name = rewritten(&hostile);
        assert_eq!(rewritten(&name), name);
        // Built without optimisation; the cut comes first.
        let took = started.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?} for {}", &hostile[..12]);
    }
}

/// Parts of names, so that the rules meet each other.
fn parts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z]{1,6}",
        "[0-9]{1,14}",
        "[0-9a-f]{6,14}",
        Just("2026-11-29".to_owned()),
        Just("20261129T0300".to_owned()),
        Just("03:00:00".to_owned()),
        Just("1b4e28ba-2fa1-11d2-883f-0016d3cca427".to_owned()),
        Just("scheduled__".to_owned()),
        Just("dt=".to_owned()),
        Just("run".to_owned()),
        Just("2026".to_owned()),
        "[-_ ./:#()\\[\\]\"=]{1,3}",
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn once_is_enough_and_nothing_grows(name in prop_oneof![parts(), any::<String>(), "[0-9a-fA-F_:. -]{0,60}"]) {
        let once = rewritten(&name);
        prop_assert_eq!(rewritten(&once), once.as_str());
        prop_assert!(!once.trim().is_empty());
        prop_assert!(once == UNNAMED || once.len() <= name.len());
    }

    /// The date of a run never decides under which name it is kept.
    #[test]
    fn every_day_is_the_same_name(
        word in "[a-z]{2,8}", days in 0_i64..40_000, form in 0_usize..6,
    ) {
        let epoch = jiff::civil::date(1990, 1, 1);
        let date = epoch.checked_add(jiff::SignedDuration::from_hours(days * 24)).expect("in range");
        let form = ["%Y-%m-%d", "%Y%m%d", "%Y_%m_%d", "%d.%m.%Y", "%Y/%m/%d", "%Y-W%V"][form];
        // Compact dates of other centuries may be ids.
        prop_assume!(form != "%Y%m%d" || date.year() >= 2000);
        prop_assume!(form != "%Y-W%V" || date.year() < 2099);
        // `dec` is a part of a date itself.
        prop_assume!(rewritten(&word) == word);
        prop_assert_eq!(rewritten(&format!("{word}-{}", date.strftime(form))), word);
    }
}
