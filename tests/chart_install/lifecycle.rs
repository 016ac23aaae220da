//! A release from its first day to its last, with Helm 3 and Helm 4: what each
//! step makes, changes, keeps and leaves behind. Where Kubernetes' controllers
//! would make something (the claims of a StatefulSet), the test does.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::kubernetes::ApiServer;
use crate::world::{Helm, chart, cluster_objects_of, everything_in, with_operator};

const PERSISTENT: &str = "storage: {persistence: {enabled: true}}";

/// What a release `watch` in its namespace consists of, in any shape.
const ALWAYS: [&str; 14] = [
    "ConfigMap/watch-spark-exporter",
    "ConfigMap/watch-spark-exporter-application",
    "ConfigMap/watch-spark-exporter-exporter",
    "ConfigMap/watch-spark-exporter-fleet",
    "ConfigMap/watch-spark-exporter-job",
    "ConfigMap/watch-spark-exporter-stage",
    "ConfigMap/watch-spark-exporter-streaming",
    "PersistentVolumeClaim/watch-spark-exporter-store",
    "PrometheusRule/watch-spark-exporter",
    "Role/watch-spark-exporter",
    "RoleBinding/watch-spark-exporter",
    "Service/watch-spark-exporter",
    "ServiceAccount/watch-spark-exporter",
    "ServiceMonitor/watch-spark-exporter",
];

fn release(more: &[&str]) -> BTreeSet<String> {
    ALWAYS.iter().chain(more).map(ToString::to_string).collect()
}

#[tokio::test]
async fn helm_3_from_install_to_uninstall() {
    from_install_to_uninstall("3").await;
}

#[tokio::test]
async fn helm_4_from_install_to_uninstall() {
    from_install_to_uninstall("4").await;
}

