//! Whole runs, as a real History Server told them (tests/fixtures/rest, made
//! by `tests/spark/record`), read the way the daemon would read them.

mod common;

use std::time::Duration;

use common::fake_spark::FakeSpark;
use common::recorded_server::{answer, folder};
use serde_json::Value;
use spark_exporter::config::{HttpConfig, Limits, ServerUrl};
use spark_exporter::fetch::{FetchLimits, HttpClient, Timeouts};
use spark_exporter::model::{Application, DataQuality, FailureClass, State};
use spark_exporter::rest::Api;
use spark_exporter::rest::applications::{self, Filter};
use spark_exporter::rest::completed::{self, Options};

async fn read(version: &str, run: &str) -> Application {
    let folder = folder(version, run);
    let server = FakeSpark::start(move |asked| answer(&folder, asked)).await;
    let limits = FetchLimits::from(&Limits::default());
    let client = HttpClient::new(&HttpConfig::default(), Timeouts::HISTORY_SERVER, limits)
        .expect("a client from defaults");
    let base: ServerUrl = server.url("").parse().expect("a URL");
    let listed =
        applications::get(&Api::new(&client, &base), Filter::default()).await.expect("the list");
    let attempt = listed[0].latest().expect("an attempt");
    completed::read(&Api::new(&client, &base), "default", &listed[0], attempt, Options::default())
        .await
        .expect("the run")
}

const VERSIONS: [&str; 2] = ["3.5.9", "4.3.0"];
const RUNS: [&str; 5] = ["healthy", "hot_key", "spill", "task_failures", "sql_plans"];

#[tokio::test]
async fn every_recorded_run_is_read_whole() {
    for version in VERSIONS {
        for run in RUNS {
            let application = read(version, run).await;
            let name = format!("{version} {run}");
            let marks: Vec<DataQuality> = application.data_quality.iter().copied().collect();
            assert_eq!(marks, [DataQuality::SqlMetricsRounded], "{name}");
            assert_eq!(application.spark_version.as_deref(), Some(version));
            let expected = if version == "4.3.0" { State::Succeeded } else { State::Unknown };
            assert_eq!(application.state, expected, "{name}");
            assert!(application.duration().is_some_and(|span| span > Duration::ZERO), "{name}");
            assert!(!application.executors.is_empty() && !application.jobs.is_empty(), "{name}");
            let listed: Vec<Value> = serde_json::from_str(
                &std::fs::read_to_string(folder(version, run).join("stages.json")).expect(&name),
            )
            .expect(&name);
            assert_eq!(application.stages.len(), listed.len(), "{name}");
            let mut detailed = 0;
            for stage in &application.stages {
                assert!(!stage.job_ids.is_empty(), "{name} {}", stage.id);
                let data = listed
                    .iter()
                    .find(|data| {
                        data["stageId"] == stage.id.stage && data["attemptId"] == stage.id.attempt
                    })
                    .expect("it was listed");
                let sum = stage.measures.run_time.sum.expect("always there").as_millis();
                assert_eq!(Some(sum as u64), data["executorRunTime"].as_u64());
                // Two endpoints, two ways through Spark's store, one number.
                if let (Some(max), Some(slowest)) =
                    (stage.measures.run_time.max(), stage.slowest.first())
                {
                    assert_eq!(max, slowest.metrics.run_time, "{name} {}", stage.id);
                    detailed += 1;
                }
            }
            assert!(detailed > 0, "{name}");
        }
    }
}

#[tokio::test]
async fn a_hot_key_is_in_the_numbers() {
    for version in VERSIONS {
        let application = read(version, "hot_key").await;
        let skewed = application.stages.iter().any(|stage| {
            let measures = &stage.measures;
            let time = measures.run_time.quantiles.and_then(|q| q.max_to_median());
            let records = measures.records_read.quantiles.and_then(|q| q.max_to_median());
            time.is_some_and(|ratio| ratio >= 4.0) && records.is_some_and(|ratio| ratio >= 2.0)
        });
        assert!(skewed, "{version}");
    }
}

#[tokio::test]
async fn spill_is_in_the_numbers() {
    for version in VERSIONS {
        let application = read(version, "spill").await;
        let spilled = application.stages.iter().any(|stage| {
            let disk = stage.measures.disk_spilled_bytes;
            disk.sum_or_zero() > 16 << 20 && disk.max().is_some_and(|max| max > 0)
        });
        assert!(spilled, "{version}");
    }
}

#[tokio::test]
async fn failed_tasks_have_their_class() {
    for version in VERSIONS {
        let application = read(version, "task_failures").await;
        let mut classified = 0;
        for stage in application.stages.iter().filter(|stage| stage.tasks.failed > 0) {
            let Some(failures) = &stage.failures else { continue };
            let failed: u64 = failures
                .iter()
                .filter(|(class, _)| class.is_failure())
                .map(|(_, count)| count)
                .sum();
            assert_eq!(failed, stage.tasks.failed, "{version} {}", stage.id);
            assert!(failures.contains_key(&FailureClass::Exception), "{failures:?}");
            assert!(stage.failure_example.is_some());
            classified += 1;
        }
        assert!(classified > 0, "{version}");
    }
}
