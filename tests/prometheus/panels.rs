//! Every query of every dashboard on a real Prometheus: no error, and for one
//! application or another something to show.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::common::real::root;
use crate::grafana::{Opened, SPAN, list, panels};
use crate::servers::Prometheus;
use crate::world::World;

/// What people open, and what they look at there: everything, and single
/// applications as a link from an alert or from another dashboard gives them.
const LOOKS: &[Look] = &[
    ("fleet", &[]),
    ("exporter", &[]),
    ("application", &[]),
    ("application", &[("spark_cluster", "ill"), ("app_name", "skew"), ("app_id", "skew")]),
    ("application", &[("spark_cluster", "ill"), ("app_name", "failed"), ("app_id", "failed")]),
    ("application", &[("app_name", "nightly"), ("app_id", "night-19")]),
    ("application", &[("spark_cluster", "streams"), ("app_id", "behind")]),
    ("job", &[("spark_cluster", "jobs"), ("app_name", "nightly")]),
    ("job", &[("spark_cluster", "jobs"), ("app_name", "flaky")]),
    ("stage", &[("spark_cluster", "ill"), ("app_id", "skew"), ("stage_id", "10")]),
    ("stage", &[("spark_cluster", "ill"), ("app_id", "spill"), ("stage_id", "9")]),
    ("stage", &[("spark_cluster", "ill"), ("app_id", "retries"), ("stage_id", "1")]),
    // Stages that read from storage, and that write to it.
    ("stage", &[("app_id", "input_files-healthy-4-3-0"), ("stage_id", "6")]),
    ("stage", &[("app_id", "small_files-few-4-3-0"), ("stage_id", "6")]),
    ("streaming", &[]),
    ("streaming", &[("spark_cluster", "streams"), ("app_id", "behind")]),
];

/// Queries that have nothing to show here, and why.
const EMPTY: &[(&str, &str, &str)] = &[
    ("exporter", "Connections refused or broken", "nobody breaks a connection here"),
    ("exporter", "Since a request was taken", "no back end takes anything here"),
    ("exporter", "What is watched", "no Kubernetes is here"),
    ("exporter", "Objects", "no Kubernetes is here"),
    ("exporter", "Lists", "no Kubernetes is here"),
    ("exporter", "Lists and watches that failed", "no Kubernetes is here"),
    ("exporter", "Drivers by state", "no Kubernetes is here"),
    ("exporter", "Drivers that came, and fell silent", "no Kubernetes is here"),
    ("exporter", "SparkApplications to look at", "no operator is here"),
    ("exporter", "SparkApplications, by what their operator says", "no operator is here"),
];

pub(crate) fn dashboards() -> BTreeMap<String, Value> {
    let folder = root().join("dashboards");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    let dashboards: BTreeMap<String, Value> = files.map(read).collect();
    assert!(dashboards.len() >= 6, "{:?}", dashboards.keys());
    dashboards
}

/// A query of a dashboard: its name, the panel's title, which of its queries.
pub(crate) type Query = (String, String, String);

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) shown: BTreeSet<Query>,
    empty: BTreeSet<Query>,
    pub(crate) complaints: Vec<String>,
    /// What was asked already, as it was sent: most panels are the same for
    /// whatever somebody picks elsewhere.
    asked: BTreeSet<String>,
}

pub(crate) async fn all_have_something_to_show(world: &World) {
    let dashboards = dashboards();
    let [old, new] = world.watchers.as_slice() else { panic!("two versions") };
    let (old, new) = tokio::join!(
        look(&old.prometheus, &dashboards, LOOKS),
        look(&new.prometheus, &dashboards, LOOKS)
    );
    let mut complaints = Vec::new();
    for (version, seen) in [("2.42", old), ("3", new)] {
        complaints.extend(seen.complaints.iter().map(|why| format!("{version}: {why}")));
        let excepted = |(dashboard, panel, _): &Query| {
            EMPTY.iter().any(|(on, title, _)| on == dashboard && title == panel)
        };
        for query in seen.empty.difference(&seen.shown).filter(|query| !excepted(query)) {
            complaints.push(format!("{version}: nothing to show: {query:?}"));
        }
        assert!(seen.shown.len() > 100, "{version}: only {} queries", seen.shown.len());
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What somebody opens, and what is picked there.
type Look = (&'static str, &'static [(&'static str, &'static str)]);

pub(crate) async fn look(
    prometheus: &Prometheus,
    dashboards: &BTreeMap<String, Value>,
    looks: &[Look],
) -> Seen {
    let mut seen = Seen::default();
    for (name, dashboard) in dashboards {
        let looks: Vec<_> = looks.iter().filter(|(on, _)| on == name).collect();
        assert!(!looks.is_empty(), "nobody looks at the dashboard {name}");
        for (_, picks) in looks {
            match Opened::at(prometheus, dashboard, picks).await {
                Ok(open) => each_query(prometheus, name, &open, &mut seen).await,
                Err(error) => seen.complaints.push(format!("{name}: {picks:?}: {error}")),
            }
        }
    }
    seen
}

async fn each_query(prometheus: &Prometheus, name: &str, open: &Opened<'_>, seen: &mut Seen) {
    for annotation in list(&open.dashboard["annotations"]["list"]) {
        let query = annotation["expr"].as_str().or(annotation["target"]["expr"].as_str());
        if let Some(query) = query {
            let what = (name.to_owned(), "annotation".to_owned(), annotation["name"].to_string());
            ask(prometheus, what, open.filled(query), false, seen).await;
        }
    }
    for panel in panels(open.dashboard) {
        let title = panel["title"].as_str().unwrap_or_default();
        for target in list(&panel["targets"]) {
            let part = target["refId"].as_str().unwrap_or_default();
            let what = (name.to_owned(), title.to_owned(), part.to_owned());
            let query = open.filled(target["expr"].as_str().unwrap_or_default());
            ask(prometheus, what, query, target["instant"] == true, seen).await;
        }
    }
}

async fn ask(
    prometheus: &Prometheus,
    what: Query,
    query: Result<String, String>,
    now: bool,
    seen: &mut Seen,
) {
    let result = match query {
        Ok(query) if !seen.asked.insert(format!("{what:?} {query}")) => return,
        Ok(query) if now => instant(prometheus, &query).await,
        Ok(query) => range(prometheus, &query).await,
        Err(error) => Err(error),
    };
    note(what, result, seen);
}

fn note(what: Query, result: Result<Value, String>, seen: &mut Seen) {
    match result {
        Ok(data) => {
            let some = list(&data["result"]).next().is_some() || data["resultType"] == "scalar";
            if some {
                seen.shown.insert(what)
            } else {
                seen.empty.insert(what)
            };
        }
        Err(error) => seen.complaints.push(format!("{what:?}: {error}")),
    }
}

async fn instant(prometheus: &Prometheus, query: &str) -> Result<Value, String> {
    prometheus.ask("query", &[("query", query)]).await.map_err(|error| format!("{query}: {error}"))
}

async fn range(prometheus: &Prometheus, query: &str) -> Result<Value, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (start, end) = ((now - SPAN).to_string(), now.to_string());
    let parameters = [("query", query), ("start", &start), ("end", &end), ("step", "15")];
    let answer = prometheus.ask("query_range", &parameters).await;
    answer.map_err(|error| format!("{query}: {error}"))
}
