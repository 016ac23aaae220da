//! A real driver of Spark behind the address of its pod.

use std::time::Duration;

use crate::common::real::submit;
use crate::setting::{By, Setting, run_state};

/// Nothing is configured but the cluster: the slow stage of the job that runs
/// there is found, and its run ends when the pod does, though the driver would answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_finding_of_a_driver_in_a_pod() {
    let setting = Setting::new("real", By::default()).await;
    let logs = tempfile::tempdir().unwrap();
    let workload = ["sleepy_live", "--seconds", "60"];
    let submitted = submit("4.3.0", "local[4]", logs.path(), &[], &workload);
    let port: u16 = submitted.ui.rsplit(':').next().unwrap().parse().unwrap();
    setting.driver("skewed", &submitted.app_id, port).await;
    setting.runs("skewed").await;

    let text = setting
        .until(|text| {
            text.lines().any(|line| {
                line.starts_with("spark_finding{") && line.contains("subject=\"stage\"")
            })
        })
        .await;
    let info = text.lines().find(|line| line.starts_with("spark_application_info{")).unwrap();
    let run = format!("spark_cluster=\"k\",app_id=\"{}\"", submitted.app_id);
    assert!(info.contains(&run), "{info}");
    assert_eq!(run_state(&text), Some("running"));

    setting.ends("skewed", "Failed", 137, "OOMKilled").await;
    let ended = std::time::Instant::now();
    setting.until(|text| run_state(text).is_some_and(|state| state != "running")).await;
    assert!(ended.elapsed() < Duration::from_secs(15), "at once, not after three cycles");
}
