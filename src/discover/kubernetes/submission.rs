//! What a `SparkApplication` says, of either operator: state, attempts, and
//! where its driver is. What it does not say, or says in another form, is left
//! out: its pods tell more.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::{Change, FoundSubmission, instant};
use crate::model::{Operator, Submission, SubmissionState};

/// The longest message kept.
const MESSAGE: usize = 1_000;

pub(super) fn read(operator: Operator, object: &DynamicObject) -> Option<Change> {
    let mut submission = Submission {
        operator,
        namespace: object.namespace()?,
        name: object.name_any(),
        uid: object.uid()?,
        app_id: None,
        driver_pod: None,
        state: SubmissionState::Submitted,
        attempts: 0,
        submitted: object.metadata.creation_timestamp.as_ref().and_then(instant),
        ended: None,
        message: None,
        deleted: false,
    };
    let said = Said(&object.data);
    match operator {
        Operator::Kubeflow => kubeflow(&mut submission, said),
        Operator::Apache => apache(&mut submission, said),
    }
    let ui_port = said
        .port("/spec/sparkConf/spark.ui.port")
        .or_else(|| said.port("/status/driverInfo/webUIPort"));
    Some(Change::Submission(FoundSubmission { submission, ui_port }))
}

/// A custom resource, read field by field: whatever is missing or of another
/// type is `None`.
#[derive(Clone, Copy)]
struct Said<'a>(&'a Value);

impl<'a> Said<'a> {
    fn at(self, pointer: &str) -> Self {
        Self(self.0.pointer(pointer).unwrap_or(&Value::Null))
    }

    fn text(self, pointer: &str) -> Option<&'a str> {
        self.at(pointer).0.as_str().filter(|text| !text.is_empty())
    }

    fn owned(self, pointer: &str) -> Option<String> {
        self.text(pointer).map(|text| text.chars().take(MESSAGE).collect())
    }

    fn time(self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer)?.parse().ok()
    }

    fn count(self, pointer: &str) -> Option<u32> {
        u32::try_from(self.at(pointer).0.as_u64()?).ok()
    }

    /// Of a number, or a text as Spark's properties are.
    fn port(self, pointer: &str) -> Option<u16> {
        let value = self.at(pointer).0;
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
        u16::try_from(number).ok().filter(|port| *port > 0)
    }
}

/// `sparkoperator.k8s.io/v1beta2`.
fn kubeflow(submission: &mut Submission, said: Said<'_>) {
    submission.app_id = said.owned("/status/sparkApplicationId");
    submission.driver_pod = said.owned("/status/driverInfo/podName");
    submission.attempts = said.count("/status/executionAttempts").unwrap_or(0);
    let submitted = said.time("/status/lastSubmissionAttemptTime");
    submission.submitted = submitted.or(submission.submitted);
    submission.ended = said.time("/status/terminationTime");
    submission.message = said.owned("/status/applicationState/errorMessage");
    submission.state = match said.text("/status/applicationState/state") {
        None | Some("SUBMITTED") => SubmissionState::Submitted,
        Some("RUNNING") => SubmissionState::Running,
        Some("SUCCEEDING" | "COMPLETED") => SubmissionState::Succeeded,
        Some("FAILING" | "FAILED") => SubmissionState::Failed,
        Some("SUBMISSION_FAILED") => SubmissionState::SubmissionFailed,
        Some("PENDING_RERUN" | "INVALIDATING") => SubmissionState::Restarting,
        Some(_) => SubmissionState::Unknown,
    };
}

