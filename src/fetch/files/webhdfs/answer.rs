//! What WebHDFS answers: listings, exceptions of Hadoop's as JSON, and pages
//! of whatever stands before it.

use http::StatusCode;
use http::header::{HeaderMap, WWW_AUTHENTICATE};
use serde::Deserialize;

use crate::fetch::answer::innermost;
use crate::fetch::files::FilesErrorKind;
use crate::fetch::text::glance;

/// A part of a listing.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) entries: Vec<FileStatus>,
    /// Entries behind it.
    pub(super) remaining: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileStatus {
    pub(super) path_suffix: String,
    /// `FILE`, `DIRECTORY` or `SYMLINK`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) length: u64,
    /// Milliseconds since the epoch.
    #[serde(default)]
    pub(super) modification_time: u64,
}

#[derive(Deserialize)]
struct Statuses {
    #[serde(rename = "FileStatuses")]
    statuses: Inner,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(rename = "FileStatus", default)]
    entries: Vec<FileStatus>,
}

#[derive(Deserialize)]
enum Answer {
    /// `LISTSTATUS`
    FileStatuses(Inner),
    /// `LISTSTATUS_BATCH`
    DirectoryListing {
        #[serde(rename = "partialListing")]
        partial: Statuses,
        #[serde(rename = "remainingEntries", default)]
        remaining: u64,
    },
}

impl Page {
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        match serde_json::from_slice(body) {
            Ok(Answer::FileStatuses(inner)) => Ok(Self { entries: inner.entries, remaining: 0 }),
            Ok(Answer::DirectoryListing { partial, remaining }) => {
                Ok(Self { entries: partial.statuses.entries, remaining })
            }
            Err(_) => Err(format!("status 200, but no listing of WebHDFS: {:?}", glance(body))),
        }
    }
}

/// An exception of Hadoop's.
#[derive(Debug, Deserialize)]
pub(super) struct RemoteException {
    exception: String,
    #[serde(default)]
    message: String,
}

impl RemoteException {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wrapped {
            #[serde(rename = "RemoteException")]
            exception: RemoteException,
        }
        serde_json::from_slice(body).ok().map(|wrapped: Wrapped| wrapped.exception)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.exception == name
    }

    /// A server that does not know what it was asked to do.
    pub(super) fn is_unknown_operation(&self) -> bool {
        matches!(
            self.exception.as_str(),
            "IllegalArgumentException" | "UnsupportedOperationException" | "QueryParamException"
        ) && (self.message.contains("\"op\"") || self.message.contains("LISTSTATUS_BATCH"))
    }

    /// The length of a file that ends before the byte that was asked for:
    /// `Offset=99 out of the range [0, 42)`. A file whose first block is
    /// being written has length 0 there, and it is the DataNode that says
    /// `Cannot seek after EOF`.
    pub(super) fn beyond_end(&self) -> Option<u64> {
        if self.message.contains("seek after EOF") {
            return Some(0);
        }
        let (_, rest) = self.message.split_once("out of the range [0, ")?;
        rest.split_once(')')?.0.trim().parse().ok()
    }
}

/// What an answer means that is not what was asked for.
pub(super) fn explain(
    status: StatusCode,
    exception: Option<&RemoteException>,
    body: &[u8],
    negotiate: bool,
    authorized: bool,
    user: Option<&str>,
) -> (FilesErrorKind, String) {
    // A message of Hadoop's may be a whole stack trace.
    let said = match exception {
        Some(exception) => {
            glance(format!("{}: {}", exception.exception, exception.message).as_bytes())
        }
        None => glance(body),
    };
    let said = if said.is_empty() {
        format!("status {status}")
    } else {
        format!("status {status}: {said}")
    };
    let name = exception.map_or("", |exception| exception.exception.as_str());
    let who = user.map_or("the user that is asked for".to_owned(), |user| format!("user {user:?}"));
    let (kind, hint) = match (status.as_u16(), name) {
        (_, "FileNotFoundException") => {
            (FilesErrorKind::NotFound, "check that it exists".to_owned())
        }
        (_, "StandbyException") => (
            FilesErrorKind::Other,
            "this NameNode is on standby: give all of them, as webhdfs://nn1:9870,nn2:9870/path"
                .to_owned(),
        ),
        (_, "AccessControlException") => (
            FilesErrorKind::Denied,
            format!(
                "{who} needs r-x on the directory and r on its files (webhdfs.user of the cluster)"
            ),
        ),
        (401, _) if negotiate => (
            FilesErrorKind::Denied,
            "it wants Kerberos, which is not spoken here: use hdfs:// with a ticket, Knox with \
             basic_auth, or a History Server"
                .to_owned(),
        ),
        (401 | 407, _) if authorized => (
            FilesErrorKind::Denied,
            "it refused the credentials: check http_config of the cluster".to_owned(),
        ),
        (401 | 407, _) | (_, "SecurityException") => (
            FilesErrorKind::Denied,
            "it wants credentials: give http_config (Knox) or webhdfs.user of the cluster"
                .to_owned(),
        ),
        (403, _) => (FilesErrorKind::Denied, format!("{who} may not read it")),
        (300..=399, _) => (
            FilesErrorKind::Other,
            "WebHDFS sends nobody on who lists: this looks like a proxy or a login page".to_owned(),
        ),
        (404, _) => (
            FilesErrorKind::Other,
            "is this the address of the NameNode's web server (port 9870 or 9871), HttpFS or Knox?"
                .to_owned(),
        ),
        (429 | 503, _) => {
            (FilesErrorKind::Other, "it is overloaded; it is asked again later".to_owned())
        }
        _ => (FilesErrorKind::Other, String::new()),
    };
    (kind, if hint.is_empty() { said } else { format!("{said}; {hint}") })
}

