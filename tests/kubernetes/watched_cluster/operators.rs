//! The operators' custom resources, whose kinds may come after us.

use serde_json::json;

use crate::common::kubernetes::ApiServer;
use crate::common::recorded_server::recorded_driver;
use crate::setting::{By, Setting, by_kind, target_up};

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_installed_later_is_seen() {
    let server = ApiServer::shared().await;
    let setting = Setting::new("operators", By::default()).await;
    let text = setting.until(|text| target_up(text) == Some(1.0)).await;
    for kind in ["kubeflow_applications", "apache_applications"] {
        assert_eq!(by_kind(&text, "watch_up", kind), None, "no such kind is there");
    }

    server.install_crds("kubeflow").await;
    server.install_crds("apache").await;
    let application = json!({
        "apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication",
        "metadata": {"name": "nightly", "namespace": setting.namespace},
        "spec": {"type": "Scala", "sparkVersion": "4.0.1", "mainApplicationFile": "local:///a.jar",
                 "driver": {}, "executor": {}},
    });
    server.create(&application.to_string()).await;
    let text =
        setting.until(|text| by_kind(text, "objects", "kubeflow_applications") == Some(1.0)).await;
    assert_eq!(by_kind(&text, "watch_up", "kubeflow_applications"), Some(1.0));
    setting.until(|text| by_kind(text, "watch_up", "apache_applications") == Some(1.0)).await;

    // Its driver's port, where the pod tells none.
    let driver = recorded_driver().await;
    let path = format!(
        "/apis/sparkoperator.k8s.io/v1beta2/namespaces/{}/sparkapplications/nightly",
        setting.namespace
    );
    let port = json!({"spec": {"sparkConf": {"spark.ui.port": driver.port().to_string()}}});
    server.patch(&path, &port).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "nightly-driver", "namespace": setting.namespace, "labels": {
            "spark-role": "driver", "spark-app-selector": "spark-1",
            "sparkoperator.k8s.io/app-name": "nightly"}},
        "spec": {"containers": [{"name": "spark-kubernetes-driver", "image": "spark"}]},
    });
    server.create(&pod.to_string()).await;
    setting.runs("nightly-driver").await;
    setting.drivers("answering", 1.0).await;

    server.delete(&path).await;
    setting.until(|text| by_kind(text, "objects", "kubeflow_applications") == Some(0.0)).await;
}
