//! Whole traces as text. `INSTA_UPDATE=always cargo test --test traces` writes
//! them again.

use spark_exporter::model::State;

use crate::waterfall::draw;
use crate::{recorded, settings, view, whole};

fn trace(name: &str) -> String {
    draw(&whole(&view(recorded(name)), &settings()))
}

#[test]
fn a_skewed_join() {
    insta::assert_snapshot!(trace("hot_key/4.3.0"));
}

#[test]
fn a_failed_run() {
    insta::assert_snapshot!(trace("job_failed/4.3.0"));
}

#[test]
fn stages_that_ran_again() {
    insta::assert_snapshot!(trace("stage_retries/4.3.0"));
}

#[test]
fn sql_with_nested_executions() {
    insta::assert_snapshot!(trace("sql_plans/4.3.0"));
}

#[test]
fn a_stream() {
    insta::assert_snapshot!(trace("streaming/4.3.0"));
}

#[test]
fn a_run_that_was_left() {
    let mut application = recorded("left_running/4.3.0");
    assert_eq!(application.state, State::Running);
    application.state = State::Lost;
    insta::assert_snapshot!(draw(&whole(&view(application), &settings())));
}
