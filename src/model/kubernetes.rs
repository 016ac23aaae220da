//! A run and what Kubernetes tells of it, put together: how it ended.
//!
//! Spark's own word, the end of the driver's pod and the custom resource can
//! differ. Which of them is right, and why, is in `docs/accuracy.md`
//! ("Kubernetes"). [`Application::learn`] can be called again and again, with
//! more facts or the same: it always begins with what Spark told, so that the
//! order in which facts come does not matter.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    Application, ContainerEnd, DriverPod, Pod, PodFate, PodPhase, Source, State, Submission,
    SubmissionState,
};

/// [`Application::outcome_proof`] of what overrules Spark's own word.
pub const PROVEN: u8 = 3;

/// Clocks of a driver's node and of the API server differ by this, at most.
const CLOCKS: SignedDuration = SignedDuration::from_secs(2);
/// A container that ends so long after Spark's ApplicationEnd was done before
/// somebody ended it: longer than a pod is given to end by itself (30 s).
const LINGERED: SignedDuration = SignedDuration::from_mins(1);
/// A run of a pod in client mode that was seen until so shortly before the
/// pod's end went with it.
const SEEN_UNTIL: SignedDuration = SignedDuration::from_mins(1);

/// What is known of a run from Kubernetes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KubernetesFacts {
    pub driver: Option<Arc<DriverPod>>,
    /// Those that ended, by executor id.
    pub executors: BTreeMap<String, Arc<Pod>>,
    /// The custom resource whose newest attempt the run is, or was.
    pub submission: Option<Arc<Submission>>,
}

/// What Kubernetes tells of an application, beside what Spark does.
#[derive(Debug, Clone, PartialEq)]
pub struct OnKubernetes {
    pub driver: Option<Arc<DriverPod>>,
    pub submission: Option<Arc<Submission>>,
    /// As Spark told it.
    told: Told,
    /// Whether the run's state is Kubernetes' word, not Spark's.
    pub proves_state: bool,
    /// Whether all of this was known when the run was first shown.
    pub known_from_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    state: State,
    end: Option<Timestamp>,
    exit_code: Option<i32>,
}

impl OnKubernetes {
    /// Whether the driver is what its pod runs, so that the pod ends as the
    /// program does. In client mode the pod is a notebook's or a worker's.
    pub fn is_cluster_mode(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.app_id.is_some())
    }

    /// How the driver's pod ended.
    pub fn driver_fate(&self) -> Option<PodFate> {
        self.driver.as_ref()?.pod.fate()
    }
}

impl Application {
    /// Takes in what Kubernetes tells. Returns whether that changed anything.
    pub fn learn(&mut self, facts: &KubernetesFacts) -> bool {
        let mut changed = false;
        for executor in &mut self.executors {
            let pod = facts.executors.get(&executor.id);
            if pod.is_some() && executor.pod.as_ref() != pod {
                executor.pod = pod.cloned();
                changed = true;
            }
        }
        if facts.driver.is_none() && facts.submission.is_none() {
            return changed;
        }
        let before = self.kubernetes.take();
        let told = before.as_ref().map_or(
            Told { state: self.state, end: self.end, exit_code: self.exit_code },
            |known| known.told,
        );
        let of_before = |known: &OnKubernetes| (known.driver.clone(), known.submission.clone());
        let (driver, submission) =
            before.as_ref().map(|known| of_before(known)).unwrap_or_default();
        let now = OnKubernetes {
            driver: facts.driver.clone().or(driver),
            submission: facts.submission.clone().or(submission),
            told,
            proves_state: false,
            known_from_start: before.as_ref().is_some_and(|known| known.known_from_start),
        };
        let was = (self.state, self.end, self.exit_code);
        self.kubernetes = Some(Box::new(now));
        self.settle();
        changed || self.kubernetes != before || was != (self.state, self.end, self.exit_code)
    }

    /// The run's state as Spark, or whoever read it, told it.
    pub fn told_state(&self) -> State {
        self.kubernetes.as_ref().map_or(self.state, |known| known.told.state)
    }

