//! The headers that carry secrets. Files are read for each request, so that
//! a rotated token is used at once.

use std::path::{Path, PathBuf};

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::RequestBuilder;

use crate::config::{HttpConfig, Secret};

/// A secret file longer than this is a mistake.
const LONGEST_FILE: u64 = 64 * 1024;

/// Where the secret of a header comes from.
enum Origin {
    Given(Secret),
    File { key: String, path: PathBuf },
}

impl Origin {
    async fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Given(secret) => Ok(secret.clone()),
            Self::File { key, path } => read(key, path).await,
        }
    }
}

enum Form {
    Basic { username: Origin },
    Scheme(String),
    Plain,
}

/// Headers of every request to the servers of one [`HttpConfig`].
pub(crate) struct Credentials {
    fixed: HeaderMap,
    secret: Vec<(HeaderName, Form, Origin)>,
}

impl Credentials {
    /// From a configuration that [`HttpConfig::validate`] found sound.
    pub(crate) fn of(config: &HttpConfig) -> Result<Self, String> {
        config.validate()?;
        let mut secret = Vec::new();
        if let Some(basic) = &config.basic_auth {
            let origin = match &basic.password_file {
                Some(path) => file("basic_auth.password_file", path),
                None => Origin::Given(basic.password.clone().unwrap_or_else(|| Secret::new(""))),
            };
            let username = match &basic.username_file {
                Some(path) => file("basic_auth.username_file", path),
                None => Origin::Given(Secret::new(basic.username.as_str())),
            };
            secret.push((AUTHORIZATION, Form::Basic { username }, origin));
        }
        if let Some(authorization) = &config.authorization {
            let origin = match (&authorization.credentials, &authorization.credentials_file) {
                (Some(credentials), _) => Origin::Given(credentials.clone()),
                (None, Some(path)) => file("authorization.credentials_file", path),
                (None, None) => return Err("authorization has no credentials".to_owned()),
            };
            let scheme = authorization.scheme.trim().to_owned();
            secret.push((AUTHORIZATION, Form::Scheme(scheme), origin));
        }
        let mut fixed = HeaderMap::new();
        for (name, values) in &config.http_headers {
            let header = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("http_headers: {name:?} is not the name of a header"))?;
            for value in &values.values {
                let value = HeaderValue::from_str(value)
                    .map_err(|_| format!("http_headers.{name}: not a header value"))?;
                fixed.append(header.clone(), value);
            }
            for value in &values.secrets {
                secret.push((header.clone(), Form::Plain, Origin::Given(value.clone())));
            }
            for path in &values.files {
                let key = format!("http_headers.{name}.files");
                secret.push((header.clone(), Form::Plain, file(&key, path)));
            }
        }
        Ok(Self { fixed, secret })
    }

    /// Whether an `Authorization` header is sent at all.
    pub(crate) fn authorize(&self) -> bool {
        self.secret.iter().any(|(name, _, _)| *name == AUTHORIZATION)
    }

    /// Adds them to one request. Errors name key and file, never content.
    pub(crate) async fn apply(&self, request: RequestBuilder) -> Result<RequestBuilder, String> {
        let mut request = request.headers(self.fixed.clone());
        for (name, form, origin) in &self.secret {
            let secret = origin.read().await?;
            let text = match form {
                Form::Basic { username } => {
                    let username = username.read().await?;
                    request = request.basic_auth(username.expose(), Some(secret.expose()));
                    continue;
                }
                Form::Scheme(scheme) => format!("{scheme} {}", secret.expose()),
                Form::Plain => secret.expose().to_owned(),
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| match origin {
                Origin::Given(_) => format!("the secret of header {name} is not one line of text"),
                Origin::File { key, path } => {
                    format!("{key} {}: not one line of text", path.display())
                }
            })?;
            value.set_sensitive(true);
            request = request.header(name.clone(), value);
        }
        Ok(request)
    }
}

fn file(key: &str, path: &Path) -> Origin {
    Origin::File { key: key.to_owned(), path: path.to_owned() }
}

/// Reads a secret off the async threads: the file may lie on a network.
pub(crate) async fn read(key: &str, path: &Path) -> Result<Secret, String> {
    let wrong = |what: &dyn std::fmt::Display| format!("{key} {}: {what}", path.display());
    let owned = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut text = String::new();
        std::fs::File::open(owned)?.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    });
    let text = reading.await.map_err(|error| wrong(&error))?.map_err(|error| wrong(&error))?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(wrong(&"longer than any secret"));
    }
    Ok(Secret::new(text.trim_end_matches(['\r', '\n'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> RequestBuilder {
        reqwest::Client::new().get("http://localhost")
    }

    #[tokio::test]
    async fn a_missing_password_file_is_named() {
        let config: HttpConfig = serde_saphyr::from_str(
            "basic_auth: {username: reader, password_file: /does/not/exist}\n",
        )
        .expect("readable");
        let credentials = Credentials::of(&config).expect("sound");
        let error = credentials.apply(request()).await.expect_err("no such file");
        assert!(
            error.contains("basic_auth.password_file /does/not/exist: No such file"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_rotated_token_is_used_at_once() {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        let mut config = HttpConfig::default();
        config.authorization = Some(crate::config::Authorization {
            credentials_file: Some(file.path().to_owned()),
            ..Default::default()
        });
        let credentials = Credentials::of(&config).expect("sound");
        for token in ["first", "second"] {
            std::fs::write(file.path(), format!("{token}\n")).expect("written");
            let request = credentials.apply(request()).await.expect("headers").build();
            let request = request.expect("a request");
            assert_eq!(request.headers()[AUTHORIZATION], format!("Bearer {token}").as_str());
            assert!(!format!("{request:?}").contains(token));
        }
    }
}
