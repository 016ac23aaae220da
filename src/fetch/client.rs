//! The client: one GET after the other, politely, and an error that a person
//! can act on when one fails.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, LOCATION};
use http::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::body::{Body, Fault, FaultCell};
use super::credentials::Credentials;
use super::decode::{self, Elements};
use super::error::{ClientError, FetchError, FetchErrorKind};
use super::statistics::{EndpointCounts, Meter, Statistics};
use super::text::glance;
use super::tls::{AlwaysHost, Tls};
use crate::config::{HttpConfig, Limits, host_and_port};

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect, TLS included.
    pub connect: Duration,
    /// Between two pieces of an answer, and until its first.
    pub idle: Duration,
    /// In all, once it is its turn (see [`FetchLimits`]).
    pub total: Duration,
}

impl Timeouts {
    /// For a driver, which answers from memory.
    pub const DRIVER: Self = Self {
        connect: Duration::from_secs(5),
        idle: Duration::from_secs(15),
        total: Duration::from_secs(30),
    };

    /// For a History Server, whose first answer about an application comes
    /// after it has replayed the whole log.
    pub const HISTORY_SERVER: Self = Self {
        connect: Duration::from_secs(5),
        idle: Duration::from_mins(3),
        total: Duration::from_mins(5),
    };
}

/// How much a request may bring, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of one body, decompressed.
    pub response_size: u64,
    /// Requests in flight to one server (host and port); the next waits.
    pub in_flight_per_server: usize,
}

impl From<&Limits> for FetchLimits {
    fn from(limits: &Limits) -> Self {
        Self { response_size: limits.response_size.bytes(), in_flight_per_server: 2 }
    }
}

/// One GET.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the endpoint for counters: a constant, never the URL.
    pub endpoint: &'static str,
    pub url: Url,
    /// Also counts what this request costs.
    pub meter: Option<Arc<Meter>>,
}

/// The client for the servers of one [`HttpConfig`]. Clones share all state.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

struct Inner {
    credentials: Credentials,
    tls: Tls,
    server_name: Option<String>,
    timeouts: Timeouts,
    limits: FetchLimits,
    client: Client,
    servers: Mutex<HashMap<String, Arc<Server>>>,
    statistics: Statistics,
}

/// Beyond so many servers those that nobody is asking now are forgotten.
const SERVERS: usize = 4_096;

struct Server {
    permits: Semaphore,
    client: Client,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("timeouts", &self.0.timeouts).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Reads the files of `tls_config`; errors name key and file.
    pub fn new(
        config: &HttpConfig,
        timeouts: Timeouts,
        limits: FetchLimits,
    ) -> Result<Self, ClientError> {
        let credentials = Credentials::of(config).map_err(ClientError)?;
        let tls = Tls::read(&config.tls_config)?;
        let client = build(&tls, timeouts, limits, None)?;
        Ok(Self(Arc::new(Inner {
            credentials,
            tls,
            server_name: config.tls_config.server_name.clone(),
            timeouts,
            limits,
            client,
            servers: Mutex::default(),
            statistics: Statistics::default(),
        })))
    }

