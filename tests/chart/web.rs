//! Probes, Prometheus and `helm test` ask as the web end wants to be asked.

use serde_json::{Value, json};

use crate::helm::{config, container, kind, one, with};

const HASH: &str = "web.users.me=$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

fn probes(sets: &[&str]) -> (Vec<Value>, Vec<Value>) {
    let objects = with(sets);
    let own = container(&objects);
    (vec![own["livenessProbe"].clone(), own["readinessProbe"].clone()], objects)
}

fn web_file(objects: &[Value]) -> Value {
    let secret = one(objects, "Secret");
    serde_saphyr::from_str(secret["stringData"]["web.yml"].as_str().unwrap()).unwrap()
}

#[test]
fn without_a_file_probes_ask_in_the_open() {
    let (probes, objects) = probes(&[]);
    for (probe, path) in probes.iter().zip(["/-/healthy", "/-/ready"]) {
        assert_eq!(probe["httpGet"], json!({"path": path, "port": "http", "scheme": "HTTP"}));
    }
    assert!(kind(&objects, "Secret").is_empty());
    assert!(!serde_json::to_string(container(&objects)).unwrap().contains("web.config.file"));
}

#[test]
fn with_tls_alone_they_ask_by_https() {
    let (probes, objects) = probes(&["web.tls.secretName=cert", "web.tls.minVersion=TLS13"]);
    for probe in &probes {
        assert_eq!(probe["httpGet"]["scheme"], "HTTPS");
    }
    assert_eq!(
        web_file(&objects),
        json!({"tls_server_config": {
            "cert_file": "/web-tls/tls.crt",
            "key_file": "/web-tls/tls.key",
            "min_version": "TLS13",
        }})
    );
    let arguments = container(&objects)["args"].as_array().unwrap();
    assert!(arguments.contains(&json!("--web.config.file=/etc/spark-exporter-web/web.yml")));
    let service = one(&objects, "Service");
    assert_eq!(service["metadata"]["annotations"]["prometheus.io/scheme"], "https");
    assert_eq!(service["spec"]["ports"][0]["appProtocol"], "https");
}

#[test]
fn with_users_they_ask_as_one_of_them() {
    let sets = [HASH, "web.client.basicAuth.secretName=user", "serviceMonitor.enabled=true"];
    let (probes, objects) = probes(&sets);
    for probe in &probes {
        let command = probe["exec"]["command"].as_array().unwrap();
        assert_eq!(
            command[..3],
            [json!("spark-exporter"), json!("check-ready"), json!("http://127.0.0.1:10404")]
        );
        assert!(command.contains(&json!("--http.config.file=/etc/spark-exporter/client.yml")));
    }
    assert!(probes[0]["exec"]["command"].as_array().unwrap().contains(&json!("--healthy")));
    let map = one(&objects, "ConfigMap");
    let client: Value =
        serde_saphyr::from_str(map["data"]["client.yml"].as_str().unwrap()).unwrap();
    assert_eq!(
        client,
        json!({"basic_auth": {
            "username_file": "/secrets/user/username",
            "password_file": "/secrets/user/password",
        }})
    );
    let endpoint = &one(&objects, "ServiceMonitor")["spec"]["endpoints"][0];
    assert_eq!(
        endpoint["basicAuth"],
        json!({
            "username": {"name": "user", "key": "username"},
            "password": {"name": "user", "key": "password"},
        })
    );
    // The hash is in the Secret and nowhere else.
    for object in &objects {
        let shown = serde_json::to_string(object).unwrap().contains("$2y$10$");
        assert_eq!(shown, object["kind"] == "Secret", "{object:#}");
    }
    // The test's pod has what it needs to ask.
    let pod = one(&objects, "Pod");
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["mountPath"] == "/secrets/user"));
}

#[test]
fn where_nobody_told_them_how_they_see_that_the_port_is_open() {
    for sets in [
        &[HASH][..],
        &["web.tls.secretName=cert", "web.tls.clientCaKey=ca.crt"],
        &["web.config.tls_server_config.client_auth_type=RequireAnyClientCert"],
    ] {
        for probe in probes(sets).0 {
            assert_eq!(probe["tcpSocket"], json!({"port": "http"}), "{sets:?}");
            assert!(probe.get("httpGet").is_none());
        }
    }
    // A certificate that is only asked for is not needed.
    let sets = ["web.config.tls_server_config.client_auth_type=VerifyClientCertIfGiven"];
    assert!(probes(&sets).0[0].get("httpGet").is_some());
}

#[test]
fn client_certificates_are_shown_by_probes_and_prometheus() {
    let sets = [
        "web.tls.secretName=cert",
        "web.tls.clientCaKey=ca.crt",
        "web.client.tls.secretName=client",
        "podMonitor.enabled=true",
    ];
    let (probes, objects) = probes(&sets);
    assert!(probes.iter().all(|probe| probe.get("exec").is_some()));
    let map = one(&objects, "ConfigMap");
    let client: Value =
        serde_saphyr::from_str(map["data"]["client.yml"].as_str().unwrap()).unwrap();
    assert_eq!(client["tls_config"]["cert_file"], "/secrets/client/tls.crt");
    let endpoint = &one(&objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["scheme"], "https");
    assert_eq!(
        endpoint["tlsConfig"],
        json!({
            "ca": {"secret": {"name": "cert", "key": "ca.crt"}},
            "serverName": "watch-spark-exporter.monitoring.svc",
            "cert": {"secret": {"name": "client", "key": "tls.crt"}},
            "keySecret": {"name": "client", "key": "tls.key"},
        })
    );
}

/// A probe of the user's own stays as it is.
#[test]
fn a_probe_can_be_something_else() {
    let (probes, _) = probes(&["livenessProbe.tcpSocket.port=http"]);
    assert!(probes[0].get("httpGet").is_none());
    assert!(probes[1].get("httpGet").is_some());
}

#[test]
fn pages_show_what_users_wrote_only_where_it_is_asked_for() {
    assert!(!config(&with(&[])).unwrap().contains("show_sql"));
    assert!(config(&with(&["web.showSql=true"])).unwrap().contains("show_sql: true"));
}
