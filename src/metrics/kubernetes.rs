//! Labels of `spark_application_info` that come from Kubernetes: where the
//! driver runs, and the labels of its pod that the operator's list allows, as
//! kube-state-metrics names them (`label_NAME`). A run has those that are told
//! of it, and no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::label::Text;
use crate::config::Limits;
use crate::model::Application;

/// Labels of a pod that become labels here, at most.
const MOST: usize = 20;
/// Characters of a name, without `label_`.
const NAME_LENGTH: usize = 120;

/// Names that are OpenTelemetry's as Prometheus writes them: `namespace`,
/// `pod` and `node` are the scrape's own.
pub(super) const OF_DRIVER: [&str; 3] = ["k8s_namespace_name", "k8s_pod_name", "k8s_node_name"];

pub(super) fn labels(application: &Application, limits: &Limits) -> Vec<(Arc<str>, Text)> {
    let Some(driver) = application.kubernetes.as_ref().and_then(|known| known.driver.as_ref())
    else {
        return Vec::new();
    };
    // Names of objects are worth their whole length, which is bounded.
    let name_length = limits.label_length.max(253);
    let pod = &driver.pod;
    let values = [
        Text::clean(&pod.name.namespace, name_length),
        Text::clean(&pod.name.name, name_length),
        Text::clean_or_empty(pod.node.as_deref(), name_length),
    ];
    let of_driver = OF_DRIVER.into_iter().map(Arc::from).zip(values);
    let of_pod = named(&driver.labels).into_iter().map(|(name, value)| {
        (Arc::from(format!("label_{name}")), Text::clean(value, limits.label_length))
    });
    // Empty is the same as absent.
    of_driver.chain(of_pod).filter(|(_, value)| *value != Text::EMPTY).collect()
}

/// Names as labels may have them, each once: those that become the same are
/// told apart by a number.
fn named(labels: &BTreeMap<String, String>) -> Vec<(String, &str)> {
    let mut by_name: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in labels.iter().take(MOST) {
        by_name.entry(cleaned(name)).or_default().push(value);
    }
    let mut all: BTreeMap<String, &str> = BTreeMap::new();
    for (name, values) in &by_name {
        match values.as_slice() {
            [value] => {
                all.entry(name.clone()).or_insert(value);
            }
            several => {
                for (number, value) in (1..).zip(several) {
                    all.insert(format!("{name}_conflict{number}"), value);
                }
            }
        }
    }
    all.into_iter().collect()
}

/// `app.kubernetes.io/partOf` becomes `app_kubernetes_io_part_of`.
fn cleaned(name: &str) -> String {
    let mut cleaned = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars().take(NAME_LENGTH) {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            cleaned.push('_');
        }
        cleaned.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
        before = c;
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[(&str, &str)]) -> Vec<(String, String)> {
        let labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        named(&labels).into_iter().map(|(name, value)| (name, value.to_owned())).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn names_are_as_kube_state_metrics_writes_them() {
        assert_eq!(
            names(&[("app.kubernetes.io/part-of", "orders"), ("costCentre", "7"), ("team", "etl")]),
            [
                pair("app_kubernetes_io_part_of", "orders"),
                pair("cost_centre", "7"),
                pair("team", "etl")
            ]
        );
    }

    #[test]
    fn names_that_become_the_same_are_told_apart() {
        assert_eq!(
            names(&[("a-b", "1"), ("a.b", "2"), ("a_b_conflict1", "3")]),
            [pair("a_b_conflict1", "1"), pair("a_b_conflict2", "2")],
            "never twice the same"
        );
    }

    #[test]
    fn they_are_bounded() {
        let many: Vec<(String, String)> =
            (0..100).map(|n| (format!("l{n}"), n.to_string())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(names(&many).len(), MOST);
        let long = "x".repeat(500);
        assert_eq!(names(&[(&long, "1")])[0].0.len(), NAME_LENGTH);
    }
}