    /// Counts by endpoint since the client was made.
    pub fn statistics(&self) -> BTreeMap<&'static str, EndpointCounts> {
        self.0.statistics.snapshot()
    }

    /// A small answer, whole.
    pub async fn get_json<T>(&self, request: Request) -> Result<T, FetchError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.get(request, |body| decode::whole(body)).await
    }

    /// An array of any length, element by element through `visit` into
    /// `state`. Runs on a blocking thread; the array never exists as a whole.
    pub async fn get_array<T, S, F>(
        &self,
        request: Request,
        state: S,
        visit: F,
    ) -> Result<Elements<S>, FetchError>
    where
        T: DeserializeOwned,
        S: Send + 'static,
        F: FnMut(&mut S, T) + Send + 'static,
    {
        self.get(request, |body| decode::each(body, state, visit)).await
    }

    async fn get<R, D>(&self, request: Request, decode: D) -> Result<R, FetchError>
    where
        R: Send + 'static,
        D: FnOnce(&mut Body) -> serde_json::Result<R> + Send + 'static,
    {
        let endpoint = request.endpoint;
        let result = self.try_get(request, decode).await;
        if let Err(error) = &result {
            let kind = error.kind;
            self.0.statistics.update(endpoint, |counts| {
                *counts.errors.entry(kind).or_default() += 1;
            });
        }
        result
    }

    async fn try_get<R, D>(&self, request: Request, decode: D) -> Result<R, FetchError>
    where
        R: Send + 'static,
        D: FnOnce(&mut Body) -> serde_json::Result<R> + Send + 'static,
    {
        let unreachable =
            |what: String| FetchError::new(FetchErrorKind::Unreachable, &request.url, what);
        let server = self.server(&request.url).map_err(|error| unreachable(error.to_string()))?;
        // The permit is kept until the body is read. The semaphore is never
        // closed.
        let _permit =
            server.permits.acquire().await.map_err(|error| unreachable(error.to_string()))?;
        let outgoing = self.outgoing(&server.client, &request.url);
        let outgoing = self.0.credentials.apply(outgoing).await.map_err(|what| {
            unreachable(format!("not sent, the credentials cannot be read: {what}"))
        })?;
        self.0.statistics.update(request.endpoint, |counts| counts.requests += 1);
        if let Some(meter) = &request.meter {
            meter.add_request();
        }
        let response =
            outgoing.send().await.map_err(|error| self.transport(&request.url, error))?;
        self.read(request, response, decode).await
    }

    fn outgoing(&self, client: &Client, url: &Url) -> reqwest::RequestBuilder {
        let mut target = url.clone();
        let renamed = match &self.0.server_name {
            Some(name) if url.scheme() == "https" => target.set_host(Some(name)).is_ok(),
            _ => false,
        };
        let request =
            client.get(target).header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "gzip");
        if renamed { request.header(HOST, host_and_port(url)) } else { request }
    }

    fn server(&self, url: &Url) -> Result<Arc<Server>, ClientError> {
        let key = host_and_port(url);
        let mut servers = self.0.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&key) {
            return Ok(Arc::clone(server));
        }
        if servers.len() >= SERVERS {
            servers.retain(|_, server| Arc::strong_count(server) > 1);
        }
        let client = match &self.0.server_name {
            Some(_) if url.scheme() == "https" => {
                let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                build(&self.0.tls, self.0.timeouts, self.0.limits, Some(host))?
            }
            _ => self.0.client.clone(),
        };
        let permits = Semaphore::new(self.0.limits.in_flight_per_server.max(1));
        let server = Arc::new(Server { permits, client });
        servers.insert(key, Arc::clone(&server));
        Ok(server)
    }

    /// Status and body of an answer.
    async fn read<R, D>(
        &self,
        request: Request,
        response: Response,
        decode: D,
    ) -> Result<R, FetchError>
    where
        R: Send + 'static,
        D: FnOnce(&mut Body) -> serde_json::Result<R> + Send + 'static,
    {
        let status = response.status();
        let headers = response.headers().clone();
        let fault = FaultCell::default();
        let gzip = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip"));
        let raw = self.raw_body(&request, response, &fault);
        let noted = fault.clone();
        let limit = self.0.limits.response_size;
        let timeouts = self.0.timeouts;
        let authorized = self.0.credentials.authorize();
        let url = request.url.clone();
        let reading = tokio::task::spawn_blocking(move || {
            // Made here: the gzip decoder reads its header at once.
            let mut body = Body::new(raw, gzip, limit, &noted);
            let result = if status == StatusCode::OK {
                decode_json(&url, &headers, &mut body, decode)
            } else {
                Err(status_error(&url, status, &headers, &mut body, authorized))
            };
            (result, body.bytes())
        });
        let (result, bytes) = reading.await.map_err(|_| {
            FetchError::new(FetchErrorKind::Unreachable, &request.url, "reading was interrupted")
        })?;
        self.0.statistics.update(request.endpoint, |counts| counts.body_bytes += bytes);
        result.map_err(|error| match fault.get() {
            // A fault in the body of an error page leaves the status in place.
            Some(fault) if status == StatusCode::OK => {
                fault_error(&request.url, fault, bytes, limit, timeouts)
            }
            _ => error,
        })
    }

    /// An answer's body as it comes over the wire, for a blocking thread.
    fn raw_body(
        &self,
        request: &Request,
        response: Response,
        fault: &FaultCell,
    ) -> impl io::Read + Send + 'static {
        let inner = Arc::clone(&self.0);
        let (endpoint, meter) = (request.endpoint, request.meter.clone());
        let noted = fault.clone();
        let frames = response.bytes_stream().map(move |frame| match frame {
            Ok(bytes) => {
                let count = bytes.len() as u64;
                inner.statistics.update(endpoint, |counts| counts.wire_bytes += count);
                if let Some(meter) = &meter {
                    meter.add_bytes(count);
                }
                Ok(bytes)
            }
            Err(error) => {
                noted.set(if error.is_timeout() {
                    Fault::TimedOut
                } else {
                    Fault::Broken(innermost(&error))
                });
                Err(io::Error::other("the body broke off"))
            }
        });
        SyncIoBridge::new(StreamReader::new(Box::pin(frames)))
    }

    /// A request that got no answer.
    fn transport(&self, url: &Url, error: reqwest::Error) -> FetchError {
        let error = error.without_url();
        if error.is_timeout() {
            return timed_out(url, self.0.timeouts, error.is_connect());
        }
        let cause = innermost(&error);
        let hint = if cause.contains("certificate") {
            "give the authority that signed the server's certificate as tls_config.ca_file, and \
             the name in it as tls_config.server_name where it is not the URL's host"
        } else if error.is_dns() {
            "check the host name"
        } else if error.is_connect() {
            "check host and port, and that the server runs: a driver's UI ends with its \
             application"
        } else {
            ""
        };
        FetchError::new(FetchErrorKind::Unreachable, url, format!("no answer: {cause}")).hint(hint)
    }
}

