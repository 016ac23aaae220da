//! Connections that break, a server that goes and comes back, permissions
//! that are missing.

use std::time::Duration;

use crate::common::kubernetes::{ApiServer, token_of_user};
use crate::common::real::get;
use crate::common::recorded_server::recorded_driver;
use crate::gate::Gate;
use crate::setting::{By, Setting, by_kind, drivers, failures, target_up};

/// What happened behind a broken connection is seen once it is back: a pod
/// that went and one that came; those that stayed were asked all the time.
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_while_nothing_is_seen_is_gone_afterwards() {
    let server = ApiServer::shared().await;
    let gate = Gate::before(&server.url).await;
    let by = By { url: Some(gate.url()), ..By::default() };
    let setting = Setting::new("behind-a-gate", by).await;
    let driver = recorded_driver().await;
    for pod in ["stays", "goes"] {
        setting.driver(pod, "spark-1", driver.port()).await;
        setting.runs(pod).await;
    }
    let text = setting.drivers("answering", 2.0).await;
    let lists = |text: &str| by_kind(text, "lists_total", "driver_pods");
    assert_eq!(lists(&text), Some(1.0));

    gate.shut();
    let text = setting.until(|text| target_up(text) == Some(0.0)).await;
    assert_eq!(drivers(&text, "answering"), Some(2.0), "what was found is asked on");
    assert_eq!(by_kind(&text, "watch_up", "driver_pods"), Some(0.0));
    assert!(failures(&text, "driver_pods", "unreachable") >= 1.0);
    setting.server.delete(&setting.path("goes")).await;
    setting.driver("comes", "spark-2", driver.port()).await;
    setting.runs("comes").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    gate.open();

    let text = setting.until(|text| target_up(text) == Some(1.0)).await;
    assert_eq!(by_kind(&text, "objects", "driver_pods"), Some(2.0));
    let text = setting.drivers("answering", 2.0).await;
    assert!(lists(&text) >= Some(2.0), "told from a new list");
    let said = setting.exporter.said();
    let warned = said.iter().filter(|line| {
        line.contains("Kubernetes cannot be watched") && line.contains("driver_pods")
    });
    assert_eq!(warned.count(), 1, "said once, however often it is tried");
    assert!(said.iter().any(|line| line.contains("Kubernetes is watched again")));
}

/// The API server is killed, and comes back without its history.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_is_watched_again() {
    let server: &'static ApiServer = Box::leak(Box::new(ApiServer::start().await));
    server.namespace("restarted").await;
    let setting = Setting::on(server, "restarted", By::default());
    let driver = recorded_driver().await;
    setting.driver("before", "spark-1", driver.port()).await;
    setting.runs("before").await;
    setting.drivers("answering", 1.0).await;

    server.kill();
    let text = setting.until(|text| target_up(text) == Some(0.0)).await;
    assert_eq!(drivers(&text, "answering"), Some(1.0));
    server.start_again().await;
    setting.until(|text| target_up(text) == Some(1.0)).await;
    setting.driver("after", "spark-2", driver.port()).await;
    setting.runs("after").await;
    setting.drivers("answering", 2.0).await;

    server.forget_history().await;
    setting.server.delete(&setting.path("before")).await;
    let text = setting
        .until(|text| {
            target_up(text) == Some(1.0) && by_kind(text, "objects", "driver_pods") == Some(1.0)
        })
        .await;
    assert_eq!(drivers(&text, "answering"), Some(1.0));
    server.kill();
}

fn role(verbs: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n\
         metadata: {{name: exporter, namespace: may-not}}\n\
         rules: [{{apiGroups: [''], resources: [pods], verbs: [{verbs}]}}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
         metadata: {{name: exporter, namespace: may-not}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: exporter}}\n\
         subjects: [{{kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}}]\n"
    )
}

/// Without its permission the source is down and says so; it is up once it is
/// given, and down again when it is taken away.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_is_missing_is_told_and_tried_again() {
    let server = ApiServer::shared().await;
    let gate = Gate::before(&server.url).await;
    let by = By { token: &token_of_user("alice"), url: Some(gate.url()), ..By::default() };
    let setting = Setting::new("may-not", by).await;
    let text = setting.until(|text| target_up(text) == Some(0.0)).await;
    assert!(failures(&text, "driver_pods", "forbidden") >= 1.0);
    assert!(failures(&text, "executor_pods", "forbidden") >= 1.0);
    // Whoever cannot find drivers is ready all the same: it has tried.
    get(&setting.metrics.replace("/metrics", "/-/ready")).await;

    let made = server.create(&role("list, watch")).await;
    let driver = recorded_driver().await;
    setting.driver("etl", "spark-1", driver.port()).await;
    setting.runs("etl").await;
    setting.until(|text| target_up(text) == Some(1.0)).await;
    setting.drivers("answering", 1.0).await;

    for path in &made {
        server.delete(path).await;
    }
    // A watch that is open goes on; the next one is refused.
    gate.shut();
    setting.until(|text| target_up(text) == Some(0.0)).await;
    gate.open();
    let forbidden = failures(&get(&setting.metrics).await, "driver_pods", "forbidden");
    let text = setting
        .until(|text| {
            failures(text, "driver_pods", "forbidden") > forbidden && target_up(text) == Some(0.0)
        })
        .await;
    assert_eq!(drivers(&text, "answering"), Some(1.0), "what was found is asked on");
    let said = setting.exporter.said();
    let told = said
        .iter()
        .find(|line| line.contains("Kubernetes cannot be watched") && line.contains("driver_pods"))
        .unwrap();
    assert!(told.contains("pods is forbidden") && told.contains("list and watch"), "{told}");
    assert!(!said.iter().any(|line| line.contains("token-of-alice")), "no token in the log");
}
