//! What can go wrong with a request, in the seven classes that are counted.

use std::fmt;
use std::time::Duration;

/// The class of a failed request: the label of its counter, and what a caller
/// branches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FetchErrorKind {
    /// No connection, no TLS, or a connection that broke off before the body
    /// was whole: what came of the body is not used, and the next cycle asks
    /// again.
    Unreachable,
    /// Connected too slowly, fell silent, or took too long in all.
    Timeout,
    /// An answer with another status than 200; redirects are among them.
    Status,
    /// 200, but not the JSON (or zip) that Spark sends: HTML of a proxy or a
    /// login page, JSON of another shape, or JSON or gzip that ends in the
    /// middle although the transfer was complete.
    NotJson,
    /// The body is larger than `limits.response_size`, decompressed, or a
    /// download larger than `limits.spool_size`.
    TooLarge,
    /// 404 with Spark's own words: this server does not know the application
    /// (any more, or not yet).
    UnknownApplication,
    /// What came could not be written to `storage.temp_path`: our own disk is
    /// full or broken.
    Disk,
}

impl FetchErrorKind {
    pub const ALL: [Self; 7] = [
        Self::Unreachable,
        Self::Timeout,
        Self::Status,
        Self::NotJson,
        Self::TooLarge,
        Self::UnknownApplication,
        Self::Disk,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::NotJson => "not_json",
            Self::TooLarge => "too_large",
            Self::UnknownApplication => "unknown_application",
            Self::Disk => "disk",
        }
    }
}

impl fmt::Display for FetchErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request that failed: what, on what, and what to do.
///
/// The URL in the text is one that we built: it holds no credentials
/// ([`crate::config::ServerUrl`] refuses them) and no query but our own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("GET {url}: {what}{}", Hint(hint))]
pub struct FetchError {
    pub kind: FetchErrorKind,
    pub url: String,
    /// What happened, without the URL.
    pub what: String,
    /// What to do about it; may be empty.
    pub hint: String,
    pub status: Option<u16>,
    /// How long the server asked us to stay away.
    pub retry_after: Option<Duration>,
}

struct Hint<'a>(&'a str);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; {}", self.0) }
    }
}

impl FetchError {
    pub(crate) fn new(kind: FetchErrorKind, url: &reqwest::Url, what: impl Into<String>) -> Self {
        Self {
            kind,
            url: url.to_string(),
            what: what.into(),
            hint: String::new(),
            status: None,
            retry_after: None,
        }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// HTTP settings from which no client can be made: a file that cannot be
/// read, a certificate that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClientError(pub(crate) String);

impl From<super::files::FilesError> for ClientError {
    fn from(error: super::files::FilesError) -> Self {
        Self(error.to_string())
    }
}
