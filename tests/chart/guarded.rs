//! The program with the web end's file of the chart: who asks as the chart's
//! probes ask is answered, who asks otherwise is not.

use std::path::Path;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;

use crate::common::real::{Program, daemon_at};
use crate::common::recorded;
use crate::helm::{container, kind, one, with};

/// What the pod's volumes would hold: a certificate of an authority, one for
/// clients, a user's name and password.
fn secrets(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    for place in ["web-tls", "secrets/client"] {
        let place = folder.join(place);
        std::fs::create_dir_all(&place).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["watch-spark-exporter.monitoring.svc".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        std::fs::write(place.join("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(place.join("tls.key"), key.serialize_pem()).unwrap();
        std::fs::write(place.join("ca.crt"), &authority).unwrap();
    }
    let user = folder.join("secrets/user");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("username"), "prometheus").unwrap();
    std::fs::write(user.join("password"), "hunter2").unwrap();
}

/// A text of the chart's, with its folders in this one.
fn here(text: &str, folder: &Path) -> String {
    let folder = folder.display();
    text.replace("/web-tls/", &format!("{folder}/web-tls/"))
        .replace("/secrets/", &format!("{folder}/secrets/"))
        .replace("/etc/spark-exporter-web/", &format!("{folder}/"))
        .replace("/etc/spark-exporter/", &format!("{folder}/"))
}

/// The daemon with the chart's web file, and the port it listens on.
fn daemon(objects: &[Value], folder: &Path) -> (Program, String) {
    let file = one(objects, "Secret")["stringData"]["web.yml"].as_str().unwrap();
    std::fs::write(folder.join("web.yml"), here(file, folder)).unwrap();
    let maps = kind(objects, "ConfigMap");
    let client = maps[0]["data"]["client.yml"].as_str().unwrap();
    std::fs::write(folder.join("client.yml"), here(client, folder)).unwrap();
    let arguments = container(objects)["args"].as_array().unwrap().iter();
    let web: Vec<String> = arguments
        .map(|argument| argument.as_str().unwrap())
        .filter(|argument| argument.starts_with("--web.config.file"))
        .map(|argument| here(argument, folder))
        .collect();
    assert_eq!(web.len(), 1);
    let log = recorded("healthy/4.3.0");
    let (program, url) =
        daemon_at("127.0.0.1:0", &["--event-log.dir", log.to_str().unwrap(), &web[0]]);
    let port = url.trim_end_matches('/').rsplit_once(':').unwrap().1.to_owned();
    (program, port)
}

/// Both probes, as the kubelet runs them; `--wait` for the first reading.
fn probe(objects: &[Value], folder: &Path, port: &str) {
    for probe in ["livenessProbe", "readinessProbe"] {
        let command = container(objects)[probe]["exec"]["command"].as_array().unwrap();
        let arguments = command[1..]
            .iter()
            .map(|one| here(one.as_str().unwrap(), folder).replace("10404", port));
        let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
            .args(arguments)
            .args(["--wait", "30s"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{probe}: {said}");
    }
}

/// Who asks without what the chart's probes have.
fn stranger(port: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "tls_config: {insecure_skip_verify: true}\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spark-exporter"))
        .args(["check-ready", &format!("https://127.0.0.1:{port}"), "--http.config.file"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn probes_ask_as_a_user_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    secrets(folder.path());
    let hash = bcrypt::hash("hunter2", 4).unwrap();
    let objects = with(&[
        "web.tls.secretName=cert",
        &format!("web.users.prometheus={hash}"),
        "web.client.basicAuth.secretName=user",
    ]);
    let (_program, port) = daemon(&objects, folder.path());
    probe(&objects, folder.path(), &port);
    assert!(stranger(&port).contains("401"));
}

#[test]
fn probes_show_their_certificate() {
    let folder = tempfile::tempdir().unwrap();
    secrets(folder.path());
    let objects = with(&[
        "web.tls.secretName=cert",
        "web.tls.clientCaKey=ca.crt",
        "web.client.tls.secretName=client",
    ]);
    let (_program, port) = daemon(&objects, folder.path());
    probe(&objects, folder.path(), &port);
    assert!(!stranger(&port).contains("status"));
}
