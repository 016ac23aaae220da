//! What Kubernetes told of a run stands in every form of its report.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use spark_exporter::config::Thresholds;
use spark_exporter::diagnose::diagnose;
use spark_exporter::model::{
    Application, ContainerEnd, DriverPod, KubernetesFacts, Operator, Pod, PodName, PodPhase, RunId,
    Source, State, Submission, SubmissionState,
};
use spark_exporter::report::{self, Colours, Diagnosed, Place, Texts};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_764_460_800 + second).unwrap()
}

/// A run whose driver vanished, in a pod of this name that was OOMKilled.
fn run(pod: &str) -> Diagnosed {
    let id = RunId { cluster: "prod".into(), app_id: "spark-1".into(), attempt_id: None };
    let mut application = Application::new(id, Source::Driver, at(60));
    "orders".clone_into(&mut application.name);
    application.start = Some(at(0));
    application.state = State::Unknown;
    let driver = DriverPod {
        pod: Pod {
            name: PodName { namespace: "etl".into(), name: pod.into(), uid: "7f3a".into() },
            node: Some("node-7".into()),
            phase: PodPhase::Failed,
            reason: None,
            end: Some(ContainerEnd {
                exit_code: 137,
                reason: Some("OOMKilled".into()),
                finished: Some(at(61)),
            }),
            deletion: None,
            deleted: false,
        },
        app_id: Some("spark-1".into()),
        labels: BTreeMap::from([("team".into(), "etl".into())]),
    };
    let submission = Submission {
        operator: Operator::Kubeflow,
        namespace: "etl".into(),
        name: "orders".into(),
        uid: "2".into(),
        app_id: Some("spark-1".into()),
        driver_pod: Some(pod.into()),
        state: SubmissionState::Failed,
        attempts: 1,
        submitted: Some(at(0)),
        ended: Some(at(62)),
        message: Some("password=hunter2".into()),
        deleted: false,
    };
    application.learn(&KubernetesFacts {
        driver: Some(Arc::new(driver)),
        executors: BTreeMap::new(),
        submission: Some(Arc::new(submission)),
    });
    let diagnosis = diagnose(&application, &Thresholds::default());
    Diagnosed { application, diagnosis }
}

fn in_json(run: Diagnosed) -> serde_json::Value {
    let mut json = Vec::new();
    report::json(&mut json, std::iter::once(run), Texts::Hidden).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[test]
fn a_line_says_where_the_driver_ran_and_how_its_pod_ended() {
    let run = run("orders-driver");
    let said = "pod etl/orders-driver on node-7, OOMKilled";
    let text = report::text(std::slice::from_ref(&run), Colours::None, Texts::Hidden);
    let page = report::html(run.view(), Texts::Hidden, Place::File);
    let markdown = report::markdown(run.view(), Texts::Hidden);
    for (form, report) in [("text", text), ("HTML", page), ("Markdown", markdown)] {
        assert!(report.contains(said), "{form}: {report}");
        assert!(report.contains("container went over its memory limit"), "{form}");
        assert!(!report.contains("hunter2"), "{form}");
    }
    let document = in_json(run);
    let schema = std::fs::read_to_string("docs/diagnose.schema.json").unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let told = &document["applications"][0]["kubernetes"];
    assert_eq!(told["driver_pod"]["fate"], "out_of_memory");
    assert_eq!(told["driver_pod"]["node"], "node-7");
    assert_eq!(told["spark_application"]["state"], "failed");
    assert_eq!(told["proves_state"], true);
    assert_eq!(document["applications"][0]["state"], "failed");
    assert!(!document.to_string().contains("hunter2"), "words of the operator are not shown");
}

#[test]
fn a_run_elsewhere_has_no_word_of_it() {
    let mut elsewhere = run("x");
    elsewhere.application.kubernetes = None;
    assert!(in_json(elsewhere)["applications"][0].get("kubernetes").is_none());
}

/// Names come from the cluster: they become no markup, and stay short.
#[test]
fn names_of_pods_are_texts() {
    let run = run(&("<script>alert(1)</script>\u{202e}\x1b[31m".to_owned() + &"x".repeat(2_000)));
    let page = report::html(run.view(), Texts::Hidden, Place::File);
    assert!(!page.contains("<script") && !page.contains('\u{202e}'));
    let text = report::text(std::slice::from_ref(&run), Colours::None, Texts::Hidden);
    assert!(!text.contains('\x1b') && !text.contains(&"x".repeat(300)));
}
