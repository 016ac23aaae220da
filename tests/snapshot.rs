//! What a snapshot holds and what it leaves out, on made-up runs.

mod support;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use spark_exporter::config::Limits;
use spark_exporter::diagnose::{Rule, Severity, StageNumbers, Subject};
use spark_exporter::metrics::catalogue::{CATALOGUE, Id, Kind, Scope};
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{Family, NameView, RunView, Sample, Snapshot, Value, build};
use spark_exporter::model::{
    DataQuality, Distribution, DriverPod, KubernetesFacts, Pod, PodName, PodPhase, Source, Stage,
    StageId, StageStatus, State, StreamingState,
};
use spark_exporter::store::{NameKey, OVERFLOW_NAME, RuleTotal, Totals};
use spark_exporter::telemetry::events::{NameOverflowed, SeriesDropped, SubmissionTold};
use spark_exporter::telemetry::{SubmissionId, SubmissionStatus, Telemetry, TelemetrySnapshot};
use support::everything::{busy, full_run};
use support::{at, changed, executor, finding, name_view, run_id, skewed_run, skewed_stage};

fn snapshot(runs: &[RunView], limits: &Limits) -> Snapshot {
    build(runs, &[], &TelemetrySnapshot::default(), limits, at(80))
}

fn one(view: RunView) -> Snapshot {
    snapshot(&[view], &Limits::default())
}

fn labels(sample: &Sample) -> Vec<String> {
    sample.label_values().map(|value| value.to_string()).collect()
}

/// The value of the only series, or of the one whose last label is `last`.
fn value(snapshot: &Snapshot, id: Id, last: Option<&str>) -> Option<f64> {
    let mut found = snapshot
        .family(id)
        .iter()
        .filter(|sample| last.is_none() || labels(sample).last().map(String::as_str) == last);
    let first = found.next()?;
    assert!(found.next().is_none(), "{id:?}: more than one series");
    first.value.number()
}

/// Nothing was counted for it yet.
fn new_name() -> NameView {
    let name = NameKey { cluster: "default".to_owned(), app_name: "new".to_owned() };
    NameView::new(name, Totals::default())
}

fn run() -> RunView {
    skewed_run(run_id("default", "app-1"))
}

#[test]
fn the_exposition_of_a_small_run() {
    let telemetry = TelemetrySnapshot {
        started: Some(at(-60)),
        build: spark_exporter::telemetry::Revision { version: "1.2.3", revision: "abcdef" },
        ..TelemetrySnapshot::default()
    };
    let names = [name_view("default", "orders"), new_name()];
    let snapshot = build(&[run()], &names, &telemetry, &Limits::default(), at(80));
    let snapshot = Arc::new(snapshot);
    insta::assert_snapshot!("prometheus", render(&snapshot, Format::Prometheus));
    insta::assert_snapshot!("openmetrics", render(&snapshot, Format::OpenMetrics));
}

#[test]
fn every_series_has_the_labels_of_its_metric() {
    for family in one(run()).families() {
        let names = family.metric.label_names().count();
        for sample in &family.samples {
            assert_eq!(sample.label_values().count(), names, "{}", family.metric.name);
        }
    }
}

#[test]
fn no_subject_has_more_series_than_the_documentation_promises() {
    for family in one(run()).families() {
        let mut counts = std::collections::HashMap::new();
        for sample in &family.samples {
            *counts.entry(sample.labels.clone()).or_insert(0) += 1;
        }
        let most = counts.into_values().max().unwrap_or(0);
        assert!(most <= family.metric.times, "{}: {most}", family.metric.name);
    }
}

