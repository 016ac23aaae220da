//! Daemons as the tests of this folder start them: one for each shard.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::real::{Program, daemon, get};
use crate::common::{recorded, value};
use spark_exporter::config::{Shard, Sharding};

pub(crate) const SOON: Duration = Duration::from_mins(2);

pub(crate) fn sharding(shard: u32, total_shards: u32) -> Sharding {
    Sharding { shard: Shard(shard), total_shards }
}

/// The daemons of all shards; ended when this is dropped.
pub(crate) struct Divided {
    pub(crate) programs: Vec<Program>,
    pub(crate) addresses: Vec<String>,
}

impl Divided {
    /// `arguments` are those of each shard.
    pub(crate) fn start(total: u32, arguments: impl Fn(u32) -> Vec<String>) -> Self {
        let started = (0..total).map(|shard| {
            let mut arguments = arguments(shard);
            if total > 1 {
                // As a StatefulSet's pod says it.
                let pod = format!("--shard=spark-exporter-{shard}");
                arguments.extend([pod, "--total-shards".to_owned(), total.to_string()]);
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            daemon(&arguments)
        });
        let (programs, addresses) = started.unzip();
        Self { programs, addresses }
    }

    /// What each shows, once `done` holds for all of them.
    pub(crate) async fn shown(&self, mut done: impl FnMut(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + SOON;
        loop {
            let mut texts = Vec::new();
            for address in &self.addresses {
                texts.push(get(&format!("{address}/metrics")).await);
            }
            if done(&texts) {
                return texts;
            }
            assert!(Instant::now() < deadline, "not in time; at last:\n{}", texts.join("\n\n"));
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// The series of runs and of names: all but the daemon's own. When a name that
/// never ran is due counts from the start of the daemon: there, without value.
pub(crate) fn series(text: &str) -> BTreeSet<String> {
    let own = |line: &&str| line.starts_with('#') || line.starts_with("spark_exporter_");
    let due = "spark_application_runs_success_due_timestamp_seconds{";
    let timeless = |line: &str| match line.rsplit_once(' ') {
        Some((labels, _)) if line.starts_with(due) => labels.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().filter(|line| !own(line)).map(timeless).collect()
}

/// The values of one label in the series of a family.
pub(crate) fn labels(text: &str, family: &str, label: &str) -> BTreeSet<String> {
    let start = format!("{family}{{");
    let label = format!("{label}=\"");
    let lines = text.lines().filter(|line| line.starts_with(&start));
    lines
        .filter_map(|line| Some(line.split_once(&label)?.1.split_once('"')?.0.to_owned()))
        .collect()
}

/// A series of the daemon's own with no label, or with these.
pub(crate) fn own(text: &str, series: &str) -> f64 {
    value(text, &format!("spark_exporter_{series} ")).unwrap_or(0.0)
}

/// Runs that other shards cover.
pub(crate) fn elsewhere(text: &str, cluster: &str) -> f64 {
    own(text, &format!("applications_elsewhere{{spark_cluster=\"{cluster}\"}}"))
}

/// Copies the log of a recorded run to a place of logs.
pub(crate) fn copy(name: &str, to: &Path) {
    for entry in std::fs::read_dir(recorded(name)).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir(&target).unwrap();
            for file in std::fs::read_dir(&path).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
            }
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}
