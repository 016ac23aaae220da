//! Rules about joins, exchanges and aggregates, on small plans.

use crate::config::Thresholds;
use crate::diagnose::builders::{findings, fired, only, run, stage, task, tasks, warm_up};
use crate::diagnose::plan_builders::execution;
use crate::diagnose::{Finding, Rule, Severity, Subject, diagnose};
use crate::model::Application;

/// A run of 60 s: stages 1 (5 s), 2 (5 s) and 3 (20 s) belong to execution 7.
fn with_plan(plan: &str) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    for (id, from, ms) in [(1, 2_000, 2_500), (2, 8_000, 2_500), (3, 20_000, 10_000)] {
        stage(&mut application, id, from, tasks(8, &task(ms))).job_ids = vec![7];
    }
    execution(&mut application, 7, plan);
    application
}

fn join(kind: &str, rows: [u64; 3], bytes: [u64; 2]) -> String {
    let [out, left, right] = rows;
    let [left_bytes, right_bytes] = bytes;
    format!(
        "
WholeStageCodegen (3)
  SortMergeJoin [secret_key#1], [b#2], {kind} | number of output rows={out} | 3
    Sort [secret_key#1] | sort time=4000 | 3
      ShuffleQueryStage 0
        Exchange hashpartitioning(secret_key#1, 8), ENSURE_REQUIREMENTS, [plan_id=1] | data size={left_bytes}; shuffle write time=6000; shuffle records written={left} | 1,3
          Range (0, 9) | number of output rows={left} | 1
    Sort [b#2] | sort time=1000 | 3
      ShuffleQueryStage 1
        Exchange hashpartitioning(b#2, 8), ENSURE_REQUIREMENTS, [plan_id=2] | data size={right_bytes}; shuffle write time=1000; shuffle records written={right} | 2,3
          Range (0, 9) | number of output rows={right} | 2
"
    )
}

const MIB: u64 = 1 << 20;

fn evidence(finding: &Finding, name: &str) -> f64 {
    let found = finding.evidence.iter().find(|evidence| evidence.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {finding:?}")).value
}

/// Spark's words and numbers only.
fn shows_no_text_of_users(finding: &Finding) {
    let all = format!("{finding:?}");
    assert!(!all.contains("secret"), "{all}");
}

#[test]
fn keys_that_repeat_on_both_sides_explode() {
    let plan = join("Inner", [20_000_000, 300_000, 200_000], [900 * MIB, 800 * MIB]);
    let finding = only(&with_plan(&plan), Rule::JoinExplosion);
    assert_eq!(finding.subject, Subject::PlanNode { sql_id: 7, node: 1 });
    assert_eq!(
        finding.headline.split(", because").next(),
        Some(
            "SortMergeJoin (node 1 of SQL execution 7): 20,000,000 rows come out of 300,000 and \
             200,000, 67x the larger side"
        )
    );
    // 96 % of the 20 s of stage 3.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((18.0..20.0).contains(&wall), "{wall}");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.advice.iter().any(|advice| advice.change.contains("one key")));
    shows_no_text_of_users(&finding);
}

#[test]
fn nine_times_or_few_rows_are_no_explosion() {
    for rows in [[2_700_000, 300_000, 200_000], [900_000, 30_000, 20_000]] {
        let plan = join("Inner", rows, [900 * MIB, 800 * MIB]);
        assert!(findings(&with_plan(&plan), Rule::JoinExplosion).is_empty(), "{rows:?}");
    }
}

#[test]
fn a_slow_join_of_equal_rows_is_no_explosion() {
    let plan = join("Inner", [20_000_000, 20_000_000, 200_000], [900 * MIB, 800 * MIB]);
    assert!(findings(&with_plan(&plan), Rule::JoinExplosion).is_empty());
}

#[test]
fn a_small_side_that_could_be_sent() {
    let plan = join("Inner", [100, 100, 10], [900 * MIB, 20 * MIB]);
    let application = with_plan(&plan);
    let finding = only(&application, Rule::MissedBroadcast);
    assert_eq!(
        finding.headline.split(": ").next(),
        Some(
            "SortMergeJoin (node 1 of SQL execution 7) shuffles 900 MiB to meet 20 MiB, which \
             could be broadcast"
        )
    );
    assert!(finding.advice[0].change.contains("right side"));
    assert!((evidence(&finding, "sides_ratio") - 45.0).abs() < 0.1);
    // 6 s of writing and 5 s of sorting on four slots.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((2.0..3.0).contains(&wall), "{wall}");
    shows_no_text_of_users(&finding);
}

#[test]
fn below_spark_s_threshold_any_ratio_will_do() {
    let plan = join("Inner", [100, 100, 10], [40 * MIB, 8 * MIB]);
    let mut application = with_plan(&plan);
    assert_eq!(findings(&application, Rule::MissedBroadcast).len(), 1);
    application.configuration.set("spark.sql.autoBroadcastJoinThreshold", "5MB");
    assert!(findings(&application, Rule::MissedBroadcast).is_empty());
    // The session's own word counts.
    let executions = application.sql.as_mut().expect("executions");
    executions[0].configuration.set("spark.sql.autoBroadcastJoinThreshold", "10485760");
    let finding = only(&application, Rule::MissedBroadcast);
    assert!(finding.advice.iter().any(|advice| advice.change.contains("now 10 MiB")));
    application.configuration.set("spark.sql.adaptive.enabled", "false");
    let finding = only(&application, Rule::MissedBroadcast);
    assert!(finding.advice.iter().any(|advice| advice.change.contains("adaptive.enabled=true")));
}

#[test]
fn broadcasts_that_are_not_missed() {
    for (kind, bytes, why) in [
        ("Inner", [300 * MIB, 20 * MIB], "15 times only"),
        ("Inner", [900 * MIB * 100, 120 * MIB], "not small"),
        ("RightOuter", [900 * MIB, 20 * MIB], "keeps the small side"),
        ("FullOuter", [900 * MIB, 2 * MIB], "keeps both"),
        ("LeftSemi", [2 * MIB, 900 * MIB], "only the right side can be built"),
    ] {
        let plan = join(kind, [100, 100, 10], bytes);
        assert!(findings(&with_plan(&plan), Rule::MissedBroadcast).is_empty(), "{why}");
    }
    // Turned into a broadcast on the way.
    let plan = join("Inner", [100, 100, 10], [900 * MIB, 2 * MIB]).replace(
        "SortMergeJoin [secret_key#1], [b#2], Inner",
        "BroadcastHashJoin [a#1], [b#2], Inner, BuildRight, false",
    );
    assert!(findings(&with_plan(&plan), Rule::MissedBroadcast).is_empty());
}

fn loop_join(left: u64, right: u64) -> String {
    format!(
        "
Project [a#1]
  BroadcastNestedLoopJoin BuildRight, Inner, (secret#1 < b#2) | number of output rows=1000 | 3
    Range (0, 9) | number of output rows={left} | 3
    InputAdapter
      BroadcastQueryStage 0
        BroadcastExchange IdentityBroadcastMode, [plan_id=1] | data size=1000; number of output rows={right}
          Range (0, 9) | number of output rows={right} | 1
"
    )
}

#[test]
fn comparing_all_with_all() {
    let finding = only(&with_plan(&loop_join(500_000, 4_000)), Rule::Cartesian);
    assert_eq!(
        finding.headline.split(" pairs").next(),
        Some(
            "BroadcastNestedLoopJoin (node 1 of SQL execution 7) has no key: it compares 500,000 \
             rows with 4,000, 2,000,000,000"
        )
    );
    assert!(finding.impact.wall.expect("a saving").as_secs_f64() > 18.0);
    shows_no_text_of_users(&finding);
    for (left, right, why) in
        [(3_000, 3_000, "few pairs"), (20_000_000, 1, "one row"), (20_000_000, 9, "a few rows")]
    {
        assert!(findings(&with_plan(&loop_join(left, right)), Rule::Cartesian).is_empty(), "{why}");
    }
}

#[test]
fn rows_of_a_cartesian_product_are_counted_once_for_each_part_of_the_other() {
    // 2 x 4 partitions, 8 tasks: the left side was computed four times, the right twice.
    let plan = "
CartesianProduct (a#1 < b#2) | number of output rows=1000 | 3
  Range (0, 9) | number of output rows=400000 | 3
  Range (0, 9) | number of output rows=20000 | 3
";
    let finding = only(&with_plan(plan), Rule::Cartesian);
    assert!((evidence(&finding, "pairs") - 1e9).abs() < 1.0);
    assert!(finding.advice.iter().any(|advice| advice.change.contains("Broadcast")));
}

fn broadcast(bytes: u64) -> String {
    format!(
        "
BroadcastHashJoin [a#1], [b#2], Inner, BuildRight, false | number of output rows=1000 | 3
  Range (0, 9) | number of output rows=1000 | 3
  BroadcastQueryStage 0
    BroadcastExchange HashedRelationBroadcastMode(secret) | data size={bytes}; number of output rows=100; time to collect=7000; time to build=3000; time to broadcast=500
      Range (0, 9) | number of output rows=100 | 2
"
    )
}

#[test]
fn a_broadcast_that_fills_the_heap() {
    // Executors and driver have Spark's default of 1 GiB.
    let mut application = with_plan(&broadcast(400 * MIB));
    let finding = only(&application, Rule::LargeBroadcast);
    assert_eq!(finding.severity, Severity::Warning);
    assert!((evidence(&finding, "heap_share") - 400.0 / 1024.0).abs() < 0.001);
    // From the end of stage 2 at 13 s to stage 3 at 20 s nothing ran.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((6.5..7.5).contains(&wall), "{wall}");
    shows_no_text_of_users(&finding);

    application.configuration.set("spark.executor.memory", "8g");
    application.configuration.set("spark.driver.memory", "8g");
    assert!(findings(&application, Rule::LargeBroadcast).is_empty(), "little of these heaps");
    assert!(findings(&with_plan(&broadcast(200 * MIB)), Rule::LargeBroadcast).is_empty());
}

fn group_by(rows: u64, put: u64, function: &str) -> String {
    format!(
        "
HashAggregate(keys=[a#1], functions=[{function}(b#2)]) | number of output rows=10 | 3
  Exchange hashpartitioning(a#1, 8), ENSURE_REQUIREMENTS, [plan_id=1] | data size=1000 | 1,3
    HashAggregate(keys=[a#1], functions=[partial_{function}(b#2)]) | number of output rows={put} | 1
      WholeStageCodegen (1)
        Range (0, 9) | number of output rows={rows} | 1
"
    )
}

#[test]
fn rows_added_up_before_the_shuffle() {
    let finding = only(&with_plan(&group_by(5_000_000, 40_000, "sum")), Rule::PartialAggregation);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.subject, Subject::SqlExecution { sql_id: 7 });
    for (plan, why) in [
        (group_by(5_000_000, 600_000, "sum"), "12 % are left"),
        (group_by(500_000, 4_000, "sum"), "few rows"),
        (group_by(5_000_000, 40_000, "collect_list"), "gathers rows"),
        (group_by(5_000_000, 40_000, "sum").replace("keys=[a#1]", "keys=[]"), "no key"),
    ] {
        assert!(findings(&with_plan(&plan), Rule::PartialAggregation).is_empty(), "{why}");
    }
    // An execution that is a trifle of the run.
    let mut application = with_plan(&group_by(5_000_000, 40_000, "sum"));
    application.sql.as_mut().expect("executions")[0].job_ids.clear();
    assert!(fired(&application).is_empty());
}

#[test]
fn distinct_values_are_counted_in_two_phases() {
    let plan = "
HashAggregate(keys=[a#1], functions=[count(distinct secret#2)]) | number of output rows=10 | 3
  Exchange hashpartitioning(a#1, 8), ENSURE_REQUIREMENTS, [plan_id=1] | data size=1000 | 2,3
    HashAggregate(keys=[a#1], functions=[partial_count(distinct secret#2)]) | number of output rows=80 | 2
      HashAggregate(keys=[a#1, secret#2], functions=[]) | number of output rows=3000000 | 2
        Exchange hashpartitioning(a#1, secret#2, 8), ENSURE_REQUIREMENTS, [plan_id=2] | data size=1000 | 1,2
          HashAggregate(keys=[a#1, secret#2], functions=[]) | number of output rows=3000000 | 1
            Range (0, 9) | number of output rows=3100000 | 1
";
    let application = with_plan(plan);
    let finding = only(&application, Rule::CountDistinct);
    assert_eq!(finding.severity, Severity::Info);
    assert!((evidence(&finding, "input_rows") - 3_100_000.0).abs() < 0.1);
    assert!(findings(&application, Rule::PartialAggregation).is_empty());
    shows_no_text_of_users(&finding);
    let unique = plan.replace("(distinct secret#2)", "(1)");
    assert!(findings(&with_plan(&unique), Rule::CountDistinct).is_empty());
}

#[test]
fn several_times_the_input_through_a_shuffle() {
    let plan = "
HashAggregate(keys=[a#1], functions=[sum(b#2)]) | number of output rows=10 | 3
  Exchange hashpartitioning(secret#1, 8), ENSURE_REQUIREMENTS, [plan_id=1] | data size=1000; shuffle bytes written=12000000000; shuffle records written=90 | 1,3
    Expand [a#1] | number of output rows=90 | 1
      Scan parquet secret.table | number of output rows=30 | 1
";
    let mut application = with_plan(plan);
    let scan = &mut application.stages[1].measures;
    scan.input_bytes.sum = Some(4_000_000_000);
    scan.shuffle_write_bytes.sum = Some(12_000_000_000);
    scan.shuffle_write_time.sum = Some(std::time::Duration::from_secs(12));
    let finding = only(&application, Rule::ShuffleHeavy);
    assert_eq!(finding.subject, Subject::PlanNode { sql_id: 7, node: 1 });
    assert!(finding.advice[0].change.contains("after the shuffle"));
    assert!((evidence(&finding, "shuffle_ratio") - 3.0).abs() < 0.01);
    shows_no_text_of_users(&finding);
    // As much as it read; and input that nobody counts.
    application.stages[1].measures.input_bytes.sum = Some(7_000_000_000);
    assert!(findings(&application, Rule::ShuffleHeavy).is_empty());
    application.stages[1].measures.input_bytes.sum = Some(0);
    assert!(findings(&application, Rule::ShuffleHeavy).is_empty());
}

fn branches(left: &str, right: &str) -> String {
    format!(
        "
Union | number of output rows=20 | 3
  HashAggregate(keys=[c#1], functions=[sum(x#2)]) | number of output rows=10 | 3
    Exchange hashpartitioning(c#1, 8), ENSURE_REQUIREMENTS, [plan_id=1] | data size=1000 | 1,3
      WholeStageCodegen (1)
        HashAggregate(keys=[c#1], functions=[partial_sum(x#2)]) | number of output rows=10 | 1
{left}
  HashAggregate(keys=[d#11], functions=[sum(x#12)]) | number of output rows=10 | 3
    Exchange hashpartitioning(d#11, 8), ENSURE_REQUIREMENTS, [plan_id=2] | data size=1000 | 2,3
      WholeStageCodegen (2)
        HashAggregate(keys=[d#11], functions=[partial_sum(x#12)]) | number of output rows=10 | 2
{right}
"
    )
}

fn branch(columns: &str, condition: &str, rows: u64, stage: u32) -> String {
    format!(
        "          Project [{columns}]
            Filter {condition} | number of output rows={rows} | {stage}
              Scan parquet secret.table | number of output rows=1000 | {stage}"
    )
}

#[test]
fn the_same_rows_computed_twice() {
    let left = branch("c#1, sha2(a#3, 512) AS x#2", "(a#3 > 7)", 900, 1);
    let right = branch("d#11, sha2(a#13, 512) AS x#12", "(a#13 > 7)", 900, 2);
    let finding = only(&with_plan(&branches(&left, &right)), Rule::RepeatedSubplan);
    assert_eq!(
        finding.headline.split(": ").next(),
        Some(
            "Project (node 5 of SQL execution 7) and the 2 operators below it are computed 2 times \
             (again at node 12)"
        )
    );
    // One of two stages of 5 s.
    let wall = finding.impact.wall.expect("a saving").as_secs_f64();
    assert!((4.0..5.5).contains(&wall), "{wall}");
    shows_no_text_of_users(&finding);
    for (right, why) in [
        (branch("d#11, sha2(a#13, 512) AS x#12", "(a#13 > 8)", 900, 2), "another filter"),
        (branch("d#11, sha2(a#13, 512) AS x#12", "(a#13 > 7)", 901, 2), "other rows"),
        (branch("d#11, upper(a#13) AS x#12", "(a#13 > 7)", 900, 2), "another function"),
    ] {
        let plan = branches(&left, &right);
        assert!(findings(&with_plan(&plan), Rule::RepeatedSubplan).is_empty(), "{why}");
    }
    // Nothing is computed but two scans.
    let (left, right) = (branch("c#1", "(a#3 > 7)", 900, 1), branch("d#11", "(a#13 > 7)", 900, 2));
    assert!(findings(&with_plan(&branches(&left, &right)), Rule::RepeatedSubplan).is_empty());
}

#[test]
fn what_spark_shares_is_not_repeated() {
    let cached = |stage: u32| {
        format!(
            "          InMemoryTableScan [c#1] | number of output rows=900 | {stage}
            Project [c#1, sha2(a#3, 512) AS x#2]
              Filter (a#3 > 7) | number of output rows=900 | 0
                Scan parquet secret.table | number of output rows=1000 | 0"
        )
    };
    let plan = branches(&cached(1), &cached(2));
    assert!(findings(&with_plan(&plan), Rule::RepeatedSubplan).is_empty());
}

#[test]
fn each_rule_can_be_switched_off() {
    let plan = join("Inner", [20_000_000, 300_000, 200_000], [900 * MIB, 20 * MIB]);
    let application = with_plan(&plan);
    let mut thresholds = Thresholds::default();
    let count = |thresholds: &Thresholds| {
        let of_plans = [Rule::JoinExplosion, Rule::MissedBroadcast];
        let found = diagnose(&application, thresholds).findings;
        found.iter().filter(|finding| of_plans.contains(&finding.rule)).count()
    };
    assert_eq!(count(&thresholds), 2);
    thresholds.join_explosion.enabled = false;
    thresholds.missed_broadcast.enabled = false;
    assert_eq!(count(&thresholds), 0);
}
