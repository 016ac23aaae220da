//! Helm as people run it, and what it leaves on the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Output};

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::kubernetes::objects::objects;
use crate::common::kubernetes::{ADMIN_TOKEN, ApiServer};
use crate::common::real::{part, root};

/// The chart's folder.
pub(crate) fn chart() -> PathBuf {
    root().join("helm/spark-exporter")
}

/// The values files of `ci/`, one for each feature.
pub(crate) fn ci_values() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(chart().join("ci"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with("-values.yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 5, "the chart has too few examples of values: {files:?}");
    files
}

/// The server that tests share, with the kinds of the Prometheus operator.
pub(crate) async fn with_operator() -> &'static ApiServer {
    static ONCE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let server = ApiServer::shared().await;
    ONCE.get_or_init(|| server.install_crds("prometheus-operator")).await;
    server
}

/// Helm 3 or 4 as an administrator has it, with nothing of its own on this
/// machine.
pub(crate) struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: tempfile::TempDir,
}

impl Helm {
    pub(crate) fn new(version: &str, server: &ApiServer) -> Self {
        Self::of(version, server, ADMIN_TOKEN, "default")
    }

    /// As whoever has this token, in a namespace unless another is named.
    pub(crate) fn of(version: &str, server: &ApiServer, token: &str, namespace: &str) -> Self {
        let program = part(&["helm", version]).join("helm");
        let home = tempfile::tempdir().unwrap();
        let kubeconfig = home.path().join("kubeconfig");
        server.kubeconfig(&kubeconfig, token, namespace);
        Self { program, kubeconfig, home }
    }

    /// `helm ARGUMENTS`, with these values (YAML) where there are any.
    pub(crate) fn run(&self, arguments: &[&str], values: &str) -> Output {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(folder, self.home.path());
        }
        if !values.is_empty() {
            let file = self.home.path().join(format!("{}.yaml", fastrand::u64(..)));
            std::fs::write(&file, values).unwrap();
            command.arg("--values").arg(file);
        }
        command.output().unwrap()
    }

    /// The same where it must succeed; what it prints.
    pub(crate) fn succeeds(&self, arguments: &[&str], values: &str) -> String {
        let output = self.run(arguments, values);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "helm {arguments:?} with {values}: {errors}");
        // Helm's own remarks about a chart are for its author.
        assert!(!errors.contains("WARNING: Kubernetes configuration"), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The objects that a release `name` in this namespace would be, those of
    /// hooks too, with the kinds that this API server knows (Helm 4).
    pub(crate) fn objects(&self, name: &str, namespace: &str, values: &str) -> Vec<Value> {
        let chart = chart();
        let chart = chart.to_str().unwrap();
        let arguments = ["template", name, chart, "--namespace", namespace, "--dry-run=server"];
        objects(&self.succeeds(&arguments, values))
    }
}

/// All that is in a namespace, as `Kind/name`, but what is only told there:
/// events, which the API server writes too, where it looks at the address of a
/// Service that is being made. Helm's own records are `Secret/sh.helm…`.
pub(crate) async fn everything_in(server: &ApiServer, namespace: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, kind) in listed(server).await {
        let Some((group, resource)) = path.rsplit_once('/') else { continue };
        let path = format!("{group}/namespaces/{namespace}/{resource}");
        for item in server.list(&path).await {
            found.insert(format!("{kind}/{}", item["metadata"]["name"].as_str().unwrap()));
        }
    }
    found
}

/// Objects outside of namespaces that carry this label.
pub(crate) async fn cluster_objects_of(server: &ApiServer, release: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for kind in ["clusterroles", "clusterrolebindings"] {
        let path = format!(
            "/apis/rbac.authorization.k8s.io/v1/{kind}?labelSelector=app.kubernetes.io/instance={release}"
        );
        for item in server.list(&path).await {
            found.insert(format!("{kind}/{}", item["metadata"]["name"].as_str().unwrap()));
        }
    }
    found
}

/// Every kind that can be listed in a namespace: path of its resource, kind.
/// Of the shared server once, since no test there defines others.
async fn listed(server: &ApiServer) -> &'static BTreeMap<String, String> {
    static LISTED: tokio::sync::OnceCell<BTreeMap<String, String>> =
        tokio::sync::OnceCell::const_new();
    LISTED.get_or_init(|| kinds_of(server)).await
}

async fn kinds_of(server: &ApiServer) -> BTreeMap<String, String> {
    let mut versions = vec!["/api/v1".to_owned()];
    let (_, groups) = server.request_as(ADMIN_TOKEN, Method::GET, "/apis", None).await;
    for group in groups["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        versions.push(format!("/apis/{version}"));
    }
    let mut kinds = BTreeMap::new();
    for version in versions {
        let (_, resources) = server.request_as(ADMIN_TOKEN, Method::GET, &version, None).await;
        for resource in resources["resources"].as_array().into_iter().flatten() {
            let verbs = resource["verbs"].as_array().unwrap();
            let kind = resource["kind"].as_str().unwrap();
            let kept = resource["namespaced"] == true && kind != "Event";
            if kept && verbs.contains(&json!("list")) {
                let name = resource["name"].as_str().unwrap();
                kinds.insert(format!("{version}/{name}"), kind.to_owned());
            }
        }
    }
    kinds
}
