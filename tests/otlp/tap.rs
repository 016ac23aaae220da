//! Stands between the daemon and a Collector: keeps each request as it came,
//! and hands it on or answers itself.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

type Body = BoxBody<Bytes, Infallible>;

/// One request as it came over the wire: body and headers.
#[derive(Debug, Clone)]
pub(crate) struct Caught {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// Compressed as it was; of gRPC with the five bytes before the message.
    pub(crate) body: Bytes,
    pub(crate) at: std::time::Instant,
    /// Whether it was handed on.
    pub(crate) handed_on: bool,
}

impl Caught {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// What is answered instead of handing a request on.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    HandOn,
    /// HTTP: a status with headers and a body.
    Http {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Bytes,
    },
    /// gRPC: a status with its details.
    Grpc {
        code: u32,
        message: &'static str,
        details: Option<Bytes>,
    },
    /// gRPC: a message and status 0.
    GrpcMessage(Bytes),
    /// Handed on after a pause.
    Slowly(Duration),
}

#[derive(Debug, Default)]
struct Shared {
    caught: Mutex<Vec<Caught>>,
    answers: Mutex<VecDeque<Answer>>,
    /// Where there is no answer left.
    then: Mutex<Option<Answer>>,
}

pub(crate) struct Tap {
    shared: Arc<Shared>,
    port: u16,
}

impl Tap {
    /// Before `target` (`http://host:port`); HTTP/2 where `grpc`.
    pub(crate) async fn before(target: &str, grpc: bool) -> Self {
        let target = target.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let kept = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, target) = (Arc::clone(&kept), target.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let (kept, target) = (Arc::clone(&kept), target.clone());
                        async move { Ok::<_, Infallible>(answered(&kept, &target, grpc, request).await) }
                    });
                    let stream = TokioIo::new(stream);
                    let _ = if grpc {
                        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                            .serve_connection(stream, service)
                            .await
                    } else {
                        hyper::server::conn::http1::Builder::new()
                            .serve_connection(stream, service)
                            .await
                    };
                });
            }
        });
        Self { shared, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn caught(&self) -> Vec<Caught> {
        self.shared.caught.lock().unwrap().clone()
    }

    /// The next requests get these answers, later ones are handed on.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.answers.lock().unwrap().extend(answers);
    }

    /// All requests from now on.
    pub(crate) fn always(&self, answer: Option<Answer>) {
        *self.shared.then.lock().unwrap() = answer;
    }
}

async fn answered(
    shared: &Shared,
    target: &str,
    grpc: bool,
    request: Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return status(400) };
    let body = body.to_bytes();
    let answer = shared.answers.lock().unwrap().pop_front();
    let answer = answer.or_else(|| shared.then.lock().unwrap().clone()).unwrap_or(Answer::HandOn);
    let handed_on = matches!(answer, Answer::HandOn | Answer::Slowly(_));
    shared.caught.lock().unwrap().push(Caught {
        path: parts.uri.path().to_owned(),
        headers: parts.headers.clone(),
        body: body.clone(),
        at: std::time::Instant::now(),
        handed_on,
    });
    match answer {
        Answer::Slowly(pause) => tokio::time::sleep(pause).await,
        Answer::HandOn => {}
        Answer::Http { status, headers, body } => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            return response.body(Full::new(body).boxed()).unwrap();
        }
        Answer::Grpc { code, message, details } => {
            let mut response = Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", code)
                .header("grpc-message", message);
            if let Some(details) = details {
                response = response.header("grpc-status-details-bin", base64(&details));
            }
            return response.body(Full::new(Bytes::new()).boxed()).unwrap();
        }
        Answer::GrpcMessage(message) => {
            let mut framed = vec![0];
            framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
            framed.extend_from_slice(&message);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            let body = frames(framed.into(), Some(trailers));
            return Response::builder()
                .header("content-type", "application/grpc")
                .body(body)
                .unwrap();
        }
    }
    // A Collector that is down is a connection that ends.
    forwarded(target, grpc, Request::from_parts(parts, Full::new(body)))
        .await
        .unwrap_or_else(|_| status(503))
}

async fn forwarded(
    target: &str,
    grpc: bool,
    request: Request<Full<Bytes>>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TokioIo::new(TcpStream::connect(target).await?);
    let response = if grpc {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        sender.send_request(request).await?
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        sender.send_request(request).await?
    };
    let (parts, body) = response.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    Ok(Response::from_parts(parts, frames(body.to_bytes(), trailers)))
}

fn frames(body: Bytes, trailers: Option<HeaderMap>) -> Body {
    let data = (!body.is_empty()).then(|| Frame::data(body));
    let all: Vec<_> =
        data.into_iter().chain(trailers.map(Frame::trailers)).map(Ok::<_, Infallible>).collect();
    BodyExt::boxed(StreamBody::new(futures_util::stream::iter(all)))
}

fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).body(Full::new(Bytes::new()).boxed()).unwrap()
}

/// As gRPC writes binary metadata: without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}
