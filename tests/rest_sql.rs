//! SQL executions as a real History Server's REST API told them
//! (`tests/fixtures/rest`), against the event log of the same run: the same
//! plans, and its numbers as good as three digits allow.

mod common;

use common::fake_spark::{Answer, FakeSpark};
use common::recorded_server::{answer, folder};
use spark_exporter::config::{HttpConfig, Limits, ServerUrl};
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::fetch::{FetchLimits, HttpClient, Timeouts};
use spark_exporter::model::{
    Application, DataQuality, MetricKind, MetricValue, Plan, PlanNode, SqlStatus,
};
use spark_exporter::rest::applications::{self, Filter};
use spark_exporter::rest::completed::{self, Options};
use spark_exporter::rest::sql::{self, Part};
use spark_exporter::rest::{Api, ApplicationPath};

const VERSIONS: [&str; 2] = ["3.5.9", "4.3.0"];
const RUNS: [&str; 5] = ["healthy", "hot_key", "spill", "task_failures", "sql_plans"];

fn client() -> HttpClient {
    let limits = FetchLimits::from(&Limits::default());
    HttpClient::new(&HttpConfig::default(), Timeouts::HISTORY_SERVER, limits)
        .expect("a client from defaults")
}

fn by_log(version: &str, run: &str) -> Application {
    let limits = Limits::default();
    let files = LocalFiles::at(&common::recorded(&format!("{run}/{version}"))).expect("a place");
    let log = scan(&files).expect("a recorded run").logs.remove(0);
    let options = ReadOptions { cluster: "test", limits: &limits };
    read(&log, &files, &options).expect("readable").application
}

async fn by_rest(version: &str, run: &str) -> Application {
    let folder = folder(version, run);
    let server = FakeSpark::start(move |asked| answer(&folder, asked)).await;
    let base: ServerUrl = server.url("").parse().expect("a URL");
    let api = Api::new(&client(), &base);
    let listed = applications::get(&api, Filter::default()).await.expect("the list");
    let attempt = listed[0].latest().expect("an attempt");
    completed::read(&api, "test", &listed[0], attempt, Options::default()).await.expect("the run")
}

/// Without what Spark leaves out of its graph: the query stages of adaptive
/// execution. Names of nodes, each with that of its parent.
fn shape(plan: &Plan) -> Vec<(String, Option<String>)> {
    let left_out = |node: &PlanNode| node.name.ends_with("QueryStage");
    let name = |node: &PlanNode| node.name.trim().to_owned();
    let parent = |node: &PlanNode| {
        let mut above = node.parent;
        while let Some(node) = above.and_then(|place| plan.nodes.get(place as usize)) {
            if !left_out(node) {
                return Some(name(node));
            }
            above = node.parent;
        }
        None
    };
    plan.nodes
        .iter()
        .filter(|node| !left_out(node))
        .map(|node| (name(node), parent(node)))
        .collect()
}

/// Whether a rounded number may be this one: a twentieth of its unit, and what
/// Spark itself cuts off (parts of milliseconds).
fn close(kind: MetricKind, exact: u64, rounded: u64) -> bool {
    let (exact, rounded) = (exact as f64, rounded as f64);
    let slack = match kind {
        MetricKind::Count | MetricKind::Tenths => 0.0,
        MetricKind::Bytes => (exact * 0.026).max(0.5),
        _ => (exact * 0.05).max(1e6),
    };
    (exact - rounded).abs() <= slack
}

fn compare(what: &str, log: &MetricValue, rest: &MetricValue, kind: MetricKind) -> Vec<String> {
    let mut wrong = Vec::new();
    if kind != MetricKind::Tenths && !close(kind, log.total, rest.total) {
        wrong.push(format!("{what}: total {} in the log, {} by REST", log.total, rest.total));
    }
    if let Some(rest) = rest.largest {
        let same = log.largest.is_some_and(|log| {
            close(kind, log.value, rest.value)
                && (log.stage, log.task_id) == (rest.stage, rest.task_id)
        });
        if !same {
            wrong.push(format!("{what}: largest {:?} in the log, {rest:?} by REST", log.largest));
        }
    }
    wrong
}

/// Without what [`shape`] leaves out.
fn nodes(plan: &Plan) -> impl Iterator<Item = &PlanNode> {
    plan.nodes.iter().filter(|node| !node.name.ends_with("QueryStage"))
}

