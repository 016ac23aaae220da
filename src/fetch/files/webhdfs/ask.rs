//! One question to a NameNode, and its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use http::header::{ACCEPT, HOST};
use reqwest::{Client, Response};

use super::answer::{self, RemoteException};
use super::{Server, WebHdfs};
use crate::config::host_and_port;
use crate::fetch::files::stream::STALL;
use crate::fetch::files::{FilesError, FilesErrorKind};
use crate::fetch::tls::{AlwaysHost, Tls};

/// A page of a listing holds a thousand entries of some 400 bytes; an old
/// NameNode sends all of a directory at once.
const MOST_LISTING: usize = 128 << 20;

/// Why a server did not do what it was asked.
pub(super) enum Refusal {
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
    pub(super) fn into_error(self) -> FilesError {
        match self {
            Self::Standby(error)
            | Self::UnknownOperation(error)
            | Self::BeyondEnd { error, .. }
            | Self::Error(error) => error,
        }
    }
}

impl WebHdfs {
    /// Asks the NameNode that answered last, then the others.
    pub(super) async fn ask(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Response, Refusal> {
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

    pub(super) async fn send(
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

    pub(super) async fn response(
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

    /// A body, up to a limit.
    pub(super) async fn whole(&self, path: &str, response: Response) -> Result<Vec<u8>, Refusal> {
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
    pub(super) async fn refusal(&self, path: &str, response: Response) -> Refusal {
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

    fn stalled(&self, path: &str, host: &str) -> FilesError {
        let message = format!(
            "{host} did not answer for {} s; check that it runs and can be reached",
            STALL.as_secs()
        );
        self.error(path, FilesErrorKind::Other, message)
    }
}

pub(super) fn client(tls: &Tls, always_host: Option<String>) -> Result<Client, String> {
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
