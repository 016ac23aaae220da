//! A daemon that watches a namespace, and the pods in it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::kubernetes::{ADMIN_TOKEN, ApiServer};
use crate::common::real::{Program, daemon, until};
use crate::common::value;

/// Back-off included: a watch that broke is tried again within a minute.
pub(crate) const SOON: Duration = Duration::from_secs(100);

/// Name of the cluster in metrics.
pub(crate) const CLUSTER: &str = "k";

pub(crate) struct Setting {
    pub(crate) server: &'static ApiServer,
    pub(crate) namespace: String,
    pub(crate) metrics: String,
    pub(crate) exporter: Program,
    _folder: tempfile::TempDir,
}

/// How the daemon reaches the server.
pub(crate) struct By<'a> {
    pub(crate) token: &'a str,
    /// Instead of the server's own.
    pub(crate) url: Option<String>,
    /// More lines of `kubernetes:`.
    pub(crate) more: &'a str,
}

impl Default for By<'_> {
    fn default() -> Self {
        Self { token: ADMIN_TOKEN, url: None, more: "" }
    }
}

impl Setting {
    /// In a new namespace of the server that all tests share.
    pub(crate) async fn new(namespace: &str, by: By<'_>) -> Self {
        let server = ApiServer::shared().await;
        server.namespace(namespace).await;
        Self::on(server, namespace, by)
    }

    /// In a namespace that is there.
    pub(crate) fn on(server: &'static ApiServer, namespace: &str, by: By<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        server.kubeconfig(&kubeconfig, by.token, namespace);
        if let Some(url) = by.url {
            let text = std::fs::read_to_string(&kubeconfig).unwrap();
            std::fs::write(&kubeconfig, text.replace(&server.url, &url)).unwrap();
        }
        let config = folder.path().join("config.yml");
        let text = format!(
            "clusters:\n- name: {CLUSTER}\n  kubernetes:\n    kubeconfig_file: '{}'\n    \
             namespaces: {{own_namespace: true}}\n{}intervals: {{driver: 10s, driver_timeout: 5s}}\n",
            kubeconfig.display(),
            by.more,
        );
        std::fs::write(&config, text).unwrap();
        let (exporter, address) = daemon(&["--config.file", config.to_str().unwrap()]);
        let metrics = format!("{address}/metrics");
        let namespace = namespace.to_owned();
        Self { server, namespace, metrics, exporter, _folder: folder }
    }

    pub(crate) fn path(&self, pod: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{pod}", self.namespace)
    }

    /// A pod as Spark makes one for a driver in cluster mode; it does not run
    /// yet.
    pub(crate) async fn driver(&self, name: &str, app_id: &str, port: u16) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {
                "spark-role": "driver", "spark-app-selector": app_id, "spark-app-name": name}},
            "spec": {"restartPolicy": "Never", "containers": [{
                "name": "spark-kubernetes-driver", "image": "spark", "args": ["driver"],
                "ports": [{"name": "spark-ui", "containerPort": port}]}]},
        });
        self.server.create(&pod.to_string()).await;
    }

    pub(crate) async fn runs(&self, pod: &str) {
        let state = json!({"running": {"startedAt": "2026-11-01T10:00:00Z"}});
        self.status(pod, "Running", &state).await;
    }

    pub(crate) async fn ends(&self, pod: &str, phase: &str, code: i32, reason: &str) {
        let state = json!({"terminated": {"exitCode": code, "reason": reason}});
        self.status(pod, phase, &state).await;
    }

    async fn status(&self, pod: &str, phase: &str, state: &Value) {
        let status = json!({
            "phase": phase, "podIP": "127.0.0.1",
            "containerStatuses": [{
                "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": true,
                "restartCount": 0, "state": state}],
        });
        self.server.patch_status(&self.path(pod), &status).await;
    }

    /// Waits until the metrics are so; then the whole text.
    pub(crate) async fn until(&self, fits: impl Fn(&str) -> bool) -> String {
        self.until_within(SOON, fits).await
    }

    pub(crate) async fn until_within(
        &self,
        within: Duration,
        fits: impl Fn(&str) -> bool,
    ) -> String {
        until(&self.metrics, within, |text| fits(text).then(|| text.to_owned())).await
    }

    /// Waits until so many pods of drivers are in this state.
    pub(crate) async fn drivers(&self, state: &str, count: f64) -> String {
        self.until(|text| drivers(text, state) == Some(count)).await
    }
}

pub(crate) fn drivers(text: &str, state: &str) -> Option<f64> {
    let series = format!(
        "spark_exporter_kubernetes_drivers{{spark_cluster=\"{CLUSTER}\",state=\"{state}\"}}"
    );
    value(text, &series)
}

pub(crate) fn target_up(text: &str) -> Option<f64> {
    let labels = format!("{{spark_cluster=\"{CLUSTER}\",target=\"kubernetes\"}}");
    value(text, &format!("spark_exporter_target_up{labels}"))
}

pub(crate) fn by_kind(text: &str, metric: &str, kind: &str) -> Option<f64> {
    let labels = format!("{{spark_cluster=\"{CLUSTER}\",kind=\"{kind}\"}}");
    value(text, &format!("spark_exporter_kubernetes_{metric}{labels}"))
}

pub(crate) fn failures(text: &str, kind: &str, reason: &str) -> f64 {
    let labels = format!("{{spark_cluster=\"{CLUSTER}\",kind=\"{kind}\",reason=\"{reason}\"}}");
    value(text, &format!("spark_exporter_kubernetes_watch_failures_total{labels}")).unwrap()
}
