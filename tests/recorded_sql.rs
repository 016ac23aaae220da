//! Metrics of plan nodes, against what a real History Server shows of the same
//! recorded logs (`tests/fixtures/sql`, made by `tests/spark/record --sql`).
//!
//! It shows text cut to three digits (`total (min, med, max (stageId: taskId))`
//! and then `1.2 s (3 ms, ...)`), so our numbers are written the way Spark
//! writes them, and the texts must be equal. After a retry they are not:
//! `docs/accuracy.md` says why.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use spark_exporter::config::Limits;
use spark_exporter::eventlog::{ReadOptions, read, scan};
use spark_exporter::fetch::files::LocalFiles;
use spark_exporter::model::{
    Application, MetricKind, MetricValue, PlanNode, SqlExecution, SqlStatus,
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn application(run: &str, version: &str) -> Application {
    let limits = Limits::default();
    let folder = root().join("examples/logs").join(run).join(version);
    let files = LocalFiles::at(&folder).expect("a place");
    let log = scan(&files).expect("a recorded run").logs.remove(0);
    read(&log, &files, &ReadOptions { cluster: "test", limits: &limits })
        .expect("readable")
        .application
}

/// Run and version of each fixture, with what the server showed.
fn fixtures() -> Vec<(String, String, Vec<Value>)> {
    let mut fixtures = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/fixtures/sql")).expect("fixtures") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (run, version) = name.rsplit_once('-').expect("RUN-VERSION");
        let text = std::fs::read_to_string(&path).expect("readable");
        let executions = serde_json::from_str(&text).expect("JSON");
        fixtures.push((run.to_owned(), version.to_owned(), executions));
    }
    fixtures.sort_by_key(|(run, version, _)| (run.clone(), version.clone()));
    fixtures
}

