//! TLS settings into the client, with errors that name the file.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, ClientBuilder, Identity};

use super::ClientError;
use crate::config::TlsConfig;

/// What `tls_config` says, read from its files.
#[derive(Clone)]
pub(crate) struct Tls {
    authorities: Option<Vec<Certificate>>,
    identity: Option<Identity>,
    insecure: bool,
}

impl Tls {
    pub(crate) fn read(config: &TlsConfig) -> Result<Self, ClientError> {
        let authorities = config.ca_file.as_deref().map(authorities).transpose()?;
        let identity = match (config.cert_file.as_deref(), config.key_file.as_deref()) {
            (Some(certificate), Some(key)) => Some(identity(certificate, key)?),
            _ => None,
        };
        Ok(Self { authorities, identity, insecure: config.insecure_skip_verify })
    }

    pub(crate) fn apply(&self, builder: ClientBuilder) -> ClientBuilder {
        let mut builder = builder.tls_danger_accept_invalid_certs(self.insecure);
        if let Some(authorities) = &self.authorities {
            builder = builder.tls_certs_only(authorities.iter().cloned());
        }
        if let Some(identity) = &self.identity {
            builder = builder.identity(identity.clone());
        }
        builder
    }
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, ClientError> {
    let pem = read("tls_config.ca_file", path)?;
    let authorities = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if authorities.is_empty() {
        return Err(ClientError(format!(
            "tls_config.ca_file {}: no PEM certificate in it (-----BEGIN CERTIFICATE-----)",
            path.display()
        )));
    }
    Ok(authorities)
}

fn identity(certificate: &Path, key: &Path) -> Result<Identity, ClientError> {
    let mut pem = read("tls_config.cert_file", certificate)?;
    pem.push(b'\n');
    pem.extend(read("tls_config.key_file", key)?);
    Identity::from_pem(&pem).map_err(|_| {
        ClientError(format!(
            "tls_config.cert_file {} and key_file {}: not a PEM certificate and its unencrypted \
             PEM key",
            certificate.display(),
            key.display()
        ))
    })
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, ClientError> {
    std::fs::read(path).map_err(|error| ClientError(format!("{key} {}: {error}", path.display())))
}

/// Answers every name with the addresses of one host.
///
/// `tls_config.server_name` is the name that the certificate must carry and
/// that TLS asks for, while the connection goes to the host of the URL. The
/// request is sent for that name, and this finds the host behind it.
pub(crate) struct AlwaysHost(pub(crate) String);

impl Resolve for AlwaysHost {
    fn resolve(&self, _name: Name) -> Resolving {
        let host = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0))
                .await
                .map_err(|error| -> Box<dyn Error + Send + Sync> { Box::new(error) })?
                .collect();
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
