//! HDFS over HTTP: WebHDFS of a NameNode, HttpFS, or Knox before either.
//!
//! The NameNode answers listings itself and sends whoever opens a file on to
//! a DataNode. That one redirect is followed, once, and for nothing else; our
//! credentials go along only where it leads back to the very same server
//! (Knox): a DataNode is told who we are by what the NameNode put into the
//! redirect (`delegation`, `user.name`). A path that names the API
//! (`.../webhdfs/v1/...`) is taken by its word, which is what Knox needs.

mod answer;
mod ask;
mod open;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use http::StatusCode;
use reqwest::{Client, Url};
use tokio::runtime::Handle;

use self::answer::Page;
use self::ask::{Refusal, client};
use super::stream::{self, Begin, Pieces};
use super::tree::Tree;
use super::{Access, Entry, EntryKind, Files, FilesError, FilesErrorKind, Listing, MOST_ENTRIES};
use crate::config::{RemoteLocation, Scheme};
use crate::fetch::credentials::Credentials;
use crate::fetch::tls::Tls;

const API: &str = "webhdfs/v1";

/// What lies under a directory of HDFS.
#[derive(Clone)]
pub(super) struct WebHdfs(Arc<Inner>);

struct Inner {
    /// NameNodes of which one is active, or the one gateway.
    servers: Vec<Server>,
    /// The one that answered last.
    active: AtomicUsize,
    /// For DataNodes.
    data: Client,
    credentials: Credentials,
    authorized: bool,
    user: Option<String>,
    /// Without slashes at its ends.
    root: String,
    display: String,
    runtime: Handle,
    most_bytes: u64,
    tree: Tree,
    /// Whether the server lists page by page (Hadoop 2.9 and 3.0 do).
    pages: AtomicBool,
    /// Whether the root turned out to be one file.
    single: AtomicBool,
}

struct Server {
    /// Up to the API: what is asked for follows.
    api: Url,
    /// `tls_config.server_name`, which the request is sent for.
    name: Option<String>,
    client: Client,
}

impl fmt::Debug for WebHdfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebHdfs({})", self.0.display)
    }
}

impl WebHdfs {
    /// Asks nothing of a server yet.
    ///
    /// # Errors
    /// When a certificate cannot be read or settings contradict each other.
    pub(super) fn at(location: &RemoteLocation, access: &Access) -> Result<Self, FilesError> {
        let display = location.to_string();
        let wrong = |message: String| FilesError {
            place: display.clone(),
            kind: FilesErrorKind::Other,
            message,
        };
        let tls = Tls::read(&access.http.tls_config).map_err(|error| wrong(error.to_string()))?;
        let credentials = Credentials::of(&access.http).map_err(wrong)?;
        let scheme = if location.scheme() == Scheme::SWebHdfs { "https" } else { "http" };
        let whole = format!("/{}", location.path());
        let (prefix, root) = match whole.split_once(&format!("/{API}")) {
            Some((prefix, root)) if root.is_empty() || root.starts_with('/') => (prefix, root),
            _ => ("", whole.as_str()),
        };
        let name = access.http.tls_config.server_name.clone().filter(|_| scheme == "https");
        let mut servers = Vec::new();
        for host in location.authority().split(',') {
            let api = Url::parse(&format!("{scheme}://{host}{prefix}/{API}"))
                .map_err(|error| wrong(error.to_string()))?;
            let host = name.as_ref().and_then(|_| api.host_str().map(str::to_owned));
            servers.push(Server {
                client: client(&tls, host).map_err(wrong)?,
                name: name.clone(),
                api,
            });
        }
        Ok(Self(Arc::new(Inner {
            servers,
            active: AtomicUsize::new(0),
            data: client(&tls, None).map_err(wrong)?,
            authorized: credentials.authorize(),
            credentials,
            user: access.webhdfs.user.clone(),
            root: root.trim_matches('/').to_owned(),
            runtime: access.runtime.clone(),
            most_bytes: access.most_bytes,
            tree: Tree::default(),
            pages: AtomicBool::new(true),
            single: AtomicBool::new(false),
            display: display.clone(),
        })))
    }

