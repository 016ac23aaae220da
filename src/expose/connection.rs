//! One connection: what it speaks (HTTP, or TLS and then HTTP/1.1 or HTTP/2),
//! and how long it may take over it.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::routes;
use super::state::ExposeState;
use super::write_deadline::WriteDeadline;
use crate::telemetry::events::WebRequestFailed;

/// Request line and headers, in bytes, and how many headers.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// For a request's head to arrive, and for an idle connection to ask again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// For a client to take the next bytes of a body.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// From the first byte to the end of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests at a time on one connection of HTTP/2.
const MAX_STREAMS: u32 = 16;
/// For an HTTP/2 connection that is to end to do so.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

type BoxError = Box<dyn Error + Send + Sync>;

/// Serves a connection to its end; after `stop`, until the requests under way
/// are answered.
pub(super) async fn serve(stream: TcpStream, state: Arc<ExposeState>, stop: CancellationToken) {
    let served = match state.web.tls() {
        None => {
            let stream = WriteDeadline::new(stream, WRITE_TIMEOUT);
            http1(stream, &state, stop).await
        }
        Some(tls) => secured(stream, tls, &state, stop).await,
    };
    if let Err((reason, message)) = served {
        WebRequestFailed { reason, message }.emit(&state.telemetry);
    }
}

type Failure = (&'static str, String);

async fn secured(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    state: &Arc<ExposeState>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let failed = |error: String| ("handshake", error);
    let mut first = [0];
    let speaks = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        peeked = timeout(HANDSHAKE_TIMEOUT, stream.peek(&mut first)) => peeked,
    };
    match speaks {
        Err(_) => return Err(failed("the client said nothing".to_owned())),
        // It only looked whether the port is open, as probes do.
        Ok(Ok(0)) => return Ok(()),
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Ok(Ok(_)) if first[0].is_ascii_alphabetic() => {
            // Its request is read, or the answer would be lost with it.
            let answer = service_fn(|_| async { Ok::<_, Infallible>(speaks_no_tls()) });
            let stream = TokioIo::new(WriteDeadline::new(stream, WRITE_TIMEOUT));
            let answered = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HANDSHAKE_TIMEOUT)
                .max_buf_size(MAX_HEAD)
                .keep_alive(false)
                .serve_connection(stream, answer);
            let _ = answered.await;
            return Err(failed("the client speaks HTTP, not TLS".to_owned()));
        }
        Ok(Ok(_)) if first[0] != TLS_HANDSHAKE => {
            return Err(failed("the client does not speak TLS".to_owned()));
        }
        Ok(Ok(_)) => {}
    }
    let written = Arc::new(AtomicU64::new(0));
    let stream = WriteDeadline::new(stream, WRITE_TIMEOUT).counting(Arc::clone(&written));
    let handshake = timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(tls).accept(stream));
    let stream = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        shaken = handshake => match shaken {
            Err(_) => return Err(failed("the handshake took too long".to_owned())),
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Ok(Ok(stream)) => stream,
        },
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2(stream, &written, state, stop).await
    } else {
        http1(stream, state, stop).await
    }
}

fn speaks_no_tls() -> Response<Full<Bytes>> {
    routes::plain(StatusCode::BAD_REQUEST, "This port speaks TLS: ask for https:// instead.\n")
}

async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    state: &Arc<ExposeState>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let state = Arc::clone(state);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| routes::answer(request, Arc::clone(&state))),
        );
    let connection = pin!(connection);
    match until(connection, stop.cancelled()).await {
        Err(error) if error.is_timeout() => Ok(()),
        ended => ended.map_err(broke),
    }
}

async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    written: &AtomicU64,
    state: &Arc<ExposeState>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let (asked, state) = (Arc::new(AtomicU64::new(0)), Arc::clone(state));
    let counting = Arc::clone(&asked);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD as u32)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| {
                counting.fetch_add(1, Ordering::Relaxed);
                routes::answer(request, Arc::clone(&state))
            }),
        );
    let mut connection = pin!(connection);
    let over = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = idle(&asked, written) => {}
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = over => {
            connection.as_mut().graceful_shutdown();
            match timeout(END_TIMEOUT, connection).await {
                Ok(ended) => ended,
                // Nothing is asked, and what was answered is not taken.
                Err(_) => return Ok(()),
            }
        }
    };
    ended.map_err(broke)
}

/// Ends once nothing was asked and nothing taken for as long as a connection
/// may be idle.
async fn idle(asked: &AtomicU64, written: &AtomicU64) {
    let now = || (asked.load(Ordering::Relaxed), written.load(Ordering::Relaxed));
    let mut before = now();
    loop {
        sleep(HEAD_TIMEOUT).await;
        let after = now();
        if after == before {
            return;
        }
        before = after;
    }
}

/// Drives a connection, gracefully to its end once `over` is.
async fn until<C: GracefulConnection>(
    mut connection: Pin<&mut C>,
    over: impl Future<Output = ()>,
) -> Result<(), C::Error> {
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = over => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// A client that leaves in its own way is nothing to tell, but for its cause.
fn broke(error: impl Into<BoxError>) -> Failure {
    let error = error.into();
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    ("connection", format!("{error}{cause}"))
}

/// Of a socket, for whoever accepts.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted
}
