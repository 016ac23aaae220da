use super::*;
use crate::model::{Job, JobStatus, Operator, PodName, RunId};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A run of a minute, as Spark tells it. `end`: whether it tells one.
fn told(state: State, end: bool, exit_code: Option<i32>) -> Application {
    let id = RunId { cluster: "c".into(), app_id: "spark-1".into(), attempt_id: None };
    let mut application = Application::new(id, Source::Driver, at(58));
    application.start = Some(at(0));
    application.state = state;
    application.end = end.then(|| at(60));
    application.exit_code = exit_code;
    application.configuration.set("spark.master", "k8s://https://kubernetes.default.svc");
    application
}

fn lives() -> Pod {
    Pod {
        name: PodName { namespace: "etl".into(), name: "driver".into(), uid: "1".into() },
        node: Some("node-7".into()),
        phase: PodPhase::Running,
        reason: None,
        end: None,
        deletion: None,
        deleted: false,
    }
}

fn ended(code: i32, reason: &str) -> Pod {
    let (reason, finished) = (Some(reason.to_owned()), Some(at(61)));
    Pod { end: Some(ContainerEnd { exit_code: code, reason, finished }), ..lives() }
}

fn asked(pod: Pod, second: i64) -> Pod {
    Pod { deletion: Some(at(second)), ..pod }
}

fn in_pod(pod: Pod, app_id: Option<&str>) -> KubernetesFacts {
    let driver = DriverPod { pod, app_id: app_id.map(str::to_owned), labels: BTreeMap::new() };
    KubernetesFacts { driver: Some(Arc::new(driver)), ..KubernetesFacts::default() }
}

fn resource(state: SubmissionState, message: &str) -> KubernetesFacts {
    let submission = Submission {
        operator: Operator::Kubeflow,
        namespace: "etl".into(),
        name: "orders".into(),
        uid: "2".into(),
        app_id: Some("spark-1".into()),
        driver_pod: Some("driver".into()),
        state,
        attempts: 1,
        submitted: None,
        ended: Some(at(62)),
        message: Some(message.to_owned()),
        deleted: false,
    };
    KubernetesFacts { submission: Some(Arc::new(submission)), ..KubernetesFacts::default() }
}

/// State, whether an end is known, exit code.
type Outcome = (State, bool, Option<i32>);

fn with(mut run: Application, facts: &KubernetesFacts) -> Outcome {
    run.learn(facts);
    let first = run.clone();
    assert!(!run.learn(facts), "the same once more is no news");
    assert_eq!(run, first);
    (run.state, run.end.is_some(), run.exit_code)
}

fn cluster(run: Application, pod: Pod) -> Outcome {
    with(run, &in_pod(pod, Some("spark-1")))
}

fn client(run: Application, pod: Pod) -> Outcome {
    with(run, &in_pod(pod, None))
}

const GONE: (State, bool, Option<i32>) = (State::Unknown, false, None);

fn gone() -> Application {
    told(GONE.0, GONE.1, GONE.2)
}

#[test]
fn a_driver_that_vanished_ended_as_its_pod_did() {
    assert_eq!(cluster(gone(), ended(0, "Completed")), (State::Succeeded, true, Some(0)));
    assert_eq!(cluster(gone(), ended(1, "Error")), (State::Failed, true, Some(1)));
    assert_eq!(cluster(gone(), ended(137, "OOMKilled")), (State::Failed, true, Some(137)));
    let deleted = asked(ended(143, "Error"), 55);
    assert_eq!(cluster(gone(), deleted), (State::Killed, true, Some(143)));
    let reason = Some("Evicted".to_owned());
    let evicted = Pod { reason, phase: PodPhase::Failed, ..lives() };
    assert_eq!(cluster(gone(), evicted), (State::Failed, false, None));
    let lost = Pod { reason: Some("NodeLost".into()), deleted: true, ..lives() };
    assert_eq!(cluster(gone(), lost), (State::Lost, false, None));
    let vanished = Pod { deleted: true, ..lives() };
    assert_eq!(cluster(gone(), vanished), (State::Lost, false, None));
}