pub(super) fn wants_kerberos(headers: &HeaderMap) -> bool {
    headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .any(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"negotiate"))
}

/// A request that got no answer.
pub(super) fn no_answer(host: &str, error: reqwest::Error) -> String {
    // The URL of a DataNode holds a token.
    let error = error.without_url();
    let cause = innermost(&error);
    let hint = if cause.contains("certificate") {
        "give the authority that signed its certificate as tls_config.ca_file"
    } else if error.is_timeout() || error.is_connect() {
        "check host and port, and that it runs"
    } else {
        "the connection broke off"
    };
    format!("no answer from {host}: {cause}; {hint}")
}

pub(super) fn broken(error: &reqwest::Error) -> String {
    format!("the transfer broke off: {}", innermost(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_whole_and_by_pages() {
        let status =
            r#"{"pathSuffix":"a","type":"FILE","length":5,"modificationTime":7,"owner":"x"}"#;
        let whole = format!(r#"{{"FileStatuses":{{"FileStatus":[{status}]}}}}"#);
        let page = Page::parse(whole.as_bytes()).expect("a listing");
        assert_eq!((page.entries[0].length, page.remaining), (5, 0));
        let part =
            format!(r#"{{"DirectoryListing":{{"partialListing":{whole},"remainingEntries":2}}}}"#);
        let page = Page::parse(part.as_bytes()).expect("a listing");
        assert_eq!((page.entries[0].modification_time, page.remaining), (7, 2));
        let error = Page::parse(b"<html><title>Sign in</title>").expect_err("a page");
        assert!(error.contains("Sign in"), "{error}");
    }

    fn exception(name: &str, message: &str) -> RemoteException {
        let body = serde_json::json!({"RemoteException": {
            "exception": name, "javaClassName": format!("x.{name}"), "message": message}});
        RemoteException::parse(body.to_string().as_bytes()).expect("an exception")
    }

    #[test]
    fn a_file_that_ends_earlier() {
        let message = "Offset=99 out of the range [0, 42); OPEN, path=/x";
        assert_eq!(exception("IOException", message).beyond_end(), Some(42));
        assert_eq!(exception("EOFException", "Cannot seek after EOF").beyond_end(), Some(0));
        assert_eq!(exception("IOException", "disk on fire").beyond_end(), None);
    }

    #[test]
    fn refusals_say_what_to_do() {
        let said = |status: u16, exception: Option<RemoteException>, body: &[u8], negotiate| {
            let status = StatusCode::from_u16(status).expect("a status");
            explain(status, exception.as_ref(), body, negotiate, false, Some("spark"))
        };
        for (status, name, kind, words) in [
            (404, "FileNotFoundException", FilesErrorKind::NotFound, "check that it exists"),
            (403, "AccessControlException", FilesErrorKind::Denied, "user \"spark\" needs r-x"),
            (403, "StandbyException", FilesErrorKind::Other, "nn1:9870,nn2:9870"),
            (401, "SecurityException", FilesErrorKind::Denied, "webhdfs.user"),
        ] {
            let (seen, message) = said(status, Some(exception(name, "why")), b"", false);
            assert_eq!(seen, kind, "{name}");
            assert!(message.contains(words), "{message}");
        }
        let (kind, message) = said(401, None, b"<html>Authentication required</html>", true);
        assert_eq!(kind, FilesErrorKind::Denied);
        assert!(message.contains("Kerberos"), "{message}");
        let (kind, message) = said(404, None, b"<title>Not Found</title>", false);
        assert_eq!(kind, FilesErrorKind::Other);
        assert!(message.contains("9870"), "{message}");
    }
}
