//! OTLP over gRPC.

use std::error::Error as _;
use std::time::Duration;

use ::http::HeaderMap;
use ::http::uri::PathAndQuery;
use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use tonic::client::Grpc as Client;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::answer::{Again, Answer, Failure, Reason, Taken, answered, response};
use super::codec::Raw;
use super::proxied::Proxied;
use super::renewed::Renewed;
use super::{ANSWER_SIZE, USER_AGENT, words};
use crate::config::TlsConfig;
use crate::config::otlp::{Compression, Destination, Signal};
use crate::fetch::last_cause;

/// Of the connection between requests. Pings of HTTP/2 would be refused by
/// many servers as too many; a connection that hangs is given up after a
/// request has timed out on it.
const KEEP_ALIVE: Duration = Duration::from_mins(1);

pub(super) struct Grpc {
    signal: Signal,
    /// 4318 is HTTP's.
    port: Option<u16>,
    gzip: bool,
    channel: Renewed<Channel>,
}

impl Grpc {
    pub(super) fn new(signal: Signal, destination: &Destination) -> Result<Self, String> {
        if destination.tls.insecure_skip_verify {
            return Err("tls_config.insecure_skip_verify is not there for grpc".to_owned());
        }
        let url = reqwest::Url::parse(&destination.endpoint)
            .map_err(|error| format!("the endpoint is not a URL: {error}"))?;
        let (endpoint, tls) = (destination.endpoint.clone(), destination.tls.clone());
        let timeout = destination.timeout;
        Ok(Self {
            signal,
            port: url.port(),
            gzip: destination.compression == Compression::Gzip,
            channel: Renewed::new(&destination.tls, move || channel(&endpoint, &tls, timeout))?,
        })
    }

    pub(super) fn wear_out(&self) {
        self.channel.wear_out();
    }

    pub(super) async fn attempt(
        &self,
        body: Bytes,
        headers: &HeaderMap,
        deadline: Instant,
    ) -> Answer {
        let (channel, stale) = self.channel.get().await;
        match timeout_at(deadline, self.call(channel, body, headers, deadline)).await {
            Err(_) => super::sender::timed_out(),
            Ok(Err(status)) => Answer::Failed(self.failure(&status, headers, stale)),
            Ok(Ok(body)) => Answer::Taken(match response(self.signal, &body) {
                Some(taken) => Taken { said: words::plain(&taken.said, headers), ..taken },
                None => Taken { rejected: 0, said: "its answer is none of OTLP".to_owned() },
            }),
        }
    }

    async fn call(
        &self,
        channel: Channel,
        body: Bytes,
        headers: &HeaderMap,
        deadline: Instant,
    ) -> Result<Bytes, Status> {
        let mut client = Client::new(Proxied(channel))
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(ANSWER_SIZE);
        if self.gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        client.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
        let mut request = tonic::Request::new(body);
        *request.metadata_mut() = MetadataMap::from_headers(headers.clone());
        // So that the server does not work on what nobody waits for.
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        let path = PathAndQuery::from_static(match self.signal {
            Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        });
        Ok(client.unary(request, path, Raw).await?.into_inner())
    }

    fn failure(&self, status: &Status, headers: &HeaderMap, stale: Option<String>) -> Failure {
        // A status with a source was made on this side: the connection is to
        // blame, whatever code stands for that.
        if status.source().is_some() {
            return self.transport(status, stale);
        }
        let code = status.code();
        let retry = status.get_details_retry_info();
        let asked = retry.as_ref().and_then(|info| info.retry_delay);
        // Some servers call it out of range, and so does our own limit on
        // answers; a proxy before them says 413, of which gRPC knows nothing.
        let size = ["message length too large", "message larger than max", "HTTP status code 413"]
            .iter()
            .any(|words| status.message().contains(words));
        let exhausted = code == Code::ResourceExhausted && retry.is_none();
        let (reason, again, hint) = match code {
            Code::OutOfRange | Code::ResourceExhausted | Code::Unknown if size || exhausted => (
                Reason::TooLarge,
                Again::Never,
                "where its limit on messages is meant, lower otlp.request_size, or raise the limit",
            ),
            Code::Cancelled
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted => {
                (Reason::Unavailable, asked.map_or(Again::Backoff, Again::After), "")
            }
            Code::DeadlineExceeded => {
                (Reason::Timeout, asked.map_or(Again::Backoff, Again::After), "")
            }
            Code::Unauthenticated | Code::PermissionDenied => (
                Reason::Unauthorized,
                Again::Never,
                "check the credentials in otlp.headers or OTEL_EXPORTER_OTLP_HEADERS",
            ),
            Code::Unimplemented => {
                (Reason::Refused, Again::Never, "it does not take this signal by OTLP over gRPC")
            }
            _ => (Reason::Refused, Again::Never, ""),
        };
        let said = words::plain(status.message(), headers);
        Failure { reason, again, message: answered(name(code), [&said, hint]) }
    }

    fn transport(&self, status: &Status, stale: Option<String>) -> Failure {
        if matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled)
            && status.message().contains("imeout")
        {
            return super::sender::timeout();
        }
        let cause = words::plain(&last_cause(status).to_string(), &HeaderMap::new());
        let port = (self.port == Some(4318))
            .then_some("4318 is the usual port of HTTP: give protocol: http/protobuf, or 4317");
        Failure::unreachable(&cause, port, stale)
    }
}

/// As the specification writes it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// Connects when it is first used, and again when the connection is lost.
fn channel(endpoint: &str, tls: &TlsConfig, timeout: Duration) -> Result<Channel, String> {
    let unusable =
        |error: tonic::transport::Error| format!("no gRPC client: {}", last_cause(&error));
    let mut made = Endpoint::from_shared(endpoint.to_owned())
        .and_then(|made| made.user_agent(USER_AGENT))
        .map_err(unusable)?
        .connect_timeout(timeout)
        .tcp_keepalive(Some(KEEP_ALIVE));
    if endpoint.starts_with("https:") {
        made = made.tls_config(client_tls(tls)?).map_err(unusable)?;
    }
    Ok(made.connect_lazy())
}

fn client_tls(tls: &TlsConfig) -> Result<ClientTlsConfig, String> {
    // Says what is wrong with a file, in the words of all our clients.
    crate::fetch::Tls::read(tls).map_err(|error| error.to_string())?;
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut made = ClientTlsConfig::new();
    made = match &tls.ca_file {
        Some(path) => made.ca_certificate(Certificate::from_pem(read(path)?)),
        None => made.with_native_roots(),
    };
    if let (Some(certificate), Some(key)) = (&tls.cert_file, &tls.key_file) {
        made = made.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    if let Some(name) = &tls.server_name {
        made = made.domain_name(name);
    }
    Ok(made)
}