#[test]
fn what_nothing_proves_stays_as_it_was_told() {
    assert_eq!(cluster(gone(), lives()), GONE);
    let running = || told(State::Running, false, None);
    assert_eq!(cluster(running(), lives()), (State::Running, false, None));
    assert_eq!(cluster(running(), asked(lives(), 50)), (State::Running, false, None));
    // Its labels were changed: it is not seen any more, and answers.
    let vanished = Pod { deleted: true, ..lives() };
    assert_eq!(cluster(running(), vanished), (State::Running, false, None));
    let silent = Pod { phase: PodPhase::Unknown, ..lives() };
    assert_eq!(cluster(gone(), silent), GONE);
    // The log is silent, and the driver runs.
    let lost = told(State::Lost, false, None);
    assert_eq!(cluster(lost, lives()), GONE);
    assert_eq!(with(gone(), &KubernetesFacts::default()), GONE);
}

#[test]
fn the_end_of_the_container_is_the_end_before_spark_tells() {
    let running = || told(State::Running, false, None);
    assert_eq!(cluster(running(), ended(0, "Completed")), (State::Succeeded, true, Some(0)));
    assert_eq!(cluster(running(), ended(137, "OOMKilled")), (State::Failed, true, Some(137)));
}

/// Spark 4 writes exit code 0 from its shutdown hook, at SIGTERM too.
#[test]
fn deleted_while_it_ran_is_killed_and_not_a_success() {
    let by_hook = || told(State::Succeeded, true, Some(0));
    let deleted = asked(ended(143, "Error"), 59);
    assert_eq!(cluster(by_hook(), deleted), (State::Killed, true, Some(143)));
}

/// The tempting wrong verdict: a program that had ended well, whose pod
/// was cleared away.
#[test]
fn deleted_after_it_ended_well_is_a_success() {
    let done = || told(State::Succeeded, true, Some(0));
    assert_eq!(cluster(done(), asked(lives(), 70)), (State::Succeeded, true, Some(0)));
    let lingered = Pod { deleted: true, ..asked(lives(), 70) };
    assert_eq!(cluster(done(), lingered), (State::Succeeded, true, Some(0)));
    let mut pod = asked(ended(143, "Error"), 200);
    if let Some(end) = &mut pod.end {
        end.finished = Some(at(201));
    }
    assert_eq!(cluster(done(), pod), (State::Succeeded, true, Some(0)));
    let node = Pod { reason: Some("NodeLost".into()), deleted: true, ..lives() };
    assert_eq!(cluster(done(), node), (State::Succeeded, true, Some(0)));
    let after = asked(ended(0, "Completed"), 300);
    assert_eq!(cluster(done(), after), (State::Succeeded, true, Some(0)));
}

#[test]
fn a_failure_that_spark_told_stands() {
    let failed = || told(State::Failed, true, Some(1));
    assert_eq!(cluster(failed(), ended(0, "Completed")), (State::Failed, true, Some(1)));
    let resource = resource(SubmissionState::Succeeded, "");
    assert_eq!(with(failed(), &resource), (State::Failed, true, Some(1)));
}

/// `finally: spark.stop()` makes Spark write 0 for a program that fails.
#[test]
fn the_container_s_code_is_the_program_s() {
    let stopped = told(State::Succeeded, true, Some(0));
    assert_eq!(cluster(stopped, ended(1, "Error")), (State::Failed, true, Some(1)));
}

fn fatal_job(run: &mut Application) {
    run.jobs.push(Job {
        id: 0,
        status: JobStatus::Failed,
        submitted: Some(at(50)),
        completed: Some(at(59)),
        stage_ids: Vec::new(),
        failure_reason: None,
        sql_execution_id: None,
        trace_context: None,
    });
}

