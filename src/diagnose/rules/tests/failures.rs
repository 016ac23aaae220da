//! `task_failures`, `stage_retries`, `executor_lost`, `job_failed`.

use std::time::Duration;

use crate::diagnose::builders::{
    at, executor, findings, fired, only, run, stage, stage_attempt, task, tasks, warm_up,
};
use crate::diagnose::{Cause, Confidence, Rule, Severity, Subject};
use crate::model::{Application, FailureClass, Job, JobStatus, StageId, StageStatus, State};

fn failing(failed: usize, class: FailureClass) -> Application {
    let mut application = run(60);
    warm_up(&mut application);
    let spec = task(2_000).shuffled(10_000, 1_000_000);
    let mut specs = tasks(24, &spec);
    specs.extend(tasks(failed, &spec.failed(class)));
    stage(&mut application, 1, 2_000, specs);
    application
}

#[test]
fn failures_have_a_floor_of_three() {
    let finding = only(&failing(3, FailureClass::Exception), Rule::TaskFailures);
    assert_eq!(finding.severity, Severity::Warning);
    let core = finding.impact.core.expect("core time").as_secs_f64();
    assert!((core - 6.03).abs() < 0.1, "{core}");
    assert!(finding.headline.contains("3 of 27 task attempts failed (3 exception)"));
    assert!(findings(&failing(2, FailureClass::Exception), Rule::TaskFailures).is_empty());
    assert_eq!(
        only(&failing(5, FailureClass::HeapOom), Rule::TaskFailures).cause,
        Some(Cause::HeapOom)
    );
}

#[test]
fn kills_and_refused_commits_are_no_failures() {
    for class in [FailureClass::Killed, FailureClass::CommitDenied] {
        assert!(findings(&failing(10, class), Rule::TaskFailures).is_empty(), "{class:?}");
    }
}

#[test]
fn failures_that_a_lost_executor_explains_are_quiet() {
    let mut application = failing(5, FailureClass::FetchFailed);
    assert_eq!(only(&application, Rule::TaskFailures).severity, Severity::Warning);
    application.executors[0].removed = Some(at(20_000));
    application.executors[0].removed_reason = Some("Command exited with code 137".into());
    assert_eq!(only(&application, Rule::TaskFailures).severity, Severity::Info);
}

#[test]
fn throttling_advises_less_at_a_time() {
    let finding = only(&failing(5, FailureClass::StorageThrottled), Rule::TaskFailures);
    assert!(finding.advice.first().expect("advice").change.starts_with("Ask less"));
}

/// A job whose stage failed for `reason`, at 30 of 32 s.
fn failed_job(status: JobStatus, reason: &str) -> Application {
    let mut application = run(32);
    warm_up(&mut application);
    let spec = task(2_000).shuffled(10_000, 1_000_000);
    let mut specs = tasks(7, &spec);
    specs.push(spec.failed(FailureClass::Exception));
    let stage = stage(&mut application, 1, 26_000, specs);
    stage.status = StageStatus::Failed;
    stage.failure_reason = Some(reason.into());
    stage.failure_example = Some("java.lang.ArithmeticException: secret".into());
    stage.job_ids = vec![3];
    application.jobs = vec![job(2, JobStatus::Succeeded, 0, 2_000), job(3, status, 26_000, 30_000)];
    application.jobs[1].failure_reason = Some(reason.into());
    application.jobs[1].stage_ids = vec![1];
    application
}

fn job(id: u32, status: JobStatus, from: i64, to: i64) -> Job {
    Job {
        id,
        status,
        submitted: Some(at(from)),
        completed: Some(at(to)),
        stage_ids: vec![],
        failure_reason: None,
        sql_execution_id: None,
        trace_context: None,
    }
}

const ABORTED: &str = "Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times, most \
                       recent failure: java.lang.ArithmeticException: secret";

#[test]
fn a_run_that_failed_by_its_job() {
    let mut application = failed_job(JobStatus::Failed, ABORTED);
    application.state = State::Failed;
    application.exit_code = Some(1);
    let finding = only(&application, Rule::JobFailed);
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.subject, Subject::Job { job_id: 3 });
    assert_eq!(
        finding.headline,
        "Job 3 failed in stage 1.0: java.lang.ArithmeticException; the application failed by it"
    );
    assert_eq!(only(&application, Rule::TaskFailures).severity, Severity::Critical);
    assert!(!format!("{:?}", fired(&application)).contains("secret"));
}

#[test]
fn a_failed_job_of_a_succeeded_run() {
    let mut application = failed_job(JobStatus::Failed, ABORTED);
    application.jobs.push(job(4, JobStatus::Succeeded, 30_500, 31_000));
    let finding = only(&application, Rule::JobFailed);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.headline.contains("succeeded all the same"), "{}", finding.headline);
}

#[test]
fn without_an_exit_code_the_last_job_tells() {
    let mut application = failed_job(JobStatus::Failed, ABORTED);
    application.state = State::Unknown;
    let finding = only(&application, Rule::JobFailed);
    assert_eq!((finding.severity, finding.confidence), (Severity::Critical, Confidence::Medium));
    application.jobs.push(job(4, JobStatus::Succeeded, 30_500, 31_000));
    assert_eq!(only(&application, Rule::JobFailed).severity, Severity::Warning);
}