fn build(
    tls: &Tls,
    timeouts: Timeouts,
    limits: FetchLimits,
    always_host: Option<String>,
) -> Result<Client, ClientError> {
    let mut builder = Client::builder()
        .user_agent(concat!("spark-exporter/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // Decompressed in `body`, where the bytes of the wire are counted too.
        .no_gzip()
        .connect_timeout(timeouts.connect)
        .read_timeout(timeouts.idle)
        .timeout(timeouts.total)
        .pool_max_idle_per_host(limits.in_flight_per_server.max(1));
    if let Some(host) = always_host {
        // HTTP/2 would put the other name into `:authority`.
        builder = builder.dns_resolver(Arc::new(AlwaysHost(host))).http1_only();
    }
    tls.apply(builder)
        .build()
        .map_err(|error| ClientError(format!("no HTTP client: {}", innermost(&error))))
}

/// Checks that the body is JSON before it is decoded as such.
fn decode_json<R>(
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
fn status_error(
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
            .hint(status_hint(status, unknown, authorized))
    };
    error.status = Some(status.as_u16());
    error.retry_after = retry_after(headers, jiff::Timestamp::now());
    error
}

fn status_hint(status: StatusCode, unknown: bool, authorized: bool) -> &'static str {
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
        429 | 503 => "the server is overloaded or starting; it is asked again later",
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
fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn fault_error(url: &Url, fault: Fault, bytes: u64, limit: u64, timeouts: Timeouts) -> FetchError {
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
            format!("the answer is larger than {limit} bytes"),
        )
        .hint("raise limits.response_size if that is what this server should send"),
        Fault::Gzip(cause) => FetchError::new(
            FetchErrorKind::NotJson,
            url,
            format!("the compressed answer is damaged after {bytes} bytes: {cause}"),
        ),
    }
}

fn timed_out(url: &Url, timeouts: Timeouts, connecting: bool) -> FetchError {
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
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    glance(cause.to_string().as_bytes())
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
