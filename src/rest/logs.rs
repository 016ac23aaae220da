//! `/logs`: the event log of a finished run as a History Server stores it, in
//! a zip. The server copies bytes and replays nothing.
//!
//! The zip is downloaded to an unnamed file ([`Spool`]) and read from there
//! through [`ZipFiles`]; both go when that is dropped.

use std::time::SystemTime;

use super::applications::{ApplicationAttemptInfo, ApplicationInfo};
use super::{Api, ApplicationPath};
use crate::fetch::files::{Files, FilesError, ZipFiles};
use crate::fetch::{FetchError, FetchErrorKind, Spool};

/// Why there is no log. [`LogsError::rest_may_help`] says what to do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogsError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The download ended well, but is no whole zip.
    #[error(transparent)]
    Damaged(FilesError),
    #[error(
        "GET {url}: a zip without anything in it; a driver's own UI answers so, since it serves no \
         logs"
    )]
    Empty { url: String },
}

impl LogsError {
    /// Whether the same server may tell of this run by its API. It may not
    /// where the server is gone, overloaded, wants other credentials, or does
    /// not know the run.
    pub fn rest_may_help(&self) -> bool {
        let Self::Fetch(error) = self else { return true };
        match (error.kind, error.status) {
            // "Event logs are not available"; a 503 that asks to stay away is
            // obeyed.
            (FetchErrorKind::Status, Some(503)) => error.what.contains(NOT_AVAILABLE),
            // 403 and 404 may come from a proxy that keeps downloads in.
            (FetchErrorKind::Status, Some(403 | 404 | 405 | 406 | 500))
            | (FetchErrorKind::TooLarge | FetchErrorKind::Disk, _) => true,
            _ => false,
        }
    }

    /// The server's own class, where it is one.
    pub fn into_fetch_error(self) -> Option<FetchError> {
        match self {
            Self::Fetch(error) => Some(error),
            Self::Damaged(_) | Self::Empty { .. } => None,
        }
    }
}

const NOT_AVAILABLE: &str = "Event logs are not available";

/// Downloads the log of the run that `attempt`, as the server listed it,
/// names.
pub async fn get(
    api: &Api,
    application: &ApplicationInfo,
    attempt: &ApplicationAttemptInfo,
    spool: &Spool,
) -> Result<ZipFiles, LogsError> {
    let path = ApplicationPath::new(application.id.get(), attempt.attempt_id.0.clone());
    let url = api.application_url(&path, &["logs"], &[]);
    let name = url.to_string();
    let file = api.download("logs", url, spool).await?;
    let modified = attempt.last_updated().or(attempt.end());
    let modified = modified.and_then(|modified| SystemTime::try_from(modified).ok());
    let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
    let opened = tokio::task::spawn_blocking(move || ZipFiles::new(file, name, modified)).await;
    let files = match opened {
        Ok(opened) => opened.map_err(LogsError::Damaged)?,
        Err(_) => return Err(LogsError::Empty { url: api.base().to_string() }),
    };
    if files.is_empty() {
        return Err(LogsError::Empty { url: files.display("") });
    }
    Ok(files)
}
