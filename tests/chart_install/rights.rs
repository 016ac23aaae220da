//! What the service account of a release may, asked of the API server itself
//! as that account: in each way to find drivers what discovery needs, in the
//! namespaces that were named, and nothing else anywhere.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::kubernetes::{ApiServer, token_of_user};
use crate::world::{Helm, chart, with_operator};

/// A watch begins with a list; nothing is asked for by its name.
const PODS: [&str; 2] = ["list pods", "watch pods"];
const APPLICATIONS: [&str; 4] = [
    "list sparkapplications.spark.apache.org",
    "list sparkapplications.sparkoperator.k8s.io",
    "watch sparkapplications.spark.apache.org",
    "watch sparkapplications.sparkoperator.k8s.io",
];

/// Values, and in which namespaces the account may what.
struct Mode {
    name: &'static str,
    values: &'static str,
    /// Ends of names of namespaces; its own is `""`.
    may: &'static [&'static str],
    what: Vec<&'static str>,
}

fn modes() -> Vec<Mode> {
    let both: Vec<&str> = PODS.iter().chain(&APPLICATIONS).copied().collect();
    let mode = |name, values, may, what| Mode { name, values, may, what };
    vec![
        mode("own", "{}", &[""], both.clone()),
        mode(
            "list",
            "discovery: {namespaces: [list-etl, list-ml]}",
            &["-etl", "-ml"],
            both.clone(),
        ),
        mode("all", "discovery: {allNamespaces: true}", &["", "-etl", "-ml"], both),
        mode(
            "all-pods",
            "discovery: {allNamespaces: true, sparkApplications: \"off\"}",
            &["", "-etl", "-ml"],
            PODS.to_vec(),
        ),
        mode("own-pods", "discovery: {sparkApplications: \"off\"}", &[""], PODS.to_vec()),
        mode("disabled", "discovery: {enabled: false}", &[], Vec::new()),
        mode("no-rbac", "rbac: {create: false}", &[], Vec::new()),
    ]
}

#[tokio::test]
async fn the_service_account_may_what_is_needed_and_nothing_else() {
    let server = with_operator().await;
    let helm = Helm::new("4", server);
    let chart = chart();
    let chart = chart.to_str().unwrap();
    // What anybody may who is known at all.
    server.namespace("rights").await;
    server
        .create(
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody, namespace: rights}}",
        )
        .await;
    let nobody = server.token_of("rights", "nobody").await;
    let anybody = rights(server, &nobody, "rights").await;
    assert!(anybody.iter().all(|right| !right.contains("pods")), "{anybody:?}");

    for Mode { name, values, may, what } in modes() {
        for end in ["", "-etl", "-ml"] {
            server.namespace(&format!("{name}{end}")).await;
        }
        helm.succeeds(&["install", "watch", chart, "--namespace", name], values);
        let token = server.token_of(name, "watch-spark-exporter").await;
        for end in ["", "-etl", "-ml"] {
            let namespace = format!("{name}{end}");
            let more: BTreeSet<String> =
                rights(server, &token, &namespace).await.difference(&anybody).cloned().collect();
            let expected: &[&str] = if may.contains(&end) { &what } else { &[] };
            let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(more, expected, "{name}: in {namespace}");
            tried(server, &token, &namespace, may.contains(&end)).await;
        }
        // The whole cluster's pods are for who was given the whole cluster.
        let (status, said) = server.request_as(&token, Method::GET, "/api/v1/pods", None).await;
        let all = values.contains("allNamespaces");
        assert_eq!(status.is_success(), all, "{name}: {said}");
        for path in ["/api/v1/nodes", "/api/v1/namespaces", "/api/v1/secrets", "/api/v1/events"] {
            let (status, said) = server.request_as(&token, Method::GET, path, None).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{name}: {path}: {said}");
        }
        // Its pod has a token only where one is used.
        let path = format!("/apis/apps/v1/namespaces/{name}/deployments/watch-spark-exporter");
        let deployment = server.get(&path).await.unwrap();
        let mounted = &deployment["spec"]["template"]["spec"]["automountServiceAccountToken"];
        assert_eq!(*mounted, json!(name != "disabled"), "{name}");
    }
}

