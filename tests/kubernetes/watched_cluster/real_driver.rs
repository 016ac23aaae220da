//! A real driver of Spark behind the address of its pod.

use std::time::Duration;

use crate::common::real::{standalone, submit};
use crate::common::run_state;
use crate::setting::{By, Setting};

const VERSION: &str = "4.3.0";

/// Its stage is slow for longer than this: beside other tests a JVM takes a
/// minute to begin.
const FOUND_WITHIN: Duration = Duration::from_mins(4);

/// Nothing is configured but the cluster: the skewed stage of the job that
/// runs there is found, and the run ends when its pod does, though the driver
/// answers on.
#[tokio::test(flavor = "multi_thread")]
async fn a_finding_of_a_driver_in_a_pod() {
    let setting = Setting::new("real", By::default()).await;
    let logs = tempfile::tempdir().unwrap();
    let (_cluster, master) = standalone(VERSION);
    let workload = ["sleepy_live", "--seconds", "240"];
    let submitted = submit(VERSION, &master, logs.path(), &[], &workload);
    let port: u16 = submitted.ui.rsplit(':').next().unwrap().parse().unwrap();
    setting.driver("skewed", &submitted.app_id, port).await;
    setting.runs("skewed").await;

    let text = setting
        .until_within(FOUND_WITHIN, |text| {
            text.lines().any(|line| {
                line.starts_with("spark_finding{") && line.contains("rule=\"data_skew\",cause=")
            })
        })
        .await;
    let info = text.lines().find(|line| line.starts_with("spark_application_info{")).unwrap();
    let run = format!("spark_cluster=\"k\",app_id=\"{}\"", submitted.app_id);
    assert!(info.contains(&run), "{info}");
    assert_eq!(run_state(&text), Some("running"));

    setting.ends("skewed", "Failed", 137, "OOMKilled").await;
    setting.until(|text| run_state(text).is_some_and(|state| state != "running")).await;
}
