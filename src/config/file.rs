//! The configuration file (`--config.file`): YAML, unknown keys refused with
//! their line.
//!
//! ```yaml
//! clusters:
//!   - name: production
//!     history_servers: [https://history.example.org]
//!     http_config:
//!       basic_auth:
//!         username: exporter
//!         password_file: /etc/spark-exporter/password
//!   - name: batch
//!     event_log_dirs: [/mnt/spark-events, s3://logs/spark-events]
//! retention: 30m
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::thresholds::{Written, check_overrides, for_name};
use super::{
    HttpConfig, Kubernetes, Limits, Location, Names, ObjectStoreConfig, Otlp, Prices, ServerUrl,
    Sharding, Span, Storage, ThresholdOverride, Thresholds, Web, WebHdfsConfig,
};

/// The name of the cluster that sources on the command line form.
pub const DEFAULT_CLUSTER: &str = "default";

/// Everything the daemon is told, by file and flags.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub clusters: Vec<Cluster>,
    pub intervals: Intervals,
    pub read: Read,
    pub storage: Storage,
    /// Which part of the runs this daemon covers, where several divide them.
    pub sharding: Sharding,
    pub retention: Retention,
    /// How names of applications become names of jobs.
    pub names: Names,
    /// What computing costs.
    pub prices: Prices,
    pub limits: Limits,
    pub thresholds: Thresholds,
    pub web: Web,
    /// What is sent by OTLP, beside what Prometheus reads.
    pub otlp: Otlp,
    /// For applications by their name, laid over `thresholds`.
    pub threshold_overrides: Vec<ThresholdOverride>,
}

/// Sources that show the same applications: a resource manager, its History
/// Server, its log directory. A run seen by two of them is one run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cluster {
    /// The `spark_cluster` label.
    pub name: String,
    /// URLs of driver UIs, any path prefix included.
    pub drivers: Vec<ServerUrl>,
    /// URLs of History Servers, any path prefix included.
    pub history_servers: Vec<ServerUrl>,
    /// Either of them: found out by asking (`--spark.url`).
    pub urls: Vec<ServerUrl>,
    /// Where event logs lie: directories, buckets, HDFS.
    pub event_log_dirs: Vec<Location>,
    /// A Kubernetes cluster whose pods show the drivers.
    pub kubernetes: Option<Kubernetes>,
    /// How to talk to this cluster's servers (WebHDFS among them), in the
    /// words of Prometheus.
    pub http_config: HttpConfig,
    /// How to talk to the object stores of `event_log_dirs`.
    pub object_store: ObjectStoreConfig,
    /// How to talk to their WebHDFS.
    pub webhdfs: WebHdfsConfig,
}

/// How often each source is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Intervals {
    /// A running driver; not below 10 s, since Spark's own numbers change
    /// with its heartbeats.
    pub driver: Span,
    /// A History Server's two lists.
    pub history_server: Span,
    /// The listing of an event-log directory.
    pub event_log_dir: Span,
    /// A request to a driver.
    pub driver_timeout: Span,
    /// A request to a History Server, which replays a whole log before its
    /// first answer about an application.
    pub history_server_timeout: Span,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            driver: Span::seconds(15),
            history_server: Span::seconds(30),
            event_log_dir: Span::seconds(30),
            driver_timeout: Span::seconds(10),
            history_server_timeout: Span::seconds(120),
        }
    }
}

/// Which runs are read, how, and which of them are taken to be running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Read {
    /// Runs that ended longer ago are not read: 24 h for History Servers
    /// where not set, no limit for directories.
    pub lookback: Option<Span>,
    /// Whether a finished run whose log a History Server does not give, or
    /// gives damaged or too large, is read from its REST API instead. The
    /// server then replays the whole log, and drops what a person was looking
    /// at from its cache.
    pub rest_fallback: bool,
    /// A log without an end whose driver wrote nothing for so long is not
    /// taken to be running: its run is lost. Spark writes a log out when a job or stage ends
    /// or an executor comes or goes, but task by task only as its buffers
    /// fill: an hour with none of these is a hung or dead driver, or one very
    /// long stage.
    pub stale_after: Span,
}

impl Default for Read {
    fn default() -> Self {
        Self { lookback: None, rest_fallback: true, stale_after: Span::seconds(3_600) }
    }
}

/// How long a finished run keeps its series: from its end, or from when it
/// was read, whichever is later.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Retention(pub Span);

impl Default for Retention {
    fn default() -> Self {
        Self(Span::seconds(30 * 60))
    }
}