/// Somebody who administers one namespace and nothing else (Kubernetes' own
/// role `admin`, and what the Prometheus operator reads) installs, upgrades and
/// uninstalls it there. Nothing of the chart asks after the rest of the cluster.
#[tokio::test]
async fn a_tenant_needs_no_right_outside_of_their_namespace() {
    let server = with_operator().await;
    server.namespace("tenant").await;
    server.create(TENANT).await;
    let chart = chart();
    let chart = chart.to_str().unwrap();
    for version in ["3", "4"] {
        let helm = Helm::of(version, server, &token_of_user("alice"), "tenant");
        let values = "discovery: {sparkApplications: \"off\"}\n\
                      storage: {persistence: {enabled: true}}";
        let name = &format!("mine-{version}");
        helm.succeeds(&["install", name, chart], values);
        helm.succeeds(&["upgrade", name, chart, "--set", "replicaCount=2"], values);
        helm.succeeds(&["rollback", name, "1"], "");
        helm.succeeds(&["uninstall", name], "");
        // To grant a right one has to have it: who has none to the operators'
        // kinds is told so.
        let output = helm.run(&["install", name, chart], "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("sparkapplications") && said.contains("not currently held"),
            "{said}"
        );
        let values = "discovery: {allNamespaces: true}";
        let output = helm.run(&["install", &format!("all-{version}"), chart], values);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("clusterroles") && said.contains("forbidden"), "{said}");
    }
}

/// What the role `admin` is made of: the controller that puts it together does
/// not run here.
const TENANT: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admin, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:aggregate-to-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:aggregate-to-edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:aggregate-to-view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: monitors, namespace: tenant}
rules:
  - apiGroups: [monitoring.coreos.com]
    resources: [servicemonitors, prometheusrules]
    verbs: [get, list, watch, create, update, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: monitors, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: monitors}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
";

/// What they may in a namespace, the whole cluster's rights included, as
/// `VERB RESOURCE.GROUP` or `VERB /PATH`, as the API server tells themselves.
async fn rights(server: &ApiServer, token: &str, namespace: &str) -> BTreeSet<String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (status, answer) = server.request_as(token, Method::POST, path, Some(&review)).await;
    assert!(status.is_success(), "{answer}");
    let status = &answer["status"];
    assert_eq!(status["incomplete"], false, "{status}");
    let mut rights = BTreeSet::new();
    let words = |rule: &Value, key: &str| -> Vec<String> {
        let words = rule[key].as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    for rule in status["resourceRules"].as_array().unwrap() {
        for verb in words(rule, "verbs") {
            for group in words(rule, "apiGroups") {
                for resource in words(rule, "resources") {
                    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                    let names = words(rule, "resourceNames").join(",");
                    let names = if names.is_empty() { names } else { format!(" {names}") };
                    rights.insert(format!("{verb} {resource}{group}{names}"));
                }
            }
        }
    }
    for rule in status["nonResourceRules"].as_array().unwrap() {
        for verb in words(rule, "verbs") {
            for path in words(rule, "nonResourceURLs") {
                rights.insert(format!("{verb} {path}"));
            }
        }
    }
    rights
}

/// The same by trying: what a stolen token would be used for is refused.
async fn tried(server: &ApiServer, token: &str, namespace: &str, may: bool) {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let (status, said) = server.request_as(token, Method::GET, &pods, None).await;
    assert_eq!(status.is_success(), may, "{namespace}: {said}");
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine"},
        "spec": {"containers": [{"name": "mine", "image": "mine"}]},
    });
    for (method, path, body) in [
        (Method::POST, pods.clone(), Some(&pod)),
        (Method::GET, format!("{pods}/driver"), None),
        (Method::DELETE, format!("{pods}/driver"), None),
        (Method::GET, format!("{pods}/driver/log"), None),
        (Method::POST, format!("{pods}/driver/exec?command=sh"), None),
        (Method::GET, format!("{pods}/driver/proxy/"), None),
        (Method::GET, format!("/api/v1/namespaces/{namespace}/secrets"), None),
        (Method::GET, format!("/api/v1/namespaces/{namespace}/configmaps"), None),
        (Method::GET, format!("/api/v1/namespaces/{namespace}/services"), None),
        (Method::GET, format!("/apis/apps/v1/namespaces/{namespace}/deployments"), None),
        (
            Method::POST,
            format!("/api/v1/namespaces/{namespace}/serviceaccounts/default/token"),
            Some(&pod),
        ),
    ] {
        let (status, said) = server.request_as(token, method.clone(), &path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {said}");
    }
}
