//! Answers that are not what was asked for, in words a person can act on.

use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::Url;

use super::body::{Body, Fault};
use super::error::{FetchError, FetchErrorKind};
use super::request::{Timeouts, Wanted};
use super::text::glance;
use crate::config::host_and_port;

/// Checks that the body is JSON before it is decoded as such.
pub(super) fn decode_json<R>(
    url: &Url,
    headers: &HeaderMap,
    body: &mut Body,
    decode: impl FnOnce(&mut Body) -> serde_json::Result<R>,
) -> Result<R, FetchError> {
    let not_json = |what: String| FetchError::new(FetchErrorKind::NotJson, url, what);
    let first = body.first_byte().map_err(|error| not_json(error.to_string()))?;
    let Some(first) = first else {
        return Err(not_json("an empty answer with status 200".to_owned()));
    };
    let html =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if html || first == b'<' {
        let page = glance(&body.beginning());
        return Err(not_json(format!("HTML with status 200, not JSON: {page:?}")).hint(
            "a login page, a proxy or another web server answered: give the root of a Spark \
             driver's UI or History Server, its path prefix included, and credentials where \
             the proxy wants them",
        ));
    }
    if !matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') {
        let text = glance(&body.beginning());
        return Err(not_json(format!("text with status 200, not JSON: {text:?}")));
    }
    // The parser's own words may quote values: position only.
    decode(body).map_err(|error| {
        not_json(match error.classify() {
            serde_json::error::Category::Eof => {
                format!("the JSON ends in the middle, after {} bytes", body.bytes())
            }
            serde_json::error::Category::Data => format!(
                "JSON of another shape than Spark's (line {}, column {})",
                error.line(),
                error.column()
            ),
            _ => format!("not JSON (line {}, column {})", error.line(), error.column()),
        })
    })
}

/// The error of an answer whose status is not 200.
pub(super) fn status_error(
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
    body: &mut Body,
    authorized: bool,
) -> FetchError {
    let glanced = glance(&body.beginning());
    let lower = glanced.to_ascii_lowercase();
    let unknown = status == StatusCode::NOT_FOUND
        && (lower.starts_with("no such app") || lower.starts_with("unknown app"));
    let kind = if unknown { FetchErrorKind::UnknownApplication } else { FetchErrorKind::Status };
    let said = if glanced.is_empty() { String::new() } else { format!(": {glanced:?}") };
    let mut error = if status.is_redirection() {
        let target = redirect_target(url, headers);
        FetchError::new(kind, url, format!("status {status}, a redirect to {target}")).hint(
            "Spark's API redirects nowhere: this looks like a proxy or a login page; give \
             credentials (basic_auth, authorization, http_headers) or an address that leads \
             past it",
        )
    } else {
        FetchError::new(kind, url, format!("status {status}{said}"))
            .hint(status_hint(status, &said, unknown, authorized))
    };
    error.status = Some(status.as_u16());
    error.retry_after = retry_after(headers, jiff::Timestamp::now());
    error
}

fn status_hint(status: StatusCode, said: &str, unknown: bool, authorized: bool) -> &'static str {
    match status.as_u16() {
        404 if unknown => {
            "the application ended and was forgotten, has not been listed yet, or belongs to \
             another server"
        }
        401 if authorized => {
            "the server refused the credentials: check user name and password (or token) in its \
             HTTP settings"
        }
        401 | 407 => {
            "the server wants credentials: give basic_auth or authorization in its HTTP settings"
        }
        403 => {
            "these credentials may not read it: see spark.ui.view.acls, \
             spark.history.ui.admin.acls and the proxy's own rules"
        }
        404 => {
            "is the URL the root of a Spark driver's UI or History Server, its path prefix \
             included?"
        }
        503 if said.contains("Event logs are not available") => {
            "the server could not read the log: it was cleaned up meanwhile, or its own log says why"
        }
        429 | 503 => "the server is overloaded or starting; it is asked again later",
        500 => "the server failed at this one question; its own log says why",
        502 | 504 => "a proxy answered that it cannot reach Spark",
        _ => "",
    }
}

/// Host (and port) of a redirect, never its path or query, which may carry
/// tokens.
fn redirect_target(url: &Url, headers: &HeaderMap) -> String {
    let target = headers
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .and_then(|location| url.join(location).ok());
    match target {
        Some(target) if host_and_port(&target) == host_and_port(url) => {
            "another page of the same host".to_owned()
        }
        Some(target) => glance(host_and_port(&target).as_bytes()),
        None => "nowhere".to_owned(),
    }
}

/// `Retry-After`: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

pub(super) fn fault_error(
    url: &Url,
    fault: Fault,
    bytes: u64,
    wanted: &Wanted,
    timeouts: Timeouts,
) -> FetchError {
    match fault {
        Fault::TimedOut => timed_out(url, timeouts, false),
        Fault::Broken(cause) => FetchError::new(
            FetchErrorKind::Unreachable,
            url,
            format!("the answer broke off after {bytes} bytes: {cause}"),
        )
        .hint("the server or a proxy between ended the connection; it is asked again"),
        Fault::TooLarge => FetchError::new(
            FetchErrorKind::TooLarge,
            url,
            format!("the answer is larger than {} bytes", wanted.limit),
        )
        .hint(format!("raise {} if that is what this server should send", wanted.limit_key)),
        Fault::Gzip(cause) => FetchError::new(
            FetchErrorKind::NotJson,
            url,
            format!("the compressed answer is damaged after {bytes} bytes: {cause}"),
        ),
    }
}

pub(super) fn timed_out(url: &Url, timeouts: Timeouts, connecting: bool) -> FetchError {
    let what = if connecting {
        format!("no connection within {:?}", timeouts.connect)
    } else {
        format!(
            "no whole answer in time ({:?} without a byte, or {:?} in all)",
            timeouts.idle, timeouts.total
        )
    };
    FetchError::new(FetchErrorKind::Timeout, url, what)
        .hint("the server is overloaded, hangs, or a firewall drops packets")
}

/// The last cause of an error, where the operating system or TLS says what
/// happened.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    glance(last_cause(error).to_string().as_bytes())
}

/// The error that has no source.
pub(crate) fn last_cause<'a>(
    mut error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_in_seconds_and_as_a_date() {
        let now: jiff::Timestamp = "2026-11-30T00:00:00Z".parse().expect("a time");
        for (text, seconds) in [
            ("120", Some(120)),
            ("Mon, 30 Nov 2026 00:01:00 GMT", Some(60)),
            ("Sun, 29 Nov 2026 00:00:00 GMT", Some(0)),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().expect("a value"));
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(retry_after(&headers, now), expected, "{text}");
        }
    }

    #[test]
    fn a_redirect_is_told_by_host_only() {
        let url: Url = "http://shs:18080/api/v1/version".parse().expect("a URL");
        for (location, expected) in [
            ("https://me:hunter2@login.example.com/sso?token=hunter2", "login.example.com:443"),
            ("/login?token=hunter2", "another page of the same host"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().expect("a value"));
            assert_eq!(redirect_target(&url, &headers), expected);
        }
    }
}
