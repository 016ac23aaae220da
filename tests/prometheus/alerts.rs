//! What arrives at a webhook, and what should: the right alert for each
//! pathology with its application, and none about any healthy run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::real::client;
use crate::files::alert_names;
use crate::world::{Watcher, World};

/// Alerts, each with what it is about: a run, a job, a cluster, a source, or
/// one of our daemons by the name it has here.
const AT_ONCE: &[(&str, &[&str])] = &[
    ("SparkDataSkew", &["ill/skew", "ill/skew-old-spark", "jobs/night-19"]),
    ("SparkStraggler", &["ill/slow-host"]),
    ("SparkSpill", &["ill/spill"]),
    ("SparkGcPressure", &["ill/gc"]),
    ("SparkSchedulingDelay", &["ill/no-executors", "ill/cold-start"]),
    ("SparkDriverGap", &["ill/driver-gap"]),
    ("SparkIdleCores", &["ill/idle"]),
    ("SparkOutOfMemory", &["ill/heap-oom"]),
    ("SparkExecutorLost", &["ill/killed", "ill/retries"]),
    ("SparkTaskFailures", &["ill/task-failures"]),
    // `partitioning` has no alert of its own.
    ("SparkCostlyFinding", &["ill/idle", "ill/one-task"]),
    ("SparkApplicationRegression", &["jobs/night-19"]),
    ("SparkApplicationLost", &["ill/lost"]),
    ("SparkApplicationFailed", &["ill/failed", "ill/job-failed", "ill/job-failed-old-spark"]),
    // Half an hour later, but for a test that does not wait.
    ("SparkStreamingStaysBehind", &["streams/behind"]),
    ("SparkStreamingDown", &["streams/down"]),
    ("SparkManyApplicationsFail", &["outage"]),
    ("SparkApplicationNoSuccess", &["jobs/promised"]),
    ("SparkApplicationOverdue", &["jobs/overdue"]),
    ("SparkApplicationKeepsFailing", &["jobs/flaky"]),
];

/// About our daemons, once they are in trouble.
pub(crate) const OF_DAEMONS: &[(&str, &[&str])] = &[
    ("SparkExporterDown", &["dying"]),
    ("SparkExporterRestarting", &["restless"]),
    ("SparkExporterTargetDown", &["torn/http://127.0.0.1:1"]),
    ("SparkExporterBlind", &["gone"]),
    ("SparkExporterApplicationsSkipped", &["torn/in_progress"]),
    ("SparkExporterEventLogsUnreadable", &["torn/unsupported_codec"]),
    ("SparkExporterSeriesDropped", &["torn/series_limit"]),
    ("SparkExporterStorageDown", &["torn"]),
    ("SparkExporterStoragePending", &["torn"]),
    ("SparkExporterOtlpFailing", &["torn"]),
    ("SparkExporterAppNamesOverflowed", &["crowded"]),
    ("SparkExporterIdentityCollisions", &["crowded"]),
];

/// What Alertmanager keeps back, since something else that it tells explains
/// it; what came before that was known may have been told.
const SILENCED: &[(&str, &[&str])] = &[
    ("SparkTaskFailures", &["ill/job-failed", "ill/job-failed-old-spark"]),
    ("SparkStageRetries", &["ill/retries"]),
    ("SparkStreamingBehind", &["streams/behind"]),
    ("SparkApplicationFailed", &["streams/down"]),
    ("SparkApplicationFailed", &["jobs/flaky-1", "jobs/flaky-2", "jobs/flaky-3", "jobs/flaky-4"]),
    (
        "SparkApplicationFailed",
        &["outage/outage-bills", "outage/outage-stock", "outage/outage-mail"],
    ),
    ("SparkApplicationFailed", &["outage/outage-ledger", "outage/outage-orders"]),
    ("SparkExporterTargetDown", &["gone/http://127.0.0.1:1"]),
];

/// What is true for so short a time that no alert elsewhere waits so little:
/// before the first daemon was scraped there was none; while one is restarted
/// it is down, and then it opens its store.
const BRIEFLY: &[(&str, &[&str])] = &[
    ("SparkExporterDown", &["", "main", "restless"]),
    ("SparkExporterStorageDown", &["main", "crowded", "restless", "dying"]),
];

/// Alerts that fire in `live.rs`: only a driver that is watched tells them.
const LIVE: [&str; 3] =
    ["SparkStageStuck", "SparkApplicationIdle", "SparkApplicationWaitsForExecutors"];