/// Why a configuration was refused. Each says where and what to do.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the configuration file {path} is not valid:\n{message}")]
    Invalid { path: PathBuf, message: String },
    #[error("{0}")]
    Refused(String),
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let invalid = |message| ConfigError::Invalid { path: path.to_owned(), message };
        let config = Self::parse(&text).map_err(invalid)?;
        config.check().map_err(invalid)?;
        Ok(config)
    }

    /// From YAML text; the message names line and column and, for an unknown
    /// key, the nearest known one. An empty file is the default.
    pub fn parse(text: &str) -> Result<Self, String> {
        from_yaml_by(text, Self::read)
    }

    fn read(text: &str) -> Result<Self, serde_saphyr::Error> {
        let mut config: Self = serde_saphyr::from_str(text)?;
        if !config.threshold_overrides.is_empty() {
            let written: Written = serde_saphyr::from_str(text)?;
            written.tell(&mut config.threshold_overrides);
        }
        Ok(config)
    }

    /// The thresholds for an application of this name.
    pub fn thresholds_for(&self, app_name: &str) -> Cow<'_, Thresholds> {
        for_name(&self.thresholds, &self.threshold_overrides, app_name)
    }

    /// What types alone cannot refuse.
    pub fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for (number, cluster) in self.clusters.iter().enumerate() {
            let what = if cluster.name.is_empty() {
                return Err(format!(
                    "clusters[{number}] has no name: it becomes the label spark_cluster, so give \
                     one, for example `name: {DEFAULT_CLUSTER}`"
                ));
            } else {
                format!("cluster {:?}", cluster.name)
            };
            if !names.insert(&cluster.name) {
                return Err(format!(
                    "two clusters are named {:?}: names tell them apart",
                    cluster.name
                ));
            }
            let urls = [&cluster.drivers, &cluster.history_servers, &cluster.urls];
            if urls.iter().all(|urls| urls.is_empty())
                && cluster.event_log_dirs.is_empty()
                && cluster.kubernetes.is_none()
            {
                return Err(format!(
                    "{what} has no source: give drivers, history_servers, urls, event_log_dirs \
                     or kubernetes"
                ));
            }
            cluster.http_config.validate().map_err(|why| format!("{what}: http_config: {why}"))?;
            cluster
                .object_store
                .validate()
                .map_err(|why| format!("{what}: object_store: {why}"))?;
            if let Some(kubernetes) = &cluster.kubernetes {
                kubernetes.validate().map_err(|why| format!("{what}: kubernetes: {why}"))?;
            }
            for location in &cluster.event_log_dirs {
                if let Some(why) = location.unsupported() {
                    return Err(format!("{what}: event_log_dirs: {location}: {why}"));
                }
            }
        }
        check_overrides(&self.thresholds, &self.threshold_overrides)?;
        self.names.validate()?;
        self.prices.validate()?;
        if self.read.stale_after < Span::seconds(60) {
            return Err(format!(
                "read.stale_after is {}: the least is 60s, since Spark buffers its logs",
                self.read.stale_after
            ));
        }
        self.storage.validate()?;
        self.sharding.validate().map_err(|why| format!("sharding: {why}"))?;
        self.otlp.validate()?;
        let intervals = &self.intervals;
        for (name, span, least) in [
            ("driver", intervals.driver, 10),
            ("history_server", intervals.history_server, 5),
            ("event_log_dir", intervals.event_log_dir, 1),
            ("driver_timeout", intervals.driver_timeout, 1),
            ("history_server_timeout", intervals.history_server_timeout, 1),
        ] {
            if span < Span::seconds(least) {
                return Err(format!("intervals.{name} is {span}: the least is {least}s"));
            }
        }
        let limits = &self.limits;
        for (name, value) in [
            ("tasks_per_stage", limits.tasks_per_stage),
            ("stages", limits.stages),
            ("applications", limits.applications),
            ("series", limits.series),
            ("app_names", limits.app_names),
            ("label_length", limits.label_length),
            ("concurrent_logs", limits.concurrent_logs),
        ] {
            if value == 0 {
                return Err(format!("limits.{name} is 0: nothing could be read"));
            }
        }
        if limits.spool_size.bytes() == 0 {
            return Err("limits.spool_size is 0: no History Server's log could be read".to_owned());
        }
        Ok(())
    }

    /// Whether there is anything to watch.
    pub fn has_sources(&self) -> bool {
        !self.clusters.is_empty()
    }
}

/// A configuration from YAML text; an empty one is the default. The message
/// names line and column, quotes no value (one may be a password) and, for an
/// unknown key, names the nearest known one.
pub(super) fn from_yaml<T: Default + DeserializeOwned>(text: &str) -> Result<T, String> {
    from_yaml_by(text, |text| serde_saphyr::from_str(text))
}

fn from_yaml_by<T: Default>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, serde_saphyr::Error>,
) -> Result<T, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(T::default());
    }
    read(text).map_err(|error| {
        // Without the snippet: its lines may hold a password.
        let message = without_values(&error.without_snippet().to_string());
        match hint(&message) {
            Some(known) => format!("{message}\nhint: did you mean `{known}`?"),
            None => message,
        }
    })
}

