//! What the tests look at: daemons of ours on recorded runs, healthy, ill and
//! old, some of them in trouble themselves; both versions of Prometheus, each
//! with an Alertmanager and a webhook of its own.
//!
//! Clusters say what is expected of them: nothing may ever be said of an
//! application in `healthy` or in `old`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::SOON;
use crate::common::real::{Program, daemon_at, until};
use crate::common::value;
use crate::files::{quick_routes, quick_rules};
use crate::runs::Run;
use crate::servers::{Alertmanager, Prometheus, VERSIONS, Webhook};

/// How loud a finding is decides about its alert, and recorded runs take a
/// minute: what would cost a job of an hour many minutes costs them seconds.
/// Nothing is lowered but these floors; `healthy` runs are held against them too.
const FLOORS: &str = "thresholds:
  cost: {critical_at: 2s, critical_ratio: 0.05}
  spill: {critical_bytes: 256MiB}
  stage_retries: {warning_at: 1s}
threshold_overrides:
- {app_name: idle, thresholds: {idle_cores: {run: 10s, core_seconds: 5, used_ratio: 0.9}}}
";

/// Recorded runs that are ill, by the name they get here, which is also their id.
pub(crate) const ILL: [(&str, &str); 17] = [
    ("skew", "hot_key/4.3.0"),
    ("skew-old-spark", "hot_key/3.5.9"),
    ("slow-host", "straggler_slow_host/4.3.0"),
    ("spill", "spill/4.3.0"),
    ("gc", "gc_pressure/4.3.0"),
    ("no-executors", "scheduling_no_executors/3.5.9"),
    ("cold-start", "cold_start/4.3.0"),
    ("driver-gap", "driver_gap/4.3.0"),
    ("idle", "partitioning_one_task/4.3.0"),
    ("heap-oom", "executor_heap_oom/4.3.0"),
    ("killed", "executor_killed/4.3.0"),
    ("task-failures", "job_failed_caught/4.3.0"),
    ("retries", "stage_retries/4.3.0"),
    ("one-task", "partitioning_one_task/3.5.9"),
    ("failed", "application_failed/4.3.0"),
    ("job-failed", "job_failed_local_cluster/4.3.0"),
    ("job-failed-old-spark", "job_failed/3.5.9"),
];

/// Recorded runs of which no alert may speak: even ones, healthy twins of the
/// ill, and near misses.
pub(crate) const HEALTHY: [&str; 20] = [
    "healthy/3.5.9",
    "healthy/4.3.0",
    "healthy_short/4.3.0",
    "hot_key-healthy/4.3.0",
    "hot_key-cheap/4.3.0",
    "straggler_slow_host-healthy/4.3.0",
    "straggler_cold_executor/4.3.0",
    "spill-healthy/4.3.0",
    "spill-small/4.3.0",
    "gc_pressure-healthy/4.3.0",
    "gc_pressure-light/4.3.0",
    "task_failures-healthy/4.3.0",
    "task_failures-few/4.3.0",
    "cold_start_unnoticed/4.3.0",
    "input_files-healthy/4.3.0",
    "small_files-few/4.3.0",
    "jit_warmup/4.3.0",
    "job_cancelled/4.3.0",
    "streaming/4.3.0",
    "streaming_behind-busy/4.3.0",
];

/// Each a folder of logs, watched by the daemon that is well.
const CLUSTERS: [&str; 6] = ["ill", "healthy", "old", "jobs", "outage", "streams"];

/// One Prometheus with what it tells.
pub(crate) struct Watcher {
    pub(crate) prometheus: Prometheus,
    pub(crate) webhook: Webhook,
    pub(crate) alertmanager: Alertmanager,
}

impl Watcher {
    pub(crate) async fn start(version: &'static str, rules: &[PathBuf]) -> Self {
        let webhook = Webhook::start().await;
        let alertmanager = Alertmanager::start(&quick_routes(&webhook));
        let prometheus = Prometheus::start(version, rules, Some(&alertmanager));
        Self { prometheus, webhook, alertmanager }
    }
}

pub(crate) struct World {
    pub(crate) watchers: Vec<Watcher>,
    /// The daemon that watches everything and is itself well.
    pub(crate) main: Option<Program>,
    pub(crate) main_address: String,
    /// Daemons in trouble of several kinds, by name.
    others: BTreeMap<&'static str, Program>,
    /// What is scraped, and the name of whoever listens there.
    pub(crate) targets: BTreeMap<String, &'static str>,
    folder: tempfile::TempDir,
}

fn host(address: &str) -> String {
    address.trim_start_matches("http://").to_owned()
}