#[test]
fn every_metric_of_the_catalogue_can_be_made() {
    // Whatever no part of the code ever writes is a promise that nobody keeps.
    let snapshot = build(
        &[full_run("app-1")],
        &[name_view("c", "orders")],
        &busy().snapshot(),
        &Limits::default(),
        at(80),
    );
    let missing: Vec<_> = CATALOGUE
        .iter()
        .filter(|metric| !snapshot.families().any(|family| family.metric.name == metric.name))
        .map(|metric| metric.name)
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Its driver's pod, and the labels of it that the operator allows.
fn in_pod(view: &RunView, labels: &[(&str, &str)]) -> RunView {
    changed(view, |application, _| {
        let pod = Pod {
            name: PodName {
                namespace: "etl".into(),
                name: "orders-driver".into(),
                uid: "1".into(),
            },
            node: None,
            phase: PodPhase::Running,
            reason: None,
            end: None,
            deletion: None,
            deleted: false,
        };
        let labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let driver = DriverPod { pod, app_id: Some("app-1".into()), labels };
        application.learn(&KubernetesFacts {
            driver: Some(Arc::new(driver)),
            ..KubernetesFacts::default()
        });
    })
}

#[test]
fn labels_of_a_pod_are_on_the_info_of_its_run_only() {
    let text = "a \"b\"\nc".to_owned() + &"x".repeat(1_000);
    let labels = [("app.kubernetes.io/part-of", text.as_str()), ("team", "etl"), ("empty", "")];
    let mut other = run();
    other = changed(&other, |application, _| application.id.app_id = "app-2".to_owned());
    let snapshot = snapshot(&[in_pod(&run(), &labels), other], &Limits::default());
    assert_eq!(snapshot.duplicate(), None);
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let text = render(&Arc::new(snapshot.clone()), format);
        let infos: Vec<&str> =
            text.lines().filter(|line| line.starts_with("spark_application_info{")).collect();
        assert_eq!(infos.len(), 2);
        let (told, untold): (Vec<&str>, Vec<&str>) =
            infos.into_iter().partition(|line| line.contains("app_id=\"app-1\""));
        assert!(
            told[0].contains(
                "k8s_namespace_name=\"etl\",k8s_pod_name=\"orders-driver\",\
                 label_app_kubernetes_io_part_of=\"a \\\"b\\\" cx"
            ),
            "{}",
            told[0]
        );
        assert!(told[0].contains("label_team=\"etl\"") && !told[0].contains("label_empty"));
        assert!(!told[0].contains("k8s_node_name"), "what is not known has no label");
        assert!(told[0].len() < 800, "{}", told[0].len());
        assert!(!untold[0].contains("k8s_") && !untold[0].contains("label_"), "{}", untold[0]);
        assert_eq!(text.matches("label_team").count(), 1);
    }
}

#[test]
fn submissions_are_counted_and_those_to_look_at_are_bounded() {
    let telemetry = Telemetry::new(at(0));
    let tell = |number: u32, state: Option<&'static str>, attempts| {
        let id = SubmissionId {
            cluster: "c".to_owned(),
            operator: "kubeflow",
            namespace: "etl".to_owned(),
            name: format!("orders-{number}"),
        };
        let submitted = Some(at(number.into()));
        let status = state.map(|state| SubmissionStatus { state, attempts, submitted });
        SubmissionTold { id, status }.emit(&telemetry);
    };
    let series = |id: Id| {
        let snapshot = build(&[], &[], &telemetry.snapshot(), &Limits::default(), at(80));
        let family = snapshot.family(id).iter();
        let told = family.map(|one| (labels(one).join(" "), one.value.number().unwrap()));
        told.collect::<Vec<_>>()
    };
    assert!(series(Id::KubernetesSubmissions).is_empty(), "no operator, no series");
    tell(1, Some("running"), 1);
    tell(2, Some("running"), 3);
    tell(3, Some("submission_failed"), 0);
    let counts = series(Id::KubernetesSubmissions);
    assert_eq!(counts.len(), 7);
    assert!(counts.contains(&("c kubeflow running".to_owned(), 2.0)));
    assert!(counts.contains(&("c kubeflow failed".to_owned(), 0.0)));
    let attempts = series(Id::KubernetesSubmissionAttempts);
    let named: Vec<&str> = attempts.iter().map(|(labels, _)| labels.as_str()).collect();
    assert_eq!(
        named,
        ["c kubeflow etl orders-3 submission_failed", "c kubeflow etl orders-2 running"]
    );
    for number in 10..200 {
        tell(number, Some("failed"), 1);
    }
    assert_eq!(series(Id::KubernetesSubmissionAttempts).len(), 100);
    for number in 1..200 {
        tell(number, None, 0);
    }
    assert!(series(Id::KubernetesSubmissionAttempts).is_empty());
}