    /// Its end as Spark told it.
    pub fn told_end(&self) -> Option<Timestamp> {
        self.kubernetes.as_ref().map_or(self.end, |known| known.told.end)
    }

    /// Whoever read it says otherwise now.
    pub fn set_told_state(&mut self, state: State) {
        match &mut self.kubernetes {
            Some(known) => {
                known.told.state = state;
                self.settle();
            }
            None => self.state = state,
        }
    }

    /// Whether Kubernetes says that the run ended, and Spark has not said so.
    pub fn ended_unseen(&self) -> bool {
        self.state != State::Running && self.told_state() == State::Running
    }

    /// Whether Kubernetes says that the run was ended by something else than
    /// its own program or Spark.
    pub fn was_ended_from_outside(&self) -> bool {
        let Some(known) = self.kubernetes.as_ref().filter(|known| known.proves_state) else {
            return false;
        };
        known.driver_fate().is_some_and(|fate| match fate {
            PodFate::OutOfMemory => true,
            // A signal by whom is not proven.
            PodFate::Exited(_) => false,
            fate => fate.is_from_outside(),
        })
    }

    /// How sure it is how the run ended: 0 where nothing tells, 1 by a word
    /// that Spark's own end would overrule, 2 by Spark's exit code 0, 3 by
    /// what overrules that: the end of the driver's container, or another
    /// exit code of Spark's.
    pub fn outcome_proof(&self) -> u8 {
        let Some(known) = self.kubernetes.as_ref().filter(|known| known.proves_state) else {
            return match self.exit_code {
                Some(code) if code != 0 => PROVEN,
                Some(_) if self.state == State::Succeeded => 2,
                _ => 0,
            };
        };
        match known.driver_fate().filter(|_| known.is_cluster_mode()) {
            _ if self.state == State::Unknown => 0,
            Some(fate) if known.told.end.is_some() || !fate.is_from_outside() => PROVEN,
            _ => 1,
        }
    }

    /// Who read it before knew better how it ended, from a pod that may be
    /// gone by now.
    pub fn restore_outcome(&mut self, state: State, proof: u8) {
        let is_surer = proof == PROVEN && self.outcome_proof() < PROVEN;
        if self.state != State::Running && self.end.is_some() && is_surer {
            self.set_told_state(state);
        }
    }

    /// Whether Kubernetes proves that the program ended well.
    pub(super) fn proved_success(&self) -> bool {
        let proves = self.kubernetes.as_ref().is_some_and(|known| known.proves_state);
        proves && self.state == State::Succeeded
    }

    fn settle(&mut self) {
        let Some(known) = &self.kubernetes else { return };
        let told = known.told;
        let proven = self.outcome(known, told);
        let outcome = proven.unwrap_or(told);
        self.state = outcome.state;
        self.end = outcome.end;
        self.exit_code = outcome.exit_code;
        if let Some(known) = &mut self.kubernetes {
            known.proves_state = proven.is_some();
        }
    }

    /// How the run ended, where Kubernetes knows better than Spark.
    fn outcome(&self, known: &OnKubernetes, told: Told) -> Option<Told> {
        // The program said itself that it failed.
        if told.exit_code.is_some_and(|code| code != 0) {
            return None;
        }
        let by_pod = known.driver.as_ref().and_then(|driver| {
            let fate = driver.pod.fate();
            if driver.app_id.is_some() {
                of_driver(told, &driver.pod, fate)
            } else {
                self.of_client(told, &driver.pod, fate?)
            }
        });
        by_pod.or_else(|| of_submission(told, known.submission.as_deref()?))
    }

    /// The pod of a notebook or a worker ended, and the run with it if it had
    /// not ended before. Its exit code is not the driver's.
    fn of_client(&self, told: Told, pod: &Pod, fate: PodFate) -> Option<Told> {
        let at = when(pod);
        let went_with_it = match (self.source, at) {
            // Its log has no end.
            (Source::EventLog, _) => true,
            (_, Some(at)) => at.duration_since(self.observed) <= SEEN_UNTIL,
            (_, None) => false,
        };
        if told.end.is_some() || !went_with_it {
            return None;
        }
        let state = match fate {
            // It did as it was told; whether the run had, nothing says.
            PodFate::Completed => State::Unknown,
            PodFate::Deleted => State::Killed,
            PodFate::Vanished if told.state == State::Running => return None,
            _ => State::Lost,
        };
        Some(Told { state, end: at, exit_code: told.exit_code })
    }
}

