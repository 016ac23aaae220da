//! OTLP over HTTP, with bodies in protobuf.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, LOCATION};
use ::http::{HeaderMap, HeaderValue, StatusCode};
use bytes::{Bytes, BytesMut};
use flate2::write::GzEncoder;
use reqwest::{Client, Response, Url};
use tokio::time::{Instant, timeout_at};

use super::answer::{Again, Answer, Failure, Reason, Taken, answered, json_response, response};
use super::renewed::Renewed;
use super::{ANSWER_SIZE, USER_AGENT, words};
use crate::config::otlp::{Compression, Destination, Signal};
use crate::config::{TlsConfig, host_and_port};
use crate::fetch::{AlwaysHost, Tls, innermost, retry_after};

/// Smaller bodies are compressed where they are.
const SMALL: usize = 64 << 10;
/// How long a connection that nobody uses stays open: longer than an interval
/// of metrics, and each has one.
const IDLE: Duration = Duration::from_mins(5);
const KEEP_ALIVE: Duration = Duration::from_mins(1);

pub(super) struct Http {
    signal: Signal,
    url: Url,
    /// Where the certificate's name is not the URL's.
    host: Option<HeaderValue>,
    gzip: bool,
    client: Renewed<Client>,
}

impl Http {
    pub(super) fn new(signal: Signal, destination: &Destination) -> Result<Self, String> {
        let mut url = Url::parse(&destination.endpoint)
            .map_err(|error| format!("the endpoint is not a URL: {error}"))?;
        let (mut host, mut always) = (None, None);
        if let Some(name) =
            destination.tls.server_name.as_deref().filter(|_| url.scheme() == "https")
        {
            // The request is sent for the certificate's name; whom it is for
            // and where it goes stays what the URL says.
            host = HeaderValue::from_str(&host_and_port(&url)).ok();
            always = Some(url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned());
            url.set_host(Some(name)).map_err(|_| "tls_config.server_name is no name".to_owned())?;
        }
        let (tls, timeout) = (destination.tls.clone(), destination.timeout);
        let client = Renewed::new(&destination.tls, move || build(&tls, timeout, always.clone()))?;
        let gzip = destination.compression == Compression::Gzip;
        Ok(Self { signal, url, host, gzip, client })
    }

    pub(super) fn wear_out(&self) {
        self.client.wear_out();
    }

    /// The body as it goes over the wire, made once for all attempts.
    pub(super) async fn prepare(&self, body: &Bytes) -> Bytes {
        if !self.gzip {
            return body.clone();
        }
        if body.len() <= SMALL {
            return compressed(body);
        }
        let whole = body.clone();
        // Off the async threads: a few megabytes take tens of milliseconds.
        tokio::task::spawn_blocking(move || compressed(&whole))
            .await
            .unwrap_or_else(|_| compressed(body))
    }

