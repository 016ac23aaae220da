//! TLS with an authority of one's own, a client certificate, and a server
//! whose certificate carries another name than the URL.

#[path = "common/fake_spark.rs"]
mod fake_spark;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fake_spark::{Answer, FakeSpark};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use spark_exporter::config::{HttpConfig, TlsConfig};
use spark_exporter::fetch::{
    FetchError, FetchErrorKind, FetchLimits, HttpClient, Request, Timeouts,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("signed");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).expect("written");
        Self { issuer: Issuer::new(params, key), certificate, folder }
    }

    /// Certificate and key for a name.
    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        (params.signed_by(&key, &self.issuer).expect("signed"), key)
    }

    /// The same as PEM files.
    fn files(&self, name: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.sign(name);
        let path = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        std::fs::write(path("pem"), certificate.pem()).expect("written");
        std::fs::write(path("key"), key.serialize_pem()).expect("written");
        (path("pem"), path("key"))
    }

    /// A server with a certificate for `name`, which asks for one of ours.
    async fn server(&self, name: &str, ask: bool) -> FakeSpark {
        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if ask {
            let mut roots = RootCertStore::empty();
            roots.add(self.certificate.der().clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .expect("a verifier");
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let (certificate, key) = self.sign(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).expect("sound");
        FakeSpark::start_tls(TlsAcceptor::from(Arc::new(config)), |_| Answer::json("[]")).await
    }
}

async fn get(server: &FakeSpark, tls_config: TlsConfig) -> Result<Vec<u32>, FetchError> {
    let config = HttpConfig { tls_config, ..HttpConfig::default() };
    let timeouts = Timeouts { connect: Duration::from_secs(10), ..Timeouts::DRIVER };
    let limits = FetchLimits { response_size: 1 << 20, in_flight_per_server: 2 };
    let client = HttpClient::new(&config, timeouts, limits).expect("a client");
    let url = server.url("/api/v1/applications").parse().expect("a URL");
    client.get_json(Request { endpoint: "applications", url, meter: None }).await
}

#[tokio::test]
async fn only_the_authority_of_ca_file_is_trusted() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", false).await;
    let trusted =
        TlsConfig { ca_file: Some(authority.folder.path().join("ca.pem")), ..TlsConfig::default() };
    assert_eq!(get(&server, trusted).await, Ok(vec![]));
    let error = get(&server, TlsConfig::default()).await.expect_err("an unknown authority");
    assert_eq!(error.kind, FetchErrorKind::Unreachable);
    assert!(error.to_string().contains("tls_config.ca_file"), "{error}");
    let skipped = TlsConfig { insecure_skip_verify: true, ..TlsConfig::default() };
    assert_eq!(get(&server, skipped).await, Ok(vec![]));
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1", true).await;
    let without =
        TlsConfig { ca_file: Some(authority.folder.path().join("ca.pem")), ..TlsConfig::default() };
    let error = get(&server, without.clone()).await.expect_err("no certificate");
    assert_eq!(error.kind, FetchErrorKind::Unreachable);
    let (cert_file, key_file) = authority.files("exporter.example.com");
    let with = TlsConfig { cert_file: Some(cert_file), key_file: Some(key_file), ..without };
    assert_eq!(get(&server, with).await, Ok(vec![]));
}

#[tokio::test]
async fn server_name_is_checked_instead_of_the_host() {
    let authority = Authority::new();
    let server = authority.server("spark.example.com", false).await;
    let by_host =
        TlsConfig { ca_file: Some(authority.folder.path().join("ca.pem")), ..TlsConfig::default() };
    let error = get(&server, by_host.clone()).await.expect_err("another name");
    assert!(error.to_string().contains("tls_config.server_name"), "{error}");
    let by_name =
        TlsConfig { server_name: Some("spark.example.com".to_owned()), ..by_host.clone() };
    assert_eq!(get(&server, by_name).await, Ok(vec![]));
    assert_eq!(server.asked()[0].header("host"), format!("127.0.0.1:{}", server.port()));
    let wrong = TlsConfig { server_name: Some("other.example.com".to_owned()), ..by_host };
    assert_eq!(
        get(&server, wrong).await.expect_err("another name").kind,
        FetchErrorKind::Unreachable
    );
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, "nothing").expect("written");
    for ca_file in [path, folder.path().join("missing.pem")] {
        let tls_config = TlsConfig { ca_file: Some(ca_file.clone()), ..TlsConfig::default() };
        let config = HttpConfig { tls_config, ..HttpConfig::default() };
        let limits = FetchLimits { response_size: 1 << 20, in_flight_per_server: 2 };
        let error = HttpClient::new(&config, Timeouts::DRIVER, limits).expect_err("no client");
        let text = error.to_string();
        assert!(text.contains("tls_config.ca_file"), "{text}");
        assert!(text.contains(&ca_file.display().to_string()), "{text}");
    }
}
