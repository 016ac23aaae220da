//! `tls_server_config`: names of Go's crypto/tls, as far as there is something
//! behind them here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Secret;

/// Certificate, key, and who of the clients must show one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsServer {
    /// PEM: the certificate, then those between it and its authority.
    pub cert: Option<String>,
    pub key: Option<Secret>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// PEM: authorities of the certificates of clients.
    pub client_ca: Option<String>,
    pub client_ca_file: Option<PathBuf>,
    pub client_auth_type: ClientAuth,
    /// Names (DNS, IP, e-mail, URI) of which a client's certificate must have
    /// one.
    pub client_allowed_sans: Option<Vec<String>>,
    pub min_version: TlsVersion,
    pub max_version: TlsVersion,
    /// Of TLS 1.2; those of 1.3 are always all there.
    pub cipher_suites: Option<Vec<Suite>>,
    /// In this order.
    pub curve_preferences: Option<Vec<Curve>>,
    /// Whether the order here decides, or the client's.
    pub prefer_server_cipher_suites: bool,
}

impl Default for TlsServer {
    fn default() -> Self {
        Self {
            cert: None,
            key: None,
            cert_file: None,
            key_file: None,
            client_ca: None,
            client_ca_file: None,
            client_auth_type: ClientAuth::default(),
            client_allowed_sans: None,
            min_version: TlsVersion::Tls12,
            max_version: TlsVersion::Tls13,
            cipher_suites: None,
            curve_preferences: None,
            prefer_server_cipher_suites: true,
        }
    }
}

impl TlsServer {
    pub(super) fn relative_to(&mut self, folder: &Path) {
        let paths = [&mut self.cert_file, &mut self.key_file, &mut self.client_ca_file];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }
}

/// What is asked of clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientAuth {
    #[default]
    #[serde(alias = "")]
    NoClientCert,
    /// Asked for; whatever comes, or nothing, is good.
    RequestClientCert,
    /// Any certificate whose key the client has.
    #[serde(alias = "RequireClientCert")]
    RequireAnyClientCert,
    /// None, or one of `client_ca`.
    VerifyClientCertIfGiven,
    /// One of `client_ca`.
    RequireAndVerifyClientCert,
}

impl ClientAuth {
    pub fn verifies(self) -> bool {
        matches!(self, Self::VerifyClientCertIfGiven | Self::RequireAndVerifyClientCert)
    }

    pub fn requires(self) -> bool {
        matches!(self, Self::RequireAnyClientCert | Self::RequireAndVerifyClientCert)
    }
}

/// Those that are older are known, to say what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    #[serde(rename = "TLS10")]
    Tls10,
    #[serde(rename = "TLS11")]
    Tls11,
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
}

/// All with forward secrecy and authenticated encryption. Those of Go's list
/// that lack either are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Suite {
    #[serde(rename = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")]
    EcdsaAes128,
    #[serde(rename = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")]
    EcdsaAes256,
    #[serde(
        rename = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        alias = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"
    )]
    EcdsaChaCha,
    #[serde(rename = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")]
    RsaAes128,
    #[serde(rename = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")]
    RsaAes256,
    #[serde(
        rename = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        alias = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"
    )]
    RsaChaCha,
    /// Named or not, it is there.
    #[serde(rename = "TLS_AES_128_GCM_SHA256")]
    Tls13Aes128,
    #[serde(rename = "TLS_AES_256_GCM_SHA384")]
    Tls13Aes256,
    #[serde(rename = "TLS_CHACHA20_POLY1305_SHA256")]
    Tls13ChaCha,
}

impl Suite {
    pub fn is_of_tls13(self) -> bool {
        matches!(self, Self::Tls13Aes128 | Self::Tls13Aes256 | Self::Tls13ChaCha)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Curve {
    CurveP256,
    CurveP384,
    X25519,
    X25519MLKEM768,
}
