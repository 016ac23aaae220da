//! The HTTP server: accepts, bounds, and stops.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::routes;
use super::state::ExposeState;
use super::write_deadline::WriteDeadline;
use crate::telemetry::events::{WebListening, WebRequestFailed};

/// Connections served at once; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 256;
/// Request line and headers, in bytes, and how many headers.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// For a request's head to arrive, and for an idle connection to ask again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// For a client to take the next bytes of a body.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// For requests under way when the daemon stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest pause after a failed accept.
const MAX_ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves until `shutdown` is ready; then takes no new connection, lets the
/// requests under way end for a few seconds, and returns.
pub async fn run(
    listener: TcpListener,
    state: Arc<ExposeState>,
    shutdown: impl Future<Output = ()>,
) {
    if let Ok(address) = listener.local_addr() {
        WebListening { address: address.to_string() }.emit(&state.telemetry);
    }
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &slots, &state) => accepted,
        };
        // Ended connections leave a result behind: take them out.
        while connections.try_join_next().is_some() {}
        let Some((stream, slot)) = accepted else { break };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_HEADERS)
            .serve_connection(
                TokioIo::new(WriteDeadline::new(stream, WRITE_TIMEOUT)),
                service_fn({
                    let state = Arc::clone(&state);
                    move |request| routes::answer(request, Arc::clone(&state))
                }),
            );
        let connection = graceful.watch(connection);
        let state = Arc::clone(&state);
        connections.spawn(async move {
            if let Err(error) = connection.await
                && !error.is_timeout()
            {
                let message = error.to_string();
                WebRequestFailed { reason: "connection", message }.emit(&state.telemetry);
            }
            drop(slot);
        });
    }
    drop(listener);
    if timeout(STOP_TIMEOUT, graceful.shutdown()).await.is_err() {
        let message = format!("{} requests under way were cut off", connections.len());
        WebRequestFailed { reason: "shutdown", message }.emit(&state.telemetry);
    }
    connections.shutdown().await;
}

type Slot = tokio::sync::OwnedSemaphorePermit;

/// The next connection and its slot. Waits for a slot first: without one
/// there is no use in taking a connection. `None` never comes while the
/// semaphore is open.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    state: &ExposeState,
) -> Option<(TcpStream, Slot)> {
    let slot = if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        slot
    } else {
        let message = format!("{MAX_CONNECTIONS} connections are open: more have to wait");
        WebRequestFailed { reason: "limit", message }.emit(&state.telemetry);
        Arc::clone(slots).acquire_owned().await.ok()?
    };
    let mut pause = Duration::from_millis(10);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are small or sent in one go: waiting to fill a
                // packet only delays them.
                let _ = stream.set_nodelay(true);
                return Some((stream, slot));
            }
            // The client was gone before we looked.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                let message = error.to_string();
                WebRequestFailed { reason: "accept", message }.emit(&state.telemetry);
                sleep(pause).await;
                pause = (pause * 2).min(MAX_ACCEPT_PAUSE);
            }
        }
    }
}
