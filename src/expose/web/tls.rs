//! What `tls_server_config` says, as rustls wants it, from files that are read
//! here and nowhere else.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs as provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version,
};

use super::MOST_BYTES;
use super::client_certificate::{AllowedNames, AnyCertificate};
use crate::config::{ClientAuth, Curve, Suite, TlsServer, TlsVersion};

/// The files of one reading, to know them again.
#[derive(Default)]
pub(super) struct Read(Vec<u8>);

impl Read {
    /// A file whole, within reason.
    pub(super) fn file(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = std::fs::File::open(path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        let result = match read {
            Err(error) => Err(error.to_string()),
            Ok(_) if bytes.len() as u64 > MOST_BYTES => {
                Err(format!("it is larger than {} MiB", MOST_BYTES >> 20))
            }
            Ok(_) => Ok(bytes),
        };
        let held: &[u8] = match &result {
            Ok(bytes) => bytes,
            Err(why) => why.as_bytes(),
        };
        self.0.extend_from_slice(digest::digest(&digest::SHA256, held).as_ref());
        result
    }

    pub(super) fn fingerprint(self) -> Vec<u8> {
        self.0
    }

    /// What is given in the web file itself, or in a file that it names.
    fn either(
        &mut self,
        key: &str,
        inline: Option<&str>,
        path: Option<&Path>,
    ) -> Result<(String, Vec<u8>), String> {
        match (inline, path) {
            (_, Some(path)) => {
                let name = format!("tls_server_config.{key}_file {}", path.display());
                let bytes = self.file(path).map_err(|why| format!("{name}: {why}"))?;
                Ok((name, bytes))
            }
            (inline, None) => Ok((
                format!("tls_server_config.{key}"),
                inline.unwrap_or_default().as_bytes().to_vec(),
            )),
        }
    }
}

/// # Errors
/// Names the key and the file, and nothing that is in it.
pub(super) fn server(
    tls: &TlsServer,
    http2: bool,
    read: &mut Read,
) -> Result<ServerConfig, String> {
    let chain = read.either("cert", tls.cert.as_deref(), tls.cert_file.as_deref())?;
    let key = tls.key.as_ref().map(crate::config::Secret::expose);
    let key = read.either("key", key, tls.key_file.as_deref())?;
    let provider = Arc::new(provider_of(tls));
    let versions = versions(tls, &provider)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| format!("tls_server_config: {error}"))?;
    let builder = match verifier(tls, &provider, read)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let certificates = certificates(&chain)?;
    let private = PrivateKeyDer::from_pem_slice(&key.1).map_err(|_| {
        format!("{}: there is no private key in it that is PEM and not encrypted", key.0)
    })?;
    let mut config =
        builder.with_single_cert(certificates, private).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                format!("{}: this is not the key of the certificate of {}", key.0, chain.0)
            }
            error => format!("{} and {}: {error}", chain.0, key.0),
        })?;
    config.ignore_client_order = tls.prefer_server_cipher_suites;
    let protocols: &[&[u8]] = if http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn certificates((name, pem): &(String, Vec<u8>)) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!("{name}: no PEM certificate in it (-----BEGIN CERTIFICATE-----)")),
    }
}

fn provider_of(tls: &TlsServer) -> CryptoProvider {
    let mut provider = provider::default_provider();
    if let Some(wanted) = tls.cipher_suites.as_ref().filter(|wanted| !wanted.is_empty()) {
        let all = std::mem::take(&mut provider.cipher_suites);
        let of_tls13 = all.into_iter().filter(|suite| suite.tls13().is_some());
        let of_tls12 = wanted.iter().filter_map(|suite| suite_of_tls12(*suite));
        provider.cipher_suites = of_tls13.chain(of_tls12).collect();
    }
    if let Some(wanted) = tls.curve_preferences.as_ref().filter(|wanted| !wanted.is_empty()) {
        provider.kx_groups = wanted.iter().map(|curve| group(*curve)).collect();
    }
    provider
}

fn suite_of_tls12(suite: Suite) -> Option<SupportedCipherSuite> {
    use provider::cipher_suite as known;
    match suite {
        Suite::EcdsaAes128 => Some(known::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        Suite::EcdsaAes256 => Some(known::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        Suite::EcdsaChaCha => Some(known::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
        Suite::RsaAes128 => Some(known::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
        Suite::RsaAes256 => Some(known::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
        Suite::RsaChaCha => Some(known::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
        Suite::Tls13Aes128 | Suite::Tls13Aes256 | Suite::Tls13ChaCha => None,
    }
}

fn group(curve: Curve) -> &'static dyn SupportedKxGroup {
    match curve {
        Curve::CurveP256 => provider::kx_group::SECP256R1,
        Curve::CurveP384 => provider::kx_group::SECP384R1,
        Curve::X25519 => provider::kx_group::X25519,
        Curve::X25519MLKEM768 => provider::kx_group::X25519MLKEM768,
    }
}

fn versions(
    tls: &TlsServer,
    provider: &CryptoProvider,
) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let within = |version| (tls.min_version..=tls.max_version).contains(&version);
    // Where only suites of TLS 1.3 are named there is no TLS 1.2.
    let has_tls12 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
    let mut versions = Vec::new();
    if within(TlsVersion::Tls13) {
        versions.push(&version::TLS13);
    }
    if within(TlsVersion::Tls12) && has_tls12 {
        versions.push(&version::TLS12);
    }
    if versions.is_empty() {
        return Err("tls_server_config: no version of TLS is left".to_owned());
    }
    Ok(versions)
}

fn verifier(
    tls: &TlsServer,
    provider: &Arc<CryptoProvider>,
    read: &mut Read,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let authorities = match (&tls.client_ca, &tls.client_ca_file) {
        (None, None) => None,
        (inline, path) => Some(read.either("client_ca", inline.as_deref(), path.as_deref())?),
    };
    let mut roots = RootCertStore::empty();
    if let Some(authorities) = &authorities {
        for certificate in certificates(authorities)? {
            roots.add(certificate).map_err(|error| format!("{}: {error}", authorities.0))?;
        }
    }
    let verified = |roots: RootCertStore| {
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
    };
    let failed = |error| format!("tls_server_config: {error}");
    let any = |mandatory| -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate::new(mandatory, provider, &roots))
    };
    let verifier: Arc<dyn ClientCertVerifier> = match tls.client_auth_type {
        ClientAuth::NoClientCert => return Ok(None),
        ClientAuth::RequestClientCert => any(false),
        ClientAuth::RequireAnyClientCert => any(true),
        ClientAuth::VerifyClientCertIfGiven => {
            verified(roots).allow_unauthenticated().build().map_err(failed)?
        }
        ClientAuth::RequireAndVerifyClientCert => verified(roots).build().map_err(failed)?,
    };
    Ok(Some(match &tls.client_allowed_sans {
        None => verifier,
        Some(names) => {
            let addresses: Vec<IpAddr> =
                names.iter().filter_map(|name| name.parse().ok()).collect();
            Arc::new(AllowedNames::new(verifier, names.clone(), addresses))
        }
    }))
}
