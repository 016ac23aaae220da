use super::*;
use crate::diagnose::builders::{diagnosis, run, stage, task, tasks};
use crate::diagnose::plan_builders::execution;

fn summary(application: &Application) -> RunSummary {
    RunSummary::of(application, &diagnosis(application))
}

/// Two minutes with a join whose ids, numbers and names are those of `night`.
fn night(night: u32) -> Application {
    let mut application = run(120);
    let first = night * 10;
    for (id, from) in [(first, 0), (first + 1, 30_000)] {
        let specs = tasks(8, &task(5_000 + u64::from(night)).scanned(1_000, 64_000));
        let stage = stage(&mut application, id, from, specs);
        stage.name = format!("collect at /home/me/{night}/orders.py:{}", 10 + night);
        stage.job_ids = vec![night];
    }
    execution(
        &mut application,
        u64::from(night),
        &format!(
            "AdaptiveSparkPlan
  SortMergeJoin [a#{night}], [b#{night}], Inner | number of output rows=100 | {last}
    Exchange hashpartitioning(a#{night}, 4) | data size=1000 | {first},{last}
      Scan parquet db.orders_{night} | number of output rows=1000 | {first}",
            last = first + 1
        ),
    );
    application
}

#[test]
fn a_stage_is_the_same_from_run_to_run() {
    let (one, other) = (summary(&night(1)), summary(&night(2)));
    let keys = |run: &RunSummary| -> Vec<(Option<String>, u32)> {
        run.stages.iter().map(|stage| (stage.site.clone(), stage.shape)).collect()
    };
    assert_eq!(keys(&one).len(), 2, "{one:#?}");
    assert_eq!(keys(&one), keys(&other));
    assert_ne!(keys(&one)[0], keys(&one)[1], "same call site, other operators");
    let shapes = |run: &RunSummary| -> Vec<u32> {
        run.plans.iter().flatten().map(|plan| plan.shape).collect()
    };
    assert_eq!(shapes(&one).len(), 1);
    assert_eq!(shapes(&one), shapes(&other));
    let join = one.stages.iter().find(|stage| stage.operators == ["SortMergeJoin"]);
    let join = join.expect("the join");
    assert_eq!(join.longest, (11, 0));
    assert_eq!(join.site.as_deref(), Some("collect at orders.py"));
    assert_eq!((join.count, join.tasks, join.read_records), (1, 8, 8_000));
    assert_eq!(one.data.input_records, Some(16_000));
}

#[test]
fn attempts_of_one_signature_are_one() {
    let mut application = run(120);
    for id in 0..3 {
        let specs = tasks(4, &task(1_000 * u64::from(id + 1)));
        stage(&mut application, id, i64::from(id) * 10_000, specs).name =
            format!("count at loop.py:{id}");
    }
    let summary = summary(&application);
    assert_eq!(summary.stages.len(), 1);
    let stage = &summary.stages[0];
    assert_eq!((stage.count, stage.tasks, stage.longest), (3, 12, (2, 0)));
    assert!((6_000..6_200).contains(&stage.span_ms), "{}", stage.span_ms);
}

#[test]
fn nothing_that_a_user_wrote_is_kept() {
    let mut application = night(1);
    application.name = "hunter2".to_owned();
    application.user = Some("hunter2".to_owned());
    application.stages[0].name = "select 'hunter2' from t where x at y:1".to_owned();
    application.stages[1].failure_reason = Some("hunter2".to_owned());
    for key in [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.app.name",
        "spark.executor.extraJavaOptions",
        "spark.sql.shuffle.partitions",
        "my.key",
        "spark.with space=hunter2",
    ] {
        application.configuration.set(key, "hunter2 /path");
    }
    application.configuration.set("spark.executor.memory", "4g");
    if let Some(execution) = application.sql.iter_mut().flatten().next() {
        execution.description = "hunter2".into();
        execution.configuration.set("spark.sql.my.secret", "hunter2");
        if let Some(plan) = &mut execution.plan {
            plan.nodes[3].name = "Scan hunter2 hunter2".into();
        }
    }
    let summary = summary(&application);
    let json = serde_json::to_string(&summary).expect("JSON");
    assert!(!json.contains("hunter2") && !json.contains("/home"), "{json}");
    let value = SettingSummary::Value("4g".to_owned());
    assert_eq!(summary.settings.get("spark.executor.memory"), Some(&value));
    let secret = summary.settings.get("spark.hadoop.fs.s3a.secret.key");
    assert!(matches!(secret, Some(SettingSummary::Mark(_))));
    // Plain by its key, and not by its value.
    let odd = summary.settings.get("spark.sql.shuffle.partitions");
    assert!(matches!(odd, Some(SettingSummary::Mark(_))));
    assert!(!summary.settings.contains_key("spark.app.name"));
    assert!(!summary.settings.contains_key("my.key"));
    // A changed secret is seen, but for one time in 256.
    application.configuration.set("spark.hadoop.fs.s3a.secret.key", "other");
    let other = RunSummary::of(&application, &diagnosis(&application));
    assert_ne!(other.settings.get("spark.hadoop.fs.s3a.secret.key"), secret);
}

#[test]
fn a_large_run_stays_small_and_is_read_as_it_was_written() {
    let mut application = run(3_600);
    for id in 0..400 {
        let spec = task(100 + u64::from(id));
        let name = format!("collect at file_number_{id}.py:1");
        stage(&mut application, id, i64::from(id) * 1_000, tasks(2, &spec)).name = name;
        let plan = "  Project\n".repeat(id as usize % 40 + 1);
        execution(&mut application, u64::from(id), &format!("HashAggregate\n{plan}"));
        application.configuration.set(format!("spark.my.key.{id}"), "x".repeat(1_000));
    }
    let summary = summary(&application);
    let json = serde_json::to_string(&summary).expect("JSON");
    assert!(json.len() < 16_000, "{} bytes", json.len());
    assert_eq!((summary.stages.len(), summary.stages_omitted), (20, 380));
    assert_eq!(summary.stages[0].longest.0, 399, "the longest are kept");
    assert_eq!((summary.settings.len(), summary.settings_omitted), (60, 340));
    assert_eq!(serde_json::from_str::<RunSummary>(&json).expect("a summary"), summary);
}

#[test]
fn what_another_version_wrote_is_read() {
    assert_eq!(serde_json::from_str::<RunSummary>("{}").expect("read"), RunSummary::default());
    let json = r#"{"duration_ms": 7, "stages": [{"span_ms": 3}], "of_later": [1],
                   "data": {"input_records": 5}, "plans": [{}], "findings": [{"rule": "spill"}]}"#;
    let read: RunSummary = serde_json::from_str(json).expect("read");
    assert_eq!((read.duration_ms, read.stages[0].span_ms), (Some(7), 3));
    assert_eq!(read.data.input_records, Some(5));
}

#[test]
fn what_a_source_does_not_tell_is_not_zero() {
    let mut application = night(1);
    application.sql = None;
    application.stages[0].measures.input_records.sum = None;
    let summary = summary(&application);
    assert_eq!(summary.plans, None);
    assert_eq!(summary.data.input_records, None);
    assert_eq!(summary.data.output_records, Some(0));
    application.end = None;
    assert!(!RunSummary::of(&application, &diagnosis(&application)).end_known);
}
