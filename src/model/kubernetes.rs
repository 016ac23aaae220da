//! A run and what Kubernetes tells of it, put together: how it ended.
//!
//! Spark's own word, the end of the driver's pod and the custom resource can
//! differ. Which of them is right, and why, is in `docs/accuracy.md`
//! ("Kubernetes"). [`Application::learn`] can be called again and again, with
//! more facts or the same: it always begins with what Spark told, so that the
//! order in which facts come does not matter.

#[cfg(test)]
mod tests;

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
