//! The API server that the other tests rely on: that it is one.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::common::kubernetes::{ADMIN_TOKEN, ApiServer, token_of_user};

/// Pods, their status, tokens and rights are what they are anywhere.
#[tokio::test]
async fn it_keeps_objects_and_knows_who_may() {
    let server = ApiServer::shared().await;
    let namespace = server.namespace("objects").await;
    let paths = server
        .create(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: driver, namespace: objects}\n\
             spec: {containers: [{name: spark, image: spark}]}\n---\n\
             apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, namespace: objects}\n",
        )
        .await;
    let pod = &paths[0];
    server.patch_status(pod, &json!({"phase": "Running", "podIP": "127.0.0.1"})).await;
    assert_eq!(server.get(pod).await.unwrap()["status"]["podIP"], "127.0.0.1");

    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    for token in [server.token_of(&namespace, "reader").await, token_of_user("alice")] {
        let (status, said) = server.request_as(&token, Method::GET, &pods, None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
    }
    let (status, _) = server.request_as(ADMIN_TOKEN, Method::GET, &pods, None).await;
    assert_eq!(status, StatusCode::OK);

    let output = server.kubectl().args(["get", "pods", "-n", &namespace]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("driver") && text.contains("Running"), "{text}");

    server.delete(pod).await;
    assert_eq!(server.get(pod).await, None);
}

/// The kinds of the three operators, twice.
#[tokio::test]
async fn it_takes_the_operators_definitions() {
    let server = ApiServer::shared().await;
    for operator in ["kubeflow", "apache", "prometheus-operator", "kubeflow"] {
        server.install_crds(operator).await;
    }
    for path in [
        "/apis/sparkoperator.k8s.io/v1beta2/sparkapplications",
        "/apis/spark.apache.org/v1/sparkapplications",
        "/apis/monitoring.coreos.com/v1/servicemonitors",
    ] {
        server.list(path).await;
    }
}

/// What it held is there after a crash, on the same port; and a watch cannot
/// go on from before its history was removed.
#[tokio::test]
async fn it_crashes_and_forgets() {
    let server = ApiServer::start().await;
    let namespaces = "/api/v1/namespaces";
    server.namespace("before").await;
    server.kill();
    let there = std::net::TcpStream::connect(server.url.trim_start_matches("https://"));
    assert!(there.is_err(), "it listens still");
    server.start_again().await;
    assert!(server.get(&format!("{namespaces}/before")).await.is_some());

    let (_, list) = server.request_as(ADMIN_TOKEN, Method::GET, namespaces, None).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{namespaces}?watch=1&timeoutSeconds=1&resourceVersion={version}");
    server.namespace("after").await;
    let (_, seen) = server.request_as(ADMIN_TOKEN, Method::GET, &watch, None).await;
    assert!(seen.to_string().contains("after"), "{seen}");
    server.forget_history().await;
    let (_, seen) = server.request_as(ADMIN_TOKEN, Method::GET, &watch, None).await;
    assert!(seen.to_string().contains("410"), "{seen}");
}
