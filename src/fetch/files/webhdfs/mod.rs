//! HDFS over HTTP: WebHDFS of a NameNode, HttpFS, or Knox before either.
//!
//! The NameNode answers listings itself and sends whoever opens a file on to
//! a DataNode. That one redirect is followed, once, and for nothing else; our
//! credentials go along only where it leads back to the very same server
//! (Knox): a DataNode is told who we are by what the NameNode put into the
//! redirect (`delegation`, `user.name`). A path that names the API
//! (`.../webhdfs/v1/...`) is taken by its word, which is what Knox needs.

mod answer;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, StreamExt};
use http::StatusCode;
use http::header::{ACCEPT, HOST, LOCATION};
use reqwest::{Client, Response, Url};
use tokio::runtime::Handle;

use self::answer::{Page, RemoteException};
use super::stream::{self, Begin, Pieces, STALL};
use super::tree::Tree;
use super::{Access, Entry, EntryKind, Files, FilesError, FilesErrorKind, Listing, MOST_ENTRIES};
use crate::config::{RemoteLocation, Scheme, host_and_port};
use crate::fetch::credentials::Credentials;
use crate::fetch::tls::{AlwaysHost, Tls};

/// A page of a listing holds a thousand entries of some 400 bytes; an old
/// NameNode sends all of a directory at once.
const MOST_LISTING: usize = 128 << 20;
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

    /// Asks the NameNode that answered last, then the others.
    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Response, Refusal> {
        let inner = &*self.0;
        let mut first: Option<Refusal> = None;
        for turn in 0..inner.servers.len() {
            let number = (inner.active.load(Ordering::Relaxed) + turn) % inner.servers.len();
            let server = &inner.servers[number];
            let answer: Result<Response, Refusal> = match self.send(server, path, query).await {
                Ok(response) if response.status() == StatusCode::FORBIDDEN => {
                    match self.refusal(path, response).await {
                        Refusal::Standby(error) => Err(Refusal::Standby(error)),
                        other => return Err(other),
                    }
                }
                Ok(response) => {
                    inner.active.store(number, Ordering::Relaxed);
                    return Ok(response);
                }
                Err(error) => Err(Refusal::Error(error)),
            };
            if let Err(refusal) = answer {
                first.get_or_insert(refusal);
            }
        }
        Err(first.unwrap_or_else(|| {
            Refusal::Error(self.error(path, FilesErrorKind::Other, "no server".to_owned()))
        }))
    }

    async fn send(
        &self,
        server: &Server,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Response, FilesError> {
        let inner = &*self.0;
        let mut url = server.api.clone();
        // An http URL always has a path: `Err` cannot happen here.
        if let Ok(mut segments) = url.path_segments_mut() {
            let whole = inner.root.split('/').chain(path.split('/'));
            segments.extend(whole.filter(|part| !part.is_empty()));
        }
        {
            let mut pairs = url.query_pairs_mut();
            pairs.extend_pairs(query);
            if let Some(user) = &inner.user {
                pairs.append_pair("user.name", user);
            }
        }
        let host = host_and_port(&url);
        let mut request = match &server.name {
            Some(name) if url.set_host(Some(name)).is_ok() => {
                server.client.get(url).header(HOST, host)
            }
            _ => server.client.get(url),
        };
        request = request.header(ACCEPT, "application/json, */*");
        let request = inner.credentials.apply(request).await.map_err(|what| {
            let what = format!("not asked, the credentials cannot be read: {what}");
            self.error(path, FilesErrorKind::Other, what)
        })?;
        self.response(path, &host_and_port(&server.api), request).await
    }

    async fn response(
        &self,
        path: &str,
        host: &str,
        request: reqwest::RequestBuilder,
    ) -> Result<Response, FilesError> {
        match tokio::time::timeout(STALL, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let message = answer::no_answer(host, error);
                Err(self.error(path, FilesErrorKind::Other, message))
            }
            Err(_) => Err(self.stalled(path, host)),
        }
    }

    /// Begins to read a file: from the server itself, or from the DataNode it
    /// sends us to.
    async fn begin(&self, path: &str, from: u64) -> Result<Pieces, Refusal> {
        self.begin_at(path, from, from).await.map(|(pieces, _)| pieces)
    }

    /// The NameNode is asked for byte `known`, the DataNode for `from`. Gives
    /// back what comes, and from which byte on: of a redirect whose words are
    /// hidden (Knox) it is `known`.
    async fn begin_at(&self, path: &str, known: u64, from: u64) -> Result<(Pieces, u64), Refusal> {
        let offset = known.to_string();
        let open: &[(&str, &str)] =
            if known == 0 { &[("op", "OPEN")] } else { &[("op", "OPEN"), ("offset", &offset)] };
        let mut at = known;
        let path = if self.is_root(path) { "" } else { path };
        let mut response = self.ask(path, open).await?;
        if response.status().is_redirection() {
            (response, at) =
                self.follow(path, &response, known, from).await.map_err(Refusal::Error)?;
        }
        if response.status() != StatusCode::OK {
            return Err(self.refusal(path, response).await);
        }
        let pieces =
            response.bytes_stream().map(|piece| piece.map_err(|error| answer::broken(&error)));
        Ok((pieces.boxed(), at))
    }

    async fn follow(
        &self,
        path: &str,
        redirect: &Response,
        known: u64,
        from: u64,
    ) -> Result<(Response, u64), FilesError> {
        let inner = &*self.0;
        let server = &inner.servers[inner.active.load(Ordering::Relaxed) % inner.servers.len()];
        let wrong = |what: &str| self.error(path, FilesErrorKind::Other, what.to_owned());
        let mut target = redirect
            .headers()
            .get(LOCATION)
            .and_then(|target| target.to_str().ok())
            .and_then(|target| server.api.join(target).ok())
            .ok_or_else(|| wrong("the server sends us on to nowhere"))?;
        let host = host_and_port(&target);
        if server.api.scheme() == "https" && target.scheme() != "https" {
            return Err(wrong(
                "the NameNode sends us on from https to http, where what it put into the address \
                 could be read by others: set dfs.http.policy to HTTPS_ONLY, or use webhdfs://",
            ));
        }
        if !matches!(target.scheme(), "http" | "https") {
            return Err(wrong("the server sends us on to an address that is not HTTP"));
        }
        let at = if from != known && replace_offset(&mut target, from) { from } else { known };
        let same = target.scheme() == server.api.scheme() && host == host_and_port(&server.api);
        let request = match (&server.name, same) {
            (Some(name), true) => {
                let mut renamed = target.clone();
                let request = match renamed.set_host(Some(name)) {
                    Ok(()) => server.client.get(renamed).header(HOST, &host),
                    Err(_) => server.client.get(target),
                };
                inner.credentials.apply(request).await
            }
            (None, true) => inner.credentials.apply(server.client.get(target)).await,
            (_, false) => Ok(inner.data.get(target)),
        };
        let request = request.map_err(|what| wrong(&what))?;
        let response = self.response(path, &host, request).await.map_err(|mut error| {
            if !same {
                error.message.push_str(
                    " (a DataNode, to which the NameNode sends whoever reads: it must be \
                     reachable from here too, or go through HttpFS or Knox)",
                );
            }
            error
        })?;
        Ok((response, at))
    }

    /// A body, up to a limit.
    async fn whole(&self, path: &str, response: Response) -> Result<Vec<u8>, Refusal> {
        let error = |what| Refusal::Error(self.error(path, FilesErrorKind::Other, what));
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        loop {
            match tokio::time::timeout(STALL, pieces.next()).await {
                Ok(None) => return Ok(body),
                Ok(Some(Ok(piece))) if body.len() + piece.len() <= MOST_LISTING => {
                    body.extend_from_slice(&piece);
                }
                Ok(Some(Ok(_))) => {
                    return Err(error(format!(
                        "the listing is longer than {} MiB, the most that is read: remove old \
                         logs, or give a directory below",
                        MOST_LISTING >> 20
                    )));
                }
                Ok(Some(Err(broken))) => return Err(error(answer::broken(&broken))),
                Err(_) => return Err(error(format!("nothing came for {} s", STALL.as_secs()))),
            }
        }
    }

    /// The error of an answer that is not what was asked for.
    async fn refusal(&self, path: &str, response: Response) -> Refusal {
        let status = response.status();
        let negotiate = answer::wants_kerberos(response.headers());
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        while body.len() < 4_096
            && let Ok(Some(Ok(piece))) = tokio::time::timeout(STALL, pieces.next()).await
        {
            body.extend_from_slice(&piece);
        }
        let exception = RemoteException::parse(&body);
        let (kind, message) = answer::explain(
            status,
            exception.as_ref(),
            &body,
            negotiate,
            self.0.authorized,
            self.0.user.as_deref(),
        );
        let error = self.error(path, kind, message);
        match exception {
            Some(exception) if exception.is("StandbyException") => Refusal::Standby(error),
            Some(exception) if exception.is_unknown_operation() => Refusal::UnknownOperation(error),
            Some(exception) => match exception.beyond_end() {
                Some(length) => Refusal::BeyondEnd { length, error },
                None => Refusal::Error(error),
            },
            None => Refusal::Error(error),
        }
    }

    fn is_root(&self, path: &str) -> bool {
        self.0.single.load(Ordering::Relaxed) && self.0.root.rsplit('/').next() == Some(path)
    }

    fn error(&self, path: &str, kind: FilesErrorKind, message: String) -> FilesError {
        FilesError { place: self.display(path), kind, message }
    }

    fn stalled(&self, path: &str, host: &str) -> FilesError {
        let message = format!(
            "{host} did not answer for {} s; check that it runs and can be reached",
            STALL.as_secs()
        );
        self.error(path, FilesErrorKind::Other, message)
    }
}

