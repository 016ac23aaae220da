//! What stands between the daemon and the API server, and can be shut: the
//! server lives on, and the daemon does not see what happens there.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) struct Gate {
    open: watch::Sender<bool>,
    port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Gate {
    /// Before a server of loopback (`https://127.0.0.1:PORT`).
    pub(crate) async fn before(server: &str) -> Self {
        let target = server.strip_prefix("https://").unwrap().to_owned();
        let target: Arc<str> = target.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, state) = watch::channel(true);
        let task = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (mut state, target) = (state.clone(), Arc::clone(&target));
                tokio::spawn(async move {
                    if !*state.borrow() {
                        return;
                    }
                    let Ok(mut far) = TcpStream::connect(&*target).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = state.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { open, port, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Breaks every connection, and lets none through.
    pub(crate) fn shut(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}