async fn from_install_to_uninstall(version: &str) {
    let server = with_operator().await;
    let helm = Helm::new(version, server);
    let namespace = &format!("helm-{version}");
    let chart = chart();
    let chart = chart.to_str().unwrap();
    let here = ["--namespace", namespace];
    let upgrade = |values: &str| {
        helm.succeeds(&[&["upgrade", "watch", chart], &here[..]].concat(), values);
    };

    let notes = helm.succeeds(
        &[&["install", "watch", chart, "--create-namespace"], &here[..]].concat(),
        PERSISTENT,
    );
    assert!(notes.contains("STATUS: deployed"), "{notes}");
    server.create(&an_event(namespace).to_string()).await;
    let one = release(&["Deployment/watch-spark-exporter"]);
    assert_eq!(ours(server, namespace).await, one);
    let first = deployment(server, namespace).await.unwrap();

    // Nothing changes where nothing changed: no pod starts anew.
    upgrade(PERSISTENT);
    assert_eq!(deployment(server, namespace).await.unwrap()["spec"], first["spec"]);

    // Another configuration is another pod.
    upgrade(&format!("{PERSISTENT}\nlog: {{level: debug}}\nconfig: {{retention: 2h}}"));
    let changed = deployment(server, namespace).await.unwrap();
    let template = |deployment: &Value| deployment["spec"]["template"].clone();
    let sum = |deployment: &Value| {
        template(deployment)["metadata"]["annotations"]["checksum/config"].clone()
    };
    assert_ne!(sum(&changed), sum(&first));
    assert!(template(&changed).to_string().contains("--log.level=debug"));

    // Three shards: a StatefulSet in its place, and no claim is lost.
    upgrade(&format!("{PERSISTENT}\nreplicaCount: 3"));
    claims_of_the_stateful_set(server, namespace, 3).await;
    let claims: Vec<String> =
        (0..3).map(|n| format!("PersistentVolumeClaim/store-watch-spark-exporter-{n}")).collect();
    let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
    let many = ["Service/watch-spark-exporter-headless", "StatefulSet/watch-spark-exporter"];
    assert_eq!(ours(server, namespace).await, release(&[&many[..], &claims].concat()));

    // More of them is the same StatefulSet.
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/watch-spark-exporter");
    let three = server.get(&path).await.unwrap();
    upgrade(&format!("{PERSISTENT}\nreplicaCount: 5"));
    let five = server.get(&path).await.unwrap();
    assert_eq!(five["metadata"]["uid"], three["metadata"]["uid"]);
    assert_eq!(five["spec"]["replicas"], 5);
    assert!(five.to_string().contains("--total-shards=5"), "{five}");

    // Back to one.
    upgrade(PERSISTENT);
    let one_again = release(&[&["Deployment/watch-spark-exporter"][..], &claims].concat());
    assert_eq!(ours(server, namespace).await, one_again);

    // To the shards and back again as one does at night.
    helm.succeeds(&[&["rollback", "watch", "4"], &here[..]].concat(), "");
    assert_eq!(ours(server, namespace).await, release(&[&many[..], &claims].concat()));
    let three_again = server.get(&path).await.unwrap();
    assert_eq!(three_again["spec"]["replicas"], 3);
    helm.succeeds(&[&["rollback", "watch", "1"], &here[..]].concat(), "");
    assert_eq!(ours(server, namespace).await, one_again);
    assert_eq!(deployment(server, namespace).await.unwrap()["spec"], first["spec"]);

    // What people keep: the stores, and nothing else.
    helm.succeeds(&[&["uninstall", "watch"], &here[..]].concat(), "");
    let left = everything_in(server, namespace).await;
    let kept: BTreeSet<String> = ["PersistentVolumeClaim/watch-spark-exporter-store"]
        .iter()
        .chain(&claims)
        .map(ToString::to_string)
        .collect();
    assert_eq!(left, kept);

    // Who comes back finds what was kept.
    helm.succeeds(&[&["install", "watch", chart], &here[..]].concat(), PERSISTENT);
    helm.succeeds(&[&["uninstall", "watch"], &here[..]].concat(), "");

    // Without persistence nothing at all stays, of the whole cluster neither.
    let values = "discovery: {allNamespaces: true}";
    let namespace = &server.namespace(&format!("helm-{version}-trial")).await;
    let here = ["--namespace", namespace];
    helm.succeeds(&[&["install", namespace, chart], &here[..]].concat(), values);
    assert_eq!(cluster_objects_of(server, namespace).await.len(), 2);
    helm.succeeds(&[&["uninstall", namespace], &here[..]].concat(), "");
    assert_eq!(everything_in(server, namespace).await, BTreeSet::new());
    assert_eq!(cluster_objects_of(server, namespace).await, BTreeSet::new());
}

/// What the API server may say of a Service at any time.
fn an_event(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "watch-spark-exporter.1", "namespace": namespace},
        "involvedObject": {
            "kind": "Service", "name": "watch-spark-exporter", "namespace": namespace,
        },
        "reason": "IPAddressNotAllocated",
        "type": "Warning",
    })
}

/// All in the namespace but Helm's records.
async fn ours(server: &ApiServer, namespace: &str) -> BTreeSet<String> {
    let mut all = everything_in(server, namespace).await;
    let records = all.len();
    all.retain(|object| !object.starts_with("Secret/sh.helm.release"));
    assert!(records > all.len(), "Helm keeps no record of the release");
    all
}

async fn deployment(server: &ApiServer, namespace: &str) -> Option<Value> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/watch-spark-exporter");
    server.get(&path).await
}

/// Makes the claims of each pod as the controller does: those of the template,
/// with the pod's name behind theirs.
async fn claims_of_the_stateful_set(server: &ApiServer, namespace: &str, shards: usize) {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/watch-spark-exporter");
    let set = server.get(&path).await.unwrap();
    for template in set["spec"]["volumeClaimTemplates"].as_array().unwrap() {
        for shard in 0..shards {
            let mut claim = template.clone();
            let name = template["metadata"]["name"].as_str().unwrap();
            claim["metadata"] = json!({
                "name": format!("{name}-watch-spark-exporter-{shard}"),
                "namespace": namespace,
                "labels": set["spec"]["selector"]["matchLabels"],
            });
            claim.as_object_mut().unwrap().remove("status");
            server.create(&claim.to_string()).await;
        }
    }
}
