//! SQL executions and their plans: lines cut by hand, one situation each.

use super::{read_lines, try_read, try_read_with};
use crate::config::{Limits, Size};
use crate::model::{Application, DataQuality, SqlExecution, SqlStatus, StageId};

const START: &str = r#"{"Event":"SparkListenerApplicationStart","App Name":"sql","App ID":"app-1","Timestamp":1000}"#;
const END: &str = r#"{"Event":"SparkListenerApplicationEnd","Timestamp":9999,"ExitCode":0}"#;

fn event(name: &str, fields: &str) -> String {
    format!(r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListener{name}",{fields}}}"#)
}

/// A node with one metric of each unit that a task may tell, from this
/// accumulator on.
fn node(name: &str, accumulator: u64, children: &str) -> String {
    format!(
        r#"{{"nodeName":"{name}","simpleString":"{name} [a#1]","children":[{children}],"metadata":{{}},"metrics":[
            {{"name":"number of output rows","accumulatorId":{accumulator},"metricType":"sum"}},
            {{"name":"sort time","accumulatorId":{},"metricType":"timing"}}]}}"#,
        accumulator + 1
    )
    .replace('\n', "")
}

fn started(id: u64, plan: &str) -> String {
    event(
        "SQLExecutionStart",
        &format!(
            r#""executionId":{id},"rootExecutionId":{id},"description":"d","details":"x","physicalPlanDescription":"p","sparkPlanInfo":{plan},"time":2000,"modifiedConfigs":{{"spark.sql.shuffle.partitions":"4","spark.my.token":"t"}}"#
        ),
    )
}