/// Alerts that no test makes fire on a real Prometheus, and why. Each has its
/// case in promtool's tests.
const NOT_HERE: [(&str, &str); 6] = [
    (
        "SparkExporterDataStale",
        "numbers that are five minutes old and a daemon that still answers: nothing makes them in time",
    ),
    ("SparkExporterConfigReloadFailed", "its gauge is shown by tests/reload.rs"),
    ("SparkExporterWebConfigReloadFailed", "its gauge is shown by tests/web"),
    ("SparkSubmissionFailed", "no Kubernetes here, and no operator"),
    ("SparkExporterDriversSilent", "no Kubernetes here"),
    (
        "SparkExporterShardsWrong",
        "all daemons here are of one job: sharded ones beside them would make each of them wrong",
    ),
];

pub(crate) type Alert = (String, String);

fn list(expected: &[(&str, &[&str])]) -> BTreeSet<Alert> {
    let pairs = expected.iter().flat_map(|(alert, subjects)| {
        subjects.iter().map(|about| ((*alert).to_owned(), (*about).to_owned()))
    });
    pairs.collect()
}

#[test]
fn each_alert_is_fired_somewhere() {
    let fired = [AT_ONCE, OF_DAEMONS, SILENCED].concat();
    let fired = fired.iter().map(|(alert, _)| *alert).chain(LIVE);
    let tried: BTreeSet<String> =
        fired.chain(NOT_HERE.iter().map(|(alert, _)| *alert)).map(str::to_owned).collect();
    let all: BTreeSet<String> = alert_names().into_iter().collect();
    assert_eq!(tried, all, "alerts here and alerts in alerts/*.yml");
}

/// What an alert is about.
fn subject(labels: &Value, daemons: &BTreeMap<String, &'static str>) -> String {
    let label = |name: &str| labels[name].as_str().filter(|value| !value.is_empty());
    let daemon = label("instance").map(|instance| daemons.get(instance).copied().unwrap_or("?"));
    let of = label("app_id").or(label("app_name")).or(label("target")).or(label("reason"));
    let parts = [label("spark_cluster").or(daemon), of];
    parts.into_iter().flatten().collect::<Vec<_>>().join("/")
}

fn named(labels: &Value, daemons: &BTreeMap<String, &'static str>) -> Alert {
    (labels["alertname"].as_str().unwrap().to_owned(), subject(labels, daemons))
}

/// All firing alerts that arrived, each as it came first.
pub(crate) fn told(
    watcher: &Watcher,
    daemons: &BTreeMap<String, &'static str>,
) -> BTreeMap<Alert, Value> {
    let mut told = BTreeMap::new();
    for message in watcher.webhook.messages() {
        for alert in message.body["alerts"].as_array().into_iter().flatten() {
            if alert["status"] == "firing" {
                let name = named(&alert["labels"], daemons);
                told.entry(name).or_insert_with(|| alert.clone());
            }
        }
    }
    told
}

