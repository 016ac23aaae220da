//! A stream that gives up on a client that stops reading: without it, a body
//! of tens of megabytes and a connection slot would wait for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails with `TimedOut` when a write makes no progress for `patience`.
pub(super) struct WriteDeadline<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write waits.
    waiting: bool,
    timer: Pin<Box<Sleep>>,
    /// Writes that made progress.
    written: Option<Arc<AtomicU64>>,
}

impl<S> WriteDeadline<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: false, timer: Box::pin(sleep(patience)), written: None }
    }

    /// Counts the writes that make progress.
    pub(super) fn counting(mut self, written: Arc<AtomicU64>) -> Self {
        self.written = Some(written);
        self
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.waiting = false;
            if let Some(written) = &self.written {
                written.fetch_add(1, Ordering::Relaxed);
            }
            return poll;
        }
        if !self.waiting {
            self.waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing to be flushed is no progress.
        let written = self.written.take();
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        let poll = self.watch(context, poll);
        self.written = written;
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_client_that_stops_reading_is_dropped_and_a_slow_one_is_not() {
        let (near, far) = duplex(16);
        let mut near = WriteDeadline::new(near, Duration::from_millis(50));
        let error = near.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);

        let (near, mut far) = duplex(16);
        let mut near = WriteDeadline::new(near, Duration::from_secs(5));
        let writer = tokio::spawn(async move { near.write_all(&[7; 256]).await });
        let mut seen = 0;
        let mut buffer = [0; 8];
        while seen < 256 {
            sleep(Duration::from_millis(1)).await;
            seen += far.read(&mut buffer).await.expect("open");
        }
        writer.await.expect("no panic").expect("all written");
    }
}