    pub(super) async fn attempt(
        &self,
        body: Bytes,
        headers: &HeaderMap,
        deadline: Instant,
    ) -> Answer {
        let (client, stale) = self.client.get().await;
        let mut request = client
            .post(self.url.clone())
            .headers(headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf");
        if self.gzip {
            request = request.header(CONTENT_ENCODING, "gzip");
        }
        if let Some(host) = &self.host {
            request = request.header(HOST, host.clone());
        }
        match timeout_at(deadline, request.body(body).send()).await {
            Err(_) => super::sender::timed_out(),
            Ok(Err(error)) => Answer::Failed(self.transport(&error, stale)),
            Ok(Ok(answer)) if answer.status().is_success() => {
                self.taken(answer, headers, deadline).await
            }
            Ok(Ok(answer)) => Answer::Failed(self.refused(answer, headers, deadline).await),
        }
    }

    /// Whatever is wrong with the body of a success, the request arrived:
    /// sending it again would count it twice.
    async fn taken(&self, answer: Response, headers: &HeaderMap, deadline: Instant) -> Answer {
        let content_type = content_type(&answer);
        let body = match timeout_at(deadline, body(answer)).await {
            Ok(Ok(body)) => body,
            Ok(Err(Broken::TooLarge)) => {
                return Answer::Failed(Failure {
                    reason: Reason::TooLarge,
                    again: Again::Never,
                    message: format!("an answer of more than {ANSWER_SIZE} bytes"),
                });
            }
            Ok(Err(Broken::Off)) => return only_said("its answer broke off"),
            Err(_) => return only_said("its answer did not come to an end in time"),
        };
        let read = if body.is_empty() {
            Some(Taken::default())
        } else if content_type.starts_with("application/json") {
            json_response(self.signal, &body)
        } else if content_type.starts_with("text/html") {
            None
        } else {
            response(self.signal, &body)
        };
        match read {
            Some(taken) => {
                Answer::Taken(Taken { said: words::plain(&taken.said, headers), ..taken })
            }
            None => only_said(
                "its answer is none of OTLP: is the endpoint that of a receiver of OTLP over HTTP?",
            ),
        }
    }

    async fn refused(&self, answer: Response, headers: &HeaderMap, deadline: Instant) -> Failure {
        let status = answer.status();
        let asked = retry_after(answer.headers(), jiff::Timestamp::now());
        let location = answer.headers().get(LOCATION).cloned();
        let content_type = content_type(&answer);
        let said = match timeout_at(deadline, body(answer)).await {
            Ok(Ok(body)) => words::of_error(&content_type, &body, headers),
            _ => String::new(),
        };
        let (reason, hint) = match status.as_u16() {
            429 | 502..=504 => (Reason::Unavailable, String::new()),
            401 | 403 | 407 => (
                Reason::Unauthorized,
                "check the credentials in otlp.headers or OTEL_EXPORTER_OTLP_HEADERS".to_owned(),
            ),
            413 => (
                Reason::TooLarge,
                "it takes less in one request: lower otlp.request_size, or raise its limit"
                    .to_owned(),
            ),
            300..=399 => (Reason::Refused, self.redirect(location.as_ref())),
            404 | 405 => (
                Reason::Refused,
                format!(
                    "is {} where it takes {signal} by OTLP? /v1/{signal} is added to a general \
                     endpoint only",
                    self.url.path(),
                    signal = self.signal.as_str(),
                ),
            ),
            _ => (Reason::Refused, String::new()),
        };
        let again = match (reason, asked) {
            (Reason::Unavailable, Some(asked)) => Again::After(asked),
            (Reason::Unavailable, None) => Again::Backoff,
            _ => Again::Never,
        };
        Failure { reason, again, message: answered(&status_line(status), [&said, &hint]) }
    }

    /// Followed they are not: headers would go to whom nobody named.
    fn redirect(&self, location: Option<&HeaderValue>) -> String {
        let to = location.and_then(|to| to.to_str().ok()).and_then(|to| self.url.join(to).ok());
        match to {
            // Its path may hold the id of a session.
            Some(to) => format!(
                "redirects are not followed; it points to {}://{}",
                to.scheme(),
                host_and_port(&to),
            ),
            None => "redirects are not followed".to_owned(),
        }
    }

    /// A request that got no answer. The text of an error never holds headers.
    fn transport(&self, error: &reqwest::Error, stale: Option<String>) -> Failure {
        if error.is_timeout() {
            return super::sender::timeout();
        }
        let cause = innermost(error);
        let port = (self.url.port() == Some(4317))
            .then_some("4317 is the usual port of gRPC: give protocol: grpc, or 4318");
        Failure::unreachable(&cause, port, stale)
    }
}

fn only_said(what: &str) -> Answer {
    Answer::Taken(Taken { rejected: 0, said: what.to_owned() })
}

fn status_line(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(words) => format!("{} {words}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

fn content_type(answer: &Response) -> String {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_ascii_lowercase()
}

enum Broken {
    Off,
    TooLarge,
}

/// Decompressed, up to the limit.
async fn body(mut answer: Response) -> Result<Bytes, Broken> {
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(|_| Broken::Off)? {
        if body.len() + chunk.len() > ANSWER_SIZE {
            return Err(Broken::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn compressed(body: &Bytes) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Into memory: it cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default().into()
}

fn build(tls: &TlsConfig, timeout: Duration, always: Option<String>) -> Result<Client, String> {
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(timeout)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(1)
        .tcp_keepalive(KEEP_ALIVE);
    if let Some(host) = always {
        // HTTP/2 would put the other name into `:authority`.
        builder = builder.dns_resolver(Arc::new(AlwaysHost(host))).http1_only();
    }
    let tls = Tls::read(tls).map_err(|error| error.to_string())?;
    tls.apply(builder).build().map_err(|error| format!("no HTTP client: {}", innermost(&error)))
}