#[test]
fn numbers_go_through_unchanged() {
    let snapshot = one(run());
    assert_eq!(value(&snapshot, Id::ApplicationTaskRunTime, None), Some(80.0));
    assert_eq!(value(&snapshot, Id::StageTaskRunTimeMedian, None), Some(2.0));
    assert_eq!(value(&snapshot, Id::StageTaskRunTimeMax, None), Some(60.0));
    assert_eq!(value(&snapshot, Id::StageDuration, None), Some(65.0));
    assert_eq!(value(&snapshot, Id::StageIoPerCore, Some("shuffle_read")), Some(33_408.0));
    assert_eq!(value(&snapshot, Id::StageIoPerCore, Some("input")), None);
    assert_eq!(value(&snapshot, Id::ApplicationState, Some("running")), Some(1.0));
    assert_eq!(value(&snapshot, Id::ApplicationState, Some("failed")), Some(0.0));
    assert_eq!(snapshot.family(Id::ApplicationState).len(), State::ALL.len());
    assert_eq!(value(&snapshot, Id::ApplicationEnd, None), None);
    assert_eq!(value(&snapshot, Id::ApplicationExecutorCores, None), Some(4.0));
    assert_eq!(value(&snapshot, Id::FindingWall, None), Some(49.5));
    assert_eq!(
        labels(&snapshot.family(Id::Finding)[0]),
        [
            "default",
            "app-1",
            "",
            "orders \"daily\"",
            "data_skew",
            "hot_key",
            "warning",
            "stage",
            "1",
            "0",
            "3",
            ""
        ]
    );
}

#[test]
fn what_a_source_cannot_tell_is_absent() {
    // A stage that ran and whose scheduler delay is unknown: no sum at all.
    let view = changed(&run(), |application, diagnosis| {
        application.stages.push(Stage {
            measures: spark_exporter::model::Measures {
                scheduler_delay: Distribution::default(),
                ..skewed_stage(2, StageStatus::Complete).measures
            },
            ..skewed_stage(2, StageStatus::Complete)
        });
        diagnosis.totals.gc_ratio = None;
        diagnosis.stages.insert(
            StageId { stage: 2, attempt: 0 },
            StageNumbers {
                gc_ratio: Some(f64::NAN),
                spill_ratio: Some(f64::INFINITY),
                ..StageNumbers::default()
            },
        );
    });
    let snapshot = one(view);
    assert_eq!(value(&snapshot, Id::ApplicationTaskSchedulerDelay, None), None);
    assert_eq!(value(&snapshot, Id::ApplicationTaskRunTime, None), Some(160.0));
    assert_eq!(value(&snapshot, Id::ApplicationGcRatio, None), None);
    assert_eq!(snapshot.family(Id::StageTaskSchedulerDelay).len(), 1);
    assert_eq!(snapshot.family(Id::StageGcRatio).len(), 1);
    assert_eq!(snapshot.family(Id::StageSpillRatio).len(), 1);
}

