//! Bodies of responses, compressed where the client takes it.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::negotiate::Encoding;
use crate::metrics::Snapshot;
use crate::metrics::prometheus::{Format, render, write};

/// The snapshot as text. Compressed on the way, so that the whole text is
/// never in memory beside its compressed form.
pub(super) fn metrics(snapshot: &Arc<Snapshot>, format: Format, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Identity => render(snapshot, format).into(),
        Encoding::Gzip => {
            // Level 1: exposition shrinks by 95 % at any level, and this one
            // is the fastest.
            let mut gzip = Gzip(GzEncoder::new(Vec::new(), Compression::fast()));
            // A Vec takes everything.
            let _ = write(&mut gzip, snapshot, format);
            gzip.0.finish().unwrap_or_default().into()
        }
    }
}

/// A page for people.
pub(super) fn text(text: String, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Identity => text.into(),
        Encoding::Gzip => {
            let mut gzip = Gzip(GzEncoder::new(Vec::new(), Compression::fast()));
            let _ = fmt::Write::write_str(&mut gzip, &text);
            gzip.0.finish().unwrap_or_default().into()
        }
    }
}

struct Gzip(GzEncoder<Vec<u8>>);

impl fmt::Write for Gzip {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}
