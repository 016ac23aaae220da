//! Python, caches and files: what plans tell of them.

use std::time::Duration;

use crate::config::Thresholds;
use crate::diagnose::builders::{at, findings, only, run, stage, task, tasks, warm_up};
use crate::diagnose::{Cause, Confidence, Finding, Rule, Severity, diagnose};
use crate::model::{
    Application, CachedRdd, MetricKind, MetricValue, Plan, PlanMetric, PlanNode, SqlExecution,
    SqlStatus, StageId,
};
use MetricKind::{Bytes, Count, Nanoseconds};

/// Depth, name, arguments (the name again where it has none), and metrics with
/// what tasks of this execution told.
type Line<'a> = (usize, &'a str, &'a str, &'a [(&'a str, MetricKind, u64)]);

/// A plan of which every node with metrics ran in `ran`. Accumulators are
/// numbered alike in every plan: equal places are shared.
fn plan(lines: &[Line<'_>], ran: &[u32]) -> Plan {
    let nodes = lines.iter().enumerate().map(|(place, (depth, name, text, metrics))| {
        let parent = lines[..place].iter().rposition(|(above, ..)| above < depth);
        let below = lines[place + 1..].iter().position(|(next, ..)| next <= depth);
        let metrics: Vec<PlanMetric> = metrics
            .iter()
            .enumerate()
            .map(|(i, (name, kind, total))| PlanMetric {
                name: (*name).into(),
                kind: *kind,
                accumulator: (place * 100 + i) as u64,
                value: Some(Box::new(MetricValue { total: *total, ..MetricValue::default() })),
            })
            .collect();
        let told = metrics.iter().any(|metric| metric.value.is_some());
        let stages = if told { ran } else { &[] };
        PlanNode {
            name: (*name).into(),
            text: (*text).into(),
            parent: parent.map(|parent| parent as u32),
            end: below.map_or(lines.len(), |below| place + 1 + below) as u32,
            metadata: Vec::new(),
            metrics,
            stages: stages.iter().map(|stage| StageId { stage: *stage, attempt: 0 }).collect(),
        }
    });
    Plan { nodes: nodes.collect(), nodes_omitted: 0 }
}

/// Adds an execution from `from` to `to` (seconds), with job and stages of the
/// same number.
fn execution(application: &mut Application, id: u32, times: (i64, i64), plan: Plan) {
    for stage in &mut application.stages {
        if stage.id.stage == id {
            stage.job_ids = vec![id];
        }
    }
    let mut execution = SqlExecution::new(u64::from(id));
    execution.status = SqlStatus::Completed;
    execution.start = Some(at(times.0 * 1_000));
    execution.end = Some(at(times.1 * 1_000));
    execution.job_ids = vec![id];
    execution.plan = Some(plan);
    application.sql.get_or_insert_default().push(execution);
}

/// A run of two minutes whose stage 1 spends 40 s of four cores on tasks of
/// which the JVM computes `cpu` of each second.
fn outside_the_jvm(cpu: f64, lines: &[Line<'_>]) -> Application {
    let mut application = run(120);
    warm_up(&mut application);
    let spec = task(4_000).with(|metrics| metrics.cpu_time = metrics.run_time.mul_f64(cpu));
    stage(&mut application, 1, 5_000, tasks(40, &spec));
    execution(&mut application, 1, (4, 50), plan(lines, &[1]));
    application
}

const ROWS: &str = "number of output rows";
const RANGE: Line<'_> = (2, "Range", "Range (0, 100)", &[(ROWS, Count, 5_000_000)]);
const HEAVY: Line<'_> = (1, "Filter", "Filter (sha2(x#1, 512) > 0)", &[(ROWS, Count, 5_000_000)]);
const LIGHT: Line<'_> = (1, "Project", "Project [x#1]", &[]);

#[test]
fn python_row_by_row() {
    let pickled: Line<'_> =
        (0, "BatchEvalPython", "BatchEvalPython [f(x#1)]", &[(ROWS, Count, 5_000_000)]);
    let finding = only(&outside_the_jvm(0.02, &[pickled, LIGHT, RANGE]), Rule::PythonUdf);
    assert_eq!((finding.cause, finding.severity), (None, Severity::Warning));
    assert!(finding.impact.wall > Some(Duration::from_secs(30)), "{finding:?}");
    assert!(!finding.headline.contains("up to"), "{}", finding.headline);

    // Fed by something that may cost as much: 10 microseconds a row remain.
    let finding = only(&outside_the_jvm(0.02, &[pickled, HEAVY, RANGE]), Rule::PythonUdf);
    assert!(finding.headline.contains("up to"), "{}", finding.headline);
    assert!(finding.impact.core <= Some(Duration::from_secs(51)), "{finding:?}");

    // By Arrow, and still row by row.
    let carried = (0, "ArrowEvalPython", "ArrowEvalPython [f(x#1)], [p#2], 101", pickled.3);
    assert_eq!(only(&outside_the_jvm(0.02, &[carried, LIGHT, RANGE]), Rule::PythonUdf).cause, None);

    // The JVM is at work, Python hardly.
    let busy = outside_the_jvm(0.97, &[pickled, LIGHT, RANGE]);
    assert!(findings(&busy, Rule::PythonUdf).is_empty());
}

#[test]
fn vectorised_python_is_slow_only_where_it_is_proven() {
    let node: Line<'_> =
        (0, "ArrowEvalPython", "ArrowEvalPython [f(x#1)], [p#2], 200", &[(ROWS, Count, 5_000_000)]);
    let slow = only(&outside_the_jvm(0.02, &[node, LIGHT, RANGE]), Rule::PythonUdf);
    assert_eq!(slow.cause, Some(Cause::SlowVectorised));
    assert_eq!((slow.severity, slow.impact.wall), (Severity::Info, None));

    // 3.5: the thread that feeds Python computes unseen.
    assert!(findings(&outside_the_jvm(0.02, &[node, HEAVY, RANGE]), Rule::PythonUdf).is_empty());

    // 4.x: seen, and Python's own time counts the wait for it.
    let measured: &[(&str, MetricKind, u64)] = &[
        (ROWS, Count, 5_000_000),
        ("time to start Python workers", Nanoseconds, 1_000_000_000),
        ("time to initialize Python workers", Nanoseconds, 1_000_000_000),
        ("time to execute Python code", Nanoseconds, 150_000_000_000),
    ];
    let node = (node.0, node.1, node.2, measured);
    assert!(findings(&outside_the_jvm(0.3, &[node, HEAVY, RANGE]), Rule::PythonUdf).is_empty());
    let slow = only(&outside_the_jvm(0.02, &[node, HEAVY, RANGE]), Rule::PythonUdf);
    assert_eq!(slow.cause, Some(Cause::SlowVectorised));

    // A sort that feeds it has measured itself.
    let sort: Line<'_> =
        (1, "Sort", "Sort [x#1 ASC]", &[("sort time", Nanoseconds, 120_000_000_000)]);
    let grouped: Line<'_> =
        (0, "FlatMapGroupsInPandas", "FlatMapGroupsInPandas [x#1], f(x#1)", &[(ROWS, Count, 10)]);
    let exchange: Line<'_> = (2, "Exchange", "Exchange hashpartitioning(x#1, 4)", &[]);
    assert!(
        findings(&outside_the_jvm(0.02, &[grouped, sort, exchange]), Rule::PythonUdf).is_empty()
    );
}

#[test]
fn python_below_a_filled_cache_did_not_run() {
    let mut application = outside_the_jvm(0.02, &[]);
    let cached = plan(
        &[
            (0, "InMemoryTableScan", "InMemoryTableScan", &[]),
            (1, "BatchEvalPython", "BatchEvalPython [f(x#1)]", &[(ROWS, Count, 5_000_000)]),
            (2, "Range", "Range", &[]),
        ],
        &[],
    );
    application.sql.as_mut().expect("executions")[0].plan = Some(cached);
    assert!(findings(&application, Rule::PythonUdf).is_empty());
}

/// Readings of a cached table of 1,000,000 rows: when, how many scans, rows
/// that each scan gave, rows computed below it.
fn readings(of: &[((i64, i64), usize, u64, u64)]) -> Application {
    let mut application = run(120);
    warm_up(&mut application);
    for (id, (times, scans, given, computed)) in of.iter().enumerate() {
        let id = id as u32 + 1;
        stage(&mut application, id, times.0 * 1_000, tasks(8, &task(2_000)));
        let given = [(ROWS, Count, *given)];
        let computed = [(ROWS, Count, *computed)];
        let mut lines: Vec<Line<'_>> = vec![(0, "Union", "Union", &[])];
        for _ in 0..*scans {
            lines.push((1, "InMemoryTableScan", "InMemoryTableScan [x#1]", &given));
            lines.push((2, "Project", "Project [x#1]", &[]));
            lines.push((3, "Range", "Range", &computed));
        }
        let mut plan = plan(&lines, &[id]);
        for node in &mut plan.nodes {
            // The table's own accumulator, in whichever plan and place.
            for metric in node.metrics.iter_mut().filter(|_| &*node.name == "Range") {
                metric.accumulator = 7;
            }
        }
        execution(&mut application, id, *times, plan);
    }
    application
}

const MILLION: u64 = 1_000_000;

#[test]
fn rows_of_a_cache_computed_again() {
    let filled = ((5, 10), 1, MILLION, MILLION);
    let half = |from: i64| ((from, from + 5), 1, MILLION, MILLION / 2);
    let finding = only(&readings(&[filled, half(20), half(30)]), Rule::CacheEvicted);
    assert_eq!(finding.evidence[0].name, "computed_ratio");
    assert!((finding.evidence[0].value - 2.0).abs() < 1e-9, "{finding:?}");
    assert!(finding.impact.estimated && finding.impact.core > Some(Duration::from_secs(14)));

    let kept = ((40, 45), 1, MILLION, 0);
    assert!(findings(&readings(&[filled, kept, kept]), Rule::CacheEvicted).is_empty());
    let little = ((20, 25), 1, MILLION, 2 * MILLION / 5);
    assert!(findings(&readings(&[filled, little]), Rule::CacheEvicted).is_empty(), "1.4");
}

#[test]
fn filling_a_cache_is_not_losing_it() {
    // Two scans of one execution fill it at the same time on two executors.
    let twice = ((5, 10), 2, MILLION, 2 * MILLION);
    let kept = ((20, 25), 1, MILLION, 0);
    assert!(findings(&readings(&[twice, kept]), Rule::CacheEvicted).is_empty());
    // So do two executions that run beside each other.
    let one = ((5, 10), 1, MILLION, MILLION);
    let beside = ((7, 12), 1, MILLION, MILLION);
    assert!(findings(&readings(&[one, beside, kept]), Rule::CacheEvicted).is_empty());
    // A filter skips batches of what it fills: fewer rows come out than are
    // computed.
    let filtered = ((5, 10), 1, MILLION / 10, MILLION);
    assert!(findings(&readings(&[filtered, filtered_later()]), Rule::CacheEvicted).is_empty());
}

fn filtered_later() -> ((i64, i64), usize, u64, u64) {
    ((20, 25), 1, MILLION / 10, 0)
}

#[test]
fn partitions_missing_from_storage() {
    let storage = |partitions, cached_partitions, readings: u32| {
        let mut application = run(120);
        warm_up(&mut application);
        for id in 1..=readings {
            let from = i64::from(id) * 10_000;
            stage(&mut application, id, from, tasks(8, &task(2_000))).rdd_ids = vec![5, 9];
        }
        let table =
            CachedRdd { id: 9, partitions, cached_partitions, memory_bytes: 1, disk_bytes: 0 };
        application.cached.push(table);
        findings(&application, Rule::CacheEvicted)
    };
    let found = storage(8, 4, 2);
    assert_eq!((found[0].severity, found[0].confidence), (Severity::Info, Confidence::Low));
    assert!(storage(8, 6, 2).is_empty(), "three quarters are there");
    assert!(storage(8, 4, 1).is_empty(), "nobody has read it again");
    assert!(storage(10, 1, 2).is_empty(), "a limit looked at some partitions only");
}

/// A scan in stage 1, of which a quarter of the time is measured as scan.
fn scan(files: u64, bytes: u64, partitions: Option<u64>, metadata: &[(&str, &str)]) -> Application {
    let mut application = run(120);
    warm_up(&mut application);
    let spec = task(4_000).scanned(1_000, bytes / 40);
    stage(&mut application, 1, 5_000, tasks(40, &spec));
    let mut metrics = vec![
        ("number of files read", Count, files),
        ("size of files read", Bytes, bytes),
        ("scan time", Nanoseconds, 80_000_000_000),
    ];
    metrics.extend(partitions.map(|partitions| ("number of partitions read", Count, partitions)));
    let mut plan = plan(&[(0, "Scan parquet secret.table", "FileScan", &metrics)], &[1]);
    plan.nodes[0].metadata =
        metadata.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    execution(&mut application, 1, (4, 50), plan);
    application
}

fn says_no_text_of_users(finding: &Finding) {
    let said = format!("{} {:?} {:?}", finding.headline, finding.evidence, finding.advice);
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn small_files_cost_their_opening() {
    let finding = only(&scan(5_000, 5_000 * 20_000, None, &[]), Rule::SmallFilesRead);
    // Of 80 s scan time nearly all, on four cores.
    let core = finding.impact.core.expect("core-seconds").as_secs_f64();
    assert!((75.0..80.1).contains(&core), "{core}");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.headline.starts_with("Scan parquet (node 0"), "{}", finding.headline);
    says_no_text_of_users(&finding);
    for (files, bytes) in [(100, 2_000_000), (5_000, 5_000 * (4 << 20))] {
        assert!(findings(&scan(files, bytes, None, &[]), Rule::SmallFilesRead).is_empty());
    }
}

#[test]
fn small_files_of_a_text_format_cost_only_what_was_waited() {
    let mut application = scan(5_000, 5_000 * 20_000, None, &[]);
    let plan = application.sql.as_mut().expect("executions")[0].plan.as_mut().expect("a plan");
    plan.nodes[0].metrics.retain(|metric| &*metric.name != "scan time");
    // Nine tenths of the tasks' time is CPU time.
    let core = only(&application, Rule::SmallFilesRead).impact.core.expect("core-seconds");
    assert!(core < Duration::from_secs(17), "{core:?}");
}

#[test]
fn many_small_files_written() {
    let written = |files: u64, bytes: u64, partitions: u64| {
        let mut application = run(120);
        warm_up(&mut application);
        stage(&mut application, 1, 5_000, tasks(8, &task(1_000)));
        let metrics = [
            ("number of written files", Count, files),
            ("written output", Bytes, bytes),
            ("number of dynamic part", Count, partitions),
        ];
        let name = "Execute InsertIntoHadoopFsRelationCommand";
        execution(&mut application, 1, (4, 20), plan(&[(0, name, "secret", &metrics)], &[1]));
        findings(&application, Rule::SmallFilesWritten)
    };
    assert_eq!(written(200, 200 << 10, 0)[0].severity, Severity::Info);
    let many = &written(2_000, 20 << 20, 10)[0];
    assert_eq!(many.severity, Severity::Warning);
    assert!(many.advice[0].change.contains("Repartition by the partition columns"));
    says_no_text_of_users(many);
    let partitions = &written(200, 200 << 10, 200)[0];
    assert!(partitions.advice[0].change.contains("coarser"));
    assert!(written(100, 100, 0).is_empty());
    assert!(written(200, 200 * (4 << 20), 0).is_empty());
}

#[test]
fn a_partitioned_table_read_in_full() {
    const GIB: u64 = 1 << 30;
    let no_filter = [("PartitionFilters", "[]"), ("DataFilters", "[(secret#1 = 3)]")];
    let finding = only(&scan(400, 20 * GIB, Some(30), &no_filter), Rule::FullScan);
    assert_eq!((finding.severity, finding.confidence), (Severity::Info, Confidence::Medium));
    says_no_text_of_users(&finding);
    let filtered = [("PartitionFilters", "[(day#1 = 3)]")];
    let pruned = [("PartitionFilters", "[dynamicpruningexpression(day#1 IN subquery#2)]")];
    for silent in [
        scan(400, 20 * GIB, None, &no_filter),
        scan(400, 20 * GIB, Some(30), &filtered),
        scan(400, 20 * GIB, Some(30), &pruned),
        scan(400, 20 * GIB, Some(30), &[]),
        scan(400, 9 * GIB, Some(30), &no_filter),
    ] {
        assert!(findings(&silent, Rule::FullScan).is_empty());
    }
    // A limit: planned to read all, read a little.
    let mut limited = scan(400, 20 * GIB, Some(30), &no_filter);
    limited.stages[1].measures.input_bytes.sum = Some(GIB);
    assert!(findings(&limited, Rule::FullScan).is_empty());
    let mut thresholds = Thresholds::default();
    thresholds.full_scan.enabled = false;
    let application = scan(400, 20 * GIB, Some(30), &no_filter);
    let none = diagnose(&application, &thresholds).findings;
    assert!(none.iter().all(|finding| finding.rule != Rule::FullScan));
}