#[test]
fn a_list_that_did_not_come_is_not_an_empty_list() {
    let unanswered = changed(&run(), |application, _| {
        application.jobs.clear();
        application.executors.clear();
        application.stages.clear();
        application.cached.clear();
    });
    let none = one(unanswered.clone());
    assert_eq!(none.family(Id::ApplicationJobs).len(), 5);
    assert_eq!(value(&none, Id::ApplicationExecutors, None), Some(0.0));
    let missing = one(changed(&unanswered, |application, _| {
        application.data_quality.insert(DataQuality::EndpointsMissing);
    }));
    for id in [
        Id::ApplicationJobs,
        Id::ApplicationStages,
        Id::ApplicationTasks,
        Id::ApplicationExecutors,
        Id::ApplicationCachedRdds,
    ] {
        assert!(missing.family(id).is_empty(), "{id:?}");
    }
}

#[test]
fn a_finished_run_has_no_living_executor() {
    let snapshot = one(changed(&run(), |application, _| {
        application.state = State::Succeeded;
        application.end = Some(at(75));
        application.source = Source::EventLog;
    }));
    assert_eq!(value(&snapshot, Id::ApplicationExecutors, None), Some(0.0));
    assert_eq!(value(&snapshot, Id::ApplicationExecutorsAdded, None), Some(2.0));
    assert!(
        snapshot.family(Id::ExecutorAlive).iter().all(|sample| sample.value == Value::Number(0.0))
    );
    // An event log does not tell what is cached.
    assert_eq!(value(&snapshot, Id::ApplicationCachedRdds, None), None);
}

#[test]
fn the_same_id_in_two_clusters_is_two_runs() {
    let runs = [skewed_run(run_id("a", "app-1")), skewed_run(run_id("b", "app-1"))];
    let snapshot = snapshot(&runs, &Limits::default());
    assert_eq!(snapshot.family(Id::ApplicationStart).len(), 2);
    assert_eq!(snapshot.duplicate(), None);
    assert!(snapshot.dropped().is_empty());
}

#[test]
fn of_two_runs_with_equal_labels_the_later_is_shown() {
    let earlier = run();
    let later = changed(&earlier, |application, _| application.start = Some(at(50)));
    for runs in [[earlier.clone(), later.clone()], [later, earlier]] {
        let snapshot = snapshot(&runs, &Limits::default());
        assert_eq!(snapshot.duplicate(), None);
        let start = at(50).as_second() as f64;
        assert_eq!(value(&snapshot, Id::ApplicationStart, None), Some(start));
        let dropped = snapshot.dropped()["duplicate_run"];
        assert_eq!(dropped as usize, one(run()).series() - one_without_runs());
        assert_eq!(
            value(&snapshot, Id::SeriesDropped, Some("duplicate_run")),
            Some(dropped as f64)
        );
    }
}

/// The order in which names are let in, and what is left out as a whole.
#[test]
fn names_come_after_the_runs_numbers_and_before_their_findings() {
    let names: Vec<NameView> = (0..9)
        .map(|n| {
            let mut view = name_view("default", &format!("name-{n}"));
            view.totals.last_end_ms = Some(n);
            view
        })
        .chain([name_view("default", OVERFLOW_NAME)])
        .collect();
    let all = build(&[run()], &names, &TelemetrySnapshot::default(), &Limits::default(), at(80));
    let none = one(run()).series();
    let each = (all.series() - none) / names.len();
    assert_eq!(each, 50, "of a name with two rules");
    assert!(all.dropped().is_empty());

    let of_run: usize =
        all.families().filter(|one| one.metric.scope == Scope::Run).map(Family::series).sum();
    let limits = Limits { series: one_without_runs() + of_run + 3 * each + 1, ..Limits::default() };
    let snapshot = build(&[run()], &names, &TelemetrySnapshot::default(), &limits, at(80));
    let shown: Vec<_> =
        snapshot.family(Id::NameLastRun).iter().map(|sample| labels(sample)[1].clone()).collect();
    // What stands for many first, then those that ran last.
    assert_eq!(shown, [OVERFLOW_NAME, "name-8", "name-7"]);
    assert_eq!(snapshot.family(Id::NameDuration).len(), 3);
    assert!(snapshot.family(Id::Finding).is_empty());
    let dropped = snapshot.dropped()["series_limit"] as usize;
    assert_eq!(snapshot.series() + dropped, all.series());
}

