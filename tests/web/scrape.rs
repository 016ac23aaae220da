//! A real Prometheus scrapes the daemon over TLS, with a client certificate and
//! a password; one with a wrong password does not.

use std::time::Duration;

use super::authority::{Authority, dns};
use super::common::real::{Program, daemon, free_port, part, until};
use super::user;

#[tokio::test]
async fn a_real_prometheus_scrapes_with_certificate_and_password() {
    let authority = Authority::new();
    authority.sign_server("server");
    authority.sign("client", &[dns("prometheus.example.org")]);
    let tls = ", client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert, \
               client_allowed_sans: [prometheus.example.org]";
    let web = authority.web_file(tls, &user("alice", "one"));
    let logs = authority.folder.path().to_str().unwrap();
    let (_exporter, address) =
        daemon(&["--event-log.dir", logs, "--web.config.file", web.to_str().unwrap()]);
    let target = address.strip_prefix("http://").unwrap();
    let at = |name: &str| authority.path(name).display().to_string();
    let (ca, certificate, key) = (at("ca.pem"), at("client.pem"), at("client.key"));
    let job = |name: &str, password: &str| {
        format!(
            "- job_name: {name}\n  scheme: https\n  \
             basic_auth: {{username: alice, password: {password}}}\n  \
             tls_config: {{ca_file: {ca}, cert_file: {certificate}, key_file: {key}}}\n  \
             static_configs: [{{targets: ['{target}']}}]\n"
        )
    };
    let config = authority.path("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n{}{}",
        job("right", "one"),
        job("wrong", "two")
    );
    std::fs::write(&config, text).unwrap();
    let port = free_port();
    let mut command = std::process::Command::new(part(&["prometheus"]).join("prometheus"));
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", at("data")))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let prometheus = Program::start(command, "Prometheus", true);
    prometheus.wait_for(Duration::from_mins(1), |line| {
        line.contains("ready to receive web requests").then_some(())
    });
    let url = format!("http://127.0.0.1:{port}/api/v1/targets");
    let targets = until(&url, Duration::from_secs(30), |text| {
        let answer: serde_json::Value = serde_json::from_str(text).unwrap();
        let targets = answer["data"]["activeTargets"].as_array().unwrap().clone();
        let known = targets.iter().all(|target| target["health"] != "unknown");
        (targets.len() == 2 && known).then_some(targets)
    })
    .await;
    for target in targets {
        let right = target["labels"]["job"] == "right";
        assert_eq!(target["health"] == "up", right, "{target:#}");
        let error = target["lastError"].as_str().unwrap();
        assert!(right || error.contains("401"), "{error}");
    }
}