impl World {
    /// Daemons and Prometheus are there, and nothing has happened yet.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for cluster in CLUSTERS {
            std::fs::create_dir(folder.path().join(cluster)).unwrap();
        }
        let rules = quick_rules(folder.path());
        let mut watchers = Vec::new();
        for version in VERSIONS {
            watchers.push(Watcher::start(version, &rules).await);
        }
        let mut world = Self {
            watchers,
            main: None,
            main_address: String::new(),
            others: BTreeMap::new(),
            targets: BTreeMap::new(),
            folder,
        };
        // Runs that ended long before the first start.
        for (id, name, hours) in
            [("old-1", "application_failed/4.3.0", 3), ("old-2", "hot_key/4.3.0", 26)]
        {
            let ago = Duration::from_hours(hours);
            Run::recorded(name).named(id, id).write(&world.cluster("old"), id, ago);
        }
        // A job whose runs succeeded every five minutes, before anybody watched.
        for (run, night) in (1..=6).rev().enumerate() {
            let id = format!("overdue-{night}");
            let ago = Duration::from_mins(30 + 5 * run as u64);
            Run::night(1).named(&id, "overdue").write(&world.cluster("jobs"), &id, ago);
        }
        // One of which somebody expects more than it does.
        let ago = Duration::from_mins(30);
        Run::night(1).named("promised", "promised").write(&world.cluster("jobs"), "promised", ago);
        let config = world.folder.path().join("main.yml");
        std::fs::write(&config, world.configuration()).unwrap();
        world.start_main("127.0.0.1:0").await;
        world
    }

    pub(crate) fn cluster(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configuration(&self) -> String {
        let cluster = |name: &&str| {
            format!("- {{name: {name}, event_log_dirs: ['{}']}}", self.cluster(name).display())
        };
        let clusters: Vec<String> = CLUSTERS.iter().map(cluster).collect();
        let clusters = clusters.join("\n");
        format!(
            "clusters:\n{clusters}\nintervals: {{event_log_dir: 1s}}\nstorage: {{path: '{}'}}\n\
             names: {{expected: [{{app_name: promised, within: 10m}}]}}\n\
             prices: {{core_hour: 0.04, gib_hour: 0.005, currency: EUR}}\n{FLOORS}",
            self.folder.path().join("store").display()
        )
    }

    /// Starts the daemon that watches all clusters, with a store that is ready.
    async fn start_main(&mut self, listen: &str) {
        let config = self.folder.path().join("main.yml");
        let (program, address) = daemon_at(listen, &["--config.file", config.to_str().unwrap()]);
        until(&format!("{address}/metrics"), SOON, |text| {
            (value(text, "spark_exporter_storage_up ") == Some(1.0)).then_some(())
        })
        .await;
        self.main = Some(program);
        self.main_address = address;
        let address = self.main_address.clone();
        self.scrape("main", &address);
        self.until_scraped(&address).await;
    }

    /// Ends it and starts it again at the same address, and waits until all
    /// runs are shown again, the old ones too.
    pub(crate) async fn restart_main(&mut self) {
        let mut program = self.main.take().unwrap();
        let listen = host(&self.main_address);
        let shown = format!("count(spark_application_info{{instance=\"{listen}\"}})");
        let before = self.watchers[0].prometheus.query(&shown).await;
        assert_eq!(program.terminate(SOON), 0);
        let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        self.start_main(&listen).await;
        // Not what it showed before.
        let since = format!(
            "{shown} and on () \
             (spark_exporter_start_timestamp_seconds{{instance=\"{listen}\"}} >= {ended})"
        );
        for watcher in &self.watchers {
            let again = |found: &[Value]| {
                found.first().is_some_and(|one| one["value"][1] == before[0]["value"][1])
            };
            watcher.prometheus.wait(&since, SOON * 2, again).await;
        }
    }

    /// Adds one to what is scraped.
    fn scrape(&mut self, name: &'static str, address: &str) {
        self.targets.insert(host(address), name);
        let targets: Vec<_> = self.targets.keys().cloned().collect();
        for watcher in &self.watchers {
            watcher.prometheus.scrape(&targets);
        }
    }

    /// Another daemon with this configuration, scraped once it shows what it
    /// should, and seen by each Prometheus. Its address.
    pub(crate) async fn add_daemon(
        &mut self,
        name: &'static str,
        configuration: &str,
        shows: &str,
    ) -> String {
        std::fs::write(self.folder.path().join(format!("{name}.yml")), configuration).unwrap();
        let address = self.start_daemon(name, "127.0.0.1:0");
        let metrics = format!("{address}/metrics");
        until(&metrics, SOON, |text| text.contains(shows).then_some(())).await;
        self.scrape(name, &address);
        self.until_scraped(&address).await;
        address
    }

    fn start_daemon(&mut self, name: &'static str, listen: &str) -> String {
        let config = self.folder.path().join(format!("{name}.yml"));
        let (program, address) = daemon_at(listen, &["--config.file", config.to_str().unwrap()]);
        self.others.insert(name, program);
        address
    }

    async fn until_scraped(&self, address: &str) {
        let up = format!("up{{instance=\"{}\"}} == 1", host(address));
        for watcher in &self.watchers {
            watcher.prometheus.wait(&up, SOON, |found| !found.is_empty()).await;
        }
    }

    /// Ends a daemon as a crash does.
    pub(crate) fn kill(&mut self, name: &str) {
        self.others.remove(name).unwrap().kill();
    }

    /// Ends it and starts it again, so often, and each start is scraped.
    pub(crate) async fn restart(&mut self, name: &'static str, address: &str, times: u32) {
        let started = format!(
            "changes(spark_exporter_start_timestamp_seconds{{instance=\"{}\"}}[10m])",
            host(address)
        );
        for time in 1..=times {
            assert_eq!(self.others.remove(name).unwrap().terminate(SOON), 0);
            self.start_daemon(name, &host(address));
            for watcher in &self.watchers {
                let changed = |found: &[Value]| {
                    let text = found.first().and_then(|one| one["value"][1].as_str());
                    text == Some(time.to_string().as_str())
                };
                watcher.prometheus.wait(&started, SOON, changed).await;
            }
        }
    }

    /// Runs end, ill and healthy ones.
    pub(crate) fn let_runs_end(&self) {
        let moments = Duration::from_secs(1);
        for (id, name) in ILL {
            Run::recorded(name).named(id, id).write(&self.cluster("ill"), id, moments);
        }
        for name in HEALTHY {
            let id = name.replace(['/', '.'], "-");
            Run::recorded(name).named(&id, &id).write(&self.cluster("healthy"), &id, moments);
        }
    }

    /// Streams: one that does not keep up, one that does, and one that ended
    /// badly (the recorded one with another exit code).
    pub(crate) fn let_streams_run(&self) {
        let (streams, healthy) = (self.cluster("streams"), self.cluster("healthy"));
        let moments = Duration::from_secs(1);
        let behind = Run::recorded("streaming_behind/4.3.0");
        let (id, file) = ("behind", "behind.inprogress");
        behind.clone().named(id, id).going_on().write(&streams, file, moments);
        let (id, file) = ("keeps-up", "keeps-up.inprogress");
        let run = Run::recorded("streaming_behind-busy/4.3.0").named(id, id).going_on();
        run.write(&healthy, file, moments);
        let id = "down";
        behind.named(id, id).with_exit_code(1).write(&streams, id, Duration::ZERO);
    }

    /// Jobs as they are known by their names.
    pub(crate) fn let_jobs_run(&self) {
        let jobs = self.cluster("jobs");
        // Fails again and again, since the daemon has its store.
        for run in 1..=4 {
            let id = format!("flaky-{run}");
            let failed = Run::recorded("application_failed/4.3.0").named(&id, "flaky");
            failed.write(&jobs, &id, Duration::ZERO);
        }
        // Night after night the same, and then one that is slow.
        for night in 13..=19_u64 {
            let id = format!("night-{night}");
            let ago = Duration::from_mins(5 * (19 - night)) + Duration::from_secs(1);
            Run::night(night as usize).named(&id, "nightly").write(&jobs, &id, ago);
        }
        // The next night is under way.
        let tonight = Run::night(20).named("night-20", "nightly").going_on();
        tonight.write(&jobs, "night-20.inprogress", Duration::ZERO);
        // Went away without a word.
        let id = "lost";
        let run = Run::recorded("left_running/4.3.0").named(id, id).going_on();
        run.leave(&self.cluster("ill"), "lost.inprogress", Duration::from_mins(65));
    }

    /// Five jobs of one cluster fail at the same time.
    pub(crate) fn let_an_outage_happen(&self) {
        for job in ["bills", "stock", "mail", "ledger", "orders"] {
            let id = format!("outage-{job}");
            let run = Run::recorded("application_failed/4.3.0").named(&id, job);
            run.write(&self.cluster("outage"), &id, Duration::from_secs(1));
        }
    }
}

/// For configurations of further daemons.
pub(crate) fn cluster_of(name: &str, directory: &Path) -> String {
    format!("clusters: [{{name: {name}, event_log_dirs: ['{}']}}]\n", directory.display())
}
