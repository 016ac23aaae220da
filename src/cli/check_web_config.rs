//! `spark-exporter check-web-config FILE`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::Outcome;
use crate::config::{ClientAuth, WebFile};
use crate::expose::WebConfig;
use crate::telemetry::Telemetry;

/// Reads the file and the certificates that it names as the daemon would, and
/// prints what they mean; or fails with what is wrong.
pub(super) fn run(path: &Path) -> anyhow::Result<Outcome> {
    WebConfig::load(path, Arc::new(Telemetry::default())).map_err(anyhow::Error::msg)?;
    let file = WebFile::load(path)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} is valid", path.display())?;
    match file.tls() {
        None => writeln!(out, "  TLS: none, the port speaks plain HTTP")?,
        Some(tls) => {
            let http2 = if file.http2() { ", HTTP/2 offered" } else { "" };
            writeln!(out, "  TLS: {:?} to {:?}{http2}", tls.min_version, tls.max_version)?;
            let clients = match tls.client_auth_type {
                ClientAuth::NoClientCert => "are not asked for a certificate",
                ClientAuth::RequestClientCert => "may show a certificate, which changes nothing",
                ClientAuth::RequireAnyClientCert => {
                    "must show a certificate, whoever signed it (this keeps nobody out)"
                }
                ClientAuth::VerifyClientCertIfGiven => {
                    "may come without a certificate; one that is shown must be of client_ca"
                }
                ClientAuth::RequireAndVerifyClientCert => "must show a certificate of client_ca",
            };
            writeln!(out, "  clients {clients}")?;
            if let Some(names) = &tls.client_allowed_sans {
                writeln!(out, "  with one of the names {}", names.join(", "))?;
            }
        }
    }
    let users: Vec<&str> = file.users().map(|(name, _)| name).collect();
    match users.as_slice() {
        [] => writeln!(out, "  users: none, nobody is asked for a password")?,
        users => writeln!(out, "  users: {}", users.join(", "))?,
    }
    if let Some((interval, burst)) = file.rate_limit() {
        let interval = humantime::format_duration(interval);
        writeln!(out, "  requests: one each {interval}, {burst} at once")?;
    }
    for (name, value) in file.headers() {
        writeln!(out, "  header {name}: {value}")?;
    }
    Ok(Outcome::Good)
}
