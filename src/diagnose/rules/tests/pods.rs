//! What the pods of a run make of `executor_lost`, `application_failed` and
//! their like.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnose::builders::{at, findings, job, only, run, stage, task, tasks, warm_up};
use crate::diagnose::{Cause, Confidence, FindingKind, Rule, Severity};
use crate::model::{
    Application, ContainerEnd, DriverPod, JobStatus, KubernetesFacts, Pod, PodName, PodPhase, State,
};

const OF_137: &str =
    "The executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).";

fn pod(code: i32, reason: &str, millis: i64) -> Pod {
    Pod {
        name: PodName { namespace: "etl".into(), name: "orders-exec-1".into(), uid: "1".into() },
        node: Some("node-7".into()),
        phase: PodPhase::Failed,
        reason: None,
        end: Some(ContainerEnd {
            exit_code: code,
            reason: Some(reason.to_owned()),
            finished: Some(at(millis)),
        }),
        deletion: None,
        deleted: false,
    }
}

/// A run of a minute that lost its first executor after twenty seconds.
fn lost(reason: &str, pod: Option<Pod>) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    stage(&mut application, 1, 2_000, tasks(16, &task(5_000)));
    let executor = &mut application.executors[0];
    executor.removed = Some(at(20_000));
    executor.removed_reason = Some(reason.into());
    executor.pod = pod.map(Arc::new);
    application
}

#[test]
fn killed_becomes_out_of_memory_where_the_pod_says_so() {
    let finding = only(&lost(OF_137, None), Rule::ExecutorLost);
    assert_eq!((finding.cause, finding.confidence), (Some(Cause::Killed), Confidence::Medium));
    let known = lost(OF_137, Some(pod(137, "OOMKilled", 19_000)));
    let finding = only(&known, Rule::ExecutorLost);
    assert_eq!(
        (finding.cause, finding.confidence),
        (Some(Cause::ContainerMemory), Confidence::High)
    );
    assert_eq!(finding.kind, FindingKind::Configuration);
    assert!(finding.headline.contains("OOMKilled"), "{}", finding.headline);
    let code = finding.evidence.iter().find(|one| one.name == "exit_code").unwrap();
    assert_eq!(code.from, "status of pod orders-exec-1 on node-7");
    // And the overhead, left as it is by default, is asked for.
    let mut known = known;
    known.configuration.set("spark.executor.memory", "4g");
    assert_eq!(findings(&known, Rule::Configuration).len(), 1);
}

#[test]
fn near_misses_of_the_pod() {
    // Nobody proves who sent the signal.
    let finding = only(&lost(OF_137, Some(pod(137, "Error", 19_000))), Rule::ExecutorLost);
    assert_eq!(finding.cause, Some(Cause::Killed));
    // Sent away, and killed on the way.
    let sent_away = lost("Executor killed by driver.", Some(pod(137, "Error", 21_000)));
    assert!(findings(&sent_away, Rule::ExecutorLost).is_empty());
    // A sidecar was out of memory, Spark's container ended well.
    let sidecar = lost(OF_137, Some(pod(0, "Completed", 19_000)));
    assert!(findings(&sidecar, Rule::ExecutorLost).is_empty());
}

/// The tempting wrong verdict: at the end Spark deletes the pods of its
/// executors, and what does not go by itself is killed.
#[test]
fn deleted_at_the_end_is_no_loss() {
    let mut deleted = pod(137, "Error", 60_000);
    deleted.deletion = Some(at(59_500));
    let mut application = lost(OF_137, Some(deleted));
    application.executors[0].removed = Some(at(60_000));
    assert!(findings(&application, Rule::ExecutorLost).is_empty());
    let mut deleted = pod(143, "Error", 20_000);
    deleted.deletion = Some(at(19_000));
    let vague = "Remote RPC client disassociated.";
    let finding = only(&lost(vague, Some(deleted)), Rule::ExecutorLost);
    assert_eq!(finding.cause, Some(Cause::Killed));
    assert!(finding.headline.contains("not by Spark"), "{}", finding.headline);
}

