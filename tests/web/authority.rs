//! An authority of one's own, and certificates of it as files.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `NAME.pem` and `NAME.key` for these alternative names.
    pub(crate) fn sign(&self, file: &str, names: &[SanType]) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names.to_vec();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
    }

    /// For a server on loopback.
    pub(crate) fn sign_server(&self, file: &str) {
        let address: IpAddr = [127, 0, 0, 1].into();
        self.sign(file, &[SanType::IpAddress(address), dns("localhost")]);
    }

    /// The web file `web.yml` with these further keys of `tls_server_config`,
    /// and these lines after it.
    pub(crate) fn web_file(&self, tls: &str, rest: &str) -> PathBuf {
        let path = self.path("web.yml");
        let text = format!(
            "tls_server_config: {{cert_file: server.pem, key_file: server.key{tls}}}\n{rest}"
        );
        std::fs::write(&path, text).unwrap();
        path
    }
}

pub(crate) fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

/// A client that trusts the authority in `folder`, with the certificate of
/// this name where there is one.
pub(crate) fn client(folder: &Path, certificate: Option<&str>) -> reqwest::ClientBuilder {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let authority = reqwest::Certificate::from_pem(&read("ca.pem")).unwrap();
    let mut builder = reqwest::Client::builder().no_proxy().tls_certs_only([authority]);
    if let Some(name) = certificate {
        let mut pem = read(&format!("{name}.pem"));
        pem.extend(read(&format!("{name}.key")));
        builder = builder.identity(reqwest::Identity::from_pem(&pem).unwrap());
    }
    builder
}