#[tokio::test]
async fn plans_are_those_of_the_log_and_numbers_its_rounded_ones() {
    let (mut wrong, mut compared, mut plans) = (Vec::new(), 0, 0);
    for version in VERSIONS {
        for run in RUNS {
            let (log, rest) = (by_log(version, run), by_rest(version, run).await);
            assert!(rest.has(DataQuality::SqlMetricsRounded), "{run} {version}");
            let (log, rest) = (log.sql.expect("told"), rest.sql.expect("asked"));
            assert_eq!(log.len(), rest.len(), "{run} {version}");
            for (log, rest) in log.iter().zip(&rest) {
                let what = format!("{run} {version}, execution {}", log.id);
                assert_eq!((log.id, log.status), (rest.id, rest.status), "{what}");
                assert_eq!((log.start, log.end), (rest.start, rest.end), "{what}");
                assert_eq!(log.job_ids, rest.job_ids, "{what}");
                assert_eq!(log.description, rest.description, "{what}");
                if version == "4.3.0" {
                    assert_eq!(log.root_id, rest.root_id, "{what}");
                    assert_eq!(log.error_class, rest.error_class, "{what}");
                }
                let (Some(log_plan), Some(rest_plan)) = (&log.plan, &rest.plan) else {
                    panic!("{what}: no plan")
                };
                assert_eq!(shape(log_plan), shape(rest_plan), "{what}");
                plans += 1;
                for (log, rest) in nodes(log_plan).zip(nodes(rest_plan)) {
                    for metric in &log.metrics {
                        let what = format!("{what}, {} {}", log.name, metric.name);
                        // What nobody told is not sent, or as a zero.
                        match (metric.value.as_deref(), rest.value(&metric.name)) {
                            (Some(exact), Some(rounded)) => {
                                compared += 1;
                                wrong.extend(compare(&what, exact, rounded, metric.kind));
                            }
                            // Less than a millisecond is 0 ms.
                            (Some(exact), None)
                                if exact.total == 0
                                    || metric.kind == MetricKind::Nanoseconds
                                        && exact.total < 1_000_000 => {}
                            (None, None) => {}
                            (exact, rounded) => {
                                wrong.push(format!("{what}: {exact:?}, {rounded:?}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 800 && plans >= 38, "only {compared} metrics of {plans} plans");
}

/// What rules about joins and about Python need, from REST alone.
#[tokio::test]
async fn rows_of_a_join_and_a_python_node_are_there() {
    for version in VERSIONS {
        let application = by_rest(version, "sql_plans").await;
        let executions = application.sql.as_deref().expect("asked");
        let failed: Vec<_> =
            executions.iter().filter(|one| one.status == SqlStatus::Failed).collect();
        assert_eq!(failed.len(), 1, "{version}");
        let named = |name: &str| {
            let nodes = executions.iter().filter_map(|one| Some((one, one.plan.as_ref()?)));
            nodes
                .flat_map(|(one, plan)| (0..plan.nodes.len()).map(move |place| (one, plan, place)))
                .find(|(_, plan, place)| plan.nodes[*place].name.contains(name))
                .unwrap_or_else(|| panic!("{version}: no {name}"))
        };
        let rows = |node: &PlanNode| node.value("number of output rows").map(|value| value.total);
        let (execution, plan, place) = named("SortMergeJoin");
        assert_eq!(rows(&plan.nodes[place]), Some(120_000), "{version}");
        let sides: Vec<_> = plan.children(place).collect();
        assert_eq!(sides.len(), 2, "{version}: both sides");
        let below = |side: usize| plan.below(side).iter().find_map(rows);
        assert!(sides.iter().all(|(side, _)| below(*side).is_some()), "{version}");
        assert!(!execution.job_ids.is_empty(), "{version}");
        let (execution, plan, place) = named("EvalPython");
        assert_eq!(rows(&plan.nodes[place]), Some(2_000), "{version}");
        // The stage that did the work is known by its jobs and its tasks.
        let job = application.jobs.iter().find(|job| job.id == execution.job_ids[0]);
        assert_eq!(job.and_then(|job| job.sql_execution_id), Some(execution.id), "{version}");
        assert!(plan.nodes.iter().any(|node| !node.stages.is_empty()), "{version}");
        let (_, plan, place) = named("Scan parquet");
        let filters = plan.nodes[place].metadata("PartitionFilters");
        // Before 4.3 it comes from the text of the plan.
        assert!(filters.is_some_and(|filters| filters.contains("day")), "{version}: {filters:?}");
    }
}

/// Spark answers 404 for an execution that it never had or has forgotten, and
/// before SPARK-45291 in the words for an unknown application.
#[tokio::test]
async fn an_execution_that_is_gone_costs_nothing_but_itself() {
    for words in ["no such app: 99999", "unknown query execution id: 99999"] {
        let server = FakeSpark::start(move |_| Answer::not_found(words)).await;
        let api = Api::new(&client(), &server.url("").parse().expect("a URL"));
        let path = ApplicationPath::new("app-1", None);
        let gone = sql::one(&api, &path, 99_999, Part::Nodes).await.expect("no error");
        assert!(gone.is_none(), "{words}");
    }
}