#[test]
fn out_of_memory_at_the_end_which_spark_did_not_notice() {
    let mut application = lost("", Some(pod(137, "OOMKilled", 59_000)));
    application.executors[0].removed = None;
    application.executors[0].removed_reason = None;
    let finding = only(&application, Rule::ExecutorLost);
    assert_eq!(finding.cause, Some(Cause::ContainerMemory));
    application.executors[0].pod = Some(Arc::new(pod(143, "Error", 60_000)));
    assert!(findings(&application, Rule::ExecutorLost).is_empty());
}

/// A run whose driver vanished after a minute, and what its pod says.
fn vanished(pod: Pod) -> Application {
    let mut application = run(60);
    application.state = State::Unknown;
    application.end = None;
    warm_up(&mut application);
    job(&mut application, 0, 1_000, Some(58_000)).status = JobStatus::Unknown;
    let driver = DriverPod { pod, app_id: Some("app-1".into()), labels: BTreeMap::new() };
    application
        .learn(&KubernetesFacts { driver: Some(Arc::new(driver)), ..KubernetesFacts::default() });
    application
}

#[test]
fn a_driver_out_of_its_container_s_memory() {
    let finding = only(&vanished(pod(137, "OOMKilled", 60_000)), Rule::ApplicationFailed);
    assert_eq!(
        (finding.cause, finding.severity),
        (Some(Cause::ContainerMemory), Severity::Critical)
    );
    assert_eq!(finding.kind, FindingKind::Configuration);
    assert!(finding.headline.contains("container went over"), "{}", finding.headline);
    assert!(finding.advice[0].change.contains("spark.driver.memoryOverhead"));
    assert_eq!(finding.evidence[0].from, "status of pod orders-exec-1 on node-7");
    // 137 alone is not proven.
    let finding = only(&vanished(pod(137, "Error", 60_000)), Rule::ApplicationFailed);
    assert_eq!(finding.cause, Some(Cause::Killed));
    assert!(finding.headline.contains("by whom is not proven"), "{}", finding.headline);
}

#[test]
fn a_driver_that_the_platform_took() {
    for (reason, cause, severity) in [
        ("Evicted", Cause::Preempted, Severity::Critical),
        ("PreemptionByScheduler", Cause::Preempted, Severity::Critical),
        ("NodeLost", Cause::NodeLost, Severity::Critical),
        ("DeadlineExceeded", Cause::Killed, Severity::Critical),
    ] {
        let mut taken = pod(143, "Error", 60_000);
        taken.reason = Some(reason.to_owned());
        let finding = only(&vanished(taken), Rule::ApplicationFailed);
        assert_eq!((finding.cause, finding.severity), (Some(cause), severity), "{reason}");
        assert_eq!(finding.confidence, Confidence::High, "{reason}");
    }
    let mut deleted = pod(143, "Error", 60_000);
    deleted.deletion = Some(at(58_000));
    let finding = only(&vanished(deleted), Rule::ApplicationFailed);
    assert_eq!((finding.cause, finding.severity), (Some(Cause::Killed), Severity::Info));
}

/// The tempting wrong verdict: gone is not failed.
#[test]
fn a_driver_that_vanished_and_had_ended_well() {
    let application = vanished(pod(0, "Completed", 60_000));
    assert_eq!(application.state, State::Succeeded);
    assert!(findings(&application, Rule::ApplicationFailed).is_empty());
}

/// One story: what failed earlier is not why the driver was killed.
#[test]
fn a_job_that_failed_earlier_is_not_to_blame() {
    let mut application = vanished(pod(137, "OOMKilled", 60_000));
    application.jobs[0].status = JobStatus::Failed;
    application.jobs[0].completed = Some(at(30_000));
    let finding = only(&application, Rule::ApplicationFailed);
    assert_eq!(finding.cause, Some(Cause::ContainerMemory));
    let finding = only(&application, Rule::JobFailed);
    assert_eq!(finding.severity, Severity::Warning);
}
