//! Pods as Spark 3.5 and 4.3, the operators and the kubelet make them.

use serde_json::{Value, json};

use super::*;
use crate::config::ClientMode;

/// Of a driver in cluster mode, running.
fn driver() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "etl-driver", "namespace": "jobs", "uid": "u-1",
            "labels": {
                "spark-app-name": "etl", "spark-app-selector": "spark-1234",
                "spark-role": "driver", "spark-version": "4.3.0", "team": "data",
            },
            "managedFields": [{"manager": "java", "operation": "Update"}],
        },
        "spec": {
            "nodeName": "node-7",
            "containers": [{
                "name": "spark-kubernetes-driver",
                "args": ["driver", "--properties-file", "/opt/spark/conf/spark.properties"],
                "env": [{"name": "SPARK_USER", "value": "spark"},
                        {"name": "SPARK_DRIVER_BIND_ADDRESS",
                         "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "ports": [{"containerPort": 7078, "name": "driver-rpc-port", "protocol": "TCP"},
                          {"containerPort": 7079, "name": "blockmanager", "protocol": "TCP"},
                          {"containerPort": 4040, "name": "spark-ui", "protocol": "TCP"}],
            }],
        },
        "status": {
            "phase": "Running", "podIP": "10.1.2.3",
            "containerStatuses": [{
                "name": "spark-kubernetes-driver", "restartCount": 0,
                "state": {"running": {"startedAt": "2026-11-01T10:00:00Z"}},
            }],
        },
    })
}

fn with(mut pod: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[key] = value;
    pod
}

fn read(kind: Kind, settings: &Kubernetes, pod: Value) -> Option<Change> {
    Reader::new(kind, settings).read(serde_json::from_value(pod).unwrap())
}

fn found(pod: Value) -> FoundDriver {
    let settings = Kubernetes { pod_labels: vec!["team".to_owned()], ..Kubernetes::default() };
    match read(Kind::DriverPods, &settings, pod) {
        Some(Change::Driver(driver)) => driver,
        other => panic!("{other:?}"),
    }
}

fn terminated(code: i32, reason: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-11-01T10:09:00Z"}})
}

const STATE: &str = "/status/containerStatuses/0/state";

#[test]
fn a_running_driver_is_polled_at_the_port_it_declares() {
    let found = found(driver());
    assert_eq!(found.pod.app_id.as_deref(), Some("spark-1234"));
    assert_eq!(found.pod.labels, BTreeMap::from([("team".to_owned(), "data".to_owned())]));
    assert_eq!(found.pod.pod.node.as_deref(), Some("node-7"));
    assert_eq!((found.pod.pod.phase, &found.pod.pod.end), (PodPhase::Running, &None));
    let urls = found.ui.unwrap().urls(None);
    assert_eq!(urls[0].to_string(), "http://10.1.2.3:4040");
    assert!(!found.client_mode);
}

#[test]
fn a_pod_that_cannot_answer_is_not_asked() {
    for (pointer, value) in [
        ("/status/phase", json!("Pending")),
        ("/status/podIP", json!(null)),
        ("/status/podIP", json!("not an address")),
        (STATE, json!({"waiting": {"reason": "CrashLoopBackOff"}})),
        (STATE, terminated(0, "Completed")),
        ("/status/phase", json!("Succeeded")),
        ("/status", json!(null)),
        ("/status", json!({})),
    ] {
        let found = found(with(driver(), pointer, value.clone()));
        assert_eq!(found.ui, None, "{pointer}: {value}");
    }
    // A server that tells nothing of containers is believed.
    let found = found(with(driver(), "/status/containerStatuses", json!(null)));
    assert!(found.ui.is_some());
}

#[test]
fn the_end_is_that_of_sparks_own_container() {
    let mut pod = with(driver(), STATE, terminated(137, "OOMKilled"));
    let proxy =
        json!({"name": "istio-proxy", "restartCount": 0, "state": terminated(0, "Completed")});
    pod["status"]["containerStatuses"].as_array_mut().unwrap().insert(0, proxy);
    pod["spec"]["containers"].as_array_mut().unwrap().insert(0, json!({"name": "istio-proxy"}));
    let end = found(pod).pod.pod.end.unwrap();
    assert_eq!((end.exit_code, end.reason.as_deref()), (137, Some("OOMKilled")));
    assert_eq!(end.finished, Some("2026-11-01T10:09:00Z".parse().unwrap()));
}

