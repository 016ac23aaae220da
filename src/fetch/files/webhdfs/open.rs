//! The beginning of a file's bytes: from the NameNode to the DataNode.

use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use http::StatusCode;
use http::header::{HOST, LOCATION};
use reqwest::{Response, Url};

use super::WebHdfs;
use super::answer;
use super::ask::Refusal;
use crate::config::host_and_port;
use crate::fetch::files::stream::Pieces;
use crate::fetch::files::{FilesError, FilesErrorKind};

impl WebHdfs {
    /// Begins to read a file: from the server itself, or from the DataNode it
    /// sends us to.
    pub(super) async fn begin(&self, path: &str, from: u64) -> Result<Pieces, Refusal> {
        self.begin_at(path, from, from).await.map(|(pieces, _)| pieces)
    }

    /// The NameNode is asked for byte `known`, the DataNode for `from`. Gives
    /// back what comes, and from which byte on: of a redirect whose words are
    /// hidden (Knox) it is `known`.
    pub(super) async fn begin_at(
        &self,
        path: &str,
        known: u64,
        from: u64,
    ) -> Result<(Pieces, u64), Refusal> {
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

    pub(super) async fn follow(
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
