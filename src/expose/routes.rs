//! One `match` on the path: everything this server answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use tracing::field::Empty;
use tracing::{Instrument, info_span};

use super::negotiate::{self, Encoding};
use super::state::ExposeState;
use super::{body, lifecycle, page, reports, web};
use crate::telemetry::events::WebRequestServed;

/// Nothing may be loaded, run, framed or sent anywhere; the page carries its
/// style inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// Answers one request. The body of a request is never read.
pub(super) async fn answer<B>(
    request: Request<B>,
    state: Arc<ExposeState>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let started = Instant::now();
    let path = known(request.uri().path());
    let span = info_span!(
        "HTTP request",
        otel.name = format_args!("{} {path}", method(request.method())),
        otel.kind = "server",
        http.route = path,
        http.request.method = method(request.method()),
        http.response.status_code = Empty
    );
    let mut response = async {
        match web::admit(&state.web, request.headers()).await {
            Ok(()) => route(path, &request, &state).await,
            Err(response) => response,
        }
    }
    .instrument(span.clone())
    .await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    web::headers(&state.web, headers);
    let code = response.status().as_u16();
    span.record("http.response.status_code", code);
    WebRequestServed { path, code, duration: started.elapsed() }.emit(&state.telemetry);
    Ok(response)
}

/// Paths as their counters name them.
fn known(path: &str) -> &'static str {
    match path {
        "/" => "/",
        "/metrics" => "/metrics",
        "/-/healthy" => "/-/healthy",
        "/-/ready" => "/-/ready",
        "/-/reload" => "/-/reload",
        path if path.starts_with(reports::PREFIX) => "/applications",
        _ => "other",
    }
}

/// As OpenTelemetry's conventions name what is none of the usual ones.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        _ => "_OTHER",
    }
}

async fn route<B>(
    path: &'static str,
    request: &Request<B>,
    state: &ExposeState,
) -> Response<Full<Bytes>> {
    if path == "other" {
        let text = "Not found. There is /, /metrics, /-/healthy, /-/ready and, of each application \
                    that / lists, /applications/CLUSTER/APP_ID.\n";
        return plain(StatusCode::NOT_FOUND, text);
    }
    if path == "/-/reload" {
        let (method, headers) = (request.method(), request.headers());
        return lifecycle::reload(method, headers, state.reloader.as_ref()).await;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/metrics" => metrics(request.headers(), state).await,
        "/applications" => reports::answer(request, state).await,
        "/-/healthy" => plain(StatusCode::OK, "Healthy.\n"),
        "/-/ready" if state.is_ready() => plain(StatusCode::OK, "Ready.\n"),
        "/-/ready" => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not ready: the first cycle over the sources has not ended.\n",
        ),
        _ => landing(request.headers(), state).await,
    }
}

async fn metrics(headers: &HeaderMap, state: &ExposeState) -> Response<Full<Bytes>> {
    let negotiated = negotiate::format(headers);
    let encoding = negotiate::encoding(headers);
    match state.current().metrics(negotiated.format, encoding).await {
        Ok(body) => {
            let vary = HeaderValue::from_static("Accept, Accept-Encoding");
            negotiated_response(&negotiated.content_type(), encoding, vary, body)
        }
        Err(_) => stopping(),
    }
}

async fn landing(headers: &HeaderMap, state: &ExposeState) -> Response<Full<Bytes>> {
    let encoding = negotiate::encoding(headers);
    let current = state.current();
    let ready = state.is_ready();
    let made = tokio::task::spawn_blocking(move || {
        body::text(page::render(&current.runs, &current.counters, current.at, ready), encoding)
    });
    match made.await {
        Ok(body) => {
            let vary = HeaderValue::from_static("Accept-Encoding");
            negotiated_response(HTML, encoding, vary, body)
        }
        Err(_) => stopping(),
    }
}

/// The blocking task is gone: the runtime is on its way down.
pub(super) fn stopping() -> Response<Full<Bytes>> {
    plain(StatusCode::SERVICE_UNAVAILABLE, "Stopping.\n")
}

pub(super) fn negotiated_response(
    content_type: &str,
    encoding: Encoding,
    vary: HeaderValue,
    body: Bytes,
) -> Response<Full<Bytes>> {
    let mut response = with_body(StatusCode::OK, content_type, body);
    response.headers_mut().insert(VARY, vary);
    if encoding == Encoding::Gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with_body(status, TEXT, Bytes::from_static(text.as_bytes()))
}

pub(super) fn with_text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    with_body(status, TEXT, Bytes::from(text))
}

/// The length is said here, as a HEAD answer has it without the body.
fn with_body(status: StatusCode, content_type: &str, body: Bytes) -> Response<Full<Bytes>> {
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(CONTENT_LENGTH, length);
    response
}
