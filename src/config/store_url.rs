//! The address of a PostgreSQL that holds the store, checked where the
//! operator wrote it.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// PostgreSQL's own port.
const DEFAULT_PORT: u16 = 5432;

const EXAMPLE: &str = "postgres://spark_exporter@db.example.org:5432/spark_exporter";

/// `postgres://USER@HOST[:PORT]/DATABASE[?sslmode=MODE]`. A host that is a
/// percent-encoded path (`%2Frun%2Fpostgresql`) is the folder of the server's
/// socket.
///
/// It holds no password, so it can be shown anywhere.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    user: String,
    host: String,
    port: u16,
    database: String,
    tls: Option<bool>,
}

impl StoreUrl {
    pub fn user(&self) -> &str {
        &self.user
    }

    /// A name, an address, or the folder of a socket.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    pub fn is_socket(&self) -> bool {
        Path::new(&self.host).is_absolute()
    }

    /// Whether the connection is encrypted and the server's certificate
    /// checked: always, but for this machine itself and where the operator
    /// says `sslmode=disable`.
    pub fn tls(&self) -> bool {
        let local = self.is_socket()
            || self.host == "localhost"
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.tls.unwrap_or(!local)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.replace('/', "%2F")
        };
        write!(f, "postgres://{}@{host}:{}/{}", self.user, self.port, self.database)?;
        match self.tls {
            Some(true) => f.write_str("?sslmode=verify-full"),
            Some(false) => f.write_str("?sslmode=disable"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Nothing of a text that may hold a password is repeated in errors.
        let url = Url::parse(text.trim())
            .map_err(|error| format!("not a URL: {error}; write it as {EXAMPLE}"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(format!(
                "the URL of a store starts with postgres://; write it as {EXAMPLE}, or give a \
                 file by storage.path"
            ));
        }
        if url.password().is_some() {
            return Err("the URL holds a password, which would end up in logs and in the list of \
                        processes; give it by storage.password_file or in the environment as \
                        PGPASSWORD"
                .to_owned());
        }
        let part = |what: &str, text: &str| -> Result<String, String> {
            let text = decoded(text).ok_or_else(|| {
                format!("the {what} of the URL is not UTF-8 once its %XX are decoded")
            })?;
            if text.is_empty() {
                return Err(format!("the URL names no {what}; write it as {EXAMPLE}"));
            }
            if text.contains(char::is_control) {
                return Err(format!("the {what} of the URL holds a control character"));
            }
            Ok(text)
        };
        let host = part("host", url.host_str().unwrap_or_default())?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.contains(',') {
            return Err("the URL names several hosts: give one, behind which the primary is \
                        (a load balancer or a name that moves with it)"
                .to_owned());
        }
        Ok(Self {
            user: part("user", url.username())?,
            host,
            port: url.port().unwrap_or(DEFAULT_PORT),
            database: part("database", url.path().trim_start_matches('/'))?,
            tls: sslmode(&url)?,
        })
    }
}

/// Of the modes of `sslmode`, those that protect, and none.
fn sslmode(url: &Url) -> Result<Option<bool>, String> {
    let mut tls = None;
    for (key, value) in url.query_pairs() {
        if key != "sslmode" {
            return Err("the URL of a store takes sslmode=verify-full or sslmode=disable after \
                        its ?, and nothing else; a password goes into storage.password_file"
                .to_owned());
        }
        tls = Some(match &*value {
            "verify-full" => true,
            "disable" => false,
            "require" | "prefer" | "allow" | "verify-ca" => {
                return Err("sslmode of the URL: allow, prefer, require and verify-ca do not \
                            check who answers; leave sslmode out (verify-full, and \
                            storage.tls_config.ca_file for an authority of your own) or say \
                            disable"
                    .to_owned());
            }
            _ => return Err("sslmode of the URL is verify-full or disable".to_owned()),
        });
    }
    Ok(tls)
}

/// With its `%XX` as the bytes they stand for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |place: usize| char::from(*after.get(place)?).to_digit(16);
        if let (b'%', Some(high), Some(low)) = (first, hex(0), hex(1)) {
            bytes.push((high * 16 + low) as u8);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> StoreUrl {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn parts_are_read_and_shown() {
        let url = parse("postgresql://me%40team@db.example.org/spark?sslmode=verify-full");
        assert_eq!((url.user(), url.host(), url.port()), ("me@team", "db.example.org", 5432));
        assert_eq!(url.database(), "spark");
        let url = parse("postgres://me@%2Frun%2Fpostgresql:5433/spark");
        assert_eq!((url.host(), url.is_socket(), url.port()), ("/run/postgresql", true, 5433));
        let text = "postgres://me@db:5432/spark?sslmode=disable";
        assert_eq!(parse(text).to_string(), text);
        assert_eq!(
            parse("postgres://me@[::1]/spark").to_string(),
            "postgres://me@[::1]:5432/spark"
        );
    }

    #[test]
    fn only_this_machine_is_trusted_without_asking() {
        for (url, tls) in [
            ("postgres://me@db.example.org/spark", true),
            ("postgres://me@10.0.0.1/spark", true),
            ("postgres://me@localhost.example.org/spark", true),
            ("postgres://me@db/spark?sslmode=disable", false),
            ("postgres://me@localhost/spark", false),
            ("postgres://me@127.0.0.1/spark", false),
            ("postgres://me@[::1]/spark", false),
            ("postgres://me@%2Frun/spark", false),
            ("postgres://me@localhost/spark?sslmode=verify-full", true),
        ] {
            assert_eq!(parse(url).tls(), tls, "{url}");
        }
    }

    #[test]
    fn refused_with_what_to_do_and_without_the_secret() {
        for (url, part) in [
            ("postgres://me:hunter2@db/spark", "password_file"),
            ("postgres://me@db/spark?password=hunter2", "nothing else"),
            ("postgres://me@db/spark?sslmode=hunter2", "verify-full or disable"),
            ("postgres://me@db/spark?sslmode=require", "do not"),
            ("mysql://me:hunter2@db/spark", "postgres://"),
            ("postgres://db/spark", "no user"),
            ("postgres://me@db", "no database"),
            ("postgres://me@a,b/spark", "several hosts"),
            ("hunter2", "not a URL"),
            ("postgres://me@db:hunter2/spark", "not a URL"),
            ("postgres://me%00@db/spark", "control character"),
            ("postgres://me@db/%FF", "not UTF-8"),
        ] {
            let error = url.parse::<StoreUrl>().unwrap_err();
            assert!(error.contains(part), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
