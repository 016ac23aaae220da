//! The file of `--web.config.file`: who may read the web end, and how it
//! speaks TLS. The format is that of Prometheus' exporters (exporter-toolkit),
//! so that one file serves them all.
//!
//! ```yaml
//! tls_server_config:
//!   cert_file: tls.crt
//!   key_file: tls.key
//! basic_auth_users:
//!   prometheus: $2y$10$...
//! ```

mod checks;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::tls::{ClientAuth, Curve, Suite, TlsServer, TlsVersion};
use super::file::{ConfigError, from_yaml};
use super::{Secret, Span};

/// What the file says. Left empty, as a file without any of it, the web end
/// speaks plain HTTP to everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebFile {
    pub tls_server_config: Option<TlsServer>,
    pub http_server_config: Option<HttpServer>,
    /// Names and the bcrypt hashes of their passwords.
    pub basic_auth_users: Option<BTreeMap<String, Secret>>,
    pub rate_limit: Option<RateLimit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpServer {
    /// Whether HTTP/2 is offered, where TLS is.
    pub http2: bool,
    /// Of the five that may be set, by name as it is usually written.
    pub headers: Option<BTreeMap<String, String>>,
}

impl Default for HttpServer {
    fn default() -> Self {
        Self { http2: true, headers: None }
    }
}

/// A token bucket over all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimit {
    /// Between two requests, once the burst is used up; 0: no limit.
    pub interval: Span,
    pub burst: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { interval: Span::seconds(0), burst: 0 }
    }
}

/// Headers that may be set, and the values that are allowed where not any is.
pub const HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
];

impl WebFile {
    /// Reads and checks the file. Paths in it are relative to its folder.
    /// Certificates are not read here.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::from_text(&text, path)
    }

    /// The same of a text that was read from there.
    pub fn from_text(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let invalid = |message| ConfigError::Invalid { path: path.to_owned(), message };
        let mut file = Self::parse(text).map_err(invalid)?;
        file.check().map_err(invalid)?;
        if let (Some(tls), Some(folder)) = (&mut file.tls_server_config, path.parent()) {
            tls.relative_to(folder);
        }
        Ok(file)
    }

    /// From YAML text; an empty one is the default.
    pub fn parse(text: &str) -> Result<Self, String> {
        from_yaml(text)
    }

    /// The TLS that is spoken, if any is.
    pub fn tls(&self) -> Option<&TlsServer> {
        self.tls_server_config.as_ref().filter(|tls| **tls != TlsServer::default())
    }

    pub fn http2(&self) -> bool {
        self.http_server_config.as_ref().is_none_or(|http| http.http2)
    }

    /// Headers to set; a value that is left blank sets none.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.http_server_config.iter().filter_map(|http| http.headers.as_ref());
        let headers = headers.flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        headers.filter(|(_, value)| !value.is_empty())
    }

    pub fn users(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.basic_auth_users.iter().flatten().map(|(name, hash)| (name.as_str(), hash))
    }

    /// How long until there is one more request, and how many there may be at
    /// once.
    pub fn rate_limit(&self) -> Option<(Duration, u32)> {
        let limit = self.rate_limit.as_ref()?;
        let interval = limit.interval.get();
        (!interval.is_zero()).then_some((interval, limit.burst))
    }
}