/// Waits until all these arrived at each webhook.
pub(crate) async fn arrive(
    watchers: &[Watcher],
    daemons: &BTreeMap<String, &'static str>,
    expected: &BTreeSet<Alert>,
    within: Duration,
) {
    let deadline = Instant::now() + within;
    for watcher in watchers {
        loop {
            let told: BTreeSet<Alert> = told(watcher, daemons).into_keys().collect();
            let missing: Vec<_> = expected.difference(&told).collect();
            if missing.is_empty() {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{}: not within {within:?}: {missing:#?}\nbut:\n{told:#?}\nit says:\n{}",
                watcher.prometheus.version,
                watcher.prometheus.said().join("\n")
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Recorded runs end, streams and jobs run: what is told of them at once.
pub(crate) async fn pathologies(world: &World) {
    world.let_jobs_run();
    world.let_streams_run();
    world.let_runs_end();
    world.let_an_outage_happen();
    arrive(&world.watchers, &world.targets, &list(AT_ONCE), Duration::from_mins(2)).await;
}

pub(crate) async fn daemons_in_trouble(world: &World) {
    arrive(&world.watchers, &world.targets, &list(OF_DAEMONS), Duration::from_mins(1)).await;
}

/// What is kept back, who was told, and that nothing else came.
pub(crate) async fn nothing_else(world: &World) {
    let expected = list(&[AT_ONCE, OF_DAEMONS].concat());
    let expected_silence = list(SILENCED);
    let allowed = list(&[SILENCED, BRIEFLY].concat());
    let mut complaints = Vec::new();
    for watcher in &world.watchers {
        let version = watcher.prometheus.version;
        let told = told(watcher, &world.targets);
        for (alert, what) in &told {
            if !expected.contains(alert) && !allowed.contains(alert) {
                complaints.push(format!("{version}: {alert:?} came: {what:#}"));
            }
            complaints.extend(unsound(alert, what).map(|why| format!("{version}: {why}")));
        }
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let silenced = silenced(watcher, world).await;
            let missing: Vec<_> = expected_silence.difference(&silenced).collect();
            if missing.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                complaints.push(format!("{version}: not kept back: {missing:?}"));
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        complaints.extend(misrouted(watcher).map(|why| format!("{version}: {why}")));
        // One alert a run and rule, whoever shows the run and from where.
        let doubles = "count by (alertname, spark_cluster, app_id, attempt_id, rule) \
                       (ALERTS{app_id!=\"\"}) > 1";
        for double in watcher.prometheus.query(doubles).await {
            complaints.push(format!("{version}: more than one alert of {}", double["metric"]));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What Alertmanager keeps back now.
async fn silenced(watcher: &Watcher, world: &World) -> BTreeSet<Alert> {
    let alerts = watcher.alertmanager.alerts().await;
    let kept_back = |alert: &&Value| alert["status"]["inhibitedBy"] != Value::Array(Vec::new());
    let alerts = alerts.as_array().unwrap().iter().filter(kept_back);
    alerts.map(|alert| named(&alert["labels"], &world.targets)).collect()
}

/// Messages at receivers that they are not for. Where they go is in the
/// example of Alertmanager's configuration.
fn misrouted(watcher: &Watcher) -> impl Iterator<Item = String> {
    let mut paged = BTreeSet::new();
    let mut critical = BTreeSet::new();
    let mut wrong = Vec::new();
    for message in watcher.webhook.messages() {
        for alert in message.body["alerts"].as_array().into_iter().flatten() {
            let labels = &alert["labels"];
            let pager = message.receiver == "pager";
            let exporter =
                labels["alertname"].as_str().is_some_and(|name| name.starts_with("SparkExporter"));
            let right = match (labels["severity"].as_str(), message.receiver.as_str()) {
                (Some("info"), receiver) => receiver == "planning",
                (severity, "pager") => severity == Some("critical"),
                (_, receiver) => (receiver == "platform") == exporter && receiver != "planning",
            };
            if !right {
                wrong.push(format!("{} was told {labels}", message.receiver));
            }
            if labels["severity"] == "critical" {
                critical.insert(labels.to_string());
                if pager {
                    paged.insert(labels.to_string());
                }
            }
        }
    }
    wrong.extend(critical.difference(&paged).map(|labels| format!("nobody was paged: {labels}")));
    if paged.is_empty() {
        wrong.push("nobody was paged at all".to_owned());
    }
    wrong.into_iter()
}

/// What is wrong with the texts of an alert.
pub(crate) fn unsound((name, about): &Alert, alert: &Value) -> impl Iterator<Item = String> {
    let annotations = &alert["annotations"];
    let mut wrong = Vec::new();
    for (key, text) in annotations.as_object().into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        for sign in ["<no value>", "<error", "%!", "{{", "}}", "NaN", "+Inf"] {
            if text.contains(sign) {
                wrong.push(format!("{name} {about}: {key} has {sign}: {text}"));
            }
        }
    }
    for key in ["summary", "description", "runbook_url", "dashboard_url"] {
        if annotations[key].as_str().is_none_or(str::is_empty) {
            wrong.push(format!("{name} {about}: no {key}"));
        }
    }
    wrong.into_iter()
}

/// Each report that an alert points to is there, with the place in it.
pub(crate) async fn reports_are_there(world: &World) {
    let told = told(&world.watchers[0], &world.targets);
    let mut looked = 0;
    for ((name, about), alert) in told {
        let Some(url) = alert["annotations"]["report_url"].as_str() else { continue };
        let (path, place) =
            url.split_once('#').map_or((url, None), |(path, place)| (path, Some(place)));
        let response = client().get(format!("{}{path}", world.main_address)).send().await.unwrap();
        assert!(response.status().is_success(), "{name} {about}: {url}: {}", response.status());
        let page = response.text().await.unwrap();
        if let Some(place) = place {
            let id = format!("id=\"{place}\"");
            assert!(page.contains(&id), "{name} {about}: {url}: no {id} on the page");
        }
        looked += 1;
    }
    assert!(looked >= 20, "only {looked} alerts have a report");
}
