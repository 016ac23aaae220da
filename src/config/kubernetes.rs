//! Where drivers run on Kubernetes, and which of them are meant; in the words
//! of Prometheus' `kubernetes_sd_configs` where it has them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A Kubernetes cluster whose drivers are found by watching its pods.
///
/// ```yaml
/// clusters:
/// - name: production
///   kubernetes:
///     namespaces: {names: [etl, ml]}
///     pod_labels: [team, app.kubernetes.io/part-of]
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kubernetes {
    /// How to reach the API server from outside: the pod's own service
    /// account where not set.
    pub kubeconfig_file: Option<PathBuf>,
    /// Of the file; its current one where not set.
    pub context: Option<String>,
    pub namespaces: Namespaces,
    /// Only drivers whose pods have these labels, besides those that Spark
    /// gives them (`spark-role=driver`): `team=etl,tier!=test`.
    pub label_selector: Option<String>,
    pub client_mode: ClientMode,
    /// Labels of a driver's pod that become labels of
    /// `spark_application_info`, as `label_NAME`.
    pub pod_labels: Vec<String>,
    /// Whether executors' pods are watched too, which tells for sure why one
    /// went.
    pub executors: Watched,
    /// Whether the operators' `SparkApplication`s are watched.
    pub spark_applications: Watched,
}

/// Which namespaces; all where neither is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Namespaces {
    /// The one that the exporter runs in, or that the kubeconfig file's
    /// context names.
    pub own_namespace: bool,
    pub names: Vec<String>,
}

/// Drivers in client mode: notebooks, workers of Airflow. Spark gives their
/// pods no labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientMode {
    /// Pods with these labels run drivers: `app=jupyter`.
    pub label_selector: Option<String>,
    /// Pods with this annotation do. Its value is the port of the UI, several
    /// with commas between, or `true` for the usual one. All pods of the
    /// namespaces are then watched, since the API server does not select by
    /// annotation.
    pub annotation: Option<String>,
}

/// What is watched where it is there to be watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// Where the kind exists and the service account may.
    #[default]
    Auto,
    Off,
}