/// As Spark's `Utils.bytesToString` writes sizes: from twice a unit on in that
/// unit, with one decimal.
fn bytes(size: u64) -> String {
    for (shift, unit) in
        [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
    {
        if size >= 2 << shift {
            return format!("{} {unit}", tenths(size as f64 / (1_u64 << shift) as f64));
        }
    }
    format!("{:.1} B", size as f64)
}

/// With one decimal as Java rounds: halves up, where the number is a half and
/// not just near one (1.15 is 1.1499...).
fn tenths(value: f64) -> String {
    let is_half = (value * 4.0).fract() == 0.0 && (value * 2.0).fract() != 0.0;
    if is_half { format!("{:.1}", (value * 10.0).ceil() / 10.0) } else { format!("{value:.1}") }
}

/// As Spark's `Utils.msDurationToString` writes spans.
fn millis(ms: u64) -> String {
    let seconds = ms as f64 / 1_000.0;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", tenths(seconds)),
        60_000..3_600_000 => format!("{} m", tenths(seconds / 60.0)),
        _ => format!("{:.2} h", seconds / 3_600.0),
    }
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What the server shows of a metric: the total, and the largest task where it
/// names one. Of `average` it shows no total.
fn shown(text: &str) -> (Option<String>, Option<(String, String)>) {
    let Some((header, numbers)) = text.split_once('\n') else {
        return (Some(text.to_owned()), None);
    };
    let (total, rest) = numbers.split_once('(').unwrap_or((numbers, ""));
    let total = header.starts_with("total").then(|| total.trim().to_owned());
    // `(1 ms, 2 ms, 4 ms (stage 3.0: task 4))`
    let largest = rest.split_once(" (stage ").and_then(|(three, task)| {
        let (_, largest) = three.rsplit_once(", ")?;
        Some((largest.to_owned(), task.trim_end_matches(')').to_owned()))
    });
    (total, largest)
}

fn written(kind: MetricKind, value: u64) -> String {
    match kind {
        MetricKind::Bytes => bytes(value),
        // Spark rounds nanoseconds down.
        MetricKind::Nanoseconds => millis(value / 1_000_000),
        MetricKind::Tenths if value.is_multiple_of(10) => grouped(value / 10),
        MetricKind::Tenths => format!("{}.{}", grouped(value / 10), value % 10),
        MetricKind::Count | MetricKind::Custom => grouped(value),
    }
}

/// What Spark shows of a metric that nobody told.
const ZERO: [&str; 3] = ["0", "0.0 B", "0 ms"];

/// All nodes with their metrics, in an order that does not depend on the
/// tree's: the server numbers and groups nodes in its own way.
fn ours(execution: &SqlExecution) -> BTreeMap<(String, String), Vec<(MetricKind, MetricValue)>> {
    let mut map: BTreeMap<(String, String), Vec<_>> = BTreeMap::new();
    let plan = execution.plan.as_ref().expect("a plan");
    let told = |node: &PlanNode| -> Vec<_> {
        node.metrics
            .iter()
            .filter_map(|metric| Some((metric, *metric.value.as_deref()?)))
            .map(|(metric, value)| {
                (node.name.to_string(), metric.name.to_string(), metric.kind, value)
            })
            .collect()
    };
    for (node, metric, kind, value) in plan.nodes.iter().flat_map(told) {
        map.entry((node.trim().to_owned(), metric)).or_default().push((kind, value));
    }
    map
}

fn compare(what: &str, execution: &SqlExecution, theirs: &Value) -> (usize, Vec<String>) {
    let ours = ours(execution);
    let mut compared = 0;
    let mut wrong = Vec::new();
    let mut shown_of: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for node in theirs["nodes"].as_array().expect("nodes") {
        let name = node["name"].as_str().expect("a name").trim();
        for metric in node["metrics"].as_array().expect("metrics") {
            let key = (name.to_owned(), metric["name"].as_str().expect("a name").to_owned());
            let value = metric["value"].as_str().expect("a text");
            shown_of.entry(key).or_default().push(value.to_owned());
        }
    }
    for (key, texts) in shown_of {
        let mut values = ours.get(&key).cloned().unwrap_or_default();
        for text in texts {
            let (total, largest) = shown(&text);
            let found = values.iter().position(|(kind, value)| {
                let same_total =
                    total.as_ref().is_none_or(|total| *total == written(*kind, value.total));
                let same_largest = largest.as_ref().is_none_or(|(largest, task)| {
                    value.largest.is_some_and(|ours| {
                        written(*kind, ours.value) == *largest
                            && *task == format!("{}: task {}", ours.stage, ours.task_id)
                    })
                });
                same_total && same_largest
            });
            compared += 1;
            match found {
                Some(place) => {
                    values.remove(place);
                }
                // A metric that nobody told shows as 0 in Spark.
                None if total.as_deref().is_some_and(|total| ZERO.contains(&total)) => {}
                None => wrong.push(format!("{what}: {key:?}: {text:?}, not {values:?}")),
            }
        }
    }
    (compared, wrong)
}

#[test]
fn each_metric_is_what_spark_s_own_ui_shows() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (run, version, executions) in fixtures() {
        if run == "stage_retries" {
            continue;
        }
        let application = application(&run, &version);
        let sql = application.sql.as_deref().expect("asked");
        assert_eq!(sql.len(), executions.len(), "{run} {version}");
        for (ours, theirs) in sql.iter().zip(&executions) {
            let what = format!("{run} {version}, execution {}", ours.id);
            assert_eq!(Some(ours.id), theirs["id"].as_u64(), "{what}");
            let status = match ours.status {
                SqlStatus::Completed => "COMPLETED",
                SqlStatus::Running | SqlStatus::Unknown => "RUNNING",
                SqlStatus::Failed | SqlStatus::Cancelled => "FAILED",
            };
            assert_eq!(Some(status), theirs["status"].as_str(), "{what}");
            let jobs: Vec<u64> = theirs["jobs"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(Value::as_u64)
                .collect();
            let own: Vec<u64> = ours.job_ids.iter().map(|job| u64::from(*job)).collect();
            assert_eq!(own, jobs, "{what}");
            let (count, complaints) = compare(&what, ours, theirs);
            compared += count;
            wrong.extend(complaints);
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 1_000, "only {compared} metrics compared");
}

/// 12 partitions of 20,000 rows; half of them were lost with their executor
/// and computed again by the stage's second attempt, which is all that Spark's
/// UI shows.
#[test]
fn after_a_retry_spark_s_own_ui_shows_the_retry_alone() {
    let mut seen = 0;
    for (run, version, executions) in fixtures() {
        if run != "stage_retries" {
            continue;
        }
        seen += 1;
        let nodes = executions[0]["nodes"].as_array().expect("nodes");
        let range = nodes.iter().find(|node| node["name"] == "Range").expect("a Range");
        let rows = &range["metrics"][0];
        assert_eq!(rows["name"], "number of output rows");
        let shown = rows["value"].as_str().expect("a text").to_owned();
        let application = application(&run, &version);
        let plan = application.sql.as_deref().expect("asked")[0].plan.as_ref().expect("a plan");
        let range = plan.nodes.iter().find(|node| &*node.name == "Range").expect("a Range");
        let ours = range.value("number of output rows").expect("told");
        assert_eq!((ours.total, ours.tasks), (240_000, 12), "{version}");
        assert_eq!(grouped(ours.wasted), shown, "{version}");
        assert!(ours.wasted < ours.total && ours.wasted > 0, "{version}");
    }
    assert!(seen > 0);
}

/// What `cache_evicted` will rest on: rows of the cached table, and rows that
/// anybody computed below its scan.
#[test]
fn a_cached_table_and_what_was_computed_below_it() {
    let application = application("cached", "4.3.0");
    let mut scans = 0;
    for execution in application.sql.as_deref().expect("asked") {
        let plan = execution.plan.as_ref().expect("a plan");
        for (place, node) in plan.nodes.iter().enumerate() {
            if &*node.name != "InMemoryTableScan" {
                continue;
            }
            scans += 1;
            let rows = |node: &PlanNode| node.value("number of output rows").copied();
            let table = rows(node).expect("told");
            let below = plan.below(place).iter().find_map(rows).expect("told");
            // Filled once, and read from memory ever after.
            assert_eq!(table.total, 80_000);
            assert_eq!(below.total + below.elsewhere, 80_000);
        }
    }
    assert_eq!(scans, 2);
}

#[test]
fn what_the_plans_of_one_program_tell() {
    for (version, class) in
        [("3.5.9", "java.lang.RuntimeException"), ("4.3.0", "USER_RAISED_EXCEPTION")]
    {
        let application = application("sql_plans", version);
        let driver = application.driver.as_ref().expect("a driver");
        assert!(driver.peaks.heap.is_some_and(|heap| heap > 10 << 20), "{version}");
        assert!(driver.peaks.jvm_resident > driver.peaks.heap, "{version}");
        assert!(application.executors.iter().all(|executor| executor.peaks.heap.is_some()));
        let executions = application.sql.as_deref().expect("asked");
        let nested: Vec<_> = executions.iter().filter(|one| one.is_nested()).collect();
        assert_eq!(nested.len(), 1, "{version}: of CREATE TABLE AS");
        let failed: Vec<_> =
            executions.iter().filter(|one| one.status == SqlStatus::Failed).collect();
        assert_eq!(failed.len(), 1, "{version}");
        assert_eq!(failed[0].error_class.as_deref(), Some(class));
        let nodes =
            || executions.iter().filter_map(|one| one.plan.as_ref()).flat_map(|plan| &plan.nodes);
        let named = |name: &str| nodes().find(|node| node.name.starts_with(name)).expect("a node");
        // One partition of four is read, and the files of no other.
        let scan = named("Scan parquet");
        assert!(scan.metadata("PartitionFilters").is_some_and(|filters| filters.contains("day")));
        let value = |node: &PlanNode, name| node.value(name).map(|value| value.total);
        assert_eq!(value(scan, "number of partitions read"), Some(1));
        assert_eq!(value(scan, "number of files read"), Some(2));
        assert_eq!(value(named("BroadcastExchange"), "number of output rows"), Some(40));
        assert_eq!(value(named("SortMergeJoin"), "number of output rows"), Some(120_000));
        let written = named("Execute InsertIntoHadoopFsRelationCommand");
        assert_eq!(value(written, "number of written files"), Some(8));
        let python = nodes().find(|node| node.name.ends_with("EvalPython")).expect("Python");
        assert_eq!(value(python, "number of output rows"), Some(2_000), "{version}");
    }
}