#[test]
fn a_doubted_success_is_one_only_by_the_pod_s_own_code() {
    // Spark 3 writes no code.
    let mut run = told(State::Unknown, true, None);
    fatal_job(&mut run);
    assert!(run.died_with(&run.jobs[0]));
    let mut caught = run.clone();
    caught.learn(&in_pod(ended(0, "Completed"), Some("spark-1")));
    assert_eq!(caught.state, State::Succeeded);
    assert!(!caught.died_with(&caught.jobs[0]), "it was caught");
    let mut caught = run.clone();
    caught.learn(&resource(SubmissionState::Succeeded, ""));
    assert!(!caught.died_with(&caught.jobs[0]), "as the operator saw");
    // A notebook's pod that ended well proves nothing of the run.
    run.learn(&in_pod(ended(0, "Completed"), None));
    assert_eq!(run.state, State::Unknown);
    assert!(run.died_with(&run.jobs[0]));
}

/// A notebook, a worker: its pod's exit code is not the driver's.
#[test]
fn in_client_mode_the_pod_says_only_that_the_run_is_gone() {
    let running = || told(State::Running, false, None);
    assert_eq!(client(running(), ended(0, "Completed")), (State::Unknown, true, None));
    assert_eq!(client(running(), ended(1, "Error")), (State::Lost, true, None));
    assert_eq!(client(running(), ended(137, "OOMKilled")), (State::Lost, true, None));
    let culled = || asked(ended(143, "Error"), 57);
    assert_eq!(client(running(), culled()), (State::Killed, true, None));
    let done = told(State::Succeeded, true, Some(0));
    assert_eq!(client(done, ended(1, "Error")), (State::Succeeded, true, Some(0)));
    // Its context was stopped an hour before the notebook went.
    let mut earlier = gone();
    earlier.observed = at(-3_600);
    assert_eq!(client(earlier, culled()), GONE);
}

#[test]
fn the_operator_s_word_counts_where_the_pod_tells_nothing() {
    use SubmissionState::{Failed, Restarting, SubmissionFailed, Succeeded};
    let succeeded = resource(Succeeded, "");
    assert_eq!(with(gone(), &succeeded), (State::Succeeded, true, None));
    let exited = resource(Failed, "driver container failed with ExitCode: 137, Reason: Error");
    assert_eq!(with(gone(), &exited), (State::Failed, true, Some(137)));
    let failed = resource(Failed, "submission of a dependency");
    assert_eq!(with(gone(), &failed), (State::Failed, true, None));
    for state in [Restarting, SubmissionFailed, SubmissionState::Running] {
        assert_eq!(with(gone(), &resource(state, "")), GONE, "{state:?}");
    }
    // The pod itself tells.
    let both =
        KubernetesFacts { driver: in_pod(ended(0, "Completed"), Some("spark-1")).driver, ..failed };
    assert_eq!(with(gone(), &both), (State::Succeeded, true, Some(0)));
}

/// The operator looked for the pod when that was gone already.
#[test]
fn an_operator_that_found_no_pod_proves_no_failure() {
    let failed = resource(SubmissionState::Failed, "Driver Pod not found");
    assert_eq!(with(gone(), &failed), GONE);
    let done = told(State::Succeeded, true, Some(0));
    assert_eq!(with(done.clone(), &failed), (State::Succeeded, true, Some(0)));
    let other = resource(SubmissionState::Failed, "whatever");
    assert_eq!(with(done, &other), (State::Succeeded, true, Some(0)));
}

/// Whatever comes first.
#[test]
fn the_order_of_facts_does_not_matter() {
    let pod = in_pod(asked(ended(143, "Error"), 59), Some("spark-1"));
    let resource = resource(SubmissionState::Failed, "whatever");
    let both = KubernetesFacts { submission: resource.submission.clone(), ..pod.clone() };
    let mut at_once = gone();
    at_once.learn(&both);
    for order in [[&pod, &resource], [&resource, &pod]] {
        let mut run = gone();
        run.learn(&in_pod(lives(), Some("spark-1")));
        for facts in order {
            run.learn(facts);
        }
        assert_eq!(run, at_once);
    }
    assert_eq!(at_once.told_state(), State::Unknown);
    at_once.set_told_state(State::Lost);
    assert_eq!(at_once.state, State::Killed, "the pod says so still");
}
