//! What an API server holds: asked for, made, changed and deleted as the
//! administrator does it, or as somebody else.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ADMIN_TOKEN, ApiServer, STARTS_WITHIN};
use crate::common::real::part;

impl ApiServer {
    /// As the administrator.
    pub(super) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(ADMIN_TOKEN)
    }

    /// A request as whoever has this token: status and answer.
    pub(crate) async fn request_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(token);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        answer_of(request, path).await
    }

    pub(super) async fn succeeds(&self, request: reqwest::RequestBuilder, what: &str) -> Value {
        let (status, answer) = answer_of(request, what).await;
        assert!(status.is_success(), "{what}: {status} {answer}");
        answer
    }

    /// What is there, by its path (`/api/v1/namespaces/etl/pods/driver`).
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let (status, answer) = answer_of(self.request(Method::GET, path), path).await;
        assert!(
            status.is_success() || status == StatusCode::NOT_FOUND,
            "{path}: {status} {answer}"
        );
        status.is_success().then_some(answer)
    }

    /// `items` of a list.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.succeeds(self.request(Method::GET, path), path).await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// At once, without a grace period, in which no kubelet would end a pod.
    pub(crate) async fn delete(&self, path: &str) {
        let body = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let request = self.request(Method::DELETE, path).header("content-type", "application/json");
        self.succeeds(request.body(body.to_string()), &format!("DELETE {path}")).await;
    }

    /// Merges this into an object (RFC 7386: null removes).
    pub(crate) async fn patch(&self, path: &str, changes: &Value) -> Value {
        let request = self
            .request(Method::PATCH, path)
            .header("content-type", "application/merge-patch+json")
            .body(changes.to_string());
        self.succeeds(request, &format!("PATCH {path}")).await
    }

    /// Merges this into an object's status, as its kubelet or operator does.
    pub(crate) async fn patch_status(&self, path: &str, status: &Value) -> Value {
        self.patch(&format!("{path}/status"), &json!({"status": status})).await
    }

    /// Makes the objects of a YAML text, any number with `---` between; their
    /// paths.
    pub(crate) async fn create(&self, yaml: &str) -> Vec<String> {
        let mut paths = Vec::new();
        for object in objects(yaml) {
            let path = self.collection_of(&object).await;
            let request = self.request(Method::POST, &path);
            let request = request.header("content-type", "application/json");
            let made =
                self.succeeds(request.body(object.to_string()), &format!("POST {path}")).await;
            paths.push(format!("{path}/{}", made["metadata"]["name"].as_str().unwrap()));
        }
        paths
    }

    /// Where objects of this kind are, in this one's namespace.
    pub(crate) async fn collection_of(&self, object: &Value) -> String {
        let (version, kind) =
            (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let group = if version.contains('/') {
            format!("/apis/{version}")
        } else {
            format!("/api/{version}")
        };
        let resources = self.succeeds(self.request(Method::GET, &group), &group).await;
        let resource = resources["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|resource| {
                resource["kind"] == kind && !resource["name"].as_str().unwrap().contains('/')
            })
            .unwrap_or_else(|| panic!("the API server knows no {kind} of {version}"));
        let name = resource["name"].as_str().unwrap();
        if resource["namespaced"] == true {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            format!("{group}/namespaces/{namespace}/{name}")
        } else {
            format!("{group}/{name}")
        }
    }

    /// Makes a namespace, and says its name.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        self.create(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"))
            .await;
        name.to_owned()
    }

    /// Makes the kinds that a folder of `tests/parts/operator-crds` defines
    /// (`prometheus-operator`, `kubeflow`, `apache`); returns once they are
    /// served. Who calls second finds them there.
    pub(crate) async fn install_crds(&self, operator: &str) {
        const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let mut files: Vec<PathBuf> = std::fs::read_dir(part(&["operator-crds"]).join(operator))
            .unwrap_or_else(|error| panic!("no CRDs of {operator}: {error}"))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            for object in objects(&std::fs::read_to_string(&file).unwrap()) {
                let path =
                    format!("{DEFINITIONS}/{}", object["metadata"]["name"].as_str().unwrap());
                let request = self.request(Method::POST, DEFINITIONS);
                let request = request.header("content-type", "application/json");
                let (status, answer) = answer_of(request.body(object.to_string()), &path).await;
                let there = status == StatusCode::CONFLICT || status.is_success();
                assert!(there, "{}: {status} {answer}", file.display());
                self.served(&path).await;
            }
        }
    }

    async fn served(&self, definition: &str) {
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            let found = self.get(definition).await.unwrap_or_default();
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let established = |condition: &Value| {
                condition["type"] == "Established" && condition["status"] == "True"
            };
            if conditions.iter().any(established) && self.lists(&found["spec"]).await {
                return;
            }
            assert!(Instant::now() < deadline, "{definition} is not served: {found}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether what a definition defines is among the kinds that clients find.
    async fn lists(&self, definition: &Value) -> bool {
        let group = definition["group"].as_str().unwrap();
        for version in definition["versions"].as_array().unwrap() {
            let path = format!("/apis/{group}/{}", version["name"].as_str().unwrap());
            let resources = self.get(&path).await.unwrap_or_default();
            let found = resources["resources"].as_array().is_some_and(|resources| {
                resources.iter().any(|resource| resource["name"] == definition["names"]["plural"])
            });
            if version["served"] == true && !found {
                return false;
            }
        }
        true
    }
}

/// The documents of a YAML text, read as Kubernetes reads it (YAML 1.1, where
/// `0440` is octal).
pub(crate) fn objects(yaml: &str) -> Vec<Value> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(yaml, options)
        .unwrap_or_else(|error| panic!("not YAML: {error}\n{yaml}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

async fn answer_of(request: reqwest::RequestBuilder, what: &str) -> (StatusCode, Value) {
    let answer = request.send().await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let text = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, text)
}
