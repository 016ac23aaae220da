//! TLS: an authority of one's own, a client certificate, another name, and
//! certificates that are rotated.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

use super::back_end::{BackEnd, take};
use super::*;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("signed");
        Self { issuer: Issuer::new(params, key), certificate }
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        (params.signed_by(&key, &self.issuer).expect("signed"), key)
    }

    fn write(&self, path: &Path) {
        std::fs::write(path, self.certificate.pem()).expect("written");
    }

    /// Certificate and key as files.
    fn identity(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.sign("exporter.example.com");
        let (cert_file, key_file) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert_file, certificate.pem()).expect("written");
        std::fs::write(&key_file, key.serialize_pem()).expect("written");
        (cert_file, key_file)
    }

    /// A back end with a certificate for `name`, which asks for one of
    /// `clients`.
    async fn back_end(&self, protocol: Protocol, name: &str, clients: Option<&Self>) -> BackEnd {
        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match clients {
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.certificate.der().clone()).expect("a root");
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
            None => builder.with_no_client_auth(),
        };
        let (certificate, key) = self.sign(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let mut config =
            builder.with_single_cert(vec![certificate.der().clone()], key).expect("sound");
        if protocol == Protocol::Grpc {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        let tls = Some(TlsAcceptor::from(Arc::new(config)));
        BackEnd::at("127.0.0.1:0", protocol, &[take()], tls).await
    }
}

fn to(back_end: &BackEnd, protocol: Protocol, host: &str, tls: TlsConfig) -> Destination {
    let mut to = destination(protocol, back_end.secure_endpoint(host));
    to.tls = tls;
    to
}

const TAKEN: Sent = Sent::Accepted { rejected: 0 };

#[tokio::test]
async fn only_the_authority_that_was_given_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let ca_file = folder.path().join("ca.pem");
    let authority = Authority::new();
    authority.write(&ca_file);
    for protocol in BOTH {
        let back_end = authority.back_end(protocol, "127.0.0.1", None).await;
        let trusted = TlsConfig { ca_file: Some(ca_file.clone()), ..TlsConfig::default() };
        let way = Way::to(&to(&back_end, protocol, "127.0.0.1", trusted));
        assert_eq!(way.send(LONG).await, TAKEN, "{protocol:?}");
        let way = Way::to(&to(&back_end, protocol, "127.0.0.1", TlsConfig::default()));
        assert_eq!(way.send(SHORT).await, Sent::GivenUp, "{protocol:?}");
        assert_eq!(way.counts().failures.get("unreachable"), Some(&1));
        assert_eq!(back_end.received().len(), 1);
    }
    let protocol = Protocol::HttpProtobuf;
    let back_end = authority.back_end(protocol, "127.0.0.1", None).await;
    let anything = TlsConfig { insecure_skip_verify: true, ..TlsConfig::default() };
    let way = Way::to(&to(&back_end, protocol, "127.0.0.1", anything));
    assert_eq!(way.send(LONG).await, TAKEN);
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let ca_file = folder.path().join("ca.pem");
    let authority = Authority::new();
    authority.write(&ca_file);
    let (cert_file, key_file) = authority.identity(folder.path());
    for protocol in BOTH {
        let back_end = authority.back_end(protocol, "127.0.0.1", Some(&authority)).await;
        let without = TlsConfig { ca_file: Some(ca_file.clone()), ..TlsConfig::default() };
        let way = Way::to(&to(&back_end, protocol, "127.0.0.1", without.clone()));
        assert_eq!(way.send(SHORT).await, Sent::GivenUp, "{protocol:?}");
        let with = TlsConfig {
            cert_file: Some(cert_file.clone()),
            key_file: Some(key_file.clone()),
            ..without
        };
        let way = Way::to(&to(&back_end, protocol, "127.0.0.1", with));
        assert_eq!(way.send(LONG).await, TAKEN, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let ca_file = folder.path().join("ca.pem");
    let authority = Authority::new();
    authority.write(&ca_file);
    for protocol in BOTH {
        let back_end = authority.back_end(protocol, "otlp.example.com", None).await;
        let plain = TlsConfig { ca_file: Some(ca_file.clone()), ..TlsConfig::default() };
        let way = Way::to(&to(&back_end, protocol, "127.0.0.1", plain.clone()));
        assert_eq!(way.send(SHORT).await, Sent::GivenUp, "{protocol:?}");
        let named = TlsConfig { server_name: Some("otlp.example.com".to_owned()), ..plain };
        let way = Way::to(&to(&back_end, protocol, "127.0.0.1", named));
        assert_eq!(way.send(LONG).await, TAKEN, "{protocol:?}");
    }
}

#[tokio::test]
async fn rotated_certificates_need_no_restart() {
    for protocol in BOTH {
        let folder = tempfile::tempdir().expect("a folder");
        let ca_file = folder.path().join("ca.pem");
        let (old, new) = (Authority::new(), Authority::new());
        old.write(&ca_file);
        let (cert_file, key_file) = old.identity(folder.path());
        let tls = TlsConfig {
            ca_file: Some(ca_file.clone()),
            cert_file: Some(cert_file.clone()),
            key_file: Some(key_file),
            ..TlsConfig::default()
        };
        let back_end = old.back_end(protocol, "127.0.0.1", Some(&old)).await;
        let destination = to(&back_end, protocol, "127.0.0.1", tls);
        let way = Way::to(&destination);
        assert_eq!(way.send(LONG).await, TAKEN);
        // The same address, with another authority on both sides.
        back_end.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let renewed = new.back_end(protocol, "127.0.0.1", Some(&new)).await;
        let renewed_to = to(&renewed, protocol, "127.0.0.1", destination.tls.clone());
        let way = Way::to(&renewed_to);
        assert_eq!(way.send(SHORT).await, Sent::GivenUp, "{protocol:?}: the old authority");
        // A file that is half written is none: the old ones stay.
        std::fs::write(&cert_file, "-----BEGIN CERT").expect("written");
        assert_eq!(way.send(SHORT).await, Sent::GivenUp);
        new.write(&ca_file);
        new.identity(folder.path());
        assert_eq!(way.send(LONG).await, TAKEN, "{protocol:?}: the new one");
    }
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").expect("written");
    for protocol in BOTH {
        for path in [empty.as_path(), Path::new("/does/not/exist.pem")] {
            let mut to = destination(protocol, "https://127.0.0.1:1".to_owned());
            to.tls.ca_file = Some(path.to_owned());
            let error = Sender::new(Signal::Logs, &to, Arc::default()).expect_err("no authority");
            let error = error.to_string();
            assert!(error.contains("logs cannot be sent"), "{error}");
            assert!(error.contains(&path.display().to_string()), "{error}");
            assert!(error.contains("ca_file"), "{error}");
        }
    }
}
