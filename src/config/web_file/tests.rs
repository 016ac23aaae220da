use super::*;

const HASH: &str = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG";

#[test]
fn everything_that_can_be_said() {
    let text = format!(
        "tls_server_config:\n\
         \x20 cert_file: tls.crt\n\
         \x20 key_file: /etc/tls.key\n\
         \x20 client_ca_file: ca/clients.pem\n\
         \x20 client_auth_type: RequireAndVerifyClientCert\n\
         \x20 client_allowed_sans: [prometheus.example.org, 10.0.0.1]\n\
         \x20 min_version: TLS12\n\
         \x20 max_version: TLS13\n\
         \x20 cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n\
         \x20 curve_preferences: [X25519, CurveP256]\n\
         \x20 prefer_server_cipher_suites: false\n\
         http_server_config:\n\
         \x20 http2: false\n\
         \x20 headers:\n\
         \x20   X-Frame-Options: deny\n\
         \x20   X-XSS-Protection: ''\n\
         basic_auth_users:\n\
         \x20 alice: {HASH}\n\
         rate_limit: {{interval: 100ms, burst: 20}}\n"
    );
    let file = WebFile::from_text(&text, Path::new("/etc/web/config.yml")).unwrap();
    let tls = file.tls().unwrap();
    assert_eq!(tls.cert_file.as_deref(), Some(Path::new("/etc/web/tls.crt")));
    assert_eq!(tls.key_file.as_deref(), Some(Path::new("/etc/tls.key")));
    assert_eq!(tls.client_ca_file.as_deref(), Some(Path::new("/etc/web/ca/clients.pem")));
    assert_eq!(file.headers().collect::<Vec<_>>(), [("X-Frame-Options", "deny")]);
    assert!(!file.http2());
    assert_eq!(file.users().map(|(name, _)| name).collect::<Vec<_>>(), ["alice"]);
    assert_eq!(file.rate_limit(), Some((Duration::from_millis(100), 20)));
    let shown = format!("{file:?}");
    assert!(!shown.contains("X0h1"), "hashes are secrets: {shown}");
}

#[test]
fn what_is_left_out_or_blank_is_the_default() {
    for text in [
        "",
        "# nothing\n",
        "basic_auth_users:\n",
        "tls_server_config: {}\nhttp_server_config:\nrate_limit:\n",
        "rate_limit: {interval: 0s}\n",
    ] {
        let file = WebFile::from_text(text, Path::new("web.yml")).unwrap();
        assert!(file.tls().is_none() && file.http2(), "{text}");
        assert!(file.users().next().is_none() && file.rate_limit().is_none(), "{text}");
    }
}

/// One bad file a line: what it says, and what is said of it.
#[test]
fn refuses_with_the_reason_and_without_a_value() {
    let tls = |more: &str| format!("tls_server_config: {{cert_file: a, key_file: b{more}}}\n");
    let user = |hash: &str| format!("basic_auth_users: {{alice: '{hash}'}}\n");
    let cases = [
        ("tls_server_confg: {}\n".to_owned(), "did you mean `tls_server_config`?"),
        (tls(", certfile: hunter2"), "did you mean `cert_file`?"),
        ("tls_server_config: {cert_file: a}\n".to_owned(), "one of key and key_file"),
        ("tls_server_config: {key: hunter2}\n".to_owned(), "one of cert and cert_file"),
        ("tls_server_config: {min_version: TLS13}\n".to_owned(), "one of cert and cert_file"),
        (tls(", cert: hunter2"), "cert and cert_file are both given"),
        (tls(", key: hunter2"), "key and key_file are both given"),
        (tls(", client_ca: a, client_ca_file: b"), "client_ca and client_ca_file"),
        (tls(", client_ca_file: c"), "give client_auth_type too"),
        (tls(", client_auth_type: RequireAndVerifyClientCert"), "give client_ca_file"),
        (tls(", client_auth_type: VerifyClientCertIfGiven"), "give client_ca_file"),
        (tls(", client_auth_type: hunter2"), "RequireAndVerifyClientCert"),
        (tls(", client_auth_type: RequestClientCert, client_allowed_sans: [a]"), "every client"),
        (tls(", client_auth_type: RequireAnyClientCert, client_allowed_sans: []"), "is empty"),
        (tls(", min_version: TLS10"), "min_version: TLS12 is the oldest"),
        (tls(", max_version: TLS11"), "max_version: TLS12 is the oldest"),
        (tls(", min_version: TLS13, max_version: TLS12"), "min_version is above"),
        (tls(", min_version: SSL30"), "TLS12"),
        (tls(", cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]"), "TLS_ECDHE_RSA_WITH_AES_128_GCM"),
        (tls(", max_version: TLS12, cipher_suites: [TLS_AES_128_GCM_SHA256]"), "none of TLS 1.2"),
        (tls(", curve_preferences: [CurveP521]"), "CurveP384"),
        ("http_server_config: {headers: {Server: hunter2}}\n".to_owned(), "cannot be set"),
        ("http_server_config: {headers: {X-Frame-Options: hunter2}}\n".to_owned(), "deny or same"),
        ("basic_auth_users: {'': x}\n".to_owned(), "a name is not empty"),
        ("basic_auth_users: {'a:b': x}\n".to_owned(), "a name is not empty"),
        ("basic_auth_users: hunter2\n".to_owned(), "expected mapping"),
        (user("hunter2"), "no bcrypt hash"),
        (user(&HASH.replace("$2y", "$2x")), "no bcrypt hash"),
        (user(&HASH.replace("$10$", "$31$")), "its cost is 31"),
        (user(&HASH.replace("$10$", "$03$")), "its cost is 3"),
        (user(&HASH[..50]), "no bcrypt hash"),
        ("rate_limit: {interval: 1s}\n".to_owned(), "burst is 0"),
        ("rate_limit: {interval: 1s, burst: -1}\n".to_owned(), "u32 at line 1, column 35"),
    ];
    for (text, part) in cases {
        let error = WebFile::from_text(&text, Path::new("web.yml")).unwrap_err().to_string();
        assert!(error.contains("web.yml"), "{text}: {error}");
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains("hunter2") && !error.contains("X0h1"), "{text}: {error}");
    }
    let error = WebFile::parse("rate_limit: {burst: 1}\nbasic_auth: {}\n").unwrap_err();
    assert!(error.contains("line 2"), "{error}");
}