#[test]
fn names_that_are_equal_once_cut_are_shown_once() {
    let limits = Limits { label_length: 4, ..Limits::default() };
    let names = [name_view("default", "orders-eu"), name_view("default", "orders-us")];
    let snapshot = build(&[], &names, &TelemetrySnapshot::default(), &limits, at(80));
    assert_eq!(snapshot.duplicate(), None);
    assert_eq!(snapshot.family(Id::NameLastRun).len(), 1);
    assert_eq!(snapshot.dropped()["duplicate_name"], 50);
}

#[test]
fn a_name_has_no_more_series_than_the_documentation_promises() {
    let mut view = name_view("default", "orders");
    view.totals.findings = Rule::ALL
        .into_iter()
        .map(|rule| (rule.as_str().to_owned(), RuleTotal { runs: 1, since_ms: 0 }))
        .collect();
    let of = |names: &[NameView]| {
        build(&[], names, &TelemetrySnapshot::default(), &Limits::default(), at(80)).series()
    };
    let promised: u32 = CATALOGUE
        .iter()
        .filter(|metric| metric.scope == Scope::Name)
        .map(|metric| metric.times)
        .sum();
    assert_eq!(of(&[view]) - of(&[]), promised as usize);
}

/// Counters are there from the first moment, what is not known is not.
#[test]
fn a_new_name_stands_at_zero() {
    let snapshot =
        build(&[], &[new_name()], &TelemetrySnapshot::default(), &Limits::default(), at(80));
    assert_eq!(snapshot.family(Id::NameRuns).len(), 6);
    assert!(snapshot.family(Id::NameRuns).iter().all(|one| one.value == Value::Number(0.0)));
    let Value::Histogram(histogram) = &snapshot.family(Id::NameDuration)[0].value else {
        panic!("no histogram");
    };
    assert_eq!((histogram.count(), histogram.sum), (0, 0.0));
    assert_eq!(value(&snapshot, Id::NameBoughtCore, None), Some(0.0));
    for absent in [
        Id::NameCost,
        Id::NameFindings,
        Id::NameLastRun,
        Id::NameLastSuccess,
        Id::NameLastDuration,
        Id::NameBaseline,
        Id::NameRegression,
        Id::NameSuccessInterval,
    ] {
        assert!(snapshot.family(absent).is_empty(), "{absent:?}");
    }
}

/// A rule that this version does not know is counted on.
#[test]
fn numbers_of_a_name_go_through_unchanged() {
    let mut view = name_view("default", "orders");
    view.totals.findings.insert("of_tomorrow".to_owned(), RuleTotal { runs: 7, since_ms: 0 });
    let build = |view: NameView| {
        build(&[], &[view], &TelemetrySnapshot::default(), &Limits::default(), at(80))
    };
    let snapshot = build(view.clone());
    assert_eq!(value(&snapshot, Id::NameRuns, Some("succeeded")), Some(21.0));
    assert_eq!(value(&snapshot, Id::NameRuns, Some("lost")), Some(2.0));
    assert_eq!(value(&snapshot, Id::NameFindings, Some("data_skew")), Some(4.0));
    assert_eq!(value(&snapshot, Id::NameFindings, Some("of_tomorrow")), Some(7.0));
    assert_eq!(value(&snapshot, Id::NameUsedCore, None), Some(2_352.5));
    assert_eq!(value(&snapshot, Id::NameCost, Some("EUR")), Some(12.75));
    assert_eq!(value(&snapshot, Id::NameLastRun, None), Some(1_764_460_875.0));
    assert_eq!(value(&snapshot, Id::NameLastDuration, None), Some(75.25));
    assert_eq!(value(&snapshot, Id::NameBaseline, None), Some(50.125));
    assert_eq!(value(&snapshot, Id::NameRegression, None), Some(1.5));
    let text = render(&Arc::new(snapshot), Format::Prometheus);
    let labels = "spark_cluster=\"default\",app_name=\"orders\"";
    for line in [
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"32\"}} 0"),
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"64\"}} 18"),
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"262144\"}} 20"),
        format!("spark_application_runs_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 21"),
        format!("spark_application_runs_duration_seconds_count{{{labels}}} 21"),
        format!("spark_application_runs_duration_seconds_sum{{{labels}}} 1300.5"),
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in {text}");
    }
    // No price, no cost: not even a 0.
    view.currency = None;
    assert!(build(view).family(Id::NameCost).is_empty());
}

