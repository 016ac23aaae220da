//! The program that the chart starts: it takes the arguments and the files
//! that the chart makes, and the rights of its service account are enough.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use crate::common::real::{get, until};
use crate::common::recorded_server::recorded_driver;
use crate::common::value;
use crate::container::Container;
use crate::world::{Helm, chart, with_operator};

/// Each pod of a StatefulSet knows its part of the runs by its own name.
#[tokio::test]
async fn a_shard_is_told_which_one_it_is() {
    let server = crate::examples::with_all().await;
    let container = example(server, "shards-values.yaml", &[]);
    let (_program, address) = container.run();
    let metrics = format!("http://{address}/metrics");
    // The last of three. (Before it watches anything it tells of no shard yet.)
    until(&metrics, Duration::from_mins(1), |text| {
        let told =
            ["shard_ordinal", "shards"].map(|name| value(text, &format!("spark_exporter_{name}")));
        (told == [Some(2.0), Some(3.0)]).then_some(())
    })
    .await;
}

/// Where not everybody may ask, the pod's probes may: the very command that
/// the kubelet would run, with what the chart was told of credentials.
#[tokio::test]
async fn probes_pass_where_users_and_certificates_are_asked_for() {
    let server = crate::examples::with_all().await;
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    };
    let (certificate, key) = signed("127.0.0.1");
    let (client_certificate, client_key) = signed("prometheus");
    let secrets = [
        ("spark-exporter-tls/tls.crt", certificate),
        ("spark-exporter-tls/tls.key", key),
        ("spark-exporter-tls/ca.crt", authority.clone()),
        ("spark-exporter-client/tls.crt", client_certificate),
        ("spark-exporter-client/tls.key", client_key),
        ("spark-exporter-user/username", "prometheus".to_owned()),
        ("spark-exporter-user/password", "correct horse".to_owned()),
    ];
    let authority = reqwest::Certificate::from_pem(authority.as_bytes()).unwrap();
    let stranger =
        reqwest::Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap();
    for file in ["tls-and-users-values.yaml", "client-certificates-values.yaml"] {
        let container = example(server, file, &secrets);
        let (_program, address) = container.run();
        for probe in ["readinessProbe", "livenessProbe"] {
            let output = container.probe(probe, &address).arg("--wait=1m").output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{file}: {probe}: {said}");
        }
        // Nobody else: without a certificate there is no connection at all.
        let answer = stranger.get(format!("https://{address}/metrics")).send().await;
        let status = answer.map(|answer| answer.status().as_u16()).ok();
        assert_eq!(status, file.starts_with("tls").then_some(401), "{file}");
    }
}

/// The container of an example, before the shared API server.
fn example(
    server: &crate::common::kubernetes::ApiServer,
    file: &str,
    secrets: &[(&str, String)],
) -> Container {
    let values = std::fs::read_to_string(chart().join("ci").join(file)).unwrap();
    // Nobody knows the password of the example.
    let hash = bcrypt::hash("correct horse", 4).unwrap();
    let example = regex::Regex::new(r"\$2y\$\S+").unwrap();
    let values = example.replace_all(&values, regex::NoExpand(&hash));
    let objects = Helm::new("4", server).objects("watch", crate::examples::NAMESPACE, &values);
    let container = Container::new(&objects, secrets);
    container.reaches_by(&server.admin_config());
    container
}

/// A release in a namespace of its own finds drivers there; one that names
/// namespaces finds them in those and in no other; one that has no right says
/// so, and is up all the same.
#[tokio::test]
async fn it_finds_drivers_with_the_rights_of_its_service_account() {
    let server = with_operator().await;
    let helm = Helm::new("4", server);
    let chart = chart();
    let mut drivers = Vec::new();
    for namespace in ["found", "found-etl", "found-ml", "found-other"] {
        server.namespace(namespace).await;
        let spark = recorded_driver().await;
        let port = spark.url("").rsplit_once(':').unwrap().1.parse().unwrap();
        driver(server, namespace, port).await;
        drivers.push(spark);
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
                    series(text, "spark_exporter_kubernetes_drivers", "state=\"answering\"");
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
