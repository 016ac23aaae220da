//! The URL of a back end, checked where it was written. Nothing of a text
//! that may hold a password is repeated in what is said about it.

use reqwest::Url;

use super::settings::{Protocol, Signal};

/// Why an endpoint cannot be used as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NotUrl,
    NoScheme,
    Credentials,
    Query,
    /// gRPC has none.
    Path,
}

impl Fault {
    pub(super) fn say(self) -> &'static str {
        match self {
            Self::NotUrl => "is not a URL such as http://collector:4318",
            Self::NoScheme => {
                "does not start with http:// or https://: write it as http://collector:4318 \
                 (HTTP) or http://collector:4317 (gRPC)"
            }
            Self::Credentials => {
                "holds credentials, which would end up in logs; give them as a header \
                 (authorization)"
            }
            Self::Query => {
                "has a query (?...), which may hold a secret and would end up in logs; give \
                 secrets as headers"
            }
            Self::Path => {
                "has a path, which gRPC does not: give host and port alone, or use http/protobuf"
            }
        }
    }
}

/// A URL that can be asked and shown.
pub(super) fn parse(text: &str) -> Result<Url, Fault> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if !(lower.starts_with("http://") || lower.starts_with("https://")) {
        return Err(Fault::NoScheme);
    }
    let mut url = Url::parse(text).map_err(|_| Fault::NotUrl)?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Fault::NotUrl);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Fault::Credentials);
    }
    if url.query().is_some() {
        return Err(Fault::Query);
    }
    url.set_fragment(None);
    Ok(url)
}

/// `host:port` with the scheme that `insecure` stands for.
pub(super) fn with_scheme(text: &str, insecure: bool) -> String {
    let text = text.trim();
    if text.contains("://") {
        return text.to_owned();
    }
    format!("{}://{text}", if insecure { "http" } else { "https" })
}

/// Where requests of a signal go. `general`: whether the URL is meant for all
/// signals.
pub(super) fn target(
    mut url: Url,
    protocol: Protocol,
    signal: Signal,
    general: bool,
) -> Result<String, Fault> {
    match protocol {
        Protocol::Grpc if url.path() != "/" => Err(Fault::Path),
        Protocol::Grpc => Ok(url.as_str().trim_end_matches('/').to_owned()),
        Protocol::HttpProtobuf => {
            if general {
                // An http URL always has a path: `Err` cannot happen here.
                if let Ok(mut path) = url.path_segments_mut() {
                    path.pop_if_empty().extend(["v1", signal.as_str()]);
                }
            }
            Ok(url.into())
        }
    }
}

/// OpenTelemetry's own, on this machine.
pub(super) fn default_target(protocol: Protocol, signal: Signal) -> String {
    match protocol {
        Protocol::Grpc => "http://localhost:4317".to_owned(),
        Protocol::HttpProtobuf => format!("http://localhost:4318/v1/{}", signal.as_str()),
    }
}