#[test]
fn an_exit_code_of_0_proves_little() {
    // Real Spark 4.3 writes it for a Python program that died of the job.
    let mut application = failed_job(JobStatus::Failed, ABORTED);
    application.exit_code = Some(0);
    let finding = only(&application, Rule::JobFailed);
    assert_eq!((finding.severity, finding.confidence), (Severity::Critical, Confidence::Medium));
    assert!(finding.headline.contains("ended right after it"), "{}", finding.headline);
    application.configuration.set("spark.master", "k8s://https://cluster");
    assert_eq!(only(&application, Rule::JobFailed).severity, Severity::Warning);
}

#[test]
fn a_cancelled_job_is_not_failed() {
    let reason = "[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group x";
    let application = failed_job(JobStatus::Cancelled, reason);
    // The run went on for half a minute without a job.
    let failed = |(rule, _): &(Rule, _)| *rule != Rule::DriverGap;
    assert_eq!(fired(&application).into_iter().filter(failed).collect::<Vec<_>>(), vec![]);
}

#[test]
fn many_failed_jobs_are_one_finding() {
    let mut application = failed_job(JobStatus::Failed, ABORTED);
    for id in 4..500 {
        let mut more = job(id, JobStatus::Failed, 26_000, 30_000);
        more.failure_reason = Some(ABORTED.into());
        application.jobs.push(more);
    }
    let finding = only(&application, Rule::JobFailed);
    assert!(finding.headline.contains("and 496 before it"), "{}", finding.headline);
}

fn removed(at_ms: i64, reason: &str) -> Application {
    let mut application = run(60);
    application.executors.push(executor("3", "host-c", 2));
    warm_up(&mut application);
    let lost = &mut application.executors[0];
    lost.removed = Some(at(at_ms));
    lost.removed_reason = Some(reason.into());
    application
}

#[test]
fn executors_are_lost_by_cause() {
    for (reason, cause, severity) in [
        ("Command exited with code 137", Cause::Killed, Severity::Warning),
        ("Command exited with code 52", Cause::HeapOom, Severity::Warning),
        ("Executor decommission: spot", Cause::Decommissioned, Severity::Info),
    ] {
        let finding = only(&removed(20_000, reason), Rule::ExecutorLost);
        assert_eq!((finding.cause, finding.severity), (Some(cause), severity), "{reason}");
        assert_eq!(finding.subject, Subject::Executor { executor_id: "1".into() });
    }
    let killed = only(&removed(20_000, "Command exited with code 137"), Rule::ExecutorLost);
    assert!(killed.headline.contains("not proven"), "{}", killed.headline);
}

#[test]
fn idle_executors_and_the_end_are_no_losses() {
    assert_eq!(fired(&removed(20_000, "Executor killed by driver.")), vec![]);
    assert_eq!(fired(&removed(59_500, "Command exited with code 143")), vec![]);
    assert_eq!(fired(&removed(59_500, "Remote RPC client disassociated.")), vec![]);
    assert_eq!(
        only(&removed(59_500, "Command exited with code 52"), Rule::ExecutorLost).cause,
        Some(Cause::HeapOom),
        "out of memory is no normal end"
    );
}

#[test]
fn a_loss_costs_what_is_computed_again() {
    let mut application = removed(20_000, "Command exited with code 137");
    let spec = task(2_000).with(|metrics| {
        metrics.shuffle_write_bytes = 1_000_000;
        metrics.shuffle_write_records = 10_000;
    });
    stage(&mut application, 1, 2_000, tasks(12, &spec)).rdd_ids = vec![7, 8];
    let again = StageId { stage: 1, attempt: 1 };
    let retry = stage_attempt(&mut application, again, 22_000, &tasks(6, &spec));
    retry.rdd_ids = vec![7, 8];
    retry.tasks.total = 6;
    let lost = only(&application, Rule::ExecutorLost);
    let core = lost.impact.core.expect("core time").as_secs_f64();
    assert!((core - 12.0).abs() < 0.1, "{core}");
    let retried = only(&application, Rule::StageRetries);
    assert_eq!(retried.cause, Some(Cause::Killed));
    assert_eq!(retried.severity, Severity::Info, "12 s repeated");
    // The wall time of the retry is promised once.
    let wall: Duration = [&lost, &retried].iter().filter_map(|finding| finding.impact.wall).sum();
    assert!(wall <= Duration::from_millis(2_100), "{wall:?}");
}

#[test]
fn thirty_seconds_repeated_is_a_warning() {
    let mut application = run(100);
    warm_up(&mut application);
    let spec = task(4_000).shuffled(10_000, 1_000_000);
    let first = stage(&mut application, 1, 2_000, tasks(12, &spec));
    first.status = StageStatus::Failed;
    first.failure_reason = Some("org.apache.spark.shuffle.FetchFailedException".into());
    stage_attempt(&mut application, StageId { stage: 1, attempt: 1 }, 30_000, &tasks(8, &spec));
    let finding = only(&application, Rule::StageRetries);
    assert_eq!((finding.severity, finding.cause), (Severity::Warning, None));
    assert_eq!(finding.subject, Subject::Stage { stage_id: 1, stage_attempt_id: 1 });
}
