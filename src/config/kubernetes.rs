//! Where drivers run on Kubernetes, and which of them are meant; in the words
//! of Prometheus' `kubernetes_sd_configs` where it has them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::label_selector;

/// Each namespace that is named is watched by itself, up to five kinds of
/// object in it; for more of them all are watched at once.
const MOST_NAMESPACES: usize = 50;
/// Labels of pods that become labels of metrics.
const MOST_LABELS: usize = 20;

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
    /// annotation; with `label_selector` besides only those it selects, and
    /// of them those with the annotation run drivers.
    pub annotation: Option<String>,
}

impl ClientMode {
    pub fn is_on(&self) -> bool {
        self.label_selector.is_some() || self.annotation.is_some()
    }
}

impl Kubernetes {
    /// What cannot be meant, or not be done by this build.
    pub(super) fn validate(&self) -> Result<(), String> {
        if !cfg!(feature = "kubernetes") {
            return Err("this spark-exporter was built without Kubernetes; build it with `cargo \
                        build --release --features kubernetes` or take the image, or give the \
                        driver UIs as `drivers`"
                .to_owned());
        }
        self.settings()
    }

    fn settings(&self) -> Result<(), String> {
        if self.context.is_some() && self.kubeconfig_file.is_none() {
            return Err("context is one of kubeconfig_file: give that too, or leave both out \
                        where spark-exporter runs in the cluster"
                .to_owned());
        }
        let names = &self.namespaces.names;
        if names.len() > MOST_NAMESPACES {
            return Err(format!(
                "namespaces.names has {}, and each is watched by itself: {MOST_NAMESPACES} are \
                 the most; leave namespaces out to watch all at once, and choose by label_selector",
                names.len()
            ));
        }
        let mut seen = BTreeSet::new();
        for name in names {
            if !label_selector::is_dns_label(name) {
                return Err(format!("namespaces.names: {name:?} is not the name of a namespace"));
            }
            if !seen.insert(name) {
                return Err(format!("namespaces.names: {name:?} stands there twice"));
            }
        }
        for (key, selector) in [
            ("label_selector", &self.label_selector),
            ("client_mode.label_selector", &self.client_mode.label_selector),
        ] {
            if let Some(selector) = selector {
                label_selector::check(selector)
                    .map_err(|why| format!("{key} {selector:?} {why}"))?;
            }
        }
        if let Some(annotation) = &self.client_mode.annotation {
            label_selector::check_key(annotation)
                .map_err(|why| format!("client_mode.annotation: {why}"))?;
        }
        if self.pod_labels.len() > MOST_LABELS {
            return Err(format!(
                "pod_labels has {}: {MOST_LABELS} are the most",
                self.pod_labels.len()
            ));
        }
        let mut seen = BTreeSet::new();
        for label in &self.pod_labels {
            label_selector::check_key(label).map_err(|why| format!("pod_labels: {why}"))?;
            if !seen.insert(label) {
                return Err(format!("pod_labels: {label:?} stands there twice"));
            }
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(yaml: &str) -> Kubernetes {
        let yaml = format!("clusters: [{{name: a, kubernetes: {yaml}}}]");
        let config = Config::parse(&yaml).unwrap();
        config.clusters[0].kubernetes.clone().unwrap()
    }

    #[test]
    fn nothing_needs_to_be_said() {
        assert_eq!(parsed("{}"), Kubernetes::default());
        assert_eq!(Kubernetes::default().settings(), Ok(()));
    }

    #[test]
    fn refuses_with_the_reason() {
        let many: Vec<String> = (0..=MOST_NAMESPACES).map(|number| format!("n{number}")).collect();
        let many = format!("{{namespaces: {{names: [{}]}}}}", many.join(", "));
        for (yaml, part) in [
            ("{context: prod}", "kubeconfig_file"),
            ("{label_selector: 'team in etl'}", "label_selector \"team in etl\""),
            ("{client_mode: {label_selector: 'a b'}}", "client_mode.label_selector"),
            ("{client_mode: {annotation: 'a b'}}", "client_mode.annotation"),
            ("{namespaces: {names: [ETL]}}", "not the name of a namespace"),
            ("{namespaces: {names: [etl, etl]}}", "twice"),
            (&many, "50 are the most"),
            ("{pod_labels: [team, 'a b']}", "pod_labels"),
            ("{pod_labels: [team, team]}", "twice"),
        ] {
            let error = parsed(yaml).settings().unwrap_err();
            assert!(error.contains(part), "{yaml}: {error}");
        }
    }

    #[test]
    fn without_the_feature_it_is_refused_with_what_to_do() {
        let refused = Kubernetes::default().validate().err();
        assert_eq!(refused.is_none(), cfg!(feature = "kubernetes"), "{refused:?}");
        assert!(refused.is_none_or(|why| why.contains("--features kubernetes")));
    }
}
