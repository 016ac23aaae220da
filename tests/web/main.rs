//! The web end as `--web.config.file` has it, over real sockets: TLS in all its
//! forms, users, headers, limits, and files that change while it serves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authority;
#[path = "../common/mod.rs"]
mod common;
mod scrape;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use authority::{Authority, client, dns};
use rcgen::SanType;
use reqwest::{Client, StatusCode, Version, tls};
use spark_exporter::config::Limits;
use spark_exporter::expose::{self, ExposeState, WebConfig};
use spark_exporter::telemetry::Telemetry;
use support::at;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Of low cost: a test is not to wait for it.
fn user(name: &str, password: &str) -> String {
    format!("basic_auth_users: {{{name}: '{}'}}\n", bcrypt::hash(password, 4).unwrap())
}

struct Server {
    address: std::net::SocketAddr,
    web: Arc<WebConfig>,
    telemetry: Arc<Telemetry>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(file: &Path) -> Self {
        let telemetry = Arc::new(Telemetry::new(at(0)));
        let web = Arc::new(WebConfig::load(file, Arc::clone(&telemetry)).unwrap());
        let state = ExposeState::new(Arc::clone(&telemetry), &Limits::default(), at(0));
        let state = Arc::new(state.guarded_by(Arc::clone(&web)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(expose::run(listener, state, stop.clone().cancelled_owned()));
        Self { address, web, telemetry, stop, task }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    async fn status(&self, client: &Client) -> Option<StatusCode> {
        client.get(self.url("/-/healthy")).send().await.ok().map(|answer| answer.status())
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Each kind of `client_auth_type`, and a client without a certificate, with
/// one of the authority, and with one that it did not sign.
#[tokio::test]
async fn each_client_auth_type_lets_in_whom_it_says() {
    let (ours, foreign) = (Authority::new(), Authority::new());
    ours.sign_server("server");
    ours.sign("client", &[dns("prometheus")]);
    foreign.sign("client", &[dns("prometheus")]);
    for end in ["pem", "key"] {
        let name = format!("client.{end}");
        std::fs::copy(foreign.path(&name), ours.path(&format!("foreign.{end}"))).unwrap();
    }
    let authority = ", client_ca_file: ca.pem, client_auth_type:";
    for (tls, none, good, bad) in [
        (String::new(), true, true, true),
        (", client_auth_type: RequestClientCert".to_owned(), true, true, true),
        (", client_auth_type: RequireAnyClientCert".to_owned(), false, true, true),
        (", client_auth_type: RequireClientCert".to_owned(), false, true, true),
        (format!("{authority} VerifyClientCertIfGiven"), true, true, false),
        (format!("{authority} RequireAndVerifyClientCert"), false, true, false),
    ] {
        let server = Server::start(&ours.web_file(&tls, "")).await;
        for (certificate, in_) in [(None, none), (Some("client"), good), (Some("foreign"), bad)] {
            for version in [tls::Version::TLS_1_2, tls::Version::TLS_1_3] {
                let client = client(ours.folder.path(), certificate);
                let client = client.tls_version_min(version).tls_version_max(version);
                let status = server.status(&client.build().unwrap()).await;
                assert_eq!(status, in_.then_some(StatusCode::OK), "{tls} {certificate:?}");
            }
        }
        let refused = [none, good, bad].iter().filter(|in_| !**in_).count() as u64;
        let failures = server.telemetry.snapshot().web_failures;
        assert!(failures.get("handshake").copied().unwrap_or(0) >= refused, "{tls} {failures:?}");
        server.stop().await;
    }
}

#[tokio::test]
async fn only_certificates_with_an_allowed_name_come_in() {
    let authority = Authority::new();
    authority.sign_server("server");
    let uri = "spiffe://example.org/prometheus";
    for (file, name) in [
        ("by_dns", dns("prometheus.example.org")),
        ("by_ip", SanType::IpAddress([10, 0, 0, 1].into())),
        ("by_ip6", SanType::IpAddress(std::net::Ipv6Addr::LOCALHOST.into())),
        ("by_mail", SanType::Rfc822Name("metrics@example.org".try_into().unwrap())),
        ("by_uri", SanType::URI(uri.try_into().unwrap())),
        ("other", dns("grafana.example.org")),
        ("below", dns("a.prometheus.example.org")),
    ] {
        authority.sign(file, &[name]);
    }
    authority.sign("nameless", &[]);
    let tls = format!(
        ", client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert, \
         client_allowed_sans: [prometheus.example.org, 10.0.0.1, '0:0:0:0:0:0:0:1', \
         metrics@example.org, '{uri}']"
    );
    let server = Server::start(&authority.web_file(&tls, "")).await;
    for (file, in_) in [
        ("by_dns", true),
        ("by_ip", true),
        ("by_ip6", true),
        ("by_mail", true),
        ("by_uri", true),
        ("other", false),
        ("below", false),
        ("nameless", false),
    ] {
        let client = client(authority.folder.path(), Some(file)).build().unwrap();
        assert_eq!(server.status(&client).await, in_.then_some(StatusCode::OK), "{file}");
    }
    server.stop().await;
}

/// What another implementation of TLS sees.
fn openssl(server: &Server, arguments: &[&str]) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &server.address.to_string()])
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("openssl is on the path: install it (Debian: openssl)");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_ciphers_and_curves_are_those_of_the_file() {
    let authority = Authority::new();
    authority.sign_server("server");
    let good = |text: &str| !text.contains("Cipher is (NONE)") && !text.contains("alert");
    for (tls, arguments, in_, part) in [
        ("", &["-tls1_2"][..], true, "TLSv1.2"),
        ("", &["-tls1_3"], true, "TLSv1.3"),
        (", min_version: TLS13", &["-tls1_2"], false, ""),
        (", max_version: TLS12", &["-tls1_3"], false, ""),
        (", max_version: TLS12", &["-tls1_2"], true, "TLSv1.2"),
        (
            ", cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]",
            &["-tls1_2"],
            true,
            "Cipher is ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (
            ", cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]",
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
            false,
            "",
        ),
        (", cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]", &["-tls1_3"], true, ""),
        (", cipher_suites: [TLS_AES_128_GCM_SHA256]", &["-tls1_2"], false, ""),
        (
            ", cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305, \
             TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]",
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"],
            true,
            "Cipher is ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            ", prefer_server_cipher_suites: false, cipher_suites: \
             [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]",
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"],
            true,
            "Cipher is ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (", curve_preferences: [CurveP384]", &["-groups", "P-384"], true, "secp384r1"),
        (", curve_preferences: [CurveP384]", &["-groups", "X25519"], false, ""),
        ("", &["-alpn", "h2"], true, "ALPN protocol: h2"),
    ] {
        let server = Server::start(&authority.web_file(tls, "")).await;
        let said = openssl(&server, arguments);
        assert_eq!(good(&said), in_, "{tls} {arguments:?}: {said}");
        assert!(said.contains(part), "{tls} {arguments:?}: {said}");
        server.stop().await;
    }
}

#[tokio::test]
async fn http2_is_offered_unless_it_is_off() {
    let authority = Authority::new();
    authority.sign_server("server");
    for (rest, version) in
        [("", Version::HTTP_2), ("http_server_config: {http2: false}\n", Version::HTTP_11)]
    {
        let server = Server::start(&authority.web_file("", rest)).await;
        let client = client(authority.folder.path(), None).build().unwrap();
        for path in ["/metrics", "/", "/-/healthy"] {
            let answer = client.get(server.url(path)).send().await.unwrap();
            assert_eq!((answer.version(), answer.status()), (version, StatusCode::OK), "{path}");
            assert!(!answer.text().await.unwrap().is_empty());
        }
        // Its connection is open yet, and does not hold up the end.
        let begun = std::time::Instant::now();
        server.stop().await;
        assert!(begun.elapsed() < Duration::from_millis(4_500), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn users_are_asked_for_on_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yml");
    std::fs::write(&file, user("alice", "päss:word")).unwrap();
    let server = Server::start(&file).await;
    let client = Client::builder().no_proxy().build().unwrap();
    let ask = |path: &str, login: Option<(&str, &str)>| {
        let request = client.get(format!("http://{}{path}", server.address));
        let request = match login {
            Some((name, password)) => request.basic_auth(name, Some(password)),
            None => request,
        };
        async { request.send().await.unwrap() }
    };
    for path in ["/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/nothing"] {
        let answer = ask(path, None).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
        let challenge = answer.headers()["www-authenticate"].to_str().unwrap();
        assert!(challenge.starts_with("Basic realm="), "{challenge}");
    }
    assert_eq!(server.web.hashed(), 0, "nobody said a password");
    for (login, status, hashed) in [
        (("alice", "päss:word"), StatusCode::OK, 1),
        (("alice", "päss:word"), StatusCode::OK, 1),
        (("alice", "wrong"), StatusCode::UNAUTHORIZED, 2),
        (("alice", "wrong"), StatusCode::UNAUTHORIZED, 2),
        // As much work as for a name that is there.
        (("mallory", "päss:word"), StatusCode::UNAUTHORIZED, 3),
        (("alice", ""), StatusCode::UNAUTHORIZED, 4),
    ] {
        assert_eq!(ask("/metrics", Some(login)).await.status(), status, "{login:?}");
        assert_eq!(server.web.hashed(), hashed, "{login:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn headers_of_the_file_take_the_place_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yml");
    let text = "http_server_config: {headers: {X-Frame-Options: deny, \
                Content-Security-Policy: \"default-src 'self'\", X-XSS-Protection: '', \
                Strict-Transport-Security: max-age=60}}\n";
    std::fs::write(&file, text.to_owned() + &user("a", "b")).unwrap();
    let server = Server::start(&file).await;
    // On a refusal as well.
    let answer =
        common::real::client().get(format!("http://{}/", server.address)).send().await.unwrap();
    let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap());
    assert_eq!(header("x-frame-options"), Some("deny"));
    assert_eq!(header("content-security-policy"), Some("default-src 'self'"));
    assert_eq!(header("strict-transport-security"), Some("max-age=60"));
    assert_eq!(header("x-content-type-options"), Some("nosniff"));
    assert_eq!(header("x-xss-protection"), None);
    server.stop().await;
}

#[tokio::test]
async fn more_than_the_rate_limit_is_told_to_wait() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yml");
    std::fs::write(&file, "rate_limit: {interval: 1h, burst: 3}\n").unwrap();
    let server = Server::start(&file).await;
    let ask = || async {
        common::real::client()
            .get(format!("http://{}/-/healthy", server.address))
            .send()
            .await
            .unwrap()
    };
    for _ in 0..3 {
        assert_eq!(ask().await.status(), StatusCode::OK);
    }
    let answer = ask().await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&wait), "{wait}");
    server.stop().await;
}

/// On a port with TLS: a person who typed http://, a client that says nothing,
/// one that only starts a handshake, one that says something else.
#[tokio::test]
async fn clients_that_do_not_speak_tls_are_told_or_dropped() {
    let authority = Authority::new();
    authority.sign_server("server");
    let server = Server::start(&authority.web_file("", "")).await;
    let answer = common::real::client()
        .get(format!("http://{}/metrics", server.address))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert!(answer.text().await.unwrap().contains("https://"));

    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(&[0x16, 3, 1]).await.unwrap();
    let mut noise = TcpStream::connect(server.address).await.unwrap();
    noise.write_all(&[0, 1, 2]).await.unwrap();
    let mut bytes = Vec::new();
    let within = Duration::from_secs(15);
    for stream in [&mut silent, &mut half, &mut noise] {
        let ended = tokio::time::timeout(within, stream.read_to_end(&mut bytes)).await;
        assert!(ended.is_ok(), "it was not dropped");
    }
    // A port that is only looked at, and left, is no failure.
    let before = server.telemetry.snapshot().web_failures["handshake"];
    assert!(before >= 4, "{before}");
    drop(TcpStream::connect(server.address).await.unwrap());
    let client = client(authority.folder.path(), None).build().unwrap();
    assert_eq!(server.status(&client).await, Some(StatusCode::OK));
    assert_eq!(server.telemetry.snapshot().web_failures["handshake"], before);
    server.stop().await;
}

/// Certificate and key change many times while clients ask without a break:
/// none of them sees an error, and new connections get the new certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_change_under_load() {
    let authority = Authority::new();
    authority.sign_server("server");
    let server = Server::start(&authority.web_file("", "")).await;
    let over = CancellationToken::new();
    let ask = |new_each_time: bool| {
        let (over, url) = (over.clone(), server.url("/metrics"));
        let folder = authority.folder.path().to_owned();
        tokio::spawn(async move {
            let kept = client(&folder, None).build().unwrap();
            let mut asked = 0;
            while !over.is_cancelled() {
                let client = if new_each_time {
                    client(&folder, None).build().unwrap()
                } else {
                    kept.clone()
                };
                let answer = client.get(&url).send().await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
                answer.text().await.unwrap();
                asked += 1;
            }
            asked
        })
    };
    let asking = [ask(false), ask(true)];
    for _ in 0..10 {
        authority.sign_server("server");
        let web = Arc::clone(&server.web);
        let changed = tokio::task::spawn_blocking(move || web.look(false)).await.unwrap();
        assert_eq!(changed, Ok(true));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    over.cancel();
    for asking in asking {
        assert!(asking.await.unwrap() > 10);
    }
    // What a new connection gets is what lies there now.
    let pem = std::fs::read_to_string(authority.path("server.pem")).unwrap();
    let said = openssl(&server, &[]);
    let body = |pem: &str| {
        let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----").unwrap();
        rest.split_once("-----END").unwrap().0.split_whitespace().collect::<String>()
    };
    assert_eq!(body(&said), body(&pem));
    server.stop().await;
}

/// What changes into something that cannot be used: the old stays in force,
/// and it is told once a change.
#[tokio::test]
async fn a_bad_change_leaves_everything_as_it_was() {
    let authority = Authority::new();
    authority.sign_server("server");
    authority.sign_server("next");
    let users = user("alice", "one");
    let file = authority.web_file("", &users);
    let server = Server::start(&file).await;
    let https = client(authority.folder.path(), None).build().unwrap();
    let ask = || async {
        let request = https.get(server.url("/-/healthy")).basic_auth("alice", Some("one"));
        request.send().await.unwrap().status()
    };
    let good_file = std::fs::read(&file).unwrap();
    let good_key = std::fs::read(authority.path("server.key")).unwrap();
    let next_key = std::fs::read(authority.path("next.key")).unwrap();
    let (web_yml, key) = (file.clone(), authority.path("server.key"));
    let only_users = users.clone().into_bytes();
    let only_tls = good_file.split(|byte| *byte == b'\n').next().unwrap().to_vec();
    for (path, bad, part) in [
        (&web_yml, b"tls_server_confg: {}\n".to_vec(), "did you mean"),
        (&web_yml, Vec::new(), "no longer has TLS and all users"),
        (&web_yml, only_users, "no longer has TLS"),
        (&web_yml, only_tls, "no longer has all users"),
        (&web_yml, vec![0xff, 0xfe], "no text"),
        (&key, next_key, "not the key of the certificate"),
        (&key, b"hunter2".to_vec(), "no private key"),
    ] {
        std::fs::write(path, bad).unwrap();
        let error = server.web.look(false).unwrap_err();
        assert!(
            error.contains(part) && error.contains(&*path.to_string_lossy()) || {
                // Of the whole file, no path in it is wrong.
                error.contains(part) && error.contains("restart")
            },
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
        assert_eq!(server.telemetry.snapshot().web_config.map(|status| status.good), Some(false));
        assert_eq!(server.web.look(false), Ok(false), "told once");
        assert_eq!(ask().await, StatusCode::OK);
        std::fs::write(&web_yml, &good_file).unwrap();
        std::fs::write(&key, &good_key).unwrap();
        assert_eq!(server.web.look(false), Ok(true));
        assert_eq!(server.telemetry.snapshot().web_config.map(|status| status.good), Some(true));
    }
    std::fs::remove_file(authority.path("server.pem")).unwrap();
    assert!(server.web.look(false).unwrap_err().contains("server.pem"));
    assert_eq!(ask().await, StatusCode::OK);
    server.stop().await;
}

#[tokio::test]
async fn users_change_at_once_on_open_connections() {
    let authority = Authority::new();
    authority.sign_server("server");
    let file = authority.web_file("", &user("alice", "one"));
    let server = Server::start(&file).await;
    let https = client(authority.folder.path(), None).build().unwrap();
    let ask = |password: &'static str| {
        let request = https.get(server.url("/metrics")).basic_auth("alice", Some(password));
        async { request.send().await.unwrap().status() }
    };
    assert_eq!(ask("one").await, StatusCode::OK);
    authority.web_file("", &user("alice", "two"));
    assert_eq!(server.web.look(false), Ok(true));
    assert_eq!(ask("one").await, StatusCode::UNAUTHORIZED);
    assert_eq!(ask("two").await, StatusCode::OK);
    server.stop().await;
}

/// What is wrong at the start: each refused by name.
#[test]
fn a_start_with_a_bad_file_is_refused() {
    let authority = Authority::new();
    authority.sign_server("server");
    authority.sign_server("other");
    std::fs::write(authority.path("empty.pem"), "nothing").unwrap();
    let load = |path: &Path| WebConfig::load(path, Arc::new(Telemetry::default()));
    assert!(load(&authority.web_file("", "")).is_ok());
    let at = |text: &str| {
        let path = authority.path("web.yml");
        std::fs::write(&path, text).unwrap();
        load(&path).unwrap_err()
    };
    for (certificate, key, more, part) in [
        ("missing.pem", "server.key", "", "missing.pem"),
        ("server.pem", "missing.key", "", "missing.key"),
        ("empty.pem", "server.key", "", "no PEM certificate"),
        ("server.pem", "empty.pem", "", "no private key"),
        ("server.pem", "other.key", "", "not the key of the certificate"),
        ("server.pem", "server.pem", "", "no private key"),
        (
            "server.pem",
            "server.key",
            ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: empty.pem",
            "client_ca_file",
        ),
    ] {
        let error = at(&format!(
            "tls_server_config: {{cert_file: {certificate}, key_file: {key}{more}}}\n"
        ));
        assert!(error.contains(part), "{certificate} {key}: {error}");
    }
    let pem = std::fs::read_to_string(authority.path("server.key")).unwrap();
    let indented = pem.trim().replace('\n', "\n    ");
    let error =
        at(&format!("tls_server_config:\n  cert_file: other.pem\n  key: |\n    {indented}\n"));
    assert!(error.contains("tls_server_config.key"), "{error}");
    assert!(!error.contains(pem.lines().nth(1).unwrap()), "the key is no part of it: {error}");
    assert!(load(&authority.path("nowhere.yml")).unwrap_err().contains("nowhere.yml"));
}