/// Series of runs and of names can be joined: the label is the same.
#[test]
fn a_run_carries_the_name_its_totals_have() {
    let mut view = run();
    view.name = "orders".into();
    let snapshot = build(
        &[view],
        &[name_view("default", "orders")],
        &TelemetrySnapshot::default(),
        &Limits::default(),
        at(80),
    );
    let name = |id: Id, place: usize| labels(&snapshot.family(id)[0])[place].clone();
    assert_eq!(name(Id::ApplicationInfo, 3), "orders");
    assert_eq!(name(Id::Finding, 3), "orders");
    assert_eq!(name(Id::NameLastRun, 1), "orders");
}

#[test]
fn runs_without_room_for_their_name_are_counted() {
    let telemetry = Telemetry::default();
    for app_name in ["a", "b"] {
        let run = "c/app-1".to_owned();
        NameOverflowed { run, app_name: app_name.to_owned(), limit: 1 }.emit(&telemetry);
    }
    let snapshot = build(&[], &[], &telemetry.snapshot(), &Limits::default(), at(80));
    assert_eq!(value(&snapshot, Id::NamesOverflowed, None), Some(2.0));
}

fn one_without_runs() -> usize {
    snapshot(&[], &Limits::default()).series()
}

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
fn streaming_queries_that_told_last_have_series() {
    let view = changed(&run(), |application, _| {
        let queries = application.streaming_queries.as_mut().expect("some");
        let first = queries[0].clone();
        // The same query, stopped and started again; and others, each later.
        queries[0].state = StreamingState::Stopped;
        queries.push(first.clone());
        for n in 0..4 {
            let mut query = first.clone();
            query.id = format!("query-{n}");
            query.batches[0].start = Some(at(61 + n));
            queries.push(query);
        }
    });
    let limits = Limits { streaming_queries_exported: 3, ..Limits::default() };
    let snapshot = snapshot(&[view], &limits);
    let family = snapshot.family(Id::StreamingQueryActive);
    let shown: Vec<_> = family.iter().map(|sample| labels(sample)[3].clone()).collect();
    assert_eq!(shown, ["query-3", "query-2", "query-1"]);
    assert!(family.iter().all(|sample| sample.value == Value::Number(1.0)));
    // Of 9 series each: query-0, and one of the two runs of the same id.
    assert_eq!(snapshot.dropped()["streaming_queries_limit"], 2 * 9);
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

/// `rate()` and ratios see the first failure only where a counter was there
/// before it.
#[test]
fn counters_stand_at_0_before_anything_happens() {
    let text = render(&Arc::new(snapshot(&[], &Limits::default())), Format::Prometheus);
    let daemons = CATALOGUE.iter().filter(|metric| {
        metric.kind == Kind::Counter
            && metric.scope == Scope::Daemon
            // Of what is not known before: sources, clusters of Kubernetes,
            // who asks for what, what is sent by OTLP.
            && !metric
                .labels
                .iter()
                .any(|label| ["target", "spark_cluster", "path", "signal"].contains(label))
    });
    let mut seen = 0;
    for metric in daemons {
        let samples: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter(|line| line.split(['{', ' ']).next() == Some(metric.name))
            .collect();
        assert_eq!(samples.len(), metric.times as usize, "{}: {samples:?}", metric.name);
        assert!(samples.iter().all(|line| line.ends_with(" 0")), "{samples:?}");
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}
