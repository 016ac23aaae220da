//! What a `kubernetes` block means, in lines.

use crate::config::{ClientMode, Kubernetes, Watched};

/// What is watched, and with which permissions.
pub(super) fn means(settings: &Kubernetes) -> Vec<String> {
    let server = match (&settings.kubeconfig_file, &settings.context) {
        (None, _) => "the cluster that spark-exporter runs in, by its service account".to_owned(),
        (Some(file), None) => format!("the current context of {}", file.display()),
        (Some(file), Some(context)) => format!("context {context} of {}", file.display()),
    };
    let mut names = settings.namespaces.names.clone();
    if settings.namespaces.own_namespace {
        names.push("the own one".to_owned());
    }
    let (namespaces, role) = match names.as_slice() {
        [] => ("all namespaces".to_owned(), "a ClusterRole"),
        [one] => (format!("namespace {one}"), "a Role in it"),
        many => (format!("namespaces {}", many.join(", ")), "a Role in each"),
    };
    let selected = settings.label_selector.as_deref();
    let selected = selected.map_or(String::new(), |labels| format!(" that have {labels}"));
    let mut lines = vec![
        format!("{server}, {namespaces}"),
        format!("drivers: pods with spark-role=driver{selected}"),
    ];
    if let Some(pods) = client_mode(&settings.client_mode) {
        lines.push(format!("drivers in client mode: {pods}{selected}"));
    }
    let mut resources = vec!["pods"];
    if settings.executors == Watched::Auto {
        lines.push("executors: pods with spark-role=executor".to_owned());
    }
    if settings.spark_applications == Watched::Auto {
        lines.push(
            "SparkApplications of sparkoperator.k8s.io and spark.apache.org, where they exist"
                .to_owned(),
        );
        resources.push("sparkapplications");
    }
    if !settings.pod_labels.is_empty() {
        lines.push(format!(
            "labels of drivers' pods that become labels of spark_application_info: {}",
            settings.pod_labels.join(", ")
        ));
    }
    lines.push(format!("needs list and watch on {}: {role}", resources.join(" and ")));
    lines
}

fn client_mode(settings: &ClientMode) -> Option<String> {
    match (&settings.label_selector, &settings.annotation) {
        (None, None) => None,
        (Some(labels), None) => Some(format!("pods with {labels}")),
        (None, Some(annotation)) => {
            Some(format!("pods with the annotation {annotation}, for which all pods are watched"))
        }
        (Some(labels), Some(annotation)) => {
            Some(format!("pods with {labels} and the annotation {annotation}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Namespaces;

    #[test]
    fn says_what_is_watched_and_what_it_needs() {
        let lines = means(&Kubernetes::default()).join("\n");
        assert!(lines.contains("all namespaces") && lines.contains("a ClusterRole"), "{lines}");
        assert!(lines.contains("pods and sparkapplications"), "{lines}");
        assert!(!lines.contains("client mode"), "{lines}");

        let annotation = Some("example.org/spark".to_owned());
        let settings = Kubernetes {
            namespaces: Namespaces { names: vec!["etl".to_owned()], ..Namespaces::default() },
            label_selector: Some("team=etl".to_owned()),
            client_mode: ClientMode { annotation, ..ClientMode::default() },
            executors: Watched::Off,
            spark_applications: Watched::Off,
            pod_labels: vec!["team".to_owned()],
            ..Kubernetes::default()
        };
        let lines = means(&settings).join("\n");
        assert!(lines.contains("namespace etl") && lines.contains("a Role in it"), "{lines}");
        assert!(lines.contains("spark-role=driver that have team=etl"), "{lines}");
        assert!(lines.contains("all pods are watched"), "{lines}");
        assert!(lines.contains("watch on pods: "), "{lines}");
        assert!(!lines.contains("executors:"), "{lines}");
    }
}
