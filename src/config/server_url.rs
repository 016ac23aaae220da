//! The address of a Spark server, checked where the operator wrote it.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The root of a Spark UI or History Server, with whatever prefix a proxy or
/// an ingress puts before it: `http://rm:8088/proxy/application_1_0001`.
///
/// It holds no credentials, no query and no trailing slash, so it can be
/// shown anywhere.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerUrl(Url);

/// Pages of Spark's UI that people copy out of their browser; the root is
/// before them.
const PAGES: [&str; 8] =
    ["jobs", "stages", "storage", "environment", "executors", "SQL", "StreamingQuery", "home"];

impl ServerUrl {
    /// `segments` and `query` appended to the whole prefix, percent-encoded.
    /// Never starts again at `/`: behind a proxy the prefix is the server.
    pub fn join(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.0.clone();
        // An http URL always has a path: `Err` cannot happen here.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// `host:port`, also where the port is the scheme's own.
    pub fn host_and_port(&self) -> String {
        host_and_port(&self.0)
    }
}

/// `host:port` of a URL, the port always written.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        // Nothing of a text that may hold a password is repeated in errors.
        let mut url = Url::parse(text).map_err(|error| {
            format!("not a URL: {error}; write it as http://host:4040 or https://host/prefix")
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "a URL of a Spark server starts with http:// or https://, not {}:",
                url.scheme()
            ));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("the URL names no host; write it as http://host:4040".to_owned());
        }
        let server = host_and_port(&url);
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!(
                "the URL of {server} holds credentials, which would end up in logs; give them as \
                 basic_auth (username, password_file) of its HTTP settings instead"
            ));
        }
        if url.query().is_some() {
            return Err(format!(
                "the URL of {server} has a query (?...); give the address of the server alone, \
                 and secrets as authorization or http_headers of its HTTP settings"
            ));
        }
        url.set_fragment(None);
        strip_pages(&mut url);
        Ok(Self(url))
    }
}

/// Takes away what people paste beyond the root: `/api/v1`, `/jobs/`, slashes.
fn strip_pages(url: &mut Url) {
    let mut segments: Vec<String> =
        url.path().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if let Some(at) = segments.windows(2).rposition(|pair| pair == ["api", "v1"]) {
        segments.truncate(at);
    } else if segments.last().is_some_and(|last| PAGES.contains(&last.as_str())) {
        segments.pop();
    }
    url.set_path(&segments.join("/"));
}

impl Serialize for ServerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ServerUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ServerUrl {
        text.parse().expect(text)
    }

    #[test]
    fn paths_go_behind_the_whole_prefix() {
        for (text, expected) in [
            ("http://driver:4040", "http://driver:4040/api/v1/applications"),
            ("http://driver:4040/", "http://driver:4040/api/v1/applications"),
            ("http://driver:4040/jobs/", "http://driver:4040/api/v1/applications"),
            ("http://shs/api/v1/applications/app-1/jobs", "http://shs/api/v1/applications"),
            (
                "https://rm/proxy/application_1_0001/",
                "https://rm/proxy/application_1_0001/api/v1/applications",
            ),
        ] {
            let joined = url(text).join(&["api", "v1", "applications"], &[]);
            assert_eq!(joined.as_str(), expected, "{text}");
        }
    }

    #[test]
    fn parts_are_percent_encoded() {
        let joined = url("http://h:1/p").join(&["a/b?c", "ü"], &[("status", "a&b")]);
        assert_eq!(joined.as_str(), "http://h:1/p/a%2Fb%3Fc/%C3%BC?status=a%26b");
    }

    #[test]
    fn credentials_and_queries_are_refused_and_not_repeated() {
        for text in [
            "http://reader:hunter2@host:18080",
            "http://hunter2@host",
            "http://host/?token=hunter2",
            "ftp://reader:hunter2@host",
            "hunter2",
            "http://",
        ] {
            let error = text.parse::<ServerUrl>().expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = "http://a:b@host:1".parse::<ServerUrl>().expect_err("credentials");
        assert!(error.contains("basic_auth"), "{error}");
    }

    #[test]
    fn shown_without_a_trailing_slash() {
        assert_eq!(url("http://driver:4040/").to_string(), "http://driver:4040");
        assert_eq!(url("http://driver/").host_and_port(), "driver:80");
    }
}
