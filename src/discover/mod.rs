//! Where applications are: what answers at a URL that the operator gave, and
//! what a Kubernetes cluster runs ([`kubernetes`]).
//!
//! `watch` and `cli` call [`probe`] once for each URL and then poll a driver
//! ([`crate::rest::running`]) or list a History Server
//! ([`crate::rest::applications`]).

#[cfg(feature = "kubernetes")]
pub mod kubernetes;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::ServerUrl;
use crate::fetch::{FetchError, FetchErrorKind, HttpClient};
use crate::rest::applications::{self, ApplicationInfo, Filter};
use crate::rest::{Api, ApplicationPath, storage_rdd, version};

/// What a Spark server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The UI of a running driver: one application, from its memory.
    Driver,
    /// Finished (and perhaps unfinished) applications, from their logs.
    HistoryServer,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::HistoryServer => "history_server",
        }
    }
}

/// A URL that was asked, and what answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub base: ServerUrl,
    pub role: Role,
    /// Of the server.
    pub spark_version: Option<String>,
}

/// An attempt that no application has.
const NO_ATTEMPT: &str = "spark-exporter-probe";

/// Finds out whether a driver or a History Server answers, directly or behind
/// a path prefix. Two or three small requests, none of which makes a History
/// Server read a log.
///
/// Both list applications in the same form, and a History Server may list one
/// running application or none, as a driver does. What tells them apart in
/// all of 3.3 to 4.3: a driver ignores the attempt in a path, a History
/// Server answers 404 to one it does not know.
pub async fn probe(client: &HttpClient, url: &ServerUrl) -> Result<Endpoint, FetchError> {
    let api = Api::new(client, url);
    let spark_version = match version::get(&api).await {
        Ok(version) => version,
        Err(error) => return Err(wrong_kind(client, url, error).await),
    };
    let listed = applications::get(&api, Filter { limit: Some(2), ..Filter::default() }).await?;
    let role = match listed.as_slice() {
        [only] if may_be_driver(only) => ask_for_no_attempt(&api, only).await?,
        // A driver always lists its one application.
        _ => Role::HistoryServer,
    };
    Ok(Endpoint { base: url.clone(), role, spark_version })
}

/// A driver's application runs, and its list names no attempt.
fn may_be_driver(application: &ApplicationInfo) -> bool {
    match application.attempts.as_slice() {
        [attempt] => !attempt.is_completed() && attempt.attempt_id.get().is_empty(),
        _ => false,
    }
}

async fn ask_for_no_attempt(api: &Api, application: &ApplicationInfo) -> Result<Role, FetchError> {
    let path = ApplicationPath::new(application.id.get(), Some(NO_ATTEMPT.to_owned()));
    match storage_rdd::get(api, &path).await {
        Ok(_) => Ok(Role::Driver),
        Err(error) if error.kind == FetchErrorKind::UnknownApplication => Ok(Role::HistoryServer),
        Err(error) => Err(error),
    }
}

/// What a Standalone master or worker says of itself under `/json/`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StandaloneState {
    workers: Option<IgnoredAny>,
    activeapps: Option<IgnoredAny>,
    masterurl: Option<IgnoredAny>,
}

/// Where the answer was not Spark's API: says so if another of Spark's
/// servers answers there, which is the most common mistake.
async fn wrong_kind(client: &HttpClient, url: &ServerUrl, error: FetchError) -> FetchError {
    let foreign = error.kind == FetchErrorKind::NotJson || error.status == Some(404);
    if !foreign {
        return error;
    }
    let api = Api::new(client, url);
    let state: Result<StandaloneState, _> =
        api.json("standalone_json", api.root_url(&["json", ""])).await;
    let server = match state {
        Ok(state) if state.workers.is_some() && state.activeapps.is_some() => "master",
        Ok(state) if state.masterurl.is_some() => "worker",
        _ => return error,
    };
    FetchError {
        what: format!("a Spark Standalone {server} answers there, not a driver or History Server"),
        hint: "give the driver's own UI (port 4040 and up on the host that runs the driver) for a \
               running application, the History Server (port 18080) for finished ones"
            .to_owned(),
        ..error
    }
}
