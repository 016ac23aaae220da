//! `spark-exporter check-config FILE`.

use std::io::Write;
use std::path::Path;

use super::Outcome;
use crate::config::Config;

/// Prints what the file means, or fails with where it is wrong.
pub(super) fn run(path: &Path) -> anyhow::Result<Outcome> {
    let config = Config::load(path)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} is valid", path.display())?;
    for cluster in &config.clusters {
        writeln!(
            out,
            "  cluster {:?}: {}, {}, {}, {}",
            cluster.name,
            plural(cluster.drivers.len(), "driver"),
            plural(cluster.history_servers.len(), "History Server"),
            plural(cluster.urls.len(), "URL to find out about"),
            plural(cluster.event_log_dirs.len(), "event-log directory"),
        )?;
    }
    if !config.has_sources() {
        writeln!(out, "  no cluster: sources must come from --spark.url or --event-log.dir")?;
    }
    writeln!(out, "  finished runs keep their series for {}", config.retention.0)?;
    Ok(Outcome::Good)
}

fn plural(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) if what.starts_with("URL") => {
            format!("{count} {}", what.replacen("URL", "URLs", 1))
        }
        (_, None) => format!("{count} {what}s"),
    }
}
