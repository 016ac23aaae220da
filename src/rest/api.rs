//! Where the endpoints of one server are, and who pays for asking them.

use std::fs::File;
use std::sync::Arc;

use reqwest::Url;
use serde::de::DeserializeOwned;

use crate::config::ServerUrl;
use crate::fetch::{Elements, FetchError, HttpClient, Meter, Request, Spool};

/// One server's API. Cheap to make: one for each cycle carries that cycle's
/// meter.
#[derive(Debug, Clone)]
pub struct Api {
    client: HttpClient,
    base: ServerUrl,
    meter: Arc<Meter>,
}

/// An application, and the attempt where the list names one. A live UI never
/// does, and ignores what is asked; a History Server answers 404 both for an
/// attempt too many and for one too few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationPath {
    pub id: String,
    pub attempt: Option<String>,
}

impl ApplicationPath {
    pub fn new(id: impl Into<String>, attempt: Option<String>) -> Self {
        Self { id: id.into(), attempt }
    }
}

impl Api {
    pub fn new(client: &HttpClient, base: &ServerUrl) -> Self {
        Self { client: client.clone(), base: base.clone(), meter: Arc::default() }
    }

    pub fn base(&self) -> &ServerUrl {
        &self.base
    }

    /// What all calls through this value cost.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// `…/api/v1/SEGMENTS`.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let path: Vec<&str> = ["api", "v1"].iter().chain(segments).copied().collect();
        self.base.join(&path, query)
    }

    /// `…/api/v1/applications/ID[/ATTEMPT]/SEGMENTS`.
    pub(crate) fn application_url(
        &self,
        application: &ApplicationPath,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Url {
        let mut path = vec!["applications", application.id.as_str()];
        path.extend(application.attempt.as_deref());
        path.extend(segments);
        self.url(&path, query)
    }

    /// A page of the UI outside the API.
    pub(crate) fn root_url(&self, segments: &[&str]) -> Url {
        self.base.join(segments, &[])
    }

    pub(crate) async fn json<T>(&self, endpoint: &'static str, url: Url) -> Result<T, FetchError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.client.get_json(self.request(endpoint, url)).await
    }

    pub(crate) async fn array<T, S, F>(
        &self,
        endpoint: &'static str,
        url: Url,
        state: S,
        visit: F,
    ) -> Result<Elements<S>, FetchError>
    where
        T: DeserializeOwned,
        S: Send + 'static,
        F: FnMut(&mut S, T) + Send + 'static,
    {
        self.client.get_array(self.request(endpoint, url), state, visit).await
    }

    /// A short array as a vector; elements of another shape are left out.
    pub(crate) async fn list<T>(
        &self,
        endpoint: &'static str,
        url: Url,
    ) -> Result<Vec<T>, FetchError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        Ok(self.array(endpoint, url, Vec::new(), Vec::push).await?.state)
    }

    pub(crate) async fn download(
        &self,
        endpoint: &'static str,
        url: Url,
        spool: &Spool,
    ) -> Result<File, FetchError> {
        self.client.download(self.request(endpoint, url), spool).await
    }

    fn request(&self, endpoint: &'static str, url: Url) -> Request {
        Request { endpoint, url, meter: Some(Arc::clone(&self.meter)) }
    }
}
