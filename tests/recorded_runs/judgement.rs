//! Eight rules of judgement that people who read Spark's UI learn the hard
//! way, each on two real runs: one in which the obvious verdict is right, and
//! one that looks alike and in which it is wrong.

use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::{Cause, Finding, Rule, diagnose};
use spark_exporter::model::{Application, Stage};

use super::recorded;
use Rule::{
    CountDistinct, DataSkew, JoinExplosion, PartialAggregation, Partitioning, SchedulingDelay,
    Straggler,
};

/// The run as the newest Spark recorded it.
fn run(name: &str) -> Application {
    let found = recorded().into_iter().filter(|(run, _, _)| run == name);
    let (_, _, application) = found.last().unwrap_or_else(|| panic!("{name} is not recorded"));
    application
}

fn findings(application: &Application) -> Vec<Finding> {
    diagnose(application, &Thresholds::default()).findings
}

fn find(name: &str, rule: Rule) -> Option<Finding> {
    findings(&run(name)).into_iter().find(|finding| finding.rule == rule)
}

fn must(name: &str, rule: Rule) -> Finding {
    find(name, rule).unwrap_or_else(|| panic!("{name}: no {}", rule.as_str()))
}

fn must_not(name: &str, rule: Rule) {
    if let Some(finding) = find(name, rule) {
        panic!("{name}: {}", finding.headline);
    }
}

/// All that is advised, without when it does not help.
fn advice(finding: &Finding) -> String {
    let changes: Vec<&str> = finding.advice.iter().map(|advice| advice.change.as_str()).collect();
    changes.join("\n")
}

