//! Pods that come, change and go.

use std::time::Duration;

use serde_json::json;

use crate::common::real::get;
use crate::common::recorded_server::recorded_driver;
use crate::common::run_state;
use crate::setting::{By, Setting, by_kind, drivers, target_up};

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_is_asked_while_its_pod_runs() {
    let setting = Setting::new("come-and-go", By::default()).await;
    let driver = recorded_driver().await;
    let text = setting.until(|text| target_up(text) == Some(1.0)).await;
    assert_eq!(drivers(&text, "waiting"), Some(0.0));
    assert_eq!(by_kind(&text, "watch_up", "driver_pods"), Some(1.0));
    let ready = setting.metrics.replace("/metrics", "/-/ready");
    get(&ready).await;

    setting.driver("etl", "spark-etl", driver.port()).await;
    setting.drivers("waiting", 1.0).await;
    assert!(driver.asked().is_empty(), "asked before its pod runs");

    setting.runs("etl").await;
    let text = setting.drivers("answering", 1.0).await;
    assert_eq!(drivers(&text, "waiting"), Some(0.0));
    let text = setting.until(|text| text.contains("spark_application_info{")).await;
    assert!(text.contains("spark_application_info{spark_cluster=\"k\""), "{text}");
    assert_eq!(run_state(&text), Some("running"));
    // The drivers of pods have no gauges as sources: they come and go.
    assert_eq!(text.matches("spark_exporter_target_up{").count(), 1);

    let ours = json!({"metadata": {"labels": {"spark-role": "driver"}}});
    let theirs = json!({"metadata": {"labels": {"spark-role": "former-driver"}}});
    setting.server.patch(&setting.path("etl"), &theirs).await;
    setting.drivers("answering", 0.0).await;
    let asked = driver.asked().len();
    // Its pod is still there: nobody here knows what became of the run.
    let text = setting.until(|text| run_state(text) == Some("unknown")).await;
    assert_eq!(by_kind(&text, "objects", "driver_pods"), Some(0.0));
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(driver.asked().len(), asked, "asked after it was taken out of the selection");

    setting.server.patch(&setting.path("etl"), &ours).await;
    setting.drivers("answering", 1.0).await;
    assert!(driver.asked().len() > asked);

    setting.ends("etl", "Failed", 1, "Error").await;
    let text = setting.drivers("ended", 1.0).await;
    assert_eq!(drivers(&text, "answering"), Some(0.0));
    let asked = driver.asked().len();
    setting.until(|text| run_state(text) != Some("running")).await;

    setting.server.delete(&setting.path("etl")).await;
    setting.drivers("ended", 0.0).await;
    assert_eq!(driver.asked().len(), asked, "asked after its pod ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notebook_is_asked_where_its_annotation_says_so() {
    let more = "    client_mode: {label_selector: app=notebook, annotation: example.org/spark}\n";
    let setting = Setting::new("notebooks", By { more, ..By::default() }).await;
    let driver = recorded_driver().await;
    for (name, label, annotation) in [
        ("session", "notebook", driver.port().to_string()),
        ("idle", "notebook", "1".to_owned()),
        ("off", "notebook", "false".to_owned()),
        ("other", "web", driver.port().to_string()),
    ] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": setting.namespace, "labels": {"app": label},
                         "annotations": {"example.org/spark": annotation}},
            "spec": {"containers": [{"name": "notebook", "image": "notebook"}]},
        });
        setting.server.create(&pod.to_string()).await;
        let status = json!({"phase": "Running", "podIP": "127.0.0.1"});
        setting.server.patch_status(&setting.path(name), &status).await;
    }
    setting.drivers("answering", 1.0).await;
    // A notebook without a session is no driver that fell silent.
    let text = setting.drivers("idle", 1.0).await;
    assert_eq!(target_up(&text), Some(1.0));
    assert_eq!(by_kind(&text, "objects", "client_mode_pods"), Some(2.0));
    assert_eq!(by_kind(&text, "objects", "driver_pods"), Some(0.0));
    assert_eq!(run_state(&text), Some("running"));
}
