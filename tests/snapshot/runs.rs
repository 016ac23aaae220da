//! What is said of a run: as its model has it, and nothing where a source does
//! not tell.

use std::sync::Arc;

use spark_exporter::config::Limits;
use spark_exporter::diagnose::StageNumbers;
use spark_exporter::metrics::catalogue::Id;
use spark_exporter::metrics::prometheus::{Format, render};
use spark_exporter::metrics::{RunView, Value, build};
use spark_exporter::model::{
    DataQuality, Distribution, DriverPod, KubernetesFacts, Pod, PodName, PodPhase, Source, Stage,
    StageId, StageStatus, State, StreamingState,
};
use spark_exporter::telemetry::events::SubmissionTold;
use spark_exporter::telemetry::{SubmissionId, SubmissionStatus, Telemetry};

use crate::support::{at, changed, run_id, skewed_run, skewed_stage};
use crate::{labels, one, one_without_runs, run, snapshot, value};

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