/// By the end of the pod whose main process is the driver.
fn of_driver(told: Told, pod: &Pod, fate: Option<PodFate>) -> Option<Told> {
    let Some(fate) = fate else {
        // Whoever lost sight of the run was wrong, or too early.
        let lives = pod.phase == PodPhase::Running && pod.deletion.is_none();
        return (lives && told.state == State::Lost)
            .then_some(Told { state: State::Unknown, ..told });
    };
    if fate.is_from_outside() && was_done_before(told, pod) {
        return None;
    }
    let state = match fate {
        PodFate::Completed => State::Succeeded,
        PodFate::Deleted => State::Killed,
        PodFate::NodeLost => State::Lost,
        PodFate::Vanished => match told.state {
            // Its labels may have changed: its driver answers.
            State::Running => return None,
            _ => State::Lost,
        },
        PodFate::OutOfMemory
        | PodFate::Evicted
        | PodFate::Preempted
        | PodFate::Deadline
        | PodFate::Exited(_)
        | PodFate::Failed => State::Failed,
    };
    let code = match (&pod.end, fate) {
        (_, PodFate::Completed) => Some(0),
        (Some(ContainerEnd { exit_code, reason, .. }), _)
            if reason.as_deref() != Some("ContainerStatusUnknown") =>
        {
            Some(*exit_code)
        }
        _ => None,
    };
    Some(Told { state, end: told.end.or_else(|| when(pod)), exit_code: code })
}

/// By the operator's word, which it took from the same pod: only where the pod
/// itself tells nothing here.
fn of_submission(told: Told, submission: &Submission) -> Option<Told> {
    let end = told.end.or(submission.ended);
    match submission.state {
        SubmissionState::Succeeded if told.state != State::Succeeded => {
            Some(Told { state: State::Succeeded, end, exit_code: told.exit_code })
        }
        SubmissionState::Failed => {
            let message = submission.message.as_deref().unwrap_or_default();
            match driver_exit_code(message) {
                Some(code) => Some(Told { state: State::Failed, end, exit_code: Some(code) }),
                // It looked too late for the pod, which says nothing of the
                // program; and nothing is better than Spark's own success.
                None if is_about_missing_pod(message) || told.state == State::Succeeded => None,
                None => Some(Told { state: State::Failed, end, exit_code: told.exit_code }),
            }
        }
        _ => None,
    }
}

/// Whether Spark's ApplicationEnd came well before somebody ended the pod. It
/// comes at SIGTERM too, from the shutdown hook, and with exit code 0.
fn was_done_before(told: Told, pod: &Pod) -> bool {
    let Some(end) = told.end else { return false };
    let finished = pod.end.as_ref().and_then(|end| end.finished);
    match (pod.deletion, finished) {
        (Some(asked), _) => asked.duration_since(end) > CLOCKS,
        (None, Some(finished)) => finished.duration_since(end) > LINGERED,
        // No signal reached the driver that anybody saw: it ended by itself.
        (None, None) => true,
    }
}

fn when(pod: &Pod) -> Option<Timestamp> {
    pod.end.as_ref().and_then(|end| end.finished).or(pod.deletion)
}

/// Kubeflow's operator: "driver container failed with ExitCode: 1, Reason:
/// Error".
fn driver_exit_code(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("driver container failed with ExitCode: ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|code| *code != 0)
}

fn is_about_missing_pod(message: &str) -> bool {
    message.to_ascii_lowercase().contains("driver pod not found")
}

#[cfg(test)]
mod tests {
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
        let both = KubernetesFacts {
            driver: in_pod(ended(0, "Completed"), Some("spark-1")).driver,
            ..failed
        };
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
}
