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

/// Pages below those of [`PAGES`].
const SUBPAGES: [&str; 7] =
    ["job", "stage", "pool", "rdd", "execution", "threadDump", "statistics"];

/// Something a person copied out of the browser: a server, and the
/// application whose page it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub server: ServerUrl,
    /// Id and attempt.
    pub application: Option<(String, Option<String>)>,
    /// What the page is about, where that is less than the application.
    pub shown: Option<Shown>,
}

/// What one page of Spark's UI shows, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// `SQL/execution/?id=7`
    Sql(u64),
    /// `stages/stage/?id=3&attempt=0`
    Stage(u32),
    /// `jobs/job/?id=3`
    Job(u32),
}

impl Shown {
    /// Of the query only `id` is looked at.
    fn of(path: &str, query: Option<&str>) -> Option<Self> {
        let id = query?.split('&').find_map(|pair| pair.strip_prefix("id="))?;
        let mut parts = path.split('/').filter(|part| !part.is_empty()).rev();
        match (parts.next()?, parts.next()?) {
            ("execution", "SQL") => Some(Self::Sql(id.parse().ok()?)),
            ("stage", "stages") => Some(Self::Stage(id.parse().ok()?)),
            ("job", "jobs") => Some(Self::Job(id.parse().ok()?)),
            _ => None,
        }
    }
}

impl FromStr for Page {
    type Err = String;

    /// `https://host/prefix/history/ID[/ATTEMPT]/stages/?x` of a History
    /// Server, `http://host:4040/jobs/job/?id=3` of a driver,
    /// `…/cluster/app/ID` of YARN (which leads to the driver), or a server's
    /// root. What a page asks of its server is left out.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Ok(mut url) = Url::parse(text.trim()) else {
            return text.parse().map(|server| Self { server, application: None, shown: None });
        };
        let parts: Vec<String> =
            url.path().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let Some((root, application)) = root_and_application(&parts) else {
            return text.parse().map(|server| Self { server, application: None, shown: None });
        };
        let shown = Shown::of(url.path(), url.query());
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&root.join("/"));
        Ok(Self { server: url.as_str().parse()?, application, shown })
    }
}

type Application = Option<(String, Option<String>)>;

/// `None` where the path names no page.
fn root_and_application(parts: &[String]) -> Option<(Vec<String>, Application)> {
    let named = |rest: &[String]| {
        let id = rest.first()?.clone();
        let number = |part: &&String| part.bytes().all(|byte| byte.is_ascii_digit());
        Some((id, rest.get(1).filter(number).cloned()))
    };
    let is = |at: usize, word: &str| parts.get(at).is_some_and(|part| part == word);
    for at in (0..parts.len()).rev() {
        let (before, behind) = (parts[..at].to_vec(), &parts[at + 1..]);
        let page = |part: Option<&String>| part.is_none_or(|part| PAGES.contains(&part.as_str()));
        if is(at, "applications") && at >= 2 && is(at - 1, "v1") && is(at - 2, "api") {
            return Some((parts[..at - 2].to_vec(), named(behind)));
        }
        if is(at, "history") && !behind.is_empty() {
            let application = named(behind);
            let attempt = application.as_ref().is_some_and(|(_, attempt)| attempt.is_some());
            if page(behind.get(if attempt { 2 } else { 1 })) {
                return Some((before, application));
            }
        }
        if is(at, "app") && at >= 1 && is(at - 1, "cluster") && !behind.is_empty() {
            let mut root = parts[..at - 1].to_vec();
            root.extend(["proxy".to_owned(), behind[0].clone()]);
            return Some((root, None));
        }
    }
    // The page, and what is below it.
    let end = match parts {
        [.., page, below]
            if PAGES.contains(&page.as_str()) && SUBPAGES.contains(&below.as_str()) =>
        {
            2
        }
        [.., page] if PAGES.contains(&page.as_str()) => 1,
        _ => return None,
    };
    Some((parts[..parts.len() - end].to_vec(), None))
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
    fn pages_lead_to_their_server_and_application() {
        let application =
            |id: &str, attempt: Option<&str>| Some((id.to_owned(), attempt.map(str::to_owned)));
        for (text, server, expected) in [
            ("http://hs:18080", "http://hs:18080", None),
            (
                "https://hs/history/app-123/1/jobs/?x",
                "https://hs",
                application("app-123", Some("1")),
            ),
            (
                "https://gw/spark/history/app-123/stages/stage/?id=3&attempt=0#dag",
                "https://gw/spark",
                application("app-123", None),
            ),
            ("https://hs/history/local-1/", "https://hs", application("local-1", None)),
            (
                "https://gw/history/history/app-1/2",
                "https://gw/history",
                application("app-1", Some("2")),
            ),
            ("https://gw/history", "https://gw/history", None),
            ("https://gw/history/eu/west", "https://gw/history/eu/west", None),
            (
                "http://hs/p/api/v1/applications/app-1/2/stages?details=true",
                "http://hs/p",
                application("app-1", Some("2")),
            ),
            ("http://hs/api/v1/applications", "http://hs", None),
            ("http://driver:4040/jobs/job/?id=3", "http://driver:4040", None),
            ("http://driver:4040/SQL/execution/?id=3", "http://driver:4040", None),
            (
                "http://rm:8088/proxy/application_1_0001/stages/?x",
                "http://rm:8088/proxy/application_1_0001",
                None,
            ),
            (
                "http://rm:8088/cluster/app/application_1_0001",
                "http://rm:8088/proxy/application_1_0001",
                None,
            ),
        ] {
            let page: Page = text.parse().expect(text);
            assert_eq!(
                (page.server.to_string().as_str(), page.application),
                (server, expected),
                "{text}"
            );
        }
        for text in ["https://me:hunter2@hs/history/app-1/jobs", "https://hs/?token=hunter2"] {
            let error = text.parse::<Page>().expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn pages_of_one_thing_say_of_which() {
        for (text, expected) in [
            ("http://driver:4040/SQL/execution/?id=7", Some(Shown::Sql(7))),
            ("http://driver:4040/SQL/execution?id=7&x=1#plan", Some(Shown::Sql(7))),
            ("https://hs/p/history/app-1/1/SQL/execution/?id=12", Some(Shown::Sql(12))),
            ("http://rm:8088/proxy/application_1_0001/SQL/execution/?id=0", Some(Shown::Sql(0))),
            ("https://hs/history/app-1/stages/stage/?id=3&attempt=0", Some(Shown::Stage(3))),
            ("http://driver:4040/jobs/job/?id=4", Some(Shown::Job(4))),
            ("http://driver:4040/jobs/job/?id=x", None),
            ("http://driver:4040/SQL/", None),
            ("http://driver:4040/stages/pool/?id=3", None),
        ] {
            assert_eq!(text.parse::<Page>().expect(text).shown, expected, "{text}");
        }
    }

    #[test]
    fn shown_without_a_trailing_slash() {
        assert_eq!(url("http://driver:4040/").to_string(), "http://driver:4040");
        assert_eq!(url("http://driver/").host_and_port(), "driver:80");
    }
}
