//! Every values file of `ci/`: what the chart makes of it is what the API
//! server takes, every field of it, and what each version of Kubernetes since
//! the oldest that the chart names has a schema for; its pods are as closed as
//! the strictest standard for pods asks.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::kubernetes::objects::objects;
use crate::common::kubernetes::{ADMIN_TOKEN, ApiServer};
use crate::common::real::{part, root};
use crate::world::{Helm, chart, ci_values, with_operator};

pub(crate) const NAMESPACE: &str = "examples";

/// Kinds of others that no schema of Kubernetes tells of, by their group.
const CUSTOM: [&str; 4] =
    ["monitoring.coreos.com", "gateway.networking.k8s.io", "autoscaling.k8s.io", "cert-manager.io"];

/// What the chart makes of each values file, beside its name.
fn rendered(server: &ApiServer) -> Vec<(String, Vec<Value>)> {
    let helm = Helm::new("4", server);
    let render = |file: std::path::PathBuf| {
        let values = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        (name, helm.objects("watch", NAMESPACE, &values))
    };
    ci_values().into_iter().map(render).collect()
}

/// The server with all kinds and names that the examples speak of, as the
/// cluster of their reader has them; of cert-manager's a kind that takes anything.
pub(crate) async fn with_all() -> &'static ApiServer {
    static ONCE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let server = with_operator().await;
    ONCE.get_or_init(async || {
        server.install_crds("gateway-api").await;
        server.install_crds("autoscaler").await;
        server.create(SURROUNDINGS).await;
        for namespace in [NAMESPACE, "etl", "ml", "team-a", "team-b", "monitoring"] {
            let labels = "{pod-security.kubernetes.io/enforce: restricted}";
            let metadata = format!("{{name: {namespace}, labels: {labels}}}");
            server
                .create(&format!("{{apiVersion: v1, kind: Namespace, metadata: {metadata}}}"))
                .await;
        }
    })
    .await;
    server
}

const SURROUNDINGS: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: monitoring}
value: 1000
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: gvisor}
handler: runsc
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Certificate, listKind: CertificateList, plural: certificates, singular: certificate}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn group(object: &Value) -> &str {
    object["apiVersion"].as_str().unwrap().rsplit_once('/').map_or("", |(group, _)| group)
}

/// With `dryRun` it goes through everything but the store: schema, defaults,
/// admission. `fieldValidation=Strict` refuses what it would otherwise drop.
async fn refusal(server: &ApiServer, object: &Value) -> Option<String> {
    let path = server.collection_of(object).await;
    let path = format!("{path}?dryRun=All&fieldValidation=Strict");
    let (status, said) = server.request_as(ADMIN_TOKEN, Method::POST, &path, Some(object)).await;
    (!status.is_success()).then(|| format!("{path}: {status} {said}"))
}

#[tokio::test]
async fn the_api_server_takes_every_field() {
    let server = with_all().await;
    let mut refusals = Vec::new();
    let mut seen = BTreeSet::new();
    for (file, objects) in rendered(server) {
        for object in objects {
            seen.insert(object["kind"].as_str().unwrap().to_owned());
            let said = refusal(server, &object).await;
            refusals.extend(said.map(|said| format!("{file}: {said}")));
            // The pod that a controller would make of it.
            if let Some(template) = object["spec"].get("template") {
                let pod = pod_of(template, &object);
                let said = refusal(server, &pod).await;
                refusals.extend(said.map(|said| format!("{file}, its pod: {said}")));
            }
        }
    }
    assert!(refusals.is_empty(), "{}", refusals.join("\n"));
    let all = [
        "Certificate",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "HTTPRoute",
        "Ingress",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodMonitor",
        "Probe",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
        "StatefulSet",
        "VerticalPodAutoscaler",
    ];
    let all: BTreeSet<String> = all.map(str::to_owned).into();
    assert_eq!(seen, all, "the examples make each kind of object that the chart knows");

    // That it is a real check: a field that nobody knows, and a pod that is
    // less closed, are refused.
    let helm = Helm::new("4", server);
    let open = helm.objects(
        "watch",
        NAMESPACE,
        "securityContext: {readOnlyRootFilesystem: true}\n\
                                                 podSecurityContext: {runAsNonRoot: false}",
    );
    let deployment = open.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = pod_of(&deployment["spec"]["template"], deployment);
    let said = refusal(server, &pod).await.expect("an open pod is refused");
    assert!(said.contains("PodSecurity") && said.contains("restricted"), "{said}");
    let mut misspelt = deployment.clone();
    misspelt["spec"]["template"]["spec"]["serviceAccoutName"] = json!("x");
    let said = refusal(server, &misspelt).await.expect("a misspelt field is refused");
    assert!(said.contains("unknown field"), "{said}");
}

fn pod_of(template: &Value, owner: &Value) -> Value {
    let mut pod = template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(format!("{}-0", owner["metadata"]["name"].as_str().unwrap()));
    pod["metadata"]["namespace"] = owner["metadata"]["namespace"].clone();
    // The controller of a StatefulSet adds the pod's claims.
    for claim in owner["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
        let name = &claim["metadata"]["name"];
        let volume = json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        pod["spec"]["volumes"].as_array_mut().unwrap().push(volume);
    }
    pod
}

#[tokio::test]
async fn every_version_of_kubernetes_has_these_fields() {
    let server = with_all().await;
    let mut lines = String::new();
    for (file, objects) in rendered(server) {
        for object in objects {
            let custom = CUSTOM.contains(&group(&object));
            let line = json!({"from": file, "object": object, "custom": custom});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
    }
    // The chart's own word for it.
    let chart = &objects(&std::fs::read_to_string(chart().join("Chart.yaml")).unwrap())[0];
    let oldest = chart["kubeVersion"].as_str().unwrap();
    let oldest = oldest.trim_start_matches(">=").split('-').next().unwrap();
    let oldest = oldest.rsplit_once('.').unwrap().0;

    let mut child = Command::new(part(&["kubernetes-validate"]).join("bin/python"))
        .arg(root().join("tests/chart_install/validate.py"))
        .arg(oldest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "validate.py says above why");
    let said = String::from_utf8(output.stdout).unwrap();
    let complaints: Vec<&str> = said.lines().collect();
    let (last, complaints) = complaints.split_last().unwrap();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let mut words = last.split(' ');
    let versions: Vec<&str> = words.next().unwrap().split(',').collect();
    assert!(versions[0] == oldest && versions.len() >= 10, "{versions:?}");
    let known: usize = words.next_back().unwrap().parse().unwrap();
    assert!(known >= 60, "{last}");
}