/// `spark.apache.org`. Once its pods are released an application is in a
/// state that tells no outcome: the one before it does. Neither Spark's id
/// nor the pod's name is told: pods carry the application's name instead.
fn apache(submission: &mut Submission, said: Said<'_>) {
    let mut history: Vec<(u64, Said<'_>)> = said
        .at("/status/stateTransitionHistory")
        .0
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(number, state)| Some((number.parse().ok()?, Said(state))))
        .collect();
    history.sort_by_key(|(number, _)| *number);
    let current = said.at("/status/currentState");
    let states = history.into_iter().map(|(_, state)| state).chain([current]);
    for state in states {
        let Some(word) = state.text("/currentStateSummary") else { continue };
        let time = state.time("/lastTransitionTime");
        let meaning = match word {
            "ResourceReleased" | "TerminatedWithoutReleaseResources" => continue,
            "Submitted" | "DriverRequested" => SubmissionState::Submitted,
            "DriverStarted"
            | "DriverReady"
            | "InitializedBelowThresholdExecutors"
            | "RunningHealthy"
            | "RunningWithBelowThresholdExecutors" => SubmissionState::Running,
            "Succeeded" => SubmissionState::Succeeded,
            "Failed" | "DriverEvicted" | "ExecutorsStartTimedOut" | "DriverReadyTimedOut" => {
                SubmissionState::Failed
            }
            "SchedulingFailure" | "DriverStartTimedOut" => SubmissionState::SubmissionFailed,
            "ScheduledToRestart" => SubmissionState::Restarting,
            _ => SubmissionState::Unknown,
        };
        if word == "DriverRequested" {
            submission.submitted = time.or(submission.submitted);
        }
        let over = matches!(
            meaning,
            SubmissionState::Succeeded
                | SubmissionState::Failed
                | SubmissionState::SubmissionFailed
        );
        // The same state stands in the history and as the current one.
        if submission.state != meaning || !over {
            submission.ended = time.filter(|_| over);
            submission.message = state.owned("/message").filter(|_| over);
        }
        submission.state = meaning;
    }
    let attempt = said.count("/status/currentAttemptSummary/attemptInfo/id");
    if !matches!(submission.state, SubmissionState::Submitted) || attempt.is_some_and(|id| id > 0) {
        submission.attempts = attempt.unwrap_or(0).saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(operator: Operator, spec: &Value, status: &Value) -> FoundSubmission {
        let object = json!({
            "apiVersion": "x/v1", "kind": "SparkApplication",
            "metadata": {"name": "etl", "namespace": "ns", "uid": "u",
                         "creationTimestamp": "2026-11-01T10:00:00Z"},
            "spec": spec, "status": status,
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        match read(operator, &object) {
            Some(Change::Submission(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    fn of(operator: Operator, status: &Value) -> Submission {
        found(operator, &json!({}), status).submission
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn kubeflows_status() {
        let failed = of(
            Operator::Kubeflow,
            &json!({
                "sparkApplicationId": "spark-1", "executionAttempts": 2,
                "lastSubmissionAttemptTime": "2026-11-01T10:05:00Z",
                "terminationTime": "2026-11-01T10:09:00Z",
                "driverInfo": {"podName": "etl-driver", "webUIPort": 4040},
                "applicationState": {"state": "FAILED", "errorMessage": "driver container failed"},
            }),
        );
        assert_eq!(failed.state, SubmissionState::Failed);
        assert_eq!((failed.app_id.as_deref(), failed.attempts), (Some("spark-1"), 2));
        assert_eq!(failed.driver_pod.as_deref(), Some("etl-driver"));
        assert_eq!(failed.submitted, Some(time("2026-11-01T10:05:00Z")));
        assert_eq!(failed.ended, Some(time("2026-11-01T10:09:00Z")));
        assert_eq!(failed.message.as_deref(), Some("driver container failed"));
        for (word, state) in [
            ("", SubmissionState::Submitted),
            ("RUNNING", SubmissionState::Running),
            ("COMPLETED", SubmissionState::Succeeded),
            ("SUBMISSION_FAILED", SubmissionState::SubmissionFailed),
            ("PENDING_RERUN", SubmissionState::Restarting),
            ("SUSPENDED", SubmissionState::Unknown),
        ] {
            let status = json!({"applicationState": {"state": word}});
            assert_eq!(of(Operator::Kubeflow, &status).state, state, "{word}");
        }
    }

    fn state(word: &str, time: &str) -> Value {
        json!({"currentStateSummary": word, "lastTransitionTime": time, "message": word})
    }

    #[test]
    fn apaches_outcome_is_the_state_before_its_resources_were_released() {
        let released = of(
            Operator::Apache,
            &json!({
                "currentState": state("ResourceReleased", "2026-11-01T10:20:00Z"),
                "stateTransitionHistory": {
                    "0": state("Submitted", "2026-11-01T10:00:00Z"),
                    "1": state("DriverRequested", "2026-11-01T10:00:05Z"),
                    "9": state("RunningHealthy", "2026-11-01T10:01:00Z"),
                    "10": state("Failed", "2026-11-01T10:10:00.5Z"),
                    "11": state("ResourceReleased", "2026-11-01T10:20:00Z"),
                },
                "currentAttemptSummary": {"attemptInfo": {"id": 1}},
            }),
        );
        assert_eq!((released.state, released.attempts), (SubmissionState::Failed, 2));
        assert_eq!(released.submitted, Some(time("2026-11-01T10:00:05Z")));
        assert_eq!(released.ended, Some(time("2026-11-01T10:10:00.5Z")));
        assert_eq!(released.message.as_deref(), Some("Failed"));
        for (word, expected) in [
            ("Submitted", SubmissionState::Submitted),
            ("RunningHealthy", SubmissionState::Running),
            ("Succeeded", SubmissionState::Succeeded),
            ("SchedulingFailure", SubmissionState::SubmissionFailed),
            ("ScheduledToRestart", SubmissionState::Restarting),
            ("Suspended", SubmissionState::Unknown),
        ] {
            let status = json!({"currentState": state(word, "2026-11-01T10:00:00Z")});
            assert_eq!(of(Operator::Apache, &status).state, expected, "{word}");
        }
    }

    #[test]
    fn an_odd_object_costs_only_what_is_odd() {
        for status in [json!(null), json!(7), json!({"currentState": [], "applicationState": "x"})]
        {
            for operator in [Operator::Kubeflow, Operator::Apache] {
                let submission = of(operator, &status);
                assert_eq!(submission.state, SubmissionState::Submitted);
                assert_eq!(submission.attempts, 0);
            }
        }
        let status = json!({"executionAttempts": "many", "terminationTime": "soon",
                            "applicationState": {"state": "RUNNING"}});
        let submission = of(Operator::Kubeflow, &status);
        assert_eq!(submission.state, SubmissionState::Running);
        assert_eq!((submission.attempts, submission.ended), (0, None));
    }

    #[test]
    fn the_port_of_the_ui_is_the_one_spark_is_told() {
        let status = json!({"driverInfo": {"webUIPort": 4040}});
        let spec = json!({"sparkConf": {"spark.ui.port": "4045"}});
        assert_eq!(found(Operator::Kubeflow, &spec, &status).ui_port, Some(4045));
        assert_eq!(found(Operator::Kubeflow, &json!({}), &status).ui_port, Some(4040));
        let spec = json!({"sparkConf": {"spark.ui.port": "0"}});
        assert_eq!(found(Operator::Apache, &spec, &json!({})).ui_port, None);
    }
}
