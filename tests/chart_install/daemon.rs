//! The program that the chart starts: it takes the arguments and the files
//! that the chart makes, and the rights of its service account are enough.

use std::time::Duration;

use serde_json::json;

use crate::common::fake_spark::FakeSpark;
use crate::common::real::{get, until};
use crate::common::recorded_server::{answer, folder};
use crate::common::value;
use crate::container::Container;
use crate::world::{Helm, chart, ci_values, with_operator};

/// Whoever changes the configuration or the chart alone learns of it here.
#[tokio::test]
async fn every_example_is_a_configuration_that_the_program_takes() {
    let server = crate::examples::with_all().await;
    let helm = Helm::new("4", server);
    let mut refused = Vec::new();
    for file in ci_values() {
        let values = std::fs::read_to_string(&file).unwrap();
        if values.contains("configExistingSecret") {
            continue;
        }
        let objects = helm.objects("watch", crate::examples::NAMESPACE, &values);
        let container = Container::new(&objects, &SECRETS.map(|name| (name, "secret".to_owned())));
        if let Err(said) = container.check() {
            refused.push(format!("{}: {said}", file.display()));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Files that examples take from Secrets of their reader.
const SECRETS: [&str; 8] = [
    "history-server/password",
    "company-ca/ca.crt",
    "minio/key",
    "s3/secret",
    "collector-token/header",
    "collector-ca/ca.crt",
    "spark-exporter-postgres/password",
    "postgres-ca/ca.crt",
];

/// A release in a namespace of its own finds drivers there; one that names
/// namespaces finds them in those and in no other; one that has no right says
/// so, and is up all the same.
#[tokio::test]
async fn it_finds_drivers_with_the_rights_of_its_service_account() {
    let server = with_operator().await;
    let helm = Helm::new("4", server);
    let chart = chart();
    let spark = FakeSpark::start(|asked| answer(&folder("4.3.0", "live"), asked)).await;
    let port = spark.url("").rsplit_once(':').unwrap().1.parse().unwrap();
    for namespace in ["found", "found-etl", "found-ml", "found-other"] {
        server.namespace(namespace).await;
        driver(server, namespace, port).await;
    }
    for (release, values, found) in [
        ("own", "storage: {persistence: {enabled: true}}", Some(1.0)),
        ("list", "discovery: {namespaces: [found-etl, found-ml]}", Some(2.0)),
        ("refused", "rbac: {create: false}", None),
    ] {
        let name = format!("{release}-spark-exporter");
        let chart = chart.to_str().unwrap();
        helm.succeeds(&["install", release, chart, "--namespace", "found"], values);
        let objects = helm.objects(release, "found", values);
        let container = Container::new(&objects, &[]);
        let token = server.token_of("found", &name).await;
        let kubeconfig = container.path("kubeconfig");
        server.kubeconfig(&kubeconfig, &token, "found");
        container.reaches_by(&kubeconfig);
        let (_program, address) = container.run();
        let metrics = format!("http://{address}/metrics");
        let series = |text: &str, metric: &str, labels: &str| {
            value(text, &format!("{metric}{{spark_cluster=\"default\",{labels}}}"))
        };
        let within = Duration::from_mins(2);
        if let Some(count) = found {
            until(&metrics, within, |text| {
                let drivers =
                    series(text, "spark_exporter_kubernetes_drivers", "state=\"running\"");
                let up = series(text, "spark_exporter_target_up", "target=\"kubernetes\"");
                (drivers == Some(count) && up == Some(1.0)).then_some(())
            })
            .await;
            until(&metrics, within, |text| text.contains("spark_application_state{").then_some(()))
                .await;
        } else {
            until(&metrics, within, |text| {
                let up = series(text, "spark_exporter_target_up", "target=\"kubernetes\"");
                let denied = text.lines().any(|line| {
                    line.starts_with("spark_exporter_kubernetes_watch_failures_total{")
                        && line.contains("reason=\"forbidden\"")
                        && !line.ends_with(" 0")
                });
                (up == Some(0.0) && denied).then_some(())
            })
            .await;
        }
        get(&format!("http://{address}/-/ready")).await;
        let store = container.path("/var/lib/spark-exporter/store.redb");
        assert_eq!(store.exists(), values.contains("persistence"), "{release}");
    }
}

/// A driver as Spark makes its pod, behind whose address a recorded one answers.
async fn driver(server: &crate::common::kubernetes::ApiServer, namespace: &str, port: u16) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", "namespace": namespace, "labels": {
            "spark-role": "driver",
            "spark-app-selector": format!("spark-{namespace}"),
        }},
        "spec": {"containers": [{
            "name": "spark-kubernetes-driver",
            "image": "spark",
            "ports": [{"name": "spark-ui", "containerPort": port}],
        }]},
    });
    let paths = server.create(&pod.to_string()).await;
    let running = json!({
        "phase": "Running",
        "podIP": "127.0.0.1",
        "containerStatuses": [{
            "name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2026-11-01T10:00:00Z"}},
        }],
    });
    server.patch_status(&paths[0], &running).await;
}
