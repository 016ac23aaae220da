//! The HTTP server: accepts, bounds, and stops. What a connection speaks is in
//! `connection`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connection;
use super::state::ExposeState;
use crate::telemetry::events::{WebListening, WebRequestFailed};

/// Connections served at once; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 256;
/// For requests under way when the daemon stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest pause after a failed accept.
const MAX_ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves one listener until `shutdown` is ready; then takes no new connection, lets the
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
    let stop = CancellationToken::new();
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
        let (state, stop) = (Arc::clone(&state), stop.clone());
        connections.spawn(async move {
            connection::serve(stream, state, stop).await;
            drop(slot);
        });
    }
    drop(listener);
    stop.cancel();
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_TIMEOUT, ended).await.is_err() {
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
            Err(error) if connection::is_gone(&error) => {}
            Err(error) => {
                let message = error.to_string();
                WebRequestFailed { reason: "accept", message }.emit(&state.telemetry);
                sleep(pause).await;
                pause = (pause * 2).min(MAX_ACCEPT_PAUSE);
            }
        }
    }
}
