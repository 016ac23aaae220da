//! Tests of [`super::executions`] on small plans.

use super::builders::{run, stage, task, tasks};
use super::context::Context;
use super::executions::{ExecutionView, NodeRef};
use super::plan_builders::execution;
use crate::config::Thresholds;
use crate::model::Application;

const JOIN: &str = "
AdaptiveSparkPlan isFinalPlan=true
  ResultQueryStage 2
    WholeStageCodegen (5)
      Project [a#1]
        SortMergeJoin [a#1], [b#2], Inner | number of output rows=300 | 3
          InputAdapter
            WholeStageCodegen (3)
              Sort [a#1 ASC NULLS FIRST], false, 0 | sort time=20 | 3
                InputAdapter
                  AQEShuffleRead coalesced
                    ShuffleQueryStage 0
                      Exchange hashpartitioning(a#1, 16), ENSURE_REQUIREMENTS, [plan_id=7] | data size=900 | 1,3
                        Project [a#1]
                          Filter (a#1 > scalar-subquery#9) | number of output rows=100 | 1
                            Subquery subquery#9
                              HashAggregate(keys=[], functions=[max(c#3)]) | number of output rows=1 | 0
                            Scan parquet secret.table | number of output rows=200 | 1
          Sort [b#2 ASC NULLS FIRST], false, 0
            ReusedExchange [b#2], Exchange hashpartitioning(a#1, 16), ENSURE_REQUIREMENTS, [plan_id=7]
";

fn application(plan: &str) -> Application {
    let mut application = run(60);
    for id in 0..4 {
        stage(&mut application, id, i64::from(id) * 5_000, tasks(4, &task(1_000))).job_ids =
            vec![7];
    }
    execution(&mut application, 7, plan);
    application
}

fn with<T>(plan: &str, test: impl FnOnce(&ExecutionView<'_>, &dyn Fn(&str) -> usize) -> T) -> T {
    let application = application(plan);
    let thresholds = Thresholds::default();
    let context = Context::new(&application, &thresholds);
    let view = &context.executions[0];
    let place = |name: &str| {
        view.nodes()
            .find(|node| node.node.text.as_str().starts_with(name))
            .unwrap_or_else(|| panic!("no {name}"))
            .place
    };
    test(view, &place)
}

fn node<'a>(view: &ExecutionView<'a>, place: usize) -> NodeRef<'a> {
    view.nodes().nth(place).expect("a node")
}

#[test]
fn rows_pass_through_what_keeps_their_number() {
    with(JOIN, |view, place| {
        for (name, rows) in [
            ("AdaptiveSparkPlan", Some(300)),
            ("Project", Some(300)),
            ("SortMergeJoin", Some(300)),
            ("InputAdapter", Some(100)),
            ("Exchange", Some(100)),
            ("ReusedExchange", Some(100)),
            ("Scan parquet", Some(200)),
        ] {
            assert_eq!(node(view, place(name)).rows(), rows, "{name}");
        }
        let join = node(view, place("SortMergeJoin"));
        let sides: Vec<_> = join.inputs().map(|side| side.rows()).collect();
        assert_eq!(sides, [Some(100), Some(100)]);
    });
}

#[test]
fn subqueries_are_no_inputs() {
    with(JOIN, |view, place| {
        let filter = node(view, place("Filter"));
        assert_eq!(filter.children().count(), 2);
        let inputs: Vec<String> = filter.inputs().map(|input| input.operator()).collect();
        assert_eq!(inputs, ["Scan parquet"]);
    });
}

#[test]
fn who_did_the_work_of_a_node() {
    with(JOIN, |view, place| {
        for (name, stages) in [
            ("AdaptiveSparkPlan", vec![3]),
            ("Project", vec![3]),
            ("SortMergeJoin", vec![3]),
            ("AQEShuffleRead", vec![3]),
            // An exchange is written by the stage below it.
            ("Exchange", vec![1]),
            ("Scan parquet", vec![1]),
            ("HashAggregate", vec![0]),
        ] {
            assert_eq!(view.stages_of(node(view, place(name))), stages, "{name}");
        }
    });
}

#[test]
fn exchanges_behind_wrappers_and_reused_ones() {
    with(JOIN, |view, place| {
        let exchange = place("Exchange");
        let join = node(view, place("SortMergeJoin"));
        let feeding: Vec<usize> = join
            .inputs()
            .filter_map(|input| input.feeding_exchange())
            .map(|exchange| exchange.place)
            .collect();
        assert_eq!(feeding, [exchange, exchange]);
    });
}

#[test]
fn rows_below_a_cache_are_of_who_filled_it() {
    let cached = "
HashAggregate(keys=[], functions=[count(1)]) | number of output rows=1 | 3
  TableCacheQueryStage 0
    InMemoryTableScan [a#1] | number of output rows=10 | 3
      HashAggregate(keys=[a#1], functions=[count(1)]) | number of output rows=10 | 1
";
    with(cached, |view, _| {
        assert_eq!(node(view, 0).rows(), Some(1));
        assert_eq!(node(view, 2).rows(), Some(10));
        assert_eq!(node(view, 3).rows(), None);
    });
    let by_name = "
Scan In-memory table secret | number of output rows=10 | 3
  Range (0, 9) | number of output rows=10 | 1
";
    with(by_name, |view, _| {
        assert_eq!(node(view, 1).rows(), None);
        assert_eq!(node(view, 0).name(), "Scan (node 0 of SQL execution 7)");
    });
}

#[test]
fn rows_of_a_union_and_of_nodes_that_do_not_tell() {
    let union = "
Union
  Filter a | number of output rows=3 | 1
  Project [a#1]
    Range (0, 9) | number of output rows=4 | 1
";
    with(union, |view, _| assert_eq!(node(view, 0).rows(), Some(7)));
    let sample = "
Sample 0.1
  Range (0, 9) | number of output rows=4 | 1
";
    with(sample, |view, _| assert_eq!(node(view, 0).rows(), None));
    // A reused exchange of another plan.
    with("ReusedExchange [b#2], Exchange x, [plan_id=99]", |view, _| {
        assert_eq!(node(view, 0).rows(), None);
    });
}