/// Why a server did not do what it was asked.
enum Refusal {
    /// It is the NameNode that does not answer questions now.
    Standby(FilesError),
    UnknownOperation(FilesError),
    /// The file ends before the byte that was asked for, as far as the
    /// NameNode knows: at `length`.
    BeyondEnd {
        length: u64,
        error: FilesError,
    },
    Error(FilesError),
}

impl Refusal {
    fn into_error(self) -> FilesError {
        match self {
            Self::Standby(error)
            | Self::UnknownOperation(error)
            | Self::BeyondEnd { error, .. }
            | Self::Error(error) => error,
        }
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

/// Asks for another byte; `false` where the address does not say for which.
fn replace_offset(url: &mut Url, offset: u64) -> bool {
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if !pairs.iter().any(|(key, _)| key == "offset") {
        return false;
    }
    let mut query = url.query_pairs_mut();
    query.clear();
    for (key, value) in pairs {
        let value = if key == "offset" { offset.to_string() } else { value };
        query.append_pair(&key, &value);
    }
    true
}

fn client(tls: &Tls, always_host: Option<String>) -> Result<Client, String> {
    let mut builder = Client::builder()
        .user_agent(concat!("spark-exporter/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(STALL);
    if let Some(host) = always_host {
        builder = builder.dns_resolver(Arc::new(AlwaysHost(host))).http1_only();
    }
    tls.apply(builder).build().map_err(|error| format!("no HTTP client: {error}"))
}
