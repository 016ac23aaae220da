//! A file that comes over the network as a plain blocking reader.
//!
//! A task of the runtime fetches ahead, a bounded number of pieces, while the
//! thread that parses takes them one by one. A transfer that breaks or falls
//! silent is begun again where it stopped; after a few times in a row without
//! a byte it is given up.

use std::io::{self, Read};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::FilesError;

/// Pieces fetched ahead; one is at most a few hundred KiB.
const AHEAD: usize = 16;
/// A transfer that brings nothing for so long is begun again.
pub(super) const STALL: Duration = Duration::from_mins(1);
/// Tries in a row without a byte.
const TRIES: u32 = 3;
/// Between two tries, times the number of the try.
const PAUSE: Duration = Duration::from_secs(1);

/// Pieces of a file, or why they stop, in words without secrets.
pub(super) type Pieces = BoxStream<'static, Result<Bytes, String>>;
/// Begins a transfer at a byte.
pub(super) type Begin =
    Box<dyn Fn(u64) -> BoxFuture<'static, Result<Pieces, FilesError>> + Send + Sync>;

/// Opens a file from byte `from`. Blocks until its server has answered.
/// `most` bytes are read and no more: what a server sends beyond is not part
/// of the file.
#[cfg(any(test, feature = "s3", feature = "gcs", feature = "azure", feature = "hdfs"))]
pub(super) fn open(
    runtime: &Handle,
    from: u64,
    most: u64,
    begin: Begin,
) -> Result<Box<dyn Read + Send>, FilesError> {
    let first = runtime.block_on(begin(from))?;
    Ok(reader(runtime, from, most, first, begin))
}

/// The same, of a transfer that has begun: `first` is what comes from byte
/// `from` on.
pub(super) fn reader(
    runtime: &Handle,
    from: u64,
    most: u64,
    first: Pieces,
    begin: Begin,
) -> Box<dyn Read + Send> {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let fetching = runtime.spawn(fetch(from, most, first, begin, sender));
    Box::new(Reader { pieces, piece: Bytes::new(), _fetching: AbortOnDropHandle::new(fetching) })
}

async fn fetch(
    mut at: u64,
    most: u64,
    mut pieces: Pieces,
    begin: Begin,
    sender: mpsc::Sender<io::Result<Bytes>>,
) {
    let end = at.saturating_add(most);
    let mut failures = 0;
    while at < end {
        let failure = match tokio::time::timeout(STALL, pieces.next()).await {
            Ok(None) => return,
            Ok(Some(Ok(mut piece))) => {
                let left = usize::try_from(end - at).unwrap_or(usize::MAX);
                piece.truncate(left);
                at += piece.len() as u64;
                failures = 0;
                // Nobody reads any more: done.
                if sender.send(Ok(piece)).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(Some(Err(why))) => why,
            Err(_) => format!("nothing came for {} s", STALL.as_secs()),
        };
        failures += 1;
        let again = if failures < TRIES {
            tokio::time::sleep(PAUSE * failures).await;
            begin(at).await.map_err(|error| error.message)
        } else {
            Err(failure)
        };
        match again {
            Ok(again) => pieces = again,
            Err(why) => {
                let _ = sender.send(Err(io::Error::other(why))).await;
                return;
            }
        }
    }
}

struct Reader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    _fetching: AbortOnDropHandle<()>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                None => return Ok(0),
                Some(piece) => self.piece = piece?,
            }
        }
        let count = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use futures_util::stream;

    use super::*;

    const TEXT: &[u8] = b"one two three four";

    /// Breaks off after each piece of three bytes; `dead` never sends any.
    fn breaking(begun: Arc<AtomicUsize>, dead: bool) -> Begin {
        Box::new(move |from| {
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                let rest = &TEXT[from as usize..];
                let piece = &rest[..rest.len().min(3)];
                let mut pieces = Vec::new();
                if !dead && !piece.is_empty() {
                    pieces.push(Ok(Bytes::from_static(piece)));
                }
                if dead || piece.len() == 3 {
                    pieces.push(Err("broke off".to_owned()));
                }
                Ok(stream::iter(pieces).boxed())
            }
            .boxed()
        })
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime")
    }

    #[test]
    fn goes_on_where_it_broke() {
        let runtime = runtime();
        let begun = Arc::default();
        let mut reader = open(runtime.handle(), 12, u64::MAX, breaking(Arc::clone(&begun), false))
            .expect("opens");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("whole");
        assert_eq!(text.as_bytes(), &TEXT[12..]);
        assert_eq!(begun.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn gives_up_where_nothing_comes() {
        let runtime = runtime();
        let begun = Arc::default();
        let mut reader =
            open(runtime.handle(), 0, u64::MAX, breaking(Arc::clone(&begun), true)).expect("opens");
        let error = reader.read_to_end(&mut Vec::new()).expect_err("nothing comes");
        assert_eq!(error.to_string(), "broke off");
        assert_eq!(begun.load(Ordering::SeqCst), TRIES as usize);
    }

    #[test]
    fn no_more_than_the_file_has() {
        let runtime = runtime();
        let mut reader =
            open(runtime.handle(), 0, 2, breaking(Arc::default(), false)).expect("opens");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("whole");
        assert_eq!(text, "on");
    }
}