    /// What is in a directory, each entry with its name as path.
    async fn directory(&self, path: &str) -> Result<Vec<Entry>, FilesError> {
        let mut entries = Vec::new();
        let mut after = String::new();
        loop {
            let paged = self.0.pages.load(Ordering::Relaxed);
            let query: &[(&str, &str)] = match (paged, after.as_str()) {
                (true, "") => &[("op", "LISTSTATUS_BATCH")],
                (true, after) => &[("op", "LISTSTATUS_BATCH"), ("startAfter", after)],
                (false, _) => &[("op", "LISTSTATUS")],
            };
            let page = match self.page(path, query).await {
                Err(Refusal::UnknownOperation(_)) if paged => {
                    self.0.pages.store(false, Ordering::Relaxed);
                    continue;
                }
                page => page.map_err(Refusal::into_error)?,
            };
            let last = page.entries.last().map(|status| status.path_suffix.clone());
            let more = page.remaining > 0;
            for status in page.entries {
                if status.path_suffix.is_empty() && path.is_empty() {
                    // A file lists itself, without a name.
                    self.0.single.store(true, Ordering::Relaxed);
                }
                entries.push(self.entry(status));
            }
            match last {
                Some(last) if more && last > after && entries.len() < MOST_ENTRIES => after = last,
                _ => return Ok(entries),
            }
        }
    }

    fn entry(&self, status: answer::FileStatus) -> Entry {
        let name = match status.path_suffix.as_str() {
            "" => self.0.root.rsplit('/').next().unwrap_or_default().to_owned(),
            _ => status.path_suffix,
        };
        Entry {
            path: name,
            kind: if status.kind == "DIRECTORY" { EntryKind::Directory } else { EntryKind::File },
            bytes: status.length,
            modified: SystemTime::UNIX_EPOCH + Duration::from_millis(status.modification_time),
        }
    }

    async fn page(&self, path: &str, query: &[(&str, &str)]) -> Result<Page, Refusal> {
        let response = self.ask(path, query).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(path, response).await);
        }
        let body = self.whole(path, response).await?;
        Page::parse(&body).map_err(|what| {
            Refusal::Error(self.error(
                path,
                FilesErrorKind::Other,
                format!(
                    "{what}; give the address of the NameNode's web server, or of HttpFS or Knox"
                ),
            ))
        })
    }

    fn is_root(&self, path: &str) -> bool {
        self.0.single.load(Ordering::Relaxed) && self.0.root.rsplit('/').next() == Some(path)
    }

    fn error(&self, path: &str, kind: FilesErrorKind, message: String) -> FilesError {
        FilesError { place: self.display(path), kind, message }
    }
}

impl Files for WebHdfs {
    fn list(&self) -> Result<Listing, FilesError> {
        let inner = &*self.0;
        inner.tree.walk(|directory| inner.runtime.block_on(self.directory(directory)))
    }

    /// The NameNode knows how long a file that is being written was when its
    /// last block was begun, and refuses to send us beyond that; the DataNode
    /// knows all of it. So we let ourselves be sent on to the last byte of
    /// which the NameNode knows, and ask the DataNode for what we want.
    fn open(&self, path: &str, from: u64) -> Result<Box<dyn Read + Send>, FilesError> {
        let begin = || -> Begin {
            let (files, path) = (self.clone(), path.to_owned());
            Box::new(move |from| {
                let (files, path) = (files.clone(), path.clone());
                async move { files.begin(&path, from).await.map_err(Refusal::into_error) }.boxed()
            })
        };
        let inner = &*self.0;
        let first = match inner.runtime.block_on(self.begin(path, from)) {
            Ok(pieces) => return Ok(self.reader(from, pieces, begin())),
            Err(refusal) => refusal,
        };
        match first {
            Refusal::BeyondEnd { length, .. } if from > 0 && length > 0 => {
                let known = (length - 1).min(from);
                let (pieces, at) = match inner.runtime.block_on(self.begin_at(path, known, from)) {
                    Ok(begun) => begun,
                    Err(Refusal::BeyondEnd { .. }) => return Ok(Box::new(io::empty())),
                    Err(refusal) => return Err(refusal.into_error()),
                };
                let mut reader = self.reader(at, pieces, begin());
                // Ends early where there is nothing new: so it shall.
                let passed = io::copy(&mut reader.by_ref().take(from - at), &mut io::sink());
                passed
                    .map_err(|error| self.error(path, FilesErrorKind::Other, error.to_string()))?;
                Ok(reader)
            }
            Refusal::BeyondEnd { .. } if from > 0 => Ok(Box::new(io::empty())),
            refusal => Err(refusal.into_error()),
        }
    }

    fn display(&self, path: &str) -> String {
        match path {
            path if path.is_empty() || self.is_root(path) => self.0.display.clone(),
            path => format!("{}/{path}", self.0.display),
        }
    }

    fn tells_growth(&self) -> bool {
        false
    }
}

impl WebHdfs {
    fn reader(&self, from: u64, pieces: Pieces, begin: Begin) -> Box<dyn Read + Send> {
        stream::reader(&self.0.runtime, from, self.0.most_bytes, pieces, begin)
    }
}
