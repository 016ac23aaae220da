//! `spark-exporter check-config FILE`.

mod kubernetes;

use std::io::Write;
use std::path::Path;

use super::{Outcome, otlp};
use crate::config::otlp::resolve;
use crate::config::{Cluster, Config, Decided, Location, NameRule, Service, Storage, Within};
use crate::metrics::app_name;
use crate::report::privacy;

/// Prints what the file means, and what it makes of these names of
/// applications; or fails with where it is wrong.
pub(super) fn run(path: &Path, app_names: &[String]) -> anyhow::Result<Outcome> {
    let config = Config::load(path)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} is valid", path.display())?;
    for cluster in &config.clusters {
        writeln!(
            out,
            "  cluster {:?}: {}, {}, {}, {}{}",
            cluster.name,
            plural(cluster.drivers.len(), "driver"),
            plural(cluster.history_servers.len(), "History Server"),
            plural(cluster.urls.len(), "URL to find out about"),
            plural(cluster.event_log_dirs.len(), "place of event logs"),
            if cluster.kubernetes.is_some() { ", Kubernetes" } else { "" },
        )?;
        if let Some(kubernetes) = &cluster.kubernetes {
            for line in kubernetes::means(kubernetes) {
                writeln!(out, "    Kubernetes: {line}")?;
            }
        }
        for location in &cluster.event_log_dirs {
            writeln!(out, "    event logs: {location} ({})", means(location, cluster))?;
        }
    }
    if !config.has_sources() {
        writeln!(out, "  no cluster: sources must come from --spark.url or --event-log.dir")?;
    }
    if config.clusters.iter().any(|cluster| !cluster.history_servers.is_empty()) {
        let fallback = if config.read.rest_fallback { "" } else { ", never by REST" };
        writeln!(
            out,
            "  logs of History Servers lie in {} while they are read, up to {} of {}{fallback}",
            config.storage.temp_path().display(),
            config.limits.concurrent_logs,
            config.limits.spool_size
        )?;
    }
    writeln!(out, "  finished runs keep their series for {}", config.retention.0)?;
    writeln!(out, "  {}", remembers(&config.storage))?;
    if config.sharding.is_divided() {
        writeln!(out, "  covers {}, by the names of applications", config.sharding)?;
    }
    let sent = resolve(&config.otlp, &|name| std::env::var_os(name)).map_err(anyhow::Error::msg)?;
    otlp::explain(&mut out, &sent)?;
    names(&mut out, &config)?;
    if config.prices.are_given() {
        let prices = &config.prices;
        let price = |price: Option<f64>, of: &str| {
            price.map(|price| format!("{price} {} for {of}", prices.currency))
        };
        let prices: Vec<String> =
            [price(prices.core_hour, "a core-hour"), price(prices.gib_hour, "a GiB-hour")]
                .into_iter()
                .flatten()
                .collect();
        writeln!(out, "  prices: {}", prices.join(", "))?;
    }
    for name in app_names {
        tried(&mut out, &config, name)?;
    }
    Ok(Outcome::Good)
}

fn names(out: &mut impl Write, config: &Config) -> std::io::Result<()> {
    for (place, rule) in config.names.rules.iter().enumerate() {
        let (pattern, replacement) = (rule.pattern(), rule.replacement());
        writeln!(out, "  names: rule {}: {pattern:?} becomes {replacement:?}", place + 1)?;
    }
    let defaults = match (config.names.default_rules, config.names.rules.is_empty()) {
        (false, _) => "stay as they are",
        (true, true) => "lose dates, ids and numbers of one run (default rules)",
        (true, false) => "that no rule fits lose dates, ids and numbers of one run (default rules)",
    };
    writeln!(out, "  names: applications' names {defaults}")
}

/// The label, as metrics have it, and which rule made it.
fn tried(out: &mut impl Write, config: &Config, name: &str) -> std::io::Result<()> {
    let label = app_name(name, &config.names, &config.limits);
    let because = match config.names.decide(&privacy::redacted(name)).1 {
        Decided::Rule(place) => {
            let pattern = config.names.rules.get(place).map(NameRule::pattern).unwrap_or_default();
            format!("by rule {}, {pattern:?}", place + 1)
        }
        Decided::Defaults => "by the default rules".to_owned(),
        Decided::Empty => "since it is empty".to_owned(),
        Decided::Nothing => "no rule fits".to_owned(),
    };
    writeln!(out, "  app_name {:?} becomes {:?}: {because}", privacy::plain(name), &*label)?;
    for cluster in &config.clusters {
        if config.sharding.is_divided() {
            let owner = config.sharding.owner_of(&cluster.name, &label);
            writeln!(out, "    in cluster {}: of shard {owner}", cluster.name)?;
        }
        if let Some(within) = config.names.expected_within(&cluster.name, &label) {
            let due = match within {
                Within::Never => "nothing is expected of it".to_owned(),
                Within::Span(span) => format!("has to succeed every {span}"),
            };
            writeln!(out, "    in cluster {}: {due}", cluster.name)?;
        }
    }
    Ok(())
}

/// Where the store lies and what it keeps.
fn remembers(storage: &Storage) -> String {
    let place = match (&storage.url, &storage.path) {
        (Some(url), _) => format!(
            "in {url} ({}, up to {} connections{})",
            if url.tls() { "TLS" } else { "not encrypted" },
            storage.pool_size,
            if cfg!(feature = "postgres") { "" } else { "; NOT in this build, see --help" }
        ),
        (None, Some(path)) => format!("in the file {}", path.display()),
        (None, None) => "in memory, until the daemon ends".to_owned(),
    };
    let retention = &storage.retention;
    let size = retention.size.map_or_else(String::new, |size| format!(" and up to {size}"));
    format!("runs are remembered {place}, for {}{size}", retention.time)
}

/// How a place is reached, without a secret.
fn means(location: &Location, cluster: &Cluster) -> String {
    let Location::Remote(remote) = location else { return "a directory".to_owned() };
    let service = remote.scheme().service();
    match service {
        Service::WebHdfs => {
            let user = cluster.webhdfs.user.as_deref();
            let user = user.map_or(String::new(), |user| format!(", as user {user}"));
            format!("WebHDFS{user}, http_config of the cluster")
        }
        Service::Hdfs => "HDFS, settings of HADOOP_CONF_DIR".to_owned(),
        Service::S3 | Service::Gcs | Service::Azure => {
            let config = &cluster.object_store;
            let keys: Vec<&str> = config
                .options
                .keys()
                .chain(config.secret_files.keys())
                .map(String::as_str)
                .collect();
            match keys.as_slice() {
                [] => format!("{}, settings of the environment", service.name()),
                keys => format!("{}, the environment and {}", service.name(), keys.join(", ")),
            }
        }
    }
}

fn plural(count: usize, what: &str) -> String {
    match (count, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        // "URLs to find out about", "places of event logs".
        (_, Some((noun @ ("URL" | "place"), rest))) => format!("{count} {noun}s {rest}"),
        _ => format!("{count} {what}s"),
    }
}