#[test]
fn why_a_whole_pod_went_is_its_status_or_its_disruption() {
    let evicted = found(with(driver(), "/status/reason", json!("Evicted")));
    assert_eq!(evicted.pod.pod.reason.as_deref(), Some("Evicted"));
    let condition = json!([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
                           {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    let preempted = found(with(driver(), "/status/conditions", condition));
    assert_eq!(preempted.pod.pod.reason.as_deref(), Some("PreemptionByScheduler"));
}

#[test]
fn a_restart_in_place_is_another_ui() {
    let before = found(driver()).ui;
    let restarted = with(driver(), "/status/containerStatuses/0/restartCount", json!(1));
    assert_ne!(found(restarted).ui, before);
}

#[test]
fn a_template_may_rename_the_container() {
    let mut pod = driver();
    pod["spec"]["containers"][0]["name"] = json!("main");
    pod["status"]["containerStatuses"][0]["name"] = json!("main");
    pod["spec"]["containers"].as_array_mut().unwrap().insert(0, json!({"name": "logs"}));
    let urls = found(pod).ui.unwrap().urls(None);
    assert_eq!(urls[0].to_string(), "http://10.1.2.3:4040");
}

#[test]
fn operators_name_their_application() {
    for label in ["sparkoperator.k8s.io~1app-name", "spark.operator~1spark-app-name"] {
        let mut pod = driver();
        pod["metadata"]["labels"][label.replace("~1", "/")] = json!("nightly");
        assert_eq!(found(pod).submitted_by.as_deref(), Some("nightly"), "{label}");
    }
}

/// Of an executor of Spark 3.5, killed by the kernel.
#[test]
fn an_executor_needs_its_application_and_its_number() {
    let pod = json!({
        "metadata": {"name": "etl-exec-2", "namespace": "jobs", "uid": "u-2",
            "deletionTimestamp": "2026-11-01T10:10:00Z", "deletionGracePeriodSeconds": 30,
            "labels": {"spark-app-selector": "spark-1234", "spark-exec-id": "2",
                       "spark-exec-resourceprofile-id": "0", "spark-role": "executor"}},
        "spec": {"containers": [{"name": "spark-kubernetes-executor",
                 "env": [{"name": "SPARK_EXECUTOR_ID", "value": "2"}]}]},
        "status": {"phase": "Failed", "containerStatuses": [
            {"name": "spark-kubernetes-executor", "state": terminated(137, "OOMKilled")}]},
    });
    let settings = Kubernetes::default();
    let Some(Change::Executor(executor)) = read(Kind::ExecutorPods, &settings, pod.clone()) else {
        panic!("no executor")
    };
    assert_eq!((executor.app_id.as_str(), executor.executor_id.as_str()), ("spark-1234", "2"));
    assert_eq!(executor.pod.end.unwrap().exit_code, 137);
    assert_eq!(
        executor.pod.deletion,
        Some("2026-11-01T10:09:30Z".parse().unwrap()),
        "when it was asked for, not when it has to be gone"
    );
    let nameless = with(pod, "/metadata/labels", json!({"spark-role": "executor"}));
    assert_eq!(read(Kind::ExecutorPods, &settings, nameless), None);
}

fn notebook(annotations: &Value) -> Value {
    json!({
        "metadata": {"name": "jupyter-0", "namespace": "ml", "uid": "u-3", "labels": {"app": "jupyter"},
                     "annotations": annotations},
        "spec": {"containers": [{"name": "notebook"}]},
        "status": {"phase": "Running", "podIP": "fd00::9"},
    })
}

#[test]
fn client_mode_is_told_by_an_annotation() {
    let client_mode =
        ClientMode { annotation: Some("example.org/spark".to_owned()), ..ClientMode::default() };
    let settings = Kubernetes { client_mode, ..Kubernetes::default() };
    let urls = |annotations| match read(Kind::ClientModePods, &settings, notebook(&annotations)) {
        Some(Change::Driver(driver)) => {
            assert!(driver.client_mode && driver.pod.app_id.is_none());
            let urls = driver.ui.unwrap().urls(None);
            urls.iter().map(ToString::to_string).collect()
        }
        _ => Vec::new(),
    };
    assert_eq!(urls(json!({"example.org/spark": "true"})), ["http://[fd00::9]:4040"]);
    let two = urls(json!({"example.org/spark": "4040,4041"}));
    assert_eq!(two, ["http://[fd00::9]:4040", "http://[fd00::9]:4041"]);
    for other in [json!(null), json!({}), json!({"example.org/spark": "false"})] {
        assert!(urls(other).is_empty());
    }
}

#[test]
fn the_operators_selector_narrows_drivers_but_not_their_executors() {
    let client_mode =
        ClientMode { label_selector: Some("app=jupyter".to_owned()), ..ClientMode::default() };
    let label_selector = Some("team=data".to_owned());
    let settings = Kubernetes { label_selector, client_mode, ..Kubernetes::default() };
    let selector = |kind| Reader::new(kind, &settings).selector.unwrap();
    assert_eq!(selector(Kind::DriverPods), "spark-role=driver,team=data");
    assert_eq!(selector(Kind::ExecutorPods), "spark-role=executor");
    assert_eq!(
        selector(Kind::ClientModePods),
        "spark-role notin (driver,executor),app=jupyter,team=data"
    );
}
