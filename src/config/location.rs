//! Where event logs lie: a directory, a bucket, an HDFS, checked where the
//! operator wrote it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place that holds event logs, or one log.
///
/// It holds no credentials and no query, so it can be shown anywhere.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// Local or mounted.
    Path(PathBuf),
    Remote(RemoteLocation),
}

/// A place behind a URL. Its path is taken as it is written: `%20` is three
/// characters of a name, as in Hadoop's own paths.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteLocation {
    scheme: Scheme,
    authority: String,
    path: String,
}

/// How a place is reached. Several words may mean one service: each is shown
/// as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    S3,
    S3a,
    Gs,
    Abfs,
    Abfss,
    Az,
    Hdfs,
    WebHdfs,
    SWebHdfs,
}

/// What stands behind a [`Scheme`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    S3,
    Gcs,
    Azure,
    /// Hadoop's own protocol.
    Hdfs,
    /// HDFS over HTTP.
    WebHdfs,
}

impl Scheme {
    pub const ALL: [Self; 9] = [
        Self::S3,
        Self::S3a,
        Self::Gs,
        Self::Abfs,
        Self::Abfss,
        Self::Az,
        Self::Hdfs,
        Self::WebHdfs,
        Self::SWebHdfs,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::S3a => "s3a",
            Self::Gs => "gs",
            Self::Abfs => "abfs",
            Self::Abfss => "abfss",
            Self::Az => "az",
            Self::Hdfs => "hdfs",
            Self::WebHdfs => "webhdfs",
            Self::SWebHdfs => "swebhdfs",
        }
    }

    pub fn service(self) -> Service {
        match self {
            Self::S3 | Self::S3a => Service::S3,
            Self::Gs => Service::Gcs,
            Self::Abfs | Self::Abfss | Self::Az => Service::Azure,
            Self::Hdfs => Service::Hdfs,
            Self::WebHdfs | Self::SWebHdfs => Service::WebHdfs,
        }
    }
}

impl Service {
    /// The cargo feature that it needs; `None` where it is always built in.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Self::S3 => Some("s3"),
            Self::Gcs => Some("gcs"),
            Self::Azure => Some("azure"),
            Self::Hdfs => Some("hdfs"),
            Self::WebHdfs => None,
        }
    }

    /// Whether this program was built with it.
    pub fn is_built_in(self) -> bool {
        match self {
            Self::S3 => cfg!(feature = "s3"),
            Self::Gcs => cfg!(feature = "gcs"),
            Self::Azure => cfg!(feature = "azure"),
            Self::Hdfs => cfg!(feature = "hdfs"),
            Self::WebHdfs => true,
        }
    }

    /// For a person.
    pub fn name(self) -> &'static str {
        match self {
            Self::S3 => "S3",
            Self::Gcs => "Google Cloud Storage",
            Self::Azure => "Azure storage",
            Self::Hdfs => "HDFS",
            Self::WebHdfs => "WebHDFS",
        }
    }
}

impl Location {
    /// Why this build cannot read it, and what to do; `None` where it can.
    pub fn unsupported(&self) -> Option<String> {
        let Self::Remote(remote) = self else { return None };
        let service = remote.scheme.service();
        let feature = service.feature().filter(|_| !service.is_built_in())?;
        Some(format!(
            "this spark-exporter was built without {}; build it with `cargo build --release \
             --features {feature}`, or mount the place as a directory",
            service.name()
        ))
    }
}

impl RemoteLocation {
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Bucket, `container@account.host`, or `host:port` (of WebHDFS several,
    /// separated by commas).
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Without a slash at its ends; empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for RemoteLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

impl fmt::Debug for RemoteLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a location is empty; give a directory or a URL such as \
                        s3://bucket/spark-events"
                .to_owned());
        }
        match split_scheme(text) {
            None => Ok(Self::Path(PathBuf::from(text))),
            Some(("file", rest)) => file(rest),
            Some((scheme, rest)) => {
                let lower = scheme.to_ascii_lowercase();
                match Scheme::ALL.into_iter().find(|known| known.as_str() == lower) {
                    Some(scheme) => remote(scheme, rest).map(Self::Remote),
                    None => Err(unknown(&lower)),
                }
            }
        }
    }
}

/// Scheme and what follows its colon; `None` for a path.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(plain);
    // `file:/x` and `dbfs:/x` are URLs too; a path with a colon in it is none.
    (is_scheme && rest.starts_with('/')).then_some((scheme, rest))
}

