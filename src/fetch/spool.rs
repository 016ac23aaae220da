//! Downloads that have to lie in a file before they can be read: a History
//! Server's zip, whose directory is its end.
//!
//! The file has no name: whatever ends this process, nothing is left behind.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use http::header::{CONTENT_TYPE, HeaderMap};
use reqwest::Url;

use super::body::Body;
use super::client::HttpClient;
use super::error::{FetchError, FetchErrorKind};
use super::request::{Request, Wanted};
use super::text::glance;

/// A download may take this many times as long as another request, as long as
/// bytes keep coming.
const PATIENCE: u32 = 10;
const BUFFER: usize = 64 * 1024;

/// Where downloads lie, and how large one may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    directory: PathBuf,
    limit: u64,
}

/// A folder in which nothing can be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write to {}: {source}; History Servers' downloads are kept there while they are read: \
     give a folder that exists and may be written to as --storage.temp-path",
    directory.display()
)]
pub struct SpoolError {
    directory: PathBuf,
    source: io::Error,
}

impl Spool {
    /// `limit` is in bytes, for one download.
    pub fn new(directory: &Path, limit: u64) -> Self {
        Self { directory: directory.to_owned(), limit }
    }

    /// Whether the folder is there and can be written to: a byte is.
    pub fn check(&self) -> Result<(), SpoolError> {
        let tried = self.file().and_then(|mut file| file.write_all(b"x"));
        tried.map_err(|source| SpoolError { directory: self.directory.clone(), source })
    }

    /// Copies all that `reader` gives, up to the limit, into a file.
    ///
    /// # Errors
    /// Those of the reader and of the disk; beyond the limit one that says
    /// so.
    pub fn copy(&self, reader: impl Read) -> io::Result<File> {
        let mut file = self.file()?;
        let copied = io::copy(&mut reader.take(self.limit.saturating_add(1)), &mut file)?;
        if copied > self.limit {
            return Err(io::Error::other(format!(
                "it is larger than {} bytes; raise limits.spool_size if it should be read",
                self.limit
            )));
        }
        Ok(file)
    }

    fn file(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.directory)
    }

    fn failed(&self, url: &Url, error: &io::Error) -> FetchError {
        let what = format!("cannot be kept in {}: {error}", self.directory.display());
        FetchError::new(FetchErrorKind::Disk, url, what).hint(
            "make room there, or give another folder as --storage.temp-path; limits.spool_size \
             bounds one download",
        )
    }

    /// Writes the body to a new file. Where reading it fails, the reason
    /// stays with the body, and the error made here is not shown.
    fn take_in(&self, url: &Url, headers: &HeaderMap, body: &mut Body) -> Result<File, FetchError> {
        check_zip(url, headers, body)?;
        let mut file = self.file().map_err(|error| self.failed(url, &error))?;
        let mut buffer = vec![0; BUFFER];
        loop {
            match body.read(&mut buffer) {
                Ok(0) => return Ok(file),
                Ok(count) => {
                    let written = file.write_all(&buffer[..count]);
                    written.map_err(|error| self.failed(url, &error))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = error.to_string();
                    return Err(FetchError::new(FetchErrorKind::Unreachable, url, what));
                }
            }
        }
    }
}

/// A login page comes with status 200 too.
fn check_zip(url: &Url, headers: &HeaderMap, body: &mut Body) -> Result<(), FetchError> {
    let not_zip = |what: String| FetchError::new(FetchErrorKind::NotJson, url, what);
    let start = body.peek().map_err(|error| not_zip(error.to_string()))?;
    let html =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    match start.first() {
        None => Err(not_zip("an empty answer with status 200".to_owned())),
        Some(b'P') if !html => Ok(()),
        Some(first) => {
            let kind = if html || *first == b'<' { "HTML" } else { "text" };
            let said = glance(&body.beginning());
            Err(not_zip(format!("{kind} with status 200, not a zip: {said:?}")).hint(
                "a login page, a proxy or another web server answered: give the root of a Spark \
                 History Server, its path prefix included, and credentials where the proxy wants \
                 them",
            ))
        }
    }
}

impl HttpClient {
    /// Downloads a zip into a file of `spool`, as it was sent.
    pub async fn download(&self, request: Request, spool: &Spool) -> Result<File, FetchError> {
        let wanted = Wanted {
            // A History Server answers 406 to whoever wants JSON of it, and
            // would gzip the zip for whoever lets it.
            accept: "*/*",
            encoding: "identity",
            limit: spool.limit,
            limit_key: "limits.spool_size",
            total: self.timeouts().total.saturating_mul(PATIENCE),
        };
        let spool = spool.clone();
        self.get(request, wanted, move |url, headers, body| spool.take_in(url, headers, body)).await
    }
}
