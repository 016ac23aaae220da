//! Headers of the operator, with the secrets in them. Files are read anew for
//! each attempt, so that a rotated token is used at once.

use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::Secret;
use crate::config::otlp::Destination;
use crate::fetch::read_secret;

/// As they are configured.
pub(super) struct Headers {
    fixed: HeaderMap,
    files: Vec<(HeaderName, PathBuf)>,
}

impl Headers {
    pub(super) fn of(destination: &Destination) -> Result<Self, String> {
        let name = |name: &str| {
            HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| "otlp.headers: not the name of a header".to_owned())
        };
        let mut fixed = HeaderMap::new();
        for (header, secret) in &destination.headers {
            let value = value(secret)
                .ok_or_else(|| format!("otlp.headers.{header} is not one line of text"))?;
            fixed.insert(name(header)?, value);
        }
        let files = destination
            .header_files
            .iter()
            .map(|(header, path)| Ok((name(header)?, path.clone())))
            .collect::<Result<_, String>>()?;
        Ok(Self { fixed, files })
    }

    /// For one attempt. Errors name header and file, never content.
    pub(super) async fn read(&self) -> Result<HeaderMap, String> {
        let mut headers = self.fixed.clone();
        for (name, path) in &self.files {
            let key = format!("otlp.header_files.{name}");
            let secret = read_secret(&key, path).await?;
            let value = value(&secret)
                .ok_or_else(|| format!("{key} {}: not one line of text", path.display()))?;
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }
}

fn value(secret: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