fn file(rest: &str) -> Result<Location, String> {
    let url = Url::parse(&format!("file:{rest}"))
        .map_err(|error| format!("not a file: URL: {error}; write it as file:/path"))?;
    url.to_file_path().map(Location::Path).map_err(|()| {
        "a file: URL names no other host; write it as file:/path, or give the path itself"
            .to_owned()
    })
}

/// Nothing of the rest is repeated in errors before it is known to hold no
/// secret.
fn remote(scheme: Scheme, rest: &str) -> Result<RemoteLocation, String> {
    let word = scheme.as_str();
    let example = example(scheme);
    let Some(rest) = rest.strip_prefix("//") else {
        return Err(format!("a {word}: location is written with two slashes: {example}"));
    };
    if rest.contains(['?', '#']) {
        return Err(format!(
            "a {word}:// location has no query or fragment (? or #); give the place alone \
             ({example}), and secrets as object_store or http_config of its cluster"
        ));
    }
    if rest.contains(char::is_control) {
        return Err(format!("a {word}:// location is one line of text: {example}"));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if path.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(format!("a {word}:// location has no `.` or `..` in its path: {example}"));
    }
    check_authority(scheme, authority).map_err(|why| format!("{why}; write it as {example}"))?;
    Ok(RemoteLocation { scheme, authority: authority.to_owned(), path: path.join("/") })
}

fn check_authority(scheme: Scheme, authority: &str) -> Result<(), String> {
    let word = scheme.as_str();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    // The container stands where a user would.
    let container = scheme.service() == Service::Azure && user.is_some();
    if let Some(user) = user
        && (!container || user.contains([':', '@']))
    {
        return Err(format!(
            "the {word}:// location holds credentials, which would end up in logs; give them by \
             the environment, or as object_store, webhdfs or http_config of its cluster"
        ));
    }
    let name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    match scheme.service() {
        Service::S3 | Service::Gcs => match name(host) {
            true => Ok(()),
            false if host.is_empty() => Err(format!("the {word}:// location names no bucket")),
            false => Err(format!("the bucket of the {word}:// location is not a bucket's name")),
        },
        Service::Azure => match (user, name(host)) {
            (Some(container), true) if name(container) && host.contains('.') => Ok(()),
            (None, true) if !host.contains('.') => Ok(()),
            _ => Err(format!("the {word}:// location names no container")),
        },
        Service::Hdfs => server(host, false).map_err(|why| format!("the {word}:// location {why}")),
        Service::WebHdfs => host.split(',').try_for_each(|host| {
            server(host, true).map_err(|why| format!("the {word}:// location {why}"))
        }),
    }
}

/// A host with or without a port; `[::1]:9870` too.
fn server(text: &str, needs_port: bool) -> Result<(), &'static str> {
    let url = Url::parse(&format!("http://{text}/")).map_err(|_| "names no host")?;
    let bare = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:[]".contains(c));
    if !bare || url.host_str().is_none_or(str::is_empty) {
        return Err("names no host");
    }
    let port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if needs_port && !port { Err("needs the port of the NameNode's web server") } else { Ok(()) }
}

/// How a location of this scheme looks.
fn example(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => "s3://bucket/spark-events",
        Scheme::S3a => "s3a://bucket/spark-events",
        Scheme::Gs => "gs://bucket/spark-events",
        Scheme::Abfs => "abfs://container@account.dfs.core.windows.net/spark-events",
        Scheme::Abfss => "abfss://container@account.dfs.core.windows.net/spark-events",
        Scheme::Az => "az://container/spark-events",
        Scheme::Hdfs => "hdfs://namenode:8020/spark-events",
        Scheme::WebHdfs => "webhdfs://namenode:9870/spark-events",
        Scheme::SWebHdfs => "swebhdfs://namenode:9871/spark-events",
    }
}

