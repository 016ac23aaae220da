//! Where the program may write, and what it remembers there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::http::TlsConfig;
use super::store_url::StoreUrl;
use super::units::{Size, Span};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Folder in which downloads of History Servers lie, without names, while
    /// they are read; the system's temporary folder where not set.
    pub temp_path: Option<PathBuf>,
    /// File of the embedded store; in memory where neither this nor `url` is
    /// set.
    pub path: Option<PathBuf>,
    /// A PostgreSQL that holds the store instead, for several daemons that
    /// share one memory.
    pub url: Option<StoreUrl>,
    /// File with the password for `url`, read at each connect; a line end
    /// after it is left out. `PGPASSWORD` of the environment where not set.
    pub password_file: Option<PathBuf>,
    /// TLS towards `url`.
    pub tls_config: TlsConfig,
    /// Connections to `url` at the same time.
    pub pool_size: usize,
    /// How long to wait for a connection to `url`.
    pub connect_timeout: Span,
    /// How long `url` may take for one statement.
    pub statement_timeout: Span,
    pub retention: StorageRetention,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            temp_path: None,
            path: None,
            url: None,
            password_file: None,
            tls_config: TlsConfig::default(),
            pool_size: 4,
            connect_timeout: Span::seconds(10),
            statement_timeout: Span::seconds(30),
            retention: StorageRetention::default(),
        }
    }
}

/// How long, and how much, is remembered of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageRetention {
    /// From a run's end, or from when it was read, whichever is later.
    pub time: Span,
    /// Of all runs; beyond it the oldest are forgotten. No limit where not
    /// set, but for 64 MiB in memory.
    pub size: Option<Size>,
}

impl Default for StorageRetention {
    fn default() -> Self {
        Self { time: Span::seconds(30 * 86_400), size: None }
    }
}

impl Storage {
    /// The folder for what does not outlive its reading.
    pub fn temp_path(&self) -> PathBuf {
        self.temp_path.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// What contradicts itself, named by its keys.
    pub fn validate(&self) -> Result<(), String> {
        if self.path.is_some() && self.url.is_some() {
            return Err("storage.path and storage.url exclude each other: the store is a file or \
                        a PostgreSQL; leave one out"
                .to_owned());
        }
        if self.path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err("storage.path is empty: name a file, or leave it out".to_owned());
        }
        if self.url.is_none() && self.password_file.is_some() {
            return Err("storage.password_file belongs to storage.url, which is not set".to_owned());
        }
        if self.url.as_ref().is_none_or(|url| !url.tls()) && self.tls_config != TlsConfig::default()
        {
            return Err("storage.tls_config belongs to a storage.url with TLS: give one, with \
                        ?sslmode=verify-full where it is this machine"
                .to_owned());
        }
        self.tls_config.validate().map_err(|why| format!("storage.{why}"))?;
        if self.tls_config.insecure_skip_verify {
            return Err("storage.tls_config.insecure_skip_verify is not there for a store: give \
                        the authority of its certificate as ca_file, or sslmode=disable in a \
                        network that you trust"
                .to_owned());
        }
        if !(1..=64).contains(&self.pool_size) {
            return Err(format!("storage.pool_size is {}: give 1 to 64", self.pool_size));
        }
        for (name, span, least) in [
            ("connect_timeout", self.connect_timeout, 1),
            ("statement_timeout", self.statement_timeout, 1),
            ("retention.time", self.retention.time, 3_600),
        ] {
            if span < Span::seconds(least) {
                return Err(format!(
                    "storage.{name} is {span}: the least is {}",
                    Span::seconds(least)
                ));
            }
        }
        if self.retention.size.is_some_and(|size| size < Size::mib(1)) {
            return Err("storage.retention.size: the least is 1MiB".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn check(yaml: &str) -> Result<(), String> {
        Config::parse(yaml)?.check()
    }

    #[test]
    fn both_places_are_read() {
        for yaml in [
            "storage: {path: /var/lib/spark-exporter/store, retention: {time: 90d, size: 1GiB}}",
            "storage:\n  url: postgres://me@db.example.org/spark\n  password_file: /run/password\n  \
             tls_config: {ca_file: /ca.pem}\n  pool_size: 8\n  connect_timeout: 5s\n",
            "storage: {url: 'postgres://me@localhost/spark?sslmode=verify-full', tls_config: \
             {ca_file: /ca.pem}}",
        ] {
            assert_eq!(check(yaml), Ok(()), "{yaml}");
        }
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        for (yaml, part) in [
            ("{path: /a, url: 'postgres://me@db/spark'}", "exclude each other"),
            ("{path: ''}", "is empty"),
            ("{path: /a, password_file: /b}", "belongs to storage.url"),
            ("{tls_config: {ca_file: /b}}", "with TLS"),
            ("{url: 'postgres://me@localhost/spark', tls_config: {ca_file: /b}}", "with TLS"),
            ("{url: 'postgres://me@db/spark', tls_config: {cert_file: /b}}", "storage.tls_config"),
            (
                "{url: 'postgres://me@db/spark', tls_config: {insecure_skip_verify: true}}",
                "ca_file",
            ),
            ("{url: 'postgres://me:hunter2@db/spark'}", "password_file"),
            ("{pool_size: 0}", "1 to 64"),
            ("{retention: {time: 5m}}", "the least is 1h"),
            ("{retention: {size: 1KiB}}", "the least is 1MiB"),
            ("{connect_timeout: 0s}", "the least is 1s"),
        ] {
            let error = check(&format!("storage: {yaml}\n")).unwrap_err();
            assert!(error.contains(part) && !error.contains("hunter2"), "{yaml}: {error}");
        }
    }
}
