//! A server that answers as a test wants, also as no server should: bodies
//! that break off, never end, or are not what they say.

#![allow(dead_code, reason = "each test uses its part")]

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Body = BoxBody<Bytes, io::Error>;
type Route = dyn Fn(&Asked) -> Answer + Send + Sync;

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Whole(Bytes),
    /// Sends this and closes the connection, whatever was announced.
    Cut(Bytes),
    /// The chunk again and again, so often, with a pause between.
    Repeated {
        chunk: Bytes,
        times: u64,
        pause: Duration,
    },
}

impl Answer {
    pub(crate) fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        Self { status, headers, body: Content::Whole(body.into()) }
    }

    pub(crate) fn json(body: impl Into<Bytes>) -> Self {
        Self::new(200, "application/json", body)
    }

    pub(crate) fn zip(body: impl Into<Bytes>) -> Self {
        Self::new(200, "application/octet-stream", body)
    }

    pub(crate) fn not_found(text: &str) -> Self {
        Self::new(404, "text/plain", text.to_owned())
    }

    pub(crate) fn cut(body: impl Into<Bytes>) -> Self {
        Self { body: Content::Cut(body.into()), ..Self::json("") }
    }

    pub(crate) fn repeated(chunk: impl Into<Bytes>, times: u64, pause: Duration) -> Self {
        let body = Content::Repeated { chunk: chunk.into(), times, pause };
        Self { body, ..Self::json("") }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn response(self) -> Response<Body> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body = match self.body {
            Content::Whole(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed(),
            Content::Cut(bytes) => {
                let frames = [Ok(Frame::data(bytes)), Err(io::Error::other("cut"))];
                // A pause, so that the first frame is on its way.
                BodyExt::boxed(StreamBody::new(stream::unfold(
                    frames.into_iter(),
                    |mut left| async {
                        let next = left.next()?;
                        if next.is_err() {
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                        Some((next, left))
                    },
                )))
            }
            Content::Repeated { chunk, times, pause } => {
                BodyExt::boxed(StreamBody::new(stream::unfold(times, move |left| {
                    let chunk = chunk.clone();
                    async move {
                        if left == 0 {
                            return None;
                        }
                        if !pause.is_zero() {
                            tokio::time::sleep(pause).await;
                        }
                        Some((Ok(Frame::data(chunk)), left - 1))
                    }
                })))
            }
        };
        response.body(body).expect("sound headers")
    }
}

/// Serves until it is dropped.
pub(crate) struct FakeSpark {
    address: SocketAddr,
    scheme: &'static str,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeSpark {
    pub(crate) async fn start(route: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(route, None).await
    }

    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        route: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::serve(route, Some(acceptor)).await
    }

    async fn serve(
        route: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (route, log): (Arc<Route>, _) = (Arc::new(route), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (route, log, tls) = (Arc::clone(&route), Arc::clone(&log), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => connection(stream, route, log).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                connection(stream, route, log).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, scheme, asked, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Drop for FakeSpark {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    route: Arc<Route>,
    log: Arc<Mutex<Vec<Asked>>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let asked = Asked {
            method: request.method().to_string(),
            target: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: request.headers().clone(),
        };
        let response = route(&asked).response();
        log.lock().expect("no panic").push(asked);
        async move { Ok::<_, Infallible>(response) }
    });
    // A client that hangs up, or a body that breaks off, is what tests want.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