fn unknown(scheme: &str) -> String {
    let hint = match scheme {
        "http" | "https" => {
            "a History Server is given as --spark.url (history_servers, urls), WebHDFS as \
             webhdfs://host:9870/path or swebhdfs://host:9871/path"
        }
        "s3n" => "write s3:// instead",
        "wasb" | "wasbs" | "adl" | "azure" => {
            "write abfss://container@account.dfs.core.windows.net/path instead"
        }
        "dbfs" => "give the bucket behind it, or /dbfs/path where it is mounted",
        "viewfs" | "har" | "httpfs" => "give the hdfs:// or webhdfs:// location behind it",
        _ => {
            let known = Scheme::ALL.map(Scheme::as_str).join("://, ");
            return format!(
                "event logs are not read from {scheme}://; a location is a path, file:, {known}://"
            );
        }
    };
    format!("event logs are not read from {scheme}://: {hint}")
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Location {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn places_are_shown_as_they_were_written() {
        for text in [
            "/mnt/spark-events",
            "relative/logs",
            "odd:name",
            "s3://bucket",
            "s3a://bucket.with.dots/a/b",
            "gs://bucket_1/a b",
            "abfss://logs@account.dfs.core.windows.net/spark/events",
            "az://container/x",
            "hdfs://nameservice/spark-events",
            "hdfs://nn:8020",
            "webhdfs://nn1:9870,nn2:9870/spark-events",
            "swebhdfs://[::1]:9871/x",
        ] {
            assert_eq!(location(text).to_string(), text);
        }
        assert_eq!(location(" s3://b//x/ ").to_string(), "s3://b/x");
        assert_eq!(location("S3://b/x").to_string(), "s3://b/x");
        for text in
            ["file:/var/log/a%20b", "file:///var/log/a%20b", "file://localhost/var/log/a%20b"]
        {
            assert_eq!(location(text), Location::Path("/var/log/a b".into()), "{text}");
        }
    }

    #[test]
    fn parts_of_a_remote_place() {
        let Location::Remote(place) = location("abfs://logs@a.dfs.core.windows.net/x/y/") else {
            panic!("a path");
        };
        assert_eq!(place.scheme().service(), Service::Azure);
        assert_eq!(place.authority(), "logs@a.dfs.core.windows.net");
        assert_eq!(place.path(), "x/y");
    }

    #[test]
    fn secrets_are_refused_and_not_repeated() {
        for text in [
            "s3://AKIA:hunter2@bucket/x",
            "s3://hunter2@bucket/x",
            "s3://bucket/x?X-Amz-Signature=hunter2",
            "s3://bucket/x#hunter2",
            "gs://hunter2@bucket",
            "abfss://logs:hunter2@account.dfs.core.windows.net/x",
            "abfss://logs@account.dfs.core.windows.net/x?sig=hunter2",
            "webhdfs://user:hunter2@nn:9870/x",
            "hdfs://hunter2@nn:8020/x",
            "ftp://user:hunter2@host/x",
            "https://user:hunter2@host/x",
            "s3:/hunter2",
        ] {
            let error = text.parse::<Location>().expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn refusals_teach() {
        for (text, words) in [
            ("", "s3://bucket/spark-events"),
            ("s3://", "names no bucket"),
            ("s3:///x", "names no bucket"),
            ("s3://a,b/x", "not a bucket's name"),
            ("s3n://bucket/x", "write s3://"),
            ("https://host/x", "--spark.url"),
            ("ftp://host/x", "swebhdfs://"),
            ("dbfs:/cluster-logs", "/dbfs/path"),
            ("wasbs://c@a.blob.core.windows.net/x", "abfss://container@account"),
            ("abfss:///x", "names no container"),
            ("abfss://a.dfs.core.windows.net/x", "names no container"),
            ("abfss://logs@account/x", "names no container"),
            ("webhdfs://namenode/x", "port"),
            ("webhdfs://:9870/x", "names no host"),
            ("hdfs:///x", "names no host"),
            ("gs://bucket/../x", "`..`"),
            ("file://host/x", "no other host"),
        ] {
            let error = text.parse::<Location>().expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_service_that_is_not_built_in_is_named_with_its_feature() {
        for text in ["s3://b", "gs://b", "az://c", "hdfs://nn:8020"] {
            let location = location(text);
            let Location::Remote(remote) = &location else { panic!("a path") };
            let service = remote.scheme().service();
            match location.unsupported() {
                None => assert!(service.is_built_in()),
                Some(why) => {
                    assert!(!service.is_built_in());
                    let feature = format!("--features {}", service.feature().expect("a feature"));
                    assert!(why.contains(&feature), "{why}");
                }
            }
        }
        assert_eq!(location("webhdfs://nn:9870/x").unsupported(), None);
        assert_eq!(location("/x").unsupported(), None);
    }
}