fn ended(id: u64, error: &str) -> String {
    event("SQLExecutionEnd", &format!(r#""executionId":{id},"time":5000{error}"#))
}

fn job(id: u32, execution: u64, stage: u32) -> String {
    format!(
        r#"{{"Event":"SparkListenerJobStart","Job ID":{id},"Submission Time":2100,"Stage IDs":[{stage}],"Properties":{{"spark.sql.execution.id":"{execution}"}}}}"#
    )
}

fn job_end(id: u32, result: &str) -> String {
    format!(
        r#"{{"Event":"SparkListenerJobEnd","Job ID":{id},"Completion Time":4000,"Job Result":{{"Result":{result}}}}}"#
    )
}

const FAILED: &str = r#""JobFailed","Exception":{"Message":"Job aborted due to stage failure"}"#;

/// A task of partition `id` that told these updates.
fn task(stage: u32, id: u64, reason: &str, updates: &[(u64, i64)]) -> String {
    let accumulables: Vec<String> = updates
        .iter()
        .map(|(id, update)| {
            format!(
                r#"{{"ID":{id},"Name":"n","Update":"{update}","Value":"0","Internal":true,"Count Failed Values":true,"Metadata":"sql"}}"#
            )
        })
        .collect();
    format!(
        r#"{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Stage Attempt ID":0,"Task End Reason":{{"Reason":"{reason}"}},"Task Info":{{"Task ID":{id},"Index":{id},"Attempt":0,"Partition ID":{id},"Launch Time":2200,"Executor ID":"1","Host":"h","Finish Time":3000,"Accumulables":[{}]}},"Task Executor Metrics":{{}},"Task Metrics":{{}}}}"#,
        accumulables.join(",")
    )
}

fn read(lines: &[String]) -> Application {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    read_lines(&[&[START], lines.as_slice(), &[END]].concat()).application
}

fn executions(application: &Application) -> &[SqlExecution] {
    application.sql.as_deref().expect("asked")
}

#[test]
fn the_last_plan_with_what_its_nodes_counted() {
    let first = node("Sort", 10, &node("Scan", 20, ""));
    let last = node("AdaptiveSparkPlan", 30, &node("Sort", 10, &node("Scan", 20, "")));
    let application = read(&[
        started(7, &first),
        job(0, 7, 3),
        task(3, 0, "Success", &[(20, 100), (11, 5), (99, 1)]),
        event("SQLAdaptiveExecutionUpdate", &format!(r#""executionId":7,"sparkPlanInfo":{last}"#)),
        task(3, 1, "Success", &[(20, 40), (11, 7)]),
        task(3, 2, "TaskKilled", &[(20, -3)]),
        // Its output was lost: told again, and no work.
        task(3, 1, "Resubmitted", &[(20, 40)]),
        event(
            "DriverAccumUpdates",
            r#""executionId":7,"accumUpdates":[[30,2],[30,-1],[98,4],[30]]"#,
        ),
        job_end(0, r#""JobSucceeded""#),
        ended(7, r#","errorMessage":"""#),
    ]);
    let [execution] = executions(&application) else { panic!("one execution") };
    assert_eq!((execution.id, execution.status), (7, SqlStatus::Completed));
    assert_eq!((execution.plan_updates, execution.job_ids.as_slice()), (1, &[0][..]));
    assert_eq!(execution.wall(application.observed).map(|wall| wall.as_secs()), Some(3));
    assert_eq!(execution.configuration.get("spark.sql.shuffle.partitions"), Some("4"));
    assert_eq!(execution.configuration.get("spark.my.token"), None);
    let plan = execution.plan.as_ref().expect("a plan");
    let [top, sort, scan] = plan.nodes.as_slice() else { panic!("three nodes") };
    assert_eq!(top.value("number of output rows").map(|value| value.total), Some(2));
    assert!(top.stages.is_empty());
    // Milliseconds become nanoseconds.
    let time = sort.value("sort time").expect("told");
    assert_eq!((time.total, time.tasks), (12_000_000, 2));
    assert_eq!(sort.value("number of output rows"), None);
    let rows = scan.value("number of output rows").expect("told");
    let largest = rows.largest.expect("a task");
    assert_eq!((rows.total, rows.tasks, rows.wasted), (140, 2, 0));
    assert_eq!((largest.value, largest.task_id), (100, 0));
    assert_eq!(scan.stages, [StageId { stage: 3, attempt: 0 }]);
    assert!(application.data_quality.iter().all(|mark| *mark == DataQuality::DroppedEvents));
}

#[test]
fn metrics_that_a_later_plan_names() {
    let added = r#""executionId":1,"sqlPlanMetrics":[{"name":"number of output rows","accumulatorId":40,"metricType":"sum"},null]"#;
    let plan = node("Scan", 40, "");
    let application = read(&[
        started(1, &node("Range", 10, "")),
        event("SQLAdaptiveSQLMetricUpdates", added),
        job(0, 1, 0),
        task(0, 0, "Success", &[(40, 6)]),
        event("SQLAdaptiveExecutionUpdate", &format!(r#""executionId":1,"sparkPlanInfo":{plan}"#)),
        ended(1, ""),
    ]);
    let plan = executions(&application)[0].plan.as_ref().expect("a plan");
    assert_eq!(plan.nodes[0].value("number of output rows").map(|value| value.total), Some(6));
}

#[test]
fn a_cached_plan_is_filled_by_one_execution_and_read_by_others() {
    let scan = |rows| node("InMemoryTableScan", rows, &node("Range", 50, ""));
    let application = read(&[
        started(1, &scan(10)),
        job(0, 1, 0),
        task(0, 0, "Success", &[(10, 80), (50, 80)]),
        started(2, &scan(20)),
        job(1, 2, 1),
        task(1, 0, "Success", &[(20, 80), (50, 30)]),
    ]);
    let totals: Vec<(u64, u64, u64)> = executions(&application)
        .iter()
        .map(|execution| {
            let plan = execution.plan.as_ref().expect("a plan");
            assert!(plan.is_below_cache(1));
            let table = plan.nodes[0].value("number of output rows").expect("told");
            let below = plan.nodes[1].value("number of output rows").expect("told");
            (table.total, below.total, below.elsewhere)
        })
        .collect();
    // 80 rows of table, 110 computed below it: some of them twice.
    assert_eq!(totals, [(80, 80, 30), (80, 30, 80)]);
}

#[test]
fn how_an_execution_stands() {
    let plan = node("Range", 1, "");
    for (lines, status, class) in [
        (vec![ended(1, r#","errorMessage":"""#)], SqlStatus::Completed, None),
        // A job that was tried again is no failure of its query.
        (vec![job_end(0, FAILED), ended(1, r#","errorMessage":"""#)], SqlStatus::Completed, None),
        (
            vec![ended(1, r#","errorMessage":"[DIVIDE_BY_ZERO] Division by zero""#)],
            SqlStatus::Failed,
            Some("DIVIDE_BY_ZERO"),
        ),
        (
            vec![ended(
                1,
                r#","errorMessage":"org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 0 cancelled""#,
            )],
            SqlStatus::Cancelled,
            Some("SPARK_JOB_CANCELLED"),
        ),
        // Before 3.4 an end has no message: the jobs tell.
        (vec![ended(1, "")], SqlStatus::Completed, None),
        (vec![job_end(0, FAILED), ended(1, "")], SqlStatus::Failed, None),
        (vec![], SqlStatus::Unknown, None),
    ] {
        let mut all = vec![started(1, &plan), job(0, 1, 0)];
        all.extend(lines.clone());
        let application = read(&all);
        let execution = &executions(&application)[0];
        assert_eq!(execution.status, status, "{lines:?}");
        assert_eq!(execution.error_class.as_deref(), class, "{lines:?}");
    }
}

#[test]
fn nested_executions_know_their_root() {
    let nested =
        started(2, &node("Range", 1, "")).replace("\"rootExecutionId\":2", "\"rootExecutionId\":1");
    let none = started(3, &node("Range", 5, ""))
        .replace("\"rootExecutionId\":3", "\"rootExecutionId\":-1");
    let application = read(&[started(1, &node("Command", 9, "")), nested, none]);
    let roots: Vec<_> =
        executions(&application).iter().map(|one| (one.root_id, one.is_nested())).collect();
    assert_eq!(roots, [(Some(1), false), (Some(1), true), (None, false)]);
}

/// SPARK-49872: readers have lost the start of a query whose plan has 20
/// million characters, and shown jobs of a query that was not there.
#[test]
fn a_plan_of_21_million_characters() {
    let long = "x".repeat(21_000_000);
    let huge = started(1, &node("Project", 10, &node("Range", 20, "")))
        .replace(
            "\"physicalPlanDescription\":\"p\"",
            &format!("\"physicalPlanDescription\":\"{long}\""),
        )
        .replace("Project [a#1]", &format!("Project [{long} AS a#1]"));
    let rest = [
        job(0, 1, 0),
        task(0, 0, "Success", &[(20, 3)]),
        job_end(0, r#""JobSucceeded""#),
        ended(1, r#","errorMessage":"""#),
    ];
    let mut lines = vec![huge];
    lines.extend(rest.clone());
    let application = read(&lines);
    let plan = executions(&application)[0].plan.as_ref().expect("a plan");
    assert_eq!(plan.nodes[1].value("number of output rows").map(|value| value.total), Some(3));
    assert!(plan.nodes[0].text.as_str().len() <= 1_100);
    assert!(plan.nodes[0].text.as_str().ends_with("AS a#1]"));

    // Over the limit of a line, or not in the log at all.
    let limits = Limits { line_size: Size::mib(8), ..Limits::default() };
    let text = [&[START.to_owned()], lines.as_slice()].concat().join("\n") + "\n";
    let too_long = try_read_with(text.as_bytes(), &limits).expect("a log").application;
    assert!(too_long.has(DataQuality::LongLines));
    for application in [too_long, read(&rest)] {
        assert_eq!(application.jobs[0].sql_execution_id, Some(1));
        let [execution] = executions(&application) else { panic!("its jobs tell of it") };
        assert_eq!((execution.id, execution.status), (1, SqlStatus::Completed));
        assert_eq!((execution.plan.is_none(), execution.start), (true, None));
        assert_eq!(execution.job_ids, [0]);
        assert!(application.has(DataQuality::SqlPlansMissing));
    }
}

#[test]
fn beyond_the_limits_the_old_and_short_ones_go() {
    let limits = Limits { sql_executions: 20, ..Limits::default() };
    let mut lines = vec![START.to_owned()];
    for id in 0..60 {
        lines.push(started(id, &node("Range", id * 10, "")));
        // The third is the longest.
        let end = ended(id, "").replace("5000", if id == 2 { "9000" } else { "2100" });
        lines.push(end);
    }
    let text = lines.join("\n") + "\n";
    let application = try_read_with(text.as_bytes(), &limits).expect("a log").application;
    let ids: Vec<u64> = executions(&application).iter().map(|one| one.id).collect();
    assert_eq!((ids.len(), application.sql_omitted), (20, 40));
    assert!(ids.contains(&2) && ids.contains(&59), "{ids:?}");
    assert!(application.has(DataQuality::SqlExecutionsOmitted));
    assert!(!application.has(DataQuality::SqlPlansMissing));

    let limits = Limits { plan_nodes: 30, ..Limits::default() };
    let application = try_read_with(text.as_bytes(), &limits).expect("a log").application;
    let planned: Vec<u64> = executions(&application)
        .iter()
        .filter(|one| one.plan.is_some())
        .map(|one| one.id)
        .collect();
    assert_eq!(executions(&application).len(), 60);
    assert!((25..=30).contains(&planned.len()), "{planned:?}");
    assert!(planned.contains(&2) && planned.contains(&59), "{planned:?}");
    assert!(application.has(DataQuality::SqlPlansMissing));
    // A plan may have a tenth of all: here three nodes.
    let deep = node("a", 1, &node("b", 3, &node("c", 5, &node("d", 7, ""))));
    let text = format!("{START}\n{}\n", started(1, &deep));
    let application = try_read_with(text.as_bytes(), &limits).expect("a log").application;
    let plan = executions(&application)[0].plan.as_ref().expect("a plan");
    assert_eq!((plan.nodes.len(), plan.nodes_omitted), (3, 1));
    assert!(application.has(DataQuality::SqlPlansMissing));
}

#[test]
fn odd_and_cut_events_cost_themselves() {
    for odd in [
        event("SQLExecutionStart", r#""executionId":null"#),
        event("SQLExecutionStart", r#""executionId":"x","sparkPlanInfo":7"#),
        event("SQLAdaptiveExecutionUpdate", r#""executionId":1,"sparkPlanInfo":null"#),
        event("SQLAdaptiveSQLMetricUpdates", r#""executionId":9,"sqlPlanMetrics":null"#),
        event("DriverAccumUpdates", r#""executionId":9,"accumUpdates":[[1,null],[],[null,3]]"#),
        event("SQLExecutionEnd", r#""time":"soon""#),
        event("SomethingNew", r#""executionId":1"#),
    ] {
        let lines = [START.to_owned(), started(1, &node("Range", 1, "")), odd.clone()].join("\n");
        let outcome = try_read(format!("{lines}\n").as_bytes()).expect("a log");
        assert_eq!(
            (outcome.statistics.bad_lines, outcome.statistics.unknown_events),
            (0, 0),
            "{odd}"
        );
        let executions = outcome.application.sql.expect("asked");
        assert_eq!(executions.len(), 1, "{odd}");
        assert!(executions[0].plan.is_some(), "{odd}");
    }
    let cut = started(1, &node("Range", 1, ""));
    let lines = format!("{START}\n{}\n{END}\n", &cut[..cut.len() - 40]);
    let outcome = try_read(lines.as_bytes()).expect("a log");
    assert_eq!(outcome.statistics.bad_lines, 1);
    assert!(outcome.application.has(DataQuality::BadLines));
}
