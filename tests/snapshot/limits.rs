//! What is left out where there is too much: the costliest stay, and all that
//! goes is counted.

use std::time::Duration;

use proptest::prelude::*;
use spark_exporter::config::Limits;
use spark_exporter::diagnose::{Rule, Severity, Subject};
use spark_exporter::metrics::catalogue::Id;
use spark_exporter::metrics::{Snapshot, build};
use spark_exporter::model::{StageStatus, State};
use spark_exporter::telemetry::Telemetry;
use spark_exporter::telemetry::events::SeriesDropped;

use crate::support::{at, changed, executor, finding, run_id, skewed_run, skewed_stage};
use crate::{labels, one, one_without_runs, run, snapshot, value};

#[test]
fn ids_that_are_equal_once_cut_do_not_make_a_series_twice() {
    let limits = Limits { label_length: 10, ..Limits::default() };
    let runs: Vec<_> =
        (0..3).map(|n| skewed_run(run_id("default", &format!("application_{n}")))).collect();
    let snapshot = snapshot(&runs, &limits);
    assert_eq!(snapshot.duplicate(), None);
    assert_eq!(snapshot.family(Id::ApplicationStart).len(), 1);
}

#[test]
fn findings_about_several_jobs_share_a_series() {
    let snapshot = one(changed(&run(), |application, diagnosis| {
        application.jobs.clear();
        diagnosis.findings = (0..3)
            .map(|job_id| {
                finding(Rule::JobFailed, None, Severity::Critical, Subject::Job { job_id })
            })
            .collect();
    }));
    assert_eq!(value(&snapshot, Id::Finding, None), Some(1.0));
    assert_eq!(value(&snapshot, Id::FindingWall, None), Some(148.5));
    assert_eq!(value(&snapshot, Id::ApplicationFindings, Some("critical")), Some(3.0));
}

#[test]
fn only_the_costliest_get_series_and_the_rest_is_counted() {
    let view = changed(&run(), |application, diagnosis| {
        application.stages = (0..30)
            .map(|id| {
                let mut stage = skewed_stage(id, StageStatus::Complete);
                stage.measures.run_time.sum = Some(Duration::from_secs(u64::from(id)));
                stage
            })
            .collect();
        application.stages[3].status = StageStatus::Active;
        application.executors = (0..7).map(executor).collect();
        diagnosis.findings = (0..30)
            .map(|stage_id| {
                let subject = Subject::Stage { stage_id, stage_attempt_id: 0 };
                finding(Rule::DataSkew, None, Severity::Warning, subject)
            })
            .collect();
    });
    let limits = Limits {
        stages_exported: 4,
        executors_exported: 5,
        findings_exported: 6,
        ..Limits::default()
    };
    let snapshot = snapshot(&[view], &limits);
    let stages: Vec<_> =
        snapshot.family(Id::StageDuration).iter().map(|sample| labels(sample)[3].clone()).collect();
    // The active one first, then by run time.
    assert_eq!(stages, ["3", "29", "28", "27"]);
    assert_eq!(snapshot.family(Id::ExecutorCores).len(), 5);
    assert_eq!(snapshot.family(Id::Finding).len(), 6);
    assert_eq!(snapshot.dropped()["findings_limit"], 24 * 3);
    assert_eq!(snapshot.dropped()["executors_limit"] % 2, 0);
    assert!(snapshot.dropped()["stages_limit"] > 26 * 40);
}

#[test]
fn the_series_limit_holds_and_the_daemon_s_own_series_stay() {
    let runs: Vec<_> =
        (0..50).map(|n| skewed_run(run_id("default", &format!("app-{n}")))).collect();
    for series in [0, 300, 1_000, 3_000] {
        let limits = Limits { series, ..Limits::default() };
        let snapshot = snapshot(&runs, &limits);
        assert!(snapshot.series() <= series.max(one_without_runs()), "{series}");
        assert_eq!(snapshot.duplicate(), None);
        assert_eq!(value(&snapshot, Id::Series, None), Some(snapshot.series() as f64));
        let dropped = snapshot.dropped()["series_limit"];
        let all = self::snapshot(&runs, &Limits::default()).series() as u64;
        assert_eq!(dropped + snapshot.series() as u64, all, "{series}: all is accounted for");
        // Numbers of every run come before the stages of any.
        if series == 1_000 {
            assert!(snapshot.family(Id::ApplicationStart).len() > 5);
            assert!(snapshot.family(Id::StageDuration).is_empty());
        }
    }
}
#[test]
fn dropped_series_add_up_over_snapshots() {
    let telemetry = Telemetry::default();
    let limits = Limits { executors_exported: 1, ..Limits::default() };
    for round in 1..=3_u32 {
        let snapshot = build(&[run()], &[], &telemetry.snapshot(), &limits, at(80));
        let shown = value(&snapshot, Id::SeriesDropped, Some("executors_limit"));
        let each = snapshot.dropped()["executors_limit"];
        assert_eq!(shown, Some(each as f64 * f64::from(round)));
        for (reason, count) in snapshot.dropped() {
            SeriesDropped { reason, count: *count }.emit(&telemetry);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever runs come, also with equal and hostile ids: no series twice,
    /// never over the limit, all series accounted for.
    #[test]
    fn no_input_breaks_an_exposition(
        ids in proptest::collection::vec(("[ab]{0,2}", "[a\n ]{0,3}", 0_i64..3, any::<bool>()), 0..8),
        executors in proptest::collection::vec("[12\t]{0,2}", 0..6),
        jobs in proptest::collection::vec(0_u32..3, 0..6),
        series in 0_usize..4_000,
        label_length in 0_usize..4,
    ) {
        let runs: Vec<_> = ids
            .into_iter()
            .map(|(cluster, app_id, start, running)| {
                changed(&run(), |application, diagnosis| {
                    application.id = run_id(&cluster, &app_id);
                    application.start = Some(at(start));
                    application.state = if running { State::Running } else { State::Killed };
                    application.executors = executors
                        .iter()
                        .map(|id| spark_exporter::model::Executor { id: id.clone(), ..executor(1) })
                        .collect();
                    diagnosis.findings.extend(jobs.iter().map(|job_id| {
                        let subject = Subject::Job { job_id: *job_id };
                        finding(Rule::JobFailed, None, Severity::Critical, subject)
                    }));
                    diagnosis.findings.extend(executors.iter().map(|id| {
                        let subject = Subject::Executor { executor_id: id.clone() };
                        finding(Rule::ExecutorLost, None, Severity::Warning, subject)
                    }));
                })
            })
            .collect();
        let all = snapshot(&runs, &Limits { label_length, ..Limits::default() });
        let cut = snapshot(&runs, &Limits { label_length, series, ..Limits::default() });
        prop_assert_eq!(cut.duplicate(), None);
        prop_assert!(cut.series() <= series.max(one_without_runs()));
        let dropped = |snapshot: &Snapshot| snapshot.dropped().values().sum::<u64>();
        prop_assert_eq!(
            cut.series() as u64 + dropped(&cut),
            all.series() as u64 + dropped(&all)
        );
    }
}