/// Without the value that serde quotes when a text stands where something else
/// should (`basic_auth: hunter2`), or a word that is none of a list.
fn without_values(message: &str) -> String {
    if let Some((before, after)) = message.split_once("unknown variant `") {
        let rest = after.split_once("`, expected").map_or("", |(_, rest)| rest);
        return format!("{before}not a word that is known here, expected{rest}");
    }
    match message.split_once("invalid type: string \"") {
        Some((before, after)) => {
            let rest = after.split_once("\", expected").map_or("", |(_, rest)| rest);
            format!("{before}invalid type: a text, expected{rest}")
        }
        None => message.to_owned(),
    }
}

/// From "unknown field `x`, expected one of a, b": the nearest of them.
fn hint(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("unknown field `")?;
    let (wrong, rest) = rest.split_once('`')?;
    let (_, known) = rest.split_once("expected ")?;
    known
        .lines()
        .next()?
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|known| !matches!(*known, "" | "one" | "of" | "or"))
        .map(|known| (strsim::jaro_winkler(wrong, known), known))
        .filter(|(likeness, _)| *likeness >= 0.75)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::thresholds::{DataSkew, Straggler};

    #[test]
    fn everything_that_can_be_said() {
        let config = Config::parse(
            "clusters:\n\
             - name: production\n\
             \x20 drivers: ['http://driver:4040']\n\
             \x20 history_servers: [https://history.example.org/spark]\n\
             \x20 event_log_dirs: [/mnt/events]\n\
             \x20 http_config:\n\
             \x20   authorization: {type: Bearer, credentials_file: /run/token}\n\
             intervals: {driver: 30s}\n\
             read: {lookback: 7d, rest_fallback: false}\n\
             storage: {temp_path: /var/tmp}\n\
             retention: 2h\n\
             limits: {response_size: 32MiB}\n\
             thresholds:\n\
             \x20 data_skew: {run_time_ratio: 6}\n\
             \x20 gc_pressure: {enabled: false}\n",
        )
        .unwrap();
        config.check().unwrap();
        assert_eq!(config.retention.0, Span::seconds(7200));
        assert_eq!(config.read.lookback, Some(Span::seconds(7 * 86_400)));
        assert!(!config.read.rest_fallback && Config::default().read.rest_fallback);
        assert_eq!(config.storage.temp_path(), Path::new("/var/tmp"));
        let thresholds = &config.thresholds;
        assert_eq!(thresholds.data_skew, DataSkew { run_time_ratio: 6.0, ..DataSkew::default() });
        assert!(!thresholds.gc_pressure.enabled);
        assert_eq!(thresholds.straggler, Straggler::default());
    }

    #[test]
    fn empty_is_the_default() {
        assert!(!Config::parse("# nothing yet\n").unwrap().has_sources());
    }

    #[test]
    fn unknown_keys_are_refused_with_line_and_hint() {
        let error = Config::parse("retention: 1h\nclusters:\n- nmae: x\n").unwrap_err();
        assert!(error.contains("nmae") && error.contains("did you mean `name`?"), "{error}");
        assert!(error.contains('3'), "names line 3: {error}");
        let error = Config::parse("thresholds:\n  data_skew:\n    run_ratio: 3\n").unwrap_err();
        assert!(error.contains("did you mean `run_time_ratio`?"), "{error}");
    }

    #[test]
    fn no_value_is_quoted() {
        for yaml in [
            "clusters:\n- name: x\n  http_config:\n    basic_auth: hunter2\n",
            "clusters:\n- name: x\n  http_config:\n    basic_auth:\n      password: hunter2\n      usr: me\n",
        ] {
            let error = Config::parse(yaml).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn refuses_with_the_reason() {
        for (yaml, part) in [
            ("clusters: [{drivers: ['http://x:1']}]", "has no name"),
            ("clusters: [{name: a}]", "has no source"),
            (
                "clusters: [{name: a, urls: ['http://x']}, {name: a, urls: ['http://y']}]",
                "two clusters",
            ),
            ("intervals: {driver: 1s}", "the least is 10s"),
            ("limits: {series: 0}", "limits.series is 0"),
            ("limits: {spool_size: 0B}", "limits.spool_size is 0"),
        ] {
            let error = Config::parse(yaml).unwrap().check().unwrap_err();
            assert!(error.contains(part), "{yaml}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        for (url, part) in [
            ("ftp://x", "starts with http:// or https://"),
            ("http://:4040", "host"),
            ("http://u:hunter2@x", "basic_auth"),
        ] {
            let yaml = format!("clusters: [{{name: a, drivers: ['{url}']}}]");
            let error = Config::parse(&yaml).unwrap_err();
            assert!(error.contains(part) && !error.contains("hunter2"), "{yaml}: {error}");
        }
        for yaml in ["retention: soon", "limits: {response_size: big}", "clusters: 3", "["] {
            assert!(Config::parse(yaml).is_err(), "{yaml}");
        }
    }
}
