//! The client: one GET after the other, politely, and an error that a person
//! can act on when one fails.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use http::StatusCode;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderMap};
use reqwest::{Client, Response, Url};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::answer::{decode_json, fault_error, innermost, status_error, timed_out};
use super::body::{Body, Fault, FaultCell};
use super::credentials::Credentials;
use super::decode::{self, Elements};
use super::error::{ClientError, FetchError, FetchErrorKind};
use super::request::{FetchLimits, Request, Timeouts, Wanted};
use super::statistics::{EndpointCounts, Statistics};
use super::tls::{AlwaysHost, Tls};
use crate::config::{HttpConfig, host_and_port};

/// The client for the servers of one [`HttpConfig`]. Clones share all state.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

struct Inner {
    credentials: Credentials,
    tls: Tls,
    server_name: Option<String>,
    /// Whether proxies of the environment are used.
    proxies: bool,
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
        Self::make(config, timeouts, limits, true)
    }

    /// The same, for what is near: proxies of the environment are passed by.
    pub fn without_proxies(
        config: &HttpConfig,
        timeouts: Timeouts,
        limits: FetchLimits,
    ) -> Result<Self, ClientError> {
        Self::make(config, timeouts, limits, false)
    }

    fn make(
        config: &HttpConfig,
        timeouts: Timeouts,
        limits: FetchLimits,
        proxies: bool,
    ) -> Result<Self, ClientError> {
        let credentials = Credentials::of(config).map_err(ClientError)?;
        let tls = Tls::read(&config.tls_config)?;
        let client = build(&tls, timeouts, limits, None, proxies)?;
        Ok(Self(Arc::new(Inner {
            credentials,
            tls,
            server_name: config.tls_config.server_name.clone(),
            proxies,
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
        self.get(request, self.json(), |url, headers, body| {
            decode_json(url, headers, body, |body| decode::whole(body))
        })
        .await
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
        self.get(request, self.json(), |url, headers, body| {
            decode_json(url, headers, body, |body| decode::each(body, state, visit))
        })
        .await
    }

    /// A small text, whole; what is no UTF-8 in it becomes U+FFFD.
    pub async fn get_text(&self, request: Request) -> Result<String, FetchError> {
        let wanted = Wanted { accept: "text/plain", ..self.json() };
        self.get(request, wanted, |url, _, body| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(body, &mut bytes).map_err(|error| {
                FetchError::new(FetchErrorKind::Unreachable, url, error.to_string())
            })?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .await
    }

    fn json(&self) -> Wanted {
        Wanted {
            accept: "application/json",
            encoding: "gzip",
            limit: self.0.limits.response_size,
            limit_key: "limits.response_size",
            total: self.0.timeouts.total,
        }
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    /// Asks, and hands the body of an answer with status 200 to `decode`, on
    /// a blocking thread.
    pub(super) async fn get<R, D>(
        &self,
        request: Request,
        wanted: Wanted,
        decode: D,
    ) -> Result<R, FetchError>
    where
        R: Send + 'static,
        D: FnOnce(&Url, &HeaderMap, &mut Body) -> Result<R, FetchError> + Send + 'static,
    {
        let endpoint = request.endpoint;
        let result = self.try_get(request, wanted, decode).await;
        if let Err(error) = &result {
            let kind = error.kind;
            self.0.statistics.update(endpoint, |counts| {
                *counts.errors.entry(kind).or_default() += 1;
            });
        }
        result
    }

    async fn try_get<R, D>(
        &self,
        request: Request,
        wanted: Wanted,
        decode: D,
    ) -> Result<R, FetchError>
    where
        R: Send + 'static,
        D: FnOnce(&Url, &HeaderMap, &mut Body) -> Result<R, FetchError> + Send + 'static,
    {
        let unreachable =
            |what: String| FetchError::new(FetchErrorKind::Unreachable, &request.url, what);
        let server = self.server(&request.url).map_err(|error| unreachable(error.to_string()))?;
        // The permit is kept until the body is read. The semaphore is never
        // closed.
        let _permit =
            server.permits.acquire().await.map_err(|error| unreachable(error.to_string()))?;
        let outgoing = self.outgoing(&server.client, &request.url, wanted);
        let outgoing = self.0.credentials.apply(outgoing).await.map_err(|what| {
            unreachable(format!("not sent, the credentials cannot be read: {what}"))
        })?;
        self.0.statistics.update(request.endpoint, |counts| counts.requests += 1);
        if let Some(meter) = &request.meter {
            meter.add_request();
        }
        let response =
            outgoing.send().await.map_err(|error| self.transport(&request.url, error))?;
        self.read(request, response, wanted, decode).await
    }

    fn outgoing(&self, client: &Client, url: &Url, wanted: Wanted) -> reqwest::RequestBuilder {
        let mut target = url.clone();
        let renamed = match &self.0.server_name {
            Some(name) if url.scheme() == "https" => target.set_host(Some(name)).is_ok(),
            _ => false,
        };
        let request = client
            .get(target)
            .timeout(wanted.total)
            .header(ACCEPT, wanted.accept)
            .header(ACCEPT_ENCODING, wanted.encoding);
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
                build(&self.0.tls, self.0.timeouts, self.0.limits, Some(host), self.0.proxies)?
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
        wanted: Wanted,
        decode: D,
    ) -> Result<R, FetchError>
    where
        R: Send + 'static,
        D: FnOnce(&Url, &HeaderMap, &mut Body) -> Result<R, FetchError> + Send + 'static,
    {
        let status = response.status();
        let headers = response.headers().clone();
        let timeouts = Timeouts { total: wanted.total, ..self.0.timeouts };
        if status == StatusCode::OK && response.content_length() > Some(wanted.limit) {
            return Err(fault_error(&request.url, Fault::TooLarge, 0, &wanted, timeouts));
        }
        let fault = FaultCell::default();
        let gzip = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip"));
        let raw = self.raw_body(&request, response, &fault);
        let noted = fault.clone();
        let authorized = self.0.credentials.authorize();
        let url = request.url.clone();
        let reading = tokio::task::spawn_blocking(move || {
            // Made here: the gzip decoder reads its header at once.
            let mut body = Body::new(raw, gzip, wanted.limit, &noted);
            let result = if status == StatusCode::OK {
                decode(&url, &headers, &mut body)
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
                fault_error(&request.url, fault, bytes, &wanted, timeouts)
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
    proxies: bool,
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
    if !proxies {
        builder = builder.no_proxy();
    }
    if let Some(host) = always_host {
        // HTTP/2 would put the other name into `:authority`.
        builder = builder.dns_resolver(Arc::new(AlwaysHost(host))).http1_only();
    }
    tls.apply(builder)
        .build()
        .map_err(|error| ClientError(format!("no HTTP client: {}", innermost(&error))))
}
