//! What `helm install` says in the end.

use crate::helm::{NAMESPACE, RELEASE, run};

/// By Helm 4: Helm 3 asks a cluster first.
fn notes(arguments: &[&str]) -> String {
    let mut all = vec![
        "install",
        RELEASE,
        "helm/spark-exporter",
        "--namespace",
        NAMESPACE,
        "--dry-run=client",
    ];
    all.extend(arguments);
    let output = run("4", &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_once("NOTES:\n").unwrap().1.to_owned()
}

#[test]
fn notes_tell_the_next_step() {
    insta::assert_snapshot!("notes", notes(&[]));
    let sharded = notes(&["--values", "helm/spark-exporter/ci/shards-with-postgresql-values.yaml"]);
    insta::assert_snapshot!("notes_of_shards", sharded);
}

#[test]
fn notes_tell_what_is_missing() {
    let nothing = notes(&["--set", "discovery.enabled=false"]);
    assert!(nothing.contains("watches nothing"), "{nothing}");
    let hash = "web.users.me=$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
    let users = notes(&["--set", hash]);
    assert!(users.contains("web.client.basicAuth.secretName"), "{users}");
    assert!(!users.contains("$2y$"), "{users}");
    let monitored = notes(&["--set", "serviceMonitor.enabled=true"]);
    assert!(monitored.contains("serviceMonitor.labels.release="), "{monitored}");
    let labelled = notes(&["--set", "serviceMonitor.enabled=true,serviceMonitor.labels.release=x"]);
    assert!(!labelled.contains("serviceMonitor.labels.release="), "{labelled}");
}
