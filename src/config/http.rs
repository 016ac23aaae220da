//! How to talk HTTP to Spark's servers, in the names of Prometheus'
//! `http_config`, so that settings can be copied from there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Secret;

/// Client settings of a group of servers.
///
/// ```yaml
/// http_config:
///   basic_auth:
///     username: reader
///     password_file: /run/secrets/password
///   tls_config:
///     ca_file: /etc/ssl/company.pem
/// ```
///
/// Files are read anew for each request (a rotated token needs no restart),
/// those of `tls_config` when the client is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// User name and password, as an `Authorization: Basic` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// Any other `Authorization` header, a bearer token for instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
    pub tls_config: TlsConfig,
    /// More headers, for gateways that want one of their own.
    pub http_headers: BTreeMap<String, HeaderValues>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BasicAuth {
    pub username: String,
    /// File with the name, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// File with the password; a line end after it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Authorization {
    /// The word before the credentials.
    #[serde(rename = "type")]
    pub scheme: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<PathBuf>,
}

impl Default for Authorization {
    fn default() -> Self {
        Self { scheme: "Bearer".to_owned(), credentials: None, credentials_file: None }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file of certificate authorities to trust *instead of* the
    /// system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// PEM file of our own certificate, for servers that ask for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// PEM file of the key of `cert_file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// DNS name that the server's certificate must carry where it is not the
    /// host of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Accept any certificate. Whoever is between can then read everything,
    /// credentials included.
    pub insecure_skip_verify: bool,
}

/// Values of one header, in this order: `values`, `secrets`, `files`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderValues {
    pub values: Vec<String>,
    pub secrets: Vec<Secret>,
    pub files: Vec<PathBuf>,
}

/// Headers that the client sets itself.
const RESERVED_HEADERS: [&str; 11] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

impl HttpConfig {
    /// From YAML text: what stands under `http_config` elsewhere, alone in a
    /// file. The message quotes no value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = super::file::from_yaml(text)?;
        config.validate()?;
        Ok(config)
    }

    /// What contradicts itself, named by its keys.
    pub fn validate(&self) -> Result<(), String> {
        if self.basic_auth.is_some() && self.authorization.is_some() {
            return Err("basic_auth and authorization exclude each other: a request carries one \
                        Authorization header; leave one out"
                .to_owned());
        }
        if let Some(basic) = &self.basic_auth {
            basic.validate()?;
        }
        if let Some(authorization) = &self.authorization {
            authorization.validate()?;
        }
        self.tls_config.validate()?;
        self.http_headers.iter().try_for_each(|(name, values)| validate_header(name, values))
    }
}

impl BasicAuth {
    fn validate(&self) -> Result<(), String> {
        if self.username.contains(':') {
            return Err("basic_auth.username must not contain a colon".to_owned());
        }
        if !self.username.is_empty() && self.username_file.is_some() {
            return Err("basic_auth.username and basic_auth.username_file exclude each other; \
                        leave one out"
                .to_owned());
        }
        if self.password.is_some() && self.password_file.is_some() {
            return Err("basic_auth.password and basic_auth.password_file exclude each other; \
                        leave one out"
                .to_owned());
        }
        Ok(())
    }
}

impl Authorization {
    fn validate(&self) -> Result<(), String> {
        let scheme = self.scheme.trim();
        if scheme.is_empty() || scheme.contains(char::is_whitespace) {
            return Err("authorization.type is one word, Bearer for instance".to_owned());
        }
        if scheme.eq_ignore_ascii_case("basic") {
            return Err("authorization.type cannot be Basic: use basic_auth instead".to_owned());
        }
        match (&self.credentials, &self.credentials_file) {
            (Some(_), Some(_)) => Err("authorization.credentials and \
                                       authorization.credentials_file exclude each other; leave \
                                       one out"
                .to_owned()),
            (None, None) => Err("authorization needs credentials or credentials_file".to_owned()),
            _ => Ok(()),
        }
    }
}

impl TlsConfig {
    pub(super) fn validate(&self) -> Result<(), String> {
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Err("tls_config.cert_file and tls_config.key_file belong together: give both \
                        or none"
                .to_owned());
        }
        if let Some(name) = &self.server_name {
            let dns_name = name.parse::<std::net::IpAddr>().is_err()
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
            if !dns_name {
                return Err(format!("tls_config.server_name {name:?} is not a DNS name"));
            }
        }
        Ok(())
    }
}

fn validate_header(name: &str, values: &HeaderValues) -> Result<(), String> {
    if RESERVED_HEADERS.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(format!(
            "http_headers cannot set {name:?}, which spark-exporter sets itself (Authorization: \
             use basic_auth or authorization)"
        ));
    }
    if ::http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(format!("http_headers: {name:?} is not the name of a header"));
    }
    if values.values.is_empty() && values.secrets.is_empty() && values.files.is_empty() {
        return Err(format!("http_headers.{name} needs values, secrets or files"));
    }
    let texts = values.values.iter().map(String::as_str);
    let secrets = values.secrets.iter().map(Secret::expose);
    if texts.chain(secrets).any(|text| ::http::HeaderValue::from_str(text).is_err()) {
        return Err(format!("http_headers.{name}: a header value is one line of visible text"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<HttpConfig, String> {
        serde_saphyr::from_str(yaml).map_err(|error| error.to_string())
    }

    #[test]
    fn prometheus_names_are_read() {
        let config = parse(
            "authorization: {credentials_file: /token}\n\
             tls_config: {ca_file: /ca.pem, cert_file: /c.pem, key_file: /k.pem, server_name: shs}\n\
             http_headers: {X-Team: {values: [data], secrets: [hunter2], files: [/f]}}\n",
        )
        .expect("readable");
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.authorization.map(|a| a.scheme), Some("Bearer".to_owned()));
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = parse("basic_auth: {user: reader}\n").expect_err("unknown");
        assert!(error.contains("user"), "{error}");
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        for (yaml, word) in [
            ("basic_auth: {username: a}\nauthorization: {credentials: b}\n", "exclude"),
            ("basic_auth: {username: a, password: b, password_file: /c}\n", "password_file"),
            ("authorization: {credentials: b, credentials_file: /c}\n", "credentials_file"),
            ("authorization: {type: Bearer}\n", "needs"),
            ("authorization: {type: Basic, credentials: b}\n", "basic_auth"),
            ("tls_config: {cert_file: /c}\n", "key_file"),
            ("tls_config: {server_name: 10.0.0.1}\n", "DNS"),
            ("http_headers: {Authorization: {values: [x]}}\n", "Authorization"),
            ("http_headers: {'a b': {values: [x]}}\n", "a b"),
            ("http_headers: {X-A: {}}\n", "X-A"),
            ("http_headers: {X-A: {secrets: [\"a\\nb\"]}}\n", "one line"),
        ] {
            let error = parse(yaml).expect(yaml).validate().expect_err(yaml);
            assert!(error.contains(word), "{yaml}: {error}");
        }
    }

    #[test]
    fn secrets_are_in_no_output() {
        let config = parse(
            "basic_auth: {username: reader, password: hunter2}\n\
             http_headers: {X-A: {secrets: [hunter2]}}\n",
        )
        .expect("readable");
        assert!(!format!("{config:?}").contains("hunter2"));
        let json = serde_json::to_string(&config).expect("serializable");
        assert!(!json.contains("hunter2") && json.contains("<secret>"), "{json}");
    }
}
