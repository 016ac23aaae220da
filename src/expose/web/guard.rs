//! Before a request is answered: is it too many, and who is it? As Prometheus'
//! exporters do it, every path is behind this, `/-/healthy` too.

use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use super::WebConfig;
use super::logins::Login;
use crate::expose::routes::plain;

const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"spark-exporter\", charset=\"UTF-8\"");

/// # Errors
/// The answer to give instead.
pub(in crate::expose) async fn admit(
    web: &WebConfig,
    headers: &HeaderMap,
) -> Result<(), Response<Full<Bytes>>> {
    let rules = web.now.load_full();
    if let Some(bucket) = &rules.bucket
        && let Err(wait) = bucket.take(Instant::now())
    {
        let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "Too many requests.\n");
        let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        return Err(response);
    }
    if rules.users.is_empty() {
        return Ok(());
    }
    let login = match credentials(headers) {
        None => Login::Wrong,
        Some((name, password)) => web.logins.check(&rules.users, &name, &password).await,
    };
    match login {
        Login::Right => Ok(()),
        Login::Wrong => {
            let text = "Unauthorized: name and password of basic_auth_users are needed here.\n";
            let mut response = plain(StatusCode::UNAUTHORIZED, text);
            response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
            Err(response)
        }
        Login::Busy => {
            let text = "Too many are logging in at once.\n";
            let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
            Err(response)
        }
    }
}

/// Sets what the file says, in the place of ours of the same name.
pub(in crate::expose) fn headers(web: &WebConfig, headers: &mut HeaderMap) {
    for (name, value) in &web.now.load().headers {
        headers.insert(name, value.clone());
    }
}

/// Name and password of `Authorization: Basic`.
fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, encoded) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&decoded[..colon]).ok()?.to_owned();
    Some((name, decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_any_form() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
            credentials(&headers)
                .map(|(name, password)| (name, String::from_utf8(password).expect("text")))
        };
        let known = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        // alice:a:b
        assert_eq!(of("Basic YWxpY2U6YTpi"), known("alice", "a:b"));
        assert_eq!(of("bASIC  YWxpY2U6YTpi"), known("alice", "a:b"));
        assert_eq!(of("Basic Og=="), known("", ""));
        for wrong in ["", "Basic", "Basic ", "Basic YWxp", "Basic ???", "Bearer YWxpY2U6YTpi"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(credentials(&HeaderMap::new()), None);
    }
}
