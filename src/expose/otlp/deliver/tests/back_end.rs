//! A back end that takes what it is sent, or does not, as it is told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Request, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tonic::Code;
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::config::otlp::Protocol;

/// How one request is answered. The last of a script goes on for ever.
#[derive(Debug, Clone)]
pub(super) enum Do {
    /// With this body of a success.
    Take(Vec<u8>),
    /// With this body and content type, status 200 (or no gRPC at all).
    Page(&'static str, Vec<u8>),
    Status(u16, Vec<(&'static str, String)>, &'static str),
    /// With `RetryInfo` where a wait is given.
    Code(Code, String, Option<Duration>),
    /// Never.
    Hang,
    /// Headers of a success, and a body that never ends.
    HangInBody,
    /// The connection is cut before anything is read.
    Cut,
    /// Nothing is ever read.
    NoReading,
}

pub(super) fn take() -> Do {
    Do::Take(Vec::new())
}

/// What arrived.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    /// Decompressed.
    pub(super) body: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct BackEnd {
    pub(super) address: SocketAddr,
    protocol: Protocol,
    state: Arc<State>,
    serving: Arc<tokio::task::JoinHandle<()>>,
}

struct State {
    script: Mutex<VecDeque<Do>>,
    received: Mutex<Vec<Received>>,
}

impl State {
    fn next(&self) -> Do {
        let mut script = self.script.lock().expect("the script");
        if script.len() > 1 { script.pop_front() } else { script.front().cloned() }.expect("a line")
    }

    /// What concerns the whole connection, if that is next.
    fn of_connection(&self) -> Option<Do> {
        let next = self.script.lock().expect("the script").front().cloned();
        matches!(next, Some(Do::Cut | Do::NoReading)).then(|| self.next())
    }
}

impl BackEnd {
    pub(super) async fn start(protocol: Protocol, script: &[Do]) -> Self {
        Self::at("127.0.0.1:0", protocol, script, None).await
    }

    pub(super) async fn at(
        address: &str,
        protocol: Protocol,
        script: &[Do],
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("an address");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            script: Mutex::new(script.iter().cloned().collect()),
            received: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, protocol, Arc::clone(&state), tls));
        Self { address, protocol, state, serving: Arc::new(serving) }
    }

    pub(super) fn endpoint(&self) -> String {
        match self.protocol {
            Protocol::HttpProtobuf => format!("http://{}/v1/traces", self.address),
            Protocol::Grpc => format!("http://{}", self.address),
        }
    }

    pub(super) fn secure_endpoint(&self, host: &str) -> String {
        let port = self.address.port().to_string();
        let (_, rest) = self
            .endpoint()
            .split_once(&port)
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("a port");
        format!("https://{host}:{port}{rest}")
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.state.received.lock().expect("what arrived").clone()
    }

    /// No longer there: its port is free again.
    pub(super) fn stop(&self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    protocol: Protocol,
    state: Arc<State>,
    tls: Option<TlsAcceptor>,
) {
    // Connections end with the server.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let (state, tls) = (Arc::clone(&state), tls.clone());
        connections.spawn(async move {
            match state.of_connection() {
                Some(Do::Cut) => {
                    // With a reset, where the system lets us.
                    let _ = stream.set_zero_linger();
                    return;
                }
                Some(_) => return tokio::time::sleep(Duration::from_mins(1)).await,
                None => {}
            }
            match tls {
                None => connection(stream, protocol, state).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(stream, protocol, state).await;
                    }
                }
            }
        });
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    protocol: Protocol,
    state: Arc<State>,
) {
    let io = TokioIo::new(stream);
    let service = service_fn(move |request| answer(request, protocol, Arc::clone(&state)));
    // A client that goes away is no fault here.
    let _ = match protocol {
        Protocol::HttpProtobuf => {
            hyper::server::conn::http1::Builder::new().serve_connection(io, service).await
        }
        Protocol::Grpc => {
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(io, service)
                .await
        }
    };
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(
    request: Request<Incoming>,
    protocol: Protocol,
    state: Arc<State>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return std::future::pending().await };
    let body = body.to_bytes();
    let body = match protocol {
        Protocol::HttpProtobuf => {
            let gzip = parts.headers.get("content-encoding").is_some_and(|kind| kind == "gzip");
            unpacked(gzip, &body)
        }
        Protocol::Grpc => unpacked(body[0] == 1, &body[5..]),
    };
    let path = parts.uri.path().to_owned();
    let received = Received { path, headers: parts.headers, body };
    state.received.lock().expect("what arrived").push(received);
    Ok(match state.next() {
        Do::Take(message) => match protocol {
            Protocol::HttpProtobuf => page("application/x-protobuf", message),
            Protocol::Grpc => message_with_trailers(&message),
        },
        Do::Page(kind, body) => page(kind, body),
        Do::Status(status, headers, body) => {
            let mut answer = page("text/plain", body.as_bytes().to_vec());
            *answer.status_mut() = status.try_into().expect("a status");
            for (name, value) in headers {
                answer.headers_mut().insert(name, HeaderValue::try_from(value).expect("a value"));
            }
            answer
        }
        Do::Code(code, message, retry) => {
            let status = match retry {
                Some(delay) => {
                    let details = ErrorDetails::with_retry_info(Some(delay));
                    tonic::Status::with_error_details(code, message, details)
                }
                None => tonic::Status::new(code, message),
            };
            status.into_http::<Full<Bytes>>().map(http_body_util::BodyExt::boxed_unsync)
        }
        Do::HangInBody => {
            let never = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
            let mut answer = Response::new(StreamBody::new(never).boxed_unsync());
            let kind = match protocol {
                Protocol::HttpProtobuf => "application/x-protobuf",
                Protocol::Grpc => "application/grpc",
            };
            answer.headers_mut().insert("content-type", HeaderValue::from_static(kind));
            answer
        }
        Do::Hang | Do::Cut | Do::NoReading => std::future::pending().await,
    })
}

fn unpacked(gzip: bool, body: &[u8]) -> Vec<u8> {
    if !gzip {
        return body.to_vec();
    }
    let mut whole = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut whole).expect("gzip");
    whole
}

fn page(kind: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut answer = Response::new(Full::from(body).boxed_unsync());
    answer.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    answer
}

/// As gRPC sends a success: a length, the message, and the status at the end.
fn message_with_trailers(message: &[u8]) -> Response<Body> {
    let mut data = vec![0];
    data.extend_from_slice(&u32::try_from(message.len()).expect("small").to_be_bytes());
    data.extend_from_slice(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = [Frame::data(Bytes::from(data)), Frame::trailers(trailers)];
    let frames = futures_util::stream::iter(frames).map(Ok::<_, Infallible>);
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    answer
}