fn evidence(finding: &Finding, name: &str) -> f64 {
    let found = finding.evidence.iter().find(|evidence| evidence.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", finding.evidence)).value
}

/// The stage whose tasks ran longest.
fn worst(application: &Application) -> &Stage {
    let stages = application.stages.iter();
    stages.max_by_key(|stage| stage.measures.run_time.sum).expect("a stage")
}

fn ratio(quantiles: Option<spark_exporter::model::Quantiles<u64>>) -> f64 {
    quantiles.and_then(|quantiles| quantiles.max_to_median()).expect("a ratio")
}

/// 1. Skew is records and duration, not shuffle bytes alone.
#[test]
fn bytes_alone_are_no_skew() {
    let right = run("hot_key");
    assert!(ratio(worst(&right).measures.shuffle_read_bytes.quantiles) > 20.0);
    assert_eq!(must("hot_key", DataSkew).cause, Some(Cause::HotKey));

    let wrong = run("wide_rows");
    assert!(ratio(worst(&wrong).measures.shuffle_read_bytes.quantiles) > 20.0);
    assert!(ratio(worst(&wrong).measures.shuffle_read_records.quantiles) < 1.5);
    must_not("wide_rows", DataSkew);
    must_not("wide_rows", Straggler);
    // And the other way: bytes are nearly even, and it is skew.
    assert_eq!(must("compressible_hot_key", DataSkew).cause, Some(Cause::CompressibleHotKey));
}

/// 2. A slow task may be the first on a cold executor.
#[test]
fn a_cold_start_is_no_skew() {
    must("hot_key", DataSkew);
    must_not("hot_key", Straggler);
    must_not("straggler_cold_executor", DataSkew);
    for finding in findings(&run("straggler_cold_executor")) {
        if finding.rule == Straggler {
            assert_eq!(finding.cause, Some(Cause::ColdExecutor));
            assert!(!advice(&finding).to_lowercase().contains("salt"));
        }
    }
}

/// 3. Adding up before the shuffle hides the skew of a GROUP BY: where it
///    shrinks the data there is none left, and where it gathers rows the records
///    do not show what there is.
#[test]
fn partial_aggregation_hides_the_keys() {
    let right = must("hot_key_aggregate", DataSkew);
    assert_eq!(right.cause, Some(Cause::HotKey));
    assert!(right.headline.contains("ObjectHashAggregate"), "{}", right.headline);
    assert!(evidence(&right, "records_ratio") < 1.5);
    assert!(evidence(&right, "bytes_ratio") > 20.0);
    let advice = advice(&right);
    assert!(advice.contains("two steps"), "{advice}");
    assert!(!advice.contains("skewJoin") && !advice.contains("adaptive"), "{advice}");

    // The same keys, 85 % of the rows in one of them.
    must_not("partial_aggregation", DataSkew);
    must_not("partial_aggregation", Straggler);
    let note = must("partial_aggregation", PartialAggregation);
    assert!(evidence(&note, "rows_ratio") < 0.01);
}

/// 4. `count(DISTINCT)` shuffles by key and value first.
#[test]
fn count_distinct_is_no_group_by() {
    // A GROUP BY that gathers its values itself is skewed ...
    must("hot_key_aggregate", DataSkew);
    // ... and one that counts distinct ones is not, though nothing shrinks
    // before its first shuffle.
    let note = must("count_distinct", CountDistinct);
    assert!(evidence(&note, "distinct_rows") > 0.9 * evidence(&note, "input_rows"));
    must_not("count_distinct", DataSkew);
    must_not("count_distinct", Straggler);
    must_not("count_distinct", PartialAggregation);
}

/// 5. Adaptive execution splits a partition by its compressed size.
#[test]
fn aqe_looks_at_compressed_bytes() {
    // Both with skew join on and the same sizes set.
    must_not("hot_key-split", DataSkew);
    let plan_splits = |application: &Application| {
        let executions = application.sql.iter().flatten();
        executions
            .filter_map(|execution| execution.plan.as_ref())
            .any(|plan| plan.nodes.iter().any(|node| node.name.contains("skew=true")))
    };
    assert!(plan_splits(&run("hot_key-split")));

    assert!(!plan_splits(&run("compressible_hot_key-split")));
    let skew = must("compressible_hot_key-split", DataSkew);
    assert_eq!(skew.cause, Some(Cause::CompressibleHotKey));
    let first = &skew.advice[0].change;
    assert!(first.contains("Salt") && first.contains("does not split it"), "{first}");
    assert!(!advice(&skew).contains("skewJoin.enabled=true"));
}

/// 6. More partitions do not dilute one hot key.
#[test]
fn more_partitions_leave_one_key_where_it_is() {
    // Too few tasks for the cores: here more of them help, and it is said.
    let few = must("partitioning_too_few", Partitioning);
    assert!(advice(&few).contains("partitions"), "{}", advice(&few));

    // Sixteen and sixty-four partitions, and the slowest task has as much to do.
    let slowest = |name: &str| {
        let application = run(name);
        worst(&application).measures.shuffle_read_records.max().expect("records")
    };
    let (coarse, fine) = (slowest("hot_key"), slowest("hot_key-64_partitions"));
    assert!(fine as f64 > 0.9 * coarse as f64, "{coarse} {fine}");
    for name in ["hot_key", "hot_key-64_partitions", "compressible_hot_key", "hot_key_window"] {
        let advice = advice(&must(name, DataSkew));
        assert!(!advice.contains("shuffle.partitions"), "{name}: {advice}");
        assert!(!advice.contains("more shuffle partitions"), "{name}: {advice}");
        must_not(name, Partitioning);
    }
}

/// 7. Where a stage took far longer than its tasks ran, look at scheduling
///    first; and do not call it scheduling where the application's own tasks held
///    the cores.
#[test]
fn wall_far_above_run_time() {
    let delay = must("scheduling_no_executors", SchedulingDelay);
    assert_eq!(delay.cause, Some(Cause::NoExecutors));
    must_not("scheduling_no_executors", DataSkew);
    assert_eq!(must("scheduling_locality", SchedulingDelay).cause, Some(Cause::Locality));

    // A stage that waited longer than its tasks ran, for its sibling's tasks.
    let busy = run("cores_busy");
    let waited = busy.stages.iter().any(|stage| {
        let (Some(submitted), Some(first)) = (stage.submitted, stage.first_task_launched) else {
            return false;
        };
        first.duration_since(submitted).as_secs_f64() > 5.0
    });
    assert!(waited);
    must_not("cores_busy", SchedulingDelay);
}

/// 8. A join explodes only where far more rows come out than go in.
#[test]
fn a_slow_join_need_not_explode() {
    let explosion = must("join_explosion", JoinExplosion);
    assert!(evidence(&explosion, "rows_ratio") > 50.0);
    must_not("join_explosion", DataSkew);
    // As slow a join, whose rows are as many as went in: their distribution.
    must_not("hot_key", JoinExplosion);
    must("hot_key", DataSkew);
    // A million rows more than went in, and it costs little.
    if recorded().iter().any(|(run, _, _)| run == "join_explosion-few") {
        must_not("join_explosion-few", JoinExplosion);
    }
}

/// Who is told what: adaptive skew join is for joins, and the operator has a
/// name.
#[test]
fn advice_fits_the_operator() {
    for (name, operator) in [
        ("hot_key", "SortMergeJoin"),
        ("compressible_hot_key", "SortMergeJoin"),
        ("hot_key_window", "Window"),
        ("hot_key_aggregate", "ObjectHashAggregate"),
    ] {
        for (run, version, application) in recorded() {
            if run != name {
                continue;
            }
            let found = findings(&application);
            let skew = found.iter().find(|finding| finding.rule == DataSkew);
            let skew = skew.unwrap_or_else(|| panic!("{name} {version}"));
            let node = format!(", in {operator} (node ");
            assert!(skew.headline.contains(&node), "{version}: {}", skew.headline);
            let about_joins = advice(skew).contains("skewJoin");
            assert_eq!(about_joins, operator == "SortMergeJoin", "{name} {version}");
            assert!(
                skew.evidence.iter().any(|evidence| evidence.from.contains("of SQL execution"))
            );
        }
    }
}

/// Ten GiB take too long to record: the same at a fiftieth of the scale.
#[test]
fn several_times_the_input_is_shuffle_heavy_at_a_smaller_scale() {
    let small: Thresholds = serde_json::from_str(
        r#"{"shuffle_heavy": {"bytes": "200MiB"}, "cost": {"emit_min": "100ms"}}"#,
    )
    .expect("thresholds");
    let found = |name: &str| {
        diagnose(&run(name), &small)
            .findings
            .into_iter()
            .find(|finding| finding.rule == Rule::ShuffleHeavy)
    };
    let heavy = found("shuffle_heavy").expect("shuffle_heavy");
    assert!(evidence(&heavy, "shuffle_ratio") > 3.0);
    assert!(heavy.headline.contains("most of it in Exchange (node "), "{}", heavy.headline);
    assert!(heavy.advice[0].change.contains("after the shuffle"));
    assert!(found("shuffle_heavy-healthy").is_none());
}
